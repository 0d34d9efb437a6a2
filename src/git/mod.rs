//! Reading a clone through gix, isolated and with reduced trust. Nothing here runs a program or writes.

pub mod convert;
pub mod index;
pub mod lfs;
pub mod open;
pub mod submodule;

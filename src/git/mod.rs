//! Reading a clone through gix, isolated and with reduced trust. Nothing here runs a program or writes.

pub mod open;
pub mod registration;

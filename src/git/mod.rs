//! Reading a clone through gix, isolated and with reduced trust. Nothing here runs a program or writes.

pub mod content;
pub mod convert;
pub mod head;
pub mod history;
pub mod index;
pub mod kinds;
pub mod layout;
pub mod lfs;
pub mod objects;
pub mod open;
pub mod prune_expire;
pub mod reflog;
pub mod refs;
pub mod registration;
pub mod submodule;
#[cfg(test)]
pub(crate) mod testing;
pub mod tree;

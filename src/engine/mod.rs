//! Container engines through bollard, and processes: who holds a checkout. Reads only.
//!
//! `World::gather` asks everything at once; `liveness::holds` decides, without I/O, what of it
//! holds one worktree.

pub mod client;
pub mod containers;
pub mod contexts;
pub mod endpoints;
pub mod foreign;
pub mod forms;
pub mod liveness;
pub mod place;
mod proc_fs;
pub mod processes;
pub mod reading;
pub mod scan;
pub mod world;

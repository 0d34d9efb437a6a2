//! The command line.

pub mod args;
pub mod exit;
pub mod run;
pub mod session;

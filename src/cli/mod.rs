//! The command line: what was typed, what it means, and one thin file for each command.

pub mod args;
pub mod exit;
pub mod output;
pub mod run;
pub mod select;
pub mod session;
mod setup;

//! The command line: what was typed, what it means, and one thin file for each command.

pub mod args;
mod drop;
pub mod exit;
mod guard;
mod log;
mod outcomes;
pub mod output;
mod prune;
mod rescue;
mod restore;
pub mod run;
pub mod select;
mod setup;

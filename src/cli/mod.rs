//! The command line: what was typed, what it means, and one thin file for each command.

pub mod args;
mod complete;
mod drop;
pub mod exit;
mod guard;
mod log;
mod metrics;
mod min_free;
mod outcomes;
pub mod output;
mod prune;
mod rescue;
mod restore;
pub mod run;
pub mod select;
mod setup;
mod up;

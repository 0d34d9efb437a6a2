//! What a person, or a program, gets to see. Pure: the plan and its outcomes go in, text comes out; only
//! [`progress`] and [`prompt`] talk to a terminal themselves.
//!
//! | module       | what it renders                                                 |
//! | ------------ | --------------------------------------------------------------- |
//! | [`plan`]     | every worktree with its verdict and why, the totals, what to type next |
//! | [`explain`]  | every question asked of one worktree                            |
//! | [`outcome`]  | what was done, and what failed                                  |
//! | [`log`]      | what was removed, and what is kept of it                        |
//! | [`restore`]  | what came back, and what did not                                |
//! | [`rescue`]   | what was registered again, or the branches to choose from       |
//! | [`guard`]    | how each clone is protected                                     |
//! | [`space`]    | what is free, and what holds the rest                           |
//! | [`metrics`]  | a run for a monitoring system                                   |
//! | [`json`]     | the same for programs                                           |
//! | [`reasons`]  | what each reason code means and what to do                      |
//! | [`progress`] | a spinner and a bar, on a terminal only                         |
//! | [`prompt`]   | questions to a person                                           |
//! | [`shell`]    | commands to copy                                                |

pub mod explain;
pub mod guard;
mod hints;
pub mod json;
pub mod lines;
pub mod log;
pub mod metrics;
pub mod outcome;
pub mod plan;
pub mod progress;
pub mod prompt;
pub mod reasons;
pub mod rescue;
pub mod restore;
pub mod shell;
pub mod space;
pub mod style;
mod table;
mod text;

#[cfg(test)]
mod sample;

pub use style::Style;
pub use text::{age, count, size};

use std::path::PathBuf;

use jiff::Timestamp;

/// How, when and for whom something is rendered.
#[derive(Clone, Debug)]
pub struct View {
    pub style: Style,
    /// Ages are relative to it.
    pub now: Timestamp,
    /// Shown as `~` where a path is only to be read.
    pub home: Option<PathBuf>,
    /// For commands to copy.
    pub again: shell::CommandLine,
}

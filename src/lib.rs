//! treesweep reclaims git worktrees that dev containers left behind.
//!
//! The flow has one direction: **discover -> survey -> judge -> plan -> (confirm) -> sweep -> verify -> report**.
//!
//! | room          | what happens there                                                                    |
//! | ------------- | ------------------------------------------------------------------------------------- |
//! | [`vantage`]   | namespaces in which a path means something, and translations between them            |
//! | [`engine`]    | what container engines and processes hold (reads only)                               |
//! | [`git`]       | reading a clone: registrations, HEAD, operations, history, refs                      |
//! | [`survey`]    | walks clones, joins registrations to checkouts, gathers facts (reads only)           |
//! | [`judge`]     | facts to verdicts and warrants: pure, no I/O, no clock, no environment               |
//! | [`plan`]      | the plan as data                                                                      |
//! | [`planning`]  | from what was judged to the plan                                                     |
//! | [`sweep`]     | the only place that deletes                                                           |
//! | [`report`]    | table, JSON, progress                                                                 |
//! | [`library`]   | all of it for other programs                                                         |
//! | [`cli`]       | the command line                                                                      |
//! | [`config`]    | layered settings, and where each came from                                            |

// Tests make their states with git and the file system.
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod beneath;
pub mod cli;
pub mod config;
pub mod engine;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
pub mod git;
pub mod judge;
pub mod library;
pub mod lifecycle;
pub mod plan;
pub mod planning;
pub mod reclaim;
pub mod report;
pub mod session;
pub mod state_dir;
pub mod stop;
pub mod survey;
pub mod sweep;
pub mod vantage;

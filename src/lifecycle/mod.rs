//! The life of a worktree before its end and after it. With `sweep`, the only room that may change anything.

#![allow(clippy::disallowed_methods)]

pub mod enrol;
pub mod locked;

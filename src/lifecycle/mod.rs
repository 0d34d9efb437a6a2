//! The life of a worktree before its end. With `sweep`, the only room that may change anything.

#![allow(clippy::disallowed_methods)]

pub mod enrol;

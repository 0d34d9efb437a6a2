//! The life of a worktree before its end. With `sweep`, the only room that may change anything.

pub mod enrol;

//! The life of a worktree before its end and after it, and the launch of a dev container. With `sweep`, the only room that may change anything.

#![allow(clippy::disallowed_methods)]

pub mod checkout;
pub mod enrol;
pub mod guard;
pub mod launch;
pub mod links;
pub mod locked;
pub mod rescue;
pub mod restore;
pub mod snapshot;

//! What the integration tests share: an environment of their own, real git, snapshots, real containers.
//!
//! Nothing here is a double: git is the machine's git, containers come from its engine.

// Each test binary uses a part of this.
#![allow(dead_code)]
// The room rules of `src/` are not about tests, which start git, docker and treesweep.
#![allow(clippy::disallowed_methods)]

pub mod api;
pub mod containers;
pub mod env;
pub mod fake_engine;
pub mod git;
pub mod namespace;
pub mod plan;
pub mod scene;
pub mod snapshot;
pub mod states;
#[cfg(target_arch = "x86_64")]
pub mod tracer;

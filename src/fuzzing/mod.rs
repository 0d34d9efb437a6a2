//! What holds of each parser of files that a container can write, for any bytes: the properties that `scripts/fuzz`
//! tries with bytes that cover more and more of the code, and that the tests try with what is kept of these.
//!
//! A property panics where it does not hold. Built for the tests and by cargo-fuzz only.

mod config;
mod engine;
mod index;
mod mounts;
mod paths;
mod refs;
mod state;

pub use config::{clone_config, config, own_config};
pub use engine::label;
pub use index::{index, split_index};
pub use mounts::mountinfo;
pub use paths::{dot_git, gitdir, inferred, trash};
pub use refs::{head, lfs, packed_refs, reflog};
pub use state::{journal, marker};

#[cfg(test)]
mod tests;

/// Nothing of `shown` can drive a terminal.
fn assert_tame(shown: &str) {
    assert!(!shown.contains(char::is_control), "{shown:?} has a control character");
}

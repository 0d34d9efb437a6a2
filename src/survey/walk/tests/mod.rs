//! The walk against states that real git made.

mod deletion;
mod fixture;
mod lfs;
mod rules;
mod submodules;

use fixture::{Fixture, paths};

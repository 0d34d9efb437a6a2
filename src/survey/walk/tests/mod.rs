//! The walk against states that real git made.

mod deletion;
mod fixture;
mod lfs;
mod orphans;
mod rules;
mod submodules;

use fixture::{Fixture, paths};

//! The walk against states that real git made.

mod fixture;
mod rules;

use fixture::{Fixture, paths};

//! Walks clones, joins registrations to checkouts and gathers facts. Reads only.

pub mod discover;
pub mod join;

//! Walks clones, joins registrations to checkouts and gathers facts. Reads only.

pub mod absence;
pub mod discover;
pub mod eyes;
pub mod join;
pub mod placement;
pub mod terrain;

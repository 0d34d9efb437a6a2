//! Walks clones, joins registrations to checkouts and gathers facts. Reads only.

pub mod disposable;
pub mod orphan;
pub mod precious;
pub mod walk;

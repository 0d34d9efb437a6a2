//! Walks clones, joins registrations to checkouts and gathers facts. Reads only.

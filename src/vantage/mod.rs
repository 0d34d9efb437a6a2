//! Namespaces in which a path means something, and the translations between them.

pub mod mountinfo;
pub mod own_container;
pub mod paths;
pub mod translate;

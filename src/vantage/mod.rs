//! Namespaces in which a path means something, and the translations between them.

pub mod paths;
pub mod translate;

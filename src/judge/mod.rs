//! Facts to verdicts and warrants. Pure: no I/O, no clock, no environment.

pub mod facts;
pub mod reason;
pub mod tree_facts;
pub mod warrant;

//! What a person, or a program, gets to see.

pub mod shell;

//! The judge's rules as tables, and what no facts whatever may lead to.

mod branches;
mod order;
mod property;
mod verdicts;
mod words;

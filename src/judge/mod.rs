//! Facts to verdicts and warrants. Pure: no I/O, no clock, no environment.
//!
//! | file         | subject                                                           |
//! | ------------ | ----------------------------------------------------------------- |
//! | `ownership`  | whether recorded evidence says that this lifecycle may            |
//! | `facts`      | what is known of one worktree                                     |
//! | `tree_facts` | what the index and the walk say                                   |
//! | `rules`      | the reasons to keep that follow from each answer                  |
//! | `verdict`    | which question is next, the verdict, and the warrant              |
//! | `reason`     | the stable codes                                                  |

pub mod explain;
pub mod facts;
pub mod ownership;
pub mod reason;
pub mod rules;
#[cfg(test)]
pub mod testing;
#[cfg(test)]
mod tests;
pub mod tree_facts;
pub mod verdict;
pub mod warrant;

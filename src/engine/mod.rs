//! Container engines through bollard, and processes: who holds a checkout. Reads only.
//!
//! [`world::Gatherer::gather`] asks everything at once; [`liveness::holds`] decides, without I/O, what of it holds one
//! worktree.
//!
//! | question                                          | answered by                                            |
//! | ------------------------------------------------- | ------------------------------------------------------ |
//! | which engines are there?                          | [`endpoints`], [`contexts`]                            |
//! | what do they say, and how do they fail?           | [`client`], read by [`reading`] into [`containers`]    |
//! | where does what they mount lie here?              | [`forms`] (spellings), [`place`] (our vantage)         |
//! | what do processes hold, in whatever namespace?    | [`scan`] reads it, [`processes`] and [`foreign`] tell  |
//! | may this worktree go?                             | [`liveness`]                                           |

pub mod client;
pub mod containers;
pub mod contexts;
pub mod endpoints;
pub mod foreign;
pub mod forms;
pub mod liveness;
mod ping;
pub mod place;
mod proc_fs;
pub mod processes;
pub mod reading;
pub mod scan;
pub mod world;

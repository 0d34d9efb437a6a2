//! Walks clones, joins registrations to checkouts and gathers facts. Reads only.
//!
//! | file        | subject                                                                  |
//! | ----------- | ------------------------------------------------------------------------ |
//! | `discover`  | clones, checkouts and trash beneath the roots                            |
//! | `terrain`   | all of that with registrations and translations                          |
//! | `join`      | which registration and which checkout name each other                    |
//! | `ground`    | the joined terrain, with what is looked up once for all registrations    |
//! | `placement` | where each registration's checkout is, and what keeps what is not joined |
//! | `strays`    | checkouts that are not joined: whose row shows them, which are orphans   |
//! | `bounds`    | what lies within the roots                                               |
//! | `absence`   | how far the absence of a path is proven                                  |
//! | `standing`  | what is known before any costly question                                 |
//! | `eyes`      | what is read once for a clone: refs, trunk, history                      |
//! | `holds`     | what containers and processes hold                                       |
//! | `walk`      | the one walk over a checkout                                             |
//! | `origin`    | which clone an orphan certainly is of, and what its writer calls things   |
//! | `candidates`| which branches an orphan's files are nearest to                          |
//! | `orphan`    | whether a commit has an orphan's files                                   |
//! | `examine`   | the questions about one worktree                                         |
//! | `space`     | free space of the file systems of the roots                              |
//! | `weigh`     | how much a directory takes                                               |
//! | `run`       | all clones of a run, and one worktree once more                          |

pub mod absence;
mod bounds;
pub mod candidates;
pub mod discover;
pub mod disposable;
pub mod examine;
pub mod eyes;
pub mod ground;
pub mod holds;
pub mod join;
pub mod lost;
pub mod origin;
pub mod orphan;
pub mod placement;
pub mod precious;
pub mod run;
pub mod space;
pub mod standing;
mod strays;
pub mod terrain;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod walk;
pub mod weigh;

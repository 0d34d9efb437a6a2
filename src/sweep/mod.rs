//! The only place that deletes: it consumes warrants that only the judge mints.
//!
//! ```text
//! thread of one clone:  Sweeper::enter  ->  Sweeper::resume  ->  (judge -> Sweeper::execute) for each candidate
//! ```
//!
//! The order of a removal stands in `execute` (up to the first deletion) and `work` (from there), what a later run makes
//! of a journal in `resume`. All changes go through `act`.
//!
//! **What is waited for on the disk.** A power cut is a kill that also forgets the newest writes, so these are synced
//! before what relies on them: the journal, before the rename; each of its steps, before the deletion that only it
//! explains; anchors, before the worktree that names their commits; `packed-refs`, before it replaces the old one; the
//! complete record, before its journal goes. Deletions are not: what a power cut brings back, the journal still names.
//! That the journal's own end is not synced costs a look at what is gone already. Where state and worktrees are on
//! different disks, a power cut may lose the end of a deletion and not that of its journal: what is left then is trash
//! that no journal knows, for a person to finish.

#![allow(clippy::disallowed_methods)]

pub mod absence;
pub mod act;
mod ancestry;
pub mod anchors;
pub mod aside;
pub mod atomic;
pub mod branch;
pub mod bytes;
pub mod config;
pub mod confine;
mod ending;
mod enter;
mod execute;
pub mod expire;
pub mod forget;
pub mod journal;
pub mod kernel;
mod late;
pub mod lock;
pub mod marker;
pub mod outcome;
pub mod outside;
pub(crate) mod packed;
pub mod protect;
pub mod record;
pub mod records;
mod ref_lock;
pub mod refs;
pub mod remove;
pub mod resume;
pub mod staged;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
pub mod trash;
pub mod uses;
mod work;

use std::num::NonZeroUsize;

use crate::beneath::Dir;
use crate::git::open::Unreadable;
use crate::judge::reason::Reason;
use crate::judge::tree_facts::Fingerprint;
use crate::state_dir::{CloneState, StateDir, StateError};
use crate::stop::Stop;
use crate::sweep::confine::Confinement;
use crate::sweep::lock::{CloneLock, LockError};
use crate::sweep::outcome::Progress;
use crate::sweep::protect::Protected;
use crate::vantage::paths::{FileId, LocalPath};

/// What all removals of a run share.
pub struct Sweeper<'a> {
    pub state: &'a StateDir,
    pub stop: &'a Stop,
    /// Threads that delete at a time; with 1 every change is made on the calling thread.
    pub jobs: NonZeroUsize,
    pub progress: &'a dyn Progress,
    /// What no removal may touch, whatever a warrant says.
    pub protected: &'a Protected,
}

/// Questions that the sweep asks directly before it acts, answered by the rooms that can.
pub struct Hooks<'a> {
    /// The state of everything in a directory, as the warrant has it. It must open nothing for writing.
    pub fingerprint: &'a dyn Fn(&Dir) -> Result<Fingerprint, Unreadable>,
    /// Whether nothing outside this namespace holds the checkout that lies at this path now: a mount that only another
    /// namespace sees is in the way of no rename, and `rmdir` of its mount point would detach it there.
    pub world_still_allows: &'a dyn Fn(&LocalPath) -> Result<(), Reason>,
}

/// A clone under its lock, on the thread that is confined to it.
#[derive(Debug)]
pub struct LockedClone {
    common: Dir,
    common_id: FileId,
    /// `None`: the disk was too full to make it.
    state: Option<CloneState>,
    _lock: CloneLock,
    pub confinement: Confinement,
    /// What is to be said to the person, and stops nothing.
    pub warnings: Vec<String>,
}

impl LockedClone {
    pub fn common(&self) -> &Dir {
        &self.common
    }

    pub fn state(&self) -> Option<&CloneState> {
        self.state.as_ref()
    }
}

/// Why a clone can't be swept at all.
#[derive(Debug, thiserror::Error)]
pub enum EnterError {
    #[error(transparent)]
    Kernel(#[from] kernel::Lacking),
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{path}: {why}")]
    Unreadable { path: LocalPath, why: String },
    #[error("the state directory {0} lies within the clone, where a container could write it")]
    StateInReach(LocalPath),
}

impl EnterError {
    /// The environment lacks what a sweep needs: exit code 3.
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Kernel(_) | Self::Lock(LockError::Unsupported { .. }))
    }
}

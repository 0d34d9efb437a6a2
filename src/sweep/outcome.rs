//! What became of one warrant.

use bstr::BString;
use serde::{Deserialize, Serialize};

use crate::judge::reason::Reason;
use crate::sweep::bytes::Bytes;
use crate::sweep::record::RecordId;
use crate::vantage::paths::LocalPath;

/// The stable word for how it ended; what `prune --json` calls `result`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Checkout and registration are verified absent.
    Removed,
    /// The registration is verified absent; there was no checkout.
    Forgotten,
    /// Nothing was changed, or what was changed was put back.
    Skipped,
    /// Not now: the run was asked to stop, or the disk is full. What was begun is journaled.
    Deferred,
    /// A removal failed, or absence could not be verified.
    Failed,
}

/// What became of the branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum BranchOutcome {
    /// The full name of the ref that is gone.
    Deleted { name: Bytes },
    /// It stays, and why.
    Kept { name: Bytes, why: String },
    /// There is no branch.
    None,
}

impl BranchOutcome {
    pub(crate) fn kept(name: impl Into<BString>, why: impl Into<String>) -> Self {
        Self::Kept { name: Bytes::new(name), why: why.into() }
    }
}

/// What a removal did. `freed` is a lower bound: a file with several links counts when its last one goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removed {
    pub files: u64,
    pub directories: u64,
    /// Allocated bytes.
    pub freed: u64,
}

impl std::ops::AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.directories += other.directories;
        self.freed += other.freed;
    }
}

/// What became of one warrant, or of one removal that an earlier run began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The entry's name.
    pub name: BString,
    /// Of the checkout.
    pub path: Option<LocalPath>,
    pub result: Ending,
    pub branch: BranchOutcome,
    pub removed: Removed,
    /// The reason code of what was skipped or failed, where one fits.
    pub reason: Option<Reason>,
    /// For a person: what happened, in one line.
    pub note: Option<String>,
    /// After a failure: what was found at path, trash and entry, and the state of the branch.
    pub observed: Option<String>,
    /// After a failure: the command that finishes it, and changes nothing where all is done.
    pub retry: Option<String>,
    /// Its retirement record; `None` where nothing was done.
    pub record: Option<RecordId>,
}

/// Hears of freed bytes while a removal runs, from any of its threads.
pub trait Progress: Sync {
    fn freed(&self, bytes: u64);
}

/// Nobody listens.
impl Progress for () {
    fn freed(&self, _bytes: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_adds_up() {
        let mut sum = Removed { files: 1, directories: 2, freed: 4 };
        sum += Removed { files: 8, directories: 16, freed: 32 };
        assert_eq!(sum, Removed { files: 9, directories: 18, freed: 36 });
    }
}

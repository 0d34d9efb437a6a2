//! Finishing what an earlier run began: exactly what the own journals name, by device and inode.

use bstr::BString;

use crate::state_dir::{StateDir, StateError};
use crate::sweep::journal::Step;
use crate::sweep::outcome::Outcome;
use crate::sweep::record::RecordId;
use crate::sweep::{Hooks, LockedClone, Sweeper};
use crate::vantage::paths::{FileId, LocalPath};

/// A removal that an earlier run began, for the plan's class `resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    pub record: RecordId,
    /// The entry's name.
    pub name: BString,
    /// Where the checkout was.
    pub path: Option<LocalPath>,
    /// Where it is if it was moved aside.
    pub trash: Option<LocalPath>,
    pub branch: Option<BString>,
    pub step: Step,
}

/// What the journals of the clone `common` hold, and with each that can't be read, why. Changes nothing.
pub fn pending(state: &StateDir, common: FileId) -> Result<(Vec<Interrupted>, Vec<String>), StateError> {
    todo!()
}

impl Sweeper<'_> {
    /// Finishes, or takes back, what the journals of the clone hold; what was never touched is forgotten without a word.
    pub fn resume(&self, clone: &mut LockedClone, hooks: &Hooks<'_>) -> Vec<Outcome> {
        todo!()
    }
}

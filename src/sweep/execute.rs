//! One removal, in the order that loses nothing.

use crate::beneath::Dir;
use crate::judge::warrant::Warrant;
use crate::sweep::outcome::Outcome;
use crate::sweep::{EnterError, Hooks, LockedClone, Sweeper};
use crate::vantage::paths::LocalPath;

impl Sweeper<'_> {
    /// Confines this thread, locks the clone and opens what is kept for it. `parents` are the directories that hold the
    /// candidates; `main_worktree` is the clone's, if it has one.
    ///
    /// The thread stays confined after this: call it on one that sweeps this clone and does nothing else.
    pub fn enter(
        &self,
        common: Dir,
        main_worktree: Option<&LocalPath>,
        parents: &[LocalPath],
    ) -> Result<LockedClone, EnterError> {
        todo!()
    }

    /// Does what `warrant` allows, in the design's order, from the checks directly before the first change to the branch.
    pub fn execute(&self, clone: &mut LockedClone, warrant: Warrant, hooks: &Hooks<'_>) -> Outcome {
        todo!()
    }
}

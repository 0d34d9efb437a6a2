//! Entering a clone: the thread is confined before its first write, and the clone locked before anything is judged to be
//! acted on.

use crate::beneath::{Dir, Refused, lstat};
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::sweep::confine::{Confinement, confine};
use crate::sweep::lock::{CloneLock, PATIENCE};
use crate::sweep::{EnterError, LockedClone, Sweeper, atomic, kernel, ref_lock, resume, staged};
use crate::vantage::paths::{FileId, LocalPath};

impl LockedClone {
    /// Confines this thread to the clone, to the state directory and to `parents`, locks the clone and opens what is kept
    /// for it. `main_worktree` is the clone's, if it has one.
    ///
    /// The thread stays confined after this: call it on one that works on this clone and does nothing else.
    pub fn enter(
        state: &StateDir,
        stop: &Stop,
        common: Dir,
        main_worktree: Option<&LocalPath>,
        parents: &[LocalPath],
    ) -> Result<Self, EnterError> {
        kernel::check()?;
        let unreadable = |path: &LocalPath, refused: Refused| EnterError::Unreadable {
            path: path.clone(),
            why: refused.to_string(),
        };
        let common_id = common.own_meta().map_err(|r| unreadable(common.path(), r))?.id;
        let mut reach = vec![common_id];
        if let Some(path) = main_worktree {
            reach.push(lstat(path).map_err(|r| unreadable(path, r))?.id);
        }
        if state.ancestry()?.iter().any(|id| reach.contains(id)) {
            return Err(EnterError::StateInReach(state.dir().path().clone()));
        }
        let confinement = confine(&[&common, state.dir()], parents);
        Self::lock(state, stop, common, common_id, confinement)
    }

    fn lock(
        state: &StateDir,
        stop: &Stop,
        common: Dir,
        common_id: FileId,
        confinement: Confinement,
    ) -> Result<Self, EnterError> {
        let lock = CloneLock::acquire(&common, PATIENCE, stop)?;
        let state = match state.clone_state(common_id) {
            Ok(state) => Some(state),
            Err(error) if error.is_full() => None,
            Err(error) => return Err(error.into()),
        };
        let mut clone = Self { common, common_id, state, _lock: lock, confinement, warnings: Vec::new() };
        clone.tidy();
        Ok(clone)
    }

    /// For tests whose threads have to go on with other things.
    #[cfg(test)]
    pub(crate) fn enter_unconfined(state: &StateDir, stop: &Stop, common: Dir) -> Result<Self, EnterError> {
        let refused = |r: Refused| EnterError::Unreadable { path: common.path().clone(), why: r.to_string() };
        let id = common.own_meta().map_err(refused)?.id;
        Self::lock(state, stop, common, id, Confinement::Inactive("a test".into()))
    }
}

impl Sweeper<'_> {
    /// [`LockedClone::enter`], where the parents of removals that an earlier run began are added to `parents`, the
    /// directories that hold the candidates.
    pub fn enter(
        &self,
        common: Dir,
        main_worktree: Option<&LocalPath>,
        parents: &[LocalPath],
    ) -> Result<LockedClone, EnterError> {
        let refused = |r: Refused| EnterError::Unreadable { path: common.path().clone(), why: r.to_string() };
        let common_id = common.own_meta().map_err(refused)?.id;
        let (pending, damaged) = resume::pending(self.state, common_id)?;
        let mut parents = parents.to_vec();
        parents.extend(pending.iter().filter_map(|p| p.path.as_ref()?.parent()));
        parents.sort_unstable();
        parents.dedup();
        let mut clone = LockedClone::enter(self.state, self.stop, common, main_worktree, &parents)?;
        clone.warnings.splice(0..0, damaged);
        Ok(clone)
    }

    #[cfg(test)]
    pub(super) fn enter_unconfined(&self, common: Dir) -> Result<LockedClone, EnterError> {
        LockedClone::enter_unconfined(self.state, self.stop, common)
    }
}

impl LockedClone {
    /// Removes what a killed run left of files that it was writing. Only the holder of the lock makes such files.
    fn tidy(&mut self) {
        let stale = |file| ref_lock::remove_stale(&self.common, file).map_err(|e| e.to_string());
        let mut results: Vec<_> = ["packed-refs", "config"].into_iter().map(stale).collect();
        for dir in ["treesweep", "treesweep/retired"] {
            results.push(match self.common.dir(dir) {
                Ok(dir) => atomic::remove_unfinished(&dir)
                    .and_then(|()| staged::remove_unfinished(&dir))
                    .map_err(|e| e.to_string()),
                Err(Refused::Absent) => Ok(()),
                Err(refused) => Err(refused.to_string()),
            });
        }
        if let Some(state) = &self.state {
            results.push(state.remove_unfinished().map_err(|e| e.to_string()));
        }
        let left = results.into_iter().filter_map(Result::err);
        self.warnings.extend(left.map(|why| format!("left by an earlier run: {why}")));
    }
}

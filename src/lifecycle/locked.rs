//! Working on one clone: on a thread of its own, confined to it, under its lock.

use crate::beneath::{Dir, Refused};
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::survey::discover::CloneSite;
use crate::sweep::{EnterError, LockedClone};
use crate::vantage::paths::LocalPath;

/// Why a clone could not be worked on.
#[derive(Debug, thiserror::Error)]
pub enum NotEntered {
    #[error(transparent)]
    Enter(#[from] EnterError),
    #[error("{common} lies outside of every root; add the root {add}")]
    OutsideRoot { common: LocalPath, add: LocalPath },
    #[error("{0} was replaced while it was looked at; try again")]
    Replaced(LocalPath),
    #[error("{path}: {refused}")]
    Unreadable { path: LocalPath, refused: Refused },
}

impl NotEntered {
    /// The environment lacks what it takes: exit code 3.
    pub fn is_environment(&self) -> bool {
        matches!(self, Self::Enter(error) if error.is_environment())
    }
}

/// Does `work` under the lock of the clone at `site`, on a thread that may change nothing but the clone's common
/// directory, the state directory and what lies in `parents`.
pub fn in_clone<T: Send>(
    state: &StateDir,
    stop: &Stop,
    site: &CloneSite,
    parents: &[LocalPath],
    work: impl FnOnce(&mut LockedClone) -> T + Send,
) -> Result<T, NotEntered> {
    let common = site.common_path();
    if site.outside {
        let add = common.parent().unwrap_or_else(|| common.clone());
        return Err(NotEntered::OutsideRoot { common: common.clone(), add });
    }
    let unreadable = |refused| NotEntered::Unreadable { path: common.clone(), refused };
    let dir = Dir::open(common).map_err(unreadable)?;
    if dir.own_meta().map_err(unreadable)?.id != site.common_id {
        return Err(NotEntered::Replaced(common.clone()));
    }
    std::thread::scope(|scope| {
        let working = scope.spawn(|| {
            let mut clone = LockedClone::enter(state, stop, dir, site.main_worktree.as_ref(), parents)?;
            Ok(work(&mut clone))
        });
        working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

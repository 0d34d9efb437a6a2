//! Finishing what an earlier run began: exactly what the own journals name, by device and inode.
//!
//! What was not checked when the run ended goes back, and the plan judges it like any other. What was checked is deleted
//! to its end. Trash that no journal names is nobody's here: a person decides.

use bstr::BString;

use crate::beneath::{Refused, lstat};
use crate::judge::reason::{Code, Reason};
use crate::state_dir::{StateDir, StateError};
use crate::sweep::aside::{Differs, Place};
use crate::sweep::atomic::bstr_path;
use crate::sweep::ending::Halt;
use crate::sweep::execute::open_parent;
use crate::sweep::forget::Found;
use crate::sweep::journal::{self, Journal, Open, Step};
use crate::sweep::late::By;
use crate::sweep::outcome::{Ending, Outcome, Removed};
use crate::sweep::record::RecordId;
use crate::sweep::work::{Held, Taken, Work};
use crate::sweep::{Hooks, LockedClone, Sweeper, absence};
use crate::vantage::paths::{FileId, LocalPath, escape};

/// A removal that an earlier run began, for the plan's class `resume`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupted {
    pub record: RecordId,
    /// The entry's name.
    pub name: BString,
    /// Where the checkout was.
    pub path: Option<LocalPath>,
    /// What it is called there if it was moved aside, whether or not it was.
    pub trash: Option<LocalPath>,
    /// What the checkout is; what bears the trash's name and is not this is not ours.
    pub checkout: Option<FileId>,
    pub branch: Option<BString>,
    pub step: Step,
}

impl Interrupted {
    fn of(open: &Open) -> Self {
        let journal = &open.journal;
        let path = journal.path();
        Self {
            record: journal.id().clone(),
            name: journal.record.name.0.clone(),
            trash: path.as_ref().and_then(|p| p.parent()?.join(&journal.trash_name())),
            path,
            checkout: journal.checkout.as_ref().map(|c| c.id),
            branch: journal.record.branch.as_ref().map(|b| b.0.clone()),
            step: open.step(),
        }
    }
}

/// What the journals of the clone `common` hold, and with each that can't be read, why. Changes nothing.
pub fn pending(state: &StateDir, common: FileId) -> Result<(Vec<Interrupted>, Vec<String>), StateError> {
    let Some(clone) = state.existing_clone_state(common)? else { return Ok((Vec::new(), Vec::new())) };
    let read = journal::read_all(&clone);
    let (open, damaged) =
        read.map_err(|source| StateError::Io { path: state.dir().path().clone(), source })?;
    Ok((open.iter().map(Interrupted::of).collect(), damaged))
}

impl Sweeper<'_> {
    /// Finishes, or takes back, what the journals of the clone hold, oldest first; what was never touched is forgotten
    /// without a word. After this the clone has to be judged anew: something may have come back to its place.
    pub fn resume(&self, clone: &mut LockedClone, hooks: &Hooks<'_>) -> Result<Vec<Outcome>, StateError> {
        let Some(state) = clone.state() else { return Ok(Vec::new()) };
        let io = |source| StateError::Io { path: self.state.dir().path().clone(), source };
        let (open, _damaged_are_reported_by_pending) = journal::read_all(state).map_err(io)?;
        Ok(open.into_iter().filter_map(|open| self.resume_one(clone, hooks, open)).collect())
    }

    fn resume_one(&self, clone: &LockedClone, hooks: &Hooks<'_>, open: Open) -> Option<Outcome> {
        let held = hold(&open.journal, clone);
        let mut work = Work {
            sweeper: self,
            clone,
            hooks,
            open,
            checkout: None,
            taken: Taken::default(),
            removed: Removed::default(),
            notes: vec!["begun by an earlier run".into()],
        };
        match held {
            Ok(held) => work.checkout = held,
            Err(halt) => return Some(work.halted(halt)),
        }
        if self.stop.is_set() {
            return Some(work.halted(Halt::deferred("asked to stop before it was finished")));
        }
        let next = match work.open.step() {
            Step::Planned => work.return_all(),
            Step::Aside | Step::InPlace => work.ready_to_delete(),
            Step::Forgetting => work.ready_to_forget(),
        };
        match next {
            Ok(Next::Finish) => Some(work.finish()),
            Ok(Next::TakeBack(Some(note))) => Some(work.take_back(Halt::skipped(note))),
            Ok(Next::TakeBack(None)) => {
                let outcome = work.take_back(Halt::skipped("it was never begun"));
                outcome.record.is_some().then_some(outcome)
            }
            Ok(Next::Drop(note)) => Some(work.drop_journal(note)),
            Err(halt) => Some(work.halted(halt)),
        }
    }
}

/// What is to be done with a journal.
enum Next {
    Finish,
    /// Nothing was deleted, and all is in its place: what was written about it goes, with a word if something moved.
    TakeBack(Option<String>),
    /// It is somebody else's affair now; the record stays.
    Drop(String),
}

/// The checkout's place; `None` if there is none, or if the directory that held it is gone with all that was in it.
fn hold(journal: &Journal, clone: &LockedClone) -> Result<Option<Held>, Halt> {
    let Some(mark) = &journal.checkout else { return Ok(None) };
    let damaged = || Halt::failed("the journal names no path");
    let (path, root) = (mark.path.local().ok_or_else(damaged)?, journal.root.local().ok_or_else(damaged)?);
    let parent = path.parent().ok_or_else(damaged)?;
    if let Err(Refused::Absent) = lstat(&parent) {
        let moved = journal.record.common_dir.local().as_ref() != Some(clone.common().path());
        if moved || !same_device_above(&parent, mark.id) {
            let note = format!("{parent} is not there: moved, or on a disk that is not mounted");
            return Err(Halt::skipped(note).because(Code::Interrupted));
        }
        return Ok(None);
    }
    Ok(Some(Held { parent: open_parent(&root, &path)?, path, id: mark.id }))
}

/// Whether what is left of the way to `path` is on the file system that held `id`: it is not hidden by an unmounted disk.
fn same_device_above(path: &LocalPath, id: FileId) -> bool {
    let mut above = path.parent();
    while let Some(path) = above {
        match lstat(&path) {
            Ok(meta) => return meta.id.dev == id.dev,
            Err(Refused::Absent) => above = path.parent(),
            Err(_) => return false,
        }
    }
    false
}

impl Work<'_> {
    /// The run ended before anything was checked: checkout and entry go back to their places.
    fn return_all(&mut self) -> Result<Next, Halt> {
        let mut moved = None;
        if self.checkout.is_none() && self.open.journal.checkout.is_some() {
            return Ok(Next::Drop("the directory that held it is gone by another's hand".into()));
        }
        if let Some(held) = &self.checkout {
            let trash = self.open.journal.trash_name();
            if held.id_of(&trash)? == Some(held.id) {
                held.place().move_back(&trash).map_err(|errno| {
                    let at = format!("{}/{}", held.parent.path(), escape(&trash));
                    let note = format!("{at} was moved aside and not checked; it can't go back ({errno})");
                    Halt::skipped(note).because(Code::Interrupted)
                })?;
                moved = Some(format!("{} was put back: it had been moved aside and not checked", held.path));
            } else if held.id_of(held.name())? != Some(held.id) {
                return Ok(Next::Drop(format!("{} is gone by another's hand", held.path)));
            }
        }
        let Some(name) = self.entry_name()? else { return Ok(Next::TakeBack(moved)) };
        let Some(place) = self.entry_place(&name) else { return Ok(Next::TakeBack(moved)) };
        let refused = |refused: Refused| Halt::failed(format!("registration {name}: {refused}"));
        match place.find().map_err(refused)? {
            Found::Registered(_) => Ok(Next::TakeBack(moved)),
            Found::Gone => Ok(Next::Drop(format!("registration {name} is gone by another's hand"))),
            Found::Trashed(trash) => {
                let worktrees = place.common.dir("worktrees").map_err(refused)?;
                place.move_back(&worktrees, &trash).map_err(|errno| {
                    let note = format!("registration {name} can't go back from treesweep/trash ({errno})");
                    Halt::skipped(note).because(Code::Interrupted)
                })?;
                Ok(Next::TakeBack(Some(format!("registration {name} was put back"))))
            }
        }
    }

    /// The checkout was checked, and is to be deleted where the journal says that it is.
    fn ready_to_delete(&mut self) -> Result<Next, Halt> {
        let Some(held) = &self.checkout else { return Ok(Next::Finish) };
        let trash = self.open.journal.trash_name();
        let at_path = held.id_of(held.name())?;
        let (in_place, found) = match self.open.step() {
            Step::InPlace => (true, at_path),
            _ => (false, held.id_of(&trash)?),
        };
        if found != Some(held.id) {
            return match at_path {
                // All of it went before the run ended.
                None if found.is_none() => self.unless_its_entry_differs(),
                Some(id) if id == held.id => Ok(Next::Drop(format!("{} is in its place again", held.path))),
                _ => Ok(Next::Drop(format!("{} is in use again, by another object", held.path))),
            };
        }
        let (name, by) = if in_place { (held.name(), By::Change) } else { (trash.as_slice(), By::Writing) };
        self.check_nothing_younger(&held.parent, name, by)?;
        if let Some(differs) = self.entry_differs()? {
            return Ok(Next::Drop(format!(
                "{differs}; what is left of its directory is called {}",
                escape(name)
            )));
        }
        if let Some(place) = self.sweeper.protected.why(held.id) {
            return Err(Halt::skipped(format!("it is or contains {place}")).because(Code::Protected));
        }
        let at = held.parent.path().join(name).ok_or_else(|| Halt::failed("the journal names no path"))?;
        // An engine knows the mount by the old path, the kernel by where the directory is now.
        for path in [&at, &held.path] {
            (self.hooks.world_still_allows)(path).map_err(halt_for)?;
        }
        Place { parent: &held.parent, name, id: held.id }
            .open(name)
            .map_err(|differs| Halt::skipped(differs.to_string()).because(Code::Interrupted))?;
        Ok(Next::Finish)
    }

    /// How the registration differs from what was checked, if it is there: whoever goes on working in what was moved aside,
    /// or locks it, writes there.
    fn entry_differs(&self) -> Result<Option<String>, Halt> {
        let Some(name) = self.entry_name()? else { return Ok(None) };
        let Some(place) = self.entry_place(&name) else { return Ok(None) };
        let refused = |refused: Refused| Halt::failed(format!("registration {name}: {refused}"));
        match place.find().map_err(refused)? {
            Found::Registered(worktrees) => {
                let note = |differs| format!("registration {name} {differs}");
                match place.check(&worktrees, name.as_bstr(), self.hooks.fingerprint) {
                    Ok(()) => Ok(None),
                    Err(_) if self.sweeper.stop.is_set() => {
                        Err(Halt::deferred("asked to stop while it was checked"))
                    }
                    Err(differs @ Differs::Changed(_)) => Ok(Some(note(differs))),
                    Err(differs) => Err(Halt::skipped(note(differs)).because(Code::Unreadable)),
                }
            }
            Found::Trashed(_) | Found::Gone => Ok(None),
        }
    }

    /// The checkout was gone already. What has taken its path or the entry's name since is somebody else's.
    fn ready_to_forget(&mut self) -> Result<Next, Halt> {
        self.taken.path = match (&self.checkout, self.recorded_path()) {
            (Some(held), _) => held.id_of(held.name())?.is_some(),
            (None, Some(path)) => absence::is_absent(&path).is_err(),
            (None, None) => false,
        };
        self.taken.name = self.name_is_taken()?;
        if self.taken.path || self.taken.name {
            self.notes.push("its path or its name is in use again".into());
        }
        Ok(Next::Finish)
    }

    /// The checkout is gone, and the entry untouched by us. One that was written to since (`git gc` expires its reflog, too)
    /// is not forgotten as it was judged, and would stay for ever: without a directory now, it is judged anew as such.
    fn unless_its_entry_differs(&self) -> Result<Next, Halt> {
        let drop = |differs| Next::Drop(format!("{differs}; its directory is gone, and it is judged anew"));
        Ok(self.entry_differs()?.map_or(Next::Finish, drop))
    }

    /// Whether another entry has the name of ours.
    fn name_is_taken(&self) -> Result<bool, Halt> {
        let Some(name) = self.entry_name()? else { return Ok(false) };
        let Some(place) = self.entry_place(&name) else { return Ok(false) };
        let found = place.common.dir("worktrees").and_then(|dir| dir.meta(bstr_path(name.as_bstr())));
        match found {
            Ok(meta) => Ok(meta.id != place.id),
            Err(Refused::Absent) => Ok(false),
            Err(refused) => Err(Halt::failed(format!("registration {name}: {refused}"))),
        }
    }

    /// Lets go of a removal that is not ours to finish any more. Record and anchors stay.
    fn drop_journal(mut self, note: String) -> Outcome {
        if let Err(error) = self.open.close(self.clone.state()) {
            self.notes.push(format!("its journal could not be removed: {error}"));
        }
        self.halted(Halt::skipped(note))
    }
}

fn halt_for(reason: Reason) -> Halt {
    Halt { ending: Ending::Skipped, note: reason.to_string(), reason: Some(reason) }
}

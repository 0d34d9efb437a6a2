//! One removal under way: what a first run and a run that resumes do alike, from the deletion to the branch.

use std::num::NonZeroUsize;

use bstr::ByteSlice;
use jiff::Timestamp;

use crate::beneath::{Dir, Refused, Stamp};
use crate::judge::reason::Code;
use crate::sweep::absence::{self, Expected, Spot};
use crate::sweep::aside::{Differs, Place};
use crate::sweep::atomic::bstr_path;
use crate::sweep::branch::{self, Claim};
use crate::sweep::ending::Halt;
use crate::sweep::forget::{EntryPlace, Found, NotForgotten};
use crate::sweep::journal::{FateMark, Open, Step};
use crate::sweep::late::{self, By};
use crate::sweep::outcome::{BranchOutcome, Outcome, Removed};
use crate::sweep::record::{AnsweredBy, Completion};
use crate::sweep::remove::{self, End, Order};
use crate::sweep::{Hooks, LockedClone, Sweeper, records};
use crate::vantage::paths::{EntryName, FileId, LocalPath, escape};

/// A removal under way.
pub(super) struct Work<'a> {
    pub sweeper: &'a Sweeper<'a>,
    pub clone: &'a LockedClone,
    pub hooks: &'a Hooks<'a>,
    pub open: Open,
    /// The checkout, by the directory that holds it; `None` if there is none, or if that directory is gone too.
    pub checkout: Option<Held>,
    /// What somebody else has put in the place of what is gone, as an earlier run has reported.
    pub taken: Taken,
    pub removed: Removed,
    /// What went wrong without any harm to what matters.
    pub notes: Vec<String>,
}

/// Names that others use again. What is there is theirs, and is no part of the proof any more; the branch stays then.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    pub path: bool,
    pub name: bool,
}

/// A checkout's place, held.
pub(super) struct Held {
    pub parent: Dir,
    pub path: LocalPath,
    pub id: FileId,
}

impl Held {
    pub fn name(&self) -> &[u8] {
        self.path.file_name().unwrap_or_default()
    }

    pub fn place(&self) -> Place<'_> {
        Place { parent: &self.parent, name: self.name(), id: self.id }
    }

    /// What bears `name` beside the checkout; `None`: nothing.
    pub fn id_of(&self, name: &[u8]) -> Result<Option<FileId>, Halt> {
        match self.parent.meta(bstr_path(name)) {
            Ok(meta) => Ok(Some(meta.id)),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(Halt::failed(format!("{}/{}: {refused}", self.parent.path(), escape(name)))),
        }
    }
}

impl<'a> Work<'a> {
    /// From the deletion on. Everything before was checked, and the journal says so.
    ///
    /// The entry goes after the checkout: the other way round a kill in between leaves a checkout that no registration
    /// knows. The record is complete before absence is verified, so that even a failure there has one. The branch goes
    /// last: until everything else is proven gone it is what the work can be found by.
    pub fn finish(mut self) -> Outcome {
        match self.run() {
            Ok(branch) => self.conclude(branch),
            // Without a checkout nothing was deleted before the next step was written.
            Err(halt) if self.open.step() == Step::Planned => self.take_back(halt),
            Err(halt) => self.halted(halt),
        }
    }

    fn run(&mut self) -> Result<BranchOutcome, Halt> {
        self.delete_checkout()?;
        self.forget_entry()?;
        let (time, result) = (Timestamp::now(), self.ending());
        let completion = Completion { time, result, removed: self.removed, branch: None };
        self.open.journal.record.completed = Some(completion);
        records::update(self)?;
        self.verify()?;
        let branch = self.branch()?;
        if let Some(completion) = &mut self.open.journal.record.completed {
            completion.branch = Some(branch.clone());
        }
        // Durably now: the journal, which could make it anew, goes next.
        records::update(self)?;
        Ok(branch)
    }

    fn delete_checkout(&mut self) -> Result<(), Halt> {
        let Some(held) = &self.checkout else { return Ok(()) };
        let trash = self.open.journal.trash_name();
        let name = match self.open.step() {
            Step::Aside => trash.as_slice(),
            Step::InPlace => held.name(),
            Step::Planned | Step::Forgetting => return Ok(()),
        };
        match held.id_of(name)? {
            None => {}
            Some(id) if id == held.id => {
                let order = Order {
                    parent: &held.parent,
                    name,
                    id,
                    last: b".git",
                    jobs: self.sweeper.jobs,
                    stop: self.sweeper.stop,
                    progress: self.sweeper.progress,
                };
                self.removed += deleted(&order)?;
            }
            Some(_) => {
                return Err(Halt::failed(format!("another object is in the place of {}", escape(name))));
            }
        }
        // A writer that made the path anew may have joined it to the entry, which then is not ours to forget.
        match held.id_of(held.name())? {
            None => Ok(()),
            Some(_) if self.taken.path => Ok(()),
            Some(_) => Err(Halt::failed(format!("{} appeared again while it was removed", held.path))),
        }
    }

    /// Where the checkout was, or should have been.
    pub fn recorded_path(&self) -> Option<LocalPath> {
        self.open.journal.record.path.as_ref().and_then(|path| path.local())
    }

    /// Where the entry should be, if one is to be forgotten.
    pub fn entry_place<'w>(&'w self, name: &'w EntryName) -> Option<EntryPlace<'w>> {
        let mark = self.open.journal.entry.as_ref()?;
        Some(EntryPlace {
            common: self.clone.common(),
            name,
            id: mark.id,
            fingerprint: mark.fingerprint,
            record: self.open.journal.id(),
        })
    }

    /// The name of the entry, if one is to be forgotten.
    pub fn entry_name(&self) -> Result<Option<EntryName>, Halt> {
        if self.open.journal.entry.is_none() {
            return Ok(None);
        }
        let name = self.open.journal.record.name.entry_name();
        name.map(Some).ok_or_else(|| Halt::failed("the journal names no entry"))
    }

    fn forget_entry(&mut self) -> Result<(), Halt> {
        let Some(name) = self.entry_name()? else { return Ok(()) };
        let Some(place) = self.entry_place(&name) else { return Ok(()) };
        let found = place.find().map_err(|r| Halt::failed(format!("registration {name}: {r}")))?;
        let aside = self.open.journal.id().as_str().to_owned();
        let (holder, called) = match (found, self.open.step()) {
            (Found::Gone, _) => return Ok(()),
            (Found::Trashed(trash), Step::Forgetting) => (trash, aside.into_bytes()),
            (Found::Trashed(trash), _) => {
                self.check_trashed(&place, &trash)?;
                (trash, aside.into_bytes())
            }
            (Found::Registered(worktrees), Step::Forgetting) => {
                self.check_nothing_younger(&worktrees, name.as_bstr(), By::Change)?;
                (worktrees, name.as_bstr().to_vec())
            }
            (Found::Registered(worktrees), _) => {
                match place.move_to_trash(&worktrees, self.hooks.fingerprint) {
                    Ok(Some(trash)) => (trash, aside.into_bytes()),
                    Ok(None) => (worktrees, name.as_bstr().to_vec()),
                    Err(why) => return Err(not_forgotten(&name, why)),
                }
            }
        };
        let id = place.id;
        // On the disk before the first file of it goes: an entry that is half gone is no more the one that was judged.
        let advanced = self.open.advance(self.clone.state(), Step::Forgetting);
        advanced.map_err(|error| Halt::failed(format!("journal: {error}")))?;
        let order = Order {
            parent: &holder,
            name: &called,
            id,
            // What makes it a registration goes last.
            last: b"gitdir",
            jobs: NonZeroUsize::MIN,
            stop: self.sweeper.stop,
            progress: self.sweeper.progress,
        };
        self.removed += deleted(&order)?;
        Ok(())
    }

    /// An earlier run moved the entry and did not come to check it.
    fn check_trashed(&self, place: &EntryPlace<'_>, trash: &Dir) -> Result<(), Halt> {
        let Err(differs) = place.check(trash, place.record.as_str().as_bytes(), self.hooks.fingerprint)
        else {
            return Ok(());
        };
        let worktrees = place.common.dir("worktrees").map_err(|r| Halt::failed(format!("worktrees: {r}")))?;
        Err(match place.move_back(&worktrees, trash) {
            Ok(()) => not_forgotten(place.name, NotForgotten::Differs(differs)),
            Err(errno) => not_forgotten(place.name, NotForgotten::Stranded(differs, errno)),
        })
    }

    /// Refuses to go on if somebody was here since.
    pub fn check_nothing_younger(&self, holder: &Dir, name: &[u8], by: By) -> Result<(), Halt> {
        let started = self.open.journal.record.started;
        let since = Stamp { seconds: started.as_second(), nanos: started.subsec_nanosecond().unsigned_abs() };
        let found = match holder.dir(bstr_path(name)) {
            Ok(dir) => late::younger_than(&dir, since, by),
            Err(Refused::Absent) => None,
            Err(refused) => Some(refused.to_string()),
        };
        match found {
            None => Ok(()),
            Some(path) => {
                let note = format!("{} was used again since it was half removed: {path}", escape(name));
                Err(Halt::skipped(note).because(Code::Interrupted))
            }
        }
    }

    pub(super) fn verify(&self) -> Result<(), Halt> {
        let name = self.entry_name()?;
        let trash = self.open.journal.trash_name();
        let checkout = self.checkout.as_ref().filter(|_| !self.taken.path);
        let name = name.as_ref().filter(|_| !self.taken.name);
        let expected = Expected {
            checkout: checkout.map(|h| Spot { parent: &h.parent, path: &h.path, trash: &trash }),
            entry: name.map(|n| (self.clone.common(), n, self.open.journal.id())),
        };
        let still = |what: String| Halt::failed(format!("still there: {what}"));
        absence::verify(&expected).map_err(|observed| still(observed.to_string()))?;
        match (&self.checkout, self.recorded_path()) {
            (None, Some(path)) if !self.taken.path => absence::is_absent(&path).map_err(still),
            _ => Ok(()),
        }
    }

    fn branch(&self) -> Result<BranchOutcome, Halt> {
        let journal = &self.open.journal;
        let (name, expected, trunk) = match &journal.branch {
            FateMark::None => return Ok(BranchOutcome::None),
            FateMark::Keep { name, why } => return Ok(BranchOutcome::kept(name.0.clone(), why.as_str())),
            FateMark::Delete { name, expected, trunk } => (name, expected, trunk),
        };
        if self.taken.path || self.taken.name {
            return Ok(BranchOutcome::kept(name.0.clone(), "its path or its name is in use again"));
        }
        let Some(expected) = expected.id() else {
            return Ok(BranchOutcome::kept(name.0.clone(), "the journal names no commit"));
        };
        let anchors: Option<Vec<_>> = journal.record.anchors.iter().map(|hex| hex.id()).collect();
        let Some(anchors) = anchors else {
            return Ok(BranchOutcome::kept(
                name.0.clone(),
                "the journal names an anchor by what is no object id",
            ));
        };
        let claim = Claim {
            name: name.0.as_bstr(),
            expected,
            trunk: trunk.0.as_bstr(),
            owned: journal.record.authority == AnsweredBy::Owned,
            anchors: &anchors,
            record: journal.id(),
        };
        match branch::delete(self.clone.common(), &claim, self.sweeper.stop) {
            Ok(BranchOutcome::Kept { .. }) if self.sweeper.stop.is_set() => {
                Err(Halt::deferred("asked to stop before the branch was looked at"))
            }
            Ok(outcome) => Ok(outcome),
            Err(error) => Err(Halt::failed(error.to_string())),
        }
    }
}

fn deleted(order: &Order<'_>) -> Result<Removed, Halt> {
    let (removed, result) = remove::remove_tree(order);
    match result {
        Ok(End::Complete) => Ok(removed),
        Ok(End::Deferred) => Err(Halt::deferred("asked to stop while it was deleted")),
        Err(error) => Err(Halt::of_removal(error)),
    }
}

fn not_forgotten(name: &EntryName, why: NotForgotten) -> Halt {
    match why {
        NotForgotten::Differs(Differs::Changed(what)) => {
            Halt::failed(format!("registration {name} changed since it was judged, and stays: {what}"))
        }
        NotForgotten::Differs(differs) => Halt::failed(format!("registration {name} {differs}")),
        NotForgotten::Stranded(differs, errno) => Halt::failed(format!(
            "registration {name} {differs}; it could not be put back ({errno}) and lies in treesweep/trash"
        )),
        NotForgotten::Refused(refused) => Halt::failed(format!("registration {name}: {refused}")),
    }
}

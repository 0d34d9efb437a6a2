//! A first run of one removal: everything up to the first deletion, in the order that loses nothing.
//!
//! 1. Journal, record, anchors. The journal first: a kill after it leaves nothing that the next run does not know of.
//! 2. The rename. A journal written after it could be missing, and the checkout would lie under a name of ours.
//! 3. The check of what was renamed, then of the entry. Whatever differs goes back before anything is deleted.
//! 4. The journal's next step. Deleting before it would let the next run put back what is half deleted.
//!
//! What follows is `work`.

use bstr::ByteSlice;
use jiff::Timestamp;

use crate::beneath::{Dir, Refused, lstat};
use crate::git::layout;
use crate::git::registration::Pointer;
use crate::judge::reason::Code;
use crate::judge::warrant::{Act, Checkout, Entry, Warrant};
use crate::sweep::aside::{Moved, NotMoved};
use crate::sweep::atomic::bstr_path;
use crate::sweep::bytes::Bytes;
use crate::sweep::ending::{Halt, STAYS};
use crate::sweep::forget::Found;
use crate::sweep::journal::{Journal, Open, Step};
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome, Removed};
use crate::sweep::record::{Record, RecordId};
use crate::sweep::refs::RefError;
use crate::sweep::work::{Held, Taken, Work};
use crate::sweep::{Hooks, LockedClone, Sweeper, absence, act, anchors, records};
use crate::vantage::paths::LocalPath;

impl Sweeper<'_> {
    /// Does what `warrant` allows, from the checks directly before the first change to the branch.
    pub fn execute(&self, clone: &mut LockedClone, warrant: Warrant, hooks: &Hooks<'_>) -> Outcome {
        let started = Timestamp::now();
        let id = match RecordId::random(started) {
            Ok(id) => id,
            Err(error) => return untouched(&warrant, Halt::failed(error.to_string())),
        };
        let checkout = match self.look(clone, &warrant) {
            Ok(checkout) => checkout,
            Err(halt) => return untouched(&warrant, halt),
        };
        let record =
            Record { pointer: checkout.as_ref().and_then(pointer_of), ..Record::of(&warrant, id, started) };
        let journal = Journal::of(&warrant, record);
        let open = match Open::begin(clone.state(), journal) {
            Ok(open) => open,
            Err(error) if act::is_full(&error) => {
                let note = "the disk is full, and without a journal its anchors could be lost";
                return untouched(&warrant, Halt::deferred(note));
            }
            Err(error) => return untouched(&warrant, Halt::failed(format!("journal: {error}"))),
        };
        let mut work = Work {
            sweeper: self,
            clone,
            hooks,
            open,
            checkout,
            taken: Taken::default(),
            removed: Removed::default(),
            notes: Vec::new(),
        };
        match work.prepare(&warrant) {
            Ok(()) => work.finish(),
            Err(Stage::Nothing(halt)) => work.take_back(halt),
            Err(Stage::Stranded(halt)) => work.halted(halt),
        }
    }

    /// What can be refused without a change; the checkout's place, held.
    fn look(&self, clone: &LockedClone, warrant: &Warrant) -> Result<Option<Held>, Halt> {
        if self.stop.is_set() {
            return Err(Halt::deferred("asked to stop before it was begun"));
        }
        if warrant.scope().common_id != clone.common_id {
            return Err(Halt::failed("the warrant is of another clone"));
        }
        if let Some(entry) = warrant.entry() {
            is_registered(clone, entry)?;
        }
        match warrant.act() {
            Act::Remove { checkout, .. } | Act::RemoveOrphan { checkout, .. } => {
                self.hold(clone, &warrant.scope().root, checkout).map(Some)
            }
            Act::Forget { absent, .. } => match absent.as_ref().map_or(Ok(()), absence::is_absent) {
                Ok(()) => Ok(None),
                Err(found) => Err(Halt::skipped(format!("changed since it was judged: {found}"))),
            },
        }
    }

    /// Opens the directory that holds the checkout, from the root, and sees that the checkout is what was judged and may
    /// be deleted at all.
    fn hold(&self, clone: &LockedClone, root: &LocalPath, checkout: &Checkout) -> Result<Held, Halt> {
        let path = checkout.path.clone();
        let held = Held { parent: open_parent(root, &path)?, path, id: checkout.seen.id };
        held.place().open(held.name()).map_err(|differs| Halt::skipped(differs.to_string()))?;
        if let Some(place) = self.protected.why(held.id) {
            return Err(Halt::skipped(format!("it is or contains {place}")).because(Code::Protected));
        }
        let mut above = held.path.parent();
        while let Some(path) = above {
            let is_common = lstat(&path).is_ok_and(|meta| meta.id == clone.common_id);
            if is_common && !layout::may_hold(&path, &held.path) {
                let note = format!("it lies in the common directory {path}");
                return Err(Halt::skipped(note).because(Code::Protected));
            }
            above = path.parent();
        }
        Ok(held)
    }
}

/// What the checkout's `.git` file says, for who wants it back; without it the paths have to be inferred then.
fn pointer_of(held: &Held) -> Option<Bytes> {
    let checkout = held.parent.dir(bstr_path(held.name())).ok()?;
    let pointer = Pointer::parse(&checkout.read(".git", 16 << 10).ok()?)?;
    Some(Bytes::from(&pointer.target))
}

/// Sees that the entry is where it was judged.
fn is_registered(clone: &LockedClone, entry: &Entry) -> Result<(), Halt> {
    let name = &entry.name;
    let found =
        clone.common().dir("worktrees").and_then(|dir| dir.dir(name.as_os_str())).and_then(|d| d.own_meta());
    match found {
        Ok(meta) if meta.id == entry.id => Ok(()),
        Ok(_) => {
            Err(Halt::skipped(format!("changed since it was judged: another registration is called {name}")))
        }
        Err(Refused::Absent) => {
            Err(Halt::skipped(format!("changed since it was judged: registration {name} is gone")))
        }
        Err(refused) => {
            Err(Halt::skipped(format!("registration {name}: {refused}")).because(Code::Unreadable))
        }
    }
}

/// The directory that holds `path`, resolved beneath `root` through no link; mounts may lie on the way.
pub(super) fn open_parent(root: &LocalPath, path: &LocalPath) -> Result<Dir, Halt> {
    let outside = || Halt::skipped(format!("{path} is not beneath {root}")).because(Code::OutsideRoot);
    let parent = path.parent().ok_or_else(outside)?;
    let below = parent.below(root).ok_or_else(outside)?;
    let refused = |refused: Refused| match refused {
        Refused::NotPlain => Halt::skipped(format!("{parent}: {refused}")).because(Code::PathEscapes),
        Refused::Absent => Halt::skipped(format!("changed since it was judged: {parent} is gone")),
        other => Halt::skipped(format!("{parent}: {other}")).because(Code::Unreadable),
    };
    let root = Dir::open(root).map_err(refused)?;
    match below.is_empty() {
        true => Ok(root),
        false => root.dir_across_mounts(bstr_path(below)).map_err(refused),
    }
}

/// How far a removal came that is not going on.
enum Stage {
    /// Everything is where it was; what was written about it can go again.
    Nothing(Halt),
    /// The checkout lies under its trash name and could not be put back.
    Stranded(Halt),
}

impl Work<'_> {
    /// Everything before the first deletion.
    fn prepare(&mut self, warrant: &Warrant) -> Result<(), Stage> {
        self.write_down(warrant).map_err(Stage::Nothing)?;
        self.has_a_way_for_the_entry().map_err(Stage::Nothing)?;
        let Some(checkout) = warrant.checkout() else {
            return self.check_entry().map_err(|why| Stage::Nothing(Halt::skipped(why)));
        };
        // Directly before the rename: what it asks may have been otherwise when the plan was made.
        if let Err(reason) = (self.hooks.world_still_allows)(&checkout.path) {
            let halt = Halt { ending: Ending::Skipped, note: reason.to_string(), reason: Some(reason) };
            return Err(Stage::Nothing(halt));
        }
        let step = self.move_and_check(checkout)?;
        match self.open.advance(self.clone.state(), step) {
            Ok(()) => Ok(()),
            Err(error) => Err(self.put_back(step, Halt::failed(format!("journal: {error}")))),
        }
    }

    /// Where the entry will be moved is a real directory: found out late, the checkout would be gone and the entry not.
    fn has_a_way_for_the_entry(&self) -> Result<(), Halt> {
        let Some(name) = self.entry_name()? else { return Ok(()) };
        let Some(place) = self.entry_place(&name) else { return Ok(()) };
        match place.trash() {
            Ok(_) => Ok(()),
            // It is deleted where it is then.
            Err(Refused::Io(error)) if act::is_full(&error) => Ok(()),
            Err(refused @ Refused::Io(_)) => Err(Halt::failed(format!("treesweep/trash: {refused}"))),
            Err(refused) => {
                Err(Halt::skipped(format!("treesweep/trash: {refused}")).because(Code::PathEscapes))
            }
        }
    }

    /// Record and anchors.
    fn write_down(&mut self, warrant: &Warrant) -> Result<(), Halt> {
        records::update(self)?;
        let common = self.clone.common();
        anchors::create(common, self.open.journal.id(), warrant.anchors()).map_err(|error| match &error {
            RefError::Io { source, .. } if act::is_full(source) => {
                Halt::deferred("the disk is full, and it has commits that need a reference first")
            }
            _ => Halt::failed(format!("its commits could not be anchored: {error}")),
        })
    }

    /// Moves the checkout aside, if the kernel allows it, and checks it and its entry then.
    fn move_and_check(&mut self, checkout: &Checkout) -> Result<Step, Stage> {
        let trash = self.open.journal.trash_name();
        let Some(held) = &self.checkout else { return Ok(Step::Planned) };
        let step = match held.place().move_aside(&trash) {
            Ok(Moved::Aside) => Step::Aside,
            Ok(Moved::InPlace) => Step::InPlace,
            Err(NotMoved::Gone) => {
                return Err(Stage::Nothing(Halt::skipped("changed since it was judged: it is gone")));
            }
            Err(NotMoved::NotDeletable(errno)) => {
                let note = format!("{} can't be removed from {}: {errno}", held.path, held.parent.path());
                return Err(Stage::Nothing(Halt::failed(note).because(Code::NotDeletable)));
            }
            Err(NotMoved::Other(errno)) => {
                return Err(Stage::Nothing(Halt::failed(format!("{}: {errno}", held.path))));
            }
        };
        let name = if step == Step::Aside { trash.as_slice() } else { held.name() };
        let checked = held
            .place()
            .check(name, checkout.fingerprint, self.hooks.fingerprint)
            .map_err(|differs| differs.to_string())
            .and_then(|()| self.check_entry());
        match checked {
            Ok(()) => Ok(step),
            Err(_) if self.sweeper.stop.is_set() => {
                Err(self.put_back(step, Halt::deferred("asked to stop while it was checked")))
            }
            Err(why) => Err(self.put_back(step, Halt::skipped(why))),
        }
    }

    /// The entry as well, while the checkout can still go back: a HEAD that moved is work that somebody took up.
    fn check_entry(&self) -> Result<(), String> {
        let name = self.entry_name().map_err(|halt| halt.note)?;
        let Some(name) = name else { return Ok(()) };
        let Some(place) = self.entry_place(&name) else { return Ok(()) };
        match place.find() {
            Ok(Found::Registered(worktrees)) => place
                .check(&worktrees, name.as_bstr(), self.hooks.fingerprint)
                .map_err(|differs| format!("registration {name} {differs}")),
            Ok(_) => Err(format!("changed since it was judged: registration {name} is gone")),
            Err(refused) => Err(format!("registration {name}: {refused}")),
        }
    }

    /// Puts the checkout back where it was moved from.
    fn put_back(&self, step: Step, halt: Halt) -> Stage {
        let (Step::Aside, Some(held)) = (step, &self.checkout) else { return Stage::Nothing(halt) };
        let trash = self.open.journal.trash_name();
        match held.place().move_back(&trash) {
            Ok(()) => Stage::Nothing(halt),
            Err(errno) => {
                let at = format!("{}/{}", held.parent.path(), crate::vantage::paths::escape(&trash));
                let note = format!("{}; it could not be put back ({errno}) and lies at {at}", halt.note);
                Stage::Stranded(Halt::failed(note))
            }
        }
    }

    /// Takes back what was written about a removal that does not happen. The journal last: as long as it is there, the
    /// next run takes back what this one could not.
    pub(super) fn take_back(mut self, halt: Halt) -> Outcome {
        if let Err(why) = self.erase() {
            self.notes.push(format!("what was written about it could not be taken back: {why}"));
            return self.halted(halt);
        }
        if let Err(error) = self.open.close(self.clone.state()) {
            self.notes.push(format!("its journal could not be removed: {error}"));
        }
        let mut outcome = self.halted(halt);
        outcome.record = None;
        outcome
    }

    /// Anchors and record go only while the entry, or the orphan, is there to hold what they hold. If it is gone by
    /// another's hand, they stay; if it lies in our trash, the journal has to stay too.
    fn erase(&self) -> Result<(), String> {
        if let Some(name) = self.entry_name().map_err(|halt| halt.note)? {
            match self.entry_place(&name).map(|place| place.find()) {
                Some(Ok(Found::Registered(_))) | None => {}
                Some(Ok(Found::Gone)) => return Ok(()),
                Some(Ok(Found::Trashed(_))) => return Err(format!("registration {name} lies in the trash")),
                Some(Err(refused)) => return Err(refused.to_string()),
            }
        }
        let record = &self.open.journal.record;
        let commits: Vec<_> = record.anchors.iter().filter_map(|hex| hex.id()).collect();
        anchors::remove(self.clone.common(), &record.id, &commits).map_err(|error| error.to_string())?;
        records::remove(self.clone, &record.id).map_err(|error| error.to_string())
    }
}

/// The outcome of a warrant for which nothing was changed or written.
fn untouched(warrant: &Warrant, halt: Halt) -> Outcome {
    let (name, path, branch) = match warrant.act() {
        Act::Remove { checkout, entry } => (entry.name.as_bstr(), Some(&checkout.path), entry.branch.clone()),
        Act::Forget { entry, absent } => (entry.name.as_bstr(), absent.as_ref(), entry.branch.clone()),
        Act::RemoveOrphan { checkout, name } => (name.as_bstr(), Some(&checkout.path), None),
    };
    Outcome {
        name: name.to_owned(),
        path: path.cloned(),
        result: halt.ending,
        branch: branch.map_or(BranchOutcome::None, |name| BranchOutcome::kept(name, STAYS)),
        removed: Removed::default(),
        reason: halt.reason,
        observed: (halt.ending == Ending::Failed).then(|| "nothing was changed".into()),
        retry: (halt.ending != Ending::Skipped).then(|| absence::retry(&warrant.scope().root)),
        note: Some(halt.note),
        record: None,
    }
}

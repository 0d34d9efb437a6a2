//! Protecting a clone beforehand from the prune of a host that does not know its containers' paths.
//!
//! 1. A snapshot of each registration, from which `rescue` makes a lost one again.
//! 2. `gc.worktreePruneExpire=never`, which stops the prune that `git gc` does.
//! 3. On demand a lock on each worktree of another vantage, which stops `git worktree prune` too.
//!
//! What is noted comes before what it explains: the former state of the config is in the state directory before the
//! config changes, and goes after it was put back.

use std::io;

use bstr::{BString, ByteSlice};
use jiff::Timestamp;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::beneath::{Dir, Refused};
use crate::git::open::Unreadable;
use crate::git::prune_expire::{self, Setting};
use crate::git::registration::{Head, Registration, registrations};
use crate::lifecycle::snapshot::{self, Kept, Snapshot};
use crate::state_dir::CloneState;
use crate::survey::discover::Sighting;
use crate::survey::standing::GUARD_REASON;
use crate::sweep::atomic::{Durable, io_error};
use crate::sweep::bytes::Bytes;
use crate::sweep::config::{self, ConfigError};
use crate::sweep::{LockedClone, act, refs, staged};
use crate::vantage::paths::{EntryName, FileId, escape};

const KIND: &str = "guard";
const FORMER: &str = "config.json";

/// What the survey knows of a registration and its entry does not say.
#[derive(Clone, Debug)]
pub struct Known<'a> {
    pub name: EntryName,
    pub id: FileId,
    pub checkout: Option<&'a Sighting>,
    /// Its path means something at another vantage.
    pub foreign: bool,
}

/// What was done in one clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarded {
    pub snapshots: Vec<(EntryName, Kept)>,
    pub gc: Gc,
    pub locks: Vec<(EntryName, LockIs)>,
    /// What could not be done, and why.
    pub failed: Vec<String>,
}

/// What became of `gc.worktreePruneExpire`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gc {
    /// It is never now; what it was.
    Set(Option<BString>),
    /// An earlier run has set it.
    Ours,
    /// It was never, by somebody else's hand.
    Never,
    /// Undone: it is what it was.
    Unset,
    /// Nothing was to be undone: it was not set by this program, or has been changed since.
    NotOurs,
    Failed,
}

/// What became of a worktree's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockIs {
    Locked,
    /// An earlier run has locked it.
    Ours,
    /// Somebody else has, and why.
    Somebody(String),
    /// Undone.
    Unlocked,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum NotGuarded {
    #[error("the state directory is full, so that nothing can be noted there")]
    NoState,
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
}

/// The config before it was changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Former {
    schema: u32,
    value: Option<Bytes>,
    /// Its last line had no line break.
    no_end: bool,
    time: Timestamp,
}

/// Guards the clone; `lock`: its worktrees of another vantage, too.
pub fn guard(clone: &LockedClone, known: &[Known<'_>], lock: bool) -> Result<Guarded, NotGuarded> {
    let state = clone.state().ok_or(NotGuarded::NoState)?;
    let common = clone.common();
    let mut done = Guarded { snapshots: Vec::new(), gc: Gc::Failed, locks: Vec::new(), failed: Vec::new() };
    for registration in registrations(common)? {
        let found = known.iter().find(|k| k.name == registration.name && Some(k.id) == registration.id);
        match snapshot_of(common, &registration, found.and_then(|k| k.checkout)) {
            Ok(snapshot) => match snapshot::keep(state, snapshot) {
                Ok(kept) => done.snapshots.push((registration.name.clone(), kept)),
                Err(error) => done.failed.push(format!("{}: its snapshot: {error}", registration.name)),
            },
            Err(why) => done.failed.push(format!("{}: no snapshot: {why}", registration.name)),
        }
        if lock && found.is_some_and(|k| k.foreign) {
            match lock_one(common, &registration) {
                Ok(is) => done.locks.push((registration.name.clone(), is)),
                Err(error) => done.failed.push(format!("{}: it was not locked: {error}", registration.name)),
            }
        }
    }
    match set_expiry(common, state) {
        Ok(gc) => done.gc = gc,
        Err(error) => done.failed.push(format!("gc.worktreePruneExpire was not set: {error}")),
    }
    Ok(done)
}

/// Takes back what [`guard`] did to the clone. Snapshots stay.
pub fn undo(clone: &LockedClone) -> Result<Guarded, NotGuarded> {
    let state = clone.state().ok_or(NotGuarded::NoState)?;
    let common = clone.common();
    let mut done = Guarded { snapshots: Vec::new(), gc: Gc::Failed, locks: Vec::new(), failed: Vec::new() };
    for registration in registrations(common)? {
        match unlock_one(common, &registration) {
            Ok(true) => done.locks.push((registration.name.clone(), LockIs::Unlocked)),
            Ok(false) => {}
            Err(error) => done.failed.push(format!("{}: its lock stays: {error}", registration.name)),
        }
    }
    match unset_expiry(common, state) {
        Ok(gc) => done.gc = gc,
        Err(error) => done.failed.push(format!("gc.worktreePruneExpire was not put back: {error}")),
    }
    Ok(done)
}

fn snapshot_of(
    common: &Dir,
    registration: &Registration,
    checkout: Option<&Sighting>,
) -> Result<Snapshot, String> {
    if let Some(why) = registration.broken() {
        return Err(why.to_string());
    }
    let (Some(id), Ok(recorded), Ok(head)) = (registration.id, &registration.recorded, &registration.head)
    else {
        return Err("it can't be read".into());
    };
    let (branch, tip) = match head {
        Head::Detached(id) => (None, Some(*id)),
        Head::Branch(name) => {
            let tip = refs::resolve(common, name.as_bstr()).map_err(|e| format!("{}: {e}", escape(name)))?.1;
            (Some(Bytes::new(name.clone())), tip)
        }
    };
    let mut snapshot = Snapshot::new((&registration.name).into(), id, recorded.into(), checkout);
    (snapshot.branch, snapshot.tip) = (branch, tip.map(Into::into));
    Ok(snapshot)
}

/// The very entry that `registration` was read from.
fn entry(common: &Dir, registration: &Registration) -> io::Result<Dir> {
    let entry = common.dir("worktrees").and_then(|dir| dir.dir(registration.name.as_os_str()));
    let entry = entry.map_err(io_error)?;
    match entry.own_meta().map_err(io_error)?.id {
        id if Some(id) == registration.id => Ok(entry),
        _ => Err(io::Error::other("the entry was replaced meanwhile; try again")),
    }
}

fn lock_one(common: &Dir, registration: &Registration) -> io::Result<LockIs> {
    let somebody = |lock: &crate::git::registration::Lock| LockIs::Somebody(escape(&lock.reason));
    match &registration.lock {
        Err(why) => return Err(io::Error::other(why.to_string())),
        Ok(Some(lock)) if lock.reason == GUARD_REASON => return Ok(LockIs::Ours),
        Ok(Some(lock)) => return Ok(somebody(lock)),
        Ok(None) => {}
    }
    let words = format!("{GUARD_REASON}\n");
    match staged::file(common, &entry(common, registration)?, b"locked", words.as_bytes()) {
        Ok(()) => Ok(LockIs::Locked),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(LockIs::Somebody(String::new())),
        Err(error) => Err(error),
    }
}

/// Removes the lock if it has the guard's own reason; whether it was there.
fn unlock_one(common: &Dir, registration: &Registration) -> io::Result<bool> {
    let is_ours =
        registration.lock.as_ref().is_ok_and(|lock| lock.as_ref().is_some_and(|l| l.reason == GUARD_REASON));
    if !is_ours {
        return Ok(false);
    }
    match act::unlink(&entry(common, registration)?, b"locked") {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

fn set_expiry(common: &Dir, state: &CloneState) -> Result<Gc, ConfigError> {
    let mut gc = Gc::Never;
    match prune_expire::setting(&config::read(common)?).map_err(ConfigError::NotUnderstood)? {
        Setting::Ours if former(state)?.is_some() => return Ok(Gc::Ours),
        Setting::Ours | Setting::Never => return Ok(Gc::Never),
        Setting::Other(_) => {}
    }
    config::change(common, |old| {
        let Setting::Other(value) = prune_expire::setting(old)? else { return Ok(None) };
        let new = prune_expire::set(old)?;
        let no_end = !old.is_empty() && !old.ends_with(b"\n");
        let value_bytes = value.clone().map(Bytes::new);
        let former = Former { schema: 1, value: value_bytes, no_end, time: Timestamp::now() };
        note(state, &former).map_err(|e| format!("the former value could not be noted: {e}"))?;
        gc = Gc::Set(value);
        Ok(Some(new))
    })?;
    Ok(gc)
}

fn unset_expiry(common: &Dir, state: &CloneState) -> Result<Gc, ConfigError> {
    let Some(former) = former(state)? else { return Ok(Gc::NotOurs) };
    let changed = match common.meta("config") {
        Err(Refused::Absent) => false,
        _ => config::change(common, |old| prune_expire::unset(old, former.no_end))?,
    };
    state.remove(KIND, FORMER)?;
    Ok(if changed { Gc::Unset } else { Gc::NotOurs })
}

fn note(state: &CloneState, former: &Former) -> io::Result<()> {
    state.write(KIND, FORMER, &serde_json::to_vec(former)?, Durable::Yes)
}

fn former(state: &CloneState) -> io::Result<Option<Former>> {
    let Some(bytes) = state.read(KIND, FORMER)? else { return Ok(None) };
    let former: Former = serde_json::from_slice(&bytes)?;
    match former.schema {
        1 => Ok(Some(former)),
        other => Err(io::Error::other(format!("guard/{FORMER}: schema {other} is not known"))),
    }
}

#[cfg(test)]
mod tests;

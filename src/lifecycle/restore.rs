//! Bringing a worktree back from its retirement record.
//!
//! 1. The directory, which must be new or empty.
//! 2. The branch, if it was this program that deleted it.
//! 3. The administrative entry, whole, and locked: neither git nor another run takes it while it is not finished.
//! 4. The checkout's `.git` file, then the files of the commit.
//! 5. The lock goes.
//!
//! Killed anywhere, the next run with the same record knows the entry by its lock and goes on. It writes what is not there
//! and nothing else, so that whatever somebody has done there meanwhile stays.

use std::io;

use bstr::{BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::objects::Objects;
use crate::git::open::{Unreadable, open_clone, read_optional};
use crate::git::refs::SharedRefs;
use crate::git::registration::{Head, parse_head};
use crate::git::tree;
use crate::lifecycle::checkout::{Checkout, Ended, Written, absent};
use crate::lifecycle::links::Links;
use crate::stop::Stop;
use crate::sweep::atomic::{self, bstr_path};
use crate::sweep::outcome::BranchOutcome;
use crate::sweep::record::{Record, RecordId};
use crate::sweep::refs::{self, RefError, Value};
use crate::sweep::{LockedClone, act, staged, uses};
use crate::vantage::paths::{EntryName, LocalPath, escape};

/// One worktree that is to come back.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    pub record: &'a Record,
    pub name: EntryName,
    /// Where it is to be.
    pub at: LocalPath,
    /// A root that `at` lies beneath.
    pub root: LocalPath,
    pub links: Links,
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Restored {
    pub head: HeadIs,
    pub commit: ObjectId,
    pub written: Written,
    /// An earlier run had begun it.
    pub resumed: bool,
}

/// What HEAD of the new worktree is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HeadIs {
    /// Full name of the branch, which was there.
    Branch(BString),
    /// The same, made anew: this program had deleted it.
    Recreated(BString),
    /// Of an earlier run, or of whoever worked there since.
    AsFound(Head),
    /// No branch, and why.
    Detached(String),
}

/// Why it did not come back.
#[derive(Debug, thiserror::Error)]
pub enum NotRestored {
    #[error("the record names no commit")]
    NoTip,
    #[error("commit {0} is not in the clone any more")]
    NoCommit(ObjectId),
    #[error(
        "{count} objects of commit {commit} are not in this clone, as in a partial one: git can fetch them"
    )]
    Absent { commit: ObjectId, count: usize },
    #[error("another worktree is registered as {0}")]
    NameTaken(EntryName),
    #[error("{path}: {why}")]
    NotFree { path: LocalPath, why: String },
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
    #[error("branch {branch}: {source}")]
    Branch { branch: String, source: RefError },
    #[error("{path} is not finished: {ended}")]
    Unfinished { path: LocalPath, ended: Ended },
}

/// The file that says to this program, and to everybody else, that an entry is not finished.
const MARK: &str = "locked";

/// What the lock of an entry says as long as it is not finished.
fn mark(id: &RecordId) -> String {
    format!("treesweep restore: {id} is not finished\n")
}

/// Brings `wanted` back into the clone. The thread may write into the clone and below the directory that holds
/// `wanted.at`.
pub fn restore(clone: &LockedClone, wanted: &Wanted<'_>, stop: &Stop) -> Result<Restored, NotRestored> {
    let common = clone.common();
    let repo = open_clone(common)?;
    let earlier = unfinished(common, wanted)?;
    let tip = wanted.record.tip.as_ref().and_then(|hex| hex.id());
    let head = match &earlier {
        Some(head) => HeadIs::AsFound(head.clone()),
        None => head(common, &repo, wanted.record)?,
    };
    let commit = commit_of(common, &head, tip)?;
    let objects = Objects { repo: &repo, verified: true };
    let files = tree::files(objects, tree_of(&repo, commit)?)?;
    let count = absent(objects, &files).len();
    if count > 0 {
        return Err(NotRestored::Absent { commit, count });
    }
    let top = place(wanted, earlier.is_some())?;
    let entry = match earlier.is_some() {
        true => entry_dir(common, &wanted.name)?,
        false => register(common, &repo, wanted, &head, commit, &files, &top)?,
    };
    let unfinished = format!(".treesweep-unfinished-{}", wanted.record.id).into_bytes();
    let attributes = read_optional(common, "info/attributes", 4 << 20)?;
    let checkout = Checkout {
        objects,
        files: &files,
        top: &top,
        unfinished: &unfinished,
        attributes: attributes.as_deref(),
        stop,
    };
    let ended = |ended| NotRestored::Unfinished { path: wanted.at.clone(), ended };
    point(&top, &wanted.links, &unfinished).map_err(ended)?;
    let written = checkout.write().map_err(ended)?;
    finish(&entry, &top, &wanted.record.id)?;
    Ok(Restored { head, commit, written, resumed: earlier.is_some() })
}

/// HEAD of the entry, if it is one that an earlier run with this record did not finish; `None` if the name is free.
fn unfinished(common: &Dir, wanted: &Wanted<'_>) -> Result<Option<Head>, NotRestored> {
    let entry = match entry_dir(common, &wanted.name) {
        Ok(entry) => entry,
        Err(NotRestored::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let marked = read_optional(&entry, MARK, 4 << 10)? == Some(mark(&wanted.record.id).into_bytes());
    let ours = marked && read_optional(&entry, "gitdir", 16 << 10)? == Some(wanted.links.gitdir());
    let head = read_optional(&entry, "HEAD", 4 << 10)?.and_then(|bytes| parse_head(&bytes));
    match (ours, head) {
        (true, Some(head)) => Ok(Some(head)),
        _ => Err(NotRestored::NameTaken(wanted.name.clone())),
    }
}

fn entry_dir(common: &Dir, name: &EntryName) -> Result<Dir, NotRestored> {
    let refused = |r| io_at(format!("registration {name}"), atomic::io_error(r));
    common.dir("worktrees").and_then(|dir| dir.dir(name.as_os_str())).map_err(refused)
}

fn io_at(what: impl Into<String>, source: io::Error) -> NotRestored {
    NotRestored::Io { what: what.into(), source }
}

/// The branch of the record if it can be used, else the commit alone.
fn head(common: &Dir, repo: &gix::Repository, record: &Record) -> Result<HeadIs, NotRestored> {
    let Some(branch) = record.branch.as_ref().map(|b| &b.0).filter(|b| b.starts_with(b"refs/heads/")) else {
        return Ok(HeadIs::Detached("it had no branch".into()));
    };
    let shown = escape(branch);
    let by_us = record.completed.as_ref().and_then(|c| c.branch.as_ref());
    let detached = |why: String| Ok(HeadIs::Detached(why));
    match refs::read(common, branch.as_bstr()) {
        Ok(Some(Value::Direct(id))) if is_commit(repo, id) => match uses::unused(common, branch.as_bstr()) {
            Ok(()) => Ok(HeadIs::Branch(branch.clone())),
            Err(why) => detached(format!("{shown} is in use: {why}")),
        },
        Ok(Some(Value::Direct(_))) => detached(format!("{shown} names no commit")),
        Ok(Some(Value::Symbolic(to))) => detached(format!("{shown} is symbolic now, to {}", escape(&to))),
        Ok(None) if matches!(by_us, Some(BranchOutcome::Deleted { .. })) => {
            let refs = SharedRefs::read(common, repo.object_hash())?;
            match refs.in_the_way_of(branch.as_bstr()) {
                Some(other) => detached(format!("{shown} can't be made beside {}", escape(other))),
                None => Ok(HeadIs::Recreated(branch.clone())),
            }
        }
        Ok(None) => detached(format!("{shown} is gone, and not by this program's hand")),
        Err(error) => detached(format!("{shown}: {error}")),
    }
}

fn is_commit(repo: &gix::Repository, id: ObjectId) -> bool {
    id.kind() == repo.object_hash() && repo.find_commit(id).is_ok()
}

fn commit_of(common: &Dir, head: &HeadIs, tip: Option<ObjectId>) -> Result<ObjectId, NotRestored> {
    let of_branch = |name: &BString| match refs::read(common, name.as_bstr()) {
        Ok(Some(Value::Direct(id))) => Ok(id),
        Ok(_) => Err(Unreadable(format!("{} names no commit", escape(name))).into()),
        Err(source) => Err(NotRestored::Branch { branch: escape(name), source }),
    };
    match head {
        HeadIs::Branch(name) | HeadIs::AsFound(Head::Branch(name)) => of_branch(name),
        HeadIs::AsFound(Head::Detached(id)) => Ok(*id),
        HeadIs::Recreated(_) | HeadIs::Detached(_) => tip.ok_or(NotRestored::NoTip),
    }
}

fn tree_of(repo: &gix::Repository, commit: ObjectId) -> Result<ObjectId, NotRestored> {
    if !is_commit(repo, commit) {
        return Err(NotRestored::NoCommit(commit));
    }
    Ok(tree::of_commit(repo, commit)?)
}

/// The directory for the files, made now or empty; of an earlier run the one that names the entry.
fn place(wanted: &Wanted<'_>, resumed: bool) -> Result<Dir, NotRestored> {
    let at = &wanted.at;
    let not_free = |why: String| NotRestored::NotFree { path: at.clone(), why };
    let refused = |r: Refused| not_free(r.to_string());
    let parent = made_parent(wanted).map_err(refused)?;
    let name = at.file_name().ok_or_else(|| not_free("it has no name".into()))?;
    match parent.meta(bstr_path(name)) {
        Err(Refused::Absent) => return atomic::ensure_dir(&parent, name, 0o777).map_err(refused),
        Ok(meta) if meta.kind == Kind::Directory => {}
        Ok(meta) => return Err(not_free(format!("there is {}", meta.kind.described()))),
        Err(other) => return Err(refused(other)),
    }
    let dir = parent.dir(bstr_path(name)).map_err(refused)?;
    let link = read_optional(&dir, ".git", 16 << 10)?;
    let ours = resumed && link.is_some_and(|link| link == wanted.links.dot_git());
    let begun = format!(".treesweep-unfinished-{}", wanted.record.id).into_bytes();
    let names = dir.names().map_err(refused)?;
    match ours || names.iter().all(|name| resumed && *name == begun) {
        true => Ok(dir),
        false => Err(not_free("there is a directory that is not empty".into())),
    }
}

/// The directory that is to hold it, opened from the root; what is missing of the way is made.
fn made_parent(wanted: &Wanted<'_>) -> Result<Dir, Refused> {
    let parent = wanted.at.parent().ok_or(Refused::Absent)?;
    let below = parent.below(&wanted.root).ok_or(Refused::Absent)?;
    let mut dir = Dir::open(&wanted.root)?;
    for part in below.split_str("/").filter(|part| !part.is_empty()) {
        // Mounts may lie on the way to it, and none is made.
        dir = match dir.dir_across_mounts(bstr_path(part)) {
            Err(Refused::Absent) => atomic::ensure_dir(&dir, part, 0o777)?,
            result => result?,
        };
    }
    Ok(dir)
}

/// Makes the branch, if it has to be, and the entry. If the entry can't be made, the empty directory goes again.
fn register(
    common: &Dir,
    repo: &gix::Repository,
    wanted: &Wanted<'_>,
    head: &HeadIs,
    commit: ObjectId,
    files: &[tree::File],
    top: &Dir,
) -> Result<Dir, NotRestored> {
    let index = tree::index_of(files, repo.object_hash())?;
    let made = (|| {
        if let HeadIs::Recreated(branch) = head {
            refs::create_locked(common, branch.as_bstr(), commit, &wanted.record.id)
                .map_err(|source| NotRestored::Branch { branch: escape(branch), source })?;
        }
        let head = match head {
            HeadIs::Branch(name) | HeadIs::Recreated(name) => [b"ref: ", name.as_slice(), b"\n"].concat(),
            HeadIs::Detached(_) | HeadIs::AsFound(_) => format!("{commit}\n").into_bytes(),
        };
        let worktrees = atomic::ensure_dir(common, b"worktrees", 0o777)
            .map_err(|r| io_at("worktrees", atomic::io_error(r)))?;
        let (mark, gitdir) = (mark(&wanted.record.id), wanted.links.gitdir());
        let files = [
            (MARK, mark.as_bytes()),
            ("commondir", b"../..\n"),
            ("gitdir", &gitdir),
            ("HEAD", &head),
            ("index", &index),
        ];
        let name = wanted.name.as_bstr();
        staged::entry(common, &worktrees, name, &files).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => NotRestored::NameTaken(wanted.name.clone()),
            _ => io_at(format!("registration {}", wanted.name), error),
        })
    })();
    if made.is_err()
        && let (Some(parent), Some(name)) = (wanted.at.parent(), wanted.at.file_name())
        && let Ok(parent) = Dir::open(&parent)
        && parent.meta(bstr_path(name)).is_ok_and(|m| top.own_meta().is_ok_and(|own| own.id == m.id))
    {
        // Only an empty directory goes this way; one that stays is in nobody's way.
        let _stays_if_used = act::rmdir(&parent, name);
    }
    made
}

/// Writes the checkout's `.git` file; on an earlier run's way it may be there.
fn point(top: &Dir, links: &Links, unfinished: &[u8]) -> Result<(), Ended> {
    let io = |source| Ended::Io { path: ".git".into(), source };
    match top.meta(".git") {
        Ok(_) => return Ok(()),
        Err(Refused::Absent) => {}
        Err(refused) => return Err(io(atomic::io_error(refused))),
    }
    if top.meta(bstr_path(unfinished)).is_ok() {
        act::unlink(top, unfinished).map_err(|e| io(e.into()))?;
    }
    let mut file = act::create(top, unfinished, 0o666).map_err(|e| io(e.into()))?;
    act::write(&mut file, &links.dot_git()).map_err(io)?;
    atomic::give_to_owner_of(top, &file).map_err(|r| io(atomic::io_error(r)))?;
    act::rename(top, unfinished, top, b".git").map_err(|e| io(e.into()))
}

/// All is there, and on the disk: the entry may be used.
fn finish(entry: &Dir, top: &Dir, id: &RecordId) -> Result<(), NotRestored> {
    act::sync_all(top).map_err(|e| io_at(top.path().to_string(), e.into()))?;
    if read_optional(entry, MARK, 4 << 10)? == Some(mark(id).into_bytes()) {
        act::unlink(entry, MARK.as_bytes())
            .map_err(|e| io_at(format!("{}/{MARK}", entry.path()), e.into()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;

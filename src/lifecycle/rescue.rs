//! Making the registration of an orphan again, whose entry a prune from the wrong place has forgotten.
//!
//! The checkout is only read. The entry is built under a name that git does not list and renamed to its place, where
//! nothing of its name may be: a run that is killed leaves no half of it, and the next one begins anew.

use std::io;

use bstr::{BString, ByteSlice};
use gix::ObjectId;
use jiff::Timestamp;

use crate::beneath::{Dir, Refused};
use crate::git::objects::Objects;
use crate::git::open::{Unreadable, open_clone};
use crate::git::registration::{Head, Pointer, registrations};
use crate::git::tree;
use crate::lifecycle::links::Links;
use crate::survey::discover::Sighting;
use crate::sweep::atomic::{self, io_error};
use crate::sweep::refs::{self, Value};
use crate::sweep::{LockedClone, staged, uses};
use crate::vantage::paths::{EntryName, LocalPath, escape};

/// What is to be registered again.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub name: EntryName,
    pub checkout: Sighting,
    pub links: Links,
    pub head: Head,
    /// HEAD's branch may have no commit yet: it had none when the snapshot was made.
    pub unborn: bool,
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescued {
    /// None: the branch has no commit yet.
    pub commit: Option<ObjectId>,
    /// Files that the index lists.
    pub files: u64,
    pub submodules: Vec<BString>,
}

/// Why nothing was made.
#[derive(Debug, thiserror::Error)]
pub enum NotRescued {
    #[error("an entry {0} is there already")]
    NameTaken(EntryName),
    #[error("the worktree {0} is registered under the same path")]
    PathTaken(EntryName),
    #[error("{0} was replaced while it was looked at; try again")]
    Replaced(LocalPath),
    #[error("there is no branch {}", escape(.0))]
    NoBranch(BString),
    #[error("branch {}: {why}", escape(.branch))]
    Branch { branch: BString, why: String },
    #[error("commit {0} is not in the clone any more")]
    NoCommit(ObjectId),
    #[error("{0}")]
    Unreadable(#[from] Unreadable),
    #[error("{what}: {source}")]
    Io { what: String, source: io::Error },
}

/// Registers `wanted` in the clone.
pub fn rescue(clone: &LockedClone, wanted: &Wanted) -> Result<Rescued, NotRescued> {
    let common = clone.common();
    let repo = open_clone(common)?;
    is_still_there(&wanted.checkout)?;
    for registration in registrations(common)? {
        if registration.name == wanted.name {
            return Err(NotRescued::NameTaken(registration.name));
        }
        if registration.recorded.as_ref() == Ok(&wanted.links.checkout) {
            return Err(NotRescued::PathTaken(registration.name));
        }
    }
    let commit = commit(common, &repo, wanted)?;
    let files = match commit {
        Some(commit) => {
            tree::files(Objects { repo: &repo, verified: true }, tree::of_commit(&repo, commit)?)?
        }
        None => Vec::new(),
    };
    let index = tree::index_of(&files, repo.object_hash())?;
    register(common, wanted, commit, &index)?;
    let is_submodule = |file: &&tree::File| file.kind == gix::objs::tree::EntryKind::Commit;
    Ok(Rescued {
        commit,
        files: files.len() as u64,
        submodules: files.iter().filter(is_submodule).map(|file| file.path.clone()).collect(),
    })
}

/// The directory is the one that was seen, and its `.git` file says what it said.
fn is_still_there(checkout: &Sighting) -> Result<(), NotRescued> {
    let at = |refused: Refused| NotRescued::Io { what: checkout.path.to_string(), source: io_error(refused) };
    let dir = Dir::open(&checkout.path).map_err(at)?;
    let pointer = Pointer::parse(&dir.read(".git", 16 << 10).map_err(at)?);
    let same = pointer.as_ref() == Some(&checkout.pointer) && dir.own_meta().map_err(at)?.id == checkout.id;
    if same { Ok(()) } else { Err(NotRescued::Replaced(checkout.path.clone())) }
}

/// The commit of HEAD, which no other worktree may have on the same branch.
fn commit(common: &Dir, repo: &gix::Repository, wanted: &Wanted) -> Result<Option<ObjectId>, NotRescued> {
    let known = |id: ObjectId| match id.kind() == repo.object_hash() && repo.find_commit(id).is_ok() {
        true => Ok(Some(id)),
        false => Err(NotRescued::NoCommit(id)),
    };
    let branch = match &wanted.head {
        Head::Detached(id) => return known(*id),
        Head::Branch(branch) => branch,
    };
    let wrong = |why: String| NotRescued::Branch { branch: branch.clone(), why };
    let value = refs::read(common, branch.as_bstr()).map_err(|e| wrong(e.to_string()))?;
    uses::unused(common, branch.as_bstr()).map_err(wrong)?;
    match value {
        Some(Value::Direct(id)) => known(id),
        Some(Value::Symbolic(to)) => Err(wrong(format!("it is symbolic, to {}", escape(&to)))),
        None if wanted.unborn => Ok(None),
        None => Err(NotRescued::NoBranch(branch.clone())),
    }
}

fn register(common: &Dir, wanted: &Wanted, commit: Option<ObjectId>, index: &[u8]) -> Result<(), NotRescued> {
    let head = match &wanted.head {
        Head::Branch(name) => [b"ref: ", name.as_slice(), b"\n"].concat(),
        Head::Detached(id) => format!("{id}\n").into_bytes(),
    };
    let (gitdir, log) = (wanted.links.gitdir(), commit.map(reflog));
    let mut files =
        vec![("commondir", &b"../..\n"[..]), ("gitdir", &gitdir), ("HEAD", &head), ("index", index)];
    files.extend(log.as_ref().map(|line| (staged::REFLOG, line.as_slice())));
    let failed = |source: io::Error| match source.kind() {
        io::ErrorKind::AlreadyExists => NotRescued::NameTaken(wanted.name.clone()),
        _ => NotRescued::Io { what: format!("registration {}", wanted.name), source },
    };
    let worktrees = atomic::ensure_dir(common, b"worktrees", 0o777)
        .map_err(|r| NotRescued::Io { what: "worktrees".into(), source: io_error(r) })?;
    staged::entry(common, &worktrees, wanted.name.as_bstr(), &files).map(drop).map_err(failed)
}

/// The first line of HEAD's reflog; the lines before it went with the entry.
fn reflog(commit: ObjectId) -> Vec<u8> {
    let none = ObjectId::null(commit.kind());
    let now = Timestamp::now().as_second();
    format!("{none} {commit} treesweep <treesweep@localhost> {now} +0000\tworktree: registered again by treesweep rescue\n")
        .into_bytes()
}

#[cfg(test)]
mod tests;

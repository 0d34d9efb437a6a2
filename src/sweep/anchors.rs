//! Anchors: references that hold the commits which nothing else will name once a worktree is gone.

use bstr::BString;
use gix::ObjectId;

use crate::beneath::Dir;
use crate::git::open::{chain, open_clone};
use crate::sweep::act;
use crate::sweep::atomic;
use crate::sweep::record::RecordId;
use crate::sweep::refs::{self, RefError};

/// The reference of anchor `n` of the record `id`.
pub fn name(id: &RecordId, n: usize) -> BString {
    format!("refs/treesweep/retired/{id}/{n}").into()
}

/// Anchors `commits`; all are on the disk when this returns. A commit that is not there can't be held, and a reference
/// to nothing would stop `git gc` for good.
pub fn create(common: &Dir, id: &RecordId, commits: &[ObjectId]) -> Result<(), RefError> {
    if commits.is_empty() {
        return Ok(());
    }
    let unreadable = |path: &ObjectId, why: String| RefError::Unreadable { path: path.to_string(), why };
    let repo = open_clone(common).map_err(|e| unreadable(&commits[0], e.to_string()))?;
    for commit in commits {
        let header = repo.try_find_header(*commit).map_err(|e| unreadable(commit, chain(&e)))?;
        if header.is_none() {
            return Err(unreadable(commit, "the commit is missing, so it can't be kept".into()));
        }
    }
    for (n, commit) in commits.iter().enumerate() {
        refs::create(common, name(id, n).as_ref(), *commit)?;
    }
    // The way to them is on the disk too: `retired` and what is above may be new.
    let mut path = name(id, 0);
    while let Some((parent, _)) = bstr::ByteSlice::rsplit_once_str(path.as_slice(), "/") {
        let dir = common.dir(atomic::bstr_path(parent)).map_err(|r| RefError::refused(parent, r))?;
        act::sync(&dir).map_err(|errno| RefError::errno(parent, errno))?;
        path = parent.into();
    }
    Ok(())
}

/// Takes the anchors of `id` away again: for a removal that did not happen, whose worktree holds the commits itself.
pub fn remove(common: &Dir, id: &RecordId, commits: &[ObjectId]) -> Result<(), RefError> {
    if commits.is_empty() {
        return Ok(());
    }
    for (n, commit) in commits.iter().enumerate() {
        match refs::delete(common, name(id, n).as_ref(), *commit, id, &|| Ok(())) {
            Ok(()) | Err(RefError::Absent) => {}
            Err(error) => return Err(error),
        }
    }
    let first = name(id, 0);
    if let Some((dir, _)) = refs::holder(common, first.as_ref())? {
        atomic::remove_unfinished(&dir).map_err(|source| RefError::Io { path: first.to_string(), source })?;
    }
    refs::remove_empty_parents(common, first.as_ref(), 2)
}

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
        act::sync_dir(&dir).map_err(|errno| RefError::errno(parent, errno))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::testing::Clone;

    fn id() -> RecordId {
        "20250301T101112123Z-0123456789ab".parse().unwrap()
    }

    #[test]
    fn anchors_hold_commits_against_gc_and_can_be_taken_back() {
        let clone = Clone::new();
        let lost = [clone.commit_on("main", "one"), clone.commit_on("main", "two")];
        create(&clone.common(), &id(), &lost).unwrap();
        create(&clone.common(), &id(), &lost).unwrap();
        clone.git(&["gc", "-q", "--prune=now"]);
        for (n, commit) in lost.iter().enumerate() {
            assert_eq!(clone.id_of(&name(&id(), n).to_string()), *commit);
        }
        assert!(!clone.path.join(".git/logs/refs/treesweep").exists());
        // They are packed by now.
        remove(&clone.common(), &id(), &lost).unwrap();
        remove(&clone.common(), &id(), &lost).unwrap();
        assert!(!clone.has_ref("refs/treesweep") && !clone.path.join(".git/refs/treesweep/retired").exists());
    }

    #[test]
    fn a_missing_commit_and_another_value_are_errors() {
        let clone = Clone::new();
        let (main, other) = (clone.id_of("main"), clone.commit_on("main", "other"));
        let missing = ObjectId::from_hex("1".repeat(40).as_bytes()).unwrap();
        assert!(create(&clone.common(), &id(), &[main, missing]).is_err());
        assert!(!clone.has_ref("refs/treesweep"), "all are looked at before the first is written");
        create(&clone.common(), &id(), &[main]).unwrap();
        assert!(create(&clone.common(), &id(), &[other]).is_err());
        assert!(remove(&clone.common(), &id(), &[other]).is_err());
        assert_eq!(clone.id_of(&name(&id(), 0).to_string()), main);
    }
}

//! The one place where a branch is deleted.
//!
//! It trusts nobody's earlier look: that the reference is direct and what was judged, that nothing uses it, that the
//! trunk of this very moment contains it, and that the worktree was owned, is all asked here, the last two before and the
//! rest under the reference's lock, directly before the first change. Whatever it can't establish keeps the branch.
//!
//! `branch.<name>` in the config stays. `git branch -d` drops that section; but the file is everybody's, a crash in the
//! middle of rewriting it costs more than a section that nobody reads, and a later branch of that name overwrites it.

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::Dir;
use crate::git::history::{Commits, Reach};
use crate::git::index::Depth;
use crate::git::open::{Unreadable, open_clone};
use crate::git::reflog;
use crate::git::refs::SharedRefs;
use crate::stop::Stop;
use crate::sweep::ancestry;
use crate::sweep::atomic::bstr_path;
use crate::sweep::bytes::Bytes;
use crate::sweep::outcome::BranchOutcome;
use crate::sweep::record::RecordId;
use crate::sweep::refs::{self, RefError};
use crate::sweep::uses;
use crate::vantage::paths::escape;

/// What is asked to be deleted, and on whose word.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// Full name of the branch.
    pub name: &'a BStr,
    pub expected: ObjectId,
    /// Full name of the trunk's reference.
    pub trunk: &'a BStr,
    /// The worktree was owned by recorded evidence.
    pub owned: bool,
    /// Commits that the record holds, however the branch ends.
    pub anchors: &'a [ObjectId],
    pub record: &'a RecordId,
}

/// Deletes the branch, or says why it stays. One that is gone already is as good as deleted. The only error is a lock that
/// could not be removed, and that has to be tried again.
pub fn delete(common: &Dir, claim: &Claim<'_>, stop: &Stop) -> Result<BranchOutcome, RefError> {
    let kept = |why: String| Ok(BranchOutcome::kept(claim.name, why));
    if !claim.owned {
        return kept("its worktree is not owned".into());
    }
    if !claim.name.starts_with(b"refs/heads/") {
        return kept("it is no branch".into());
    }
    let trunk = match landed(common, claim, stop) {
        Ok(trunk) => trunk,
        Err(why) => return kept(why),
    };
    let still = || still_so(common, claim, trunk, stop);
    match refs::delete(common, claim.name, claim.expected, claim.record, &still) {
        Ok(()) | Err(RefError::Absent) => match refs::read(common, claim.name) {
            Ok(None) => Ok(BranchOutcome::Deleted { name: Bytes::new(claim.name) }),
            Ok(Some(_)) => kept("it was made anew meanwhile".into()),
            Err(error) => kept(error.to_string()),
        },
        Err(error @ RefError::LockStays { .. }) => Err(error),
        Err(error) => kept(error.to_string()),
    }
}

/// Asked under the lock: nothing uses the branch, its reflog goes without a loss, and the trunk is still `trunk`. The walk
/// through its history took time.
fn still_so(common: &Dir, claim: &Claim<'_>, trunk: ObjectId, stop: &Stop) -> Result<(), String> {
    uses::unused(common, claim.name)?;
    if let Some(commit) = only_logged(common, claim, stop).map_err(|why| why.0)? {
        return Err(format!("its reflog names {commit}, which nothing else holds"));
    }
    let shown = escape(claim.trunk);
    match refs::resolve(common, claim.trunk) {
        Ok((_, Some(now))) if now == trunk => Ok(()),
        Ok(_) => Err(format!("{shown} moved meanwhile")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// A commit that only the branch's reflog names. Those of the time of the judgement are anchored; but the branch may have
/// been worked on since, and be back at the same commit.
fn only_logged(common: &Dir, claim: &Claim<'_>, stop: &Stop) -> Result<Option<ObjectId>, Unreadable> {
    let log = BString::from([b"logs/", claim.name.as_bytes()].concat());
    let lines = reflog::read(common, bstr_path(&log))?;
    let repo = open_clone(common)?;
    let refs = SharedRefs::read(common, repo.object_hash())?;
    let commits = Commits::of(&repo, Depth::BeforeRemoval, stop.clone())?;
    let mut reach = Reach::new(&commits, refs.holders().chain(claim.anchors.iter().copied()));
    let strays = reach.strays(lines.iter().flat_map(|line| [line.old, line.new]));
    commits.in_time()?;
    Ok(strays.first().copied())
}

/// The trunk's value, which contains the expected commit.
fn landed(common: &Dir, claim: &Claim<'_>, stop: &Stop) -> Result<ObjectId, String> {
    let shown = escape(claim.trunk);
    let (way, value) = refs::resolve(common, claim.trunk).map_err(|error| format!("{shown}: {error}"))?;
    if way.iter().any(|name| name == claim.name) {
        return Err("it is the trunk".into());
    }
    let trunk = value.ok_or_else(|| format!("{shown} is gone"))?;
    let repo = open_clone(common).map_err(|error| error.to_string())?;
    match ancestry::contains(&repo, trunk, claim.expected, stop)? {
        true => Ok(trunk),
        false => Err(format!("{shown} does not contain it")),
    }
}

#[cfg(test)]
mod tests;

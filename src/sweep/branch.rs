//! The one place where a branch is deleted.
//!
//! It trusts nobody's earlier look: that the reference is direct and what was judged, that nothing uses it, that the
//! trunk of this very moment contains it, and that the worktree was owned, is all asked here, the last two before and the
//! rest under the reference's lock, directly before the first change. Whatever it can't establish keeps the branch.
//!
//! `branch.<name>` in the config stays. `git branch -d` drops that section; but the file is everybody's, a crash in the
//! middle of rewriting it costs more than a section that nobody reads, and a later branch of that name overwrites it.

use bstr::BStr;
use gix::ObjectId;

use crate::beneath::Dir;
use crate::git::open::open_clone;
use crate::stop::Stop;
use crate::sweep::ancestry;
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
    let still = || still_so(common, claim, trunk);
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

/// Asked under the lock: nothing uses the branch, and the trunk is still `trunk`. The walk through its history took time.
fn still_so(common: &Dir, claim: &Claim<'_>, trunk: ObjectId) -> Result<(), String> {
    uses::unused(common, claim.name)?;
    let shown = escape(claim.trunk);
    match refs::resolve(common, claim.trunk) {
        Ok((_, Some(now))) if now == trunk => Ok(()),
        Ok(_) => Err(format!("{shown} moved meanwhile")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
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

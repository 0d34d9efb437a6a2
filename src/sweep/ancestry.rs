//! Ancestry that a forged object can't fake: every commit on the way is hashed again before it is believed.
//!
//! An object's file is only as honest as whoever can write `objects/`: a commit stored under a name that is not its hash
//! could claim any parent, and so that any work has landed.

use std::collections::{BinaryHeap, HashSet};

use gix::ObjectId;
use gix::objs::{CommitRefIter, Kind};

use crate::git::open::chain;
use crate::stop::Stop;

/// The most bytes of a commit that are read.
const LIMIT: u64 = 64 << 20;

/// Whether `commit` is `trunk` or an ancestor of it. What can't be read or does not bear its name leads nowhere; beyond
/// a shallow boundary nothing is known either.
pub(super) fn contains(
    repo: &gix::Repository,
    trunk: ObjectId,
    commit: ObjectId,
    stop: &Stop,
) -> Result<bool, String> {
    // Newest first, so that the common case, a tip that has just landed, is found soon.
    let mut queue = BinaryHeap::from([(i64::MAX, trunk)]);
    let mut seen = HashSet::from([trunk]);
    let mut broken = None;
    while let Some((_, id)) = queue.pop() {
        if stop.is_set() {
            return Err("the run was asked to stop".into());
        }
        let parents = match verified_parents(repo, id) {
            Ok(parents) => parents,
            Err(why) => {
                broken.get_or_insert(why);
                continue;
            }
        };
        // Only now: the trunk, or what a verified commit named, and itself verified too.
        if id == commit {
            return Ok(true);
        }
        for (time, parent) in parents {
            if seen.insert(parent) {
                queue.push((time, parent));
            }
        }
    }
    broken.map_or(Ok(false), Err)
}

/// The parents of the commit `id`, each with the time of the child that named it, if the object's content has that hash.
fn verified_parents(repo: &gix::Repository, id: ObjectId) -> Result<Vec<(i64, ObjectId)>, String> {
    // A forged header could ask for all the memory there is.
    let header = repo.try_find_header(id).map_err(|error| format!("commit {id}: {}", chain(&error)))?;
    if let Some(header) = header.filter(|header| header.size() > LIMIT) {
        return Err(format!("commit {id} has {} bytes", header.size()));
    }
    let object = repo
        .try_find_object(id)
        .map_err(|error| format!("commit {id}: {}", chain(&error)))?
        .ok_or_else(|| format!("commit {id} is missing"))?;
    if object.kind != Kind::Commit {
        return Err(format!("{id} is no commit"));
    }
    let hash = gix::objs::compute_hash(repo.object_hash(), object.kind, &object.data)
        .map_err(|error| format!("commit {id}: {}", chain(&error)))?;
    if hash != id {
        return Err(format!("commit {id} is forged: its content is {hash}"));
    }
    let commit = CommitRefIter::from_bytes(&object.data, repo.object_hash());
    let time = commit.committer().map(|c| c.seconds()).unwrap_or_default();
    Ok(commit.parent_ids().map(|parent| (time, parent)).collect())
}

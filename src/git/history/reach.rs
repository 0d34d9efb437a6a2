//! Which commits shared refs reach, and which only a worktree holds.

use std::collections::{BinaryHeap, HashSet};

use gix::ObjectId;

use crate::git::history::{Commits, SKEW};

/// Which commits shared refs reach, walked only as far as it is asked.
pub struct Reach<'r> {
    commits: &'r Commits<'r>,
    seen: HashSet<ObjectId>,
    queue: BinaryHeap<(i64, ObjectId)>,
}

impl<'r> Reach<'r> {
    /// From `holders`, which may be tags: they are peeled.
    pub fn new(commits: &'r Commits<'r>, holders: impl Iterator<Item = ObjectId>) -> Self {
        let mut reach = Self { commits, seen: HashSet::new(), queue: BinaryHeap::new() };
        for id in holders {
            if let Some(commit) = peel(commits.repo, id) {
                reach.push(commit);
            }
        }
        reach
    }

    fn push(&mut self, id: ObjectId) {
        if self.seen.insert(id)
            && let Some(parsed) = self.commits.parse(id)
        {
            self.queue.push((parsed.time, id));
        }
    }

    /// Whether a shared ref reaches `id`. A commit that is older than one that it is an ancestor of is always found;
    /// with wrong dates the answer may be no where it should be yes, and then the work is kept.
    pub fn contains(&mut self, id: ObjectId) -> bool {
        let Some(wanted) = self.commits.parse(id) else { return false };
        let oldest = wanted.time.saturating_sub(SKEW);
        while !self.seen.contains(&id) && self.queue.peek().is_some_and(|(time, _)| *time >= oldest) {
            let Some((_, next)) = self.queue.pop() else { break };
            for parent in self.commits.parse(next).map(|p| p.parents).unwrap_or_default() {
                self.push(parent);
            }
        }
        self.seen.contains(&id)
    }

    /// Of `ids`, the commits that no shared ref reaches, without those that another of them reaches.
    pub fn strays(&mut self, ids: impl IntoIterator<Item = ObjectId>) -> Vec<ObjectId> {
        let mut lost: Vec<(i64, ObjectId)> = ids
            .into_iter()
            .collect::<HashSet<_>>()
            .into_iter()
            .filter_map(|id| Some((self.commits.parse(id)?.time, id)))
            .filter(|(_, id)| !self.contains(*id))
            .collect();
        // Descendants first, as far as dates tell; what turns out to be an ancestor is taken out at the end.
        lost.sort_unstable_by(|a, b| b.cmp(a));
        let mut below = HashSet::new();
        let mut tips = Vec::new();
        for (_, id) in lost {
            if !below.contains(&id) {
                tips.push(id);
                self.go_below(id, &mut below);
            }
        }
        tips.retain(|id| !below.contains(id));
        tips
    }

    /// Adds the ancestors of `tip` that no shared ref reaches.
    fn go_below(&mut self, tip: ObjectId, below: &mut HashSet<ObjectId>) {
        let parents = |reach: &Self, id| reach.commits.parse(id).map(|p| p.parents).unwrap_or_default();
        let mut queue = parents(self, tip);
        while let Some(id) = queue.pop() {
            if !below.contains(&id) && !self.contains(id) {
                below.insert(id);
                queue.extend(parents(self, id));
            }
        }
    }
}

fn peel(repo: &gix::Repository, id: ObjectId) -> Option<ObjectId> {
    if id.kind() != repo.object_hash() {
        return None;
    }
    let object = repo.find_object(id).ok()?;
    match object.kind {
        gix::objs::Kind::Commit => Some(id),
        gix::objs::Kind::Tag => Some(object.peel_to_commit().ok()?.id),
        _ => None,
    }
}

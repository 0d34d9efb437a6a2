//! Merge bases, exactly: whether content has landed must not depend on what dates commits bear.

use std::collections::{BinaryHeap, HashMap};

use gix::ObjectId;

use crate::git::history::Commits;

const ONE: u8 = 1;
const TWO: u8 = 2;
const BOTH: u8 = ONE | TWO;
/// An ancestor of a common ancestor.
const STALE: u8 = 4;
/// Was met as a common ancestor.
const RESULT: u8 = 8;

/// The best common ancestors of two commits; with wrong dates also some that are ancestors of others among them.
/// `None` if that can't be known: a commit is missing or forged, history is cut short, or the time is over.
///
/// It is git's way (`paint_down_to_common`): dates decide the order and so the cost, never the result. Every commit
/// between one of the two and a best common ancestor is an ancestor of one side only, and while there is such a one in
/// the queue the walk goes on.
pub fn merge_bases(commits: &Commits<'_>, one: ObjectId, two: ObjectId) -> Option<Vec<ObjectId>> {
    let mut walk = Walk { commits, seen: HashMap::new(), queue: BinaryHeap::new(), open: 0 };
    walk.add(one, ONE)?;
    walk.add(two, TWO)?;
    while walk.open > 0 {
        walk.step()?;
    }
    let best = |(id, seen): (&ObjectId, &Seen)| (seen.flags & (RESULT | STALE) == RESULT).then_some(*id);
    let mut found: Vec<ObjectId> = walk.seen.iter().filter_map(best).collect();
    found.sort_unstable();
    Some(found)
}

struct Seen {
    flags: u8,
    parents: Vec<ObjectId>,
    time: i64,
    cut: bool,
    /// How often it is in the queue.
    queued: usize,
}

struct Walk<'a, 'r> {
    commits: &'a Commits<'r>,
    seen: HashMap<ObjectId, Seen>,
    queue: BinaryHeap<(i64, ObjectId)>,
    /// How many in the queue are not stale.
    open: usize,
}

impl Walk<'_, '_> {
    fn add(&mut self, id: ObjectId, flags: u8) -> Option<()> {
        if !self.seen.contains_key(&id) {
            let parsed = self.commits.parse(id)?;
            let (parents, time, cut) = (parsed.parents, parsed.time, parsed.cut);
            self.seen.insert(id, Seen { flags: 0, parents, time, cut, queued: 0 });
        }
        let seen = self.seen.get_mut(&id)?;
        if seen.flags & flags == flags {
            return Some(());
        }
        let was_open = seen.flags & STALE == 0;
        seen.flags |= flags;
        let is_open = seen.flags & STALE == 0;
        if was_open && !is_open {
            self.open -= seen.queued;
        }
        seen.queued += 1;
        self.open += usize::from(is_open);
        self.queue.push((seen.time, id));
        Some(())
    }

    fn step(&mut self) -> Option<()> {
        let (_, id) = self.queue.pop()?;
        let seen = self.seen.get_mut(&id)?;
        seen.queued -= 1;
        let mut flags = seen.flags & (BOTH | STALE);
        self.open -= usize::from(flags & STALE == 0);
        if flags == BOTH {
            seen.flags |= RESULT;
            flags |= STALE;
        }
        // Of one side only, as far as it is known here: what lies behind it may be the other side's too.
        if flags & STALE == 0 && seen.cut {
            return None;
        }
        for parent in seen.parents.clone() {
            match self.add(parent, flags) {
                // Behind a common ancestor nothing is asked any more.
                None if flags & STALE == 0 => return None,
                _ => {}
            }
        }
        Some(())
    }
}

//! What has landed, and what travels inside another branch: one shared walk for all worktrees of a clone.
//!
//! The walk goes from all tips towards older commits in the order of their dates and paints each commit with the trunk
//! refs and the branches that reach it. It ends when what is left is older than everything that no trunk ref has reached
//! yet. Paint only follows parent links, so that a wrong date (which ends the walk too early) can hide that a branch has
//! landed, and never make up that it has.

mod bases;
mod reach;
#[cfg(test)]
mod tests;

use std::collections::{BinaryHeap, HashMap, HashSet};

use bstr::BString;
use gix::ObjectId;

pub use self::bases::merge_bases;
pub use self::reach::Reach;
use crate::git::index::Depth;
use crate::git::open::Unreadable;
use crate::stop::Stop;

/// A commit as far as history is concerned.
struct Parsed {
    /// None behind a shallow boundary: what lies there is not here.
    parents: Vec<ObjectId>,
    /// Committer's time in seconds.
    time: i64,
    /// It has parents that are not here.
    cut: bool,
    tree: ObjectId,
}

/// Reads commits; with `verified` their bytes must hash to their names (forged objects, design: threat model).
pub struct Commits<'r> {
    repo: &'r gix::Repository,
    shallow: HashSet<ObjectId>,
    verified: bool,
    stop: Stop,
}

impl<'r> Commits<'r> {
    /// With the care that `depth` asks for. Once `stop` is set none is found any more, so that whatever is asked ends
    /// soon, with an answer that means nothing: ask [`Commits::in_time`] after it.
    ///
    /// # Errors
    /// The list of shallow commits can't be read.
    pub fn of(repo: &'r gix::Repository, depth: Depth, stop: Stop) -> Result<Self, Unreadable> {
        let shallow = repo.shallow_commits().map_err(|e| Unreadable(format!("shallow: {e}")))?;
        let shallow = shallow.map(|list| list.iter().copied().collect()).unwrap_or_default();
        Ok(Self { repo, shallow, verified: depth == Depth::BeforeRemoval, stop })
    }

    /// Whether everything that was asked so far was answered.
    ///
    /// # Errors
    /// It was not: the time for this clone is over, or the run was asked to stop.
    pub fn in_time(&self) -> Result<(), Unreadable> {
        match self.stop.is_set() {
            true => Err(Unreadable::new(
                "its clone's history could not be read in time (history-limit in the config, or --time-limit)",
            )),
            false => Ok(()),
        }
    }

    pub fn stop(&self) -> &Stop {
        &self.stop
    }

    pub fn repo(&self) -> &'r gix::Repository {
        self.repo
    }

    /// Whether objects have to hash to their names before they are believed.
    pub fn verified(&self) -> bool {
        self.verified
    }

    /// The tree of the commit `id`; `None` if that commit can't be believed.
    pub fn tree(&self, id: ObjectId) -> Option<ObjectId> {
        Some(self.parse(id)?.tree)
    }

    /// `None` if it is missing, is no commit, or is not what its name says.
    fn parse(&self, id: ObjectId) -> Option<Parsed> {
        // An id of another kind can't be looked up at all: gix asserts that it is of the store's.
        if id.kind() != self.repo.object_hash() || self.stop.is_set() {
            return None;
        }
        let object = self.repo.find_object(id).ok()?;
        if object.kind != gix::objs::Kind::Commit {
            return None;
        }
        if self.verified && !hashes_to(&object.data, object.kind, id) {
            return None;
        }
        let commit = object.try_into_commit().ok()?;
        let (time, tree) = (commit.time().ok()?.seconds, commit.tree_id().ok()?.detach());
        let mut parents: Vec<ObjectId> = commit.parent_ids().map(|p| p.detach()).collect();
        let cut = self.shallow.contains(&id) && !parents.is_empty();
        if cut {
            parents.clear();
        }
        Some(Parsed { parents, time, cut, tree })
    }
}

/// Whether `data` is what the object `id` must be.
pub fn hashes_to(data: &[u8], kind: gix::objs::Kind, id: ObjectId) -> bool {
    gix::objs::compute_hash(id.kind(), kind, data).is_ok_and(|hash| hash == id)
}

/// A set of tips, by their index.
type Bits = Vec<u64>;

fn set(bits: &mut Bits, at: usize) {
    let word = at / 64;
    if bits.len() <= word {
        bits.resize(word + 1, 0);
    }
    bits[word] |= 1 << (at % 64);
}

/// Adds `from` to `to`; whether that changed it.
fn union(to: &mut Bits, from: &Bits) -> bool {
    if to.len() < from.len() {
        to.resize(from.len(), 0);
    }
    let mut changed = false;
    for (to, from) in to.iter_mut().zip(from) {
        changed |= *from & !*to != 0;
        *to |= from;
    }
    changed
}

fn ones(bits: &Bits) -> impl Iterator<Item = usize> + '_ {
    bits.iter()
        .enumerate()
        .flat_map(|(w, word)| (0..64).filter(move |b| word & (1 << b) != 0).map(move |b| w * 64 + b))
}

/// Clocks of different machines differ: so many seconds more are walked before something counts as not reached.
const SKEW: i64 = 24 * 60 * 60;

#[derive(Default)]
struct Paint {
    /// Bit n: trunk ref n reaches it.
    trunk: u32,
    /// Branches that reach it, kept only while no trunk ref does.
    branches: Bits,
    parents: Vec<ObjectId>,
    time: i64,
    /// How often it is in the queue.
    queued: usize,
}

/// The painted part of the history.
pub struct Painted {
    paint: HashMap<ObjectId, Paint>,
    tips: Vec<(BString, ObjectId)>,
    by_commit: HashMap<ObjectId, usize>,
    /// Commits of each tip that the trunk lacks.
    own: Vec<u64>,
}

/// How a tip stands to the trunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The trunk ref with this index contains it.
    InTrunk(usize),
    /// This many commits of it are not in the trunk.
    Ahead(u64),
    /// Its commit is missing or broken, or the walk ended early.
    Unknown,
}

/// Walks from `trunk` (the refs that stand for it) and all `tips` (branches by their full name; detached HEADs under a
/// name of the caller's) until every tip's standing is known.
pub fn paint(commits: &Commits<'_>, trunk: &[ObjectId], tips: Vec<(BString, ObjectId)>) -> Painted {
    let mut walk =
        Painter { commits, paint: HashMap::new(), queue: BinaryHeap::new(), open: 0, oldest: i64::MAX };
    for (at, id) in trunk.iter().enumerate().take(32) {
        walk.add(*id, 1 << at, &Bits::new());
    }
    for (at, (_, id)) in tips.iter().enumerate() {
        let mut bits = Bits::new();
        set(&mut bits, at);
        walk.add(*id, 0, &bits);
    }
    walk.run();
    let mut own = vec![0; tips.len()];
    for paint in walk.paint.values().filter(|p| p.trunk == 0) {
        ones(&paint.branches).for_each(|at| own[at] += 1);
    }
    // The first of several tips of one commit: they stand alike.
    let by_commit = tips.iter().enumerate().rev().map(|(at, (_, id))| (*id, at)).collect();
    Painted { paint: walk.paint, tips, by_commit, own }
}

struct Painter<'a, 'r> {
    commits: &'a Commits<'r>,
    paint: HashMap<ObjectId, Paint>,
    queue: BinaryHeap<(i64, ObjectId)>,
    /// How many in the queue no trunk ref has reached.
    open: usize,
    /// The oldest date of all that were not reached by one when they were met.
    oldest: i64,
}

impl Painter<'_, '_> {
    fn add(&mut self, id: ObjectId, trunk: u32, branches: &Bits) {
        if !self.paint.contains_key(&id) {
            let Some(parsed) = self.commits.parse(id) else { return };
            self.paint.insert(id, Paint { time: parsed.time, parents: parsed.parents, ..Paint::default() });
        }
        let Some(paint) = self.paint.get_mut(&id) else { return };
        let more_trunk = trunk & !paint.trunk != 0;
        if paint.trunk == 0 && more_trunk {
            self.open -= paint.queued;
        }
        paint.trunk |= trunk;
        let more_branches = paint.trunk == 0 && union(&mut paint.branches, branches);
        if more_trunk || more_branches {
            if paint.trunk == 0 {
                self.open += 1;
                self.oldest = self.oldest.min(paint.time);
            }
            paint.queued += 1;
            self.queue.push((paint.time, id));
        }
    }

    fn run(&mut self) {
        while let Some((time, id)) = self.queue.pop() {
            // Commits of one second come in any order, so that only older ones can't be children of what is open.
            let decided = self.open == 0 && time < self.oldest.saturating_sub(SKEW);
            if decided {
                return;
            }
            let Some(paint) = self.paint.get_mut(&id) else { continue };
            paint.queued -= 1;
            let (trunk, branches, parents) = (paint.trunk, paint.branches.clone(), paint.parents.clone());
            if trunk == 0 {
                self.open -= 1;
            }
            for parent in parents {
                self.add(parent, trunk, &branches);
            }
        }
    }
}

impl Painted {
    /// How tip number `at` stands.
    pub fn standing(&self, at: usize) -> Standing {
        match self.paint.get(&self.tips[at].1) {
            None => Standing::Unknown,
            Some(paint) if paint.trunk != 0 => Standing::InTrunk(paint.trunk.trailing_zeros() as usize),
            Some(_) => Standing::Ahead(self.own[at]),
        }
    }

    /// Tips that strictly contain tip number `at` and that no trunk ref contains, with how far ahead they are, nearest
    /// first. A tip of the same commit is a twin and contains nothing.
    pub fn containers(&self, at: usize) -> Vec<(usize, u64)> {
        let Some(paint) = self.paint.get(&self.tips[at].1).filter(|p| p.trunk == 0) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, u64)> = ones(&paint.branches)
            .filter(|other| self.tips[*other].1 != self.tips[at].1)
            // With wrong dates the walk may end between a tip that has landed and what it contains.
            .filter(|other| matches!(self.standing(*other), Standing::Ahead(_)))
            .map(|other| (other, self.own[other].saturating_sub(self.own[at])))
            .collect();
        found.sort_by(|a, b| a.1.cmp(&b.1).then_with(|| self.tips[a.0].0.cmp(&self.tips[b.0].0)));
        found
    }

    /// The number of a tip that is this commit.
    pub fn position(&self, id: ObjectId) -> Option<usize> {
        self.by_commit.get(&id).copied()
    }

    pub fn tip(&self, at: usize) -> &(BString, ObjectId) {
        &self.tips[at]
    }

    /// Where tip number `at` left the trunk last, as far as dates tell: a guess at the merge base that costs nothing.
    /// [`merge_bases`] knows.
    pub fn fork(&self, at: usize) -> Option<ObjectId> {
        let word = at / 64;
        let is_own = |paint: &&Paint| {
            paint.trunk == 0 && paint.branches.get(word).is_some_and(|w| w & (1 << (at % 64)) != 0)
        };
        let own = self.paint.values().filter(is_own);
        let in_trunk = own.flat_map(|paint| &paint.parents).filter_map(|parent| {
            let paint = self.paint.get(parent).filter(|p| p.trunk != 0)?;
            Some((paint.time, *parent))
        });
        in_trunk.max().map(|(_, id)| id)
    }
}

//! What has landed, and what travels inside another branch: one shared walk for all worktrees of a clone.
//!
//! The walk goes from all tips towards older commits in the order of their dates and paints each commit with the trunk
//! refs and the branches that reach it. Paint only follows parent links, so that a wrong date (which ends the walk too
//! early) can hide that a branch has landed, and never make up that it has.

use std::collections::{BinaryHeap, HashMap, HashSet};

use bstr::BString;
use gix::ObjectId;

use crate::git::index::Depth;
use crate::git::open::Unreadable;
use crate::stop::Stop;

/// A commit as far as history is concerned.
struct Parsed {
    parents: Vec<ObjectId>,
    /// Committer's time in seconds.
    time: i64,
}

/// Reads commits; with `verified` their bytes must hash to their names (forged objects, design: threat model).
pub struct Commits<'r> {
    repo: &'r gix::Repository,
    shallow: HashSet<ObjectId>,
    verified: bool,
}

impl<'r> Commits<'r> {
    fn new(repo: &'r gix::Repository, verified: bool) -> Result<Self, Unreadable> {
        let shallow = repo.shallow_commits().map_err(|e| Unreadable(format!("shallow: {e}")))?;
        let shallow = shallow.map(|list| list.iter().copied().collect()).unwrap_or_default();
        Ok(Self { repo, shallow, verified })
    }

    /// With the care that `depth` asks for.
    ///
    /// # Errors
    /// The list of shallow commits can't be read.
    pub fn of(repo: &'r gix::Repository, depth: Depth) -> Result<Self, Unreadable> {
        Self::new(repo, depth == Depth::BeforeRemoval)
    }

    /// `None` if it is missing, is no commit, or is not what its name says.
    fn parse(&self, id: ObjectId) -> Option<Parsed> {
        let object = self.repo.find_object(id).ok()?;
        if object.kind != gix::objs::Kind::Commit {
            return None;
        }
        if self.verified && !hashes_to(&object.data, object.kind, id) {
            return None;
        }
        let commit = object.try_into_commit().ok()?;
        let time = commit.time().ok()?.seconds;
        // What lies behind a shallow boundary is not here.
        let parents = match self.shallow.contains(&id) {
            true => Vec::new(),
            false => commit.parent_ids().map(|p| p.detach()).collect(),
        };
        Some(Parsed { parents, time })
    }
}

fn hashes_to(data: &[u8], kind: gix::objs::Kind, id: ObjectId) -> bool {
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

#[derive(Default)]
struct Paint {
    /// Bit n: trunk ref n reaches it.
    trunk: u32,
    /// Branches that reach it, kept only while no trunk ref does.
    branches: Bits,
    parents: Vec<ObjectId>,
    time: i64,
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
pub fn paint(
    commits: &Commits<'_>,
    trunk: &[ObjectId],
    tips: Vec<(BString, ObjectId)>,
    stop: &Stop,
) -> Painted {
    let mut walk = Painter { commits, paint: HashMap::new(), queue: BinaryHeap::new(), open: 0 };
    for (at, id) in trunk.iter().enumerate().take(32) {
        walk.add(*id, 1 << at, &Bits::new());
    }
    for (at, (_, id)) in tips.iter().enumerate() {
        let mut bits = Bits::new();
        set(&mut bits, at);
        walk.add(*id, 0, &bits);
    }
    walk.run(stop);
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
    /// Queued commits that no trunk ref has reached yet: the walk may end when there is none.
    open: usize,
}

impl Painter<'_, '_> {
    fn add(&mut self, id: ObjectId, trunk: u32, branches: &Bits) {
        if !self.paint.contains_key(&id) {
            let Some(parsed) = self.commits.parse(id) else { return };
            self.paint.insert(id, Paint { time: parsed.time, parents: parsed.parents, ..Paint::default() });
        }
        let Some(paint) = self.paint.get_mut(&id) else { return };
        let more_trunk = trunk & !paint.trunk != 0;
        paint.trunk |= trunk;
        let more_branches = paint.trunk == 0 && union(&mut paint.branches, branches);
        if more_trunk || more_branches {
            self.open += usize::from(paint.trunk == 0);
            self.queue.push((paint.time, id));
        }
    }

    fn run(&mut self, stop: &Stop) {
        let mut steps = 0u32;
        // `open` counts pushes, so that it may be too high, never too low: the walk may only be longer.
        while let Some((_, id)) = self.queue.pop() {
            let Some(paint) = self.paint.get(&id) else { continue };
            let (trunk, branches, parents) = (paint.trunk, paint.branches.clone(), paint.parents.clone());
            if trunk == 0 {
                self.open = self.open.saturating_sub(1);
            }
            for parent in parents {
                self.add(parent, trunk, &branches);
            }
            steps += 1;
            if steps.is_multiple_of(256) && (stop.is_set() || !self.undecided()) {
                return;
            }
        }
    }

    /// Something in the queue is not known to be the trunk's.
    fn undecided(&mut self) -> bool {
        if self.open > 0 {
            self.open =
                self.queue.iter().filter(|(_, id)| self.paint.get(id).is_some_and(|p| p.trunk == 0)).count();
        }
        self.open > 0
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

    /// Tips that strictly contain tip number `at`, with how far ahead they are, nearest first. A tip of the same
    /// commit is a twin and contains nothing; one that has landed is not in the walk's branches any more.
    pub fn containers(&self, at: usize) -> Vec<(usize, u64)> {
        let Some(paint) = self.paint.get(&self.tips[at].1).filter(|p| p.trunk == 0) else {
            return Vec::new();
        };
        let mut found: Vec<(usize, u64)> = ones(&paint.branches)
            .filter(|other| self.tips[*other].1 != self.tips[at].1)
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

    /// The trunk's commits that are parents of the tip's own ones: if it is only one, it is the merge base.
    pub fn forks(&self, at: usize) -> HashSet<ObjectId> {
        let word = at / 64;
        let has = |paint: &&Paint| {
            paint.trunk == 0 && paint.branches.get(word).is_some_and(|w| w & (1 << (at % 64)) != 0)
        };
        self.paint
            .values()
            .filter(has)
            .flat_map(|paint| &paint.parents)
            .filter(|parent| self.paint.get(*parent).is_some_and(|p| p.trunk != 0))
            .copied()
            .collect()
    }
}

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
        while !self.seen.contains(&id) && self.queue.peek().is_some_and(|(time, _)| *time >= wanted.time) {
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
        lost.sort_unstable_by(|a, b| b.cmp(a));
        let mut covered = HashSet::new();
        let mut tips = Vec::new();
        for (_, id) in lost {
            if !covered.contains(&id) {
                tips.push(id);
                self.cover(id, &mut covered);
            }
        }
        tips
    }

    fn cover(&mut self, from: ObjectId, covered: &mut HashSet<ObjectId>) {
        let mut queue = vec![from];
        while let Some(id) = queue.pop() {
            if covered.insert(id) && !self.contains(id) {
                queue.extend(self.commits.parse(id).map(|p| p.parents).unwrap_or_default());
            }
        }
    }
}

fn peel(repo: &gix::Repository, id: ObjectId) -> Option<ObjectId> {
    let object = repo.find_object(id).ok()?;
    match object.kind {
        gix::objs::Kind::Commit => Some(id),
        gix::objs::Kind::Tag => Some(object.peel_to_commit().ok()?.id),
        _ => None,
    }
}

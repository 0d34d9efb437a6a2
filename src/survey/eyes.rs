//! What is read once for a whole clone: refs, trunk, the painted history, and what its configuration points at.

use std::cell::RefCell;
use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Stamp};
use crate::git::content;
use crate::git::history::{Commits, Painted, Reach, Standing, merge_bases, paint};
use crate::git::objects::Objects;
use crate::git::open::{Unreadable, open_clone_within, read_optional};
use crate::git::reflog::{self, Line};
use crate::git::refs::{SharedRefs, short};
use crate::git::registration::{Head, Registration};
use crate::judge::facts::{Container, HeadFacts, HistoryFacts, Landed, Trunk};
use crate::survey::discover::CloneSite;
use crate::vantage::paths::LocalPath;

/// A clone, opened.
pub struct CloneEyes {
    pub repo: gix::Repository,
    pub refs: SharedRefs,
    pub trunk: Option<Trunk>,
    /// Paths that the shared configuration points at (`core.hooksPath`, `core.worktree`, `include.path`), as they are written.
    pub pointed_at: Vec<(String, BString)>,
}

impl CloneEyes {
    /// `roots` bound what is read as evidence, `trunk` is the one that the user names.
    ///
    /// # Errors
    /// The clone can't be opened, or its refs can't be read.
    pub fn open(site: &CloneSite, roots: &[LocalPath], trunk: Option<&BStr>) -> Result<Self, Unreadable> {
        let repo = open_clone_within(&site.common, roots)?;
        let refs = SharedRefs::read(&site.common, repo.object_hash())?;
        let config = SharedConfig::read(&site.common)?;
        let trunk = refs.trunk(trunk, &config.remotes);
        Ok(Self { refs, trunk, pointed_at: config.pointed_at, repo })
    }

    /// Whether this is the trunk's own local branch.
    pub fn is_trunk(&self, branch: &BString) -> bool {
        self.trunk.as_ref().is_some_and(|t| t.refs.contains(branch))
    }

    /// Walks the history once for all branches and all detached HEADs among `registrations`.
    pub fn paint<'r>(&self, commits: &'r Commits<'r>, registrations: &[Registration]) -> History<'r> {
        let branches = self.refs.branches().filter(|(name, _)| !self.is_trunk(name));
        let mut tips: Vec<(BString, ObjectId)> = branches.map(|(name, id)| (name.clone(), id)).collect();
        let named = tips.len();
        tips.extend(registrations.iter().filter_map(|r| match &r.head {
            Ok(Head::Detached(id)) => Some((BString::default(), *id)),
            _ => None,
        }));
        self.walk(commits, tips, named)
    }

    /// Walks the history for `registration` alone; only where its work has not landed also for all that could contain
    /// it, so that a removal costs what lies between its tip and the trunk.
    pub fn paint_one<'r>(&self, commits: &'r Commits<'r>, registration: &Registration) -> History<'r> {
        let tip = match &registration.head {
            Ok(Head::Branch(name)) => self.refs.resolve(name.as_bstr()),
            Ok(Head::Detached(id)) => Some(*id),
            Err(_) => None,
        };
        let alone = self.walk(commits, tip.map(|id| (BString::default(), id)).into_iter().collect(), 0);
        match tip.is_some_and(|tip| matches!(alone.stands(tip).0, Landed::No { .. })) {
            true => self.paint(commits, std::slice::from_ref(registration)),
            false => alone,
        }
    }

    /// A history that knows of no tip: what has no registration is not asked for it.
    pub fn unpainted<'r>(&self, commits: &'r Commits<'r>) -> History<'r> {
        self.walk(commits, Vec::new(), 0)
    }

    /// From the trunk and from `tips`, of which the first `named` are branches.
    fn walk<'r>(
        &self,
        commits: &'r Commits<'r>,
        tips: Vec<(BString, ObjectId)>,
        named: usize,
    ) -> History<'r> {
        let names = self.trunk.iter().flat_map(|t| &t.refs);
        let trunk: Vec<(BString, ObjectId)> =
            names.filter_map(|name| Some((name.clone(), self.refs.resolve(name.as_bstr())?))).collect();
        let ids: Vec<ObjectId> = trunk.iter().map(|(_, id)| *id).collect();
        let painted = paint(commits, &ids, tips);
        History { commits, painted, trunk, named, content: RefCell::default() }
    }
}

/// The painted history of a clone, and what its tips are.
pub struct History<'r> {
    commits: &'r Commits<'r>,
    painted: Painted,
    trunk: Vec<(BString, ObjectId)>,
    /// How many of the tips are branches; the others are detached HEADs.
    named: usize,
    /// Which tips' content has landed, and in which trunk ref, as far as it was asked.
    content: RefCell<HashMap<usize, Option<usize>>>,
}

/// What the history says of one worktree depends on these.
pub struct Worktree<'a> {
    pub site: &'a CloneSite,
    pub entry: &'a Dir,
    pub registration: &'a Registration,
    pub head: &'a HeadFacts,
    /// When it was enrolled.
    pub enrolled: Option<Stamp>,
    /// A branch that is to be deleted takes its reflog along.
    pub branch_may_go: bool,
}

impl History<'_> {
    /// Answers the question of history for `worktree`; with `reach` also which commits need an anchor.
    ///
    /// # Errors
    /// An object or a reflog can't be read, or not in time.
    pub fn ask(
        &self,
        eyes: &CloneEyes,
        worktree: &Worktree<'_>,
        reach: Option<&mut Reach<'_>>,
    ) -> Result<HistoryFacts, Unreadable> {
        let branch_log = match &worktree.head.branch {
            Some(branch) => branch_log(worktree.site, branch)?,
            None => Vec::new(),
        };
        let own_log = reflog::read(worktree.entry, "logs/HEAD")?;
        let (landed, containers) = match worktree.head.tip {
            Some(tip) => self.stands(tip),
            None => (Landed::No { ahead: None }, Vec::new()),
        };
        let born = [worktree.enrolled, own_log.first().map(|l| l.at), worktree.registration.made];
        let anchors = match reach {
            Some(reach) => anchors(worktree, &branch_log, &landed, reach)?,
            None => Vec::new(),
        };
        let has_own_commit = worktree.head.tip.is_some_and(|tip| self.has_own_commit(tip, &branch_log));
        self.commits.in_time()?;
        Ok(HistoryFacts {
            trunk: eyes.trunk.clone(),
            landed,
            containers,
            has_own_commit,
            born: born.into_iter().flatten().max(),
            anchors,
        })
    }

    /// Whether everything that was asked so far was answered.
    ///
    /// # Errors
    /// The time is over.
    pub fn in_time(&self) -> Result<(), Unreadable> {
        self.commits.in_time()
    }

    /// Whether a commit that the branch's reflog shows to be made on it is part of what it is now: one that was reset
    /// away is no beginning.
    fn has_own_commit(&self, tip: ObjectId, branch_log: &[Line]) -> bool {
        let made: Vec<ObjectId> =
            branch_log.iter().rev().filter(|l| reflog::makes_commit(l)).map(|l| l.new).collect();
        made.contains(&tip) || {
            let mut reach = Reach::new(self.commits, std::iter::once(tip));
            made.into_iter().any(|commit| reach.contains(commit))
        }
    }

    fn stands(&self, tip: ObjectId) -> (Landed, Vec<Container>) {
        let unknown = (Landed::No { ahead: None }, Vec::new());
        let by_ancestry = |t: usize| (Landed::Ancestry { trunk_ref: self.trunk[t].0.clone() }, Vec::new());
        if let Some(t) = self.trunk.iter().position(|(_, id)| *id == tip) {
            // Its commit has to be there, and to be what its name says.
            return self.commits.tree(tip).map_or(unknown, |_| by_ancestry(t));
        }
        let Some(at) = self.painted.position(tip) else { return unknown };
        match self.painted.standing(at) {
            Standing::InTrunk(t) => by_ancestry(t),
            Standing::Unknown => unknown,
            Standing::Ahead(ahead) => match self.content_landed(at) {
                Some(t) => (Landed::Content { trunk_ref: self.trunk[t].0.clone() }, Vec::new()),
                None => (Landed::No { ahead: Some(ahead) }, self.containers(at)),
            },
        }
    }

    /// Live branches that tip number `at` travels in: neither trunk nor landed, by ancestry or by content.
    fn containers(&self, at: usize) -> Vec<Container> {
        let named = self.painted.containers(at).into_iter().filter(|(other, _)| *other < self.named);
        let live = named.filter(|(other, _)| self.content_landed(*other).is_none());
        live.map(|(other, ahead)| {
            let (name, tip) = self.painted.tip(other);
            Container { branch: short(name.as_bstr()).to_owned(), tip: *tip, ahead }
        })
        .collect()
    }

    /// The first trunk ref in which the content of tip number `at` has landed.
    fn content_landed(&self, at: usize) -> Option<usize> {
        if let Some(known) = self.content.borrow().get(&at) {
            return *known;
        }
        let found =
            (0..self.trunk.len()).find(|t| self.content_landed_in(at, self.trunk[*t].1) == Some(true));
        self.content.borrow_mut().insert(at, found);
        found
    }

    /// Whether the content of tip number `at` has landed in `trunk`; `None` as far as that can't be told: an object is
    /// missing (shallow and partial clones), or there is no single best common ancestor.
    fn content_landed_in(&self, at: usize, trunk: ObjectId) -> Option<bool> {
        let objects = Objects { repo: self.commits.repo(), verified: self.commits.verified() };
        let tree = |id| self.commits.tree(id);
        let tip = self.painted.tip(at).1;
        let (tip_tree, trunk_tree) = (tree(tip)?, tree(trunk)?);
        let stop = self.commits.stop();
        let landed_from =
            |base: ObjectId| content::has_landed(objects, tree(base)?, tip_tree, trunk_tree, stop).ok();
        // Most branches have not landed, which a guess at the base shows; only what seems to have landed is worth the
        // walk for the true one.
        let guess = self.painted.fork(at)?;
        if !landed_from(guess)? {
            return Some(false);
        }
        match merge_bases(self.commits, tip, trunk)?.as_slice() {
            [base] if *base == guess => Some(true),
            [base] => landed_from(*base),
            _ => None,
        }
    }
}

/// The reflog of a branch lies in the common directory.
pub fn branch_log(site: &CloneSite, branch: &BString) -> Result<Vec<Line>, Unreadable> {
    let mut path = BString::from("logs/");
    path.extend_from_slice(branch);
    reflog::read(&site.common, path.to_path_lossy().as_ref())
}

/// Commits that only the worktree's own reflogs and names hold.
fn anchors(
    worktree: &Worktree<'_>,
    branch_log: &[Line],
    landed: &Landed,
    reach: &mut Reach<'_>,
) -> Result<Vec<ObjectId>, Unreadable> {
    let branch_log = match worktree.branch_may_go && matches!(landed, Landed::Ancestry { .. }) {
        true => branch_log,
        false => &[],
    };
    let own_logs = reflog::all_below(worktree.entry, "logs")?;
    let logged = own_logs.iter().chain(branch_log).flat_map(|line| [line.old, line.new]);
    let mut ids: Vec<ObjectId> = logged.filter(|id| !id.is_null()).collect();
    ids.extend(names_of_commits(worktree.entry)?);
    Ok(reach.strays(ids))
}

/// What the worktree's pseudo refs name (gitglossary(7)); those of an operation in progress keep it anyway.
fn names_of_commits(entry: &Dir) -> Result<Vec<ObjectId>, Unreadable> {
    const NAMES: [&str; 3] = ["ORIG_HEAD", "REBASE_HEAD", "FETCH_HEAD"];
    const LIMIT: u64 = 4 << 20;
    let mut ids = Vec::new();
    for name in NAMES {
        let bytes = read_optional(entry, name, LIMIT)?.unwrap_or_default();
        // FETCH_HEAD has a line for each branch that was fetched, its commit first.
        let words = bytes.lines().filter_map(|line| line.fields().next());
        ids.extend(words.filter_map(|word| ObjectId::from_hex(word).ok()));
    }
    Ok(ids)
}

/// What the shared configuration says that matters here.
pub(crate) struct SharedConfig {
    /// Values that name a path.
    pub(crate) pointed_at: Vec<(String, BString)>,
    pub(crate) remotes: Vec<BString>,
}

impl SharedConfig {
    fn read(common: &Dir) -> Result<Self, Unreadable> {
        let bytes = read_optional(common, "config", 4 << 20)?.unwrap_or_default();
        Self::parse(&bytes).map_err(|why| Unreadable(format!("{}/config: {why}", common.path())))
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut found = Self { pointed_at: Vec::new(), remotes: Vec::new() };
        let config = crate::git::open::parse_config(bytes)?;
        for section in config.sections() {
            let name = section.header().name().to_str_lossy().to_ascii_lowercase();
            if name == "remote" {
                found.remotes.extend(section.header().subsection_name().map(ToOwned::to_owned));
            }
            let keys: &[&str] = match name.as_str() {
                "core" => &["hooksPath", "worktree"],
                "include" | "includeif" => &["path"],
                _ => continue,
            };
            for key in keys {
                let values = section.values(key).into_iter();
                found.pointed_at.extend(values.map(|value| (format!("{name}.{key}"), value)));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;

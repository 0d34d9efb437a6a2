//! What is read once for a whole clone: refs, trunk, the painted history, and what its configuration points at.

use bstr::{BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Stamp};
use crate::git::content;
use crate::git::history::{Commits, Painted, Reach, Standing, paint};
use crate::git::open::{Unreadable, open_clone, read_optional};
use crate::git::reflog::{self, Line};
use crate::git::refs::{SharedRefs, short};
use crate::git::registration::{Head, Registration};
use crate::judge::facts::{Container, HeadFacts, HistoryFacts, Landed, Trunk};
use crate::stop::Stop;
use crate::survey::discover::CloneSite;

/// A clone, opened.
pub struct CloneEyes {
    pub repo: gix::Repository,
    pub refs: SharedRefs,
    pub trunk: Option<Trunk>,
    /// Paths that the shared configuration points at (`core.hooksPath`, `include.path`), as they are written.
    pub pointed_at: Vec<(String, BString)>,
}

impl CloneEyes {
    /// # Errors
    /// The clone can't be opened, or its refs can't be read.
    pub fn open(site: &CloneSite, trunk: Option<&str>) -> Result<Self, Unreadable> {
        let repo = open_clone(&site.common)?;
        let refs = SharedRefs::read(&repo)?;
        let trunk = refs.trunk(trunk);
        Ok(Self { refs, trunk, pointed_at: pointed_at(&site.common)?, repo })
    }

    /// Whether this is the trunk's own local branch.
    pub fn is_trunk(&self, branch: &BString) -> bool {
        self.trunk.as_ref().is_some_and(|t| t.refs.contains(branch))
    }

    /// Walks the history once for all branches and all detached HEADs among `registrations`.
    pub fn paint(&self, commits: &Commits<'_>, registrations: &[Registration], stop: &Stop) -> History {
        let trunk: Vec<(BString, ObjectId)> = self
            .trunk
            .iter()
            .flat_map(|t| &t.refs)
            .filter_map(|name| Some((name.clone(), self.refs.resolve(name.as_bstr())?)))
            .collect();
        let branches = self.refs.branches().filter(|(name, _)| !self.is_trunk(name));
        let mut tips: Vec<(BString, ObjectId)> = branches.map(|(name, id)| (name.clone(), id)).collect();
        let named = tips.len();
        tips.extend(registrations.iter().filter_map(|r| match &r.head {
            Ok(Head::Detached(id)) => Some((BString::default(), *id)),
            _ => None,
        }));
        let ids: Vec<ObjectId> = trunk.iter().map(|(_, id)| *id).collect();
        History { painted: paint(commits, &ids, tips, stop), trunk, named }
    }
}

/// The painted history of a clone, and what its tips are.
pub struct History {
    painted: Painted,
    trunk: Vec<(BString, ObjectId)>,
    /// How many of the tips are branches; the others are detached HEADs.
    named: usize,
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

impl History {
    /// Answers the question of history for `worktree`; with `reach` also which commits need an anchor.
    ///
    /// # Errors
    /// An object or a reflog can't be read.
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
            Some(tip) => self.stands(eyes, tip)?,
            None => (Landed::No { ahead: None }, Vec::new()),
        };
        let born = [worktree.enrolled, own_log.first().map(|l| l.at), worktree.registration.made];
        let anchors = match reach {
            Some(reach) => anchors(worktree, &own_log, &branch_log, &landed, reach)?,
            None => Vec::new(),
        };
        Ok(HistoryFacts {
            trunk: eyes.trunk.clone(),
            landed,
            containers,
            has_own_commit: branch_log.iter().any(reflog::makes_commit),
            born: born.into_iter().flatten().max(),
            anchors,
        })
    }

    fn stands(&self, eyes: &CloneEyes, tip: ObjectId) -> Result<(Landed, Vec<Container>), Unreadable> {
        if let Some((name, _)) = self.trunk.iter().find(|(_, id)| *id == tip) {
            return Ok((Landed::Ancestry { trunk_ref: name.clone() }, Vec::new()));
        }
        let Some(at) = self.painted.position(tip) else {
            return Ok((Landed::No { ahead: None }, Vec::new()));
        };
        match self.painted.standing(at) {
            Standing::InTrunk(t) => Ok((Landed::Ancestry { trunk_ref: self.trunk[t].0.clone() }, Vec::new())),
            Standing::Unknown => Ok((Landed::No { ahead: None }, Vec::new())),
            Standing::Ahead(ahead) => {
                for (name, trunk) in &self.trunk {
                    if self.content_landed(&eyes.repo, at, tip, *trunk)? {
                        return Ok((Landed::Content { trunk_ref: name.clone() }, Vec::new()));
                    }
                }
                let containers =
                    self.painted.containers(at).into_iter().filter(|(other, _)| *other < self.named);
                let containers = containers.map(|(other, ahead)| {
                    let (name, tip) = self.painted.tip(other);
                    Container { branch: short(name.as_bstr()).to_owned(), tip: *tip, ahead }
                });
                Ok((Landed::No { ahead: Some(ahead) }, containers.collect()))
            }
        }
    }

    fn content_landed(
        &self,
        repo: &gix::Repository,
        at: usize,
        tip: ObjectId,
        trunk: ObjectId,
    ) -> Result<bool, Unreadable> {
        let forks = self.painted.forks(at);
        let base = match forks.iter().next() {
            Some(only) if forks.len() == 1 => *only,
            None => return Ok(false),
            Some(_) => match repo.merge_base(tip, trunk) {
                Ok(Some(base)) => base.detach(),
                // Nothing in common, or not known: as far as can be told, it has not landed.
                Ok(None) | Err(_) => return Ok(false),
            },
        };
        // A shallow or partial clone lacks objects: then its content has not landed as far as can be told.
        let tree = |id| repo.find_commit(id).ok().and_then(|c| c.tree_id().ok()).map(|t| t.detach());
        match (tree(base), tree(tip), tree(trunk)) {
            (Some(base), Some(tip), Some(trunk)) => {
                Ok(content::has_landed(repo, base, tip, trunk).unwrap_or(false))
            }
            _ => Ok(false),
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
    own_log: &[Line],
    branch_log: &[Line],
    landed: &Landed,
    reach: &mut Reach<'_>,
) -> Result<Vec<ObjectId>, Unreadable> {
    let branch_log = match worktree.branch_may_go && matches!(landed, Landed::Ancestry { .. }) {
        true => branch_log,
        false => &[],
    };
    let logged = own_log.iter().chain(branch_log).flat_map(|line| [line.old, line.new]);
    let mut ids: Vec<ObjectId> = logged.filter(|id| !id.is_null()).collect();
    for name in ["ORIG_HEAD", "AUTO_MERGE"] {
        let bytes = read_optional(worktree.entry, name, 4 << 10)?.unwrap_or_default();
        ids.extend(ObjectId::from_hex(bytes.trim_ascii()).ok());
    }
    Ok(reach.strays(ids))
}

/// Values of the shared configuration that name a path.
fn pointed_at(common: &Dir) -> Result<Vec<(String, BString)>, Unreadable> {
    let Some(bytes) = read_optional(common, "config", 4 << 20)? else { return Ok(Vec::new()) };
    let metadata = gix::config::file::Metadata::from(gix::config::Source::Local);
    let config = gix::config::File::from_bytes_no_includes(&bytes, metadata, Default::default())
        .map_err(|e| Unreadable(format!("{}/config: {}", common.path(), crate::git::open::chain(&e))))?;
    let mut found = Vec::new();
    for section in config.sections() {
        let name = section.header().name().to_str_lossy().to_ascii_lowercase();
        let key = match name.as_str() {
            "core" => "hooksPath",
            "include" | "includeif" => "path",
            _ => continue,
        };
        for value in section.values(key) {
            found.push((format!("{name}.{key}"), value));
        }
    }
    Ok(found)
}

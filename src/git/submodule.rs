//! Submodules of a worktree: their repositories lie in its administrative entry and go with it, so each must hold
//! nothing that its remote lacks.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString};
use gix::ObjectId;
use gix::head::Kind as Head;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::head::operations;
use crate::git::index::{Depth, Index, index_facts};
use crate::git::kinds::listed;
use crate::git::open::{Unreadable, chain, open_clone};
use crate::git::reflog;
use crate::judge::tree_facts::{IndexFacts, SubmoduleFacts, SubmoduleState};
use crate::stop::Stop;
use crate::vantage::paths::{RecordedPath, escape};

/// `modules` may be nested, and names may have slashes; deeper than this nothing is looked for.
const DEEPEST: usize = 128;

/// A loose reference holds an id or the name of another one.
const REFERENCE_LIMIT: u64 = 64 << 10;

/// A submodule's repository, opened.
pub struct Submodule {
    /// Where it is.
    pub git_dir: Dir,
    /// For its objects and its config.
    pub repo: gix::Repository,
    /// What its checkout should have.
    pub index: Index,
    facts: IndexFacts,
    /// What HEAD resolves to; `None` if no commit was made yet.
    head: Option<ObjectId>,
}

/// Finds the git directory that the `.git` of a submodule's checkout leads to.
///
/// It is `dot_git` itself where that is a directory. Else what the file records may be a path of another vantage: what
/// follows `worktrees/<entry>/modules/` in it (or the first `modules/` below which there is something) is looked up
/// beneath `entry`. One that lies elsewhere can't be judged here.
pub fn find(checkout: &Dir, entry: &Dir) -> Result<Dir, Unreadable> {
    let refused = |e: Refused| Unreadable::new(format_args!(".git: {e}"));
    let meta = checkout.meta(".git").map_err(refused)?;
    if meta.kind == Kind::Directory {
        return checkout.dir(".git").map_err(refused);
    }
    let bytes = checkout.read(".git", REFERENCE_LIMIT).map_err(refused)?;
    let recorded = bytes
        .strip_prefix(b"gitdir: ")
        .and_then(RecordedPath::parse)
        .and_then(|path| path.normalized())
        .ok_or_else(|| Unreadable::new(".git: it does not name a git directory"))?;
    let name = entry.path().file_name().unwrap_or_default();
    for tail in tails(&recorded, name) {
        let place = Path::new("modules").join(OsStr::from_bytes(&tail));
        match entry.dir(&place) {
            Ok(dir) => return Ok(dir),
            Err(Refused::Absent) => {}
            Err(e) => return Err(refused(e)),
        }
    }
    Err(Unreadable::new(format_args!(".git: {recorded} is not in the modules of this worktree")))
}

/// What may be the name of a module in `path`, the likeliest first.
fn tails(path: &RecordedPath, entry: &BStr) -> Vec<BString> {
    let parts: Vec<&BStr> = path.components().collect();
    let below = |at: usize| BString::from(bstr::join("/", &parts[at..]));
    let modules = |at: &usize| parts[*at] == "modules" && at + 1 < parts.len();
    let of_entry = |at: &usize| *at >= 2 && parts[at - 1] == entry && parts[at - 2] == "worktrees";
    if let Some(at) = (0..parts.len()).find(|at| modules(at) && of_entry(at)) {
        return vec![below(at + 1)];
    }
    (0..parts.len()).filter(modules).map(|at| below(at + 1)).collect()
}

impl Submodule {
    /// Opens the repository in `git_dir`, after seeing that what gix will read of it are plain files.
    pub fn open(git_dir: Dir, depth: Depth) -> Result<Self, Unreadable> {
        for (name, limit) in
            [("refs", REFERENCE_LIMIT), ("objects/pack", u64::MAX), ("objects/info", u64::MAX)]
        {
            match git_dir.dir(name) {
                Ok(dir) => only_plain_files(&dir, limit, 0)?,
                Err(Refused::Absent) => {}
                Err(e) => return Err(Unreadable::new(format_args!("{}/{name}: {e}", git_dir.path()))),
            }
        }
        let repo = open_clone(&git_dir)?;
        let wrong = |what: &str, e: &dyn std::error::Error| {
            Unreadable::new(format_args!("{}: {what}: {}", git_dir.path(), chain(e)))
        };
        let mut head = repo.head().map_err(|e| wrong("HEAD", &e))?;
        let head = match head.kind {
            Head::Unborn(_) => None,
            _ => Some(head.peel_to_commit().map_err(|e| wrong("HEAD", &e))?),
        };
        let tree = match &head {
            Some(commit) => Some(commit.tree_id().map_err(|e| wrong("HEAD", &e))?.detach()),
            None => None,
        };
        let head = head.map(|commit| commit.id);
        let (facts, index) = index_facts(&git_dir, &repo, tree, depth)?;
        Ok(Self { git_dir, repo, index, facts, head })
    }

    /// What the repository says, without a look at its checkout. `wanted`: the commit that the index of the
    /// superproject names; `None` if nothing is checked out.
    pub fn state(&self, wanted: Option<ObjectId>, stop: &Stop) -> SubmoduleState {
        match self.unpushed(stop) {
            Err(Unreadable(why)) => return SubmoduleState::Unreadable(why),
            Ok(Some(what)) => return SubmoduleState::Unpushed(what),
            Ok(None) => {}
        }
        match self.changed(wanted) {
            Err(Unreadable(why)) => SubmoduleState::Unreadable(why),
            Ok(Some(what)) => SubmoduleState::Changed(what),
            Ok(None) => SubmoduleState::Clean,
        }
    }

    fn changed(&self, wanted: Option<ObjectId>) -> Result<Option<String>, Unreadable> {
        if let Some(operation) = operations(&self.git_dir)?.first() {
            return Ok(Some(format!("an operation is under way ({})", operation.kind)));
        }
        if let Some(wanted) = wanted.filter(|wanted| self.head != Some(*wanted)) {
            let head = self.head.map_or("no commit".to_owned(), |id| id.to_hex_with_len(10).to_string());
            return Ok(Some(format!("{head} is checked out, not {}", wanted.to_hex_with_len(10))));
        }
        let IndexFacts { staged, conflicted, intent_to_add, missing: _ } = &self.facts;
        for (what, sample) in [("staged", staged), ("conflicted", conflicted), ("added", intent_to_add)] {
            if let Some(path) = sample.first.first() {
                return Ok(Some(format!("{} is {what}", escape(path))));
            }
        }
        Ok(None)
    }

    /// The first name whose commits no remote-tracking ref reaches. All refs count, `refs/stash` and per-worktree ones
    /// too, HEAD, and what only a reflog names: `git submodule update` leaves commits on a detached HEAD to that alone.
    fn unpushed(&self, stop: &Stop) -> Result<Option<String>, Unreadable> {
        if let Some(name) = self.worktree_of_its_own()? {
            return Ok(Some(format!("it has a worktree of its own, {name}")));
        }
        let wrong = |e: &dyn std::error::Error| {
            Unreadable::new(format_args!("{}: refs: {}", self.git_dir.path(), chain(e)))
        };
        let (mut pushed, mut wanted) = (Vec::new(), Vec::new());
        wanted.extend(self.head.map(|id| (id, "HEAD".to_owned())));
        let platform = self.repo.references().map_err(|e| wrong(&e))?;
        for reference in platform.all().map_err(|e| wrong(&e))? {
            let mut reference = reference.map_err(|e| wrong(&e))?;
            let name = reference.name().as_bstr().to_owned();
            let remote = name.starts_with(b"refs/remotes/");
            match (remote, reference.peel_to_commit()) {
                (true, Ok(commit)) => pushed.push(commit.id),
                (false, Ok(commit)) => wanted.push((commit.id, escape(&name))),
                // A dangling `refs/remotes/origin/HEAD` reaches nothing, so it proves nothing.
                (true, Err(_)) => {}
                (false, Err(e)) => return Err(wrong(&e)),
            }
        }
        wanted.extend(self.logged()?.into_iter().map(|id| (id, "its reflog".to_owned())));
        self.first_not_reached(wanted, pushed, stop)
    }

    /// The commits that its reflogs name and that are there. Those of remote-tracking refs name what others made.
    fn logged(&self) -> Result<BTreeSet<ObjectId>, Unreadable> {
        let wrong = |what: &dyn std::fmt::Display| {
            Unreadable::new(format_args!("{}/logs: {what}", self.git_dir.path()))
        };
        let mut lines = reflog::read(&self.git_dir, "logs/HEAD")?;
        match self.git_dir.dir("logs/refs") {
            Ok(refs) => {
                for (name, kind) in listed(&refs)?.into_iter().filter(|(name, _)| name != b"remotes") {
                    let name = Path::new(OsStr::from_bytes(&name));
                    lines.extend(match kind {
                        Kind::Directory => reflog::all_below(&refs, name)?,
                        _ => reflog::read(&refs, name)?,
                    });
                }
            }
            Err(Refused::Absent) => {}
            Err(refused) => return Err(wrong(&refused)),
        }
        let ids = lines.iter().flat_map(|line| [line.old, line.new]);
        let mut found = BTreeSet::new();
        for id in ids.filter(|id| !id.is_null() && id.kind() == self.repo.object_hash()) {
            let header = self.repo.try_find_header(id).map_err(|e| wrong(&chain(&e)))?;
            // What git has dropped already can't be lost.
            if header.is_some_and(|header| header.kind() == gix::objs::Kind::Commit) {
                found.insert(id);
            }
        }
        Ok(found)
    }

    fn worktree_of_its_own(&self) -> Result<Option<String>, Unreadable> {
        let names = match self.git_dir.dir("worktrees") {
            Ok(dir) => dir.names(),
            Err(Refused::Absent) => return Ok(None),
            Err(e) => Err(e),
        };
        let names =
            names.map_err(|e| Unreadable::new(format_args!("{}/worktrees: {e}", self.git_dir.path())))?;
        Ok(names.first().map(|name| escape(name)))
    }

    /// Walks what `pushed` reaches, newest first, until all of `wanted` were met.
    fn first_not_reached(
        &self,
        wanted: Vec<(ObjectId, String)>,
        pushed: Vec<ObjectId>,
        stop: &Stop,
    ) -> Result<Option<String>, Unreadable> {
        use gix::revision::walk::Sorting;
        let mut open: HashSet<ObjectId> = wanted.iter().map(|(id, _)| *id).collect();
        pushed.iter().for_each(|id| {
            open.remove(id);
        });
        let wrong = |e: &dyn std::error::Error| {
            Unreadable::new(format_args!("{}: history: {}", self.git_dir.path(), chain(e)))
        };
        if !open.is_empty() && !pushed.is_empty() {
            let newest_first = Sorting::ByCommitTime(Default::default());
            let walk = self.repo.rev_walk(pushed).sorting(newest_first).use_commit_graph(false);
            for (count, commit) in walk.all().map_err(|e| wrong(&e))?.enumerate() {
                open.remove(&commit.map_err(|e| wrong(&e))?.id);
                if open.is_empty() {
                    break;
                }
                if count % 256 == 0 && stop.is_set() {
                    return Err(Unreadable::new("the run was asked to stop"));
                }
            }
        }
        let first = wanted.into_iter().find(|(id, _)| open.contains(id));
        Ok(first.map(|(id, name)| format!("{name} ({})", id.to_hex_with_len(10))))
    }
}

/// Sees that `dir` holds directories and regular files of at most `limit` bytes, and nothing else.
fn only_plain_files(dir: &Dir, limit: u64, depth: usize) -> Result<(), Unreadable> {
    let wrong =
        |name: &[u8], e: Refused| Unreadable::new(format_args!("{}/{}: {e}", dir.path(), escape(name)));
    if depth > DEEPEST {
        return Err(Unreadable::new(format_args!("{}: it is deeper than {DEEPEST} levels", dir.path())));
    }
    for name in dir.names().map_err(|e| wrong(b"", e))? {
        let path = Path::new(OsStr::from_bytes(&name));
        let meta = dir.meta(path).map_err(|e| wrong(&name, e))?;
        match meta.kind {
            Kind::Directory => {
                only_plain_files(&dir.dir(path).map_err(|e| wrong(&name, e))?, limit, depth + 1)?;
            }
            Kind::File if meta.size <= limit => {}
            Kind::File => return Err(wrong(&name, Refused::TooLarge { size: meta.size, limit })),
            kind => return Err(wrong(&name, Refused::WrongKind(kind))),
        }
    }
    Ok(())
}

/// Every repository below `<entry>/modules`, checked out or not.
pub fn modules_facts(entry: &Dir, depth: Depth, stop: &Stop) -> Vec<SubmoduleFacts> {
    let mut all = Vec::new();
    match entry.dir("modules") {
        Ok(dir) => repositories_below(&dir, BString::default(), 0, depth, stop, &mut all),
        Err(Refused::Absent) => {}
        Err(e) => all.push(unreadable("modules", e)),
    }
    all.sort_by(|a, b| a.path.cmp(&b.path));
    all
}

fn unreadable(path: impl Into<BString>, why: impl std::fmt::Display) -> SubmoduleFacts {
    SubmoduleFacts { path: path.into(), state: SubmoduleState::Unreadable(why.to_string()) }
}

/// Looks through one directory of `modules`: names with slashes make directories that hold repositories only.
fn repositories_below(
    dir: &Dir,
    path: BString,
    level: usize,
    depth: Depth,
    stop: &Stop,
    all: &mut Vec<SubmoduleFacts>,
) {
    if level > DEEPEST || stop.is_set() {
        let why = if level > DEEPEST { "it is nested too deeply" } else { "the run was asked to stop" };
        return all.push(unreadable(path, why));
    }
    let names = match dir.names() {
        Ok(names) => names,
        Err(e) => return all.push(unreadable(path, e)),
    };
    let has = |name: &str| names.binary_search_by(|n| n.as_slice().cmp(name.as_bytes())).is_ok();
    if has("HEAD") && has("objects") && has("refs") {
        all.push(module(dir, path.clone(), depth, stop));
        let inner = below(&path, b"modules");
        return match dir.dir("modules") {
            Ok(dir) => repositories_below(&dir, inner, level + 1, depth, stop, all),
            Err(Refused::Absent) => {}
            Err(e) => all.push(unreadable(inner, e)),
        };
    }
    for name in names {
        let inner = below(&path, &name);
        match dir.dir(OsStr::from_bytes(&name)) {
            Ok(dir) => repositories_below(&dir, inner, level + 1, depth, stop, all),
            // A file that belongs to no repository, or half of one: nobody can say what it is.
            Err(e) => all.push(unreadable(inner, e)),
        }
    }
}

fn below(path: &BString, name: &[u8]) -> BString {
    let mut inner = path.clone();
    if !inner.is_empty() {
        inner.push(b'/');
    }
    inner.extend_from_slice(name);
    inner
}

fn module(dir: &Dir, path: BString, depth: Depth, stop: &Stop) -> SubmoduleFacts {
    let opened = dir.dir(".").map_err(Unreadable::new).and_then(|dir| Submodule::open(dir, depth));
    match opened {
        Ok(submodule) => SubmoduleFacts { path, state: submodule.state(None, stop) },
        Err(Unreadable(why)) => SubmoduleFacts { path, state: SubmoduleState::Unreadable(why) },
    }
}

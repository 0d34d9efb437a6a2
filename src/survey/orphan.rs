//! Checkouts whose registration is gone: nothing says which commit they were, so the commit is found by its content.
//!
//! A directory may be told to be a copy only if every file that is not ignored by the commit's own rules equals the tree
//! of a commit that a ref reaches, with no file more or less. Which commit that is costs little to find: trees are
//! compared newest first, and what was compared once is remembered. Whether nothing else is there, the walk then says.

use std::collections::HashSet;
use std::sync::Arc;

use bstr::{BStr, BString};
use gix::ObjectId;
use gix::revision::walk::Sorting;

use crate::beneath::Dir;
use crate::git::index::{Depth, Index};
use crate::git::open::{Unreadable, chain};
use crate::judge::tree_facts::TreeFacts;
use crate::stop::Stop;
use crate::survey::walk::likeness::Likeness;
use crate::survey::walk::{Checkout, Observer, Options, RuleFiles, Thoroughness, walk_observed};

/// So many commits that have all their files there are walked against before the search is given up.
const MOST_WALKS: usize = 32;

/// Blobs above this many bytes are only seen to exist; hashing them again would take their size in memory.
const HASHED_LIMIT: u64 = 256 << 20;

/// What an orphan is a copy of. The facts hold as for any checkout: nested repositories, mounts, precious files and what
/// can't be deleted keep an equal one too.
#[derive(Debug)]
pub enum OrphanMatch {
    /// It has exactly the files of `commit`, which `reference` (a full name) reaches.
    Equal { commit: ObjectId, reference: BString, tree: TreeFacts },
    /// No commit that a ref reaches has its files; the facts are those against the newest one.
    Differs { why: String, tree: TreeFacts },
}

impl OrphanMatch {
    pub fn tree(&self) -> &TreeFacts {
        match self {
            Self::Equal { tree, .. } | Self::Differs { tree, .. } => tree,
        }
    }
}

/// A commit that a ref names, with that ref.
struct Tip {
    commit: ObjectId,
    reference: BString,
}

/// Looks in the clone `repo`, whose common directory is `common`, for the commit that the orphan `checkout` is a copy of.
/// Branches, tags and remote-tracking branches count. Everything is compared by content, whatever `options` say of depth
/// and thoroughness.
pub fn match_orphan(
    checkout: &Dir,
    common: &Dir,
    repo: &gix::Repository,
    options: &Options<'_>,
) -> Result<OrphanMatch, Unreadable> {
    let options = Options { depth: Depth::BeforeRemoval, thoroughness: Thoroughness::Everything, ..*options };
    let tips = tips(repo)?;
    let mut likeness = Likeness::new(checkout, common, repo, options.stop)?;
    let mut seen = HashSet::new();
    let mut walks = 0;
    for commit in newest_first(repo, &tips)? {
        if options.stop.is_set() {
            return Err(stopped());
        }
        let commit = commit?;
        let tree = tree_of(repo, commit)?;
        if !seen.insert(tree) || !likeness.is_like(tree)? {
            continue;
        }
        walks += 1;
        if walks > MOST_WALKS {
            let why = format!("{MOST_WALKS} commits have all their files here, and it has more");
            return differs(checkout, common, repo, &options, &tips, why);
        }
        let facts = facts_against(checkout, common, repo, &options, Some(tree), &())?;
        if is_equal(&facts) {
            check_objects(repo, tree, options.stop)?;
            let reference = reaching(repo, &tips, commit, options.stop)?;
            return Ok(OrphanMatch::Equal { commit, reference, tree: facts });
        }
    }
    let why = format!("none of {} trees that refs reach has exactly these files", seen.len());
    differs(checkout, common, repo, &options, &tips, why)
}

/// What the orphan `checkout` has that the newest commit of the clone has not: `observer` is told each path.
pub fn against_newest(
    checkout: &Dir,
    common: &Dir,
    repo: &gix::Repository,
    options: &Options<'_>,
    observer: &dyn Observer,
) -> Result<TreeFacts, Unreadable> {
    let options = Options { depth: Depth::BeforeRemoval, thoroughness: Thoroughness::Everything, ..*options };
    let tree = tips(repo)?.first().map(|tip| tree_of(repo, tip.commit)).transpose()?;
    facts_against(checkout, common, repo, &options, tree, observer)
}

fn stopped() -> Unreadable {
    Unreadable::new("the run was asked to stop")
}

fn differs(
    checkout: &Dir,
    common: &Dir,
    repo: &gix::Repository,
    options: &Options<'_>,
    tips: &[Tip],
    why: String,
) -> Result<OrphanMatch, Unreadable> {
    let tree = tips.first().map(|tip| tree_of(repo, tip.commit)).transpose()?;
    Ok(OrphanMatch::Differs { why, tree: facts_against(checkout, common, repo, options, tree, &())? })
}

/// The commits of all branches, tags and remote-tracking branches, the newest first.
fn tips(repo: &gix::Repository) -> Result<Vec<Tip>, Unreadable> {
    let wrong = |e: &dyn std::error::Error| Unreadable::new(format_args!("refs: {}", chain(e)));
    let mut tips = Vec::new();
    let platform = repo.references().map_err(|e| wrong(&e))?;
    for reference in platform.all().map_err(|e| wrong(&e))? {
        let mut reference = reference.map_err(|e| wrong(&e))?;
        let name = reference.name().as_bstr().to_owned();
        let counts =
            ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().any(|p| name.starts_with(p.as_bytes()));
        // A tag may name something else than a commit, a remote's HEAD may dangle: such a ref reaches no commit.
        if let Some(commit) = counts.then(|| reference.peel_to_commit().ok()).flatten() {
            let time = commit.time().map_err(|e| wrong(&e))?.seconds;
            tips.push((std::cmp::Reverse(time), name, commit.id));
        }
    }
    tips.sort();
    Ok(tips.into_iter().map(|(_, reference, commit)| Tip { commit, reference }).collect())
}

fn newest_first<'r>(
    repo: &'r gix::Repository,
    tips: &[Tip],
) -> Result<impl Iterator<Item = Result<ObjectId, Unreadable>> + 'r, Unreadable> {
    let wrong = |e: &dyn std::error::Error| Unreadable::new(format_args!("history: {}", chain(e)));
    let walk = repo
        .rev_walk(tips.iter().map(|tip| tip.commit))
        .sorting(Sorting::ByCommitTime(Default::default()))
        .use_commit_graph(false);
    let commits = walk.all().map_err(|e| wrong(&e))?;
    Ok(commits.map(move |commit| commit.map(|info| info.id).map_err(|e| wrong(&e))))
}

fn tree_of(repo: &gix::Repository, commit: ObjectId) -> Result<ObjectId, Unreadable> {
    let wrong = |e: &dyn std::error::Error| Unreadable::new(format_args!("commit {commit}: {}", chain(e)));
    Ok(repo.find_commit(commit).map_err(|e| wrong(&e))?.tree_id().map_err(|e| wrong(&e))?.detach())
}

/// Walks the checkout as if `tree` were its index (`None`: an empty one).
fn facts_against(
    checkout: &Dir,
    common: &Dir,
    repo: &gix::Repository,
    options: &Options<'_>,
    tree: Option<ObjectId>,
    observer: &dyn Observer,
) -> Result<TreeFacts, Unreadable> {
    let index = match tree {
        Some(tree) => Index::of_tree(repo, tree, BStr::new(""))?,
        None => Index::empty(repo.object_hash()),
    };
    let checkout = Checkout {
        dir: checkout,
        entry: None,
        common,
        repo,
        index: Arc::new(index),
        rules: RuleFiles::OnlyTracked,
    };
    let facts = walk_observed(&checkout, options, observer);
    if facts.interrupted { Err(stopped()) } else { Ok(facts) }
}

/// Nothing differs, and nothing was left out of the comparison.
fn is_equal(facts: &TreeFacts) -> bool {
    let TreeFacts { modified, mode_only, deleted, untracked, hidden, needs_filter, .. } = facts;
    let none = [modified, mode_only, deleted, untracked, hidden, needs_filter].iter().all(|s| s.is_empty());
    none && facts.unreadable.is_empty() && facts.fingerprint.is_some()
}

/// Sees that the clone has every object of `tree`, and that each is what its name says: a partial clone lacks some, and
/// then the orphan may hold the only copy.
fn check_objects(repo: &gix::Repository, tree: ObjectId, stop: &Stop) -> Result<(), Unreadable> {
    let wrong = |id: ObjectId, e: &dyn std::fmt::Display| Unreadable::new(format_args!("object {id}: {e}"));
    let mut pending = vec![tree];
    let mut seen = HashSet::new();
    while let Some(id) = pending.pop() {
        if stop.is_set() {
            return Err(stopped());
        }
        if !seen.insert(id) {
            continue;
        }
        let header = repo.find_header(id).map_err(|e| wrong(id, &chain(&e)))?;
        if header.size() > HASHED_LIMIT {
            continue;
        }
        let object = repo.find_object(id).map_err(|e| wrong(id, &chain(&e)))?;
        let actual = gix::objs::compute_hash(id.kind(), object.kind, &object.data)
            .map_err(|e| wrong(id, &chain(&e)))?;
        if actual != id {
            return Err(wrong(id, &"its content is another object's"));
        }
        if object.kind == gix::objs::Kind::Tree {
            for entry in object.into_tree().iter() {
                let entry = entry.map_err(|e| wrong(id, &chain(&e)))?;
                if !entry.mode().is_commit() {
                    pending.push(entry.object_id());
                }
            }
        }
    }
    Ok(())
}

/// The first ref from which `commit` is reached.
fn reaching(
    repo: &gix::Repository,
    tips: &[Tip],
    commit: ObjectId,
    stop: &Stop,
) -> Result<BString, Unreadable> {
    if let Some(tip) = tips.iter().find(|tip| tip.commit == commit) {
        return Ok(tip.reference.clone());
    }
    for tip in tips {
        for (count, ancestor) in newest_first(repo, std::slice::from_ref(tip))?.enumerate() {
            if ancestor? == commit {
                return Ok(tip.reference.clone());
            }
            if count % 256 == 0 && stop.is_set() {
                return Err(stopped());
            }
        }
    }
    Err(Unreadable::new(format_args!("commit {commit}: no ref reaches it any more")))
}

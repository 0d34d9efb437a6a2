//! Exactly what `drop --force` would lose: paths and commits, not samples.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString};
use gix::ObjectId;

use crate::beneath::Dir;
use crate::git::index::{Index, index_facts};
use crate::git::open::{Unreadable, open_clone, open_entry};
use crate::judge::facts::{Facts, Placement, Subject};
use crate::survey::discover::CloneSite;
use crate::survey::examine::Inquiry;
use crate::survey::orphan;
use crate::survey::walk::{self, Finding, Observer, RuleFiles, Thoroughness};

/// What only this worktree has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Each path with what it is: `modified`, `untracked`, ...
    pub paths: BTreeMap<BString, &'static str>,
    /// Commits that no shared ref reaches, with what names them; they get a ref before anything is removed.
    pub commits: Vec<(BString, ObjectId)>,
    /// The branch stays, with the commit that it is at.
    pub branch: Option<(BString, ObjectId)>,
}

/// Lists it by one more walk.
///
/// # Errors
/// Something can't be read: then nothing can be said of what would be lost, and nothing may be removed.
pub fn lost(facts: &Facts, site: &CloneSite, inquiry: &Inquiry<'_>) -> Result<Lost, Unreadable> {
    let mut lost = Lost::default();
    if let Some(head) = facts.head.answer() {
        lost.commits = head.stray.clone();
        lost.branch = head.branch.clone().zip(head.tip);
    }
    let main = site.main_worktree.as_ref().and_then(|path| Dir::open(path).ok());
    let options = walk::Options {
        depth: inquiry.depth,
        thoroughness: Thoroughness::Everything,
        known_checkouts: inquiry.known_checkouts,
        main_worktree: main.as_ref(),
        precious: inquiry.precious,
        stop: inquiry.stop,
    };
    let all = Collector::default();
    let seen = match (&facts.standing.placement, &facts.subject) {
        (placement, Subject::Registered { name, .. }) => {
            let entry = site
                .common
                .dir("worktrees")
                .and_then(|w| w.dir(name.as_os_str()))
                .map_err(Unreadable::new)?;
            let repo = open_entry(&site.common, &entry)?;
            let head = facts.head.answer().and_then(|h| h.tip);
            let tree = head.and_then(|id| repo.find_commit(id).ok()?.tree_id().ok()).map(|id| id.detach());
            let (staged, index) = index_facts(&entry, &repo, tree, inquiry.depth)?;
            if !staged.staged.is_empty() || !staged.conflicted.is_empty() || !staged.intent_to_add.is_empty()
            {
                lost.paths = staged_paths(&repo, tree, &index)?;
            }
            let Placement::Joined { path, .. } = placement else { return Ok(lost) };
            let dir = Dir::open(path).map_err(Unreadable::new)?;
            let checkout = walk::Checkout {
                dir: &dir,
                entry: Some(&entry),
                common: &site.common,
                repo: &repo,
                index: Arc::new(index),
                rules: RuleFiles::AsGit,
            };
            walk::walk_observed(&checkout, &options, &all)
        }
        (_, Subject::Orphan { path, .. }) => {
            let dir = Dir::open(path).map_err(Unreadable::new)?;
            orphan::against_newest(&dir, &site.common, &open_clone(&site.common)?, &options, &all)?
        }
        (_, Subject::Trash { .. }) => return Ok(lost),
    };
    if let Some((path, why)) = seen.unreadable.first() {
        return Err(Unreadable(format!("{}: {why}", crate::vantage::paths::escape(path))));
    }
    lost.paths.extend(all.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    Ok(lost)
}

/// Entries of the index that HEAD's tree does not have: the facts count them and keep a few, here all are named.
fn staged_paths(
    repo: &gix::Repository,
    tree: Option<ObjectId>,
    index: &Index,
) -> Result<BTreeMap<BString, &'static str>, Unreadable> {
    let committed = match tree {
        Some(tree) => Some(repo.index_from_tree(&tree).map_err(|e| Unreadable(format!("tree {tree}: {e}")))?),
        None => None,
    };
    let is_committed = |entry: &gix::index::Entry, path: &BStr| {
        let known = committed.as_ref().and_then(|c| c.entry_by_path(path));
        known.is_some_and(|k| k.id == entry.id && k.mode == entry.mode)
    };
    let entries = index.entries().iter().enumerate().filter(|(_, e)| !e.mode.is_sparse());
    Ok(entries
        .map(|(at, entry)| (index.path(at), entry))
        .filter(|(path, entry)| !is_committed(entry, path))
        .map(|(path, _)| (path.to_owned(), "staged"))
        .collect())
}

#[derive(Default)]
struct Collector(Mutex<BTreeMap<BString, &'static str>>);

impl Observer for Collector {
    fn found(&self, what: Finding, path: &BStr) {
        let what = match what {
            Finding::Modified => "modified",
            Finding::ModeOnly => "mode changed",
            Finding::Untracked => "untracked",
            Finding::Hidden => "hidden change",
            Finding::Precious => "ignored, nowhere else",
            // Nothing of it is only here, or the removal refuses it anyway.
            Finding::Deleted
            | Finding::Ignored
            | Finding::NeedsFilter
            | Finding::NestedRepository
            | Finding::NestedCheckout
            | Finding::Mount => return,
        };
        let mut all = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        all.insert(path.to_owned(), what);
    }
}

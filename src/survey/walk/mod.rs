//! One walk over a checkout that answers everything that is asked of its files: what differs from the index, what git
//! does not know, repositories and mounts inside, ignored files worth keeping, sizes, whether all of it can be deleted,
//! and a fingerprint of the whole.
//!
//! Workers take directories from a shared queue. Each directory is opened relative to its parent's handle, beneath it,
//! without symlinks and on the same mount; each name is looked at once, and merged with the index's entries of that
//! directory. What the user's own git configuration or the repository's would hide (`status.showUntrackedFiles`,
//! `core.excludesFile`, `submodule.*.ignore`, caches of untracked files, fsmonitor) is never asked.

mod deletable;
mod directory;
mod file;
mod findings;
mod fingerprint;
mod handle;
pub(in crate::survey) mod likeness;
mod listing;
mod rules;
mod tracked;

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bstr::{BStr, BString};

use crate::beneath::{Dir, Meta};
use crate::config::Precious;
use crate::git::convert::Settings;
use crate::git::index::{Depth, Index};
use crate::git::open::{Unreadable, read_optional};
use crate::judge::tree_facts::{SubmoduleFacts, TreeFacts};
use crate::stop::Stop;
use crate::vantage::paths::FileId;

pub use deletable::{Powers, hold_of_parent};
pub use findings::{Finding, Observer};
pub use fingerprint::{Unfinished, fingerprint_of};

use directory::{Job, Zone};
use findings::Found;
use rules::Rules;

/// What is walked.
#[derive(Debug)]
pub struct Checkout<'a> {
    /// Its top directory, which holds the `.git` file.
    pub dir: &'a Dir,
    /// The administrative entry, whose `modules` are the repositories of submodules; `None` if it is gone, and then
    /// every repository inside is a stranger.
    pub entry: Option<&'a Dir>,
    /// The clone's common directory: `info/exclude` and `info/attributes` are read there.
    pub common: &'a Dir,
    /// The entry, opened.
    pub repo: &'a gix::Repository,
    /// What should be in it.
    pub index: Arc<Index>,
    /// What decides which other files may be in it.
    pub rules: RuleFiles,
}

/// Which files decide what is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFiles {
    /// As git: every `.gitignore` that is there, and the clone's `info/exclude`.
    AsGit,
    /// Only `.gitignore` files that the index lists: a commit's own rules.
    OnlyTracked,
}

/// When the walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thoroughness {
    /// At the first finding that keeps the checkout; the facts are not complete then.
    UntilFirstHold,
    Everything,
}

/// How it is walked.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// How far git's own records are believed.
    pub depth: Depth,
    /// When it is enough.
    pub thoroughness: Thoroughness,
    /// Checkouts that the survey knows, this one among them or not: others inside are named and not entered.
    pub known_checkouts: &'a HashSet<FileId>,
    /// A precious file that is there too, equal, is no reason to keep this one.
    pub main_worktree: Option<&'a Dir>,
    /// Which ignored files are worth keeping.
    pub precious: &'a Precious,
    /// Asked at least once a directory, and within large ones.
    pub stop: &'a Stop,
}

/// Walks `checkout`. What can't be read becomes a fact.
pub fn walk(checkout: &Checkout<'_>, options: &Options<'_>) -> TreeFacts {
    walk_observed(checkout, options, &())
}

/// [`walk`], and tells `observer` every path of every finding.
pub fn walk_observed(checkout: &Checkout<'_>, options: &Options<'_>, observer: &dyn Observer) -> TreeFacts {
    match Walk::begin(checkout, options, observer) {
        Ok((walk, job)) => walk.run(job),
        Err(why) => {
            let mut found = Found::default();
            found.unreadable("", why);
            found.finish(false)
        }
    }
}

/// What belongs to one repository: the checkout's, or a submodule's.
pub(super) struct Tree {
    repo: gix::ThreadSafeRepository,
    settings: Settings,
    rule_files: RuleFiles,
    /// Bytes of a path from the checkout before it becomes one of this repository.
    prefix: usize,
    /// What is known of it, if it is a submodule's.
    submodule: Option<Mutex<SubmoduleFacts>>,
}

impl Tree {
    fn new(
        repo: &gix::Repository,
        rule_files: RuleFiles,
        submodule: Option<SubmoduleFacts>,
    ) -> Result<Self, Unreadable> {
        Ok(Self {
            settings: Settings::of(repo)?,
            repo: repo.clone().into_sync(),
            rule_files,
            prefix: submodule.as_ref().map_or(0, |s| s.path.len() + 1),
            submodule: submodule.map(Mutex::new),
        })
    }

    /// `path` from the checkout, from the root of this repository.
    fn inner<'p>(&self, path: &'p BStr) -> &'p BStr {
        path.get(self.prefix..).map_or(BStr::new(""), BStr::new)
    }
}

/// A walk under way.
pub(super) struct Walk<'a> {
    root: Dir,
    root_meta: Meta,
    entry: Option<&'a Dir>,
    options: &'a Options<'a>,
    observer: &'a dyn Observer,
    powers: Powers,
    found: Mutex<Found>,
    /// The submodules that were entered.
    submodules: Mutex<Vec<Arc<Tree>>>,
    /// Enough is known, or the run was asked to stop.
    ended: AtomicBool,
}

impl<'a> Walk<'a> {
    fn begin(
        checkout: &Checkout<'a>,
        options: &'a Options<'a>,
        observer: &'a dyn Observer,
    ) -> Result<(Self, Job), Unreadable> {
        let at = |e: crate::beneath::Refused| Unreadable::new(format_args!("{}: {e}", checkout.dir.path()));
        // Opened anew: where the caller's handle was read up to is its own affair.
        let root = checkout.dir.dir(".").map_err(at)?;
        let root_meta = root.own_meta().map_err(at)?;
        let rules = rules_of(checkout.common, checkout.rules)?;
        let tree = Tree::new(checkout.repo, checkout.rules, None)?;
        let mut found = Found::default();
        found.count_directory(&root_meta, false);
        found.modified_at(root_meta.mtime, BString::default);
        if let Some(why) = deletable::hold_of_mount(&root).map_err(at)? {
            found.undeletable("", why);
        } else if root_meta.undeletable_flag {
            found.undeletable("", crate::judge::tree_facts::UndeletableReason::Flag);
        }
        let range = 0..checkout.index.entries().len();
        let job = Job {
            parent: handle::Parent::Root,
            path: BString::default(),
            meta: root_meta,
            tree: Arc::new(tree),
            index: Arc::clone(&checkout.index),
            range,
            rules,
            zone: Zone::Tree,
            ignored: false,
            disposable: false,
        };
        let walk = Self {
            root,
            root_meta,
            entry: checkout.entry,
            options,
            observer,
            powers: Powers::of_this_process(),
            found: Mutex::new(found),
            submodules: Mutex::default(),
            ended: AtomicBool::new(false),
        };
        Ok((walk, job))
    }

    fn run(self, job: Job) -> TreeFacts {
        rayon::scope(|scope| self.visit(job, scope));
        let whole = !self.ended.into_inner();
        let mut found = self.found.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        for tree in self.submodules.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
            found.facts.submodules.extend(tree.submodule.as_ref().map(|s| locked(s).clone()));
        }
        found.finish(whole)
    }

    /// Visits one directory, and has those below it visited by whoever is free.
    fn visit<'s>(&'s self, job: Job, scope: &rayon::Scope<'s>)
    where
        'a: 's,
    {
        if self.ended.load(Ordering::Relaxed) {
            return;
        }
        let mut found = Found::default();
        let mut next = Vec::new();
        if !self.options.stop.is_set() {
            next = directory::visit(self, job, &mut found);
        }
        // Asked again: a visit ends early too, in a large directory or file.
        found.facts.interrupted = self.options.stop.is_set();
        if self.absorb(found).is_break() {
            return;
        }
        for job in next {
            scope.spawn(|scope| self.visit(job, scope));
        }
    }

    fn absorb(&self, found: Found) -> ControlFlow<()> {
        let enough = self.options.thoroughness == Thoroughness::UntilFirstHold && found.holds();
        let ends = enough || found.facts.interrupted;
        locked(&self.found).merge(found);
        if ends {
            self.ended.store(true, Ordering::Relaxed);
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// A worker that panicked left nothing half done: what is shared is only ever added to.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// The rules of the repository whose common directory is `common`, before any of its directories is looked at.
fn rules_of(common: &Dir, files: RuleFiles) -> Result<Rules, Unreadable> {
    let exclude = match files {
        RuleFiles::AsGit => read_optional(common, "info/exclude", rules::LIMIT)?,
        RuleFiles::OnlyTracked => None,
    };
    let attributes = read_optional(common, "info/attributes", rules::LIMIT)?;
    Ok(Rules::new(exclude.as_deref(), attributes))
}

#[cfg(test)]
mod tests;

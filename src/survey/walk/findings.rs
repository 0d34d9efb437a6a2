//! Collecting what workers find.

use bstr::{BStr, BString};

use crate::beneath::{Meta, Stamp};
use crate::judge::tree_facts::{
    Fingerprint, Sample, SubmoduleState, TreeFacts, Undeletable, UndeletableReason,
};
use crate::vantage::paths::FileId;

/// So many unreadable paths are kept: one is enough to keep the checkout, and a hostile tree may have any number.
const MOST_UNREADABLE: usize = 64;

/// What a path was found to be; the facts keep a sample of each, an [`Observer`] is told all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Finding {
    Modified,
    ModeOnly,
    Deleted,
    Untracked,
    Ignored,
    Hidden,
    NeedsFilter,
    NestedRepository,
    NestedCheckout,
    Precious,
    Mount,
}

/// Is told every finding, from whichever worker made it, with its path from the checkout.
pub trait Observer: Sync {
    fn found(&self, what: Finding, path: &BStr);
}

/// Looks away.
impl Observer for () {
    fn found(&self, _: Finding, _: &BStr) {}
}

/// What one worker found in one directory, or all of them together.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) facts: TreeFacts,
    /// Sum of the parts of the fingerprint.
    pub(super) sum: u128,
    /// Files with more than one name: identity, number of names, allocated bytes, ignored.
    pub(super) linked: Vec<(FileId, u64, u64, bool)>,
    /// A submodule holds the checkout; its facts are kept elsewhere.
    pub(super) holds: bool,
}

impl Found {
    pub(super) fn unreadable(&mut self, path: impl Into<BString>, why: impl ToString) {
        if self.facts.unreadable.len() < MOST_UNREADABLE {
            self.facts.unreadable.push((path.into(), why.to_string()));
        }
    }

    pub(super) fn undeletable(&mut self, path: impl Into<BString>, why: UndeletableReason) {
        let one = Undeletable { count: 1, path: path.into(), why };
        self.facts.undeletable = first_undeletable(self.facts.undeletable.take(), Some(one));
    }

    /// Counts the object at `path`, which is no directory.
    pub(super) fn count(&mut self, meta: &Meta, ignored: bool) {
        let size = &mut self.facts.size;
        size.files += 1;
        if meta.links > 1 {
            self.linked.push((meta.id, meta.links, meta.allocated, ignored));
            return;
        }
        size.freed += meta.allocated;
        if ignored {
            size.ignored += meta.allocated;
        }
    }

    /// Counts a directory.
    pub(super) fn count_directory(&mut self, meta: &Meta, ignored: bool) {
        let size = &mut self.facts.size;
        size.directories += 1;
        size.freed += meta.allocated;
        if ignored {
            size.ignored += meta.allocated;
        }
    }

    /// Notes a modification; `path` is made only if it is the newest so far.
    pub(super) fn modified_at(&mut self, mtime: Stamp, path: impl FnOnce() -> BString) {
        if self.facts.newest.as_ref().is_none_or(|(newest, _)| *newest < mtime) {
            self.facts.newest = Some((mtime, path()));
        }
    }

    /// Something here disqualifies the checkout for good, whatever else is in it.
    pub(super) fn holds(&self) -> bool {
        let f = &self.facts;
        let samples = [
            &f.modified,
            &f.mode_only,
            &f.deleted,
            &f.untracked,
            &f.hidden,
            &f.needs_filter,
            &f.nested_repositories,
            &f.precious,
            &f.mounts,
        ];
        self.holds
            || samples.iter().any(|s| !s.is_empty())
            || f.undeletable.is_some()
            || !f.unreadable.is_empty()
            || f.submodules.iter().any(|s| s.state != SubmoduleState::Clean)
    }

    pub(super) fn merge(&mut self, other: Found) {
        let Found { facts, sum, linked, holds } = other;
        self.holds |= holds;
        let mine = &mut self.facts;
        for (mine, other) in [
            (&mut mine.modified, facts.modified),
            (&mut mine.mode_only, facts.mode_only),
            (&mut mine.deleted, facts.deleted),
            (&mut mine.untracked, facts.untracked),
            (&mut mine.hidden, facts.hidden),
            (&mut mine.needs_filter, facts.needs_filter),
            (&mut mine.nested_repositories, facts.nested_repositories),
            (&mut mine.precious, facts.precious),
            (&mut mine.mounts, facts.mounts),
        ] {
            merge_sample(mine, other);
        }
        mine.nested_checkouts.extend(facts.nested_checkouts);
        mine.submodules.extend(facts.submodules);
        mine.unreadable.extend(facts.unreadable);
        if mine.unreadable.len() > MOST_UNREADABLE {
            mine.unreadable.sort_unstable();
            mine.unreadable.truncate(MOST_UNREADABLE);
        }
        mine.undeletable = first_undeletable(mine.undeletable.take(), facts.undeletable);
        mine.size.files += facts.size.files;
        mine.size.directories += facts.size.directories;
        mine.size.freed += facts.size.freed;
        mine.size.shared += facts.size.shared;
        mine.size.ignored += facts.size.ignored;
        mine.interrupted |= facts.interrupted;
        if let Some((mtime, path)) = facts.newest {
            self.modified_at(mtime, || path);
        }
        self.sum = self.sum.wrapping_add(sum);
        self.linked.extend(linked);
    }

    /// The facts, in an order that does not depend on which worker was faster. `whole`: no visit was cut short.
    pub(super) fn finish(mut self, whole: bool) -> TreeFacts {
        self.count_linked();
        let mut facts = self.facts;
        facts.nested_checkouts.sort_unstable();
        facts.submodules.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        facts.unreadable.sort_unstable();
        // What was not looked into has no part in the sum.
        let whole = whole && facts.unreadable.is_empty() && facts.mounts.is_empty();
        facts.fingerprint = whole.then_some(Fingerprint(self.sum));
        facts
    }

    /// A file with several names frees its blocks only if all of them are in the tree.
    fn count_linked(&mut self) {
        self.linked.sort_unstable();
        let size = &mut self.facts.size;
        for names in self.linked.chunk_by(|a, b| a.0 == b.0) {
            let (_, links, allocated, _) = names[0];
            if (names.len() as u64) < links {
                size.shared += allocated;
                continue;
            }
            size.freed += allocated;
            if names.iter().all(|(_, _, _, ignored)| *ignored) {
                size.ignored += allocated;
            }
        }
    }
}

fn merge_sample(mine: &mut Sample, other: Sample) {
    if !other.is_empty() {
        mine.merge(other);
    }
}

fn first_undeletable(a: Option<Undeletable>, b: Option<Undeletable>) -> Option<Undeletable> {
    match (a, b) {
        (Some(a), Some(b)) => {
            let count = a.count + b.count;
            let first = if a.path <= b.path { a } else { b };
            Some(Undeletable { count, ..first })
        }
        (a, b) => a.or(b),
    }
}

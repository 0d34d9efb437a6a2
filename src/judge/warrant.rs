//! A warrant is a proof in the type system: only the judge makes one, and only removal consumes it.

use bstr::BString;
use gix::ObjectId;

use crate::beneath::Meta;
use crate::judge::reason::Reason;
use crate::judge::tree_facts::Fingerprint;
use crate::vantage::paths::{EntryName, FileId, LocalPath, RecordedPath};

/// Permission to remove one thing, as it was when it was judged. Not `Clone`: it is used once.
#[derive(Debug)]
pub struct Warrant {
    scope: Scope,
    act: Act,
    branch: BranchFate,
    authority: Authority,
    anchors: Vec<ObjectId>,
}

/// The clone that the thing belongs to, and the root that bounds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    pub root: LocalPath,
    pub common_dir: LocalPath,
    pub common_id: FileId,
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    /// Remove the checkout, then forget the registration.
    Remove { checkout: Checkout, entry: Entry },
    /// Forget the registration alone: its directory is absent.
    Forget { entry: Entry, absent: Option<LocalPath> },
    /// Remove a checkout whose registration is gone.
    RemoveOrphan { checkout: Checkout, name: BString },
}

/// A checkout as the judge saw it.
#[derive(Clone, Debug)]
pub struct Checkout {
    pub path: LocalPath,
    pub seen: Meta,
    /// Of everything in it.
    pub fingerprint: Fingerprint,
}

/// An administrative entry as the judge saw it.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: EntryName,
    pub id: FileId,
    pub recorded: Option<RecordedPath>,
    /// Of everything in it.
    pub fingerprint: Fingerprint,
    /// HEAD's branch (full ref name) and the commit it resolves to.
    pub branch: Option<BString>,
    pub tip: Option<ObjectId>,
}

/// What is to become of the branch, after absence is verified.
#[derive(Clone, Debug)]
pub enum BranchFate {
    /// Delete `name` if it still is `expected` and `trunk`'s current value contains it.
    Delete { name: BString, expected: ObjectId, trunk: BString },
    /// It stays, and why.
    Keep { name: BString, why: String },
    /// Detached: there is no branch.
    None,
}

/// Who answers for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authority {
    /// Recorded ownership.
    Owned,
    /// A person selected exactly this thing; what `--force` overrode is listed.
    Person { overridden: Vec<Reason> },
}

impl Warrant {
    /// Only the judge mints: the function is private to its room.
    pub(super) fn mint(
        scope: Scope,
        act: Act,
        branch: BranchFate,
        authority: Authority,
        anchors: Vec<ObjectId>,
    ) -> Self {
        Self { scope, act, branch, authority, anchors }
    }

    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    pub fn act(&self) -> &Act {
        &self.act
    }

    pub fn branch(&self) -> &BranchFate {
        &self.branch
    }

    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Commits that nothing else will name once the worktree is gone; they get a ref first.
    pub fn anchors(&self) -> &[ObjectId] {
        &self.anchors
    }

    /// The checkout to be removed, if there is one.
    pub fn checkout(&self) -> Option<&Checkout> {
        match &self.act {
            Act::Remove { checkout, .. } | Act::RemoveOrphan { checkout, .. } => Some(checkout),
            Act::Forget { .. } => None,
        }
    }

    /// The administrative entry to be forgotten, if there is one.
    pub fn entry(&self) -> Option<&Entry> {
        match &self.act {
            Act::Remove { entry, .. } | Act::Forget { entry, .. } => Some(entry),
            Act::RemoveOrphan { .. } => None,
        }
    }

    /// For the sweep's own tests, which build their states by hand.
    #[cfg(test)]
    pub(crate) fn for_test(
        scope: Scope,
        act: Act,
        branch: BranchFate,
        authority: Authority,
        anchors: Vec<ObjectId>,
    ) -> Self {
        Self::mint(scope, act, branch, authority, anchors)
    }
}

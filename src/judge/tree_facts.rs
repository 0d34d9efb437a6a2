//! What the index and one walk of a checkout say.

use bstr::BString;

use crate::beneath::Stamp;
use crate::vantage::paths::LocalPath;

/// How many paths of a kind there are, and the first few of them as examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    pub count: u64,
    /// Paths relative to the checkout, at most [`Sample::SHOWN`].
    pub first: Vec<BString>,
}

impl Sample {
    pub const SHOWN: usize = 5;

    pub fn add(&mut self, path: impl Into<BString>) {
        self.count += 1;
        if self.first.len() < Self::SHOWN {
            self.first.push(path.into());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds what another worker found; the examples stay the smallest paths, whoever found them.
    pub fn merge(&mut self, other: Sample) {
        self.count += other.count;
        self.first.extend(other.first);
        self.first.sort_unstable();
        self.first.truncate(Self::SHOWN);
    }
}

/// What the index says against the tree of HEAD, without a look at the checkout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexFacts {
    /// Entries that differ from HEAD's tree, added and removed ones too.
    pub staged: Sample,
    /// Entries with a stage other than 0.
    pub conflicted: Sample,
    pub intent_to_add: Sample,
    /// There is no index file: nothing was ever staged.
    pub missing: bool,
}

/// What one walk of a checkout found. All paths are relative to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeFacts {
    /// Tracked, and content or type differ.
    pub modified: Sample,
    /// Tracked, and only the executable bit differs.
    pub mode_only: Sample,
    /// Tracked, and not on disk (entries that sparse checkout left out are not meant).
    pub deleted: Sample,
    /// Neither tracked nor ignored; files in a directory whose place a gitlink takes too.
    pub untracked: Sample,
    /// Flagged skip-worktree or assume-unchanged, on disk, and different.
    pub hidden: Sample,
    /// Can't be compared without running a filter.
    pub needs_filter: Sample,
    /// Repositories in it that are neither submodules nor worktrees that the survey knows.
    pub nested_repositories: Sample,
    /// Checkouts in it that the survey knows; the walk does not enter them.
    pub nested_checkouts: Vec<LocalPath>,
    pub submodules: Vec<SubmoduleFacts>,
    /// Ignored files that match `precious` and whose content the main worktree lacks.
    pub precious: Sample,
    /// Mount points.
    pub mounts: Sample,
    /// Why the first object that can't be deleted can't be, and how many there are.
    pub undeletable: Option<Undeletable>,
    /// Could not be read, each with why.
    pub unreadable: Vec<(BString, String)>,
    pub size: TreeSize,
    /// The newest modification that the walk met, and where.
    pub newest: Option<(Stamp, BString)>,
    /// The state of every object that the walk met; `None` if it ended early or met a mount or what it could not read.
    /// Checkouts that were not entered are not in it, so it can't be met again while they are there.
    pub fingerprint: Option<Fingerprint>,
    /// The run was asked to stop before the walk was through: nothing here is complete.
    pub interrupted: bool,
}

/// What removal would free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeSize {
    pub files: u64,
    pub directories: u64,
    /// Allocated bytes of files whose last link is in the tree; hard links count once.
    pub freed: u64,
    /// Allocated bytes of files that have links elsewhere too: these stay on the disk.
    pub shared: u64,
    /// The part of `freed` that is ignored files.
    pub ignored: u64,
}

/// A submodule that is checked out in the worktree, or whose repository lies in the administrative entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmoduleFacts {
    /// Where it is in the checkout, or its name below `modules/`.
    pub path: BString,
    pub state: SubmoduleState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmoduleState {
    Clean,
    /// Another commit is checked out than the index names, or something in it is changed.
    Changed(String),
    /// A ref, the HEAD or a stash of it has commits that no remote-tracking ref of it reaches.
    Unpushed(String),
    Unreadable(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeletable {
    pub count: u64,
    pub path: BString,
    pub why: UndeletableReason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndeletableReason {
    /// A directory of this uid that we may not change.
    Owner(u32),
    /// A sticky directory holds a file of this uid.
    Sticky(u32),
    /// Immutable or append-only.
    Flag,
    ReadOnlyFileSystem,
}

/// A hash over identity, kind, size, mode and times of every object of a tree, the tree's own root excepted: a rename
/// of that root does not change it, any write below does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub u128);

//! What is known of one worktree when it is judged. Plain data: the survey fills it, question by question.

use bstr::BString;
use gix::ObjectId;

use crate::beneath::{Meta, Stamp};
use crate::judge::reason::Reason;
use crate::judge::tree_facts::{Fingerprint, IndexFacts, SubmoduleFacts, TreeFacts};
use crate::vantage::paths::{EntryName, FileId, LocalPath, RecordedPath};
use crate::vantage::translate::Evidence;

/// A question that costs something to ask, in the order of its cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Question {
    /// Role, scope, join and lock: known from the start.
    Standing,
    /// Containers and processes.
    Liveness,
    /// HEAD, operations in progress, per-worktree refs.
    Head,
    /// Landed, contained, unstarted.
    History,
    Activity,
    Index,
    /// The walk of the checkout.
    Tree,
}

impl Question {
    pub const ALL: [Question; 7] = [
        Question::Standing,
        Question::Liveness,
        Question::Head,
        Question::History,
        Question::Activity,
        Question::Index,
        Question::Tree,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Question::Standing => "standing",
            Question::Liveness => "liveness",
            Question::Head => "head",
            Question::History => "history",
            Question::Activity => "activity",
            Question::Index => "index",
            Question::Tree => "tree",
        }
    }
}

/// An answer, or why there is none: what could not be asked keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked<T> {
    NotYet,
    Answered(T),
    Failed(String),
}

impl<T> Asked<T> {
    pub fn answer(&self) -> Option<&T> {
        match self {
            Asked::Answered(answer) => Some(answer),
            _ => None,
        }
    }
}

/// One worktree, stale registration or orphan, with the answers so far.
#[derive(Clone, Debug)]
pub struct Facts {
    pub subject: Subject,
    pub standing: Standing,
    pub liveness: Asked<Vec<Reason>>,
    pub head: Asked<HeadFacts>,
    pub history: Asked<HistoryFacts>,
    pub activity: Asked<ActivityFacts>,
    pub index: Asked<IndexFacts>,
    pub tree: Asked<TreeFacts>,
    /// Repositories below the entry's `modules`; asked with the index.
    pub modules: Vec<SubmoduleFacts>,
    /// What an orphan's content was compared with; asked with the tree.
    pub orphan_match: Option<OrphanMatch>,
    /// The state of the entry's files, taken before any question; for the warrant.
    pub entry_fingerprint: Option<Fingerprint>,
}

/// What is judged.
#[derive(Clone, Debug)]
pub enum Subject {
    Registered {
        name: EntryName,
        id: Option<FileId>,
        recorded: Option<RecordedPath>,
    },
    /// A checkout that no registration answers for; the name is the one that its `.git` file says.
    Orphan {
        name: BString,
        path: LocalPath,
        seen: Option<Meta>,
    },
    /// What a crash without a journal left of a removal of ours.
    Trash {
        name: BString,
        path: LocalPath,
        seen: Option<Meta>,
    },
}

/// What is known before any costly question.
#[derive(Clone, Debug)]
pub struct Standing {
    pub placement: Placement,
    pub ownership: Ownership,
    pub lock: Option<LockFacts>,
    /// `--protect`, the trunk's own worktree, shared configuration that points here: complete reasons.
    pub holds: Vec<Reason>,
}

/// Where the checkout is.
#[derive(Clone, Debug)]
pub enum Placement {
    /// Registration and checkout name each other.
    Joined { path: LocalPath, seen: Meta, by: Evidence },
    /// The translated path is not there.
    Absent { expected: LocalPath, by: Evidence, proof: AbsenceProof },
    /// A checkout without a registration.
    Unregistered,
    /// Nothing below can be judged; at least one reason.
    Held { path: Option<LocalPath>, by: Option<Evidence>, reasons: Vec<Reason> },
}

/// How far the absence of a translated path is proven (design: Absence).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AbsenceProof {
    /// By the marker's own vantage, a container's bind, or the user's map.
    Proven(String),
    /// By a sibling, a label, inference, or nothing but the path.
    Weak(String),
}

/// Whether recorded lifecycle evidence says that this lifecycle made or enrolled it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ownership {
    Owned { marker: String, template: String },
    Unowned { why: String },
}

impl Ownership {
    pub fn is_owned(&self) -> bool {
        matches!(self, Ownership::Owned { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFacts {
    /// Escaped, perhaps empty.
    pub reason: String,
    pub since: Stamp,
    pub by: LockedBy,
}

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedBy {
    /// A person, or another program.
    Somebody,
    /// `guard --lock`, by its exact reason: it protects from stock git and does not hold for us.
    Guard,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadFacts {
    /// The full name of the branch's ref; `None` when detached.
    pub branch: Option<BString>,
    /// The commit; `None` when the branch's ref is missing (unborn or deleted).
    pub tip: Option<ObjectId>,
    /// The last commit that the entry's own reflog names, for a branch whose ref is missing.
    pub last_known: Option<ObjectId>,
    /// The branch's ref is itself symbolic.
    pub symbolic_branch: bool,
    pub operations: Vec<Operation>,
    /// HEAD or per-worktree refs that hold commits that no shared ref reaches.
    pub stray: Vec<(BString, ObjectId)>,
}

/// An operation that has begun and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// `rebase`, `merge`, `index.lock`, ...
    pub kind: &'static str,
    pub since: Stamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryFacts {
    pub trunk: Option<Trunk>,
    pub landed: Landed,
    /// Live local branches that strictly contain the tip and are neither trunk nor landed, nearest first.
    pub containers: Vec<Container>,
    /// The branch's reflog shows a commit of its own.
    pub has_own_commit: bool,
    /// Since when it exists: the newest of marker, first reflog line and `commondir`.
    pub born: Option<Stamp>,
    /// Commits that only its own reflogs and names reach; they get a ref before anything is removed.
    pub anchors: Vec<ObjectId>,
}

/// The branch that work lands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trunk {
    /// The short name.
    pub name: String,
    /// The full names of the refs that stand for it here: the local and the remote-tracking one.
    pub refs: Vec<BString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Landed {
    /// This trunk ref contains the tip.
    Ancestry {
        trunk_ref: BString,
    },
    /// Merging it into this trunk ref changes nothing, and it has a net change of its own.
    Content {
        trunk_ref: BString,
    },
    No {
        ahead: Option<u64>,
    },
}

/// A live local branch that the tip is a strict ancestor of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// The short name.
    pub branch: BString,
    pub tip: ObjectId,
    /// How many commits it is ahead of the contained tip.
    pub ahead: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityFacts {
    /// The newest of the entry's `HEAD`, `index`, `logs/HEAD`, the branch's reflog and the checkout's top directory.
    pub last: Option<(Stamp, String)>,
}

/// Whether a commit has exactly an orphan's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrphanMatch {
    Equal {
        commit: ObjectId,
        reference: BString,
    },
    /// Another clone has such a commit too, so that whose it was is not known.
    Several {
        why: String,
    },
    /// No commit of this clone.
    Differs {
        why: String,
    },
}

impl Facts {
    /// Nothing has been asked yet.
    pub fn new(subject: Subject, standing: Standing) -> Self {
        Self {
            subject,
            standing,
            liveness: Asked::NotYet,
            head: Asked::NotYet,
            history: Asked::NotYet,
            activity: Asked::NotYet,
            index: Asked::NotYet,
            tree: Asked::NotYet,
            modules: Vec::new(),
            orphan_match: None,
            entry_fingerprint: None,
        }
    }

    /// The local path of the checkout, or where it would be.
    pub fn path(&self) -> Option<&LocalPath> {
        match (&self.standing.placement, &self.subject) {
            (Placement::Joined { path, .. }, _) => Some(path),
            (_, Subject::Orphan { path, .. } | Subject::Trash { path, .. }) => Some(path),
            (Placement::Absent { expected, .. }, _) => Some(expected),
            (Placement::Held { path, .. }, _) => path.as_ref(),
            (Placement::Unregistered, Subject::Registered { .. }) => None,
        }
    }
}

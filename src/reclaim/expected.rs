//! What a person saw, or agreed to, before a removal: whatever differs when it is judged again stays.

use bstr::BString;
use gix::ObjectId;

use crate::judge::facts::{Facts, Placement, Subject};
use crate::judge::tree_facts::Fingerprint;
use crate::vantage::paths::{FileId, LocalPath};

/// What must not have changed since the plan was shown, however harmless the change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    pub path: Option<LocalPath>,
    entry: Option<FileId>,
    checkout: Option<FileId>,
    branch: Option<BString>,
    tip: Option<ObjectId>,
    /// Every byte of it, where a person agreed to a list of what is lost: more than was listed must not go.
    listed: Option<Listed>,
    /// The plan saw only that its removal had begun; when it was put back, anything may be there that the judge allows.
    interrupted: bool,
}

/// The state of directory and entry when what would be lost was listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    tree: Option<Fingerprint>,
    entry: Option<Fingerprint>,
}

impl Listed {
    fn of(facts: &Facts) -> Self {
        Self { tree: facts.tree.answer().and_then(|tree| tree.fingerprint), entry: facts.entry_fingerprint }
    }
}

impl Expected {
    /// Of what a person agreed to lose, as `facts` describe it.
    pub fn to_the_byte(facts: &Facts) -> Self {
        Self { listed: Some(Listed::of(facts)), ..Self::of(facts) }
    }

    /// Of a worktree whose removal an earlier run began.
    pub fn of_interrupted(path: Option<LocalPath>) -> Self {
        Self { path, entry: None, checkout: None, branch: None, tip: None, listed: None, interrupted: true }
    }

    pub fn of(facts: &Facts) -> Self {
        let head = facts.head.answer();
        let entry = match &facts.subject {
            Subject::Registered { id, .. } => *id,
            Subject::Orphan { .. } | Subject::Trash { .. } => None,
        };
        let checkout = match (&facts.standing.placement, &facts.subject) {
            (Placement::Joined { seen, .. }, _) | (_, Subject::Orphan { seen: Some(seen), .. }) => {
                Some(seen.id)
            }
            _ => None,
        };
        Self {
            path: facts.path().cloned(),
            entry,
            checkout,
            branch: head.and_then(|h| h.branch.clone()),
            tip: head.and_then(|h| h.tip),
            listed: None,
            interrupted: false,
        }
    }

    /// Whether it is of such a one.
    pub fn is_of_interrupted(&self) -> bool {
        self.interrupted
    }

    /// It was agreed to by a list of what is lost.
    pub(super) fn is_listed(&self) -> bool {
        self.listed.is_some()
    }

    /// What differs now that `facts` are, for a person.
    pub(super) fn difference(&self, facts: &Facts) -> Option<String> {
        let now = &Self::of(facts);
        let changed = |what: &str| Some(format!("{what} is not what the plan saw"));
        match self {
            _ if self.interrupted => None,
            _ if self.entry != now.entry => changed("its administrative entry"),
            _ if self.checkout != now.checkout || self.path != now.path => changed("its directory"),
            _ if self.branch != now.branch => changed("its branch"),
            _ if self.tip != now.tip => changed("its commit"),
            _ if self.listed.is_some_and(|listed| listed != Listed::of(facts)) => Some(
                "something in it changed after what would be lost was listed; name it once more".to_owned(),
            ),
            _ => None,
        }
    }
}

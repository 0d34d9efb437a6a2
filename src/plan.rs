//! The plan as data: what would be done to every worktree, and why. Versioned; `docs/` has its schema.

use base64::Engine as _;
use bstr::{BStr, ByteSlice};
use serde::Serialize;

use crate::judge::facts::{Facts, Subject};
use crate::judge::reason::{Code, Reason};

/// The version of the JSON that `plan` and `prune` print. Fields may be added within a version, never changed.
pub const SCHEMA: u32 = 1;

/// A whole run's plan.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Plan {
    pub schema: u32,
    pub engines: Vec<EngineRow>,
    pub clones: Vec<ClonePlan>,
    pub totals: Totals,
    /// What concerns no single clone: directories that could not be read, sockets that could not be opened.
    pub warnings: Vec<String>,
}

/// A container engine that was asked, or could not be.
#[derive(Clone, Debug, Serialize)]
pub struct EngineRow {
    pub name: String,
    pub endpoint: String,
    /// `answered`, `missing`, `permission-denied`, ...
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// The user named it, so that its failure is a failure of the run.
    pub configured: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct ClonePlan {
    #[serde(flatten)]
    pub path: Path,
    #[serde(flatten)]
    pub common_dir: CommonDir,
    /// The short name of the branch that work lands on.
    pub trunk: Option<String>,
    pub worktrees: Vec<Row>,
    pub warnings: Vec<String>,
}

/// One worktree, stale registration or orphan.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    #[serde(flatten)]
    pub name: Name,
    #[serde(flatten)]
    pub recorded_path: Recorded,
    #[serde(flatten)]
    pub path: LocalPlace,
    #[serde(flatten)]
    pub branch: Branch,
    /// The commit that HEAD resolves to.
    pub head: Option<String>,
    pub owned: bool,
    /// What the ownership rests on, or what it lacks.
    pub ownership: String,
    pub verdict: VerdictKind,
    pub class: Option<Class>,
    /// The first one decides.
    pub reasons: Vec<Reason>,
    /// The kind of translation from the recorded to the local path: `identity`, `relative`, `mount`, ...
    pub translation: Option<String>,
    pub translation_evidence: Option<String>,
    /// Allocated bytes that would be freed; absent where no verdict needed them.
    pub bytes: Option<u64>,
    /// RFC 3339, UTC.
    pub last_activity: Option<jiff::Timestamp>,
    /// An offer that a picker may show: landed, clean and idle.
    pub pickable: bool,
    /// Every question asked, in order, with its answer; with `--explain` all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<Explained>,
}

/// A question that was asked of a worktree, and its answer with the evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Explained {
    pub question: &'static str,
    pub answer: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictKind {
    /// Remove the checkout, forget the registration, then the branch's own outcome.
    Reclaim,
    /// Forget the registration alone.
    Forget,
    /// Needs an explicit act.
    Offer,
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The branch travels inside another live one.
    Contained,
    /// A registration whose directory seems to be gone.
    Stale,
    /// A checkout whose registration is gone.
    Orphan,
    /// Safe to remove, but nothing records that this lifecycle may.
    Unowned,
    /// A removal of ours that was interrupted.
    Resume,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    pub reclaim: u64,
    pub forget: u64,
    pub offer: u64,
    pub keep: u64,
    /// What `prune` would free, in allocated bytes.
    pub bytes: u64,
    /// What awaits the person, in allocated bytes.
    pub offer_bytes: u64,
}

/// What happened to one candidate of `prune` or `drop`.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeRow {
    #[serde(flatten)]
    pub name: Name,
    #[serde(flatten)]
    pub path: LocalPlace,
    pub result: ResultKind,
    pub branch: BranchResult,
    /// Why the branch was kept.
    pub branch_detail: Option<String>,
    /// Allocated bytes that were freed.
    pub bytes: u64,
    /// Why it was skipped, deferred or failed.
    pub reason: Option<Reason>,
    /// What happened, in one line.
    pub note: Option<String>,
    /// What was seen at the end if it isn't done: path, git and ref state.
    pub observed: Option<String>,
    /// The command that tries again.
    pub retry: Option<String>,
    /// Of the retirement record.
    pub record: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultKind {
    Removed,
    Forgotten,
    /// It changed since it was planned, or may not be removed any more.
    Skipped,
    /// The time limit came first; the next run finishes it.
    Deferred,
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BranchResult {
    Deleted,
    Kept,
    None,
}

/// `prune --json` and `drop --json`: the plan and what came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    #[serde(flatten)]
    pub plan: Plan,
    pub outcomes: Vec<OutcomeRow>,
    /// Only of `prune`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub space: Vec<SpaceRow>,
    /// Only of a `prune --min-free` that did not get there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<HolderRow>,
}

/// A file system that holds swept roots, before and after, as the kernel tells it; in bytes.
#[derive(Clone, Debug, Serialize)]
pub struct SpaceRow {
    /// A root on it.
    #[serde(flatten)]
    pub path: LocalPlace,
    /// What users can fill.
    pub size: u64,
    pub available_before: u64,
    pub available_after: u64,
    /// What `--min-free` asks for.
    pub wanted: Option<u64>,
}

/// What still takes space where some is lacking.
#[derive(Clone, Debug, Serialize)]
pub struct HolderRow {
    #[serde(flatten)]
    pub name: Name,
    #[serde(flatten)]
    pub path: LocalPlace,
    pub verdict: VerdictKind,
    /// Of an offer.
    pub class: Option<Class>,
    /// The reason that decides.
    pub code: Option<Code>,
    /// Allocated bytes, whether removing it would free them or not.
    pub bytes: u64,
    /// It may be more: not everything could be looked at.
    pub at_least: bool,
}

impl SpaceRow {
    /// Whether it has what is asked for.
    pub fn is_enough(&self) -> bool {
        self.wanted.is_none_or(|wanted| self.available_after >= wanted)
    }
}

impl Class {
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Contained => "contained",
            Class::Stale => "stale",
            Class::Orphan => "orphan",
            Class::Unowned => "unowned",
            Class::Resume => "resume",
        }
    }
}

impl Plan {
    /// Without a clone.
    pub fn empty() -> Self {
        Self { schema: SCHEMA, ..Self::default() }
    }

    /// Counts the rows of all clones.
    pub fn total(&mut self) {
        let mut totals = Totals::default();
        for row in self.clones.iter().flat_map(|c| &c.worktrees) {
            let bytes = row.bytes.unwrap_or(0);
            match row.verdict {
                VerdictKind::Reclaim => {
                    (totals.reclaim, totals.bytes) = (totals.reclaim + 1, totals.bytes + bytes)
                }
                VerdictKind::Forget => totals.forget += 1,
                VerdictKind::Offer => {
                    (totals.offer, totals.offer_bytes) = (totals.offer + 1, totals.offer_bytes + bytes)
                }
                VerdictKind::Keep => totals.keep += 1,
            }
        }
        self.totals = totals;
    }
}

impl Row {
    /// Whether this is the row of what these facts are about.
    pub fn is_of(&self, facts: &Facts) -> bool {
        let (name, orphan) = match &facts.subject {
            Subject::Registered { name, .. } => (name.as_bstr(), false),
            Subject::Orphan { name, .. } | Subject::Trash { name, .. } => (name.as_bstr(), true),
        };
        let same_path = self.path == LocalPlace::of(facts.path().map(|p| p.as_bstr()));
        self.name == Name::of(Some(name)) && same_path && (self.recorded_path.text.is_none() || !orphan)
    }

    /// Whether the plan names this code for it.
    pub fn has(&self, code: Code) -> bool {
        self.reasons.iter().any(|r| r.code == code)
    }
}

/// Bytes that are text almost always: a lossy string, and base64 of the bytes where the string is not they.
macro_rules! bytes_field {
    ($(#[$doc:meta])* $name:ident, $field:literal, $bytes_field:literal) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        pub struct $name {
            #[serde(rename = $field)]
            pub text: Option<String>,
            #[serde(rename = $bytes_field, skip_serializing_if = "Option::is_none")]
            pub bytes: Option<String>,
        }

        impl $name {
            pub fn of(bytes: Option<&BStr>) -> Self {
                let Some(raw) = bytes else { return Self::default() };
                let exact = raw.to_str().is_ok();
                Self {
                    text: Some(raw.to_str_lossy().into_owned()),
                    bytes: (!exact).then(|| base64::prelude::BASE64_STANDARD.encode(raw)),
                }
            }
        }
    };
}
bytes_field!(/** The clone's directory. */ Path, "path", "path_bytes");
bytes_field!(/** The common git directory. */ CommonDir, "common_dir", "common_dir_bytes");
bytes_field!(/** The entry's name; an orphan's is the one that its `.git` file names. */ Name, "name", "name_bytes");
bytes_field!(/** What `gitdir` says, without `/.git`. */ Recorded, "recorded_path", "recorded_path_bytes");
bytes_field!(/** Where the checkout is here. */ LocalPlace, "path", "path_bytes");
bytes_field!(/** The branch's short name. */ Branch, "branch", "branch_bytes");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_not_lost() {
        let name = Name::of(Some(b"a\xff".as_bstr()));
        let json = serde_json::to_value(&name).unwrap();
        assert_eq!(json, serde_json::json!({"name": "a\u{fffd}", "name_bytes": "Yf8="}));
        let plain = serde_json::to_value(Name::of(Some(b"a".as_bstr()))).unwrap();
        assert_eq!(plain, serde_json::json!({"name": "a"}));
        assert_eq!(
            serde_json::to_value(Recorded::of(None)).unwrap(),
            serde_json::json!({"recorded_path": null})
        );
    }
}

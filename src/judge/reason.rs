//! The stable reason codes: why a worktree is kept, or what makes it an offer.

use std::fmt;

/// A reason code. Its kebab-case name is part of the output's contract and never changes its meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    // role and scope
    MainWorktree,
    CurrentWorktree,
    Protected,
    Unowned,
    OutsideRoot,
    // in use
    Locked,
    LiveContainer,
    ContainerBound,
    LivenessUnknown,
    ProcessInside,
    RecentlyActive,
    Unstarted,
    ResourcesElsewhere,
    // work in it
    Dirty,
    HiddenChanges,
    OperationInProgress,
    NestedRepository,
    NestedKept,
    SubmoduleUnpushed,
    PreciousIgnored,
    UnreachableCommits,
    NotLanded,
    TrunkUnknown,
    HeadMissing,
    // can't be sure
    Unreadable,
    Ambiguous,
    LinksDisagree,
    BrokenLink,
    OutsideVantage,
    AbsenceUnproven,
    PathEscapes,
    Interrupted,
    // can't be removed safely
    MountInside,
    NotDeletable,
    Referenced,
}

impl Code {
    /// What `drop --force` may override; nothing overrides the others.
    pub fn yields_to_force(self) -> bool {
        matches!(
            self,
            Code::Dirty
                | Code::HiddenChanges
                | Code::NotLanded
                | Code::TrunkUnknown
                | Code::PreciousIgnored
                | Code::RecentlyActive
                | Code::Unstarted
                | Code::UnreachableCommits
        )
    }

    /// The kebab-case name.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::MainWorktree => "main-worktree",
            Code::CurrentWorktree => "current-worktree",
            Code::Protected => "protected",
            Code::Unowned => "unowned",
            Code::OutsideRoot => "outside-root",
            Code::Locked => "locked",
            Code::LiveContainer => "live-container",
            Code::ContainerBound => "container-bound",
            Code::LivenessUnknown => "liveness-unknown",
            Code::ProcessInside => "process-inside",
            Code::RecentlyActive => "recently-active",
            Code::Unstarted => "unstarted",
            Code::ResourcesElsewhere => "resources-elsewhere",
            Code::Dirty => "dirty",
            Code::HiddenChanges => "hidden-changes",
            Code::OperationInProgress => "operation-in-progress",
            Code::NestedRepository => "nested-repository",
            Code::NestedKept => "nested-kept",
            Code::SubmoduleUnpushed => "submodule-unpushed",
            Code::PreciousIgnored => "precious-ignored",
            Code::UnreachableCommits => "unreachable-commits",
            Code::NotLanded => "not-landed",
            Code::TrunkUnknown => "trunk-unknown",
            Code::HeadMissing => "head-missing",
            Code::Unreadable => "unreadable",
            Code::Ambiguous => "ambiguous",
            Code::LinksDisagree => "links-disagree",
            Code::BrokenLink => "broken-link",
            Code::OutsideVantage => "outside-vantage",
            Code::AbsenceUnproven => "absence-unproven",
            Code::PathEscapes => "path-escapes",
            Code::Interrupted => "interrupted",
            Code::MountInside => "mount-inside",
            Code::NotDeletable => "not-deletable",
            Code::Referenced => "referenced",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A code with what was seen, for a person: which file, which container, how old.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reason {
    pub code: Code,
    /// Control characters are already escaped.
    pub detail: String,
}

impl Reason {
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail.is_empty() {
            true => write!(f, "{}", self.code),
            false => write!(f, "{}: {}", self.code, self.detail),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_output() {
        for code in [Code::MainWorktree, Code::LinksDisagree, Code::NotDeletable, Code::TrunkUnknown] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}

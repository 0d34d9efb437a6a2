//! What each answer means: the reasons to keep that follow from one question.
//!
//! Every rule is here and nowhere else; `plan`, `prune` and `drop` ask the same ones (design, rule 11). An answer that
//! could not be had is a reason to keep (rule 2).

use std::collections::HashSet;

use crate::beneath::Stamp;
use crate::judge::facts::{Asked, Facts, Landed, LockedBy, Placement, Question, Subject};
use crate::judge::reason::{Code, Reason};
use crate::judge::tree_facts::{
    Sample, SubmoduleFacts, SubmoduleState, TreeFacts, Undeletable, UndeletableReason,
};
use crate::vantage::paths::{LocalPath, escape};

/// The idle floor of contained worktrees, whatever `--idle` says (decision record 0225): one hour.
pub const CONTAINED_IDLE: i64 = 3600;

/// What the judge is told about the run. Times are given, the judge has no clock.
#[derive(Clone, Debug)]
pub struct Policy {
    pub now: Stamp,
    /// Seconds without activity; 0 asks for none.
    pub idle: i64,
    /// Seconds that a worktree without a commit of its own is kept.
    pub unstarted_after: i64,
    /// Checkouts that go before whatever contains them.
    pub going: HashSet<LocalPath>,
}

impl Policy {
    /// Seconds from `then` to now; negative for a time to come.
    fn age(&self, then: Stamp) -> i64 {
        self.now.seconds.saturating_sub(then.seconds)
    }
}

/// The reasons to keep that the answer to `question` gives; none if it has not been asked.
pub fn reasons(question: Question, facts: &Facts, policy: &Policy) -> Vec<Reason> {
    match question {
        Question::Standing => standing(facts, policy),
        Question::Liveness => match &facts.liveness {
            Asked::NotYet => Vec::new(),
            Asked::Answered(holds) => holds.clone(),
            Asked::Failed(why) => vec![Reason::new(Code::LivenessUnknown, why)],
        },
        Question::Head => head(facts, policy),
        Question::History => history(facts, policy),
        Question::Activity => activity(facts, policy),
        Question::Index => index(facts),
        Question::Tree => match &facts.tree {
            Asked::NotYet => Vec::new(),
            Asked::Failed(why) => vec![Reason::new(Code::Unreadable, why)],
            Asked::Answered(answer) => tree(answer, facts, policy),
        },
    }
}

fn standing(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Placement::Held { reasons: held, .. } = &facts.standing.placement {
        reasons.extend(held.iter().cloned());
    }
    if let Some(lock) = facts.standing.lock.as_ref().filter(|l| l.by != LockedBy::Guard) {
        let why =
            if lock.reason.is_empty() { "no reason given".to_owned() } else { format!("'{}'", lock.reason) };
        reasons.push(Reason::new(Code::Locked, format!("{why}, {} ago", span(policy.age(lock.since)))));
    }
    reasons.extend(facts.standing.holds.iter().cloned());
    if let Subject::Trash { path, .. } = &facts.subject {
        let why = format!("no journal knows this trash; `treesweep drop {path}` completes its removal");
        reasons.push(Reason::new(Code::Interrupted, why));
    }
    reasons
}

fn head(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let head = match &facts.head {
        Asked::NotYet => return Vec::new(),
        Asked::Failed(why) => return vec![Reason::new(Code::Unreadable, why)],
        Asked::Answered(head) => head,
    };
    let mut reasons = Vec::new();
    if head.tip.is_none() {
        let branch = head.branch.as_ref().map_or("HEAD".into(), |b| escape(b));
        let last = head
            .last_known
            .map_or("no commit is known of it".to_owned(), |c| format!("its reflog ends in {c}"));
        reasons.push(Reason::new(Code::HeadMissing, format!("{branch} does not exist; {last}")));
    }
    for operation in &head.operations {
        let age = span(policy.age(operation.since));
        reasons.push(Reason::new(Code::OperationInProgress, format!("{}, since {age}", operation.kind)));
    }
    if let Some((name, commit)) = head.stray.first() {
        let more = more(head.stray.len() as u64 - 1);
        let text = format!("{} holds {commit}, which no shared ref reaches{more}", escape(name));
        reasons.push(Reason::new(Code::UnreachableCommits, text));
    }
    reasons
}

fn history(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let history = match &facts.history {
        Asked::NotYet => return Vec::new(),
        Asked::Failed(why) => return vec![Reason::new(Code::Unreadable, why)],
        Asked::Answered(history) => history,
    };
    let Some(trunk) = &history.trunk else {
        return vec![Reason::new(Code::TrunkUnknown, "name the branch that work lands on with --trunk")];
    };
    let on_branch = facts.head.answer().is_some_and(|h| h.branch.is_some());
    match &history.landed {
        Landed::No { ahead } => {
            let commits = ahead.map_or(String::new(), |n| format!("{n} {} ahead of ", plural(n, "commit")));
            let contained = history
                .containers
                .first()
                .map_or(String::new(), |c| format!(", contained in {}", escape(&c.branch)));
            vec![Reason::new(Code::NotLanded, format!("{commits}{}{contained}", trunk.name))]
        }
        Landed::Ancestry { .. } if on_branch && !history.has_own_commit => {
            // A time to come is not an age that has passed.
            let age = history.born.map(|born| policy.age(born));
            if policy.unstarted_after == 0 || age.is_some_and(|a| a >= policy.unstarted_after) {
                return Vec::new();
            }
            let since = age.map_or("of unknown age".to_owned(), |a| format!("made {} ago", span(a)));
            vec![Reason::new(Code::Unstarted, format!("no commit of its own yet, {since}"))]
        }
        Landed::Ancestry { .. } | Landed::Content { .. } => Vec::new(),
    }
}

fn activity(facts: &Facts, policy: &Policy) -> Vec<Reason> {
    match &facts.activity {
        Asked::NotYet => Vec::new(),
        Asked::Failed(why) => vec![Reason::new(Code::Unreadable, why)],
        Asked::Answered(answer) => match &answer.last {
            Some((at, what)) => too_recent(*at, what, policy.idle, policy).into_iter().collect(),
            // Nothing has a time: only a run that asks for no quiet may go on.
            None if policy.idle == 0 => Vec::new(),
            None => vec![Reason::new(Code::RecentlyActive, "no time of its last activity could be read")],
        },
    }
}

fn too_recent(at: Stamp, what: &str, floor: i64, policy: &Policy) -> Option<Reason> {
    let age = policy.age(at);
    (floor > 0 && age < floor)
        .then(|| Reason::new(Code::RecentlyActive, format!("{what} changed {} ago", span(age))))
}

/// Whether everything that was seen of its activity is at least `floor` seconds old.
pub fn idle_for(facts: &Facts, policy: &Policy, floor: i64) -> bool {
    let seen = facts.activity.answer().and_then(|a| a.last.as_ref()).map(|(at, _)| *at);
    let met = facts.tree.answer().and_then(|t| t.newest.as_ref()).map(|(at, _)| *at);
    seen.is_some() && [seen, met].into_iter().flatten().all(|at| policy.age(at) >= floor)
}

fn index(facts: &Facts) -> Vec<Reason> {
    let mut reasons = Vec::new();
    match &facts.index {
        Asked::NotYet => return Vec::new(),
        Asked::Failed(why) => reasons.push(Reason::new(Code::Unreadable, why)),
        Asked::Answered(index) => {
            dirty(&mut reasons, "conflicted", &index.conflicted);
            dirty(&mut reasons, "staged", &index.staged);
            dirty(&mut reasons, "intended to be added", &index.intent_to_add);
        }
    }
    reasons.extend(facts.modules.iter().filter_map(submodule));
    reasons
}

fn tree(tree: &TreeFacts, facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let mut reasons = in_the_way(tree, policy);
    // What is half deleted has no content that could still be compared.
    if !matches!(facts.subject, Subject::Trash { .. }) {
        reasons.splice(0..0, work(tree, facts, policy));
    }
    if reasons.is_empty() && tree.fingerprint.is_none() {
        reasons.push(Reason::new(Code::Unreadable, "the walk of the directory did not come to its end"));
    }
    reasons
}

/// Work that would be lost.
fn work(tree: &TreeFacts, facts: &Facts, policy: &Policy) -> Vec<Reason> {
    let mut reasons = Vec::new();
    dirty(&mut reasons, "modified", &tree.modified);
    dirty(&mut reasons, "deleted", &tree.deleted);
    dirty(&mut reasons, "untracked", &tree.untracked);
    dirty(&mut reasons, "mode bits only", &tree.mode_only);
    sampled(&mut reasons, Code::HiddenChanges, "flagged and different", &tree.hidden);
    sampled(&mut reasons, Code::Unreadable, "can't be compared without running a filter", &tree.needs_filter);
    reasons.extend(tree.submodules.iter().filter_map(submodule));
    sampled(&mut reasons, Code::PreciousIgnored, "ignored, and the main worktree lacks it", &tree.precious);
    if let Some((at, path)) = &tree.newest {
        reasons.extend(too_recent(*at, &shown(path), policy.idle, policy));
    }
    if let Subject::Orphan { .. } = facts.subject {
        reasons.extend(orphan(facts));
    }
    reasons
}

/// What must not be deleted whatever else is known, and what can't be.
fn in_the_way(tree: &TreeFacts, policy: &Policy) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some((path, why)) = tree.unreadable.first() {
        let text = format!("{}: {}{}", shown(path), why, more(tree.unreadable.len() as u64 - 1));
        reasons.push(Reason::new(Code::Unreadable, text));
    }
    sampled(&mut reasons, Code::NestedRepository, "a repository of its own", &tree.nested_repositories);
    let staying: Vec<&LocalPath> =
        tree.nested_checkouts.iter().filter(|c| !policy.going.contains(*c)).collect();
    if let Some(first) = staying.first() {
        let text = format!("{first} is in it and stays{}", more(staying.len() as u64 - 1));
        reasons.push(Reason::new(Code::NestedKept, text));
    }
    sampled(&mut reasons, Code::MountInside, "something is mounted there", &tree.mounts);
    reasons.extend(tree.undeletable.as_ref().map(undeletable));
    reasons
}

fn orphan(facts: &Facts) -> Option<Reason> {
    use crate::judge::facts::OrphanMatch;
    match &facts.orphan_match {
        Some(OrphanMatch::Equal { .. }) => None,
        Some(OrphanMatch::Several { why }) => Some(Reason::new(Code::Ambiguous, why)),
        Some(OrphanMatch::Differs { why }) => {
            Some(Reason::new(Code::Dirty, format!("no registration, and {why}")))
        }
        None => Some(Reason::new(Code::Unreadable, "its content was not compared with any commit")),
    }
}

fn submodule(facts: &SubmoduleFacts) -> Option<Reason> {
    let path = shown(&facts.path);
    match &facts.state {
        SubmoduleState::Clean => None,
        SubmoduleState::Changed(why) => Some(Reason::new(Code::Dirty, format!("submodule {path}: {why}"))),
        SubmoduleState::Unpushed(why) => {
            Some(Reason::new(Code::SubmoduleUnpushed, format!("submodule {path}: {why}")))
        }
        SubmoduleState::Unreadable(why) => {
            Some(Reason::new(Code::Unreadable, format!("submodule {path}: {why}")))
        }
    }
}

fn undeletable(found: &Undeletable) -> Reason {
    let path = shown(&found.path);
    let why = match &found.why {
        UndeletableReason::Owner(uid) => {
            format!("{path} belongs to uid {uid}; run as that user or with sudo")
        }
        UndeletableReason::Sticky(uid) => format!("{path} belongs to uid {uid}, in a sticky directory"),
        UndeletableReason::Flag => format!("{path} is immutable or append-only (lsattr shows it)"),
        UndeletableReason::ReadOnlyFileSystem => {
            format!("{path} is on a file system that is mounted read-only")
        }
    };
    Reason::new(Code::NotDeletable, format!("{why}{}", more(found.count.saturating_sub(1))))
}

fn dirty(reasons: &mut Vec<Reason>, what: &str, sample: &Sample) {
    if !sample.is_empty() {
        let files = plural(sample.count, "file");
        let text = format!("{what}, {} {files}: {}", sample.count, examples(sample));
        reasons.push(Reason::new(Code::Dirty, text));
    }
}

fn sampled(reasons: &mut Vec<Reason>, code: Code, what: &str, sample: &Sample) {
    if !sample.is_empty() {
        reasons.push(Reason::new(code, format!("{what}: {}", examples(sample))));
    }
}

fn examples(sample: &Sample) -> String {
    const NAMED: usize = 3;
    let named: Vec<String> = sample.first.iter().take(NAMED).map(|p| shown(p)).collect();
    format!("{}{}", named.join(", "), more(sample.count.saturating_sub(named.len() as u64)))
}

fn shown(path: &[u8]) -> String {
    if path.is_empty() { "the directory itself".to_owned() } else { escape(path) }
}

fn more(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} more)") }
}

fn plural(count: u64, noun: &str) -> String {
    if count == 1 { noun.to_owned() } else { format!("{noun}s") }
}

/// A span of time in its largest unit, for reasons: `3 h`, `12 days`.
pub fn span(seconds: i64) -> String {
    match seconds {
        s if s < 0 => "a negative time".to_owned(),
        s if s < 120 => format!("{s} s"),
        s if s < 2 * 3600 => format!("{} min", s / 60),
        s if s < 2 * 86_400 => format!("{} h", s / 3600),
        s => format!("{} days", s / 86_400),
    }
}

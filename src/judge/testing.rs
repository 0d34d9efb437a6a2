//! Facts for the judge's tests: worktrees that nothing speaks against, and everything that can speak against one.

use bstr::BString;
use gix::ObjectId;

use crate::beneath::{Kind, Meta, Stamp};
use crate::judge::facts::{
    AbsenceProof, ActivityFacts, Asked, Container, Facts, HeadFacts, HistoryFacts, Landed, LockFacts,
    LockedBy, Operation, OrphanMatch, Ownership, Placement, Question, Standing, Subject, Trunk,
};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::Policy;
use crate::judge::tree_facts::{
    Fingerprint, IndexFacts, Sample, SubmoduleFacts, SubmoduleState, TreeFacts, Undeletable,
    UndeletableReason,
};
use crate::judge::warrant::Scope;
use crate::vantage::paths::{EntryName, FileId, LocalPath, RecordedPath};
use crate::vantage::translate::{Evidence, TranslationKind};

pub const NOW: i64 = 1_700_000_000;
pub const HOUR: i64 = 3600;
pub const DAY: i64 = 24 * HOUR;

/// The default policy: idle for an hour, unstarted for a week.
pub fn policy() -> Policy {
    Policy {
        now: Stamp { seconds: NOW, nanos: 0 },
        idle: HOUR,
        unstarted_after: 7 * DAY,
        going: Default::default(),
    }
}

pub fn ago(seconds: i64) -> Stamp {
    Stamp { seconds: NOW - seconds, nanos: 0 }
}

pub fn local(path: &str) -> LocalPath {
    LocalPath::new(path).unwrap()
}

pub fn commit(digit: u8) -> ObjectId {
    ObjectId::from_bytes_or_panic(&[digit; 20])
}

pub fn sample(path: &str) -> Sample {
    let mut sample = Sample::default();
    sample.add(path);
    sample
}

pub fn meta() -> Meta {
    Meta {
        id: FileId { dev: 1, ino: 2 },
        mount: 1,
        kind: Kind::Directory,
        mode: 0o755,
        uid: 0,
        gid: 0,
        links: 2,
        size: 0,
        allocated: 0,
        mtime: ago(30 * DAY),
        ctime: ago(30 * DAY),
        undeletable_flag: false,
    }
}

pub fn scope() -> Scope {
    Scope { root: local("/src"), common_dir: local("/src/app/.git"), common_id: FileId { dev: 1, ino: 1 } }
}

pub fn evidence() -> Evidence {
    Evidence { kind: TranslationKind::Inferred, text: "the container called it so".into() }
}

pub fn owned() -> Ownership {
    Ownership::Owned { marker: "treesweep/ready".into(), template: "{name}".into() }
}

pub fn unowned() -> Ownership {
    Ownership::Unowned { why: "no ready marker".into() }
}

/// Owned, joined, landed by ancestry, clean, idle, unlocked, not in use: it is reclaimed.
pub fn reclaimable() -> Facts {
    Facts {
        liveness: Asked::Answered(Vec::new()),
        head: Asked::Answered(HeadFacts {
            branch: Some("refs/heads/x".into()),
            tip: Some(commit(1)),
            ..Default::default()
        }),
        history: Asked::Answered(HistoryFacts {
            trunk: Some(Trunk { name: "main".into(), refs: vec!["refs/remotes/origin/main".into()] }),
            landed: Landed::Ancestry { trunk_ref: "refs/remotes/origin/main".into() },
            containers: Vec::new(),
            has_own_commit: true,
            born: Some(ago(30 * DAY)),
            anchors: Vec::new(),
        }),
        activity: Asked::Answered(ActivityFacts { last: Some((ago(30 * DAY), "its index".into())) }),
        index: Asked::Answered(IndexFacts::default()),
        tree: Asked::Answered(walked()),
        entry_fingerprint: Some(Fingerprint(1)),
        ..unasked()
    }
}

/// The same before any question was asked.
pub fn unasked() -> Facts {
    let subject = Subject::Registered {
        name: EntryName::new("x").unwrap(),
        id: Some(FileId { dev: 1, ino: 3 }),
        recorded: Some(RecordedPath::new("/workspaces/app/.worktrees/x")),
    };
    let placement = Placement::Joined { path: local("/src/app/.worktrees/x"), seen: meta(), by: evidence() };
    Facts::new(subject, Standing { placement, ownership: owned(), lock: None, holds: Vec::new() })
}

/// A walk that came to its end and found nothing.
pub fn walked() -> TreeFacts {
    TreeFacts {
        fingerprint: Some(Fingerprint(2)),
        newest: Some((ago(30 * DAY), "file".into())),
        ..TreeFacts::default()
    }
}

/// The same with its directory gone.
pub fn absent(proof: AbsenceProof) -> Facts {
    let mut facts = reclaimable();
    facts.standing.placement =
        Placement::Absent { expected: local("/src/app/.worktrees/x"), by: evidence(), proof };
    facts.tree = Asked::NotYet;
    facts
}

pub fn proven() -> AbsenceProof {
    AbsenceProof::Proven("a bind of this host".into())
}

pub fn weak() -> AbsenceProof {
    AbsenceProof::Weak("a sibling that joined".into())
}

/// The same with its registration gone and the files of a commit.
pub fn orphan() -> Facts {
    let path = local("/src/app/.worktrees/x");
    let standing =
        Standing { placement: Placement::Unregistered, ownership: unowned(), lock: None, holds: Vec::new() };
    Facts {
        liveness: Asked::Answered(Vec::new()),
        activity: reclaimable().activity,
        tree: Asked::Answered(walked()),
        orphan_match: Some(OrphanMatch::Equal { commit: commit(1), reference: "refs/heads/x".into() }),
        ..Facts::new(Subject::Orphan { name: "x".into(), path, seen: Some(meta()) }, standing)
    }
}

/// Owned, clean and idle; its work is not landed and travels in another live branch.
pub fn contained() -> Facts {
    let mut facts = reclaimable();
    let history = history(&mut facts);
    history.landed = Landed::No { ahead: Some(1) };
    history.containers = vec![Container { branch: "stage-two".into(), tip: commit(2), ahead: 3 }];
    facts
}

pub fn head(facts: &mut Facts) -> &mut HeadFacts {
    answered(&mut facts.head)
}

pub fn history(facts: &mut Facts) -> &mut HistoryFacts {
    answered(&mut facts.history)
}

pub fn index(facts: &mut Facts) -> &mut IndexFacts {
    answered(&mut facts.index)
}

pub fn tree(facts: &mut Facts) -> &mut TreeFacts {
    answered(&mut facts.tree)
}

fn answered<T>(asked: &mut Asked<T>) -> &mut T {
    match asked {
        Asked::Answered(answer) => answer,
        _ => panic!("not answered"),
    }
}

/// One thing that speaks against a removal.
#[derive(Clone, Copy, Debug)]
pub struct Objection {
    pub code: Code,
    /// The question whose answer it is part of.
    pub question: Question,
    pub add: fn(&mut Facts),
}

const fn objection(code: Code, question: Question, add: fn(&mut Facts)) -> Objection {
    Objection { code, question, add }
}

fn hold(facts: &mut Facts, code: Code) {
    facts.standing.holds.push(Reason::new(code, "because"));
}

fn used(facts: &mut Facts, code: Code) {
    answered(&mut facts.liveness).push(Reason::new(code, "because"));
}

fn submodule(state: SubmoduleState) -> SubmoduleFacts {
    SubmoduleFacts { path: "lib".into(), state }
}

/// Everything that keeps a worktree which is joined, owned and landed, by itself.
pub const OBJECTIONS: &[Objection] = &[
    objection(Code::Locked, Question::Standing, |f| {
        let reason = "agent of pid 7".into();
        f.standing.lock = Some(LockFacts { reason, since: ago(DAY), by: LockedBy::Somebody });
    }),
    objection(Code::Protected, Question::Standing, |f| hold(f, Code::Protected)),
    objection(Code::Referenced, Question::Standing, |f| hold(f, Code::Referenced)),
    objection(Code::LiveContainer, Question::Liveness, |f| used(f, Code::LiveContainer)),
    objection(Code::ContainerBound, Question::Liveness, |f| used(f, Code::ContainerBound)),
    objection(Code::ProcessInside, Question::Liveness, |f| used(f, Code::ProcessInside)),
    objection(Code::CurrentWorktree, Question::Liveness, |f| used(f, Code::CurrentWorktree)),
    objection(Code::MountInside, Question::Liveness, |f| used(f, Code::MountInside)),
    objection(Code::LivenessUnknown, Question::Liveness, |f| {
        f.liveness = Asked::Failed("the engine hung up".into());
    }),
    objection(Code::Unreadable, Question::Head, |f| f.head = Asked::Failed("HEAD is a FIFO".into())),
    objection(Code::HeadMissing, Question::Head, |f| head(f).tip = None),
    objection(Code::OperationInProgress, Question::Head, |f| {
        head(f).operations.push(Operation { kind: "rebase", since: ago(DAY) });
    }),
    objection(Code::UnreachableCommits, Question::Head, |f| {
        head(f).stray.push(("refs/worktree/keep".into(), commit(3)));
    }),
    objection(Code::Unreadable, Question::History, |f| f.history = Asked::Failed("packed-refs".into())),
    objection(Code::TrunkUnknown, Question::History, |f| history(f).trunk = None),
    objection(Code::NotLanded, Question::History, |f| history(f).landed = Landed::No { ahead: Some(2) }),
    objection(Code::NotLanded, Question::History, |f| history(f).landed = Landed::No { ahead: None }),
    objection(Code::Unstarted, Question::History, |f| {
        let born = history(f).born.map(|born| born.max(ago(DAY)));
        (history(f).has_own_commit, history(f).born) = (false, born);
    }),
    objection(Code::Unstarted, Question::History, |f| {
        (history(f).has_own_commit, history(f).born) = (false, None);
    }),
    objection(Code::RecentlyActive, Question::Activity, |f| activity(f, Some(ago(HOUR - 1)))),
    objection(Code::RecentlyActive, Question::Activity, |f| activity(f, Some(ago(-DAY)))),
    objection(Code::RecentlyActive, Question::Activity, |f| activity(f, None)),
    objection(Code::Unreadable, Question::Activity, |f| f.activity = Asked::Failed("a reflog".into())),
    objection(Code::Unreadable, Question::Index, |f| f.index = Asked::Failed("junk".into())),
    objection(Code::Dirty, Question::Index, |f| index(f).staged = sample("a")),
    objection(Code::Dirty, Question::Index, |f| index(f).conflicted = sample("a")),
    objection(Code::Dirty, Question::Index, |f| index(f).intent_to_add = sample("a")),
    objection(Code::SubmoduleUnpushed, Question::Index, |f| {
        f.modules.push(submodule(SubmoduleState::Unpushed("HEAD".into())));
    }),
    objection(Code::Unreadable, Question::Index, |f| {
        f.modules.push(submodule(SubmoduleState::Unreadable("a FIFO".into())));
    }),
    objection(Code::Unreadable, Question::Tree, |f| f.tree = Asked::Failed("replaced".into())),
    objection(Code::Dirty, Question::Tree, |f| tree(f).modified = sample("a")),
    objection(Code::Dirty, Question::Tree, |f| tree(f).deleted = sample("a")),
    objection(Code::Dirty, Question::Tree, |f| tree(f).untracked = sample("a")),
    objection(Code::Dirty, Question::Tree, |f| tree(f).mode_only = sample("a")),
    objection(Code::HiddenChanges, Question::Tree, |f| tree(f).hidden = sample("a")),
    objection(Code::Unreadable, Question::Tree, |f| tree(f).needs_filter = sample("a")),
    objection(Code::Unreadable, Question::Tree, |f| tree(f).unreadable.push(("a".into(), "no".into()))),
    objection(Code::NestedRepository, Question::Tree, |f| tree(f).nested_repositories = sample("a")),
    objection(Code::NestedKept, Question::Tree, |f| {
        tree(f).nested_checkouts.push(local("/src/app/.worktrees/x/inner"));
    }),
    objection(Code::Dirty, Question::Tree, |f| {
        tree(f).submodules.push(submodule(SubmoduleState::Changed("a is staged".into())));
    }),
    objection(Code::PreciousIgnored, Question::Tree, |f| tree(f).precious = sample(".env")),
    objection(Code::MountInside, Question::Tree, |f| tree(f).mounts = sample("a")),
    objection(Code::NotDeletable, Question::Tree, |f| {
        let why = UndeletableReason::Owner(12);
        tree(f).undeletable = Some(Undeletable { count: 1, path: "a".into(), why });
    }),
    objection(Code::RecentlyActive, Question::Tree, |f| {
        let newest = tree(f).newest.take().map_or(ago(HOUR - 1), |(at, _)| at.max(ago(HOUR - 1)));
        tree(f).newest = Some((newest, BString::from("a")));
    }),
    objection(Code::Unreadable, Question::Tree, |f| tree(f).fingerprint = None),
];

/// What is younger still, and what has no time at all, stays: an objection only ever adds.
fn activity(facts: &mut Facts, last: Option<Stamp>) {
    let known = facts.activity.answer().and_then(|a| a.last.as_ref()).map(|(at, _)| *at);
    let last = last.zip(known).map(|(at, known)| at.max(known));
    facts.activity = Asked::Answered(ActivityFacts { last: last.map(|at| (at, "its index".to_owned())) });
}

impl Objection {
    /// Whether this can be said of `facts` at all: an orphan has no entry, what is absent has no files, and an answer
    /// that could not be had has no parts.
    pub fn fits(&self, facts: &Facts) -> bool {
        match self.question {
            Question::Standing => true,
            Question::Liveness => facts.liveness.answer().is_some(),
            Question::Head => facts.head.answer().is_some(),
            Question::History => facts.history.answer().is_some(),
            Question::Activity => facts.activity.answer().is_some(),
            Question::Index => facts.index.answer().is_some(),
            Question::Tree => facts.tree.answer().is_some(),
        }
    }
}

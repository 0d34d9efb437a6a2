//! Plans for the tests of the renderings.

use bstr::{BStr, ByteSlice};
use jiff::Timestamp;

use super::{Style, View, shell::CommandLine};
use crate::judge::reason::{Code, Reason};
use crate::plan::*;

const NOW: i64 = 1_700_000_000;
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

pub fn view(width: Option<usize>) -> View {
    View {
        style: Style { width, ..Style::default() },
        now: Timestamp::from_second(NOW).unwrap(),
        home: Some("/home/me".into()),
        again: CommandLine { flags: Vec::new(), roots: vec!["src".into()] },
    }
}

pub fn row(name: &[u8], verdict: VerdictKind) -> Row {
    let path = [b"/home/me/src/app/.worktrees/", name].concat();
    let recorded = [b"/workspaces/app/.worktrees/", name].concat();
    let branch = [b"wt/", name].concat();
    Row {
        name: Name::of(Some(name.as_bstr())),
        recorded_path: Recorded::of(Some(recorded.as_bstr())),
        path: LocalPlace::of(Some(path.as_bstr())),
        branch: Branch::of(Some(branch.as_bstr())),
        head: Some("1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".into()),
        owned: verdict != VerdictKind::Offer,
        ownership: "treesweep/ready in the entry, and wt/{name}".into(),
        verdict,
        class: None,
        reasons: Vec::new(),
        translation: Some("mount".into()),
        translation_evidence: Some("container dev mounts /home/me/src/app at /workspaces/app".into()),
        bytes: None,
        last_activity: Some(Timestamp::from_second(NOW - 5 * DAY).unwrap()),
        pickable: false,
        explanation: Vec::new(),
    }
}

pub fn clone(path: &str, worktrees: Vec<Row>) -> ClonePlan {
    ClonePlan {
        path: Path::of(Some(path.into())),
        common_dir: CommonDir::of(Some(BStr::new(&format!("{path}/.git")))),
        trunk: Some("main".into()),
        worktrees,
        warnings: Vec::new(),
    }
}

pub fn plan(clones: Vec<ClonePlan>) -> Plan {
    let mut plan = Plan { schema: SCHEMA, clones, ..Plan::default() };
    plan.total();
    plan
}

/// Two clones with one worktree of each kind.
pub fn usual() -> Plan {
    let reclaim = Row { bytes: Some(1_234_000_000), ..row(b"fix-login", VerdictKind::Reclaim) };
    let resume = Row { class: Some(Class::Resume), bytes: Some(4_096), ..row(b"half", VerdictKind::Reclaim) };
    let forget = Row {
        path: LocalPlace::of(Some(b"/home/me/src/app/.worktrees/gone".as_bstr())),
        ..row(b"gone", VerdictKind::Forget)
    };
    let unowned = Row {
        class: Some(Class::Unowned),
        owned: false,
        ownership: "no treesweep/ready in the entry".into(),
        bytes: Some(800_000_000),
        pickable: true,
        reasons: vec![Reason::new(Code::Unowned, "no treesweep/ready in the entry")],
        ..row(b"spike", VerdictKind::Offer)
    };
    let stale = Row {
        class: Some(Class::Stale),
        path: LocalPlace::default(),
        reasons: vec![Reason::new(Code::AbsenceUnproven, "no container that knew /workspaces/app is left")],
        ..row(b"old", VerdictKind::Offer)
    };
    let dirty = Row {
        last_activity: Some(Timestamp::from_second(NOW - 3 * HOUR).unwrap()),
        reasons: vec![
            Reason::new(Code::Dirty, "2 modified: src/a.rs, src/b.rs"),
            Reason::new(Code::NotLanded, "3 commits"),
            Reason::new(Code::RecentlyActive, ""),
        ],
        ..row(b"checkout", VerdictKind::Keep)
    };
    let live = Row {
        branch: Branch::default(),
        reasons: vec![Reason::new(
            Code::LiveContainer,
            "container dev (3f2a) runs, mounts /home/me/src/app at /workspaces/app, and its process 42 (node) is inside",
        )],
        ..row(b"api", VerdictKind::Keep)
    };
    let app = clone("/home/me/src/app", vec![dirty, stale, forget, reclaim, unowned, resume, live]);
    let orphan = Row {
        class: Some(Class::Orphan),
        recorded_path: Recorded::default(),
        branch: Branch::default(),
        head: None,
        bytes: Some(40_000_000_000),
        path: LocalPlace::of(Some(b"/home/me/src/lib-x".as_bstr())),
        reasons: vec![Reason::new(Code::LinksDisagree, "")],
        ..row(b"x", VerdictKind::Offer)
    };
    let mut lib = clone("/home/me/src/lib", vec![orphan]);
    lib.trunk = None;
    lib.warnings.push("worktrees/\u{1b}[31m is unreadable".into());
    let mut plan = plan(vec![app, clone("/home/me/src/bare", vec![]), lib]);
    plan.warnings.push("/home/me/src/private: permission denied".into());
    plan
}

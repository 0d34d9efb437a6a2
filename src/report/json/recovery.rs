//! The published schemas of what looks back and brings back, against what is really printed.

use bstr::ByteSlice;
use gix::ObjectId;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::render;
use super::validator::Validator;
use crate::judge::reason::{Code, Reason};
use crate::plan::{Branch, BranchResult, CommonDir, LocalPlace, Name, Path, Recorded};
use crate::report::{guard, log, rescue, restore};
use crate::sweep::record::{Acted, AnsweredBy, Hex};

const BYTES: &[u8] = b"n\xff";

fn hex() -> Hex {
    ObjectId::from_bytes_or_panic(&[0x1a; 20]).into()
}

/// Each document is one of the schema, and together they have every field that is published.
fn assert_published(schema: &str, documents: &[&dyn Printed]) {
    let mut validator = Validator::new(schema);
    for document in documents {
        let printed: Value = serde_json::from_str(&document.printed()).unwrap();
        validator.check("", &printed, "document");
    }
    assert_eq!(validator.unseen(), Vec::<String>::new(), "fields that nothing prints");
}

trait Printed {
    fn printed(&self) -> String;
}

impl<T: Serialize> Printed for T {
    fn printed(&self) -> String {
        render(self).unwrap()
    }
}

fn record(act: Acted, authority: AnsweredBy, branch_result: Option<BranchResult>) -> log::RecordRow {
    log::RecordRow {
        id: "20260105T101112123Z-0123456789ab".into(),
        name: Name::of(Some(BYTES.as_bstr())),
        act,
        started: Timestamp::UNIX_EPOCH,
        completed: branch_result.map(|_| Timestamp::UNIX_EPOCH),
        interrupted: branch_result.is_none(),
        pending: false,
        recorded_path: Recorded::of(Some(BYTES.as_bstr())),
        path: LocalPlace::of(Some(BYTES.as_bstr())),
        branch: Branch::of(Some(BYTES.as_bstr())),
        branch_result,
        branch_detail: None,
        tip: Some(hex()),
        trunk: None,
        authority,
        anchors: vec![log::AnchorRow { name: "refs/treesweep/retired/x/0".into(), commit: hex() }],
        files: 1,
        bytes: 2,
    }
}

#[test]
fn what_log_prints_is_published() {
    let overridden = vec![Reason::new(Code::Dirty, "2 modified: a, b")];
    let records = vec![
        record(Acted::Remove, AnsweredBy::Owned, Some(BranchResult::Deleted)),
        record(Acted::Forget, AnsweredBy::Person { overridden }, Some(BranchResult::Kept)),
        record(Acted::RemoveOrphan, AnsweredBy::Owned, Some(BranchResult::None)),
        record(Acted::Remove, AnsweredBy::Owned, None),
    ];
    let failed = vec![log::StayRow { id: "x".into(), why: "moved".into() }];
    let clone = log::CloneLog {
        path: Path::of(Some(BYTES.as_bstr())),
        common_dir: CommonDir::of(Some(BYTES.as_bstr())),
        records,
        expired: Some(log::ExpiredRow { dropped: vec!["y".into()], refs: 1, failed }),
        warnings: vec!["w".into()],
    };
    let plain = log::CloneLog { expired: None, records: Vec::new(), ..clone.clone() };
    let log = log::Log { schema: 1, clones: vec![clone, plain], warnings: vec!["w".into()] };
    assert_published(include_str!("../../../docs/schema/log-1.json"), &[&log]);
    let doc = include_str!("../../../docs/recovery.md");
    let mut validator = Validator::new(include_str!("../../../docs/schema/log-1.json"));
    for example in doc.split("```json\n").skip(1).filter_map(|part| part.split("```").next()) {
        validator.check("", &serde_json::from_str(example).unwrap(), "the example");
    }
    assert!(!validator.seen.is_empty());
}

#[test]
fn what_restore_prints_is_published() {
    let row = |links, head_is| {
        restore::document(restore::RestoredRow {
            id: "x".into(),
            name: Name::of(Some(BYTES.as_bstr())),
            path: LocalPlace::of(Some(BYTES.as_bstr())),
            recorded_path: Recorded::of(Some(BYTES.as_bstr())),
            links,
            branch: Branch::of(Some(BYTES.as_bstr())),
            head_is,
            head_detail: None,
            head: hex(),
            was: None,
            files: 1,
            bytes: 1,
            there: 0,
            lfs_pointers: 0,
            filtered: vec![restore::FilteredRow { by: "filter=x".into(), files: 1, first: vec!["a".into()] }],
            submodules: vec!["m".into()],
            missing: vec![restore::MissingRow { path: "a".into(), why: "gone".into() }],
            resumed: false,
            overridden: vec![Reason::new(Code::Dirty, "")],
            anchors: vec![log::AnchorRow { name: "r".into(), commit: hex() }],
            lost: ["l"; 6],
            next: vec!["git lfs pull".into()],
        })
    };
    let all = [
        row("here", "existing"),
        row("relative", "recreated"),
        row("as-before", "detached"),
        row("lost", "detached"),
    ];
    let schema = include_str!("../../../docs/schema/restore-1.json");
    assert_published(schema, &all.each_ref().map(|document| document as &dyn Printed));
}

#[test]
fn what_rescue_prints_is_published() {
    let rescued = rescue::rescued(rescue::RescuedRow {
        name: Name::of(Some(BYTES.as_bstr())),
        path: LocalPlace::of(Some(BYTES.as_bstr())),
        recorded_path: Recorded::of(Some(BYTES.as_bstr())),
        links: "as-before",
        branch: Branch::of(Some(BYTES.as_bstr())),
        head: None,
        snapshot: Some(Timestamp::UNIX_EPOCH),
        was: Some(hex()),
        files: 1,
        submodules: vec!["m".into()],
        lost: ["l"; 6],
        next: "git status".into(),
    });
    let branch = rescue::CandidateRow {
        branch: Branch::of(Some(BYTES.as_bstr())),
        head: hex(),
        differs: 1,
        in_use: Some("it is".into()),
        next: None,
        time: 0,
    };
    let unreadable =
        rescue::UnreadableRow { branch: Branch::of(Some(BYTES.as_bstr())), why: "forged".into() };
    let path = LocalPlace::of(Some(BYTES.as_bstr()));
    let rows =
        rescue::CandidatesRow { path, branches: vec![branch], left_out: 0, unreadable: vec![unreadable] };
    let schema = include_str!("../../../docs/schema/rescue-1.json");
    assert_published(schema, &[&rescued, &rescue::to_choose(rows), &rescue::nothing()]);
}

#[test]
fn what_guard_prints_is_published() {
    let lock = |result| guard::LockRow {
        name: Name::of(Some(BYTES.as_bstr())),
        result,
        reason: Some("mine".into()),
    };
    let row = |gc| guard::CloneRow {
        path: Path::of(Some(BYTES.as_bstr())),
        common_dir: CommonDir::of(Some(BYTES.as_bstr())),
        snapshots: guard::Snapshots { new: 1, updated: 2, unchanged: 3 },
        gc,
        gc_former: None,
        locks: ["locked", "ours", "somebody", "unlocked"].map(lock).to_vec(),
        failed: vec!["f".into()],
    };
    let rows = ["set", "ours", "never", "unset", "not-ours", "failed"].map(row).to_vec();
    let schema = include_str!("../../../docs/schema/guard-1.json");
    let documents =
        [guard::document(false, rows, vec!["w".into()]), guard::document(true, Vec::new(), Vec::new())];
    assert_published(schema, &documents.each_ref().map(|document| document as &dyn Printed));
}

use super::*;
use crate::judge::reason::{Code, Reason};
use crate::report::sample::view;
use crate::sweep::bytes::Bytes;
use crate::sweep::outcome::{Ending, Removed};
use crate::sweep::record::{Completion, SCHEMA};
use gix::ObjectId;

fn id(digit: u8) -> Hex {
    ObjectId::from_bytes_or_panic(&[digit; 20]).into()
}

fn record(name: &[u8], ago: i64) -> Record {
    let time = Timestamp::from_second(1_700_000_000 - ago).unwrap();
    let path = [b"/home/me/src/app/.worktrees/", name].concat();
    Record {
        schema: SCHEMA,
        id: "20231001T101112123Z-0123456789ab".parse().unwrap(),
        name: Bytes::new(name),
        common_dir: Bytes::new("/home/me/src/app/.git"),
        recorded_path: Some(Bytes::new(path.clone())),
        pointer: None,
        path: Some(Bytes::new(path)),
        branch: Some(Bytes::new([b"refs/heads/wt/", name].concat())),
        tip: Some(id(0x1a)),
        act: Acted::Remove,
        authority: AnsweredBy::Owned,
        anchors: Vec::new(),
        trunk: Some(Bytes::new("refs/remotes/origin/main")),
        started: time,
        completed: Some(Completion {
            time,
            result: Ending::Removed,
            removed: Removed { files: 3, directories: 1, freed: 2_700_000 },
            branch: Some(BranchOutcome::Deleted { name: Bytes::new([b"refs/heads/wt/", name].concat()) }),
        }),
    }
}

fn log() -> Log {
    let overridden = vec![Reason::new(Code::Dirty, "2 modified: a, b"), Reason::new(Code::NotLanded, "")];
    let kept = BranchOutcome::kept("refs/heads/wt/spike", "its worktree is not owned");
    let mut spike = Record {
        authority: AnsweredBy::Person { overridden },
        anchors: vec![id(0x2b), id(0x3c)],
        ..record(b"spike", 90_000)
    };
    spike.completed.as_mut().unwrap().branch = Some(kept);
    let gone = Record { act: Acted::Forget, branch: None, ..record(b"gone\x1b[31m", 900_000) };
    let half = Record { completed: None, ..record(b"half", 60) };
    let orphan = Record {
        act: Acted::RemoveOrphan,
        branch: None,
        tip: None,
        authority: AnsweredBy::Person { overridden: Vec::new() },
        ..record(b"lost", 9_000_000)
    };
    let rows = [half, record(b"fix", 7_000), spike, gone, orphan];
    Log {
        schema: 1,
        clones: vec![CloneLog {
            path: Path::of(Some("/home/me/src/app".into())),
            common_dir: CommonDir::of(Some("/home/me/src/app/.git".into())),
            records: rows.iter().enumerate().map(|(n, r)| RecordRow::of(r, n == 0)).collect(),
            expired: None,
            warnings: Vec::new(),
        }],
        warnings: Vec::new(),
    }
}

#[test]
fn each_kind_of_record() {
    insta::assert_snapshot!(render(&log(), &view(Some(80))));
}

#[test]
fn a_program_reads_the_same() {
    let row = serde_json::to_value(&log().clones[0].records[2]).unwrap();
    insta::assert_snapshot!(serde_json::to_string_pretty(&row).unwrap());
}

#[test]
fn without_records_it_says_so() {
    let empty = Log { clones: Vec::new(), ..log() };
    assert_eq!(render(&empty, &view(None)), "Nothing has been removed here, as far as is recorded.\n");
}

#[test]
fn what_expired_and_what_did_not() {
    let mut log = log();
    let said = |log: &Log, days: u64| {
        render_expired(log, std::time::Duration::from_secs(days * 86_400), false, &view(None))
    };
    assert_eq!(said(&log, 90), "No record is older than 90 days.\n");
    let failed = vec![StayRow { id: "x".into(), why: "moved".into() }];
    log.clones[0].expired = Some(ExpiredRow { dropped: vec!["y".into()], refs: 2, failed });
    assert_eq!(said(&log, 1), "Dropped 1 record older than 1 day, and 2 refs.\nfailed  x: moved\n");
    assert!(said(&log, 0).starts_with("Dropped 1 record of any age"));
}

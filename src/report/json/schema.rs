//! The published schema against what is really printed: every field printed is in the schema, every field of the
//! schema is printed by some sample, and each value is of its type.

use bstr::ByteSlice;
use serde_json::Value;

use super::render;
use super::validator::Validator;
use crate::judge::reason::Reason;
use crate::plan::*;
use crate::report::reasons;
use crate::report::sample::{clone, plan, row, usual};

const SCHEMA_1: &str = include_str!("../../../docs/schema/plan-1.json");

fn outcome(result: ResultKind, branch: BranchResult) -> OutcomeRow {
    OutcomeRow {
        name: Name::of(Some(b"n\xff".as_bstr())),
        path: LocalPlace::of(Some(b"/src/n\xff".as_bstr())),
        result,
        branch,
        branch_detail: None,
        bytes: 1,
        reason: Some(Reason::new(reasons::ALL[0], "")),
        note: Some("what happened".into()),
        observed: Some("the path is there".into()),
        retry: None,
        record: None,
    }
}

/// A document with every field and every value of every enumeration.
fn everything() -> Report {
    let kept = reasons::ALL.iter().map(|code| Row {
        reasons: vec![Reason::new(*code, "detail")],
        explanation: vec![Explained { question: "Is it locked?", answer: "no".into() }],
        ..row(b"n\xff", VerdictKind::Keep)
    });
    let offered = [Class::Contained, Class::Stale, Class::Orphan, Class::Unowned, Class::Resume]
        .map(|class| Row { class: Some(class), last_activity: None, ..row(b"n", VerdictKind::Offer) });
    let mut bytes = clone("/srv/app", kept.chain(offered).collect());
    bytes.path = Path::of(Some(b"/srv/\xff".as_bstr()));
    bytes.common_dir = CommonDir::of(Some(b"/srv/\xff/.git".as_bstr()));
    let mut all = plan(vec![bytes]);
    all.clones.extend(usual().clones);
    all.engines.push(EngineRow {
        name: "docker".into(),
        endpoint: "/var/run/docker.sock".into(),
        state: "permission-denied".into(),
        detail: Some("EACCES".into()),
        configured: false,
    });
    use {BranchResult as B, ResultKind as R};
    let results = [
        (R::Removed, B::Deleted),
        (R::Forgotten, B::Kept),
        (R::Skipped, B::None),
        (R::Deferred, B::None),
        (R::Failed, B::None),
    ];
    let mut outcomes = results.map(|(result, branch)| outcome(result, branch)).to_vec();
    outcomes[0].reason = None;
    let place = |path: &[u8]| LocalPlace::of(Some(path.as_bstr()));
    let space = SpaceRow {
        path: place(b"/src/\xff"),
        size: 9,
        available_before: 1,
        available_after: 2,
        wanted: Some(3),
    };
    let holder = HolderRow {
        name: Name::of(Some(b"n\xff".as_bstr())),
        path: place(b"/src/n\xff"),
        verdict: VerdictKind::Keep,
        class: Some(Class::Unowned),
        code: Some(reasons::ALL[0]),
        bytes: 1,
        at_least: true,
    };
    let unfinished = HolderRow { code: None, class: None, ..holder.clone() };
    let plain = SpaceRow { wanted: None, ..space.clone() };
    Report { plan: all, outcomes, space: vec![space, plain], holders: vec![holder, unfinished] }
}

#[test]
fn what_is_printed_and_what_is_published_are_the_same() {
    let printed: Value = serde_json::from_str(&render(&everything()).unwrap()).unwrap();
    let mut validator = Validator::new(SCHEMA_1);
    validator.check("", &printed, "document");
    let unseen = validator.unseen();
    assert!(unseen.is_empty(), "the schema has fields that nothing prints: {unseen:?}");
}

#[test]
fn a_plan_alone_is_a_document_too() {
    let printed: Value = serde_json::from_str(&render(&usual()).unwrap()).unwrap();
    let mut validator = Validator::new(SCHEMA_1);
    validator.check("", &printed, "document");
    assert!(printed.get("outcomes").is_none());
    assert_eq!(printed["schema"], SCHEMA);
}

#[test]
fn every_code_is_published() {
    let schema: Value = serde_json::from_str(SCHEMA_1).unwrap();
    let published: Vec<_> =
        schema["$defs"]["reason"]["properties"]["code"]["enum"].as_array().unwrap().clone();
    let codes: Vec<_> = reasons::ALL.iter().map(|code| Value::from(code.as_str())).collect();
    assert_eq!(published, codes);
}

#[test]
fn the_documented_example_is_a_document() {
    let doc = include_str!("../../../docs/json.md");
    let mut validator = Validator::new(SCHEMA_1);
    for example in doc.split("```json\n").skip(1).filter_map(|part| part.split("```").next()) {
        validator.check("", &serde_json::from_str(example).unwrap(), "the example");
    }
    assert!(!validator.seen.is_empty());
    for property in validator.properties() {
        let field = property.rsplit('/').next().unwrap();
        assert!(field.ends_with("_bytes") || doc.contains(field), "docs/json.md does not name {field}");
    }
}

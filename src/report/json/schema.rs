//! The published schema against what is really printed: every field printed is in the schema, every field of the
//! schema is printed by some sample, and each value is of its type.

use std::collections::BTreeSet;

use bstr::ByteSlice;
use serde_json::Value;

use super::render;
use crate::judge::reason::Reason;
use crate::plan::*;
use crate::report::reasons;
use crate::report::sample::{clone, plan, row, usual};

const SCHEMA_1: &str = include_str!("../../../docs/schema/plan-1.json");

/// The subset of JSON Schema that ours is written in.
struct Validator {
    schema: Value,
    /// Pointers to the properties that some sample had.
    seen: BTreeSet<String>,
}

impl Validator {
    fn check(&mut self, at: &str, value: &Value, place: &str) {
        let schema = self.schema.pointer(at).unwrap_or_else(|| panic!("{at} is not in the schema")).clone();
        for key in schema.as_object().unwrap().keys() {
            match key.as_str() {
                "$ref" => {
                    let target = schema["$ref"].as_str().unwrap().trim_start_matches('#').to_owned();
                    self.check(&target, value, place);
                }
                "oneOf" if value.is_null() => assert_eq!(schema["oneOf"][1]["type"], "null", "{place}"),
                "oneOf" => self.check(&format!("{at}/oneOf/0"), value, place),
                "type" => {
                    assert!(is_of(value, &schema["type"]), "{place} is {value}, not {}", schema["type"])
                }
                "const" => assert_eq!(*value, schema["const"], "{place}"),
                "enum" => assert!(schema["enum"].as_array().unwrap().contains(value), "{place}: {value}"),
                "minimum" => assert!(value.is_null() || value.as_u64().is_some(), "{place}: {value}"),
                "required" => {
                    for field in schema["required"].as_array().unwrap() {
                        assert!(value.get(field.as_str().unwrap()).is_some(), "{place} lacks {field}");
                    }
                }
                "properties" => {
                    for (field, value) in value.as_object().unwrap() {
                        let at = format!("{at}/properties/{field}");
                        self.seen.insert(at.clone());
                        self.check(&at, value, &format!("{place}.{field}"));
                    }
                }
                "items" => {
                    for value in value.as_array().unwrap() {
                        self.check(&format!("{at}/items"), value, &format!("{place}[]"));
                    }
                }
                "$schema" | "$defs" | "title" | "description" | "format" | "contentEncoding" => {}
                other => panic!("the validator does not know {other}, at {at}"),
            }
        }
    }

    /// Every property that the schema has.
    fn properties(&self) -> BTreeSet<String> {
        let defs = self.schema["$defs"].as_object().unwrap().keys().map(|name| format!("/$defs/{name}"));
        let places = std::iter::once(String::new()).chain(defs);
        places
            .flat_map(|at| {
                let fields =
                    self.schema.pointer(&format!("{at}/properties")).unwrap().as_object().unwrap().clone();
                fields.into_iter().map(move |(field, _)| format!("{at}/properties/{field}"))
            })
            .collect()
    }
}

fn is_of(value: &Value, expected: &Value) -> bool {
    let one = |name: &Value| match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("unknown type {other}"),
    };
    expected.as_array().map_or_else(|| one(expected), |list| list.iter().any(one))
}

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
    let mut validator = Validator { schema: serde_json::from_str(SCHEMA_1).unwrap(), seen: BTreeSet::new() };
    validator.check("", &printed, "document");
    let unseen: Vec<_> = validator.properties().difference(&validator.seen).cloned().collect();
    assert!(unseen.is_empty(), "the schema has fields that nothing prints: {unseen:?}");
}

#[test]
fn a_plan_alone_is_a_document_too() {
    let printed: Value = serde_json::from_str(&render(&usual()).unwrap()).unwrap();
    let mut validator = Validator { schema: serde_json::from_str(SCHEMA_1).unwrap(), seen: BTreeSet::new() };
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
    let mut validator = Validator { schema: serde_json::from_str(SCHEMA_1).unwrap(), seen: BTreeSet::new() };
    for example in doc.split("```json\n").skip(1).filter_map(|part| part.split("```").next()) {
        validator.check("", &serde_json::from_str(example).unwrap(), "the example");
    }
    assert!(!validator.seen.is_empty());
    for property in validator.properties() {
        let field = property.rsplit('/').next().unwrap();
        assert!(field.ends_with("_bytes") || doc.contains(field), "docs/json.md does not name {field}");
    }
}

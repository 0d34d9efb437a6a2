//! `treesweep log` tells what was removed, and drops what is old, where it is told to and nowhere else.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::snapshot::Snapshot;
use predicates::str::contains;
use serde_json::Value;

const NO_ENGINE: [&str; 2] = ["--engine", "none"];

/// A worktree that is enrolled, landed and swept.
fn reclaimed(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let env = clone.env;
    let path = clone.add_landed(name);
    env.treesweep(&["setup", utf8(&path)]).args(NO_ENGINE).assert().success();
    env.treesweep(&["prune", "--yes"])
        .args(NO_ENGINE)
        .args(["--idle", "0s"])
        .arg(&clone.path)
        .assert()
        .success();
    assert!(!path.exists(), "{name} was not swept");
    path
}

/// A worktree with a commit that nothing else names, dropped by force; the commit.
fn dropped(clone: &HostClone<'_>, name: &str) -> String {
    let env = clone.env;
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--detach", utf8(&path)]);
    env.git(&path, &["commit", "-q", "--allow-empty", "-m", "only here"]);
    let commit = env.git(&path, &["rev-parse", "HEAD"]);
    let drop = ["drop", name, "--force", "--yes", "--root", utf8(&clone.path)];
    env.treesweep(&drop).args(NO_ENGINE).args(EAGER).assert().success();
    commit
}

fn log(env: &TestEnv, root: &Path, more: &[&str]) -> Value {
    let run = env.treesweep(&["log", "--json"]).args(more).arg(root).assert().success();
    serde_json::from_slice(&run.get_output().stdout).expect("a document")
}

fn names(log: &Value) -> Vec<&str> {
    let clones = log["clones"].as_array().expect("clones");
    clones.iter().flat_map(|c| c["records"].as_array().expect("records")).map(|r| text(&r["name"])).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn keep(env: &TestEnv, duration: &str) {
    let dir = env.root().join("config/treesweep");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), format!("[retired]\nkeep = \"{duration}\"\n")).unwrap();
}

fn held(clone: &HostClone<'_>) -> String {
    clone.git(&["for-each-ref", "--format=%(objectname)", "refs/treesweep/retired"])
}

#[test]
fn what_was_removed_is_listed_newest_first() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = reclaimed(&clone, "fix");
    let commit = dropped(&clone, "spike");

    let log = log(&env, &env.src(), &[]);
    assert_eq!(log["schema"], 1);
    assert_eq!(names(&log), ["spike", "fix"]);
    let records = &log["clones"][0]["records"];
    let (spike, fix) = (&records[0], &records[1]);
    assert_eq!(fix["act"], "remove");
    assert_eq!(fix["authority"], serde_json::json!({"by": "owned"}));
    assert_eq!(fix["branch"], "wt/fix");
    assert_eq!(fix["branch_result"], "deleted");
    assert_eq!(fix["tip"], clone.git(&["rev-parse", "origin/main"]).as_str());
    assert_eq!(fix["path"], utf8(&path));
    assert_eq!(fix["interrupted"], false);
    assert!(fix["bytes"].as_u64().unwrap() > 0);
    assert_eq!(spike["branch"], Value::Null);
    assert_eq!(spike["authority"]["overridden"][0]["code"], "unreachable-commits");
    assert_eq!(spike["anchors"][0]["commit"], commit.as_str());
    assert_eq!(clone.git(&["rev-parse", text(&spike["anchors"][0]["ref"])]), commit);

    let words = contains("removed").and(contains("branch wt/fix deleted")).and(contains(text(&fix["id"])));
    let words = words.and(contains("a person, who overrode unreachable-commits")).and(contains("2 records"));
    env.treesweep(&["log"]).current_dir(&clone.path).assert().success().stdout(words);
}

#[test]
fn only_the_clones_that_are_asked_for_are_listed() {
    let env = TestEnv::new();
    let (one, two) = (HostClone::new(&env, "one"), HostClone::new(&env, "two"));
    reclaimed(&one, "a");
    reclaimed(&two, "b");
    assert_eq!(names(&log(&env, &one.path, &[])), ["a"]);
    assert_eq!(names(&log(&env, &env.src(), &[])), ["a", "b"]);
    fs::create_dir(env.src().join("empty")).unwrap();
    env.treesweep(&["log", utf8(&env.src().join("empty"))]).assert().success().stdout(contains("Nothing"));
}

#[test]
fn old_records_go_with_their_refs_and_only_by_expire() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let commit = dropped(&clone, "spike");
    clone.git(&["pack-refs", "--all"]);
    let copies = clone.common_dir().join("treesweep/retired");
    let neighbours = || {
        let gone = ["app/.git/treesweep", "app/.git/refs/treesweep", "app/.git/packed-refs"];
        Snapshot::of(&env.src()).without(&gone)
    };
    let before = neighbours();

    // Younger than 90 days.
    let young = log(&env, &clone.path, &["--expire"]);
    assert_eq!((names(&young), held(&clone)), (vec!["spike"], commit.clone()));
    keep(&env, "0s");
    // `prune` never drops one, whatever the config says.
    env.treesweep(&["prune", "--yes"]).args(NO_ENGINE).args(EAGER).arg(&clone.path).assert().success();
    assert_eq!((names(&log(&env, &clone.path, &[])), held(&clone)), (vec!["spike"], commit));

    let id = text(&young["clones"][0]["records"][0]["id"]).to_owned();
    let old = log(&env, &clone.path, &["--expire"]);
    assert_eq!(old["clones"][0]["expired"]["dropped"], serde_json::json!([id]));
    assert_eq!(old["clones"][0]["expired"]["refs"], 1);
    assert_eq!((names(&old), held(&clone)), (Vec::new(), String::new()));
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 0);
    before.assert_same(&neighbours());
    env.treesweep(&["log", "--expire"]).arg(&clone.path).assert().success().stdout(contains("No record"));
}

#[test]
fn a_ref_that_somebody_moved_keeps_its_record() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    dropped(&clone, "spike");
    keep(&env, "0s");
    let anchor = clone.git(&["for-each-ref", "--format=%(refname)", "refs/treesweep/retired"]);
    clone.git(&["update-ref", &anchor, "main"]);
    let main = clone.git(&["rev-parse", "main"]);
    env.treesweep(&["log", "--expire"]).arg(&clone.path).assert().code(1).stdout(contains("failed"));
    assert_eq!((names(&log(&env, &clone.path, &[])), held(&clone)), (vec!["spike"], main));
}

#[test]
fn an_interrupted_removal_is_marked_and_does_not_expire() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    dropped(&clone, "spike");
    keep(&env, "0s");
    // As a kill between the removal and the completion leaves it.
    let state = fs::read_dir(env.root().join("state/treesweep")).unwrap().map(|e| e.unwrap().path());
    let state = state.into_iter().find(|p| p.join("retired").is_dir()).expect("a clone's state");
    let record = fs::read_dir(state.join("retired")).unwrap().next().unwrap().unwrap().path();
    let mut half: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    half["completed"] = Value::Null;
    let journal = serde_json::json!({
        "schema": 1, "record": half, "root": utf8(&env.src()), "checkout": null, "entry": null,
        "branch": {"is": "none"},
    });
    fs::create_dir_all(state.join("journal")).unwrap();
    let id = record.file_stem().unwrap().to_str().unwrap();
    fs::write(state.join(format!("journal/{id}.forgetting")), journal.to_string()).unwrap();
    fs::write(&record, half.to_string()).unwrap();

    let log = log(&env, &clone.path, &["--expire"]);
    let row = &log["clones"][0]["records"][0];
    assert_eq!((&row["interrupted"], &row["pending"]), (&true.into(), &true.into()));
    let words = contains("interrupted").and(contains("treesweep prune"));
    env.treesweep(&["log"]).arg(&clone.path).assert().success().stdout(words);
}

use predicates::prelude::PredicateBooleanExt;

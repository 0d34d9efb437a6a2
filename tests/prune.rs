//! `treesweep prune` as scripts call it: exit codes, exact names, and what it leaves alone.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::{contains, is_empty};

fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
    path
}

fn owned(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = worktree(clone, name);
    clone.env.treesweep(&["setup"]).args(EAGER).arg(&path).assert().success();
    path
}

fn run(env: &TestEnv, args: &[&str]) -> assert_cmd::Command {
    let mut command = env.treesweep(args);
    command.args(["--engine", "none"]).args(EAGER).arg(env.src());
    command
}

#[test]
fn without_a_terminal_it_takes_yes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "done");
    run(&env, &["prune"]).assert().code(2).stdout(is_empty()).stderr(contains("--yes"));
    run(&env, &["--prune"]).assert().code(2);
    assert!(path.exists());
    run(&env, &["--prune", "--yes"]).assert().success();
    assert!(!path.exists() && !clone.has_branch("done"));
    // Nothing is left to do, and nothing is left over.
    run(&env, &["prune", "--yes"]).assert().success();
    let trash = clone.common_dir().join("treesweep/trash");
    assert!(!trash.exists() || fs::read_dir(trash).unwrap().next().is_none());
}

#[test]
fn a_usual_clone_gives_no_warning() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "fresh");
    run(&env, &["plan"]).assert().success().stderr(contains("could not be read").not());
}

#[test]
fn quiet_says_only_what_was_done() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    owned(&clone, "done");
    fs::write(owned(&clone, "wip").join("new"), "x").unwrap();
    run(&env, &["prune", "--yes", "-q"])
        .assert()
        .success()
        .stdout(contains("done").and(contains("wip").not()));
    run(&env, &["prune", "--yes", "-q"]).assert().success().stdout(is_empty());
}

#[test]
fn a_stale_registration_goes_by_its_exact_name_alone() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (a, _b, _c) = (worktree(&clone, "a"), worktree(&clone, "b"), worktree(&clone, "c"));
    for name in ["a", "b"] {
        fs::remove_dir_all(clone.path.join(".worktrees").join(name)).unwrap();
    }
    let plan = Document::of(&mut run(&env, &["plan", "--json"]));
    assert_eq!(plan.worktree("a")["class"], "stale", "{:#}", plan.0);
    run(&env, &["prune", "--yes"]).assert().success();
    assert_eq!(clone.entries(), ["a", "b", "c"], "an offer is not taken by itself");
    for pattern in ["a*", "x", utf8(&a)] {
        run(&env, &["prune", "--yes", "--stale", pattern]).assert().code(2);
    }
    // One that is there is not stale.
    run(&env, &["prune", "--yes", "--stale", "c"]).assert().code(2).stderr(contains("not offered"));
    run(&env, &["prune", "--yes", "--stale", "a"]).assert().success();
    assert_eq!(clone.entries(), ["b", "c"]);
    assert!(clone.has_branch("a"));
}

#[test]
fn an_owned_registration_whose_directory_is_gone_is_forgotten() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "gone");
    fs::remove_dir_all(&path).unwrap();
    let done = Document::of(&mut run(&env, &["prune", "--yes", "--json"]));
    done.assert_verdict("gone", "forget");
    assert_eq!(done.outcome("gone")["result"], "forgotten", "{:#}", done.0);
    assert_eq!(done.outcome("gone")["branch"], "deleted");
    assert_eq!(clone.entries(), Vec::<String>::new());
}

#[test]
fn an_orphan_goes_by_its_exact_path_if_a_commit_has_its_files() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (same, other) = (worktree(&clone, "same"), worktree(&clone, "other"));
    fs::write(other.join("only-here"), "x").unwrap();
    for name in ["same", "other"] {
        fs::remove_dir_all(clone.entry(name)).unwrap();
    }
    let plan = Document::of(&mut run(&env, &["plan", "--json"]));
    assert_eq!(plan.worktree("same")["class"], "orphan", "{:#}", plan.0);
    assert_eq!(plan.worktree("same")["recorded_path"], serde_json::Value::Null);
    plan.assert_kept("other", &["dirty"]);
    run(&env, &["prune", "--yes"]).assert().success();
    assert!(same.exists());
    run(&env, &["prune", "--yes", "--orphan", utf8(&other)]).assert().code(2);
    run(&env, &["prune", "--yes", "--orphan", utf8(&same)]).assert().success();
    assert!(!same.exists() && other.join("only-here").exists());
}

/// Where the registrations can't be read, none is seen to be gone: there are no orphans then.
#[test]
fn what_may_be_registered_is_no_orphan() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "w");
    let worktrees = clone.common_dir().join("worktrees");
    fs::rename(&worktrees, clone.common_dir().join("moved")).unwrap();
    std::os::unix::fs::symlink("moved", &worktrees).unwrap();
    let plan = Document::of(&mut run(&env, &["plan", "--json"]));
    plan.assert_kept("w", &["unreadable"]);
    run(&env, &["prune", "--yes", "--orphan", utf8(&path)])
        .assert()
        .code(2)
        .stderr(contains("can't be read"));
    assert!(path.join("file.txt").exists());
}

#[test]
fn no_time_is_no_harm() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "done");
    let before = Snapshot::of(&path);
    run(&env, &["prune", "--yes", "--time-limit", "0s"]).assert().success();
    before.assert_same(&Snapshot::of(&path));
    assert_eq!(clone.entries(), ["done"]);
    run(&env, &["prune", "--yes"]).assert().success();
    assert!(!path.exists());
}

#[test]
fn a_wrong_configuration_names_its_line() {
    let env = TestEnv::new();
    HostClone::new(&env, "app");
    let dir = env.root().join("config/treesweep");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), "idle = \"1h\"\nbranch-template = [\"x\"]\n").unwrap();
    env.treesweep(&["plan"])
        .arg(env.src())
        .assert()
        .code(2)
        .stderr(contains("config.toml:2").and(contains("branch-templates")));
}

#[test]
fn a_program_can_watch_it() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    owned(&clone, "done");
    let run = run(&env, &["prune", "--yes", "--json-lines"]).assert().success();
    let stdout = String::from_utf8_lossy(&run.get_output().stdout).into_owned();
    let lines: Vec<serde_json::Value> =
        stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().expect("an event")).collect();
    let (last, before) = events.split_last().expect("a last line");
    assert_eq!(*last, "result");
    assert!(before.contains(&"looking") && before.contains(&"removing"), "{events:?}");
    assert_eq!(lines[events.len() - 1]["document"]["outcomes"][0]["result"], "removed");
}

#[test]
fn a_history_that_takes_too_long_keeps_its_worktrees() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "done");
    let dir = env.root().join("config/treesweep");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), "history-limit = \"0s\"\n").unwrap();
    let reason = contains("unreadable").and(contains("history-limit"));
    run(&env, &["prune", "--yes"]).assert().success().stdout(reason);
    assert!(path.exists() && clone.has_branch("done"));
    fs::remove_file(dir.join("config.toml")).unwrap();
    run(&env, &["prune", "--yes"]).assert().success();
    assert!(!path.exists());
}

#[test]
fn the_environment_can_narrow_and_never_widen() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (kept, _) = (owned(&clone, "kept"), owned(&clone, "other"));
    let mut command = run(&env, &["prune", "--yes"]);
    command.env("TREESWEEP_PROTECT", "kept").env("TREESWEEP_ENGINE", "none").env("TREESWEEP_IDLE", "0s");
    command.assert().success().stderr(contains("TREESWEEP_IDLE"));
    assert!(kept.exists());
    assert_eq!(clone.entries(), ["kept"]);
}

#[test]
fn a_missing_engine_that_was_named_fails_the_run() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "done");
    let mut command = env.treesweep(&["prune", "--yes"]);
    command.args(["--engine", "/nowhere/docker.sock"]).args(EAGER).arg(env.src()).assert().code(1);
    assert!(!path.exists(), "a path of this host is judged all the same");
}

#[test]
fn where_files_can_not_be_locked_nothing_is_swept() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = owned(&clone, "done");
    // What is in the lock's place is no file: the clone can't be entered.
    let lock = clone.common_dir().join("treesweep/lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    run(&env, &["prune", "--yes"]).assert().code(1).stderr(contains("lock"));
    assert!(path.exists());
}

//! `treesweep setup` records ownership, in the exact entry and where no container reaches.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::env::{TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;

const QUIET: [&str; 6] = ["--engine", "none", "--idle", "0s", "--unstarted-after", "0s"];

fn worktree(clone: &HostClone<'_>, name: &str, branch: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", branch, utf8(&path)]);
    path
}

#[test]
fn the_marker_says_where_and_when() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "fix", "wt/fix");
    env.treesweep(&["setup", utf8(&path)]).assert().success().stdout(contains("owned"));
    let marker: serde_json::Value =
        serde_json::from_slice(&fs::read(clone.entry("fix").join("treesweep/ready")).unwrap()).unwrap();
    assert_eq!(marker["schema"], 1);
    assert_eq!(marker["name"], "fix");
    assert_eq!(marker["branch"], "refs/heads/wt/fix");
    assert_eq!(marker["path"], utf8(&path));
    assert_eq!(marker["recorded_path"], utf8(&path));
    for field in ["vantage", "file_system", "time"] {
        assert!(!marker[field].is_null(), "{marker:#}");
    }
    assert!(env.git(&path, &["status", "--porcelain"]).is_empty(), "a marker makes nothing dirty");
}

#[test]
fn enrolled_is_not_owned_until_the_branch_matches() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "fix", "agents/fix");
    let hint = contains("not owned").and(contains("agents/{name}"));
    env.treesweep(&["setup", utf8(&path)]).assert().success().stdout(hint);
    let plan = |more: &[&str]| {
        Document::of(env.treesweep(&["plan", "--json"]).args(QUIET).args(more).arg(env.src()))
    };
    assert_eq!(plan(&[]).worktree("fix")["class"], "unowned");
    plan(&["--branch-template", "agents/{name}"]).assert_verdict("fix", "reclaim");
}

#[test]
fn another_tools_marker_counts_where_the_user_says_so() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "fix", "fix");
    fs::create_dir(clone.entry("fix").join("agent")).unwrap();
    fs::write(clone.entry("fix").join("agent/ready"), "").unwrap();
    let plan = || Document::of(env.treesweep(&["plan", "--json"]).args(QUIET).arg(env.src()));
    assert_eq!(plan().worktree("fix")["owned"], false);
    let dir = env.root().join("config/treesweep");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), "[ownership]\nmarkers = [\"agent/ready\"]\n").unwrap();
    assert_eq!(plan().worktree("fix")["owned"], true);
}

#[test]
fn a_marker_of_another_entry_counts_as_none() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (a, _b) = (worktree(&clone, "a", "a"), worktree(&clone, "b", "b"));
    env.treesweep(&["setup", utf8(&a)]).assert().success();
    fs::create_dir(clone.entry("b").join("treesweep")).unwrap();
    fs::copy(clone.entry("a").join("treesweep/ready"), clone.entry("b").join("treesweep/ready")).unwrap();
    let plan = Document::of(env.treesweep(&["plan", "--json"]).args(QUIET).arg(env.src()));
    assert_eq!(plan.worktree("a")["owned"], true);
    assert_eq!(plan.worktree("b")["owned"], false);
}

/// Whoever can write the common directory can forge a marker; the record they can't.
#[test]
fn where_containers_write_a_host_path_needs_the_record() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (host, _boxed) = (worktree(&clone, "host", "host"), worktree(&clone, "boxed", "boxed"));
    env.treesweep(&["setup", utf8(&host)]).assert().success();
    fs::write(clone.entry("boxed").join("gitdir"), "/workspaces/app/.worktrees/boxed/.git\n").unwrap();
    let link = "gitdir: /workspaces/app/.git/worktrees/boxed\n";
    fs::write(clone.path.join(".worktrees/boxed/.git"), link).unwrap();
    let owned = || {
        let plan = Document::of(env.treesweep(&["plan", "--json"]).args(QUIET).arg(env.src()));
        plan.worktree("host")["owned"].clone()
    };
    assert_eq!(owned(), true);
    fs::remove_dir_all(env.root().join("state/treesweep")).unwrap();
    assert_eq!(owned(), false);
}

#[test]
fn only_what_is_a_worktree_is_enrolled() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    env.treesweep(&["setup", utf8(&clone.path)]).assert().code(2);
    env.treesweep(&["setup", "nothing", "--root", utf8(&env.src())]).assert().code(2);
    env.treesweep(&["setup", "--matching", "*", "--root", utf8(&env.src())]).assert().code(2);
}

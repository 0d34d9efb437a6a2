//! `treesweep drop` removes exactly what a person selected, and nothing that they were not told of.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::snapshot::Snapshot;
use predicates::str::contains;

const QUIET: [&str; 6] = ["--engine", "none", "--idle", "0s", "--unstarted-after", "0s"];

fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
    path
}

fn drop(env: &TestEnv, args: &[&str]) -> assert_cmd::Command {
    let mut command = env.treesweep(&["drop"]);
    command.args(QUIET).arg("--root").arg(env.src()).args(args);
    command
}

#[test]
fn an_unowned_landed_worktree_goes_by_its_name_and_its_branch_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "spike");
    drop(&env, &["spike"]).assert().success().stdout(contains("removed"));
    assert!(path.symlink_metadata().is_err());
    assert_eq!(clone.entries(), Vec::<String>::new());
    assert!(clone.has_branch("spike"));
}

#[test]
fn a_recorded_path_and_a_local_path_select_too() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (a, b) = (worktree(&clone, "a"), worktree(&clone, "b"));
    fs::write(clone.entry("a").join("gitdir"), "/workspaces/app/.worktrees/a/.git\n").unwrap();
    fs::write(a.join(".git"), "gitdir: /workspaces/app/.git/worktrees/a\n").unwrap();
    drop(&env, &["/workspaces/app/.worktrees/a"]).assert().success();
    drop(&env, &[utf8(&b)]).assert().success();
    assert!(!a.exists() && !b.exists());
}

#[test]
fn an_owned_landed_branch_goes_with_its_worktree() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "done");
    env.treesweep(&["setup"]).args(EAGER).arg(&path).assert().success();
    drop(&env, &["done", "--branch-template", "{name}"]).assert().success();
    assert!(!path.exists() && !clone.has_branch("done"));
}

#[test]
fn work_is_kept_until_force_has_named_it() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "wip");
    fs::write(path.join("file.txt"), "changed\n").unwrap();
    fs::write(path.join(".env"), "SECRET=1\n").unwrap();
    for n in 0..7 {
        fs::write(path.join(format!("new-{n}")), "new\n").unwrap();
        env.git(&path, &["add", &format!("new-{n}")]);
    }
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
    let unchanged = || before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));

    drop(&env, &["wip"]).assert().code(1).stderr(contains("dirty").and(contains("--force")));
    unchanged();
    // Without a terminal the name can't be typed.
    drop(&env, &["wip", "--force"]).assert().code(2).stderr(contains("--yes"));
    unchanged();

    let mut forced = drop(&env, &["wip", "--force", "--yes"]).assert().success();
    for lost in ["file.txt (modified)", ".env (ignored, nowhere else)", "new-0 (staged)", "new-6 (staged)"] {
        forced = forced.stderr(contains(lost));
    }
    assert!(!path.exists() && clone.has_branch("wip"));
}

/// Also of what has no registration any more, and of what has no directory.
#[test]
fn everything_that_force_takes_is_listed() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (orphan, stale) = (worktree(&clone, "orphan"), worktree(&clone, "stale"));
    for n in 0..7 {
        fs::write(orphan.join(format!("new-{n}")), "new\n").unwrap();
        fs::write(stale.join(format!("new-{n}")), "new\n").unwrap();
    }
    env.git(&stale, &["add", "-A"]);
    fs::remove_dir_all(&stale).unwrap();
    fs::remove_dir_all(clone.entry("orphan")).unwrap();
    let listed = |args: &[&str], what: &str| {
        let mut forced = drop(&env, args).assert().success();
        for n in 0..7 {
            forced = forced.stderr(contains(format!("new-{n} ({what})")));
        }
    };
    listed(&[utf8(&orphan), "--force", "--yes"], "untracked");
    listed(&["stale", "--force", "--yes"], "staged");
    assert!(!orphan.exists() && clone.entries().is_empty());
}

#[test]
fn nothing_overrides_a_lock_or_a_nested_repository() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (locked, nested) = (worktree(&clone, "locked"), worktree(&clone, "nested"));
    clone.git(&["worktree", "lock", "--reason", "mine", utf8(&locked)]);
    env.git(&nested, &["init", "-q", "target/inner"]);
    for (name, code) in [("locked", "locked"), ("nested", "nested-repository")] {
        drop(&env, &[name, "--force", "--yes"]).assert().code(1).stderr(contains(code));
    }
    assert!(locked.join(".git").exists() && nested.join("target/inner/.git").exists());
}

#[test]
fn commits_on_a_detached_head_get_a_ref_first() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.path.join(".worktrees/d");
    clone.git(&["worktree", "add", "-q", "--detach", utf8(&path)]);
    env.git(&path, &["commit", "-q", "--allow-empty", "-m", "only here"]);
    let commit = env.git(&path, &["rev-parse", "HEAD"]);
    drop(&env, &["d"]).assert().code(1).stderr(contains("unreachable-commits"));
    drop(&env, &["d", "--force", "--yes"]).assert().success().stderr(contains(&commit));
    assert!(!path.exists());
    let refs = clone.git(&["for-each-ref", "--format=%(objectname)", "refs/treesweep/retired"]);
    assert_eq!(refs, commit);
}

#[test]
fn a_name_of_two_worktrees_selects_none() {
    let env = TestEnv::new();
    let (one, two) = (HostClone::new(&env, "one"), HostClone::new(&env, "two"));
    let (a, b) = (worktree(&one, "x"), worktree(&two, "x"));
    drop(&env, &["x"]).assert().code(2).stderr(contains("several"));
    drop(&env, &["y"]).assert().code(2).stderr(contains("no worktree here"));
    assert!(a.exists() && b.exists());
}

#[test]
fn trash_that_no_journal_knows_is_completed_by_its_path() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "gone");
    let trash = clone.path.join(".worktrees/.treesweep-trash-20260101T000000000Z-0123456789ab-gone");
    fs::rename(&path, &trash).unwrap();
    fs::remove_file(trash.join("file.txt")).unwrap();
    let plan = env.treesweep(&["plan", "--json"]).args(QUIET).arg(env.src()).output().unwrap();
    assert!(String::from_utf8_lossy(&plan.stdout).contains("\"interrupted\""), "{plan:?}");
    env.treesweep(&["prune", "--yes"]).args(QUIET).arg(env.src()).assert().success();
    assert!(trash.exists(), "prune never touches what its journal does not know");

    drop(&env, &[utf8(&trash)]).assert().success();
    assert!(!trash.exists());
}

#[test]
fn trash_without_a_link_is_somebody_elses() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let trash = clone.path.join(".worktrees/.treesweep-trash-20260101T000000000Z-0123456789ab-gone");
    fs::create_dir_all(&trash).unwrap();
    fs::write(trash.join("precious"), "mine").unwrap();
    drop(&env, &[utf8(&trash), "--force", "--yes"]).assert().code(1).stderr(contains("broken-link"));
    assert!(trash.join("precious").exists());
}

use predicates::prelude::PredicateBooleanExt;

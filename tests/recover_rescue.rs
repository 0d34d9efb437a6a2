//! `treesweep guard` and `treesweep rescue`: what a prune from the wrong place forgets is registered again.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::containers::require_engine;
use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::scene::{APP, BESIDE, INSIDE, Scene, Tree, UNFINISHED};
use common::snapshot::Snapshot;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

const NO_ENGINE: [&str; 2] = ["--engine", "none"];

fn json(mut command: assert_cmd::Command, code: i32) -> Value {
    let run = command.arg("--json").assert().code(code);
    let document: Value = serde_json::from_slice(&run.get_output().stdout).expect("a document");
    assert_eq!(document["schema"], 1);
    document
}

/// A worktree at `.worktrees/<name>` with a commit of its own on a branch of its name, and work that is not committed.
fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
    fs::write(path.join(name), name).unwrap();
    clone.env.git(&path, &["add", "-A"]);
    clone.env.git(&path, &["commit", "-qm", name]);
    fs::write(path.join("wip"), "wip").unwrap();
    path
}

/// As if a container had made it that has the clone at `/workspaces/app`.
fn of_a_container(clone: &HostClone<'_>, name: &str) {
    let there = format!("/workspaces/app/.worktrees/{name}/.git\n");
    fs::write(clone.entry(name).join("gitdir"), there).unwrap();
    let pointer = format!("gitdir: /workspaces/app/.git/worktrees/{name}\n");
    fs::write(clone.path.join(".worktrees").join(name).join(".git"), pointer).unwrap();
}

fn rescue(env: &TestEnv, path: &Path, args: &[&str]) -> assert_cmd::Command {
    let mut command = env.treesweep(&["rescue", utf8(path)]);
    command.args(NO_ENGINE).args(args).arg(env.src());
    command
}

fn guard(env: &TestEnv, args: &[&str]) -> assert_cmd::Command {
    let mut command = env.treesweep(&["guard"]);
    command.args(NO_ENGINE).args(args).arg(env.src());
    command
}

/// The victims of a prune on the host, with a running container that has them: one that was guarded before, one not.
#[test]
fn a_running_container_gets_its_worktrees_back() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    let src = env.src();
    let rescue = |tree: Tree, args: &[&str]| {
        let path = scene.host_path(tree);
        let mut command = env.treesweep(&["rescue", utf8(&path)]);
        command.args(args).arg(&src);
        command
    };
    // One has no snapshot: its entry is out of sight meanwhile.
    let (entry, aside) = (scene.clone.entry(BESIDE.name), env.root().join(BESIDE.name));
    fs::rename(&entry, &aside).unwrap();
    env.treesweep(&["guard", utf8(&src)]).assert().success();
    fs::rename(&aside, &entry).unwrap();
    let before = [INSIDE, BESIDE, UNFINISHED].map(|tree| Snapshot::of(&scene.host_path(tree)));

    env.git(&scene.clone.path, &["worktree", "prune"]);
    for tree in [INSIDE, BESIDE, UNFINISHED] {
        assert_eq!(scene.container.try_exec(tree.path, &["git", "status"]).code, 128);
    }

    for tree in [INSIDE, UNFINISHED] {
        rescue(tree, &[]).assert().success().stdout(contains(format!("registered as {}", tree.path)));
    }
    let listed = json(rescue(BESIDE, &[]), 2);
    let nearest = &listed["candidates"]["branches"][0];
    assert_eq!((&nearest["branch"], &nearest["differs"]), (&BESIDE.name.into(), &0.into()), "{listed:#}");
    rescue(BESIDE, &["--branch", BESIDE.name]).assert().success();

    for (tree, before) in [INSIDE, BESIDE, UNFINISHED].into_iter().zip(before) {
        before.assert_same(&Snapshot::of(&scene.host_path(tree)));
        let status = scene.container.git(tree.path, &["status", "--porcelain", "--branch"]);
        let head = format!("## {}", tree.name);
        assert_eq!(status.lines().next(), Some(head.as_str()), "{status}");
        let changed = status.lines().skip(1).collect::<Vec<_>>();
        match tree.name {
            "unfinished" => assert_eq!(changed, [" M file.txt", "?? new.txt"]),
            _ => assert_eq!(changed, [""; 0]),
        }
        assert!(scene.container.git(APP, &["worktree", "list"]).contains(tree.path));
    }
}

#[test]
fn relative_links_are_relative_again() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "x");
    fs::write(clone.entry("x").join("gitdir"), "../../../.worktrees/x/.git\n").unwrap();
    fs::write(path.join(".git"), "gitdir: ../../.git/worktrees/x\n").unwrap();
    let before = Snapshot::of(&path);
    fs::remove_dir_all(clone.entry("x")).unwrap();
    let done = json(rescue(&env, &path, &["--branch", "x"]), 0);
    assert_eq!(done["rescued"]["links"], "relative");
    before.assert_same(&Snapshot::of(&path));
    let gitdir = fs::read_to_string(clone.entry("x").join("gitdir")).unwrap();
    assert_eq!(gitdir, "../../../.worktrees/x/.git\n");
    assert_eq!(env.git(&path, &["status", "--porcelain", "-b"]), "## x\n?? wip");
    rescue(&env, &path, &[]).assert().success().stderr(contains("is registered already, as x"));
    assert_eq!(json(rescue(&env, &path, &[]), 0)["rescued"], Value::Null);
}

#[test]
fn the_branches_are_listed_nearest_first_and_none_is_chosen() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "it's");
    worktree(&clone, "other");
    clone.git(&["branch", "old", "main"]);
    clone.git(&["worktree", "remove", "--force", utf8(&clone.path.join(".worktrees/other"))]);
    fs::remove_dir_all(clone.entry("it's")).unwrap();
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
    let rows = json(rescue(&env, &path, &[]), 2);
    before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));
    let rows = rows["candidates"]["branches"].as_array().unwrap();
    let differs: Vec<_> = rows.iter().map(|r| (r["branch"].as_str().unwrap(), &r["differs"])).collect();
    // `wip` is in none of them; each of the others lacks one more file, or has one that is not here.
    assert_eq!(differs[0], ("it's", &1.into()), "{differs:?}");
    assert_eq!(differs[3], ("other", &3.into()), "{differs:?}");
    let main = rows.iter().find(|r| r["branch"] == "main").unwrap();
    assert!(main["in_use"].as_str().unwrap().contains("the main worktree"), "{main}");
    assert_eq!(main["next"], Value::Null);

    let text = rescue(&env, &path, &[]).assert().code(2);
    let text = String::from_utf8(text.get_output().stdout.clone()).unwrap();
    let next = text.lines().last().unwrap().trim().strip_prefix("treesweep ").unwrap();
    let mut shell = env.command("sh");
    let run = shell.args(["-c", &format!("{} {next}", env!("CARGO_BIN_EXE_treesweep"))]).output().unwrap();
    assert!(run.status.success(), "{next}: {run:?}");
    assert_eq!(env.git(&path, &["status", "--porcelain", "-b"]), "## it's\n?? wip");
}

#[test]
fn whose_it_is_has_to_be_proven() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let other = HostClone::new(&env, "deep/app");
    let path = worktree(&clone, "x");
    of_a_container(&clone, "x");
    fs::remove_dir_all(clone.entry("x")).unwrap();
    let src = || Snapshot::of(&env.src()).without(&["app/.git/treesweep", "deep/app/.git/treesweep"]);
    let unchanged = src();
    // Both end in `app/.git`, but what is beneath one of them is not what is beneath the other.
    let args = ["--branch", "x"];
    let refused = |text: &str| rescue(&env, &path, &args).assert().failure().stderr(contains(text));
    fs::write(path.join(".git"), "gitdir: /workspaces/project/.git/worktrees/x\n").unwrap();
    refused("say it with --map");
    fs::write(path.join(".git"), format!("gitdir: {}/worktrees/x\n", utf8(&other.common_dir()))).unwrap();
    rescue(&env, &path, &["--branch", "x"]).assert().failure();
    fs::create_dir_all(clone.entry("x")).unwrap();
    of_a_container(&clone, "x");
    fs::remove_file(clone.entry("x").join("gitdir")).unwrap();
    refused("was not rescued");
    fs::remove_dir_all(clone.entry("x")).unwrap();
    unchanged.assert_same(&src());

    let map = format!("/workspaces/app={}", utf8(&clone.path));
    let done = json(rescue(&env, &path, &["--branch", "x", "--map", &map]), 0);
    assert_eq!(done["rescued"]["recorded_path"], "/workspaces/app/.worktrees/x");
    assert_eq!(done["rescued"]["links"], "as-before");
}

/// One clone lies in another of its name: by its name alone the `.git` file may mean either.
#[test]
fn of_two_clones_that_answer_to_one_name_none_is_guessed() {
    let env = TestEnv::new();
    HostClone::new(&env, "app");
    let inner = HostClone::new(&env, "app/vendor/app");
    let path = worktree(&inner, "x");
    of_a_container(&inner, "x");
    let entry = inner.entry("x");
    fs::rename(&entry, env.root().join("x")).unwrap();
    rescue(&env, &path, &["--branch", "x"]).assert().failure().stderr(contains("may be any of"));
    fs::rename(env.root().join("x"), &entry).unwrap();
    guard(&env, &[]).assert().success();
    fs::remove_dir_all(&entry).unwrap();
    rescue(&env, &path, &[]).assert().success().stdout(contains("on branch x"));
    assert!(entry.join("HEAD").exists());
}

#[test]
fn a_snapshot_says_what_head_was_also_when_a_later_guard_sees_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "x");
    of_a_container(&clone, "x");
    let before = fs::read(clone.common_dir().join("config")).unwrap();
    let row = json(guard(&env, &[]), 0)["clones"][0].clone();
    assert_eq!((&row["gc"], &row["snapshots"]["new"]), (&"set".into(), &1.into()));
    clone.git(&["worktree", "prune"]);
    assert!(!clone.entry("x").exists());
    guard(&env, &[]).assert().success().stdout(contains("stops the prune of `git gc`, not"));
    rescue(&env, &path, &[]).assert().success().stdout(contains("as guard saw it"));
    let gitdir = fs::read_to_string(clone.entry("x").join("gitdir")).unwrap();
    assert_eq!(gitdir, "/workspaces/app/.worktrees/x/.git\n");
    assert_eq!(fs::read_to_string(clone.entry("x").join("HEAD")).unwrap(), "ref: refs/heads/x\n");
    guard(&env, &["--undo"]).assert().success().stdout(contains("is what it was"));
    assert_eq!(fs::read(clone.common_dir().join("config")).unwrap(), before);

    // The branch went meanwhile: the command that makes it again is named, and works.
    let tip = clone.git(&["rev-parse", "x"]);
    fs::remove_dir_all(clone.entry("x")).unwrap();
    clone.git(&["branch", "-q", "-D", "x"]);
    let says = contains(format!("git -C {} branch x {tip}", utf8(&clone.path)));
    rescue(&env, &path, &[]).assert().code(1).stderr(says);
    clone.git(&["branch", "x", &tip]);
    rescue(&env, &path, &[]).assert().success();
}

/// The lock holds git, and not treesweep: the worktree is forgotten and reclaimed like any other.
#[test]
fn a_guarded_worktree_is_swept_as_any_other() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.add_landed("fix");
    of_a_container(&clone, "fix");
    env.treesweep(&["setup", utf8(&path), "--root", utf8(&env.src())]).args(EAGER).assert().success();
    let row = json(guard(&env, &["--lock"]), 0)["clones"][0].clone();
    assert_eq!((&row["locks"][0]["name"], &row["locks"][0]["result"]), (&"fix".into(), &"locked".into()));
    clone.git(&["worktree", "prune"]);
    assert!(clone.entry("fix").exists(), "the lock holds git");
    let again = guard(&env, &["--lock"]).assert().success();
    again.stdout(contains("locked, as an earlier run has done").and(contains("1 unchanged")));
    let plan = env
        .treesweep(&["plan", "--json", "--engine", "none", "--idle", "0s"])
        .arg(env.src())
        .output()
        .unwrap();
    let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
    assert_eq!(plan["clones"][0]["worktrees"][0]["verdict"], "reclaim", "{plan:#}");
    let done = Document::of(
        env.treesweep(&["prune", "--yes", "--json", "--engine", "none", "--idle", "0s"]).arg(env.src()),
    );
    done.assert_removed("fix", "deleted");
    assert!(!path.exists() && !clone.entry("fix").exists());
}

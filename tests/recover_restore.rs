//! `treesweep restore` brings back what was committed, where it was, so that whoever made the worktree can use it again.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::containers::require_engine;
use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::scene::{BESIDE, INSIDE, NESTED, Scene};
use common::snapshot::Snapshot;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use serde_json::Value;

const NO_ENGINE: [&str; 2] = ["--engine", "none"];

fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
    path
}

fn drop(clone: &HostClone<'_>, name: &str) {
    let args = ["drop", name, "--force", "--yes", "--root", utf8(&clone.path)];
    clone.env.treesweep(&args).args(NO_ENGINE).args(EAGER).assert().success();
    assert!(!clone.path.join(".worktrees").join(name).exists(), "{name} is still there");
}

/// A commit on the branch `x`, whose worktree was dropped: one with filters could not have been compared.
fn commit_after_drop(clone: &HostClone<'_>, make: impl Fn(&Path)) {
    worktree(clone, "x");
    drop(clone, "x");
    let elsewhere = clone.env.root().join("elsewhere");
    clone.git(&["worktree", "add", "-q", utf8(&elsewhere), "x"]);
    make(&elsewhere);
    clone.env.git(&elsewhere, &["commit", "-qm", "later"]);
    clone.git(&["worktree", "remove", "--force", utf8(&elsewhere)]);
}

fn restore(env: &TestEnv, args: &[&str]) -> assert_cmd::Command {
    let mut command = env.treesweep(&["restore"]);
    command.args(NO_ENGINE).args(args).arg(env.src());
    command
}

fn restored(env: &TestEnv, args: &[&str]) -> Value {
    let run = restore(env, args).arg("--json").assert().success();
    let document: Value = serde_json::from_slice(&run.get_output().stdout).expect("a document");
    assert_eq!(document["schema"], 1);
    document["restored"].clone()
}

fn ids(env: &TestEnv) -> Vec<String> {
    let run = env.treesweep(&["log", "--json", utf8(&env.src())]).assert().success();
    let log: Value = serde_json::from_slice(&run.get_output().stdout).expect("a document");
    let clones = log["clones"].as_array().expect("clones");
    let records = clones.iter().flat_map(|c| c["records"].as_array().expect("records"));
    records.map(|r| r["id"].as_str().expect("an id").to_owned()).collect()
}

/// Files without the link, which need not be the same byte for byte.
fn files(path: &Path) -> Snapshot {
    Snapshot::of(path).without(&[".git"])
}

#[test]
fn a_reclaimed_worktree_comes_back_with_its_branch() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.add_landed("fix");
    let (before, link) = (files(&path), fs::read(path.join(".git")).unwrap());
    let tip = env.git(&path, &["rev-parse", "HEAD"]);
    env.treesweep(&["setup", utf8(&path)]).args(NO_ENGINE).assert().success();
    env.treesweep(&["prune", "--yes", "--idle", "0s"]).args(NO_ENGINE).arg(&clone.path).assert().success();
    assert!(!path.exists() && !clone.has_branch("wt/fix"));

    let words = contains("Restored fix at").and(contains("wt/fix, made anew")).and(contains("untracked"));
    restore(&env, &["fix"]).assert().success().stdout(words);
    before.assert_same(&files(&path));
    assert_eq!(fs::read(path.join(".git")).unwrap(), link);
    assert_eq!(env.git(&path, &["rev-parse", "HEAD", "wt/fix"]), format!("{tip}\n{tip}"));
    assert_eq!(env.git(&path, &["status", "--porcelain", "--branch"]), "## wt/fix");
    assert!(clone.git(&["worktree", "list"]).contains(utf8(&path)));
    assert_eq!(clone.git(&["fsck", "--no-progress"]), "");
    // It is nobody's until it is enrolled again: the next sweep leaves it alone.
    env.treesweep(&["prune", "--yes", "--idle", "0s"]).args(NO_ENGINE).arg(&clone.path).assert().success();
    assert!(path.exists());
    restore(&env, &["fix"]).assert().code(2).stderr(contains("another worktree is registered as fix"));
}

#[test]
fn a_branch_that_is_there_is_used_and_one_in_use_is_not() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["on", "busy"] {
        let path = worktree(&clone, name);
        fs::write(path.join("work"), name).unwrap();
        env.git(&path, &["add", "-A"]);
        env.git(&path, &["commit", "-qm", name]);
        drop(&clone, name);
    }
    let was = clone.git(&["rev-parse", "on"]);
    clone.git(&["branch", "-f", "on", "main"]);
    let row = restored(&env, &["on"]);
    assert_eq!((&row["branch"], &row["head_is"]), (&"on".into(), &"existing".into()));
    assert_eq!((&row["head"], &row["was"]), (&clone.git(&["rev-parse", "main"]).into(), &was.into()));

    clone.git(&["switch", "-q", "busy"]);
    let row = restored(&env, &["busy"]);
    assert_eq!((&row["branch"], &row["head_is"]), (&Value::Null, &"detached".into()));
    let why = row["head_detail"].as_str().unwrap();
    assert!(why.contains("the main worktree has it checked out"), "{why}");
    assert_eq!(env.git(&clone.path.join(".worktrees/busy"), &["status", "--porcelain"]), "");
}

#[test]
fn a_detached_head_comes_back_from_its_commit() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.path.join(".worktrees/d");
    clone.git(&["worktree", "add", "-q", "--detach", utf8(&path)]);
    fs::write(path.join("only-here"), "x").unwrap();
    env.git(&path, &["add", "-A"]);
    env.git(&path, &["commit", "-qm", "only here"]);
    let commit = env.git(&path, &["rev-parse", "HEAD"]);
    drop(&clone, "d");
    let row = restored(&env, &["d"]);
    assert_eq!((&row["head"], &row["head_is"]), (&commit.as_str().into(), &"detached".into()));
    assert_eq!(row["anchors"][0]["commit"], commit.as_str());
    assert_eq!(row["overridden"][0]["code"], "unreachable-commits");
    assert_eq!(fs::read(path.join("only-here")).unwrap(), b"x");
}

#[test]
fn another_place_is_named_where_the_old_one_can_not_be() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "x");
    drop(&clone, "x");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("mine"), "mine").unwrap();
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
    let unchanged = || before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));
    restore(&env, &["x"]).assert().code(2).stderr(contains("not empty").and(contains("--at PATH")));
    unchanged();
    let outside = env.root().join("outside");
    restore(&env, &["x", "--at", utf8(&outside)]).assert().code(2).stderr(contains("outside of every root"));
    let git = clone.common_dir().join("x");
    restore(&env, &["x", "--at", utf8(&git)]).assert().code(2).stderr(contains("git directory"));
    unchanged();
    assert!(!outside.exists());

    let other = env.src().join("new/deep/x");
    restored(&env, &["x", "--at", utf8(&other)]);
    assert_eq!(env.git(&other, &["status", "--porcelain", "--branch"]), "## x");
    assert_eq!(fs::read(path.join("mine")).unwrap(), b"mine");
}

#[test]
fn a_record_is_named_exactly() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "x");
    drop(&clone, "x");
    clone.git(&["worktree", "add", "-q", utf8(&clone.path.join(".worktrees/x")), "x"]);
    drop(&clone, "x");
    let ids = ids(&env);
    let both = || contains(ids[0].as_str()).and(contains(ids[1].as_str()));
    restore(&env, &["x"]).assert().code(2).stderr(contains("one of 2 records").and(both()));
    restore(&env, &["2"]).assert().code(2).stderr(both());
    restore(&env, &["y"]).assert().code(2).stderr(contains("treesweep log"));
    restore(&env, &[""]).assert().code(2);
    assert!(!clone.path.join(".worktrees/x").exists());
    let differ = ids[0].bytes().zip(ids[1].bytes()).position(|(a, b)| a != b).unwrap();
    assert_eq!(restored(&env, &[&ids[0][..=differ]])["id"], ids[0].as_str());
}

#[test]
fn modes_links_and_names_are_what_they_were() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "x");
    fs::create_dir_all(path.join("a/b/c")).unwrap();
    for name in ["a/b/c/run", "a/ b\n\u{1b}[31m", "a/b-1", "a.b", "-rf"] {
        fs::write(path.join(name), name).unwrap();
    }
    fs::write(path.join(std::ffi::OsString::from_vec(b"a/\xff".to_vec())), "bytes").unwrap();
    fs::write(path.join("empty"), "").unwrap();
    fs::set_permissions(path.join("a/b/c/run"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("../../outside", path.join("a/link")).unwrap();
    symlink("a/b", path.join("dir-link")).unwrap();
    env.git(&path, &["add", "-A"]);
    env.git(&path, &["commit", "-qm", "files"]);
    let before = files(&path);
    drop(&clone, "x");
    restored(&env, &["x"]);
    before.assert_same(&files(&path));
    assert_eq!(env.git(&path, &["status", "--porcelain"]), "");
}

#[test]
fn no_filter_is_run_and_what_lacks_one_is_named() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.path.join(".worktrees/x");
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n",
        "6667b2d1aab6a00caa5aee5af8ad9f1465e567abf1c209d15727d57b3e8f6e5f"
    );
    let module = clone.git(&["rev-parse", "HEAD"]);
    commit_after_drop(&clone, |path| {
        fs::write(path.join(".gitattributes"), "*.bin filter=lfs\n*.key filter=crypt\n").unwrap();
        fs::write(path.join("large.bin"), &pointer).unwrap();
        fs::write(path.join("s.key"), "stored\n").unwrap();
        fs::create_dir(path.join("sub")).unwrap();
        fs::write(path.join("sub/.gitattributes"), "plain.key -filter\n").unwrap();
        fs::write(path.join("sub/plain.key"), "plain\n").unwrap();
        env.git(path, &["add", "-A"]);
        env.git(path, &["update-index", "--add", "--cacheinfo", &format!("160000,{module},module")]);
    });

    let canary = env.root().join("canary");
    for program in ["filter.lfs.smudge", "filter.crypt.smudge", "filter.crypt.process", "core.fsmonitor"] {
        clone.git(&["config", program, &format!("touch {} #", canary.display())]);
    }
    fs::write(
        clone.common_dir().join("hooks/post-checkout"),
        format!("#!/bin/sh\ntouch {}\n", canary.display()),
    )
    .unwrap();
    fs::set_permissions(clone.common_dir().join("hooks/post-checkout"), fs::Permissions::from_mode(0o755))
        .unwrap();
    let words = contains("lfs pull").and(contains("filter=crypt")).and(contains("s.key"));
    restore(&env, &["x"]).assert().success().stdout(words.and(contains("submodule update --init")));
    assert!(!canary.exists());
    assert_eq!(fs::read_to_string(path.join("large.bin")).unwrap(), pointer);
    assert_eq!(fs::read_to_string(path.join("s.key")).unwrap(), "stored\n");
    assert!(path.join("module").is_dir());
}

#[test]
fn a_file_is_written_through_its_filter_as_the_hint_says() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = clone.path.join(".worktrees/x");
    clone.git(&["config", "filter.crypt.clean", "tr a-z b-za"]);
    clone.git(&["config", "filter.crypt.smudge", "tr b-za a-z"]);
    commit_after_drop(&clone, |path| {
        fs::write(path.join(".gitattributes"), "*.key filter=crypt\n").unwrap();
        fs::write(path.join("s.key"), "secret\n").unwrap();
        env.git(path, &["add", "-A"]);
    });
    let row = restored(&env, &["x"]);
    assert_eq!(row["filtered"], serde_json::json!([{"by": "filter=crypt", "files": 1, "first": ["s.key"]}]));
    assert_eq!(fs::read_to_string(path.join("s.key")).unwrap(), "tfdsfu\n");
    fs::remove_file(path.join("s.key")).unwrap();
    env.git(&path, &["checkout", "--", "s.key"]);
    assert_eq!(fs::read_to_string(path.join("s.key")).unwrap(), "secret\n");
    assert_eq!(env.git(&path, &["status", "--porcelain"]), "");
}

/// Whoever can write objects can write a tree with any names in it.
#[test]
fn a_crafted_tree_writes_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "x");
    drop(&clone, "x");
    let blob = clone.git(&["rev-parse", "main:file.txt"]);
    let state = fs::read_dir(env.root().join("state/treesweep")).unwrap().map(|e| e.unwrap().path());
    let state = state.into_iter().find(|p| p.join("retired").is_dir()).unwrap();
    let record = fs::read_dir(state.join("retired")).unwrap().next().unwrap().unwrap().path();
    let outside = env.src().join("app/.worktrees/config");
    for name in [".git", "..", ".GIT", "git~1"] {
        let list = env.root().join("list");
        let mktree = |line: String| {
            fs::write(&list, line).unwrap();
            let mut git = env.command("git");
            git.arg("-C").arg(&clone.path).arg("mktree").stdin(fs::File::open(&list).unwrap());
            common::env::stdout_of("mktree", git.output().unwrap())
        };
        let inner = mktree(format!("100644 blob {blob}\tconfig\n"));
        let tree = mktree(format!("040000 tree {inner}\t{name}\n"));
        let commit = clone.git(&["commit-tree", &tree, "-m", "crafted"]);
        let mut crafted: Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
        crafted["tip"] = commit.into();
        crafted["branch"] = Value::Null;
        fs::write(&record, crafted.to_string()).unwrap();
        let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
        restore(&env, &["x"]).assert().code(1).stderr(contains("was not restored"));
        before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));
        assert!(!outside.exists());
    }
}

#[test]
fn a_bare_clone_with_relative_links_in_sha256() {
    let env = TestEnv::new();
    let bare = env.src().join("app/.bare");
    env.git(env.root(), &["init", "-q", "--bare", "--object-format=sha256", "-b", "main", utf8(&bare)]);
    fs::write(env.src().join("app/.git"), "gitdir: ./.bare\n").unwrap();
    let tree = env.git(&bare, &["hash-object", "-t", "tree", "-w", "/dev/null"]);
    let commit = env.git(&bare, &["commit-tree", &tree, "-m", "empty"]);
    env.git(&bare, &["update-ref", "refs/heads/main", &commit]);
    let path = env.src().join("app/x");
    env.git(&bare, &["worktree", "add", "-q", "-b", "x", utf8(&path)]);
    fs::write(path.join("f"), "f\n").unwrap();
    env.git(&path, &["add", "-A"]);
    env.git(&path, &["commit", "-qm", "f"]);
    fs::write(bare.join("worktrees/x/gitdir"), "../../../x/.git\n").unwrap();
    fs::write(path.join(".git"), "gitdir: ../.bare/worktrees/x\n").unwrap();
    assert_eq!(env.git(&path, &["status", "--porcelain"]), "");
    let src = env.src();
    let args = ["drop", "x", "--force", "--yes", "--root", utf8(&src)];
    env.treesweep(&args).args(NO_ENGINE).args(EAGER).assert().success();
    assert!(!path.exists());
    assert_eq!(restored(&env, &["x"])["links"], "relative");
    assert_eq!(fs::read(bare.join("worktrees/x/gitdir")).unwrap(), b"../../../x/.git\n");
    assert_eq!(fs::read(path.join(".git")).unwrap(), b"gitdir: ../.bare/worktrees/x\n");
    assert_eq!(env.git(&path, &["status", "--porcelain", "--branch"]), "## x");
}

/// Made in a container, swept and restored on the host: the container can go on.
#[test]
fn a_containers_worktree_is_usable_in_the_container_again() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    for tree in [INSIDE, BESIDE, NESTED] {
        let path = scene.host_path(tree);
        env.treesweep(&["setup", utf8(&path), "--root", utf8(&env.src())]).args(EAGER).assert().success();
    }
    let trees = [INSIDE, BESIDE];
    let before = trees.map(|tree| files(&scene.host_path(tree)));
    let links = trees.map(|tree| fs::read(scene.host_path(tree).join(".git")).unwrap());
    // What is nested goes first; it does not matter here.
    env.treesweep(&["prune", "--yes"]).args(EAGER).arg(env.src()).assert().success();
    for ((tree, before), link) in trees.into_iter().zip(before).zip(links) {
        let path = scene.host_path(tree);
        assert!(!path.exists(), "{} was not swept", tree.name);
        let run = env.treesweep(&["restore", tree.name, utf8(&env.src())]).assert().success();
        run.stdout(contains(format!("registered as {}", tree.path)));
        before.without(&[".worktrees"]).assert_same(&files(&path));
        assert_eq!(fs::read(path.join(".git")).unwrap(), link);
        let head = format!("## {}", tree.name);
        assert_eq!(scene.container.git(tree.path, &["status", "--porcelain", "--branch"]), head);
    }
    assert!(scene.container.git("/workspaces/app", &["worktree", "list"]).contains(BESIDE.path));
}

use std::os::unix::ffi::OsStringExt;

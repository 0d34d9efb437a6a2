//! Links between registrations and directories, as copying, moving and other people's clones leave them: what is not
//! certainly a worktree of the clone keeps every byte.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::env::{EAGER, TestEnv, is_root, utf8};
use common::git::{HostClone, copy_tree};
use common::plan::Document;
use common::snapshot::Snapshot;

/// Flags of each run: nobody on this machine has an engine.
const ALONE: [&str; 2] = ["--engine", "none"];

fn plan(env: &TestEnv, roots: &[&Path]) -> Document {
    Document::of(env.treesweep(&["plan", "--json"]).args(EAGER).args(ALONE).args(roots))
}

fn prune(env: &TestEnv, roots: &[&Path]) -> Document {
    Document::of(env.treesweep(&["prune", "--yes", "--json"]).args(EAGER).args(ALONE).args(roots))
}

/// An enrolled worktree with landed work, so that nothing but its links can keep it.
fn worktree(clone: &HostClone<'_>, name: &str, at: &Path) -> PathBuf {
    clone.git(&["worktree", "add", "-q", utf8(at), "-b", name]);
    fs::write(at.join(format!("{name}.txt")), "work\n").expect("a file");
    clone.env.git(at, &["add", "-A"]);
    clone.env.git(at, &["commit", "-qm", name]);
    clone.git(&["push", "-q", "origin", "HEAD:refs/heads/ignored"]);
    clone.git(&["fetch", "-q"]);
    clone.env.treesweep(&["setup"]).args(EAGER).args(ALONE).arg(at).assert().success();
    at.to_owned()
}

/// Merges the branches into the remote's main.
fn land(clone: &HostClone<'_>, names: &[&str]) {
    for name in names {
        clone.git(&["merge", "-q", "--no-edit", name]);
    }
    clone.git(&["push", "-q", "origin", "main"]);
}

/// Rewrites both links as a container with the parent of `clone` at `/workspaces` would have.
fn as_container(clone: &HostClone<'_>, name: &str, at: &Path) {
    let src = clone.env.src();
    let called = |path: &Path| format!("/workspaces/{}", utf8(path.strip_prefix(&src).expect("below src")));
    let common = clone.env.git(&clone.path, &["rev-parse", "--path-format=absolute", "--git-common-dir"]);
    let entry = Path::new(&common).join("worktrees").join(name);
    fs::write(entry.join("gitdir"), format!("{}/.git\n", called(at))).expect("gitdir");
    fs::write(at.join(".git"), format!("gitdir: {}\n", called(&entry))).expect(".git");
}

#[test]
fn the_original_of_a_copied_clone_goes_and_the_copy_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let x = worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    land(&clone, &["x"]);
    let copy = env.src().join("copy");
    copy_tree(&env, &clone.path, &copy);
    let before = Snapshot::of(&copy);

    let seen = plan(&env, &[&env.src()]);
    assert_eq!(seen.worktree_of(Some(&clone.path), "x")["verdict"], "reclaim");
    assert_eq!(seen.worktree_of(Some(&copy), "x")["verdict"], "keep");
    // Nor is it taken where its original is not looked at.
    plan(&env, &[&copy]).assert_kept("x", &["ambiguous"]);
    prune(&env, &[&copy]).assert_nothing_done();
    let swept = prune(&env, &[&env.src()]);

    assert_eq!(swept.removed(), ["x"]);
    assert!(!x.exists());
    before.without(&[".git/treesweep"]).assert_same(&Snapshot::of(&copy).without(&[".git/treesweep"]));
}

#[test]
fn copied_and_moved_worktrees_stay() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let x = worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    let y = worktree(&clone, "y", &clone.path.join(".worktrees/y"));
    land(&clone, &["x", "y"]);
    let (copied, moved) = (env.src().join("copied"), env.src().join("moved"));
    copy_tree(&env, &x, &copied);
    fs::rename(&y, &moved).expect("move");
    let before = (Snapshot::of(&copied), Snapshot::of(&moved));

    let seen = plan(&env, &[&env.src()]);
    seen.assert_kept("y", &["links-disagree"]);
    let rows = seen.0["clones"][0]["worktrees"].as_array().expect("worktrees");
    let copy = rows.iter().find(|row| row["path"] == utf8(&copied)).expect("the copy is listed");
    assert_eq!((&copy["verdict"], &copy["reasons"][0]["code"]), (&"keep".into(), &"links-disagree".into()));
    let swept = prune(&env, &[&env.src()]);

    assert_eq!(swept.removed(), ["x"]);
    before.0.assert_same(&Snapshot::of(&copied));
    before.1.assert_same(&Snapshot::of(&moved));
    assert!(clone.entry("y").exists());
}

#[test]
fn a_worktree_within_a_bare_clone_is_one_like_any_other() {
    for container in [false, true] {
        let env = TestEnv::new();
        let clone = HostClone::new(&env, "app");
        let bare = env.src().join("bare.git");
        env.git(env.root(), &["clone", "-q", "--bare", utf8(&clone.origin), utf8(&bare)]);
        let clone = HostClone { env: &env, origin: clone.origin.clone(), path: bare.clone() };
        let at = worktree(&clone, "x", &bare.join("trees/x"));
        env.git(&at, &["push", "-q", "origin", "HEAD:main"]);
        env.git(&bare, &["update-ref", "refs/heads/main", "refs/heads/x"]);
        if container {
            as_container(&clone, "x", &at);
        }
        let objects = Snapshot::of(&bare.join("objects"));
        plan(&env, &[&env.src()]).assert_verdict("x", "reclaim");
        prune(&env, &[&env.src()]).assert_removed("x", "deleted");
        assert!(!at.exists() && !bare.join("worktrees/x").exists());
        objects.assert_same(&Snapshot::of(&bare.join("objects")));
        env.git(&bare, &["fsck", "--strict"]);
    }
}

#[test]
fn a_worktree_beneath_another_root_than_its_clone_goes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let trees = env.root().join("trees");
    let at = worktree(&clone, "x", &trees.join("x"));
    land(&clone, &["x"]);
    plan(&env, &[&env.src()]).assert_kept("x", &["outside-root"]);
    plan(&env, &[&env.src(), &at]).assert_kept("x", &["outside-root"]);
    prune(&env, &[&env.src(), &trees]).assert_removed("x", "deleted");
    assert!(trees.exists() && !at.exists());
}

/// A worktree in a worktree that lost its `.git` file looks like a directory of ignored files.
#[test]
fn a_parent_stays_with_a_registered_directory_that_lost_its_link() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let outer = worktree(&clone, "outer", &clone.path.join(".worktrees/outer"));
    let inner = worktree(&clone, "inner", &outer.join(".worktrees/inner"));
    land(&clone, &["outer", "inner"]);
    fs::write(inner.join("work.txt"), "exists nowhere else\n").expect("work");
    for break_link in [(|inner| fs::remove_file(inner).expect("remove")) as fn(&Path), |inner| {
        fs::write(inner, "junk").expect("write")
    }] {
        break_link(&inner.join(".git"));
        let before = Snapshot::of(&outer);
        let seen = plan(&env, &[&env.src()]);
        seen.assert_kept("inner", &["broken-link"]);
        seen.assert_kept("outer", &["nested-kept", "nested-repository"]);
        prune(&env, &[&env.src()]).assert_nothing_done();
        // A person's word for the parent is none for what is in it.
        let mut drop = env.treesweep(&["drop", "outer", "--force", "--yes", "--root", utf8(&env.src())]);
        drop.args(EAGER).args(ALONE).output().expect("a run");
        before.assert_same(&Snapshot::of(&outer));
    }
    // Once the directory is gone, the parent goes.
    fs::remove_dir_all(&inner).expect("remove");
    prune(&env, &[&env.src()]).assert_removed("outer", "deleted");
}

#[test]
fn the_worktree_of_a_clone_out_of_sight_is_offered_to_nobody() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let elsewhere = env.root().join("elsewhere");
    env.git(env.root(), &["clone", "-q", utf8(&clone.origin), utf8(&elsewhere)]);
    let at = env.src().join("x");
    env.git(&elsewhere, &["worktree", "add", "-q", utf8(&at), "-b", "x"]);
    let before = Snapshot::of(&at);
    plan(&env, &[&env.src()]).assert_kept("x", &["outside-root"]);
    let orphan = format!("--orphan={}", utf8(&at));
    let mut command = env.treesweep(&["prune", "--yes", &orphan]);
    command.args(EAGER).args(ALONE).arg(env.src()).assert().code(2);
    before.assert_same(&Snapshot::of(&at));
    assert!(elsewhere.join(".git/worktrees/x").exists());
}

#[test]
fn nothing_is_known_of_a_clone_whose_registrations_cant_be_read() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    land(&clone, &["x"]);
    let worktrees = clone.common_dir().join("worktrees");
    fs::rename(&worktrees, env.src().join("moved")).expect("move");
    std::os::unix::fs::symlink(env.src().join("moved"), &worktrees).expect("link");
    let before = Snapshot::of(&at);
    plan(&env, &[&env.src()]).assert_kept("x", &["unreadable"]);
    prune(&env, &[&env.src()]).assert_nothing_done();
    before.assert_same(&Snapshot::of(&at));
}

#[test]
fn two_clones_of_one_name_and_a_directory_beside_both() {
    let env = TestEnv::new();
    let one = HostClone::new(&env, "app");
    let x = worktree(&one, "x", &env.src().join("x"));
    land(&one, &["x"]);
    as_container(&one, "x", &x);
    let two = env.src().join("app-b");
    copy_tree(&env, &one.path, &two);
    let before = Snapshot::of(&x);
    let seen = plan(&env, &[&env.src()]);
    assert_eq!(seen.worktree_of(Some(&one.path), "x")["reasons"][0]["code"], "ambiguous");
    assert_eq!(seen.worktree_of(Some(&two), "x")["verdict"], "keep");
    prune(&env, &[&one.path, &env.src()]).assert_nothing_done();
    before.assert_same(&Snapshot::of(&x));
    // A person's word settles it.
    let map = format!("/workspaces/app={}", utf8(&one.path));
    let beside = format!("/workspaces/x={}", utf8(&x));
    let mut command = env.treesweep(&["plan", "--json", "--map", &map, "--map", &beside]);
    let told = Document::of(command.args(EAGER).args(ALONE).arg(env.src()));
    // Two maps are two translations: neither gives both equations.
    assert_eq!(told.worktree_of(Some(&one.path), "x")["verdict"], "keep");
    let map = format!("/workspaces={}", utf8(&env.src()));
    let mut command = env.treesweep(&["plan", "--json", "--map", &map]);
    let told = Document::of(command.args(EAGER).args(ALONE).arg(env.src()));
    assert_eq!(told.worktree_of(Some(&one.path), "x")["verdict"], "reclaim");
}

#[test]
fn without_a_root_the_clone_around_us_is_swept_and_no_other() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let other = HostClone::new(&env, "other");
    let inside = worktree(&clone, "inside", &clone.path.join(".worktrees/inside"));
    let beside = worktree(&clone, "beside", &env.src().join("beside"));
    worktree(&other, "theirs", &other.path.join(".worktrees/theirs"));
    land(&clone, &["inside", "beside"]);
    land(&other, &["theirs"]);
    let names = |dir: &Path| {
        let mut command = env.treesweep(&["plan", "--json"]);
        let seen = Document::of(command.args(EAGER).args(ALONE).current_dir(dir));
        let clones = seen.0["clones"].as_array().expect("clones").clone();
        let rows = clones.iter().flat_map(|c| c["worktrees"].as_array().expect("worktrees").clone());
        rows.map(|row| row["name"].as_str().expect("name").to_owned()).collect::<Vec<_>>()
    };
    for dir in [&clone.path, &clone.common_dir(), &inside, &beside] {
        assert_eq!(names(dir), ["beside", "inside"], "{}", dir.display());
    }
    for (name, at) in [("inside", &inside), ("beside", &beside)] {
        as_container(&clone, name, at);
        assert_eq!(names(at), ["beside", "inside"], "{name}, as a container has it");
    }
    // What a `.git` file says chooses no clone that does not know it.
    let stray = env.src().join("deep/down/stray");
    fs::create_dir_all(&stray).expect("directory");
    let refused = |pointer: String| {
        fs::write(stray.join(".git"), pointer).expect(".git");
        env.treesweep(&["plan"]).args(EAGER).args(ALONE).current_dir(&stray).assert().code(2);
    };
    let hidden = env.root().join("hidden");
    copy_tree(&env, &other.path, &hidden);
    refused(format!("gitdir: {}/.git/worktrees/theirs\n", utf8(&hidden)));
    refused("gitdir: /workspaces/unknown/.git/worktrees/x\n".to_owned());
}

#[test]
fn another_spelling_of_a_mapped_directory_is_the_same() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    land(&clone, &["x"]);
    as_container(&clone, "x", &at);
    std::os::unix::fs::symlink(env.src(), env.root().join("code")).expect("link");
    let map = format!("/workspaces={}", utf8(&env.root().join("code")));
    let mut command = env.treesweep(&["plan", "--json", "--map", &map]);
    let seen = Document::of(command.args(EAGER).args(ALONE).arg(env.root().join("code")));
    seen.assert_verdict("x", "reclaim");
    assert_eq!(seen.worktree("x")["translation"], "map");
    fs::remove_dir_all(&at).expect("remove");
    let mut command = env.treesweep(&["plan", "--json", "--map", &map]);
    let seen = Document::of(command.args(EAGER).args(ALONE).arg(env.src()));
    seen.assert_verdict("x", "forget");
}

#[test]
fn a_directory_that_may_not_be_read_is_named_and_the_walk_goes_on() {
    if !is_root() {
        return;
    }
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    let shut = env.src().join("aa-shut");
    fs::create_dir_all(shut.join("in")).expect("directory");
    env.run("chmod", &["0700", utf8(&shut)]);
    let mut command = env.treesweep_as(12345, &["plan", "--json"]);
    let seen = Document::of(command.args(EAGER).args(ALONE).arg(env.src()));
    seen.worktree("x");
    let warnings = seen.0["warnings"].as_array().expect("warnings");
    assert!(warnings.iter().any(|w| w.as_str().expect("text").starts_with(utf8(&shut))), "{warnings:?}");
}

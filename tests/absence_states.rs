//! Directories that are gone, and those that only seem to be: what is forgotten is proven absent.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::env::{EAGER, TestEnv, is_root, utf8};
use common::git::HostClone;
use common::plan::Document;

const ALONE: [&str; 2] = ["--engine", "none"];

fn run(env: &TestEnv, args: &[&str]) -> Document {
    Document::of(env.treesweep(args).args(EAGER).args(ALONE).arg(env.src()))
}

fn plan(env: &TestEnv) -> Document {
    run(env, &["plan", "--json"])
}

fn prune(env: &TestEnv) -> Document {
    run(env, &["prune", "--yes", "--json"])
}

/// An enrolled worktree whose branch has landed.
fn worktree(clone: &HostClone<'_>, name: &str, at: &Path) -> PathBuf {
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(at), "origin/main"]);
    clone.env.git(at, &["commit", "-q", "--allow-empty", "-m", name]);
    clone.land(name);
    clone.env.treesweep(&["setup"]).args(EAGER).args(ALONE).arg(at).assert().success();
    at.to_owned()
}

fn gone(clone: &HostClone<'_>, name: &str, at: &Path) {
    fs::remove_dir_all(worktree(clone, name, at)).expect("remove");
}

#[test]
fn what_was_enrolled_here_and_is_gone_is_forgotten_by_its_exact_name() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    gone(&clone, "x", &clone.path.join(".worktrees/x"));
    // Also where the directory above went with it.
    gone(&clone, "y", &env.src().join("trees/y"));
    fs::remove_dir(env.src().join("trees")).expect("remove");
    worktree(&clone, "z", &clone.path.join(".worktrees/z"));
    fs::write(clone.path.join(".worktrees/z/new"), "").expect("file");
    let seen = plan(&env);
    for name in ["x", "y"] {
        seen.assert_verdict(name, "forget");
    }
    let swept = prune(&env);
    for name in ["x", "y"] {
        assert_eq!(swept.outcome(name)["result"], "forgotten", "{:#}", swept.outcome(name));
        assert_eq!(swept.outcome(name)["branch"], "deleted");
        assert!(!clone.has_branch(name));
    }
    assert_eq!(clone.entries(), ["z"]);
    assert!(clone.has_branch("z"));
}

#[test]
fn staged_work_and_an_operation_outlive_their_directory() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let staged = worktree(&clone, "staged", &clone.path.join(".worktrees/staged"));
    fs::write(staged.join("new"), "work\n").expect("file");
    env.git(&staged, &["add", "new"]);
    let merging = worktree(&clone, "merging", &clone.path.join(".worktrees/merging"));
    fs::write(clone.entry("merging").join("MERGE_HEAD"), clone.git(&["rev-parse", "main"])).expect("file");
    for at in [staged, merging] {
        fs::remove_dir_all(at).expect("remove");
    }
    let seen = plan(&env);
    seen.assert_kept("staged", &["dirty"]);
    seen.assert_kept("merging", &["operation-in-progress"]);
    prune(&env).assert_nothing_done();
    assert_eq!(clone.entries(), ["merging", "staged"]);
}

#[test]
fn another_vantage_and_another_place_prove_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    gone(&clone, "x", &clone.path.join(".worktrees/x"));
    gone(&clone, "moved", &clone.path.join(".worktrees/moved"));
    // Somebody else enrolled it, or it lies elsewhere by now.
    fs::rename(env.root().join("state"), env.root().join("other-state")).expect("rename");
    let moved = format!("{}/.worktrees/other/.git\n", utf8(&clone.path));
    fs::write(clone.entry("moved").join("gitdir"), moved).expect("gitdir");
    let stale = |seen: &Document, name: &str| {
        let row = seen.worktree(name);
        assert_eq!((&row["verdict"], &row["class"]), (&"offer".into(), &"stale".into()), "{row:#}");
        assert_eq!(row["reasons"][0]["code"], "absence-unproven", "{row:#}");
    };
    let seen = plan(&env);
    stale(&seen, "x");
    stale(&seen, "moved");
    fs::remove_dir_all(env.root().join("state")).ok();
    fs::rename(env.root().join("other-state"), env.root().join("state")).expect("rename");
    let seen = plan(&env);
    seen.assert_verdict("x", "forget");
    stale(&seen, "moved");
    // A person's word for exactly this one.
    let swept = run(&env, &["prune", "--yes", "--json", "--stale=moved"]);
    assert_eq!(swept.outcome("moved")["result"], "forgotten");
    assert!(clone.has_branch("moved"), "a person's choice is the registration, not the branch");
    assert!(clone.entries().is_empty());
}

#[test]
fn what_is_left_of_an_interrupted_removal_keeps_its_registration() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x", &clone.path.join(".worktrees/x"));
    let trash = at.with_file_name(".treesweep-trash-20250301T101112123Z-0123456789ab-x");
    fs::rename(&at, &trash).expect("rename");
    // No journal knows of it: the disk was full.
    let seen = plan(&env);
    let rows = seen.0["clones"][0]["worktrees"].as_array().expect("worktrees");
    let of = |path: &Path| rows.iter().find(|row| row["path"] == utf8(path)).expect("a row");
    assert_eq!(of(&trash)["reasons"][0]["code"], "interrupted");
    assert_eq!(of(&at)["reasons"][0]["code"], "absence-unproven", "{:#}", of(&at));
    prune(&env).assert_nothing_done();
    assert!(trash.exists() && clone.entry("x").exists() && clone.has_branch("x"));
}

#[test]
fn everything_that_a_map_names_is_missing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let disk = env.src().join("disk");
    for name in ["x", "y"] {
        gone(&clone, name, &disk.join(name));
        fs::write(clone.entry(name).join("gitdir"), format!("/trees/{name}/.git\n")).expect("gitdir");
    }
    let map = format!("/trees={}", utf8(&disk));
    let mapped = |verb: &str, more: &str| run(&env, &[verb, more, "--json", "--map", &map]);
    for name in ["x", "y"] {
        mapped("plan", "--jobs=1").assert_kept(name, &["absence-unproven"]);
    }
    mapped("prune", "--yes").assert_nothing_done();
    fs::create_dir(disk.join("y")).expect("directory");
    let seen = mapped("plan", "--jobs=1");
    seen.assert_verdict("x", "forget");
    seen.assert_kept("y", &["broken-link"]);
}

#[test]
fn a_name_that_differs_in_case_may_be_the_same_directory() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "fix", &clone.path.join(".worktrees/fix"));
    fs::rename(&at, at.with_file_name("Fix")).expect("rename");
    fs::remove_file(at.with_file_name("Fix").join(".git")).expect("remove");
    plan(&env).assert_kept("fix", &["absence-unproven"]);
    prune(&env).assert_nothing_done();
}

/// In a mount namespace of its own: a disk at `src/disk` with a worktree on it, beside the clone or in it.
fn on_a_disk(place: &str, then: &str) -> Option<(TestEnv, Document)> {
    if !is_root() {
        return None;
    }
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let disk = env.src().join(place);
    fs::create_dir_all(&disk).expect("directory");
    let script = format!(
        "set -e; mount -t tmpfs one {disk}
         git -C {app} worktree add -q {disk}/x -b x 2>/dev/null
         git -C {disk}/x commit -q --allow-empty -m x
         git -C {app} push -q origin x:main; git -C {app} fetch -q
         {bin} setup {flags} {disk}/x >&2
         {then}
         {bin} prune --yes --json {flags} {src}",
        disk = utf8(&disk),
        app = utf8(&clone.path),
        src = utf8(&env.src()),
        bin = env!("CARGO_BIN_EXE_treesweep"),
        flags = "--branch-template '{name}' --idle 0s --unstarted-after 0s --engine none",
    );
    let script = script.replace("DISK", utf8(&disk));
    let output = env
        .command("unshare")
        .args(["-m", "--propagation", "private", "sh", "-c", &script])
        .output()
        .expect("unshare");
    let text = common::env::stdout_of("the script", output);
    let document = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    assert!(clone.has_branch("main"));
    Some((env, Document(document)))
}

#[test]
fn a_disk_that_is_not_mounted_any_more() {
    for place in ["disk", "app/.worktrees"] {
        let Some((env, swept)) = on_a_disk(place, "umount DISK") else { return };
        swept.assert_kept("x", &["absence-unproven"]);
        swept.assert_nothing_done();
        assert!(env.src().join("app/.git/worktrees/x").exists());
    }
}

#[test]
fn another_disk_at_the_same_place() {
    for place in ["disk", "app/.worktrees"] {
        let then = "umount DISK; mount -t tmpfs two DISK; mkdir DISK/other";
        let Some((env, swept)) = on_a_disk(place, then) else { return };
        swept.assert_kept("x", &["absence-unproven"]);
        assert!(env.src().join("app/.git/worktrees/x").exists());
    }
}

#[test]
fn a_disk_over_the_place_where_it_was() {
    let then = "rm -rf DISK/x; mkdir DISK/over; mount -t tmpfs three DISK; mkdir DISK/other";
    let Some((_, swept)) = on_a_disk("disk", then) else { return };
    swept.assert_kept("x", &["absence-unproven"]);
}

#[test]
fn the_disk_is_there_and_the_directory_is_not() {
    for (place, then) in [("disk", "rm -rf DISK/x"), ("app/.worktrees", "rm -rf DISK/x")] {
        let Some((_, swept)) = on_a_disk(place, then) else { return };
        assert_eq!(swept.outcome("x")["result"], "forgotten", "{:#}", swept.0);
    }
}

#[test]
fn the_disk_was_mounted_elsewhere_since() {
    let then = "rm -rf DISK/x; mkdir DISK/o; mkdir -p DISK-new; mount --move DISK DISK-new; mkdir DISK/other";
    let Some((_, swept)) = on_a_disk("disk", then) else { return };
    swept.assert_kept("x", &["absence-unproven"]);
}

//! Worktrees that somebody uses, protects or has just begun, and those that can't be removed safely.

#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use common::api::{Api, container};
use common::env::{EAGER, TestEnv, is_root, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use common::states::{CONTAINER, sweep, sweep_by, sweep_with};
use serde_json::json;

#[test]
fn a_lock_holds_whatever_its_reason_says() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let dead = "999999999";
    for (name, reason) in
        [("plain", None), ("reason", Some("claude session")), ("dead", Some(&*format!("agent (pid {dead})")))]
    {
        let dir = clone.ready(name);
        let mut args = vec!["worktree", "lock"];
        args.extend(reason.iter().flat_map(|r| ["--reason", r]));
        clone.git(&[&args[..], &[utf8(&dir)]].concat());
    }
    // What git itself writes while it makes one; and a lock of a directory that is gone.
    clone.ready("beginning");
    fs::write(clone.entry("beginning").join("locked"), "initializing").unwrap();
    let gone = clone.ready("gone");
    clone.git(&["worktree", "lock", utf8(&gone)]);
    fs::remove_dir_all(gone).unwrap();
    // Only the reason that `guard --lock` gives is none: it protects from git, not from treesweep.
    let guarded = clone.ready("guarded");
    let reason = "treesweep guard: protected from git worktree prune on the host";
    clone.git(&["worktree", "lock", "--reason", reason, utf8(&guarded)]);
    let almost = clone.ready("almost");
    clone.git(&["worktree", "lock", "--reason", &reason[..reason.len() - 1], utf8(&almost)]);
    let swept = sweep(&env);
    for name in ["plain", "reason", "dead", "beginning", "gone", "almost"] {
        swept.kept(name, "locked");
    }
    swept.says("reason", "'claude session'");
    swept.reclaimed("guarded", "deleted");
}

/// Ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn sleeping_in(dir: &Path) -> Running {
    Running(Command::new("sleep").arg("600").current_dir(dir).spawn().unwrap())
}

#[test]
fn a_process_inside_holds() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let top = clone.ready("top");
    let deep = clone.ready("deep").join("target/a");
    fs::create_dir_all(&deep).unwrap();
    // Its name is the beginning of another one's.
    let beside = clone.ready("top-2");
    let running = [sleeping_in(&top), sleeping_in(&deep)];
    let swept = sweep(&env);
    for (name, process) in ["top", "deep"].into_iter().zip(&running) {
        swept.kept(name, "process-inside");
        swept.says(name, &process.0.id().to_string());
    }
    swept.reclaimed("top-2", "deleted");
    assert!(!beside.exists());
}

#[test]
fn nobody_removes_the_ground_under_his_feet() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let here = clone.ready("here");
    let swept = sweep_by(&env, |verb| {
        let mut command = env.treesweep(verb);
        command.args(["--engine", "none"]).args(EAGER).arg(env.src()).current_dir(&here);
        command
    });
    swept.kept("here", "current-worktree");
    sweep(&env).reclaimed("here", "deleted");
}

#[test]
fn what_is_young_is_left_alone() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    clone.ready("old");
    clone.ready("index");
    let deep = clone.ready("deep");
    fs::create_dir_all(deep.join("target/a/b")).unwrap();
    fs::write(deep.join("target/a/b/c"), "").unwrap();
    clone.age();
    fs::write(deep.join("target/a/b/c"), "now").unwrap();
    let index = clone.entry("index").join("index");
    fs::File::open(&index).unwrap().set_modified(std::time::SystemTime::now()).unwrap();
    let young = |verb: &[&str]| {
        let mut command = env.treesweep(verb);
        let flags = ["--engine", "none", "--branch-template", "{name}", "--unstarted-after", "0s"];
        command.args(flags).arg(env.src());
        command
    };
    let swept = sweep_by(&env, young);
    swept.kept("index", "recently-active");
    swept.kept("deep", "recently-active");
    swept.says("deep", "target/a/b/c");
    swept.reclaimed("old", "deleted");
}

#[test]
fn a_beginning_is_left_alone_until_its_age_passes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let fresh = clone.fresh("fresh");
    clone.enrol(&fresh);
    // It followed the trunk, and still has nothing of its own.
    let followed = clone.fresh("followed");
    clone.enrol(&followed);
    clone.ready("other");
    env.git(&followed, &["merge", "-q", "--ff-only", "origin/main"]);
    let rebased = clone.fresh_at("rebased", &clone.path.join(".worktrees/rebased"));
    env.git(&rebased, &["reset", "-q", "--hard", "origin/main~1"]);
    env.git(&rebased, &["rebase", "-q", "origin/main"]);
    clone.enrol(&rebased);
    let swept = sweep_by(&env, |verb| {
        let mut command = env.treesweep(verb);
        let flags = ["--engine", "none", "--branch-template", "{name}", "--idle", "0s"];
        command.args(flags).args(["--unstarted-after", "7d"]).arg(env.src());
        command
    });
    for name in ["fresh", "followed", "rebased"] {
        swept.kept(name, "unstarted");
    }
    swept.reclaimed("other", "deleted");
    // With work that is not committed it is that which is said.
    fs::write(fresh.join("new"), "new\n").unwrap();
    let swept = sweep(&env);
    swept.kept("fresh", "dirty");
    swept.reclaimed("followed", "deleted");
}

#[test]
fn what_nobody_enrolled_is_offered_at_most() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    // Landed, clean, in the usual place, with the usual name.
    let plain = clone.fresh("plain");
    clone.work(&plain, "plain");
    clone.land("plain");
    // A marker inside the checkout, of another entry, that is a link, or that is empty.
    let inside = clone.fresh("inside");
    fs::create_dir(inside.join("target")).unwrap();
    clone.ready("marked");
    let marker = clone.entry("marked").join("treesweep/ready");
    for name in ["stolen", "linked", "empty"] {
        clone.fresh(name);
        fs::create_dir(clone.entry(name).join("treesweep")).unwrap();
        let here = clone.entry(name).join("treesweep/ready");
        match name {
            "stolen" => drop(fs::copy(&marker, here).unwrap()),
            "linked" => std::os::unix::fs::symlink(&marker, here).unwrap(),
            _ => fs::write(here, "").unwrap(),
        }
    }
    fs::copy(&marker, inside.join("target/ready")).unwrap();
    // Enrolled, and then another branch was checked out.
    let switched = clone.ready("switched");
    env.git(&switched, &["checkout", "-q", "-b", "switched-2"]);
    let swept = sweep(&env);
    for name in ["plain", "inside", "stolen", "linked", "empty", "switched"] {
        swept.offered(name, "unowned");
    }
    swept.reclaimed("marked", "deleted");
}

#[test]
fn what_is_protected_or_has_the_trunk_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["keep-me", "by-path", "free"] {
        clone.ready(name);
    }
    let release = clone.path.join(".worktrees/branch");
    clone.ready_at("release/branch", &release);
    clone.git(&["checkout", "-q", "--detach"]);
    let trunk = clone.path.join(".worktrees/main");
    clone.git(&["worktree", "add", "-q", utf8(&trunk), "main"]);
    clone.enrol(&trunk);
    let flags =
        ["--engine", "none", "--protect", "keep-*", "--protect", "*/by-path", "--protect", "release/*"];
    let swept = sweep_with(&env, &flags);
    for name in ["keep-me", "by-path", "branch", "main"] {
        swept.kept(name, "protected");
    }
    swept.reclaimed("free", "deleted");
}

#[test]
fn containers_hold_what_they_mount() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = |name: &str| clone.path.join(".worktrees").join(name);
    for name in ["itself", "inside", "bound", "volume", "free-by-name", "compose"] {
        clone.ready(name);
        fs::create_dir(at(name).join("target")).unwrap();
    }
    clone.as_container_wrote_it("volume");
    // Nobody can look into a container that only an engine's list shows: whatever lies below what it mounts may be used.
    let mounted = HostClone::new(&env, "mounted");
    mounted.ready("above");
    let other = HostClone::new(&env, "other");
    other.ready("free");
    let mut compose = container("compose", "running", &[]);
    compose["Labels"]["com.docker.compose.project.working_dir"] = json!(utf8(&at("compose")));
    // It has a volume over one worktree: that path is none of this host.
    let mut with_volume = container("volume", "exited", &[(&clone.path, CONTAINER)]);
    let volume = json!({
        "Type": "volume",
        "Name": "v",
        "Source": "/var/lib/docker/volumes/v/_data",
        "Destination": format!("{CONTAINER}/.worktrees/volume"),
    });
    with_volume["Mounts"].as_array_mut().unwrap().push(volume);
    let containers = [
        container("dev", "running", &[(&mounted.path, CONTAINER)]),
        container("itself", "running", &[(&at("itself"), "/work")]),
        container("inside", "paused", &[(&at("inside").join("target"), "/cache")]),
        container("stopped", "exited", &[(&at("bound"), "/work")]),
        // One whose source only begins alike; and a stopped one that mounts the whole clone.
        container("alike", "running", &[(&at("free-by"), "/work")]),
        container("whole", "exited", &[(&clone.path, CONTAINER)]),
        compose,
        with_volume,
    ];
    let api = Api::listing(&env, json!(containers));
    let swept = sweep_with(&env, &["--engine", api.socket()]);
    swept.kept("above", "live-container");
    swept.kept("itself", "live-container");
    swept.kept("inside", "live-container");
    swept.kept("compose", "live-container");
    swept.kept("bound", "container-bound");
    swept.says("bound", "stopped");
    swept.kept("volume", "outside-vantage");
    swept.reclaimed("free-by-name", "deleted");
    swept.reclaimed("free", "deleted");
    api.assert_only_read();
}

#[test]
fn an_engine_that_does_not_answer_is_not_an_engine_without_containers() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    clone.ready("foreign");
    clone.as_container_wrote_it("foreign");
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
    let missing = env.root().join("no.sock");
    let mut run = env.treesweep(&["prune", "--yes", "--json", "--engine", utf8(&missing)]);
    let run = run.args(EAGER).arg(env.src()).assert().code(1);
    let document = Document(serde_json::from_slice(&run.get_output().stdout).unwrap());
    document.assert_kept("foreign", &["liveness-unknown"]);
    before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));
    sweep(&env).reclaimed("foreign", "deleted");
}

#[test]
fn what_the_clones_configuration_points_at_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = |name: &str| clone.path.join(".worktrees").join(name);
    for name in ["hooks", "include", "container", "hooks-2"] {
        clone.ready(name);
    }
    clone.as_container_wrote_it("container");
    clone.git(&["config", "core.hooksPath", utf8(&at("hooks").join("target/hooks"))]);
    clone.git(&["config", "include.path", utf8(&at("include").join("gitconfig"))]);
    let through = format!("{CONTAINER}/.worktrees/container/gitconfig");
    clone.git(&["config", "--add", "includeIf.gitdir:/x/.path", &through]);
    let swept = sweep(&env);
    for name in ["hooks", "include", "container"] {
        swept.kept(name, "referenced");
    }
    swept.reclaimed("hooks-2", "deleted");
}

/// treesweep in a mount namespace of its own, after these commands.
fn with_mounts(env: &TestEnv, prepare: &str, verb: &[&str]) -> assert_cmd::Command {
    let mut treesweep = env.treesweep_command(verb);
    treesweep.args(["--engine", "none"]).args(EAGER).arg(env.src());
    let mut command = assert_cmd::Command::from_std(env.command("unshare"));
    command.args(["-m", "sh", "-ec", &format!("{prepare}; exec \"$0\" \"$@\"")]);
    command.arg(treesweep.get_program()).args(treesweep.get_args());
    command
}

#[test]
fn a_mount_inside_is_not_walked() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to mount");
    }
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let precious = env.root().join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("data"), "data\n").unwrap();
    let point = |name: &str, inside: &str| {
        let dir = clone.ready(name).join(inside);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    let deep = point("deep", "target/a/b");
    let empty = point("empty", "node_modules");
    let tmpfs = point("tmpfs", "target");
    clone.ready("free");
    let bind = |at: &PathBuf| format!("mount --bind {} {}", precious.display(), at.display());
    let tmpfs = format!("mount -t tmpfs x {}", tmpfs.display());
    let prepare = [bind(&deep), bind(&empty), tmpfs].join(" && ");
    let swept = sweep_by(&env, |verb| with_mounts(&env, &prepare, verb));
    for name in ["deep", "empty", "tmpfs"] {
        swept.kept(name, "mount-inside");
    }
    swept.reclaimed("free", "deleted");
    assert_eq!(fs::read_to_string(precious.join("data")).unwrap(), "data\n");
}

#[test]
fn what_this_user_may_not_delete_is_found_before_anything_is_touched() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to make files of another user");
    }
    const USER: u32 = 12_345;
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["foreign", "sticky", "read-only", "file"] {
        let dir = clone.fresh(name);
        clone.work(&dir, name);
        clone.land(name);
        fs::create_dir_all(dir.join("target/a")).unwrap();
        fs::write(dir.join("target/a/x"), "").unwrap();
    }
    let inside = |name: &str| clone.path.join(".worktrees").join(name).join("target/a");
    env.run("chown", &["-R", "12345:12345", utf8(&env.src())]);
    let mut enrol = env.treesweep_as(USER, &["setup", "--engine", "none"]);
    let dirs = ["foreign", "sticky", "read-only", "file"].map(|n| clone.path.join(".worktrees").join(n));
    enrol.args(EAGER).args(dirs).assert().success();
    // Another user's directory; another user's file in a sticky directory; and what its owner can make writable.
    env.run("chown", &["0:0", utf8(&inside("foreign"))]);
    fs::set_permissions(inside("sticky"), fs::Permissions::from_mode(0o1777)).unwrap();
    env.run("chown", &["0:0", utf8(&inside("sticky")), utf8(&inside("sticky").join("x"))]);
    fs::set_permissions(inside("read-only"), fs::Permissions::from_mode(0o555)).unwrap();
    // Another user's file in a directory of one's own can be deleted.
    env.run("chown", &["0:0", utf8(&inside("file").join("x"))]);
    let swept = sweep_by(&env, |verb| {
        let mut command = env.treesweep_as(USER, verb);
        command.args(["--engine", "none"]).args(EAGER).arg(env.src());
        command
    });
    for name in ["foreign", "sticky"] {
        swept.kept(name, "not-deletable");
        swept.says(name, "uid 0");
    }
    swept.reclaimed("read-only", "deleted");
    swept.reclaimed("file", "deleted");
}

#[test]
fn trash_that_no_journal_knows_waits_for_a_person() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let dir = clone.ready("half");
    let trash = clone.path.join(".worktrees/.treesweep-trash-20260101T000000000Z-0123456789ab-half");
    fs::rename(&dir, &trash).unwrap();
    clone.ready("free");
    let swept = sweep(&env);
    let rows = swept.plan.0["clones"][0]["worktrees"].as_array().unwrap();
    let found = rows.iter().filter(|row| row["path"] == utf8(&trash));
    let codes: Vec<_> = found.map(|row| (&row["verdict"], &row["reasons"][0]["code"])).collect();
    assert_eq!(codes, [(&json!("keep"), &json!("interrupted"))], "{rows:#?}");
    assert!(trash.join("half").exists());
    swept.reclaimed("free", "deleted");
}

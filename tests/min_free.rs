//! `prune --min-free` on a small file system of its own: the largest first, no more than is needed, and what holds the
//! space where it does not get there. `--older-than` and `--metrics` too.
//!
//! Each test runs in a mount namespace of its own; what it mounts ends with it.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::env::{TestEnv, utf8};
use common::git::HostClone;
use common::namespace::{in_namespace, mount};
use common::plan::Document;
use serde_json::Value;

const MB: u64 = 1_000_000;
const NOW: [&str; 6] = ["--engine", "none", "--idle", "0s", "--unstarted-after", "0s"];

/// A file system in memory with room for 100 MB.
struct Disk(tempfile::TempDir);

impl Disk {
    fn new() -> Self {
        let at = tempfile::Builder::new().prefix("treesweep-disk-").tempdir().expect("a mount point");
        mount(&["-t", "tmpfs", "-o", "size=100000k,mode=755", "none", utf8(at.path())]);
        Self(at)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The mount point goes after it.
        let _ = std::process::Command::new("umount").arg("--recursive").arg(self.0.path()).status();
    }
}

struct Scene<'e> {
    clone: HostClone<'e>,
}

impl<'e> Scene<'e> {
    fn new(env: &'e TestEnv) -> Self {
        Self { clone: HostClone::new(env, "app") }
    }

    /// An owned and landed worktree with `size` MB of build output, last used `days` ago.
    fn add(&self, name: &str, size: u64, days: u32) -> PathBuf {
        let dir = self.clone.add_landed(name);
        fs::create_dir(dir.join("target")).expect("a folder");
        let blob = vec![1u8; usize::try_from(size * MB).expect("a size")];
        fs::write(dir.join("target/blob"), blob).expect("a file");
        self.clone.env.treesweep(&["setup", "--engine", "none", utf8(&dir)]).assert().success();
        let date = format!("{days} days ago");
        let aged = ["-exec", "touch", "--no-dereference", "--date", &date, "{}", "+"];
        for place in [
            dir.clone(),
            self.clone.entry(name),
            self.clone.common_dir().join("logs/refs/heads/wt").join(name),
        ] {
            self.clone.env.run("find", &[&[utf8(&place)][..], &aged].concat());
        }
        dir
    }

    fn line(&self, more: &[&str]) -> assert_cmd::Command {
        let mut command = self.clone.env.treesweep(&["prune", "--yes"]);
        command.args(NOW).args(more).arg(self.clone.env.src());
        command
    }

    fn free(&self) -> u64 {
        let stat = rustix::fs::statvfs(self.clone.env.root()).expect("the file system");
        stat.f_bavail * stat.f_frsize
    }
}

fn there(scene: &Scene, name: &str) -> bool {
    scene.clone.path.join(".worktrees").join(name).exists()
}

fn document(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_largest_go_first_and_no_more_than_is_needed() {
    in_namespace("enough_child");
}

#[test]
#[ignore = "started by the_largest_go_first_and_no_more_than_is_needed"]
fn enough_child() {
    let disk = Disk::new();
    let env = TestEnv::within(disk.0.path());
    let scene = Scene::new(&env);
    for (name, size, days) in [("small", 2, 9), ("large", 20, 3), ("medium", 10, 3), ("older", 10, 9)] {
        scene.add(name, size, days);
    }

    // Enough is free.
    let done = Document::of(&mut scene.line(&["--json", "--min-free", "10MB"]));
    done.assert_nothing_done();
    assert_eq!(done.0["space"][0]["wanted"], 10 * MB);
    assert!(there(&scene, "large"));

    // 25 MB more take the largest, and the older of two that come next.
    let before = scene.free();
    let wanted = (before + 25 * MB).to_string();
    let done = Document::of(&mut scene.line(&["--json", "--min-free", &wanted]));
    assert_eq!(done.removed(), ["large", "older"], "{:#}", done.0["outcomes"]);
    assert!(there(&scene, "small") && there(&scene, "medium"));
    let space = &done.0["space"][0];
    assert!(space["available_after"].as_u64() >= space["wanted"].as_u64(), "{space:#}");
    assert!(
        space["available_before"].as_u64().is_some_and(|b| b <= before) && scene.free() > before + 25 * MB
    );
    assert!(done.0.get("holders").is_none());

    // A share of 100 MB, in words.
    let run = scene.line(&["--min-free", "92%"]).output().expect("it starts");
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(run.status.success() && text.contains("removed    medium"), "{text}{run:?}");
    assert!(text.contains("Free on the file system of ") && there(&scene, "small"), "{text}");
}

#[test]
fn what_holds_the_space_is_said() {
    in_namespace("holders_child");
}

#[test]
#[ignore = "started by what_holds_the_space_is_said"]
fn holders_child() {
    let disk = Disk::new();
    let env = TestEnv::within(disk.0.path());
    let scene = Scene::new(&env);
    scene.add("gone", 5, 3);
    let dirty = scene.add("dirty", 20, 3);
    fs::write(dirty.join("notes"), "work").expect("a file");
    // With what lies in it, which goes first if it goes at all.
    scene.add("outer", 10, 3);
    let inner = scene.clone.path.join(".worktrees/outer/.worktrees/inner");
    scene.clone.git(&["worktree", "add", "-q", "--detach", utf8(&inner), "origin/main"]);
    fs::write(inner.join("work"), vec![1u8; 3_000_000]).expect("a file");

    let line = ["--min-free", "99%"];
    let run = scene.line(&line).output().expect("it starts");
    let (text, said) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    assert_eq!(run.status.code(), Some(1), "{text}{said}");
    assert!(text.contains("removed    gone") && !there(&scene, "gone"), "{text}");
    assert!(said.contains("were asked for, and nothing more there may go by itself"), "{said}");
    let at =
        |name: &str| text.rfind(&format!(" {name} ")).unwrap_or_else(|| panic!("{name} is not in {text}"));
    assert!(
        text.contains("These hold space") && at("dirty") < at("outer") && at("outer") < at("inner"),
        "{text}"
    );

    let run = scene.line(&[&line[..], &["--json"]].concat()).output().expect("it starts");
    assert_eq!(run.status.code(), Some(1));
    let document = document(&run);
    let holders = document["holders"].as_array().expect("holders");
    let name = |h: &Value| h["name"].as_str().expect("a name").to_owned();
    assert_eq!(holders.iter().map(name).collect::<Vec<_>>(), ["dirty", "outer", "inner"]);
    assert_eq!(holders[0]["code"], "dirty");
    let bytes = |at: usize| holders[at]["bytes"].as_u64().expect("bytes");
    assert!((20 * MB..21 * MB).contains(&bytes(0)), "{holders:#?}");
    assert!(
        (10 * MB..11 * MB).contains(&bytes(1)) && bytes(2) >= 3 * MB,
        "what is in it counts once: {holders:#?}"
    );
    assert!(dirty.join("notes").exists() && inner.join("work").exists());
}

#[test]
fn other_file_systems_are_left_alone() {
    in_namespace("elsewhere_child");
}

#[test]
#[ignore = "started by other_file_systems_are_left_alone"]
fn elsewhere_child() {
    let disk = Disk::new();
    let env = TestEnv::within(disk.0.path());
    let scene = Scene::new(&env);
    scene.add("here", 5, 3);
    fs::write(env.root().join("of nobody"), vec![1u8; 10_000_000]).expect("a file");
    // Beneath the root, but on a file system of its own that has no room either.
    let other = env.src().join("other");
    fs::create_dir(&other).expect("a mount point");
    mount(&["-t", "tmpfs", "-o", "size=30000k", "none", utf8(&other)]);
    let away = other.join("away");
    scene.clone.git(&["worktree", "add", "-q", "--no-track", "-b", "wt/away", utf8(&away), "origin/main"]);
    fs::write(away.join("away"), vec![1u8; 20_000_000]).expect("a file");
    env.git(&away, &["add", "."]);
    env.git(&away, &["commit", "-qm", "away"]);
    scene.clone.land("wt/away");
    env.treesweep(&["setup", "--engine", "none", utf8(&away)]).assert().success();

    let run = scene.line(&["--json", "--min-free", "99%"]).output().expect("it starts");
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let done = Document(document(&run));
    assert_eq!(done.removed(), ["here"]);
    assert!(away.exists());
    // Without a wish for space it goes.
    let done = Document::of(&mut scene.line(&["--json"]));
    assert_eq!(done.removed(), ["away"], "{:#}", done.0);
}

#[test]
fn what_was_touched_since_is_kept() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.add("young", 1, 3);
    scene.add("old", 1, 20);
    let done = Document::of(&mut scene.line(&["--json", "--older-than", "14d"]));
    assert_eq!(done.removed(), ["old"]);
    done.assert_kept("young", &["recently-active"]);
    // It never makes it easier than `--idle` does.
    let done = Document::of(&mut scene.line(&["--json", "--idle", "5d", "--older-than", "1d"]));
    done.assert_kept("young", &["recently-active"]);
}

/// The value of one metric.
fn metric(page: &Path, name: &str) -> Option<f64> {
    let text = fs::read_to_string(page).expect("the page");
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')));
    line.map(|line| line[name.len()..].trim().parse().expect("a number"))
}

#[test]
fn metrics_tell_of_every_run() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.add("gone", 1, 3);
    let dirty = scene.add("dirty", 1, 3);
    fs::write(dirty.join("notes"), "work").expect("a file");
    let page = env.root().join("treesweep.prom");
    let more = ["--quiet", "--metrics", utf8(&page)];
    scene.line(&more).assert().success();
    assert_eq!(metric(&page, "treesweep_run_exit_code"), Some(0.0));
    assert_eq!(metric(&page, "treesweep_outcomes{result=\"removed\"}"), Some(1.0));
    assert_eq!(metric(&page, "treesweep_worktrees{verdict=\"reclaim\"}"), Some(1.0));
    assert_eq!(metric(&page, "treesweep_kept_worktrees{reason=\"dirty\"}"), Some(1.0));
    let at = utf8(&env.src()).to_owned();
    let free = |when: &str| {
        metric(&page, &format!("treesweep_filesystem_avail_bytes{{root=\"{at}\",when=\"{when}\"}}"))
    };
    assert!(free("before").is_some_and(|b| b > 0.0) && free("after").is_some_and(|b| b > 0.0));
    assert!(metric(&page, "treesweep_run_timestamp_seconds").is_some_and(|t| t > 1.7e9));

    // A run that can't begin says so in place of what the one before said.
    fs::create_dir(env.root().join("config/treesweep")).expect("a folder");
    fs::write(env.root().join("config/treesweep/config.toml"), "protct = []\n").expect("a config file");
    scene.line(&more).assert().code(2);
    assert_eq!(metric(&page, "treesweep_run_exit_code"), Some(2.0));
    assert_eq!(metric(&page, "treesweep_outcomes{result=\"removed\"}"), None);
    fs::remove_file(env.root().join("config/treesweep/config.toml")).expect("it goes");

    // Metrics that can't be written are a failure.
    scene.line(&["--quiet", "--metrics", "/nowhere/treesweep.prom"]).assert().code(1);
    assert!(dirty.join("notes").exists());
}

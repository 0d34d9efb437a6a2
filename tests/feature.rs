//! The dev container Feature: installed in a real container, used there, and what it leaves to the host.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::Path;

use common::containers::{DevContainer, bind, require_engine, static_binary};
use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::scene::APP;
use common::snapshot::Snapshot;
use testcontainers::ImageExt;

/// As scripts/build-feature puts it together.
fn feature(env: &TestEnv, binary: &Path) -> std::path::PathBuf {
    let dir = env.root().join("feature");
    fs::create_dir(&dir).expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("docker/feature");
    for name in ["install.sh", "devcontainer-feature.json"] {
        fs::copy(source.join(name), dir.join(name)).expect("a file of the feature");
    }
    fs::copy(binary, dir.join("treesweep")).expect("the executable");
    dir
}

#[test]
fn it_installs_and_sweeps_inside_and_leaves_the_hosts_registrations_alone() {
    let Some(engine) = require_engine() else { return };
    let Some(binary) = static_binary() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let hosts = clone.path.join(".worktrees/hosts");
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", "hosts", utf8(&hosts)]);
    let dev = engine.container().with_user("root").with_mount(bind(&clone.path, APP));
    let dev = DevContainer::start(dev.with_mount(bind(&feature(&env, &binary), "/feature")));

    // The image has no other directory on its PATH.
    let install = ["env", "DIRECTORY=/usr/bin", "sh", "/feature/install.sh"];
    let said = dev.exec("/", &install);
    assert!(said.contains("treesweep 0.") && said.contains("/usr/bin"), "{said}");
    assert_eq!(dev.exec("/", &install), said, "it can be installed again");
    assert!(dev.exec(APP, &["git", "treesweep", "--version"]).starts_with("treesweep 0."));

    dev.add_worktree(APP, "done", &format!("{APP}/.worktrees/done"));
    dev.git(APP, &["merge", "-q", "--ff-only", "done"]);
    dev.exec(APP, &["treesweep", "setup", "done"]);
    let entry = Snapshot::of(&clone.entry("hosts"));
    let checkout = Snapshot::of(&hosts);
    let sweep = |command: &[&str]| {
        let ran = dev.try_exec(APP, &[command, &EAGER, &[APP]].concat());
        assert_eq!(ran.code, 0, "{ran:?}");
        ran
    };
    let plan = Document(serde_json::from_str(&sweep(&["treesweep", "plan", "--json"]).stdout).expect("JSON"));
    plan.assert_verdict("done", "reclaim");
    plan.assert_kept("hosts", &["outside-vantage"]);
    let swept = sweep(&["treesweep", "prune", "--yes"]);
    assert!(swept.stdout.contains("removed    done"), "{swept:?}");
    assert!(swept.stdout.contains("outside-vantage"), "it says what it leaves alone: {swept:?}");
    assert!(!swept.stderr.contains("error"), "calmly: {swept:?}");
    assert_eq!(clone.entries(), ["hosts"]);
    entry.assert_same(&Snapshot::of(&clone.entry("hosts")));
    checkout.assert_same(&Snapshot::of(&hosts));
    assert!(!clone.path.join(".worktrees/done").exists());
}

#[test]
fn it_says_what_is_wrong() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let broken = env.root().join("not-a-program");
    fs::write(&broken, "no program").expect("a file");
    let dir = feature(&env, &broken);
    let dev = DevContainer::start(engine.container().with_user("root").with_mount(bind(&dir, "/feature")));
    let fails = |words: &str| {
        let ran = dev.try_exec("/", &["sh", "/feature/install.sh"]);
        assert!(ran.code == 1 && ran.stderr.contains(words), "{ran:?}");
    };
    fails("does not run here");
    let left = dev.exec("/", &["find", "/usr/local/bin", "-name", "*treesweep*"]);
    assert_eq!(left, "");
    fs::remove_file(dir.join("treesweep")).expect("it goes");
    fails("scripts/build-feature");
}

//! Two clones that both were `/workspaces/app` in their containers, with worktrees of one name: what the
//! container wrote is the same in both, and each registration must find its own directory.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::path::Path;

use common::containers::{DevContainer, Engine, bind, require_engine};
use common::env::{EAGER, TestEnv};
use common::git::HostClone;
use common::plan::Document;
use common::scene::APP;
use common::snapshot::Snapshot;
use testcontainers::ImageExt;

const TREE: &str = "/workspaces/app/.worktrees/x";

#[test]
fn each_finds_its_own_while_the_stopped_containers_are_known() {
    sweeps_only_the_landed_one(|_, container| container.stop());
}

#[test]
fn each_finds_its_own_when_the_containers_are_gone() {
    sweeps_only_the_landed_one(|engine, container| {
        engine.docker(&["rm", "--force", container.id()]);
    });
}

fn sweeps_only_the_landed_one(end: impl Fn(&Engine, &DevContainer)) {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let [one, two] = ["one/app", "two/app"].map(|name| HostClone::new(&env, name));
    let containers = [&one, &two].map(|clone| {
        let container = DevContainer::start(engine.container().with_mount(bind(&clone.path, APP)));
        container.add_worktree(APP, "x", TREE);
        container
    });
    one.land("x");
    for clone in [&one, &two] {
        env.treesweep(&["setup"]).args(EAGER).arg(clone.path.join(".worktrees/x")).assert().success();
    }
    for container in &containers {
        end(engine, container);
    }
    let gone =
        [".worktrees/x", ".git/worktrees", ".git/refs/heads/x", ".git/logs/refs/heads/x", ".git/treesweep"];
    let before =
        (Snapshot::of(&one.path).without(&gone), Snapshot::of(&two.path).without(&[".git/treesweep"]));

    let plan = Document::plan(&env, &env.src());
    for (clone, verdict) in [(&one, "reclaim"), (&two, "keep")] {
        let worktree = plan.worktree_of(Some(&clone.path), "x");
        assert_eq!(worktree["path"].as_str().map(Path::new), Some(&*clone.path.join(".worktrees/x")));
        assert_eq!(worktree["verdict"], verdict, "{worktree:#}");
    }
    let pruned = Document::prune(&env, &env.src());

    assert_eq!(pruned.removed(), ["x"]);
    assert!(one.path.join(".worktrees/x").symlink_metadata().is_err());
    assert!(!one.entry("x").exists());
    before.0.assert_same(&Snapshot::of(&one.path).without(&gone));
    before.1.assert_same(&Snapshot::of(&two.path).without(&[".git/treesweep"]));
}

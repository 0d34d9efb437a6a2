//! Worktrees whose directories only a container has: in a volume, and in its own layer. The host sees
//! registrations of paths that are missing, and must not take that for absence.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use common::containers::{DevContainer, bind, require_engine};
use common::env::TestEnv;
use common::git::HostClone;
use common::plan::Document;
use common::scene::APP;
use common::snapshot::Snapshot;
use testcontainers::ImageExt;
use testcontainers::core::Mount;

const TREES: [(&str, &str); 2] = [("volume", "/trees/volume"), ("layer", "/opt/layer")];

#[test]
fn what_only_a_container_can_see_is_kept() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let volume = engine.volume("trees");
    let container = DevContainer::start(
        engine
            .container()
            .with_mount(bind(&clone.path, APP))
            .with_mount(Mount::volume_mount(&volume.name, "/trees")),
    );
    for (name, path) in TREES {
        container.add_worktree(APP, name, path);
        clone.land(name);
    }
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);
    let unchanged = || before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));
    let sweep_keeps = |codes: &[&str]| {
        let plan = Document::plan(&env, &env.src());
        for (name, _) in TREES {
            plan.assert_kept(name, codes);
        }
        Document::prune(&env, &env.src()).assert_nothing_done();
        unchanged();
    };

    sweep_keeps(&["outside-vantage", "live-container"]);
    container.stop();
    sweep_keeps(&["outside-vantage"]);
    container.start_again();
    for (_, path) in TREES {
        assert_eq!(container.git(path, &["--no-optional-locks", "status", "--porcelain"]), "");
    }
    // With the container goes the knowledge where the paths lay. What is left is weak evidence: a person may
    // forget such an entry by its name, a sweep may not.
    container.remove();
    Document::prune(&env, &env.src()).assert_nothing_done();
    unchanged();
}

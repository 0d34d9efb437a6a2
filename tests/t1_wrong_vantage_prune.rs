//! T1, the wrong-vantage prune: paths that only the container knows look dead on the host, so a prune there
//! forgets worktrees that are in use.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::path::Path;

use common::containers::require_engine;
use common::env::TestEnv;
use common::plan::Document;
use common::scene::{ALL, APP, BESIDE, INSIDE, NESTED, Scene, Tree, UNFINISHED};
use common::snapshot::Snapshot;

#[test]
fn stock_prune_on_the_host_forgets_what_the_container_uses() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    assert!(!Path::new(BESIDE.path).exists(), "the container's paths mean nothing on this host");
    let copy = scene.copy();
    for tree in ALL {
        copy.container.git(tree.path, &["status"]);
        assert!(copy.entry(tree).join("index").exists());
    }

    env.git(&copy.app, &["worktree", "prune"]);

    for tree in ALL {
        let ran = copy.container.try_exec(tree.path, &["git", "status"]);
        assert_eq!(ran.code, 128, "{ran:?}");
        assert!(ran.stderr.contains("not a git repository"), "{ran:?}");
        // HEAD, index (with what was staged) and reflog went with the entry; the directory is an orphan.
        assert!(!copy.entry(tree).exists());
        assert!(copy.src.join(tree.host).join(".git").exists());
        // The original, which nobody pruned.
        scene.container.git(tree.path, &["status"]);
    }
}

#[test]
fn treesweep_keeps_every_registration_that_the_running_container_uses() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    scene.enrol();
    for tree in [INSIDE, NESTED] {
        scene.container.occupy(tree.path);
    }
    let before = Snapshot::of(&env.src());

    let plan = Document::plan(&env, &env.src());
    plan.assert_kept(INSIDE.name, &["process-inside", "live-container"]);
    plan.assert_kept(NESTED.name, &["process-inside", "live-container"]);
    plan.assert_kept(BESIDE.name, &["process-inside", "live-container", "nested-kept"]);
    plan.assert_kept(UNFINISHED.name, &["dirty", "live-container"]);
    let pruned = Document::prune(&env, &env.src());

    pruned.assert_nothing_done();
    let lock = [Path::new("app/.git/treesweep")];
    before.without(&lock).assert_same(&Snapshot::of(&env.src()).without(&lock));
    let listed = scene.container.git(APP, &["worktree", "list"]);
    for Tree { path, .. } in ALL {
        assert!(
            listed.lines().any(|line| line.split_whitespace().next() == Some(path)),
            "{path} in\n{listed}"
        );
        scene.container.git(path, &["status"]);
    }
}

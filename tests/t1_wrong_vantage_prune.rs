//! T1, the wrong-vantage prune: paths that only the container knows look dead on the host, so a prune there
//! forgets worktrees that are in use.

mod common;

use std::path::Path;

use common::containers::require_engine;
use common::env::TestEnv;
use common::plan::Document;
use common::scene::{APP, BESIDE, INSIDE, NESTED, STRANGER, Scene, UNFINISHED};
use common::snapshot::Snapshot;

#[test]
fn stock_prune_on_the_host_forgets_what_the_container_uses() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    assert!(!Path::new(BESIDE.1).exists(), "the container's paths mean nothing on this host");
    let copy = scene.copy();
    let all = [INSIDE, BESIDE, NESTED, STRANGER, UNFINISHED];
    for (name, path, _) in all {
        copy.container.git(path, &["status"]);
        assert!(copy.entry(name).join("index").exists());
    }

    env.git(&copy.app, &["worktree", "prune"]);

    for (name, path, host) in all {
        let ran = copy.container.try_exec(path, &["git", "status"]);
        assert_eq!(ran.code, 128, "{ran:?}");
        assert!(ran.stderr.contains("not a git repository"), "{ran:?}");
        // HEAD, index (with what was staged) and reflog went with the entry; the directory is an orphan.
        assert!(!copy.entry(name).exists());
        assert!(copy.src.join(host).join(".git").exists());
        // The original, which nobody pruned.
        scene.container.git(path, &["status"]);
    }
}

#[test]
fn treesweep_keeps_every_registration_that_the_running_container_uses() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    scene.enrol();
    for (_, path, _) in [INSIDE, NESTED] {
        scene.container.occupy(path);
    }
    let before = Snapshot::of(&env.src());

    let plan = Document::plan(&env, &env.src());
    plan.assert_kept(INSIDE.0, &["process-inside", "live-container"]);
    plan.assert_kept(NESTED.0, &["process-inside", "live-container"]);
    plan.assert_kept(BESIDE.0, &["process-inside", "live-container", "nested-kept"]);
    plan.assert_kept(UNFINISHED.0, &["dirty", "live-container"]);
    let pruned = Document::prune(&env, &env.src());

    assert_eq!(pruned.removed(), [""; 0]);
    let lock = [Path::new("app/.git/treesweep")];
    before.clone().without(&lock).assert_same(&Snapshot::of(&env.src()).without(&lock));
    let listed = scene.container.git(APP, &["worktree", "list"]);
    for (_, path, _) in [INSIDE, BESIDE, NESTED, STRANGER, UNFINISHED] {
        assert!(
            listed.lines().any(|line| line.split_whitespace().next() == Some(path)),
            "{path} in\n{listed}"
        );
        scene.container.git(path, &["status"]);
    }
}

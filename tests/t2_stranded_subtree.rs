//! T2, the stranded subtree: `git worktree remove` of a container's path succeeds on the host because that
//! path is missing there, forgets the registration, and leaves the directory with everything nested in it.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::path::{Path, PathBuf};

use common::containers::require_engine;
use common::env::TestEnv;
use common::plan::Document;
use common::scene::{BESIDE, NESTED, RECLAIMABLE, STRANGER, Scene, UNFINISHED};
use common::snapshot::Snapshot;

#[test]
fn stock_remove_on_the_host_strands_the_directory() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    let copy = scene.copy();
    let before = Snapshot::of(&copy.src);

    // Exit code 0: as far as git can tell, all went well.
    env.git(&copy.app, &["worktree", "remove", BESIDE.path]);

    // The registration is all that went.
    assert!(!copy.entry(BESIDE).exists());
    let entry = [Path::new("app/.git/worktrees/app-b")];
    before.without(&entry).assert_same(&Snapshot::of(&copy.src).without(&entry));
    let ran = copy.container.try_exec(BESIDE.path, &["git", "status"]);
    assert_eq!(ran.code, 128, "{ran:?}");
    // No git command reaches the directory from here, and a live worktree is in it.
    let again = env.try_git(&copy.app, &["worktree", "remove", BESIDE.path]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not a working tree"), "{again:?}");
    assert!(copy.entry(NESTED).exists());
    copy.container.git(NESTED.path, &["status"]);
}

#[test]
fn treesweep_reclaims_bottom_up_when_the_container_has_stopped() {
    reclaims_bottom_up(|scene| scene.container.stop());
}

#[test]
fn treesweep_reclaims_bottom_up_when_the_container_is_removed() {
    reclaims_bottom_up(|scene| {
        scene.engine.docker(&["rm", "--force", scene.container.id()]);
    });
}

fn reclaims_bottom_up(end: impl FnOnce(&Scene<'_>)) {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    scene.enrol();
    end(&scene);
    // Beside what must go: treesweep's lock and its records for people.
    let mut gone = vec![PathBuf::from("app/.git/treesweep")];
    for tree in RECLAIMABLE {
        let traces =
            ["worktrees", "refs/heads", "logs/refs/heads"].map(|dir| format!("app/.git/{dir}/{}", tree.name));
        gone.extend(traces.map(PathBuf::from));
        gone.push(tree.host.into());
    }
    let before = Snapshot::of(&env.src()).without(&gone);
    let remote = Snapshot::of(&scene.clone.origin);

    let plan = Document::plan(&env, &env.src());
    for tree in RECLAIMABLE {
        plan.assert_verdict(tree.name, "reclaim");
        assert_eq!(plan.worktree(tree.name)["owned"], true);
    }
    plan.assert_kept(UNFINISHED.name, &["dirty"]);
    plan.assert_verdict(STRANGER.name, "offer");
    assert_eq!(plan.worktree(STRANGER.name)["class"], "unowned");
    let pruned = Document::prune(&env, &env.src());

    for tree in RECLAIMABLE {
        pruned.assert_removed(tree.name, "deleted");
        assert!(scene.host_path(tree).symlink_metadata().is_err());
        assert!(!scene.clone.entry(tree.name).exists());
        assert!(!scene.clone.has_branch(tree.name));
    }
    let order = pruned.removed();
    let place = |name| order.iter().position(|n| *n == name).expect("removed");
    assert!(place(NESTED.name) < place(BESIDE.name), "{order:?}");

    before.assert_same(&Snapshot::of(&env.src()).without(&gone));
    remote.assert_same(&Snapshot::of(&scene.clone.origin));
    assert_eq!(scene.clone.entries(), [STRANGER.name, UNFINISHED.name]);
    Document::prune(&env, &env.src()).assert_nothing_done();
}

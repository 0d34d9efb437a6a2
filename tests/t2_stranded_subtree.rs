//! T2, the stranded subtree: `git worktree remove` of a container's path succeeds on the host because that path
//! is missing there, forgets the registration, and leaves the directory with everything nested in it.

mod common;

use std::path::{Path, PathBuf};

use common::containers::require_engine;
use common::env::TestEnv;
use common::plan::Document;
use common::scene::{BESIDE, INSIDE, NESTED, STRANGER, Scene, UNFINISHED};
use common::snapshot::Snapshot;

#[test]
fn stock_remove_on_the_host_strands_the_directory() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    let copy = scene.copy();
    let before = Snapshot::of(&copy.src);

    // Exit code 0: as far as git can tell, all went well.
    env.git(&copy.app, &["worktree", "remove", BESIDE.1]);

    // The registration is all that went.
    assert!(!copy.entry(BESIDE.0).exists());
    let entry = [Path::new("app/.git/worktrees/app-b")];
    before.without(&entry).assert_same(&Snapshot::of(&copy.src).without(&entry));
    let ran = copy.container.try_exec(BESIDE.1, &["git", "status"]);
    assert_eq!(ran.code, 128, "{ran:?}");
    // No git command reaches the directory from here, and a live worktree is in it.
    let again = env.try_git(&copy.app, &["worktree", "remove", BESIDE.1]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not a working tree"), "{again:?}");
    assert!(copy.entry(NESTED.0).exists());
    copy.container.git(NESTED.1, &["status"]);
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
    let reclaimed = [INSIDE, BESIDE, NESTED];
    // Beside what must go: treesweep's lock and its records for people.
    let mut gone: Vec<PathBuf> = reclaimed.into_iter().flat_map(Scene::traces).collect();
    gone.push("app/.git/treesweep".into());
    let before = Snapshot::of(&env.src()).without(&gone);
    let remote = Snapshot::of(&scene.clone.origin);

    let plan = Document::plan(&env, &env.src());
    for (name, ..) in reclaimed {
        plan.assert_verdict(name, "reclaim");
        assert_eq!(plan.worktree(name)["owned"], true);
    }
    plan.assert_kept(UNFINISHED.0, &["dirty"]);
    plan.assert_verdict(STRANGER.0, "offer");
    assert_eq!(plan.worktree(STRANGER.0)["class"], "unowned");
    let pruned = Document::prune(&env, &env.src());

    for worktree in reclaimed {
        pruned.assert_removed(worktree.0, "deleted");
        assert!(scene.host_path(worktree).symlink_metadata().is_err());
        assert!(!scene.clone.entry(worktree.0).exists());
        assert!(!scene.clone.has_branch(worktree.0));
    }
    let order = pruned.removed();
    let place = |name| order.iter().position(|n| *n == name).expect("removed");
    assert!(place(NESTED.0) < place(BESIDE.0), "{order:?}");

    before.assert_same(&Snapshot::of(&env.src()).without(&gone));
    remote.assert_same(&Snapshot::of(&scene.clone.origin));
    assert_eq!(scene.clone.entries(), [STRANGER.0, UNFINISHED.0]);
    assert_eq!(Document::prune(&env, &env.src()).removed(), [""; 0], "the second run finds nothing to do");
}

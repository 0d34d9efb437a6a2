//! What a hostile container writes into the clone leads nowhere.

use std::os::unix::fs::symlink;

use super::*;
use crate::judge::reason::Code;

/// A directory beside the root that nothing may touch.
fn canary(scene: &Scene) -> PathBuf {
    let canary = scene.clone.root.join("canary");
    for name in ["lock", "trash/a", "retired/a", "x/HEAD", "heads/wt/x", "refs/heads/wt/x"] {
        let path = canary.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "theirs").unwrap();
    }
    canary
}

/// Replaces `name` in the common directory by a link to the canary, and removes; with what came of it.
fn with_link(name: &str, to: &str) -> (Scene, Result<Outcome, EnterError>) {
    let scene = Scene::new();
    let canary = canary(&scene);
    let warrant = scene.warrant(What::Remove);
    let link = scene.clone.path.join(".git").join(name);
    std::fs::create_dir_all(link.parent().unwrap()).unwrap();
    if link.exists() {
        std::fs::rename(&link, scene.clone.root.join("old")).unwrap();
    }
    symlink(canary.join(to), &link).unwrap();
    let before = listing(&canary);
    let outcome = scene.try_execute(warrant, &HOOKS);
    assert_eq!(listing(&canary), before, "{name}");
    (scene, outcome)
}

#[test]
fn links_in_the_common_directory_lead_nowhere() {
    for (name, to) in [("treesweep", ""), ("treesweep/lock", "lock")] {
        let (scene, outcome) = with_link(name, to);
        assert!(matches!(outcome, Err(EnterError::Lock(LockError::NotPlain { .. }))), "{name}: {outcome:?}");
        assert!(scene.checkout().exists());
    }
    for (name, to) in [("worktrees", ""), ("refs/treesweep", "refs"), ("refs", "refs")] {
        let (scene, outcome) = with_link(name, to);
        let outcome = outcome.unwrap();
        assert!(matches!(outcome.result, Ending::Skipped | Ending::Failed), "{name}: {outcome:?}");
        assert!(scene.checkout().join("file").exists(), "{name}");
        // What was written about it can be taken back when the way to the anchors is plain again.
        let link = scene.clone.path.join(".git").join(name);
        std::fs::remove_file(&link).unwrap();
        if scene.clone.root.join("old").exists() {
            std::fs::rename(scene.clone.root.join("old"), link).unwrap();
        }
        assert!(scene.resume().is_empty(), "{name}");
        scene.assert_tidy(name);
    }
    // These are found when the checkout is gone: the branch, or the entry, stays and it is said.
    let (scene, outcome) = with_link("treesweep/retired", "retired");
    assert_eq!(outcome.unwrap().result, Ending::Removed);
    assert!(!scene.checkout().exists());
    let (scene, outcome) = with_link("treesweep/trash", "trash");
    let outcome = outcome.unwrap();
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::PathEscapes));
    assert!(scene.checkout().join("file").exists() && scene.entry().exists() && scene.has_branch());
    let (scene, outcome) = with_link("logs", "");
    let outcome = outcome.unwrap();
    assert!(outcome.result == Ending::Removed && matches!(outcome.branch, BranchOutcome::Kept { .. }));
    assert!(scene.has_branch());
}

/// Journals and records in the common directory are never read back.
#[test]
fn a_forged_journal_does_nothing() {
    let scene = Scene::new();
    let ours = scene.clone.path.join(".git/treesweep");
    for dir in ["journal", "retired"] {
        std::fs::create_dir_all(ours.join(dir)).unwrap();
        let forged = format!(r#"{{"schema":1,"checkout":{{"path":"{}"}}}}"#, scene.checkout().display());
        std::fs::write(ours.join(dir).join("20250301T101112123Z-0123456789ab.aside"), &forged).unwrap();
        std::fs::write(ours.join(dir).join("20250301T101112123Z-0123456789ab.json"), &forged).unwrap();
    }
    let trash = scene.clone.root.join("w/.treesweep-trash-20250301T101112123Z-0123456789ab-x");
    std::fs::create_dir(&trash).unwrap();
    assert!(scene.resume().is_empty());
    assert!(trash.exists() && scene.checkout().exists());
}

#[test]
fn a_state_directory_in_the_clones_reach_is_refused() {
    let scene = Scene::new();
    for place in [scene.clone.path.join("state"), scene.clone.path.join(".git/state")] {
        let state = StateDir::open(&local(&place)).unwrap();
        let (stop, protected) = (Stop::never(), Protected::default());
        let jobs = NonZeroUsize::MIN;
        let sweeper = Sweeper { state: &state, stop: &stop, jobs, progress: &(), protected: &protected };
        let entered = sweeper.enter(scene.clone.common(), Some(&local(&scene.clone.path)), &[]);
        assert!(matches!(entered, Err(EnterError::StateInReach(_))), "{entered:?}");
    }
}

/// A confined thread does a whole removal, and can change nothing beside.
#[test]
fn a_confined_thread_can_do_its_work_and_nothing_else() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let common = scene.clone.common();
    let canary = canary(&scene);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (stop, protected) = (Stop::never(), Protected::default());
            let jobs = NonZeroUsize::new(4).unwrap();
            let sweeper =
                Sweeper { state: &scene.state, stop: &stop, jobs, progress: &(), protected: &protected };
            let parent = local(&scene.clone.root.join("w"));
            let mut clone = sweeper.enter(common, Some(&local(&scene.clone.path)), &[parent]).unwrap();
            if clone.confinement == Confinement::Active {
                assert!(std::fs::remove_file(canary.join("lock")).is_err());
            }
            let outcome = sweeper.execute(&mut clone, warrant, &HOOKS);
            assert_eq!((outcome.result, outcome.note), (Ending::Removed, None));
            assert!(matches!(outcome.branch, BranchOutcome::Deleted { .. }));
        });
    });
    assert!(canary.join("lock").exists());
    scene.assert_tidy("confined");
}

#[test]
fn names_with_terminal_escapes_are_shown_escaped() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let bad = scene.checkout().join("a\x1b[31m\nb");
    std::fs::create_dir(&bad).unwrap();
    let refuse = |_: &Dir| Err(Unreadable::new(format!("{}", local(&bad))));
    let outcome = scene.execute_with(warrant, &Hooks { fingerprint: &refuse, ..HOOKS });
    let note = outcome.note.unwrap();
    assert!(!note.contains('\x1b') && !note.contains('\n'), "{note:?}");
}

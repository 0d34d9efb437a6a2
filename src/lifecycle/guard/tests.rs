use super::*;
use std::path::PathBuf;

use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::sweep::act::faults::{Fault, run};
use crate::sweep::testing::{Clone, local};

/// A clone with the worktree `x`, which a container seems to have made.
struct Scene {
    clone: Clone,
    config: Vec<u8>,
}

impl Scene {
    fn new() -> Self {
        let clone = Clone::new();
        clone.git(&["worktree", "add", "-q", "-b", "wt/x", ".worktrees/x"]);
        std::fs::write(entry_of(&clone).join("gitdir"), "/workspaces/app/.worktrees/x/.git\n").unwrap();
        clone.git(&["config", "gc.worktreePruneExpire", "1.week"]);
        let config = std::fs::read(clone.path.join(".git/config")).unwrap();
        Self { clone, config }
    }

    fn enter(&self) -> LockedClone {
        let state = StateDir::open(&local(&self.clone.root.join("state/treesweep"))).unwrap();
        LockedClone::enter_unconfined(&state, &Stop::never(), self.clone.common()).unwrap()
    }

    fn guard(&self, clone: &LockedClone) -> Guarded {
        let all = registrations(clone.common()).unwrap();
        let known: Vec<_> = all
            .iter()
            .map(|r| Known { name: r.name.clone(), id: r.id.unwrap(), checkout: None, foreign: true })
            .collect();
        guard(clone, &known, true).unwrap()
    }

    fn config(&self) -> Vec<u8> {
        std::fs::read(self.clone.path.join(".git/config")).unwrap()
    }

    fn assert_guarded(&self, at: &str) {
        assert_eq!(self.clone.git(&["config", "gc.worktreePruneExpire"]), "never", "{at}");
        assert!(self.config().starts_with(&self.config), "{at}");
        let lock = std::fs::read_to_string(entry_of(&self.clone).join("locked")).unwrap();
        assert_eq!(lock.trim_end(), GUARD_REASON, "{at}");
        assert_eq!(snapshot::read_all(self.enter().state().unwrap()).unwrap().0.len(), 1, "{at}");
        self.assert_tidy(at);
    }

    fn assert_free(&self, at: &str) {
        assert_eq!(self.config(), self.config, "{at}");
        assert!(!entry_of(&self.clone).join("locked").exists(), "{at}");
        self.assert_tidy(at);
    }

    /// Nothing of ours keeps git from writing.
    fn assert_tidy(&self, at: &str) {
        assert!(!self.clone.path.join(".git/config.lock").exists(), "{at}");
        let ours = self.clone.common().dir("treesweep").unwrap().names().unwrap();
        assert_eq!(ours, [b"lock".to_vec()], "{at}");
    }
}

fn entry_of(clone: &Clone) -> PathBuf {
    clone.path.join(".git/worktrees/x")
}

#[test]
fn it_is_done_once_and_undone_exactly() {
    let scene = Scene::new();
    let name = EntryName::new("x").unwrap();
    let first = scene.guard(&scene.enter());
    assert_eq!(first.gc, Gc::Set(Some("1.week".into())));
    assert_eq!(first.snapshots, [(name.clone(), Kept::New)]);
    assert_eq!((first.locks, first.failed), (vec![(name.clone(), LockIs::Locked)], vec![]));
    let after = scene.config();
    let again = scene.guard(&scene.enter());
    assert_eq!((again.gc, again.snapshots), (Gc::Ours, vec![(name.clone(), Kept::Same)]));
    assert_eq!(again.locks, [(name.clone(), LockIs::Ours)]);
    assert_eq!(scene.config(), after);
    scene.clone.git(&["worktree", "prune"]);
    scene.assert_guarded("a prune on the host");
    let undone = undo(&scene.enter()).unwrap();
    assert_eq!((undone.gc, undone.locks), (Gc::Unset, vec![(name, LockIs::Unlocked)]));
    scene.assert_free("undone");
    assert_eq!(undo(&scene.enter()).unwrap().gc, Gc::NotOurs);
}

#[test]
fn a_snapshot_outlives_its_entry_and_another_one_of_its_name() {
    let scene = Scene::new();
    scene.guard(&scene.enter());
    undo(&scene.enter()).unwrap();
    scene.clone.git(&["worktree", "prune"]);
    assert!(!entry_of(&scene.clone).exists());
    scene.clone.git(&["worktree", "add", "-q", "--detach", "other/x"]);
    scene.guard(&scene.enter());
    let mut all = snapshot::read_all(scene.enter().state().unwrap()).unwrap().0;
    all.sort_by_key(|s| s.time);
    let paths: Vec<_> = all.iter().map(|s| s.recorded_path.0.to_string()).collect();
    let other = scene.clone.path.join("other/x");
    assert_eq!(paths, ["/workspaces/app/.worktrees/x", other.to_str().unwrap()]);
    assert_eq!(all[0].branch, Some(Bytes::new("refs/heads/wt/x")));
    assert_eq!(all[0].tip, Some(scene.clone.id_of("wt/x").into()));
}

#[test]
fn killed_at_any_call_the_next_run_completes_it() {
    for at in 1.. {
        let scene = Scene::new();
        let locked = scene.enter();
        let (done, _) = run(Some((at, Fault::Kill)), || scene.guard(&locked));
        drop(locked);
        scene.guard(&scene.enter());
        scene.assert_guarded(&format!("call {at}"));
        undo(&scene.enter()).unwrap();
        scene.assert_free(&format!("call {at}"));
        if done.is_some() {
            return;
        }
    }
}

#[test]
fn killed_while_it_is_undone_the_next_run_undoes_the_rest() {
    for at in 1.. {
        let scene = Scene::new();
        scene.guard(&scene.enter());
        let locked = scene.enter();
        let (done, _) = run(Some((at, Fault::Kill)), || undo(&locked).unwrap());
        drop(locked);
        undo(&scene.enter()).unwrap();
        scene.assert_free(&format!("call {at}"));
        if done.is_some() {
            return;
        }
    }
}

/// A full disk: what can't be done is said, the config is whole, and the next run does the rest.
#[test]
fn an_error_at_any_call_is_told() {
    for at in 1.. {
        let scene = Scene::new();
        let locked = scene.enter();
        let (done, calls) = run(Some((at, Fault::Error(Errno::NOSPC))), || scene.guard(&locked));
        drop(locked);
        assert!(scene.config().starts_with(&scene.config), "call {at}");
        scene.guard(&scene.enter());
        scene.assert_guarded(&format!("call {at}"));
        if calls.len() < at {
            assert_eq!(done.unwrap().failed, Vec::<String>::new());
            return;
        }
    }
}

#[test]
fn what_others_locked_or_put_there_stays() {
    let scene = Scene::new();
    std::fs::write(entry_of(&scene.clone).join("locked"), "mine\n").unwrap();
    let done = scene.guard(&scene.enter());
    assert_eq!(done.locks, [(EntryName::new("x").unwrap(), LockIs::Somebody("mine".into()))]);
    assert_eq!(undo(&scene.enter()).unwrap().locks, []);
    assert_eq!(std::fs::read(entry_of(&scene.clone).join("locked")).unwrap(), b"mine\n");
}

/// A container can put links and locks in the place of the config.
#[test]
fn nothing_is_written_through_a_link() {
    let scene = Scene::new();
    let outside = scene.clone.root.join("outside");
    std::fs::write(&outside, &scene.config).unwrap();
    let config = scene.clone.path.join(".git/config");
    std::fs::remove_file(&config).unwrap();
    std::os::unix::fs::symlink(&outside, &config).unwrap();
    let done = scene.guard(&scene.enter());
    assert_eq!(done.gc, Gc::Failed);
    assert!(done.failed[0].contains("gc.worktreePruneExpire"), "{:?}", done.failed);
    assert_eq!(std::fs::read(&outside).unwrap(), scene.config);
    std::fs::remove_file(&config).unwrap();
    std::fs::write(&config, &scene.config).unwrap();
    std::fs::write(scene.clone.path.join(".git/config.lock"), "git's").unwrap();
    assert_eq!(scene.guard(&scene.enter()).gc, Gc::Failed);
    assert_eq!(scene.config(), scene.config);
    assert_eq!(std::fs::read(scene.clone.path.join(".git/config.lock")).unwrap(), b"git's");
}

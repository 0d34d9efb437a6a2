use super::*;
use std::path::PathBuf;

use jiff::Timestamp;

use crate::lifecycle::links::{Old, Spot, like};
use crate::state_dir::StateDir;
use crate::sweep::act::faults::{Fault, run};
use crate::sweep::bytes::Bytes;
use crate::sweep::outcome::{Ending, Removed};
use crate::sweep::record::{Acted, AnsweredBy, Completion, SCHEMA};
use crate::sweep::testing::{Clone, git_in, listing, local};
use crate::vantage::paths::RecordedPath;

/// A clone whose worktree `x` on branch `wt/x` was retired, branch and all.
struct Scene {
    clone: Clone,
    record: Record,
    /// Where it was.
    path: PathBuf,
    /// Of its files, before.
    was: Vec<(PathBuf, String)>,
}

impl Scene {
    fn new() -> Self {
        let clone = Clone::new();
        let path = clone.path.join(".worktrees/x");
        clone.git(&["worktree", "add", "-q", "-b", "wt/x", path.to_str().unwrap()]);
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/run"), "#!/bin/sh\n").unwrap();
        std::fs::write(path.join("a/c"), vec![b'c'; 100_000]).unwrap();
        std::os::unix::fs::symlink("a/c", path.join("link")).unwrap();
        git_in(&path, &["add", "-A"]);
        git_in(&path, &["update-index", "--chmod=+x", "a/b/run"]);
        git_in(&path, &["checkout-index", "-f", "a/b/run"]);
        git_in(&path, &["commit", "-qm", "work"]);
        let was = files(&path);
        let tip = clone.id_of("wt/x");
        clone.git(&["worktree", "remove", "--force", path.to_str().unwrap()]);
        clone.git(&["branch", "-q", "-D", "wt/x"]);
        let now = Timestamp::now();
        let record = Record {
            schema: SCHEMA,
            id: RecordId::random(now).unwrap(),
            name: Bytes::new("x"),
            common_dir: Bytes::from(&local(&clone.path.join(".git"))),
            recorded_path: Some(Bytes::from(&local(&path))),
            pointer: None,
            path: Some(Bytes::from(&local(&path))),
            branch: Some(Bytes::new("refs/heads/wt/x")),
            tip: Some(tip.into()),
            act: Acted::Remove,
            authority: AnsweredBy::Owned,
            anchors: Vec::new(),
            trunk: None,
            started: now,
            completed: Some(Completion {
                time: now,
                result: Ending::Removed,
                removed: Removed::default(),
                branch: Some(BranchOutcome::Deleted { name: Bytes::new("refs/heads/wt/x") }),
            }),
        };
        Self { clone, record, path, was }
    }

    fn enter(&self) -> LockedClone {
        let state = StateDir::open(&local(&self.clone.root.join("state/treesweep"))).unwrap();
        LockedClone::enter_unconfined(&state, &Stop::never(), self.clone.common()).unwrap()
    }

    fn restore(&self) -> Result<Restored, NotRestored> {
        self.restore_in(&self.enter())
    }

    fn restore_in(&self, clone: &LockedClone) -> Result<Restored, NotRestored> {
        let (name, at) = (EntryName::new("x").unwrap(), local(&self.path));
        let recorded = self.record.recorded_path.as_ref().map(|p| RecordedPath::new(p.0.clone()));
        let old = Old { recorded, pointer: None, path: Some(at.clone()) };
        let links = like(&old, Spot { common: clone.common().path(), name: &name, checkout: &at }, &[]);
        let root = local(&self.clone.root);
        restore(clone, &Wanted { record: &self.record, name, at, root, links }, &Stop::never())
    }

    /// With `fault` at the call number `at`; `None` if it was killed.
    fn with(&self, at: usize, fault: Fault) -> (Option<Result<Restored, NotRestored>>, Vec<&'static str>) {
        let clone = self.enter();
        run(Some((at, fault)), || self.restore_in(&clone))
    }

    /// Killed when the first directory was there and nothing in it.
    fn begun() -> Self {
        (1..)
            .find_map(|at| {
                let scene = Self::new();
                scene.with(at, Fault::Kill);
                scene.path.join("a/b").exists().then_some(scene)
            })
            .unwrap()
    }

    fn assert_back(&self) {
        assert_eq!(files(&self.path), self.was);
        assert_eq!(git_in(&self.path, &["status", "--porcelain", "--ignored"]), "");
        assert_eq!(git_in(&self.path, &["symbolic-ref", "HEAD"]), "refs/heads/wt/x");
        assert!(!self.clone.path.join(".git/worktrees/x/locked").exists());
        assert_eq!(self.clone.git(&["fsck", "--no-progress"]), "");
    }
}

/// Everything in a checkout but its `.git` file, which differs in nothing that matters.
fn files(path: &std::path::Path) -> Vec<(PathBuf, String)> {
    let all = listing(path).into_iter();
    all.map(|(at, what)| (at.strip_prefix(path).unwrap().to_owned(), what))
        .filter(|(at, _)| at != ".git")
        .collect()
}

#[test]
fn it_comes_back_as_it_was() {
    let scene = Scene::new();
    let restored = scene.restore().unwrap();
    assert_eq!(restored.head, HeadIs::Recreated("refs/heads/wt/x".into()));
    assert_eq!((restored.written.files, restored.written.there), (4, 0));
    scene.assert_back();
    assert!(matches!(scene.restore(), Err(NotRestored::NameTaken(_))), "it is there");
}

/// A power cut may not leave an entry that can be used, and of its checkout a half.
#[test]
fn the_checkout_is_on_the_disk_before_its_entry_may_be_used() {
    let scene = Scene::new();
    let clone = scene.enter();
    let (done, calls) = run(None, || scene.restore_in(&clone));
    done.unwrap().unwrap();
    let made = ["mkdir", "create", "write", "symlink", "rename"];
    let last = calls.iter().rposition(|call| made.contains(call)).unwrap();
    // What makes the entry usable is the last of all.
    assert_eq!(calls[last + 1..], ["syncfs", "unlink"], "{calls:?}");
}

/// Root restores for whom the clone belongs to, links as well as files.
#[test]
fn what_root_restores_belongs_to_the_user() {
    use std::os::unix::fs::MetadataExt;
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let scene = Scene::new();
    std::fs::create_dir_all(scene.path.parent().unwrap()).unwrap();
    let root = &scene.clone.root;
    let given = std::process::Command::new("chown").args(["-R", "1234:5678"]).arg(root).status().unwrap();
    assert!(given.success());
    scene.restore().unwrap();
    assert!(scene.was.iter().any(|(at, _)| at.ends_with("link")));
    for (at, _) in &scene.was {
        let meta = std::fs::symlink_metadata(scene.path.join(at)).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (1234, 5678), "{}", at.display());
    }
}

/// Killed at any call, the next run finishes it, and the one after finds nothing to do.
#[test]
fn killed_at_any_call_the_next_run_goes_on() {
    for at in 1.. {
        let scene = Scene::new();
        let (done, calls) = scene.with(at, Fault::Kill);
        if done.is_some() {
            return scene.assert_back();
        }
        match scene.restore() {
            Ok(_) => {}
            // Killed at the very end: nothing but the lock's own sync was left.
            Err(NotRestored::NameTaken(_)) => {}
            Err(error) => panic!("call {at} ({:?}): {error}", calls.last()),
        }
        scene.assert_back();
    }
}

/// A full disk ends it with what is there; once there is room it goes on.
#[test]
fn an_error_at_any_call_ends_it_and_the_next_run_goes_on() {
    for at in 1.. {
        let scene = Scene::new();
        let (done, calls) = scene.with(at, Fault::Error(rustix::io::Errno::NOSPC));
        let done = done.unwrap();
        if calls.len() < at {
            done.unwrap();
            return scene.assert_back();
        }
        if done.is_err() {
            scene.restore().unwrap_or_else(|error| panic!("call {at} ({:?}): {error}", calls[at - 1]));
        }
        scene.assert_back();
    }
}

#[test]
fn what_was_done_there_meanwhile_stays() {
    let scene = Scene::begun();
    std::fs::write(scene.path.join("a/c"), "mine").unwrap();
    std::fs::write(scene.path.join("new"), "mine too").unwrap();
    let restored = scene.restore().unwrap();
    assert!(restored.resumed && restored.written.there > 0, "{restored:?}");
    assert_eq!(std::fs::read(scene.path.join("a/c")).unwrap(), b"mine");
    assert_eq!(git_in(&scene.path, &["status", "--porcelain"]), " M a/c\n?? new");
}

#[test]
fn nothing_is_written_where_something_is() {
    let scene = Scene::new();
    std::fs::create_dir_all(&scene.path).unwrap();
    std::fs::write(scene.path.join("mine"), "mine").unwrap();
    let before = listing(&scene.clone.root);
    assert!(matches!(scene.restore(), Err(NotRestored::NotFree { .. })));
    std::fs::remove_dir_all(scene.clone.root.join("state")).unwrap();
    std::fs::remove_dir_all(scene.clone.path.join(".git/treesweep")).unwrap();
    assert_eq!(listing(&scene.clone.root), before);
}

/// A container can put a link in the place of any directory on the way.
#[test]
fn no_link_leads_out() {
    let scene = Scene::new();
    let outside = scene.clone.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir_all(scene.clone.path.join(".worktrees")).unwrap();
    std::os::unix::fs::symlink(&outside, scene.clone.path.join(".worktrees")).unwrap();
    assert!(matches!(scene.restore(), Err(NotRestored::NotFree { .. })));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);

    std::fs::remove_file(scene.clone.path.join(".worktrees")).unwrap();
    let worktrees = scene.clone.path.join(".git/worktrees");
    let _ = std::fs::remove_dir_all(&worktrees);
    std::os::unix::fs::symlink(&outside, &worktrees).unwrap();
    assert!(scene.restore().is_err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    assert!(!scene.path.exists(), "the empty directory went again");
}

/// In the middle of it a directory of the checkout becomes a link that leads out.
#[test]
fn a_directory_that_becomes_a_link_ends_it() {
    let scene = Scene::begun();
    let outside = scene.clone.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::remove_dir_all(scene.path.join("a")).unwrap();
    std::os::unix::fs::symlink(&outside, scene.path.join("a")).unwrap();
    assert!(matches!(scene.restore(), Err(NotRestored::Unfinished { .. })));
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn a_branch_that_another_one_excludes_is_not_made() {
    for (other, packed) in [("wt/x/y", false), ("wt/x/y", true), ("wt", true)] {
        let scene = Scene::new();
        scene.clone.git(&["branch", other]);
        if packed {
            scene.clone.git(&["pack-refs", "--all"]);
        }
        let restored = scene.restore().unwrap();
        assert!(matches!(&restored.head, HeadIs::Detached(why) if why.contains(other)), "{restored:?}");
        assert_eq!(files(&scene.path), scene.was);
        assert_eq!(git_in(&scene.path, &["status", "--porcelain"]), "");
        assert!(!scene.clone.git(&["for-each-ref", "refs/heads"]).contains("refs/heads/wt/x\n"));
    }
}

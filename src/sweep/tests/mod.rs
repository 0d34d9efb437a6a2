//! Whole removals: what goes and what stays.

mod attacks;
mod changes;
mod faults;
mod full_disk;
mod mounts;
mod resuming;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::*;
use crate::judge::warrant::{Act, Authority, BranchFate, Checkout, Entry, Scope, Warrant};
use crate::sweep::bytes::Bytes;
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome};
use crate::sweep::testing::{Clone, fingerprint, listing, local};
use crate::vantage::paths::{EntryName, RecordedPath};

/// A clone with the worktrees `x` and `y`, and the state directory.
struct Scene {
    clone: Clone,
    state: StateDir,
    /// What `wt/x` is at, which `main` contains.
    tip: gix::ObjectId,
    /// A commit that nothing but the worktree's own log would name.
    lost: gix::ObjectId,
}

const NAMES: [&str; 2] = ["x", "y"];

impl Scene {
    fn new() -> Self {
        let clone = Clone::new();
        std::fs::write(clone.path.join(".gitignore"), "target/\n").unwrap();
        clone.git(&["add", "-A"]);
        clone.git(&["commit", "-qm", "ignore"]);
        for name in NAMES {
            clone.git(&["worktree", "add", "-q", "-b", &format!("wt/{name}"), &format!("../w/{name}")]);
            let target = clone.root.join("w").join(name).join("target/debug");
            std::fs::create_dir_all(&target).unwrap();
            std::fs::write(target.join("big"), vec![1; 100_000]).unwrap();
        }
        clone.git(&["commit", "-q", "--allow-empty", "-m", "later"]);
        clone.git(&["pack-refs", "--all"]);
        let (tip, lost) = (clone.id_of("main~1"), clone.id_of("main~2"));
        Self::of(clone, tip, lost)
    }

    fn of(clone: Clone, tip: gix::ObjectId, lost: gix::ObjectId) -> Self {
        let state = StateDir::open(&local(&clone.root.join("state/treesweep"))).unwrap();
        Self { clone, state, tip, lost }
    }

    fn copy(&self) -> Self {
        let copy = self.clone.copy();
        let (old, new) = (self.clone.root.to_str().unwrap(), copy.root.to_str().unwrap());
        for name in NAMES {
            for file in [
                copy.path.join(".git/worktrees").join(name).join("gitdir"),
                copy.root.join("w").join(name).join(".git"),
            ] {
                if let Ok(text) = std::fs::read_to_string(&file) {
                    std::fs::write(&file, text.replace(old, new)).unwrap();
                }
            }
        }
        Self::of(copy, self.tip, self.lost)
    }

    fn checkout(&self) -> PathBuf {
        self.clone.root.join("w/x")
    }

    fn entry(&self) -> PathBuf {
        self.clone.path.join(".git/worktrees/x")
    }

    fn orphan(&self) {
        std::fs::remove_dir_all(self.entry()).unwrap();
    }

    /// A warrant for what is there now.
    fn warrant(&self, what: What) -> Warrant {
        let anchors = if what == What::Orphan { vec![] } else { vec![self.lost] };
        self.warrant_with(what, anchors)
    }

    fn warrant_with(&self, what: What, anchors: Vec<gix::ObjectId>) -> Warrant {
        let common = self.clone.common();
        let scope = Scope {
            root: local(&self.clone.root),
            common_dir: common.path().clone(),
            common_id: common.own_meta().unwrap().id,
        };
        let held = |path: &Path| Dir::open(&local(path)).unwrap();
        let checkout = || {
            let dir = held(&self.checkout());
            let fingerprint = fingerprint(&dir).unwrap();
            Checkout { path: local(&self.checkout()), seen: dir.own_meta().unwrap(), fingerprint }
        };
        let tip = self.tip;
        let entry = || {
            let dir = held(&self.entry());
            Entry {
                name: EntryName::new("x").unwrap(),
                id: dir.own_meta().unwrap().id,
                recorded: Some(RecordedPath::new("/workspaces/app/w/x")),
                fingerprint: fingerprint(&dir).unwrap(),
                branch: Some("refs/heads/wt/x".into()),
                tip: Some(tip),
            }
        };
        let act = match what {
            What::Remove => Act::Remove { checkout: checkout(), entry: entry() },
            What::Forget => Act::Forget { entry: entry(), absent: Some(local(&self.checkout())) },
            What::Orphan => Act::RemoveOrphan { checkout: checkout(), name: "x".into() },
        };
        let branch = match what {
            What::Orphan => BranchFate::None,
            _ => BranchFate::Delete {
                name: "refs/heads/wt/x".into(),
                expected: tip,
                trunk: "refs/heads/main".into(),
            },
        };
        Warrant::for_test(scope, act, branch, Authority::Owned, anchors)
    }

    fn sweep<T>(&self, act: impl FnOnce(&Sweeper<'_>, &mut LockedClone) -> T) -> Result<T, EnterError> {
        let (stop, protected) = (Stop::never(), Protected::new([local(&self.clone.path)]).unwrap());
        let sweeper = Sweeper {
            state: &self.state,
            stop: &stop,
            jobs: NonZeroUsize::MIN,
            progress: &(),
            protected: &protected,
        };
        let mut clone = sweeper.enter_unconfined(self.clone.common())?;
        Ok(act(&sweeper, &mut clone))
    }

    fn execute(&self, warrant: Warrant) -> Outcome {
        self.execute_with(warrant, &HOOKS)
    }

    fn execute_with(&self, warrant: Warrant, hooks: &Hooks<'_>) -> Outcome {
        self.try_execute(warrant, hooks).unwrap()
    }

    fn try_execute(&self, warrant: Warrant, hooks: &Hooks<'_>) -> Result<Outcome, EnterError> {
        self.sweep(|sweeper, clone| sweeper.execute(clone, warrant, hooks))
    }

    fn resume(&self) -> Vec<Outcome> {
        self.sweep(|sweeper, clone| sweeper.resume(clone, &HOOKS).unwrap()).unwrap()
    }

    /// Everything of the clone, its surroundings and the other worktree, that no removal of `x` may change.
    fn neighbours(&self) -> Vec<(PathBuf, String)> {
        let mut all = listing(&self.clone.root);
        all.retain(|path, _| {
            let path = path.strip_prefix(&self.clone.root).unwrap();
            let ours = [
                "w/x",
                "state",
                "app/.git/worktrees/x",
                "app/.git/treesweep",
                "app/.git/refs/treesweep",
                "app/.git/packed-refs",
                "app/.git/refs/heads/wt",
                "app/.git/logs/refs/heads/wt/x",
            ];
            !ours.iter().any(|o| path.starts_with(o))
                && !["w/.treesweep-trash", "app/.git/packed-refs"]
                    .iter()
                    .any(|o| path.to_string_lossy().starts_with(o))
        });
        all.into_iter()
            .map(|(path, what)| (path.strip_prefix(&self.clone.root).unwrap().to_owned(), what))
            .collect()
    }

    /// Nothing of a removal under way is left.
    fn assert_tidy(&self, when: &str) {
        for path in listing(&self.clone.root).keys() {
            let name = path.to_string_lossy();
            let bad =
                [".unfinished", ".lock", "/journal/", ".treesweep-trash"].iter().any(|b| name.contains(b));
            let in_trash = name.contains("/treesweep/trash/");
            let theirs = name.contains("/worktrees/x/");
            assert!(theirs || !bad && !in_trash, "{when}: {name} is left");
        }
    }

    fn has_branch(&self) -> bool {
        refs::read(&self.clone.common(), "refs/heads/wt/x".into()).unwrap().is_some()
    }

    fn has_anchor(&self) -> bool {
        let retired = self.clone.path.join(".git/refs/treesweep/retired");
        let records = std::fs::read_dir(retired).into_iter().flatten();
        records.map(|r| r.unwrap().path()).any(|r| r.join("0").exists())
    }

    fn journals(&self) -> usize {
        let common = self.clone.common().own_meta().unwrap().id;
        resume::pending(&self.state, common).unwrap().0.len()
    }

    fn records(&self) -> Vec<record::Record> {
        let common = self.clone.common().own_meta().unwrap().id;
        let Some(state) = self.state.existing_clone_state(common).unwrap() else { return Vec::new() };
        let (records, damaged) = records::read_all(&state).unwrap();
        assert!(damaged.is_empty(), "{damaged:?}");
        records
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Remove,
    Forget,
    Orphan,
}

const HOOKS: Hooks<'static> = Hooks { fingerprint: &fingerprint, world_still_allows: &|_| Ok(()) };

fn scene_for(what: What) -> Scene {
    let scene = Scene::new();
    match what {
        What::Remove => {}
        What::Forget => std::fs::remove_dir_all(scene.checkout()).unwrap(),
        What::Orphan => scene.orphan(),
    }
    scene
}

#[test]
fn a_removal_takes_its_own_and_leaves_the_rest() {
    for what in [What::Remove, What::Forget, What::Orphan] {
        let scene = scene_for(what);
        let before = scene.neighbours();
        let lost = scene.lost;
        let outcome = scene.execute(scene.warrant(what));
        let ending = if what == What::Forget { Ending::Forgotten } else { Ending::Removed };
        assert_eq!(outcome.result, ending, "{outcome:?}");
        assert_eq!((outcome.note, outcome.retry, outcome.observed), (None, None, None));
        assert_eq!(matches!(outcome.branch, BranchOutcome::Deleted { .. }), what != What::Orphan);
        assert_eq!(outcome.removed.freed >= 100_000, what != What::Forget);
        assert!(!scene.checkout().exists() && !scene.entry().exists());
        assert_same(&scene.neighbours(), &before, "after");
        scene.assert_tidy("after");
        let record = scene.records().pop().unwrap();
        assert_eq!(Some(record.id.clone()), outcome.record);
        assert_eq!(record.completed.unwrap().branch, Some(outcome.branch));
        // What brings it back.
        let registered = what != What::Orphan;
        assert_eq!(record.recorded_path, registered.then(|| Bytes::new("/workspaces/app/w/x")));
        assert_eq!(record.branch, registered.then(|| Bytes::new("refs/heads/wt/x")));
        assert_eq!(record.tip, registered.then(|| scene.tip.into()));
        assert_eq!(record.path, Some(Bytes::from(&local(&scene.checkout()))));
        let pointer = (what != What::Forget).then(|| Bytes::from(&local(&scene.entry())));
        assert_eq!(record.pointer, pointer);
        assert!(scene.clone.path.join(format!(".git/treesweep/retired/{}.json", record.id)).exists());
        if what != What::Orphan {
            let anchor = anchors::name(&record.id, 0).to_string();
            assert_eq!(scene.clone.id_of(&anchor), lost);
            assert!(!scene.has_branch());
        }
        scene.clone.git(&["fsck", "--strict"]);
        assert_eq!(scene.clone.git(&["worktree", "list"]).lines().count(), 2);
    }
}

fn assert_same(left: &[(PathBuf, String)], right: &[(PathBuf, String)], when: &str) {
    let differs =
        left.iter().find(|l| !right.contains(l)).or_else(|| right.iter().find(|r| !left.contains(r)));
    assert_eq!(differs, None, "{when}");
}

fn contents(path: &Path) -> Vec<(PathBuf, String)> {
    if !path.exists() {
        return Vec::new();
    }
    let strip = |(p, what): (PathBuf, String)| (p.strip_prefix(path).unwrap().to_owned(), what);
    // The `.git` file names the root, which differs from copy to copy.
    listing(path).into_iter().map(strip).filter(|(p, _)| p != Path::new(".git")).collect()
}

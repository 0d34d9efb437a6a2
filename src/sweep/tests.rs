//! Whole removals: what goes, what stays, and what a kill or an error at any call leaves.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::*;
use crate::judge::reason::Code;
use crate::judge::warrant::{Act, Authority, BranchFate, Checkout, Entry, Scope, Warrant};
use crate::sweep::act::faults::{self, Fault};
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
        let anchors = if what == What::Orphan { vec![] } else { vec![self.lost] };
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
            assert!(!bad && !in_trash, "{when}: {name} is left");
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

/// What holds whatever happened: the work is intact, or it is recorded as retired with its tip and anchors reachable.
fn assert_nothing_lost(scene: &Scene, what: What, whole: &[(PathBuf, String)], full: bool, when: &str) {
    let branch = scene.has_branch() || what == What::Orphan;
    let entry = scene.entry().join("gitdir").exists() && scene.entry().join("logs/HEAD").exists();
    let intact = what == What::Forget || contents(&scene.checkout()) == whole;
    if intact && (entry || what == What::Orphan) {
        assert!(branch, "{when}: intact, without its branch");
        return;
    }
    if what != What::Orphan {
        let aside = scene.journals() > 0 && entry;
        let anchored = scene.has_anchor();
        assert!(anchored || aside, "{when}: neither entry nor anchor");
    }
    let written = scene.journals() + scene.records().len() > 0;
    assert!(written || full, "{when}: neither journal nor record");
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

/// The whole matrix: at every changing call a kill or an error, then a run without.
#[test]
fn every_call_may_be_the_last() {
    let cases = [
        (What::Remove, None),
        (What::Remove, Some(("rename", Errno::XDEV))),
        (What::Forget, None),
        (What::Forget, Some(("rename", Errno::XDEV))),
        (What::Orphan, None),
    ];
    for (what, refused) in cases {
        let model = scene_for(what);
        let reference = model.copy();
        let warrant = reference.warrant(what);
        let (outcome, calls) = faults::run_where(refused, None, || reference.execute(warrant));
        assert!(matches!(outcome.unwrap().result, Ending::Removed | Ending::Forgotten));
        // Every kill; of the errors each of them where there is most to go wrong.
        let errors = [Errno::IO, Errno::NOSPC, Errno::ACCESS].map(Fault::Error);
        let errors = if (what, refused) == (What::Remove, None) { errors.as_slice() } else { &errors[1..2] };
        for at in 1..=calls.len() {
            for fault in [Fault::Kill].iter().chain(errors).copied() {
                let when = format!("{what:?} {refused:?} {fault:?} at {at} ({})", calls[at - 1]);
                one_fault(&model, what, refused, (at, fault), &when);
            }
        }
    }
}

fn one_fault(
    model: &Scene,
    what: What,
    refused: Option<(&'static str, Errno)>,
    fault: (usize, Fault),
    when: &str,
) {
    let scene = model.copy();
    let (before, whole) = (scene.neighbours(), contents(&scene.checkout()));
    let warrant = scene.warrant(what);
    let (outcome, _) = faults::run_where(refused, Some(fault), || scene.try_execute(warrant, &HOOKS));
    let outcome = outcome.and_then(Result::ok);
    // On a full disk what needs no anchor goes on without a record.
    let full = what == What::Orphan && matches!(fault.1, Fault::Error(Errno::NOSPC));
    assert_nothing_lost(&scene, what, &whole, full, when);
    assert_same(&scene.neighbours(), &before, when);
    if let Some(outcome) = &outcome {
        assert!(
            outcome.note.is_some()
                || outcome.result == Ending::Removed
                || outcome.result == Ending::Forgotten,
            "{when}: {outcome:?}"
        );
    }

    let (resumed, _) = faults::run_where(refused, None, || scene.resume());
    for outcome in resumed.unwrap() {
        assert_ne!(outcome.result, Ending::Failed, "{when}: {outcome:?}");
    }
    assert_eq!(scene.journals(), 0, "{when}");
    let there = if what == What::Forget { scene.entry().exists() } else { scene.checkout().exists() };
    if there {
        assert_same(&contents(&scene.checkout()), &whole, when);
        let warrant = scene.warrant(what);
        let (outcome, _) = faults::run_where(refused, None, || scene.execute(warrant));
        let outcome = outcome.unwrap();
        assert!(matches!(outcome.result, Ending::Removed | Ending::Forgotten), "{when}: {outcome:?}");
    }
    assert!(!scene.checkout().exists() && !scene.entry().exists(), "{when}");
    assert_same(&scene.neighbours(), &before, when);
    scene.assert_tidy(when);
    let branch_kept = matches!(&outcome, Some(Outcome { branch: BranchOutcome::Kept { .. }, result, .. })
        if matches!(result, Ending::Removed | Ending::Forgotten));
    assert!(branch_kept || what == What::Orphan || !scene.has_branch(), "{when}");
    if what != What::Orphan {
        assert!(scene.has_anchor(), "{when}: the anchor is lost");
    }
    let complete = scene.records().iter().any(|r| r.completed.is_some());
    assert!(complete || full, "{when}: no complete record");
}

//! What changed between judging and acting is skipped, put back, and reported.

use super::*;
use crate::judge::reason::Code;
use bstr::ByteSlice;

/// Changes something after the warrant was minted; nothing may go, and everything is as the change left it.
fn skipped(what: What, change: impl FnOnce(&Scene), why: &str, code: Option<Code>) {
    let scene = scene_for(what);
    let warrant = scene.warrant(what);
    change(&scene);
    let before = everything(&scene);
    let outcome = scene.execute(warrant);
    assert_eq!(outcome.result, Ending::Skipped, "{why}: {outcome:?}");
    let note = outcome.note.unwrap();
    assert!(note.contains(why), "{note:?} is not {why:?}");
    assert_eq!(outcome.reason.map(|r| r.code), code, "{why}");
    assert!(outcome.retry.is_none() && outcome.observed.is_none(), "{why}");
    assert_eq!(
        kept_because(&outcome.branch),
        (what != What::Orphan).then_some("its worktree stays"),
        "{why}"
    );
    assert_same(&everything(&scene), &before, why);
    assert_eq!((scene.journals(), scene.records().len()), (0, 0), "{why}");
    scene.assert_tidy(why);
}

/// Why the branch was kept; `None` where there is none.
fn kept_because(branch: &BranchOutcome) -> Option<&str> {
    match branch {
        BranchOutcome::Kept { why, .. } => Some(why),
        BranchOutcome::None => None,
        BranchOutcome::Deleted { .. } => panic!("it is deleted"),
    }
}

/// All but what a run leaves of itself: the lock, and empty directories of ours.
fn everything(scene: &Scene) -> Vec<(PathBuf, String)> {
    let mut all = listing(&scene.clone.root);
    all.retain(|path, _| {
        let path = path.strip_prefix(&scene.clone.root).unwrap();
        !["state", "app/.git/treesweep", "app/.git/refs/treesweep"].iter().any(|o| path.starts_with(o))
    });
    all.into_iter().collect()
}

#[test]
fn a_checkout_that_was_written_to_stays() {
    let write = |name: &'static str| {
        move |scene: &Scene| std::fs::write(scene.checkout().join(name), "new work\n").unwrap()
    };
    for what in [What::Remove, What::Orphan] {
        skipped(what, write("new"), "something in it was written", None);
        skipped(what, write("file"), "something in it was written", None);
        skipped(what, write("target/debug/big"), "something in it was written", None);
    }
}

#[test]
fn an_entry_that_was_written_to_stays() {
    for what in [What::Remove, What::Forget] {
        for file in ["HEAD", "locked", "index.lock", "gitdir", "refs/worktree/x"] {
            let write = |scene: &Scene| {
                let path = scene.entry().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "ref: refs/heads/other\n").unwrap();
            };
            skipped(what, write, "registration x changed since it was judged", None);
        }
        let replace = |scene: &Scene| {
            std::fs::rename(scene.entry(), scene.clone.path.join(".git/aside")).unwrap();
            std::fs::create_dir(scene.entry()).unwrap();
        };
        skipped(what, replace, "another registration is called x", None);
    }
}

#[test]
fn another_object_stays() {
    let moved = |scene: &Scene| scene.clone.root.join("moved");
    let take = move |scene: &Scene| std::fs::rename(scene.checkout(), moved(scene)).unwrap();
    skipped(What::Remove, take, "it is gone", None);
    let link = move |scene: &Scene| {
        take(scene);
        std::os::unix::fs::symlink(moved(scene), scene.checkout()).unwrap();
    };
    skipped(What::Remove, link, "no directory any more", None);
    let other = move |scene: &Scene| {
        take(scene);
        std::fs::create_dir(scene.checkout()).unwrap();
    };
    skipped(What::Remove, other, "another directory has its name", None);
    let parent = |scene: &Scene| {
        std::fs::rename(scene.clone.root.join("w"), scene.clone.root.join("v")).unwrap();
        std::os::unix::fs::symlink("v", scene.clone.root.join("w")).unwrap();
    };
    skipped(What::Remove, parent, "is a symlink", Some(Code::PathEscapes));
}

/// The rename moves whatever has the name at that moment: what is not the judged directory goes back.
#[test]
fn what_is_swapped_in_before_the_rename_goes_back() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let swap = |_: &LocalPath| {
        std::fs::rename(scene.checkout(), scene.clone.root.join("moved")).unwrap();
        std::fs::create_dir(scene.checkout()).unwrap();
        std::fs::write(scene.checkout().join("theirs"), "").unwrap();
        Ok(())
    };
    let outcome = scene.execute_with(warrant, &Hooks { world_still_allows: &swap, ..HOOKS });
    assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
    assert!(scene.checkout().join("theirs").exists() && scene.clone.root.join("moved/file").exists());
    scene.assert_tidy("swap");
}

/// The name was taken while the checkout was aside: it stays there, is reported, and the next run puts it back when the
/// name is free.
#[test]
fn what_can_not_go_back_is_reported_and_goes_back_later() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    std::fs::write(scene.checkout().join("late"), "work").unwrap();
    let whole = contents(&scene.checkout());
    let occupy = |dir: &Dir| {
        std::fs::create_dir_all(scene.checkout()).unwrap();
        fingerprint(dir)
    };
    let outcome = scene.execute_with(warrant, &Hooks { fingerprint: &occupy, ..HOOKS });
    assert_eq!(outcome.result, Ending::Failed);
    assert_eq!(kept_because(&outcome.branch), Some("its worktree is not verified to be gone"));
    let (note, observed) = (outcome.note.unwrap(), outcome.observed.unwrap());
    assert!(note.contains("could not be put back") && note.contains(".treesweep-trash"), "{note}");
    assert!(observed.contains("trash") && observed.contains("refs/heads/wt/x is at"), "{observed}");
    assert!(outcome.retry.unwrap().starts_with("treesweep prune /"));
    assert!(scene.has_branch() && scene.entry().exists());

    let outcome = scene.resume().pop().unwrap();
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Interrupted));
    std::fs::remove_dir(scene.checkout()).unwrap();
    assert_eq!(scene.resume().pop().unwrap().result, Ending::Skipped);
    assert_same(&contents(&scene.checkout()), &whole, "back");
    assert!(scene.resume().is_empty());
    scene.assert_tidy("back");
}

#[test]
fn the_world_may_object_and_a_path_may_reappear() {
    let scene = Scene::new();
    let objects = |_: &LocalPath| Err(Reason::new(Code::LivenessUnknown, "a container started"));
    let outcome =
        scene.execute_with(scene.warrant(What::Remove), &Hooks { world_still_allows: &objects, ..HOOKS });
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::LivenessUnknown));
    scene.assert_tidy("objection");

    let scene = scene_for(What::Forget);
    let warrant = scene.warrant(What::Forget);
    std::fs::create_dir(scene.checkout()).unwrap();
    let outcome = scene.execute(warrant);
    assert_eq!(outcome.result, Ending::Skipped);
    assert!(scene.entry().exists() && scene.has_branch());
}

#[test]
fn what_is_protected_stays_whatever_a_warrant_says() {
    let scene = Scene::new();
    let stop = Stop::never();
    let protected = Protected::new([local(&scene.checkout().join("target/debug"))]).unwrap();
    let jobs = NonZeroUsize::MIN;
    let sweeper = Sweeper { state: &scene.state, stop: &stop, jobs, progress: &(), protected: &protected };
    let mut clone = sweeper.enter_unconfined(scene.clone.common()).unwrap();
    let outcome = sweeper.execute(&mut clone, scene.warrant(What::Remove), &HOOKS);
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Protected));
    assert!(scene.checkout().exists());
}

#[test]
fn a_warrant_of_another_clone_does_nothing() {
    let (scene, other) = (Scene::new(), Scene::new());
    let warrant = other.warrant(What::Remove);
    let outcome = scene.execute(warrant);
    assert_eq!(outcome.result, Ending::Failed);
    assert!(outcome.note.unwrap().contains("another clone"));
    assert!(other.checkout().join("file").exists() && other.entry().exists());
}

/// A `.git` file in `objects` could make that a checkout.
#[test]
fn nothing_in_the_common_directory_is_a_checkout() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Orphan);
    let objects = scene.clone.path.join(".git/objects");
    let dir = Dir::open(&local(&objects)).unwrap();
    let checkout = Checkout {
        path: local(&objects),
        seen: dir.own_meta().unwrap(),
        fingerprint: fingerprint(&dir).unwrap(),
    };
    let act = Act::RemoveOrphan { checkout, name: "x".into() };
    let warrant =
        Warrant::for_test(warrant.scope().clone(), act, BranchFate::None, Authority::Owned, Vec::new());
    let outcome = scene.execute(warrant);
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Protected));
    scene.clone.git(&["fsck", "--strict"]);
}

/// `git worktree prune` in a container takes the entry while we check: what only its log named stays anchored.
#[test]
fn anchors_stay_when_the_entry_is_taken_by_another() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let prune = |dir: &Dir| {
        let found = fingerprint(dir);
        if scene.entry().exists() {
            std::fs::remove_dir_all(scene.entry()).unwrap();
        }
        found
    };
    let outcome = scene.execute_with(warrant, &Hooks { fingerprint: &prune, ..HOOKS });
    assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
    assert!(scene.checkout().join("file").exists() && scene.has_anchor() && scene.records().len() == 1);
    assert_eq!(scene.journals(), 0);
}

/// The path is made anew after the last deletion and before the last look.
#[test]
fn a_path_that_reappears_at_the_end_keeps_the_branch_and_is_reported() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let late = |dir: &Dir| {
        if dir.path().as_bstr().contains_str("treesweep/trash") {
            std::fs::create_dir(scene.checkout()).unwrap();
        }
        fingerprint(dir)
    };
    let outcome = scene.execute_with(warrant, &Hooks { fingerprint: &late, ..HOOKS });
    assert_eq!(outcome.result, Ending::Failed);
    let (note, observed) = (outcome.note.unwrap(), outcome.observed.unwrap());
    assert!(note.contains("still there: path") && observed.contains("is a directory"), "{note}; {observed}");
    assert!(matches!(outcome.branch, BranchOutcome::Kept { .. }) && scene.has_branch());
    std::fs::remove_dir(scene.checkout()).unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert!(outcome.result == Ending::Removed && !scene.has_branch());
}

#[test]
fn a_person_keeps_the_branch() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let person = Authority::Person { overridden: vec![Reason::new(Code::Dirty, "1 file")] };
    let warrant = Warrant::for_test(
        warrant.scope().clone(),
        warrant.act().clone(),
        warrant.branch().clone(),
        person,
        warrant.anchors().to_vec(),
    );
    let outcome = scene.execute(warrant);
    assert_eq!(outcome.result, Ending::Removed);
    assert!(matches!(outcome.branch, BranchOutcome::Kept { why, .. } if why.contains("not owned")));
    assert!(scene.has_branch());
}

/// Somebody puts another directory in the place of what was moved aside and checked: it is not what goes.
#[test]
fn another_directory_under_the_trash_name_stays() {
    let model = Scene::new();
    let (_, calls) = crate::sweep::act::faults::run(None, || {
        let scene = model.copy();
        scene.execute(scene.warrant(What::Remove))
    });
    let moved = calls.iter().position(|call| *call == "rename").unwrap() + 1;
    let first = calls.iter().skip(moved).position(|call| *call == "unlink").unwrap() + moved + 1;
    for at in moved + 1..first {
        let scene = model.copy();
        let (warrant, holder) = (scene.warrant(What::Remove), scene.clone.root.join("w"));
        let swap = move |call| {
            if call == at {
                let names = std::fs::read_dir(&holder).unwrap().map(|entry| entry.unwrap().path());
                let trash =
                    names.into_iter().find(|p| p.to_string_lossy().contains(".treesweep-trash-")).unwrap();
                std::fs::rename(&trash, holder.join("moved")).unwrap();
                std::fs::create_dir(&trash).unwrap();
                std::fs::write(trash.join("theirs"), "").unwrap();
            }
        };
        let outcome = crate::sweep::act::faults::run_beside(swap, || scene.execute(warrant));
        assert_ne!(outcome.result, Ending::Removed, "{at}: {outcome:?}");
        let names = listing(&scene.clone.root.join("w"));
        assert!(names.keys().any(|path| path.ends_with("theirs")), "{at} ({})", calls[at - 1]);
        assert!(scene.entry().exists() && scene.has_branch(), "{at}");
    }
}

/// The directory of a stale registration comes back while that is deleted: it is not called forgotten.
#[test]
fn a_path_that_appears_while_its_registration_goes_is_no_success() {
    let model = scene_for(What::Forget);
    let (_, calls) = crate::sweep::act::faults::run(None, || {
        let scene = model.copy();
        scene.execute(scene.warrant(What::Forget))
    });
    let deleting = calls.iter().position(|call| *call == "rmdir").unwrap() + 1;
    let scene = model.copy();
    let (warrant, checkout) = (scene.warrant(What::Forget), scene.checkout());
    let appear = move |call| {
        if call == deleting {
            std::fs::create_dir(&checkout).unwrap();
        }
    };
    let outcome = crate::sweep::act::faults::run_beside(appear, || scene.execute(warrant));
    assert_eq!(outcome.result, Ending::Failed, "{outcome:?}");
    assert!(outcome.note.unwrap().contains("still there") && scene.has_branch());
}

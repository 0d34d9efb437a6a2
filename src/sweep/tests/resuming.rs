//! What a run that finds an interrupted removal finishes, and what it leaves alone.

use super::*;
use crate::judge::reason::Code;
use crate::sweep::act::faults::{Fault, run, run_where};
use crate::sweep::journal::Step;
use rustix::io::Errno;

/// A scene whose removal was killed at the first call `call` after the journal reached `step`.
fn killed(what: What, step: Step, in_place: bool) -> Scene {
    let model = scene_for(what);
    let refused = in_place.then_some(("rename", Errno::XDEV));
    for at in 1.. {
        let scene = model.copy();
        let warrant = scene.warrant(what);
        let (outcome, _) = run_where(refused, Some((at, Fault::Kill)), || scene.execute(warrant));
        assert!(outcome.is_none(), "{step:?} was never seen");
        if scene.pending().first().is_some_and(|p| p.step == step) && scene.has_begun(step) {
            return scene;
        }
    }
    unreachable!()
}

/// A scene whose removal was killed where `seen` holds of what is left.
fn killed_where(seen: impl Fn(&Scene, &resume::Interrupted) -> bool) -> Scene {
    let model = Scene::new();
    for at in 1.. {
        let scene = model.copy();
        let warrant = scene.warrant(What::Remove);
        let (outcome, _) = run(Some((at, Fault::Kill)), || scene.execute(warrant));
        assert!(outcome.is_none(), "it was never seen there");
        if scene.pending().pop().is_some_and(|pending| seen(&scene, &pending)) {
            return scene;
        }
    }
    unreachable!()
}

impl Scene {
    /// Where the entry is once it was moved.
    fn trashed(&self, pending: &resume::Interrupted) -> PathBuf {
        self.clone.path.join(".git/treesweep/trash").join(pending.record.as_str())
    }

    fn pending(&self) -> Vec<resume::Interrupted> {
        let common = self.clone.common().own_meta().unwrap().id;
        resume::pending(&self.state, common).unwrap().0
    }

    fn trash(&self) -> PathBuf {
        self.pending()[0].trash.as_ref().unwrap().as_path().to_owned()
    }

    /// Something of what `step` allows is gone.
    fn has_begun(&self, step: Step) -> bool {
        match step {
            Step::Planned => self.trash().exists(),
            Step::Aside => !self.trash().join("file").exists(),
            Step::InPlace => !self.checkout().join("file").exists(),
            Step::Forgetting => !self.checkout().exists(),
        }
    }
}

#[test]
fn pending_says_what_is_to_be_finished() {
    let scene = killed(What::Remove, Step::Aside, false);
    let pending = scene.pending();
    let [one] = pending.as_slice() else { panic!("{pending:?}") };
    assert_eq!(one.name, "x");
    assert_eq!(one.path, Some(local(&scene.checkout())));
    assert_eq!(one.branch.as_ref().unwrap(), "refs/heads/wt/x");
    let names = Dir::open(&local(&scene.clone.root.join("w"))).unwrap().names().unwrap();
    let found = trash::find_trash(names.iter().map(Vec::as_slice));
    let [(name, said)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(scene.clone.root.join("w").join(name), scene.trash());
    assert_eq!((&said.record, said.entry.as_ref().unwrap().as_bstr()), (&one.record, "x".into()));
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Removed);
    assert!(matches!(outcome.branch, BranchOutcome::Deleted { .. }));
    assert!(outcome.note.unwrap().contains("earlier run"));
    scene.assert_tidy("resumed");
}

/// Whatever bears the trash's name and is not the directory of the journal is not ours.
#[test]
fn another_object_under_the_trash_name_stays() {
    let scene = killed(What::Remove, Step::Aside, false);
    let trash = scene.trash();
    std::fs::rename(&trash, scene.clone.root.join("moved")).unwrap();
    std::fs::create_dir(&trash).unwrap();
    std::fs::write(trash.join("theirs"), "").unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
    assert!(trash.join("theirs").exists() && scene.entry().exists() && scene.has_branch());
    std::fs::remove_dir_all(&trash).unwrap();
    std::os::unix::fs::symlink(scene.clone.root.join("w/y"), &trash).unwrap();
    scene.resume();
    assert!(scene.clone.root.join("w/y/file").exists());
}

#[test]
fn trash_that_no_journal_knows_stays() {
    let scene = killed(What::Remove, Step::Aside, false);
    let trash = scene.trash();
    std::fs::remove_dir_all(scene.clone.root.join("state")).unwrap();
    let scene = Scene::of(scene.clone, scene.tip, scene.lost);
    assert!(scene.resume().is_empty());
    assert!(trash.exists() && scene.entry().exists());
}

/// Somebody made the half removed directory whole again and worked in it.
#[test]
fn a_checkout_in_place_that_is_used_again_stays() {
    for (call, file) in [("new", "file"), ("deep", "target/debug/new")] {
        let scene = killed(What::Remove, Step::InPlace, true);
        let file = scene.checkout().join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "new work").unwrap();
        let (outcome, _) = run_where(Some(("rename", Errno::XDEV)), None, || scene.resume());
        let outcome = outcome.unwrap().pop().unwrap();
        assert_eq!(
            (outcome.result, outcome.reason.unwrap().code),
            (Ending::Skipped, Code::Interrupted),
            "{call}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"new work");
        assert!(scene.entry().exists() && scene.has_branch());
        std::fs::remove_file(&file).unwrap();
        let (outcome, _) = run_where(Some(("rename", Errno::XDEV)), None, || scene.resume());
        assert_eq!(outcome.unwrap().pop().unwrap().result, Ending::Removed, "{call}");
        assert!(!scene.checkout().exists());
    }
}

/// Who was in the checkout when it was moved aside still is, and may have gone on writing.
#[test]
fn what_was_written_into_the_trash_since_stays() {
    for levels in [0, 3, 2200] {
        let scene = killed(What::Remove, Step::Aside, false);
        let file = written_below(&scene.trash(), levels);
        let outcome = scene.resume().pop().unwrap();
        let code = outcome.reason.clone().unwrap().code;
        assert_eq!((outcome.result, code), (Ending::Skipped, Code::Interrupted), "{levels}: {outcome:?}");
        assert!(outcome.note.unwrap().contains("new") && file.exists());
        assert!(scene.entry().exists() && scene.has_branch() && scene.journals() == 1);
        assert!(std::process::Command::new("rm").arg("-r").arg(&file).status().unwrap().success());
        assert_eq!(scene.resume().pop().unwrap().result, Ending::Removed, "{levels}");
        scene.assert_tidy("resumed");
    }
}

/// A file `new`, so many directories below `top` that no call may take its path; the first of its path is given.
fn written_below(top: &Path, levels: usize) -> PathBuf {
    use rustix::fs::{Mode, OFlags};
    let mut dir = std::fs::File::open(top).unwrap();
    for _ in 0..levels {
        rustix::fs::mkdirat(&dir, "d", Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, "d", OFlags::DIRECTORY, Mode::empty()).unwrap().into();
    }
    rustix::fs::openat(&dir, "new", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    top.join(if levels == 0 { "new" } else { "d" })
}

/// To delete one name of a file changes it under its other names.
#[test]
fn files_with_several_names_are_no_sign_of_use() {
    let model = Scene::new();
    let target = model.checkout().join("target");
    let names = ["target/a", "target/b", "target/debug/big"];
    for name in &names[..2] {
        std::fs::hard_link(target.join("debug/big"), model.checkout().join(name)).unwrap();
    }
    let half_deleted = |at| {
        let scene = model.copy();
        let (outcome, _) = run(Some((at, Fault::Kill)), || scene.execute(scene.warrant(What::Remove)));
        assert!(outcome.is_none(), "it was never seen half deleted");
        let aside = scene.pending().first().is_some_and(|p| p.step == Step::Aside);
        let left = if aside { names.iter().filter(|n| scene.trash().join(n).exists()).count() } else { 0 };
        (1..names.len()).contains(&left).then_some(scene)
    };
    let scene = (1..).find_map(half_deleted).unwrap();
    assert_eq!(scene.resume().pop().unwrap().result, Ending::Removed);
    scene.assert_tidy("resumed");
}

/// Somebody found it under its trash name, and worked on there, or locked it.
#[test]
fn a_registration_that_was_written_to_since_keeps_what_is_aside() {
    for file in ["index", "locked"] {
        let scene = killed(What::Remove, Step::Aside, false);
        let trash = scene.trash();
        std::fs::write(scene.entry().join(file), "theirs").unwrap();
        let before = contents(&trash);
        let outcome = scene.resume().pop().unwrap();
        assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
        assert!(outcome.note.unwrap().contains(trash.file_name().unwrap().to_str().unwrap()));
        assert_eq!(contents(&trash), before);
        assert!(scene.entry().join(file).exists() && scene.has_branch() && scene.has_anchor());
        assert_eq!((scene.journals(), scene.records().len()), (0, 1));
    }
}

/// The entry was deleted half in place, and another one got its name, and its inode.
#[test]
fn an_entry_that_is_used_again_stays() {
    let scene = killed(What::Forget, Step::Forgetting, true);
    std::fs::write(scene.entry().join("HEAD"), "ref: refs/heads/wt/x\n").unwrap();
    let (outcome, _) = run(None, || scene.resume());
    let outcome = outcome.unwrap().pop().unwrap();
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Interrupted));
    assert!(scene.entry().join("HEAD").exists() && scene.has_branch());
}

/// The run ended between the move of the entry and the look at it there, and git has written into it since.
#[test]
fn an_entry_that_was_moved_and_not_checked_goes_back_if_it_changed() {
    let scene = killed_where(|scene, p| p.step == Step::Aside && scene.trashed(p).exists());
    let trashed = scene.trashed(&scene.pending()[0]);
    std::fs::write(trashed.join("MERGE_HEAD"), format!("{}\n", scene.tip)).unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Failed, "{outcome:?}");
    assert!(scene.entry().join("MERGE_HEAD").exists() && scene.has_branch());
}

/// `git gc` expires the reflog of an entry whose checkout is gone already: it is one without a directory then.
#[test]
fn an_entry_that_was_written_to_after_its_checkout_went_is_judged_anew() {
    let scene = killed_where(|scene, p| {
        let gone = !scene.checkout().exists() && !scene.trash().exists();
        p.step == Step::Aside && gone && scene.entry().exists()
    });
    let log = scene.entry().join("logs/HEAD");
    std::fs::write(&log, std::fs::read_to_string(&log).unwrap()).unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
    assert!(outcome.note.unwrap().contains("judged anew"));
    assert!(scene.entry().exists() && scene.has_branch() && scene.has_anchor());
    assert_eq!(scene.journals(), 0, "what is left is an entry like any other");
    let outcome = scene.execute(scene.warrant(What::Forget));
    assert_eq!(outcome.result, Ending::Forgotten, "{outcome:?}");
    assert!(!scene.entry().exists());
}

/// Others took path and name meanwhile: theirs stays, ours is done, and the branch is left to them.
#[test]
fn names_that_are_taken_again_end_it() {
    for (path, name) in [(true, true), (true, false), (false, true)] {
        let scene = killed(What::Remove, Step::Forgetting, false);
        if path {
            std::fs::create_dir(scene.checkout()).unwrap();
        }
        if name {
            std::fs::create_dir_all(scene.entry()).unwrap();
            std::fs::write(scene.entry().join("HEAD"), "ref: refs/heads/main\n").unwrap();
        }
        let outcome = scene.resume().pop().unwrap();
        assert_eq!(outcome.result, Ending::Removed, "{outcome:?}");
        assert!(matches!(outcome.branch, BranchOutcome::Kept { why, .. } if why.contains("in use again")));
        assert!(outcome.note.unwrap().contains("in use again") && scene.has_branch());
        assert_eq!((scene.checkout().exists(), scene.entry().join("HEAD").exists()), (path, name));
        assert!(scene.resume().is_empty());
    }
}

#[test]
fn a_path_that_reappears_before_its_entry_went_keeps_the_entry() {
    let scene = killed(What::Remove, Step::Aside, false);
    std::fs::create_dir(scene.checkout()).unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Failed);
    assert!(outcome.note.unwrap().contains("appeared again") && outcome.observed.is_some());
    assert!(scene.entry().exists() && scene.has_branch());
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Skipped);
    assert!(scene.entry().exists() && scene.journals() == 0);
}

/// The disk with the worktrees is not there: nothing was proven.
#[test]
fn a_missing_parent_proves_nothing_when_the_clone_moved() {
    let scene = killed(What::Remove, Step::Aside, false);
    let moved = scene.clone.root.join("elsewhere");
    std::fs::rename(scene.clone.root.join("w"), &moved).unwrap();
    std::fs::rename(&scene.clone.path, scene.clone.root.join("app2")).unwrap();
    let Scene { mut clone, tip, lost, .. } = scene;
    clone.path = clone.root.join("app2");
    let scene = Scene::of(clone, tip, lost);
    let outcome = scene.resume().pop().unwrap();
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Interrupted));
    assert!(scene.entry().exists() && scene.has_branch());
}

impl Scene {
    /// The only journal, changed by `change`.
    fn change_journal(&self, change: impl FnOnce(&mut serde_json::Value)) {
        let common = self.clone.common().own_meta().unwrap().id;
        let dir = self.clone.root.join(format!("state/treesweep/{}-{}/journal", common.dev, common.ino));
        let path = std::fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
        let mut journal = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        change(&mut journal);
        std::fs::write(&path, journal.to_string()).unwrap();
    }
}

/// The same where the clone is in its place: what is left of the way says on which disk the checkout would be.
#[test]
fn a_missing_parent_is_gone_only_if_its_disk_is_there() {
    let scene = killed(What::Remove, Step::Aside, false);
    std::fs::rename(scene.clone.root.join("w"), scene.clone.root.join("elsewhere")).unwrap();
    let move_disk = |by: i64| {
        scene.change_journal(|journal| {
            let dev = &mut journal["checkout"]["id"]["dev"];
            *dev = (dev.as_i64().unwrap() + by).into();
        });
    };
    move_disk(1);
    let outcome = scene.resume().pop().unwrap();
    assert_eq!((outcome.result, outcome.reason.unwrap().code), (Ending::Skipped, Code::Interrupted));
    assert!(scene.entry().exists() && scene.has_branch());
    move_disk(-1);
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Removed, "{outcome:?}");
    assert!(!scene.entry().exists() && !scene.has_branch());
}

/// What a run left aside is finished if it is gone, and somebody else's if it is elsewhere.
#[test]
fn trash_that_was_taken_away_is_finished_or_given_up() {
    let scene = killed(What::Remove, Step::Aside, false);
    std::fs::remove_dir_all(scene.trash()).unwrap();
    let outcome = scene.resume().pop().unwrap();
    assert_eq!(outcome.result, Ending::Removed, "{outcome:?}");
    assert!(!scene.entry().exists() && !scene.has_branch());
    for (back, why) in [(true, "in its place again"), (false, "by another object")] {
        let scene = killed(What::Remove, Step::Aside, false);
        if back {
            std::fs::rename(scene.trash(), scene.checkout()).unwrap();
        } else {
            std::fs::rename(scene.trash(), scene.clone.root.join("moved")).unwrap();
            std::fs::create_dir(scene.checkout()).unwrap();
        }
        let outcome = scene.resume().pop().unwrap();
        assert_eq!(outcome.result, Ending::Skipped, "{outcome:?}");
        assert!(outcome.note.unwrap().contains(why));
        assert!(scene.checkout().exists() && scene.entry().exists() && scene.has_branch());
    }
}

#[test]
fn a_request_to_stop_is_finished_by_the_next_run() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let (stop, protected) = (Stop::never(), Protected::default());
    let jobs = NonZeroUsize::MIN;
    let sweeper = Sweeper { state: &scene.state, stop: &stop, jobs, progress: &(), protected: &protected };
    let mut clone = sweeper.enter_unconfined(scene.clone.common()).unwrap();
    let calls = std::cell::Cell::new(0);
    // Asked for while the entry is checked, directly before the first deletion.
    let asked = |dir: &Dir| {
        calls.set(calls.get() + 1);
        if calls.get() == 2 {
            stop.request();
        }
        fingerprint(dir)
    };
    let outcome = sweeper.execute(&mut clone, warrant, &Hooks { fingerprint: &asked, ..HOOKS });
    assert_eq!(outcome.result, Ending::Deferred, "{outcome:?}");
    assert!(outcome.retry.is_some() && scene.has_branch() && scene.journals() == 1);
    drop(clone);
    assert_eq!(scene.resume().pop().unwrap().result, Ending::Removed);
    scene.assert_tidy("stopped");
}

#[test]
fn a_damaged_journal_is_named_and_stops_nothing() {
    let scene = killed(What::Remove, Step::Aside, false);
    let trash = scene.trash();
    let common = scene.clone.common().own_meta().unwrap().id;
    let journal = scene.clone.root.join(format!("state/treesweep/{}-{}/journal", common.dev, common.ino));
    let name = std::fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    std::fs::write(&name, "{").unwrap();
    let (pending, damaged) = resume::pending(&scene.state, common).unwrap();
    assert!(pending.is_empty() && damaged.len() == 1, "{damaged:?}");
    assert!(scene.resume().is_empty());
    assert!(trash.exists() && name.exists());
}

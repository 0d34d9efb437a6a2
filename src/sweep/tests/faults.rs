//! What a kill or an error at any call leaves, and that the next run finishes it.

use std::path::PathBuf;

use rustix::io::Errno;

use super::*;
use crate::sweep::act::faults::{Fault, run, run_where};

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

/// The removal alone, with an error at one of its calls; the clone was entered before. The calls come too.
pub(super) fn removed(
    scene: &Scene,
    warrant: Warrant,
    fault: Option<(usize, Errno)>,
) -> (Outcome, Vec<&'static str>) {
    let fault = fault.map(|(at, errno)| (at, Fault::Error(errno)));
    let remove = |sweeper: &Sweeper<'_>, clone: &mut LockedClone| {
        run(fault, || sweeper.execute(clone, warrant, &HOOKS))
    };
    let (outcome, calls) = scene.sweep(remove).unwrap();
    (outcome.expect("no kill was asked for"), calls)
}

/// A power cut is a kill that also forgets what was not waited for.
#[test]
fn what_relies_on_the_disk_waits_for_it() {
    for what in [What::Remove, What::Forget, What::Orphan] {
        let scene = scene_for(what);
        let (_, mut calls) = removed(&scene, scene.warrant(what), None);
        calls.retain(|call| *call != "chown");
        // Its journal before all else, and the journal's step before the first deletion.
        assert!(calls.starts_with(&["mkdir", "create", "write", "fsync", "replace", "fsync"]), "{calls:?}");
        let deletion = calls.iter().position(|call| *call == "unlink").unwrap();
        assert!(calls[..deletion].ends_with(&["rename", "replace", "fsync"]), "{calls:?}");
        // The other references before they replace the file that holds them.
        let packed = ["create", "write", "chmod", "fsync", "replace", "fsync"];
        let replaced = calls.windows(packed.len()).any(|calls| calls == packed);
        assert_eq!(replaced, what != What::Orphan, "{calls:?}");
        // The complete record before its copy, and before the journal goes.
        let record = ["create", "write", "fsync", "replace", "fsync"];
        let end = [&record[..], &["create", "write", "replace"], &["unlink"; 4]].concat();
        assert!(calls.ends_with(&end), "{calls:?}");
    }
}

/// At every changing call a kill, and each of `errors`, then a run without.
fn matrix(what: What, refused: Option<(&'static str, Errno)>, errors: &[Errno]) {
    let model = scene_for(what);
    let reference = model.copy();
    let warrant = reference.warrant(what);
    let (outcome, calls) = run_where(refused, None, || reference.execute(warrant));
    assert!(matches!(outcome.unwrap().result, Ending::Removed | Ending::Forgotten));
    for at in 1..=calls.len() {
        for fault in [Fault::Kill].into_iter().chain(errors.iter().copied().map(Fault::Error)) {
            let when = format!("{what:?} {refused:?} {fault:?} at {at} ({})", calls[at - 1]);
            one_fault(&model, what, refused, (at, fault), &when);
        }
    }
}

/// Without room for its state a clone can be swept, as that is what makes room; without its state for another reason not.
#[test]
fn only_a_full_disk_is_entered_without_state() {
    for (errno, enters) in [(Errno::NOSPC, true), (Errno::IO, false)] {
        let scene = Scene::new();
        std::fs::create_dir(scene.clone.path.join(".git/treesweep")).unwrap();
        let enter = || scene.sweep(|_, clone| clone.state().is_none());
        let (result, _) = run_where(Some(("mkdir", errno)), None, enter);
        match result.unwrap() {
            Ok(without) => assert!(enters && without, "{errno}"),
            Err(error) => {
                assert!(!enters && matches!(error, EnterError::State(_)), "{errno}: {error}");
                assert!(!error.is_environment(), "{errno}: another exit code");
            }
        }
    }
    let unlockable = LockError::Unsupported { clone: local(Path::new("/c")), source: Errno::NOLCK.into() };
    assert!(EnterError::from(unlockable).is_environment());
}

/// As on an overlay, whose lower layer is not renamed.
const NO_RENAME: Option<(&str, Errno)> = Some(("rename", Errno::XDEV));

#[test]
fn any_call_of_a_removal_may_be_the_last() {
    matrix(What::Remove, None, &[Errno::IO, Errno::NOSPC, Errno::ACCESS]);
}

#[test]
fn any_call_of_a_removal_in_place_may_be_the_last() {
    matrix(What::Remove, NO_RENAME, &[Errno::NOSPC]);
}

#[test]
fn any_call_of_forgetting_may_be_the_last() {
    matrix(What::Forget, None, &[Errno::NOSPC]);
}

#[test]
fn any_call_of_forgetting_in_place_may_be_the_last() {
    matrix(What::Forget, NO_RENAME, &[Errno::NOSPC]);
}

#[test]
fn any_call_of_an_orphans_removal_may_be_the_last() {
    matrix(What::Orphan, None, &[Errno::NOSPC]);
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
    let (outcome, _) = run_where(refused, Some(fault), || scene.try_execute(warrant, &HOOKS));
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

    let (resumed, _) = run_where(refused, None, || scene.resume());
    for outcome in resumed.unwrap() {
        assert_ne!(outcome.result, Ending::Failed, "{when}: {outcome:?}");
    }
    assert_eq!(scene.journals(), 0, "{when}");
    let there = if what == What::Forget { scene.entry().exists() } else { scene.checkout().exists() };
    if there {
        assert_same(&contents(&scene.checkout()), &whole, when);
        let warrant = scene.warrant(what);
        let (outcome, _) = run_where(refused, None, || scene.execute(warrant));
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

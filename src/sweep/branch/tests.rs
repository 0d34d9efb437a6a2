use std::os::unix::fs::symlink;

use super::*;
use crate::sweep::act::faults::{self, Fault};
use crate::sweep::testing::{Clone, listing};

const NAME: &str = "refs/heads/wt/x";

fn record() -> RecordId {
    "20250301T101112123Z-0123456789ab".parse().unwrap()
}

/// A clone with the branches `wt/x`, `wt/y` and `other` at a commit that `main` contains.
fn clone() -> Clone {
    let clone = Clone::new();
    for branch in ["wt/x", "wt/y", "other"] {
        clone.git(&["branch", "--create-reflog", branch]);
    }
    clone.git(&["commit", "-q", "--allow-empty", "-m", "landed"]);
    clone.git(&["tag", "-am", "tag", "v1"]);
    clone
}

fn delete_as(clone: &Clone, claim: impl FnOnce(&mut Claim<'_>)) -> BranchOutcome {
    let record = record();
    let mut asked = Claim {
        name: NAME.into(),
        expected: clone.id_of("refs/heads/other"),
        trunk: "refs/heads/main".into(),
        owned: true,
        anchors: &[],
        record: &record,
    };
    claim(&mut asked);
    let outcome = delete(&clone.common(), &asked, &Stop::never());
    outcome.unwrap_or_else(|error| BranchOutcome::kept(asked.name, error.to_string()))
}

fn delete_x(clone: &Clone) -> BranchOutcome {
    delete_as(clone, |_| {})
}

fn deleted(outcome: &BranchOutcome) -> bool {
    matches!(outcome, BranchOutcome::Deleted { .. })
}

/// It stays, for a reason that says `why`, and not a byte of the references changed.
fn assert_kept(clone: &Clone, why: &str, claim: impl FnOnce(&mut Claim<'_>)) {
    let before = refs_of(clone);
    match delete_as(clone, claim) {
        BranchOutcome::Kept { why: said, .. } => assert!(said.contains(why), "{said:?} is not {why:?}"),
        other => panic!("{other:?} instead of {why:?}"),
    }
    assert_eq!(refs_of(clone), before, "{why}");
}

fn refs_of(clone: &Clone) -> Vec<(std::path::PathBuf, String)> {
    let mut all = listing(&clone.path.join(".git"));
    all.retain(|path, _| !path.components().any(|c| c.as_os_str() == "treesweep"));
    all.into_iter().collect()
}

#[test]
fn loose_packed_and_both_go_and_the_rest_stays() {
    for how in ["loose", "packed", "both"] {
        let clone = clone();
        if how != "loose" {
            clone.git(&["pack-refs", "--all"]);
        }
        if how == "both" {
            let (new, old) = (clone.id_of("main"), clone.id_of("wt/x"));
            std::fs::create_dir_all(clone.path.join(".git/refs/heads/wt")).unwrap();
            std::fs::write(clone.path.join(".git").join(NAME), format!("{new}\n")).unwrap();
            assert_ne!(new, old);
        }
        let expected = clone.id_of("wt/x");
        let neighbours = clone.git(&["for-each-ref"]).replace(&format!("{expected} commit\t{NAME}\n"), "");
        let outcome = delete_as(&clone, |claim| claim.expected = expected);
        assert!(deleted(&outcome), "{how}: {outcome:?}");
        assert_eq!(clone.git(&["for-each-ref"]), neighbours, "{how}");
        assert!(!clone.path.join(".git/logs").join(NAME).exists());
        assert!(clone.path.join(".git/logs/refs/heads/wt/y").exists());
        clone.git(&["fsck", "--strict"]);
        clone.git(&["pack-refs", "--all"]);
        clone.git(&["branch", "wt/x/deeper"]);
    }
}

#[test]
fn the_last_one_of_a_directory_leaves_its_name_free() {
    for packed in [false, true] {
        let clone = clone();
        clone.git(&["branch", "-D", "wt/y"]);
        if packed {
            clone.git(&["pack-refs", "--all"]);
        }
        let expected = clone.id_of("wt/x");
        assert!(deleted(&delete_as(&clone, |claim| claim.expected = expected)));
        for left in [".git/refs/heads/wt", ".git/logs/refs/heads/wt"] {
            assert!(!clone.path.join(left).exists(), "{left}");
        }
        clone.git(&["branch", "wt"]);
    }
}

#[test]
fn whatever_is_not_established_keeps_it() {
    let clone = clone();
    assert_kept(&clone, "not owned", |claim| claim.owned = false);
    assert_kept(&clone, "is gone", |claim| claim.trunk = "refs/remotes/origin/main".into());
    assert_kept(&clone, "the trunk", |claim| claim.trunk = NAME.into());
    assert_kept(&clone, "no branch", |claim| claim.name = "refs/tags/v1".into());
    assert_kept(&clone, "valid name", |claim| claim.name = "refs/heads/../heads/wt/x".into());
    let moved = clone.id_of("main");
    assert_kept(&clone, "it is", |claim| claim.expected = moved);

    let unlanded = clone.commit_on("wt/x", "unlanded");
    clone.git(&["branch", "-f", "wt/x", &unlanded.to_string()]);
    assert_kept(&clone, "does not contain it", |claim| claim.expected = unlanded);
    assert_kept(&clone, "it is", |_| {});

    clone.git(&["branch", "-D", "wt/x"]);
    clone.git(&["symbolic-ref", NAME, "refs/heads/wt/y"]);
    assert_kept(&clone, "symbolic", |_| {});
}

/// It was worked on since it was judged, and is back at the same commit: its reflog is all that names the work.
#[test]
fn work_that_only_its_reflog_names_keeps_it() {
    let clone = clone();
    let (at, late) = (clone.id_of("wt/x"), clone.commit_on("wt/x", "late"));
    clone.git(&["update-ref", "-m", "commit: late", NAME, &late.to_string()]);
    clone.git(&["update-ref", "-m", "reset", NAME, &at.to_string()]);
    assert_kept(&clone, &late.to_string(), |_| {});
    // Whatever holds it as well: an anchor of this removal, or any ref.
    let held = clone.copy();
    let anchors: &'static [ObjectId] = vec![late].leak();
    assert!(deleted(&delete_as(&held, |claim| claim.anchors = anchors)));
    clone.git(&["tag", "kept", &late.to_string()]);
    assert!(deleted(&delete_x(&clone)));
}

#[test]
fn whoever_uses_it_keeps_it() {
    let clone = clone();
    clone.git(&["worktree", "add", "-q", "-b", "w", "../w"]);
    let entry = clone.path.join(".git/worktrees/w");
    let head = std::fs::read(entry.join("HEAD")).unwrap();
    let other = clone.id_of("main").to_string();
    for (file, content, why) in [
        ("HEAD", "ref: refs/heads/wt/x\n", "worktree w has it"),
        ("HEAD", "ref: refs/heads/alias\n", "worktree w has it"),
        ("HEAD", "", "neither an object id"),
        ("rebase-merge/head-name", "refs/heads/wt/x\n", "worktree w needs it"),
        ("rebase-apply/head-name", "refs/heads/wt/x\n", "worktree w needs it"),
        ("rebase-merge/update-refs", "refs/heads/wt/x\n1\n2\n", "worktree w needs it"),
        ("BISECT_START", "wt/x\n", "worktree w needs it"),
    ] {
        if content.contains("alias") {
            clone.git(&["symbolic-ref", "refs/heads/alias", NAME]);
        }
        std::fs::create_dir_all(entry.join(file).parent().unwrap()).unwrap();
        std::fs::write(entry.join(file), content).unwrap();
        assert_kept(&clone, why, |_| {});
        std::fs::remove_file(entry.join(file)).unwrap();
        assert!(head.starts_with(b"ref: ") && !other.is_empty());
        std::fs::write(entry.join("HEAD"), &head).unwrap();
    }
    std::fs::remove_file(entry.join("HEAD")).unwrap();
    assert_kept(&clone, "worktree w: HEAD: does not exist", |_| {});
    std::fs::write(entry.join("HEAD"), &head).unwrap();
    symlink("w", clone.path.join(".git/worktrees/link")).unwrap();
    assert_kept(&clone, "worktree link", |_| {});
    std::fs::remove_file(clone.path.join(".git/worktrees/link")).unwrap();
    clone.git(&["checkout", "-q", "wt/x"]);
    assert_kept(&clone, "the main worktree", |_| {});
    clone.git(&["checkout", "-q", "main"]);
    assert!(deleted(&delete_x(&clone)));
}

#[test]
fn a_trunk_that_moves_meanwhile_keeps_it() {
    let clone = clone();
    let (record, main) = (record(), clone.id_of("main"));
    let claim = Claim {
        name: NAME.into(),
        expected: clone.id_of("other"),
        trunk: "refs/heads/main".into(),
        owned: true,
        anchors: &[],
        record: &record,
    };
    let common = clone.common();
    assert_eq!(landed(&common, &claim, &Stop::never()), Ok(main));
    assert_eq!(still_so(&common, &claim, main, &Stop::never()), Ok(()));
    clone.git(&["update-ref", "refs/heads/main", "other"]);
    assert!(still_so(&common, &claim, main, &Stop::never()).unwrap_err().contains("moved meanwhile"));
    clone.git(&["update-ref", "-d", "refs/heads/main"]);
    assert!(still_so(&common, &claim, main, &Stop::never()).is_err());
}

/// A commit object whose file bears the name of another hash claims that the trunk contains the branch.
#[test]
fn a_forged_object_lands_nothing() {
    let clone = clone();
    let unlanded = clone.commit_on("wt/x", "unlanded");
    clone.git(&["branch", "-f", "wt/x", &unlanded.to_string()]);
    let forged = clone.commit_on(&unlanded.to_string(), "forged").to_string();
    let trunk = clone.id_of("main").to_string();
    let object = |id: &str| clone.path.join(".git/objects").join(&id[..2]).join(&id[2..]);
    std::fs::remove_file(object(&trunk)).unwrap();
    std::fs::copy(object(&forged), object(&trunk)).unwrap();
    assert_kept(&clone, "forged", |claim| claim.expected = unlanded);
}

#[test]
fn replacements_and_grafts_land_nothing() {
    let clone = clone();
    let unlanded = clone.commit_on("wt/x", "unlanded");
    clone.git(&["branch", "-f", "wt/x", &unlanded.to_string()]);
    let child = clone.commit_on(&unlanded.to_string(), "child").to_string();
    let trunk = clone.id_of("main").to_string();
    clone.git(&["replace", &trunk, &child]);
    std::fs::create_dir_all(clone.path.join(".git/info")).unwrap();
    std::fs::write(clone.path.join(".git/info/grafts"), format!("{trunk} {unlanded}\n")).unwrap();
    clone.git(&["-c", "core.useReplaceRefs=true", "commit-graph", "write", "--reachable"]);
    assert_kept(&clone, "does not contain it", |claim| claim.expected = unlanded);
}

#[test]
fn no_link_leads_out() {
    let log = "logs/refs/heads/wt/x";
    for link in ["refs/heads/wt", "refs/heads", "logs", "logs/refs/heads/wt", log, "packed-refs", NAME] {
        let clone = clone();
        clone.git(&["pack-refs", "--all"]);
        clone.git(&["update-ref", NAME, "wt/y"]);
        std::fs::create_dir_all(clone.path.join(".git/refs/heads/wt")).unwrap();
        let expected = clone.id_of("wt/y");
        std::fs::write(clone.path.join(".git").join(NAME), format!("{expected}\n")).unwrap();
        let outside = clone.root.join("outside");
        std::fs::rename(clone.path.join(".git").join(link), &outside).unwrap();
        symlink(&outside, clone.path.join(".git").join(link)).unwrap();
        let before = listing(&clone.root);
        let outcome = delete_as(&clone, |claim| claim.expected = expected);
        assert!(matches!(outcome, BranchOutcome::Kept { .. }), "{link}: {outcome:?}");
        let mut after = listing(&clone.root);
        after.retain(|path, _| before.contains_key(path));
        assert_eq!(after, before, "{link}");
    }
}

#[test]
fn logs_of_other_references_in_the_place_of_its_own_keep_it() {
    let clone = clone();
    let logs = clone.path.join(".git/logs").join(NAME);
    std::fs::remove_file(&logs).unwrap();
    std::fs::create_dir(&logs).unwrap();
    std::fs::write(logs.join("deeper"), "somebody's").unwrap();
    // What it named once can't be read any more.
    assert!(matches!(delete_x(&clone), BranchOutcome::Kept { .. }));
    assert!(logs.join("deeper").exists());
    clone.id_of(NAME);
}

#[test]
fn a_reference_is_made_where_nothing_of_its_name_says_otherwise() {
    let clone = clone();
    let (here, other) = (clone.id_of("other"), clone.id_of("main"));
    let create = |id| refs::create_locked(&clone.common(), "refs/heads/a/new".into(), id, &record());
    std::fs::create_dir_all(clone.path.join(".git/refs/heads/a/new/empty")).unwrap();
    assert!(create(here).is_err(), "what is in the way is not all empty");
    std::fs::remove_dir(clone.path.join(".git/refs/heads/a/new/empty")).unwrap();
    create(here).unwrap();
    create(here).unwrap();
    assert!(matches!(create(other), Err(RefError::Moved { .. })));
    assert_eq!(clone.id_of("refs/heads/a/new"), here);
    assert!(!clone.path.join(".git/refs/heads/a/new.lock").exists());
}

#[test]
fn other_writers_are_excluded_and_a_stale_lock_of_ours_is_not() {
    for lock in ["refs/heads/wt/x.lock", "packed-refs.lock"] {
        let clone = clone();
        clone.git(&["pack-refs", "--all"]);
        let lock = clone.path.join(".git").join(lock);
        std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
        std::fs::write(&lock, "").unwrap();
        assert!(matches!(delete_x(&clone), BranchOutcome::Kept { why, .. } if why.contains("locked")));
        assert!(lock.exists() && clone.has_ref(NAME));
        std::fs::write(&lock, "treesweep 20250301T101112123Z-0123456789ab\n").unwrap();
        assert!(deleted(&delete_x(&clone)));
        assert!(!lock.exists());
    }
}

/// Killed, or with an error, at each change: the branch is there or not, nothing else differs, and the next run
/// finishes.
#[test]
fn it_converges_from_every_call() {
    let model = clone();
    // An older value is packed: it must never come back into force.
    model.git(&["update-ref", NAME, "main"]);
    model.git(&["pack-refs", "--all"]);
    std::fs::create_dir_all(model.path.join(".git/refs/heads/wt")).unwrap();
    std::fs::write(model.path.join(".git").join(NAME), format!("{}\n", model.id_of("other"))).unwrap();
    let before = model.git(&["for-each-ref", "--format=%(refname)"]);
    let expected = Some(refs::Value::Direct(model.id_of("other")));
    let reference = model.copy();
    let (outcome, calls) = faults::run(None, || delete_x(&reference));
    assert!(deleted(&outcome.unwrap()) && calls.len() > 10, "{calls:?}");
    let done = reference.git(&["for-each-ref", "--format=%(refname)"]);
    for at in 1..=calls.len() {
        for fault in
            [Fault::Kill, Fault::Error(rustix::io::Errno::IO), Fault::Error(rustix::io::Errno::NOSPC)]
        {
            let clone = model.copy();
            let names = || clone.git(&["for-each-ref", "--format=%(refname)"]);
            faults::run(Some((at, fault)), || delete_x(&clone));
            let after = names();
            let value = refs::read(&clone.common(), NAME.into()).unwrap();
            assert!(value.is_none() || value == expected, "{fault:?} at {at} ({})", calls[at - 1]);
            assert!(after == before || after == done, "{fault:?} at {at} ({})", calls[at - 1]);
            crate::sweep::ref_lock::remove_stale(&clone.common(), "packed-refs").unwrap();
            assert!(deleted(&delete_x(&clone)), "{fault:?} at {at} ({})", calls[at - 1]);
            assert_eq!(names(), done);
            for left in [".git/refs/heads/wt/x.lock", ".git/packed-refs.lock", ".git/logs/refs/heads/wt/x"] {
                assert!(
                    !clone.path.join(left).exists(),
                    "{left} after {fault:?} at {at} ({})",
                    calls[at - 1]
                );
            }
        }
    }
}

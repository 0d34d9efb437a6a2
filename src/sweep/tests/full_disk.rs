//! What a full disk stops, and what goes on without a journal or a record because that is what makes room.

use rustix::io::Errno;

use super::faults::removed;
use super::*;

const FULL: [Errno; 2] = [Errno::NOSPC, Errno::DQUOT];
const ERRORS: [Errno; 3] = [Errno::NOSPC, Errno::DQUOT, Errno::IO];

/// The number, from 1, of the first `call` after that of number `after`.
fn first(calls: &[&'static str], call: &str, after: usize) -> usize {
    after + 1 + calls[after..].iter().position(|c| *c == call).unwrap()
}

/// Each of `errors` at the calls that `at` picks, in copies of a scene with anchors (`Remove`) and one without (`Orphan`).
fn each(at: impl Fn(&[&'static str]) -> Vec<usize>, mut check: impl FnMut(Ran<'_>)) {
    for what in [What::Remove, What::Orphan] {
        let model = scene_for(what);
        let reference = model.copy();
        let (_, calls) = removed(&reference, reference.warrant(what), None);
        for at in at(&calls) {
            for errno in ERRORS {
                let scene = model.copy();
                let whole = contents(&scene.checkout());
                let (outcome, _) = removed(&scene, scene.warrant(what), Some((at, errno)));
                let when = format!("{what:?} {errno} at {at} ({}): {outcome:?}", calls[at - 1]);
                let full = FULL.contains(&errno);
                check(Ran { scene: &scene, what, whole: &whole, outcome: &outcome, full, when });
            }
        }
    }
}

struct Ran<'a> {
    scene: &'a Scene,
    what: What,
    whole: &'a [(PathBuf, String)],
    outcome: &'a Outcome,
    full: bool,
    when: String,
}

impl Ran<'_> {
    /// Only what needs no anchor may go on, and only because the disk is full.
    fn may_go_on(&self) -> bool {
        self.full && self.what == What::Orphan
    }

    fn assert_gone(&self) {
        assert_eq!(self.outcome.result, Ending::Removed, "{}", self.when);
        assert!(!self.scene.checkout().exists(), "{}", self.when);
        self.assert_nothing_pending();
    }

    fn assert_untouched(&self, result: Ending, note: &str) {
        let Self { scene, outcome, when, .. } = self;
        assert_eq!(outcome.result, result, "{when}");
        assert!(outcome.note.as_ref().unwrap().contains(note), "{when}");
        assert!(outcome.retry.is_some() && outcome.record.is_none(), "{when}");
        assert_same(&contents(&scene.checkout()), self.whole, when);
        assert_eq!(scene.entry().join("gitdir").exists(), self.what == What::Remove, "{when}");
        assert!(scene.has_branch() && !scene.has_anchor() && scene.records().is_empty(), "{when}");
        assert!(scene.resume().is_empty(), "{when}");
        assert_same(&contents(&scene.checkout()), self.whole, when);
        self.assert_nothing_pending();
    }

    fn assert_nothing_pending(&self) {
        assert_eq!(self.scene.journals(), 0, "{}", self.when);
        self.scene.assert_tidy(&self.when);
    }
}

/// An error at any call that writes the journal, of which a journal that tells of an untouched worktree must not be left
/// where the removal goes on: the next run would put back what is half deleted.
#[test]
fn without_a_journal_only_what_needs_no_anchor_goes_and_only_for_want_of_room() {
    let journal = |calls: &[&'static str]| {
        let replace = first(calls, "replace", 0);
        assert_eq!(calls[replace], "fsync");
        (1..=replace + 1).collect()
    };
    each(journal, |ran| match ran.full {
        true if ran.may_go_on() => ran.assert_gone(),
        true => ran.assert_untouched(Ending::Deferred, "its anchors could be lost"),
        false => ran.assert_untouched(Ending::Failed, "journal: "),
    });
}

#[test]
fn without_a_record_only_what_needs_no_anchor_goes_and_only_for_want_of_room() {
    let record = |calls: &[&'static str]| {
        let journal = first(calls, "replace", 0) + 1;
        (journal + 1..=first(calls, "replace", journal)).collect()
    };
    each(record, |ran| match ran.may_go_on() {
        true => {
            ran.assert_gone();
            let note = ran.outcome.note.as_ref().unwrap();
            assert!(note.contains("there is no retirement record"), "{}", ran.when);
        }
        false => ran.assert_untouched(Ending::Failed, "retirement record: "),
    });
}

/// The copy is for people: without it nothing is lost.
#[test]
fn without_the_copy_of_its_record_it_goes() {
    let copy = |calls: &[&'static str]| {
        let record = first(calls, "replace", first(calls, "replace", 0));
        (record + 1..=first(calls, "replace", record)).collect()
    };
    each(copy, |ran| {
        ran.assert_gone();
        assert!(ran.outcome.note.as_ref().unwrap().contains("no copy of the record"), "{}", ran.when);
        assert!(ran.scene.records()[0].completed.is_some(), "{}", ran.when);
    });
}

/// It lies aside already, and goes back.
#[test]
fn without_its_next_step_only_what_needs_no_anchor_goes_and_only_for_want_of_room() {
    let step = |calls: &[&'static str]| vec![first(calls, "replace", first(calls, "rename", 0))];
    each(step, |ran| match ran.may_go_on() {
        true => ran.assert_gone(),
        false => ran.assert_untouched(Ending::Failed, "journal: "),
    });
    let on_the_disk = |calls: &[&'static str]| {
        let replace = first(calls, "replace", first(calls, "rename", 0));
        assert_eq!(calls[replace], "fsync");
        vec![replace + 1]
    };
    each(on_the_disk, |ran| ran.assert_untouched(Ending::Failed, "journal: "));
}

/// The checkout goes then without a journal, and its registration has to go as well.
#[test]
fn a_registration_is_forgotten_after_its_journal_found_no_room() {
    let model = Scene::new();
    let reference = model.copy();
    let (_, calls) = removed(&reference, reference.warrant_with(What::Remove, vec![]), None);
    let scene = model.copy();
    let step = first(&calls, "replace", first(&calls, "rename", 0));
    let warrant = scene.warrant_with(What::Remove, vec![]);
    let (outcome, _) = removed(&scene, warrant, Some((step, Errno::NOSPC)));
    assert_eq!(outcome.result, Ending::Removed, "{outcome:?}");
    assert!(!scene.checkout().exists() && !scene.entry().exists());
    assert_eq!(scene.journals(), 0);
    scene.assert_tidy("full");
}

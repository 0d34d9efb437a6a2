//! What a person reads: each reason names what it is about, and every question is explained.

use crate::judge::explain::{explain, owned_by};
use crate::judge::facts::{Asked, Facts, LockFacts, LockedBy, Placement, Question};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::{self, Policy};
use crate::judge::testing::*;
use crate::judge::tree_facts::Sample;

fn said(facts: &Facts) -> Vec<String> {
    let all = Question::ALL.iter().flat_map(|q| rules::reasons(*q, facts, &policy()));
    all.map(|reason| reason.detail).collect()
}

#[test]
fn reasons_name_the_first_and_count_the_others() {
    let samples = |count: usize| {
        let mut sample = Sample::default();
        (0..count).for_each(|n| sample.add(format!("{n}.rs")));
        sample
    };
    for (count, text) in [
        (1, "untracked, 1 file: 0.rs"),
        (3, "untracked, 3 files: 0.rs, 1.rs, 2.rs"),
        (5, "untracked, 5 files: 0.rs, 1.rs, 2.rs (and 2 more)"),
    ] {
        let mut facts = reclaimable();
        tree(&mut facts).untracked = samples(count);
        assert_eq!(said(&facts), [text]);
    }
    assert_eq!((samples(7).count, samples(7).first.len()), (7, Sample::SHOWN), "no more is held in memory");
    let mut facts = reclaimable();
    tree(&mut facts).precious = sample(".env");
    assert_eq!(said(&facts), ["ignored, and the main worktree lacks it: .env"]);
    for (count, text) in [(1, ""), (3, " (and 2 more)")] {
        let mut facts = reclaimable();
        head(&mut facts).stray = vec![("refs/worktree/a".into(), commit(3)); count];
        let commit = commit(3);
        assert_eq!(
            said(&facts),
            [format!("refs/worktree/a holds {commit}, which no shared ref reaches{text}")]
        );
        let mut facts = reclaimable();
        tree(&mut facts).unreadable = vec![("".into(), "no".into()); count];
        assert_eq!(said(&facts), [format!("the directory itself: no{text}")]);
        let mut facts = reclaimable();
        tree(&mut facts).nested_checkouts = vec![local("/src/x/y"); count];
        assert_eq!(said(&facts), [format!("/src/x/y is in it and stays{text}")]);
    }
}

#[test]
fn a_lock_is_shown_with_its_reason() {
    let mut facts = reclaimable();
    for (reason, text) in [("agent", "'agent', 24 h ago"), ("", "no reason given, 24 h ago")] {
        facts.standing.lock =
            Some(LockFacts { reason: reason.into(), since: ago(DAY), by: LockedBy::Somebody });
        assert_eq!(said(&facts), [text]);
    }
}

#[test]
fn where_no_quiet_is_asked_for_a_time_that_is_not_known_does_not_matter() {
    let mut facts = reclaimable();
    facts.activity = Asked::Answered(Default::default());
    tree(&mut facts).newest = None;
    let reasons = |idle| rules::reasons(Question::Activity, &facts, &Policy { idle, ..policy() });
    assert_eq!(reasons(0), []);
    assert_eq!(reasons(1).len(), 1);
}

#[test]
fn each_question_is_explained_with_what_was_seen_and_what_speaks_against_it() {
    let rows = |facts: &Facts| -> Vec<(String, String)> {
        let rows = explain(facts, &policy()).into_iter();
        rows.map(|row| (row.question.to_owned(), row.answer)).collect()
    };
    let row = |question: &str, answer: &str| (question.to_owned(), answer.to_owned());
    let tip = commit(1);
    let expected = [
        row("place", "/src/app/.worktrees/x, by inferred: the container called it so"),
        row("ownership", "marker treesweep/ready, branch template '{name}'"),
        row("standing", "not locked; nothing against it"),
        row("liveness", "no container and no process holds it; nothing against it"),
        row("head", &format!("refs/heads/x at {tip}; nothing against it")),
        row("history", "refs/remotes/origin/main contains it, made 30 days ago; nothing against it"),
        row("activity", "its index changed 30 days ago; nothing against it"),
        row("index", "compared with the tree of HEAD; nothing against it"),
        row("tree", "0 files in 0 directories, all looked at; nothing against it"),
    ];
    assert_eq!(rows(&reclaimable()), expected);
    let answers = |facts: &Facts| rows(facts).into_iter().map(|(_, answer)| answer).collect::<Vec<_>>();
    assert!(answers(&unasked())[3..].iter().all(|answer| answer == "not asked"));
    let mut facts = reclaimable();
    facts.standing.lock = Some(LockFacts { reason: "".into(), since: ago(0), by: LockedBy::Guard });
    assert!(answers(&facts)[2].starts_with("locked by treesweep's own guard"));
    facts.standing.lock = Some(LockFacts { reason: "".into(), since: ago(0), by: LockedBy::Somebody });
    assert_eq!(answers(&facts)[2], "locked; locked: no reason given, 0 s ago");
    index(&mut facts).missing = true;
    assert_eq!(answers(&facts)[7], "there is no index; nothing against it");
    facts.index = Asked::Failed("junk".into());
    assert!(answers(&facts)[7].starts_with("could not be asked: junk; unreadable"));
    assert_eq!(owned_by(&unowned()), "no ready marker");
}

#[test]
fn a_worktree_lies_where_its_placement_says() {
    let path = local("/src/app/.worktrees/x");
    for facts in [reclaimable(), absent(proven()), orphan()] {
        assert_eq!(facts.path(), Some(&path));
    }
    let mut facts = reclaimable();
    let reasons = vec![Reason::new(Code::LinksDisagree, "two")];
    facts.standing.placement = Placement::Held { path: Some(local("/src/y")), by: None, reasons };
    assert_eq!(facts.path(), Some(&local("/src/y")));
}

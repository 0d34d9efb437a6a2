//! Which question is asked next.

use crate::judge::facts::{Asked, Facts, Landed, Placement, Question, Subject};
use crate::judge::reason::{Code, Reason};
use crate::judge::testing::*;
use crate::judge::verdict::next;

/// The answer that `from` has to `question`.
fn answer(facts: &mut Facts, from: &Facts, question: Question) {
    match question {
        Question::Standing => {}
        Question::Liveness => facts.liveness = from.liveness.clone(),
        Question::Head => facts.head = from.head.clone(),
        Question::History => facts.history = from.history.clone(),
        Question::Activity => facts.activity = from.activity.clone(),
        Question::Index => (facts.index, facts.modules) = (from.index.clone(), from.modules.clone()),
        Question::Tree => facts.tree = from.tree.clone(),
    }
}

/// What is asked in turn until nothing is open any more, if the answers are those of `from`.
fn asked_in_turn(from: &Facts, thorough: bool) -> Vec<Question> {
    let mut facts = Facts::new(from.subject.clone(), from.standing.clone());
    let mut asked = Vec::new();
    while let Some(question) = next(&facts, &policy(), thorough) {
        assert!(!asked.contains(&question), "{question:?} is asked twice");
        asked.push(question);
        answer(&mut facts, from, question);
        facts.orphan_match = from.orphan_match.clone();
    }
    asked
}

const ALL: [Question; 6] = [
    Question::Liveness,
    Question::Head,
    Question::History,
    Question::Activity,
    Question::Index,
    Question::Tree,
];

#[test]
fn cheapest_first() {
    assert_eq!(asked_in_turn(&reclaimable(), false), ALL);
    assert_eq!(asked_in_turn(&absent(proven()), false), ALL[..5]);
    assert_eq!(asked_in_turn(&orphan(), false), [Question::Liveness, Question::Activity, Question::Tree]);
}

#[test]
fn a_keep_reason_ends_the_costlier_questions_unless_all_are_asked() {
    for objection in OBJECTIONS {
        let mut facts = reclaimable();
        (objection.add)(&mut facts);
        let asked = asked_in_turn(&facts, false);
        let until = ALL.iter().filter(|q| **q <= objection.question).count();
        assert_eq!(asked, ALL[..until], "{objection:?}");
        assert_eq!(asked_in_turn(&facts, true), ALL, "{objection:?}");
    }
}

#[test]
fn of_an_orphan_too() {
    let mut facts = orphan();
    facts.activity = Asked::Failed("a reflog".into());
    assert_eq!(asked_in_turn(&facts, false), [Question::Liveness, Question::Activity]);
}

#[test]
fn of_trash_only_who_uses_it_and_what_is_in_it_is_asked() {
    let mut facts = orphan();
    facts.subject =
        Subject::Trash { name: "x".into(), path: local("/src/.treesweep-trash-x"), seen: Some(meta()) };
    assert!(asked_in_turn(&facts, false).is_empty(), "it is kept whatever the answers are");
    assert_eq!(asked_in_turn(&facts, true), [Question::Liveness, Question::Tree]);
}

#[test]
fn what_may_be_contained_is_asked_all() {
    assert_eq!(asked_in_turn(&contained(), false), ALL);
    let mut strange = contained();
    strange.standing.ownership = unowned();
    assert_eq!(asked_in_turn(&strange, false), ALL[..3], "it is no offer: the first reason ends it");
    let mut alone = contained();
    history(&mut alone).containers.clear();
    assert_eq!(asked_in_turn(&alone, false), ALL[..3]);
    let mut gone = absent(proven());
    history(&mut gone).landed = Landed::No { ahead: Some(1) };
    history(&mut gone).containers = history(&mut contained()).containers.clone();
    assert_eq!(asked_in_turn(&gone, false), ALL[..3], "there is no checkout to be reclaimed");
}

#[test]
fn of_what_is_held_only_a_thorough_run_asks_more() {
    let mut facts = reclaimable();
    let held = |path| Placement::Held { path, by: None, reasons: vec![Reason::new(Code::Ambiguous, "two")] };
    facts.standing.placement = held(Some(local("/src/x")));
    assert!(asked_in_turn(&facts, false).is_empty());
    assert_eq!(asked_in_turn(&facts, true), ALL[..5], "all but its files");
    facts.standing.placement = held(None);
    assert_eq!(asked_in_turn(&facts, true), ALL[1..5]);
    let Subject::Registered { id, .. } = &mut facts.subject else { unreachable!() };
    *id = None;
    assert!(asked_in_turn(&facts, true).is_empty(), "there is no entry that could be read");
}

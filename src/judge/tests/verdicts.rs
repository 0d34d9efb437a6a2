//! Each rule and each verdict.

use crate::judge::facts::{
    AbsenceProof, Asked, Facts, LockFacts, LockedBy, OrphanMatch, Placement, Question, Subject,
};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::{self, Policy, span};
use crate::judge::testing::*;
use crate::judge::verdict::{Judgement, Mandate, allowed, judge, warrant};
use crate::judge::warrant::{Act, Authority, Warrant};
use crate::plan::{Class, VerdictKind};

fn codes(judgement: &Judgement) -> Vec<Code> {
    judgement.reasons.iter().map(|r| r.code).collect()
}

fn warranted(facts: &Facts, mandate: Mandate) -> Result<Warrant, Vec<Reason>> {
    warrant(facts, &policy(), mandate, scope())
}

const PERSON: Mandate = Mandate::Person { force: false };
const FORCE: Mandate = Mandate::Person { force: true };

/// What `drop --force` overrides, as the design lists it.
const YIELDING: [Code; 8] = [
    Code::Dirty,
    Code::HiddenChanges,
    Code::NotLanded,
    Code::TrunkUnknown,
    Code::PreciousIgnored,
    Code::RecentlyActive,
    Code::Unstarted,
    Code::UnreachableCommits,
];

#[track_caller]
fn assert_verdict(facts: &Facts, verdict: VerdictKind, class: Option<Class>, reasons: &[Code]) {
    let judgement = judge(facts, &policy());
    assert_eq!((judgement.verdict, judgement.class), (verdict, class), "{:?}", judgement.reasons);
    assert_eq!(codes(&judgement), reasons);
}

#[test]
fn what_nothing_speaks_against() {
    use VerdictKind::{Forget, Offer, Reclaim};
    let strange = |mut facts: Facts| {
        facts.standing.ownership = unowned();
        facts
    };
    assert_verdict(&reclaimable(), Reclaim, None, &[]);
    assert_verdict(&absent(proven()), Forget, None, &[]);
    assert_verdict(&absent(weak()), Offer, Some(Class::Stale), &[Code::AbsenceUnproven]);
    assert_verdict(&strange(reclaimable()), Offer, Some(Class::Unowned), &[Code::Unowned]);
    assert_verdict(&strange(absent(proven())), Offer, Some(Class::Stale), &[Code::Unowned]);
    let both = [Code::AbsenceUnproven, Code::Unowned];
    assert_verdict(&strange(absent(weak())), Offer, Some(Class::Stale), &both);
    assert_verdict(&orphan(), Offer, Some(Class::Orphan), &[Code::Unowned]);
    assert_verdict(&contained(), Offer, Some(Class::Contained), &[Code::NotLanded]);
}

#[test]
fn a_sweep_takes_what_is_owned_and_proven_and_a_person_what_is_offered() {
    let strange = |mut facts: Facts| {
        facts.standing.ownership = unowned();
        facts
    };
    for facts in [reclaimable(), absent(proven())] {
        for mandate in [Mandate::Automatic, PERSON, FORCE] {
            assert_eq!(*warranted(&facts, mandate).unwrap().authority(), Authority::Owned);
        }
    }
    let offers = [absent(weak()), strange(reclaimable()), strange(absent(proven())), orphan()];
    for facts in &offers {
        warranted(facts, Mandate::Automatic).unwrap_err();
        for mandate in [PERSON, FORCE] {
            let warrant = warranted(facts, mandate).unwrap();
            assert_eq!(*warrant.authority(), Authority::Person { overridden: Vec::new() });
        }
    }
    assert!(offers.iter().all(|facts| judge(facts, &policy()).pickable));
}

#[test]
fn a_contained_worktree_is_for_nobody_who_does_not_say_that_its_work_may_wait() {
    warranted(&contained(), Mandate::Automatic).unwrap_err();
    warranted(&contained(), PERSON).unwrap_err();
    assert!(!judge(&contained(), &policy()).pickable);
    let forced = warranted(&contained(), FORCE).unwrap();
    let Authority::Person { overridden } = forced.authority() else { panic!() };
    assert_eq!(overridden.iter().map(|r| r.code).collect::<Vec<_>>(), [Code::NotLanded]);
}

#[test]
fn contained_waits_an_hour_whatever_idle_says() {
    let mut facts = contained();
    let set = |facts: &mut Facts, seen: i64, met: i64| {
        facts.activity =
            Asked::Answered(crate::judge::facts::ActivityFacts { last: Some((ago(seen), "x".into())) });
        tree(facts).newest = Some((ago(met), "y".into()));
    };
    for idle in [0, 1, HOUR / 2] {
        let policy = Policy { idle, ..policy() };
        for (seen, met, offered) in [
            (HOUR, HOUR, true),
            (HOUR - 1, HOUR, false),
            (HOUR, HOUR - 1, false),
            (-1, HOUR, false),
            (HOUR, -1, false),
        ] {
            set(&mut facts, seen, met);
            let judgement = judge(&facts, &policy);
            let verdict = if offered { VerdictKind::Offer } else { VerdictKind::Keep };
            assert_eq!(judgement.verdict, verdict, "{seen} {met} {idle}");
        }
        facts.activity = Asked::Answered(Default::default());
        assert_eq!(judge(&facts, &policy).verdict, VerdictKind::Keep, "of no known age");
    }
    set(&mut facts, HOUR, HOUR);
    let patient = Policy { idle: 2 * HOUR, ..policy() };
    assert_eq!(judge(&facts, &patient).verdict, VerdictKind::Keep, "a longer time counts too");
}

#[test]
fn contained_takes_an_owner_a_live_container_and_nothing_else_against_it() {
    let mut strange = contained();
    strange.standing.ownership = unowned();
    assert_verdict(&strange, VerdictKind::Keep, None, &[Code::NotLanded]);
    let mut alone = contained();
    history(&mut alone).containers.clear();
    assert_verdict(&alone, VerdictKind::Keep, None, &[Code::NotLanded]);
    for objection in OBJECTIONS.iter().filter(|o| o.fits(&contained())) {
        let mut facts = contained();
        (objection.add)(&mut facts);
        if facts.history == contained().history {
            assert_eq!(judge(&facts, &policy()).verdict, VerdictKind::Keep, "{objection:?}");
        }
    }
}

#[test]
fn each_objection_keeps_and_only_the_listed_ones_yield_to_force() {
    for objection in OBJECTIONS {
        let mut facts = reclaimable();
        (objection.add)(&mut facts);
        let judgement = judge(&facts, &policy());
        assert_eq!(judgement.verdict, VerdictKind::Keep, "{objection:?}");
        assert_eq!(codes(&judgement), [objection.code], "{objection:?}");
        warranted(&facts, Mandate::Automatic).unwrap_err();
        warranted(&facts, PERSON).unwrap_err();
        let forced = warranted(&facts, FORCE);
        assert_eq!(forced.is_ok(), YIELDING.contains(&objection.code), "{objection:?}");
        if let Ok(warrant) = forced {
            assert_eq!(*warrant.authority(), Authority::Person { overridden: judgement.reasons.clone() });
        }
        assert_eq!(allowed(&judgement, &facts, FORCE).is_ok(), YIELDING.contains(&objection.code));
    }
}

#[test]
fn the_cheapest_reason_decides_and_the_others_are_listed() {
    let mut facts = reclaimable();
    for objection in OBJECTIONS.iter().rev().filter(|o| o.question != Question::Standing) {
        if objection.fits(&facts) {
            (objection.add)(&mut facts);
        }
    }
    let judgement = judge(&facts, &policy());
    let by_question: Vec<Code> =
        Question::ALL.iter().flat_map(|q| rules::reasons(*q, &facts, &policy())).map(|r| r.code).collect();
    assert_eq!(codes(&judgement), by_question);
    assert_eq!(by_question.first(), Some(&Code::LivenessUnknown));
}

#[test]
fn what_is_held_is_kept_whatever_else_is_known() {
    let mut facts = reclaimable();
    facts.standing.placement = Placement::Held {
        path: Some(local("/src/x")),
        by: None,
        reasons: vec![Reason::new(Code::LinksDisagree, "two")],
    };
    assert_verdict(&facts, VerdictKind::Keep, None, &[Code::LinksDisagree]);
    // A placement that holds and does not say why is a fault elsewhere, and no licence.
    facts.standing.placement = Placement::Held { path: None, by: None, reasons: Vec::new() };
    assert_eq!(judge(&facts, &policy()).verdict, VerdictKind::Keep);
    for code in YIELDING {
        let reasons = vec![Reason::new(code, "as if")];
        facts.standing.placement = Placement::Held { path: Some(local("/src/x")), by: None, reasons };
        warranted(&facts, FORCE).unwrap_err();
    }
}

#[test]
fn what_was_not_asked_is_not_known() {
    assert_verdict(&unasked(), VerdictKind::Keep, None, &[Code::Unreadable]);
    let open: [fn(&mut Facts); 6] = [
        |f| f.liveness = Asked::NotYet,
        |f| f.head = Asked::NotYet,
        |f| f.history = Asked::NotYet,
        |f| f.activity = Asked::NotYet,
        |f| f.index = Asked::NotYet,
        |f| f.tree = Asked::NotYet,
    ];
    for open in open {
        for mut facts in [reclaimable(), contained()] {
            open(&mut facts);
            assert_eq!(judge(&facts, &policy()).verdict, VerdictKind::Keep);
            for mandate in [Mandate::Automatic, PERSON, FORCE] {
                warranted(&facts, mandate).unwrap_err();
            }
        }
    }
}

#[test]
fn the_lock_of_our_own_guard_does_not_hold() {
    let mut facts = reclaimable();
    facts.standing.lock = Some(LockFacts { reason: "guard".into(), since: ago(DAY), by: LockedBy::Guard });
    assert_verdict(&facts, VerdictKind::Reclaim, None, &[]);
}

#[test]
fn ages_are_what_the_policy_says() {
    let unstarted = |born: i64, after: i64| {
        let mut facts = reclaimable();
        (history(&mut facts).has_own_commit, history(&mut facts).born) = (false, Some(ago(born)));
        judge(&facts, &Policy { unstarted_after: after, ..policy() }).verdict
    };
    assert_eq!(unstarted(7 * DAY, 7 * DAY), VerdictKind::Reclaim);
    assert_eq!(unstarted(7 * DAY - 1, 7 * DAY), VerdictKind::Keep);
    assert_eq!(unstarted(0, 0), VerdictKind::Reclaim);
    assert_eq!(unstarted(-DAY, 7 * DAY), VerdictKind::Keep, "a time to come has not passed");
    let active = |seen: i64, idle: i64| {
        let mut facts = reclaimable();
        facts.activity = Asked::Answered(crate::judge::facts::ActivityFacts {
            last: Some((ago(seen), "its index".into())),
        });
        judge(&facts, &Policy { idle, ..policy() }).verdict
    };
    assert_eq!(active(HOUR, HOUR), VerdictKind::Reclaim);
    assert_eq!(active(HOUR - 1, HOUR), VerdictKind::Keep);
    assert_eq!(active(-DAY, HOUR), VerdictKind::Keep);
    assert_eq!(active(-DAY, 0), VerdictKind::Reclaim, "no quiet was asked for");
}

#[test]
fn a_detached_head_has_no_branch_that_could_be_unstarted() {
    let mut facts = reclaimable();
    head(&mut facts).branch = None;
    history(&mut facts).has_own_commit = false;
    assert_verdict(&facts, VerdictKind::Reclaim, None, &[]);
}

#[test]
fn a_parent_goes_after_what_is_in_it() {
    let inner = local("/src/app/.worktrees/x/inner");
    let mut facts = reclaimable();
    tree(&mut facts).nested_checkouts = vec![inner.clone(), local("/src/app/.worktrees/x/other")];
    let going = |paths: &[&str]| Policy { going: paths.iter().map(|p| local(p)).collect(), ..policy() };
    let judged = |policy: &Policy| judge(&facts, policy).verdict;
    assert_eq!(judged(&going(&["/src/app/.worktrees/x/inner"])), VerdictKind::Keep);
    let both = going(&["/src/app/.worktrees/x/inner", "/src/app/.worktrees/x/other"]);
    assert_eq!(judged(&both), VerdictKind::Reclaim);
}

#[test]
fn an_orphan_has_to_be_a_commit_file_for_file() {
    let mut facts = orphan();
    facts.orphan_match = Some(OrphanMatch::Differs { why: "a is in no commit".into() });
    assert_verdict(&facts, VerdictKind::Keep, None, &[Code::Dirty]);
    facts.orphan_match = None;
    assert_verdict(&facts, VerdictKind::Keep, None, &[Code::Unreadable]);
    let Act::RemoveOrphan { checkout, name } = warranted(&orphan(), PERSON).unwrap().act().clone() else {
        panic!()
    };
    assert_eq!((name.as_slice(), checkout.path), (&b"x"[..], local("/src/app/.worktrees/x")));
}

#[test]
fn trash_of_ours_is_completed_by_a_person_and_by_nobody_else() {
    let mut facts = orphan();
    facts.orphan_match = None;
    facts.activity = Asked::NotYet;
    facts.subject =
        Subject::Trash { name: "x".into(), path: local("/src/.treesweep-trash-x"), seen: Some(meta()) };
    // What is half deleted can't be compared: it is not asked whether it is clean.
    tree(&mut facts).untracked = sample("a");
    assert_verdict(&facts, VerdictKind::Keep, None, &[Code::Interrupted]);
    warranted(&facts, Mandate::Automatic).unwrap_err();
    warranted(&facts, PERSON).unwrap();
    let against: [fn(&mut Facts); 4] = [
        |f| tree(f).nested_repositories = sample("lib"),
        |f| tree(f).mounts = sample("mnt"),
        |f| tree(f).unreadable.push(("a".into(), "no".into())),
        |f| f.standing.holds.push(Reason::new(Code::Protected, "--protect")),
    ];
    for add in against {
        let mut facts = facts.clone();
        add(&mut facts);
        for mandate in [Mandate::Automatic, PERSON, FORCE] {
            warranted(&facts, mandate).unwrap_err();
        }
    }
    facts.tree = Asked::NotYet;
    warranted(&facts, PERSON).unwrap_err();
    allowed(&judge(&facts, &policy()), &facts, PERSON).unwrap_err();
    let mut joined = reclaimable();
    joined.standing.holds.push(Reason::new(Code::Interrupted, "its entry is half gone"));
    for mandate in [Mandate::Automatic, PERSON, FORCE] {
        allowed(&judge(&joined, &policy()), &joined, mandate).unwrap_err();
    }
}

#[test]
fn absence_is_asked_what_the_entry_can_answer() {
    for proof in [proven(), AbsenceProof::Weak("a label".into())] {
        for objection in OBJECTIONS.iter().filter(|o| o.question != Question::Tree) {
            let mut facts = absent(proof.clone());
            (objection.add)(&mut facts);
            assert_verdict(&facts, VerdictKind::Keep, None, &[objection.code]);
        }
    }
}

#[test]
fn spans_are_in_their_largest_unit() {
    for (seconds, text) in [
        (-1, "a negative time"),
        (0, "0 s"),
        (119, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (7200, "2 h"),
        (172_799, "47 h"),
        (172_800, "2 days"),
    ] {
        assert_eq!(span(seconds), text);
    }
}

//! Facts of any kind, and what they may never lead to.

use proptest::prelude::*;

use crate::judge::facts::{AbsenceProof, Asked, Facts, Landed, LockedBy, OrphanMatch, Placement, Subject};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::{Policy, reasons};
use crate::judge::testing::*;
use crate::judge::tree_facts::SubmoduleState;
use crate::judge::verdict::{Mandate, judge, warrant};
use crate::judge::warrant::{Act, Authority, BranchFate};
use crate::plan::{Class, VerdictKind};

/// A worktree of each kind, owned or not, with any objections, and any questions left open.
fn any_facts() -> impl Strategy<Value = Facts> {
    let base = prop_oneof![
        Just(reclaimable()),
        Just(contained()),
        Just(absent(proven())),
        Just(absent(weak())),
        Just(orphan()),
    ];
    let objections = prop::collection::vec(0..OBJECTIONS.len(), 0..4);
    let open = prop::collection::vec(0..6usize, 0..2);
    (base, any::<bool>(), objections, open, any_landed(), any::<bool>()).prop_map(
        |(mut facts, keep_owner, objections, open, landed, replace)| {
            if !keep_owner {
                facts.standing.ownership = unowned();
            }
            if let (true, Asked::Answered(history)) = (replace, &mut facts.history) {
                history.landed = landed;
            }
            for at in objections {
                if OBJECTIONS[at].fits(&facts) {
                    (OBJECTIONS[at].add)(&mut facts);
                }
            }
            for at in open {
                match at {
                    0 => facts.liveness = Asked::NotYet,
                    1 => facts.head = Asked::NotYet,
                    2 => facts.history = Asked::NotYet,
                    3 => facts.activity = Asked::NotYet,
                    4 => facts.index = Asked::NotYet,
                    _ => facts.tree = Asked::NotYet,
                }
            }
            facts
        },
    )
}

fn any_landed() -> impl Strategy<Value = Landed> {
    let trunk_ref = || "refs/heads/main".into();
    prop_oneof![
        Just(Landed::Ancestry { trunk_ref: trunk_ref() }),
        Just(Landed::Content { trunk_ref: trunk_ref() }),
        Just(Landed::No { ahead: Some(2) }),
        Just(Landed::No { ahead: None }),
    ]
}

fn any_policy() -> impl Strategy<Value = Policy> {
    let seconds = || prop_oneof![Just(0), Just(1), Just(HOUR), Just(2 * DAY), Just(i64::MAX)];
    (seconds(), seconds()).prop_map(|(idle, unstarted_after)| Policy { idle, unstarted_after, ..policy() })
}

fn any_mandate() -> impl Strategy<Value = Mandate> {
    prop_oneof![
        Just(Mandate::Automatic),
        Just(Mandate::Person { force: false }),
        Just(Mandate::Person { force: true }),
    ]
}

/// Everything that a removal nobody asked for takes, said once more and not by the rules' own words.
fn provable(facts: &Facts, policy: &Policy) -> bool {
    let old = |at: &crate::beneath::Stamp| policy.idle == 0 || NOW - at.seconds >= policy.idle;
    let placed = match &facts.standing.placement {
        Placement::Joined { .. } => facts.tree.answer().is_some_and(|t| {
            let samples = [
                &t.modified,
                &t.mode_only,
                &t.deleted,
                &t.untracked,
                &t.hidden,
                &t.needs_filter,
                &t.nested_repositories,
                &t.precious,
                &t.mounts,
            ];
            t.fingerprint.is_some()
                && samples.iter().all(|s| s.count == 0)
                && t.unreadable.is_empty()
                && t.nested_checkouts.is_empty()
                && t.undeletable.is_none()
                && t.submodules.iter().all(|s| s.state == SubmoduleState::Clean)
                && t.newest.as_ref().is_none_or(|(at, _)| old(at))
        }),
        Placement::Absent { proof: AbsenceProof::Proven(_), .. } => true,
        _ => false,
    };
    let head = facts.head.answer().is_some_and(|h| {
        h.tip.is_some() && h.branch.is_some() && h.operations.is_empty() && h.stray.is_empty()
    });
    let history = facts.history.answer().is_some_and(|h| {
        let waited = h.born.is_some_and(|at| NOW - at.seconds >= policy.unstarted_after);
        let started = h.has_own_commit || waited || policy.unstarted_after == 0;
        let landed = match h.landed {
            Landed::Ancestry { .. } => started,
            Landed::Content { .. } => true,
            Landed::No { .. } => false,
        };
        h.trunk.is_some() && landed
    });
    let index = facts
        .index
        .answer()
        .is_some_and(|i| i.staged.is_empty() && i.conflicted.is_empty() && i.intent_to_add.is_empty());
    let activity = facts.activity.answer().is_some_and(|a| match &a.last {
        Some((at, _)) => old(at),
        None => policy.idle == 0,
    });
    facts.standing.ownership.is_owned()
        && facts.standing.lock.as_ref().is_none_or(|l| l.by == LockedBy::Guard)
        && facts.standing.holds.is_empty()
        && facts.liveness.answer().is_some_and(Vec::is_empty)
        && facts.modules.iter().all(|m| m.state == SubmoduleState::Clean)
        && placed
        && head
        && history
        && index
        && activity
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_sweep_without_every_predicate(facts in any_facts(), policy in any_policy()) {
        let judgement = judge(&facts, &policy);
        let going = matches!(judgement.verdict, VerdictKind::Reclaim | VerdictKind::Forget);
        prop_assert_eq!(going, provable(&facts, &policy), "{:?}", judgement);
        let warrant = warrant(&facts, &policy, Mandate::Automatic, scope());
        prop_assert_eq!(warrant.is_ok(), going);
        if let Ok(warrant) = warrant {
            prop_assert_eq!(warrant.authority(), &Authority::Owned);
            let forgets = matches!(warrant.act(), Act::Forget { .. });
            prop_assert_eq!(forgets, judgement.verdict == VerdictKind::Forget);
        }
    }

    #[test]
    fn one_more_reason_never_makes_a_removal(
        facts in any_facts(),
        policy in any_policy(),
        mandate in any_mandate(),
        at in any::<prop::sample::Index>(),
    ) {
        let fitting: Vec<_> = OBJECTIONS.iter().filter(|o| o.fits(&facts)).collect();
        let mut more = facts.clone();
        let objection = at.get(&fitting);
        (objection.add)(&mut more);
        // A time that objects under one policy may be old enough under another; then nothing was added.
        prop_assume!(!reasons(objection.question, &more, &policy).is_empty());
        let before = judge(&facts, &policy);
        let after = judge(&more, &policy);
        if before.verdict == VerdictKind::Keep {
            prop_assert_eq!(after.verdict, VerdictKind::Keep);
        }
        if warrant(&facts, &policy, mandate, scope()).is_err() {
            prop_assert!(warrant(&more, &policy, mandate, scope()).is_err());
        }
    }

    #[test]
    fn force_overrides_its_list_and_nothing_else(facts in any_facts(), policy in any_policy()) {
        let judgement = judge(&facts, &policy);
        let Ok(warrant) = warrant(&facts, &policy, Mandate::Person { force: true }, scope()) else {
            return Ok(());
        };
        for reason in &judgement.reasons {
            let yields = reason.code.yields_to_force();
            // An offer's own reasons say why it is no more than an offer.
            let offer = matches!(reason.code, Code::Unowned | Code::AbsenceUnproven);
            prop_assert!(yields || judgement.verdict == VerdictKind::Offer && offer, "{}", reason);
        }
        if judgement.verdict == VerdictKind::Keep {
            prop_assert_eq!(warrant.authority(), &Authority::Person { overridden: judgement.reasons });
            let deletes = matches!(warrant.branch(), BranchFate::Delete { .. });
            prop_assert!(!deletes);
        }
    }

    #[test]
    fn a_branch_goes_only_if_it_is_owned_and_landed(
        facts in any_facts(),
        policy in any_policy(),
        mandate in any_mandate(),
    ) {
        if let Ok(warrant) = warrant(&facts, &policy, mandate, scope())
            && let BranchFate::Delete { expected, .. } = warrant.branch()
        {
            prop_assert!(facts.standing.ownership.is_owned());
            let landed = &facts.history.answer().unwrap().landed;
            let by_ancestry = matches!(landed, Landed::Ancestry { .. });
            prop_assert!(by_ancestry);
            prop_assert_eq!(Some(*expected), facts.head.answer().unwrap().tip);
        }
    }

    #[test]
    fn offers_are_what_they_say(facts in any_facts(), policy in any_policy()) {
        let judgement = judge(&facts, &policy);
        match judgement.class {
            Some(Class::Contained) => {
                let history = facts.history.answer().unwrap();
                prop_assert!(facts.standing.ownership.is_owned() && !history.containers.is_empty());
                let last = facts.activity.answer().unwrap().last.as_ref().unwrap().0;
                prop_assert!(NOW - last.seconds >= HOUR);
                prop_assert!(!judgement.pickable);
            }
            Some(Class::Orphan) => {
                let whole = matches!(facts.orphan_match, Some(OrphanMatch::Equal { .. }));
                let is_orphan = matches!(facts.subject, Subject::Orphan { .. });
                prop_assert!(whole && is_orphan);
            }
            Some(Class::Stale) => {
                let is_absent = matches!(facts.standing.placement, Placement::Absent { .. });
                prop_assert!(is_absent);
            }
            Some(Class::Unowned) => prop_assert!(!facts.standing.ownership.is_owned()),
            Some(Class::Resume) => prop_assert!(false, "the judge resumes nothing"),
            None => {}
        }
        prop_assert_eq!(judgement.class.is_some(), judgement.verdict == VerdictKind::Offer);
        let silent = judgement.reasons.is_empty();
        let going = matches!(judgement.verdict, VerdictKind::Reclaim | VerdictKind::Forget);
        prop_assert_eq!(silent, going);
    }

    #[test]
    fn what_is_held_stays(facts in any_facts(), policy in any_policy(), mandate in any_mandate()) {
        let mut facts = facts;
        let reasons = vec![Reason::new(Code::Dirty, "as if force could override it")];
        facts.standing.placement = Placement::Held { path: None, by: None, reasons };
        prop_assert_eq!(judge(&facts, &policy).verdict, VerdictKind::Keep);
        prop_assert!(warrant(&facts, &policy, mandate, scope()).is_err());
    }
}

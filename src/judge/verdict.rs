//! From reasons to a verdict, and from a verdict to a warrant.

use crate::judge::facts::{
    AbsenceProof, Facts, HistoryFacts, Landed, Ownership, Placement, Question, Subject,
};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::{self, CONTAINED_IDLE, Policy};
use crate::judge::warrant::{Act, Authority, BranchFate, Checkout, Entry, Scope, Warrant};
use crate::plan::{Class, VerdictKind};
use crate::vantage::paths::escape;

/// A verdict with everything that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: VerdictKind,
    pub class: Option<Class>,
    /// The first decides.
    pub reasons: Vec<Reason>,
    /// An offer that is landed, clean and idle, so that a picker may show it.
    pub pickable: bool,
}

/// Who asks for the removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mandate {
    /// Nobody in particular: recorded ownership has to answer for it.
    Automatic,
    /// A person who selected exactly this thing.
    Person { force: bool },
}

/// The next question that can still change the verdict; with `thorough` all are asked.
pub fn next(facts: &Facts, policy: &Policy, thorough: bool) -> Option<Question> {
    for question in Question::ALL.into_iter().filter(|q| applies(*q, facts)) {
        if !asked(question, facts) {
            return Some(question);
        }
        if !thorough && rules::reasons(question, facts, policy).iter().any(|r| !may_be_contained(r, facts)) {
            return None;
        }
    }
    None
}

fn asked(question: Question, facts: &Facts) -> bool {
    use crate::judge::facts::Asked::NotYet;
    match question {
        Question::Standing => true,
        Question::Liveness => facts.liveness != NotYet,
        Question::Head => facts.head != NotYet,
        Question::History => facts.history != NotYet,
        Question::Activity => facts.activity != NotYet,
        Question::Index => facts.index != NotYet,
        Question::Tree => facts.tree != NotYet,
    }
}

/// An orphan has no entry to ask, and an absent directory can't be walked. Of what is held, only a run that asks all
/// questions asks more; its files are not looked at, as nobody knows that they are its own.
fn applies(question: Question, facts: &Facts) -> bool {
    match (&facts.standing.placement, question) {
        (_, Question::Standing) => true,
        (Placement::Held { path, .. }, Question::Liveness) => path.is_some(),
        (Placement::Held { .. }, q) => {
            q != Question::Tree && matches!(facts.subject, Subject::Registered { id: Some(_), .. })
        }
        (Placement::Unregistered, q) if matches!(facts.subject, Subject::Trash { .. }) => {
            matches!(q, Question::Liveness | Question::Tree)
        }
        (Placement::Unregistered, q) => matches!(q, Question::Liveness | Question::Activity | Question::Tree),
        (Placement::Absent { .. }, q) => q != Question::Tree,
        (Placement::Joined { .. }, _) => true,
    }
}

/// Not landed, but owned and inside another live branch: the rest is asked, since it may be an offer.
fn may_be_contained(reason: &Reason, facts: &Facts) -> bool {
    reason.code == Code::NotLanded
        && facts.standing.ownership.is_owned()
        && matches!(facts.standing.placement, Placement::Joined { .. })
        && facts.history.answer().is_some_and(|h| !h.containers.is_empty())
}

/// The verdict on what is known.
pub fn judge(facts: &Facts, policy: &Policy) -> Judgement {
    let mut reasons: Vec<Reason> =
        Question::ALL.iter().flat_map(|q| rules::reasons(*q, facts, policy)).collect();
    if let [only] = reasons.as_slice()
        && may_be_contained(only, facts)
        && complete(facts)
    {
        if rules::idle_for(facts, policy, CONTAINED_IDLE) {
            return Judgement {
                verdict: VerdictKind::Offer,
                class: Some(Class::Contained),
                reasons,
                pickable: false,
            };
        }
        reasons.push(Reason::new(Code::RecentlyActive, "a contained worktree has to be idle for one hour"));
    }
    if reasons.is_empty() && !complete(facts) {
        reasons.push(Reason::new(Code::Unreadable, "not every question could be asked"));
    }
    if !reasons.is_empty() {
        return Judgement { verdict: VerdictKind::Keep, class: None, reasons, pickable: false };
    }
    free(facts)
}

/// Every question that applies has been answered.
fn complete(facts: &Facts) -> bool {
    let answered = Question::ALL.into_iter().filter(|q| applies(*q, facts)).all(|q| asked(q, facts));
    let held = matches!(facts.standing.placement, Placement::Held { .. });
    answered && !held
}

/// Nothing keeps it: what is to be done, and whether by itself.
fn free(facts: &Facts) -> Judgement {
    let offer = |class, reasons| Judgement {
        verdict: VerdictKind::Offer,
        class: Some(class),
        reasons,
        pickable: true,
    };
    let act = |verdict| Judgement { verdict, class: None, reasons: Vec::new(), pickable: false };
    let unowned = match &facts.standing.ownership {
        Ownership::Owned { .. } => None,
        Ownership::Unowned { why } => Some(Reason::new(Code::Unowned, why)),
    };
    match (&facts.standing.placement, unowned) {
        (Placement::Joined { .. }, None) => act(VerdictKind::Reclaim),
        (Placement::Joined { .. }, Some(unowned)) => offer(Class::Unowned, vec![unowned]),
        (Placement::Absent { proof: AbsenceProof::Proven(_), .. }, None) => act(VerdictKind::Forget),
        (Placement::Absent { proof, .. }, unowned) => {
            let weak = match proof {
                AbsenceProof::Proven(_) => None,
                AbsenceProof::Weak(why) => Some(Reason::new(Code::AbsenceUnproven, why)),
            };
            offer(Class::Stale, weak.into_iter().chain(unowned).collect())
        }
        (Placement::Unregistered, _) => {
            offer(Class::Orphan, vec![Reason::new(Code::Unowned, "its registration is gone")])
        }
        (Placement::Held { .. }, _) => Judgement {
            verdict: VerdictKind::Keep,
            class: None,
            reasons: vec![Reason::new(Code::Unreadable, "its place is not known")],
            pickable: false,
        },
    }
}

/// A warrant for what `facts` describe, if the mandate carries it; else why not.
///
/// The facts must be fresh and complete: the caller gathers them directly before acting, without any cache.
///
/// # Errors
/// The reasons that stand against it.
pub fn warrant(
    facts: &Facts,
    policy: &Policy,
    mandate: Mandate,
    scope: Scope,
) -> Result<Warrant, Vec<Reason>> {
    let judgement = judge(facts, policy);
    let authority = authority(&judgement, facts, mandate)?;
    let act = act(facts)?;
    let branch = branch_fate(facts, &authority);
    let mut anchors = facts.history.answer().map(|h| h.anchors.clone()).unwrap_or_default();
    // `drop --force` over unreachable commits: they are anchored first.
    anchors.extend(facts.head.answer().into_iter().flat_map(|h| h.stray.iter().map(|(_, commit)| *commit)));
    anchors.sort_unstable();
    anchors.dedup();
    Ok(Warrant::mint(scope, act, branch, authority, anchors))
}

/// Whether `mandate` carries the removal, and which reasons it overrides.
///
/// # Errors
/// The reasons that stand against it.
pub fn allowed(judgement: &Judgement, facts: &Facts, mandate: Mandate) -> Result<Vec<Reason>, Vec<Reason>> {
    match authority(judgement, facts, mandate)? {
        Authority::Owned => Ok(Vec::new()),
        Authority::Person { overridden } => Ok(overridden),
    }
}

fn authority(judgement: &Judgement, facts: &Facts, mandate: Mandate) -> Result<Authority, Vec<Reason>> {
    let refused = || Err(judgement.reasons.clone());
    match (mandate, judgement.verdict) {
        (Mandate::Automatic, VerdictKind::Reclaim | VerdictKind::Forget) => Ok(Authority::Owned),
        (Mandate::Automatic, _) => refused(),
        (Mandate::Person { .. }, VerdictKind::Reclaim | VerdictKind::Forget)
            if facts.standing.ownership.is_owned() =>
        {
            Ok(Authority::Owned)
        }
        (Mandate::Person { .. }, VerdictKind::Offer) if judgement.class != Some(Class::Contained) => {
            Ok(Authority::Person { overridden: Vec::new() })
        }
        // Trash of ours: a person's act completes what a crash cut short, and nothing else may stand against it.
        (Mandate::Person { .. }, VerdictKind::Keep)
            if matches!(facts.subject, Subject::Trash { .. })
                && complete(facts)
                && judgement.reasons.iter().all(|r| r.code == Code::Interrupted) =>
        {
            Ok(Authority::Person { overridden: judgement.reasons.clone() })
        }
        (Mandate::Person { force: true }, _)
            if complete(facts) && judgement.reasons.iter().all(|r| r.code.yields_to_force()) =>
        {
            Ok(Authority::Person { overridden: judgement.reasons.clone() })
        }
        (Mandate::Person { .. }, _) => refused(),
    }
}

fn act(facts: &Facts) -> Result<Act, Vec<Reason>> {
    let lacking = |what: &str| vec![Reason::new(Code::Unreadable, what)];
    let fingerprint = || {
        facts
            .tree
            .answer()
            .and_then(|t| t.fingerprint)
            .ok_or_else(|| lacking("the directory was not walked whole"))
    };
    match (&facts.standing.placement, &facts.subject) {
        (Placement::Joined { path, seen, .. }, _) => {
            let checkout = Checkout { path: path.clone(), seen: *seen, fingerprint: fingerprint()? };
            Ok(Act::Remove { checkout, entry: entry(facts)? })
        }
        (Placement::Absent { expected, .. }, _) => {
            Ok(Act::Forget { entry: entry(facts)?, absent: Some(expected.clone()) })
        }
        (
            Placement::Unregistered,
            Subject::Orphan { name, path, seen: Some(seen) }
            | Subject::Trash { name, path, seen: Some(seen) },
        ) => {
            let checkout = Checkout { path: path.clone(), seen: *seen, fingerprint: fingerprint()? };
            Ok(Act::RemoveOrphan { checkout, name: name.clone() })
        }
        _ => Err(lacking("its place is not known")),
    }
}

fn entry(facts: &Facts) -> Result<Entry, Vec<Reason>> {
    let (Subject::Registered { name, id: Some(id), recorded }, Some(fingerprint)) =
        (&facts.subject, facts.entry_fingerprint)
    else {
        return Err(vec![Reason::new(Code::Unreadable, "the administrative entry was not read whole")]);
    };
    let head = facts.head.answer();
    Ok(Entry {
        name: name.clone(),
        id: *id,
        recorded: recorded.clone(),
        fingerprint,
        branch: head.and_then(|h| h.branch.clone()),
        tip: head.and_then(|h| h.tip),
    })
}

/// An owned branch that the trunk contains by ancestry goes; every other one stays.
fn branch_fate(facts: &Facts, authority: &Authority) -> BranchFate {
    let Some(head) = facts.head.answer() else { return BranchFate::None };
    let Some(name) = head.branch.clone() else { return BranchFate::None };
    let keep = |why: String| BranchFate::Keep { name: name.clone(), why };
    let landed = facts.history.answer().map(|h: &HistoryFacts| &h.landed);
    match (authority, &facts.standing.ownership, landed, head.tip) {
        (Authority::Person { .. }, _, _, _) => keep("you chose its checkout, not its branch".to_owned()),
        (_, Ownership::Unowned { why }, _, _) => keep(why.clone()),
        _ if head.symbolic_branch => keep("it is a symbolic ref".to_owned()),
        (Authority::Owned, Ownership::Owned { .. }, Some(Landed::Ancestry { trunk_ref }), Some(expected)) => {
            BranchFate::Delete { name, expected, trunk: trunk_ref.clone() }
        }
        (_, _, Some(Landed::Content { trunk_ref }), _) => {
            keep(format!("only its content has landed in {}, not its commits", escape(trunk_ref)))
        }
        _ => keep("it has not landed".to_owned()),
    }
}

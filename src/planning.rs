//! From what was surveyed and judged to the plan.

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::Stamp;
use crate::engine::endpoints::Origin;
use crate::engine::world::World;
use crate::git::refs::short;
use crate::git::registration::{Head, Registration};
use crate::judge::explain::{explain, owned_by};
use crate::judge::facts::{Placement, Subject};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::Policy;
use crate::plan::{
    Branch, Class, ClonePlan, CommonDir, EngineRow, LocalPlace, Name, Path, Plan, Recorded, Row, SCHEMA,
    VerdictKind,
};
use crate::survey::examine::{Examined, branch_of};
use crate::survey::run::SurveyedClone;
use crate::survey::terrain::Terrain;
use crate::sweep::resume::Interrupted;
use crate::sweep::trash;
use crate::vantage::paths::{LocalPath, escape};

/// What the plan shows of removals that did not come to their end, for one clone.
#[derive(Debug, Default)]
pub struct Leftovers {
    /// In our own journal: the next run finishes them.
    pub interrupted: Vec<Interrupted>,
    /// Trash that no journal of ours knows.
    pub unknown: Vec<LocalPath>,
    pub warnings: Vec<String>,
}

/// Makes the plan. `leftovers` is asked for each clone by its number in the terrain. Explanations are long: only the rows
/// with the name `explained` have one.
pub fn plan(
    terrain: &Terrain,
    surveyed: &[SurveyedClone],
    world: &World,
    policy: &Policy,
    leftovers: &[Leftovers],
    explained: Option<&BStr>,
) -> Plan {
    let clones = surveyed
        .iter()
        .zip(leftovers)
        .map(|(clone, left)| clone_plan(terrain, clone, policy, left, explained));
    let warnings = terrain.field.warnings.iter().cloned();
    let mut plan = Plan {
        schema: SCHEMA,
        engines: world.engines.iter().map(engine_row).collect(),
        clones: clones.collect(),
        warnings: warnings.chain(world.warnings().iter().map(ToString::to_string)).collect(),
        ..Plan::default()
    };
    plan.total();
    plan
}

/// The row of one engine.
pub fn engine_row(engine: &crate::engine::client::Engine) -> EngineRow {
    EngineRow {
        name: engine.endpoint.name.clone(),
        endpoint: engine.endpoint.address.to_string(),
        state: engine.state.code().to_owned(),
        detail: (!engine.answered()).then(|| engine.state.to_string()),
        configured: engine.endpoint.origin == Origin::Configured,
    }
}

fn clone_plan(
    terrain: &Terrain,
    clone: &SurveyedClone,
    policy: &Policy,
    left: &Leftovers,
    explained: Option<&BStr>,
) -> ClonePlan {
    let site = &terrain.field.clones[clone.clone];
    let mut worktrees: Vec<Row> = clone
        .worktrees
        .iter()
        .filter(|e| !left.interrupted.iter().any(|i| is_of(i, e)))
        .map(|e| row(e, policy, explained))
        .collect();
    worktrees.extend(left.interrupted.iter().map(resumed));
    worktrees.extend(left.unknown.iter().map(unknown_trash));
    ClonePlan {
        path: Path::of(Some(site.dir.as_bstr())),
        common_dir: CommonDir::of(Some(site.common_path().as_bstr())),
        trunk: clone.trunk.clone(),
        worktrees,
        warnings: clone.warnings.iter().chain(&left.warnings).cloned().collect(),
    }
}

/// The interrupted removal is of this registration, which may still be there.
pub fn is_of(interrupted: &Interrupted, examined: &Examined) -> bool {
    matches!(&examined.facts.subject, Subject::Registered { name, .. } if name.as_bstr() == interrupted.name)
}

/// The row of one worktree.
fn row(examined: &Examined, policy: &Policy, explained: Option<&BStr>) -> Row {
    let (facts, judgement) = (&examined.facts, &examined.judgement);
    let (name, recorded): (&BStr, Option<&BStr>) = match &facts.subject {
        Subject::Registered { name, recorded, .. } => {
            (name.as_bstr(), recorded.as_ref().map(|r| r.as_bstr()))
        }
        Subject::Orphan { name, .. } | Subject::Trash { name, .. } => (name.as_bstr(), None),
    };
    let by = match &facts.standing.placement {
        Placement::Joined { by, .. } | Placement::Absent { by, .. } => Some(by),
        Placement::Held { by, .. } => by.as_ref(),
        Placement::Unregistered => None,
    };
    let head = facts.head.answer();
    // What ends the questions early needs no HEAD; a person still wants to know which branch it is.
    let entry = examined.registration.as_ref();
    let branch = match head {
        Some(head) => head.branch.as_ref().map(|b| short(b.as_bstr())),
        None => entry.and_then(branch_of),
    };
    let tip = head.and_then(|h| h.tip).or_else(|| entry.and_then(detached_at));
    let met = facts.tree.answer().and_then(|t| t.newest.as_ref()).map(|(at, _)| *at);
    let seen = facts.activity.answer().and_then(|a| a.last.as_ref()).map(|(at, _)| *at);
    let touched = entry.and_then(|e| e.touched);
    let goes = facts.tree.answer().filter(|_| judgement.verdict != VerdictKind::Keep);
    Row {
        name: Name::of(Some(name)),
        recorded_path: Recorded::of(recorded),
        path: LocalPlace::of(facts.path().map(LocalPath::as_bstr)),
        branch: Branch::of(branch),
        head: tip.map(|tip| tip.to_string()),
        owned: facts.standing.ownership.is_owned(),
        ownership: owned_by(&facts.standing.ownership),
        verdict: judgement.verdict,
        class: judgement.class,
        reasons: judgement.reasons.clone(),
        translation: by.map(|e| e.kind.as_str().to_owned()),
        translation_evidence: by.map(|e| e.text.clone()),
        bytes: goes.map(|t| t.size.freed),
        last_activity: seen.into_iter().chain(met).chain(touched).max().and_then(timestamp),
        pickable: judgement.pickable,
        explanation: if explained == Some(name) { explain(facts, policy) } else { Vec::new() },
    }
}

/// The commit of a HEAD that names no branch.
fn detached_at(registration: &Registration) -> Option<ObjectId> {
    match registration.head {
        Ok(Head::Detached(id)) => Some(id),
        _ => None,
    }
}

fn timestamp(stamp: Stamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::new(stamp.seconds, i32::try_from(stamp.nanos).ok()?).ok()
}

/// The row of a removal of ours that was interrupted: prune finishes it.
fn resumed(interrupted: &Interrupted) -> Row {
    let branch = interrupted.branch.as_ref().map(|b| short(b.as_bstr()));
    Row {
        name: Name::of(Some(interrupted.name.as_bstr())),
        path: LocalPlace::of(interrupted.path.as_ref().map(LocalPath::as_bstr)),
        branch: Branch::of(branch),
        verdict: VerdictKind::Reclaim,
        class: Some(Class::Resume),
        ownership: format!("removal {} had begun", interrupted.record),
        ..empty_row()
    }
}

/// The row of trash that our journal does not know: a person has to complete it.
fn unknown_trash(path: &LocalPath) -> Row {
    let file_name = path.file_name().unwrap_or_default();
    let entry = trash::parse(file_name).and_then(|t| t.entry);
    let name: BString = entry.map_or_else(|| file_name.to_owned(), |e| e.as_bstr().to_owned());
    let why = format!(
        "no journal knows this trash; `treesweep drop {}` completes its removal",
        escape(path.as_bstr())
    );
    Row {
        name: Name::of(Some(name.as_bstr())),
        path: LocalPlace::of(Some(path.as_bstr())),
        verdict: VerdictKind::Keep,
        reasons: vec![Reason::new(Code::Interrupted, why)],
        ownership: "no journal of this host".to_owned(),
        ..empty_row()
    }
}

fn empty_row() -> Row {
    Row {
        name: Name::default(),
        recorded_path: Recorded::default(),
        path: LocalPlace::default(),
        branch: Branch::default(),
        head: None,
        owned: false,
        ownership: String::new(),
        verdict: VerdictKind::Keep,
        class: None,
        reasons: Vec::new(),
        translation: None,
        translation_evidence: None,
        bytes: None,
        last_activity: None,
        pickable: false,
        explanation: Vec::new(),
    }
}

//! Examines all worktrees of all clones in scope, and one of them once more directly before it is acted on.

use std::collections::HashSet;

use bstr::{BStr, ByteSlice};
use rayon::prelude::*;

use crate::git::history::{Commits, Reach};
use crate::git::open::Unreadable;
use crate::git::registration::Registration;
use crate::judge::facts::{Facts, Placement, Subject};
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::Policy;
use crate::judge::verdict;
use crate::plan::VerdictKind;
use crate::report::progress::Event;
use crate::survey::discover::CloneSite;
use crate::survey::examine::{ClonePlace, Examined, Examiner, Finisher, HalfExamined, Inquiry};
use crate::survey::eyes::CloneEyes;
use crate::survey::ground::Ground;
use crate::survey::standing::Standings;
use crate::survey::terrain::Terrain;
use crate::vantage::paths::{EntryName, FileId, LocalPath, escape};

/// A clone's worktrees, examined.
#[derive(Debug)]
pub struct SurveyedClone {
    /// Its number in the terrain.
    pub clone: usize,
    pub trunk: Option<String>,
    /// Registrations in the order of their names, then orphans in the order of their paths.
    pub worktrees: Vec<Examined>,
    pub warnings: Vec<String>,
}

/// The identities of all checkouts that were found: a walk names them and does not enter them.
pub fn known_checkouts(terrain: &Terrain) -> HashSet<FileId> {
    terrain.field.checkouts.iter().map(|c| c.id).collect()
}

/// Where all clones are that were found.
pub fn clone_places(terrain: &Terrain) -> Vec<ClonePlace> {
    let place = |site: &CloneSite| ClonePlace { dir: site.dir.clone(), common: site.common_path().clone() };
    terrain.field.clones.iter().map(place).collect()
}

/// Examines every worktree of every clone in scope. Threads: those of the current rayon pool.
pub fn survey(terrain: &Terrain, inquiry: &Inquiry<'_>) -> Vec<SurveyedClone> {
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let strays = ground.strays();
    let in_scope = (0..sides.len()).filter(|c| sides[*c].site.in_scope);
    let mut clones: Vec<SurveyedClone> = in_scope
        .map(|c| {
            let orphans: Vec<usize> =
                strays.iter().filter(|(_, owner)| *owner == c).map(|(w, _)| *w).collect();
            survey_clone(terrain, &ground, c, &orphans, inquiry)
        })
        .collect();
    settle_nested(&mut clones, inquiry.policy);
    clones
}

fn survey_clone(
    terrain: &Terrain,
    ground: &Ground<'_>,
    c: usize,
    orphans: &[usize],
    inquiry: &Inquiry<'_>,
) -> SurveyedClone {
    let site = ground.sides[c].site;
    inquiry.progress.tell(Event::CloneFound);
    inquiry.progress.tell(Event::ToJudge((ground.sides[c].registrations.len() + orphans.len()) as u64));
    let mut warnings = Vec::new();
    if let Err(why) = &terrain.registrations[c] {
        warnings.push(format!("its registrations can't be read: {why}"));
    }
    let opened = CloneEyes::open(site, ground.roots, trunk_setting(inquiry));
    let broken = opened.iter().flat_map(|eyes| eyes.refs.broken());
    warnings.extend(broken.map(|(name, why)| format!("the ref {} is broken: {why}", escape(name))));
    let halves = match &opened {
        Ok(eyes) => begin_all(ground, c, orphans, eyes, inquiry),
        Err(why) => Err(why.clone()),
    };
    let finisher = Finisher { site, inquiry };
    let worktrees = match halves {
        Ok(halves) => halves.into_par_iter().map(|half| finisher.finish(half)).collect(),
        Err(why) => {
            warnings.push(format!("this clone can't be read: {why}"));
            unreadable_clone(ground, c, orphans, &why, inquiry)
        }
    };
    let trunk = opened.ok().and_then(|eyes| eyes.trunk).map(|t| t.name);
    SurveyedClone { clone: c, trunk, worktrees, warnings }
}

fn begin_all(
    ground: &Ground<'_>,
    c: usize,
    orphans: &[usize],
    eyes: &CloneEyes,
    inquiry: &Inquiry<'_>,
) -> Result<Vec<HalfExamined>, Unreadable> {
    let registrations = ground.sides[c].registrations;
    let commits = Commits::of(&eyes.repo, inquiry.depth, inquiry.history_time())?;
    let history = eyes.paint(&commits, registrations);
    let mut reach = Reach::new(&commits, eyes.refs.holders());
    let standings = Standings::new(ground, c, Some(eyes), inquiry);
    let examiner =
        Examiner { site: ground.sides[c].site, eyes, history: &history, standings: &standings, inquiry };
    let begun =
        registrations.iter().enumerate().map(|(r, registration)| examiner.begin(r, registration, &mut reach));
    let mut halves: Vec<HalfExamined> = begun.collect();
    halves.extend(orphans.iter().map(|w| examiner.begin_orphan(*w)));
    Ok(halves)
}

/// What can be said of a clone that can't be opened: where its worktrees are, and that they are kept.
fn unreadable_clone(
    ground: &Ground<'_>,
    c: usize,
    orphans: &[usize],
    why: &Unreadable,
    inquiry: &Inquiry<'_>,
) -> Vec<Examined> {
    let standings = Standings::new(ground, c, None, inquiry);
    let registrations = ground.sides[c].registrations.iter().enumerate();
    let mut all: Vec<(Option<Registration>, Facts)> = registrations
        .map(|(r, registration)| {
            let subject = Subject::Registered {
                name: registration.name.clone(),
                id: registration.id,
                recorded: registration.recorded.clone().ok(),
            };
            (Some(registration.clone()), Facts::new(subject, standings.of_registration(r).0))
        })
        .collect();
    all.extend(orphans.iter().map(|w| (None, standings.of_orphan(*w))));
    all.into_iter()
        .map(|(registration, mut facts)| {
            let path = facts.path().cloned();
            let mut reasons = match &facts.standing.placement {
                Placement::Held { reasons, .. } => reasons.clone(),
                _ => Vec::new(),
            };
            reasons.push(Reason::new(Code::Unreadable, &why.0));
            facts.standing.placement = Placement::Held { path, by: None, reasons };
            let judgement = verdict::judge(&facts, inquiry.policy);
            Examined { registration, facts, judgement }
        })
        .collect()
}

/// The trunk that the user names.
pub fn trunk_setting<'a>(inquiry: &Inquiry<'a>) -> Option<&'a BStr> {
    inquiry.settings.trunk.as_ref().map(|t| t.value.as_bstr())
}

/// Judges from the deepest checkout upwards: a parent may go if everything in it goes before.
fn settle_nested(clones: &mut [SurveyedClone], policy: &Policy) {
    let mut all: Vec<&mut Examined> = clones.iter_mut().flat_map(|c| &mut c.worktrees).collect();
    all.sort_by_key(|e| std::cmp::Reverse(depth(e.facts.path())));
    let mut policy = policy.clone();
    for examined in all {
        if examined.facts.tree.answer().is_some_and(|t| !t.nested_checkouts.is_empty()) {
            examined.judgement = verdict::judge(&examined.facts, &policy);
        }
        if examined.judgement.verdict == VerdictKind::Reclaim {
            policy.going.extend(examined.facts.path().cloned());
        }
    }
}

/// For sorting bottom-up: how deep a path lies.
pub fn depth(path: Option<&LocalPath>) -> usize {
    path.map_or(0, |p| p.components().count())
}

/// One thing of a clone, named for looking at it once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Candidate {
    Registered(EntryName),
    Orphan(LocalPath),
    /// Bears a trash name, and no journal of ours knows it.
    Trash(LocalPath),
}

/// Looks at one candidate of clone `c` once more, on a terrain that has been [looked at again](Terrain::look_again) for
/// it. The inquiry must be fresh, and asks the whole comparison.
///
/// # Errors
/// The clone or the candidate can't be read any more.
pub fn examine_again(
    terrain: &Terrain,
    c: usize,
    candidate: &Candidate,
    inquiry: &Inquiry<'_>,
) -> Result<Examined, Unreadable> {
    let gone = || Unreadable::new("it is not there any more");
    terrain.registrations[c].as_ref().map_err(Clone::clone)?;
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let site = sides[c].site;
    let eyes = CloneEyes::open(site, ground.roots, trunk_setting(inquiry))?;
    let commits = Commits::of(&eyes.repo, inquiry.depth, inquiry.history_time())?;
    let standings = Standings::new(&ground, c, Some(&eyes), inquiry);
    let examiner = |history| Examiner { site, eyes: &eyes, history, standings: &standings, inquiry };
    let half = match candidate {
        Candidate::Registered(name) => {
            let r = sides[c].registrations.iter().position(|r| r.name == *name).ok_or_else(gone)?;
            let registration = &sides[c].registrations[r];
            let mut reach = Reach::new(&commits, eyes.refs.holders());
            let history = eyes.paint_one(&commits, registration);
            examiner(&history).begin(r, registration, &mut reach)
        }
        Candidate::Orphan(path) => {
            let is_it = |(w, o): &&(usize, usize)| *o == c && terrain.field.checkouts[*w].path == *path;
            let (w, _) = ground.strays().iter().find(is_it).ok_or_else(gone)?;
            examiner(&eyes.unpainted(&commits)).begin_unregistered(standings.of_orphan(*w))
        }
        Candidate::Trash(path) => {
            examiner(&eyes.unpainted(&commits)).begin_unregistered(standings.of_trash(path))
        }
    };
    Ok(Finisher { site, inquiry }.finish(half))
}

//! `treesweep setup`: enrols what a person names.

use serde::Serialize;

use crate::beneath::Dir;
use crate::cli::args::{Invocation, Setup};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::select::{Answers, select};
use crate::judge::explain::owned_by;
use crate::judge::facts::Placement;
use crate::lifecycle::enrol::enrol;
use crate::plan::{LocalPlace, Name, SCHEMA};
use crate::session::{Session, SessionError};
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::survey::examine::Inquiry;
use crate::survey::eyes::CloneEyes;
use crate::survey::ground::Ground;
use crate::survey::run::{clone_places, known_checkouts, trunk_setting};
use crate::survey::standing::Standings;
use crate::sweep::lock::{CloneLock, PATIENCE};
use crate::vantage::paths::{LocalPath, escape};

/// One worktree that was enrolled.
#[derive(Debug, Serialize)]
struct Enrolled {
    #[serde(flatten)]
    name: Name,
    #[serde(flatten)]
    path: LocalPlace,
    /// The branch matches a template too, so that `prune` may reclaim it once it has landed.
    owned: bool,
    ownership: String,
}

#[derive(Debug, Serialize)]
struct Document {
    schema: u32,
    enrolled: Vec<Enrolled>,
}

/// Runs `setup`.
pub fn run(invocation: &Invocation, setup: &Setup, output: &mut Output) -> Result<Exit, SessionError> {
    let named: Vec<std::path::PathBuf> = match setup {
        Setup::Exactly(subjects) => subjects.iter().map(|s| s.local.clone()).collect(),
        Setup::Matching(_) => Vec::new(),
    };
    if let Setup::Matching(_) = setup
        && output.asker().is_none()
    {
        return Ok(output
            .complain("--matching needs a person at a terminal; name each worktree instead", Exit::Usage));
    }
    let session = Session::begin(invocation, &named)?;
    let state = StateDir::open(&StateDir::default_path()?)?;
    let (world, terrain) = session.see()?;
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let (chosen, mut exit) = choose(&ground, setup, output);
    let (policy, known, clones) = (session.policy(), known_checkouts(&terrain), clone_places(&terrain));
    let inquiry = session.inquiry(&world, Some(&state), &policy, &known, &clones);
    let mut enrolled = Vec::new();
    for (c, r) in chosen {
        match one(&state, &ground, &inquiry, c, r) {
            Ok(row) => enrolled.push(row),
            Err(why) => exit = exit.and(output.complain(&why, Exit::Failed)),
        }
    }
    exit = exit.and(match invocation.json {
        true => output.json(&Document { schema: SCHEMA, enrolled }),
        false => enrolled.iter().map(|row| output.line(&sentence(row))).collect(),
    });
    Ok(exit)
}

/// Every registration, with what it answers to and where it is.
type Choice = (usize, usize);

fn choose(ground: &Ground<'_>, setup: &Setup, output: &mut Output) -> (Vec<Choice>, Exit) {
    let mut all: Vec<Answers<'_, Choice>> = Vec::new();
    for (c, side) in ground.sides.iter().enumerate().filter(|(_, side)| side.site.in_scope) {
        for (r, registration) in side.registrations.iter().enumerate() {
            all.push(Answers {
                name: registration.name.as_bstr(),
                recorded: registration.recorded.as_ref().ok().map(|p| p.as_bstr()),
                path: ground.joins.joined.get(&(c, r)).map(|pair| &ground.checkouts[pair.checkout].path),
                clone: &side.site.dir,
                which: (c, r),
            });
        }
    }
    match setup {
        Setup::Exactly(subjects) => {
            let mut exit = Exit::Done;
            let mut chosen = Vec::new();
            for subject in subjects {
                match select(subject, &all) {
                    Ok(choice) => chosen.push(choice),
                    Err(why) => exit = exit.and(output.complain(&why.to_string(), Exit::Usage)),
                }
            }
            chosen.dedup();
            (chosen, exit)
        }
        Setup::Matching(pattern) => {
            let matching: Vec<_> =
                all.iter().filter(|a| a.path.is_some() && pattern.is_match(a.name)).collect();
            if matching.is_empty() {
                return (
                    Vec::new(),
                    output.complain(
                        &format!("no worktree's name matches {}", escape(pattern.as_str().as_bytes())),
                        Exit::Usage,
                    ),
                );
            }
            let names: Vec<String> = matching.iter().map(|a| escape(a.name)).collect();
            match output.confirm(&format!("Enrol {}?", names.join(", "))) {
                Ok(true) => (matching.iter().map(|a| a.which).collect(), Exit::Done),
                Ok(false) => (Vec::new(), Exit::Done),
                Err(error) => (Vec::new(), output.complain(&error.to_string(), Exit::Failed)),
            }
        }
    }
}

fn one(
    state: &StateDir,
    ground: &Ground<'_>,
    inquiry: &Inquiry<'_>,
    c: usize,
    r: usize,
) -> Result<Enrolled, String> {
    let site = ground.sides[c].site;
    let registration = &ground.sides[c].registrations[r];
    let name = &registration.name;
    let path = joined(ground, c, r).map_err(|why| format!("{name} can't be enrolled: {why}"))?;
    let common = Dir::open(site.common_path()).map_err(|e| format!("{}: {e}", site.common_path()))?;
    let _lock = CloneLock::acquire(&common, PATIENCE, &Stop::never()).map_err(|e| e.to_string())?;
    enrol(state, site, registration, &path).map_err(|e| format!("{name} could not be enrolled: {e}"))?;
    // The one predicate, asked once more now that the marker is there.
    let eyes = CloneEyes::open(site, ground.roots, trunk_setting(inquiry)).ok();
    let ownership = Standings::new(ground, c, eyes.as_ref(), inquiry).of_registration(r).0.ownership;
    Ok(Enrolled {
        name: Name::of(Some(name.as_bstr())),
        path: LocalPlace::of(Some(path.as_bstr())),
        owned: ownership.is_owned(),
        ownership: owned_by(&ownership),
    })
}

/// Only a registration and a checkout that name each other are enrolled.
fn joined(ground: &Ground<'_>, c: usize, r: usize) -> Result<LocalPath, String> {
    match ground.place(c, r) {
        Placement::Joined { path, .. } => Ok(path),
        Placement::Absent { expected, .. } => Err(format!("{expected} is not there")),
        Placement::Held { reasons, .. } => {
            Err(reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
        Placement::Unregistered => Err("it is not registered".to_owned()),
    }
}

fn sentence(row: &Enrolled) -> String {
    let name = escape(row.name.text.as_deref().unwrap_or_default().as_bytes());
    match row.owned {
        true => format!("{name} is enrolled and owned: prune may take it once its work has landed"),
        false => format!("{name} is enrolled, and not owned: {}", row.ownership),
    }
}

//! `treesweep drop`: removes exactly what a person selected. Ownership is not asked, every safety predicate holds.

use std::fmt::Write;

use crate::beneath;
use crate::cli::args::{Drop, Invocation};
use crate::cli::exit::Exit;
use crate::cli::outcomes;
use crate::cli::output::Output;
use crate::cli::prune::picked;
use crate::cli::run::{engines, view};
use crate::cli::select::{Answers, select};
use crate::engine::world::World;
use crate::git::index::Depth;
use crate::judge::facts::Facts;
use crate::judge::reason::Reason;
use crate::judge::verdict::{self, Mandate};
use crate::plan::{Plan, ResultKind};
use crate::planning;
use crate::reclaim::{Expected, Order, merge, reclaim, report, row};
use crate::report::count;
use crate::report::progress::Event;
use crate::report::prompt::name_is_typed;
use crate::session::{Session, SessionError};
use crate::state_dir::StateDir;
use crate::survey::examine::{Examined, Inquiry};
use crate::survey::lost::{Lost, lost};
use crate::survey::run::{Candidate, clone_places, examine_again, known_checkouts};
use crate::survey::terrain::Terrain;
use crate::vantage::paths::escape;

/// Runs `drop`.
pub fn run(invocation: &Invocation, drop: &Drop, output: &mut Output) -> Result<Exit, SessionError> {
    if output.asker().is_none() && (drop.worktrees.is_empty() || drop.force && !drop.yes) {
        let why = match drop.worktrees.is_empty() {
            true => "there is no terminal to choose at; name each worktree",
            false => "--force asks for the name at a terminal; without one it takes --yes too",
        };
        return Ok(output.complain(why, Exit::Usage));
    }
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be removed safely here: {why}"), Exit::Unsupported));
    }
    let subjects: Vec<_> = drop.worktrees.iter().map(|s| s.local.clone()).collect();
    let session = Session::begin(invocation, &subjects)?;
    let state = StateDir::open(&StateDir::default_path()?)?;
    if drop.worktrees.is_empty() {
        return by_picker(invocation, &session, &state, output);
    }
    let (world, mut terrain) = session.see()?;
    let mut exit = Exit::Done;
    let mut orders = Vec::new();
    for candidate in chosen(&terrain, drop, output, &mut exit) {
        let looked = look(&session, &state, &world, &mut terrain, &candidate);
        match looked.and_then(|(examined, lost)| agreed(&examined, lost, &candidate.1, drop, output)) {
            Ok(Some(order)) => merge(&mut orders, vec![(candidate.0, vec![order])]),
            Ok(None) => {}
            Err(why) => {
                let name = shown(&candidate.1);
                exit = exit.and(output.complain(&format!("{name} stays: {why}"), Exit::Failed));
            }
        }
    }
    let plan = Plan { engines: world.engines.iter().map(planning::engine_row).collect(), ..Plan::empty() };
    exit = exit.and(engines(&plan));
    if orders.is_empty() {
        return Ok(exit);
    }
    exit = exit.and(act(invocation, &session, &mut terrain, &state, orders, plan, output));
    Ok(exit)
}

fn by_picker(
    invocation: &Invocation,
    session: &Session,
    state: &StateDir,
    output: &mut Output,
) -> Result<Exit, SessionError> {
    let progress = output.progress();
    let mut seen = session.look(Some(state), None, &*progress)?;
    progress.tell(Event::Pause);
    let orders = picked(&seen, output);
    let plan = seen.plan.clone();
    if orders.is_empty() {
        return Ok(output.aside("nothing was chosen\n").and(engines(&plan)));
    }
    Ok(engines(&plan).and(act(invocation, session, &mut seen.terrain, state, orders, plan, output)))
}

fn act(
    invocation: &Invocation,
    session: &Session,
    terrain: &mut Terrain,
    state: &StateDir,
    orders: Vec<(usize, Vec<Order>)>,
    plan: Plan,
    output: &Output,
) -> Exit {
    let progress = output.progress();
    progress.tell(Event::Removing { bytes: 0 });
    let done = reclaim(session, terrain, state, orders, &*progress);
    progress.tell(Event::Pause);
    // A person who named a thing and still has it has to hear of it, in a script too.
    let left = done.outcomes.iter().map(row).any(|o| o.result == ResultKind::Skipped);
    let shown = outcomes::show(
        &report(plan, &done),
        &done,
        invocation.json,
        invocation.quiet,
        &view(invocation, output),
        output,
    );
    if left { shown.and(Exit::Failed) } else { shown }
}

/// The exact thing that each argument names.
fn chosen(terrain: &Terrain, drop: &Drop, output: &Output, exit: &mut Exit) -> Vec<(usize, Candidate)> {
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let mut all: Vec<Answers<'_, usize>> = Vec::new();
    let mut candidates: Vec<(usize, Candidate)> = Vec::new();
    for (c, side) in sides.iter().enumerate().filter(|(_, side)| side.site.in_scope) {
        for (r, registration) in side.registrations.iter().enumerate() {
            all.push(Answers {
                name: registration.name.as_bstr(),
                recorded: registration.recorded.as_ref().ok().map(|p| p.as_bstr()),
                path: joins.joined.get(&(c, r)).map(|pair| &terrain.field.checkouts[pair.checkout].path),
                clone: &side.site.dir,
                which: candidates.len(),
            });
            candidates.push((c, Candidate::Registered(registration.name.clone())));
        }
    }
    for &(w, c) in ground.strays().iter().filter(|(_, c)| sides[*c].site.in_scope) {
        let checkout = &terrain.field.checkouts[w];
        let Some((_, name)) = &checkout.pointer.entry else { continue };
        all.push(Answers {
            name: name.as_bstr(),
            recorded: None,
            path: Some(&checkout.path),
            clone: &sides[c].site.dir,
            which: candidates.len(),
        });
        candidates.push((c, Candidate::Orphan(checkout.path.clone())));
    }
    for trash in &terrain.field.trash {
        let Some(c) = terrain.nearest_clone(trash) else { continue };
        all.push(Answers {
            name: trash.file_name().unwrap_or_default(),
            recorded: None,
            path: Some(trash),
            clone: &sides[c].site.dir,
            which: candidates.len(),
        });
        candidates.push((c, Candidate::Trash(trash.clone())));
    }
    let mut found = Vec::new();
    for subject in &drop.worktrees {
        match select(subject, &all) {
            Ok(which) => found.push(candidates[which].clone()),
            Err(why) => *exit = exit.and(output.complain(&why.to_string(), Exit::Usage)),
        }
    }
    found
}

/// Asks every question of the one thing, and lists what only it has.
fn look(
    session: &Session,
    state: &StateDir,
    world: &World,
    terrain: &mut Terrain,
    (c, candidate): &(usize, Candidate),
) -> Result<(Examined, Result<Lost, String>), String> {
    session.look_again(terrain, *c, candidate, world);
    let (policy, known, clones) = (session.policy(), known_checkouts(terrain), clone_places(terrain));
    let inquiry = Inquiry {
        depth: Depth::BeforeRemoval,
        thorough: true,
        ..session.inquiry(world, Some(state), &policy, &known, &clones)
    };
    let examined = examine_again(terrain, *c, candidate, &inquiry).map_err(|why| why.0)?;
    let lost = lost(&examined.facts, &terrain.field.clones[*c], &inquiry).map_err(|why| why.0);
    Ok((examined, lost))
}

/// The order, if the judge allows it and, where work would be lost, the person does.
fn agreed(
    examined: &Examined,
    lost: Result<Lost, String>,
    candidate: &Candidate,
    drop: &Drop,
    output: &mut Output,
) -> Result<Option<Order>, String> {
    let mandate = Mandate::Person { force: drop.force };
    let overridden =
        verdict::allowed(&examined.judgement, &examined.facts, mandate).map_err(|r| against(&r, drop))?;
    let losing = overridden.iter().any(|r| r.code.yields_to_force());
    if losing {
        // What can't be listed can't be agreed to.
        let lost = lost?;
        output.aside(&losses(&examined.facts, candidate, &overridden, &lost));
        let typed = drop.yes
            || match output.asker() {
                Some(asker) => name_is_typed(asker, &name(candidate)).map_err(|e| e.to_string())?,
                None => false,
            };
        if !typed {
            output.aside(&format!("{} stays: its name was not typed\n", shown(candidate)));
            return Ok(None);
        }
        let expected = Expected::to_the_byte(&examined.facts);
        return Ok(Some(Order { expected, ..Order::of(examined, mandate) }));
    }
    Ok(Some(Order::of(examined, mandate)))
}

fn against(reasons: &[Reason], drop: &Drop) -> String {
    let mut text = reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    let forcible = !drop.force && !reasons.is_empty() && reasons.iter().all(|r| r.code.yields_to_force());
    if forcible {
        text.push_str(" (--force shows what would be lost, and asks)");
    }
    text
}

/// What goes for good, path by path and commit by commit.
fn losses(facts: &Facts, candidate: &Candidate, overridden: &[Reason], lost: &Lost) -> String {
    let mut text = format!("Removing {} overrides:\n", shown(candidate));
    let mut line = |indent: &str, words: String| {
        // Writing into a string can't fail.
        let _ = writeln!(text, "{indent}{words}");
    };
    overridden.iter().for_each(|reason| line("  ", reason.to_string()));
    if !lost.paths.is_empty() {
        line("", format!("It would lose {}:", count(lost.paths.len() as u64, "path")));
        lost.paths.iter().for_each(|(path, what)| line("  ", format!("{} ({what})", escape(path))));
    }
    for (holder, commit) in &lost.commits {
        line(
            "",
            format!(
                "Commit {commit} of {} is kept below refs/treesweep/retired for 90 days.",
                escape(holder)
            ),
        );
    }
    if let Some((branch, tip)) = &lost.branch {
        line("", format!("Branch {} stays at {tip}.", escape(branch)));
    }
    if let Some(path) = facts.path() {
        line("", format!("The directory is {path}."));
    }
    text
}

fn name(candidate: &Candidate) -> Vec<u8> {
    match candidate {
        Candidate::Registered(name) => name.as_bstr().to_vec(),
        Candidate::Orphan(path) | Candidate::Trash(path) => path.file_name().unwrap_or_default().to_vec(),
    }
}

fn shown(candidate: &Candidate) -> String {
    match candidate {
        Candidate::Registered(name) => name.to_string(),
        Candidate::Orphan(path) | Candidate::Trash(path) => path.to_string(),
    }
}

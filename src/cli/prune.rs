//! `treesweep prune`: the plan, one question, and then the sweep.

use std::path::Path;
use std::time::Instant;

use crate::beneath;
use crate::cli::args::{Invocation, Prune};
use crate::cli::exit::Exit;
use crate::cli::min_free::Goal;
use crate::cli::output::Output;
use crate::cli::run::{engines, exit_of, view};
use crate::cli::{metrics, min_free, outcomes};
use crate::config::amount::Amount;
use crate::judge::facts::Subject;
use crate::judge::verdict::Mandate;
use crate::plan::{Class, Plan, Report, Row, SpaceRow};
use crate::reclaim::{Order, Orders, Reclaimed, automatic, merge, reclaim, report as report_of};
use crate::report::metrics::{Run, render as page};
use crate::report::plan as plan_report;
use crate::report::progress::{Bars, Event, Progress};
use crate::report::prompt::choose;
use crate::report::space;
use crate::session::{Seen, Session, SessionError};
use crate::state_dir::StateDir;
use crate::survey::examine::Examined;
use crate::survey::space::{FileSystem, file_systems};
use crate::vantage::paths::{LocalPath, escape};

/// Runs `prune`, and writes the metrics of it whatever came of it.
pub fn run(invocation: &Invocation, prune: &Prune, output: &mut Output) -> Result<Exit, SessionError> {
    let begun = Instant::now();
    let mut report = None;
    let done = perform(invocation, prune, output, &mut report);
    let Some(file) = &prune.metrics else { return done };
    let exit = match &done {
        Ok(exit) => *exit,
        Err(error) => exit_of(error),
    };
    let seconds = begun.elapsed().as_secs_f64();
    let run = Run { ended: jiff::Timestamp::now(), seconds, exit_code: exit.code() };
    match metrics::write(file, &page(&run, report.as_ref())) {
        Ok(()) => done,
        Err(error) => {
            let file = escape(file.as_os_str().as_encoded_bytes());
            let exit =
                output.complain(&format!("{file}: the metrics could not be written: {error}"), Exit::Failed);
            done.map(|done| done.and(exit))
        }
    }
}

/// `report` is what is known at the end, for the metrics.
fn perform(
    invocation: &Invocation,
    prune: &Prune,
    output: &mut Output,
    report: &mut Option<Report>,
) -> Result<Exit, SessionError> {
    if !prune.yes && output.asker().is_none() {
        let why =
            "there is no terminal to ask at; --yes sweeps without a question, `treesweep plan` only looks";
        return Ok(output.complain(why, Exit::Usage));
    }
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be swept safely here: {why}"), Exit::Unsupported));
    }
    let mut session = Session::begin(invocation, &prune.orphans)?;
    if let Some(age) = prune.older_than {
        session.settings.idle.value = session.settings.idle.value.max(age);
    }
    let (systems, mut exit) = systems(&session, prune, output);
    let progress = output.progress();
    let state = StateDir::open(&StateDir::default_path()?)?;
    let mut seen = session.look(Some(&state), None, &*progress)?;
    progress.tell(Event::Pause);
    let plan = seen.plan.clone();
    let view = view(invocation, output);
    exit = exit.and(engines(&plan));
    if !invocation.quiet {
        exit = exit.and(output.aside(&plan_report::warnings(&plan, &view)));
    }
    if !invocation.json && !invocation.quiet {
        exit = exit.and(output.text(&plan_report::before_acting(&plan, &view)));
    }
    let orders = match named(&seen, prune) {
        Ok(orders) => orders,
        Err(why) => return Ok(output.complain(&why, Exit::Usage)),
    };
    let (done, wanted) = match prune.min_free {
        Some(wanted) => {
            let goal = Goal { systems: &systems, wanted };
            until_free(&session, &mut seen, &state, &goal, prune.yes, output, &*progress)
        }
        None => (all_that_may(&session, &mut seen, &state, orders, prune.yes, output, &*progress), None),
    };
    let mut all = report_of(plan, &done);
    let lacking = min_free::measure(&session, &seen, &systems, wanted, &mut all);
    exit = exit.and(outcomes::show(&all, &done, invocation.json, invocation.quiet, &view, output));
    if wanted.is_some() && !invocation.json && !invocation.quiet {
        exit = exit.and(output.text(&space::free(&all.space, &view)));
    }
    exit = lacking.iter().fold(exit, |exit, lack| exit.and(output.complain(lack, Exit::Failed)));
    if !all.space.iter().all(SpaceRow::is_enough) && !invocation.json {
        exit = exit.and(output.text(&space::held(&all.holders, &all.space)));
    }
    *report = Some(all);
    Ok(exit)
}

/// Asks what has to be asked, and removes what is named, automatic or picked.
fn all_that_may(
    session: &Session,
    seen: &mut Seen,
    state: &StateDir,
    mut orders: Orders,
    yes: bool,
    output: &mut Output,
    progress: &dyn Progress,
) -> Reclaimed {
    if yes || agreed(&seen.plan, None, output) == Some(true) {
        merge(&mut orders, automatic(seen));
    }
    if !yes {
        merge(&mut orders, picked(seen, output));
    }
    carry_out(session, seen, state, orders, progress)
}

/// Removes until so much is free. The answer has no amount if a person said no: then nothing is lacking.
fn until_free(
    session: &Session,
    seen: &mut Seen,
    state: &StateDir,
    goal: &Goal<'_>,
    yes: bool,
    output: &mut Output,
    progress: &dyn Progress,
) -> (Reclaimed, Option<Amount>) {
    let wanted = Some(goal.wanted);
    if goal.is_met() {
        return (Reclaimed::default(), wanted);
    }
    if !yes && agreed(&seen.plan, wanted, output) == Some(false) {
        return (Reclaimed::default(), None);
    }
    (goal.sweep(session, seen, state, progress), wanted)
}

/// The file systems of the roots. One that can't be measured is a failure only where its space is asked for.
fn systems(session: &Session, prune: &Prune, output: &Output) -> (Vec<FileSystem>, Exit) {
    let mut exit = Exit::Done;
    let mut systems = Vec::new();
    for system in file_systems(&session.roots) {
        match system {
            Ok(system) => systems.push(system),
            Err((root, why)) if prune.min_free.is_some() => {
                let why = format!("{root}: its free space can't be read: {why}");
                exit = exit.and(output.complain(&why, Exit::Failed));
            }
            Err(_) => {}
        }
    }
    (systems, exit)
}

/// What `prune --yes` does without options, for a launch.
pub fn without_asking(session: &Session) -> Result<(Plan, Reclaimed), SessionError> {
    let progress = Bars::new();
    let state = StateDir::open(&StateDir::default_path()?)?;
    let mut seen = session.look(Some(&state), None, &progress)?;
    progress.tell(Event::Pause);
    let orders = automatic(&seen);
    let done = carry_out(session, &mut seen, &state, orders, &progress);
    Ok((seen.plan, done))
}

fn carry_out(
    session: &Session,
    seen: &mut Seen,
    state: &StateDir,
    orders: Orders,
    progress: &dyn Progress,
) -> Reclaimed {
    if orders.is_empty() {
        return Reclaimed::default();
    }
    progress.tell(Event::Removing { bytes: seen.plan.totals.bytes });
    let done = reclaim(session, &mut seen.terrain, state, orders, progress);
    progress.tell(Event::Pause);
    done
}

/// The answer to the one question; none if there is nothing to do.
fn agreed(plan: &Plan, wanted: Option<Amount>, output: &mut Output) -> Option<bool> {
    let question = plan_report::question(&plan.totals)?;
    let question = match wanted {
        None => question,
        Some(wanted) => {
            let what = question.trim_end_matches('?');
            format!("{what}, the largest first, until {wanted} are free?")
        }
    };
    Some(output.confirm(&question).unwrap_or(false))
}

/// `--stale` and `--orphan`: each names exactly one thing that the plan offers.
fn named(seen: &Seen, prune: &Prune) -> Result<Orders, String> {
    let mut orders = Orders::new();
    for name in &prune.stale {
        let is_it =
            |e: &Examined| matches!(&e.facts.subject, Subject::Registered { name: n, .. } if n == name);
        merge(&mut orders, one(seen, Class::Stale, &name.to_string(), &is_it)?);
    }
    for typed in &prune.orphans {
        let path = canonical(typed);
        let is_it = |e: &Examined| matches!(&e.facts.subject, Subject::Orphan { path: p, .. } if Some(p) == path.as_ref());
        let shown = escape(typed.as_os_str().as_encoded_bytes());
        merge(&mut orders, one(seen, Class::Orphan, &shown, &is_it)?);
    }
    Ok(orders)
}

fn canonical(path: &Path) -> Option<LocalPath> {
    path.canonicalize().ok().and_then(LocalPath::new)
}

fn one(seen: &Seen, class: Class, shown: &str, is_it: &dyn Fn(&Examined) -> bool) -> Result<Orders, String> {
    let all = seen.clones.iter().flat_map(|c| c.worktrees.iter().map(move |e| (c.clone, e)));
    let found: Vec<_> = all.filter(|(_, e)| is_it(e)).collect();
    let offered: Vec<_> = found.iter().filter(|(_, e)| e.judgement.class == Some(class)).collect();
    match (offered.as_slice(), found.first()) {
        ([(c, examined)], _) => Ok(vec![(*c, vec![Order::of(examined, Mandate::Person { force: false })])]),
        ([], None) => Err(format!("'{shown}' is not in the plan")),
        ([], Some((_, examined))) => {
            let reasons: Vec<String> = examined.judgement.reasons.iter().map(ToString::to_string).collect();
            Err(format!("'{shown}' is not offered as {}: {}", class.as_str(), reasons.join("; ")))
        }
        _ => Err(format!("'{shown}' is in several clones; name the root of one")),
    }
}

/// Lets the person choose among the offers that are landed, clean and idle.
pub fn picked(seen: &Seen, output: &mut Output) -> Orders {
    let mut offers: Vec<(usize, &Examined, &Row)> = Vec::new();
    for (clone, rows) in seen.clones.iter().zip(&seen.plan.clones) {
        for examined in clone.worktrees.iter().filter(|e| e.judgement.pickable) {
            let row = rows.worktrees.iter().find(|r| r.is_of(&examined.facts));
            offers.extend(row.map(|row| (clone.clone, examined, row)));
        }
    }
    let rows: Vec<&Row> = offers.iter().map(|(_, _, row)| *row).collect();
    let chosen = output
        .asker()
        .and_then(|asker| choose(asker, &rows, jiff::Timestamp::now()).ok())
        .unwrap_or_default();
    let mut orders = Orders::new();
    for at in chosen {
        let (c, examined, _) = offers[at];
        let order = Order::of(examined, Mandate::Person { force: false });
        merge(&mut orders, vec![(c, vec![order])]);
    }
    orders
}

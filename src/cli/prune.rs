//! `treesweep prune`: the plan, one question, and then the sweep.

use std::path::Path;

use crate::beneath;
use crate::cli::args::{Invocation, Prune};
use crate::cli::exit::Exit;
use crate::cli::outcomes;
use crate::cli::output::Output;
use crate::cli::run::{engines, view};
use crate::judge::facts::Subject;
use crate::judge::verdict::Mandate;
use crate::plan::{Class, Plan, Row, VerdictKind};
use crate::planning::is_of;
use crate::reclaim::{Expected, Order, Reclaimed, reclaim};
use crate::report::plan as plan_report;
use crate::report::progress::{Bars, Event, Progress};
use crate::report::prompt::choose;
use crate::session::{Seen, Session, SessionError};
use crate::state_dir::StateDir;
use crate::survey::examine::Examined;
use crate::survey::run::Candidate;
use crate::sweep::resume::Interrupted;
use crate::vantage::paths::{EntryName, LocalPath, escape};

/// What is to be done in each clone, by its number in the terrain.
type Orders = Vec<(usize, Vec<Order>)>;

/// Runs `prune`.
pub fn run(invocation: &Invocation, prune: &Prune, output: &mut Output) -> Result<Exit, SessionError> {
    if !prune.yes && output.asker().is_none() {
        let why =
            "there is no terminal to ask at; --yes sweeps without a question, `treesweep plan` only looks";
        return Ok(output.complain(why, Exit::Usage));
    }
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be swept safely here: {why}"), Exit::Unsupported));
    }
    let session = Session::begin(invocation, &prune.orphans)?;
    let progress = Bars::new();
    let state = StateDir::open(&StateDir::default_path()?)?;
    let mut seen = session.look(Some(&state), None, &progress)?;
    progress.tell(Event::Pause);
    let plan = seen.plan.clone();
    let view = view(invocation, output);
    let mut exit = engines(&plan);
    if !invocation.quiet {
        exit = exit.and(output.aside(&plan_report::warnings(&plan, &view)));
    }
    if !invocation.json && !invocation.quiet {
        exit = exit.and(output.text(&plan_report::before_acting(&plan, &view)));
    }
    let mut orders = match named(&seen, prune) {
        Ok(orders) => orders,
        Err(why) => return Ok(output.complain(&why, Exit::Usage)),
    };
    let automatic = prune.yes || agreed(&plan, output);
    if automatic {
        merge(&mut orders, automatic_orders(&seen));
    }
    if !prune.yes {
        merge(&mut orders, picked(&seen, output));
    }
    let done = match orders.is_empty() {
        true => Reclaimed::default(),
        false => {
            progress.tell(Event::Removing { bytes: plan.totals.bytes });
            let done = reclaim(&session, &mut seen.terrain, &state, orders, &progress);
            progress.tell(Event::Pause);
            done
        }
    };
    Ok(exit.and(outcomes::show(plan, &done, invocation.json, invocation.quiet, &view, output)))
}

/// The one question; no question if there is nothing to do.
fn agreed(plan: &Plan, output: &mut Output) -> bool {
    plan_report::question(&plan.totals).is_some_and(|question| output.confirm(&question).unwrap_or(false))
}

/// Everything that recorded ownership answers for, and every clone with an interrupted removal.
fn automatic_orders(seen: &Seen) -> Orders {
    let mut orders = Orders::new();
    for (clone, left) in seen.clones.iter().zip(&seen.leftovers) {
        let going = |e: &&Examined| matches!(e.judgement.verdict, VerdictKind::Reclaim | VerdictKind::Forget);
        let begun = |e: &Examined| left.interrupted.iter().any(|i| is_of(i, e));
        let new = clone.worktrees.iter().filter(going).filter(|e| !begun(e));
        let mut all: Vec<Order> = new.filter_map(|e| order(e, Mandate::Automatic)).collect();
        all.extend(left.interrupted.iter().filter_map(put_back));
        if !all.is_empty() || !left.interrupted.is_empty() {
            orders.push((clone.clone, all));
        }
    }
    orders
}

/// What is to become of an interrupted one that goes back to its place first: it is judged like any other then.
fn put_back(interrupted: &Interrupted) -> Option<Order> {
    let name = EntryName::new(interrupted.name.clone())?;
    Some(Order {
        candidate: Candidate::Registered(name),
        mandate: Mandate::Automatic,
        expected: Expected::of_interrupted(interrupted.path.clone()),
    })
}

/// The order for one worktree, if there is something that can be named exactly.
pub fn order(examined: &Examined, mandate: Mandate) -> Option<Order> {
    let candidate = match &examined.facts.subject {
        Subject::Registered { name, .. } => Candidate::Registered(name.clone()),
        Subject::Orphan { path, .. } => Candidate::Orphan(path.clone()),
        Subject::Trash { path, .. } => Candidate::Trash(path.clone()),
    };
    Some(Order { candidate, mandate, expected: Expected::of(&examined.facts) })
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
        ([(c, examined)], _) => {
            let order = order(examined, Mandate::Person { force: false });
            Ok(vec![(*c, order.into_iter().collect())])
        }
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
        let order = order(examined, Mandate::Person { force: false });
        merge(&mut orders, vec![(c, order.into_iter().collect())]);
    }
    orders
}

/// Adds `more` to `orders`, clone by clone; what is named twice is done once.
pub fn merge(orders: &mut Orders, more: Orders) {
    for (c, new) in more {
        match orders.iter_mut().find(|(known, _)| *known == c) {
            None => orders.push((c, new)),
            Some((_, known)) => {
                for order in new {
                    if !known.iter().any(|k| k.candidate == order.candidate) {
                        known.push(order);
                    }
                }
            }
        }
    }
}

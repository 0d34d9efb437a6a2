//! `prune --min-free`: the largest and oldest first, and no more than is needed.

use jiff::Timestamp;

use crate::beneath::Dir;
use crate::config::amount::Amount;
use crate::plan::{HolderRow, LocalPlace, Report, Row, SpaceRow};
use crate::reclaim::{Order, Orders, Reclaimed, automatic, merge, reclaim};
use crate::report::progress::{Event, Progress};
use crate::report::size;
use crate::session::{Seen, Session};
use crate::state_dir::StateDir;
use crate::survey::run::{Candidate, known_checkouts};
use crate::survey::space::{FileSystem, Space};
use crate::survey::weigh::weigh;
use crate::vantage::paths::LocalPath;

/// What is wanted, and where.
pub struct Goal<'a> {
    pub systems: &'a [FileSystem],
    /// Of each of them.
    pub wanted: Amount,
}

impl Goal<'_> {
    /// Whether nothing has to go.
    pub fn is_met(&self) -> bool {
        self.systems.iter().all(|system| matches!(is_short(system, self.wanted), Ok(false)))
    }

    /// Removes what is automatic until each of the file systems has what is wanted of it, or nothing more may go.
    pub fn sweep(
        &self,
        session: &Session,
        seen: &mut Seen,
        state: &StateDir,
        progress: &dyn Progress,
    ) -> Reclaimed {
        let mut all = Reclaimed::default();
        let mut done: Vec<(usize, Candidate)> = Vec::new();
        progress.tell(Event::Removing { bytes: seen.plan.totals.bytes });
        for step in steps(seen) {
            if session.stop.is_set() {
                break;
            }
            let system = self.systems.iter().find(|system| system.holds(&step.place).unwrap_or(false));
            match system.map(|system| is_short(system, self.wanted)) {
                Some(Ok(true)) => {}
                // It has enough, or what goes there helps no root.
                Some(Ok(false)) | None => continue,
                Some(Err(error)) => {
                    all.warnings.push(format!("{}: its free space can't be read: {error}", step.place));
                    continue;
                }
            }
            let fresh = |c: usize, order: &Order| {
                let this = (c, order.candidate.clone());
                let new = !done.contains(&this);
                done.push(this);
                new
            };
            let orders = only(step.orders, fresh);
            let part = reclaim(session, &mut seen.terrain, state, orders, progress);
            all.outcomes.extend(part.outcomes);
            all.warnings.extend(part.warnings);
            all.refused.extend(part.refused);
        }
        progress.tell(Event::Pause);
        all
    }
}

/// Whether `system` has less than is wanted; the blocks of what was just deleted are waited for.
fn is_short(system: &FileSystem, wanted: Amount) -> std::io::Result<bool> {
    let lacks = |space: Space| space.available < wanted.of(space.size);
    Ok(lacks(system.now()?) && lacks(system.settled()?))
}

/// Adds to the report what is free now and, where that is less than `wanted`, what holds the rest. The answer is what
/// to complain of.
pub fn measure(
    session: &Session,
    seen: &Seen,
    systems: &[FileSystem],
    wanted: Option<Amount>,
    report: &mut Report,
) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut short = Vec::new();
    for system in systems {
        let now = match wanted {
            Some(_) => system.settled(),
            None => system.now(),
        };
        let now = match now {
            Ok(now) => now,
            Err(error) => {
                complaints.push(format!("{}: its free space can't be read: {error}", system.root));
                continue;
            }
        };
        let row = SpaceRow {
            path: LocalPlace::of(Some(system.root.as_bstr())),
            size: now.size,
            available_before: system.before.available,
            available_after: now.available,
            wanted: wanted.map(|wanted| wanted.of(now.size)),
        };
        if let (false, Some(wanted)) = (row.is_enough(), row.wanted) {
            let (free, wanted) = (size(now.available), size(wanted));
            let why = match (session.stop.was_requested(), session.stop.is_set()) {
                (true, _) => "and the sweep was stopped",
                (_, true) => "and the time limit came first",
                _ => "and nothing more there may go by itself",
            };
            complaints.push(format!("{}: {free} are free, {wanted} were asked for, {why}", system.root));
            short.push(system);
        }
        report.space.push(row);
    }
    if !short.is_empty() {
        report.holders = holders(session, seen, &short);
    }
    complaints
}

/// A worktree with what lies in it, that goes before it.
struct Step {
    orders: Orders,
    /// Where it is, for the file system.
    place: LocalPath,
    bytes: u64,
    last: Option<Timestamp>,
    /// What an earlier run began to remove: it is nobody's any more.
    begun: bool,
}

/// The orders that are still to be carried out. A clone without one is entered for what an earlier run began.
fn only(orders: Orders, mut wanted: impl FnMut(usize, &Order) -> bool) -> Orders {
    let mut kept = Orders::new();
    for (c, orders) in orders {
        let empty = orders.is_empty();
        let left: Vec<Order> = orders.into_iter().filter(|order| wanted(c, order)).collect();
        if empty || !left.is_empty() {
            kept.push((c, left));
        }
    }
    kept
}

/// What goes together, in the order in which it goes.
fn steps(seen: &Seen) -> Vec<Step> {
    let automatic = automatic(seen);
    let flat: Vec<(usize, &Order)> =
        automatic.iter().flat_map(|(c, orders)| orders.iter().map(move |o| (*c, o))).collect();
    let common = |c: usize| seen.terrain.field.clones[c].common_path().clone();
    let mut steps: Vec<Step> = Vec::new();
    for (clone, left) in seen.clones.iter().zip(&seen.leftovers).filter(|(_, l)| !l.interrupted.is_empty()) {
        let begun = flat.iter().filter(|(c, o)| *c == clone.clone && o.expected.is_of_interrupted());
        let orders = vec![(clone.clone, begun.map(|(_, o)| (*o).clone()).collect())];
        let trash = left.interrupted.iter().find_map(|i| i.trash.as_ref()?.parent());
        let place = trash.unwrap_or_else(|| common(clone.clone));
        steps.push(Step { orders, place, bytes: 0, last: None, begun: true });
    }
    for (c, order) in flat.iter().filter(|(_, o)| !o.expected.is_of_interrupted()) {
        let path = order.expected.path.as_ref();
        let inside = |other: &Order| {
            path.zip(other.expected.path.as_ref()).is_some_and(|(path, other)| other.is_beneath_or_at(path))
        };
        let mut orders: Orders = vec![(*c, vec![(*order).clone()])];
        for (c, nested) in flat.iter().filter(|(_, o)| inside(o)) {
            merge(&mut orders, vec![(*c, vec![(*nested).clone()])]);
        }
        let all = orders.iter().flat_map(|(c, orders)| orders.iter().map(move |o| (*c, o)));
        steps.push(Step {
            bytes: all.filter_map(|(c, o)| row(seen, c, o)?.bytes).sum(),
            last: row(seen, *c, order).and_then(|row| row.last_activity),
            // A directory that is gone leaves nothing but its entry.
            place: path
                .filter(|p| p.as_path().exists())
                .and_then(LocalPath::parent)
                .unwrap_or_else(|| common(*c)),
            orders,
            begun: false,
        });
    }
    steps.sort_by_key(|step| (!step.begun, std::cmp::Reverse(step.bytes), step.last));
    steps
}

/// The plan's row of what is to go.
fn row<'a>(seen: &'a Seen, c: usize, order: &Order) -> Option<&'a Row> {
    let at = seen.clones.iter().position(|clone| clone.clone == c)?;
    let examined = seen.clones[at].worktrees.iter().find(|e| order.is_of(e))?;
    seen.plan.clones[at].worktrees.iter().find(|row| row.is_of(&examined.facts))
}

/// What is still there on a file system that lacks space, the largest first: what is kept or offered, and why.
fn holders(session: &Session, seen: &Seen, systems: &[&FileSystem]) -> Vec<HolderRow> {
    let others = known_checkouts(&seen.terrain);
    let mut all: Vec<HolderRow> = Vec::new();
    for (clone, rows) in seen.clones.iter().zip(&seen.plan.clones) {
        for row in &rows.worktrees {
            let examined = clone.worktrees.iter().find(|e| row.is_of(&e.facts));
            let Some(path) = examined.and_then(|e| e.facts.path()) else { continue };
            let here = path.parent().is_some_and(|p| systems.iter().any(|s| s.holds(&p).unwrap_or(false)));
            let Some(dir) = Dir::open(path).ok().filter(|_| here) else { continue };
            let weight = weigh(&dir, &others, &session.stop);
            all.push(HolderRow {
                name: row.name.clone(),
                path: row.path.clone(),
                verdict: row.verdict,
                class: row.class,
                code: row.reasons.first().map(|r| r.code),
                bytes: weight.bytes,
                at_least: weight.at_least,
            });
        }
    }
    all.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
    all
}

//! What is to go.

use super::Expected;
use crate::judge::facts::Subject;
use crate::judge::verdict::Mandate;
use crate::plan::VerdictKind;
use crate::planning::is_of;
use crate::session::Seen;
use crate::survey::examine::Examined;
use crate::survey::run::Candidate;
use crate::sweep::resume::Interrupted;
use crate::vantage::paths::EntryName;

/// What is to be done in each clone, by its number in the terrain.
pub type Orders = Vec<(usize, Vec<Order>)>;

/// One thing that is to go, as the plan saw it.
#[derive(Clone, Debug)]
pub struct Order {
    pub candidate: Candidate,
    pub mandate: Mandate,
    pub expected: Expected,
}

impl Order {
    /// For what was examined.
    pub fn of(examined: &Examined, mandate: Mandate) -> Self {
        Self {
            candidate: candidate(&examined.facts.subject),
            mandate,
            expected: Expected::of(&examined.facts),
        }
    }

    /// Whether it is for this one.
    pub fn is_of(&self, examined: &Examined) -> bool {
        self.candidate == candidate(&examined.facts.subject)
            && self.expected.path.as_ref() == examined.facts.path()
    }
}

fn candidate(subject: &Subject) -> Candidate {
    match subject {
        Subject::Registered { name, .. } => Candidate::Registered(name.clone()),
        Subject::Orphan { path, .. } => Candidate::Orphan(path.clone()),
        Subject::Trash { path, .. } => Candidate::Trash(path.clone()),
    }
}

/// Everything that recorded ownership answers for, and every clone with an interrupted removal.
pub fn automatic(seen: &Seen) -> Orders {
    let mut orders = Orders::new();
    for (clone, left) in seen.clones.iter().zip(&seen.leftovers) {
        let going = |e: &&Examined| matches!(e.judgement.verdict, VerdictKind::Reclaim | VerdictKind::Forget);
        let begun = |e: &Examined| left.interrupted.iter().any(|i| is_of(i, e));
        let new = clone.worktrees.iter().filter(going).filter(|e| !begun(e));
        let mut all: Vec<Order> = new.map(|e| Order::of(e, Mandate::Automatic)).collect();
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

//! From orders to outcomes: each candidate is judged once more from fresh facts, and swept at once if they still carry
//! it. `prune`, its picker and `drop` all act through here.
//!
//! Each clone is swept on a thread of its own, which Landlock confines before its first write. What a confined thread
//! may not see (other processes, engines) it asks of a thread outside.

mod document;
mod expected;
mod order;

use std::collections::HashSet;
use std::sync::Mutex;

use bstr::{BString, ByteSlice};

use crate::beneath::Dir;
use crate::engine::world::World;
use crate::git::index::Depth;
use crate::git::open::Unreadable;
use crate::judge::reason::{Code, Reason};
use crate::judge::rules::Policy;
use crate::judge::tree_facts::Fingerprint;
use crate::judge::verdict::{self, Mandate};
use crate::judge::warrant::{Scope, Warrant};
use crate::report::progress::{Event, Progress};
use crate::session::{Session, now};
use crate::state_dir::StateDir;
use crate::survey::examine::{ClonePlace, Examined, Inquiry};
use crate::survey::holds::{elsewhere, holds, inside};
use crate::survey::run::{Candidate, clone_places, depth, examine_again, known_checkouts};
use crate::survey::terrain::Terrain;
use crate::survey::walk::fingerprint_of;
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome, Progress as Freed, Removed};
use crate::sweep::outside::Outside;
use crate::sweep::protect::Protected;
use crate::sweep::{EnterError, Hooks, LockedClone, Sweeper};
use crate::vantage::paths::{FileId, LocalPath};

pub use document::{report, row};
pub use expected::Expected;
pub use order::{Order, Orders, automatic, merge};

/// What came of the orders of one run.
#[derive(Debug, Default)]
pub struct Reclaimed {
    pub outcomes: Vec<Outcome>,
    pub warnings: Vec<String>,
    /// A clone could not be swept at all, and why; `true`: the environment lacks something.
    pub refused: Vec<(String, bool)>,
}

/// Executes `orders`, which are of clone numbers of `terrain`, bottom-up within each clone. A clone with interrupted
/// removals is entered also without an order.
pub fn reclaim(
    session: &Session,
    terrain: &mut Terrain,
    state: &StateDir,
    orders: Vec<(usize, Vec<Order>)>,
    progress: &dyn Progress,
) -> Reclaimed {
    let mut all = Reclaimed::default();
    if session.listens
        && let Err(error) = session.stop.on_signals()
    {
        all.warnings.push(format!("Ctrl-C will leave the removal at hand to the next run: {error}"));
    }
    let protected = match Protected::new(protected_places(terrain)) {
        Ok(protected) => protected,
        Err(unseen) => {
            all.refused.push((format!("it has to be protected: {unseen}"), false));
            return all;
        }
    };
    // A checkout of one clone may lie in another's: the deepest go first over all clones, too.
    let mut orders = orders;
    let deepest = |orders: &[Order]| orders.iter().map(|o| depth(o.expected.path.as_ref())).max();
    orders.sort_by_key(|(_, orders)| std::cmp::Reverse(deepest(orders)));
    for (c, mut orders) in orders {
        orders.sort_by_key(|o| std::cmp::Reverse(depth(o.expected.path.as_ref())));
        let conductor = Conductor { session, state, protected: &protected, progress };
        let terrain = Mutex::new(&mut *terrain);
        let result = std::thread::scope(|scope| {
            let outside = Outside::start(scope);
            let sweeping = scope.spawn(|| {
                let mut terrain = terrain.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match outside {
                    Ok(outside) => conductor.clone(&mut terrain, c, orders, &outside),
                    Err(error) => Err((format!("no thread could be started: {error}"), false)),
                }
            });
            sweeping.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        });
        match result {
            Ok(part) => {
                all.outcomes.extend(part.outcomes);
                all.warnings.extend(part.warnings);
            }
            Err(refused) => all.refused.push(refused),
        }
    }
    all
}

/// Whatever is or contains one of these is never a target: main worktrees, common directories and roots of all clones.
///
/// A submodule's repository that lies in an administrative entry is a part of that worktree, whose judgement is its too.
fn protected_places(terrain: &Terrain) -> Vec<LocalPath> {
    let commons: Vec<&LocalPath> = terrain.field.clones.iter().map(|site| site.common_path()).collect();
    let clones = terrain.field.clones.iter();
    clones
        .filter(|site| !commons.iter().any(|common| lies_in_an_entry(site.common_path(), common)))
        .flat_map(|site| {
            [Some(site.dir.clone()), site.main_worktree.clone(), Some(site.common_path().clone())]
        })
        .flatten()
        .chain(terrain.roots.iter().cloned())
        .collect()
}

/// Whether `path` is `<common>/worktrees/<name>/modules/...`.
fn lies_in_an_entry(path: &LocalPath, common: &LocalPath) -> bool {
    let Some(below) = path.below(common) else { return false };
    let parts: Vec<&[u8]> = below.split(|b| *b == b'/').collect();
    parts.len() > 3 && parts[0] == b"worktrees" && parts[2] == b"modules"
}

struct Conductor<'a> {
    session: &'a Session,
    state: &'a StateDir,
    protected: &'a Protected,
    progress: &'a dyn Progress,
}

/// Tells the progress of each freed byte.
struct Teller<'a>(&'a dyn Progress);

impl Freed for Teller<'_> {
    fn freed(&self, bytes: u64) {
        self.0.tell(Event::Freed(bytes));
    }
}

impl<'a> Conductor<'a> {
    fn clone<'env>(
        &'env self,
        terrain: &mut Terrain,
        c: usize,
        orders: Vec<Order>,
        outside: &Outside<'env>,
    ) -> Result<Reclaimed, (String, bool)> {
        let teller = Teller(self.progress);
        let sweeper = Sweeper {
            state: self.state,
            stop: &self.session.stop,
            jobs: self.session.deleters(),
            progress: &teller,
            protected: self.protected,
        };
        let site = &terrain.field.clones[c];
        let parents: Vec<LocalPath> =
            orders.iter().filter_map(|o| o.expected.path.as_ref()?.parent()).collect();
        let refuse = |error: EnterError| (error.to_string(), error.is_environment());
        let common =
            Dir::open(site.common_path()).map_err(|e| (format!("{}: {e}", site.common_path()), false))?;
        let mut clone = sweeper.enter(common, site.main_worktree.as_ref(), &parents).map_err(refuse)?;
        let fingerprint = |dir: &Dir| {
            fingerprint_of(dir, &self.session.stop).map_err(|e| Unreadable(format!("{}: {e}", dir.path())))
        };
        let mut done = Reclaimed::default();
        let unheld = |path: &LocalPath| {
            let world = self.gather(outside)?;
            elsewhere(path, &world).into_iter().chain(inside(path, &world)).next().map_or(Ok(()), Err)
        };
        let resume = Hooks { fingerprint: &fingerprint, world_still_allows: &unheld };
        match sweeper.resume(&mut clone, &resume) {
            Ok(outcomes) => done.outcomes.extend(outcomes),
            Err(error) => return Err((error.to_string(), false)),
        }
        terrain.refresh(c);
        for order in orders {
            let resumed = done
                .outcomes
                .iter()
                .position(|o| order.expected.is_of_interrupted() && o.name == name_of(&order.candidate));
            let finished = resumed.is_some_and(|at| done.outcomes[at].result != Ending::Skipped);
            if finished || order.expected.is_of_interrupted() && !is_registered(terrain, c, &order.candidate)
            {
                continue;
            }
            let mut outcome = self.order(&sweeper, &mut clone, terrain, c, &order, outside, &fingerprint);
            // What was put back, and judged anew then, has one outcome.
            if let Some(earlier) = resumed.map(|at| done.outcomes.remove(at)) {
                let notes = [outcome.note.take(), earlier.note];
                outcome.note = Some(notes.into_iter().flatten().collect::<Vec<_>>().join("; "));
                // What kept it from being finished says more than what is seen of it then.
                outcome.reason = earlier.reason.or(outcome.reason);
            }
            done.outcomes.push(outcome);
        }
        done.warnings.append(&mut clone.warnings);
        Ok(done)
    }

    #[allow(clippy::too_many_arguments)]
    fn order<'env>(
        &'env self,
        sweeper: &Sweeper<'_>,
        clone: &mut LockedClone,
        terrain: &mut Terrain,
        c: usize,
        order: &Order,
        outside: &Outside<'env>,
        fingerprint: &dyn Fn(&Dir) -> Result<Fingerprint, Unreadable>,
    ) -> Outcome {
        self.progress.tell(Event::Now(&crate::vantage::paths::escape(&name_of(&order.candidate))));
        if self.session.stop.is_set() {
            return untouched(order, Ending::Deferred, None, "asked to stop before its turn");
        }
        let world = match self.gather(outside) {
            Ok(world) => world,
            Err(why) => {
                return untouched(order, Ending::Skipped, Some(why), "who uses it could not be asked");
            }
        };
        self.session.look_again(terrain, c, &order.candidate, &world);
        let policy = Policy { now: now(), ..self.session.policy() };
        let (known, clones) = (known_checkouts(terrain), clone_places(terrain));
        let inquiry = self.inquiry(&world, &policy, &known, &clones, order);
        let examined = match examine_again(terrain, c, &order.candidate, &inquiry) {
            Ok(examined) => examined,
            Err(why) => {
                let reason = Reason::new(Code::Unreadable, why.0);
                return untouched(order, Ending::Skipped, Some(reason), "it changed since it was planned");
            }
        };
        if self.session.stop.is_set() {
            // What was asked last may have been cut short: it says nothing.
            return untouched(order, Ending::Deferred, None, "asked to stop while it was looked at");
        }
        let warrant = match self.warrant(terrain, c, order, &examined, &policy) {
            Ok(warrant) => warrant,
            Err(reason) => {
                return untouched(order, Ending::Skipped, Some(reason), "it may not go any more");
            }
        };
        let site = &terrain.field.clones[c];
        let world_still_allows = |_: &LocalPath| {
            let world = self.gather(outside)?;
            let inquiry = self.inquiry(&world, &policy, &known, &clones, order);
            holds(&examined.facts, site, &inquiry).into_iter().next().map_or(Ok(()), Err)
        };
        sweeper.execute(clone, warrant, &Hooks { fingerprint, world_still_allows: &world_still_allows })
    }

    fn inquiry<'b>(
        &'b self,
        world: &'b World,
        policy: &'b Policy,
        known: &'b HashSet<FileId>,
        clones: &'b [ClonePlace],
        order: &Order,
    ) -> Inquiry<'b> {
        Inquiry {
            depth: Depth::BeforeRemoval,
            thorough: order.mandate == Mandate::Person { force: true }
                || matches!(order.candidate, Candidate::Trash(_)),
            ..self.session.inquiry(world, Some(self.state), policy, known, clones)
        }
    }

    fn gather<'env>(&'env self, outside: &Outside<'env>) -> Result<World, Reason> {
        let unknown = |why: String| Reason::new(Code::LivenessUnknown, why);
        let gatherer = &self.session.gatherer;
        let answer = outside.ask(move || gatherer.gather()).map_err(|e| unknown(e.to_string()))?;
        answer.map_err(|e| unknown(e.to_string()))
    }

    fn warrant(
        &self,
        terrain: &Terrain,
        c: usize,
        order: &Order,
        examined: &Examined,
        policy: &Policy,
    ) -> Result<Warrant, Reason> {
        if let Some(difference) = order.expected.difference(&examined.facts) {
            // What the person overrides is not why it stays.
            let first = match order.expected.is_listed() {
                true => None,
                false => examined.judgement.reasons.first().cloned(),
            };
            return Err(first.unwrap_or_else(|| Reason::new(Code::RecentlyActive, difference)));
        }
        let site = &terrain.field.clones[c];
        let path = order.expected.path.as_ref();
        let over = |root: &&LocalPath| path.is_some_and(|p| p.is_beneath_or_at(root));
        let scope = Scope {
            root: terrain.roots.iter().find(over).unwrap_or(&site.root).clone(),
            common_dir: site.common_path().clone(),
            common_id: site.common_id,
        };
        verdict::warrant(&examined.facts, policy, order.mandate, scope).map_err(|reasons| {
            let none = || Reason::new(Code::Unowned, "it is an offer now: it needs an explicit act");
            reasons.into_iter().next().unwrap_or_else(none)
        })
    }
}

/// Whether the registration is there (again) after what was interrupted was finished or put back.
fn is_registered(terrain: &Terrain, c: usize, candidate: &Candidate) -> bool {
    let Candidate::Registered(name) = candidate else { return false };
    terrain.registrations[c].as_ref().is_ok_and(|all| all.iter().any(|r| r.name == *name))
}

fn name_of(candidate: &Candidate) -> BString {
    match candidate {
        Candidate::Registered(name) => name.as_bstr().to_owned(),
        Candidate::Orphan(path) | Candidate::Trash(path) => {
            path.file_name().map(|n| n.as_bytes().into()).unwrap_or_default()
        }
    }
}

fn untouched(order: &Order, result: Ending, reason: Option<Reason>, note: &str) -> Outcome {
    Outcome {
        name: name_of(&order.candidate),
        path: order.expected.path.clone(),
        result,
        branch: BranchOutcome::None,
        removed: Removed::default(),
        reason,
        note: Some(note.to_owned()),
        observed: None,
        retry: None,
        record: None,
    }
}

//! What the survey of a run stands on: clones, registrations, checkouts, translations and the join over all of them.

use std::collections::{BTreeSet, HashMap};

use crate::beneath::Dir;
use crate::git::open::Unreadable;
use crate::git::registration::{Pointer, Registration, Worktrees, registrations};
use crate::survey::discover::{CloneSite, Field, Sighting};
use crate::survey::ground::Ground;
use crate::survey::join::{JoinSide, Joins, join};
use crate::survey::run::Candidate;
use crate::vantage::paths::{EntryName, LocalPath};
use crate::vantage::translate::{Place, Translator};

/// Everything beneath the roots, with what translates its paths.
#[derive(Debug)]
pub struct Terrain {
    pub roots: Vec<LocalPath>,
    pub field: Field,
    /// Of each clone; why not, where `worktrees` could not be read.
    pub registrations: Vec<Result<Vec<Registration>, Unreadable>>,
    /// Of each clone, best first.
    pub translators: Vec<Vec<Translator>>,
    /// Not inside a dev container: there only the own vantage is judged.
    pub infers: bool,
}

impl Terrain {
    /// Reads the registrations of every clone in `field`; `translators` gives the rules for one of them.
    pub fn survey(
        roots: Vec<LocalPath>,
        field: Field,
        infers: bool,
        translators: impl Fn(&CloneSite) -> Vec<Translator>,
    ) -> Self {
        let registrations = field.clones.iter().map(|site| registrations(&site.common)).collect();
        let translators = field.clones.iter().map(translators).collect();
        let mut terrain = Self { roots, field, registrations, translators, infers };
        terrain.sight_recorded_paths();
        terrain
    }

    /// Checkouts that a registration leads to and that the walk did not reach (it may be bounded in depth).
    fn sight_recorded_paths(&mut self) {
        let mut found = self.recorded_places(|_| true);
        found.retain(|path| self.field.checkouts.binary_search_by(|c| c.path.cmp(path)).is_err());
        self.add_sights(found.iter());
    }

    /// Where the translations place what the registrations record whose names `which` wants, beneath a root.
    fn recorded_places(&self, which: impl Fn(&EntryName) -> bool) -> BTreeSet<LocalPath> {
        let mut found = BTreeSet::new();
        for (registrations, translators) in self.registrations.iter().zip(&self.translators) {
            let wanted = registrations.iter().flatten().filter(|r| which(&r.name));
            for recorded in wanted.filter_map(|r| r.recorded.as_ref().ok()) {
                for translator in translators {
                    if let Place::Here(local) = translator.place(recorded)
                        && self.roots.iter().any(|root| local.is_beneath_or_at(root))
                    {
                        found.insert(local);
                    }
                }
            }
        }
        found
    }

    fn add_sights<'p>(&mut self, paths: impl Iterator<Item = &'p LocalPath>) {
        self.field.checkouts.extend(paths.filter_map(sight));
        self.field.checkouts.sort_by(|a, b| a.path.cmp(&b.path));
    }

    /// The clones as the join takes them; one whose registrations can't be read takes part without any.
    pub fn sides(&self) -> Vec<JoinSide<'_>> {
        let rules = self.registrations.iter().zip(&self.translators);
        self.field
            .clones
            .iter()
            .zip(rules)
            .map(|(site, (registrations, translators))| JoinSide {
                site,
                registrations: registrations.as_ref().map_or(&[], Vec::as_slice),
                unread: registrations.as_ref().err(),
                translators,
                infers: self.infers,
            })
            .collect()
    }

    /// Joins everything with everything.
    pub fn joins(&self, sides: &[JoinSide<'_>]) -> Joins {
        join(sides, &self.field.checkouts)
    }

    /// Where things are, for `sides` and `joins` of this terrain.
    pub fn ground<'a>(&'a self, sides: &'a [JoinSide<'a>], joins: &'a Joins) -> Ground<'a> {
        Ground::new(&self.roots, sides, &self.field.checkouts, joins, &self.field.trash)
    }

    /// The clone that a directory at `path` belongs to, by where it lies: the innermost one that holds it, else one
    /// beside it.
    pub fn nearest_clone(&self, path: &LocalPath) -> Option<usize> {
        let near = |dir: &LocalPath| {
            path.is_beneath_or_at(dir) || dir.parent().is_some_and(|beside| path.is_beneath_or_at(&beside))
        };
        let clones = self.field.clones.iter().enumerate().filter(|(_, site)| near(&site.dir));
        clones
            .max_by_key(|(_, site)| (path.is_beneath_or_at(&site.dir), site.dir.components().count()))
            .map(|(c, _)| c)
    }

    /// Reads the registrations of clone `c` and every checkout's `.git` file once more; one that was put back to its
    /// place meanwhile is found there.
    pub fn refresh(&mut self, c: usize) {
        self.registrations[c] = registrations(&self.field.clones[c].common);
        self.field.checkouts = self.field.checkouts.iter().filter_map(|c| sight(&c.path)).collect();
        self.sight_recorded_paths();
    }

    /// Looks again at everything that could claim, or be claimed by, `candidate` of clone `c`. Only what has one name can be
    /// joined: the entries of its name of all clones, the checkouts that name such an entry or that one records, and
    /// whatever was registered in clone `c` meanwhile; an orphan's own directory besides, whatever it names by now.
    /// `translators` are those of this moment.
    pub fn look_again(
        &mut self,
        c: usize,
        candidate: &Candidate,
        infers: bool,
        translators: impl Fn(&CloneSite) -> Vec<Translator>,
    ) {
        self.infers = infers;
        let named = |path| sight(path).and_then(|seen| seen.pointer.entry).map(|(_, name)| name);
        let (name, own) = match candidate {
            Candidate::Registered(name) => (Some(name.clone()), None),
            Candidate::Orphan(path) => (named(path), Some(path)),
            Candidate::Trash(path) => (named(path), None),
        };
        if let Some(name) = &name {
            self.reread(c, name, translators);
        }
        let is_it = |of: &EntryName| name.as_ref() == Some(of);
        let mut places = self.recorded_places(is_it);
        places.extend(own.cloned());
        self.field.checkouts.retain(|seen| {
            let concerned =
                seen.pointer.entry.as_ref().is_some_and(|(_, of)| is_it(of)) || places.contains(&seen.path);
            if concerned {
                places.insert(seen.path.clone());
            }
            !concerned
        });
        self.add_sights(places.iter());
    }

    /// Reads the entries called `name` of all clones once more, and whatever was registered in clone `c` meanwhile.
    fn reread(&mut self, c: usize, name: &EntryName, translators: impl Fn(&CloneSite) -> Vec<Translator>) {
        for (i, site) in self.field.clones.iter().enumerate() {
            let known = &mut self.registrations[i];
            let had = known.iter().flatten().any(|r| r.name == *name);
            if let Err(why) = reread(known, &site.common, name, i == c) {
                *known = Err(why);
            }
            if i == c || had || known.iter().flatten().any(|r| r.name == *name) {
                self.translators[i] = translators(site);
            }
        }
    }
}

/// Brings `known` up to date for the entry `name`, and with `all` also for what came and went.
fn reread(
    known: &mut Result<Vec<Registration>, Unreadable>,
    common: &Dir,
    name: &EntryName,
    all: bool,
) -> Result<(), Unreadable> {
    // What could not be read by the plan stays so: the clone's rows were judged without it.
    let Ok(known) = known else { return Ok(()) };
    let Some(worktrees) = Worktrees::open(common)? else {
        known.clear();
        return Ok(());
    };
    let mut there = match all {
        true => worktrees.names()?,
        false => known.iter().map(|r| r.name.clone()).filter(|n| n != name).collect(),
    };
    if !all && worktrees.has(name) {
        there.push(name.clone());
    }
    let mut before: HashMap<EntryName, Registration> =
        known.drain(..).filter(|r| r.name != *name).map(|r| (r.name.clone(), r)).collect();
    known.extend(there.into_iter().map(|n| match before.remove(&n) {
        Some(read) => read,
        None => worktrees.registration(n),
    }));
    known.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(())
}

/// The checkout at `path`, if there is a directory with a `.git` file that points at an entry.
pub(super) fn sight(path: &LocalPath) -> Option<Sighting> {
    let dir = Dir::open(path).ok()?;
    let pointer = Pointer::parse(&dir.read(".git", 16 << 10).ok()?)?;
    pointer.entry.as_ref()?;
    Some(Sighting { path: path.clone(), id: dir.own_meta().ok()?.id, pointer })
}

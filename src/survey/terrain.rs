//! What the survey of a run stands on: clones, registrations, checkouts, translations and the join over all of them.

use crate::beneath::Dir;
use crate::git::open::Unreadable;
use crate::git::registration::{self, Pointer, Registration, registrations};
use crate::survey::discover::{CloneSite, Field, Sighting};
use crate::survey::ground::Ground;
use crate::survey::join::{JoinSide, Joins, join};
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
        let mut found = Vec::new();
        for (registrations, translators) in self.registrations.iter().zip(&self.translators) {
            for recorded in registrations.iter().flatten().filter_map(|r| r.recorded.as_ref().ok()) {
                for translator in translators {
                    if let Place::Here(local) = translator.place(recorded)
                        && self.roots.iter().any(|root| local.is_beneath_or_at(root))
                    {
                        found.push(local);
                    }
                }
            }
        }
        found.sort();
        found.dedup();
        found.retain(|path| self.field.checkouts.binary_search_by(|c| c.path.cmp(path)).is_err());
        self.field.checkouts.extend(found.iter().filter_map(sight));
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

    /// Where the checkout of entry `name` of clone `c` is, if they are joined.
    pub fn checkout_of(&self, c: usize, name: &EntryName) -> Option<LocalPath> {
        let sides = self.sides();
        let joins = self.joins(&sides);
        let r = sides[c].registrations.iter().position(|r| r.name == *name)?;
        joins.joined.get(&(c, r)).map(|pair| self.field.checkouts[pair.checkout].path.clone())
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

    /// Reads one registration of clone `c` once more.
    pub fn refresh_registration(&mut self, c: usize, r: usize) -> Result<(), Unreadable> {
        let site = &self.field.clones[c];
        if let Ok(registrations) = &mut self.registrations[c]
            && let Some(known) = registrations.get_mut(r)
        {
            *known = registration::registration(&site.common, &known.name)?;
        }
        Ok(())
    }

    /// Looks at the checkout at `path` once more; one that is gone is taken out.
    pub fn refresh_checkout(&mut self, path: &LocalPath) {
        if let Ok(at) = self.field.checkouts.binary_search_by(|c| c.path.cmp(path)) {
            match sight(path) {
                Some(seen) => self.field.checkouts[at] = seen,
                None => {
                    self.field.checkouts.remove(at);
                }
            }
        }
    }
}

/// The checkout at `path`, if there is a directory with a `.git` file that points at an entry.
pub(super) fn sight(path: &LocalPath) -> Option<Sighting> {
    let dir = Dir::open(path).ok()?;
    let pointer = Pointer::parse(&dir.read(".git", 16 << 10).ok()?)?;
    pointer.entry.as_ref()?;
    Some(Sighting { path: path.clone(), id: dir.own_meta().ok()?.id, pointer })
}

//! The joined terrain, with everything that the placements ask of it looked up once for all registrations.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use crate::beneath;
use crate::git::kinds::borrowed;
use crate::survey::absence::Listings;
use crate::survey::discover::Sighting;
use crate::survey::join::{JoinSide, Joins};
use crate::survey::terrain::sight;
use crate::sweep::trash;
use crate::vantage::paths::{FileId, LocalPath, RecordedPath};
use crate::vantage::translate::{Place, Translator, infer};

/// What all placements of a run look at.
pub struct Ground<'a> {
    /// Bounds of everything: resolved paths.
    pub roots: &'a [LocalPath],
    pub sides: &'a [JoinSide<'a>],
    pub checkouts: &'a [Sighting],
    pub joins: &'a Joins,
    /// Directories that bear a trash name, by the name of the entry that they were, or say that they are, of.
    pub(super) trash: HashMap<BString, Vec<LocalPath>>,
    /// Each registration by clone and name.
    names: HashMap<(usize, &'a BStr), usize>,
    /// The clone of each common directory.
    pub(super) commons: HashMap<LocalPath, usize>,
    /// Of each clone, what its registrations' rows show besides the joined ones.
    pub(super) strays: OnceCell<super::strays::Strays>,
    /// What joined siblings let us infer, for each clone.
    inferred: OnceCell<Vec<Vec<Translator>>>,
    /// Where registrations that are not joined may have a directory, in the order of the paths.
    unjoined: OnceCell<Vec<(LocalPath, usize, usize)>>,
    /// Where clones borrow objects.
    lenders: OnceCell<Vec<Lender>>,
    pub(super) listings: Listings,
    /// Whether anything of a clone is there below the directory that one translation stands on.
    alive: RefCell<HashMap<(usize, LocalPath), bool>>,
    /// What is at a path, links followed but for the last component.
    objects: RefCell<HashMap<LocalPath, Option<FileId>>>,
    /// Directories outside of the roots with their links followed; `None`: it can't be done.
    pub(super) real: RefCell<HashMap<LocalPath, Option<LocalPath>>>,
}

/// An object store, and the common directory of a clone that borrows from it (`objects/info/alternates`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lender {
    pub store: LocalPath,
    pub to: LocalPath,
}

impl<'a> Ground<'a> {
    pub fn new(
        roots: &'a [LocalPath],
        sides: &'a [JoinSide<'a>],
        checkouts: &'a [Sighting],
        joins: &'a Joins,
        trash: &[LocalPath],
    ) -> Self {
        Self {
            roots,
            sides,
            checkouts,
            joins,
            trash: by_entry(trash),
            names: sides
                .iter()
                .enumerate()
                .flat_map(|(c, side)| {
                    let all = side.registrations.iter().enumerate();
                    all.map(move |(r, registration)| ((c, registration.name.as_bstr()), r))
                })
                .collect(),
            commons: sides.iter().enumerate().map(|(c, s)| (s.site.common_path().clone(), c)).collect(),
            strays: OnceCell::new(),
            inferred: OnceCell::new(),
            unjoined: OnceCell::new(),
            lenders: OnceCell::new(),
            listings: Listings::default(),
            alive: RefCell::default(),
            objects: RefCell::default(),
            real: RefCell::default(),
        }
    }

    /// Checkouts that no registration could be joined with, nor claims.
    pub(super) fn free(&self) -> impl Iterator<Item = (usize, &'a Sighting)> + use<'a> {
        let joined = self.joins.joined.values().map(|pair| pair.checkout);
        let taken: HashSet<usize> = joined.chain(self.joins.ambiguous_checkouts.keys().copied()).collect();
        self.checkouts.iter().enumerate().filter(move |(w, _)| !taken.contains(w))
    }

    /// What the pointers of the checkouts that are joined with clone `c` let us infer.
    pub fn inferred(&self, c: usize) -> &[Translator] {
        let all = self.inferred.get_or_init(|| {
            let mut called: Vec<BTreeSet<&RecordedPath>> = vec![BTreeSet::new(); self.sides.len()];
            for ((clone, _), pair) in &self.joins.joined {
                if !pair.by.kind.is_of_this_vantage()
                    && let Some((name, _)) = &self.checkouts[pair.checkout].pointer.entry
                {
                    called[*clone].insert(name);
                }
            }
            let rules = self.sides.iter().zip(called).map(|(side, called)| {
                let rule = |called| infer(called, side.site.common_path(), &side.site.root);
                called.into_iter().filter(|_| side.infers).filter_map(rule).collect()
            });
            rules.collect()
        });
        &all[c]
    }

    /// The registrations that are not joined and whose directory would lie below `path`, each with its place.
    pub fn unjoined_beneath(&self, path: &LocalPath) -> impl Iterator<Item = &(LocalPath, usize, usize)> {
        let all = self.unjoined.get_or_init(|| {
            let mut all = Vec::new();
            for (c, side) in self.sides.iter().enumerate() {
                for (r, registration) in side.registrations.iter().enumerate() {
                    if let (Ok(recorded), false) =
                        (&registration.recorded, self.joins.joined.contains_key(&(c, r)))
                    {
                        let places = self.translations(c, registration, recorded);
                        all.extend(places.into_iter().map(|(_, local)| (local, c, r)));
                    }
                }
            }
            all.sort();
            all.dedup();
            all
        });
        let from = all.partition_point(|(place, _, _)| place <= path);
        let path = path.clone();
        all[from..].iter().take_while(move |(place, _, _)| place.is_beneath_or_at(&path))
    }

    /// A store in one of `dirs`, which go together, from which a clone outside of them borrows objects.
    pub fn lends(&self, dirs: &[&LocalPath]) -> Option<&Lender> {
        let all = self.lenders.get_or_init(|| {
            let mut all = Vec::new();
            for (c, side) in self.sides.iter().enumerate() {
                // One whose list can't be read has no objects for us either; its own rows say so.
                for path in borrowed(&side.site.common).unwrap_or_default() {
                    let stores = side.translators.iter().chain(self.inferred(c)).map(|t| t.place(&path));
                    for place in stores {
                        if let Place::Here(store) = place {
                            let real = std::fs::canonicalize(store.as_path()).ok().and_then(LocalPath::new);
                            let store = real.unwrap_or_else(|| self.respelled(store));
                            all.push(Lender { store, to: side.site.common_path().clone() });
                        }
                    }
                }
            }
            all
        });
        let within = |path: &LocalPath| dirs.iter().any(|dir| path.is_beneath_or_at(dir));
        all.iter().find(|lender| within(&lender.store) && !within(&lender.to))
    }

    /// Whether anything that `translator` names for clone `c` below `base` is there.
    pub(super) fn is_alive(&self, c: usize, translator: &Translator, base: &LocalPath) -> bool {
        *self.alive.borrow_mut().entry((c, base.clone())).or_insert_with(|| {
            let recorded = self.sides[c].registrations.iter().filter_map(|r| r.recorded.as_ref().ok());
            recorded.into_iter().any(|path| match translator.place(path) {
                Place::Here(local) => local.is_beneath_or_at(base) && beneath::lstat(&local).is_ok(),
                _ => false,
            })
        })
    }

    /// What is at `path`.
    pub(super) fn object_at(&self, path: &LocalPath) -> Option<FileId> {
        if let Some(known) = self.objects.borrow().get(path) {
            return *known;
        }
        let found = beneath::lstat(path).ok().map(|meta| meta.id);
        self.objects.borrow_mut().insert(path.clone(), found);
        found
    }

    /// Which registration of clone `c` has this name.
    pub fn registered(&self, c: usize, name: &BStr) -> Option<usize> {
        self.names.get(&(c, name)).copied()
    }
}

/// A removal deletes the `.git` file last, so that it tells whose the trash is; its name does so too.
fn by_entry(trash: &[LocalPath]) -> HashMap<BString, Vec<LocalPath>> {
    let mut all: HashMap<BString, Vec<LocalPath>> = HashMap::new();
    for path in trash {
        let said = path.file_name().and_then(|n| trash::parse(n.as_bytes())).and_then(|t| t.entry);
        let points = sight(path).and_then(|seen| seen.pointer.entry).map(|(_, name)| name);
        let names: BTreeSet<BString> =
            said.into_iter().chain(points).map(|name| name.as_bstr().to_owned()).collect();
        for name in names {
            all.entry(name).or_default().push(path.clone());
        }
    }
    all
}

//! Where each registration's checkout is, and what keeps a registration or a checkout that is not joined.

use std::collections::BTreeSet;

use crate::beneath::{self, Dir, Kind, Meta, Refused};
use crate::git::registration::{Pointer, Registration};
use crate::judge::facts::Placement;
use crate::judge::reason::{Code, Reason};
use crate::survey::absence::{self, Missing};
use crate::survey::discover::{CloneSite, Sighting};
use crate::survey::join::{JoinSide, Joins, entry_path};
use crate::vantage::paths::{LocalPath, RecordedPath};
use crate::vantage::translate::{Evidence, Place, TranslationKind, Translator, infer};

/// What all placements of a run look at.
pub struct Ground<'a> {
    /// Bounds of everything: resolved paths.
    pub roots: &'a [LocalPath],
    pub sides: &'a [JoinSide<'a>],
    pub checkouts: &'a [Sighting],
    pub joins: &'a Joins,
}

impl Ground<'_> {
    /// Where the checkout of registration `r` of clone `c` is.
    pub fn place(&self, c: usize, r: usize) -> Placement {
        let registration = &self.sides[c].registrations[r];
        let stray = self.stray_of(c, registration);
        if let Some(broken) = registration.broken() {
            let path = stray.map(|w| self.checkouts[w].path.clone());
            return held(path, None, Code::Unreadable, &broken.0);
        }
        if let Some(why) = self.joins.ambiguous.get(&(c, r)) {
            return held(None, None, Code::Ambiguous, why);
        }
        match self.joins.joined.get(&(c, r)) {
            Some(pair) => {
                self.joined(c, registration, &self.checkouts[pair.checkout], &pair.by, &pair.spelled)
            }
            None => self.unjoined(c, registration, stray),
        }
    }

    fn joined(
        &self,
        c: usize,
        registration: &Registration,
        checkout: &Sighting,
        by: &Evidence,
        spelled: &LocalPath,
    ) -> Placement {
        let side = &self.sides[c];
        let here = Some(checkout.path.clone());
        if let Some(reason) = self.out_of_bounds(side.site, &checkout.path) {
            return Placement::Held { path: here, by: Some(by.clone()), reasons: vec![reason] };
        }
        if spelled != &checkout.path && self.roots.iter().any(|root| spelled.is_beneath_or_at(root)) {
            let why = format!("{spelled} leads to {} through a symlink", checkout.path);
            return held(here, Some(by), Code::PathEscapes, &why);
        }
        let foreign = !matches!(by.kind, TranslationKind::Identity | TranslationKind::Relative);
        if let Some(what) = registration
            .recorded
            .as_ref()
            .ok()
            .filter(|_| foreign)
            .and_then(|p| elsewhere(side, p, Some(checkout)))
        {
            return held(here, Some(by), Code::OutsideVantage, &format!("a container has it in {what}"));
        }
        match beneath::lstat(&checkout.path) {
            Ok(seen) if seen.kind == Kind::Directory && seen.id == checkout.id => {
                Placement::Joined { path: checkout.path.clone(), seen, by: by.clone() }
            }
            Ok(_) => {
                held(here, Some(by), Code::LinksDisagree, "the directory was replaced while it was looked at")
            }
            Err(refused) => held(here, Some(by), Code::Unreadable, &format!("{}: {refused}", checkout.path)),
        }
    }

    fn unjoined(&self, c: usize, registration: &Registration, stray: Option<usize>) -> Placement {
        let side = &self.sides[c];
        let Ok(recorded) = &registration.recorded else {
            return held(None, None, Code::Unreadable, "its recorded path can't be read");
        };
        if let Some(checkout) = stray.map(|w| &self.checkouts[w]) {
            let why = format!("{} names this entry, the entry records {recorded}", checkout.path);
            return held(Some(checkout.path.clone()), None, Code::LinksDisagree, &why);
        }
        if let Some((translator, local)) = self.translated(c, registration, recorded) {
            return self.at(c, registration, &translator, local);
        }
        if let Some(what) = elsewhere(side, recorded, None) {
            return held(None, None, Code::OutsideVantage, &format!("{recorded} is in {what}"));
        }
        if let Some(local) = by_clone_name(side.site, recorded) {
            return self.named_alike(c, registration, recorded, local);
        }
        held(
            None,
            None,
            Code::OutsideVantage,
            &format!("nothing translates {recorded}; --map CONTAINER=HOST can"),
        )
    }

    /// The first translation that takes the recorded path somewhere we may look.
    fn translated(
        &self,
        c: usize,
        registration: &Registration,
        recorded: &RecordedPath,
    ) -> Option<(Translator, LocalPath)> {
        let side = &self.sides[c];
        if !recorded.is_absolute() && !recorded.is_windows() {
            let entry = entry_path(side.site, registration)?;
            let local = recorded.resolved_from(&RecordedPath::new(entry.as_bstr()))?;
            let Place::Here(local) = Translator::Identity.place(&local) else { return None };
            return Some((Translator::Identity, local));
        }
        for translator in side.translators {
            match translator.place(recorded) {
                Place::Here(local)
                    if *translator == Translator::Identity && !self.is_of_this_host(&local) => {}
                Place::Here(local) => return Some((translator.clone(), local)),
                // Where a container that knows the path has it, no weaker rule may say otherwise.
                Place::Elsewhere(_) if elsewhere(side, recorded, None).is_some() => return None,
                Place::Elsewhere(_) | Place::NotCovered => {}
            }
        }
        self.inferred(c).into_iter().find_map(|translator| match translator.place(recorded) {
            Place::Here(local) => Some((translator, local)),
            _ => None,
        })
    }

    /// What the pointers of the checkouts that are joined with clone `c` let us infer.
    pub fn inferred(&self, c: usize) -> Vec<Translator> {
        let side = &self.sides[c];
        let called = self.called_by_siblings(c).into_iter().filter(|_| side.infers);
        called.filter_map(|called| infer(&called, side.site.common_path(), &side.site.root)).collect()
    }

    /// A path of another namespace is not taken for a path of this host because it looks like one: it has to lie beneath
    /// a root, or something has to be there.
    fn is_of_this_host(&self, local: &LocalPath) -> bool {
        self.roots.iter().any(|root| local.is_beneath_or_at(root)) || beneath::lstat(local).is_ok()
    }

    /// What the containers called the clone, by the pointers of the checkouts that are joined with it.
    fn called_by_siblings(&self, c: usize) -> BTreeSet<RecordedPath> {
        let joined = self.joins.joined.iter().filter(|((clone, _), _)| *clone == c);
        joined
            .filter(|(_, pair)| {
                !matches!(pair.by.kind, TranslationKind::Identity | TranslationKind::Relative)
            })
            .filter_map(|(_, pair)| self.checkouts[pair.checkout].pointer.entry.as_ref())
            .map(|(called, _)| called.clone())
            .collect()
    }

    /// What is at the translated path of a registration that no checkout is joined with.
    fn at(
        &self,
        c: usize,
        registration: &Registration,
        translator: &Translator,
        local: LocalPath,
    ) -> Placement {
        let side = &self.sides[c];
        let by = translator.evidence();
        if let Some(reason) = self.out_of_bounds(side.site, &local) {
            return Placement::Held { path: Some(local), by: Some(by), reasons: vec![reason] };
        }
        match self.look(&local) {
            Look::Escapes => held(
                Some(local),
                Some(&by),
                Code::PathEscapes,
                "a component of it is a symlink or no directory",
            ),
            Look::Failed(why) => held(Some(local), Some(&by), Code::Unreadable, &why),
            Look::There(meta) => present(local, &meta, Some(&by)),
            Look::Missing => {
                let others = self.placed_beside(c, translator);
                let missing = Missing {
                    local: &local,
                    clone_dir: &side.site.dir,
                    base: registration.recorded.as_ref().ok().and_then(|p| translator.base(p)),
                    others: &others,
                };
                match absence::doubt(&missing, by.kind) {
                    Some(doubt) => held(Some(local), Some(&by), Code::AbsenceUnproven, &doubt),
                    None => Placement::Absent { proof: absence::proof_of(translator), expected: local, by },
                }
            }
        }
    }

    /// Where the other registrations of clone `c` are by the same translation.
    fn placed_beside(&self, c: usize, translator: &Translator) -> Vec<LocalPath> {
        let recorded = self.sides[c].registrations.iter().filter_map(|r| r.recorded.as_ref().ok());
        recorded
            .filter_map(|p| match translator.place(p) {
                Place::Here(local) => Some(local),
                _ => None,
            })
            .collect()
    }

    /// The seventh, weak rule: it gives a row its path and a reason to keep, never a join.
    fn named_alike(
        &self,
        c: usize,
        registration: &Registration,
        recorded: &RecordedPath,
        local: LocalPath,
    ) -> Placement {
        if let Some(reason) = self.out_of_bounds(self.sides[c].site, &local) {
            return Placement::Held { path: Some(local), by: None, reasons: vec![reason] };
        }
        match self.look(&local) {
            Look::There(meta) => present(local, &meta, None),
            Look::Failed(why) => held(Some(local), None, Code::Unreadable, &why),
            Look::Escapes | Look::Missing => {
                let why = format!("nothing translates {recorded} of {}", registration.name);
                held(None, None, Code::OutsideVantage, &why)
            }
        }
    }

    /// Why nothing at `path` may be touched for this clone, whatever else is known.
    fn out_of_bounds(&self, site: &CloneSite, path: &LocalPath) -> Option<Reason> {
        // Another clone's is no business of this registration: the walk finds it as a nested repository.
        let mains = [Some(&site.dir), site.main_worktree.as_ref(), Some(site.common_path())];
        if let Some(main) = mains.into_iter().flatten().find(|main| main.is_beneath_or_at(path)) {
            return Some(Reason::new(Code::MainWorktree, format!("{path} is or contains {main}")));
        }
        if path.is_beneath_or_at(site.common_path()) {
            return Some(Reason::new(Code::MainWorktree, format!("{path} lies in the git directory")));
        }
        let add = |path: &LocalPath| {
            Some(Reason::new(Code::OutsideRoot, format!("add the root {path} to sweep it")))
        };
        if site.outside {
            return add(&site.common_path().parent().unwrap_or_else(|| site.common_path().clone()));
        }
        if !self.roots.iter().any(|root| path.is_beneath_or_at(root)) {
            return add(&path.parent().unwrap_or_else(|| path.clone()));
        }
        None
    }

    /// Looks at `path` from the root above it, following no link.
    fn look(&self, path: &LocalPath) -> Look {
        let Some((root, below)) = self.roots.iter().find_map(|root| Some((root, path.below(root)?))) else {
            return Look::Failed(format!("{path} is outside of every root"));
        };
        use bstr::ByteSlice;
        let meta = Dir::open(root).and_then(|dir| match below.is_empty() {
            true => dir.own_meta(),
            false => dir.meta(below.to_path_lossy().as_ref()),
        });
        match meta {
            Ok(meta) if meta.kind == Kind::Symlink => Look::Escapes,
            Ok(meta) => Look::There(meta),
            Err(Refused::Absent) => Look::Missing,
            Err(Refused::NotPlain) => Look::Escapes,
            Err(refused) => Look::Failed(format!("{path}: {refused}")),
        }
    }

    /// A checkout that is not joined, and whose `.git` file leads to this entry.
    fn stray_of(&self, c: usize, registration: &Registration) -> Option<usize> {
        self.checkouts.iter().enumerate().find_map(|(w, checkout)| {
            let (_, name) = checkout.pointer.entry.as_ref()?;
            let free = name == &registration.name
                && !self.joins.ambiguous_checkouts.contains_key(&w)
                && !self.joins.joined.values().any(|pair| pair.checkout == w);
            (free && self.owner_of(checkout) == Some(c)).then_some(w)
        })
    }

    /// Checkouts that no registration's row shows, each with the clone whose row it gets.
    pub fn strays(&self) -> Vec<(usize, usize)> {
        let shown = |w: usize, owner: usize| {
            let registrations = self.sides[owner].registrations.iter();
            registrations
                .filter(|r| r.recorded.is_ok() || r.broken().is_some())
                .any(|r| self.stray_of(owner, r) == Some(w))
        };
        (0..self.checkouts.len())
            .filter(|w| !self.joins.ambiguous_checkouts.contains_key(w))
            .filter(|w| !self.joins.joined.values().any(|pair| pair.checkout == *w))
            .filter_map(|w| Some((w, self.owner_of(&self.checkouts[w])?)))
            .filter(|(w, owner)| !shown(*w, *owner))
            .collect()
    }

    /// The clone whose row an unjoined checkout gets: the one that its file leads to, else the innermost one whose
    /// directory holds it, else the nearest beneath the same root.
    pub fn owner_of(&self, checkout: &Sighting) -> Option<usize> {
        let leads = self.sides.iter().position(|side| leads_to(side, checkout));
        let holding = || {
            let holds = |(_, side): &(usize, &JoinSide<'_>)| checkout.path.is_beneath_or_at(&side.site.dir);
            let inner = self.sides.iter().enumerate().filter(holds);
            inner.max_by_key(|(_, side)| side.site.dir.components().count()).map(|(c, _)| c)
        };
        let nearest = || {
            let root = self.roots.iter().find(|root| checkout.path.is_beneath_or_at(root))?;
            let beneath = self.sides.iter().enumerate().filter(|(_, s)| s.site.dir.is_beneath_or_at(root));
            beneath.max_by_key(|(_, side)| shared_depth(&side.site.dir, &checkout.path)).map(|(c, _)| c)
        };
        leads.or_else(holding).or_else(nearest)
    }
}

enum Look {
    There(Meta),
    Missing,
    Escapes,
    Failed(String),
}

pub(super) fn held(path: Option<LocalPath>, by: Option<&Evidence>, code: Code, why: &str) -> Placement {
    Placement::Held { path, by: by.cloned(), reasons: vec![Reason::new(code, why)] }
}

/// Something is at a path that a registration records, and it does not name the registration back.
fn present(path: LocalPath, meta: &Meta, by: Option<&Evidence>) -> Placement {
    if meta.kind != Kind::Directory {
        let why = format!("there is {} in the place of the checkout", meta.kind.described());
        return held(Some(path), by, Code::LinksDisagree, &why);
    }
    let dir = match Dir::open(&path) {
        Ok(dir) => dir,
        Err(refused) => {
            let why = format!("{path}: {refused}");
            return held(Some(path), by, Code::Unreadable, &why);
        }
    };
    match dir.read(".git", 16 << 10) {
        Ok(bytes) => match Pointer::parse(&bytes) {
            Some(pointer) => {
                let why = format!("{path} names {}", pointer.target);
                held(Some(path), by, Code::LinksDisagree, &why)
            }
            None => held(Some(path), by, Code::BrokenLink, "its .git file is not what git writes"),
        },
        Err(Refused::WrongKind(Kind::Directory)) => {
            held(Some(path), by, Code::LinksDisagree, "a repository of its own is there")
        }
        Err(Refused::Absent) => held(Some(path), by, Code::BrokenLink, "the directory has no .git file"),
        Err(refused) => {
            let why = format!("its .git can't be read: {refused}");
            held(Some(path), by, Code::BrokenLink, &why)
        }
    }
}

/// Where a container that knows the path has it, if that is no directory of this host. Where there is a checkout, a
/// container knows the path if its name for the clone is the one that the pointer has.
fn elsewhere(side: &JoinSide<'_>, recorded: &RecordedPath, checkout: Option<&Sighting>) -> Option<String> {
    let views = side.translators.iter().filter_map(|t| match t {
        Translator::Container(view) => Some(view),
        _ => None,
    });
    let mut found = None;
    for view in views {
        let Some(called) = view.name_of(side.site.common_path()) else { continue };
        let knows = match checkout.and_then(|c| c.pointer.entry.as_ref()) {
            Some((pointed, _)) => *pointed == called,
            // Without a directory any container that knows the clone may be the one that knew the path.
            None => true,
        };
        match view.place(recorded) {
            Place::Elsewhere(what) if knows => found = Some(what),
            // Another container has it on this host: then that one's layer says nothing.
            Place::Here(_) if checkout.is_none() => return None,
            _ => {}
        }
    }
    found
}

/// The remainder of a path behind a component that is called as the clone's directory is, below the clone.
fn by_clone_name(site: &CloneSite, recorded: &RecordedPath) -> Option<LocalPath> {
    let name = site.dir.file_name()?;
    let slashed = recorded.slashed();
    let components: Vec<_> = slashed.components().collect();
    let at = components.iter().rposition(|c| *c == name)?;
    site.dir.join(&bstr::join("/", &components[at + 1..]))
}

/// Whether a checkout's `.git` file leads to the clone, by a translation that needs no guess.
fn leads_to(side: &JoinSide<'_>, checkout: &Sighting) -> bool {
    let Some((called, _)) = &checkout.pointer.entry else { return false };
    let called = match called.is_absolute() || called.is_windows() {
        true => Some(called.clone()),
        false => called.resolved_from(&RecordedPath::new(checkout.path.as_bstr())),
    };
    let same = |local: &LocalPath| {
        local == side.site.common_path() || beneath::lstat(local).is_ok_and(|m| m.id == side.site.common_id)
    };
    called.is_some_and(|called| {
        side.translators.iter().any(|t| matches!(t.place(&called), Place::Here(local) if same(&local)))
    })
}

fn shared_depth(a: &LocalPath, b: &LocalPath) -> usize {
    a.components().zip(b.components()).take_while(|(a, b)| a == b).count()
}

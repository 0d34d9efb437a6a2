//! Where each registration's checkout is, and what keeps a registration that is not joined.

use crate::beneath::{self, Dir, Kind, Meta, Refused};
use crate::git::registration::{Pointer, Registration};
use crate::judge::facts::Placement;
use crate::judge::reason::{Code, Reason};
use crate::survey::absence::Witness;
use crate::survey::bounds::Look;
use crate::survey::discover::{CloneSite, Sighting};
use crate::survey::ground::Ground;
use crate::survey::join::{JoinSide, Pair, entry_path};
use crate::vantage::paths::{LocalPath, RecordedPath};
use crate::vantage::translate::{ContainerView, Evidence, Place, TranslationKind, Translator, infer};

/// What is at a translated path.
pub(super) enum Found {
    /// Something, or something in the way of looking: it decides.
    Something(Placement),
    /// Nothing; that it is gone may be this place's view only.
    Doubtful(Placement),
    Nothing(Placement),
}

impl Ground<'_> {
    /// Where the checkout of registration `r` of clone `c` is, as far as it is known without a marker.
    pub fn place(&self, c: usize, r: usize) -> Placement {
        self.place_seen_by(c, r, &|_| Witness::Silent)
    }

    /// The same with what the marker of the entry says of a path at which nothing is.
    pub fn place_seen_by(&self, c: usize, r: usize, witness: &dyn Fn(&LocalPath) -> Witness) -> Placement {
        let registration = &self.sides[c].registrations[r];
        let pair = self.joins.joined.get(&(c, r));
        if let Some(broken) = registration.broken() {
            let seen = pair.map(|pair| pair.checkout).or(self.stray_of(c, r).map(|(w, _)| w));
            return held(seen.map(|w| self.checkouts[w].path.clone()), None, Code::Unreadable, &broken.0);
        }
        match (self.joins.ambiguous.get(&(c, r)), pair) {
            (Some(claims), _) => {
                let only = claims.only_checkout.map(|w| self.checkouts[w].path.clone());
                held(only, None, Code::Ambiguous, &claims.why)
            }
            (None, Some(pair)) => self.joined(c, registration, pair),
            (None, None) => self.unjoined(c, r, registration, witness),
        }
    }

    fn joined(&self, c: usize, registration: &Registration, pair: &Pair) -> Placement {
        let side = &self.sides[c];
        let (checkout, by, spelled) = (&self.checkouts[pair.checkout], &pair.by, &pair.spelled);
        let here = Some(checkout.path.clone());
        if let Some(reason) = self.out_of_bounds(c, &checkout.path) {
            return Placement::Held { path: here, by: Some(by.clone()), reasons: vec![reason] };
        }
        if spelled != &checkout.path && self.is_in_bounds(spelled) {
            let why = format!("{spelled} leads to {} through a symlink", checkout.path);
            return held(here, Some(by), Code::PathEscapes, &why);
        }
        let recorded = registration.recorded.as_ref().ok().filter(|_| !by.kind.is_of_this_vantage());
        if let Some(what) = recorded.and_then(|p| of_its_container(side, p, checkout)) {
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

    fn unjoined(
        &self,
        c: usize,
        r: usize,
        registration: &Registration,
        witness: &dyn Fn(&LocalPath) -> Witness,
    ) -> Placement {
        let side = &self.sides[c];
        let Ok(recorded) = &registration.recorded else {
            return held(None, None, Code::Unreadable, "its recorded path can't be read");
        };
        let places = self.translations(c, registration, recorded);
        if let Some((w, certain)) = self.stray_of(c, r) {
            return self.astray(c, r, w, certain, &places);
        }
        let look = |(translator, local): &(Translator, LocalPath)| {
            self.at(c, registration, translator, local.clone(), witness)
        };
        let (mut doubtful, mut nothing) = (Vec::new(), Vec::new());
        for found in places.iter().map(look) {
            match found {
                Found::Something(placement) => return placement,
                Found::Doubtful(placement) => doubtful.push(placement),
                Found::Nothing(placement) => nothing.push(placement),
            }
        }
        if let Some(what) = elsewhere(side, recorded, !places.is_empty()) {
            return held(None, None, Code::OutsideVantage, &format!("{recorded} is in {what}"));
        }
        let guesses = places.iter().filter(|(t, _)| is_guess(t)).count();
        match doubtful.into_iter().next().or(nothing.into_iter().next()) {
            Some(_) if guesses > 1 => {
                let texts: Vec<String> = places.iter().map(|(_, local)| local.to_string()).collect();
                held(None, None, Code::Ambiguous, &format!("it may be {}", texts.join(" or ")))
            }
            Some(placement) => placement,
            None => self.untranslated(c, recorded),
        }
    }

    /// A directory elsewhere names the entry. Where nothing translates either, the two may well agree in another vantage.
    fn astray(
        &self,
        c: usize,
        r: usize,
        w: usize,
        certain: bool,
        places: &[(Translator, LocalPath)],
    ) -> Placement {
        let (side, checkout) = (&self.sides[c], &self.checkouts[w]);
        let registration = &side.registrations[r];
        let (path, Ok(recorded)) = (&checkout.path, &registration.recorded) else {
            return held(
                Some(checkout.path.clone()),
                None,
                Code::Unreadable,
                "its recorded path can't be read",
            );
        };
        let called = checkout.pointer.entry.as_ref().map(|(called, _)| called).filter(|_| side.infers);
        let guess = called.and_then(|called| infer(called, side.site.common_path(), &side.site.root));
        let by_guess = guess.is_some_and(|t| matches!(t.place(recorded), Place::Here(_)));
        if places.is_empty() && !certain && !by_guess {
            let why = format!("nothing translates {recorded}; {path} names {} too", registration.name);
            return held(Some(path.clone()), None, Code::OutsideVantage, &why);
        }
        let why = format!("{path} names this entry, the entry records {recorded}");
        let mut reasons = vec![Reason::new(Code::LinksDisagree, why)];
        if places.iter().all(|(_, local)| matches!(beneath::lstat(local), Err(Refused::Absent))) {
            let why = format!("{recorded} is not there, and {path} still names the entry");
            reasons.push(Reason::new(Code::AbsenceUnproven, why));
        }
        Placement::Held { path: Some(path.clone()), by: None, reasons }
    }

    /// Everywhere that the recorded path may be here, best first. What siblings let us infer is asked only where no
    /// better rule speaks.
    pub(super) fn translations(
        &self,
        c: usize,
        registration: &Registration,
        recorded: &RecordedPath,
    ) -> Vec<(Translator, LocalPath)> {
        let side = &self.sides[c];
        if !recorded.is_absolute() && !recorded.is_windows() {
            let from_entry = || {
                let entry = entry_path(side.site, registration)?;
                let path = recorded.resolved_from(&RecordedPath::new(entry.as_bstr()))?;
                match Translator::Identity.place(&path) {
                    Place::Here(local) => Some((Translator::Identity, self.respelled(local))),
                    _ => None,
                }
            };
            return from_entry().into_iter().collect();
        }
        let known = self.places_by(side.translators, recorded);
        if known.is_empty() { self.places_by(self.inferred(c), recorded) } else { known }
    }

    fn places_by(&self, translators: &[Translator], recorded: &RecordedPath) -> Vec<(Translator, LocalPath)> {
        let mut places: Vec<(Translator, LocalPath)> = Vec::new();
        for translator in translators {
            let Place::Here(local) = translator.place(recorded) else { continue };
            let local = self.respelled(local);
            let ours = *translator != Translator::Identity || self.is_of_this_host(&local);
            if ours && places.iter().all(|(_, known)| *known != local) {
                places.push((translator.clone(), local));
            }
        }
        places
    }

    /// A path of another namespace is not taken for a path of this host because it looks like one: it has to lie beneath
    /// a root, or something has to be there.
    fn is_of_this_host(&self, local: &LocalPath) -> bool {
        self.is_in_bounds(local) || self.object_at(local).is_some()
    }

    /// What is at the translated path of a registration that no checkout is joined with.
    fn at(
        &self,
        c: usize,
        registration: &Registration,
        translator: &Translator,
        local: LocalPath,
        witness: &dyn Fn(&LocalPath) -> Witness,
    ) -> Found {
        let by = translator.evidence();
        let something = |code, why: &str| Found::Something(held(Some(local.clone()), Some(&by), code, why));
        if let Some(reason) = self.out_of_bounds(c, &local) {
            return Found::Something(Placement::Held {
                path: Some(local),
                by: Some(by),
                reasons: vec![reason],
            });
        }
        match self.look(&local) {
            Look::Escapes => something(Code::PathEscapes, "a component of it is a symlink or no directory"),
            Look::Failed(why) => something(Code::Unreadable, &why),
            Look::There(meta) => Found::Something(present(local, &meta, Some(&by))),
            Look::Missing => match self.absence(c, registration, translator, &local, witness) {
                Ok(proof) => Found::Nothing(Placement::Absent { proof, expected: local, by }),
                Err(doubt) => Found::Doubtful(held(Some(local), Some(&by), Code::AbsenceUnproven, &doubt)),
            },
        }
    }

    /// Nothing that is known of the clone translates the path.
    fn untranslated(&self, c: usize, recorded: &RecordedPath) -> Placement {
        let unknown = |path| {
            let why = format!("nothing translates {recorded}; --map CONTAINER=HOST can");
            held(path, None, Code::OutsideVantage, &why)
        };
        // The seventh, weak rule: it gives a row its path and a reason to keep, never a join.
        let Some(local) = by_clone_name(self.sides[c].site, recorded) else { return unknown(None) };
        if recorded.is_windows() {
            return unknown(beneath::lstat(&local).is_ok().then_some(local));
        }
        if let Some(reason) = self.out_of_bounds(c, &local) {
            return Placement::Held { path: Some(local), by: None, reasons: vec![reason] };
        }
        match self.look(&local) {
            Look::There(meta) => present(local, &meta, None),
            Look::Failed(why) => held(Some(local), None, Code::Unreadable, &why),
            Look::Escapes | Look::Missing => unknown(None),
        }
    }
}

/// These translations are guesses: two that differ say nothing.
fn is_guess(translator: &Translator) -> bool {
    matches!(translator.kind(), TranslationKind::Inferred | TranslationKind::Label)
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

/// The containers' views of their own file systems, each with what it calls the clone's common directory.
fn views<'s>(side: &'s JoinSide<'_>) -> impl Iterator<Item = (RecordedPath, &'s ContainerView)> {
    side.translators.iter().filter_map(|t| match t {
        Translator::Container(view) => Some((view.name_of(side.site.common_path())?, view)),
        _ => None,
    })
}

/// Where the container that recorded the pair has the path, if that is no directory of this host: the one whose name for
/// the clone the pointer has.
fn of_its_container(side: &JoinSide<'_>, recorded: &RecordedPath, checkout: &Sighting) -> Option<String> {
    let (pointed, _) = checkout.pointer.entry.as_ref()?;
    views(side).filter(|(called, _)| called == pointed).find_map(|(_, view)| match view.place(recorded) {
        Place::Elsewhere(what) => Some(what),
        _ => None,
    })
}

/// Where a container that knows the clone has a path that is not there, if that is no directory of this host. Any may be
/// the one that knew the path; if the path means something here too, only one that has the clone beside it.
fn elsewhere(side: &JoinSide<'_>, recorded: &RecordedPath, means_something_here: bool) -> Option<String> {
    let knows = |called: &RecordedPath| !means_something_here || shares_place(called, recorded);
    views(side).filter(|(called, _)| knows(called)).find_map(|(_, view)| match view.place(recorded) {
        Place::Elsewhere(what) => Some(what),
        _ => None,
    })
}

/// The path lies in what the container calls the clone, or beside it.
fn shares_place(called: &RecordedPath, recorded: &RecordedPath) -> bool {
    let Some(clone) = called.parent() else { return false };
    let Some(beside) = clone.parent() else { return true };
    let is_root = beside.components().next().is_none();
    recorded.below(&clone).is_some()
        || recorded.parent().as_ref() == Some(&beside)
        || !is_root && recorded.below(&beside).is_some()
}

/// The remainder of a path behind a component that is called as the clone's directory is, below the clone.
fn by_clone_name(site: &CloneSite, recorded: &RecordedPath) -> Option<LocalPath> {
    let name = site.dir.file_name()?;
    let slashed = recorded.slashed();
    let components: Vec<_> = slashed.components().collect();
    let at = components.iter().rposition(|c| *c == name)?;
    site.dir.join(&bstr::join("/", &components[at + 1..]))
}

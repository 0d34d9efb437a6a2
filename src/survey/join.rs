//! The join: which registration and which checkout name each other.
//!
//! Registration *r* of clone *C* has the name *n* and the recorded path *p*; a checkout at *W* has a `.git` file that
//! records *a*. They are joined when one translation *T* gives `T(p) = W` **and** `T(a) = C's entry n`, and nothing else
//! claims the same pair. Neither a name, nor a place, nor one of the two equations alone joins anything.

use std::collections::{HashMap, HashSet};

use bstr::{BStr, ByteSlice};

use crate::beneath::{self, Refused};
use crate::git::open::Unreadable;
use crate::git::registration::Registration;
use crate::survey::discover::{CloneSite, Sighting};
use crate::vantage::paths::{FileId, LocalPath, RecordedPath};
use crate::vantage::translate::{Evidence, Place, TranslationKind, Translator, infer};

/// A clone with its registrations and the translations that hold for it, best first.
pub struct JoinSide<'a> {
    pub site: &'a CloneSite,
    pub registrations: &'a [Registration],
    /// Why the registrations can't be read; none are known then.
    pub unread: Option<&'a Unreadable>,
    pub translators: &'a [Translator],
    /// Inference is allowed: not inside a dev container, where only the own vantage is judged.
    pub infers: bool,
}

/// Where each registration and each checkout belongs; indices are those of the input.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Joins {
    /// By (clone, registration).
    pub joined: HashMap<(usize, usize), Pair>,
    /// Registrations and checkouts whose claims the keys can't tell apart, with what they collide with.
    pub ambiguous: HashMap<(usize, usize), Claims>,
    pub ambiguous_checkouts: HashMap<usize, String>,
}

/// What makes a registration ambiguous.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claims {
    pub why: String,
    /// The checkout, if it claims no other one.
    pub only_checkout: Option<usize>,
}

/// A checkout that a registration is joined with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    pub checkout: usize,
    pub by: Evidence,
    /// The recorded path as the translation spells it here; links in it may lead to the checkout.
    pub spelled: LocalPath,
}

/// A pair for which both equations hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Claim {
    registration: (usize, usize),
    pair: Pair,
    /// Why it stands against it that the pair was only guessed.
    contested: Option<String>,
}

/// Joins the registrations of all clones with all checkouts.
pub fn join(sides: &[JoinSide<'_>], checkouts: &[Sighting]) -> Joins {
    let mut by_name: HashMap<&BStr, Vec<usize>> = HashMap::new();
    for (at, checkout) in checkouts.iter().enumerate() {
        if let Some((_, name)) = &checkout.pointer.entry {
            by_name.entry(name.as_bstr()).or_default().push(at);
        }
    }
    let mut claims = Vec::new();
    for (c, side) in sides.iter().enumerate() {
        for (r, registration) in side.registrations.iter().enumerate() {
            for &w in by_name.get(registration.name.as_bstr()).map_or(&[][..], Vec::as_slice) {
                if let Some((by, spelled)) = names_each_other(side, registration, &checkouts[w]) {
                    let contested = guessed(by.kind)
                        .then(|| of_another_entry(&checkouts[w], side.site, registration))
                        .flatten();
                    let pair = Pair { checkout: w, by, spelled };
                    claims.push(Claim { registration: (c, r), pair, contested });
                }
            }
        }
    }
    note_rivals(&mut claims, sides);
    settle(claims, sides, checkouts)
}

/// Rests on a guess of what a container called the clone.
fn guessed(kind: TranslationKind) -> bool {
    matches!(kind, TranslationKind::Inferred | TranslationKind::Label)
}

/// The pointer of a pair that is only guessed is a path of this host, where another entry is.
fn of_another_entry(checkout: &Sighting, site: &CloneSite, registration: &Registration) -> Option<String> {
    let target = local(&checkout.pointer.target).filter(|_| checkout.pointer.target.is_absolute())?;
    match beneath::lstat(&target) {
        Err(Refused::Absent) => None,
        Ok(meta) if Some(meta.id) == registration.id => None,
        Ok(_) | Err(_) if Some(&target) == entry_path(site, registration).as_ref() => None,
        Ok(_) => Some(format!("{} points at another entry of this host, {target}", checkout.path)),
        Err(refused) => Some(format!("{} points at {target}, {refused}", checkout.path)),
    }
}

/// A checkout beside its clone, joined by a guess, might be that of another clone that was called the same: one whose
/// registration has the same name and the same path, and no checkout of its own.
fn note_rivals(claims: &mut [Claim], sides: &[JoinSide<'_>]) {
    let beside = |claim: &Claim| {
        guessed(claim.pair.by.kind)
            && !claim.pair.spelled.is_beneath_or_at(&sides[claim.registration.0].site.dir)
    };
    if !claims.iter().any(beside) {
        return;
    }
    let claiming: HashSet<(usize, usize)> = claims.iter().map(|claim| claim.registration).collect();
    let mut idle: HashMap<(&BStr, RecordedPath), Vec<usize>> = HashMap::new();
    for (c, side) in sides.iter().enumerate() {
        for (r, registration) in side.registrations.iter().enumerate() {
            if let (Some(path), false) = (normalized(registration), claiming.contains(&(c, r))) {
                idle.entry((registration.name.as_bstr(), path)).or_default().push(c);
            }
        }
    }
    for claim in claims.iter_mut().filter(|claim| beside(claim) && claim.contested.is_none()) {
        let (c, r) = claim.registration;
        let registration = &sides[c].registrations[r];
        let Some(path) = normalized(registration) else { continue };
        let rivals = idle.get(&(registration.name.as_bstr(), path));
        let rival = rivals.into_iter().flatten().find(|other| **other != c);
        claim.contested = rival.map(|other| {
            let site = &sides[*other].site.dir;
            format!("it may as well be {} of {site}, which records the same path", registration.name)
        });
    }
}

fn normalized(registration: &Registration) -> Option<RecordedPath> {
    registration.recorded.as_ref().ok().filter(|path| path.is_absolute())?.normalized()
}

/// Only a pair that nothing else claims is joined.
fn settle(claims: Vec<Claim>, sides: &[JoinSide<'_>], checkouts: &[Sighting]) -> Joins {
    let mut of_registration: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    let mut of_checkout: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
    for claim in &claims {
        of_registration.entry(claim.registration).or_default().push(claim.pair.checkout);
        of_checkout.entry(claim.pair.checkout).or_default().push(claim.registration);
    }
    let shown =
        |(c, r): (usize, usize)| format!("{} of {}", sides[c].registrations[r].name, sides[c].site.dir);
    let mut joins = Joins::default();
    for claim in claims {
        let (claimants, places) = (&of_checkout[&claim.pair.checkout], &of_registration[&claim.registration]);
        let here = &checkouts[claim.pair.checkout].path;
        let rival = claimants.iter().filter(|r| **r != claim.registration).map(|r| shown(*r)).min();
        let place = places.iter().filter(|w| **w != claim.pair.checkout).map(|w| &checkouts[*w].path).min();
        let why = match (rival, place, claim.contested) {
            (Some(rival), _, _) => format!("{here} is claimed by {rival} too"),
            (_, Some(place), _) => format!("{place} answers to the same keys as {here}"),
            (_, _, Some(contested)) => contested,
            _ => {
                joins.joined.insert(claim.registration, claim.pair);
                continue;
            }
        };
        let only_checkout = (places.len() == 1).then_some(claim.pair.checkout);
        let claims = Claims { why: why.clone(), only_checkout };
        let known = joins.ambiguous.entry(claim.registration).or_insert_with(|| claims.clone());
        if claims.why < known.why {
            *known = claims;
        }
        joins.ambiguous_checkouts.insert(claim.pair.checkout, why);
    }
    joins
}

/// The first translation for which both equations hold, and how it spells the recorded path.
fn names_each_other(
    side: &JoinSide<'_>,
    registration: &Registration,
    checkout: &Sighting,
) -> Option<(Evidence, LocalPath)> {
    let recorded = registration.recorded.as_ref().ok()?;
    let target = &checkout.pointer.target;
    let entry = entry_path(side.site, registration)?;
    if !recorded.is_absolute() && !target.is_absolute() && !recorded.is_windows() && !target.is_windows() {
        let to_checkout = local(&recorded.resolved_from(&RecordedPath::new(entry.as_bstr()))?)?;
        let to_entry = local(&target.resolved_from(&RecordedPath::new(checkout.path.as_bstr()))?)?;
        let by = Evidence { kind: TranslationKind::Relative, text: "both links are relative".to_owned() };
        let both = is_entry(&to_entry, &entry, registration.id) && is_checkout(&to_checkout, checkout);
        return both.then_some((by, to_checkout));
    }
    let (recorded, target) = in_writers_terms(recorded, target)?;
    let holds = |translator: &Translator| {
        let (Place::Here(to_entry), Place::Here(spelled)) =
            (translator.place(&target), translator.place(&recorded))
        else {
            return None;
        };
        let both = is_entry(&to_entry, &entry, registration.id) && is_checkout(&spelled, checkout);
        both.then(|| (translator.evidence(), spelled))
    };
    if let Some(found) = side.translators.iter().find_map(holds) {
        return Some(found);
    }
    let (called, _) = checkout.pointer.entry.as_ref()?;
    let called = if called.is_absolute() { called.clone() } else { target.parent()?.parent()? };
    let inferred = infer(&called, side.site.common_path(), &side.site.root).filter(|_| side.infers)?;
    holds(&inferred)
}

/// Both paths as absolute paths of their writer's namespace: a relative one is read from where the other one is.
fn in_writers_terms(recorded: &RecordedPath, target: &RecordedPath) -> Option<(RecordedPath, RecordedPath)> {
    match (recorded.is_absolute() || recorded.is_windows(), target.is_absolute() || target.is_windows()) {
        (true, true) => Some((recorded.clone(), target.clone())),
        (false, true) => Some((recorded.resolved_from(target)?, target.clone())),
        (true, false) => Some((recorded.clone(), target.resolved_from(recorded)?)),
        (false, false) => None,
    }
}

/// Where the administrative entry of `registration` is here.
pub fn entry_path(site: &CloneSite, registration: &Registration) -> Option<LocalPath> {
    site.common_path().join(b"worktrees")?.join(registration.name.as_bstr())
}

fn local(path: &RecordedPath) -> Option<LocalPath> {
    LocalPath::new(path.as_bstr().to_path_lossy())
}

/// Two spellings of one directory are one directory (case C14): the object decides where the paths differ.
fn is_entry(found: &LocalPath, entry: &LocalPath, id: Option<FileId>) -> bool {
    found == entry || id.is_some() && resolved_id(found) == id
}

fn is_checkout(found: &LocalPath, checkout: &Sighting) -> bool {
    *found == checkout.path || resolved_id(found) == Some(checkout.id)
}

/// What the directory is whose parents' links have been followed; its own last component may be no link.
fn resolved_id(path: &LocalPath) -> Option<FileId> {
    beneath::lstat(path).ok().map(|m| m.id)
}

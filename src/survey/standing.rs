//! What is known of a worktree before any costly question: its place, its ownership, its lock, and who protects it.

use bstr::{BStr, BString, ByteSlice};

use crate::beneath::{self, Dir, Kind, Stamp};
use crate::git::registration::{Pointer, Registration};
use crate::judge::facts::{Facts, LockFacts, LockedBy, Ownership, Placement, Standing, Subject};
use crate::judge::ownership::{MarkerFact, OwnershipInput, ownership};
use crate::judge::reason::{Code, Reason};
use crate::state_dir::{CloneState, VantageId};
use crate::survey::absence::{Witness, file_system_in};
use crate::survey::examine::{Inquiry, branch_of};
use crate::survey::eyes::CloneEyes;
use crate::survey::ground::Ground;
use crate::survey::join::entry_path;
use crate::sweep::marker::{self, MarkerState};
use crate::sweep::trash;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};
use crate::vantage::translate::{Place, TranslationKind, Translator};

/// The reason that `guard --lock` gives: it keeps stock git away and does not hold for us.
pub const GUARD_REASON: &str = "treesweep guard: protected from git worktree prune on the host";

/// The standings of one clone's worktrees.
pub struct Standings<'a> {
    pub ground: &'a Ground<'a>,
    /// Which clone.
    pub c: usize,
    /// `None` if the clone could not be opened.
    pub eyes: Option<&'a CloneEyes>,
    pub inquiry: &'a Inquiry<'a>,
    /// The directory of all entries.
    worktrees: Option<Dir>,
    state: Option<CloneState>,
    vantage: Option<VantageId>,
    has_foreign: bool,
    /// Where the clone's configuration points, and what says so.
    pointed: Vec<(LocalPath, String)>,
}

impl<'a> Standings<'a> {
    pub fn new(
        ground: &'a Ground<'a>,
        c: usize,
        eyes: Option<&'a CloneEyes>,
        inquiry: &'a Inquiry<'a>,
    ) -> Self {
        let side = &ground.sides[c];
        let state = inquiry.state.and_then(|s| s.existing_clone_state(side.site.common_id).ok().flatten());
        let vantage = inquiry.state.and_then(|s| s.vantage().ok().flatten());
        // A container that has the clone mounted can write markers, whatever it registered.
        let mounted = |t: &Translator| matches!(t.kind(), TranslationKind::Mount | TranslationKind::Label);
        let has_foreign = side.translators.iter().any(mounted)
            || (0..side.registrations.len()).any(|r| is_foreign(ground, c, r));
        let pointed = eyes.map_or_else(Vec::new, |eyes| pointed(ground, c, &eyes.pointed_at));
        let worktrees = side.site.common.dir("worktrees").ok();
        Self { ground, c, eyes, inquiry, worktrees, state, vantage, has_foreign, pointed }
    }

    /// Registration `r` of the clone, and when it was enrolled, as its marker says.
    pub fn of_registration(&self, r: usize) -> (Standing, Option<Stamp>) {
        let registration = &self.ground.sides[self.c].registrations[r];
        let marker = self.marker(registration);
        let witness = |expected: &LocalPath| self.witness(&marker, registration, expected);
        let placement = self.ground.place_seen_by(self.c, r, &witness);
        let ownership = self.ownership(registration, &placement, &marker);
        let lock = registration.lock.as_ref().ok().and_then(Option::as_ref).map(|lock| LockFacts {
            reason: escape(&lock.reason),
            since: lock.since,
            by: if lock.reason == GUARD_REASON { LockedBy::Guard } else { LockedBy::Somebody },
        });
        let holds = self.holds(registration, &placement);
        let enrolled = match &marker {
            MarkerState::Ready(marker) => Some(Stamp { seconds: marker.time.as_second(), nanos: 0 }),
            _ => None,
        };
        (Standing { placement, ownership, lock, holds }, enrolled)
    }

    /// The checkout number `w`, which no registration answers for.
    pub fn of_orphan(&self, w: usize) -> Facts {
        let checkout = &self.ground.checkouts[w];
        let name = checkout.pointer.entry.as_ref().map(|(_, n)| n.as_bstr().to_owned()).unwrap_or_default();
        let unowned = Ownership::Unowned { why: "its registration is gone".to_owned() };
        let held = |code, why: String| Placement::Held {
            path: Some(checkout.path.clone()),
            by: None,
            reasons: vec![Reason::new(code, why)],
        };
        let foreign = || {
            let target = &checkout.pointer.target;
            target.is_absolute()
                && LocalPath::new(target.as_bstr().to_path_lossy())
                    .is_none_or(|p| !self.ground.roots.iter().any(|root| p.is_beneath_or_at(root)))
        };
        let seen = beneath::lstat(&checkout.path);
        let (placement, seen) = match seen {
            Ok(seen) if seen.kind == Kind::Directory && seen.id == checkout.id => {
                let placement = match self.ground.is_orphan(w) {
                    Err(reason) => held(reason.code, reason.detail),
                    Ok(()) if foreign() && !self.ground.sides[self.c].infers => {
                        held(Code::OutsideVantage, format!("it names {}", checkout.pointer.target))
                    }
                    Ok(()) => match self.ground.out_of_bounds(self.c, &checkout.path) {
                        Some(reason) => held(reason.code, reason.detail),
                        None => Placement::Unregistered,
                    },
                };
                (placement, Some(seen))
            }
            Ok(_) => (held(Code::LinksDisagree, "it was replaced while it was looked at".to_owned()), None),
            Err(refused) => (held(Code::Unreadable, refused.to_string()), None),
        };
        let protect = self.protected(name.as_bstr(), None, Some(&checkout.path));
        let referenced = self.referenced(&checkout.path);
        let standing = Standing {
            placement,
            ownership: unowned,
            lock: None,
            holds: protect
                .into_iter()
                .chain(referenced)
                .chain(self.lends(&[&checkout.path]))
                .chain(self.holding(&checkout.path))
                .collect(),
        };
        let subject = Subject::Orphan { name, path: checkout.path.clone(), seen };
        Facts::new(subject, standing)
    }

    /// Trash at `path` that no journal of ours knows. A removal deletes the `.git` file last, so that what is left of a
    /// checkout still has it, or nothing at all.
    pub fn of_trash(&self, path: &LocalPath) -> Facts {
        let held = |code, why: &str| Placement::Held {
            path: Some(path.clone()),
            by: None,
            reasons: vec![Reason::new(code, why)],
        };
        let seen = beneath::lstat(path).ok().filter(|meta| meta.kind == Kind::Directory);
        let dir = Dir::open(path);
        let linked = dir.as_ref().is_ok_and(|dir| match dir.read(".git", 16 << 10) {
            Ok(bytes) => Pointer::parse(&bytes).is_some_and(|p| p.entry.is_some()),
            Err(beneath::Refused::Absent) => dir.names().is_ok_and(|names| names.is_empty()),
            Err(_) => false,
        });
        let inside = self.ground.roots.iter().any(|root| path.is_beneath_or_at(root) && path != root);
        let placement = match (seen, linked, inside) {
            (None, _, _) => held(Code::Unreadable, "it is no directory that can be looked at"),
            (_, false, _) => held(Code::BrokenLink, "what is left in it has no .git file of a worktree"),
            (_, _, false) => held(Code::OutsideRoot, "name the directory that holds it with --root"),
            (Some(_), true, true) => Placement::Unregistered,
        };
        let name = path.file_name().and_then(trash_entry).unwrap_or_default();
        let standing = Standing {
            placement,
            ownership: Ownership::Unowned { why: "no journal of this host".to_owned() },
            lock: None,
            holds: self.protected(name.as_bstr(), None, Some(path)).into_iter().collect(),
        };
        Facts::new(Subject::Trash { name, path: path.clone(), seen }, standing)
    }

    fn entry(&self, registration: &Registration) -> Option<Dir> {
        self.worktrees.as_ref()?.dir(registration.name.as_os_str()).ok()
    }

    fn marker(&self, registration: &Registration) -> MarkerState {
        match self.entry(registration) {
            Some(entry) => marker::read(&entry, &registration.name),
            None => MarkerState::None,
        }
    }

    /// A marker of another tool that the user's configuration honours: a plain file in the exact entry.
    fn other_marker(&self, registration: &Registration) -> Option<String> {
        if self.inquiry.settings.markers.is_empty() {
            return None;
        }
        let entry = self.entry(registration)?;
        self.inquiry.settings.markers.iter().map(|m| &m.value).find_map(|path| {
            let plain = entry.file(path.as_path()).is_ok();
            plain.then(|| path.to_string())
        })
    }

    fn ownership(
        &self,
        registration: &Registration,
        placement: &Placement,
        marker: &MarkerState,
    ) -> Ownership {
        let fact = match marker {
            MarkerState::Ready(_) => MarkerFact::Ready("treesweep/ready".to_owned()),
            other => match (self.other_marker(registration), other) {
                (Some(path), _) => MarkerFact::Ready(path),
                (None, MarkerState::Invalid { why }) => MarkerFact::Invalid(why.clone()),
                (None, _) => MarkerFact::None,
            },
        };
        let templates: Vec<_> = self.inquiry.settings.templates.value.clone();
        ownership(&OwnershipInput {
            name: &registration.name,
            branch: branch_of(registration),
            marker: &fact,
            templates: &templates,
            needs_record: self.has_foreign && of_this_vantage(placement),
            has_record: self.has_record(registration, marker),
        })
    }

    fn has_record(&self, registration: &Registration, marker: &MarkerState) -> bool {
        let (MarkerState::Ready(marker), Some(state), Some(entry)) =
            (marker, &self.state, self.entry(registration))
        else {
            return false;
        };
        let noted = marker::enrolment(state, &registration.name).ok().flatten();
        noted.is_some_and(|noted| Some(noted.entry) == registration.id && noted.matches(&entry, marker))
    }

    /// What the marker says of the path at which its checkout would be: it speaks at its own vantage only, and as long
    /// as the recorded path is the one that it names.
    fn witness(&self, marker: &MarkerState, registration: &Registration, expected: &LocalPath) -> Witness {
        let (MarkerState::Ready(marker), Some(vantage), Ok(recorded)) =
            (marker, &self.vantage, &registration.recorded)
        else {
            return Witness::Silent;
        };
        let was = &marker.file_system;
        let speaks = marker.vantage == *vantage
            && RecordedPath::new(marker.recorded_path.0.clone()) == *recorded
            && marker.path.local().as_ref() == Some(expected)
            // A file system without an id can't be told from another one at the same place.
            && was.id != 0;
        if !speaks {
            return Witness::Silent;
        }
        let mount_point = escape(&was.mount_point.0);
        match file_system_in(&self.inquiry.world.mounts, expected) {
            Ok(now) if now.id == was.id && was.mount_point.0 == now.mount_point => Witness::Mounted(
                "enrolled at this very path of this host, whose file system is mounted".to_owned(),
            ),
            Ok(_) => {
                let why = format!("it was on the file system at {mount_point}, and another one is there now");
                Witness::NotMounted(why)
            }
            Err(error) => Witness::NotMounted(format!("the file system at {mount_point}: {error}")),
        }
    }

    fn holds(&self, registration: &Registration, placement: &Placement) -> Vec<Reason> {
        let path = match placement {
            Placement::Joined { path, .. } => Some(path),
            Placement::Absent { expected, .. } => Some(expected),
            Placement::Held { path, .. } => path.as_ref(),
            Placement::Unregistered => None,
        };
        let branch = branch_of(registration);
        let mut holds: Vec<Reason> =
            self.protected(registration.name.as_bstr(), branch, path).into_iter().collect();
        let on_trunk = match (&registration.head, self.eyes) {
            (Ok(crate::git::registration::Head::Branch(full)), Some(eyes)) => eyes.is_trunk(full),
            _ => false,
        };
        if on_trunk {
            holds.push(Reason::new(Code::Protected, "it has the trunk checked out"));
        }
        holds.extend(path.and_then(|p| self.referenced(p)));
        let entry = entry_path(self.ground.sides[self.c].site, registration);
        holds.extend(self.lends(&path.into_iter().chain(&entry).collect::<Vec<_>>()));
        if let Placement::Joined { path, .. } = placement {
            holds.extend(self.holding(path));
        }
        holds
    }

    fn protected(&self, name: &BStr, branch: Option<&BStr>, path: Option<&LocalPath>) -> Option<Reason> {
        let subjects = [Some(name), branch, path.map(LocalPath::as_bstr)];
        let hit = self.inquiry.settings.protect.hit(subjects.into_iter().flatten().map(|s| s.as_bytes()))?;
        Some(Reason::new(Code::Protected, format!("--protect '{}'", escape(hit.value.as_str().as_bytes()))))
    }

    /// The clone's shared configuration points into the checkout at `path`.
    fn referenced(&self, path: &LocalPath) -> Option<Reason> {
        let (_, why) = self.pointed.iter().find(|(place, _)| place.is_beneath_or_at(path))?;
        Some(Reason::new(Code::Referenced, why.as_str()))
    }

    /// Objects in one of `dirs`, which are a worktree's, that another clone has no copy of.
    fn lends(&self, dirs: &[&LocalPath]) -> Option<Reason> {
        let lender = self.ground.lends(dirs)?;
        let why = format!("{} borrows objects from {}", lender.to, lender.store);
        Some(Reason::new(Code::Referenced, why))
    }

    /// A directory in the checkout at `path` that a registration records and that does not name it back: a walk sees
    /// plain files there, and can't know that they are somebody's.
    fn holding(&self, path: &LocalPath) -> Option<Reason> {
        let there = |(place, _, _): &&(LocalPath, usize, usize)| {
            !matches!(beneath::lstat(place), Err(beneath::Refused::Absent))
        };
        let (place, c, r) = self.ground.unjoined_beneath(path).find(there)?;
        let side = &self.ground.sides[*c];
        let name = &side.registrations[*r].name;
        let why = format!("{place} is in it, which {name} of {} records", side.site.dir);
        Some(Reason::new(Code::NestedKept, why))
    }
}

/// Where the configuration of clone `c` points on this host, each place with what says so.
fn pointed(ground: &Ground<'_>, c: usize, values: &[(String, BString)]) -> Vec<(LocalPath, String)> {
    let side = &ground.sides[c];
    let common = RecordedPath::new(side.site.common_path().as_bstr());
    let mut all = Vec::new();
    for (key, value) in values {
        let why = format!("the clone's {key} is '{}'", escape(value));
        let path = RecordedPath::new(value.clone());
        let absolute = match (value.strip_prefix(b"~/"), path.is_absolute()) {
            (Some(rest), _) => crate::config::home()
                .and_then(|home| LocalPath::new(home)?.join(rest))
                .map(|local| RecordedPath::new(local.as_bstr())),
            (None, true) => path.normalized(),
            // Hooks are looked for from the top of a worktree: what leads out of the main one may lead into another.
            (None, false) if key == "core.hooksPath" => {
                let top = side.site.main_worktree.as_ref().unwrap_or(&side.site.dir);
                path.resolved_from(&RecordedPath::new(top.as_bstr()))
            }
            (None, false) => path.resolved_from(&common),
        };
        let Some(absolute) = absolute else { continue };
        for translator in side.translators.iter().chain(ground.inferred(c)) {
            if let Place::Here(local) = translator.place(&absolute) {
                all.push((ground.respelled(local), why.clone()));
            }
        }
    }
    all
}

fn trash_entry(file_name: &BStr) -> Option<BString> {
    trash::parse(file_name)?.entry.map(|e| e.as_bstr().to_owned())
}

/// A recorded path of another vantage: stock git here takes it for dead, and where a container writes, a marker can be
/// forged. One that can't be read may be any.
pub fn is_foreign(ground: &Ground<'_>, c: usize, r: usize) -> bool {
    if let Some(pair) = ground.joins.joined.get(&(c, r)) {
        return !pair.by.kind.is_of_this_vantage();
    }
    let Ok(recorded) = &ground.sides[c].registrations[r].recorded else { return true };
    let local = LocalPath::new(recorded.as_bstr().to_path_lossy());
    let ours = || local.is_some_and(|l| ground.roots.iter().any(|root| l.is_beneath_or_at(root)));
    recorded.is_windows() || recorded.is_absolute() && !ours()
}

fn of_this_vantage(placement: &Placement) -> bool {
    match placement {
        Placement::Joined { by, .. } | Placement::Absent { by, .. } => by.kind.is_of_this_vantage(),
        _ => true,
    }
}

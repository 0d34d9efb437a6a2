//! What is known of a worktree before any costly question: its place, its ownership, its lock, and who protects it.

use bstr::{BStr, BString, ByteSlice};

use crate::beneath::{self, Dir, Kind, Stamp};
use crate::git::registration::{Pointer, Registration};
use crate::judge::facts::{AbsenceProof, Facts, LockFacts, Ownership, Placement, Standing, Subject};
use crate::judge::ownership::{MarkerFact, OwnershipInput, ownership};
use crate::judge::reason::{Code, Reason};
use crate::state_dir::CloneState;
use crate::survey::absence::file_system_of;
use crate::survey::discover::Sighting;
use crate::survey::examine::{Inquiry, branch_of};
use crate::survey::eyes::CloneEyes;
use crate::survey::join::JoinSide;
use crate::survey::placement::Ground;
use crate::sweep::marker::{self, Marker, MarkerState};
use crate::sweep::trash;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};
use crate::vantage::translate::{Place, TranslationKind};

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
    placements: Vec<Placement>,
    state: Option<CloneState>,
    has_foreign: bool,
}

impl<'a> Standings<'a> {
    pub fn new(
        ground: &'a Ground<'a>,
        c: usize,
        eyes: Option<&'a CloneEyes>,
        inquiry: &'a Inquiry<'a>,
    ) -> Self {
        let side = &ground.sides[c];
        let placements: Vec<Placement> = (0..side.registrations.len()).map(|r| ground.place(c, r)).collect();
        let has_foreign =
            side.registrations.iter().zip(&placements).any(|(r, p)| is_foreign(r, p, ground.roots));
        let state = inquiry.state.and_then(|s| s.existing_clone_state(side.site.common_id).ok().flatten());
        Self { ground, c, eyes, inquiry, placements, state, has_foreign }
    }

    pub fn placement(&self, r: usize) -> &Placement {
        &self.placements[r]
    }

    /// Registration `r` of the clone.
    pub fn of_registration(&self, r: usize) -> Standing {
        let registration = &self.ground.sides[self.c].registrations[r];
        let marker = self.marker(registration);
        let mut placement = self.placements[r].clone();
        if let (Placement::Absent { expected, proof, .. }, MarkerState::Ready(marker)) =
            (&mut placement, &marker)
            && let Some(proven) = self.proven_by(marker, registration, expected)
        {
            *proof = AbsenceProof::Proven(proven);
        }
        let ownership = self.ownership(registration, &placement, &marker);
        let lock = registration.lock.as_ref().ok().and_then(Option::as_ref).map(|lock| LockFacts {
            reason: escape(&lock.reason),
            since: lock.since,
            guard: lock.reason == GUARD_REASON,
        });
        let holds = self.holds(registration, &placement);
        Standing { placement, ownership, lock, holds }
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
        let registered = self.ground.sides[self.c].registrations.iter().any(|r| r.name.as_bstr() == name);
        let seen = beneath::lstat(&checkout.path);
        let (placement, seen) = match seen {
            Ok(seen) if seen.kind == Kind::Directory && seen.id == checkout.id => {
                let foreign = checkout.pointer.target.is_absolute()
                    && LocalPath::new(checkout.pointer.target.as_bstr().to_path_lossy())
                        .is_none_or(|p| !self.ground.roots.iter().any(|root| p.is_beneath_or_at(root)));
                let placement = if registered {
                    let why =
                        format!("it names the entry {}, which answers for another directory", escape(&name));
                    held(Code::LinksDisagree, why)
                } else if let Some(why) = self.may_be_registered(checkout) {
                    held(Code::Unreadable, why)
                } else if foreign && !self.ground.sides[self.c].infers {
                    held(Code::OutsideVantage, format!("it names {}", checkout.pointer.target))
                } else {
                    Placement::Unregistered
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
            holds: protect.into_iter().chain(referenced).collect(),
        };
        let subject = Subject::Orphan { name, path: checkout.path.clone(), seen };
        Facts::new(subject, standing)
    }

    /// Its registration is not seen to be gone: those of its clone, or of one that it might be of, can't be read.
    fn may_be_registered(&self, checkout: &Sighting) -> Option<String> {
        let own = &self.ground.sides[self.c];
        let leads_home = checkout.pointer.target.is_absolute()
            && LocalPath::new(checkout.pointer.target.as_bstr().to_path_lossy())
                .is_some_and(|p| p.is_beneath_or_at(own.site.common_path()));
        let unread = |side: &&JoinSide<'_>| {
            side.unread.is_some() && (!leads_home || side.site.common_id == own.site.common_id)
        };
        let side = self.ground.sides.iter().find(unread)?;
        side.unread.map(|why| format!("the registrations of {} can't be read: {why}", side.site.dir))
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

    /// When the worktree was enrolled, as its marker says.
    pub fn enrolled_at(&self, registration: &Registration) -> Option<Stamp> {
        match self.marker(registration) {
            MarkerState::Ready(marker) => Some(Stamp { seconds: marker.time.as_second(), nanos: 0 }),
            _ => None,
        }
    }

    fn entry(&self, registration: &Registration) -> Option<Dir> {
        let worktrees = self.ground.sides[self.c].site.common.dir("worktrees").ok()?;
        worktrees.dir(registration.name.as_os_str()).ok()
    }

    fn marker(&self, registration: &Registration) -> MarkerState {
        match self.entry(registration) {
            Some(entry) => marker::read(&entry, &registration.name),
            None => MarkerState::None,
        }
    }

    /// A marker of another tool that the user's configuration honours: a plain file in the exact entry.
    fn other_marker(&self, registration: &Registration) -> Option<String> {
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
        let (MarkerState::Ready(marker), Some(state), Some(id)) = (marker, &self.state, registration.id)
        else {
            return false;
        };
        marker::enrolment(state, &registration.name).ok().flatten().is_some_and(|e| e.matches(id, marker))
    }

    /// Absence, proven at the marker's own vantage: the recorded path is still the marker's, and the file system that it
    /// was on is mounted there.
    fn proven_by(
        &self,
        marker: &Marker,
        registration: &Registration,
        expected: &LocalPath,
    ) -> Option<String> {
        let vantage = self.inquiry.state?.vantage().ok().flatten()?;
        let recorded = registration.recorded.as_ref().ok()?;
        let same_place = marker.vantage == vantage
            && RecordedPath::new(marker.recorded_path.0.clone()) == *recorded
            && marker.path.local().as_ref() == Some(expected);
        let now = file_system_of(expected).ok().filter(|_| same_place)?;
        let was = &marker.file_system;
        (now.id == was.id && was.mount_point.0 == now.mount_point)
            .then(|| "enrolled at this very path of this host, whose file system is mounted".to_owned())
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
        holds
    }

    fn protected(&self, name: &BStr, branch: Option<&BStr>, path: Option<&LocalPath>) -> Option<Reason> {
        let subjects = [Some(name), branch, path.map(LocalPath::as_bstr)];
        let hit = self.inquiry.settings.protect.hit(subjects.into_iter().flatten().map(|s| s.as_bytes()))?;
        Some(Reason::new(Code::Protected, format!("--protect '{}'", escape(hit.value.as_str().as_bytes()))))
    }

    /// The clone's shared configuration points into the checkout at `path`.
    fn referenced(&self, path: &LocalPath) -> Option<Reason> {
        let side = &self.ground.sides[self.c];
        let places = |key: &str, value: &BString| -> Vec<LocalPath> {
            let recorded = RecordedPath::new(value.clone());
            let absolute = match recorded.is_absolute() {
                true => Some(recorded),
                // Relative to the top of each worktree: it points into none of them more than into another.
                false if key == "core.hooksPath" => None,
                false => recorded.resolved_from(&RecordedPath::new(side.site.common_path().as_bstr())),
            };
            let Some(absolute) = absolute else { return Vec::new() };
            let inferred = self.ground.inferred(self.c);
            let rules = side.translators.iter().chain(&inferred);
            rules
                .filter_map(|t| match t.place(&absolute) {
                    Place::Here(local) => Some(local),
                    _ => None,
                })
                .collect()
        };
        let pointed = self.eyes.map(|e| e.pointed_at.as_slice()).unwrap_or_default();
        pointed.iter().find(|(key, value)| places(key, value).iter().any(|p| p.is_beneath_or_at(path))).map(
            |(key, value)| Reason::new(Code::Referenced, format!("the clone's {key} is '{}'", escape(value))),
        )
    }
}

fn trash_entry(file_name: &BStr) -> Option<BString> {
    trash::parse(file_name)?.entry.map(|e| e.as_bstr().to_owned())
}

/// A recorded path of another vantage: where a container writes, a marker can be forged.
fn is_foreign(registration: &Registration, placement: &Placement, roots: &[LocalPath]) -> bool {
    match placement {
        Placement::Joined { by, .. } | Placement::Absent { by, .. } => {
            !matches!(by.kind, TranslationKind::Identity | TranslationKind::Relative)
        }
        Placement::Held { .. } | Placement::Unregistered => {
            registration.recorded.as_ref().is_ok_and(|recorded| {
                let local = LocalPath::new(recorded.as_bstr().to_path_lossy());
                recorded.is_windows()
                    || recorded.is_absolute()
                        && !local.is_some_and(|l| roots.iter().any(|r| l.is_beneath_or_at(r)))
            })
        }
    }
}

fn of_this_vantage(placement: &Placement) -> bool {
    match placement {
        Placement::Joined { by, .. } | Placement::Absent { by, .. } => {
            matches!(by.kind, TranslationKind::Identity | TranslationKind::Relative)
        }
        _ => true,
    }
}

//! What containers and processes hold, as reasons of the judge's; and what containers say about recorded paths.

use bstr::{BString, ByteSlice};

use crate::beneath::Refused;
use crate::config::Live;
use crate::engine::containers::{Container, MountKind};
use crate::engine::liveness::{self, Checkout, Hold, LiveMode, RecordedBy};
use crate::engine::place::Placement as Placed;
use crate::engine::world::{Tie, World};
use crate::judge::facts::{Facts, Placement, Subject};
use crate::judge::reason::{Code, Reason};
use crate::survey::discover::CloneSite;
use crate::survey::examine::Inquiry;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};
use crate::vantage::translate::{ContainerView, MountedFrom, TranslationKind, Translator};

/// Everything outside of the clone that holds the worktree of `facts`.
pub fn holds(facts: &Facts, site: &CloneSite, inquiry: &Inquiry<'_>) -> Vec<Reason> {
    let mode = match inquiry.settings.live.value {
        Live::Used => LiveMode::Used,
        Live::Mounted => LiveMode::Mounted,
    };
    let subject = subject(facts, site);
    let mut reasons: Vec<Reason> =
        liveness::holds(&subject, inquiry.world, mode).iter().map(reason).collect();
    if let Checkout::Present { path, .. } = &subject.checkout {
        reasons.extend(elsewhere(path, inquiry.world));
    }
    reasons
}

/// Mounts that only another namespace sees: a walk does not meet them, and removing their mount points would detach them
/// there.
pub fn elsewhere(path: &LocalPath, world: &World) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if let Some(mount) = world.mounts_beneath(path).first() {
        reasons.push(Reason::new(Code::MountInside, format!("in another mount namespace: {mount}")));
    }
    if let Some(mount) = world.mounted_from(path).first() {
        reasons.push(Reason::new(Code::LiveContainer, format!("another mount namespace shows it: {mount}")));
    }
    reasons
}

/// Who is in the directory at `path`, whatever it was called when they went in.
pub fn inside(path: &LocalPath, world: &World) -> Vec<Reason> {
    match crate::beneath::lstat(path) {
        Ok(meta) => liveness::inside(meta.id, world).iter().map(reason).collect(),
        Err(Refused::Absent) => Vec::new(),
        Err(refused) => vec![Reason::new(Code::Unreadable, format!("{path}: {refused}"))],
    }
}

fn reason(hold: &Hold) -> Reason {
    Reason::new(code(hold), hold.to_string())
}

fn code(hold: &Hold) -> Code {
    match hold {
        Hold::LiveContainer { .. } => Code::LiveContainer,
        Hold::ContainerBound { .. } => Code::ContainerBound,
        Hold::LivenessUnknown(_) => Code::LivenessUnknown,
        Hold::ProcessInside(_) => Code::ProcessInside,
        Hold::CurrentWorktree(_) => Code::CurrentWorktree,
    }
}

fn subject(facts: &Facts, site: &CloneSite) -> liveness::Subject {
    let checkout = match (&facts.standing.placement, &facts.subject) {
        (Placement::Joined { path, seen, .. }, _) => Checkout::Present { path: path.clone(), id: seen.id },
        (
            _,
            Subject::Orphan { path, seen: Some(seen), .. } | Subject::Trash { path, seen: Some(seen), .. },
        ) => Checkout::Present { path: path.clone(), id: seen.id },
        (Placement::Absent { expected, .. }, _) => Checkout::Absent { path: expected.clone() },
        (Placement::Held { path: Some(path), .. }, _) => match crate::beneath::lstat(path) {
            Ok(meta) => Checkout::Present { path: path.clone(), id: meta.id },
            Err(_) => Checkout::Absent { path: path.clone() },
        },
        _ => Checkout::Unknown,
    };
    let ours = match &facts.standing.placement {
        Placement::Joined { by, .. } | Placement::Absent { by, .. } => {
            matches!(by.kind, TranslationKind::Identity | TranslationKind::Relative)
        }
        _ => false,
    };
    let recorded = match &facts.subject {
        Subject::Registered { recorded, .. } => recorded.clone(),
        Subject::Orphan { .. } | Subject::Trash { .. } => None,
    };
    let recorded_by = match ours {
        true => RecordedBy::OurVantage,
        false => RecordedBy::Foreign,
    };
    liveness::Subject { checkout, recorded, recorded_by, clone: site.dir.clone() }
}

/// The translations that containers known to the clone give, by their mounts and by their labels.
pub fn translators(site: &CloneSite, world: &World) -> Vec<Translator> {
    let (mut views, mut labels): (Vec<ContainerView>, Vec<Translator>) = (Vec::new(), Vec::new());
    for known in world.known_to(&site.dir) {
        match known.tie {
            Tie::Mount(_) => {
                let view = view_of(known.container);
                if !views.contains(&view) {
                    views.push(view);
                }
            }
            Tie::Label => labels.extend(label(site, known.container)),
        }
    }
    views.into_iter().map(Translator::Container).chain(labels).collect()
}

fn view_of(container: &Container) -> ContainerView {
    let mounts = container.mounts.iter().filter_map(|mount| {
        let to = mount.destination.clone()?;
        let from = match (&mount.kind, &mount.place) {
            (MountKind::Bind, Placed::At(place)) => MountedFrom::Here(place.resolved().clone()),
            (MountKind::Bind | MountKind::Unknown, _) => MountedFrom::Unplaceable(mount.source.to_string()),
            (MountKind::Volume { name }, _) => {
                MountedFrom::Elsewhere(format!("volume {}", name.as_deref().unwrap_or("without a name")))
            }
            (MountKind::Virtual, _) => {
                MountedFrom::Elsewhere("a mount that is no directory of a host".to_owned())
            }
        };
        Some((to, from))
    });
    ContainerView { name: container.name.clone(), mounts: mounts.collect() }
}

/// A dev container that is labelled with the clone's folder has it at `/workspaces/<folder>`, unless it says otherwise
/// by a mount, which is asked before.
fn label(site: &CloneSite, container: &Container) -> Option<Translator> {
    let folder = container.local_folder.as_ref()?.place.known()?.resolved();
    let mut from = BString::from("/workspaces/");
    from.extend_from_slice(folder.file_name()?.as_bytes());
    Some(Translator::Prefix {
        kind: TranslationKind::Label,
        from: RecordedPath::new(from),
        to: site.dir.clone(),
        evidence: format!("container {} is labelled with {}", container.name, escape(folder.as_bstr())),
    })
}

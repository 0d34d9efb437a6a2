//! An engine's answer, as bollard hands it over, to our types. Every field of it may be absent.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bollard::models::{
    ContainerInspectResponse, ContainerSummary, ContainerSummaryStateEnum, MountPoint, Volume,
};

use crate::engine::containers::{
    Container, ContainerMount, ContainerState, Init, InitProcess, LabelledFolder, MountKind, Role, WorkingDir,
};
use crate::engine::forms::{self, Source, Wsl};
use crate::engine::place::{OwnMounts, Placement, Placer, View};
use crate::vantage::mountinfo::MountTable;
use crate::vantage::own_container::{ContainerId, OwnContainer};
use crate::vantage::paths::{HostPath, LocalPath, RecordedPath, escape};

/// What an engine says of its volumes, by name.
#[derive(Clone, Debug, Default)]
pub struct Volumes(HashMap<String, VolumeFiles>);

#[derive(Clone, Debug)]
enum VolumeFiles {
    /// The volume is a directory of the host under another name.
    BoundTo(String),
    /// In the engine's own storage.
    StoredAt(String),
}

impl Volumes {
    /// A volume of the local driver with the option `o=bind` shows its `device`, a directory of the host (docker's
    /// documentation of `volume create`).
    pub fn read(volumes: Vec<Volume>) -> Self {
        let binds = |o: &String| o.split(',').any(|o| matches!(o, "bind" | "rbind"));
        let files = |volume: &Volume| {
            let device = volume.options.get("device").filter(|_| volume.options.get("o").is_some_and(binds));
            match device {
                Some(device) => VolumeFiles::BoundTo(device.clone()),
                None => VolumeFiles::StoredAt(volume.mountpoint.clone()),
            }
        };
        Self(volumes.into_iter().map(|v| (v.name.clone(), files(&v))).collect())
    }
}

/// What is needed to read one engine's answer.
pub struct Reader<'a> {
    placer: Placer<'a>,
    volumes: Volumes,
    own: Option<ContainerId>,
    wsl: Option<&'a Wsl>,
}

impl<'a> Reader<'a> {
    /// `summaries` is the engine's whole list: our own container is looked for in it. `mounts` are this process's own.
    pub fn new(
        summaries: &[ContainerSummary],
        volumes: Volumes,
        own: &OwnContainer,
        wsl: Option<&'a Wsl>,
        mounts: &'a MountTable,
    ) -> Self {
        let (view, own) = match own {
            OwnContainer::No => (View::Same, None),
            OwnContainer::Unnamed => (View::Guess, None),
            OwnContainer::Named(id) => {
                let listed = summaries.iter().find(|s| s.id.as_deref() == Some(id.as_str()));
                let view = listed.map_or(View::Guess, |s| View::Own(own_mounts(s, &volumes, wsl)));
                (view, Some(id.clone()))
            }
        };
        Self { placer: Placer::new(view, mounts), volumes, own, wsl }
    }

    /// One container of the list, its init not asked for.
    pub fn container(&self, summary: ContainerSummary) -> Container {
        let id = ContainerId::new(summary.id.unwrap_or_default());
        let name = summary.names.into_iter().flatten().next().unwrap_or_default();
        let name = name.strip_prefix('/').unwrap_or(&name);
        let labels = summary.labels.unwrap_or_default();
        let folder = |label: &str| labels.get(label).map(|text| self.folder(text));
        let mounts = match summary.mounts {
            Some(mounts) => mounts.into_iter().map(|m| self.mount(m)).collect(),
            // It may mount anything, anywhere.
            None => vec![self.mount(MountPoint::default())],
        };
        Container {
            name: if name.is_empty() { id.to_string() } else { escape(name.as_bytes()) },
            state: state(summary.state),
            role: if self.own.as_ref() == Some(&id) { Role::Own } else { Role::Other },
            mounts,
            local_folder: folder("devcontainer.local_folder"),
            compose_dir: folder("com.docker.compose.project.working_dir"),
            init: Init::NotAsked,
            id,
        }
    }

    /// The first process of the container that has `mounts`.
    pub fn init(&self, inspected: ContainerInspectResponse, mounts: &[ContainerMount]) -> Init {
        let pid = inspected.state.and_then(|s| s.pid).and_then(|pid| u32::try_from(pid).ok());
        let Some(pid) = pid.filter(|pid| *pid > 0) else {
            return Init::Unknown("the engine names no init process".into());
        };
        let working_dir = inspected.config.and_then(|c| c.working_dir);
        Init::Known(InitProcess {
            pid,
            working_dir: working_dir.and_then(|dir| self.working_dir(&dir, mounts)),
        })
    }

    fn folder(&self, text: &str) -> LabelledFolder {
        let place = match forms::host_path(text, self.wsl) {
            Some(path) => self.placer.place_host(&path),
            None => Placement::Nowhere,
        };
        LabelledFolder { text: escape(text.as_bytes()), place }
    }

    fn mount(&self, mount: MountPoint) -> ContainerMount {
        let raw = RawMount::read(mount, &self.volumes, self.wsl);
        let mut place = self.placer.place(&raw.source);
        if let (Placement::Nowhere, MountKind::Volume { name: Some(name) }) = (&place, &raw.kind) {
            place = self.placer.place_volume(name, b"");
        }
        ContainerMount { kind: raw.kind, source: raw.source, destination: raw.destination, place }
    }

    /// `None` if the text is no directory of a container.
    fn working_dir(&self, text: &str, mounts: &[ContainerMount]) -> Option<WorkingDir> {
        // An engine that says nothing here means the root directory.
        let path = RecordedPath::new(if text.is_empty() { "/" } else { text });
        let path = if path.is_absolute() { path.normalized()? } else { return None };
        let covering = mounts.iter().filter(|m| m.may_cover(&path));
        let places = covering.filter_map(|m| self.place_through(m, &path)).collect();
        Some(WorkingDir { path, places })
    }

    /// Where the container's `path` lies if `mount` is what leads to it; `None` if that is not among the host's files.
    fn place_through(&self, mount: &ContainerMount, path: &RecordedPath) -> Option<Placement> {
        let Some(rest) = mount.destination.as_ref().and_then(|d| path.below(d)) else {
            return Some(Placement::Nowhere);
        };
        let place = match &mount.source {
            Source::Host(source) => self.placer.place_host(&join(source, rest)),
            Source::Desktop { shared, literal } => self
                .placer
                .place(&Source::Desktop { shared: join(shared, rest), literal: join(literal, rest) }),
            Source::Unplaceable(_) | Source::Absent => Placement::Nowhere,
        };
        match (&place, &mount.kind) {
            (Placement::Nowhere, MountKind::Virtual | MountKind::Volume { name: None }) => None,
            (Placement::Nowhere, MountKind::Volume { name: Some(name) }) => {
                Some(self.placer.place_volume(name, rest)).filter(|place| *place != Placement::Nowhere)
            }
            _ => Some(place),
        }
    }
}

fn state(reported: Option<ContainerSummaryStateEnum>) -> ContainerState {
    use ContainerSummaryStateEnum as Reported;
    match reported {
        Some(Reported::RUNNING) => ContainerState::Running,
        Some(Reported::PAUSED) => ContainerState::Paused,
        Some(Reported::RESTARTING) => ContainerState::Restarting,
        Some(Reported::STOPPING) => ContainerState::Stopping,
        Some(Reported::CREATED) => ContainerState::Created,
        Some(Reported::EXITED) => ContainerState::Exited,
        Some(Reported::DEAD) => ContainerState::Dead,
        Some(Reported::REMOVING) => ContainerState::Removing,
        Some(Reported::EMPTY) | None => ContainerState::Unknown,
    }
}

fn join(base: &HostPath, rest: &[u8]) -> HostPath {
    let mut joined = base.as_bstr().to_owned();
    joined.push(b'/');
    joined.extend_from_slice(rest);
    HostPath::new(joined)
}

struct RawMount {
    kind: MountKind,
    source: Source,
    destination: Option<RecordedPath>,
}

impl RawMount {
    fn read(mount: MountPoint, volumes: &Volumes, wsl: Option<&Wsl>) -> Self {
        let name = mount.name.filter(|name| !name.is_empty());
        let has_source = mount.source.as_ref().is_some_and(|s| !s.is_empty());
        let (kind, source) = match (mount.typ.as_deref().unwrap_or_default(), name) {
            ("bind", _) => (MountKind::Bind, mount.source),
            // The oldest engines say no type; only a volume has a name.
            ("volume" | "", Some(name)) => volume(name, mount.source, volumes),
            ("volume", None) => (MountKind::Volume { name: None }, mount.source),
            ("", None) if has_source => (MountKind::Bind, mount.source),
            ("tmpfs" | "image" | "ramfs" | "devpts", _) => (MountKind::Virtual, None),
            _ => (MountKind::Unknown, mount.source),
        };
        let source = Source::of_mount(&source.unwrap_or_default(), wsl);
        let destination = mount.destination.filter(|d| d.starts_with('/')).map(RecordedPath::new);
        Self { kind, source, destination: destination.and_then(|d| d.normalized()) }
    }
}

fn volume(name: String, reported: Option<String>, volumes: &Volumes) -> (MountKind, Option<String>) {
    match volumes.0.get(&name) {
        Some(VolumeFiles::BoundTo(device)) => (MountKind::Bind, Some(device.clone())),
        Some(VolumeFiles::StoredAt(path)) => (MountKind::Volume { name: Some(name) }, Some(path.clone())),
        None => (MountKind::Volume { name: Some(name) }, reported),
    }
}

/// What our own container mounts.
fn own_mounts(summary: &ContainerSummary, volumes: &Volumes, wsl: Option<&Wsl>) -> OwnMounts {
    let mut own = OwnMounts::default();
    for mount in summary.mounts.iter().flatten() {
        let raw = RawMount::read(mount.clone(), volumes, wsl);
        let here = raw.destination.as_ref().and_then(|d| LocalPath::new(OsStr::from_bytes(d.as_bstr())));
        let Some(here) = here else { continue };
        if let MountKind::Volume { name: Some(name) } = raw.kind {
            own.volumes.insert(name, here.clone());
        }
        match raw.source {
            Source::Host(path) | Source::Desktop { shared: path, .. } => own.binds.push((path, here)),
            Source::Unplaceable(_) | Source::Absent => {}
        }
    }
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(typ: Option<&str>, name: Option<&str>, source: Option<&str>) -> MountPoint {
        MountPoint {
            typ: typ.map(Into::into),
            name: name.map(Into::into),
            source: source.map(Into::into),
            destination: Some("/w/../w".into()),
            ..MountPoint::default()
        }
    }

    #[test]
    fn each_kind_of_mount_is_known_and_the_rest_is_unknown() {
        let volume = |name: Option<&str>| MountKind::Volume { name: name.map(Into::into) };
        let host = |path: &str| Source::Host(HostPath::new(path));
        for (typ, name, source, kind, expected) in [
            (Some("bind"), None, Some("/a"), MountKind::Bind, host("/a")),
            (Some("bind"), None, None, MountKind::Bind, Source::Absent),
            (Some("volume"), Some("v"), Some("/v/_data"), volume(Some("v")), host("/v/_data")),
            (Some("volume"), Some("v"), None, volume(Some("v")), Source::Absent),
            (Some("volume"), None, None, volume(None), Source::Absent),
            (Some("tmpfs"), None, Some(""), MountKind::Virtual, Source::Absent),
            (Some("image"), Some("alpine"), Some("alpine"), MountKind::Virtual, Source::Absent),
            (Some("npipe"), None, Some("/p"), MountKind::Unknown, host("/p")),
            (Some(""), Some("v"), None, volume(Some("v")), Source::Absent),
            (None, None, Some("/a"), MountKind::Bind, host("/a")),
            (None, None, None, MountKind::Unknown, Source::Absent),
        ] {
            let read = RawMount::read(mount(typ, name, source), &Volumes::default(), None);
            assert_eq!((&read.kind, &read.source), (&kind, &expected), "{typ:?} {name:?} {source:?}");
            assert_eq!(read.destination, Some(RecordedPath::new("/w")));
        }
        let relative = MountPoint { destination: Some("w".into()), ..mount(None, None, None) };
        assert_eq!(RawMount::read(relative, &Volumes::default(), None).destination, None);
    }

    #[test]
    fn the_deepest_mount_decides_what_a_container_sees() {
        let table = MountTable::parse(b"1 0 8:1 / / rw - ext4 d rw\n").unwrap();
        let bind = |source: &str, destination: &str| MountPoint {
            destination: Some(destination.into()),
            ..mount(Some("bind"), None, Some(source))
        };
        let volume = MountPoint {
            destination: Some("/w/app/.worktrees".into()),
            ..mount(Some("volume"), Some("v"), None)
        };
        let summary = ContainerSummary {
            mounts: Some(vec![volume, bind("/src/app", "/w/app"), bind("/src", "/w")]),
            ..ContainerSummary::default()
        };
        let reader = Reader::new(&[], Volumes::default(), &OwnContainer::No, None, &table);
        let container = reader.container(summary);
        let seen = |path: &str| {
            let path = RecordedPath::new(path);
            let mount = container.deepest_over(&path)?;
            Some((mount.kind.clone(), mount.locate(&path).map(|p| p.to_string())))
        };
        assert_eq!(seen("/w/app/x"), Some((MountKind::Bind, Some("/src/app/x".into()))));
        assert_eq!(seen("/w/app"), Some((MountKind::Bind, Some("/src/app".into()))));
        assert_eq!(seen("/w/appx"), Some((MountKind::Bind, Some("/src/appx".into()))));
        let in_volume = MountKind::Volume { name: Some("v".into()) };
        assert_eq!(seen("/w/app/.worktrees/x"), Some((in_volume, None)));
        assert_eq!(seen("/opt"), None, "in the container's own layer");
    }

    #[test]
    fn names_are_shown_and_escaped() {
        let table = MountTable::default();
        let reader = Reader::new(&[], Volumes::default(), &OwnContainer::No, None, &table);
        let named = |names: Option<Vec<String>>| {
            let id = Some("0123456789abcdef".into());
            reader.container(ContainerSummary { id, names, ..ContainerSummary::default() }).described()
        };
        assert_eq!(named(Some(vec!["/app\x1b".into()])), "container app\\u{1b} (0123456789ab)");
        assert_eq!(named(None), "container 0123456789ab (0123456789ab)");
    }
}

//! Containers, in our types. What an engine does not say is *unknown*, and unknown counts as whatever holds a checkout.

use crate::engine::forms::Source;
use crate::engine::place::{Placement, Spot};
use crate::vantage::own_container::ContainerId;
use crate::vantage::paths::{LocalPath, RecordedPath};

/// A container of one engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    pub id: ContainerId,
    /// Without the slash that docker puts before it; control characters escaped.
    pub name: String,
    pub state: ContainerState,
    pub role: Role,
    pub mounts: Vec<ContainerMount>,
    /// `devcontainer.local_folder`: the folder on the host that a dev container was made for.
    pub local_folder: Option<LabelledFolder>,
    /// `com.docker.compose.project.working_dir` (podman-compose writes it too): where on the host a compose project was
    /// brought up.
    pub compose_dir: Option<LabelledFolder>,
    pub init: Init,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The one that this process runs in.
    Own,
    Other,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerState {
    Running,
    Paused,
    Restarting,
    Stopping,
    /// The engine does not say.
    Unknown,
    Created,
    Exited,
    Dead,
    Removing,
}

impl ContainerState {
    /// It may have processes, or may have them again at any moment without anyone's act.
    pub fn is_up(self) -> bool {
        match self {
            Self::Running | Self::Paused | Self::Restarting | Self::Stopping | Self::Unknown => true,
            Self::Created | Self::Exited | Self::Dead | Self::Removing => false,
        }
    }

    /// For messages.
    pub fn described(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Restarting => "restarting",
            Self::Stopping => "stopping",
            Self::Unknown => "in an unknown state",
            Self::Created => "created",
            Self::Exited => "stopped",
            Self::Dead => "dead",
            Self::Removing => "being removed",
        }
    }
}

/// Something that a container mounts, or would mount when it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMount {
    pub kind: MountKind,
    pub source: Source,
    /// Where the container sees it; `None`: the engine does not say.
    pub destination: Option<RecordedPath>,
    pub place: Placement,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountKind {
    /// A directory or file of the host. So is a volume that the local driver binds to one.
    Bind,
    /// Storage of the engine.
    Volume { name: Option<String> },
    /// Memory, an image: none of the host's files.
    Virtual,
    /// Of a kind that we don't know, or that the engine does not say.
    Unknown,
}

impl ContainerMount {
    /// It may show files of the host, and where these are can't be told for sure.
    pub fn is_unplaceable(&self) -> bool {
        match self.kind {
            MountKind::Volume { .. } | MountKind::Virtual => false,
            MountKind::Bind | MountKind::Unknown => {
                matches!(self.place, Placement::Nowhere | Placement::Perhaps(_))
            }
        }
    }

    /// It may show the container something at `path` (a directory in the container): its destination is at or above it,
    /// or is unknown. Another mount may lie over it there.
    pub fn may_cover(&self, path: &RecordedPath) -> bool {
        self.destination.as_ref().is_none_or(|destination| path.below(destination).is_some())
    }

    /// Where the container's `path` lies here, through this mount, symlinks of the mount's source resolved. `None` if
    /// this mount does not lead there.
    pub fn locate(&self, path: &RecordedPath) -> Option<LocalPath> {
        let rest = path.below(self.destination.as_ref()?)?;
        self.place.known()?.resolved().join(rest)
    }
}

/// A folder that a label names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledFolder {
    /// As the label says, control characters escaped.
    pub text: String,
    pub place: Placement,
}

/// The first process of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Init {
    /// It was not asked for: the container is not up, or mounts nothing that matters.
    NotAsked,
    /// Why it is not known.
    Unknown(String),
    Known(InitProcess),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitProcess {
    /// In the engine's pid namespace.
    pub pid: u32,
    /// Where it starts, by the container's configuration; `None`: the engine does not say.
    pub working_dir: Option<WorkingDir>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDir {
    pub path: RecordedPath,
    /// Where it would lie among the host's files through each mount of the container that it could lie in. Several may:
    /// which of them is on top at the end is not asked.
    pub places: Vec<Placement>,
}

impl Container {
    /// The mount that decides what the container sees at `path`: the one with the deepest destination.
    pub fn deepest_over(&self, path: &RecordedPath) -> Option<&ContainerMount> {
        self.mounts
            .iter()
            .filter(|m| m.destination.as_ref().is_some_and(|d| path.below(d).is_some()))
            .max_by_key(|m| m.destination.as_ref().map_or(0, |d| d.as_bstr().len()))
    }

    /// It is up, and mounts something that may lie above a directory beneath one of `roots`: whether it is in use there
    /// depends on its processes.
    pub fn needs_init(&self, roots: &[Spot]) -> bool {
        let matters = |m: &ContainerMount| roots.iter().any(|root| m.place.relation_to(root).is_some());
        self.role == Role::Other && self.state.is_up() && self.mounts.iter().any(matters)
    }

    /// For messages: name and the start of the id.
    pub fn described(&self) -> String {
        format!("container {} ({})", self.name, self.id)
    }
}

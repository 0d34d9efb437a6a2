//! Who holds a worktree: the one decision, made of gathered data alone.
//!
//! The rules are the design's: `live-container`, `container-bound`, `liveness-unknown`, `process-inside`,
//! `current-worktree`. What is not known holds. No rule lets one fact take back what another holds, except that the init
//! process of a container, once seen, lets the container's other processes speak for it.

use std::fmt;

use crate::engine::client::Engine;
use crate::engine::containers::{Container, ContainerMount, ContainerState, Init, InitProcess};
use crate::engine::endpoints::EngineChoice;
use crate::engine::foreign::ForeignMount;
use crate::engine::place::{Placement, Relation, Spot};
use crate::engine::processes::{Holder, NotLookedInto, Relation as Whose};
use crate::engine::world::World;
use crate::vantage::own_container::{ContainerId, OwnContainer};
use crate::vantage::paths::{FileId, LocalPath, RecordedPath};

/// `--live`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LiveMode {
    /// A running container that mounts something above a checkout holds it unless it is seen not to use it.
    #[default]
    Used,
    /// It always holds it.
    Mounted,
}

/// One worktree, as far as liveness goes.
#[derive(Clone, Debug)]
pub struct Subject {
    pub checkout: Checkout,
    /// `None` for an orphan, whose registration is gone. A trailing `/.git` makes no difference.
    pub recorded: Option<RecordedPath>,
    pub recorded_by: RecordedBy,
    /// The clone's directory, without a symlink among its components.
    pub clone: LocalPath,
}

/// Where a worktree's files are. No path has a symlink among its components.
#[derive(Clone, Debug)]
pub enum Checkout {
    Present {
        path: LocalPath,
        id: FileId,
    },
    /// There is nothing at the place where they would be.
    Absent {
        path: LocalPath,
    },
    /// No translation says where they would be.
    Unknown,
}

/// Whose namespace the recorded path means something in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedBy {
    OurVantage,
    Foreign,
}

/// One reason to keep a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hold {
    LiveContainer { container: String, why: Live },
    ContainerBound { container: String, state: ContainerState, mounts: String },
    LivenessUnknown(Unknown),
    ProcessInside(Holder),
    CurrentWorktree(Holder),
}

/// In which way a running container holds a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Live {
    /// It mounts the checkout or something inside it.
    Mounts(String),
    /// Its compose project lives there.
    ComposeProject(String),
    /// It mounts something above it, and `--live mounted` asks no more.
    MountsAbove(String),
    /// It mounts something above it, and might use it.
    NotLookedInto {
        mounts: String,
        why: NotLookedInto,
    },
    WorkingDirInside(RecordedPath),
    Process {
        pid: u32,
        command: String,
    },
}

/// Something that could not be asked and that might hold the worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unknown {
    Engine { name: String, address: String, state: String },
    Unplaceable { container: String, source: String, destination: Option<RecordedPath> },
    NoEngine,
}

impl Hold {
    /// The reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LiveContainer { .. } => "live-container",
            Self::ContainerBound { .. } => "container-bound",
            Self::LivenessUnknown(_) => "liveness-unknown",
            Self::ProcessInside(_) => "process-inside",
            Self::CurrentWorktree(_) => "current-worktree",
        }
    }
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LiveContainer { container, why } => write!(f, "{container} {why}"),
            Self::ContainerBound { container, state, mounts } => {
                write!(
                    f,
                    "{container} is {} and mounts {mounts}: it could not start again",
                    state.described()
                )
            }
            Self::LivenessUnknown(unknown) => unknown.fmt(f),
            Self::ProcessInside(Holder { pid, command, what, .. }) => {
                write!(f, "process {pid} ({command}): {what} inside")
            }
            Self::CurrentWorktree(Holder { pid, command, what, .. }) => {
                write!(f, "process {pid} ({command}), which runs treesweep: {what} inside")
            }
        }
    }
}

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mounts(source) => write!(f, "is up and mounts {source}"),
            Self::ComposeProject(dir) => write!(f, "is up and belongs to the compose project in {dir}"),
            Self::MountsAbove(source) => write!(f, "is up and mounts {source}, which contains it"),
            Self::NotLookedInto { mounts, why } => {
                write!(
                    f,
                    "is up and mounts {mounts}, which contains it; whether it is in use there is not known: {why}"
                )
            }
            Self::WorkingDirInside(dir) => write!(f, "is up and works in {dir}, which is inside"),
            Self::Process { pid, command } => write!(f, "is up and its process {pid} ({command}) is inside"),
        }
    }
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine { name, address, state } => write!(f, "engine {name} at {address} {state}"),
            Self::Unplaceable { container, source, destination } => {
                write!(f, "{container} is up and mounts {source}")?;
                if let Some(destination) = destination {
                    write!(f, " at {destination}")?;
                }
                f.write_str(": where that lies on this host is not known")
            }
            Self::NoEngine => {
                f.write_str("no container engine answered ('--engine none' says that there is none)")
            }
        }
    }
}

/// Everything in `world` that holds `subject`, processes first. Empty: nothing does.
pub fn holds(subject: &Subject, world: &World, mode: LiveMode) -> Vec<Hold> {
    let mut all = process_holds(subject, world);
    let (spot, id) = match &subject.checkout {
        Checkout::Present { path, id } => (Some(path), Some(*id)),
        Checkout::Absent { path } => (Some(path), None),
        Checkout::Unknown => (None, None),
    };
    if let Some(path) = spot {
        let question = Question { spot: Spot::new(path.clone(), &world.mounts), id, world, mode };
        let mut held_by: Vec<&ContainerId> = Vec::new();
        for (_, container) in world.containers() {
            if let Some(hold) = question.container(container) {
                if matches!(hold, Hold::LiveContainer { .. }) {
                    held_by.push(&container.id);
                }
                all.push(hold);
            }
        }
        all.extend(question.namespaces(&held_by));
    }
    all.extend(unknowns(subject, world).map(Hold::LivenessUnknown));
    all
}

fn process_holds(subject: &Subject, world: &World) -> Vec<Hold> {
    match subject.checkout {
        Checkout::Present { id, .. } => inside(id, world),
        Checkout::Absent { .. } | Checkout::Unknown => Vec::new(),
    }
}

/// The processes that are in the directory `id`.
pub fn inside(id: FileId, world: &World) -> Vec<Hold> {
    let holders = world.processes.inside(id).iter().cloned();
    holders
        .map(|holder| match holder.relation {
            Whose::Own => Hold::CurrentWorktree(holder),
            Whose::Other => Hold::ProcessInside(holder),
        })
        .collect()
}

/// What is asked of each container.
struct Question<'a> {
    spot: Spot,
    id: Option<FileId>,
    world: &'a World,
    mode: LiveMode,
}

impl Question<'_> {
    /// How `container` holds the checkout; the plainest reason if there are several.
    fn container(&self, container: &Container) -> Option<Hold> {
        let related = |how| move |m: &&ContainerMount| m.place.relation_to(&self.spot) == Some(how);
        let inside = container.mounts.iter().find(related(Relation::AtOrInside));
        let compose = container.compose_dir.as_ref();
        let compose = compose
            .filter(|dir| dir.place.relation_to(&self.spot) == Some(Relation::AtOrInside))
            .map(|d| d.text.clone());
        let described = container.described();
        if !container.state.is_up() {
            let mounts = inside.map(described_source).or(compose)?;
            return Some(Hold::ContainerBound { container: described, state: container.state, mounts });
        }
        let why = match (inside, compose) {
            (Some(mount), _) => Live::Mounts(described_source(mount)),
            (None, Some(dir)) => Live::ComposeProject(dir),
            (None, None) => {
                let above: Vec<_> = container.mounts.iter().filter(related(Relation::Above)).collect();
                self.by_mounts_above(container, &above)?
            }
        };
        Some(Hold::LiveContainer { container: described, why })
    }

    /// `container` is up and mounts `above`, each of which contains the checkout: does it use it?
    fn by_mounts_above(&self, container: &Container, above: &[&ContainerMount]) -> Option<Live> {
        let mounts = described_source(above.first()?);
        if self.mode == LiveMode::Mounted {
            return Some(Live::MountsAbove(mounts));
        }
        self.use_by(container, above).unwrap_or_else(|why| Some(Live::NotLookedInto { mounts, why }))
    }

    /// In which way `container` is seen to use the checkout through `above`; `None` if it is seen not to.
    fn use_by(
        &self,
        container: &Container,
        above: &[&ContainerMount],
    ) -> Result<Option<Live>, NotLookedInto> {
        let init = match &container.init {
            Init::Known(init) => init,
            Init::Unknown(why) => return Err(NotLookedInto::InitUnknown(why.clone())),
            Init::NotAsked => return Err(NotLookedInto::InitUnknown("it was not asked for".into())),
        };
        if container.state == ContainerState::Unknown {
            return Err(NotLookedInto::StateUnknown);
        }
        if let Some(inside) = self.works_inside(init)? {
            return Ok(Some(inside));
        }
        let processes = self.world.processes.of_container(&container.id, init.pid)?;
        if !above.iter().all(|mount| self.sees(init.pid, mount)) {
            return Err(NotLookedInto::InitWithoutMounts { pid: init.pid });
        }
        let inside = self.id.map_or(&[][..], |id| self.world.processes.inside(id));
        let holder = inside.iter().find(|holder| processes.iter().any(|p| p.pid == holder.pid));
        Ok(holder.map(|h| Live::Process { pid: h.pid, command: h.command.clone() }))
    }

    /// The process has what the engine says that its container mounts: it is a process of that container itself, and not
    /// of a machine or a sandbox around it.
    fn sees(&self, pid: u32, mount: &ContainerMount) -> bool {
        let mut mounts = self.world.processes.foreign_mounts_of(pid);
        mount.place.known().is_some_and(|place| mounts.any(|m| place.is_shown_by(m)))
    }

    fn works_inside(&self, init: &InitProcess) -> Result<Option<Live>, NotLookedInto> {
        let dir = init.working_dir.as_ref().ok_or(NotLookedInto::WorkingDirUnknown)?;
        if dir.places.iter().any(|place| place.relation_to(&self.spot) == Some(Relation::AtOrInside)) {
            return Ok(Some(Live::WorkingDirInside(dir.path.clone())));
        }
        let known = |place: &Placement| matches!(place, Placement::At(_) | Placement::Around(_));
        if dir.places.iter().all(known) {
            return Ok(None);
        }
        Err(NotLookedInto::WorkingDirUnplaceable(dir.path.to_string()))
    }

    /// Containers that no engine told of, by their mount namespaces. One that holds already, and our own, say nothing
    /// new.
    fn namespaces(&self, held_by: &[&ContainerId]) -> Vec<Hold> {
        let ours =
            |id: &ContainerId| matches!(&self.world.own_container, OwnContainer::Named(own) if own == id);
        let is_new =
            |m: &ForeignMount<'_>| !m.namespace.containers.iter().any(|id| ours(id) || held_by.contains(&id));
        let new = self.world.mounted_from(self.spot.path()).into_iter().filter(is_new);
        let hold = |m: ForeignMount<'_>| Hold::LiveContainer {
            container: format!("process {} ({})", m.namespace.pid, m.namespace.command),
            why: Live::Mounts(format!("it at {m}")),
        };
        new.map(hold).chain(self.unlisted(is_new)).collect()
    }

    /// Containers of which no engine said that they see something above the checkout (it may not be asked, or is not known):
    /// as with those that one tells of, all of their processes have to be looked into.
    fn unlisted(&self, passes: impl Fn(&ForeignMount<'_>) -> bool) -> Vec<Hold> {
        let mut said: Vec<(u32, Hold)> = Vec::new();
        for seen in self.world.mounted_above(self.spot.path()).into_iter().filter(passes) {
            let Some(denied) = self.world.processes.denied_in(seen.namespace) else { continue };
            if said.iter().any(|(pid, _)| *pid == denied.pid) {
                continue;
            }
            let why = NotLookedInto::Denied { pid: denied.pid, command: denied.command.clone() };
            let hold = Hold::LiveContainer {
                container: format!("process {} ({})", denied.pid, denied.command),
                why: Live::NotLookedInto { mounts: seen.to_string(), why },
            };
            said.push((denied.pid, hold));
        }
        said.into_iter().map(|(_, hold)| hold).collect()
    }
}

fn described_source(mount: &ContainerMount) -> String {
    mount.source.to_string()
}

fn unknowns<'a>(subject: &'a Subject, world: &'a World) -> impl Iterator<Item = Unknown> + 'a {
    let foreign = subject.recorded_by == RecordedBy::Foreign;
    let concerned = foreign || world.known_to(&subject.clone).next().is_some();
    let failed = world.engines.iter().filter(move |engine| concerned && engine.failed()).map(|engine| {
        Unknown::Engine {
            name: engine.endpoint.name.clone(),
            address: engine.endpoint.address.to_string(),
            state: engine.state.to_string(),
        }
    });
    let nobody = foreign && world.choice != EngineChoice::None && !world.engines.iter().any(Engine::answered);
    failed.chain(unplaceable(subject, world)).chain(nobody.then_some(Unknown::NoEngine))
}

/// Running containers in which the recorded path may be a directory of a host that we don't see.
fn unplaceable<'a>(subject: &Subject, world: &'a World) -> impl Iterator<Item = Unknown> + use<'a> {
    let recorded = subject.recorded.as_ref().filter(|p| p.is_absolute());
    let recorded = recorded.and_then(|p| p.without_dot_git().normalized());
    world.containers().filter(|(_, container)| container.state.is_up()).flat_map(move |(_, container)| {
        let recorded = recorded.clone();
        let mounts = container
            .mounts
            .iter()
            .filter(move |m| m.is_unplaceable() && recorded.as_ref().is_some_and(|path| m.may_cover(path)));
        mounts.map(|m| Unknown::Unplaceable {
            container: container.described(),
            source: described_source(m),
            destination: m.destination.clone(),
        })
    })
}

#[cfg(test)]
mod tests;

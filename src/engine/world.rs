//! Everything outside of a clone that may hold one of its worktrees, gathered at one moment.

use std::fmt;
use std::io;
use std::thread;
use std::time::Duration;

use crate::engine::client::{self, Ask, Engine, EngineState, KnownVersions, TIME_LIMIT};
use crate::engine::containers::{Container, ContainerMount, Role};
use crate::engine::endpoints::{EndpointSources, EngineChoice, Origin, discover};
use crate::engine::foreign::{self, ForeignMount};
use crate::engine::place::Spot;
use crate::engine::processes::{ProcessTable, View};
use crate::engine::scan::{self, ScanError};
use crate::vantage::mountinfo::{MountInfoError, MountTable};
use crate::vantage::own_container::OwnContainer;
use crate::vantage::paths::LocalPath;

/// What to ask, and of whom.
#[derive(Clone, Debug)]
pub struct GatherOptions {
    pub choice: EngineChoice,
    pub sources: EndpointSources,
    /// `engines.ignore` of the user's config: addresses or names of engines not to ask.
    pub ignore: Vec<String>,
    /// The roots of this run, without a symlink among their components.
    pub roots: Vec<LocalPath>,
    /// For each engine, see [`TIME_LIMIT`].
    pub time_limit: Duration,
}

impl GatherOptions {
    /// The usual limit of time, nothing ignored.
    pub fn new(choice: EngineChoice, sources: EndpointSources, roots: Vec<LocalPath>) -> Self {
        Self { choice, sources, ignore: Vec::new(), roots, time_limit: TIME_LIMIT }
    }
}

/// Gathers a [`World`] as often as it is asked to; between two times it remembers only which version of their API the
/// engines speak.
#[derive(Debug)]
pub struct Gatherer {
    options: GatherOptions,
    versions: KnownVersions,
}

/// Why nothing can be said of who uses what.
#[derive(Debug, thiserror::Error)]
pub enum GatherError {
    #[error(transparent)]
    Mounts(#[from] MountInfoError),
    #[error("/proc/self/cgroup: {0}")]
    OwnContainer(io::Error),
    #[error(transparent)]
    Processes(#[from] ScanError),
    #[error("the engines could not be asked: {0}")]
    Runtime(io::Error),
}

/// What was found. It is as old as it is: before a removal, gather it again.
#[derive(Clone, Debug)]
pub struct World {
    pub choice: EngineChoice,
    pub engines: Vec<Engine>,
    pub own_container: OwnContainer,
    pub processes: ProcessTable,
    /// This process's own.
    pub mounts: MountTable,
}

impl Gatherer {
    pub fn new(options: GatherOptions) -> Self {
        Self { options, versions: KnownVersions::default() }
    }

    /// Asks the engines and `/proc`, both at once.
    ///
    /// Call it on a thread that Landlock does not confine: such a one may not look into other processes.
    ///
    /// # Errors
    /// This process's own view can't be read. An engine or a process that can't be asked is no error but a fact.
    pub fn gather(&self) -> Result<World, GatherError> {
        let GatherOptions { choice, sources, ignore, roots, time_limit } = &self.options;
        let mounts = MountTable::own()?;
        let own_container = OwnContainer::detect(&mounts).map_err(GatherError::OwnContainer)?;
        let roots: Vec<_> = roots.iter().map(|root| Spot::new(root.clone(), &mounts)).collect();
        let ask = Ask {
            time_limit: *time_limit,
            ignore,
            roots: &roots,
            own: &own_container,
            wsl: sources.wsl.as_ref(),
            mounts: &mounts,
            versions: &self.versions,
        };
        let (engines, processes) = thread::scope(|scope| {
            let scanning = scope.spawn(|| scan::scan(&mounts));
            let engines = client::ask_all(discover(choice, sources), &ask);
            let processes = scanning.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (engines, processes)
        });
        Ok(World {
            choice: choice.clone(),
            engines: engines.map_err(GatherError::Runtime)?,
            own_container,
            processes: processes?,
            mounts,
        })
    }
}

/// What ties a container to a clone.
#[derive(Clone, Copy, Debug)]
pub enum Tie<'a> {
    /// Its source is the clone's directory, or lies above it or inside it.
    Mount(&'a ContainerMount),
    /// `devcontainer.local_folder` names the clone's directory.
    Label,
}

/// A container that knows a clone.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub engine: &'a Engine,
    pub container: &'a Container,
    pub tie: Tie<'a>,
}

impl World {
    /// Containers that are known to have mounted the clone whose directory is `clone` (without a symlink among its
    /// components), once for each tie, those that are stopped too. Our own container is none of them.
    pub fn known_to<'a>(&'a self, clone: &LocalPath) -> impl Iterator<Item = Known<'a>> + use<'a> {
        let spot = Spot::new(clone.clone(), &self.mounts);
        self.containers().flat_map(move |(engine, container)| {
            let known = |tie| Known { engine, container, tie };
            let mounts = container.mounts.iter().filter(|m| m.place.relation_to(&spot).is_some());
            let mut ties: Vec<_> = mounts.map(|m| known(Tie::Mount(m))).collect();
            let folder = container.local_folder.as_ref().filter(|folder| folder.place.may_be(&spot));
            ties.extend(folder.map(|_| known(Tie::Label)));
            ties
        })
    }

    /// All containers of all engines but our own.
    pub fn containers(&self) -> impl Iterator<Item = (&Engine, &Container)> {
        let all = self.engines.iter().flat_map(|engine| engine.containers.iter().map(move |c| (engine, c)));
        all.filter(|(_, container)| container.role == Role::Other)
    }

    /// Mounts at or inside `checkout` that other mount namespaces have, so that a walk here may not meet them.
    /// `checkout` has no symlink among its components.
    pub fn mounts_beneath(&self, checkout: &LocalPath) -> Vec<ForeignMount<'_>> {
        let place = self.mounts.fs_place(checkout);
        place.map_or_else(Vec::new, |place| foreign::mounts_beneath(self.processes.foreign(), &place))
    }

    /// Mounts in other mount namespaces that show `checkout`, or something inside it, whether or not an engine knows of
    /// them. `checkout` has no symlink among its components.
    pub fn mounted_from(&self, checkout: &LocalPath) -> Vec<ForeignMount<'_>> {
        let place = self.mounts.fs_place(checkout);
        place.map_or_else(Vec::new, |place| {
            foreign::mounted_from(self.processes.foreign(), &place, &self.mounts)
        })
    }

    /// Mounts that containers' namespaces have of something above `checkout`, whether or not an engine knows of them.
    /// `checkout` has no symlink among its components.
    pub fn mounted_above(&self, checkout: &LocalPath) -> Vec<ForeignMount<'_>> {
        let place = self.mounts.fs_place(checkout);
        place.map_or_else(Vec::new, |place| {
            foreign::mounted_above(self.processes.foreign(), &place, &self.mounts)
        })
    }

    /// What a person should know about how complete this is.
    pub fn warnings(&self) -> Vec<Warning> {
        let engines = self.engines.iter().filter_map(|engine| {
            let silent = match engine.state {
                EngineState::Answered { .. } | EngineState::Ignored => true,
                EngineState::Missing | EngineState::Refused => engine.endpoint.origin == Origin::Found,
                _ => false,
            };
            (!silent).then(|| Warning::Engine {
                name: engine.endpoint.name.clone(),
                address: engine.endpoint.address.to_string(),
                state: engine.state.clone(),
            })
        });
        let mut all: Vec<_> = engines.collect();
        match self.processes.view {
            View::All => {}
            View::OtherNamespace => all.push(Warning::OtherPidNamespace),
            View::OthersHidden => all.push(Warning::ProcessesHidden),
        }
        let unreadable = self.processes.unreadable().count();
        if unreadable > 0 {
            all.push(Warning::UnreadableProcesses { count: unreadable });
        }
        all
    }
}

/// Something that could not be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    Engine { name: String, address: String, state: EngineState },
    UnreadableProcesses { count: usize },
    OtherPidNamespace,
    ProcessesHidden,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine { name, address, state } => write!(f, "engine {name} at {address} {state}"),
            Self::UnreadableProcesses { count: 1 } => {
                f.write_str("1 process of another user may not be looked into: what it uses is not known")
            }
            Self::UnreadableProcesses { count } => {
                write!(f, "{count} processes of other users may not be looked into: what they use is not known")
            }
            Self::OtherPidNamespace => f.write_str(
                "treesweep sees only the processes of its own pid namespace: \
                 every running container that mounts a worktree counts as using it",
            ),
            Self::ProcessesHidden => f.write_str(
                "/proc hides other users' processes: every running container that mounts a worktree counts as using it",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_world_is_gathered_and_says_what_it_lacks() {
        let dir = tempfile::tempdir().unwrap();
        let dead = dir.path().join("dead.sock");
        drop(UnixListener::bind(&dead).unwrap());
        let root = LocalPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let gather = |choice| {
            let options = GatherOptions::new(choice, EndpointSources::default(), vec![root.clone()]);
            Gatherer::new(options).gather().unwrap()
        };
        let none = gather(EngineChoice::None);
        assert!(none.engines.is_empty());
        assert!(none.processes.by_pid(std::process::id()).is_some());
        assert!(none.mounts_beneath(&root).is_empty() && none.mounted_from(&root).is_empty());
        let refused = gather(EngineChoice::Socket(dead.clone()));
        let warning =
            format!("engine --engine at unix://{} has a socket at which nobody listens", dead.display());
        assert!(refused.warnings().iter().any(|w| w.to_string() == warning), "{:?}", refused.warnings());
        assert!(refused.engines[0].failed());
    }
}

//! The conversation with engines: which answers they give, and every way in which they fail to.
//!
//! Only `GET` is ever sent. All engines are asked at once, each within one limit of time for the whole conversation.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::ContainerSummary;
use bollard::query_parameters::{
    InspectContainerOptions, ListContainersOptionsBuilder, ListVolumesOptionsBuilder,
};
use bollard::{API_DEFAULT_VERSION, ClientVersion, Docker};
use futures_util::StreamExt;
use tokio::net::UnixStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::engine::containers::{Container, Init};
use crate::engine::endpoints::{Address, Endpoint, Origin, is_absence};
use crate::engine::forms::Wsl;
use crate::engine::ping;
use crate::engine::place::Spot;
use crate::engine::reading::{Reader, Volumes};
use crate::vantage::mountinfo::MountTable;
use crate::vantage::own_container::OwnContainer;
use crate::vantage::paths::escape;

/// How long one engine may take for everything that it is asked.
pub const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Inspecting asks one question a container; so many are under way at a time.
const INSPECTIONS_AT_ONCE: usize = 8;

/// One engine and what it said.
#[derive(Clone, Debug)]
pub struct Engine {
    pub endpoint: Endpoint,
    pub state: EngineState,
    /// Empty unless it answered.
    pub containers: Vec<Container>,
}

/// How the conversation with an engine ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineState {
    Answered {
        /// The version of the API that was spoken.
        api_version: String,
    },
    /// There is nothing at the address.
    Missing,
    /// There is a socket, but nobody listens at it.
    Refused,
    PermissionDenied {
        /// The group that may open the socket, if membership in it would help.
        group: Option<String>,
    },
    TimedOut,
    /// It answers, but not as an engine does; or what says where it is can't be read.
    Failed(String),
    /// Not asked: it knows the paths of another machine.
    Remote,
    /// Not asked: the user's `engines.ignore` names it.
    Ignored,
}

impl EngineState {
    /// One word for machines.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Answered { .. } => "answered",
            Self::Missing => "missing",
            Self::Refused => "refused",
            Self::PermissionDenied { .. } => "permission-denied",
            Self::TimedOut => "timed-out",
            Self::Failed(_) => "failed",
            Self::Remote => "remote",
            Self::Ignored => "ignored",
        }
    }
}

impl fmt::Display for EngineState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { api_version } => write!(f, "answered (API {api_version})"),
            Self::Missing => f.write_str("does not exist"),
            Self::Refused => f.write_str("has a socket at which nobody listens"),
            Self::PermissionDenied { group: Some(group) } => {
                write!(f, "may not be opened; members of the group {group} may")
            }
            Self::PermissionDenied { group: None } => f.write_str("may not be opened"),
            Self::TimedOut => f.write_str("took too long to answer"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::Remote => f.write_str("is on another machine and was not asked"),
            Self::Ignored => f.write_str("is ignored by the configuration"),
        }
    }
}

impl Engine {
    pub fn answered(&self) -> bool {
        matches!(self.state, EngineState::Answered { .. })
    }

    /// It had to be asked and could not be: a failure of the run. One found at a well-known place that does not exist,
    /// does not listen or is not ours to open is none.
    pub fn failed(&self) -> bool {
        match self.state {
            EngineState::TimedOut | EngineState::Failed(_) => true,
            EngineState::Missing | EngineState::Refused | EngineState::PermissionDenied { .. } => {
                self.endpoint.origin == Origin::Configured
            }
            EngineState::Answered { .. } | EngineState::Remote | EngineState::Ignored => false,
        }
    }
}

/// What engines are asked, and with what their answers are read.
pub struct Ask<'a> {
    pub time_limit: Duration,
    pub ignore: &'a [String],
    /// Below these directories lies everything whose fate depends on the answers.
    pub roots: &'a [Spot],
    pub own: &'a OwnContainer,
    pub wsl: Option<&'a Wsl>,
    /// This process's own.
    pub mounts: &'a MountTable,
    pub versions: &'a KnownVersions,
}

/// Versions negotiated earlier in this run, by address: the question costs an engine more than all the others.
#[derive(Debug, Default)]
pub struct KnownVersions(Mutex<HashMap<String, ClientVersion>>);

impl KnownVersions {
    fn get(&self, address: &str) -> Option<ClientVersion> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(address).copied()
    }

    fn set(&self, address: &str, version: Option<ClientVersion>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match version {
            Some(version) => known.insert(address.to_owned(), version),
            None => known.remove(address),
        };
    }
}

/// Asks all of `endpoints`, in parallel, and returns what each said, in their order. Takes as long as the slowest of
/// them, at most about `ask.time_limit`.
///
/// # Errors
/// The asynchronous runtime could not be started.
pub fn ask_all(endpoints: Vec<Endpoint>, ask: &Ask<'_>) -> io::Result<Vec<Engine>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let conversations = endpoints.into_iter().map(|endpoint| async move {
        let (state, containers) = match converse(&endpoint, ask).await {
            Ok((api_version, containers)) => (EngineState::Answered { api_version }, containers),
            Err(state) => (state, Vec::new()),
        };
        Engine { endpoint, state, containers }
    });
    Ok(runtime.block_on(futures_util::future::join_all(conversations)))
}

async fn converse(endpoint: &Endpoint, ask: &Ask<'_>) -> Result<(String, Vec<Container>), EngineState> {
    if endpoint.is_ignored(ask.ignore) {
        return Err(EngineState::Ignored);
    }
    let path = match &endpoint.address {
        Address::Unix(path) => path,
        Address::Remote(_) => return Err(EngineState::Remote),
        Address::Forbidden(_) => return Err(EngineState::PermissionDenied { group: None }),
        Address::Broken { why, .. } => return Err(EngineState::Failed(escape(why.as_bytes()))),
    };
    let deadline = Instant::now() + ask.time_limit;
    let listed = timeout_at(deadline, async {
        let connected = probe(path).await?;
        list(path, connected, &endpoint.address.to_string(), ask).await
    });
    let (docker, summaries, volumes) = listed.await.map_err(|_| EngineState::TimedOut)??;
    let reader = Reader::new(&summaries, volumes, ask.own, ask.wsl, ask.mounts);
    let mut containers: Vec<_> = summaries.into_iter().map(|s| reader.container(s)).collect();
    inspect(&docker, &reader, &mut containers, ask.roots, deadline).await;
    Ok((docker.client_version().to_string(), containers))
}

/// Connects once: bollard's errors don't tell apart why a connection fails.
async fn probe(path: &Path) -> Result<UnixStream, EngineState> {
    let meta = fs::metadata(path).map_err(|e| refusal(path, &e))?;
    if !meta.file_type().is_socket() {
        return Err(EngineState::Failed("not a socket".into()));
    }
    UnixStream::connect(path).await.map_err(|e| refusal(path, &e))
}

fn refusal(path: &Path, error: &io::Error) -> EngineState {
    match error.kind() {
        io::ErrorKind::PermissionDenied => EngineState::PermissionDenied { group: helpful_group(path) },
        io::ErrorKind::ConnectionRefused => EngineState::Refused,
        _ if is_absence(error) => EngineState::Missing,
        _ => EngineState::Failed(error.to_string()),
    }
}

/// The name of the group that may open the socket. Read from the file, because a static binary can't ask for it.
fn helpful_group(path: &Path) -> Option<String> {
    let meta = fs::metadata(path).ok().filter(|meta| meta.mode() & 0o060 == 0o060)?;
    let groups = fs::read_to_string("/etc/group").ok()?;
    groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(meta.gid())).then(|| escape(name.as_bytes()))
    })
}

type Listed = (Docker, Vec<ContainerSummary>, Volumes);

/// The version, all containers, and the volumes that they use.
async fn list(
    path: &Path,
    connected: UnixStream,
    address: &str,
    ask: &Ask<'_>,
) -> Result<Listed, EngineState> {
    let versions = ask.versions;
    let path = path.to_str().ok_or_else(|| EngineState::Failed("its path is not UTF-8".into()))?;
    if let Some(version) = versions.get(address) {
        let docker = connect(path, &version)?;
        match containers(&docker).await {
            Ok(summaries) => {
                let volumes = volumes(&docker, &summaries).await?;
                return Ok((docker, summaries, volumes));
            }
            // Perhaps it was replaced by one that speaks another version.
            Err(_) => versions.set(address, None),
        }
    }
    // One that hangs at this may still answer the usual question.
    let pinged = timeout(ask.time_limit / 4, ping::api_version(&connected)).await;
    let docker = match pinged.ok().flatten() {
        Some(theirs) if theirs < *API_DEFAULT_VERSION => connect(path, &theirs)?,
        Some(_) => connect(path, API_DEFAULT_VERSION)?,
        None => connect(path, API_DEFAULT_VERSION)?.negotiate_version().await.map_err(failure)?,
    };
    drop(connected);
    let summaries = containers(&docker).await.map_err(failure)?;
    versions.set(address, Some(docker.client_version()));
    let volumes = volumes(&docker, &summaries).await?;
    Ok((docker, summaries, volumes))
}

fn connect(path: &str, version: &ClientVersion) -> Result<Docker, EngineState> {
    // bollard's own limit is per request and in whole seconds; ours covers everything.
    Docker::connect_with_unix(path, 2 * TIME_LIMIT.as_secs(), version).map_err(failure)
}

async fn containers(docker: &Docker) -> Result<Vec<ContainerSummary>, Error> {
    docker.list_containers(Some(ListContainersOptionsBuilder::default().all(true).build())).await
}

/// Volumes of the local driver: only these may be a directory of the host, and others may wait for their plugin. An
/// engine that has no such question is as good as one without such volumes.
async fn volumes(docker: &Docker, summaries: &[ContainerSummary]) -> Result<Volumes, EngineState> {
    let named = |s: &ContainerSummary| s.mounts.iter().flatten().any(|m| m.name.is_some());
    if !summaries.iter().any(named) {
        return Ok(Volumes::default());
    }
    let local = HashMap::from([("driver", vec!["local"])]);
    match docker.list_volumes(Some(ListVolumesOptionsBuilder::default().filters(&local).build())).await {
        Ok(answer) => Ok(Volumes::read(answer.volumes.unwrap_or_default())),
        Err(Error::DockerResponseServerError { status_code: 404, .. }) => Ok(Volumes::default()),
        Err(error) => Err(failure(error)),
    }
}

/// Asks for the init processes that a verdict may depend on. What the engine does not answer in time stays unknown.
async fn inspect(
    docker: &Docker,
    reader: &Reader<'_>,
    all: &mut [Container],
    roots: &[Spot],
    deadline: Instant,
) {
    let wanted = all.iter_mut().filter(|container| container.needs_init(roots));
    futures_util::stream::iter(wanted)
        .for_each_concurrent(INSPECTIONS_AT_ONCE, |container| async move {
            let answer = docker.inspect_container(container.id.as_str(), None::<InspectContainerOptions>);
            container.init = match timeout_at(deadline, answer).await {
                Ok(Ok(inspected)) => reader.init(inspected, &container.mounts),
                Ok(Err(error)) => Init::Unknown(escape(error.to_string().as_bytes())),
                Err(_) => Init::Unknown("the engine took too long to answer".into()),
            };
        })
        .await;
}

fn failure(error: Error) -> EngineState {
    match error {
        Error::RequestTimeoutError => EngineState::TimedOut,
        other => EngineState::Failed(escape(other.to_string().as_bytes())),
    }
}

#[cfg(test)]
mod tests;

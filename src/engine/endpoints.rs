//! Which engines there are to ask: `--engine`, `DOCKER_HOST`, docker contexts, and the sockets at well-known places.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::engine::contexts;
use crate::engine::forms::Wsl;
use crate::vantage::paths::{FileId, escape};

/// What `--engine` says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// Every local engine that there is.
    #[default]
    Auto,
    /// The user says that there is none.
    None,
    /// This socket and no other.
    Socket(PathBuf),
}

/// A value of `--engine` that means nothing.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("'{0}' is neither 'auto', 'none', nor a local socket ('/path' or 'unix:///path')")]
pub struct UnknownChoice(String);

impl EngineChoice {
    pub fn parse(text: &OsStr) -> Result<Self, UnknownChoice> {
        match text.as_bytes() {
            b"auto" => Ok(Self::Auto),
            b"none" => Ok(Self::None),
            bytes => match Address::parse(bytes) {
                Address::Unix(path) => Ok(Self::Socket(path)),
                _ => Err(UnknownChoice(escape(bytes))),
            },
        }
    }
}

/// Where to look for engines. All of it is data, so that a test (or a user's config) decides what is found.
#[derive(Clone, Debug, Default)]
pub struct EndpointSources {
    /// `DOCKER_HOST`
    pub docker_host: Option<OsString>,
    /// `DOCKER_CONTEXT`
    pub docker_context: Option<OsString>,
    /// `DOCKER_CONFIG`, by default `.docker` in the home directory.
    pub docker_config: Option<PathBuf>,
    pub home: Option<PathBuf>,
    /// Where sessions keep their sockets: `XDG_RUNTIME_DIR`, and for root all of `/run/user/*`, since root can ask
    /// every user's engine and reclaims every user's worktrees.
    pub runtime_dirs: Vec<PathBuf>,
    /// Sockets that exist once in a system, with the names that the report gives them.
    pub system_sockets: Vec<(&'static str, PathBuf)>,
    /// Set inside the Windows Subsystem for Linux.
    pub wsl: Option<Wsl>,
}

impl EndpointSources {
    /// What the environment of this process and its machine say.
    pub fn of_this_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let uid = rustix::process::getuid();
        let mut runtime_dirs: Vec<PathBuf> = var("XDG_RUNTIME_DIR").map(PathBuf::from).into_iter().collect();
        runtime_dirs.push(format!("/run/user/{uid}").into());
        if uid.is_root() {
            // Not being able to list it is no failure: without logind there is no such directory.
            let users = fs::read_dir("/run/user").into_iter().flatten().flatten();
            runtime_dirs.extend(users.map(|entry| entry.path()));
        }
        Self {
            docker_host: var("DOCKER_HOST"),
            docker_context: var("DOCKER_CONTEXT"),
            docker_config: var("DOCKER_CONFIG").map(PathBuf::from),
            home: var("HOME").map(PathBuf::from),
            runtime_dirs,
            system_sockets: vec![
                ("docker", "/var/run/docker.sock".into()),
                ("podman (root)", "/run/podman/podman.sock".into()),
            ],
            wsl: Wsl::detect(),
        }
    }
}

/// Where an engine listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// tcp, ssh and the like: never asked, because it knows the paths of another machine.
    Remote(String),
    /// Configuration that means nothing: where, and why.
    Broken {
        text: String,
        why: String,
    },
    /// Configuration that may not be read: where.
    Forbidden(String),
}

impl Address {
    /// An address as `DOCKER_HOST` and docker contexts write it.
    pub fn parse(text: &[u8]) -> Self {
        let path = text.strip_prefix(b"unix://").unwrap_or(text);
        if path.first() == Some(&b'/') {
            return Self::Unix(OsString::from_vec(path.to_vec()).into());
        }
        let shown = escape(text);
        let scheme = text.split_once_str(b"://").map(|(scheme, _)| scheme);
        match scheme {
            Some(b"tcp" | b"http" | b"https" | b"ssh" | b"npipe") => Self::Remote(shown),
            _ => Self::Broken { text: shown, why: "not the address of an engine".into() },
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", escape(path.as_os_str().as_bytes())),
            Self::Remote(text) | Self::Broken { text, .. } | Self::Forbidden(text) => f.write_str(text),
        }
    }
}

/// Did the user say that this engine is to be asked?
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// `--engine`, `DOCKER_HOST`, or the current docker context: it has to answer.
    Configured,
    /// Found at a well-known place.
    Found,
}

/// An engine to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// For people: where the address comes from.
    pub name: String,
    pub address: Address,
    pub origin: Origin,
}

impl Endpoint {
    pub(super) fn new(name: impl Into<String>, address: Address, origin: Origin) -> Self {
        Self { name: name.into(), address, origin }
    }

    /// One of the user's `engines.ignore` names this endpoint: its address, with or without `unix://`, or its name.
    pub fn is_ignored(&self, ignore: &[String]) -> bool {
        let address = self.address.to_string();
        let bare = address.strip_prefix("unix://").unwrap_or(&address);
        ignore.iter().any(|i| *i == address || i == bare || *i == self.name)
    }
}

/// The endpoints to ask, configured ones first, each socket once whatever it is called. Nothing is connected to.
///
/// A socket that is absent at a well-known place is no engine and is left out; one that is configured stays, so that its
/// absence is seen.
pub fn discover(choice: &EngineChoice, sources: &EndpointSources) -> Vec<Endpoint> {
    match choice {
        EngineChoice::None => Vec::new(),
        EngineChoice::Socket(path) => {
            vec![Endpoint::new("--engine", Address::Unix(path.clone()), Origin::Configured)]
        }
        EngineChoice::Auto => once_each(candidates(sources)),
    }
}

fn candidates(sources: &EndpointSources) -> Vec<Endpoint> {
    let mut all = Vec::new();
    // The docker client looks at no context at all when DOCKER_HOST is set.
    let host = sources.docker_host.as_deref();
    all.extend(host.map(|h| Endpoint::new("DOCKER_HOST", Address::parse(h.as_bytes()), Origin::Configured)));
    all.extend(contexts::endpoints(sources, host.is_some()));
    let found = |name: &str, path: PathBuf| Endpoint::new(name, Address::Unix(path), Origin::Found);
    all.extend(sources.system_sockets.iter().map(|(name, path)| found(name, path.clone())));
    for dir in &sources.runtime_dirs {
        all.push(found("docker (rootless)", dir.join("docker.sock")));
        all.push(found("podman (user)", dir.join("podman/podman.sock")));
    }
    all.extend(
        sources.home.iter().map(|home| found("docker (rootless)", home.join(".docker/run/docker.sock"))),
    );
    all
}

/// Drops absent sockets that nobody configured, and second names of the same socket.
fn once_each(mut all: Vec<Endpoint>) -> Vec<Endpoint> {
    all.sort_by_key(|endpoint| endpoint.origin);
    let mut sockets = HashMap::new();
    let mut texts = HashMap::new();
    all.retain(|endpoint| {
        let id = match &endpoint.address {
            Address::Unix(path) => socket_id(path),
            Address::Remote(_) | Address::Broken { .. } | Address::Forbidden(_) => Ok(None),
        };
        let absent = matches!(&id, Err(e) if is_absence(e));
        if absent && endpoint.origin == Origin::Found {
            return false;
        }
        match id {
            Ok(Some(id)) => sockets.insert(id, ()).is_none(),
            // What can't be looked at is told apart by its text.
            _ => texts.insert(endpoint.address.to_string(), ()).is_none(),
        }
    });
    all
}

fn socket_id(path: &Path) -> io::Result<Option<FileId>> {
    let meta = fs::metadata(path)?;
    Ok(Some(FileId { dev: meta.dev(), ino: meta.ino() }))
}

/// The error says that there is nothing at the path.
pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    /// Listeners in a directory that stands for the machine; they close with it.
    struct Machine {
        dir: tempfile::TempDir,
        _listeners: Vec<UnixListener>,
    }

    fn machine(sockets: &[&str]) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        let listen = |name: &&str| {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            UnixListener::bind(path).unwrap()
        };
        let listeners = sockets.iter().map(listen).collect();
        Machine { dir, _listeners: listeners }
    }

    impl Machine {
        fn sources(&self) -> EndpointSources {
            EndpointSources {
                home: Some(self.dir.path().join("home")),
                runtime_dirs: vec![self.dir.path().join("run")],
                system_sockets: vec![
                    ("docker", self.dir.path().join("docker.sock")),
                    ("podman (root)", self.dir.path().join("podman.sock")),
                ],
                ..EndpointSources::default()
            }
        }

        fn unix(&self, name: &str) -> OsString {
            format!("unix://{}", self.dir.path().join(name).display()).into()
        }
    }

    fn names(endpoints: &[Endpoint]) -> Vec<(&str, Origin)> {
        endpoints.iter().map(|e| (e.name.as_str(), e.origin)).collect()
    }

    #[test]
    fn addresses_are_told_apart() {
        assert_eq!(Address::parse(b"unix:///x y"), Address::Unix("/x y".into()));
        assert_eq!(Address::parse(b"/x"), Address::Unix("/x".into()));
        for remote in ["tcp://127.0.0.1:2375", "ssh://me@there", "http://h", "npipe:////./pipe/docker_engine"]
        {
            assert_eq!(Address::parse(remote.as_bytes()), Address::Remote(remote.into()));
        }
        for broken in ["unix://x", "", "x", "fd://"] {
            assert!(matches!(Address::parse(broken.as_bytes()), Address::Broken { .. }), "{broken}");
        }
    }

    #[test]
    fn choices_are_parsed() {
        let parse = |s: &str| EngineChoice::parse(OsStr::new(s));
        assert_eq!(parse("auto"), Ok(EngineChoice::Auto));
        assert_eq!(parse("none"), Ok(EngineChoice::None));
        assert_eq!(parse("unix:///s"), Ok(EngineChoice::Socket("/s".into())));
        assert_eq!(parse("/s"), Ok(EngineChoice::Socket("/s".into())));
        assert!(parse("tcp://h:1").is_err() && parse("docker").is_err());
    }

    #[test]
    fn only_sockets_that_exist_are_engines_unless_configured() {
        let m = machine(&[
            "docker.sock",
            "run/docker.sock",
            "run/podman/podman.sock",
            "home/.docker/run/docker.sock",
        ]);
        let found = Origin::Found;
        let rootless = ("docker (rootless)", found);
        let all = [("docker", found), rootless, ("podman (user)", found), rootless];
        assert_eq!(names(&discover(&EngineChoice::Auto, &m.sources())), all);
        let sources = EndpointSources { docker_host: Some(m.unix("no.sock")), ..m.sources() };
        let asked = discover(&EngineChoice::Auto, &sources);
        assert_eq!(names(&asked)[0], ("DOCKER_HOST", Origin::Configured));
        assert_eq!(asked.len(), 5, "all others are asked as well");
        assert!(discover(&EngineChoice::None, &sources).is_empty());
        let only = discover(&EngineChoice::Socket("/absent".into()), &sources);
        assert_eq!(names(&only), [("--engine", Origin::Configured)]);
    }

    #[test]
    fn one_socket_under_two_names_is_asked_once_as_configured() {
        let m = machine(&["docker.sock"]);
        symlink(m.dir.path(), m.dir.path().join("alias")).unwrap();
        let sources = EndpointSources { docker_host: Some(m.unix("alias/docker.sock")), ..m.sources() };
        let endpoints = discover(&EngineChoice::Auto, &sources);
        assert_eq!(names(&endpoints), [("DOCKER_HOST", Origin::Configured)]);
    }

    #[test]
    fn ignoring_goes_by_address_or_name() {
        let endpoint = Endpoint::new("podman (root)", Address::Unix("/p.sock".into()), Origin::Found);
        for ignore in ["unix:///p.sock", "/p.sock", "podman (root)"] {
            assert!(endpoint.is_ignored(&[ignore.into()]), "{ignore}");
        }
        assert!(!endpoint.is_ignored(&["/p".into()]));
    }
}

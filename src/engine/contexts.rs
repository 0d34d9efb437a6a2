//! Docker contexts: `config.json` names the current one, `contexts/meta/*/meta.json` holds the addresses.
//!
//! bollard knows nothing of them. The rules are the docker client's (`cli/command/cli.go`, `resolveContextName`):
//! `DOCKER_HOST`, then `DOCKER_CONTEXT`, then `currentContext`; `default` is no file, but the socket at its usual place.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::engine::endpoints::{Address, Endpoint, EndpointSources, Origin, is_absence};
use crate::vantage::paths::escape;

/// No config of docker comes near this many bytes.
const LIMIT: u64 = 1 << 20;

#[derive(Deserialize)]
struct ClientConfig {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextMeta {
    #[serde(rename = "Name")]
    name: String,
    #[serde(rename = "Endpoints", default)]
    endpoints: HashMap<String, ContextEndpoint>,
}

#[derive(Deserialize)]
struct ContextEndpoint {
    #[serde(rename = "Host", default)]
    host: String,
}

/// The engines that docker contexts name. The current one is configured, unless `DOCKER_HOST` overrides it; of the
/// others only local sockets count.
pub(super) fn endpoints(sources: &EndpointSources, overridden: bool) -> Vec<Endpoint> {
    let Some(dir) =
        sources.docker_config.clone().or_else(|| sources.home.as_ref().map(|home| home.join(".docker")))
    else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let mut current = None;
    if !overridden {
        match current_context(&dir, sources) {
            Ok(name) => current = name,
            // With another user's home (`sudo -u`, a service) it is not this user's configuration.
            Err(denied @ Address::Forbidden(_)) => {
                return vec![Endpoint::new("docker config", denied, Origin::Found)];
            }
            // Which engine the user means is not known: something that matters could not be asked.
            Err(broken) => all.push(Endpoint::new("docker config", broken, Origin::Configured)),
        }
    }
    let mut current_found = false;
    for context in stored(&dir) {
        let is_current = context.name.is_some() && context.name == current;
        current_found |= is_current;
        let origin = if is_current { Origin::Configured } else { Origin::Found };
        let is_remote = matches!(context.address, Address::Remote(_));
        if is_current || !is_remote {
            let name = context.name.as_deref().unwrap_or("unreadable");
            all.push(Endpoint::new(
                format!("docker context {}", escape(name.as_bytes())),
                context.address,
                origin,
            ));
        }
    }
    if let Some(name) = current.filter(|_| !current_found) {
        let text = escape(name.as_bytes());
        let why = format!("docker has no context of that name in {}", shown(&dir));
        all.push(Endpoint::new("docker context", Address::Broken { text, why }, Origin::Configured));
    }
    all
}

/// The name of the context that the docker client would use; `None` for the default one.
fn current_context(dir: &Path, sources: &EndpointSources) -> Result<Option<String>, Address> {
    let named = match &sources.docker_context {
        Some(name) => Some(name.to_string_lossy().into_owned()),
        None => match read::<ClientConfig>(&dir.join("config.json")) {
            Ok(config) => config.current_context,
            Err(e) if is_absence(&e) => None,
            Err(e) => return Err(broken(&dir.join("config.json"), &e)),
        },
    };
    Ok(named.filter(|name| !name.is_empty() && name != "default"))
}

struct Stored {
    name: Option<String>,
    address: Address,
}

fn stored(dir: &Path) -> Vec<Stored> {
    let meta = dir.join("contexts/meta");
    let entries: Vec<PathBuf> = match fs::read_dir(&meta).and_then(|dir| dir.collect::<io::Result<Vec<_>>>())
    {
        Ok(entries) => entries.into_iter().map(|entry| entry.path().join("meta.json")).collect(),
        Err(e) if is_absence(&e) => Vec::new(),
        Err(e) => return vec![Stored { name: None, address: broken(&meta, &e) }],
    };
    let mut all: Vec<Stored> = entries.iter().filter_map(|file| stored_in(file)).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn stored_in(file: &Path) -> Option<Stored> {
    match read::<ContextMeta>(file) {
        Ok(meta) => {
            // A context may be for kubernetes only.
            let host =
                meta.endpoints.get("docker").map(|e| e.host.as_str()).filter(|host| !host.is_empty())?;
            Some(Stored { name: Some(meta.name), address: Address::parse(host.as_bytes()) })
        }
        Err(e) if is_absence(&e) => None,
        Err(e) => Some(Stored { name: None, address: broken(file, &e) }),
    }
}

/// A regular file of bounded size as JSON. Symlinks are followed: this is the user's own configuration.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

fn broken(path: &Path, error: &io::Error) -> Address {
    if error.kind() == io::ErrorKind::PermissionDenied {
        return Address::Forbidden(shown(path));
    }
    Address::Broken { text: shown(path), why: error.to_string() }
}

fn shown(path: &Path) -> String {
    escape(path.as_os_str().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn docker_dir(config: &str, contexts: &[(&str, &str)]) -> (tempfile::TempDir, EndpointSources) {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("config.json"), config).unwrap();
        for (name, host) in contexts {
            let meta = dir.path().join("contexts/meta").join(name);
            fs::create_dir_all(&meta).unwrap();
            let text = format!(
                r#"{{"Name":"{name}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#
            );
            fs::write(meta.join("meta.json"), text).unwrap();
        }
        let sources =
            EndpointSources { docker_config: Some(dir.path().into()), ..EndpointSources::default() };
        (dir, sources)
    }

    fn summary(sources: &EndpointSources, overridden: bool) -> Vec<(String, String, Origin)> {
        endpoints(sources, overridden)
            .into_iter()
            .map(|e| (e.name, e.address.to_string(), e.origin))
            .collect()
    }

    fn row(name: &str, address: &str, origin: Origin) -> (String, String, Origin) {
        (name.into(), address.into(), origin)
    }

    const CONTEXTS: [(&str, &str); 3] =
        [("a", "unix:///a.sock"), ("b", "ssh://me@b"), ("c", "unix:///c.sock")];

    #[test]
    fn the_current_context_is_configured_and_other_local_ones_are_found() {
        let (_dir, mut sources) = docker_dir(r#"{"currentContext":"a"}"#, &CONTEXTS);
        let (a, c) = ("docker context a", "docker context c");
        let found = |name, address| row(name, address, Origin::Found);
        let configured = |name, address| row(name, address, Origin::Configured);
        let expected = [configured(a, "unix:///a.sock"), found(c, "unix:///c.sock")];
        assert_eq!(summary(&sources, false), expected);
        assert_eq!(summary(&sources, true), [found(a, "unix:///a.sock"), found(c, "unix:///c.sock")]);
        sources.docker_context = Some("b".into());
        let rows = summary(&sources, false);
        assert_eq!(rows[1], configured("docker context b", "ssh://me@b"));
        sources.docker_context = Some("default".into());
        assert!(summary(&sources, false).iter().all(|(_, _, origin)| *origin == Origin::Found));
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let (_dir, sources) = docker_dir(r#"{"currentContext":"gone"}"#, &[]);
        assert_eq!(summary(&sources, false), [row("docker context", "gone", Origin::Configured)]);
        assert_eq!(summary(&sources, true), []);
        let (dir, sources) = docker_dir("{", &[("a", "unix:///a.sock")]);
        assert_eq!(summary(&sources, false)[0].2, Origin::Configured);
        let meta = dir.path().join("contexts/meta/a/meta.json");
        fs::write(&meta, "junk").unwrap();
        let rows = summary(&sources, true);
        assert_eq!(rows[0].0, "docker context unreadable");
        assert_eq!(rows[0].1, meta.display().to_string());
    }

    #[test]
    fn configuration_of_another_user_is_none_of_ours() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(broken(Path::new("/root/.docker"), &denied), Address::Forbidden("/root/.docker".into()));
        if rustix::process::geteuid().is_root() {
            return;
        }
        let (dir, sources) = docker_dir("{}", &[("a", "unix:///a.sock")]);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o000)).unwrap();
        let rows = summary(&sources, false);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
        let config = dir.path().join("config.json").display().to_string();
        assert_eq!(rows, [row("docker config", &config, Origin::Found)]);
    }

    #[test]
    fn no_docker_directory_is_no_context() {
        let sources = EndpointSources { home: Some("/nonexistent".into()), ..EndpointSources::default() };
        assert_eq!(summary(&sources, false), []);
        assert_eq!(summary(&EndpointSources::default(), false), []);
    }
}

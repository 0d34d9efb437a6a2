//! The spellings in which Docker Desktop and Windows tools report a path of the host.

use std::fmt;

use bstr::ByteSlice;

use crate::vantage::paths::{HostPath, escape};

/// This process runs inside the Windows Subsystem for Linux.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wsl {
    /// The distribution's name, if the environment tells it.
    pub distro: Option<String>,
}

impl Wsl {
    /// WSL's kernels carry Microsoft's name in their release.
    pub fn detect() -> Option<Self> {
        let release = rustix::system::uname().release().to_bytes().to_ascii_lowercase();
        let distro = std::env::var("WSL_DISTRO_NAME").ok().filter(|name| !name.is_empty());
        release.contains_str("microsoft").then_some(Self { distro })
    }
}

/// Where a mount comes from, as far as the engine's words can be read on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A path of the host.
    Host(HostPath),
    /// A path inside Docker Desktop's virtual machine that stands for `shared`, a path of the host. An engine that runs
    /// on the host itself may mean it literally.
    Desktop { shared: HostPath, literal: HostPath },
    /// Words that name no path of this host.
    Unplaceable(String),
    /// The engine does not say.
    Absent,
}

impl fmt::Display for Source {
    /// As the engine says, control characters escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(path) | Self::Desktop { literal: path, .. } => path.fmt(f),
            Self::Unplaceable(text) => f.write_str(&escape(text.as_bytes())),
            Self::Absent => f.write_str("something that the engine does not name"),
        }
    }
}

const HOST_MNT: &str = "/host_mnt";
const DESKTOP_MNT: &str = "/run/desktop/mnt/host";

impl Source {
    /// The source of a mount, as an engine reports it.
    pub fn of_mount(text: &str, wsl: Option<&Wsl>) -> Self {
        if text.is_empty() {
            return Self::Absent;
        }
        let desktop = |prefix: &str| below(text, prefix).map(|rest| shared_path(rest, wsl));
        match desktop(DESKTOP_MNT).or_else(|| desktop(HOST_MNT)) {
            Some(Some(shared)) => Self::Desktop { shared, literal: HostPath::new(text) },
            Some(None) => Self::Unplaceable(text.into()),
            None => host_path(text, wsl).map_or_else(|| Self::Unplaceable(text.into()), Self::Host),
        }
    }
}

/// A path of the host that a client wrote into a label: an absolute one, or a Windows one that WSL shows.
pub fn host_path(text: &str, wsl: Option<&Wsl>) -> Option<HostPath> {
    if text.starts_with('/') && !text.starts_with("//") {
        return Some(HostPath::new(text));
    }
    let wsl = wsl?;
    let slashes = text.replace('\\', "/");
    if let Some(rest) =
        strip_ignoring_case(&slashes, "//wsl.localhost/").or_else(|| strip_ignoring_case(&slashes, "//wsl$/"))
    {
        let (distro, path) = rest.split_once('/').unwrap_or((rest, ""));
        let ours = wsl.distro.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(distro));
        return ours.then(|| HostPath::new(format!("/{path}")));
    }
    let (drive, path) = slashes.split_once(':')?;
    drive_path(drive, path.strip_prefix('/')?)
}

/// What Docker Desktop shares under `rest` below its mount of the host: `None` if that is no path of this host.
fn shared_path(rest: &str, wsl: Option<&Wsl>) -> Option<HostPath> {
    let (first, tail) = rest.split_once('/').unwrap_or((rest, ""));
    match wsl {
        // The files of a distribution, under a name that only Docker Desktop knows.
        _ if first == "wsl" => None,
        Some(_) => drive_path(first, tail),
        None => Some(HostPath::new(format!("/{rest}"))),
    }
}

/// WSL shows the drive `c` at `/mnt/c`.
fn drive_path(drive: &str, path: &str) -> Option<HostPath> {
    let letter = drive.chars().next().filter(|c| drive.len() == 1 && c.is_ascii_alphabetic())?;
    Some(HostPath::new(format!("/mnt/{}/{path}", letter.to_ascii_lowercase())))
}

fn below<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let rest = text.strip_prefix(prefix)?;
    if rest.is_empty() { Some(rest) } else { rest.strip_prefix('/') }
}

fn strip_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wsl(distro: &str) -> Wsl {
        Wsl { distro: Some(distro.into()) }
    }

    fn shared(shared: &str, literal: &str) -> Source {
        Source::Desktop { shared: HostPath::new(shared), literal: HostPath::new(literal) }
    }

    #[test]
    fn mount_sources_are_read_on_linux() {
        let read = |text| Source::of_mount(text, None);
        assert_eq!(read("/home/u/app"), Source::Host(HostPath::new("/home/u/app")));
        assert_eq!(read(""), Source::Absent);
        for (text, path) in [
            ("/host_mnt/home/u/app", "/home/u/app"),
            ("/run/desktop/mnt/host/home/u", "/home/u"),
            ("/host_mnt", "/"),
            ("/host_mnt/c/x", "/c/x"),
        ] {
            assert_eq!(read(text), shared(path, text), "{text}");
        }
        assert_eq!(read("/host_mntx/y"), Source::Host(HostPath::new("/host_mntx/y")));
        let in_vm = "/run/desktop/mnt/host/wsl/docker-desktop-bind-mounts/Ubuntu/0a1b";
        for text in [in_vm, "\\\\wsl.localhost\\Ubuntu\\home", "C:\\Users\\me", "app-data", "//server/share"]
        {
            assert_eq!(read(text), Source::Unplaceable(text.into()), "{text}");
        }
    }

    #[test]
    fn mount_sources_are_read_in_wsl() {
        let ubuntu = wsl("Ubuntu");
        let read = |text| Source::of_mount(text, Some(&ubuntu));
        for text in ["/run/desktop/mnt/host/c/Users/me", "/host_mnt/C/Users/me"] {
            assert_eq!(read(text), shared("/mnt/c/Users/me", text));
        }
        let in_vm = "/run/desktop/mnt/host/wsl/docker-desktop-bind-mounts/Ubuntu/0a1b";
        assert_eq!(read(in_vm), Source::Unplaceable(in_vm.into()));
        assert_eq!(read("/host_mnt/home"), Source::Unplaceable("/host_mnt/home".into()));
    }

    #[test]
    fn labels_of_windows_tools_are_read_in_wsl() {
        let ubuntu = wsl("Ubuntu");
        for (text, path) in [
            ("\\\\wsl.localhost\\Ubuntu\\home\\u\\app", Some("/home/u/app")),
            ("\\\\WSL$\\ubuntu\\home\\u\\app", Some("/home/u/app")),
            ("//wsl$/Ubuntu/home/u", Some("/home/u")),
            ("\\\\wsl.localhost\\Debian\\home\\u\\app", None),
            ("c:\\Users\\me\\app", Some("/mnt/c/Users/me/app")),
            ("D:/work", Some("/mnt/d/work")),
            ("cd:/work", None),
            ("relative", None),
            ("/home/u", Some("/home/u")),
        ] {
            assert_eq!(host_path(text, Some(&ubuntu)), path.map(HostPath::new), "{text}");
        }
        let unnamed = Wsl { distro: None };
        assert_eq!(host_path("\\\\wsl$\\Debian\\x", Some(&unnamed)), Some(HostPath::new("/x")));
        assert_eq!(host_path("\\\\wsl$\\Ubuntu\\x", None), None);
        assert_eq!(host_path("ä", Some(&ubuntu)), None);
    }
}

//! Whether this process runs in a container, which one, and whether it sees all processes of the host.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use bstr::{BStr, ByteSlice};

use crate::vantage::mountinfo::MountTable;
use crate::vantage::paths::escape;

/// What a container engine calls a container: 64 hexadecimal digits for real engines.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerId(String);

impl ContainerId {
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ids in `text`: its longest runs of hexadecimal digits that are 64 digits long. Engines put an id between
    /// other signs: `/docker/<id>`, `docker-<id>.scope`, `libpod-<id>.scope`, `.../containers/<id>/hostname`.
    pub fn all_in(text: &[u8]) -> impl Iterator<Item = Self> + '_ {
        text.split(|b| !matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            .filter(|run| run.len() == 64)
            .filter_map(|run| run.to_str().ok())
            .map(Self::new)
    }
}

impl fmt::Display for ContainerId {
    /// The first twelve digits, as engines print an id.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(self.0.chars().take(12).collect::<String>().as_bytes()))
    }
}

/// Is this process in a container?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnContainer {
    /// Nothing says so.
    No,
    Named(ContainerId),
    /// In one that can't be told from others.
    Unnamed,
}

/// Which processes this process can see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PidNamespace {
    /// All of the machine. A container that was started with `--pid=host` is in it too.
    Initial,
    /// Only some: a missing pid proves nothing.
    Other,
}

/// The inode of the initial pid namespace (`PROC_PID_INIT_INO` in the kernel's `include/linux/proc_ns.h`).
const INITIAL_PID_NAMESPACE: u64 = 0xEFFF_FFFC;

impl PidNamespace {
    /// The one that this process and the mounted `/proc` are in. What can't be read is [`PidNamespace::Other`].
    pub fn own() -> Self {
        let initial =
            namespace_inode(Path::new("/proc/self/ns/pid")).is_ok_and(|i| i == INITIAL_PID_NAMESPACE);
        // `/proc` may have been mounted in another pid namespace: then its numbers are not ours.
        let proc_is_ours = fs::read_link("/proc/self")
            .is_ok_and(|p| p.as_os_str() == std::process::id().to_string().as_str());
        if initial && proc_is_ours { Self::Initial } else { Self::Other }
    }
}

/// The number in a link like `mnt:[4026531841]`.
pub fn namespace_inode(link: &Path) -> io::Result<u64> {
    let target = fs::read_link(link)?;
    parse_namespace(target.as_os_str().as_encoded_bytes().as_bstr())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "not a namespace link"))
}

pub(crate) fn parse_namespace(link: &BStr) -> Option<u64> {
    let (_, rest) = link.split_once_str(b":[")?;
    rest.strip_suffix(b"]")?.to_str().ok()?.parse().ok()
}

impl OwnContainer {
    /// Asks `/proc` and the two marker files.
    pub fn detect(mounts: &MountTable) -> io::Result<Self> {
        let cgroup = fs::read("/proc/self/cgroup")?;
        let marker = Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists();
        Ok(Self::decide(mounts, &cgroup, marker, PidNamespace::own()))
    }

    /// Engines bind three files of their own into each container, from a directory that bears its id; the cgroup is
    /// asked second, because with a private cgroup namespace it says nothing.
    ///
    /// A marker file alone proves nothing in the initial pid namespace: the root file system of a virtual machine that
    /// was made from a container image carries it too. Nor does another pid namespace alone: WSL, LXC and sandboxes
    /// have one, and an engine that runs in there shares our paths.
    fn decide(mounts: &MountTable, cgroup: &[u8], marker: bool, pids: PidNamespace) -> Self {
        const ENGINE_FILES: [&str; 3] = ["/etc/hostname", "/etc/resolv.conf", "/etc/hosts"];
        let by_mount = mounts
            .iter()
            .filter(|m| ENGINE_FILES.iter().any(|file| m.mount_point == *file))
            .find_map(|m| ContainerId::all_in(&m.root).last());
        match by_mount.or_else(|| ContainerId::all_in(cgroup).last()) {
            Some(id) => Self::Named(id),
            None if marker && pids == PidNamespace::Other => Self::Unnamed,
            None => Self::No,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn decide(mounts: &str, cgroup: &str, marker: bool, pids: PidNamespace) -> OwnContainer {
        OwnContainer::decide(&MountTable::parse(mounts.as_bytes()).unwrap(), cgroup.as_bytes(), marker, pids)
    }

    #[test]
    fn the_id_is_found_in_each_engines_spelling() {
        let named = OwnContainer::Named(ContainerId::new(A));
        let docker =
            format!("5 1 8:1 /var/lib/docker/containers/{A}/hostname /etc/hostname rw - ext4 d rw\n");
        let podman = format!(
            "5 1 0:9 /containers/storage/overlay-containers/{A}/userdata/resolv.conf /etc/resolv.conf rw - tmpfs t rw\n"
        );
        for mounts in [&docker, &podman] {
            assert_eq!(decide(mounts, "0::/\n", true, PidNamespace::Other), named);
            assert_eq!(decide(mounts, "0::/\n", false, PidNamespace::Initial), named, "--pid=host");
            let elsewhere = mounts.replace("/etc/", "/mnt/");
            assert_eq!(decide(&elsewhere, "0::/\n", false, PidNamespace::Initial), OwnContainer::No);
        }
        for cgroup in [
            format!("12:memory:/docker/{A}\n0::/\n"),
            format!("0::/system.slice/docker-{A}.scope\n"),
            format!("0::/machine.slice/libpod-{A}.scope/container\n"),
            format!("0::/docker/{B}/docker/{A}\n"),
        ] {
            assert_eq!(decide("", &cgroup, false, PidNamespace::Other), named, "{cgroup}");
        }
    }

    #[test]
    fn a_marker_or_a_pid_namespace_alone_is_no_container() {
        assert_eq!(decide("", "0::/\n", true, PidNamespace::Initial), OwnContainer::No);
        assert_eq!(decide("", "0::/init.scope\n", false, PidNamespace::Other), OwnContainer::No);
        assert_eq!(decide("", "0::/\n", true, PidNamespace::Other), OwnContainer::Unnamed);
    }

    #[test]
    fn only_whole_ids_are_taken() {
        assert_eq!(ContainerId::all_in(format!("/x/{A}0/{}", &A[1..]).as_bytes()).count(), 0);
        assert_eq!(ContainerId::new(B).to_string(), "0123456789ab");
        assert_eq!(parse_namespace(b"mnt:[4026531841]".as_bstr()), Some(4026531841));
        assert_eq!(parse_namespace(b"mnt:4026531841".as_bstr()), None);
    }

    #[test]
    fn this_process_can_be_asked() {
        OwnContainer::detect(&MountTable::own().unwrap()).unwrap();
    }
}

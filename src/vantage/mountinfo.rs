//! `/proc/<pid>/mountinfo`, byte for byte: what is mounted where in a mount namespace (proc_pid_mountinfo(5)).
//!
//! Paths in it need not be UTF-8, so no library that answers with `String` can be used for them.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::io::Errno;

use crate::vantage::paths::LocalPath;

/// One mount, as a process with a given root directory sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The mount's id, the one that `statx` answers; unique among the mounts that exist now.
    pub id: u64,
    /// The id of the mount that it is mounted on.
    pub parent: u64,
    /// The file system, as `st_dev` numbers it. On btrfs `stat` answers another number for a subvolume: compare
    /// this only with the device of another [`Mount`].
    pub device: u64,
    /// The directory (or file) of the file system that is mounted.
    pub root: BString,
    /// Where it is mounted, seen from the process's root directory.
    pub mount_point: BString,
    pub fs_type: BString,
    /// What the file system calls its source: a block device, an export, anything.
    pub source: BString,
    /// Options of the file system itself, separated by commas.
    pub super_options: BString,
    /// The mount or its file system refuses writes.
    pub read_only: bool,
}

/// A place inside a file system: it is the same place whichever mount of whichever namespace leads to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FsPlace {
    /// See [`Mount::device`].
    pub device: u64,
    /// From the root of the file system; absolute.
    pub path: BString,
}

/// All mounts that one process sees.
#[derive(Clone, Debug, Default)]
pub struct MountTable {
    mounts: Vec<Mount>,
    /// By the parent (`None`: it is not in the table) and the mount point: what a path walk meets there.
    at: HashMap<(Option<u64>, BString), usize>,
    by_id: HashMap<u64, usize>,
}

/// Why a mount table could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MountInfoError {
    #[error("{path}: {error}")]
    Read { path: String, error: io::Error },
    #[error("a line of mountinfo is not understood: {line}")]
    Line { line: String },
}

impl MountInfoError {
    /// The process is gone, so that it has no mounts any more.
    pub fn is_vanished(&self) -> bool {
        // A zombie has no namespace left: the kernel answers EINVAL for its mountinfo.
        let Self::Read { error, .. } = self else { return false };
        matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::SRCH | Errno::INVAL))
    }
}

impl FsPlace {
    /// This place is `other` or lies below it.
    pub fn is_beneath_or_at(&self, other: &FsPlace) -> bool {
        self.device == other.device && as_path(&self.path).starts_with(as_path(&other.path))
    }
}

impl MountTable {
    /// The mounts that this process sees.
    pub fn own() -> Result<Self, MountInfoError> {
        Self::read("/proc/self/mountinfo")
    }

    /// The mounts that the process `pid` sees; mount points are seen from its root directory.
    pub fn of(pid: u32) -> Result<Self, MountInfoError> {
        Self::read(&format!("/proc/{pid}/mountinfo"))
    }

    fn read(path: &str) -> Result<Self, MountInfoError> {
        let bytes = fs::read(path).map_err(|error| MountInfoError::Read { path: path.into(), error })?;
        Self::parse(&bytes)
    }

    /// The table in the bytes of a `mountinfo` file.
    pub fn parse(bytes: &[u8]) -> Result<Self, MountInfoError> {
        let mounts = bytes
            .split_str(b"\n")
            .filter(|line| !line.is_empty())
            .map(|line| {
                Mount::parse(line)
                    .ok_or_else(|| MountInfoError::Line { line: crate::vantage::paths::escape(line) })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let by_id: HashMap<_, _> = mounts.iter().enumerate().map(|(i, m)| (m.id, i)).collect();
        let mut at = HashMap::new();
        for (i, mount) in mounts.iter().enumerate() {
            // The topmost mount names itself, or a parent that this process does not see.
            let parent =
                (mount.parent != mount.id && by_id.contains_key(&mount.parent)).then_some(mount.parent);
            at.insert((parent, mount.mount_point.clone()), i);
        }
        Ok(Self { mounts, at, by_id })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.by_id.get(&id).map(|i| &self.mounts[*i])
    }

    /// The mount that a walk to `path` ends on, as the kernel walks: from the top, at each directory onto what is
    /// mounted there last. A mount hidden under a later one is not met.
    pub fn deepest_over(&self, path: &LocalPath) -> Option<&Mount> {
        let prefixes = prefixes(path.as_bstr());
        let mut on: Option<&Mount> = None;
        // Each step goes to a child, so that a table with a loop in it can't hold us.
        for _ in 0..self.mounts.len() {
            let parent = on.map(|m| m.id);
            let start = on.map_or(0, |m| m.mount_point.len());
            let next = prefixes
                .iter()
                .filter(|p| p.len() >= start)
                .find_map(|p| self.at.get(&(parent, p.as_bstr().to_owned())))
                .map(|i| &self.mounts[*i]);
            match next {
                Some(mount) if Some(mount.id) != parent => on = Some(mount),
                _ => break,
            }
        }
        on
    }

    /// Mounts whose mount point lies below `path`, hidden ones too.
    pub fn beneath<'a>(&'a self, path: &'a LocalPath) -> impl Iterator<Item = &'a Mount> {
        self.mounts.iter().filter(move |m| {
            m.mount_point != *path.as_bstr() && as_path(&m.mount_point).starts_with(path.as_path())
        })
    }

    /// Where in its file system `path` lies. No component of it may be a symlink. `None` if no mount is over it.
    pub fn fs_place(&self, path: &LocalPath) -> Option<FsPlace> {
        self.deepest_over(path).and_then(|mount| mount.fs_place(path.as_bstr()))
    }

    /// Where in its parent's file system the mount point of `mount` lies. `None` if its parent is not visible to the
    /// process, as for the topmost mount.
    pub fn place_of_mount_point(&self, mount: &Mount) -> Option<FsPlace> {
        if mount.parent == mount.id {
            return None;
        }
        self.by_id(mount.parent)?.fs_place(mount.mount_point.as_bstr())
    }
}

impl Mount {
    /// What is mounted, as a place in its file system.
    pub fn source_place(&self) -> FsPlace {
        FsPlace { device: self.device, path: self.root.clone() }
    }

    /// Where in this mount's file system `path` lies, which has to be at or below the mount point.
    fn fs_place(&self, path: &BStr) -> Option<FsPlace> {
        let rest = as_path(path).strip_prefix(as_path(&self.mount_point)).ok()?;
        let joined = as_path(&self.root).join(rest);
        // Joining nothing would leave a slash at the end.
        let path = if rest.as_os_str().is_empty() { self.root.clone() } else { into_bytes(&joined) };
        Some(FsPlace { device: self.device, path })
    }

    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = line.split_str(b" ");
        let id = number(fields.next()?)?;
        let parent = number(fields.next()?)?;
        let (major, minor) = fields.next()?.split_once_str(b":")?;
        let root = unescape(fields.next()?);
        let mount_point = unescape(fields.next()?);
        let options = fields.next()?;
        // Any number of optional fields (shared:, master:, ...) up to a single dash.
        fields.by_ref().find(|field| *field == b"-")?;
        let fs_type = unescape(fields.next()?);
        let source = unescape(fields.next()?);
        let super_options = unescape(fields.next().unwrap_or_default());
        let read_only = [options, &super_options].iter().any(|o| o.split_str(b",").any(|o| o == b"ro"));
        let device = rustix::fs::makedev(number(major)?.try_into().ok()?, number(minor)?.try_into().ok()?);
        Some(Self { id, parent, device, root, mount_point, fs_type, source, super_options, read_only })
    }

    /// One option of the file system, for example `hidepid` of `/proc`: its value, empty if it has none.
    pub fn super_option(&self, name: &[u8]) -> Option<&BStr> {
        self.super_options.split_str(b",").find_map(|option| {
            let (key, value) = option.split_once_str(b"=").unwrap_or((option, b""));
            (key == name).then(|| value.as_bstr())
        })
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The kernel writes blanks, newlines, backslashes and `#` as three octal digits.
fn unescape(field: &[u8]) -> BString {
    let mut out = BString::default();
    let mut rest = field;
    while let Some(byte) = rest.first() {
        match rest {
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = &rest[4..];
            }
            _ => {
                out.push(*byte);
                rest = &rest[1..];
            }
        }
    }
    out
}

/// `/`, `/a`, `/a/b` of `/a/b`.
fn prefixes(path: &BStr) -> Vec<&[u8]> {
    let mut all: Vec<&[u8]> = as_path(path).ancestors().map(|p| p.as_os_str().as_bytes()).collect();
    all.reverse();
    all
}

fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}

fn into_bytes(path: &Path) -> BString {
    path.as_os_str().as_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(path: &str) -> LocalPath {
        LocalPath::new(path).unwrap()
    }

    fn table(text: &str) -> MountTable {
        MountTable::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn a_line_is_read_byte_for_byte() {
        let line = b"36 35 98:1 /mnt\\0401 /mnt\\012\\1342\xff rw,noatime master:1 shared:2 - ext3 /dev/r\\040t ro,errors=x";
        let table = MountTable::parse(line).unwrap();
        let mount = table.by_id(36).unwrap();
        assert_eq!((mount.parent, mount.device), (35, rustix::fs::makedev(98, 1)));
        assert_eq!(mount.root, "/mnt 1");
        assert_eq!(mount.mount_point, b"/mnt\n\\2\xff".as_bstr());
        assert_eq!(
            (mount.fs_type.as_bstr(), mount.source.as_bstr()),
            (b"ext3".as_bstr(), b"/dev/r t".as_bstr())
        );
        assert!(mount.read_only, "the file system is read-only though the mount is not");
        assert_eq!(mount.super_option(b"errors").unwrap(), "x");
        assert_eq!(mount.super_option(b"ro").unwrap(), "");
        assert_eq!(mount.super_option(b"err"), None);
    }

    #[test]
    fn lines_without_optional_fields_or_options_are_read_and_junk_is_not() {
        assert!(!table("1 1 0:1 / / rw - tmpfs tmpfs rw\n").by_id(1).unwrap().read_only);
        assert!(table("1 1 0:1 / / ro - tmpfs tmpfs ").by_id(1).unwrap().read_only);
        for junk in ["x", "1 1 0:1 / / rw", "1 1 0 / / rw - t t rw", "a 1 0:1 / / rw - t t rw"] {
            assert!(MountTable::parse(junk.as_bytes()).is_err(), "{junk}");
        }
    }

    #[test]
    fn the_walk_ends_where_the_kernels_does() {
        // /a/b is hidden by the later /a; /s is mounted twice; /h/x is on /h.
        let t = table(
            "1 0 8:1 / / rw - ext4 d rw\n\
             2 1 8:2 / /a/b rw - ext4 d rw\n\
             3 1 8:3 / /a rw - ext4 d rw\n\
             4 1 8:4 / /s rw - ext4 d rw\n\
             5 4 8:5 / /s rw - ext4 d rw\n\
             6 1 8:6 /sub /h rw - ext4 d rw\n\
             7 6 8:7 /deep/er /h/x rw - ext4 d rw\n",
        );
        for (path, id) in [
            ("/", 1),
            ("/q", 1),
            ("/a/b/c", 3),
            ("/s", 5),
            ("/s/t", 5),
            ("/h", 6),
            ("/h/xy", 6),
            ("/h/x", 7),
            ("/h/x/y/z", 7),
        ] {
            assert_eq!(t.deepest_over(&local(path)).unwrap().id, id, "{path}");
        }
        assert_eq!(t.beneath(&local("/h")).map(|m| m.id).collect::<Vec<_>>(), [7]);
        assert_eq!(t.beneath(&local("/a")).map(|m| m.id).collect::<Vec<_>>(), [2]);
        assert_eq!(t.fs_place(&local("/h/x/y")).unwrap().path, "/deep/er/y");
        assert_eq!(t.fs_place(&local("/h")).unwrap().path, "/sub");
        let inner = t.by_id(7).unwrap();
        assert_eq!(
            t.place_of_mount_point(inner).unwrap(),
            FsPlace { device: rustix::fs::makedev(8, 6), path: "/sub/x".into() }
        );
        assert_eq!(t.place_of_mount_point(t.by_id(1).unwrap()), None);
    }

    #[test]
    fn a_table_without_a_root_or_with_a_loop_is_walked_too() {
        let chrooted = table("9 4 8:1 / /proc rw - proc p rw\n");
        assert_eq!(chrooted.deepest_over(&local("/proc/1")).unwrap().id, 9);
        assert!(chrooted.deepest_over(&local("/etc")).is_none());
        let looped = table("1 2 8:1 / / rw - t t rw\n2 1 8:1 / / rw - t t rw\n");
        assert!(looped.deepest_over(&local("/x")).is_none());
        assert_eq!(table("1 1 8:1 / / rw - t t rw\n").deepest_over(&local("/x")).unwrap().id, 1);
    }

    #[test]
    fn places_are_compared_by_whole_components() {
        let place = |device, path: &str| FsPlace { device, path: path.into() };
        assert!(place(1, "/a/b").is_beneath_or_at(&place(1, "/a")));
        assert!(place(1, "/a").is_beneath_or_at(&place(1, "/")));
        assert!(!place(1, "/ab").is_beneath_or_at(&place(1, "/a")));
        assert!(!place(2, "/a/b").is_beneath_or_at(&place(1, "/a")));
    }

    #[test]
    fn our_own_table_agrees_with_statx() {
        let table = MountTable::own().unwrap();
        for path in ["/", "/proc", "/dev"] {
            let meta = crate::beneath::lstat(&local(path)).unwrap();
            assert_eq!(table.deepest_over(&local(path)).unwrap().id, meta.mount, "{path}");
        }
    }

    #[test]
    fn a_process_that_is_gone_is_known_as_such() {
        assert!(MountTable::of(u32::MAX).unwrap_err().is_vanished());
        assert_eq!(MountTable::of(std::process::id()).unwrap().mounts, MountTable::own().unwrap().mounts);
    }
}

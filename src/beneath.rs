//! Looking at files relative to a held directory, so that no symlink and no mount leads elsewhere.
//!
//! Every open goes through `openat2` (beneath, no symlinks, no magic links, no mount crossing). A regular file is
//! recognised before it is read and is read up to a bound: a FIFO or a huge file can't hold a reader.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags};
use rustix::io::Errno;

use crate::vantage::paths::{FileId, LocalPath};

/// What `statx` says of one name, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    pub id: FileId,
    /// The mount that the object was reached through: a bind mount of the same file system differs here only.
    pub mount: u64,
    pub kind: Kind,
    /// Permission bits with set-id and sticky bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub links: u64,
    pub size: u64,
    /// Allocated bytes.
    pub allocated: u64,
    pub mtime: Stamp,
    pub ctime: Stamp,
    /// Immutable or append-only: neither can be deleted, by root neither.
    pub undeletable_flag: bool,
}

/// Seconds and nanoseconds since the epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Stamp {
    pub seconds: i64,
    pub nanos: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Directory,
    File,
    Symlink,
    Fifo,
    Socket,
    Device,
    Unknown,
}

impl Kind {
    /// For messages: `a directory`, `a FIFO`.
    pub fn described(self) -> &'static str {
        match self {
            Kind::Directory => "a directory",
            Kind::File => "a file",
            Kind::Symlink => "a symlink",
            Kind::Fifo => "a FIFO",
            Kind::Socket => "a socket",
            Kind::Device => "a device node",
            Kind::Unknown => "an object of an unknown kind",
        }
    }
}

/// Why something beneath a directory could not be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("does not exist")]
    Absent,
    #[error("a component is a symlink or is not a directory")]
    NotPlain,
    #[error("another file system is mounted there")]
    MountCrossed,
    #[error("it is {}", .0.described())]
    WrongKind(Kind),
    #[error("it has {size} bytes, more than the {limit} that are read")]
    TooLarge { size: u64, limit: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Refused::Absent,
            Errno::LOOP | Errno::NOTDIR => Refused::NotPlain,
            Errno::XDEV => Refused::MountCrossed,
            other => Refused::Io(other.into()),
        }
    }
}

/// A held directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: LocalPath,
}

const RESOLVE: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

impl Dir {
    /// Opens `path` from the root of the file system, no component may be a symlink; mounts may lie on the way.
    pub fn open(path: &LocalPath) -> Result<Self, Refused> {
        let fd = rustix::fs::openat2(
            CWD,
            path.as_path(),
            OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
            ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
        )?;
        Ok(Self { fd, path: path.clone() })
    }

    /// Opens the directory `relative`, beneath this one and on the same mount.
    pub fn dir(&self, relative: impl AsRef<Path>) -> Result<Self, Refused> {
        self.dir_with(relative.as_ref(), RESOLVE | ResolveFlags::NO_XDEV)
    }

    /// Opens the directory `relative`, beneath this one, perhaps on another mount.
    pub fn dir_across_mounts(&self, relative: impl AsRef<Path>) -> Result<Self, Refused> {
        self.dir_with(relative.as_ref(), RESOLVE)
    }

    fn dir_with(&self, relative: &Path, resolve: ResolveFlags) -> Result<Self, Refused> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat2(&self.fd, relative, flags, Mode::empty(), resolve)?;
        let path = self.path.as_path().join(relative);
        let path = LocalPath::new(path).ok_or(Refused::NotPlain)?;
        Ok(Self { fd, path })
    }

    /// The regular file `relative`, opened for reading on the same mount; nothing else is opened, not even briefly
    /// (a FIFO would wait, a device may act).
    pub fn file(&self, relative: impl AsRef<Path>) -> Result<(File, Meta), Refused> {
        let relative = relative.as_ref();
        let resolve = RESOLVE | ResolveFlags::NO_XDEV;
        let seen = rustix::fs::openat2(
            &self.fd,
            relative,
            OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW,
            Mode::empty(),
            resolve,
        )?;
        let meta = meta_at(&seen, Path::new(""))?;
        if meta.kind != Kind::File {
            return Err(Refused::WrongKind(meta.kind));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = rustix::fs::openat2(&self.fd, relative, flags, Mode::empty(), resolve)?;
        let opened = meta_at(&fd, Path::new(""))?;
        if opened.id != meta.id || opened.kind != Kind::File {
            return Err(Refused::WrongKind(opened.kind));
        }
        Ok((File::from(fd), opened))
    }

    /// All bytes of the regular file `relative`, if they are at most `limit`.
    pub fn read(&self, relative: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, Refused> {
        let (file, meta) = self.file(relative)?;
        if meta.size > limit {
            return Err(Refused::TooLarge { size: meta.size, limit });
        }
        let mut bytes = Vec::with_capacity(meta.size as usize);
        // The file may have grown since: one byte more than the limit tells.
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(Refused::TooLarge { size: bytes.len() as u64, limit });
        }
        Ok(bytes)
    }

    /// What `relative` is; a symlink as its last component is answered for itself, an earlier one is refused.
    pub fn meta(&self, relative: impl AsRef<Path>) -> Result<Meta, Refused> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let seen = rustix::fs::openat2(&self.fd, relative.as_ref(), flags, Mode::empty(), RESOLVE)?;
        meta_at(&seen, Path::new(""))
    }

    /// What this directory is.
    pub fn own_meta(&self) -> Result<Meta, Refused> {
        meta_at(&self.fd, Path::new(""))
    }

    /// Its entries' names, in the order of their bytes, without `.` and `..`.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, Refused> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// When it was made, which nobody can set and which tells it from a later one that got its inode; `None` where the file
    /// system does not say.
    pub fn born(&self) -> Result<Option<Stamp>, Refused> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let s = rustix::fs::statx(&self.fd, "", flags, StatxFlags::BTIME)?;
        let known = StatxFlags::from_bits_retain(s.stx_mask).contains(StatxFlags::BTIME);
        Ok(known.then_some(Stamp { seconds: s.stx_btime.tv_sec, nanos: s.stx_btime.tv_nsec }))
    }

    /// For messages, and for libraries that take a path.
    pub fn path(&self) -> &LocalPath {
        &self.path
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What `name` in the directory `dir` is (an empty name: `dir` itself), links not followed.
pub fn meta_at(dir: impl AsFd, name: &Path) -> Result<Meta, Refused> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    let s = rustix::fs::statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::MNT_ID)?;
    let kind = match FileType::from_raw_mode(s.stx_mode.into()) {
        FileType::Directory => Kind::Directory,
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Symlink,
        FileType::Fifo => Kind::Fifo,
        FileType::Socket => Kind::Socket,
        FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
        FileType::Unknown => Kind::Unknown,
    };
    let stamp = |t: rustix::fs::StatxTimestamp| Stamp { seconds: t.tv_sec, nanos: t.tv_nsec };
    Ok(Meta {
        id: FileId { dev: rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor), ino: s.stx_ino },
        mount: s.stx_mnt_id,
        kind,
        mode: u32::from(s.stx_mode) & 0o7777,
        uid: s.stx_uid,
        gid: s.stx_gid,
        links: s.stx_nlink.into(),
        size: s.stx_size,
        allocated: s.stx_blocks * 512,
        mtime: stamp(s.stx_mtime),
        ctime: stamp(s.stx_ctime),
        undeletable_flag: s.stx_attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
    })
}

/// Whether this kernel has what a safe removal needs: `openat2` (Linux 5.6) and mount ids in `statx` (5.8).
///
/// # Errors
/// What it lacks, for a person.
pub fn supported() -> Result<(), String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::openat2(CWD, "/", flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS);
    let root =
        root.map_err(|errno| format!("openat2 does not work ({errno}); it takes Linux 5.6 or later"))?;
    let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    match rustix::fs::statx(&root, "", AtFlags::EMPTY_PATH, mask) {
        Ok(s) if StatxFlags::from_bits_retain(s.stx_mask).contains(StatxFlags::MNT_ID) => Ok(()),
        Ok(_) => Err("statx tells no mount ids; it takes Linux 5.8 or later".to_owned()),
        Err(errno) => Err(format!("statx does not work: {errno}")),
    }
}

/// What `path` is, resolved from the root with its last component not followed; only for reporting and for proving
/// absence, where every component's links are followed as any program would.
pub fn lstat(path: &LocalPath) -> Result<Meta, Refused> {
    meta_at(CWD, path.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn held(dir: &tempfile::TempDir) -> Dir {
        let path = LocalPath::new(dir.path().canonicalize().unwrap()).unwrap();
        Dir::open(&path).unwrap()
    }

    #[test]
    fn nothing_but_a_plain_bounded_file_is_read() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("f"), "12345").unwrap();
        std::fs::create_dir(tmp.path().join("d")).unwrap();
        symlink("f", tmp.path().join("l")).unwrap();
        symlink("d", tmp.path().join("ld")).unwrap();
        std::fs::write(tmp.path().join("d/g"), "x").unwrap();
        nix::unistd::mkfifo(&tmp.path().join("p"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let dir = held(&tmp);
        assert_eq!(dir.read("f", 5).unwrap(), b"12345");
        assert!(matches!(dir.read("f", 4), Err(Refused::TooLarge { size: 5, limit: 4 })));
        assert!(matches!(dir.read("d", 9), Err(Refused::WrongKind(Kind::Directory))));
        assert!(matches!(dir.read("p", 9), Err(Refused::WrongKind(Kind::Fifo))));
        assert!(matches!(dir.read("l", 9), Err(Refused::WrongKind(Kind::Symlink))));
        assert!(matches!(dir.read("ld/g", 9), Err(Refused::NotPlain)));
        assert!(matches!(dir.read("no", 9), Err(Refused::Absent)));
        assert!(matches!(dir.read("../f", 9), Err(Refused::MountCrossed)), "leaving is refused as EXDEV");
        assert_eq!(dir.meta("l").unwrap().kind, Kind::Symlink);
        assert!(dir.meta("ld/g").is_err());
        assert_eq!(dir.names().unwrap().len(), 5);
    }
}

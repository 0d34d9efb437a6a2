//! The pieces of `/proc` that a scan reads, and directories as a process holds them.
//!
//! Nothing is opened but `/proc` itself: working directories and the like are reached as `O_PATH`, and what lies above
//! them by `..`, which asks no file system server and crosses mounts of whatever namespace.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use bstr::ByteSlice;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, StatxFlags};
use rustix::io::Errno;

use crate::vantage::own_container::parse_namespace;
use crate::vantage::paths::{FileId, escape};

/// Why something of a process was not seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unseen {
    /// It is gone.
    Vanished,
    /// We may not look.
    Denied,
}

impl From<Errno> for Unseen {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::SRCH => Self::Vanished,
            // A broken file system says other things: what it hides is not seen either.
            _ => Self::Denied,
        }
    }
}

/// What is needed of `/proc/<pid>/stat` (proc_pid_stat(5)); the procfs crate refuses a command that is not UTF-8.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat {
    /// Control characters escaped.
    pub command: String,
    /// 0: none in our pid namespace.
    pub parent: u32,
    pub kernel_thread: bool,
    state: u8,
    threads: u32,
}

impl Stat {
    pub fn read(process: impl AsFd) -> Result<Self, Unseen> {
        Self::parse(&read_at(process, "stat")?).ok_or(Unseen::Denied)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        /// `PF_KTHREAD` in the kernel's `include/linux/sched.h`.
        const KERNEL_THREAD: u32 = 0x0020_0000;
        // The command may hold blanks and brackets itself.
        let (start, end) = (bytes.find_byte(b'(')?, bytes.rfind_byte(b')')?);
        let fields: Vec<&[u8]> = bytes.get(end + 1..)?.fields().collect();
        Some(Self {
            command: escape(bytes.get(start + 1..end)?),
            parent: number(fields.get(1)?)?,
            kernel_thread: number(fields.get(6)?)? & KERNEL_THREAD != 0,
            state: *fields.first()?.first()?,
            threads: number(fields.get(17)?)?,
        })
    }

    /// The first thread has ended, but others go on, and hold what they hold.
    pub fn outlived_by_threads(&self) -> bool {
        self.state == b'Z' && self.threads > 1
    }
}

/// A directory as it is reached through one mount, by the mount's id.
pub type Reached = (u64, FileId);

/// What `path` below `dir` is, links followed. No server of a network file system is asked: one that hangs must not
/// hang us.
pub fn reached(dir: impl AsFd, path: &str) -> Result<(Reached, FileType), Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let s = rustix::fs::statx(dir, path, flags, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID)?;
    let id = FileId { dev: rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor), ino: s.stx_ino };
    Ok(((s.stx_mnt_id, id), FileType::from_raw_mode(s.stx_mode.into())))
}

/// Opens a directory of `/proc`.
pub fn open_dir(dir: impl AsFd, path: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(dir, path, flags, Mode::empty())
}

/// All bytes of a file of `/proc`. Their number is not known before: reading goes on until nothing more comes.
pub fn read_at(dir: impl AsFd, path: &str) -> Result<Vec<u8>, Errno> {
    let fd = rustix::fs::openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::with_capacity(4096);
    while rustix::io::read(&fd, rustix::buffer::spare_capacity(&mut bytes))? > 0 {
        bytes.reserve(4096);
    }
    Ok(bytes)
}

/// The entries of a directory whose names are numbers.
pub fn numbers(dir: impl AsFd) -> Result<Vec<u32>, Errno> {
    let mut buffer = Vec::with_capacity(8192);
    let mut entries = RawDir::new(dir, buffer.spare_capacity_mut());
    let mut all = Vec::new();
    while let Some(entry) = entries.next() {
        all.extend(number(entry?.file_name().to_bytes()));
    }
    Ok(all)
}

fn number(text: &[u8]) -> Option<u32> {
    text.to_str().ok()?.parse().ok()
}

/// The inode of a namespace; `None` if it may not be asked.
pub fn namespace(process: impl AsFd, link: &str) -> Option<u64> {
    let target = rustix::fs::readlinkat(process, link, Vec::new()).ok()?;
    parse_namespace(target.to_bytes().as_bstr())
}

/// Directories and all those above them; remembers where it has been.
pub struct Chains {
    root: FileId,
    known: HashMap<Reached, Arc<[FileId]>>,
}

/// Deeper than any path that the kernel lets a process walk in one call.
const DEPTH_LIMIT: usize = 4096;
const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Chains {
    pub fn new() -> Result<Self, Errno> {
        let ((_, root), _) = reached(CWD, "/")?;
        Ok(Self { root, known: HashMap::new() })
    }

    /// The directory that the link `name` leads to and those above it, without our root directory, which is nobody's
    /// checkout; `None` if it leads to no directory.
    pub fn of(&mut self, dir: &OwnedFd, name: &str) -> Result<Option<Arc<[FileId]>>, Unseen> {
        let (at, kind) = reached(dir, name)?;
        if kind != FileType::Directory {
            return Ok(None);
        }
        if let Some(known) = self.known.get(&at) {
            return Ok(Some(known.clone()));
        }
        let handle = rustix::fs::openat(dir, name, PATH_FLAGS, Mode::empty())?;
        self.climb(handle).map(Some)
    }

    /// Climbs from `handle` to the top of its mount namespace, or to where we have been before.
    fn climb(&mut self, mut handle: OwnedFd) -> Result<Arc<[FileId]>, Unseen> {
        let mut new = Vec::new();
        let (mut at, _) = reached(&handle, "")?;
        let mut chain: Arc<[FileId]> = loop {
            if let Some(known) = self.known.get(&at) {
                break known.clone();
            }
            new.push(at);
            let above = rustix::fs::openat(&handle, "..", PATH_FLAGS, Mode::empty())?;
            let (next, _) = reached(&above, "")?;
            if next == at {
                break Arc::default();
            }
            if new.len() > DEPTH_LIMIT {
                return Err(Unseen::Denied);
            }
            (handle, at) = (above, next);
        };
        for at in new.into_iter().rev() {
            if at.1 != self.root {
                chain = std::iter::once(at.1).chain(chain.iter().copied()).collect();
            }
            self.known.insert(at, chain.clone());
        }
        Ok(chain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_command_is_called() {
        let line = |comm: &str, state: char, flags: u32, threads: u32| {
            format!("7 ({comm}) {state} 3 1 1 0 -1 {flags} 0 0 0 0 0 0 0 0 20 0 {threads} 0 5 0 0\n")
                .into_bytes()
        };
        let stat = Stat::parse(&line("a) S (b\x1b", 'S', 0, 1)).unwrap();
        assert_eq!((stat.command.as_str(), stat.parent), ("a) S (b\\u{1b}", 3));
        assert!(!stat.kernel_thread && !stat.outlived_by_threads());
        assert!(Stat::parse(&line("kthreadd", 'S', 0x0020_8040, 1)).unwrap().kernel_thread);
        assert!(!Stat::parse(&line("x", 'Z', 0, 1)).unwrap().outlived_by_threads());
        assert!(Stat::parse(&line("x", 'Z', 0, 2)).unwrap().outlived_by_threads());
        assert_eq!(Stat::parse(b"7 (x S 3"), None);
    }

    #[test]
    fn a_file_longer_than_one_read_is_read_whole() {
        let dir = tempfile::tempdir().unwrap();
        let text: Vec<u8> = (0..20_000u32).map(|n| n as u8).collect();
        std::fs::write(dir.path().join("f"), &text).unwrap();
        let handle = open_dir(CWD, dir.path().to_str().unwrap()).unwrap();
        assert_eq!(read_at(&handle, "f").unwrap(), text);
        for n in 0..2000 {
            std::fs::write(dir.path().join(n.to_string()), "").unwrap();
        }
        let handle = open_dir(CWD, dir.path().to_str().unwrap()).unwrap();
        assert_eq!(numbers(&handle).unwrap().len(), 2000, "f is no number");
    }
}

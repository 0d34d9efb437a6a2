//! One pass over `/proc`: what each process holds, which containers it belongs to, and which mounts it sees.
//!
//! Nothing is opened but `/proc` itself: working directories and the like are reached as `O_PATH`, and what lies above
//! them by `..`, which asks no file system server and crosses mounts of whatever namespace.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;

use bstr::ByteSlice;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, StatxFlags};
use rustix::io::Errno;

use crate::engine::foreign::ForeignNamespace;
use crate::engine::processes::{Access, Asker, Held, HeldPlace, ProcessTable, Seen, View};
use crate::vantage::mountinfo::{MountInfoError, MountTable};
use crate::vantage::own_container::{ContainerId, PidNamespace, parse_namespace};
use crate::vantage::paths::{FileId, LocalPath, escape};

/// Why processes could not be looked at at all.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    #[error("/proc can't be read: {0}")]
    Proc(io::Error),
    #[error("the mounts of process {pid}: {error}")]
    Mounts { pid: u32, error: MountInfoError },
}

impl From<Errno> for ScanError {
    fn from(errno: Errno) -> Self {
        Self::Proc(errno.into())
    }
}

/// Deeper than any path that the kernel lets a process walk in one call.
const DEPTH_LIMIT: usize = 4096;

/// Looks at every process that `/proc` shows. `own_mounts` are this process's own.
///
/// # Errors
/// `/proc` can't be read, or says something that is not understood. A process that may not be looked at is no error.
pub fn scan(own_mounts: &MountTable) -> Result<ProcessTable, ScanError> {
    let mut scanner = Scanner::new()?;
    let mut seen = Vec::new();
    let mut names = rustix::fs::Dir::read_from(&scanner.proc)?;
    while let Some(entry) = names.read() {
        let entry = entry?;
        if let Some(pid) = number(entry.file_name().to_bytes()) {
            seen.extend(scanner.look(pid)?);
        }
    }
    let asker = Asker { pid: std::process::id(), mount_namespace: scanner.own_namespace };
    Ok(ProcessTable::new(view(own_mounts), asker, seen, scanner.foreign))
}

fn view(own_mounts: &MountTable) -> View {
    let proc = LocalPath::new("/proc").and_then(|path| own_mounts.deepest_over(&path));
    let hides = proc.and_then(|m| m.super_option(b"hidepid")).is_some_and(|v| *v != "0" && *v != "off");
    match PidNamespace::own() {
        PidNamespace::Other => View::OtherNamespace,
        PidNamespace::Initial if hides && !rustix::process::geteuid().is_root() => View::OthersHidden,
        PidNamespace::Initial => View::All,
    }
}

/// A directory as it is reached through one mount.
type Reached = (u64, FileId);

struct Scanner {
    proc: OwnedFd,
    root: FileId,
    own_namespace: Option<u64>,
    own_mountinfo: Vec<u8>,
    chains: HashMap<Reached, Rc<[FileId]>>,
    namespaces: HashSet<Namespace>,
    foreign: Vec<ForeignNamespace>,
}

/// What tells apart two views on mounts.
#[derive(PartialEq, Eq, Hash)]
enum Namespace {
    /// By the namespace's inode, and the process's root directory: mounts outside of it are not listed.
    Known(u64, Option<Reached>),
    /// It may not be asked: by a hash of what `mountinfo` says.
    Content(u64),
}

/// Why something of a process was not seen.
enum Unseen {
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

impl Scanner {
    fn new() -> Result<Self, ScanError> {
        let proc = rustix::fs::open("/proc", DIRECTORY, Mode::empty())?;
        let (root, _) = reached(CWD, Path::new("/"))?;
        let own_mountinfo = read_at(&proc, "self/mountinfo")?;
        let own_namespace = namespace(&proc, "self/ns/mnt");
        Ok(Self {
            proc,
            root: root.1,
            own_namespace,
            own_mountinfo,
            chains: HashMap::new(),
            namespaces: HashSet::new(),
            foreign: Vec::new(),
        })
    }

    /// The process `pid`; `None` if it is gone, or is a thread of the kernel.
    fn look(&mut self, pid: u32) -> Result<Option<Seen>, ScanError> {
        let mut seen = Seen {
            pid,
            parent: 0,
            command: "?".into(),
            containers: None,
            mount_namespace: None,
            places: Vec::new(),
            access: Access::Whole,
        };
        match self.fill(&mut seen) {
            Ok(Some(dir)) => self.mounts(&dir, &seen)?,
            Ok(None) | Err(Unseen::Vanished) => return Ok(None),
            Err(Unseen::Denied) => seen.access = Access::Denied,
        }
        Ok(Some(seen))
    }

    /// Its directory in `/proc`; `None` if nothing is to be known of it. What was seen before an error stays seen.
    fn fill(&mut self, seen: &mut Seen) -> Result<Option<OwnedFd>, Unseen> {
        let dir = rustix::fs::openat(&self.proc, seen.pid.to_string(), DIRECTORY, Mode::empty())?;
        let stat = Stat::parse(&read_at(&dir, "stat")?).ok_or(Unseen::Denied)?;
        if stat.kernel_thread || stat.is_gone() {
            return Ok(None);
        }
        seen.parent = stat.parent;
        seen.command = stat.command;
        seen.containers = Some(ContainerId::all_in(&read_at(&dir, "cgroup")?).collect());
        seen.mount_namespace = namespace(&dir, "ns/mnt");
        match self.places(&dir, stat.state, &mut seen.places) {
            Err(Unseen::Denied) => seen.access = Access::Denied,
            other => other?,
        }
        Ok(Some(dir))
    }

    fn places(&mut self, dir: &OwnedFd, state: u8, places: &mut Vec<HeldPlace>) -> Result<(), Unseen> {
        if state != ZOMBIE {
            return self.places_of_task(dir, places);
        }
        // The first thread has ended, others go on and hold what they hold.
        let tasks = rustix::fs::openat(dir, "task", DIRECTORY, Mode::empty())?;
        for name in names(&tasks)? {
            let task = rustix::fs::openat(&tasks, name.as_slice(), DIRECTORY, Mode::empty())?;
            match self.places_of_task(&task, places) {
                Err(Unseen::Denied) => return Err(Unseen::Denied),
                Ok(()) | Err(Unseen::Vanished) => {}
            }
        }
        Ok(())
    }

    fn places_of_task(&mut self, dir: &OwnedFd, places: &mut Vec<HeldPlace>) -> Result<(), Unseen> {
        let mut hold = |what, chain: Option<Rc<[FileId]>>| {
            // Most processes hold only the root directory, which is nobody's checkout.
            places.extend(chain.filter(|chain| !chain.is_empty()).map(|chain| HeldPlace { what, chain }));
        };
        hold(Held::Cwd, self.chain(dir, b"cwd")?);
        hold(Held::Root, self.chain(dir, b"root")?);
        let fds = rustix::fs::openat(dir, "fd", DIRECTORY, Mode::empty())?;
        for name in names(&fds)? {
            match self.chain(&fds, &name) {
                Ok(chain) => hold(Held::OpenDirectory, chain),
                // It was closed meanwhile.
                Err(Unseen::Vanished) => {}
                Err(Unseen::Denied) => return Err(Unseen::Denied),
            }
        }
        Ok(())
    }

    /// The directory that the link `name` leads to and those above it; `None` if it leads to no directory.
    fn chain(&mut self, dir: &OwnedFd, name: &[u8]) -> Result<Option<Rc<[FileId]>>, Unseen> {
        let path = Path::new(name.to_os_str().map_err(|_| Unseen::Vanished)?);
        let (at, kind) = reached(dir, path)?;
        if kind != FileType::Directory {
            return Ok(None);
        }
        if let Some(known) = self.chains.get(&at) {
            return Ok(Some(known.clone()));
        }
        let handle = rustix::fs::openat(dir, path, PATH_FLAGS, Mode::empty())?;
        self.climb(handle).map(Some)
    }

    /// Climbs from `handle` to the top of its mount namespace, or to where we have been before.
    fn climb(&mut self, mut handle: OwnedFd) -> Result<Rc<[FileId]>, Unseen> {
        let mut new = Vec::new();
        let (mut at, _) = reached(&handle, Path::new(""))?;
        let mut chain: Rc<[FileId]> = loop {
            if let Some(known) = self.chains.get(&at) {
                break known.clone();
            }
            new.push(at);
            let above = rustix::fs::openat(&handle, "..", PATH_FLAGS, Mode::empty())?;
            let (next, _) = reached(&above, Path::new(""))?;
            if next == at {
                break Rc::default();
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
            self.chains.insert(at, chain.clone());
        }
        Ok(chain)
    }

    /// Keeps the mounts that the process sees, if it does not see ours, once for each view.
    fn mounts(&mut self, dir: &OwnedFd, seen: &Seen) -> Result<(), ScanError> {
        if seen.mount_namespace.is_some() && seen.mount_namespace == self.own_namespace {
            return Ok(());
        }
        let mut content = None;
        let key = match seen.mount_namespace {
            Some(id) => Namespace::Known(id, reached(dir, Path::new("root")).ok().map(|(at, _)| at)),
            None => {
                // `mountinfo` may be read of processes of which nothing else may.
                let Ok(bytes) = read_at(dir, "mountinfo") else { return Ok(()) };
                if bytes == self.own_mountinfo {
                    return Ok(());
                }
                let mut hasher = DefaultHasher::new();
                bytes.hash(&mut hasher);
                content = Some(bytes);
                Namespace::Content(hasher.finish())
            }
        };
        if !self.namespaces.insert(key) {
            return Ok(());
        }
        // A process that ends now sees no mounts any more.
        let Some(bytes) = content.map_or_else(|| read_at(dir, "mountinfo").ok(), Some) else { return Ok(()) };
        let mounts = MountTable::parse(&bytes).map_err(|error| ScanError::Mounts { pid: seen.pid, error })?;
        self.foreign.push(ForeignNamespace {
            pid: seen.pid,
            command: seen.command.clone(),
            containers: seen.containers.clone().unwrap_or_default(),
            mounts,
        });
        Ok(())
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const PATH_FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const ZOMBIE: u8 = b'Z';

/// What `path` below `dir` is, links followed. No server of a network file system is asked: one that hangs must not
/// hang us.
fn reached(dir: impl AsFd, path: &Path) -> Result<(Reached, FileType), Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    let s = rustix::fs::statx(dir, path, flags, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID)?;
    let id = FileId { dev: rustix::fs::makedev(s.stx_dev_major, s.stx_dev_minor), ino: s.stx_ino };
    Ok(((s.stx_mnt_id, id), FileType::from_raw_mode(s.stx_mode.into())))
}

fn read_at(dir: &OwnedFd, path: &str) -> Result<Vec<u8>, Errno> {
    let fd = rustix::fs::openat(dir, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut bytes = Vec::new();
    match File::from(fd).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}

fn names(dir: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut all = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir)? {
        let entry = entry?;
        if number(entry.file_name().to_bytes()).is_some() {
            all.push(entry.file_name().to_bytes().to_vec());
        }
    }
    Ok(all)
}

fn namespace(dir: &OwnedFd, link: &str) -> Option<u64> {
    let target = rustix::fs::readlinkat(dir, link, Vec::new()).ok()?;
    parse_namespace(target.to_bytes().as_bstr())
}

fn number(text: &[u8]) -> Option<u32> {
    text.to_str().ok()?.parse().ok()
}

/// What is needed of `/proc/<pid>/stat` (proc_pid_stat(5)); the procfs crate refuses a command that is not UTF-8.
#[derive(Debug, Default, PartialEq, Eq)]
struct Stat {
    command: String,
    state: u8,
    parent: u32,
    threads: u32,
    kernel_thread: bool,
}

impl Stat {
    fn parse(bytes: &[u8]) -> Option<Self> {
        /// `PF_KTHREAD` in the kernel's `include/linux/sched.h`.
        const KERNEL_THREAD: u32 = 0x0020_0000;
        // The command may hold blanks and brackets itself.
        let (start, end) = (bytes.find_byte(b'(')?, bytes.rfind_byte(b')')?);
        let fields: Vec<&[u8]> = bytes.get(end + 1..)?.fields().collect();
        Some(Self {
            command: escape(bytes.get(start + 1..end)?),
            state: *fields.first()?.first()?,
            parent: number(fields.get(1)?)?,
            threads: number(fields.get(17)?)?,
            kernel_thread: number(fields.get(6)?)? & KERNEL_THREAD != 0,
        })
    }

    /// Only its exit status is left.
    fn is_gone(&self) -> bool {
        matches!(self.state, ZOMBIE | b'X') && self.threads <= 1
    }
}

#[cfg(test)]
mod tests;

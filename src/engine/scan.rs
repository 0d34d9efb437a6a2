//! One pass over `/proc`: what each process holds, which containers it belongs to, and which mounts it sees.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::fs::CWD;
use rustix::io::Errno;

use crate::engine::foreign::ForeignNamespace;
use crate::engine::proc_fs::{Chains, Reached, Stat, Unseen, namespace, numbers, open_dir, reached, read_at};
use crate::engine::processes::{Access, Asker, Held, HeldPlace, ProcessTable, Seen, View};
use crate::vantage::mountinfo::{MountInfoError, MountTable};
use crate::vantage::own_container::{ContainerId, PidNamespace};
use crate::vantage::paths::{FileId, LocalPath};

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

/// More threads than this gain nothing: the kernel serialises parts of it.
const MOST_WORKERS: usize = 4;

/// Looks at every process that `/proc` shows. `own_mounts` are this process's own.
///
/// # Errors
/// `/proc` can't be read, or says something that is not understood. A process that may not be looked at is no error.
pub fn scan(own_mounts: &MountTable) -> Result<ProcessTable, ScanError> {
    let shared = Shared::new()?;
    let pids = numbers(open_dir(&shared.proc, ".")?)?;
    let workers = thread::available_parallelism().map_or(1, NonZero::get).min(MOST_WORKERS);
    let share = pids.len().div_ceil(workers).max(1);
    let seen = thread::scope(|scope| {
        let started: Vec<_> =
            pids.chunks(share).map(|pids| scope.spawn(|| look_unseen(&shared, pids))).collect();
        let joined =
            started.into_iter().map(|w| w.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<_>, _>>()
    })?;
    let pid = std::process::id();
    let asker = Asker { pid, line: own_line(&shared.proc, pid), mount_namespace: shared.own_namespace };
    let foreign = shared.foreign.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(ProcessTable::new(view(own_mounts), asker, seen.into_iter().flatten().collect(), foreign.found))
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

/// `own` and its parents, as far as they can be read.
fn own_line(proc: &OwnedFd, own: u32) -> Vec<u32> {
    let mut line = vec![own];
    loop {
        let last = line.last().map_or(own, |pid| *pid);
        let parent =
            open_dir(proc, &last.to_string()).map_err(Unseen::from).and_then(Stat::read).map(|s| s.parent);
        match parent {
            // A pid that was reused while we looked could make a loop.
            Ok(parent) if parent != 0 && !line.contains(&parent) => line.push(parent),
            Ok(_) | Err(_) => return line,
        }
    }
}

/// What all workers need to know of us, and what they find together.
struct Shared {
    proc: OwnedFd,
    /// This program's file.
    own_program: Option<FileId>,
    own_namespace: Option<u64>,
    own_mountinfo: Vec<u8>,
    foreign: Mutex<Foreign>,
}

#[derive(Default)]
struct Foreign {
    views: HashSet<MountView>,
    found: Vec<ForeignNamespace>,
}

/// What tells apart two views on mounts.
#[derive(PartialEq, Eq, Hash)]
enum MountView {
    /// By the namespace's inode, and the process's root directory: mounts outside of it are not listed.
    Known(u64, Option<Reached>),
    /// It may not be asked: by a hash of what `mountinfo` says.
    Content(u64),
}

impl Shared {
    fn new() -> Result<Self, ScanError> {
        let proc = open_dir(CWD, "/proc")?;
        let own_mountinfo = read_at(&proc, "self/mountinfo")?;
        let own_namespace = namespace(&proc, "self/ns/mnt");
        let own_program = program(&proc, "self");
        Ok(Self { proc, own_program, own_namespace, own_mountinfo, foreign: Mutex::default() })
    }
}

/// Looks at `pids` with handles that only this thread has: `/proc` lists those that the threads of a process share, and
/// another run would take what is opened here, to see where it lies, for a use of it.
fn look_unseen(shared: &Shared, pids: &[u32]) -> Result<Vec<Seen>, ScanError> {
    // Where that is refused, another run may skip something once.
    let _shared_with_others = nix::sched::unshare(nix::sched::CloneFlags::CLONE_FILES);
    Worker::new(shared)?.look_at(pids)
}

/// The file that a process runs; `None` if it may not be asked.
fn program(proc: &OwnedFd, process: &str) -> Option<FileId> {
    reached(proc, &format!("{process}/exe")).ok().map(|((_, id), _)| id)
}

struct Worker<'a> {
    shared: &'a Shared,
    chains: Chains,
}

impl<'a> Worker<'a> {
    fn new(shared: &'a Shared) -> Result<Self, ScanError> {
        Ok(Self { shared, chains: Chains::new()? })
    }

    fn look_at(&mut self, pids: &[u32]) -> Result<Vec<Seen>, ScanError> {
        pids.iter().filter_map(|pid| self.look(*pid).transpose()).collect()
    }

    /// The process `pid`; `None` if it is gone, or is a thread of the kernel that can't be looked into.
    fn look(&mut self, pid: u32) -> Result<Option<Seen>, ScanError> {
        let mut seen = Seen {
            pid,
            command: String::new(),
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
        let dir = open_dir(&self.shared.proc, &seen.pid.to_string())?;
        seen.mount_namespace = namespace(&dir, "ns/mnt");
        seen.containers = Some(ContainerId::all_in(&read_at(&dir, "cgroup")?).collect());
        let mut looked = self.places(&dir, &mut seen.places);
        self.forget_lookers(seen);
        let is_ordinary = looked.is_ok() && seen.places.is_empty() && self.sees_our_mounts(seen);
        if is_ordinary {
            // It holds nothing: its name is not needed, and costs as much as all the rest.
            return Ok(Some(dir));
        }
        let stat = Stat::read(&dir)?;
        if stat.kernel_thread {
            return Ok(None);
        }
        if stat.outlived_by_threads() {
            looked = self.places_of_threads(&dir, &mut seen.places);
        }
        seen.command = stat.command;
        match looked {
            Err(Unseen::Denied) => seen.access = Access::Denied,
            other => other?,
        }
        Ok(Some(dir))
    }

    /// Another run of this program opens directories to look at them: that is no use of them.
    fn forget_lookers(&self, seen: &mut Seen) {
        let opened = |place: &HeldPlace| matches!(place.what, Held::OpenDirectory);
        if seen.pid != std::process::id()
            && seen.places.iter().any(opened)
            && self.shared.own_program.is_some()
            && program(&self.shared.proc, &seen.pid.to_string()) == self.shared.own_program
        {
            seen.places.retain(|place| !opened(place));
        }
    }

    fn sees_our_mounts(&self, seen: &Seen) -> bool {
        seen.mount_namespace.is_some() && seen.mount_namespace == self.shared.own_namespace
    }

    fn places(&mut self, dir: &OwnedFd, places: &mut Vec<HeldPlace>) -> Result<(), Unseen> {
        let mut hold = |what, chain: Option<Arc<[FileId]>>| {
            places.extend(chain.filter(|chain| !chain.is_empty()).map(|chain| HeldPlace { what, chain }));
        };
        hold(Held::Cwd, self.chains.of(dir, "cwd")?);
        hold(Held::Root, self.chains.of(dir, "root")?);
        let fds = open_dir(dir, "fd")?;
        for fd in numbers(&fds)? {
            match self.chains.of(&fds, &fd.to_string()) {
                Ok(chain) => hold(Held::OpenDirectory, chain),
                // It was closed meanwhile.
                Err(Unseen::Vanished) => {}
                Err(Unseen::Denied) => return Err(Unseen::Denied),
            }
        }
        Ok(())
    }

    fn places_of_threads(&mut self, dir: &OwnedFd, places: &mut Vec<HeldPlace>) -> Result<(), Unseen> {
        let tasks = open_dir(dir, "task")?;
        for task in numbers(&tasks)? {
            let looked = open_dir(&tasks, &task.to_string()).map_err(Unseen::from);
            match looked.and_then(|task| self.places(&task, places)) {
                Err(Unseen::Denied) => return Err(Unseen::Denied),
                Ok(()) | Err(Unseen::Vanished) => {}
            }
        }
        Ok(())
    }

    /// Keeps the mounts that the process sees, if it does not see ours, once for each view.
    fn mounts(&self, dir: &OwnedFd, seen: &Seen) -> Result<(), ScanError> {
        if self.sees_our_mounts(seen) {
            return Ok(());
        }
        let root = || reached(dir, "root").ok().map(|(at, _)| at);
        let known = seen.mount_namespace.map(|id| MountView::Known(id, root()));
        if let Some(view) = known
            && !self.is_new(view)
        {
            return Ok(());
        }
        // It may be read of processes of which nothing else may. One that ends now sees no mounts any more.
        let Ok(bytes) = read_at(dir, "mountinfo") else { return Ok(()) };
        if seen.mount_namespace.is_none() {
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            if bytes == self.shared.own_mountinfo || !self.is_new(MountView::Content(hasher.finish())) {
                return Ok(());
            }
        }
        let mounts = MountTable::parse(&bytes).map_err(|error| ScanError::Mounts { pid: seen.pid, error })?;
        self.foreign().found.push(ForeignNamespace {
            id: seen.mount_namespace,
            pid: seen.pid,
            command: seen.command.clone(),
            containers: seen.containers.clone().unwrap_or_default(),
            mounts,
        });
        Ok(())
    }

    fn is_new(&self, view: MountView) -> bool {
        self.foreign().views.insert(view)
    }

    fn foreign(&self) -> std::sync::MutexGuard<'_, Foreign> {
        self.shared.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

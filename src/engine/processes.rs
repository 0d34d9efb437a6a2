//! Processes and what they hold: who works in a checkout, in whatever mount namespace.
//!
//! Directories are compared by device and inode, and so are all directories above them, so that a process deep inside a
//! checkout is found by the checkout's own identity, whatever its namespace calls it. [`scan`](crate::engine::scan) reads
//! `/proc`; what is here is only data.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::engine::foreign::ForeignNamespace;
use crate::vantage::mountinfo::Mount;
use crate::vantage::own_container::ContainerId;
use crate::vantage::paths::FileId;

/// A process as the scan found it.
#[derive(Clone, Debug)]
pub struct Seen {
    pub pid: u32,
    /// The kernel's short name for it, control characters escaped; empty if it holds nothing and sees our mounts, so that
    /// nobody asks. Arguments are not read: they may carry secrets.
    pub command: String,
    /// The containers that its cgroup names; `None`: its cgroup could not be read.
    pub containers: Option<Vec<ContainerId>>,
    /// The inode of its mount namespace; `None`: it may not be asked.
    pub mount_namespace: Option<u64>,
    pub places: Vec<HeldPlace>,
    pub access: Access,
}

/// One directory that a process holds.
#[derive(Clone, Debug)]
pub struct HeldPlace {
    pub what: Held,
    /// The directory and all those above it, without our root directory.
    pub chain: Arc<[FileId]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Held {
    Cwd,
    Root,
    OpenDirectory,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cwd => "its working directory is",
            Self::Root => "its root directory is",
            Self::OpenDirectory => "it has a directory open",
        })
    }
}

/// Could all that a process holds be seen?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Whole,
    /// It is another user's, or protected.
    Denied,
}

/// Whose process it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// We, or one of our parents.
    Own,
    Other,
}

/// A process that holds a directory at or inside some place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub pid: u32,
    pub command: String,
    pub what: Held,
    pub relation: Relation,
}

/// Which processes `/proc` shows us at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    All,
    /// We are in a pid namespace that is not the initial one.
    OtherNamespace,
    /// `/proc` is mounted so that other users' processes are hidden.
    OthersHidden,
}

/// Everything that one scan found.
#[derive(Clone, Debug)]
pub struct ProcessTable {
    pub view: View,
    processes: Vec<Process>,
    by_pid: HashMap<u32, usize>,
    by_container: HashMap<ContainerId, Vec<usize>>,
    by_mount_namespace: HashMap<u64, Vec<usize>>,
    holders: HashMap<FileId, Vec<Holder>>,
    foreign: Vec<ForeignNamespace>,
    own_mount_namespace: Option<u64>,
}

/// What is known of a process besides the places that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub command: String,
    pub containers: Option<Vec<ContainerId>>,
    pub mount_namespace: Option<u64>,
    pub access: Access,
}

/// Who is asking: needed to tell our own processes.
#[derive(Clone, Debug)]
pub struct Asker {
    pub pid: u32,
    /// Our pid and those of our parents.
    pub line: Vec<u32>,
    pub mount_namespace: Option<u64>,
}

impl ProcessTable {
    /// The table of what a scan by `asker` has seen.
    pub fn new(view: View, asker: Asker, seen: Vec<Seen>, foreign: Vec<ForeignNamespace>) -> Self {
        let mut table = Self {
            view,
            processes: Vec::with_capacity(seen.len()),
            by_pid: HashMap::with_capacity(seen.len()),
            by_container: HashMap::new(),
            by_mount_namespace: HashMap::new(),
            holders: HashMap::new(),
            foreign,
            own_mount_namespace: asker.mount_namespace,
        };
        for process in seen {
            let relation = if asker.line.contains(&process.pid) { Relation::Own } else { Relation::Other };
            // The directories that we hold open ourselves are those that we look at.
            let ourself = process.pid == asker.pid;
            table.add_places(&process, relation, |what| !(ourself && what == Held::OpenDirectory));
            table.add(process);
        }
        table
    }

    fn add_places(&mut self, process: &Seen, relation: Relation, counts: impl Fn(Held) -> bool) {
        for place in process.places.iter().filter(|place| counts(place.what)) {
            let holder =
                Holder { pid: process.pid, command: process.command.clone(), what: place.what, relation };
            for id in place.chain.iter() {
                let holders = self.holders.entry(*id).or_default();
                // A process is added at once, so that its own entries are the last ones.
                let known =
                    holders.iter().rev().take_while(|h| h.pid == holder.pid).any(|h| h.what == holder.what);
                if !known {
                    holders.push(holder.clone());
                }
            }
        }
    }

    fn add(&mut self, process: Seen) {
        let index = self.processes.len();
        self.by_pid.insert(process.pid, index);
        for id in process.containers.iter().flatten() {
            self.by_container.entry(id.clone()).or_default().push(index);
        }
        if let Some(namespace) = process.mount_namespace {
            self.by_mount_namespace.entry(namespace).or_default().push(index);
        }
        let Seen { pid, command, containers, mount_namespace, access, .. } = process;
        self.processes.push(Process { pid, command, containers, mount_namespace, access });
    }

    /// Processes whose working directory, root, or an open directory is the directory `id` or lies inside it.
    pub fn inside(&self, id: FileId) -> &[Holder] {
        self.holders.get(&id).map_or(&[], Vec::as_slice)
    }

    pub fn by_pid(&self, pid: u32) -> Option<&Process> {
        self.by_pid.get(&pid).map(|i| &self.processes[*i])
    }

    /// Other mount namespaces, each once.
    pub fn foreign(&self) -> &[ForeignNamespace] {
        &self.foreign
    }

    /// Processes that the scan may not look into.
    pub fn unreadable(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().filter(|process| process.access == Access::Denied)
    }

    /// A process of the containers of `namespace`, or in it, that the scan may not look into.
    pub fn denied_in(&self, namespace: &ForeignNamespace) -> Option<&Process> {
        let of_container =
            |p: &Process| p.containers.iter().flatten().any(|id| namespace.containers.contains(id));
        let in_it = |p: &Process| p.mount_namespace.is_some() && p.mount_namespace == namespace.id;
        self.unreadable().find(|p| of_container(p) || in_it(p))
    }

    /// All mounts that the process `pid` sees, if it does not see ours.
    pub fn foreign_mounts_of(&self, pid: u32) -> impl Iterator<Item = &Mount> {
        let namespace = self.by_pid(pid).and_then(|process| process.mount_namespace);
        let views = self.foreign.iter().filter(move |view| namespace.is_some() && view.id == namespace);
        views.flat_map(|view| view.mounts.iter())
    }

    /// The processes of the container `id`, whose first is `init`: those whose cgroup names it, and those that share
    /// its mount namespace.
    ///
    /// # Errors
    /// Not all of them are known, or can be looked into.
    pub fn of_container(&self, id: &ContainerId, init: u32) -> Result<Vec<&Process>, NotLookedInto> {
        match self.view {
            View::All => {}
            View::OtherNamespace => return Err(NotLookedInto::OtherPidNamespace),
            View::OthersHidden => return Err(NotLookedInto::Hidden),
        }
        let first = self.by_pid(init).ok_or(NotLookedInto::NoInit { pid: init })?;
        if !first.containers.iter().flatten().any(|c| c == id) {
            return Err(NotLookedInto::InitElsewhere { pid: init });
        }
        if let Some(unknown) = self.processes.iter().find(|p| p.containers.is_none()) {
            return Err(NotLookedInto::NoCgroup { pid: unknown.pid });
        }
        let shared = first.mount_namespace.filter(|n| Some(*n) != self.own_mount_namespace);
        let by_namespace = shared.and_then(|n| self.by_mount_namespace.get(&n));
        let indices = self.by_container.get(id).into_iter().chain(by_namespace).flatten();
        let all: Vec<_> = indices.map(|i| &self.processes[*i]).collect();
        match all.iter().find(|p| p.access == Access::Denied) {
            Some(denied) => Err(NotLookedInto::Denied { pid: denied.pid, command: denied.command.clone() }),
            None => Ok(all),
        }
    }
}

/// Why the processes of a container could not all be looked into.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotLookedInto {
    #[error("treesweep runs in a pid namespace of its own")]
    OtherPidNamespace,
    #[error("/proc hides other users' processes")]
    Hidden,
    #[error("its init process {pid} is not to be found")]
    NoInit { pid: u32 },
    #[error("its init process {pid} is not seen to belong to it")]
    InitElsewhere { pid: u32 },
    /// As under gVisor and Kata, where what runs in the container is no process of the host.
    #[error("its init process {pid} is not seen to have its mounts")]
    InitWithoutMounts { pid: u32 },
    #[error("the cgroup of process {pid} can't be read")]
    NoCgroup { pid: u32 },
    #[error("its process {pid} ({command}) may not be looked into")]
    Denied { pid: u32, command: String },
    #[error("the engine does not say whether it runs")]
    StateUnknown,
    #[error("its init process is not known: {0}")]
    InitUnknown(String),
    #[error("its working directory is not known")]
    WorkingDirUnknown,
    #[error("its working directory {0} can't be placed on this host")]
    WorkingDirUnplaceable(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

    fn seen(pid: u32, places: &[(Held, &[u64])]) -> Seen {
        let chain = |inodes: &[u64]| inodes.iter().map(|ino| FileId { dev: 1, ino: *ino }).collect();
        Seen {
            pid,
            command: format!("p{pid}"),
            containers: Some(Vec::new()),
            mount_namespace: Some(1),
            places: places
                .iter()
                .map(|(what, inodes)| HeldPlace { what: *what, chain: chain(inodes) })
                .collect(),
            access: Access::Whole,
        }
    }

    fn table(view: View, seen: Vec<Seen>) -> ProcessTable {
        ProcessTable::new(
            view,
            Asker { pid: 10, line: vec![10, 5, 1], mount_namespace: Some(1) },
            seen,
            Vec::new(),
        )
    }

    fn inside(table: &ProcessTable, ino: u64) -> Vec<(u32, Held, Relation)> {
        table.inside(FileId { dev: 1, ino }).iter().map(|h| (h.pid, h.what, h.relation)).collect()
    }

    #[test]
    fn a_holder_is_found_at_every_directory_above_it() {
        let table = table(
            View::All,
            vec![
                seen(1, &[]),
                seen(5, &[(Held::Cwd, &[3, 2])]),
                seen(10, &[(Held::Cwd, &[2]), (Held::OpenDirectory, &[3, 2])]),
                seen(11, &[(Held::OpenDirectory, &[4, 3, 2]), (Held::OpenDirectory, &[3, 2])]),
            ],
        );
        let (own, other) = (Relation::Own, Relation::Other);
        assert_eq!(inside(&table, 4), [(11, Held::OpenDirectory, other)]);
        assert_eq!(inside(&table, 3), [(5, Held::Cwd, own), (11, Held::OpenDirectory, other)]);
        assert_eq!(inside(&table, 2).len(), 3, "what we hold open ourselves is not a holder");
        assert_eq!(inside(&table, 9), []);
    }

    fn in_container(pid: u32) -> Seen {
        let containers = Some(vec![ContainerId::new(ID)]);
        Seen { containers, mount_namespace: Some(7), ..seen(pid, &[]) }
    }

    #[test]
    fn a_container_is_looked_into_only_if_all_of_it_is_seen() {
        let id = ContainerId::new(ID);
        let pids = |seen| table(View::All, seen).of_container(&id, 20).map(|all| all.len());
        let stray = Seen { containers: Some(Vec::new()), ..in_container(22) };
        assert_eq!(
            pids(vec![in_container(20), in_container(21), seen(30, &[])]),
            Ok(4),
            "two, each known twice"
        );
        assert_eq!(pids(vec![in_container(20), stray.clone()]), Ok(3), "one by its mount namespace");
        let denied = Seen { access: Access::Denied, ..in_container(21) };
        let refused = Err(NotLookedInto::Denied { pid: 21, command: "p21".into() });
        assert_eq!(pids(vec![in_container(20), denied]), refused);
        let denied = Seen { access: Access::Denied, ..stray };
        assert!(pids(vec![in_container(20), denied]).is_err());
        assert_eq!(pids(vec![in_container(21)]), Err(NotLookedInto::NoInit { pid: 20 }));
        assert_eq!(pids(vec![seen(20, &[])]), Err(NotLookedInto::InitElsewhere { pid: 20 }));
        let unknown = Seen { containers: None, ..seen(30, &[]) };
        assert_eq!(pids(vec![in_container(20), unknown]), Err(NotLookedInto::NoCgroup { pid: 30 }));
        for (view, why) in [
            (View::OtherNamespace, NotLookedInto::OtherPidNamespace),
            (View::OthersHidden, NotLookedInto::Hidden),
        ] {
            assert_eq!(table(view, vec![in_container(20)]).of_container(&id, 20).err(), Some(why));
        }
    }
}

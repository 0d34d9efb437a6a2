//! Mounts of other mount namespaces: a mount that exists only there can't be seen by a rename here, and is detached
//! there when its mount point is removed here.
//!
//! Paths of another namespace mean nothing here. What is compared is the place in the file system: the mount point's, by
//! the mount that it lies on, and the source's.

use std::fmt;

use crate::vantage::mountinfo::{FsPlace, Mount, MountTable};
use crate::vantage::own_container::ContainerId;
use crate::vantage::paths::escape;

/// One mount namespace that is not ours.
#[derive(Clone, Debug)]
pub struct ForeignNamespace {
    /// Its inode; `None`: it may not be asked.
    pub id: Option<u64>,
    /// A process in it.
    pub pid: u32,
    pub command: String,
    /// The containers that the process's cgroup names.
    pub containers: Vec<ContainerId>,
    pub mounts: MountTable,
}

/// A mount in another namespace.
#[derive(Clone, Copy, Debug)]
pub struct ForeignMount<'a> {
    pub namespace: &'a ForeignNamespace,
    pub mount: &'a Mount,
}

impl fmt::Display for ForeignMount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForeignNamespace { pid, command, .. } = self.namespace;
        let Mount { mount_point, fs_type, .. } = self.mount;
        write!(
            f,
            "{} ({}) in the mount namespace of process {pid} ({command})",
            escape(mount_point),
            escape(fs_type)
        )
    }
}

/// Mounts of `namespaces` whose mount point is the directory at `checkout` or lies inside it.
pub fn mounts_beneath<'a>(namespaces: &'a [ForeignNamespace], checkout: &FsPlace) -> Vec<ForeignMount<'a>> {
    let beneath = |m: &ForeignMount<'_>| {
        let place = m.namespace.mounts.place_of_mount_point(m.mount);
        place.is_some_and(|place| place.is_beneath_or_at(checkout))
    };
    each(namespaces).filter(beneath).collect()
}

/// Mounts of `namespaces` that show the directory at `checkout`, or something inside it. A mount that `own` has as well,
/// at the same path, is not counted: most namespaces begin as a copy of ours.
pub fn mounted_from<'a>(
    namespaces: &'a [ForeignNamespace],
    checkout: &FsPlace,
    own: &MountTable,
) -> Vec<ForeignMount<'a>> {
    let shows =
        |m: &ForeignMount<'_>| m.mount.source_place().is_beneath_or_at(checkout) && !is_copy(m.mount, own);
    each(namespaces).filter(shows).collect()
}

/// Mounts of the namespaces of containers that show a directory above the one at `checkout`. A mount that `own` has as
/// well does not count, nor does a namespace that is no container's.
pub fn mounted_above<'a>(
    namespaces: &'a [ForeignNamespace],
    checkout: &FsPlace,
    own: &MountTable,
) -> Vec<ForeignMount<'a>> {
    let above = |m: &ForeignMount<'_>| {
        let source = m.mount.source_place();
        checkout.is_beneath_or_at(&source) && source != *checkout && !is_copy(m.mount, own)
    };
    each(namespaces).filter(|m| !m.namespace.containers.is_empty()).filter(above).collect()
}

fn is_copy(mount: &Mount, own: &MountTable) -> bool {
    own.iter().any(|o| o.device == mount.device && o.root == mount.root && o.mount_point == mount.mount_point)
}

fn each(namespaces: &[ForeignNamespace]) -> impl Iterator<Item = ForeignMount<'_>> {
    namespaces
        .iter()
        .flat_map(|namespace| namespace.mounts.iter().map(move |mount| ForeignMount { namespace, mount }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vantage::paths::LocalPath;

    fn table(text: &str) -> MountTable {
        MountTable::parse(text.as_bytes()).unwrap()
    }

    const OWN: &str = "1 0 8:1 / / rw - ext4 d rw\n2 1 8:2 /home /home rw - ext4 d rw\n";

    fn namespaces() -> Vec<ForeignNamespace> {
        // A container: the clone at /w, a volume inside a checkout of it, and a checkout of its own at /x.
        let mounts = table(
            "10 0 0:50 / / rw - overlay o rw\n\
             11 10 8:2 /home/u/app /w rw - ext4 d rw\n\
             12 11 8:3 / /w/.worktrees/a/data rw - ext4 v rw\n\
             13 10 8:2 /home/u/app/.worktrees/b/sub /x rw - ext4 d rw\n\
             14 10 8:2 /home/u/app/.worktrees/bb /y rw - ext4 d rw\n",
        );
        let copy = table(&format!("{OWN}3 2 0:9 / /home/u/app/.worktrees/c rw - tmpfs t rw\n"));
        [mounts, copy]
            .into_iter()
            .map(|mounts| ForeignNamespace {
                id: None,
                pid: 9,
                command: "x".into(),
                containers: Vec::new(),
                mounts,
            })
            .collect()
    }

    fn place(path: &str) -> FsPlace {
        table(OWN).fs_place(&LocalPath::new(path).unwrap()).unwrap()
    }

    #[test]
    fn mounts_are_found_by_their_place_in_the_file_system() {
        let all = namespaces();
        let beneath = |path| -> Vec<u64> {
            let place = place(path);
            mounts_beneath(&all, &place).iter().map(|m| m.mount.id).collect()
        };
        assert_eq!(beneath("/home/u/app/.worktrees/a"), [12]);
        assert_eq!(beneath("/home/u/app/.worktrees/a/data"), [12]);
        assert_eq!(beneath("/home/u/app/.worktrees/c"), [3]);
        assert_eq!(beneath("/home/u/app/.worktrees/b"), [0; 0]);
        assert_eq!(beneath("/w/.worktrees/a"), [0; 0], "a path of theirs is none of ours");
    }

    #[test]
    fn sources_are_found_by_their_place_in_the_file_system() {
        let (all, own) = (namespaces(), table(OWN));
        let from = |path| -> Vec<u64> {
            let place = place(path);
            mounted_from(&all, &place, &own).iter().map(|m| m.mount.id).collect()
        };
        assert_eq!(from("/home/u/app/.worktrees/b"), [13]);
        assert_eq!(from("/home/u/app/.worktrees/a"), [0; 0]);
        assert_eq!(from("/home/u/app"), [11, 13, 14]);
        assert_eq!(from("/home"), [11, 13, 14], "the copy of our own mount does not count");
    }

    #[test]
    fn what_a_container_sees_from_above_is_found() {
        let (mut all, own) = (namespaces(), table(OWN));
        let above = |all: &[ForeignNamespace], path| -> Vec<u64> {
            let place = place(path);
            mounted_above(all, &place, &own).iter().map(|m| m.mount.id).collect()
        };
        assert_eq!(above(&all, "/home/u/app/.worktrees/a"), [0; 0], "they are no containers'");
        all.iter_mut().for_each(|n| n.containers = vec![ContainerId::new("c")]);
        assert_eq!(above(&all, "/home/u/app/.worktrees/a"), [11]);
        assert_eq!(above(&all, "/home/u/app/.worktrees/b/sub/deep"), [11, 13]);
        assert_eq!(above(&all, "/home/u/app"), [0; 0], "it is the directory itself");
        assert_eq!(above(&all, "/home/u/other"), [0; 0], "the copy of our own mount does not count");
    }
}

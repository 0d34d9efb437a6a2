//! Whether this process may delete what it sees, asked before anything is touched.
//!
//! Deleting a name needs write and search permission on its directory. Directories of our own may be read-only: their
//! owner can change that. A sticky directory lets only its owner and the file's owner delete (unlink(2), `EPERM`).

use std::os::fd::AsFd;

use rustix::fs::{Access, AtFlags, StatVfsMountFlags};
use rustix::thread::CapabilitySet;

use crate::beneath::{Dir, Meta, Refused};
use crate::judge::tree_facts::UndeletableReason;

/// What this process may do with files of others.
#[derive(Clone, Copy, Debug)]
pub struct Powers {
    euid: u32,
    /// CAP_DAC_OVERRIDE: permission bits don't count.
    overrides_modes: bool,
    /// CAP_FOWNER: sticky directories don't count.
    overrides_sticky: bool,
    /// The uid that stands for those that this user namespace does not map; capabilities don't reach such files
    /// (user_namespaces(7)).
    unmapped: Option<u32>,
}

impl Powers {
    /// Those of the calling thread. What can't be read counts as not granted.
    pub fn of_this_process() -> Self {
        let effective = match rustix::thread::capabilities(None) {
            Ok(sets) => sets.effective,
            Err(_) => CapabilitySet::empty(),
        };
        let all_mapped = std::fs::read_to_string("/proc/self/uid_map")
            .is_ok_and(|map| map.split_ascii_whitespace().eq(["0", "0", "4294967295"]));
        let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid")
            .ok()
            .and_then(|uid| uid.trim().parse().ok())
            .unwrap_or(65534);
        Self {
            euid: rustix::process::geteuid().as_raw(),
            overrides_modes: effective.contains(CapabilitySet::DAC_OVERRIDE),
            overrides_sticky: effective.contains(CapabilitySet::FOWNER),
            unmapped: (!all_mapped).then_some(overflow),
        }
    }

    fn reach(&self, meta: &Meta) -> bool {
        self.unmapped != Some(meta.uid)
    }

    /// Why names in the directory `dir`, seen as `meta`, can't be deleted; for the directory as a whole.
    pub(super) fn hold_of_directory(
        &self,
        dir: impl AsFd,
        meta: &Meta,
    ) -> Result<Option<UndeletableReason>, Refused> {
        if meta.uid == self.euid || (self.overrides_modes && self.reach(meta)) {
            return Ok(None);
        }
        let wanted = Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(dir, ".", wanted, AtFlags::EACCESS) {
            Ok(()) => Ok(None),
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => {
                Ok(Some(UndeletableReason::Owner(meta.uid)))
            }
            Err(other) => Err(other.into()),
        }
    }

    /// Why `child` in particular, in a directory seen as `dir`, can't be deleted.
    pub(super) fn hold_of_child(&self, dir: &Meta, child: &Meta) -> Option<UndeletableReason> {
        const STICKY: u32 = 0o1000;
        let ours = child.uid == self.euid || dir.uid == self.euid;
        if child.undeletable_flag {
            return Some(UndeletableReason::Flag);
        }
        let held = dir.mode & STICKY != 0 && !ours && !(self.overrides_sticky && self.reach(child));
        held.then_some(UndeletableReason::Sticky(child.uid))
    }
}

/// Why the file system of `dir` takes no change at all.
pub(super) fn hold_of_mount(dir: &Dir) -> Result<Option<UndeletableReason>, Refused> {
    let flags = rustix::fs::fstatvfs(dir)?.f_flag;
    Ok(flags.contains(StatVfsMountFlags::RDONLY).then_some(UndeletableReason::ReadOnlyFileSystem))
}

/// Why the checkout seen as `checkout` can't be renamed or deleted in its directory `parent`; the walk answers for what
/// is in it. An error means that it can't be known.
pub fn hold_of_parent(
    parent: &Dir,
    checkout: &Meta,
    powers: &Powers,
) -> Result<Option<UndeletableReason>, Refused> {
    if let Some(held) = hold_of_mount(parent)? {
        return Ok(Some(held));
    }
    let meta = parent.own_meta()?;
    if meta.undeletable_flag || checkout.undeletable_flag {
        return Ok(Some(UndeletableReason::Flag));
    }
    if let Some(held) = powers.hold_of_directory(parent, &meta)? {
        return Ok(Some(held));
    }
    Ok(powers.hold_of_child(&meta, checkout))
}

//! What the kernel has to have before anything may be deleted.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

/// What is missing; exit code 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    #[error("this kernel, or the sandbox around this process, has no openat2 (Linux 5.6)")]
    Openat2,
    #[error("this kernel does not tell mounts apart (statx with mount ids, Linux 5.8)")]
    MountIds,
}

/// Whether it has what the sweep stands on. Without mount ids every mount would look like the one around it.
pub fn check() -> Result<(), Lacking> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    // Old sandboxes answer `EPERM` to a call that they do not know.
    if let Err(Errno::NOSYS | Errno::PERM) = rustix::fs::openat2(CWD, ".", flags, Mode::empty(), resolve) {
        return Err(Lacking::Openat2);
    }
    match rustix::fs::statx(CWD, "/", AtFlags::empty(), StatxFlags::MNT_ID) {
        Ok(seen) if StatxFlags::from_bits_retain(seen.stx_mask).contains(StatxFlags::MNT_ID) => Ok(()),
        Ok(_) | Err(_) => Err(Lacking::MountIds),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_kernel_has_it() {
        assert_eq!(super::check(), Ok(()));
    }
}

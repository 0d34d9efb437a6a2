//! Every system call with which the sweep changes something, each relative to a held directory and to one name in it.
//!
//! They stand together so that a test can stop the process, or let a call fail, before each of them in turn: what has
//! to converge after a kill is then the whole list of these calls and not a selection (see `faults`).

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

/// How a name within a directory is resolved: beneath it, through no link, on its own mount.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// Makes the directory `name`.
pub fn mkdir(dir: impl AsFd, name: &[u8], mode: u32) -> Result<(), Errno> {
    gate("mkdir")?;
    rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(mode))
}

/// Makes the file `name`, which must not be there yet, and opens it for reading and writing.
pub fn create(dir: impl AsFd, name: &[u8], mode: u32) -> Result<File, Errno> {
    gate("create")?;
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(dir, name, flags, Mode::from_raw_mode(mode), RESOLVE).map(File::from)
}

/// Writes all of `bytes`.
pub fn write(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    gate("write")?;
    file.write_all(bytes)
}

/// Empties the file.
pub fn truncate(file: &File) -> Result<(), Errno> {
    gate("truncate")?;
    rustix::fs::ftruncate(file, 0)
}

/// Waits until what was written is on the disk.
pub fn sync(fd: impl AsFd) -> Result<(), Errno> {
    gate("fsync")?;
    rustix::fs::fsync(fd)
}

/// The same for a directory's names. A file system that knows no such thing (some network and shared ones) has nothing to
/// wait for.
pub fn sync_dir(dir: impl AsFd) -> Result<(), Errno> {
    match sync(dir) {
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        result => result,
    }
}

/// Renames, and fails if `to` is there already.
///
/// A file system that can't promise this gets a plain rename; a directory that is renamed so replaces at most an empty
/// directory, and files are renamed so only where nobody else makes such names.
pub fn rename(from_dir: impl AsFd, from: &[u8], to_dir: impl AsFd, to: &[u8]) -> Result<(), Errno> {
    gate("rename")?;
    match rustix::fs::renameat_with(&from_dir, from, &to_dir, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS) => {
            match rustix::fs::statat(&to_dir, to, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => rustix::fs::renameat(from_dir, from, to_dir, to),
                Ok(_) => Err(Errno::EXIST),
                Err(errno) => Err(errno),
            }
        }
        result => result,
    }
}

/// Renames, and fails if `to` is there already, or with `EINVAL` where the file system can't promise that.
pub fn claim(from_dir: impl AsFd, from: &[u8], to_dir: impl AsFd, to: &[u8]) -> Result<(), Errno> {
    gate("claim")?;
    rustix::fs::renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE)
}

/// Renames the file `from` over `to`.
pub fn replace(from_dir: impl AsFd, from: &[u8], to_dir: impl AsFd, to: &[u8]) -> Result<(), Errno> {
    gate("replace")?;
    rustix::fs::renameat(from_dir, from, to_dir, to)
}

/// Removes the name of anything but a directory.
pub fn unlink(dir: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    gate("unlink")?;
    rustix::fs::unlinkat(dir, name, AtFlags::empty())
}

/// Removes an empty directory.
pub fn rmdir(dir: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    gate("rmdir")?;
    rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)
}

/// Sets the mode of the very object that `held` is, which may have been opened without any permission on it.
///
/// The kernel takes an `O_PATH` handle in no other call before `fchmodat2` (6.6); its name in `/proc/self/fd` leads to
/// the object itself, whatever has been renamed since.
pub fn chmod(held: impl AsFd, mode: u32) -> Result<(), Errno> {
    gate("chmod")?;
    let path = format!("/proc/self/fd/{}", held.as_fd().as_raw_fd());
    rustix::fs::chmodat(CWD, path, Mode::from_raw_mode(mode), AtFlags::empty())
}

/// Makes the symlink `name`, which leads to `target`.
pub fn symlink(target: &[u8], dir: impl AsFd, name: &[u8]) -> Result<(), Errno> {
    gate("symlink")?;
    rustix::fs::symlinkat(target, dir, name)
}

/// Waits until all that was written to the file system of `dir` is on the disk.
pub fn sync_all(dir: impl AsFd) -> Result<(), Errno> {
    gate("syncfs")?;
    rustix::fs::syncfs(dir)
}

/// Gives what is called `name` to another owner; a symlink itself.
pub fn chown_at(dir: impl AsFd, name: &[u8], uid: u32, gid: u32) -> Result<(), Errno> {
    gate("chown")?;
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    rustix::fs::chownat(dir, name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)
}

/// Gives the object to another owner.
pub fn chown(held: impl AsFd, uid: u32, gid: u32) -> Result<(), Errno> {
    gate("chown")?;
    let (uid, gid) = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
    rustix::fs::fchown(held, Some(uid), Some(gid))
}

/// The disk, or the quota, is full.
pub fn is_full(error: &io::Error) -> bool {
    [Errno::NOSPC, Errno::DQUOT].iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

#[cfg(not(test))]
#[inline(always)]
fn gate(_call: &'static str) -> Result<(), Errno> {
    Ok(())
}

#[cfg(test)]
fn gate(call: &'static str) -> Result<(), Errno> {
    interleave::gate()?;
    faults::gate(call)
}

#[cfg(test)]
pub mod interleave;

/// Faults for tests: one thread's changing calls are counted, and before the n-th the thread is killed or an error is
/// returned in its place.
#[cfg(test)]
pub mod faults {
    use std::cell::RefCell;
    use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};

    use rustix::io::Errno;

    #[derive(Clone, Copy, Debug)]
    pub enum Fault {
        Kill,
        Error(Errno),
    }

    /// What a killed thread unwinds with. Nothing in the sweep cleans up on the disk when it is dropped, so unwinding
    /// leaves what a kill leaves.
    pub struct Killed;

    #[derive(Default)]
    struct State {
        seen: Vec<&'static str>,
        fault: Option<(usize, Fault)>,
        /// A call that this file system always refuses.
        refused: Option<(&'static str, Errno)>,
        /// What somebody else does directly before each call, which is given by its number (from 1).
        meanwhile: Option<Box<dyn FnMut(usize)>>,
    }

    thread_local! {
        static STATE: RefCell<Option<State>> = const { RefCell::new(None) };
    }

    pub(super) fn gate(call: &'static str) -> Result<(), Errno> {
        let fault = STATE.with_borrow_mut(|state| {
            let state = state.as_mut()?;
            state.seen.push(call);
            if let Some(meanwhile) = &mut state.meanwhile {
                meanwhile(state.seen.len());
            }
            let refused =
                state.refused.filter(|(name, _)| *name == call).map(|(_, errno)| Fault::Error(errno));
            state.fault.filter(|(at, _)| *at == state.seen.len()).map(|(_, fault)| fault).or(refused)
        });
        match fault {
            None => Ok(()),
            Some(Fault::Error(errno)) => Err(errno),
            Some(Fault::Kill) => panic_any(Killed),
        }
    }

    /// Runs `act` with `fault` at the call number `at` (from 1); `None` if it was killed. The calls made come too.
    pub fn run<T>(fault: Option<(usize, Fault)>, act: impl FnOnce() -> T) -> (Option<T>, Vec<&'static str>) {
        run_where(None, fault, act)
    }

    /// The same on a file system that always refuses the calls named `refused`.
    pub fn run_where<T>(
        refused: Option<(&'static str, Errno)>,
        fault: Option<(usize, Fault)>,
        act: impl FnOnce() -> T,
    ) -> (Option<T>, Vec<&'static str>) {
        run_in(State { fault, refused, ..State::default() }, act)
    }

    /// Runs `act` while somebody else does `meanwhile` directly before each call.
    pub fn run_beside<T>(meanwhile: impl FnMut(usize) + 'static, act: impl FnOnce() -> T) -> T {
        let state = State { meanwhile: Some(Box::new(meanwhile)), ..State::default() };
        run_in(state, act).0.expect("nothing kills it")
    }

    fn run_in<T>(state: State, act: impl FnOnce() -> T) -> (Option<T>, Vec<&'static str>) {
        quiet_kills();
        STATE.set(Some(state));
        let result = catch_unwind(AssertUnwindSafe(act));
        let seen = STATE.take().map(|s| s.seen).unwrap_or_default();
        match result {
            Ok(value) => (Some(value), seen),
            Err(payload) if payload.is::<Killed>() => (None, seen),
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }

    /// Hundreds of kills would each print where they struck.
    pub(super) fn quiet_kills() {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            let hook = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                if !info.payload().is::<Killed>() {
                    hook(info);
                }
            }));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::testing::place;

    /// What is there already is somebody's: it is neither opened nor replaced, and a link is not followed.
    #[test]
    fn what_has_the_name_stays() {
        let tmp = place();
        let dir = File::open(tmp.path()).unwrap();
        let at = |name: &str| tmp.path().join(name);
        std::fs::write(at("file"), "theirs").unwrap();
        std::fs::create_dir(at("empty")).unwrap();
        std::os::unix::fs::symlink("target", at("link")).unwrap();
        std::fs::write(at("ours"), "").unwrap();
        std::fs::create_dir(at("our-dir")).unwrap();
        for theirs in [&b"file"[..], b"empty", b"link"] {
            assert_eq!(create(&dir, theirs, 0o600).unwrap_err(), Errno::EXIST);
            for ours in [&b"ours"[..], b"our-dir"] {
                assert_eq!(rename(&dir, ours, &dir, theirs), Err(Errno::EXIST));
                assert_eq!(claim(&dir, ours, &dir, theirs), Err(Errno::EXIST));
            }
        }
        assert_eq!(std::fs::read(at("file")).unwrap(), b"theirs");
        assert!(!at("target").exists() && at("ours").exists() && at("our-dir").exists());
        assert!(std::fs::read_dir(at("empty")).unwrap().next().is_none());
    }
}

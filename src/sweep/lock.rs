//! One exclusive lock for each clone, `<common-dir>/treesweep/lock`: two sweeps of a clone would judge each other's half
//! done work.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rustix::fs::{FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Refused, meta_at};
use crate::stop::Stop;
use crate::sweep::act;
use crate::sweep::atomic;
use crate::vantage::paths::{LocalPath, escape};

/// How long a run waits for another one.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// How often it asks meanwhile.
const PAUSE: Duration = Duration::from_millis(50);

/// What is read of the holder's own words; a container may have written them.
const WORDS: u64 = 256;

const NAME: &[u8] = b"lock";

/// The lock, held until this is dropped; the kernel releases it when the process ends, however it does.
#[derive(Debug)]
pub struct CloneLock {
    _file: File,
}

/// Why a clone could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("{clone} is being swept by another run ({holder}); it did not end within {} s", .waited.as_secs())]
    Held { clone: LocalPath, holder: String, waited: Duration },
    #[error("{clone}: asked to stop while waiting for another run ({holder})")]
    Stopped { clone: LocalPath, holder: String },
    #[error("{clone}: its file system can't lock files ({source}), so nothing can be swept there")]
    Unsupported { clone: LocalPath, source: io::Error },
    #[error("{clone}/treesweep/lock: {why}")]
    NotPlain { clone: LocalPath, why: String },
    #[error("{clone}/treesweep/lock: {source}")]
    Io { clone: LocalPath, source: io::Error },
}

impl CloneLock {
    /// Locks the clone whose common directory is `common`, waiting up to `patience` for another run.
    pub fn acquire(common: &Dir, patience: Duration, stop: &Stop) -> Result<Self, LockError> {
        let clone = common.path().clone();
        let deadline = Instant::now() + patience;
        loop {
            let mut file = open(common)?;
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK | Errno::INTR) => {
                    let holder = holder(common);
                    if stop.is_set() {
                        return Err(LockError::Stopped { clone, holder });
                    }
                    if Instant::now() >= deadline {
                        return Err(LockError::Held { clone, holder, waited: patience });
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
                // A network file system locks bytes instead, and those only in a file that is open for writing.
                Err(errno @ (Errno::NOLCK | Errno::OPNOTSUPP | Errno::NOSYS | Errno::BADF)) => {
                    return Err(LockError::Unsupported { clone, source: errno.into() });
                }
                Err(errno) => return Err(LockError::Io { clone, source: errno.into() }),
            }
            // Who locked a file that was removed meanwhile holds nothing: the next one locks the new file.
            if is_still_there(common, &file)? {
                sign(&mut file).map_err(|source| LockError::Io { clone, source })?;
                return Ok(Self { _file: file });
            }
        }
    }
}

/// Opens the lock file, made if it is not there. Another user's is opened for reading, which is enough to lock it.
fn open(common: &Dir) -> Result<File, LockError> {
    let clone = common.path();
    let refused = |refused: Refused| match refused {
        Refused::Io(source) => LockError::Io { clone: clone.clone(), source },
        other => LockError::NotPlain { clone: clone.clone(), why: other.to_string() },
    };
    let dir = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(refused)?;
    loop {
        match dir.meta("lock") {
            // Words are written into it: it must be no other name of a file that somebody needs.
            Ok(meta) if meta.kind == Kind::File && meta.links == 1 => {}
            Ok(meta) if meta.kind == Kind::File => {
                let why = "the file has other names too".into();
                return Err(LockError::NotPlain { clone: clone.clone(), why });
            }
            Ok(meta) => return Err(refused(Refused::WrongKind(meta.kind))),
            Err(Refused::Absent) => match act::create(&dir, NAME, 0o666) {
                Ok(file) => {
                    atomic::give_to_owner_of(common, &file).map_err(refused)?;
                    return Ok(file);
                }
                Err(Errno::EXIST) => continue,
                Err(errno) => return Err(refused(errno.into())),
            },
            Err(other) => return Err(refused(other)),
        }
        let file = match open_existing(&dir, OFlags::RDWR) {
            Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) => open_existing(&dir, OFlags::RDONLY),
            result => result,
        };
        match file {
            Ok(file) if meta_at(&file, "".as_ref()).map_err(refused)?.kind == Kind::File => return Ok(file),
            Ok(_) | Err(Errno::NOENT) => continue,
            Err(errno) => return Err(refused(errno.into())),
        }
    }
}

fn open_existing(dir: &Dir, access: OFlags) -> Result<File, Errno> {
    let flags = access | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(dir, NAME, flags, Mode::empty(), resolve).map(File::from)
}

fn is_still_there(common: &Dir, file: impl AsFd) -> Result<bool, LockError> {
    let clone = || common.path().clone();
    let ours =
        meta_at(file, "".as_ref()).map_err(|r| LockError::NotPlain { clone: clone(), why: r.to_string() })?;
    match common.meta("treesweep/lock") {
        Ok(meta) => Ok(meta.id == ours.id),
        Err(Refused::Absent) => Ok(false),
        Err(refused) => Err(LockError::NotPlain { clone: clone(), why: refused.to_string() }),
    }
}

/// Writes who holds the lock, for those who wait. It is only words: where they can't be written there are none.
fn sign(file: &mut File) -> io::Result<()> {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let words = format!("pid {} on {host} since {:.0}\n", std::process::id(), Timestamp::now());
    let result =
        act::truncate(file).map_err(io::Error::from).and_then(|()| act::write(file, words.as_bytes()));
    match result {
        Err(error) if act::is_full(&error) || unwritable(&error) => Ok(()),
        result => result,
    }
}

/// It was opened for reading only.
fn unwritable(error: &io::Error) -> bool {
    [Errno::BADF, Errno::INVAL].iter().any(|e| error.raw_os_error() == Some(e.raw_os_error()))
}

fn holder(common: &Dir) -> String {
    let Ok((file, _)) = common.file("treesweep/lock") else { return "unknown".into() };
    let mut words = Vec::new();
    match io::Read::read_to_end(&mut io::Read::take(file, WORDS), &mut words) {
        Ok(0) | Err(_) => "unknown".into(),
        Ok(_) => escape(words.trim_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn common() -> (tempfile::TempDir, Dir) {
        let tmp = tempfile::tempdir().unwrap();
        let path = LocalPath::new(tmp.path().canonicalize().unwrap()).unwrap();
        (tmp, Dir::open(&path).unwrap())
    }

    fn acquire(common: &Dir) -> Result<CloneLock, LockError> {
        CloneLock::acquire(common, Duration::from_millis(120), &Stop::never())
    }

    #[test]
    fn one_at_a_time_and_it_says_who() {
        let (_tmp, common) = common();
        let held = acquire(&common).unwrap();
        let begun = Instant::now();
        let error = acquire(&common).unwrap_err();
        assert!(begun.elapsed() >= Duration::from_millis(120), "the other run may end in that time");
        assert!(
            matches!(&error, LockError::Held { holder, .. } if
            holder.contains(&format!("pid {}", std::process::id()))),
            "{error}"
        );
        drop(held);
        acquire(&common).unwrap();
    }

    #[test]
    fn a_lock_on_a_file_that_was_replaced_is_none() {
        let (tmp, common) = common();
        let held = acquire(&common).unwrap();
        std::fs::remove_file(tmp.path().join("treesweep/lock")).unwrap();
        let next = acquire(&common).unwrap();
        assert!(!is_still_there(&common, &held._file).unwrap());
        assert!(is_still_there(&common, &next._file).unwrap());
    }

    #[test]
    fn nothing_but_a_plain_file_is_locked_or_written() {
        let (tmp, common) = common();
        let lock = tmp.path().join("treesweep/lock");
        std::fs::create_dir(tmp.path().join("treesweep")).unwrap();
        std::fs::write(tmp.path().join("victim"), "words of others").unwrap();
        let refused = |why: &str| match acquire(&common) {
            Err(LockError::NotPlain { why: said, .. }) => assert!(said.contains(why), "{said}"),
            other => panic!("{other:?}"),
        };
        nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap();
        refused("a FIFO");
        std::fs::remove_file(&lock).unwrap();
        symlink("../victim", &lock).unwrap();
        refused("a symlink");
        std::fs::remove_file(&lock).unwrap();
        std::fs::hard_link(tmp.path().join("victim"), &lock).unwrap();
        refused("other names");
        std::fs::remove_dir_all(tmp.path().join("treesweep")).unwrap();
        symlink(".", tmp.path().join("treesweep")).unwrap();
        refused("a symlink");
        assert_eq!(std::fs::read(tmp.path().join("victim")).unwrap(), b"words of others");
    }

    #[test]
    fn a_forged_holder_is_bounded_and_escaped() {
        let (tmp, common) = common();
        let _held = acquire(&common).unwrap();
        std::fs::write(tmp.path().join("treesweep/lock"), "\x1b[31m".repeat(1000)).unwrap();
        let LockError::Held { holder, .. } = acquire(&common).unwrap_err() else { panic!() };
        assert!(!holder.contains('\x1b') && holder.len() < 2000);
    }
}

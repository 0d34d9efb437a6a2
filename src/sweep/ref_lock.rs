//! The lock files of references, with which git keeps two writers apart.

use std::io;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use rustix::io::Errno;

use crate::beneath::{Dir, Refused};
use crate::sweep::act;
use crate::sweep::atomic::{self, bstr_path};
use crate::sweep::record::RecordId;
use crate::sweep::refs::{RefError, made_holder};
use crate::vantage::paths::escape;

/// What a lock of ours contains, before the record's name. We hold the clone's lock, so one that is found is stale.
const OURS: &[u8] = b"treesweep ";

/// Another writer holds a lock for moments; so long we wait for it, as git does.
const ATTEMPTS: usize = 6;
const PAUSE: Duration = Duration::from_millis(20);

/// The most that is read of a lock.
const LIMIT: u64 = 4 << 10;

/// Removes the lock of `file` (`packed-refs`, `config`) that a killed run of ours left. It would keep git from writing
/// that file until a later run happens to need it.
pub fn remove_stale(common: &Dir, file: &str) -> Result<(), RefError> {
    let path = BStr::new(file);
    let lock = Lock::of(common.dir(".").map_err(|r| RefError::refused(path, r))?, path, path);
    if lock.is_stale()? { lock.release() } else { Ok(()) }
}

/// `<path>.lock`, which excludes every git that would write `path`.
pub(super) struct Lock {
    dir: Dir,
    name: Vec<u8>,
    path: BString,
}

impl Lock {
    fn of(dir: Dir, path: &BStr, last: &[u8]) -> Self {
        Self { dir, name: [last, b".lock"].concat(), path: [path.as_bytes(), b".lock"].concat().into() }
    }

    /// Takes the lock of `path`. It is there with its words or not at all, so that the next run knows a stale one.
    pub fn acquire(common: &Dir, path: &BStr, record: &RecordId) -> Result<Self, RefError> {
        let (dir, last) = made_holder(common, path)?;
        let lock =
            Self { dir, name: [last, b".lock"].concat(), path: [path.as_bytes(), b".lock"].concat().into() };
        let words = [OURS, record.as_str().as_bytes(), b"\n"].concat();
        let io = |source| RefError::Io { path: escape(&lock.path), source };
        for _ in 0..ATTEMPTS {
            if lock.claim(common, &words).map_err(io)? {
                return Ok(lock);
            }
            if lock.is_stale()? {
                act::unlink(&lock.dir, &lock.name).map_err(|e| RefError::errno(&lock.path, e))?;
            } else {
                std::thread::sleep(PAUSE);
            }
        }
        Err(RefError::Locked { path: escape(&lock.path) })
    }

    /// Puts a finished file in the place of the lock; `false` if there is one.
    fn claim(&self, common: &Dir, words: &[u8]) -> io::Result<bool> {
        let ours = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(atomic::io_error)?;
        let unfinished = atomic::unfinished_name()?;
        let mut file = act::create(&ours, &unfinished, 0o666)?;
        let written = act::write(&mut file, words);
        let claimed = match written {
            Ok(()) => act::claim(&ours, &unfinished, &self.dir, &self.name).map_err(io::Error::from),
            Err(error) => Err(error),
        };
        match claimed {
            Ok(()) => return Ok(true),
            Err(_) => act::unlink(&ours, &unfinished)?,
        }
        match claimed {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // This file system can't rename so: the plain way, whose lock has no words for a moment.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
                match act::create(&self.dir, &self.name, 0o666) {
                    Ok(mut file) => act::write(&mut file, words).map(|()| true),
                    Err(Errno::EXIST) => Ok(false),
                    Err(errno) => Err(errno.into()),
                }
            }
            Err(error) => Err(error),
            Ok(()) => Ok(true),
        }
    }

    fn is_stale(&self) -> Result<bool, RefError> {
        match self.dir.read(bstr_path(&self.name), LIMIT) {
            Ok(words) => Ok(words.starts_with(OURS)),
            Err(Refused::Absent) => Ok(false),
            Err(refused) => Err(RefError::refused(&self.path, refused)),
        }
    }

    /// Gives the lock up.
    pub fn release(self) -> Result<(), RefError> {
        match act::unlink(&self.dir, &self.name) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(RefError::LockStays { path: escape(&self.path), source: errno.into() }),
        }
    }
}

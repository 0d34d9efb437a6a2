//! One directory of a removal: opening it, emptying it of all but directories, and what can be wrong with it.

use std::io;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use bstr::{BString, ByteSlice};
use rustix::fs::{FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom};
use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Meta, Refused, meta_at};
use crate::stop::Stop;
use crate::sweep::act;
use crate::sweep::atomic::bstr_path;
use crate::sweep::outcome::{Progress, Removed};
use crate::sweep::remove::{RemoveError, shown};
use crate::vantage::paths::FileId;

const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// In a large directory the request to stop is asked for after so many names.
const NAMES_BETWEEN_STOPS: u64 = 256;

/// How many names a message lists.
const NAMES_SHOWN: usize = 3;

/// A directory that is held open, with what it is.
pub(super) struct Held {
    pub fd: OwnedFd,
    pub meta: Meta,
}

/// What a removal shares between its threads.
pub(super) struct Engine<'a> {
    stop: &'a Stop,
    progress: &'a dyn Progress,
    files: AtomicU64,
    directories: AtomicU64,
    freed: AtomicU64,
}

/// What ended a removal, and where, relative to the directory that met it.
pub(super) struct Fault {
    pub path: BString,
    pub why: Why,
}

pub(super) enum Why {
    Deferred,
    MountInside,
    NotDeletable(String),
    Replaced,
    Reappeared(String),
    Io(io::Error),
}

impl Fault {
    pub fn at(path: &[u8], why: Why) -> Self {
        Self { path: path.into(), why }
    }

    pub fn errno(path: &[u8], errno: Errno) -> Self {
        let why = match errno {
            Errno::XDEV | Errno::BUSY => Why::MountInside,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                Why::NotDeletable(io::Error::from(errno).to_string())
            }
            other => Why::Io(other.into()),
        };
        Self::at(path, why)
    }

    pub fn refused(path: &[u8], refused: Refused) -> Self {
        let why = match refused {
            Refused::MountCrossed => Why::MountInside,
            Refused::Io(source) => match source.raw_os_error() {
                Some(raw) => return Self::errno(path, Errno::from_raw_os_error(raw)),
                None => Why::Io(source),
            },
            _ => Why::Replaced,
        };
        Self::at(path, why)
    }

    pub fn reappeared(names: &[BString]) -> Self {
        let mut list: Vec<String> = names.iter().take(NAMES_SHOWN).map(|n| shown(n)).collect();
        if names.len() > NAMES_SHOWN {
            list.push(format!("{} more", names.len() - NAMES_SHOWN));
        }
        Self::at(b".", Why::Reappeared(list.join(", ")))
    }

    /// The same fault as seen from the directory that holds `directory`.
    pub fn within(mut self, directory: &[u8]) -> Self {
        if self.path == "." {
            self.path = directory.into();
        } else if !directory.is_empty() {
            self.path = [directory, b"/", self.path.as_bytes()].concat().into();
        }
        self
    }

    pub fn into_error(self) -> RemoveError {
        let path = shown(&self.path);
        match self.why {
            Why::MountInside => RemoveError::MountInside { path },
            Why::NotDeletable(why) => RemoveError::NotDeletable { path, why },
            Why::Replaced => RemoveError::Replaced { path },
            Why::Reappeared(names) => RemoveError::Reappeared { path, names },
            Why::Io(source) => RemoveError::Io { path, source },
            Why::Deferred => RemoveError::Io { path, source: io::ErrorKind::Interrupted.into() },
        }
    }
}

impl<'a> Engine<'a> {
    pub fn new(stop: &'a Stop, progress: &'a dyn Progress) -> Self {
        let zero = AtomicU64::default;
        Self { stop, progress, files: zero(), directories: zero(), freed: zero() }
    }

    pub fn removed(&self) -> Removed {
        Removed {
            files: self.files.load(Ordering::Relaxed),
            directories: self.directories.load(Ordering::Relaxed),
            freed: self.freed.load(Ordering::Relaxed),
        }
    }

    pub fn count_directory(&self) {
        self.directories.fetch_add(1, Ordering::Relaxed);
    }

    pub fn ask_stop(&self) -> Result<(), Fault> {
        if self.stop.is_set() { Err(Fault::at(b".", Why::Deferred)) } else { Ok(()) }
    }

    /// Takes the top directory, which was opened and identified already.
    pub fn adopt(&self, top: Dir) -> Result<Held, Fault> {
        let refused = |r| Fault::refused(b".", r);
        let meta = top.own_meta().map_err(refused)?;
        let fd = top.as_fd().try_clone_to_owned().map_err(|e| Fault::at(b".", Why::Io(e)))?;
        make_writable(&fd, &meta, b".")?;
        Ok(Held { fd, meta })
    }

    /// Opens the directory `name`; `None` if there is none of that name now.
    pub fn open(&self, parent: &Held, name: &[u8]) -> Result<Option<Held>, Fault> {
        let fd = match open(parent.fd.as_fd(), name) {
            Err(Errno::ACCESS) => {
                unlock(parent.fd.as_fd(), name, None)?;
                open(parent.fd.as_fd(), name)
            }
            result => result,
        };
        let fd = match fd {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            // What was a directory is something else now, and goes as that.
            Err(Errno::NOTDIR | Errno::LOOP) => {
                self.unlink(parent, name)?;
                return Ok(None);
            }
            Err(errno) => return Err(Fault::errno(name, errno)),
        };
        let meta = meta_at(&fd, "".as_ref()).map_err(|r| Fault::refused(name, r))?;
        // A subvolume changes the device and not the mount, a bind mount the mount and not the device.
        if meta.mount != parent.meta.mount || meta.id.dev != parent.meta.id.dev {
            return Err(Fault::at(name, Why::MountInside));
        }
        make_writable(&fd, &meta, name)?;
        Ok(Some(Held { fd, meta }))
    }

    /// Unlinks everything in `held` that is no directory, except the name `keep`, and hands each directory's name to
    /// `directory`, which may end the pass.
    pub fn empty(
        &self,
        held: &Held,
        keep: &[u8],
        directory: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Result<(), Fault> {
        let here = |errno| Fault::errno(b".", errno);
        rustix::fs::seek(&held.fd, SeekFrom::Start(0)).map_err(here)?;
        let mut buffer = Vec::with_capacity(32 << 10);
        let buffer: &mut [MaybeUninit<u8>] = buffer.spare_capacity_mut();
        let mut entries = RawDir::new(&held.fd, buffer);
        let (mut seen, mut freed) = (0, 0);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(here)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") || name == keep {
                continue;
            }
            seen += 1;
            if seen % NAMES_BETWEEN_STOPS == 0 {
                self.tell(&mut freed);
                self.ask_stop()?;
            }
            let is_directory = entry.file_type() == FileType::Directory;
            match if is_directory { Unlinked::IsDirectory } else { self.unlink(held, name)? } {
                Unlinked::Gone { allocated } => freed += allocated,
                Unlinked::IsDirectory => {
                    if directory(name).is_break() {
                        break;
                    }
                }
            }
        }
        self.tell(&mut freed);
        Ok(())
    }

    fn tell(&self, freed: &mut u64) {
        if *freed > 0 {
            self.freed.fetch_add(*freed, Ordering::Relaxed);
            self.progress.freed(std::mem::take(freed));
        }
    }

    /// Unlinks `name` unless it is a directory. A file on which another one is mounted is not touched: within this
    /// namespace the kernel refuses it, but it is better seen than tried.
    fn unlink(&self, held: &Held, name: &[u8]) -> Result<Unlinked, Fault> {
        let meta = match meta_at(&held.fd, bstr_path(name)) {
            Ok(meta) => meta,
            Err(Refused::Absent) => return Ok(Unlinked::Gone { allocated: 0 }),
            Err(refused) => return Err(Fault::refused(name, refused)),
        };
        if meta.kind == Kind::Directory {
            return Ok(Unlinked::IsDirectory);
        }
        if meta.mount != held.meta.mount {
            return Err(Fault::at(name, Why::MountInside));
        }
        match act::unlink(&held.fd, name) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Ok(Unlinked::Gone { allocated: 0 }),
            Err(Errno::ISDIR) => return Ok(Unlinked::IsDirectory),
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => {
                let (it, holder) = (meta.uid, held.meta.uid);
                let why = format!("{errno} (uid {it}'s, in a directory of uid {holder})");
                return Err(Fault::at(name, Why::NotDeletable(why)));
            }
            Err(errno) => return Err(Fault::errno(name, errno)),
        }
        self.files.fetch_add(1, Ordering::Relaxed);
        // With other links left, in this tree or elsewhere, nothing is freed yet; the last one finds a count of one.
        Ok(Unlinked::Gone { allocated: if meta.links <= 1 { meta.allocated } else { 0 } })
    }

    /// Unlinks the name that was kept for last.
    pub fn unlink_last(&self, top: &Held, name: &[u8]) -> Result<(), Fault> {
        match self.unlink(top, name)? {
            Unlinked::Gone { mut allocated } => {
                self.tell(&mut allocated);
                Ok(())
            }
            Unlinked::IsDirectory => Err(Fault::at(name, Why::Replaced)),
        }
    }

    /// Removes the directory `name`, which was emptied; `false` if it is not empty any more.
    pub fn rmdir(&self, parent: &Held, name: &[u8]) -> Result<bool, Fault> {
        match act::rmdir(&parent.fd, name) {
            Ok(()) => {
                self.count_directory();
                Ok(true)
            }
            Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
            Err(errno) => Err(Fault::errno(name, errno)),
        }
    }
}

enum Unlinked {
    Gone { allocated: u64 },
    IsDirectory,
}

fn open(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat2(parent, name, flags, Mode::empty(), RESOLVE)
}

/// Makes a directory that we own, and whose mode closes it to us, readable; by handle, so that no link is followed and
/// nothing that was swapped in is changed. Another's is left as it is.
pub(super) fn unlock(parent: BorrowedFd<'_>, name: &[u8], expected: Option<FileId>) -> Result<(), Fault> {
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fault = |errno| Fault::errno(name, errno);
    let held = rustix::fs::openat2(parent, name, flags, Mode::empty(), RESOLVE).map_err(fault)?;
    let meta = meta_at(&held, "".as_ref()).map_err(|r| Fault::refused(name, r))?;
    if expected.is_some_and(|id| id != meta.id) {
        return Err(Fault::at(name, Why::Replaced));
    }
    if meta.uid != rustix::process::geteuid().as_raw() {
        let why = format!("its directory belongs to uid {} and is closed to us", meta.uid);
        return Err(Fault::at(name, Why::NotDeletable(why)));
    }
    act::chmod(&held, meta.mode | 0o700).map_err(fault)
}

/// Gives us the right to delete in a directory that we own and that its mode made read-only.
fn make_writable(fd: &OwnedFd, meta: &Meta, name: &[u8]) -> Result<(), Fault> {
    let uid = rustix::process::geteuid();
    if meta.mode & 0o700 == 0o700 || uid.is_root() || meta.uid != uid.as_raw() {
        return Ok(());
    }
    act::chmod(fd, meta.mode | 0o700).map_err(|errno| Fault::errno(name, errno))
}

/// The names in a directory.
pub(super) fn names(fd: &OwnedFd) -> Result<Vec<BString>, Errno> {
    rustix::fs::seek(fd, SeekFrom::Start(0))?;
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(fd, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = entries.next() {
        let name = entry?.file_name().to_bytes().as_bstr().to_owned();
        if name != "." && name != ".." {
            names.push(name);
        }
    }
    Ok(names)
}

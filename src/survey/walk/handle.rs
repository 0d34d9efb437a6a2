//! Directories held open while their children wait, and how they are opened: relative to the parent, beneath it,
//! without symlinks, on the same mount.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use bstr::{BStr, ByteSlice};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{Resource, getrlimit};

use crate::beneath::Refused;
use crate::stop::Stop;

/// Why something was not finished, where only words can say it.
pub(super) const STOPPED: &str = "the run was asked to stop";

/// Paths are resolved in pieces of at most so many bytes; the kernel takes 4095.
const PIECE: usize = 4000;

/// How many directories all walks of this process hold for children that wait.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// At most this many are held: half of what the process may open, the rest is left to files, packs and engines.
fn most_held() -> usize {
    static MOST: OnceLock<usize> = OnceLock::new();
    *MOST.get_or_init(|| match getrlimit(Resource::Nofile).current {
        // Tests go through both ways.
        Some(_) if cfg!(test) => 64,
        Some(limit) => (limit as usize / 2).clamp(16, 4096),
        None => 4096,
    })
}

/// Where a child is opened from.
#[derive(Clone, Debug)]
pub(super) enum Parent {
    /// The parent's own handle.
    Held(Arc<Held>),
    /// So many are held already that the child is found again from the root, by its whole path.
    Root,
}

/// An open directory that counts.
#[derive(Debug)]
pub(super) struct Held(OwnedFd);

impl Parent {
    /// Keeps `fd` for its children if the process may hold one more.
    pub(super) fn of(fd: OwnedFd) -> Self {
        if HELD.fetch_add(1, Ordering::Relaxed) < most_held() {
            Self::Held(Arc::new(Held(fd)))
        } else {
            HELD.fetch_sub(1, Ordering::Relaxed);
            Self::Root
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The directory `relative` beneath `dir`; a mount point on the way is [`Refused::MountCrossed`].
pub(super) fn open_beneath(dir: BorrowedFd<'_>, relative: &BStr) -> Result<OwnedFd, Refused> {
    open(dir, relative, OFlags::RDONLY)
}

/// The regular file `name` in `dir`, for reading. The caller has seen what it is; it is looked at again here, and a
/// FIFO that took its place does not make us wait.
pub(super) fn open_file(
    dir: BorrowedFd<'_>,
    name: &BStr,
) -> Result<(std::fs::File, crate::beneath::Meta), Refused> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let fd = rustix::fs::openat2(dir, path(name), flags, Mode::empty(), resolve())?;
    let meta = crate::beneath::meta_at(&fd, Path::new(""))?;
    match meta.kind {
        crate::beneath::Kind::File => Ok((fd.into(), meta)),
        kind => Err(Refused::WrongKind(kind)),
    }
}

/// All bytes of the regular file `name` in `dir`, if they are at most `limit`.
pub(super) fn read_file(dir: BorrowedFd<'_>, name: &BStr, limit: u64) -> Result<Vec<u8>, Refused> {
    let (file, meta) = open_file(dir, name)?;
    let mut bytes = Vec::with_capacity(meta.size.min(limit) as usize);
    file.take(limit + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > limit {
        true => Err(Refused::TooLarge { size: meta.size, limit }),
        false => Ok(bytes),
    }
}

/// A file whose reading ends with an error once the run is asked to stop.
pub(super) struct Stoppable<'a> {
    file: std::fs::File,
    stop: &'a Stop,
}

impl<'a> Stoppable<'a> {
    pub(super) fn new(file: std::fs::File, stop: &'a Stop) -> Self {
        Self { file, stop }
    }
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.stop.is_set() {
            true => Err(std::io::Error::other(STOPPED)),
            false => self.file.read(buffer),
        }
    }
}

/// [`open_beneath`] for paths of any length: they are resolved piece by piece.
pub(super) fn open_deep(root: BorrowedFd<'_>, relative: &BStr) -> Result<OwnedFd, Refused> {
    let mut held: Option<OwnedFd> = None;
    let mut rest = relative;
    while rest.len() > PIECE {
        // A name has at most 255 bytes, so there is a slash.
        let cut = rest[..PIECE].rfind_byte(b'/').ok_or(Refused::NotPlain)?;
        held = Some(open(held.as_ref().map_or(root, |fd| fd.as_fd()), rest[..cut].as_bstr(), OFlags::PATH)?);
        rest = rest[cut + 1..].as_bstr();
    }
    open(held.as_ref().map_or(root, |fd| fd.as_fd()), rest, OFlags::RDONLY)
}

fn open(dir: BorrowedFd<'_>, relative: &BStr, access: OFlags) -> Result<OwnedFd, Refused> {
    let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat2(dir, path(relative), flags, Mode::empty(), resolve())?)
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV
}

fn path(bytes: &BStr) -> &Path {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(bytes))
}

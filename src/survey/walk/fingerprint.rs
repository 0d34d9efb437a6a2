//! A hash over the state of every object in a directory, for telling whether anything changed since it was judged.
//!
//! Each directory gives one SHA-256 over its path from the root and, for each child, name, identity, kind, owner, mode,
//! size, mtime and ctime; half of each is summed, so workers need no order. The root itself is left out: renaming it
//! changes nothing, while any write below changes some object's ctime, which no program can set.

use std::os::fd::AsFd;
use std::sync::Mutex;

use bstr::{BStr, BString};
use sha2::{Digest, Sha256};

use crate::beneath::{Dir, Kind, Meta, Refused, Stamp};
use crate::judge::tree_facts::Fingerprint;
use crate::stop::Stop;
use crate::survey::walk::handle::{Parent, open_beneath, open_deep};
use crate::survey::walk::listing::Listing;
use crate::vantage::paths::escape;

/// Why there is no fingerprint.
#[derive(Debug, thiserror::Error)]
pub enum Unfinished {
    #[error("the run was asked to stop")]
    Stopped,
    #[error("{}: {why}", escape(.path))]
    Unreadable { path: BString, why: String },
}

/// What one directory adds to the sum.
pub(super) fn of_listing(path: &BStr, listing: &Listing) -> u128 {
    let mut hasher = Sha256::new();
    hasher.update((path.len() as u64).to_le_bytes());
    hasher.update(path);
    let mut record = Vec::with_capacity(128);
    for child in listing.children() {
        let name = listing.name(child);
        let Meta {
            id,
            mount: _,
            kind,
            mode,
            uid,
            gid,
            links: _,
            size,
            allocated: _,
            mtime,
            ctime,
            undeletable_flag,
        } = child.meta;
        record.clear();
        record.extend_from_slice(&(name.len() as u16).to_le_bytes());
        record.extend_from_slice(name);
        for number in [id.dev, id.ino, size] {
            record.extend_from_slice(&number.to_le_bytes());
        }
        for number in [mode, uid, gid] {
            record.extend_from_slice(&number.to_le_bytes());
        }
        for Stamp { seconds, nanos } in [mtime, ctime] {
            record.extend_from_slice(&seconds.to_le_bytes());
            record.extend_from_slice(&nanos.to_le_bytes());
        }
        record.extend_from_slice(&[kind as u8, undeletable_flag.into()]);
        hasher.update(&record);
    }
    let digest = hasher.finalize();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    u128::from_le_bytes(half)
}

/// The fingerprint of all that is in `dir`, a checkout or an administrative entry: the same value as a walk's, if
/// nothing changed. It looks at names and inodes only.
pub fn fingerprint_of(dir: &Dir, stop: &Stop) -> Result<Fingerprint, Unfinished> {
    let unreadable = |why: Refused| Unfinished::Unreadable { path: BString::default(), why: why.to_string() };
    let root = dir.dir(".").map_err(unreadable)?;
    let mount = root.own_meta().map_err(unreadable)?;
    let state = State { root: &root, mount, stop, sum: Mutex::new(Ok(0)) };
    let job = Job { parent: Parent::Root, path: BString::default(), expected: mount };
    rayon::scope(|scope| state.visit(job, scope));
    let sum = state.sum.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    sum.map(Fingerprint)
}

struct State<'a> {
    root: &'a Dir,
    /// The mount that may not be left.
    mount: Meta,
    stop: &'a Stop,
    sum: Mutex<Result<u128, Unfinished>>,
}

struct Job {
    parent: Parent,
    /// From the root.
    path: BString,
    expected: Meta,
}

impl<'a> State<'a> {
    fn visit<'s>(&'s self, job: Job, scope: &rayon::Scope<'s>)
    where
        'a: 's,
    {
        if self.with_sum(|sum| sum.is_err()) {
            return;
        }
        match self.look(&job) {
            Ok((part, next)) => {
                self.with_sum(|sum| {
                    if let Ok(sum) = sum {
                        *sum = sum.wrapping_add(part);
                    }
                });
                for job in next {
                    scope.spawn(|scope| self.visit(job, scope));
                }
            }
            Err(_) if self.stop.is_set() => self.with_sum(|sum| *sum = Err(Unfinished::Stopped)),
            Err(why) => self.with_sum(|sum| *sum = Err(why)),
        }
    }

    fn with_sum<T>(&self, act: impl FnOnce(&mut Result<u128, Unfinished>) -> T) -> T {
        act(&mut self.sum.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    fn look(&self, job: &Job) -> Result<(u128, Vec<Job>), Unfinished> {
        if self.stop.is_set() {
            return Err(Unfinished::Stopped);
        }
        let at = |path: &BStr, why: String| Unfinished::Unreadable { path: path.to_owned(), why };
        let refused = |why: Refused| at(job.path.as_ref(), why.to_string());
        let fd = open_job(self.root, &job.parent, job.path.as_ref(), &job.expected).map_err(refused)?;
        let listing = Listing::read(fd.as_fd(), self.stop).map_err(refused)?;
        if let Some((name, why)) = listing.failed.first() {
            return Err(at(child_path(job.path.as_ref(), name.as_ref()).as_ref(), why.to_string()));
        }
        let part = of_listing(job.path.as_ref(), &listing);
        let mut directories = Vec::new();
        for child in listing.children() {
            let path = || child_path(job.path.as_ref(), listing.name(child));
            if child.meta.mount != self.mount.mount {
                return Err(at(path().as_ref(), Refused::MountCrossed.to_string()));
            }
            if child.meta.kind == Kind::Directory {
                directories.push((path(), child.meta));
            }
        }
        let parent = match directories.is_empty() {
            true => Parent::Root,
            false => Parent::of(fd),
        };
        let next = directories
            .into_iter()
            .map(|(path, expected)| Job { parent: parent.clone(), path, expected })
            .collect();
        Ok((part, next))
    }
}

/// The directory at `path` from `root`, opened from its parent where that is held, and the one that was seen.
pub(super) fn open_job(
    root: &Dir,
    parent: &Parent,
    path: &BStr,
    expected: &Meta,
) -> Result<std::os::fd::OwnedFd, Refused> {
    use bstr::ByteSlice;
    let name = path.rfind_byte(b'/').map_or(path, |slash| path[slash + 1..].as_bstr());
    let fd = match parent {
        _ if path.is_empty() => open_beneath(root.as_fd(), ".".into())?,
        Parent::Held(parent) => open_beneath(parent.as_fd(), name)?,
        Parent::Root => open_deep(root.as_fd(), path)?,
    };
    let opened = crate::beneath::meta_at(&fd, std::path::Path::new(""))?;
    match opened.id == expected.id && opened.mount == expected.mount {
        true => Ok(fd),
        false => Err(Refused::Io(std::io::Error::other("another directory took its place"))),
    }
}

/// The path of `name` in the directory at `dir` (empty: the root).
pub(super) fn child_path(dir: &BStr, name: &BStr) -> BString {
    let mut path = BString::from(Vec::with_capacity(dir.len() + 1 + name.len()));
    if !dir.is_empty() {
        path.extend_from_slice(dir);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

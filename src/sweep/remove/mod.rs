//! The deletion engine: empties a directory bottom-up through held handles and removes it.
//!
//! A queue of directories, worked off by a few threads; each directory counts those below it and goes when the last one
//! has gone. The queue is a stack, so what is open at a time are a few paths from the top down; below a fixed depth one
//! handle walks up and down (`deep`), so that a tree of any depth needs a bounded number of handles.
//!
//! Each directory is opened by its name in its held parent, beneath, through no link and on the same mount. Whatever is
//! swapped in meanwhile, nothing outside is reached: a link is unlinked, a mount ends the removal untouched.
//!
//! The last name of the top directory (`.git` of a checkout, `gitdir` of an entry) goes last: what is left of a removal
//! that was killed still says what it belongs to.

mod deep;
#[cfg(test)]
mod interleavings;
mod one;
mod queue;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::os::fd::AsFd;

use bstr::BString;
use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Refused, meta_at};
use crate::stop::Stop;
use crate::sweep::act;
use crate::sweep::atomic::bstr_path;
use crate::sweep::outcome::{Progress, Removed};
use crate::vantage::paths::{FileId, escape};

/// So many threads delete for each core where nobody says how many: on a disk each of them waits most of the time, and in
/// memory more of them cost nothing (docs/benchmarks.md).
pub const THREADS_PER_CORE: NonZeroUsize = NonZeroUsize::new(2).expect("two is not zero");

/// What is to be removed, and how.
pub struct Order<'a> {
    /// Holds the directory.
    pub parent: &'a Dir,
    pub name: &'a [u8],
    /// What the directory must be.
    pub id: FileId,
    /// The file in it that goes last.
    pub last: &'a [u8],
    pub jobs: NonZeroUsize,
    pub stop: &'a Stop,
    pub progress: &'a dyn Progress,
}

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    /// The run was asked to stop.
    Deferred,
}

/// Why a removal stopped. Paths are relative to the directory that was to go, control characters escaped.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("something is mounted on {path}")]
    MountInside { path: String },
    #[error("{path} can't be deleted: {why}")]
    NotDeletable { path: String, why: String },
    #[error("{path} was replaced by something else")]
    Replaced { path: String },
    #[error("{path} was written to while it was removed: {names} appeared")]
    Reappeared { path: String, names: String },
    #[error("{path}: {source}")]
    Io { path: String, source: std::io::Error },
}

/// Removes what `order` names. The sum says what is gone, also where an error ended it.
pub fn remove_tree(order: &Order<'_>) -> (Removed, Result<End, RemoveError>) {
    let engine = one::Engine::new(order.stop, order.progress);
    let result = match run(&engine, order) {
        Ok(()) => Ok(End::Complete),
        Err(one::Fault { why: one::Why::Deferred, .. }) => Ok(End::Deferred),
        Err(fault) => Err(fault.into_error()),
    };
    (engine.removed(), result)
}

fn run(engine: &one::Engine<'_>, order: &Order<'_>) -> Result<(), one::Fault> {
    let top = open_top(order)?;
    let top = engine.adopt(top)?;
    queue::empty(engine, &top, order.last, order.jobs)?;
    let mut again = false;
    // A late writer gets one more pass; after that somebody is at work here, and waiting would have no bound.
    let others = |n: &BString| *n != order.last;
    if names_left(&top)?.iter().any(others) {
        again = true;
        queue::empty(engine, &top, order.last, order.jobs)?;
        let left: Vec<BString> = names_left(&top)?.into_iter().filter(others).collect();
        if !left.is_empty() {
            return Err(one::Fault::reappeared(&left));
        }
    }
    engine.unlink_last(&top, order.last)?;
    if remove_top(engine, order)? {
        return Ok(());
    }
    if !again {
        queue::empty(engine, &top, b"", order.jobs)?;
        if remove_top(engine, order)? {
            return Ok(());
        }
    }
    Err(one::Fault::reappeared(&names_left(&top)?))
}

/// The directory itself, if it is what was judged.
fn open_top(order: &Order<'_>) -> Result<Dir, one::Fault> {
    let replaced = || one::Fault::at(b".", one::Why::Replaced);
    let top = match order.parent.dir(bstr_path(order.name)) {
        Ok(top) => top,
        Err(Refused::MountCrossed) => return Err(one::Fault::at(b".", one::Why::MountInside)),
        Err(Refused::Io(source)) => match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS) => open_unreadable_top(order)?,
            _ => return Err(one::Fault::at(b".", one::Why::Io(source))),
        },
        Err(_) => return Err(replaced()),
    };
    let meta = top.own_meta().map_err(|_| replaced())?;
    if meta.id == order.id && meta.kind == Kind::Directory { Ok(top) } else { Err(replaced()) }
}

/// The same for one that its mode closes to us: it is held by what it is, made readable, and opened then.
fn open_unreadable_top(order: &Order<'_>) -> Result<Dir, one::Fault> {
    one::unlock(order.parent.as_fd(), order.name, Some(order.id))?;
    order.parent.dir(bstr_path(order.name)).map_err(|r| one::Fault::refused(b".", r))
}

/// Whether the emptied directory went; `false` if it is not empty any more.
fn remove_top(engine: &one::Engine<'_>, order: &Order<'_>) -> Result<bool, one::Fault> {
    match meta_at(order.parent, bstr_path(order.name)) {
        Ok(meta) if meta.id == order.id => {}
        Ok(_) | Err(Refused::Absent) => return Err(one::Fault::at(b".", one::Why::Replaced)),
        Err(refused) => return Err(one::Fault::refused(b".", refused)),
    }
    match act::rmdir(order.parent, order.name) {
        Ok(()) => {
            engine.count_directory();
            Ok(true)
        }
        Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
        Err(errno) => Err(one::Fault::errno(b".", errno)),
    }
}

fn names_left(top: &one::Held) -> Result<Vec<BString>, one::Fault> {
    one::names(&top.fd).map_err(|errno| one::Fault::errno(b".", errno))
}

/// A path for a message.
fn shown(path: &[u8]) -> String {
    escape(path)
}

//! Below a fixed depth: one handle that walks down and up, so that a tree of any depth needs no more of them.
//!
//! Up goes through `..`, which leads to wherever the directory is now; what is found there must be the directory that it
//! was entered from.

use std::ops::ControlFlow;

use bstr::BString;
use rustix::fs::{Mode, OFlags};

use crate::beneath::meta_at;
use crate::sweep::remove::one::{Engine, Fault, Held, Why, names};
use crate::vantage::paths::FileId;

/// A directory on the way down that is not held.
struct Above {
    id: FileId,
    /// The name that was entered from it.
    entered: BString,
    /// That name was emptied and was not empty then.
    again: bool,
}

/// Removes everything in `held`, which itself stays.
pub(super) fn empty(engine: &Engine<'_>, held: &Held) -> Result<(), Fault> {
    let mut way: Vec<Above> = Vec::new();
    let result = walk(engine, held, &mut way);
    result.map_err(|fault| way.iter().rev().fold(fault, |fault, above| fault.within(&above.entered)))
}

fn walk(engine: &Engine<'_>, top: &Held, way: &mut Vec<Above>) -> Result<(), Fault> {
    // `None` stands for `top`, which the caller holds.
    let mut below: Option<Held> = None;
    loop {
        engine.ask_stop()?;
        let here = below.as_ref().unwrap_or(top);
        let mut first = None;
        engine.empty(here, b"", &mut |name| {
            first = Some(BString::from(name));
            ControlFlow::Break(())
        })?;
        if let Some(name) = first {
            if let Some(child) = engine.open(here, &name)? {
                way.push(Above { id: here.meta.id, entered: name, again: false });
                below = Some(child);
            }
            continue;
        }
        let (Some(emptied), Some(above)) = (&below, way.last_mut()) else { return Ok(()) };
        let parent = up(emptied, above.id)?;
        if engine.rmdir(&parent, &above.entered)? {
            way.pop();
            below = (!way.is_empty()).then_some(parent);
        } else if std::mem::replace(&mut above.again, true) {
            return Err(Fault::reappeared(&names(&emptied.fd).map_err(|e| Fault::errno(b".", e))?));
        }
    }
}

/// The directory that `held` lies in, if it is `expected`.
fn up(held: &Held, expected: FileId) -> Result<Held, Fault> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(&held.fd, "..", flags, Mode::empty()).map_err(|e| Fault::errno(b".", e))?;
    let meta = meta_at(&fd, "".as_ref()).map_err(|r| Fault::refused(b".", r))?;
    if meta.id != expected || meta.mount != held.meta.mount {
        return Err(Fault::at(b".", Why::Replaced));
    }
    Ok(Held { fd, meta })
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::Dir;
    use crate::vantage::paths::LocalPath;

    #[test]
    fn up_leads_to_where_it_came_from_and_nowhere_else() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::create_dir(path.join("other")).unwrap();
        let open = |name: &str| Dir::open(&LocalPath::new(path.join(name)).unwrap()).unwrap();
        let (a, b) = (open("a").own_meta().unwrap(), open("a/b"));
        let held = Held { meta: b.own_meta().unwrap(), fd: rustix::io::dup(&b).unwrap() };
        assert!(up(&held, a.id).is_ok_and(|parent| parent.meta.id == a.id));
        std::fs::rename(path.join("a/b"), path.join("other/b")).unwrap();
        assert!(matches!(up(&held, a.id), Err(Fault { why: Why::Replaced, .. })));
        let elsewhere = Held { meta: crate::beneath::Meta { mount: a.mount + 1, ..held.meta }, ..held };
        let other = open("other").own_meta().unwrap().id;
        assert!(matches!(up(&elsewhere, other), Err(Fault { why: Why::Replaced, .. })));
    }
}

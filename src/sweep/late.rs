//! Whether anything in a directory is younger than a removal that was interrupted in it.
//!
//! Where a removal had to work in place, its next run finds a directory under a name that people use. Somebody may have
//! made it whole again and worked in it since, in the same directory or in a new one that got the old inode. Whatever
//! was written there has a later change time than the journal; what the removal merely left behind has not.

use std::ops::ControlFlow;

use bstr::BString;

use crate::beneath::{Dir, Kind, Refused, Stamp};
use crate::sweep::atomic::bstr_path;
use crate::vantage::paths::escape;

/// The first file in `dir` whose change time is `since` or later; directories change by the removal itself. What can't be
/// looked at counts: nobody knows how old it is.
pub(super) fn younger_than(dir: &Dir, since: Stamp) -> Option<String> {
    match search(dir, &BString::default(), since) {
        ControlFlow::Continue(()) => None,
        ControlFlow::Break(found) => Some(found),
    }
}

fn search(dir: &Dir, within: &BString, since: Stamp) -> ControlFlow<String> {
    let failed = |at: &BString, refused: Refused| ControlFlow::Break(format!("{}: {refused}", escape(at)));
    let names = match dir.names() {
        Ok(names) => names,
        Err(refused) => return failed(within, refused),
    };
    for name in names {
        let mut path = within.clone();
        path.extend_from_slice(&name);
        match dir.meta(bstr_path(&name)) {
            Ok(meta) if meta.kind == Kind::Directory => {
                path.push(b'/');
                match dir.dir(bstr_path(&name)) {
                    Ok(below) => search(&below, &path, since)?,
                    Err(Refused::Absent) => {}
                    Err(refused) => return failed(&path, refused),
                }
            }
            Ok(meta) if meta.ctime >= since => return ControlFlow::Break(escape(&path)),
            Ok(_) | Err(Refused::Absent) => {}
            Err(refused) => return failed(&path, refused),
        }
    }
    ControlFlow::Continue(())
}

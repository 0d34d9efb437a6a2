//! Whether anything in a directory is younger than a removal that was interrupted in it.
//!
//! Where a removal had to work in place, its next run finds a directory under a name that people use. Somebody may have
//! made it whole again and worked in it since, in the same directory or in a new one that got the old inode. Whatever
//! was written there has a later change time than the journal; what the removal merely left behind has not. What was
//! moved aside bears a name that nobody uses, but who was in there before still is, and may have gone on writing.

use bstr::{BString, ByteSlice};

use crate::beneath::{Dir, Kind, Meta, Refused, Stamp};
use crate::sweep::atomic::bstr_path;
use crate::vantage::paths::escape;

/// What tells that a file was there since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Anything that was done to it.
    Change,
    /// Its content. To delete one of its names changes a file that has several.
    Writing,
}

/// Paths are resolved in pieces of at most so many bytes; the kernel takes 4095.
const PIECE: usize = 4000;

/// The first file in `dir` whose time is `since` or later; directories change by the removal itself. What can't be looked
/// at counts: nobody knows how old it is.
pub(super) fn younger_than(dir: &Dir, since: Stamp, by: By) -> Option<String> {
    let mut pending = vec![BString::default()];
    while let Some(within) = pending.pop() {
        let failed = |refused: Refused| Some(format!("{}: {refused}", escape(&within)));
        let (held, names) = match open(dir, &within).and_then(|held| Ok((held.names()?, held))) {
            Ok((names, held)) => (held, names),
            Err(Refused::Absent) => continue,
            Err(refused) => return failed(refused),
        };
        for name in names {
            let path = BString::from([within.as_slice(), &name].concat());
            match held.meta(bstr_path(&name)) {
                Ok(meta) if meta.kind == Kind::Directory => {
                    pending.push(BString::from([path.as_slice(), b"/"].concat()));
                }
                Ok(Meta { mtime, ctime, .. }) => {
                    let at = if by == By::Change { ctime } else { mtime };
                    if at >= since {
                        return Some(escape(&path));
                    }
                }
                Err(Refused::Absent) => {}
                Err(refused) => return failed(refused),
            }
        }
    }
    None
}

/// The directory `within` (empty, or ending in a slash), however long its path is.
fn open(dir: &Dir, within: &BString) -> Result<Dir, Refused> {
    let mut held = dir.dir(".")?;
    let mut rest = within.as_slice();
    while !rest.is_empty() {
        let most = rest.len().min(PIECE);
        let cut = rest[..most].rfind_byte(b'/').map_or(rest.len(), |slash| slash + 1);
        held = held.dir(bstr_path(&rest[..cut]))?;
        rest = &rest[cut..];
    }
    Ok(held)
}

//! Reflogs, read by handle and up to a bound.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Kind, Refused, Stamp};
use crate::git::kinds::listed;
use crate::git::open::{Unreadable, read_optional};
use crate::vantage::paths::escape;

/// Most bytes of a reflog that are read; git itself expires entries after 90 days.
const REFLOG_FILE: u64 = 64 << 20;

/// One line: from where, to where, when and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub old: ObjectId,
    pub new: ObjectId,
    pub at: Stamp,
    pub message: BString,
}

/// The lines of the reflog `path` below `dir`, oldest first; none if there is no such file.
///
/// # Errors
/// The file can't be read, or has a line that is none of git's.
pub fn read(dir: &Dir, path: impl AsRef<std::path::Path>) -> Result<Vec<Line>, Unreadable> {
    let path = path.as_ref();
    let bytes = read_optional(dir, path, REFLOG_FILE)?.unwrap_or_default();
    parse(&bytes).map_err(|why| Unreadable(format!("{}/{}: {why}", dir.path(), path.display())))
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Line>, String> {
    gix::refs::file::log::iter::forward(bytes)
        .map(|line| {
            let line = line.map_err(|e| e.to_string())?;
            let seconds = line.signature.time().map_or(0, |t| t.seconds);
            Ok(Line {
                old: line.previous_oid(),
                new: line.new_oid(),
                at: Stamp { seconds, nanos: 0 },
                message: line.message.into(),
            })
        })
        .collect()
}

/// The lines of all reflogs below the directory `path` of `dir`: HEAD's and those of per-worktree refs.
///
/// # Errors
/// A directory or a file of it can't be read.
pub fn all_below(dir: &Dir, path: impl AsRef<std::path::Path>) -> Result<Vec<Line>, Unreadable> {
    const DEEPEST: usize = 64;
    let path = path.as_ref();
    let mut lines = Vec::new();
    let mut pending = match dir.dir(path) {
        Ok(dir) => vec![(dir, 0)],
        Err(Refused::Absent) => Vec::new(),
        Err(refused) => {
            let shown = escape(path.as_os_str().as_bytes());
            return Err(Unreadable(format!("{}/{shown}: {refused}", dir.path())));
        }
    };
    while let Some((dir, depth)) = pending.pop() {
        for (name, kind) in listed(&dir)? {
            let path = OsStr::from_bytes(&name);
            match (kind, dir.dir(path)) {
                (Kind::Directory, Ok(below)) if depth < DEEPEST => pending.push((below, depth + 1)),
                (Kind::Directory, Ok(below)) => {
                    return Err(Unreadable(format!("{}: logs are nested too deep", below.path())));
                }
                (Kind::Directory, Err(refused)) => {
                    return Err(Unreadable(format!("{}/{}: {refused}", dir.path(), escape(&name))));
                }
                _ => lines.extend(read(&dir, path)?),
            }
        }
    }
    Ok(lines)
}

/// Whether a line is of a command that makes a commit on the branch: a fast-forward, a reset, or a rebase that finds
/// nothing to apply makes none. What a rebase applies was committed before.
pub fn makes_commit(line: &Line) -> bool {
    const MAKERS: [&[u8]; 4] = [b"commit", b"cherry-pick:", b"revert:", b"am:"];
    let message = line.message.as_slice();
    // A fast-forward says so, and perhaps goes on (`builtin/merge.c`): only what a merge commit says counts.
    let merged = [": Merge made by", ": In-index merge"].iter().any(|how| message.contains_str(how));
    let merged = merged && (message.starts_with(b"merge ") || message.starts_with(b"pull"));
    let forwarded = message == b"cherry-pick: fast-forward";
    line.old != line.new && !forwarded && (merged || MAKERS.iter().any(|m| message.starts_with(m)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_commits_counts() {
        let line = |message: &str| Line {
            old: ObjectId::null(gix::hash::Kind::Sha1),
            new: ObjectId::empty_tree(gix::hash::Kind::Sha1),
            at: Stamp::default(),
            message: message.into(),
        };
        for made in [
            "commit: x",
            "commit (amend): x",
            "commit (initial): x",
            "cherry-pick: x",
            "revert: x",
            "am: x",
            "merge a: Merge made by the 'ort' strategy.",
            "pull origin main: Merge made by the 'ort' strategy.",
        ] {
            assert!(makes_commit(&line(made)), "{made}");
        }
        for not in [
            "branch: Created from main",
            "reset: moving to HEAD~1",
            "merge origin/main: Fast-forward",
            "merge origin/main: Fast-forward (no commit created; -m option ignored)",
            "pull: Fast-forward",
            "rebase (finish): refs/heads/x onto 0123",
            "rebase finished: refs/heads/x onto 0123",
            "cherry-pick: fast-forward",
        ] {
            assert!(!makes_commit(&line(not)), "{not}");
        }
    }
}

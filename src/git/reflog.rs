//! Reflogs, read by handle and up to a bound.

use bstr::BString;
use gix::ObjectId;

use crate::beneath::{Dir, Stamp};
use crate::git::open::{Unreadable, read_optional};

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
    let Some(bytes) = read_optional(dir, path, REFLOG_FILE)? else { return Ok(Vec::new()) };
    gix::refs::file::log::iter::forward(&bytes)
        .map(|line| {
            let line = line.map_err(|e| Unreadable(format!("{}/{}: {e}", dir.path(), path.display())))?;
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

/// Whether a line is of a command that makes commits on the branch: a fast-forward or a reset makes none.
pub fn makes_commit(line: &Line) -> bool {
    const MAKERS: [&[u8]; 5] = [b"commit", b"cherry-pick", b"revert", b"am:", b"rebase"];
    let merged = line.message.starts_with(b"merge ") && !line.message.ends_with(b"Fast-forward");
    line.old != line.new && (merged || MAKERS.iter().any(|m| line.message.starts_with(m)))
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
            "cherry-pick: x",
            "rebase (finish): x",
            "merge a: Merge made by",
        ] {
            assert!(makes_commit(&line(made)), "{made}");
        }
        for not in [
            "branch: Created from main",
            "reset: moving to HEAD~1",
            "merge origin/main: Fast-forward",
            "pull: x",
        ] {
            assert!(!makes_commit(&line(not)), "{not}");
        }
    }
}

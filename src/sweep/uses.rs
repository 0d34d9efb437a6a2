//! Whether a branch is in use: what git itself asks before it deletes one, and what it should ask.

use bstr::{BStr, BString, ByteSlice};

use crate::beneath::{Dir, Refused};
use crate::sweep::atomic::bstr_path;
use crate::sweep::refs::{self, Value};
use crate::vantage::paths::escape;

/// The most that is read of one file; `update-refs` has three lines for each branch of a stack.
const LIMIT: u64 = 4 << 20;

/// Files of an operation that name the branch which it will come back to, or change.
const OPERATIONS: &[&str] =
    &["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START", "rebase-merge/update-refs"];

/// Fails, naming the user, if the main worktree or an entry uses `branch`, and also if one of them can't be read: what it
/// uses is unknown then.
pub fn unused(common: &Dir, branch: &BStr) -> Result<(), String> {
    unused_by(common, common, "the main worktree", branch)?;
    let worktrees = match common.dir("worktrees") {
        Ok(worktrees) => worktrees,
        Err(Refused::Absent) => return Ok(()),
        Err(refused) => return Err(format!("worktrees: {refused}")),
    };
    for name in worktrees.names().map_err(|r| format!("worktrees: {r}"))? {
        let who = format!("worktree {}", escape(&name));
        let entry = worktrees.dir(bstr_path(&name)).map_err(|refused| format!("{who}: {refused}"))?;
        unused_by(common, &entry, &who, branch)?;
    }
    Ok(())
}

/// The same for one of them, whose HEAD and operations lie in `git_dir`.
fn unused_by(common: &Dir, git_dir: &Dir, who: &str, branch: &BStr) -> Result<(), String> {
    let head = git_dir.read("HEAD", LIMIT).map_err(|refused| format!("{who}: HEAD: {refused}"))?;
    let head = refs::parse("HEAD".into(), &head).map_err(|error| format!("{who}: {error}"))?;
    if let Value::Symbolic(target) = head {
        // By way of another symbolic reference it is in use as well.
        let way = if target.starts_with(b"refs/") {
            refs::resolve(common, target.as_bstr()).map_err(|error| format!("{who}: HEAD: {error}"))?.0
        } else {
            vec![target]
        };
        if way.iter().any(|name| name == branch) {
            return Err(format!("{who} has it checked out"));
        }
    }
    for file in OPERATIONS {
        let bytes = match git_dir.read(file, LIMIT) {
            Ok(bytes) => bytes,
            Err(Refused::Absent) => continue,
            Err(refused) => return Err(format!("{who}: {file}: {refused}")),
        };
        let short = branch.strip_prefix(b"refs/heads/").unwrap_or(branch);
        if bytes.lines().map(BString::from).any(|line| line == branch || line.trim() == short) {
            return Err(format!("{who} needs it ({file})"));
        }
    }
    Ok(())
}

//! What is where in a common directory.

use bstr::{BStr, ByteSlice};

use crate::vantage::paths::LocalPath;

/// Names under which git, or a tool that stores its data beside git's, keeps a directory in a common directory. Worktrees
/// of a bare clone may lie there under any other name.
const DIRECTORIES: &[&str] = &[
    "annex",
    "branches",
    "filter-repo",
    "hooks",
    "info",
    "lfs",
    "logs",
    "modules",
    "objects",
    "rebase-apply",
    "rebase-merge",
    "refs",
    "reftable",
    "remotes",
    "rr-cache",
    "sequencer",
    "svn",
    "treesweep",
    "worktrees",
];

/// Whether `name` in a common directory is git's own, so that no worktree is looked for there.
pub fn is_gits_own(name: &[u8]) -> bool {
    DIRECTORIES.iter().any(|own| own.as_bytes() == name)
}

/// Whether the checkout at `path` may lie in the common directory `common`: beside git's own directories in a bare clone,
/// and not in a `.git`, where nobody works.
pub fn may_hold(common: &LocalPath, path: &LocalPath) -> bool {
    let first = path.below(common).and_then(|below| below.split_str("/").next().filter(|n| !n.is_empty()));
    common.file_name() != Some(BStr::new(".git")) && first.is_some_and(|name| !is_gits_own(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_clone_holds_checkouts_beside_what_is_gits() {
        let at = |path: &str| LocalPath::new(path).unwrap();
        for (common, path, may) in [
            ("/s/app.git", "/s/app.git/fix", true),
            ("/s/app.git", "/s/app.git/trees/fix", true),
            ("/s/app.git", "/s/app.git/worktrees/fix", false),
            ("/s/app.git", "/s/app.git/objects", false),
            ("/s/app.git", "/s/app.git", false),
            ("/s/app/.git", "/s/app/.git/fix", false),
            ("/s/app.git", "/s/other", false),
        ] {
            assert_eq!(may_hold(&at(common), &at(path)), may, "{path}");
        }
    }
}

//! What is where in a common directory.

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

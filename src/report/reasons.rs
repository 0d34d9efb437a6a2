//! What each reason code means, and what a person can do about it. `docs/reasons.md` says the same.

use crate::judge::reason::Code;

/// A code in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    pub means: &'static str,
    /// What to do.
    pub act: &'static str,
}

/// One list for both, so that no code can lack its meaning.
macro_rules! meanings {
    ($($code:ident: $means:literal $act:literal)*) => {
        /// Every code, in the order of the documentation.
        pub const ALL: &[Code] = &[$(Code::$code),*];

        /// What `code` means.
        pub fn of(code: Code) -> Meaning {
            match code {
                $(Code::$code => Meaning { means: $means, act: $act },)*
            }
        }
    };
}

meanings! {
    MainWorktree:
        "It is the clone's main worktree, contains it, or contains a git directory."
        "Nothing: such a directory is never removed."
    CurrentWorktree:
        "treesweep, or a process that started it, runs inside."
        "Run it from another directory."
    Protected:
        "A `protect` glob matches its name, its branch or its path."
        "Remove the glob from where the detail says it stands, if it should go."
    Unowned:
        "Nothing records that it was made to be reclaimed: the ready marker is missing, or the branch does not fit a template."
        "`treesweep setup` enrols it, `treesweep drop` removes it, and `branch-templates` says how branches are named."
    OutsideRoot:
        "A part of it, or of its clone, lies outside every root."
        "Name the root that the detail says, too."
    Locked:
        "It is locked, as by `git worktree lock`; the lock of `treesweep guard --lock` does not count."
        "`git worktree unlock` it where its path exists, once whoever locked it is done."
    LiveContainer:
        "A container that is not stopped uses it, or mounts it and could not be looked into."
        "Stop the container, or remove it."
    ContainerBound:
        "A stopped container mounts it, and could not start any more without it."
        "Remove the container, if it is not needed."
    LivenessUnknown:
        "Whether a container uses it could not be found out."
        "Start the engine, or give access to its socket; `--engine none` says that there is none."
    ProcessInside:
        "A process has its working directory, its root or an open directory inside."
        "End the process, or let it leave."
    RecentlyActive:
        "Something happened in it within the time of `--idle`."
        "Wait, or choose a shorter `--idle`."
    Unstarted:
        "Its branch has no commit of its own yet, and it is younger than `--unstarted-after`."
        "Work in it, wait, or `treesweep drop` it."
    ResourcesElsewhere:
        "Resources that were made for it can only be destroyed in another place."
        "Run treesweep there: in the container, or on the host."
    Dirty:
        "It has changes that are not committed: staged, modified, deleted, conflicted or untracked files."
        "Commit, stash or discard them."
    HiddenChanges:
        "Files that git was told not to look at (skip-worktree, assume-unchanged) differ."
        "`git update-index --no-skip-worktree --no-assume-unchanged` them, then look."
    OperationInProgress:
        "A merge (of notes, too), rebase, cherry-pick, revert, bisect or am is not finished, or the index is locked."
        "Finish or abort it; remove an `index.lock` that no process holds."
    NestedRepository:
        "A repository of its own lies inside, perhaps in an ignored directory."
        "Move it away, or remove it yourself."
    NestedKept:
        "A worktree inside is kept, so what is around it is kept too."
        "Look at why the one inside is kept."
    SubmoduleUnpushed:
        "A submodule has changes, or commits that no remote has, on branches, in stashes or in its reflogs."
        "Push them, or discard them; `git reflog expire --expire=now --all` in it drops what only reflogs name."
    PreciousIgnored:
        "An ignored file matches `precious`, and the main worktree has no copy of it."
        "Copy it to the main worktree, remove it, or change `precious`."
    UnreachableCommits:
        "A detached HEAD, or a ref of this worktree alone, holds commits that no shared ref reaches."
        "Put a branch or a tag on them, if they matter."
    NotLanded:
        "The trunk does not have its work."
        "Merge it; or `treesweep drop --force`, which keeps the branch."
    TrunkUnknown:
        "It is not known which branch work lands on."
        "Name it with `--trunk`, or `trunk` in the config."
    HeadMissing:
        "Its HEAD names a branch or a commit that does not exist."
        "Look at it with git, where it can be used."
    Unreadable:
        "Something that had to be read could not be, not within `history-limit`, or is of a kind that is not understood."
        "Repair what the detail names, or give access to it."
    Ambiguous:
        "Several registrations, checkouts or clones could be meant."
        "Say with `--map` how the container's directory is called here."
    LinksDisagree:
        "The registration and the directory do not name each other."
        "Run `git worktree repair` where both paths exist, or move what does not belong there."
    BrokenLink:
        "The directory has no `.git`, or one that can't be read."
        "Restore its `.git` file, or remove the directory yourself."
    OutsideVantage:
        "Its path means something only in another place: a container, a volume, another machine."
        "Run treesweep there, or say with `--map` where that is on this host."
    AbsenceUnproven:
        "Its directory seems to be gone, but that may be this place's view: a disk that is not mounted, another spelling."
        "If it is gone indeed, `treesweep prune --stale=NAME` forgets it."
    PathEscapes:
        "A component of its path below the root is a symlink."
        "Name the directory that the symlink leads to as a root, too."
    Interrupted:
        "A removal was interrupted, and there is no record of it."
        "`treesweep drop PATH` completes it."
    MountInside:
        "Something is mounted inside, here or in a container."
        "Unmount it, or stop the container."
    NotDeletable:
        "Files in it can't be deleted by this user, or at all: another owner's, immutable, on a read-only file system."
        "Run the command that the detail names."
    Referenced:
        "The clone's own configuration points into it, or another clone borrows objects from it."
        "Change the setting that the detail names; run `git repack -a -d` in who borrows, and remove its `objects/info/alternates`."
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOC: &str = include_str!("../../docs/reasons.md");

    #[test]
    fn the_documentation_has_every_code_with_its_meaning() {
        for code in ALL {
            let Meaning { means, act } = of(*code);
            let row = format!("| `{code}` | {means} | {act} |");
            assert!(DOC.contains(&row), "docs/reasons.md lacks:\n{row}");
        }
        assert_eq!(DOC.lines().filter(|l| l.starts_with("| `")).count(), ALL.len());
    }

    #[test]
    fn the_documentation_says_what_force_overrides() {
        let listed = DOC.split("## What `drop --force` overrides").nth(1).unwrap();
        for code in ALL {
            assert_eq!(listed.contains(&format!("`{code}`")), code.yields_to_force(), "{code}");
        }
    }

    #[test]
    fn meanings_are_sentences() {
        for code in ALL {
            let Meaning { means, act } = of(*code);
            assert!(means.ends_with('.') && act.ends_with('.'), "{code}");
        }
    }
}

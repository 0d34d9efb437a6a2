//! The arguments of the commands that look back, and bring back.

use std::ffi::OsString;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct LogArgs {
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    pub(super) roots: Vec<OsString>,
    /// Drop records that are older than `retired.keep` of the config (90d), with what holds their commits
    #[arg(long)]
    pub(super) expire: bool,
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct RestoreArgs {
    /// The worktree's name, or the id of its record as `log` shows it, or the beginning of the id
    #[arg(value_name = "NAME|ID", add = ArgValueCompleter::new(complete::removed))]
    pub(super) what: OsString,
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    pub(super) roots: Vec<OsString>,
    /// Where it is to be [default: where it was]
    #[arg(long, value_name = "PATH")]
    pub(super) at: Option<OsString>,
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct RescueArgs {
    /// The worktree's directory, whose registration is gone
    #[arg(value_name = "PATH")]
    pub(super) path: OsString,
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    pub(super) roots: Vec<OsString>,
    /// The branch that it was on [default: as `guard` saw it]
    #[arg(long, value_name = "NAME")]
    pub(super) branch: Option<OsString>,
    /// What whoever made it calls its directory [default: as `guard` saw it, else worked out]
    #[arg(long, value_name = "PATH")]
    pub(super) recorded: Option<OsString>,
}

#[derive(Args, Clone, Debug, Default)]
pub(super) struct GuardArgs {
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    pub(super) roots: Vec<OsString>,
    /// Also lock worktrees whose path means nothing here, which stops `git worktree prune` too
    #[arg(long)]
    pub(super) lock: bool,
    /// Take back what `guard` did to config and locks
    #[arg(long, conflicts_with = "lock")]
    pub(super) undo: bool,
}

pub(super) const RESCUE_EXAMPLES: &str = "\
Examples:
  treesweep rescue .worktrees/fix-login
  treesweep rescue .worktrees/fix-login --branch wt/fix-login

No file in the directory is changed. Without --branch and without a snapshot of `guard` it lists the branches that \
the files are nearest to, and does nothing.";

pub(super) const GUARD_EXAMPLES: &str = "\
Examples:
  treesweep guard                keep what `rescue` needs, stop `git gc`'s prune
  treesweep guard --lock ~/src   stop `git worktree prune` too
  treesweep guard --undo         as it was before

The locks of --lock do not hold worktrees for treesweep.";

pub(super) const RESTORE_EXAMPLES: &str = "\
Examples:
  treesweep restore fix-login
  treesweep restore fix-login --at ~/src/fix-login
  treesweep restore 20260105T101112

What was committed comes back. Files are written as the repository stores them: no filter is run.";

pub(super) const LOG_EXAMPLES: &str = "\
Examples:
  treesweep log                   what was removed from this clone
  treesweep log ~/src             the same for every clone below a directory
  treesweep log --json ~/src | jq '.clones[].records[].id'
  treesweep log --expire ~/src    drop records that are older than 90 days

`prune` never drops a record.";

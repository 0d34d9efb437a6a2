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

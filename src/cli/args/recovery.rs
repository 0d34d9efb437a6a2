//! The arguments of the commands that look back, and bring back.

use std::ffi::OsString;

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct LogArgs {
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    pub(super) roots: Vec<OsString>,
    /// Drop records that are older than `retired.keep` of the config (90d), with what holds their commits
    #[arg(long)]
    pub(super) expire: bool,
}

pub(super) const LOG_EXAMPLES: &str = "\
Examples:
  treesweep log                   what was removed from this clone
  treesweep log ~/src             the same for every clone below a directory
  treesweep log --json ~/src | jq '.clones[].records[].id'
  treesweep log --expire ~/src    drop records that are older than 90 days

`prune` never drops a record.";

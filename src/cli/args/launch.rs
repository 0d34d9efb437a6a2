//! The arguments of the command that launches.

use std::ffi::OsString;

use clap::Args;

#[derive(Args, Clone, Debug, Default)]
pub(super) struct UpArgs {
    /// The workspace folder [default: the current directory]
    #[arg(value_name = "PATH")]
    pub(super) folder: Option<OsString>,
    /// Sweep first, without asking, as `prune --yes` does there
    #[arg(long)]
    pub(super) prune: bool,
    /// Stop sweeping after this long [default: 10s]
    #[arg(long, value_name = "DURATION", requires = "prune")]
    pub(super) time_limit: Option<OsString>,
    /// What `devcontainer up` is given besides
    #[arg(last = true, value_name = "ARGS")]
    pub(super) arguments: Vec<OsString>,
}

pub(super) const UP_EXAMPLES: &str = "\
Examples:
  treesweep up --prune
  treesweep up --prune ~/src/app -- --remove-existing-container
  treesweep up --prune --time-limit 3s .

It becomes `devcontainer up --workspace-folder PATH ARGS`, with its output and exit
code. A sweep that fails or takes too long stops no launch.";

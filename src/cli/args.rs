//! The command line as it is typed. What it means, with every value parsed and the global flags of both places
//! merged, is an [`Invocation`].

mod globals;
mod launch;
mod recovery;
mod request;

use std::ffi::OsString;

use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::complete;

use launch::UpArgs;
use recovery::{GuardArgs, LogArgs, RescueArgs, RestoreArgs};

pub use globals::Globals;
pub use request::{Drop, Guard, Invocation, Prune, Request, Rescue, Restore, Setup, Subject, Up};

/// Reclaims git worktrees that dev containers left behind, and nothing else.
///
/// Without a command it shows the plan: for each worktree what would be done, and why. Nothing is changed.
#[derive(Parser, Clone, Debug)]
#[command(
    name = "treesweep",
    bin_name = "treesweep",
    version,
    args_override_self = true,
    infer_long_args = false
)]
#[command(after_help = EXAMPLES, subcommand_value_name = "COMMAND")]
pub struct Cli {
    #[command(flatten)]
    plan: PlanArgs,
    /// The same as the command `prune`
    #[arg(long, conflicts_with = "explain")]
    prune: bool,
    #[command(flatten)]
    pruning: PruneOptions,
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Option<Command>,
}

const EXAMPLES: &str = "\
Examples:
  treesweep                       what would go from this clone, and why
  treesweep ~/src                 the same for every clone below a directory
  treesweep --explain fix-login   every question asked of one worktree
  treesweep prune ~/src           remove what is proven dead, after asking
  treesweep --prune -y            from a script, where nobody answers
  treesweep up --prune            sweep, then launch the dev container

`treesweep COMMAND --help` has examples of each command.";

#[derive(Subcommand, Clone, Debug)]
enum Command {
    /// Show what would be done, and why; change nothing (the default)
    #[command(after_help = PLAN_EXAMPLES)]
    Plan(With<PlanArgs>),
    /// Remove what is proven dead, after asking
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune(With<PruneArgs>),
    /// Bring a dev container up, after a sweep with --prune
    #[command(after_help = launch::UP_EXAMPLES)]
    Up(With<UpArgs>),
    /// Enrol worktrees, to be reclaimed once their work has landed
    #[command(after_help = SETUP_EXAMPLES)]
    Setup(With<SetupArgs>),
    /// Remove exactly the worktrees that you name
    #[command(after_help = DROP_EXAMPLES)]
    Drop(With<DropArgs>),
    /// List what was removed, and what is kept of it
    #[command(after_help = recovery::LOG_EXAMPLES)]
    Log(With<LogArgs>),
    /// Bring back a worktree that was removed
    #[command(after_help = recovery::RESTORE_EXAMPLES)]
    Restore(With<RestoreArgs>),
    /// Register a worktree again whose registration was pruned
    #[command(after_help = recovery::RESCUE_EXAMPLES)]
    Rescue(With<RescueArgs>),
    /// Protect containers' worktrees from git's own prune
    #[command(after_help = recovery::GUARD_EXAMPLES)]
    Guard(With<GuardArgs>),
    /// Print a shell's completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Write the man pages into a directory, for packages
    #[command(hide = true)]
    Man(ManArgs),
}

/// The names of the commands, for did-you-mean.
const COMMANDS: &[&str] =
    &["plan", "prune", "up", "setup", "drop", "log", "restore", "rescue", "guard", "completions", "help"];

/// A command's own arguments and the global flags, which it takes as well.
#[derive(Args, Clone, Debug)]
struct With<T: Args> {
    #[command(flatten)]
    own: T,
    #[command(flatten)]
    globals: Globals,
}

#[derive(Args, Clone, Debug, Default)]
struct PlanArgs {
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    roots: Vec<OsString>,
    /// Show every question asked of the worktree NAME, and its evidence
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::worktrees))]
    explain: Option<OsString>,
}

const PLAN_EXAMPLES: &str = "\
Examples:
  treesweep plan ~/src ~/work
  treesweep plan --explain fix-login
  treesweep plan --json ~/src | jq '.totals'
  treesweep plan --map /workspaces/app=\"$HOME/src/app\" ~/src/app";

#[derive(Args, Clone, Debug, Default)]
struct PruneArgs {
    /// Where to look for clones [default: the clone around us, else `roots` of the config]
    #[arg(value_name = "ROOT")]
    roots: Vec<OsString>,
    #[command(flatten)]
    options: PruneOptions,
}

#[derive(Args, Clone, Debug, Default)]
struct PruneOptions {
    /// Remove what is automatic without asking
    #[arg(short, long)]
    yes: bool,
    /// Also forget the registration NAME, whose directory seems to be gone (repeatable, exact)
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::worktrees))]
    stale: Vec<OsString>,
    /// Also remove the checkout PATH, whose registration is gone (repeatable, exact)
    #[arg(long, value_name = "PATH")]
    orphan: Vec<OsString>,
    /// Only what nobody has touched for this long, like 14d
    #[arg(long, value_name = "DURATION")]
    older_than: Option<OsString>,
    /// The largest and oldest first, and only until so much is free, like 20G or 15%; exit code 1 if that fails
    #[arg(long, value_name = "SIZE|PERCENT", conflicts_with_all = ["stale", "orphan"])]
    min_free: Option<OsString>,
    /// Write what came of it to FILE, for the textfile collector of the node exporter
    #[arg(long, value_name = "FILE")]
    metrics: Option<OsString>,
    /// Stop after this long; the next run finishes what was begun
    #[arg(long, value_name = "DURATION")]
    time_limit: Option<OsString>,
}

const PRUNE_EXAMPLES: &str = "\
Examples:
  treesweep prune ~/src                   show the plan, ask, remove
  treesweep prune -y --time-limit 10s .   in a launch script
  treesweep prune -y --json ~/src         on a CI runner
  treesweep prune --stale=old-fix         also forget what seems to be gone
  treesweep prune -y --min-free 15% /srv  only as much as is needed

Without a terminal and without --yes nothing is changed, and the exit code is 2.";

#[derive(Args, Clone, Debug, Default)]
struct SetupArgs {
    /// Worktrees to enrol: a name, or a path
    #[arg(value_name = "WORKTREE", required_unless_present = "matching", add = ArgValueCompleter::new(complete::worktrees_or_paths))]
    worktrees: Vec<OsString>,
    /// Enrol all whose name matches, after asking on a terminal
    #[arg(long, value_name = "GLOB", conflicts_with = "worktrees")]
    matching: Option<OsString>,
    #[command(flatten)]
    places: Places,
}

const SETUP_EXAMPLES: &str = "\
Examples:
  treesweep setup fix-login
  treesweep setup .worktrees/fix-login
  treesweep setup --matching 'agent-*'

An enrolled worktree is owned if its branch also fits a --branch-template.";

#[derive(Args, Clone, Debug, Default)]
struct DropArgs {
    /// Worktrees to remove: a name, the recorded path, or the path here [default: choose on a terminal]
    #[arg(value_name = "WORKTREE", add = ArgValueCompleter::new(complete::worktrees_or_paths))]
    worktrees: Vec<OsString>,
    /// Remove although work would be lost: changes, commits that are not landed, precious files
    #[arg(long, requires = "worktrees")]
    force: bool,
    /// Do not ask
    #[arg(short, long, requires = "worktrees")]
    yes: bool,
    #[command(flatten)]
    places: Places,
}

const DROP_EXAMPLES: &str = "\
Examples:
  treesweep drop spike
  treesweep drop ~/src/app-spike
  treesweep drop                  choose from a list
  treesweep drop --force spike    show what would be lost, ask for the name

A branch that has not landed always stays.";

#[derive(Args, Clone, Debug, Default)]
struct CompletionsArgs {
    #[arg(value_name = "SHELL", value_parser = PossibleValuesParser::new(complete::SHELLS))]
    shell: String,
}

#[derive(Args, Clone, Debug, Default)]
struct ManArgs {
    #[arg(value_name = "DIR")]
    dir: OsString,
}

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  source <(treesweep completions bash)       # in ~/.bashrc
  source <(treesweep completions zsh)        # in ~/.zshrc, after compinit
  treesweep completions fish | source        # in ~/.config/fish/config.fish

Names of worktrees are completed too.";

#[derive(Args, Clone, Debug, Default)]
struct Places {
    /// Where to look for clones (repeatable) [default: as for `plan`]
    #[arg(long, value_name = "DIR")]
    root: Vec<OsString>,
}

/// The definition of the command line, for parsing, man pages and completions.
pub fn command() -> clap::Command {
    // Beside `--prune` its options stand too; without it they have no meaning, and in the help they would be noise.
    ["yes", "stale", "orphan", "older_than", "min_free", "metrics", "time_limit"]
        .into_iter()
        .fold(Cli::command(), |command, id| command.mut_arg(id, |arg| arg.hide(true).requires("prune")))
}

/// The same for man pages, which leave out what is hidden from a short help.
pub fn manual() -> clap::Command {
    fn whole(command: clap::Command) -> clap::Command {
        command.mut_args(|arg| arg.hide_short_help(false)).mut_subcommands(whole)
    }
    whole(command())
}

/// Reads a command line, the program's name first. `--help` and `--version` are errors of their kinds.
pub fn parse<I, T>(line: I) -> Result<Cli, clap::Error>
where
    I: IntoIterator<Item = T>,
    T: Into<OsString> + Clone,
{
    let mut command = command();
    let matches = command.try_get_matches_from_mut(line)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
    if cli.prune && cli.command.is_some() {
        return Err(error(
            ErrorKind::ArgumentConflict,
            "--prune stands for the command `prune`: leave one of them out",
        ));
    }
    Ok(cli)
}

fn error(kind: ErrorKind, message: impl std::fmt::Display) -> clap::Error {
    command().error(kind, message)
}

#[cfg(test)]
mod tests;

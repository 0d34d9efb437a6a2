//! What a shell completes: the words of the command line, and names of worktrees. It only reads, and asks no engine.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::{Duration, Instant};

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::env::{CompleteEnv, Shells};

use crate::cli::args;
use crate::config::home;
use crate::session::Session;
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::survey::discover::CloneSite;
use crate::sweep::records;
use crate::vantage::paths::escape;

/// The shells that there are completions for.
pub const SHELLS: [&str; 3] = ["bash", "fish", "zsh"];
/// With which a shell's function asks us.
const VARIABLE: &str = "TREESWEEP_COMPLETE";
const PROGRAM: &str = "treesweep";
/// Somebody has pressed a key and waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// Answers a shell's function, if one asks.
pub fn answered(line: &[OsString], cwd: &Path) -> Result<bool, clap::Error> {
    let env = CompleteEnv::with_factory(args::command).var(VARIABLE).bin(PROGRAM).completer(PROGRAM);
    env.try_complete(line.iter().cloned(), Some(cwd))
}

/// The function for one of [`SHELLS`].
pub fn script(shell: &str) -> std::io::Result<String> {
    let mut script = Vec::new();
    let known = Shells::builtins();
    let shell = known.completer(shell).ok_or(std::io::ErrorKind::Unsupported)?;
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    String::from_utf8(script).map_err(std::io::Error::other)
}

/// Names of worktrees around the current directory.
pub fn worktrees(current: &OsStr) -> Vec<CompletionCandidate> {
    begun_with(current, around(|site| site.common.dir("worktrees").ok()?.names().ok()))
}

/// The same, and paths where no name begins like that.
pub fn worktrees_or_paths(current: &OsStr) -> Vec<CompletionCandidate> {
    match worktrees(current) {
        names if names.is_empty() => PathCompleter::dir().complete(current),
        names => names,
    }
}

/// Names of worktrees that were removed, and could come back.
pub fn removed(current: &OsStr) -> Vec<CompletionCandidate> {
    begun_with(
        current,
        around(|site| {
            let state = StateDir::open_existing(&StateDir::default_path().ok()?).ok()??;
            let own = state.existing_clone_state(site.common_id).ok()??;
            let (records, _) = records::read_all(&own).ok()?;
            Some(records.into_iter().map(|r| r.name.0.into()).collect())
        }),
    )
}

/// What each clone around the current directory has. A name that a terminal can't show can't be typed either.
fn around(names: impl Fn(&CloneSite) -> Option<Vec<Vec<u8>>>) -> Option<BTreeSet<String>> {
    let cwd = std::env::current_dir().ok()?;
    let invocation = args::parse([PROGRAM]).ok()?.resolve(&cwd, home().as_deref()).ok()?;
    let mut session = Session::begin(&invocation, &[]).ok()?;
    session.stop = Stop::at(Instant::now() + PATIENCE);
    let field = session.field();
    let all = field.clones.iter().filter(|site| site.in_scope).filter_map(names).flatten();
    Some(all.filter_map(|name| String::from_utf8(name).ok()).filter(|n| escape(n.as_bytes()) == *n).collect())
}

fn begun_with(current: &OsStr, names: Option<BTreeSet<String>>) -> Vec<CompletionCandidate> {
    let names = names.unwrap_or_default().into_iter();
    names
        .filter(|n| n.as_bytes().starts_with(current.as_encoded_bytes()))
        .map(CompletionCandidate::new)
        .collect()
}

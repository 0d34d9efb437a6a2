//! The command line as it is meant.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::BString;
use clap::error::ErrorKind;

use super::globals::{flag, one, text};
use super::launch::UpArgs;
use super::recovery::{GuardArgs, LogArgs, RescueArgs, RestoreArgs};
use super::{
    COMMANDS, Cli, Command, CompletionsArgs, DropArgs, Globals, ManArgs, PlanArgs, PruneOptions, SetupArgs,
    error,
};
use crate::config::amount::Amount;
use crate::config::nearest::nearest;
use crate::config::value::{BadValue, duration};
use crate::config::{Layer, Origin, Pattern, Setting};
use crate::report::shell::CommandLine;
use crate::vantage::paths::{EntryName, escape};

/// One run: what is asked, of what, and how the answer is to look.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub request: Request,
    /// The layer of the command line: roots, too.
    pub flags: Layer,
    pub json: bool,
    /// The document is the last of many lines.
    pub json_lines: bool,
    pub quiet: bool,
    /// The directory that relative paths start from, and that a run without roots looks around: absolute.
    pub cwd: PathBuf,
    /// For hints: what to type again.
    pub again: CommandLine,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    Plan {
        explain: Option<BString>,
    },
    Prune(Prune),
    Setup(Setup),
    Drop(Drop),
    /// `expire`: drop the old ones.
    Log {
        expire: bool,
    },
    Restore(Restore),
    Rescue(Rescue),
    Guard(Guard),
    Up(Up),
    Completions {
        shell: String,
    },
    Man {
        dir: PathBuf,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rescue {
    /// Absolute, `..` and symlinks not resolved.
    pub path: PathBuf,
    /// As typed: a short name, or a full one.
    pub branch: Option<BString>,
    pub recorded: Option<BString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// `lock`: worktrees of another vantage, too.
    Protect {
        lock: bool,
    },
    Undo,
}

/// A launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Up {
    /// Sweep first.
    pub prune: bool,
    /// The workspace folder: absolute.
    pub folder: PathBuf,
    /// For `devcontainer up`.
    pub arguments: Vec<OsString>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restore {
    /// A name, or the beginning of a record's id.
    pub what: BString,
    /// Absolute, `..` and symlinks not resolved.
    pub at: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prune {
    pub yes: bool,
    pub stale: Vec<EntryName>,
    /// Absolute.
    pub orphans: Vec<PathBuf>,
    /// What was touched since is kept.
    pub older_than: Option<Duration>,
    pub min_free: Option<Amount>,
    /// Absolute.
    pub metrics: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setup {
    Exactly(Vec<Subject>),
    /// All whose name matches; asks on a terminal.
    Matching(Pattern),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drop {
    /// Empty: a person picks on a terminal.
    pub worktrees: Vec<Subject>,
    pub force: bool,
    pub yes: bool,
}

/// A worktree as a person names it: by its name, its recorded path or its path here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub typed: BString,
    /// `typed` as a path here: absolute, `..` and symlinks not resolved.
    pub local: PathBuf,
}

impl Cli {
    /// What the line means for a process in the directory `cwd`. Looks whether the roots are there, since a mistyped
    /// command would else be taken for one.
    pub fn resolve(self, cwd: &Path, home: Option<&Path>) -> Result<Invocation, clap::Error> {
        let (top, command) = (self.plan, self.command);
        let from_top = |globals| Parts { globals, roots: top.roots.clone(), limit: None };
        let bare = command.is_none();
        let (asked, parts) = match command {
            None if self.prune => {
                let limit = self.pruning.time_limit.clone();
                (Asked::Prune(self.pruning), Parts { limit, ..from_top(self.globals) })
            }
            None => (Asked::Plan(PlanArgs { roots: Vec::new(), ..top.clone() }), from_top(self.globals)),
            Some(_) if !top.roots.is_empty() || top.explain.is_some() => {
                return Err(error(ErrorKind::ArgumentConflict, "roots and --explain go after the command"));
            }
            Some(command) => command.split(self.globals),
        };
        if parts.globals.json() && matches!(asked, Asked::Up(_)) {
            let why = "--json: standard output is the dev container CLI's, which prints JSON itself";
            return Err(error(ErrorKind::ArgumentConflict, why));
        }
        let cwd = directory(cwd, parts.globals.directory())?;
        let roots = roots(&parts.roots, &cwd, bare)?;
        let mut flags = parts.globals.layer(home)?;
        flags.roots = roots;
        flags.time_limit = one("--time-limit", &parts.limit, |t| duration(text(t)?))?;
        Ok(Invocation {
            request: asked.request(&cwd)?,
            flags,
            json: parts.globals.json(),
            json_lines: parts.globals.json_lines(),
            quiet: parts.globals.quiet(),
            cwd,
            again: CommandLine { flags: parts.globals.again(), roots: parts.roots },
        })
    }
}

/// A command's own arguments, without what all commands share.
enum Asked {
    Plan(PlanArgs),
    Prune(PruneOptions),
    Setup(SetupArgs),
    Drop(DropArgs),
    Log(LogArgs),
    Restore(RestoreArgs),
    Rescue(RescueArgs),
    Guard(GuardArgs),
    Up(UpArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// What all commands share.
struct Parts {
    globals: Globals,
    roots: Vec<OsString>,
    limit: Option<OsString>,
}

impl Command {
    fn split(self, before: Globals) -> (Asked, Parts) {
        match self {
            Command::Plan(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.roots.clone());
                (Asked::Plan(with.own), Parts { globals, roots, limit: None })
            }
            Command::Prune(with) => {
                let limit = with.own.options.time_limit.clone();
                let parts = Parts { globals: before.merge(with.globals), roots: with.own.roots, limit };
                (Asked::Prune(with.own.options), parts)
            }
            Command::Setup(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.places.root.clone());
                (Asked::Setup(with.own), Parts { globals, roots, limit: None })
            }
            Command::Drop(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.places.root.clone());
                (Asked::Drop(with.own), Parts { globals, roots, limit: None })
            }
            Command::Log(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.roots.clone());
                (Asked::Log(with.own), Parts { globals, roots, limit: None })
            }
            Command::Restore(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.roots.clone());
                (Asked::Restore(with.own), Parts { globals, roots, limit: None })
            }
            Command::Rescue(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.roots.clone());
                (Asked::Rescue(with.own), Parts { globals, roots, limit: None })
            }
            Command::Guard(with) => {
                let (globals, roots) = (before.merge(with.globals), with.own.roots.clone());
                (Asked::Guard(with.own), Parts { globals, roots, limit: None })
            }
            Command::Completions(own) => {
                (Asked::Completions(own), Parts { globals: before, roots: Vec::new(), limit: None })
            }
            Command::Man(own) => (Asked::Man(own), Parts { globals: before, roots: Vec::new(), limit: None }),
            Command::Up(with) => {
                let (globals, limit) = (before.merge(with.globals), with.own.time_limit.clone());
                (Asked::Up(with.own), Parts { globals, roots: Vec::new(), limit })
            }
        }
    }
}

impl Asked {
    fn request(self, cwd: &Path) -> Result<Request, clap::Error> {
        Ok(match self {
            Asked::Plan(args) => Request::Plan { explain: args.explain.map(bytes) },
            Asked::Prune(args) => Request::Prune(Prune {
                yes: args.yes,
                stale: args.stale.into_iter().map(stale).collect::<Result<_, _>>()?,
                orphans: args.orphan.into_iter().map(|p| cwd.join(p)).collect(),
                older_than: value("--older-than", &args.older_than, duration)?,
                min_free: value("--min-free", &args.min_free, Amount::parse)?,
                metrics: args.metrics.map(|file| cwd.join(file)),
            }),
            Asked::Setup(args) => Request::Setup(match args.matching {
                Some(glob) => Setup::Matching(flag("--matching", &glob, |g| Pattern::parse(g, None))?.value),
                None => Setup::Exactly(subjects(args.worktrees, cwd)?),
            }),
            Asked::Drop(args) => Request::Drop(Drop {
                worktrees: subjects(args.worktrees, cwd)?,
                force: args.force,
                yes: args.yes,
            }),
            Asked::Log(args) => Request::Log { expire: args.expire },
            Asked::Restore(args) if args.what.is_empty() => {
                return Err(error(ErrorKind::ValueValidation, "a worktree's name can't be empty"));
            }
            Asked::Restore(args) => {
                Request::Restore(Restore { what: bytes(args.what), at: args.at.map(|at| cwd.join(at)) })
            }
            Asked::Rescue(args) if args.path.is_empty() => {
                return Err(error(ErrorKind::ValueValidation, "a worktree's path can't be empty"));
            }
            Asked::Rescue(args) => Request::Rescue(Rescue {
                path: cwd.join(args.path),
                branch: args.branch.map(bytes),
                recorded: args.recorded.map(bytes),
            }),
            Asked::Guard(args) if args.undo => Request::Guard(Guard::Undo),
            Asked::Guard(args) => Request::Guard(Guard::Protect { lock: args.lock }),
            Asked::Man(args) => Request::Man { dir: cwd.join(args.dir) },
            Asked::Completions(args) => Request::Completions { shell: args.shell },
            Asked::Up(args) => {
                let folder = args.folder.unwrap_or_else(|| ".".into());
                let path = if folder == "." { cwd.to_owned() } else { cwd.join(&folder) };
                is_directory(&path).map_err(|why| missing("PATH", &folder, &why))?;
                Request::Up(Up { prune: args.prune, folder: path, arguments: args.arguments })
            }
        })
    }
}

/// The value of a flag that no layer of settings has.
fn value<T>(
    name: &'static str,
    typed: &Option<OsString>,
    parse: fn(&str) -> Result<T, BadValue>,
) -> Result<Option<T>, clap::Error> {
    Ok(one(name, typed, |t| parse(text(t)?))?.map(|setting| setting.value))
}

fn bytes(typed: OsString) -> BString {
    typed.into_encoded_bytes().into()
}

fn stale(typed: OsString) -> Result<EntryName, clap::Error> {
    let shown = escape(typed.as_encoded_bytes());
    EntryName::new(bytes(typed)).ok_or_else(|| {
        let message = format!("--stale: `{shown}` is not the name of a registration; names have no slash");
        error(ErrorKind::ValueValidation, message)
    })
}

fn subjects(typed: Vec<OsString>, cwd: &Path) -> Result<Vec<Subject>, clap::Error> {
    if typed.iter().any(|t| t.is_empty()) {
        return Err(error(ErrorKind::ValueValidation, "a worktree's name can't be empty"));
    }
    Ok(typed.into_iter().map(|t| Subject { local: cwd.join(&t), typed: bytes(t) }).collect())
}

/// Where relative paths start.
fn directory(cwd: &Path, typed: Option<&Path>) -> Result<PathBuf, clap::Error> {
    let Some(typed) = typed else { return Ok(cwd.to_owned()) };
    let path = cwd.join(typed);
    is_directory(&path).map_err(|why| missing("-C", typed.as_os_str(), &why))?;
    Ok(path)
}

/// The roots as absolute paths; `bare` if there was no command, so that one of them may be a mistyped one.
fn roots(typed: &[OsString], cwd: &Path, bare: bool) -> Result<Vec<Setting<PathBuf>>, clap::Error> {
    let mut roots = Vec::new();
    for root in typed {
        let path = cwd.join(root);
        if let Err(why) = is_directory(&path) {
            let meant =
                if bare { root.to_str().and_then(|r| nearest(r, COMMANDS.iter().copied())) } else { None };
            return Err(match meant {
                Some(command) => mistyped(root, command),
                None => missing("ROOT", root, &why),
            });
        }
        roots.push(Setting::new(path, Origin::Flag("ROOT")));
    }
    Ok(roots)
}

fn is_directory(path: &Path) -> Result<(), String> {
    match std::fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err("it is not a directory".to_owned()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Err("there is no such directory".to_owned()),
        Err(e) => Err(e.to_string()),
    }
}

fn missing(what: &str, typed: &OsStr, why: &str) -> clap::Error {
    error(ErrorKind::ValueValidation, format!("{what} `{}`: {why}", escape(typed.as_encoded_bytes())))
}

fn mistyped(typed: &OsStr, command: &str) -> clap::Error {
    let shown = escape(typed.as_encoded_bytes());
    error(
        ErrorKind::InvalidSubcommand,
        match typed == command {
            true => format!("`{shown}` is a command, and goes before everything but flags"),
            false => {
                format!("there is neither a directory nor a command `{shown}`; did you mean `{command}`?")
            }
        },
    )
}

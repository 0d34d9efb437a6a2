//! Settings in layers: the defaults, the user's config file, the environment, the command line. The later one wins,
//! and each value knows where it came from.
//!
//! | key in the file                | flag                | environment            | default                              |
//! | ------------------------------ | ------------------- | ---------------------- | ------------------------------------ |
//! | `roots`                        | `ROOT...`           | `TREESWEEP_ROOTS`      | the clone around the directory       |
//! | `trunk`                        | `--trunk`           |                        | what the clone says                  |
//! | `branch-templates`             | `--branch-template` |                        | `wt/{name}` `{name}` `worktree-{name}` |
//! | `idle`                         | `--idle`            |                        | `1h`                                 |
//! | `unstarted-after`              | `--unstarted-after` |                        | `7d`                                 |
//! | `history-limit`                |                     |                        | `60s`                                |
//! | `protect` (adds)               | `--protect`         | `TREESWEEP_PROTECT`    | nothing                              |
//! | `precious`                     |                     |                        | [`Precious::DEFAULT`]                |
//! | `precious-extra` (adds)        |                     |                        | nothing                              |
//! | `map` (adds)                   | `--map`             |                        | nothing                              |
//! | `jobs`                         | `--jobs`            | `TREESWEEP_JOBS`       | as many as the machine bears         |
//! | `time-limit`                   | `--time-limit`      | `TREESWEEP_TIME_LIMIT` | none                                 |
//! | `ownership.markers`            |                     |                        | nothing                              |
//! | `engines.use`                  | `--engine`          |                        | `auto`                               |
//! | `engines.ignore`               |                     |                        | nothing                              |
//! | `engines.live`                 | `--live`            |                        | `used`                               |
//! | `retired.keep`                 |                     |                        | `90d`                                |
//! | `display.color`                | `--color`           | `TREESWEEP_COLOR`      | `auto`                               |
//!
//! A `.env` file or a direnv of a repository can set the environment, so the environment can only narrow a sweep:
//! what could widen it has no variable there, `TREESWEEP_PROTECT` adds, and `TREESWEEP_TIME_LIMIT` only shortens.

pub mod amount;
mod env;
mod file;
mod globs;
mod layer;
pub mod locate;
pub mod nearest;
pub mod value;

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bstr::BString;

use crate::vantage::paths::escape;

pub use globs::{Pattern, Precious, Protect};
pub use layer::Layer;
pub use value::{BranchTemplate, Color, Engines, Live, MarkerPath, PathMap};

use value::BadValue;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File { path: Arc<Path>, line: usize },
    Env(&'static str),
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => {
                write!(f, "{}:{line}", escape(path.as_os_str().as_encoded_bytes()))
            }
            Origin::Env(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Setting<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

impl<T> Deref for Setting<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// What holds for this run.
#[derive(Clone, Debug)]
pub struct Settings {
    pub roots: Roots,
    pub trunk: Option<Setting<BString>>,
    pub templates: Setting<Vec<BranchTemplate>>,
    /// Markers of other tools that count as recorded ownership; our own always does.
    pub markers: Vec<Setting<MarkerPath>>,
    pub idle: Setting<Duration>,
    pub unstarted_after: Setting<Duration>,
    /// How long the history of one clone may be read.
    pub history_limit: Setting<Duration>,
    pub protect: Protect,
    pub precious: Precious,
    pub maps: Vec<Setting<PathMap>>,
    /// `None`: as many as the machine bears.
    pub jobs: Option<Setting<NonZeroUsize>>,
    /// For the whole run of `prune`.
    pub time_limit: Option<Setting<Duration>>,
    pub engines: Setting<Engines>,
    /// Sockets that are not asked, and whose silence is no warning.
    pub ignored_sockets: Vec<Setting<PathBuf>>,
    pub live: Setting<Live>,
    /// How old a retirement record gets before `log --expire` drops it.
    pub retired_keep: Setting<Duration>,
    pub color: Setting<Color>,
}

/// The directories to look in: absolute, symlinks and `..` not resolved.
#[derive(Clone, Debug, Default)]
pub struct Roots {
    /// Named on the command line: these are swept.
    pub typed: Vec<Setting<PathBuf>>,
    /// Else the clone around the current directory is; else these are: the environment's, or the file's.
    pub configured: Vec<Setting<PathBuf>>,
    /// All that any layer names. Ambiguity is judged over these, whatever is swept.
    pub known: Vec<Setting<PathBuf>>,
}

/// What the settings are made of; nothing else is looked at.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The config file's path and text.
    pub file: Option<(PathBuf, String)>,
    pub env: Vec<(OsString, OsString)>,
    pub flags: Layer,
    pub home: Option<PathBuf>,
}

impl Sources {
    /// This process's environment, home directory and config file under the command line's `flags`.
    pub fn of_process(flags: Layer) -> Result<Self, ConfigError> {
        let home = home();
        let xdg = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
        let file = match locate::path(xdg.as_deref(), home.as_deref()) {
            Some(path) => locate::read(&path)?.map(|text| (path, text)),
            None => None,
        };
        Ok(Self { file, env: std::env::vars_os().collect(), flags, home })
    }
}

/// The home directory of whoever runs us, if one is known.
pub fn home() -> Option<PathBuf> {
    etcetera::home_dir().ok().filter(|h| h.is_absolute())
}

/// The settings, and what a person should know about how they came to be.
#[derive(Clone, Debug)]
pub struct Resolved {
    pub settings: Settings,
    pub warnings: Vec<String>,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}:{line}: {problem}", escape(.path.as_os_str().as_encoded_bytes()))]
    File { path: PathBuf, line: usize, problem: Problem },
    #[error("{variable} in the environment: {problem}")]
    Env { variable: &'static str, problem: BadValue },
    #[error("{}: {error}", escape(.path.as_os_str().as_encoded_bytes()))]
    Read { path: PathBuf, error: locate::ReadError },
    #[error("{0}")]
    Value(#[from] BadValue),
}

/// What is wrong at a line of the config file.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("{0}")]
    Syntax(String),
    #[error("unknown key `{key}`{}", did_you_mean(.nearest))]
    UnknownKey { key: String, nearest: Option<String> },
    #[error("`{key}` is {expected}, not {found}")]
    WrongType { key: String, expected: &'static str, found: &'static str },
    #[error("`{key}`: {problem}")]
    Value { key: String, problem: BadValue },
    #[error("`{key}` lacks `{missing}`")]
    Incomplete { key: String, missing: &'static str },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default()
}

/// Puts the layers on top of each other.
pub fn resolve(sources: Sources) -> Result<Resolved, ConfigError> {
    let home = sources.home.as_deref();
    let file = match &sources.file {
        Some((path, text)) => file::read(path, text, home)?,
        None => Layer::default(),
    };
    let (env, warnings) = env::read(sources.env, home)?;
    Ok(Resolved { settings: layer::settle(file, env, sources.flags)?, warnings })
}

#[cfg(test)]
mod tests;

//! The values that settings have, and how they are written.

use std::ffi::OsStr;
use std::fmt;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use crate::vantage::paths::{LocalPath, RecordedPath, escape};

/// Why a value can't be what its setting needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    #[error("`{0}` is not a duration: write a number with s, m, h, d or w, like `30m`, `1h` or `7d`")]
    Duration(String),
    #[error("`{0}` is longer than 100 years")]
    TooLong(String),
    #[error("`{0}` needs `{{name}}` exactly once: it stands for the worktree's name")]
    TemplateName(String),
    #[error("`{0}` has another placeholder than `{{name}}`")]
    TemplatePlaceholder(String),
    #[error("`{0}` can't be a branch's name")]
    TemplateBranch(String),
    #[error("`{0}` is not a plain relative path: no `.`, `..`, empty component or leading slash")]
    MarkerPath(String),
    #[error("`{0}` is git's own, so every worktree may have it: it proves nothing")]
    MarkerOfGit(String),
    #[error("`{0}` is not CONTAINER=HOST")]
    MapForm(String),
    #[error("`{0}`: the container's side has to be absolute, and below `/`")]
    MapContainer(String),
    #[error("`{0}`: the host's side has to be absolute")]
    MapHost(String),
    #[error("`{0}` is neither `auto`, `none` nor the absolute path of a socket")]
    Engine(String),
    #[error("`{0}` is a remote engine: what it holds says nothing of this host")]
    RemoteEngine(String),
    #[error("`{0}` is not an absolute path")]
    NotAbsolute(String),
    #[error("`{0}` needs a home directory, and none is known")]
    NoHome(String),
    #[error("`{0}`: only `~` and `~/...` are known, no other user's home")]
    OtherHome(String),
    #[error("`{0}` is not valid UTF-8")]
    NotText(String),
    #[error("{0}")]
    Glob(String),
    #[error("`{0}` is not a number from 1 to {MOST_JOBS}")]
    Jobs(String),
    #[error("`{value}` is not one of {}", .known.join(", "))]
    Choice { value: String, known: &'static [&'static str] },
    #[error("`{0}` is no amount of space: write a size like `20G` or `20GiB`, or a share like `15%`")]
    Amount(String),
    #[error("it is empty")]
    Empty,
}

const MOST_JOBS: usize = 256;
/// Keeps additions to a time stamp within what a time stamp can hold.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Which engines are asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Engines {
    /// Every local one that answers.
    Auto,
    /// There is none on this machine: a person says so.
    None,
    /// This one, and it has to answer.
    Socket(PathBuf),
}

impl Engines {
    pub fn parse(text: &OsStr) -> Result<Self, BadValue> {
        let bytes = text.as_bytes();
        match bytes {
            b"auto" => return Ok(Engines::Auto),
            b"none" => return Ok(Engines::None),
            _ => {}
        }
        let path = bytes.strip_prefix(b"unix://").unwrap_or(bytes);
        match path.find("://") {
            Some(_) => Err(BadValue::RemoteEngine(escape(bytes))),
            None if path.starts_with(b"/") => Ok(Engines::Socket(OsStr::from_bytes(path).into())),
            None => Err(BadValue::Engine(escape(bytes))),
        }
    }
}

/// What a running container with a mount above a checkout means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Live {
    /// It holds unless all its processes could be looked into and none is inside.
    Used,
    /// It holds.
    Mounted,
}

impl Live {
    pub const NAMES: &[&str] = &["used", "mounted"];

    pub fn parse(text: &str) -> Result<Self, BadValue> {
        match text {
            "used" => Ok(Live::Used),
            "mounted" => Ok(Live::Mounted),
            _ => Err(BadValue::Choice { value: escape(text.as_bytes()), known: Self::NAMES }),
        }
    }
}

/// When output is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// On a terminal that can, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

impl Color {
    pub const NAMES: &[&str] = &["auto", "always", "never"];

    pub fn parse(text: &str) -> Result<Self, BadValue> {
        match text {
            "auto" => Ok(Color::Auto),
            "always" => Ok(Color::Always),
            "never" => Ok(Color::Never),
            _ => Err(BadValue::Choice { value: escape(text.as_bytes()), known: Self::NAMES }),
        }
    }
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => anstream::ColorChoice::Auto,
            Color::Always => anstream::ColorChoice::Always,
            Color::Never => anstream::ColorChoice::Never,
        }
    }
}

/// A person's word for how a container's directory is called on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMap {
    /// Absolute, perhaps as Windows writes it.
    pub container: RecordedPath,
    pub host: LocalPath,
}

impl PathMap {
    /// `CONTAINER=HOST`, split at the first `=`; the host's side may start with `~/`.
    pub fn parse(text: &OsStr, home: Option<&Path>) -> Result<Self, BadValue> {
        let bytes = text.as_bytes();
        let (container, host) = bytes.split_once_str("=").ok_or_else(|| BadValue::MapForm(escape(bytes)))?;
        Self::new(container, OsStr::from_bytes(host), home)
    }

    /// The same from its two sides.
    pub fn new(container: &[u8], host: &OsStr, home: Option<&Path>) -> Result<Self, BadValue> {
        let bad = || BadValue::MapContainer(escape(container));
        let recorded = RecordedPath::new(container);
        let container = match recorded.is_windows() {
            true => windows_absolute(container).ok_or_else(bad)?,
            false if recorded.is_absolute() => recorded.normalized().ok_or_else(bad)?,
            false => return Err(bad()),
        };
        // Nothing would be outside such a map, so it would be evidence for everything.
        if container.components().next().is_none() {
            return Err(bad());
        }
        let wide = expand_home(host, home)?;
        let host = LocalPath::new(&wide).ok_or_else(|| BadValue::MapHost(escape(host.as_bytes())))?;
        Ok(Self { container, host })
    }
}

/// `C:\src\app` or `\\server\share\app`, without separators at its end.
fn windows_absolute(bytes: &[u8]) -> Option<RecordedPath> {
    let separator = |b: &u8| matches!(b, b'/' | b'\\');
    let drive = bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && separator(&bytes[2]);
    let share = bytes.starts_with(br"\\");
    let trimmed = bytes.trim_end_with(|c| matches!(c, '/' | '\\'));
    ((drive && trimmed.len() > 2) || (share && !trimmed.is_empty())).then(|| RecordedPath::new(trimmed))
}

/// How a branch is named after its worktree: `wt/{name}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchTemplate {
    before: BString,
    after: BString,
}

impl BranchTemplate {
    const PLACEHOLDER: &str = "{name}";

    pub fn parse(text: &[u8]) -> Result<Self, BadValue> {
        let shown = || escape(text);
        let Some((before, after)) = text.split_once_str(Self::PLACEHOLDER) else {
            return Err(BadValue::TemplateName(shown()));
        };
        if after.contains_str(Self::PLACEHOLDER) {
            return Err(BadValue::TemplateName(shown()));
        }
        let has = |wanted: fn(u8) -> bool| before.iter().chain(after).any(|b| wanted(*b));
        if has(|b| matches!(b, b'{' | b'}')) {
            return Err(BadValue::TemplatePlaceholder(shown()));
        }
        let forbidden =
            |b: u8| b <= b' ' || matches!(b, 0x7f | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\');
        let shape = before.starts_with(b"/") || after.ends_with(b"/") || text.contains_str("//");
        if has(forbidden) || shape || text.contains_str("..") || text.starts_with(b"refs/heads/") {
            return Err(BadValue::TemplateBranch(shown()));
        }
        Ok(Self { before: before.into(), after: after.into() })
    }

    /// `branch` (a short name) is exactly what this makes of the entry's `name`.
    pub fn matches(&self, name: &BStr, branch: &BStr) -> bool {
        let middle =
            branch.strip_prefix(self.before.as_slice()).and_then(|b| b.strip_suffix(self.after.as_slice()));
        !name.is_empty() && middle == Some(name.as_bytes())
    }

    /// The template that would make `branch` that of `name`, if the name is in it: what to put into the config.
    pub fn inferred(name: &BStr, branch: &BStr) -> Option<Self> {
        if name.is_empty() {
            return None;
        }
        let at = branch.rfind(name)?;
        let (before, after) = (&branch[..at], &branch[at + name.len()..]);
        Self::parse(&[before, Self::PLACEHOLDER.as_bytes(), after].concat()).ok()
    }
}

impl fmt::Display for BranchTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}{}", escape(&self.before), Self::PLACEHOLDER, escape(&self.after))
    }
}

/// Where another tool writes its own marker: a plain path below the administrative entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkerPath(BString);

impl MarkerPath {
    /// What git itself writes into an entry; there are more names of these forms: `*_HEAD`, `*_MSG`.
    const OF_GIT: &[&str] = &[
        "AUTO_MERGE",
        "BISECT_LOG",
        "COMMIT_EDITMSG",
        "HEAD",
        "MERGE_MODE",
        "commondir",
        "config",
        "config.worktree",
        "description",
        "gitdir",
        "hooks",
        "index",
        "info",
        "locked",
        "logs",
        "modules",
        "objects",
        "rebase-apply",
        "rebase-merge",
        "refs",
        "sequencer",
    ];

    pub fn parse(text: &str) -> Result<Self, BadValue> {
        let shown = || escape(text.as_bytes());
        let plain = |c: &str| !matches!(c, "" | "." | "..") && !c.contains('\0');
        if !text.split('/').all(plain) {
            return Err(BadValue::MarkerPath(shown()));
        }
        let first = text.split('/').next().unwrap_or_default();
        if Self::OF_GIT.contains(&first) || first.ends_with("_HEAD") || first.ends_with("_MSG") {
            return Err(BadValue::MarkerOfGit(shown()));
        }
        Ok(Self(text.into()))
    }

    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl fmt::Display for MarkerPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&escape(&self.0))
    }
}

/// `90s`, `30m`, `1h`, `7d`, `2w`, or several of them in a row: `1h30m`. A bare `0` is allowed.
pub fn duration(text: &str) -> Result<Duration, BadValue> {
    let bad = || BadValue::Duration(escape(text.as_bytes()));
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut total) = (text, Duration::ZERO);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let (number, unit) = (&rest[..digits], &rest[digits..]);
        let seconds = match unit.chars().next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            Some('w') => 604_800,
            _ => return Err(bad()),
        };
        if number.is_empty() {
            return Err(bad());
        }
        let too_long = || BadValue::TooLong(escape(text.as_bytes()));
        let amount: u64 = number.parse().map_err(|_| too_long())?;
        let part = amount.checked_mul(seconds).map(Duration::from_secs).ok_or_else(too_long)?;
        total = total.checked_add(part).filter(|t| *t <= LONGEST).ok_or_else(too_long)?;
        rest = &unit[1..];
    }
    if text.is_empty() { Err(bad()) } else { Ok(total) }
}

/// A number of workers.
pub fn jobs(text: &str) -> Result<NonZeroUsize, BadValue> {
    let number: Option<NonZeroUsize> = text.parse().ok();
    number.filter(|n| n.get() <= MOST_JOBS).ok_or_else(|| BadValue::Jobs(escape(text.as_bytes())))
}

/// `~` and `~/x` with the home directory in their place, everything else as it is.
pub fn expand_home(path: &OsStr, home: Option<&Path>) -> Result<PathBuf, BadValue> {
    let bytes = path.as_bytes();
    let shown = || escape(bytes);
    match bytes.strip_prefix(b"~") {
        None => Ok(path.into()),
        Some(rest) if rest.is_empty() || rest.starts_with(b"/") => {
            let home = home.ok_or_else(|| BadValue::NoHome(shown()))?;
            let rest = rest.strip_prefix(b"/").unwrap_or(rest);
            Ok(if rest.is_empty() { home.into() } else { home.join(OsStr::from_bytes(rest)) })
        }
        Some(_) => Err(BadValue::OtherHome(shown())),
    }
}

#[cfg(test)]
mod tests;

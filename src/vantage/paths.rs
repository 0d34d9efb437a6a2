//! Paths of different vantages are different types, so that one can't be used in the place of another.
//!
//! Paths are bytes. They are compared component by component, never as string prefixes, and none of
//! these functions looks at a file system.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

/// A path as a file in a repository records it, in the namespace of whoever wrote it.
///
/// It may be relative, may carry a drive letter, and may not exist here: only a translation makes a
/// [`LocalPath`] of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordedPath(BString);

/// A path on the host that a container engine runs on, as that engine reports it (a mount's source).
///
/// On the host itself it equals a [`LocalPath`]; inside a container it has to be placed first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostPath(BString);

/// An absolute path in the namespace of this process.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalPath(PathBuf);

/// The name of an administrative entry: one directory name below `<common-dir>/worktrees`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryName(BString);

/// Device and inode: what a file system object is, whatever it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct FileId {
    pub dev: u64,
    pub ino: u64,
}

impl RecordedPath {
    /// The path in these bytes, as git reads a `gitdir` file or what follows `gitdir: `: white space at
    /// the end does not belong to it (git's `strbuf_rtrim`). `None` if nothing is left.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let trimmed = bytes.trim_end_with(is_gits_space);
        (!trimmed.is_empty()).then(|| Self(trimmed.into()))
    }

    pub fn new(bytes: impl Into<BString>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bstr(&self) -> &BStr {
        self.0.as_ref()
    }

    /// Starts with a slash.
    pub fn is_absolute(&self) -> bool {
        self.0.first() == Some(&b'/')
    }

    /// Written on Windows: it has a drive letter or backslashes. No other rule than `--map` translates it.
    pub fn is_windows(&self) -> bool {
        let b = self.0.as_slice();
        b.contains(&b'\\') || (b.len() >= 2 && b[0].is_ascii_alphabetic() && b[1] == b':')
    }

    /// Backslashes as slashes, for paths that were written on Windows; others are left as they are.
    pub fn slashed(&self) -> Self {
        if !self.is_windows() {
            return self.clone();
        }
        Self(self.0.iter().map(|b| if *b == b'\\' { b'/' } else { *b }).collect::<Vec<u8>>().into())
    }

    /// The path without a last component `.git`, as git does for a worktree's `gitdir`.
    pub fn without_dot_git(&self) -> Self {
        match self.0.strip_suffix(b"/.git") {
            Some(b"") => Self("/".into()),
            Some(rest) => Self(rest.into()),
            None => self.clone(),
        }
    }

    /// `.` and `..` resolved lexically and double slashes folded; `None` where `..` would climb above the root.
    pub fn normalized(&self) -> Option<Self> {
        normalize(&self.0).map(Self)
    }

    /// This path, which is relative, read from the directory `base`.
    pub fn resolved_from(&self, base: &RecordedPath) -> Option<Self> {
        if self.is_absolute() {
            return self.normalized();
        }
        let mut joined = base.0.clone();
        joined.push(b'/');
        joined.extend_from_slice(&self.0);
        normalize(&joined).map(Self)
    }

    /// Its components, without the root and without empty ones.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &BStr> {
        components(&self.0)
    }

    pub fn parent(&self) -> Option<Self> {
        parent(&self.0).map(Self)
    }

    /// What is left of this path below `prefix`: empty if both are equal, `None` if it is not beneath.
    pub fn below(&self, prefix: &RecordedPath) -> Option<&BStr> {
        below(&self.0, &prefix.0)
    }
}

impl HostPath {
    pub fn new(bytes: impl Into<BString>) -> Self {
        Self(bytes.into())
    }

    pub fn as_bstr(&self) -> &BStr {
        self.0.as_ref()
    }

    /// What is left of this path below `prefix`: empty if both are equal, `None` if it is not beneath.
    pub fn below(&self, prefix: &HostPath) -> Option<&BStr> {
        below(&self.0, &prefix.0)
    }
}

impl LocalPath {
    /// `path` must be absolute; `.` and `..` are resolved lexically, so resolve symlinks first where that matters.
    pub fn new(path: impl AsRef<Path>) -> Option<Self> {
        let bytes = path.as_ref().as_os_str().as_bytes();
        if bytes.first() != Some(&b'/') {
            return None;
        }
        normalize(bytes).map(|b| Self(PathBuf::from(OsString::from_vec(b.into()))))
    }

    pub fn as_path(&self) -> &Path {
        &self.0
    }

    pub fn as_bstr(&self) -> &BStr {
        self.0.as_os_str().as_bytes().as_bstr()
    }

    /// The path of `rest` (relative bytes, may be empty) below this one; `None` where it would climb out.
    pub fn join(&self, rest: &[u8]) -> Option<Self> {
        if rest.is_empty() {
            return Some(self.clone());
        }
        let relative = Path::new(OsStr::from_bytes(rest));
        if relative.is_absolute() {
            return None;
        }
        let joined = Self::new(self.0.join(relative))?;
        joined.0.starts_with(&self.0).then_some(joined)
    }

    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|p| Self(p.to_owned()))
    }

    pub fn file_name(&self) -> Option<&BStr> {
        self.0.file_name().map(|n| n.as_bytes().as_bstr())
    }

    /// What is left of this path below `prefix`: empty if both are equal, `None` if it is not beneath.
    pub fn below(&self, prefix: &LocalPath) -> Option<&BStr> {
        below(self.as_bstr(), prefix.as_bstr())
    }

    pub fn is_beneath_or_at(&self, prefix: &LocalPath) -> bool {
        self.0.starts_with(&prefix.0)
    }

    /// Its components, without the root.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &BStr> {
        self.0.components().filter_map(|c| match c {
            Component::Normal(n) => Some(n.as_bytes().as_bstr()),
            _ => None,
        })
    }
}

impl EntryName {
    /// A single, plain directory name.
    pub fn new(name: impl Into<BString>) -> Option<Self> {
        let name = name.into();
        let plain =
            !name.is_empty() && name != "." && name != ".." && !name.contains(&b'/') && !name.contains(&0);
        plain.then_some(Self(name))
    }

    pub fn as_bstr(&self) -> &BStr {
        self.0.as_ref()
    }

    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl fmt::Debug for LocalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LocalPath({:?})", self.0)
    }
}

macro_rules! display_escaped {
    ($($t:ty),*) => {$(
        impl fmt::Display for $t {
            /// Control characters are escaped: a name must not be able to drive a terminal.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&escape(self.as_bstr()))
            }
        }
    )*};
}
display_escaped!(RecordedPath, HostPath, LocalPath, EntryName);

/// `bytes` for a person's eyes: control characters, direction marks and invalid UTF-8 are shown as escapes.
pub fn escape(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
            {
                out.extend(c.escape_default());
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02x}"));
        }
    }
    out
}

/// What git takes for white space: `isspace` as `git-compat-util.h` has it knows no vertical tab and no form feed.
pub(crate) fn is_gits_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

fn components(bytes: &[u8]) -> impl DoubleEndedIterator<Item = &BStr> {
    bytes.split(|b| *b == b'/').filter(|c| !c.is_empty()).map(|c| c.as_bstr())
}

fn normalize(bytes: &[u8]) -> Option<BString> {
    let absolute = bytes.first() == Some(&b'/');
    let mut parts: Vec<&BStr> = Vec::new();
    for part in components(bytes) {
        match part.as_bytes() {
            b"." => {}
            b".." => match parts.last() {
                Some(last) if *last != ".." => {
                    parts.pop();
                }
                _ if absolute => return None,
                _ => parts.push(part),
            },
            _ => parts.push(part),
        }
    }
    let mut out = BString::from(if absolute { "/" } else { "" });
    out.extend_from_slice(&bstr::join("/", &parts));
    Some(out)
}

fn parent(bytes: &[u8]) -> Option<BString> {
    let at = bytes.rfind_byte(b'/')?;
    match at {
        0 if bytes.len() == 1 => None,
        0 => Some("/".into()),
        _ => Some(bytes[..at].into()),
    }
}

fn below<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a BStr> {
    let prefix = prefix.strip_suffix(b"/").unwrap_or(prefix);
    let rest = bytes.strip_prefix(prefix)?;
    match rest.first() {
        None => Some(rest.as_bstr()),
        Some(b'/') => Some(rest[1..].as_bstr()),
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rec(s: &str) -> RecordedPath {
        RecordedPath::new(s)
    }

    #[test]
    fn gitdir_is_read_as_git_reads_it() {
        for text in ["/w/x/.git", "/w/x/.git\n", "/w/x/.git\r\n", "/w/x/.git \t\n"] {
            let path = RecordedPath::parse(text.as_bytes()).unwrap();
            assert_eq!(path.without_dot_git(), rec("/w/x"), "{text:?}");
        }
        assert_eq!(RecordedPath::parse(b" \n"), None);
        assert_eq!(RecordedPath::parse(b"/w/x\x0c\n").unwrap(), rec("/w/x\x0c"), "part of the name");
    }

    #[test]
    fn whole_components_are_compared() {
        assert_eq!(rec("/w/app/x").below(&rec("/w/app")).unwrap(), "x");
        assert_eq!(rec("/w/app").below(&rec("/w/app")).unwrap(), "");
        assert_eq!(rec("/w/app-b").below(&rec("/w/app")), None);
        assert_eq!(rec("/w/app").below(&rec("/")).unwrap(), "w/app");
    }

    #[test]
    fn dot_dot_never_climbs_out() {
        assert_eq!(rec("/a/../../b").normalized(), None);
        assert_eq!(rec("../x").resolved_from(&rec("/a/b")).unwrap(), rec("/a/x"));
        assert_eq!(LocalPath::new("/a/b").unwrap().join(b"../c"), None);
        assert_eq!(LocalPath::new("/a/b").unwrap().join(b"/etc"), None);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(escape(b"a\x1b[31m\nb\xff"), "a\\u{1b}[31m\\nb\\xff");
        assert_eq!(escape("\u{202e}x".as_bytes()), "\\u{202e}x");
    }

    #[test]
    fn windows_paths_are_known() {
        assert!(rec("C:/x").is_windows() && rec("\\\\wsl.localhost\\d\\x").is_windows());
        assert!(!rec("/workspaces/app").is_windows());
    }
}

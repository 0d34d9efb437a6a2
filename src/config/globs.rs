//! Globs that protect worktrees, and globs of files that are too precious to delete.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::BStr;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::value::{BadValue, expand_home};
use super::{Origin, Setting};
use crate::vantage::paths::escape;

/// One glob as it was written, known to be valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    written: String,
    /// With the home directory in the place of a leading `~`.
    glob: String,
}

impl Pattern {
    /// A leading `~/` is the home directory.
    pub fn parse(text: &OsStr, home: Option<&Path>) -> Result<Self, BadValue> {
        let not_text = |path: &OsStr| BadValue::NotText(escape(path.as_bytes()));
        let written = text.to_str().ok_or_else(|| not_text(text))?;
        if written.is_empty() {
            return Err(BadValue::Empty);
        }
        let glob = match written.strip_prefix('~') {
            None => written.to_owned(),
            Some(rest) => {
                let tilde = &written[..written.len() - rest.len() + rest.find('/').unwrap_or(rest.len())];
                let base = expand_home(OsStr::new(tilde), home)?;
                let base = base.to_str().ok_or_else(|| not_text(base.as_os_str()))?;
                globset::escape(base) + &rest[tilde.len() - 1..]
            }
        };
        build(&glob, false)?;
        Ok(Self { written: written.to_owned(), glob })
    }

    /// As it was written.
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether the whole of `name` matches.
    pub fn is_match(&self, name: &BStr) -> bool {
        // It was parsed once already; what can't be built any more matches nothing.
        build(&self.glob, false).is_ok_and(|glob| glob.compile_matcher().is_match(OsStr::from_bytes(name)))
    }
}

/// `*` crosses slashes: a glob that says "keep" or "precious" errs on the side of matching.
fn build(glob: &str, ignore_case: bool) -> Result<globset::Glob, BadValue> {
    GlobBuilder::new(glob)
        .literal_separator(false)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|e| BadValue::Glob(escape(e.to_string().as_bytes())))
}

fn set(globs: impl IntoIterator<Item = globset::Glob>) -> Result<GlobSet, BadValue> {
    let mut builder = GlobSetBuilder::new();
    for glob in globs {
        builder.add(glob);
    }
    builder.build().map_err(|e| BadValue::Glob(escape(e.to_string().as_bytes())))
}

/// The globs of `--protect` and of the layers below it.
#[derive(Clone, Debug, Default)]
pub struct Protect {
    patterns: Vec<Setting<Pattern>>,
    set: GlobSet,
}

impl Protect {
    pub(super) fn new(patterns: Vec<Setting<Pattern>>) -> Result<Self, BadValue> {
        let mut globs = Vec::new();
        for pattern in &patterns {
            globs.push(build(&pattern.glob, false)?);
            // Two globs for each pattern, so that the index of a hit leads to its pattern.
            globs.push(build(&format!("{}/**", pattern.glob.trim_end_matches('/')), false)?);
        }
        Ok(Self { set: set(globs)?, patterns })
    }

    /// The first glob that matches any of `subjects`, each whole or beneath what the glob matches: a worktree's name,
    /// its branch's short name, its local path.
    pub fn hit<'a>(&self, subjects: impl IntoIterator<Item = &'a [u8]>) -> Option<&Setting<Pattern>> {
        subjects
            .into_iter()
            .flat_map(|s| self.set.matches(OsStr::from_bytes(s)))
            .min()
            .map(|index| &self.patterns[index / 2])
    }

    pub fn patterns(&self) -> &[Setting<Pattern>] {
        &self.patterns
    }
}

/// The globs of files that hold a worktree although git ignores them.
#[derive(Clone, Debug)]
pub struct Precious {
    patterns: Vec<Setting<Pattern>>,
    /// Globs without a slash: they match any one component.
    names: GlobSet,
    /// The others: they match the whole path relative to the checkout.
    paths: GlobSet,
}

impl Precious {
    pub const DEFAULT: &[&str] = &[".env*", "*.local", "*.pem", "*.key", "*.sqlite", "*.db"];

    pub(super) fn new(patterns: Vec<Setting<Pattern>>) -> Result<Self, BadValue> {
        let (paths, names): (Vec<_>, Vec<_>) =
            patterns.iter().map(|p| p.glob.as_str()).partition(|g| g.trim_end_matches('/').contains('/'));
        // Case is ignored: `server.KEY` is a key too.
        let names: Result<Vec<_>, _> =
            names.into_iter().map(|g| build(g.trim_end_matches('/'), true)).collect();
        let paths: Result<Vec<_>, _> = paths
            .into_iter()
            .flat_map(|g| {
                let g = g.trim_matches('/');
                [build(g, true), build(&format!("{g}/**"), true)]
            })
            .collect();
        Ok(Self { names: set(names?)?, paths: set(paths?)?, patterns })
    }

    /// For what has no layers: a list of globs as it is.
    pub fn of<'a>(globs: impl IntoIterator<Item = &'a str>) -> Result<Self, BadValue> {
        let pattern = |glob: &str| Ok(Setting::new(Pattern::parse(OsStr::new(glob), None)?, Origin::Default));
        Self::new(globs.into_iter().map(pattern).collect::<Result<_, BadValue>>()?)
    }

    /// `path`, relative to the checkout, or a directory that it lies in matches.
    pub fn matches(&self, path: &BStr) -> bool {
        let named = path.split(|b| *b == b'/').any(|name| self.names.is_match(OsStr::from_bytes(name)));
        named || self.paths.is_match(OsStr::from_bytes(path))
    }

    pub fn patterns(&self) -> &[Setting<Pattern>] {
        &self.patterns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(globs: &[&str]) -> Vec<Setting<Pattern>> {
        let home = Some(Path::new("/home/[me]"));
        globs
            .iter()
            .map(|g| Setting::new(Pattern::parse(OsStr::new(g), home).unwrap(), Origin::Default))
            .collect()
    }

    #[test]
    fn protection_matches_names_branches_and_what_is_beneath_a_path() {
        let protect = Protect::new(patterns(&["release*", "/src/keep", "~/w/*", "feature/*"])).unwrap();
        let hit = |s: &[u8]| protect.hit([s]).map(|p| p.as_str().to_owned());
        assert_eq!(hit(b"release-1").as_deref(), Some("release*"));
        assert_eq!(hit(b"release/1/fix").as_deref(), Some("release*"), "`*` crosses slashes");
        assert_eq!(hit(b"/src/keep").as_deref(), Some("/src/keep"));
        assert_eq!(hit(b"/src/keep/app/x").as_deref(), Some("/src/keep"));
        assert_eq!(hit(b"/src/keeper"), None);
        assert_eq!(hit(b"/home/[me]/w/x").as_deref(), Some("~/w/*"), "the home directory is no glob");
        assert_eq!(hit(b"feature/x\xff").as_deref(), Some("feature/*"));
        assert_eq!(hit(b"prerelease"), None);
        let both: [&[u8]; 2] = [b"/src/keep", b"release"];
        assert_eq!(protect.hit(both).unwrap().as_str(), "release*", "the first glob, not the first subject");
        assert!(Protect::default().hit([b"x".as_slice()]).is_none());
    }

    #[test]
    fn precious_names_match_any_component_in_any_case() {
        let precious = Precious::of(Precious::DEFAULT.iter().copied()).unwrap();
        for path in [
            ".env",
            ".env.production",
            "a/b/.env",
            "conf/server.KEY",
            "x.local",
            ".env.d/token",
            "d\u{ff}.db",
        ] {
            assert!(precious.matches(path.into()), "{path}");
        }
        for path in ["env", "a.envx", "dbx", "key", "src/localtime"] {
            assert!(!precious.matches(path.into()), "{path}");
        }
    }

    #[test]
    fn precious_paths_are_relative_to_the_checkout() {
        let precious = Precious::of(["secrets/", "/conf/dev.json", "data/*.csv"]).unwrap();
        for path in ["secrets/a", "x/secrets/b", "conf/dev.json", "data/a.csv", "data/a.csv/b"] {
            assert!(precious.matches(path.into()), "{path}");
        }
        for path in ["x/conf/dev.json", "secret", "data/a.txt"] {
            assert!(!precious.matches(path.into()), "{path}");
        }
    }

    #[test]
    fn a_bad_glob_is_said_so() {
        let parse = |t: &[u8]| Pattern::parse(OsStr::from_bytes(t), None);
        assert!(matches!(parse(b"a[b"), Err(BadValue::Glob(_))));
        assert!(matches!(parse(b"a\xff"), Err(BadValue::NotText(_))));
        assert!(matches!(parse(b""), Err(BadValue::Empty)));
        assert!(matches!(parse(b"~/x"), Err(BadValue::NoHome(_))));
    }
}

//! What `.gitignore` and `.gitattributes` say below a directory, shared by all workers.
//!
//! gix's own stack of these opens files by path and follows what lies there; here each file is read through the handle
//! of its directory.

use std::sync::{Arc, OnceLock};

use bstr::{BStr, BString, ByteSlice};
use gix::glob::pattern::Mode;
use gix::glob::{Pattern, wildmatch};

use crate::git::convert::Attributes;
use crate::git::open::Unreadable;

/// The most bytes that are read of one `.gitignore` or `.gitattributes`.
pub(super) const LIMIT: u64 = 4 << 20;

/// The rules that hold for the names in one directory.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    ignore: Option<Arc<IgnoreFile>>,
    attributes: Arc<AttributeFiles>,
}

/// One file's patterns, and those of the directories above it.
#[derive(Debug)]
struct IgnoreFile {
    patterns: Vec<Pattern>,
    /// The directory it is in: empty, or ending in a slash.
    dir: BString,
    above: Option<Arc<IgnoreFile>>,
}

/// The `.gitattributes` from the root down to one directory, compiled when first asked.
#[derive(Debug, Default)]
struct AttributeFiles {
    /// The directory (empty, or ending in a slash) and the file's bytes.
    own: Option<(BString, Vec<u8>)>,
    above: Option<Arc<AttributeFiles>>,
    info: Option<Arc<[u8]>>,
    compiled: OnceLock<Result<Arc<Attributes>, Unreadable>>,
}

impl Rules {
    /// Those of a repository, before its root directory is looked at: `info/exclude` and `info/attributes`.
    pub(super) fn new(exclude: Option<&[u8]>, attributes: Option<Vec<u8>>) -> Self {
        let ignore =
            exclude.map(|bytes| IgnoreFile { patterns: parse(bytes), dir: BString::default(), above: None });
        let info = attributes.map(Arc::from);
        Self {
            ignore: ignore.map(Arc::new),
            attributes: Arc::new(AttributeFiles { info, ..AttributeFiles::default() }),
        }
    }

    /// These rules and those of a directory below, which is `dir` (empty, or ending in a slash) from the root of the
    /// repository.
    pub(super) fn within(&self, dir: &BStr, ignore: Option<&[u8]>, attributes: Option<Vec<u8>>) -> Self {
        let mut rules = self.clone();
        if let Some(bytes) = ignore {
            let above = rules.ignore.take();
            rules.ignore = Some(Arc::new(IgnoreFile { patterns: parse(bytes), dir: dir.to_owned(), above }));
        }
        if let Some(bytes) = attributes {
            rules.attributes = Arc::new(AttributeFiles {
                own: Some((dir.to_owned(), bytes)),
                info: self.attributes.info.clone(),
                above: Some(Arc::clone(&self.attributes)),
                compiled: OnceLock::new(),
            });
        }
        rules
    }

    /// Whether a pattern ignores `path`, from the root of the repository. That a directory above is ignored is not asked
    /// here: nothing in an ignored directory can be taken back (gitignore(5)), so the walk hands that down.
    pub(super) fn ignores(&self, path: &BStr, is_dir: bool) -> bool {
        let mut next = self.ignore.as_ref();
        while let Some(file) = next {
            if let Some(relative) = path.strip_prefix(file.dir.as_slice()) {
                let found =
                    file.patterns.iter().rev().find(|pattern| matches(pattern, relative.as_bstr(), is_dir));
                if let Some(found) = found {
                    return !found.is_negative();
                }
            }
            next = file.above.as_ref();
        }
        false
    }

    /// The attributes of the files in this directory.
    pub(super) fn attributes(&self) -> Result<Arc<Attributes>, Unreadable> {
        self.attributes.compiled.get_or_init(|| self.attributes.compile()).clone()
    }
}

impl AttributeFiles {
    fn compile(&self) -> Result<Arc<Attributes>, Unreadable> {
        let mut files = Vec::new();
        let mut next = Some(self);
        while let Some(level) = next {
            if let Some((dir, bytes)) = &level.own {
                files.push((dir.as_bstr(), bytes.as_slice()));
            }
            next = level.above.as_deref();
        }
        files.reverse();
        Attributes::new(files, self.info.as_deref()).map(Arc::new)
    }
}

fn parse(bytes: &[u8]) -> Vec<Pattern> {
    // Git ends the last line if the file does not, and only then sees a carriage return before its end.
    let ended = [bytes, b"\n"].concat();
    gix::ignore::parse(&ended, false).map(|(pattern, _, _)| pattern).collect()
}

/// Whether `pattern` matches `path`, both from the pattern's directory. gix's own matching does without the first step of
/// git's `match_pathname`: what comes before the first wildcard is compared and cut off from both, and a `**` that then
/// is at the start matches any number of directories.
fn matches(pattern: &Pattern, path: &BStr, is_dir: bool) -> bool {
    if pattern.mode.contains(Mode::MUST_BE_DIR) && !is_dir {
        return false;
    }
    if pattern.mode.contains(Mode::NO_SUB_DIR) && !pattern.mode.contains(Mode::ABSOLUTE) {
        let name = path.rfind_byte(b'/').map_or(path, |slash| path[slash + 1..].as_bstr());
        return pattern.matches(name, wildmatch::Mode::empty());
    }
    let fixed = pattern.first_wildcard_pos.unwrap_or(pattern.text.len());
    let (text, wild) = pattern.text.split_at(fixed);
    match path.strip_prefix(text) {
        Some(rest) if wild.is_empty() => rest.is_empty(),
        Some(rest) => {
            gix::glob::wildmatch(wild.as_bstr(), rest.as_bstr(), wildmatch::Mode::NO_MATCH_SLASH_LITERAL)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_and_the_last_line_decide() {
        let rules = Rules::new(Some(b"*.log\nbuild/\n"), None);
        let below = rules.within("a/".into(), Some(b"!keep.log\n/only\n"), None);
        for (path, is_dir, ignored) in [
            ("x.log", false, true),
            ("a/x.log", false, true),
            ("a/keep.log", false, false),
            ("a/only", false, true),
            ("a/b/only", false, false),
            ("build", true, true),
            ("build", false, false),
        ] {
            assert_eq!(below.ignores(path.into(), is_dir), ignored, "{path}");
        }
    }
}

//! Full listings with hashes, to show that neighbours keep every byte.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use walkdir::WalkDir;

/// A larger file is sparse, and its size is all that is compared.
const HUGE: u64 = 1 << 30;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    kind: &'static str,
    mode: u32,
    uid: u32,
    /// The link's target, or the hash of the content.
    content: String,
}

/// Everything at and below one path, nothing followed. Times are left out.
#[derive(Clone, PartialEq, Eq)]
pub struct Snapshot {
    of: PathBuf,
    entries: BTreeMap<PathBuf, Entry>,
}

impl Snapshot {
    pub fn of(path: &Path) -> Self {
        let mut entries = BTreeMap::new();
        for found in WalkDir::new(path).follow_links(false).follow_root_links(false) {
            let found = found.unwrap_or_else(|e| panic!("listing {}: {e}", path.display()));
            let meta = found.path().symlink_metadata().expect("lstat");
            let kind = meta.file_type();
            let (kind, content) = if kind.is_file() && meta.len() > HUGE {
                ("file", format!("{} bytes", meta.len()))
            } else if kind.is_file() {
                let bytes = std::fs::read(found.path()).expect("content");
                ("file", Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
            } else if kind.is_symlink() {
                ("link", std::fs::read_link(found.path()).expect("target").to_string_lossy().into_owned())
            } else if kind.is_dir() {
                ("directory", String::new())
            } else if kind.is_fifo() {
                ("fifo", String::new())
            } else {
                ("other", String::new())
            };
            let relative = found.path().strip_prefix(path).expect("below the path").to_owned();
            entries.insert(relative, Entry { kind, mode: meta.mode() & 0o7777, uid: meta.uid(), content });
        }
        Self { of: path.to_owned(), entries }
    }

    /// Of those of these paths below `path` that exist.
    pub fn of_many(path: &Path, parts: &[&str]) -> Self {
        let mut entries = BTreeMap::new();
        for part in parts.iter().filter(|part| path.join(part).symlink_metadata().is_ok()) {
            let of = Self::of(&path.join(part)).entries;
            // An empty path would end in a slash.
            let named = |(below, entry): (PathBuf, Entry)| match below.as_os_str().is_empty() {
                true => (PathBuf::from(part), entry),
                false => (Path::new(part).join(below), entry),
            };
            entries.extend(of.into_iter().map(named));
        }
        Self { of: path.to_owned(), entries }
    }

    /// Without these paths, relative to the snapshot's own, and what is below them.
    pub fn without(mut self, gone: &[impl AsRef<Path>]) -> Self {
        self.entries.retain(|path, _| !gone.iter().any(|g| path.starts_with(g)));
        self
    }

    /// Without what `is_gone` says of a path relative to the snapshot's own, and what is below it.
    pub fn without_any(mut self, is_gone: impl Fn(&Path) -> bool) -> Self {
        self.entries.retain(|path, _| !path.ancestors().any(&is_gone));
        self
    }

    /// Fails with a listing of the differences.
    #[track_caller]
    pub fn assert_same(&self, now: &Self) {
        let text = self.difference(now);
        assert!(text.is_empty(), "{} changed:\n{text}", self.of.display());
    }

    /// A listing of the differences; empty if there are none.
    pub fn difference(&self, now: &Self) -> String {
        let mut text = String::new();
        for (path, entry) in &self.entries {
            match now.entries.get(path) {
                None => writeln!(text, "- {}: {entry:?}", path.display()),
                Some(new) if new != entry => {
                    writeln!(text, "! {}:\n    was {entry:?}\n    is  {new:?}", path.display())
                }
                Some(_) => Ok(()),
            }
            .expect("write to a string");
        }
        for (path, entry) in now.entries.iter().filter(|(path, _)| !self.entries.contains_key(*path)) {
            writeln!(text, "+ {}: {entry:?}", path.display()).expect("write to a string");
        }
        text
    }
}

//! Opening a clone or one of its administrative entries with gix, so that nothing in it can make us wait, run or look
//! elsewhere.
//!
//! The container can write everything in here. Before gix opens a file, it is seen to be a regular file of bounded
//! size; the configuration is read with reduced trust, and what would weaken a comparison is overridden.

use std::path::Path;

use crate::beneath::{Dir, Refused, lstat};
use crate::git::kinds::object_stores;
use crate::vantage::paths::{LocalPath, escape};

/// Files that git reads whole, below the common directory, with the most bytes that are read of each.
const COMMON_FILES: &[(&str, u64)] = &[
    ("HEAD", 4 << 10),
    ("config", 4 << 20),
    ("config.worktree", 4 << 20),
    ("packed-refs", 512 << 20),
    ("shallow", 16 << 20),
    ("info/exclude", 4 << 20),
    ("info/attributes", 4 << 20),
    ("info/sparse-checkout", 4 << 20),
    ("info/grafts", 16 << 20),
];

/// The same for an administrative entry.
const ENTRY_FILES: &[(&str, u64)] = &[
    ("HEAD", 4 << 10),
    ("commondir", 16 << 10),
    ("gitdir", 16 << 10),
    ("index", 2 << 30),
    ("config.worktree", 4 << 20),
    ("locked", 64 << 10),
];

/// Extensions whose meaning we know (git's `Documentation/technical/repository-version.txt`); any other may change
/// what the files mean. `refStorage` is known, and not read: with reftable the ref files are stubs.
const KNOWN_EXTENSIONS: &[&str] = &[
    "noop",
    "noop-v1",
    "preciousobjects",
    "partialclone",
    "worktreeconfig",
    "objectformat",
    "relativeworktrees",
];

/// Why a repository can't be read; the text names the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

impl Unreadable {
    pub fn new(what: impl std::fmt::Display) -> Self {
        Self(what.to_string())
    }
}

/// Opens the clone whose common directory is `common`.
pub fn open_clone(common: &Dir) -> Result<gix::Repository, Unreadable> {
    check_common(common)?;
    object_stores(common)?;
    open_at(common, common)
}

/// The same, with everything that is read as evidence beneath one of `roots`: a clone may borrow objects from elsewhere.
pub fn open_clone_within(common: &Dir, roots: &[LocalPath]) -> Result<gix::Repository, Unreadable> {
    check_common(common)?;
    let outside = |store: &&LocalPath| !roots.iter().any(|root| store.is_beneath_or_at(root));
    if let Some(store) = object_stores(common)?.iter().find(outside) {
        return Err(Unreadable(format!(
            "{}/objects/info/alternates: {store} is outside of every root; add a root that holds it",
            common.path()
        )));
    }
    open_at(common, common)
}

/// Opens the administrative entry `entry` of the clone `common`, which has been opened before, as a repository of its
/// own, with its HEAD and index.
pub fn open_entry(common: &Dir, entry: &Dir) -> Result<gix::Repository, Unreadable> {
    check_common(common)?;
    check_files(entry, ENTRY_FILES)?;
    open_at(common, entry)
}

fn check_common(common: &Dir) -> Result<(), Unreadable> {
    check_files(common, COMMON_FILES)?;
    // Git takes refs, objects and configuration from where such a file leads (`get_common_dir`). In the place where
    // registrations lie it is no part of any clone: it would let another clone's history answer for this one.
    match common.meta("commondir") {
        Err(Refused::Absent) => {}
        Ok(_) => {
            let path = common.path();
            return Err(Unreadable(format!("{path}/commondir: a clone's own directory must not have one")));
        }
        Err(refused) => return Err(Unreadable(format!("{}/commondir: {refused}", common.path()))),
    }
    check_extensions(common)
}

/// Keys that decide how gix reads a repository, whatever its own configuration says.
const OVERRIDES: [&str; 11] = [
    // Forged replacements and a forged commit graph must not decide what has landed.
    "core.useReplaceRefs=false",
    "core.commitGraph=false",
    "core.multiPackIndex=false",
    // Weak stat settings would let a change pass.
    "core.checkStat=default",
    "core.trustCtime=true",
    "core.fileMode=true",
    "core.ignoreCase=false",
    "core.symlinks=true",
    "core.precomposeUnicode=false",
    "core.untrackedCache=false",
    "core.fsmonitor=false",
];

fn open_at(common: &Dir, git_dir: &Dir) -> Result<gix::Repository, Unreadable> {
    let path = git_dir.path();
    let options = gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        .bail_if_untrusted(false)
        .open_path_as_is(true)
        .config_overrides(OVERRIDES);
    let mut repo =
        gix::open_opts(path.as_path(), options).map_err(|e| Unreadable(format!("{path}: {}", chain(&e))))?;
    if repo.git_dir_trust() != gix::sec::Trust::Reduced {
        return Err(Unreadable(format!("{path}: it was opened with full trust, so it was not read")));
    }
    // gix opens by path and reads `commondir` itself, and with `core.precomposeUnicode` (which it takes from the file,
    // before any override) it spells the path anew: what it found must be what we hold.
    is_at(repo.git_dir(), git_dir)?;
    is_at(repo.common_dir(), common)?;
    repo.refs.precompose_unicode = false;
    Ok(repo)
}

fn is_at(found: &Path, held: &Dir) -> Result<(), Unreadable> {
    let wrong = |why: &dyn std::fmt::Display| Unreadable(format!("{}: {why}", held.path()));
    let id = held.own_meta().map_err(|e| wrong(&e))?.id;
    match LocalPath::new(found).map(|path| lstat(&path)) {
        Some(Ok(meta)) if meta.id == id => Ok(()),
        _ => {
            let shown = escape(found.as_os_str().as_encoded_bytes());
            Err(wrong(&format_args!("opening it led to {shown}")))
        }
    }
}

/// Sees that each of `files` is absent or a plain file within its bound.
fn check_files(dir: &Dir, files: &[(&str, u64)]) -> Result<(), Unreadable> {
    for (name, limit) in files {
        match dir.file(name) {
            Ok((_, meta)) if meta.size > *limit => {
                let refused = Refused::TooLarge { size: meta.size, limit: *limit };
                return Err(Unreadable(format!("{}/{name}: {refused}", dir.path())));
            }
            Ok(_) | Err(Refused::Absent) => {}
            Err(refused) => return Err(Unreadable(format!("{}/{name}: {refused}", dir.path()))),
        }
    }
    Ok(())
}

/// Refuses extensions that we do not know and ref storage that gix can't read, whatever the format version says:
/// a version that was set back does not make the files of another format readable.
fn check_extensions(common: &Dir) -> Result<(), Unreadable> {
    let path = common.path();
    let bytes = match common.read("config", 4 << 20) {
        Ok(bytes) => bytes,
        Err(Refused::Absent) => return Ok(()),
        Err(refused) => return Err(Unreadable(format!("{path}/config: {refused}"))),
    };
    only_known_extensions(&bytes).map_err(|why| Unreadable(format!("{path}/config: {why}")))
}

/// Parses a configuration file of a repository, with nothing that it includes.
pub(crate) fn parse_config(bytes: &[u8]) -> Result<gix::config::File, String> {
    let metadata = gix::config::file::Metadata::from(gix::config::Source::Local);
    gix::config::File::from_bytes_no_includes(bytes, metadata, Default::default()).map_err(|e| chain(&e))
}

pub(crate) fn only_known_extensions(config: &[u8]) -> Result<(), String> {
    let config = parse_config(config)?;
    for section in config.sections().filter(|s| s.header().name().eq_ignore_ascii_case(b"extensions")) {
        for key in section.value_names() {
            let name = key.to_ascii_lowercase();
            if name == "refstorage" && section.value(key.as_str()).is_some_and(|v| v.as_slice() == b"files") {
                continue;
            }
            if !KNOWN_EXTENSIONS.contains(&name.as_str()) {
                return Err(format!("extensions.{} is not understood", escape(key.as_bytes())));
            }
        }
    }
    Ok(())
}

/// An error and its causes on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let next_text = next.to_string();
        if !text.contains(&next_text) {
            text.push_str(": ");
            text.push_str(&next_text);
        }
        cause = next.source();
    }
    escape(text.as_bytes())
}

/// Whether a path is there at all, for callers that treat absent files as empty.
pub fn read_optional(dir: &Dir, name: impl AsRef<Path>, limit: u64) -> Result<Option<Vec<u8>>, Unreadable> {
    let name = name.as_ref();
    match dir.read(name, limit) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Refused::Absent) => Ok(None),
        Err(refused) => Err(Unreadable(format!(
            "{}/{}: {refused}",
            dir.path(),
            escape(name.as_os_str().as_encoded_bytes())
        ))),
    }
}

#[cfg(test)]
mod tests;

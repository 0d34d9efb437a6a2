//! Opening a clone or one of its administrative entries with gix, so that nothing in it can make us wait, run or look
//! elsewhere.
//!
//! The container can write everything in here. Before gix opens a file, it is seen to be a regular file of bounded
//! size; the configuration is read with reduced trust, and what would weaken a comparison is overridden.

use std::path::Path;

use crate::beneath::{Dir, Refused};
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
    ("objects/info/alternates", 1 << 20),
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
    check_files(common, COMMON_FILES)?;
    check_extensions(common)?;
    open_at(common.path())
}

/// Opens the administrative entry `entry` of the clone `common` as a repository of its own, with its HEAD and index.
pub fn open_entry(common: &Dir, entry: &Dir) -> Result<gix::Repository, Unreadable> {
    check_files(common, COMMON_FILES)?;
    check_extensions(common)?;
    check_files(entry, ENTRY_FILES)?;
    open_at(entry.path())
}

fn open_at(git_dir: &LocalPath) -> Result<gix::Repository, Unreadable> {
    let options = gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        .bail_if_untrusted(false)
        .open_path_as_is(true)
        .config_overrides([
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
        ]);
    let repo = gix::open_opts(git_dir.as_path(), options)
        .map_err(|e| Unreadable(format!("{git_dir}: {}", chain(&e))))?;
    if repo.git_dir_trust() != gix::sec::Trust::Reduced {
        return Err(Unreadable(format!("{git_dir}: it was opened with full trust, so it was not read")));
    }
    Ok(repo)
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
    let config = gix::config::File::from_bytes_no_includes(
        &bytes,
        gix::config::file::Metadata::from(gix::config::Source::Local),
        Default::default(),
    )
    .map_err(|e| Unreadable(format!("{path}/config: {}", chain(&e))))?;
    for section in config.sections().filter(|s| s.header().name().eq_ignore_ascii_case(b"extensions")) {
        for key in section.value_names() {
            let name = key.to_ascii_lowercase();
            if name == "refstorage" && section.value(key.as_str()).is_some_and(|v| v.as_slice() == b"files") {
                continue;
            }
            if !KNOWN_EXTENSIONS.contains(&name.as_str()) {
                return Err(Unreadable(format!(
                    "{path}/config: extensions.{} is not understood",
                    escape(key.as_bytes())
                )));
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
mod tests {
    use super::*;
    use std::process::Command;

    fn clone_with(config: &[(&str, &str)]) -> (tempfile::TempDir, Dir) {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        let git = |args: &[&str]| {
            let ok = Command::new("git")
                .current_dir(&path)
                .args(args)
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .status();
            assert!(ok.unwrap().success(), "git {args:?}");
        };
        git(&["init", "-q", "-b", "main", "."]);
        for (key, value) in config {
            git(&["config", key, value]);
        }
        let dir = Dir::open(&LocalPath::new(path.join(".git")).unwrap()).unwrap();
        (tmp, dir)
    }

    #[test]
    fn what_we_do_not_understand_is_refused() {
        for (key, value, readable) in [
            ("extensions.worktreeConfig", "true", true),
            ("extensions.relativeWorktrees", "true", true),
            ("extensions.partialClone", "origin", true),
            ("extensions.refStorage", "files", true),
            ("extensions.refStorage", "reftable", false),
            ("extensions.somethingNew", "1", false),
        ] {
            let (_tmp, dir) = clone_with(&[("core.repositoryformatversion", "1"), (key, value)]);
            assert_eq!(open_clone(&dir).is_ok(), readable, "{key}={value}: {:?}", open_clone(&dir).err());
        }
    }

    #[test]
    fn a_fifo_does_not_hold_us() {
        let (tmp, dir) = clone_with(&[]);
        nix::unistd::mkfifo(&tmp.path().join(".git/packed-refs"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let error = open_clone(&dir).unwrap_err();
        assert!(error.0.contains("packed-refs") && error.0.contains("FIFO"), "{error}");
    }
}

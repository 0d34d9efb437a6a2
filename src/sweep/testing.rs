//! What the sweep's tests share: a clone made by real git, and the state of a tree.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gix::ObjectId;
use jiff::Timestamp;
use sha2::{Digest, Sha256};

use crate::beneath::Dir;
use crate::git::open::Unreadable;
use crate::judge::tree_facts::Fingerprint;
use crate::sweep::bytes::Bytes;
use crate::sweep::record::{Acted, AnsweredBy, Record, RecordId, SCHEMA};
use crate::vantage::paths::LocalPath;

/// A clone `app` with one commit on `main`, in a directory of its own.
pub struct Clone {
    _tmp: tempfile::TempDir,
    /// The directory that holds the clone.
    pub root: PathBuf,
    pub path: PathBuf,
}

impl Clone {
    pub fn new() -> Self {
        let tmp = place();
        let root = tmp.path().canonicalize().unwrap();
        let path = root.join("app");
        std::fs::create_dir(&path).unwrap();
        let clone = Self { _tmp: tmp, root, path };
        clone.git(&["init", "-q", "-b", "main", "."]);
        std::fs::write(clone.path.join("file"), "base\n").unwrap();
        clone.git(&["add", "-A"]);
        clone.git(&["commit", "-qm", "base"]);
        clone
    }

    /// The same on its own, with every path and time as it was.
    pub fn copy(&self) -> Self {
        let tmp = place();
        let root = tmp.path().canonicalize().unwrap();
        let done = Command::new("cp").arg("-a").arg(self.root.join(".")).arg(&root).status().unwrap();
        assert!(done.success());
        Self { path: root.join("app"), _tmp: tmp, root }
    }

    pub fn git(&self, args: &[&str]) -> String {
        git_in(&self.path, args)
    }

    /// git with `input` on its standard input.
    pub fn git_with_input(&self, args: &[&str], input: &str) -> String {
        let file = self.root.join("input");
        std::fs::write(&file, input).unwrap();
        let output = Command::new("git")
            .current_dir(&self.path)
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .stdin(std::fs::File::open(&file).unwrap())
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub fn common(&self) -> Dir {
        Dir::open(&local(&self.path.join(".git"))).unwrap()
    }

    pub fn id_of(&self, rev: &str) -> ObjectId {
        ObjectId::from_hex(self.git(&["rev-parse", rev]).as_bytes()).unwrap()
    }

    /// A commit on top of `on` that no branch names yet.
    pub fn commit_on(&self, on: &str, message: &str) -> ObjectId {
        let id = self.git(&["commit-tree", &format!("{on}^{{tree}}"), "-p", on, "-m", message]);
        ObjectId::from_hex(id.as_bytes()).unwrap()
    }

    pub fn has_ref(&self, name: &str) -> bool {
        !self.git(&["for-each-ref", name]).is_empty()
    }
}

/// A directory in memory where there is one: these tests wait for the disk hundreds of times.
pub fn place() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub fn git_in(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "gc.auto=0"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub fn local(path: &Path) -> LocalPath {
    LocalPath::new(path).unwrap()
}

/// The record of a removal that began then and is not complete; without anchors.
pub fn record(started: Timestamp) -> Record {
    Record {
        schema: SCHEMA,
        id: RecordId::random(started).unwrap(),
        name: Bytes::new("x"),
        common_dir: Bytes::new("/c"),
        recorded_path: None,
        pointer: None,
        path: None,
        branch: None,
        tip: None,
        act: Acted::Remove,
        authority: AnsweredBy::Owned,
        anchors: Vec::new(),
        trunk: None,
        started,
        completed: None,
    }
}

/// Name, kind, mode and content of everything below `path`, with which two states are compared.
pub fn listing(path: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![path.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            let content = if meta.is_file() {
                format!("{:x?}", Sha256::digest(std::fs::read(entry.path()).unwrap()))
            } else if meta.is_symlink() {
                format!("{:?}", std::fs::read_link(entry.path()).unwrap())
            } else {
                waiting.push(entry.path());
                String::new()
            };
            found.insert(entry.path(), format!("{:o} {content}", meta.mode()));
        }
    }
    found
}

/// The state of everything in `dir`, as far as these tests change it.
pub fn fingerprint(dir: &Dir) -> Result<Fingerprint, Unreadable> {
    let mut hash = Sha256::new();
    let mut waiting = vec![dir.path().as_path().to_owned()];
    while let Some(at) = waiting.pop() {
        let mut entries: Vec<_> =
            std::fs::read_dir(&at).and_then(|d| d.collect::<Result<_, _>>()).map_err(Unreadable::new)?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let meta = entry.metadata().map_err(Unreadable::new)?;
            hash.update(entry.file_name().as_bytes());
            for n in
                [meta.ino(), meta.mode().into(), meta.size(), meta.mtime() as u64, meta.mtime_nsec() as u64]
            {
                hash.update(n.to_le_bytes());
            }
            if meta.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    let digest: [u8; 32] = hash.finalize().into();
    Ok(Fingerprint(u128::from_le_bytes(std::array::from_fn(|n| digest[n]))))
}

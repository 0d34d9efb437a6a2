//! The walk beneath one root, by as many workers as the current rayon pool has. Each directory is listed once; what its
//! names are comes with the listing, so that nothing else is looked at.

use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{FileType, RawDir};

use crate::beneath::{Dir, Kind, Refused};
use crate::git::layout;
use crate::stop::Stop;
use crate::sweep::trash;
use crate::vantage::paths::LocalPath;

/// Something that bears a name that matters.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Met {
    /// `.git` in this directory.
    DotGit(LocalPath, Kind),
    /// A directory with the names that a git directory has.
    GitDirectory(LocalPath),
    /// A directory with a trash name.
    Trash(LocalPath),
    Unreadable(LocalPath, String),
    /// Not everything was walked.
    Stopped,
}

/// Walks what is beneath `start`, down to `depth` levels, without `skip`. Symlinks are not followed, mounts are. What was
/// met comes in an order that depends on nothing but what is there.
pub(super) fn walk(start: &LocalPath, depth: Option<usize>, skip: Option<&Path>, stop: &Stop) -> Vec<Met> {
    let walk = Walk { skip, stop, stopped: AtomicBool::new(false), met: Mutex::default() };
    let depth = depth.unwrap_or(usize::MAX);
    rayon::scope(|scope| walk.visit(start.clone(), depth, true, scope));
    let mut met = walk.met.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    if walk.stopped.into_inner() {
        met.push(Met::Stopped);
    }
    met.sort();
    met
}

struct Walk<'a> {
    skip: Option<&'a Path>,
    stop: &'a Stop,
    stopped: AtomicBool,
    met: Mutex<Vec<Met>>,
}

/// The names in one directory that may matter.
#[derive(Default)]
struct Names {
    directories: Vec<Vec<u8>>,
    dot_git: Option<Kind>,
    head: bool,
}

impl<'a> Walk<'a> {
    fn meet(&self, met: Met) {
        self.met.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(met);
    }

    /// Lists `dir`, of which `depth` more levels are wanted, and has the directories in it visited by whoever is free.
    fn visit<'s>(&'s self, dir: LocalPath, depth: usize, is_start: bool, scope: &rayon::Scope<'s>)
    where
        'a: 's,
    {
        if depth == 0 || self.stopped.load(Ordering::Relaxed) {
            return;
        }
        if self.stop.is_set() {
            self.stopped.store(true, Ordering::Relaxed);
            return;
        }
        let names = match Dir::open(&dir).and_then(|held| names_in(&held)) {
            Ok(names) => names,
            // What went while we came knows nothing any more.
            Err(Refused::Absent) if !is_start => return,
            Err(refused) => return self.meet(Met::Unreadable(dir, refused.to_string())),
        };
        if let Some(kind) = names.dot_git {
            self.meet(Met::DotGit(dir.clone(), kind));
        }
        let has = |wanted: &[u8]| names.directories.iter().any(|name| name == wanted);
        // In a bare clone there may be worktrees beside git's own directories.
        let bare = names.head && has(b"objects") && has(b"refs");
        if bare {
            self.meet(Met::GitDirectory(dir.clone()));
        }
        for name in names.directories.iter().filter(|name| !(bare && layout::is_gits_own(name))) {
            let Some(below) = dir.join(name) else { continue };
            if trash::parse(name).is_some() {
                self.meet(Met::Trash(below));
            } else if Some(below.as_path()) != self.skip {
                scope.spawn(move |scope| self.visit(below, depth - 1, false, scope));
            }
        }
    }
}

fn names_in(dir: &Dir) -> Result<Names, Refused> {
    let mut names = Names::default();
    let mut buffer = Vec::with_capacity(32 << 10);
    let mut entries = RawDir::new(dir.as_fd(), buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Directory => Kind::Directory,
            // Of anything else only these two names matter.
            _ if !matches!(name, b".git" | b"HEAD") && entry.file_type() != FileType::Unknown => continue,
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Symlink,
            // Some file systems don't tell, and other kinds are rare.
            _ => match dir.meta(OsStr::from_bytes(name)) {
                Ok(meta) => meta.kind,
                Err(Refused::Absent) => continue,
                Err(refused) => return Err(refused),
            },
        };
        match (name, kind) {
            (b".git", kind) => names.dot_git = Some(kind),
            (b"HEAD", Kind::File | Kind::Symlink) => names.head = true,
            (_, Kind::Directory) => names.directories.push(name.to_vec()),
            _ => {}
        }
    }
    Ok(names)
}

//! Finds clones, checkouts and our own trash beneath the roots. Symlinked directories are not followed.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rayon::prelude::*;
use walkdir::WalkDir;

use crate::beneath::{self, Dir, Kind, Refused};
use crate::git::registration::Pointer;
use crate::stop::Stop;
use crate::vantage::paths::{FileId, LocalPath, RecordedPath, escape};

mod walk;

use walk::Met;

/// Most bytes of a `.git` file.
const DOT_GIT_FILE: u64 = 16 << 10;

/// A directory that bounds everything that is read as evidence, written or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Root {
    /// Resolved: it has no symlink.
    pub path: LocalPath,
    /// Only clones beneath these directories are swept; the others beneath the root are evidence.
    pub scope: Scope,
    /// How many levels below the root are walked; the clones in scope are always walked whole.
    pub depth: Option<usize>,
}

/// Which of the clones beneath a root are to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    All,
    /// The one that this directory belongs to.
    Only(LocalPath),
    /// None: its clones are evidence against ambiguity.
    Evidence,
}

/// What lies beneath the roots.
#[derive(Debug, Default)]
pub struct Field {
    pub clones: Vec<CloneSite>,
    pub checkouts: Vec<Sighting>,
    /// Directories that bear the name of our trash.
    pub trash: Vec<LocalPath>,
    pub warnings: Vec<String>,
}

/// A clone, with its common directory held open.
#[derive(Debug)]
pub struct CloneSite {
    /// The directory that a person would call the clone.
    pub dir: LocalPath,
    pub common: Dir,
    pub common_id: FileId,
    /// Where its main worktree is, or would be: the directory with its `.git`.
    pub main_worktree: Option<LocalPath>,
    /// The root that it lies beneath.
    pub root: LocalPath,
    /// Its common directory lies outside of every root.
    pub outside: bool,
    /// To be judged, not only evidence.
    pub in_scope: bool,
}

/// A directory whose `.git` file points at an administrative entry.
#[derive(Clone, Debug)]
pub struct Sighting {
    pub path: LocalPath,
    pub id: FileId,
    pub pointer: Pointer,
}

impl CloneSite {
    /// Git's name for it in messages and for sorting.
    pub fn common_path(&self) -> &LocalPath {
        self.common.path()
    }
}

/// Walks all `roots`; what can't be read is a warning, and the walk goes on. Threads: those of the current rayon pool.
pub fn discover(roots: &[Root], stop: &Stop) -> Field {
    let mut parts = Vec::new();
    for root in roots {
        let mut walked = |start: &LocalPath, depth, skip| {
            let met = walk::walk(start, depth, skip, stop);
            parts.par_extend(met.into_par_iter().map(|met| Finds::of(roots, root, met)));
        };
        if let Scope::Only(clone) = &root.scope {
            walked(clone, None, None);
            walked(&root.path, root.depth, Some(clone.as_path()));
        } else {
            walked(&root.path, root.depth, None);
        }
    }
    Field::of(parts)
}

/// What one name leads to.
struct Finds<'a> {
    roots: &'a [Root],
    field: Field,
}

impl Finds<'_> {
    fn of(roots: &[Root], root: &Root, met: Met) -> Field {
        let mut finds = Finds { roots, field: Field::default() };
        match met {
            Met::DotGit(at, kind) => finds.dot_git(root, &at, kind),
            Met::GitDirectory(at) => finds.bare_clone(root, at.as_path()),
            Met::Trash(at) => finds.field.trash.push(at),
            Met::Unreadable(at, why) => finds.warn_unreadable(&at.to_string(), &why),
            Met::Stopped => {
                let why = format!("{}: the time was up before it was walked whole", root.path);
                finds.field.warnings.push(why);
            }
        }
        finds.field
    }

    fn warn_unreadable(&mut self, path: &str, why: &str) {
        self.field.warnings.push(format!("{path}: could not be read, what lies in it is not known: {why}"));
    }

    /// `.git` in the directory `at`: a clone's, a checkout's, or neither.
    fn dot_git(&mut self, root: &Root, at: &LocalPath, kind: Kind) {
        if kind == Kind::Directory {
            if !is_git_dir(&at.as_path().join(".git")) {
                let why = "git would not take it for a repository, or its parts are links";
                self.field.warnings.push(format!("{at}/.git: {why}: what belongs to it is not known"));
            }
            self.clone(root, at, at.as_path().join(".git"), Some(at.clone()));
            self.module_clones(root, &at.as_path().join(".git/modules"));
        } else if kind == Kind::Symlink {
            match at.as_path().join(".git").canonicalize() {
                Ok(target) if target.is_dir() => self.clone(root, at, target, Some(at.clone())),
                Ok(_) => self.field.warnings.push(format!("{at}/.git: is a symlink to no directory")),
                Err(error) => {
                    self.field.warnings.push(format!("{at}/.git: this symlink can't be followed: {error}"))
                }
            }
        } else if kind == Kind::File {
            self.dot_git_file(root, at);
        } else {
            self.field.warnings.push(format!(
                "{at}/.git: is of no kind that git makes, so nothing is known of this directory"
            ));
        }
    }

    fn dot_git_file(&mut self, root: &Root, at: &LocalPath) {
        let read = Dir::open(at).and_then(|dir| Ok((dir.read(".git", DOT_GIT_FILE)?, dir.own_meta()?.id)));
        let (bytes, id) = match read {
            Ok(read) => read,
            Err(refused) => {
                self.field.warnings.push(format!("{at}/.git: could not be read: {refused}"));
                return;
            }
        };
        let Some(pointer) = Pointer::parse(&bytes) else {
            self.field
                .warnings
                .push(format!("{at}/.git: is not what git writes, so nothing is known of this directory"));
            return;
        };
        // A separate git directory, a submodule's (which may be called `worktrees/x`), or a bare clone beside; one that
        // isn't here is another vantage's.
        let base = RecordedPath::new(at.as_bstr());
        let target =
            pointer.target.resolved_from(&base).map(|t| PathBuf::from(OsStr::from_bytes(t.as_bstr())));
        if let Some(target) = target.and_then(|t| t.canonicalize().ok()).filter(|t| is_git_dir(t)) {
            self.clone(root, at, target, Some(at.clone()));
        } else if pointer.entry.is_some() {
            self.field.checkouts.push(Sighting { path: at.clone(), id, pointer });
        }
    }

    /// Submodules keep their repositories here, with worktrees of their own perhaps, checked out or not.
    fn module_clones(&mut self, root: &Root, modules: &Path) {
        // Most clones have none; what is there and can't be looked at is said.
        if matches!(LocalPath::new(modules).map(|m| beneath::lstat(&m)), Some(Err(Refused::Absent))) {
            return;
        }
        let mut dirs = WalkDir::new(modules).follow_links(false).max_depth(8).into_iter();
        while let Some(entry) = dirs.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.warn_walk(&error);
                    continue;
                }
            };
            if entry.file_type().is_dir() && is_git_dir(entry.path()) {
                self.bare_clone(root, entry.path());
                let nested = entry.path().join("modules");
                dirs.skip_current_dir();
                if nested.is_dir() {
                    self.module_clones(root, &nested);
                }
            }
        }
    }

    fn warn_walk(&mut self, error: &walkdir::Error) {
        // What went while we came knows nothing any more.
        if error.io_error().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound) && error.depth() > 0 {
            return;
        }
        let path = error.path().map(|p| escape(p.as_os_str().as_bytes())).unwrap_or_default();
        let why = error.io_error().map_or_else(|| error.to_string(), |e| e.to_string());
        self.warn_unreadable(&path, &why);
    }

    fn bare_clone(&mut self, root: &Root, dir: &Path) {
        if let Some(at) = LocalPath::new(dir) {
            self.clone(root, &at, dir.to_owned(), None);
        }
    }

    fn clone(&mut self, root: &Root, at: &LocalPath, common: PathBuf, main_worktree: Option<LocalPath>) {
        let Some(common) = LocalPath::new(common) else { return };
        if !is_git_dir(common.as_path()) {
            return;
        }
        let opened = Dir::open(&common).and_then(|dir| Ok((dir.own_meta()?.id, dir)));
        let (common_id, dir) = match opened {
            Ok(opened) => opened,
            Err(refused) => {
                self.field.warnings.push(format!("{common}: this clone could not be opened: {refused}"));
                return;
            }
        };
        let in_scope = match &root.scope {
            Scope::All => true,
            Scope::Only(only) => only == at || only.as_path() == common.as_path(),
            Scope::Evidence => false,
        };
        let outside = !self.roots.iter().any(|r| common.is_beneath_or_at(&r.path));
        let found = CloneSite {
            dir: at.clone(),
            common: dir,
            common_id,
            main_worktree,
            root: root.path.clone(),
            outside,
            in_scope,
        };
        self.field.clones.push(found);
    }
}

impl Field {
    /// All `parts` together: each clone once, and everything in the order of the paths.
    fn of(parts: Vec<Field>) -> Self {
        let mut all = Self::default();
        // Where in `all.clones` the clone of this common directory is.
        let mut by_common: HashMap<FileId, usize> = HashMap::new();
        for part in parts {
            for found in part.clones {
                match by_common.get(&found.common_id) {
                    Some(known) => all.clones[*known].seen_again(found),
                    None => {
                        by_common.insert(found.common_id, all.clones.len());
                        all.clones.push(found);
                    }
                }
            }
            all.checkouts.extend(part.checkouts);
            all.trash.extend(part.trash);
            all.warnings.extend(part.warnings);
        }
        all.clones.sort_by(|a, b| a.dir.cmp(&b.dir));
        all.checkouts.sort_by(|a, b| a.path.cmp(&b.path));
        all.checkouts.dedup_by(|a, b| a.path == b.path);
        all.trash.sort();
        all.trash.dedup();
        all.warnings.sort();
        all.warnings.dedup();
        all
    }
}

impl CloneSite {
    /// The same common directory was met another way: bare and through the `.git` beside it, through a link, or under two
    /// roots. Its own directory is the one that holds it; whatever else leads to it does so in the order of the paths.
    fn seen_again(&mut self, other: CloneSite) {
        self.in_scope |= other.in_scope;
        let rank = |site: &CloneSite| {
            let common = site.common.path();
            (site.dir == *common, common.parent().as_ref() != Some(&site.dir), site.dir.clone())
        };
        if rank(&other) < rank(self) {
            (self.dir, self.root) = (other.dir, other.root);
            self.main_worktree = other.main_worktree.or(self.main_worktree.take());
        } else if self.main_worktree.is_none() {
            self.main_worktree = other.main_worktree;
        }
    }
}

/// What git asks of a git directory (`is_git_directory`): `HEAD`, `objects` and `refs`.
pub fn is_git_dir(path: &Path) -> bool {
    let kind =
        |name: &str| LocalPath::new(path.join(name)).and_then(|p| beneath::lstat(&p).ok()).map(|m| m.kind);
    kind("objects") == Some(Kind::Directory)
        && kind("refs") == Some(Kind::Directory)
        && matches!(kind("HEAD"), Some(Kind::File | Kind::Symlink))
}

/// The clone that `start` lies in: the nearest directory at or above it with a `.git`, or a bare clone.
///
/// # Errors
/// A `.git` file that can't be read.
pub fn enclosing_clone(start: &LocalPath) -> Result<Option<EnclosingClone>, Refused> {
    let mut at = Some(start.clone());
    while let Some(dir) = at {
        if is_git_dir(dir.as_path()) {
            // Inside of `<clone>/.git`, or a bare clone.
            let dot_git = dir.file_name() == Some(b".git".as_bstr());
            let clone = if dot_git { dir.parent().unwrap_or(dir) } else { dir };
            return Ok(Some(EnclosingClone::Clone(clone)));
        }
        match LocalPath::new(dir.as_path().join(".git")).map(|p| beneath::lstat(&p)) {
            Some(Ok(meta)) if meta.kind == Kind::File => {
                let pointer = Pointer::parse(&Dir::open(&dir)?.read(".git", DOT_GIT_FILE)?);
                return Ok(Some(match pointer {
                    Some(Pointer { entry: Some(_), target }) => EnclosingClone::Checkout { dir, target },
                    _ => EnclosingClone::Clone(dir),
                }));
            }
            Some(Ok(_)) => return Ok(Some(EnclosingClone::Clone(dir))),
            _ => at = dir.parent(),
        }
    }
    Ok(None)
}

/// What a directory was found to lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnclosingClone {
    Clone(LocalPath),
    /// A linked worktree's checkout, and where its `.git` file points.
    Checkout {
        dir: LocalPath,
        target: RecordedPath,
    },
}

//! Free space, as the kernel tells it: sizes of files added up would count what hard links and reflinks share.

use std::io;

use crate::beneath::{Dir, Refused};
use crate::survey::discover::{Root, Scope};
use crate::vantage::paths::LocalPath;

/// What a file system holds and could hold, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// What users can fill: without what is set aside for root.
    pub size: u64,
    /// What users can still fill.
    pub available: u64,
}

/// A file system that holds roots, and what it was like when it was first looked at.
#[derive(Debug)]
pub struct FileSystem {
    /// The first root on it.
    pub root: LocalPath,
    pub before: Space,
    dev: u64,
    held: Dir,
}

impl FileSystem {
    /// What it is like now.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn now(&self) -> io::Result<Space> {
        let stat = rustix::fs::fstatvfs(&self.held)?;
        let used = stat.f_blocks.saturating_sub(stat.f_bfree);
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Ok(Space { size: bytes(used + stat.f_bavail), available: bytes(stat.f_bavail) })
    }

    /// The same after all deletions have taken effect: some file systems free blocks only when they commit.
    pub fn settled(&self) -> io::Result<Space> {
        rustix::fs::syncfs(&self.held)?;
        self.now()
    }

    /// Whether what lies in the directory `dir` is on it.
    pub fn holds(&self, dir: &LocalPath) -> Result<bool, Refused> {
        Ok(Dir::open(dir)?.own_meta()?.id.dev == self.dev)
    }
}

/// Each file system that holds a swept root once, or why nothing can be said of a root.
pub fn file_systems(roots: &[Root]) -> Vec<Result<FileSystem, (LocalPath, Refused)>> {
    let mut all: Vec<Result<FileSystem, (LocalPath, Refused)>> = Vec::new();
    for root in roots.iter().filter(|root| root.scope != Scope::Evidence) {
        match file_system(&root.path) {
            Ok(new) if all.iter().flatten().any(|known| known.dev == new.dev) => {}
            Ok(new) => all.push(Ok(new)),
            Err(refused) => all.push(Err((root.path.clone(), refused))),
        }
    }
    all
}

fn file_system(root: &LocalPath) -> Result<FileSystem, Refused> {
    let held = Dir::open(root)?;
    let dev = held.own_meta()?.id.dev;
    let unmeasured = Space { size: 0, available: 0 };
    let mut new = FileSystem { root: root.clone(), before: unmeasured, dev, held };
    new.before = new.now()?;
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(path: &std::path::Path, scope: Scope) -> Root {
        Root { path: LocalPath::new(path.canonicalize().unwrap()).unwrap(), scope, depth: None }
    }

    #[test]
    fn each_file_system_is_there_once_and_evidence_does_not_count() {
        let tmp = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| tmp.path().join(name));
        for dir in [&a, &b] {
            std::fs::create_dir(dir).unwrap();
        }
        let proc = std::path::Path::new("/proc");
        let roots = [root(&a, Scope::All), root(&b, Scope::All), root(proc, Scope::Evidence)];
        let all = file_systems(&roots);
        let [Ok(only)] = all.as_slice() else { panic!("{all:?}") };
        assert_eq!(only.root, roots[0].path);
        assert!(only.before.available <= only.before.size && only.before.size > 0);
        assert!(only.settled().is_ok() && only.holds(&roots[1].path).unwrap());
        assert!(!only.holds(&roots[2].path).unwrap());
        std::fs::remove_dir(&a).unwrap();
        assert!(matches!(file_systems(&roots[..1])[..], [Err((_, Refused::Absent))]));
    }
}

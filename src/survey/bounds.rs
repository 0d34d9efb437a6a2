//! What lies within the roots, and what no removal may touch wherever it lies.

use bstr::ByteSlice;

use crate::beneath::{Dir, Kind, Meta, Refused};
use crate::git::layout;
use crate::judge::reason::{Code, Reason};
use crate::survey::ground::Ground;
use crate::vantage::paths::LocalPath;

/// What is at a path beneath a root.
pub(super) enum Look {
    There(Meta),
    Missing,
    /// A component below the root is a symlink, or no directory.
    Escapes,
    Failed(String),
}

impl Ground<'_> {
    /// Why nothing at `path` may be touched for clone `c`, whatever else is known.
    pub(super) fn out_of_bounds(&self, c: usize, path: &LocalPath) -> Option<Reason> {
        let site = self.sides[c].site;
        // Another clone's is no business of this registration: the walk finds it as a nested repository.
        let mains = [Some(&site.dir), site.main_worktree.as_ref(), Some(site.common_path())];
        if let Some(main) = mains.into_iter().flatten().find(|main| main.is_beneath_or_at(path)) {
            return Some(Reason::new(Code::MainWorktree, format!("{path} is or contains {main}")));
        }
        if let Some(common) = self.git_dir_over(path).filter(|common| !layout::may_hold(common, path)) {
            return Some(Reason::new(
                Code::MainWorktree,
                format!("{path} lies in the git directory {common}"),
            ));
        }
        if let Some(root) = self.roots.iter().find(|root| root.is_beneath_or_at(path)) {
            let above = path.parent().filter(|above| self.is_in_bounds(above));
            return Some(match (root == path, above) {
                // Its trash would lie beside it, and that is no root's any more.
                (true, None) => outside(&path.parent().unwrap_or_else(|| path.clone())),
                _ => Reason::new(Code::Protected, format!("the root {root} is or lies in it")),
            });
        }
        if site.outside {
            return Some(outside(&site.common_path().parent().unwrap_or_else(|| site.common_path().clone())));
        }
        match self.is_in_bounds(path) {
            true => None,
            false => Some(outside(&path.parent().unwrap_or_else(|| path.clone()))),
        }
    }

    /// The common directory, of whatever clone, that `path` lies in.
    fn git_dir_over(&self, path: &LocalPath) -> Option<LocalPath> {
        std::iter::successors(Some(path.clone()), LocalPath::parent).find(|p| self.commons.contains_key(p))
    }

    pub(super) fn is_in_bounds(&self, path: &LocalPath) -> bool {
        self.roots.iter().any(|root| path.is_beneath_or_at(root))
    }

    /// `path` as it is beneath a root, if it is so only once the links above it are followed: the roots are resolved, and
    /// who recorded the path may have spelled it otherwise (case C14).
    pub(super) fn respelled(&self, path: LocalPath) -> LocalPath {
        if self.is_in_bounds(&path) {
            return path;
        }
        let mut above = path.parent();
        while let Some(dir) = above {
            let rest = path.below(&dir).unwrap_or_default();
            if let Some(real) = self.real_path_of(&dir) {
                return real.join(rest).filter(|real| self.is_in_bounds(real)).unwrap_or(path);
            }
            above = dir.parent();
        }
        path
    }

    /// Hundreds of recorded paths lie in one directory, so it is asked once.
    fn real_path_of(&self, dir: &LocalPath) -> Option<LocalPath> {
        if let Some(known) = self.real.borrow().get(dir) {
            return known.clone();
        }
        let real = std::fs::canonicalize(dir.as_path()).ok().and_then(LocalPath::new);
        self.real.borrow_mut().insert(dir.clone(), real.clone());
        real
    }

    /// Looks at `path` from the root above it, following no link.
    pub(super) fn look(&self, path: &LocalPath) -> Look {
        let Some((root, below)) = self.roots.iter().find_map(|root| Some((root, path.below(root)?))) else {
            return Look::Failed(format!("{path} is outside of every root"));
        };
        let meta = Dir::open(root).and_then(|dir| match below.is_empty() {
            true => dir.own_meta(),
            false => dir.meta(below.to_path_lossy().as_ref()),
        });
        match meta {
            Ok(meta) if meta.kind == Kind::Symlink => Look::Escapes,
            Ok(meta) => Look::There(meta),
            Err(Refused::Absent) => Look::Missing,
            Err(Refused::NotPlain) => Look::Escapes,
            Err(refused) => Look::Failed(format!("{path}: {refused}")),
        }
    }
}

fn outside(root: &LocalPath) -> Reason {
    Reason::new(Code::OutsideRoot, format!("add the root {root} to sweep it"))
}

//! The state that T1 and T2 are about: one clone that a dev container works in, with worktrees inside it,
//! beside it and nested, all made by git in the container.

use std::path::{Path, PathBuf};

use testcontainers::{ContainerRequest, GenericImage, ImageExt};

use super::containers::{DevContainer, Engine, bind};
use super::env::{EAGER, TestEnv, utf8};
use super::git::{HostClone, copy_tree};

/// Where the container sees the clone.
pub const APP: &str = "/workspaces/app";

#[derive(Clone, Copy)]
pub struct Tree {
    /// Of the administrative entry and of the branch.
    pub name: &'static str,
    /// As the container sees it.
    pub path: &'static str,
    /// Below the host's `src`.
    pub host: &'static str,
}

pub const INSIDE: Tree =
    Tree { name: "inside", path: "/workspaces/app/.worktrees/inside", host: "app/.worktrees/inside" };
pub const BESIDE: Tree = Tree { name: "app-b", path: "/workspaces/app-b", host: "app-b" };
/// In the one beside the clone.
pub const NESTED: Tree =
    Tree { name: "nested", path: "/workspaces/app-b/.worktrees/nested", host: "app-b/.worktrees/nested" };
/// Owned as those, with work that is not committed.
pub const UNFINISHED: Tree = Tree {
    name: "unfinished",
    path: "/workspaces/app/.worktrees/unfinished",
    host: "app/.worktrees/unfinished",
};
/// Landed and clean, and never enrolled.
pub const STRANGER: Tree = Tree { name: "stranger", path: "/workspaces/stranger", host: "stranger" };
pub const ALL: [Tree; 5] = [INSIDE, BESIDE, NESTED, UNFINISHED, STRANGER];
/// What a sweep may take when nobody uses it.
pub const RECLAIMABLE: [Tree; 3] = [INSIDE, BESIDE, NESTED];

pub struct Scene<'e> {
    pub engine: &'e Engine,
    pub clone: HostClone<'e>,
    pub container: DevContainer,
}

impl<'e> Scene<'e> {
    pub fn build(env: &'e TestEnv, engine: &'e Engine) -> Self {
        let clone = HostClone::new(env, "app");
        let container = DevContainer::start(workspaces(engine, &env.src()));
        for tree in ALL {
            container.add_worktree(APP, tree.name, tree.path);
            clone.land(tree.name);
        }
        container
            .exec(UNFINISHED.path, &["sh", "-c", "echo new >new.txt; git add new.txt; echo wip >>file.txt"]);
        Self { engine, clone, container }
    }

    /// `treesweep setup` on the host of everything but the stranger.
    pub fn enrol(&self) {
        let paths = [INSIDE, BESIDE, NESTED, UNFINISHED].map(|tree| self.host_path(tree));
        self.clone.env.treesweep(&["setup"]).args(EAGER).args(paths).assert().success();
    }

    pub fn host_path(&self, tree: Tree) -> PathBuf {
        self.clone.env.src().join(tree.host)
    }

    /// A copy of the host's side, and a container that has it where the first has the original.
    pub fn copy(&self) -> Copy {
        let src = self.clone.env.root().join("copy/src");
        copy_tree(self.clone.env, &self.clone.env.src(), &src);
        Copy { container: DevContainer::start(workspaces(self.engine, &src)), app: src.join("app"), src }
    }
}

/// What damage is shown on.
pub struct Copy {
    pub container: DevContainer,
    pub src: PathBuf,
    pub app: PathBuf,
}

impl Copy {
    pub fn entry(&self, tree: Tree) -> PathBuf {
        self.app.join(".git/worktrees").join(tree.name)
    }
}

/// The folder above the clone is mounted, so that worktrees beside the clone exist on the host as well.
fn workspaces(engine: &Engine, src: &Path) -> ContainerRequest<GenericImage> {
    let folder = src.join("app");
    let request = engine.container().with_mount(bind(src, "/workspaces"));
    request.with_label("devcontainer.local_folder", utf8(&folder))
}

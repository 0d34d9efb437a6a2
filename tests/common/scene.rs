//! The state that T1 and T2 are about: one clone that a dev container works in, with worktrees inside it,
//! beside it and nested, all made by git in the container.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::containers::{DevContainer, Engine, bind};
use super::env::{EAGER, TestEnv};
use super::git::{HostClone, copy_tree};

/// Where the container sees the clone.
pub const APP: &str = "/workspaces/app";

/// (name and branch, path in the container, path below `src` on the host)
pub const INSIDE: (&str, &str, &str) =
    ("inside", "/workspaces/app/.worktrees/inside", "app/.worktrees/inside");
pub const BESIDE: (&str, &str, &str) = ("app-b", "/workspaces/app-b", "app-b");
pub const NESTED: (&str, &str, &str) =
    ("nested", "/workspaces/app-b/.worktrees/nested", "app-b/.worktrees/nested");
/// Owned as the others, with work that is not committed.
pub const UNFINISHED: (&str, &str, &str) =
    ("unfinished", "/workspaces/app/.worktrees/unfinished", "app/.worktrees/unfinished");
/// Landed and clean, and never enrolled.
pub const STRANGER: (&str, &str, &str) = ("stranger", "/workspaces/stranger", "stranger");

pub struct Scene<'e> {
    pub engine: &'e Engine,
    pub clone: HostClone<'e>,
    pub container: DevContainer,
}

impl<'e> Scene<'e> {
    pub fn build(env: &'e TestEnv, engine: &'e Engine) -> Self {
        let clone = HostClone::new(env, "app");
        let container = DevContainer::start(workspaces(engine, &env.src()));
        let scene = Self { engine, clone, container };
        for worktree in [INSIDE, BESIDE, NESTED, STRANGER] {
            scene.add_landed(worktree);
        }
        scene.container.git(APP, &["worktree", "add", "-q", "-b", UNFINISHED.0, UNFINISHED.1, "origin/main"]);
        scene
            .container
            .exec(UNFINISHED.1, &["sh", "-c", "echo staged >new.txt; git add new.txt; echo wip >>file.txt"]);
        scene
    }

    /// A worktree whose one commit is on the trunk.
    fn add_landed(&self, (name, path, _): (&str, &str, &str)) {
        self.container.git(APP, &["worktree", "add", "-q", "-b", name, path, "origin/main"]);
        self.container.exec(path, &["sh", "-c", &format!("echo {name} >{name}.txt; git add {name}.txt")]);
        self.container.git(path, &["commit", "-qm", name]);
        self.clone.land(name);
    }

    /// `treesweep setup` on the host of everything but the stranger.
    pub fn enrol(&self) {
        let env = self.clone.env;
        let paths = [INSIDE, BESIDE, NESTED, UNFINISHED].map(|(_, _, host)| env.src().join(host));
        env.treesweep(&["setup"]).args(EAGER).args(paths).assert().success();
    }

    /// A copy of the host's side, and a container that has it where the first has the original.
    pub fn copy(&self) -> Copy {
        let src = self.clone.env.root().join("copy/src");
        copy_tree(self.clone.env, &self.clone.env.src(), &src);
        Copy { container: DevContainer::start(workspaces(self.engine, &src)), app: src.join("app"), src }
    }

    pub fn host_path(&self, (_, _, host): (&str, &str, &str)) -> PathBuf {
        self.clone.env.src().join(host)
    }

    /// Paths below `src` that a reclaim of this worktree takes away, its landed branch included.
    pub fn traces((name, _, host): (&str, &str, &str)) -> Vec<PathBuf> {
        let mut all = vec![PathBuf::from(host)];
        all.extend(
            ["worktrees", "refs/heads", "logs/refs/heads"]
                .map(|dir| Path::new("app/.git").join(dir).join(name)),
        );
        all
    }
}

/// What damage is shown on.
pub struct Copy {
    pub container: DevContainer,
    pub src: PathBuf,
    pub app: PathBuf,
}

impl Copy {
    pub fn entry(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.app.join(".git/worktrees").join(name.as_ref())
    }
}

fn workspaces(engine: &Engine, src: &Path) -> testcontainers::ContainerRequest<testcontainers::GenericImage> {
    use testcontainers::ImageExt;
    let folder = src.join("app");
    engine
        .container()
        .with_mount(bind(src, "/workspaces"))
        .with_label("devcontainer.local_folder", folder.to_str().expect("a path in UTF-8"))
}

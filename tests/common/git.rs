//! A clone on the host with its remote, as a developer has it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::env::{TestEnv, utf8};

pub struct HostClone<'e> {
    pub env: &'e TestEnv,
    /// The bare remote.
    pub origin: PathBuf,
    pub path: PathBuf,
}

impl<'e> HostClone<'e> {
    /// A clone at `src/<name>` (folders are made) of a remote of its own, which has one commit on `main`.
    pub fn new(env: &'e TestEnv, name: &str) -> Self {
        let origin = env.root().join(format!("{name}-origin.git"));
        let seed = env.root().join(format!("{name}-seed"));
        let path = env.src().join(name);
        env.git(env.root(), &["init", "-q", "--bare", "-b", "main", utf8(&origin)]);
        env.git(env.root(), &["init", "-q", "-b", "main", utf8(&seed)]);
        fs::write(seed.join("file.txt"), "base\n").expect("seed file");
        fs::write(seed.join(".gitignore"), ".env\nnode_modules/\ntarget/\n").expect("seed ignore file");
        env.git(&seed, &["add", "-A"]);
        env.git(&seed, &["commit", "-qm", "base"]);
        env.git(&seed, &["push", "-q", utf8(&origin), "main"]);
        fs::remove_dir_all(&seed).expect("seed goes");
        env.git(env.root(), &["clone", "-q", utf8(&origin), utf8(&path)]);
        let clone = Self { env, origin, path };
        // Where most tools put worktrees; it holds in linked worktrees too.
        fs::write(clone.common_dir().join("info/exclude"), "/.worktrees/\n").expect("exclude file");
        clone
    }

    pub fn git(&self, args: &[impl AsRef<OsStr>]) -> String {
        self.env.git(&self.path, args)
    }

    pub fn common_dir(&self) -> PathBuf {
        self.path.join(".git")
    }

    /// The administrative entry of that name.
    pub fn entry(&self, name: &str) -> PathBuf {
        self.common_dir().join("worktrees").join(name)
    }

    pub fn entries(&self) -> Vec<String> {
        let Ok(dir) = fs::read_dir(self.common_dir().join("worktrees")) else { return Vec::new() };
        let mut names: Vec<_> =
            dir.map(|e| e.expect("entry").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Fast-forwards the remote's `main` to `branch`, and fetches.
    pub fn land(&self, branch: &str) {
        self.git(&["push", "-q", "origin", &format!("refs/heads/{branch}:refs/heads/main")]);
        self.git(&["fetch", "-q"]);
    }

    /// A worktree at `.worktrees/<name>` on a new branch `wt/<name>`, with a commit that has landed.
    pub fn add_landed(&self, name: &str) -> PathBuf {
        let (path, branch) = (format!(".worktrees/{name}"), format!("wt/{name}"));
        self.git(&["worktree", "add", "-q", "--no-track", "-b", &branch, &path, "origin/main"]);
        let dir = self.path.join(path);
        fs::write(dir.join(name), name).expect("a file");
        self.env.git(&dir, &["add", "."]);
        self.env.git(&dir, &["commit", "-qm", name]);
        self.land(&branch);
        dir
    }

    /// Everything in it looks as if nobody had touched it for three days.
    pub fn age(&self) {
        let aged = ["-exec", "touch", "--no-dereference", "--date", "3 days ago", "{}", "+"];
        self.env.run("find", &[&[utf8(&self.path)][..], &aged].concat());
    }

    pub fn has_branch(&self, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        self.env.try_git(&self.path, &["show-ref", "--verify", "-q", &name]).status.success()
    }
}

/// A copy that keeps modes, times and links, for showing damage on.
pub fn copy_tree(env: &TestEnv, from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a parent")).expect("parent of the copy");
    env.run("cp", &["-a", utf8(from), utf8(to)]);
}

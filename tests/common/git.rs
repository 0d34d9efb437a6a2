//! A clone on the host with its remote, as a developer has it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use super::env::TestEnv;

pub struct HostClone<'e> {
    pub env: &'e TestEnv,
    /// The bare remote.
    pub origin: PathBuf,
    pub path: PathBuf,
}

impl<'e> HostClone<'e> {
    /// A clone at `<root>/src/<name>`, which may lie in folders of its own, of a remote of its own with one commit on `main`.
    pub fn new(env: &'e TestEnv, name: &str) -> Self {
        let origin = env.root().join(format!("{name}-origin.git"));
        let seed = env.root().join(format!("{name}-seed"));
        let path = env.src().join(name);
        for (dir, bare) in [(&origin, true), (&seed, false)] {
            let kind: &[&str] = if bare { &["--bare"] } else { &[] };
            let args = [&["init", "-q", "-b", "main"], kind].concat();
            env.run("git", &[args.iter().map(OsStr::new).collect(), vec![dir.as_os_str()]].concat());
        }
        fs::write(seed.join("file.txt"), "base\n").expect("seed file");
        fs::write(seed.join(".gitignore"), ".env\nnode_modules/\ntarget/\n").expect("seed ignore file");
        env.git(&seed, &["add", "-A"]);
        env.git(&seed, &["commit", "-qm", "base"]);
        env.git(&seed, &[OsStr::new("push"), "-q".as_ref(), origin.as_ref(), "main".as_ref()]);
        fs::remove_dir_all(&seed).expect("seed goes");
        env.run("git", &[OsStr::new("clone"), "-q".as_ref(), origin.as_ref(), path.as_ref()]);
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

    pub fn has_branch(&self, branch: &str) -> bool {
        let name = format!("refs/heads/{branch}");
        self.env.try_git(&self.path, &["show-ref", "--verify", "-q", &name]).status.success()
    }
}

/// A copy that keeps modes, times and links, for showing damage on.
pub fn copy_tree(env: &TestEnv, from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a parent")).expect("parent of the copy");
    env.run("cp", &[OsStr::new("-a"), from.as_ref(), to.as_ref()]);
}

//! An environment of its own for each test: home, configuration, state and cache below one temporary
//! directory, and nothing of the caller's but the search path.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// Flags with which a test's worktrees count at once, without waiting for an age.
pub const EAGER: [&str; 6] = ["--branch-template", "{name}", "--idle", "0s", "--unstarted-after", "0s"];

pub struct TestEnv {
    // Held for its removal at the end.
    _dir: TempDir,
    root: PathBuf,
}

impl TestEnv {
    /// `TREESWEEP_TEST_KEEP=1` leaves the directory in place.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// In memory where that is possible, for tests that would wait for the disk hundreds of times.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::within(memory) } else { Self::new() }
    }

    pub fn within(place: &Path) -> Self {
        let mut dir = tempfile::Builder::new()
            .prefix("treesweep-test-")
            .tempdir_in(place)
            .expect("temporary directory");
        dir.disable_cleanup(std::env::var_os("TREESWEEP_TEST_KEEP").is_some());
        // Other users take part in some tests: an ordinary one that sweeps, a container's.
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).expect("mode of the directory");
        let root = dir.path().canonicalize().expect("temporary directory resolves");
        for name in ["home", "config", "state", "cache", "src"] {
            fs::create_dir(root.join(name)).expect("directory of the environment");
        }
        Self { _dir: dir, root }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that holds the clones, and that tests name as root.
    pub fn src(&self) -> PathBuf {
        self.root.join("src")
    }

    /// The only variables that a program under test sees.
    fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let mut all = vec![
            ("HOME", self.root.join("home")),
            ("XDG_CONFIG_HOME", self.root.join("config")),
            ("XDG_STATE_HOME", self.root.join("state")),
            ("XDG_CACHE_HOME", self.root.join("cache")),
        ];
        let fixed = [
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "dev"),
            ("GIT_AUTHOR_EMAIL", "dev@example.invalid"),
            ("GIT_COMMITTER_NAME", "dev"),
            ("GIT_COMMITTER_EMAIL", "dev@example.invalid"),
            ("LC_ALL", "C"),
            ("TZ", "UTC"),
        ];
        all.extend(fixed.map(|(name, value)| (name, value.into())));
        // DOCKER_HOST only where the tests' own engine is not at the default socket.
        for name in ["PATH", "TMPDIR", "RUST_BACKTRACE", "LLVM_PROFILE_FILE", "DOCKER_HOST"] {
            all.extend(std::env::var_os(name).map(|value| (name, value.into())));
        }
        all
    }

    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables()).current_dir(&self.root);
        command
    }

    /// Runs a program that must succeed and returns what it printed.
    pub fn run(&self, program: &str, args: &[impl AsRef<OsStr>]) -> String {
        let output = self.command(program).args(args).output();
        stdout_of(program, output.unwrap_or_else(|e| panic!("{program} does not start: {e}")))
    }

    /// git in `dir`; it must succeed.
    pub fn git(&self, dir: &Path, args: &[impl AsRef<OsStr>]) -> String {
        let what =
            format!("git {:?} in {}", args.iter().map(AsRef::as_ref).collect::<Vec<_>>(), dir.display());
        stdout_of(&what, self.try_git(dir, args))
    }

    pub fn try_git(&self, dir: &Path, args: &[impl AsRef<OsStr>]) -> Output {
        // Some clones belong to another user on purpose.
        self.command("git")
            .args(["-c", "safe.directory=*", "-C"])
            .arg(dir)
            .args(args)
            .output()
            .expect("git starts")
    }

    /// treesweep itself, built for these tests.
    pub fn treesweep(&self, args: &[impl AsRef<OsStr>]) -> assert_cmd::Command {
        let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_treesweep"));
        command.env_clear().envs(self.variables()).current_dir(&self.root).args(args);
        command
    }

    /// The same for a test that starts it in a way of its own.
    pub fn treesweep_command(&self, args: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_treesweep"));
        command.args(args);
        command
    }

    /// treesweep as another user, who gets the environment's home, configuration, state and cache. Root only.
    pub fn treesweep_as(&self, uid: u32, args: &[impl AsRef<OsStr>]) -> assert_cmd::Command {
        let id = uid.to_string();
        for name in ["home", "config", "state", "cache"] {
            self.run("chown", &["-R", &format!("{id}:{id}"), name]);
        }
        // The build directory may lie where that user can't go.
        let binary = self.root.join("treesweep");
        if !binary.exists() {
            fs::copy(env!("CARGO_BIN_EXE_treesweep"), &binary).expect("copy of the executable");
        }
        let mut command = assert_cmd::Command::new("setpriv");
        command.env_clear().envs(self.variables()).current_dir(&self.root);
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"]).arg(binary).args(args);
        command
    }
}

/// Standard output without its last newline, of a run that must have succeeded.
pub fn stdout_of(what: &str, output: Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {}\n{stdout}{stderr}", output.status);
    stdout.trim_end_matches('\n').to_owned()
}

/// A path of the environment as an argument.
pub fn utf8(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

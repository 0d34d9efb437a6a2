//! Podman, root's and an ordinary user's, in the place of Docker: what its containers use stays, and what is done goes.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use common::containers::require_engine;
use common::env::{EAGER, TestEnv, is_root, stdout_of, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::scene::APP;

const USER: u32 = 4711;
const ROOT: u32 = 0;
const IMAGE: &str = "localhost/treesweep-devbase:local";
const SERVICE_DEADLINE: Duration = Duration::from_secs(60);

/// An engine of its own, with its storage in the test's directory.
struct Podman<'e> {
    env: &'e TestEnv,
    uid: u32,
    dir: PathBuf,
    service: Option<Child>,
}

impl<'e> Podman<'e> {
    /// `None` after a line that says why the test is skipped; where the container tests are required it fails.
    fn start(env: &'e TestEnv, uid: u32) -> Option<Self> {
        let docker = require_engine()?;
        let there = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if !is_root() || !there("podman") || !there("runc") {
            let required = std::env::var("TREESWEEP_CONTAINER_TESTS").is_ok_and(|v| v == "require");
            assert!(!required, "the tests of podman need root, podman and runc (Debian: podman, runc)");
            eprintln!("SKIPPED: needs root, podman and runc");
            return None;
        }
        let dir = env.root().join("podman");
        fs::create_dir(&dir).expect("directory of the engine");
        let mut podman = Self { env, uid, dir, service: None };
        podman.import(docker);
        let mut service = podman.command(&["system", "service", "--time=0", &podman.address()]);
        let service = service.stderr(Stdio::null()).spawn();
        podman.service = Some(service.expect("podman starts"));
        let until = Instant::now() + SERVICE_DEADLINE;
        while std::os::unix::net::UnixStream::connect(podman.socket()).is_err() {
            assert!(Instant::now() < until, "podman's service does not listen");
            std::thread::yield_now();
        }
        Some(podman)
    }

    /// The dev image with all files root's, as an ordinary user has a single uid to map.
    fn import(&self, docker: &common::containers::Engine) {
        let (tar, files) = (self.dir.join("image.tar"), self.dir.join("image"));
        fs::create_dir(&files).expect("directory of the image");
        let id = docker.docker(&["create", "treesweep-devbase:local", "true"]);
        let exported = docker.try_docker(&["export", "--output", utf8(&tar), &id]);
        docker.docker(&["rm", &id]);
        exported.expect("docker exports");
        self.env.run("tar", &["-C", utf8(&files), "-xf", utf8(&tar)]);
        self.env.run("tar", &["-C", utf8(&files), "--owner=0", "--group=0", "-cf", utf8(&tar), "."]);
        fs::remove_dir_all(&files).expect("files of the image go");
        self.env.run("chown", &["-R", &format!("{0}:{0}", self.uid), utf8(&self.dir)]);
        self.run(&["import", utf8(&tar), IMAGE]);
    }

    fn socket(&self) -> PathBuf {
        self.dir.join("podman.sock")
    }

    fn address(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.env.command("setpriv");
        let (uid, below) = (self.uid.to_string(), |name: &str| self.dir.join(name));
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", "--", "podman"]);
        command.arg("--root").arg(below("storage")).arg("--runroot").arg(below("run"));
        // Neither systemd nor a registry is needed, and every kernel can do these.
        command.args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]);
        command.args(["--runtime", "runc"]).args(args);
        for variable in ["HOME", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"] {
            command.env(variable, &self.dir);
        }
        command.current_dir(&self.dir).stdin(Stdio::null());
        command
    }

    fn try_run(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("podman starts")
    }

    #[track_caller]
    fn run(&self, args: &[&str]) -> String {
        stdout_of(&format!("podman {args:?}"), self.try_run(args))
    }

    /// Makes a container that has `path` at `target`: runs it (`run`), or does not (`create`).
    fn container(&self, how: &str, name: &str, path: &Path, target: &str) {
        let mount = format!("{}:{target}", path.display());
        let detach: &[&str] = if how == "run" { &["--detach"] } else { &[] };
        let limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"];
        let apart = ["--pull", "never", "--network", "none", "--name", name, "--volume", &mount];
        let idle = [IMAGE, "sleep", "2147483647"];
        self.run(&[&[how], detach, &limits, &apart, &idle].concat());
    }

    fn exec(&self, name: &str, dir: &str, command: &[&str]) {
        let git = ["--env", "GIT_AUTHOR_NAME=dev", "--env", "GIT_AUTHOR_EMAIL=dev@example.invalid"];
        let committer =
            ["--env", "GIT_COMMITTER_NAME=dev", "--env", "GIT_COMMITTER_EMAIL=dev@example.invalid"];
        self.run(&[&["exec"], &git[..], &committer, &["--workdir", dir, name], command].concat());
    }

    fn treesweep(&self, args: &[&str]) -> assert_cmd::Command {
        let mut command = match self.uid {
            ROOT => self.env.treesweep(args),
            user => self.env.treesweep_as(user, args),
        };
        command.args(EAGER).arg("--engine").arg(self.socket());
        command
    }

    fn plan(&self) -> Document {
        Document::of(self.treesweep(&["plan", "--json"]).arg(self.env.src()))
    }

    fn prune(&self) -> Document {
        Document::of(self.treesweep(&["prune", "--yes", "--json"]).arg(self.env.src()))
    }
}

impl Drop for Podman<'_> {
    fn drop(&mut self) {
        // What is left over would only outlive a failed test.
        let _ = self.try_run(&["rm", "--force", "--all", "--time", "0"]);
        if let Some(service) = &mut self.service {
            let _ = service.kill();
            let _ = service.wait();
        }
        // An ordinary user's has a process that holds its user namespace.
        let _ = self.try_run(&["system", "migrate"]);
    }
}

/// Worktrees of a container: one that somebody works in, one that is done, and one that a stopped container mounts.
fn what_its_containers_use_stays(uid: u32) {
    let env = TestEnv::new();
    let Some(podman) = Podman::start(&env, uid) else { return };
    let clone = HostClone::new(&env, "app");
    let owner = format!("{uid}:{uid}");
    let give = || drop(env.run("chown", &["-R", &owner, "src"]));
    give();
    podman.container("run", "dev", &clone.path, APP);
    for name in ["used", "done", "bound"] {
        let path = format!("{APP}/.worktrees/{name}");
        podman.exec(
            "dev",
            APP,
            &["git", "worktree", "add", "-q", "--no-track", "-b", name, &path, "origin/main"],
        );
        podman.exec("dev", &path, &["git", "commit", "-q", "--allow-empty", "-m", name]);
        clone.land(name);
        clone.git(&["fetch", "-q"]);
    }
    // Only the last one is a descendant of all: each has landed.
    give();
    let tree = |name: &str| clone.path.join(".worktrees").join(name);
    podman.container("create", "old", &tree("bound"), "/w");
    for name in ["used", "done", "bound"] {
        podman.treesweep(&["setup"]).arg(tree(name)).assert().success();
    }
    podman.exec(
        "dev",
        &format!("{APP}/.worktrees/used"),
        &["sh", "-c", "sleep 2147483647 >/dev/null 2>&1 &"],
    );

    let plan = podman.plan();
    plan.assert_kept("used", &["process-inside", "live-container"]);
    plan.assert_kept("bound", &["container-bound"]);
    let pruned = podman.prune();
    assert!(tree("used").exists() && tree("bound").exists(), "{:#}", pruned.0);

    // Nobody uses anything any more; the container that is there still says where its paths are.
    podman.run(&["stop", "--time", "0", "dev"]);
    let pruned = podman.prune();
    pruned.assert_removed("used", "deleted");
    pruned.assert_kept("bound", &["container-bound"]);
    assert!(!tree("used").exists() && !tree("done").exists());
    podman.run(&["rm", "old"]);
    podman.prune().assert_removed("bound", "deleted");
    assert_eq!(clone.entries(), [""; 0]);
}

#[test]
fn what_containers_of_root_use_stays() {
    what_its_containers_use_stays(ROOT);
}

#[test]
fn what_containers_of_an_ordinary_user_use_stays() {
    what_its_containers_use_stays(USER);
}

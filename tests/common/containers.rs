//! Real containers from the local dev image, through testcontainers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use testcontainers::core::{ExecCommand, Mount};
use testcontainers::runners::SyncRunner;
use testcontainers::{Container, ContainerRequest, GenericImage, ImageExt};

use super::env::utf8;

const IMAGE: (&str, &str) = ("treesweep-devbase", "local");
/// Marks what a test made in the engine.
const TEST_LABEL: &str = "treesweep.test";
/// Says which process made it, so that leftovers can be told from another run's.
const OWNER_LABEL: &str = "treesweep.test.owner";
/// `skip` or `require`.
const WISH: &str = "TREESWEEP_CONTAINER_TESTS";
const EXEC_DEADLINE: Duration = Duration::from_secs(10);

/// Proof that an engine answers and has the dev image.
pub struct Engine {
    host: String,
}

/// The engine, or `None` after a line that says the test is skipped. Under `CI=true`, and with
/// `TREESWEEP_CONTAINER_TESTS=require`, a missing engine is a failure.
pub fn require_engine() -> Option<&'static Engine> {
    static ENGINE: OnceLock<Result<Engine, String>> = OnceLock::new();
    let set_to = |name: &str, value: &str| std::env::var(name).is_ok_and(|v| v == value);
    match ENGINE.get_or_init(find_engine) {
        Ok(engine) => Some(engine),
        Err(why) if set_to("CI", "true") || set_to(WISH, "require") => {
            panic!("the container tests can't run: {why}")
        }
        Err(why) => {
            eprintln!("SKIPPED: needs a container engine: {why} (scripts/test starts one)");
            None
        }
    }
}

fn find_engine() -> Result<Engine, String> {
    if std::env::var(WISH).is_ok_and(|v| v == "skip") {
        return Err(format!("{WISH}=skip"));
    }
    // As testcontainers does, which knows no contexts: both must speak to the same engine.
    let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| "unix:///var/run/docker.sock".into());
    let engine = Engine { host };
    engine.try_docker(&["version"])?;
    engine.try_docker(&["image", "inspect", &format!("{}:{}", IMAGE.0, IMAGE.1)])?;
    engine.sweep_leftovers();
    Ok(engine)
}

impl Engine {
    pub fn try_docker(&self, args: &[&str]) -> Result<String, String> {
        let output = Command::new("docker").args(["--host", &self.host]).args(args).output();
        let output = output.map_err(|e| format!("docker does not start: {e}"))?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned())
        }
    }

    /// The docker client on this engine; it must succeed.
    pub fn docker(&self, args: &[&str]) -> String {
        self.try_docker(args).unwrap_or_else(|e| panic!("docker {args:?}: {e}"))
    }

    /// The engine's socket on this machine.
    pub fn socket(&self) -> &str {
        self.host.strip_prefix("unix://").expect("an engine behind a local socket")
    }

    /// Removes containers and volumes of earlier runs that were killed. Those of a run that still lives stay.
    fn sweep_leftovers(&self) {
        let filter = format!("label={TEST_LABEL}");
        let owner = format!("{{{{.Label {OWNER_LABEL:?}}}}}");
        let lists: [(&[&str], &str, &[&str]); 2] = [
            (&["ps", "--all"], "{{.ID}}", &["rm", "--force", "--volumes"]),
            (&["volume", "ls"], "{{.Name}}", &["volume", "rm"]),
        ];
        for (list, id, remove) in lists {
            let format = format!("{id} {owner}");
            let listed = self.docker(&[list, &["--filter", &filter, "--format", &format]].concat());
            for (id, owner) in listed.lines().filter_map(|line| line.split_once(' ')) {
                if !owner_lives(owner) {
                    // Another run may sweep the same one.
                    let _ = self.try_docker(&[remove, &[id]].concat());
                }
            }
        }
    }

    /// The labels that everything made by a test bears.
    pub fn labels() -> [(String, String); 2] {
        [(TEST_LABEL.into(), "1".into()), (OWNER_LABEL.into(), owner())]
    }

    /// A container of the dev image that idles until it is stopped, run as the user of the tests.
    pub fn container(&self) -> ContainerRequest<GenericImage> {
        let user = format!("{}:{}", rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        GenericImage::new(IMAGE.0, IMAGE.1)
            .with_labels(Self::labels())
            .with_user(user)
            // Users without a home of their own in the image.
            .with_env_var("HOME", "/tmp")
    }

    pub fn volume(&self, name: &str) -> Volume<'_> {
        let name = format!("treesweep-test-{}-{name}", std::process::id());
        let labels = Self::labels().map(|(key, value)| format!("{key}={value}"));
        self.docker(&["volume", "create", "--label", &labels[0], "--label", &labels[1], &name]);
        Volume { engine: self, name }
    }
}

/// A named volume, removed at the end.
pub struct Volume<'e> {
    engine: &'e Engine,
    pub name: String,
}

impl Drop for Volume<'_> {
    fn drop(&mut self) {
        // A container that still has it keeps it; the next run sweeps both.
        let _ = self.engine.try_docker(&["volume", "rm", &self.name]);
    }
}

pub fn bind(host: &Path, target: &str) -> Mount {
    Mount::bind_mount(utf8(host), target)
}

fn owner() -> String {
    let pid = std::process::id();
    format!("{pid}:{}", start_time(pid).expect("our own start time"))
}

fn owner_lives(owner: &str) -> bool {
    let Some((pid, started)) = owner.split_once(':') else { return false };
    let Ok(pid) = pid.parse() else { return false };
    start_time(pid).as_deref() == Some(started)
}

/// Tells a process from a later one with its number.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_command) = stat.rsplit_once(") ")?;
    after_command.split(' ').nth(19).map(str::to_owned)
}

/// A running dev container; dropping it removes it.
pub struct DevContainer {
    container: Container<GenericImage>,
}

/// What a command in a container left.
#[derive(Debug)]
pub struct Ran {
    pub code: i64,
    pub stdout: String,
    pub stderr: String,
}

impl DevContainer {
    pub fn start(request: ContainerRequest<GenericImage>) -> Self {
        Self { container: request.start().expect("container starts") }
    }

    pub fn id(&self) -> &str {
        self.container.id()
    }

    /// Runs a command in `dir` of the container.
    pub fn try_exec(&self, dir: &str, command: &[&str]) -> Ran {
        let shell = ["sh", "-c", r#"cd "$0" && exec "$@""#, dir];
        let mut ran = self.container.exec(ExecCommand::new(shell.into_iter().chain(command.iter().copied())));
        let ran = ran.as_mut().unwrap_or_else(|e| panic!("exec {command:?}: {e}"));
        let stdout = String::from_utf8_lossy(&ran.stdout_to_vec().expect("stdout")).trim_end().to_owned();
        let stderr = String::from_utf8_lossy(&ran.stderr_to_vec().expect("stderr")).trim_end().to_owned();
        // The streams end a moment before the engine has noted the exit.
        let until = Instant::now() + EXEC_DEADLINE;
        loop {
            if let Some(code) = ran.exit_code().expect("exit code") {
                return Ran { code, stdout, stderr };
            }
            assert!(Instant::now() < until, "{command:?} closed its output and does not exit");
            std::thread::yield_now();
        }
    }

    /// Runs a command that must succeed and returns what it printed.
    #[track_caller]
    pub fn exec(&self, dir: &str, command: &[&str]) -> String {
        let ran = self.try_exec(dir, command);
        assert_eq!(ran.code, 0, "{command:?} in {dir}: {ran:?}");
        ran.stdout
    }

    #[track_caller]
    pub fn git(&self, dir: &str, args: &[&str]) -> String {
        self.exec(dir, &[&["git"], args].concat())
    }

    /// A worktree on a new branch of its name, off the remote's trunk, with one commit.
    #[track_caller]
    pub fn add_worktree(&self, clone: &str, name: &str, path: &str) {
        // Tracking would add to the shared config.
        self.git(clone, &["worktree", "add", "-q", "--no-track", "-b", name, path, "origin/main"]);
        self.exec(path, &["sh", "-c", r#"echo "$0" >"$0.txt"; git add "$0.txt"; git commit -qm "$0""#, name]);
    }

    /// Leaves a process with this working directory behind; it lives as long as the container.
    pub fn occupy(&self, dir: &str) {
        self.exec(dir, &["sh", "-c", "sleep 2147483647 >/dev/null 2>&1 & "]);
    }

    /// After [`stop`](Self::stop).
    pub fn start_again(&self) {
        self.container.start().expect("container starts again");
    }

    pub fn stop(&self) {
        // Its init ignores SIGTERM, as an init does.
        self.container.stop_with_timeout(Some(0)).expect("container stops");
    }

    pub fn remove(self) {
        self.container.rm().expect("container goes");
    }
}

/// The static executable, which scripts/test builds and names: it runs in any container.
pub fn static_binary() -> Option<PathBuf> {
    let binary = std::env::var_os("TREESWEEP_TEST_STATIC").map(PathBuf::from);
    assert!(binary.is_some() || std::env::var("CI").is_err(), "TREESWEEP_TEST_STATIC is not set");
    if binary.is_none() {
        eprintln!(
            "SKIPPED: needs TREESWEEP_TEST_STATIC, a static executable (scripts/build-static makes it)"
        );
    }
    binary
}

/// treesweep's own image, which scripts/test builds and names.
pub fn own_image() -> Option<String> {
    let image = std::env::var("TREESWEEP_TEST_IMAGE").ok();
    assert!(image.is_some() || std::env::var("CI").is_err(), "TREESWEEP_TEST_IMAGE is not set");
    if image.is_none() {
        eprintln!("SKIPPED: needs TREESWEEP_TEST_IMAGE, treesweep's own image (scripts/test builds it)");
    }
    image
}

//! `treesweep up`: the sweep before a launch, and that it stops no launch. A script stands for the dev container CLI;
//! tests/devcontainer_cli.rs launches with the real one.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

use common::env::{EAGER, TestEnv, utf8};
use common::fake_engine::{Fake, Reply};
use common::git::HostClone;
use common::snapshot::Snapshot;
use serde_json::json;

/// Says how it was started, and ends with a code of its own.
const STAND_IN: &str = r#"#!/bin/sh
echo "pid $$"
pwd
grep NoNewPrivs /proc/self/status
for word in "$@"; do echo "<$word>"; done
echo "from the launch" >&2
exit 7
"#;

/// A `PATH` on which the stand-in comes first.
fn path_with_stand_in(env: &TestEnv) -> String {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let program = bin.join("devcontainer");
    fs::write(&program, STAND_IN).expect("a script");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("its mode");
    format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"))
}

/// A clone with an enrolled and landed worktree `done`.
fn scene(env: &TestEnv) -> (HostClone<'_>, PathBuf) {
    let clone = HostClone::new(env, "app");
    let done = clone.add_landed("done");
    env.treesweep(&["setup", "--engine", "none", utf8(&done)]).assert().success();
    (clone, done)
}

const NOW: [&str; 6] = ["--engine", "none", "--idle", "0s", "--unstarted-after", "0s"];

struct Launch {
    pid: u32,
    output: Output,
}

impl Launch {
    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// The stand-in ran, once, as this very process, and nothing but it wrote to standard output.
    #[track_caller]
    fn assert_launched(&self, cwd: &Path, words: &[&str]) {
        let words: String = words.iter().map(|word| format!("<{word}>\n")).collect();
        let expected = format!("pid {}\n{}\nNoNewPrivs:\t0\n{words}", self.pid, cwd.display());
        assert_eq!(self.stdout(), expected, "{}", self.stderr());
        assert_eq!(self.output.status.code(), Some(7), "{}", self.stderr());
        assert!(self.stderr().ends_with("from the launch\n"), "{}", self.stderr());
    }
}

fn up(env: &TestEnv, path: &str, cwd: &Path, args: &[&str]) -> Launch {
    let mut command = env.treesweep_command(&["up"]);
    command.args(args).env("PATH", path).current_dir(cwd);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("treesweep starts");
    Launch { pid: child.id(), output: child.wait_with_output().expect("its output") }
}

#[test]
fn it_sweeps_and_becomes_the_launch() {
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    let path = path_with_stand_in(&env);
    let line = [&["--prune"][..], &NOW, &["src/app", "--", "--id-label", "a b=c", "--", "--json"]].concat();

    let launch = up(&env, &path, env.root(), &line);

    let words = ["up", "--workspace-folder", utf8(&clone.path), "--id-label", "a b=c", "--", "--json"];
    launch.assert_launched(env.root(), &words);
    assert!(!done.exists() && !clone.entry("done").exists() && !clone.has_branch("wt/done"));
    assert!(launch.stderr().contains("removed    done"), "{}", launch.stderr());
}

#[test]
fn without_prune_it_only_launches() {
    let env = TestEnv::new();
    let (clone, _) = scene(&env);
    let path = path_with_stand_in(&env);
    let before = Snapshot::of(env.root());

    let launch = up(&env, &path, &clone.path, &[]);

    launch.assert_launched(&clone.path, &["up", "--workspace-folder", utf8(&clone.path)]);
    assert_eq!(launch.stderr(), "from the launch\n");
    before.assert_same(&Snapshot::of(env.root()));
}

#[test]
fn what_is_launched_is_not_swept() {
    let env = TestEnv::new();
    let (_, done) = scene(&env);
    let path = path_with_stand_in(&env);
    let before = Snapshot::of(&done);

    let launch = up(&env, &path, env.root(), &[&["--prune"][..], &NOW, &[utf8(&done)]].concat());

    launch.assert_launched(env.root(), &["up", "--workspace-folder", utf8(&done)]);
    before.assert_same(&Snapshot::of(&done));
}

#[test]
fn a_sweep_that_can_not_begin_stops_no_launch() {
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    let path = path_with_stand_in(&env);
    let home = env.root().join("home");
    // No clone is there.
    let launch = up(&env, &path, &home, &["--prune"]);
    launch.assert_launched(&home, &["up", "--workspace-folder", utf8(&home)]);
    assert!(
        launch.stderr().starts_with("warning: nothing was swept: no clone is here"),
        "{}",
        launch.stderr()
    );
    // The configuration is broken.
    fs::create_dir(env.root().join("config/treesweep")).expect("a folder");
    fs::write(env.root().join("config/treesweep/config.toml"), "protct = []\n").expect("a config file");
    let launch = up(&env, &path, &clone.path, &[&["--prune"][..], &NOW].concat());
    launch.assert_launched(&clone.path, &["up", "--workspace-folder", utf8(&clone.path)]);
    assert!(launch.stderr().contains("did you mean `protect`"), "{}", launch.stderr());
    assert!(done.exists());
}

#[test]
fn a_sweep_that_hangs_is_not_waited_for() {
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    let path = path_with_stand_in(&env);
    // An engine that takes every connection and never answers.
    let socket = env.root().join("engine.sock");
    let _listening = UnixListener::bind(&socket).expect("a socket");
    let before = Snapshot::of(&done);
    let begun = Instant::now();

    let line = ["--prune", "--time-limit", "0s", "--engine", utf8(&socket), "--idle", "0s"];
    let launch = up(&env, &path, &clone.path, &line);

    launch.assert_launched(&clone.path, &["up", "--workspace-folder", utf8(&clone.path)]);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(launch.stderr().contains("the sweep reached its time limit of 0 s"), "{}", launch.stderr());
    before.assert_same(&Snapshot::of(&done));
}

#[test]
fn ctrl_c_during_the_sweep_launches_nothing() {
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    let path = path_with_stand_in(&env);
    let before = Snapshot::of(&done);
    // Asked once more, directly before the removal, it does not answer.
    let fake = Fake::listing(&env, |nth| if nth == 0 { Reply::Json(json!([])) } else { Reply::Hang });
    let mut command = env.treesweep_command(&["up", "--prune", "--time-limit", "60s"]);
    command.args(["--engine", utf8(&fake.socket), "--idle", "0s", "--unstarted-after", "0s"]);
    command.env("PATH", path).current_dir(&clone.path);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let child = command.spawn().expect("treesweep starts");
    let until = Instant::now() + Duration::from_secs(60);
    while fake.lists.load(std::sync::atomic::Ordering::SeqCst) < 2 {
        assert!(Instant::now() < until, "the sweep asks nobody");
        std::thread::yield_now();
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a signal");

    let launch = Launch { pid: child.id(), output: child.wait_with_output().expect("its output") };

    assert_eq!(launch.output.status.code(), Some(1), "{}", launch.stderr());
    assert_eq!(launch.stdout(), "");
    assert!(launch.stderr().contains("stopped before the launch"), "{}", launch.stderr());
    before.assert_same(&Snapshot::of(&done));
    assert!(clone.entry("done").exists() && clone.has_branch("wt/done"));
}

#[test]
fn without_the_dev_container_cli_nothing_is_done() {
    let env = TestEnv::new();
    let (clone, _) = scene(&env);
    let before = Snapshot::of(env.root());
    let launch = up(&env, "/nowhere", &clone.path, &[&["--prune"][..], &EAGER].concat());
    assert_eq!(launch.output.status.code(), Some(3), "{}", launch.stderr());
    assert!(launch.stderr().contains("npm install -g @devcontainers/cli"), "{}", launch.stderr());
    assert_eq!(launch.stdout(), "");
    before.assert_same(&Snapshot::of(env.root()));
}

#[test]
fn what_can_not_be_meant_is_refused() {
    let env = TestEnv::new();
    let (clone, _) = scene(&env);
    let path = path_with_stand_in(&env);
    for (line, why) in [
        (&["nowhere"][..], "PATH `nowhere`: there is no such directory"),
        (&["--json"], "--json: standard output is the dev container CLI's"),
        (&["--time-limit", "3s"], "--prune"),
        (&[".", "--remove-existing-container"], "--remove-existing-container"),
    ] {
        let launch = up(&env, &path, &clone.path, line);
        assert_eq!(launch.output.status.code(), Some(2), "{line:?}: {}", launch.stderr());
        assert!(launch.stderr().contains(why), "{line:?}: {}", launch.stderr());
        assert_eq!(launch.stdout(), "", "{line:?}");
    }
}

/// The documented blocks that this file runs.
fn documented() -> Vec<&'static str> {
    let mark = "<!-- run by tests/up.rs -->\n```sh\n";
    let blocks = include_str!("../docs/launch.md").split(mark).skip(1);
    blocks.map(|rest| rest.split("```").next().expect("an end")).collect()
}

/// What a shell prints that runs `script` with treesweep and the stand-in in its `PATH`.
fn shell(env: &TestEnv, path: &str, cwd: &Path, script: &str) -> String {
    let link = env.root().join("bin/treesweep");
    if !link.exists() {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_treesweep"), link).expect("a link");
    }
    let mut shell = env.command("sh");
    let output = shell.args(["-c", script]).env("PATH", path).current_dir(cwd).output().expect("sh starts");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn the_documented_function_and_alias_sweep() {
    let [alias, function] = documented()[..] else { panic!("other blocks: {:#?}", documented()) };
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    clone.age();
    let path = path_with_stand_in(&env);
    let said = shell(&env, &path, &clone.path, &format!("{function}\ndevcontainer up --workspace-folder ."));
    assert!(said.contains("removed    done") && said.contains("<--workspace-folder>\n<.>\n"), "{said}");
    assert!(!done.exists());

    let global = format!("export GIT_CONFIG_GLOBAL={}\n{alias}", utf8(&env.root().join("gitconfig")));
    let again = clone.add_landed("again");
    env.treesweep(&["setup", "--engine", "none", utf8(&again)]).assert().success();
    clone.age();
    let said = shell(&env, &path, &clone.path, &format!("{global}git sweep --yes"));
    assert!(said.contains("removed    again") && !again.exists(), "{said}");
}

#[test]
fn the_example_launches_with_treesweep_and_without() {
    let env = TestEnv::new();
    let (clone, done) = scene(&env);
    clone.age();
    let path = path_with_stand_in(&env);
    let script = clone.path.join("scripts/dev");
    fs::create_dir(clone.path.join("scripts")).expect("a folder");
    fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/dev"), &script).expect("a copy");
    let line = |args: &str| format!("{} {args}", utf8(&script));
    // Only these two programs besides the stand-in.
    let bare = format!("{}:/usr/bin:/bin", utf8(&env.root().join("bin")));

    let mut plain = env.command(&script);
    let output = plain.args(["--prune", "--x", "a b"]).env("PATH", &bare).output().expect("it starts");
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).contains("treesweep is not installed"), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).ends_with("<.>\n<--x>\n<a b>\n"), "{output:?}");

    let said = shell(&env, &path, env.root(), &line("--x"));
    assert!(said.contains("<--x>") && done.exists(), "{said}");
    let said = shell(&env, &path, env.root(), &line("--prune --x"));
    assert!(said.contains("<--x>") && said.contains("removed    done") && !done.exists(), "{said}");
}

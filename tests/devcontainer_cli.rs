//! The real dev container CLI: worktrees made in a container that it brought up, and sweeps before and in its launch.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::containers::{Engine, require_engine};
use common::env::{EAGER, TestEnv, stdout_of, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use serde_json::{Value, json};

const TREE: &str = "/workspaces/app/.worktrees/made";

/// Removes the container that the CLI leaves running.
struct Up<'e>(&'e Engine, String);

impl Drop for Up<'_> {
    fn drop(&mut self) {
        self.0.docker(&["rm", "--force", "--volumes", &self.1]);
    }
}

/// Writes a configuration with what every container of these tests needs, and `more`.
fn configure(clone: &HostClone, more: Value) {
    let labels = Engine::labels().map(|(key, value)| format!("--label={key}={value}"));
    let mut config = json!({
        "image": "treesweep-devbase:local",
        "runArgs": labels,
        "updateRemoteUserUID": false,
        "userEnvProbe": "none",
    });
    config.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    let dir = clone.path.join(".devcontainer");
    fs::create_dir_all(&dir).expect("configuration directory");
    fs::write(dir.join("devcontainer.json"), config.to_string()).expect("configuration");
}

/// The container of a launch, as its output says.
fn launched<'e>(engine: &'e Engine, printed: &str) -> Up<'e> {
    let outcome: Value = serde_json::from_str(printed.lines().last().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["outcome"], "success", "{outcome:#}");
    Up(engine, outcome["containerId"].as_str().expect("a container").to_owned())
}

fn up<'e>(env: &TestEnv, engine: &'e Engine, clone: &HostClone) -> Up<'e> {
    configure(
        clone,
        json!({
            "postStartCommand": "git worktree add -q --no-track -b made .worktrees/made && cd .worktrees/made \
                && echo made >made.txt && git add made.txt && git commit -qm made",
        }),
    );
    let folder = utf8(&clone.path);
    let printed = env.run("devcontainer", &["up", "--docker-path", "docker", "--workspace-folder", folder]);
    launched(engine, &printed)
}

#[test]
fn a_worktree_of_post_start_is_kept_in_use_and_reclaimed_after() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let container = up(&env, engine, &clone);
    let checkout = clone.path.join(".worktrees/made");
    assert_eq!(
        fs::read_to_string(clone.entry("made").join("gitdir")).expect("gitdir"),
        format!("{TREE}/.git\n")
    );
    clone.land("made");
    env.treesweep(&["setup"]).args(EAGER).arg(&checkout).assert().success();
    engine.docker(&["exec", "--detach", "--workdir", TREE, &container.1, "sleep", "2147483647"]);
    let gone = [
        ".worktrees/made",
        ".git/worktrees",
        ".git/refs/heads/made",
        ".git/logs/refs/heads/made",
        ".git/treesweep",
    ];
    let before = Snapshot::of(&clone.path);

    Document::plan(&env, &env.src()).assert_kept("made", &["process-inside", "live-container"]);
    Document::prune(&env, &env.src()).assert_nothing_done();
    before.clone().without(&gone[4..]).assert_same(&Snapshot::of(&clone.path).without(&gone[4..]));

    engine.docker(&["stop", "--time", "0", &container.1]);
    let pruned = Document::prune(&env, &env.src());
    pruned.assert_removed("made", "deleted");
    assert!(checkout.symlink_metadata().is_err());
    assert!(!clone.entry("made").exists());
    before.without(&gone).assert_same(&Snapshot::of(&clone.path).without(&gone));
}

/// A folder with the program and the libraries that it needs, to be mounted into a container; and a `PATH` with it.
fn program(env: &TestEnv) -> (PathBuf, String) {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder");
    let program = env!("CARGO_BIN_EXE_treesweep");
    fs::copy(program, bin.join("treesweep")).expect("a copy of the program");
    let libraries = env.run("ldd", &[program]);
    for library in libraries.lines().filter_map(|l| l.split(" => ").nth(1)?.split(' ').next()) {
        let name = Path::new(library).file_name().expect("a name");
        fs::copy(library, bin.join(name)).expect("a copy of a library");
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    (bin, path)
}

#[test]
fn up_sweeps_and_launches() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let done = clone.add_landed("done");
    env.treesweep(&["setup", utf8(&done)]).assert().success();
    clone.age();
    configure(&clone, json!({}));

    let mut line =
        env.treesweep_command(&["up", "--prune", utf8(&clone.path), "--", "--docker-path", "docker"]);
    let output = line.output().expect("treesweep starts");
    let swept = String::from_utf8_lossy(&output.stderr).into_owned();
    let container = launched(engine, &stdout_of("up", output));

    assert!(swept.contains("removed    done"), "{swept}");
    assert!(!done.exists() && !clone.has_branch("wt/done"));
    assert_eq!(engine.docker(&["exec", &container.1, "ls", "/workspaces/app"]), "file.txt");

    // What keeps the container from starting is the launch's failure, and passed through.
    configure(&clone, json!({ "image": "treesweep-no-such-image:local" }));
    let folder = utf8(&clone.path);
    let args = ["--docker-path", "docker", "--remove-existing-container"];
    let code =
        |command: &mut std::process::Command| command.args(args).output().expect("it starts").status.code();
    let plain = code(env.command("devcontainer").args(["up", "--workspace-folder", folder]));
    assert_ne!(plain, Some(0));
    assert_eq!(code(&mut env.treesweep_command(&["up", "--prune", folder, "--"])), plain);
}

#[test]
fn the_documented_lines_sweep_before_the_launch_and_in_the_container() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let done = clone.add_landed("done");
    env.treesweep(&["setup", utf8(&done)]).assert().success();
    clone.age();
    let (bin, path) = program(&env);
    let page = include_str!("../docs/launch.md");
    let (_, block) =
        page.split_once("<!-- run by tests/devcontainer_cli.rs -->\n```json\n").expect("the block");
    let mut config: Value = serde_json::from_str(block.split("```").next().expect("its end")).expect("JSON");
    let made = "git worktree add -q --no-track -b wt/inner .worktrees/inner origin/main && cd .worktrees/inner \
        && echo inner >inner.txt && git add inner.txt && git commit -qm inner \
        && git update-ref refs/remotes/origin/main HEAD && cd ../.. && treesweep setup inner \
        && find .git .worktrees -exec touch -h -d '2026-01-05 10:00:00' {} + && touch .devcontainer/made";
    let of_the_test = json!({
        "mounts": [format!("source={},target=/opt/treesweep,type=bind", utf8(&bin))],
        "containerEnv": { "PATH": "/opt/treesweep:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/treesweep" },
        "postCreateCommand": made,
    });
    config.as_object_mut().expect("an object").extend(of_the_test.as_object().expect("an object").clone());
    configure(&clone, config);

    let mut line = env.command("devcontainer");
    line.args(["up", "--docker-path", "docker", "--workspace-folder", utf8(&clone.path)]).env("PATH", path);
    let output = line.output().expect("the CLI starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let _container = launched(engine, &stdout_of("devcontainer up", output));

    assert!(said.contains("removed    done") && !done.exists(), "{said}");
    assert!(clone.path.join(".devcontainer/made").exists(), "{said}");
    assert!(said.contains("removed    inner"), "{said}");
    assert!(clone.entries().is_empty() && !clone.path.join(".worktrees/inner").exists());
    assert!(!clone.has_branch("wt/inner") && !clone.has_branch("wt/done"));
}

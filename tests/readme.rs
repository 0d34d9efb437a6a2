//! The README's commands, run as they stand there on a sample that has what they name.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::env::{TestEnv, stdout_of};
use common::git::HostClone;

const README: &str = include_str!("../README.md");

/// Blocks that follow this comment are run.
const MARK: &str = "<!-- run by tests/readme.rs -->\n```sh\n";

fn marked() -> Vec<&'static str> {
    README.split(MARK).skip(1).map(|rest| rest.split("```").next().expect("an end")).collect()
}

/// `~/src/app` with `fix-login`, enrolled and landed, and `spike`, landed only; nobody touched them for three days.
fn sample(env: &TestEnv) -> HostClone<'_> {
    let clone = HostClone::new(env, "app");
    for name in ["fix-login", "spike"] {
        clone.add_landed(name);
    }
    env.treesweep(&["setup", "fix-login"]).current_dir(&clone.path).assert().success();
    clone.age();
    clone
}

/// Programs of the README: treesweep itself, and a stand-in that says how the dev container CLI was called.
fn programs(env: &TestEnv) -> String {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_treesweep"), bin.join("treesweep")).expect("a link");
    let devcontainer = bin.join("devcontainer");
    fs::write(&devcontainer, "#!/bin/sh\necho \"$@\" >\"$HOME/launched\"\n").expect("a script");
    fs::set_permissions(&devcontainer, fs::Permissions::from_mode(0o755)).expect("its mode");
    format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"))
}

fn shell(env: &TestEnv, path: &str, dir: &Path, script: &str) -> std::process::Output {
    let mut shell = env.command("sh");
    shell.args(["-ec", script]).current_dir(dir).env("HOME", env.root()).env("PATH", path);
    shell.output().expect("sh starts")
}

#[test]
fn each_command_does_what_is_said_of_it() {
    let [look, enrol, sweep, protect, launch, runner] = marked()[..] else {
        panic!("the README has other blocks than this test knows: {:#?}", marked());
    };
    let env = TestEnv::new();
    let clone = sample(&env);
    let path = programs(&env);
    let run = |script| stdout_of(script, shell(&env, &path, &clone.path, script));
    let there = |name: &str| clone.path.join(".worktrees").join(name).exists();

    let plan = run(look);
    assert!(plan.contains("reclaim  fix-login") && plan.contains("offer    spike"), "{plan}");
    assert!(plan.contains("Questions, in the order asked"), "{plan}");

    assert!(run(enrol).contains("next is enrolled and owned"));

    // Without a terminal `prune` asks nobody and changes nothing; tests/terminal.rs has one.
    let (prune, drop) = sweep.split_once('\n').expect("two lines");
    let output = shell(&env, &path, &clone.path, prune);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(there("fix-login") && there("spike"));
    let dropped = run(drop);
    assert!(dropped.contains("removed    spike") && !there("spike"), "{dropped}");
    assert!(clone.has_branch("wt/spike"), "what a person names goes without its branch");

    let (guard, rescue) = protect.split_once('\n').expect("two lines");
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", "wt/forgotten", ".worktrees/forgotten"]);
    let guarded = run(guard);
    assert!(guarded.contains("gc.worktreePruneExpire is never now"), "{guarded}");
    fs::remove_dir_all(clone.entry("forgotten")).expect("a registration goes");
    let rescued = run(rescue);
    assert!(rescued.contains("on branch wt/forgotten") && clone.entry("forgotten").exists(), "{rescued}");
    clone.git(&["worktree", "remove", ".worktrees/forgotten"]);

    let output = shell(&env, &path, &clone.path, launch);
    let swept = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{swept}");
    assert!(swept.contains("removed    fix-login") && !there("fix-login"), "{swept}");
    assert!(!clone.has_branch("wt/fix-login"));
    let launched = || fs::read_to_string(env.root().join("launched")).expect("the launch");
    assert_eq!(launched(), format!("up --workspace-folder {}\n", clone.path.display()));
    fs::remove_file(env.root().join("launched")).expect("it goes");
    // A sweep that fails stops no launch.
    let elsewhere = env.root().join("home");
    assert!(shell(&env, &path, &elsewhere, launch).status.success());
    assert_eq!(launched(), format!("up --workspace-folder {}\n", elsewhere.display()));

    assert_eq!(run(runner), "");
    let listed = fs::read_to_string(clone.path.join("worktrees.json")).expect("the document");
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed["clones"][0]["worktrees"][0]["name"], "next");
    assert!(there("next"));
}

/// `docker run ... treesweep`, its words one blank apart.
fn docker_line(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    let mut words = Vec::new();
    for line in lines.skip_while(|line| !line.starts_with("docker run")) {
        words.extend(line.split_whitespace().filter(|word| *word != "\\"));
        if !line.ends_with('\\') {
            return words.join(" ");
        }
    }
    panic!("no docker run line");
}

#[test]
fn the_line_for_the_image_is_the_tested_one() {
    // tests/own_image.rs runs the line of the Dockerfile.
    assert_eq!(docker_line(README), docker_line(include_str!("../docker/Dockerfile")));
}

#[test]
fn the_version_that_it_names_is_the_one_that_is_asked_for() {
    let manifest = include_str!("../Cargo.toml");
    let version =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")).expect("a version");
    assert!(README.contains(&format!("Rust {}", version.trim_end_matches('"'))));
}

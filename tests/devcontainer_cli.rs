//! A worktree from the `postStartCommand` of a dev container that the real dev container CLI brought up.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;

use common::containers::{Engine, require_engine};
use common::env::{EAGER, TestEnv, utf8};
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

fn up<'e>(env: &TestEnv, engine: &'e Engine, clone: &HostClone) -> Up<'e> {
    let labels = Engine::labels().map(|(key, value)| format!("--label={key}={value}"));
    let config = json!({
        "image": "treesweep-devbase:local",
        "runArgs": labels,
        "updateRemoteUserUID": false,
        "userEnvProbe": "none",
        "postStartCommand": "git worktree add -q --no-track -b made .worktrees/made && cd .worktrees/made \
            && echo made >made.txt && git add made.txt && git commit -qm made",
    });
    let dir = clone.path.join(".devcontainer");
    fs::create_dir(&dir).expect("configuration directory");
    fs::write(dir.join("devcontainer.json"), config.to_string()).expect("configuration");
    let folder = utf8(&clone.path);
    let printed = env.run("devcontainer", &["up", "--docker-path", "docker", "--workspace-folder", folder]);
    let outcome: Value = serde_json::from_str(printed.lines().last().expect("an outcome")).expect("JSON");
    assert_eq!(outcome["outcome"], "success", "{outcome:#}");
    Up(engine, outcome["containerId"].as_str().expect("a container").to_owned())
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

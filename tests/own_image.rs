//! treesweep as a container: the `docker run` line that `docker/Dockerfile` documents reclaims a worktree.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;

use common::containers::{own_image, require_engine};
use common::env::{EAGER, TestEnv};
use common::plan::Document;
use common::scene::{INSIDE, NESTED, RECLAIMABLE, STRANGER, Scene, UNFINISHED};

/// The documented line, with `command` and the image's name in place of its last words.
fn documented_line(image: &str, socket: &str, command: &str) -> String {
    let dockerfile = concat!(env!("CARGO_MANIFEST_DIR"), "/docker/Dockerfile");
    let text = fs::read_to_string(dockerfile).expect("Dockerfile");
    let lines = text.lines().map(|line| line.trim_start_matches('#').trim());
    let mut words = Vec::new();
    for line in lines.skip_while(|line| !line.starts_with("docker run")) {
        let Some(more) = line.strip_suffix('\\') else {
            assert_eq!(line, r#"treesweep plan "$HOME/src""#);
            return format!(r#"{} {image} {command} "$HOME/src""#, words.join(" "))
                .replace("/var/run/docker.sock:", &format!("{socket}:"));
        };
        words.push(more.trim_end());
    }
    panic!("{dockerfile} documents no docker run line");
}

#[test]
fn the_documented_line_reclaims_a_worktree() {
    let Some(engine) = require_engine() else { return };
    let Some(image) = own_image() else { return };
    let env = TestEnv::new();
    let scene = Scene::build(&env, engine);
    let state = env.root().join(".local/state");
    let enrolled = RECLAIMABLE.map(|tree| scene.host_path(tree));
    env.treesweep(&["setup"]).env("XDG_STATE_HOME", &state).args(EAGER).args(enrolled).assert().success();
    let sweep = || {
        let command = format!("prune --yes --json {}", EAGER.join(" "));
        let line = documented_line(&image, engine.socket(), &command);
        let mut shell = assert_cmd::Command::from_std(env.command("sh"));
        Document::of(shell.arg("-c").arg(line).env("HOME", env.root()))
    };

    scene.container.occupy(INSIDE.path);
    scene.container.occupy(NESTED.path);
    let pruned = sweep();
    pruned.assert_nothing_done();
    pruned.assert_kept(INSIDE.name, &["process-inside", "live-container"]);

    scene.container.stop();
    let pruned = sweep();
    for tree in RECLAIMABLE {
        pruned.assert_removed(tree.name, "deleted");
        assert!(scene.host_path(tree).symlink_metadata().is_err());
    }
    assert_eq!(scene.clone.entries(), [STRANGER.name, UNFINISHED.name]);
}

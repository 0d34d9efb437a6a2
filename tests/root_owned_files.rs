//! Files that a container's root left in a worktree, swept by the ordinary user whose clone it is.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use common::containers::{DevContainer, bind, require_engine};
use common::env::{EAGER, TestEnv, is_root};
use common::git::HostClone;
use common::plan::Document;
use common::scene::APP;
use common::snapshot::Snapshot;
use testcontainers::ImageExt;

const USER: u32 = 1000;
const TREE: &str = "/workspaces/app/.worktrees/built";

#[test]
fn an_ordinary_user_keeps_what_he_may_not_delete() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to sweep as another user");
    }
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    env.run("chown", &["-R", "1000:1000", "src"]);
    let container =
        DevContainer::start(engine.container().with_user("dev").with_mount(bind(&clone.path, APP)));
    container.add_worktree(APP, "built", TREE);
    clone.land("built");
    // The push was root's; in life it is the user's.
    env.run("chown", &["-R", "1000:1000", "src"]);
    let build = "mkdir -p target/debug; echo o >target/debug/a.o";
    engine.docker(&["exec", "--user", "root", "--workdir", TREE, container.id(), "sh", "-c", build]);
    container.remove();
    let checkout = clone.path.join(".worktrees/built");
    // The engine's socket is root's.
    let as_user = |args: &[&str]| {
        let mut command = env.treesweep_as(USER, args);
        command.args(["--engine", "none"]).args(EAGER);
        command
    };
    as_user(&["setup"]).arg(&checkout).assert().success();
    let before = Snapshot::of(&env.src()).without(&["app/.git/treesweep"]);

    let plan = Document::of(as_user(&["plan", "--json"]).arg(env.src()));
    plan.assert_kept("built", &["not-deletable"]);
    let reasons = plan.worktree("built")["reasons"].to_string();
    assert!(reasons.contains("target belongs to uid 0") && reasons.contains("sudo"), "{reasons}");
    let pruned = Document::of(as_user(&["prune", "--yes", "--json"]).arg(env.src()));
    pruned.assert_nothing_done();
    before.assert_same(&Snapshot::of(&env.src()).without(&["app/.git/treesweep"]));

    // As the advice says: root may.
    let pruned = Document::of(
        env.treesweep(&["prune", "--yes", "--json", "--engine", "none"]).args(EAGER).arg(env.src()),
    );
    pruned.assert_removed("built", "deleted");
    assert!(checkout.symlink_metadata().is_err());
    assert!(!clone.entry("built").exists());
}

//! What a person is asked, and what each answer leads to.

mod common;

use common::env::TestEnv;
use common::git::HostClone;
use common::terminal::{DOWN, Dialogue, ENTER, ESCAPE, INTERRUPT};

const TREES: [&str; 3] = ["login", "spike", "trial"];

/// `login` is enrolled; all three are landed, clean and idle.
fn clone(env: &TestEnv) -> HostClone<'_> {
    let clone = HostClone::new(env, "app");
    for name in TREES {
        clone.add_landed(name);
    }
    env.treesweep(&["setup", "login"]).current_dir(&clone.path).assert().success();
    clone.age();
    clone
}

fn ask<'e>(clone: &HostClone<'e>, line: &str) -> Dialogue {
    Dialogue::start(clone.env, &clone.path, &format!("{line} --engine none"))
}

#[track_caller]
fn assert_left(clone: &HostClone<'_>, trees: &[&str], branches: &[&str]) {
    assert_eq!(clone.entries(), trees);
    for name in TREES {
        assert_eq!(clone.path.join(".worktrees").join(name).exists(), trees.contains(&name), "{name}");
        assert_eq!(clone.has_branch(&format!("wt/{name}")), branches.contains(&name), "branch of {name}");
    }
}

#[test]
fn enter_is_a_no() {
    let env = TestEnv::new();
    let clone = clone(&env);
    let mut prune = ask(&clone, "prune");
    prune.expect("2 worktrees");
    prune.expect("await your choice.");
    prune.expect("Reclaim 1 worktree");
    prune.expect("[y/N]");
    prune.send(ENTER);
    prune.expect("Which of these shall go?");
    prune.send(ENTER);
    let (status, text) = prune.end();
    assert!(status.success() && text.contains("Nothing was removed."), "{text}");
    assert!(!text.contains("treesweep prune"), "what to type is said by the plan only: {text}");
    assert_left(&clone, &TREES, &TREES);
}

#[test]
fn what_is_picked_goes_without_its_branch() {
    let env = TestEnv::new();
    let clone = clone(&env);
    let mut prune = ask(&clone, "prune");
    prune.expect("[y/N]");
    prune.send("y");
    prune.send(ENTER);
    prune.expect("[ ] spike");
    prune.expect("wt/spike, landed, 3 days ago");
    prune.expect("[ ] trial");
    prune.send(DOWN);
    prune.expect("> [ ] trial");
    prune.send(" ");
    prune.expect("> [x] trial");
    prune.send(ENTER);
    prune.expect("Remove trial");
    prune.expect("Branches stay. [y/N]");
    prune.send("y");
    prune.send(ENTER);
    let (status, text) = prune.end();
    assert!(status.success() && text.contains("Removed 2 worktrees"), "{text}");
    assert_left(&clone, &["spike"], &["spike", "trial"]);
}

#[test]
fn leaving_a_question_removes_nothing() {
    let env = TestEnv::new();
    let clone = clone(&env);
    for key in [ESCAPE, INTERRUPT] {
        let mut drop = ask(&clone, "drop");
        drop.expect("[ ] spike");
        drop.send(" ");
        drop.expect("[x] spike");
        drop.send(key);
        drop.end();
        assert_left(&clone, &TREES, &TREES);
    }
    let mut drop = ask(&clone, "drop");
    drop.expect("[ ] spike");
    drop.send(" ");
    drop.send(ENTER);
    drop.expect("Remove spike");
    drop.send("n");
    drop.send(ENTER);
    drop.end();
    assert_left(&clone, &TREES, &TREES);
}

#[test]
fn losing_work_takes_the_typed_name() {
    let env = TestEnv::new();
    let clone = clone(&env);
    std::fs::write(clone.path.join(".worktrees/spike/draft"), "draft").expect("a draft");
    let mut drop = ask(&clone, "drop --force spike");
    drop.expect("1 path:");
    drop.expect("draft (untracked)");
    drop.expect("Type `spike`");
    drop.send("y");
    drop.send(ENTER);
    let (_, text) = drop.end();
    assert!(text.contains("its name was not typed"), "{text}");
    assert_left(&clone, &TREES, &TREES);
    let mut drop = ask(&clone, "drop --force spike");
    drop.expect("Type `spike`");
    drop.send("spike");
    drop.send(ENTER);
    let (status, text) = drop.end();
    assert!(status.success(), "{text}");
    assert_left(&clone, &["login", "trial"], &TREES);
}

#[test]
fn enrolling_by_a_pattern_asks() {
    let env = TestEnv::new();
    let clone = clone(&env);
    let mut setup = ask(&clone, "setup --matching 'tri*'");
    setup.expect("Enrol trial?");
    setup.send(ENTER);
    setup.end();
    assert!(!clone.entry("trial").join("treesweep/ready").exists());
    let mut setup = ask(&clone, "setup --matching 'tri*'");
    setup.expect("Enrol trial?");
    setup.send("y");
    setup.send(ENTER);
    setup.expect("trial is enrolled and owned");
    assert!(setup.end().0.success());
    assert!(clone.entry("trial").join("treesweep/ready").exists());
}

//! What a person at a terminal is asked, and that no answer but theirs counts.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use rexpect::session::{PtySession, spawn_command};

/// For one question to appear, on a busy machine.
const PATIENCE_MS: u64 = 60_000;

fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let path = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
    path
}

fn at_terminal(env: &TestEnv, args: &[&str]) -> PtySession {
    let mut command: Command = env.command(env!("CARGO_BIN_EXE_treesweep"));
    command.env("TERM", "xterm").env("NO_COLOR", "1").args(args).args(["--engine", "none"]).args(EAGER);
    spawn_command(command, Some(PATIENCE_MS)).expect("a pseudo terminal")
}

#[test]
fn no_is_the_default() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "done");
    env.treesweep(&["setup"]).args(EAGER).arg(&path).assert().success();
    for answer in ["\r", "n\r"] {
        let mut session = at_terminal(&env, &["prune", utf8(&env.src())]);
        session.exp_string("Reclaim 1 worktree").unwrap();
        session.send(answer).unwrap();
        session.flush().unwrap();
        session.exp_eof().unwrap();
        assert!(path.exists(), "{answer:?}");
    }
    let mut session = at_terminal(&env, &["prune", utf8(&env.src())]);
    session.exp_string("Reclaim 1 worktree").unwrap();
    session.send("y\r").unwrap();
    session.flush().unwrap();
    session.exp_string("Removed 1 worktree").unwrap();
    session.exp_eof().unwrap();
    assert!(!path.exists());
}

#[test]
fn space_is_asked_for_once_and_no_lacks_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "done");
    env.treesweep(&["setup"]).args(EAGER).arg(&path).assert().success();
    let mut session = at_terminal(&env, &["prune", "--min-free", "99%", utf8(&env.src())]);
    session.exp_string("Reclaim 1 worktree").unwrap();
    session.exp_string("the largest first, until 99 % are free?").unwrap();
    session.send("n\r").unwrap();
    session.flush().unwrap();
    session.exp_string("Nothing was removed.").unwrap();
    let rest = session.exp_eof().unwrap();
    assert!(!rest.contains("asked for") && path.exists(), "{rest}");

    let mut session = at_terminal(&env, &["prune", "--min-free", "99%", utf8(&env.src())]);
    session.exp_string("are free?").unwrap();
    session.send("y\r").unwrap();
    session.flush().unwrap();
    session.exp_string("Removed 1 worktree").unwrap();
    session.exp_string("were asked for, and nothing more there may go by itself").unwrap();
    session.exp_eof().unwrap();
    assert!(!path.exists());
}

#[test]
fn the_picker_offers_what_is_safe_and_preselects_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let (clean, dirty) = (worktree(&clone, "clean"), worktree(&clone, "dirty"));
    fs::write(dirty.join("new"), "x").unwrap();
    // Enter takes what is selected: nothing.
    let mut session = at_terminal(&env, &["prune", utf8(&env.src())]);
    session.exp_string("Which of these").unwrap();
    session.send("\r").unwrap();
    session.flush().unwrap();
    session.exp_eof().unwrap();
    assert!(clean.exists());

    let mut session = at_terminal(&env, &["prune", utf8(&env.src())]);
    session.exp_string("Which of these").unwrap();
    session.send(" \r").unwrap();
    session.flush().unwrap();
    session.exp_string("Branches stay").unwrap();
    session.send("y\r").unwrap();
    session.flush().unwrap();
    session.exp_string("Removed 1 worktree").unwrap();
    session.exp_eof().unwrap();
    assert!(!clean.exists() && dirty.join("new").exists());
    assert!(clone.has_branch("clean"));
}

#[test]
fn force_wants_the_name_typed() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "wip");
    fs::write(path.join("new"), "x").unwrap();
    for (typed, goes) in [("wi\r", false), ("y\r", false), ("wip\r", true)] {
        let mut session = at_terminal(&env, &["drop", "--force", "wip", "--root", utf8(&env.src())]);
        session.exp_string("new (untracked)").unwrap();
        session.exp_string("Type `wip`").unwrap();
        session.send(typed).unwrap();
        session.flush().unwrap();
        session.exp_eof().unwrap();
        assert_eq!(!path.exists(), goes, "{typed:?}");
    }
}

/// What was not listed was not agreed to.
#[test]
fn what_is_written_while_a_person_reads_the_list_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "wip");
    fs::write(path.join("new"), "x").unwrap();
    let asked = || {
        let mut session = at_terminal(&env, &["drop", "--force", "wip", "--root", utf8(&env.src())]);
        session.exp_string("Type `wip`").unwrap();
        session
    };
    let changes: [&dyn Fn(); 3] = [
        &|| fs::write(path.join("newer"), "y").unwrap(),
        &|| fs::write(path.join("new"), "xx").unwrap(),
        &|| drop(env.git(&path, &["add", "new"])),
    ];
    for change in changes {
        let mut session = asked();
        change();
        session.send("wip\r").unwrap();
        session.flush().unwrap();
        session.exp_string("after what would be lost was listed").unwrap();
        session.exp_eof().unwrap();
        assert!(path.join("new").exists());
    }
    let mut session = asked();
    session.send("wip\r").unwrap();
    session.flush().unwrap();
    session.exp_eof().unwrap();
    assert!(!path.exists());
}

#[test]
fn leaving_a_question_changes_nothing() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let path = worktree(&clone, "done");
    let (escape, interrupt) = ("\x1b", "\x03");
    for key in [escape, interrupt] {
        let mut session = at_terminal(&env, &["drop", "--root", utf8(&env.src())]);
        session.exp_string("Which of these").unwrap();
        session.send(" ").unwrap();
        session.flush().unwrap();
        session.exp_string("[x] done").unwrap();
        session.send(key).unwrap();
        session.flush().unwrap();
        session.exp_eof().unwrap();
        assert!(path.exists(), "{key:?}");
    }
}

#[test]
fn enrolling_by_a_pattern_asks() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "done");
    for (answer, enrolled) in [("\r", false), ("y\r", true)] {
        let mut session = at_terminal(&env, &["setup", "--matching", "do*", "--root", utf8(&env.src())]);
        session.exp_string("Enrol done?").unwrap();
        session.send(answer).unwrap();
        session.flush().unwrap();
        session.exp_eof().unwrap();
        assert_eq!(clone.entry("done").join("treesweep/ready").exists(), enrolled, "{answer:?}");
    }
}

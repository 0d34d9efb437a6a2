//! What lies inside a worktree beside its own files: repositories, worktrees, submodules, ignored files.

#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use common::env::{TestEnv, utf8};
use common::git::HostClone;
use common::states::sweep;

#[test]
fn nested_repositories_and_worktrees_hold_what_is_around_them() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let repository = |dir: &Path| {
        fs::create_dir_all(dir).unwrap();
        env.git(dir, &["init", "-q"]);
        env.git(dir, &["commit", "-q", "--allow-empty", "-m", "only here"]);
    };
    // In a folder that is ignored, and whose name says that it can be made again.
    repository(&clone.ready("ignored").join("target/deep/er/clone"));
    let bare = clone.ready("bare").join("target/bare.git");
    fs::create_dir_all(&bare).unwrap();
    env.git(&bare, &["init", "-q", "--bare"]);
    // A worktree of this clone in an ignored folder of another one, three levels, the innermost with work in it.
    let outer = clone.ready("outer");
    let middle = clone.ready_at("middle", &outer.join("node_modules/middle"));
    let inner = clone.ready_at("inner", &middle.join("target/a b/inner"));
    fs::write(inner.join("new"), "new\n").unwrap();
    // The same where all may go: from the inside out.
    let train = clone.ready("train");
    let wagon = clone.ready_at("wagon", &train.join("target/wagon"));
    clone.ready_at("last", &wagon.join("target/last"));
    let swept = sweep(&env);
    for name in ["ignored", "bare"] {
        swept.kept(name, "nested-repository");
    }
    swept.kept("inner", "dirty");
    for name in ["middle", "outer"] {
        swept.kept(name, "nested-kept");
    }
    for name in ["last", "wagon", "train"] {
        swept.reclaimed(name, "deleted");
    }
    assert_eq!(swept.pruned.removed(), ["last", "wagon", "train"]);
}

#[test]
fn ignored_files_go_unless_they_are_precious() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    fs::write(clone.common_dir().join("info/exclude"), "/.worktrees/\n*.sqlite\n*.local\n*.log\nsecret/\n")
        .unwrap();
    fs::write(clone.path.join("same.local"), "the same\n").unwrap();
    fs::write(clone.ready("env").join(".env"), "TOKEN=1\n").unwrap();
    let dir = clone.ready("deep");
    fs::create_dir_all(dir.join("secret/x")).unwrap();
    fs::write(dir.join("secret/x/.env.production"), "TOKEN=2\n").unwrap();
    fs::write(clone.ready("database").join("my data.sqlite"), "rows").unwrap();
    fs::write(clone.ready("other").join("same.local"), "not the same\n").unwrap();
    // What may go: the main worktree has it, it can be made again, it is a link, it is only a log.
    fs::write(clone.ready("same").join("same.local"), "the same\n").unwrap();
    let dir = clone.ready("cache");
    fs::create_dir_all(dir.join("node_modules/x")).unwrap();
    fs::write(dir.join("node_modules/x/.env"), "").unwrap();
    symlink("/etc/passwd", clone.ready("link").join(".env")).unwrap();
    fs::write(clone.ready("log").join("a.log"), "log\n").unwrap();
    let swept = sweep(&env);
    for name in ["env", "deep", "database", "other"] {
        swept.kept(name, "precious-ignored");
    }
    for name in ["same", "cache", "link", "log"] {
        swept.reclaimed(name, "deleted");
    }
    assert_eq!(fs::read_to_string(clone.path.join("same.local")).unwrap(), "the same\n");
}

#[test]
fn commits_of_submodules_are_work_too() {
    let env = TestEnv::new();
    let library = HostClone::new(&env, "library");
    let clone = HostClone::new(&env, "app");
    let allow = ["-c", "protocol.file.allow=always"];
    let with_submodule = |name: &str, path: &str| {
        let dir = clone.fresh(name);
        let add = ["submodule", "--quiet", "add", "--name", "lib/deep", utf8(&library.origin), path];
        env.git(&dir, &[&allow[..], &add].concat());
        env.git(&dir, &["commit", "-qm", name]);
        clone.land(name);
        clone.enrol(&dir);
        dir.join(path)
    };
    let pushed = with_submodule("pushed", "lib");
    assert!(pushed.join("file.txt").exists());
    let commit = |dir: &Path| env.git(dir, &["commit", "-q", "--allow-empty", "-m", "only here"]);
    // A commit on a branch that is not checked out, and a stash: the pointer says nothing of either.
    clone.git(&["worktree", "add", "-q", "-b", "aside", ".worktrees/aside", "origin/main"]);
    let dir = clone.path.join(".worktrees/aside");
    env.git(&dir, &[&allow[..], &["submodule", "--quiet", "update", "--init"]].concat());
    env.git(&dir.join("lib"), &["checkout", "-q", "-b", "x"]);
    commit(&dir.join("lib"));
    env.git(&dir.join("lib"), &["checkout", "-q", "main"]);
    clone.enrol(&dir);
    // Not checked out any more, but the repository is still in the entry.
    clone.git(&["worktree", "add", "-q", "-b", "away", ".worktrees/away", "origin/main"]);
    let dir = clone.path.join(".worktrees/away");
    env.git(&dir, &[&allow[..], &["submodule", "--quiet", "update", "--init"]].concat());
    commit(&dir.join("lib"));
    env.git(&dir, &["submodule", "--quiet", "deinit", "-f", "lib"]);
    clone.enrol(&dir);
    // A change in its files.
    clone.git(&["worktree", "add", "-q", "-b", "changed", ".worktrees/changed", "origin/main"]);
    let dir = clone.path.join(".worktrees/changed");
    env.git(&dir, &[&allow[..], &["submodule", "--quiet", "update", "--init"]].concat());
    fs::write(dir.join("lib/file.txt"), "changed\n").unwrap();
    clone.enrol(&dir);
    let swept = sweep(&env);
    swept.kept("aside", "submodule-unpushed");
    swept.kept("away", "submodule-unpushed");
    swept.kept("changed", "dirty");
    swept.reclaimed("pushed", "deleted");
}

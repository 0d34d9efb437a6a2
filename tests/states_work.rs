//! Worktrees with work in them: whatever has not landed, is not committed, or is held by nothing else, stays.

#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use common::env::{TestEnv, utf8};
use common::git::HostClone;
use common::states::{sweep, sweep_with};

fn append(path: &Path, text: &str) {
    let old = fs::read(path).unwrap_or_default();
    fs::write(path, [old, text.as_bytes().to_vec()].concat()).unwrap();
}

#[test]
fn changes_of_every_kind_are_dirty() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let git = |dir: &Path, args: &[&str]| env.git(dir, args);
    type Make<'a> = &'a dyn Fn(&Path);
    let states: [(&str, Make<'_>); 13] = [
        ("modified", &|dir| append(&dir.join("file.txt"), "more\n")),
        ("untracked", &|dir| fs::write(dir.join("new"), "new\n").unwrap()),
        ("untracked-deep", &|dir| {
            fs::create_dir_all(dir.join("a/b")).unwrap();
            fs::write(dir.join("a/b/new"), "").unwrap();
        }),
        ("deleted", &|dir| fs::remove_file(dir.join("file.txt")).unwrap()),
        ("staged", &|dir| {
            append(&dir.join("file.txt"), "more\n");
            git(dir, &["add", "-A"]);
        }),
        // Staged and then taken back on disk: only the index has it.
        ("staged-only", &|dir| {
            append(&dir.join("file.txt"), "more\n");
            git(dir, &["add", "-A"]);
            fs::write(dir.join("file.txt"), "base\n").unwrap();
        }),
        ("removed-from-index", &|dir| drop(git(dir, &["rm", "-q", "--cached", "file.txt"]))),
        ("intended", &|dir| {
            fs::write(dir.join("new"), "new\n").unwrap();
            git(dir, &["add", "-N", "new"]);
        }),
        ("mode", &|dir| {
            fs::set_permissions(dir.join("file.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("link", &|dir| {
            fs::remove_file(dir.join("file.txt")).unwrap();
            symlink("elsewhere", dir.join("file.txt")).unwrap();
        }),
        ("conflicted", &|dir| {
            let blob = git(dir, &["rev-parse", "HEAD:file.txt"]);
            let info: String = (1..4).map(|stage| format!("100644 {blob} {stage}\tfile.txt\n")).collect();
            fs::write(dir.join("../info"), format!("0 {} 0\tfile.txt\n{info}", "0".repeat(40))).unwrap();
            let input = fs::File::open(dir.join("../info")).unwrap();
            let mut command = env.command("git");
            command.arg("-C").arg(dir).args(["update-index", "--index-info"]).stdin(input);
            assert!(command.status().unwrap().success());
            fs::remove_file(dir.join("../info")).unwrap();
        }),
        // Hidden by a setting, not by being ignored.
        ("hidden-by-config", &|dir| {
            fs::write(dir.join("new"), "new\n").unwrap();
            git(dir, &["config", "status.showUntrackedFiles", "no"]);
        }),
        ("written-in-the-same-second", &|dir| {
            fs::write(dir.join("file.txt"), "BASE\n").unwrap();
        }),
    ];
    for (name, make) in &states {
        make(&clone.ready(name));
    }
    let clean = clone.ready("clean");
    assert!(clean.exists());
    let swept = sweep(&env);
    for (name, _) in &states {
        swept.kept(name, "dirty");
    }
    swept.says("mode", "mode bits only, 1 file");
    swept.reclaimed("clean", "deleted");
}

#[test]
fn what_flags_hide_is_looked_at() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for (name, flag) in [("assumed", "--assume-unchanged"), ("skipped", "--skip-worktree")] {
        for changed in [true, false] {
            let name = format!("{name}-{changed}");
            let dir = clone.ready(&name);
            env.git(&dir, &["update-index", flag, "file.txt"]);
            if changed {
                append(&dir.join("file.txt"), "more\n");
            }
        }
    }
    let sparse = clone.ready("sparse");
    fs::create_dir(sparse.join("d")).unwrap();
    clone.work(&sparse, "d/in");
    clone.land("sparse");
    env.git(&sparse, &["sparse-checkout", "set", "--no-cone", "/d/"]);
    assert!(!sparse.join("file.txt").exists());
    let written = clone.ready("sparse-written");
    env.git(&written, &["sparse-checkout", "set", "--no-cone", "/sparse-written"]);
    fs::write(written.join("file.txt"), "mine\n").unwrap();
    let swept = sweep(&env);
    for name in ["assumed-true", "skipped-true", "sparse-written"] {
        swept.kept(name, "hidden-changes");
    }
    for name in ["assumed-false", "skipped-false", "sparse"] {
        swept.reclaimed(name, "deleted");
    }
}

#[test]
fn an_operation_holds_also_when_everything_looks_clean() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let stopped = |dir: &Path, args: &[&str]| {
        let mut command = env.command("git");
        command.arg("-C").arg(dir).args(args).env("GIT_EDITOR", "true");
        command.env("GIT_SEQUENCE_EDITOR", "printf 'break\\n' >");
        assert!(command.output().unwrap().status.success(), "{args:?}");
    };
    stopped(&clone.ready("rebase"), &["rebase", "-q", "-i", "HEAD~1"]);
    env.git(&clone.ready("bisect"), &["bisect", "start"]);
    // A merge whose result is what HEAD is already.
    let merge = clone.ready("merge");
    env.git(&merge, &["merge", "-q", "--no-commit", "--no-ff", "-s", "ours", "HEAD~1"]);
    let merging = clone.entry("merge").join("MERGE_HEAD");
    if !merging.exists() {
        let head = env.git(&merge, &["rev-parse", "HEAD~1"]);
        fs::write(merging, format!("{head}\n")).unwrap();
    }
    clone.ready("locked-index");
    fs::write(clone.entry("locked-index").join("index.lock"), "").unwrap();
    clone.ready("sequence");
    fs::create_dir(clone.entry("sequence").join("sequencer")).unwrap();
    clone.ready("mail");
    fs::create_dir(clone.entry("mail").join("rebase-apply")).unwrap();
    fs::write(clone.entry("mail").join("rebase-apply/applying"), "").unwrap();
    let notes = clone.ready("notes");
    env.git(&notes, &["notes", "add", "-m", "ours"]);
    env.git(&notes, &["notes", "--ref", "theirs", "add", "-m", "theirs"]);
    assert!(!env.try_git(&notes, &["notes", "merge", "-s", "manual", "theirs"]).status.success());
    assert!(clone.entry("notes").join("NOTES_MERGE_WORKTREE").is_dir());
    let swept = sweep(&env);
    for (name, words) in [
        ("notes", "notes merge"),
        ("rebase", "rebase"),
        ("bisect", "bisect"),
        ("merge", "merge"),
        ("locked-index", "index.lock"),
        ("sequence", "sequencer"),
        ("mail", "am, since"),
    ] {
        swept.kept(name, "operation-in-progress");
        swept.says(name, words);
    }
}

#[test]
fn what_nothing_else_reaches_is_named() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let detached = clone.ready("detached");
    env.git(&detached, &["checkout", "-q", "--detach"]);
    clone.work(&detached, "only-here");
    let own = clone.ready("own-ref");
    env.git(&own, &["checkout", "-q", "-b", "aside"]);
    clone.work(&own, "aside");
    env.git(&own, &["update-ref", "refs/worktree/aside", "HEAD"]);
    env.git(&own, &["checkout", "-q", "own-ref"]);
    env.git(&own, &["branch", "-D", "-q", "aside"]);
    // Detached where the trunk is: nothing would be lost, and nobody enrolled it as it is now.
    let at_trunk = clone.ready("at-trunk");
    env.git(&at_trunk, &["checkout", "-q", "--detach", "origin/main"]);
    // Detached at what only a tag or another branch has: it is held, and has not landed.
    let tagged = clone.ready("tagged");
    env.git(&tagged, &["checkout", "-q", "--detach"]);
    clone.work(&tagged, "tagged-work");
    env.git(&tagged, &["tag", "-a", "-m", "t", "v1"]);
    let swept = sweep(&env);
    swept.kept("detached", "unreachable-commits");
    swept.kept("own-ref", "unreachable-commits");
    swept.says("own-ref", "refs/worktree/aside");
    swept.offered("at-trunk", "unowned");
    swept.kept("tagged", "not-landed");
}

#[test]
fn commits_that_only_the_worktree_knows_are_anchored_when_it_goes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let dir = clone.ready("app-x");
    clone.work(&dir, "lost");
    let lost = env.git(&dir, &["rev-parse", "HEAD"]);
    env.git(&dir, &["reset", "-q", "--hard", "HEAD~1"]);
    env.git(&dir, &["checkout", "-q", "--detach"]);
    clone.work(&dir, "lost-too");
    let lost_too = env.git(&dir, &["rev-parse", "HEAD"]);
    env.git(&dir, &["checkout", "-q", "app-x"]);
    let before = clone.git(&["for-each-ref", "refs/treesweep"]);
    assert_eq!(before, "");
    let run = env
        .treesweep(&["prune", "--yes", "--engine", "none"])
        .args(common::env::EAGER)
        .arg(env.src())
        .assert();
    run.success();
    assert!(!dir.exists() && !clone.has_branch("app-x"));
    let held = clone.git(&["for-each-ref", "--format=%(objectname)", "refs/treesweep/retired"]);
    let mut held: Vec<&str> = held.lines().collect();
    held.sort_unstable();
    let mut expected = [lost.as_str(), lost_too.as_str()];
    expected.sort_unstable();
    assert_eq!(held, expected);
    clone.git(&["reflog", "expire", "--expire=now", "--all"]);
    clone.git(&["gc", "-q", "--prune=now"]);
    for commit in expected {
        clone.git(&["cat-file", "-e", commit]);
    }
}

#[test]
fn only_what_has_landed_goes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let squash = |name: &str| {
        let other = env.root().join(format!("{name}-merger"));
        env.git(env.root(), &["clone", "-q", utf8(&clone.origin), utf8(&other)]);
        let url = format!("file://{}", clone.path.display());
        env.git(&other, &["fetch", "-q", &url, name]);
        env.git(&other, &["merge", "-q", "--squash", "FETCH_HEAD"]);
        env.git(&other, &["commit", "-qm", "squash"]);
        env.git(&other, &["push", "-q", "origin", "main"]);
        clone.git(&["fetch", "-q"]);
    };
    let dir = clone.fresh("unpushed");
    clone.work(&dir, "unpushed-work");
    clone.enrol(&dir);
    // Pushed to a branch of its own is not landed.
    let dir = clone.fresh("pushed");
    clone.work(&dir, "pushed-work");
    env.git(&dir, &["push", "-q", "-u", "origin", "pushed"]);
    clone.enrol(&dir);
    // Merged, and something came after.
    let dir = clone.ready("went-on");
    clone.work(&dir, "went-on-work");
    // Squashed: the content is there, the commits are not.
    let dir = clone.fresh("squashed");
    clone.work(&dir, "squashed-1");
    clone.work(&dir, "squashed-2");
    clone.enrol(&dir);
    squash("squashed");
    // Squashed, and something came after.
    let dir = clone.fresh("squashed-and-on");
    clone.work(&dir, "squashed-3");
    squash("squashed-and-on");
    clone.work(&dir, "squashed-4");
    clone.enrol(&dir);
    // Squashed, and taken back by the trunk.
    let dir = clone.fresh("reverted");
    clone.work(&dir, "reverted-1");
    clone.enrol(&dir);
    squash("reverted");
    let other = env.root().join("reverted-merger");
    env.git(&other, &["revert", "--no-edit", "HEAD"]);
    env.git(&other, &["push", "-q", "origin", "main"]);
    clone.git(&["fetch", "-q"]);
    // Rebased onto the trunk by the remote: other commits, the same content.
    let dir = clone.fresh("rebased");
    clone.work(&dir, "rebased-1");
    clone.work(&dir, "rebased-2");
    clone.enrol(&dir);
    env.git(&other, &["commit", "-q", "--allow-empty", "-m", "in between"]);
    env.git(&other, &["fetch", "-q", utf8(&clone.path), "rebased"]);
    env.git(&other, &["cherry-pick", "HEAD..FETCH_HEAD"]);
    env.git(&other, &["push", "-q", "origin", "main"]);
    clone.git(&["fetch", "-q"]);
    // Merged into the local trunk only.
    let dir = clone.fresh("local");
    clone.work(&dir, "local-work");
    clone.enrol(&dir);
    clone.git(&["merge", "-q", "--no-edit", "local"]);
    // Landed on a branch of the remote that is not its trunk.
    let dir = clone.fresh("elsewhere");
    clone.work(&dir, "elsewhere-work");
    env.git(&dir, &["push", "-q", "origin", "elsewhere:release"]);
    clone.git(&["fetch", "-q"]);
    clone.enrol(&dir);

    let swept = sweep(&env);
    for name in ["unpushed", "pushed", "went-on", "squashed-and-on", "reverted", "elsewhere"] {
        swept.kept(name, "not-landed");
    }
    swept.reclaimed("squashed", "kept");
    swept.reclaimed("rebased", "kept");
    swept.reclaimed("local", "deleted");
    for branch in ["squashed", "rebased"] {
        assert!(clone.has_branch(branch), "{branch}");
    }
    // Where the user says that another branch is the trunk.
    sweep_with(&env, &["--engine", "none", "--trunk", "release"]).reclaimed("elsewhere", "deleted");
}

#[test]
fn without_a_trunk_nothing_has_landed() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    clone.ready("x");
    clone.git(&["remote", "set-head", "origin", "-d"]);
    clone.git(&["branch", "master"]);
    let swept = sweep(&env);
    swept.kept("x", "trunk-unknown");
    sweep_with(&env, &["--engine", "none", "--trunk", "main"]).reclaimed("x", "deleted");
}

#[test]
fn what_travels_in_another_branch_is_an_offer_that_nobody_takes_by_itself() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let one = clone.fresh("one");
    clone.work(&one, "one");
    clone.enrol(&one);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", "two", ".worktrees/two", "one"]);
    let two = clone.path.join(".worktrees/two");
    clone.work(&two, "two");
    clone.enrol(&two);
    clone.git(&["branch", "zz-twin-of-two", "two"]);
    // An hour has to pass whatever --idle says.
    sweep(&env).kept("one", "not-landed");
    clone.age();
    let swept = sweep(&env);
    swept.offered("one", "contained");
    swept.says("one", "contained in two");
    swept.kept("two", "not-landed");
}

#[test]
fn a_branch_that_is_gone_is_a_loss_already() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let dir = clone.ready("deleted");
    let last = env.git(&dir, &["rev-parse", "HEAD"]);
    fs::remove_file(clone.common_dir().join("refs/heads/deleted")).unwrap();
    let dir = clone.ready("orphan");
    env.git(&dir, &["checkout", "-q", "--orphan", "unborn"]);
    let dir = clone.ready("odd-head");
    env.git(&dir, &["symbolic-ref", "HEAD", "refs/worktree/nothing"]);
    let swept = sweep(&env);
    swept.kept("deleted", "head-missing");
    swept.says("deleted", &last);
    swept.kept("orphan", "head-missing");
    swept.kept("odd-head", "head-missing");
}

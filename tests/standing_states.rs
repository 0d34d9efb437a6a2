//! What is known of a worktree before anything costly is asked: who owns it, who protects it, what points into it.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::api::{Api, container};
use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;

const ALONE: [&str; 2] = ["--engine", "none"];

fn run(env: &TestEnv, args: &[&str]) -> Document {
    Document::of(env.treesweep(args).args(EAGER).args(ALONE).arg(env.src()))
}

fn plan(env: &TestEnv) -> Document {
    run(env, &["plan", "--json"])
}

/// An enrolled worktree of the clone, landed and clean.
fn worktree(clone: &HostClone<'_>, name: &str) -> PathBuf {
    let at = clone.path.join(".worktrees").join(name);
    clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&at), "origin/main"]);
    clone.env.git(&at, &["commit", "-q", "--allow-empty", "-m", name]);
    clone.land(name);
    clone.env.treesweep(&["setup"]).args(EAGER).args(ALONE).arg(&at).assert().success();
    at
}

/// Both links as a container with the clone at `/workspaces/app` would have written them.
fn as_container(clone: &HostClone<'_>, name: &str) {
    fs::write(clone.entry(name).join("gitdir"), format!("/workspaces/app/.worktrees/{name}/.git\n"))
        .expect("gitdir");
    let pointer = format!("gitdir: /workspaces/app/.git/worktrees/{name}\n");
    fs::write(clone.path.join(".worktrees").join(name).join(".git"), pointer).expect(".git");
}

#[track_caller]
fn assert_offered(seen: &Document, name: &str) {
    let row = seen.worktree(name);
    assert_eq!((&row["verdict"], &row["class"]), (&"offer".into(), &"unowned".into()), "{row:#}");
}

#[test]
fn where_a_container_writes_a_marker_needs_the_record_of_it() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let x = worktree(&clone, "x");
    worktree(&clone, "y");
    let records = |dir: &Path| {
        let all = fs::read_dir(dir).expect("state").map(|e| e.expect("entry").path());
        all.filter(|p| p.join("enrolled").is_dir()).map(|p| p.join("enrolled")).next().expect("records")
    };
    let state = records(&env.root().join("state/treesweep"));
    let aside = env.root().join("aside");
    fs::rename(&state, &aside).expect("rename");
    // Nobody but this vantage writes here.
    plan(&env).assert_verdict("x", "reclaim");
    as_container(&clone, "y");
    let seen = plan(&env);
    assert_offered(&seen, "x");
    seen.assert_verdict("y", "reclaim");
    fs::rename(&aside, &state).expect("rename");
    plan(&env).assert_verdict("x", "reclaim");
    // A record is of one entry: one that was made anew under its name is another.
    let marker = fs::read(clone.entry("x").join("treesweep/ready")).expect("marker");
    clone.git(&["worktree", "remove", "--force", utf8(&x)]);
    clone.git(&["worktree", "add", "-q", utf8(&x), "x"]);
    fs::create_dir(clone.entry("x").join("treesweep")).expect("directory");
    fs::write(clone.entry("x").join("treesweep/ready"), &marker).expect("marker");
    assert_offered(&plan(&env), "x");
    // Also where the foreign registration is one that can't be read, or leads nowhere.
    for gitdir in ["/elsewhere/y/.git\n", "C:\\src\\y\\.git\n", ""] {
        fs::write(clone.entry("y").join("gitdir"), gitdir).expect("gitdir");
        assert_offered(&plan(&env), "x");
    }
}

#[test]
fn a_marker_is_of_the_entry_that_it_names() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "x");
    worktree(&clone, "y");
    let ready = |name: &str| clone.entry(name).join("treesweep/ready");
    fs::copy(ready("y"), ready("x")).expect("copy");
    let seen = plan(&env);
    assert_offered(&seen, "x");
    seen.assert_verdict("y", "reclaim");
    fs::remove_file(ready("x")).expect("remove");
    std::os::unix::fs::symlink(ready("y"), ready("x")).expect("link");
    assert_offered(&plan(&env), "x");
    // Its place is no part of it: worktrees move.
    let moved = env.src().join("moved");
    clone.git(&["worktree", "move", utf8(&clone.path.join(".worktrees/y")), utf8(&moved)]);
    plan(&env).assert_verdict("y", "reclaim");
    // The branch is, by the template.
    env.git(&moved, &["branch", "-m", "y", "z"]);
    assert_offered(&plan(&env), "y");
}

#[test]
fn a_glob_protects_by_name_branch_and_path() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "fix");
    let path = format!("{}/*", utf8(at.parent().expect("parent")));
    for glob in ["fi?", "fix", &path] {
        run(&env, &["plan", "--json", "--protect", glob]).assert_kept("fix", &["protected"]);
    }
    let branched = ["plan", "--json", "--branch-template", "me/{name}", "--protect", "me/*"];
    env.git(&at, &["branch", "-m", "fix", "me/fix"]);
    run(&env, &branched).assert_kept("fix", &["protected"]);
    run(&env, &["plan", "--json", "--branch-template", "me/{name}", "--protect", "you/*"])
        .assert_verdict("fix", "reclaim");
    // What is gone is protected by the path that it had.
    fs::remove_dir_all(&at).expect("remove");
    let named = ["plan", "--json", "--branch-template", "me/{name}", "--protect", &path];
    run(&env, &named).assert_kept("fix", &["protected"]);
}

#[test]
fn the_worktree_of_the_trunk_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    clone.git(&["switch", "-q", "--detach"]);
    let at = clone.path.join(".worktrees/main");
    clone.git(&["worktree", "add", "-q", utf8(&at), "main"]);
    env.treesweep(&["setup"]).args(EAGER).args(ALONE).arg(&at).assert().success();
    plan(&env).assert_kept("main", &["protected"]);
}

#[test]
fn what_the_configuration_points_into_stays() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x");
    worktree(&clone, "y");
    as_container(&clone, "y");
    let inside = format!("{}/hooks", utf8(&at));
    let home = env.root().join("home/link");
    std::os::unix::fs::symlink(&clone.path, &home).expect("link");
    let cases = [
        ("core.hooksPath", inside.as_str()),
        ("core.hooksPath", ".worktrees/x/hooks"),
        ("core.hooksPath", "./.worktrees/../.worktrees/x"),
        // As the container calls it, which a sibling tells.
        ("core.hooksPath", "/workspaces/app/.worktrees/x/hooks"),
        ("core.worktree", "../.worktrees/x/main"),
        ("include.path", "../.worktrees/x/config"),
        ("include.path", "~/link/.worktrees/x/config"),
        ("includeIf.gitdir:/nowhere/.path", inside.as_str()),
    ];
    // From outside: with some of these git can't even enter the clone.
    let file = clone.common_dir().join("config");
    let config = |args: &[&str]| env.git(env.root(), &[&["config", "--file", utf8(&file)], args].concat());
    for (key, value) in cases {
        config(&[key, value]);
        let seen = plan(&env);
        seen.assert_kept("x", &["referenced"]);
        seen.assert_verdict("y", "reclaim");
        config(&["--unset", key]);
    }
    for (key, value) in
        [("core.hooksPath", ".githooks"), ("include.path", "extra"), ("core.hooksPath", "/opt")]
    {
        config(&[key, value]);
        plan(&env).assert_verdict("x", "reclaim");
        config(&["--unset", key]);
    }
}

/// What a clone borrows from a worktree, or from the repository of its submodule, would go with it.
#[test]
fn objects_that_another_clone_borrows_stay() {
    let env = TestEnv::new();
    let (clone, library) = (HostClone::new(&env, "app"), HostClone::new(&env, "library"));
    let other = HostClone::new(&env, "other");
    let at = worktree(&clone, "x");
    let allow = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "--quiet", "add", "--name", "lib", utf8(&library.origin), "lib"];
    env.git(&at, &[&allow[..], &add].concat());
    env.git(&at, &["commit", "-qm", "lib"]);
    clone.land("x");
    worktree(&clone, "y");
    plan(&env).assert_verdict("x", "reclaim");
    let list = other.common_dir().join("objects/info/alternates");
    let module = clone.entry("x").join("modules/lib/objects");
    fs::create_dir_all(at.join("target/objects")).expect("an ignored store");
    let linked = env.src().join("link");
    std::os::unix::fs::symlink(clone.common_dir(), &linked).expect("link");
    for store in [
        utf8(&module).to_owned(),
        "../../../app/.git/worktrees/x/modules/lib/objects".to_owned(),
        format!("{}/worktrees/x/modules/lib/objects", utf8(&linked)),
        format!("{}/target/objects", utf8(&at)),
    ] {
        fs::write(&list, format!("{store}\n")).expect("alternates");
        let seen = plan(&env);
        seen.assert_kept("x", &["referenced"]);
        seen.assert_verdict("y", "reclaim");
    }
    fs::remove_file(&list).expect("alternates");
    plan(&env).assert_verdict("x", "reclaim");
}

/// A container that has the clone mounted writes markers without having registered anything.
#[test]
fn where_a_container_is_known_a_marker_needs_the_record_of_it() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    worktree(&clone, "x");
    let state = env.root().join("state/treesweep");
    let with = |source: &Path| {
        let api = Api::listing(&env, serde_json::json!([container("dev", "exited", &[(source, "/w")])]));
        let mut plan = env.treesweep(&["plan", "--json", "--engine", api.socket()]);
        let seen = Document::of(plan.args(EAGER).arg(env.src()));
        fs::remove_file(api.socket()).expect("socket");
        seen
    };
    with(&clone.path).assert_verdict("x", "reclaim");
    fs::rename(&state, env.root().join("aside")).expect("rename");
    assert_offered(&with(&clone.path), "x");
    assert_offered(&with(&env.src()), "x");
    with(Path::new("/opt")).assert_verdict("x", "reclaim");
}

#[test]
fn every_lock_holds_but_the_guards_own() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x");
    clone.git(&["worktree", "lock", utf8(&at)]);
    let locked = clone.entry("x").join("locked");
    let reason = "treesweep guard: protected from git worktree prune on the host";
    for text in ["", "\n", "agent, pid 7\n", &format!("{reason} \u{b7}"), &format!("  {reason}")] {
        fs::write(&locked, text).expect("lock");
        plan(&env).assert_kept("x", &["locked"]);
    }
    for text in [reason.to_owned(), format!("{reason}\n")] {
        fs::write(&locked, text).expect("lock");
        plan(&env).assert_verdict("x", "reclaim");
    }
    // What is no plain file is no lock that could be understood.
    fs::remove_file(&locked).expect("remove");
    fs::create_dir(&locked).expect("directory");
    plan(&env).assert_kept("x", &["unreadable"]);
}

#[test]
fn of_what_is_held_explain_asks_what_can_be_asked() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = worktree(&clone, "x");
    fs::write(at.join(".git"), "gitdir: /workspaces/app/.git/worktrees/x\n").expect(".git");
    let seen = run(&env, &["plan", "--json", "--explain", "x"]);
    let row = seen.worktree("x");
    assert_eq!(row["verdict"], "keep", "{row:#}");
    assert_eq!(row["branch"], "x", "{row:#}");
}

//! Clones, names and links in all the forms that they come in: what is known for certain goes, in each of them.

#![allow(clippy::disallowed_methods)]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::states::{sweep, sweep_with};

/// A worktree whose directory has this name, on this branch, with a commit that has landed.
fn named(clone: &HostClone<'_>, name: &[u8], branch: &OsStr) -> PathBuf {
    let dir = clone.path.join(".worktrees").join(OsStr::from_bytes(name));
    let add = ["worktree", "add", "-q", "--no-track", "-b"].map(OsStr::new);
    clone.git(&[&add[..], &[branch, dir.as_os_str(), OsStr::new("origin/main")]].concat());
    clone.env.git(&dir, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let push = [b"HEAD:refs/heads/main".as_slice()].map(OsStr::from_bytes);
    clone.env.git(&dir, &[&["push", "-q", "origin"].map(OsStr::new)[..], &push].concat());
    clone.git(&["fetch", "-q"]);
    dir
}

#[test]
fn names_are_bytes() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    // Names that a branch can have too.
    let names: [&[u8]; 5] =
        [b"\xff\xfe", b"quote'\"$(x)", "\u{202e}rtl".as_bytes(), "e\u{301}".as_bytes(), "\u{e9}".as_bytes()];
    let dirs: Vec<PathBuf> = names.iter().map(|n| named(&clone, n, OsStr::from_bytes(n))).collect();
    dirs.iter().for_each(|dir| clone.enrol(dir));
    // Names that no branch has, one of them with a record that its line break forges.
    let forged = format!("a\nworktree {}/.worktrees/victim\nHEAD 0", clone.path.display()).replace('/', ":");
    let odd: [&[u8]; 4] = [b"with blank", b"\x1b[2Jred", b"-dash ", forged.as_bytes()];
    let kept: Vec<PathBuf> =
        odd.iter().enumerate().map(|(at, n)| named(&clone, n, OsStr::new(&format!("odd-{at}")))).collect();
    let victim = clone.ready("victim");
    fs::write(victim.join("new"), "new\n").unwrap();
    let swept = sweep(&env);
    swept.kept("victim", "dirty");
    assert_eq!(swept.plan.0["totals"]["reclaim"], dirs.len(), "{:#}", swept.plan.0);
    assert_eq!(swept.plan.0["totals"]["offer"], kept.len());
    assert!(dirs.iter().all(|dir| !dir.exists()) && kept.iter().all(|dir| dir.exists()));
    // Nothing that drives a terminal comes out.
    let run = env.treesweep(&["plan", "--engine", "none"]).args(EAGER).arg(env.src()).assert().success();
    assert!(!run.get_output().stdout.contains(&0x1b));
    // A person can name them.
    for dir in kept {
        env.treesweep(&["drop", "--yes", "--engine", "none"]).args(EAGER).arg(&dir).assert().success();
        assert!(!dir.exists());
    }
    assert_eq!(clone.entries(), ["victim"]);
}

#[test]
fn branches_have_slashes_and_formats_are_many() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let deep = clone.path.join(".worktrees/a/b/c");
    clone.ready_at("wt/c", &deep);
    env.treesweep(&["setup", "--engine", "none"]).arg(&deep).assert().success();
    clone.git(&["pack-refs", "--all"]);
    // A branch whose name only begins like the template.
    let other = clone.path.join(".worktrees/d");
    clone.ready_at("wt/d-2", &other);
    let swept = sweep_with(&env, &["--engine", "none", "--branch-template", "wt/{name}"]);
    swept.reclaimed("c", "deleted");
    swept.offered("d", "unowned");
    assert!(clone.has_branch("wt/d-2"));
    let names = clone.git(&["for-each-ref", "--format=%(refname)", "refs/heads"]);
    assert_eq!(names, "refs/heads/main\nrefs/heads/wt/d-2");
}

/// A clone at `path` in the layout that `init` makes, with a remote of its own in the format `hash`.
fn in_layout(env: &TestEnv, hash: &str, name: &str, init: impl Fn(&Path, &Path)) -> PathBuf {
    let origin = env.root().join(format!("{name}.git"));
    let format = format!("--object-format={hash}");
    env.git(env.root(), &["init", "-q", "--bare", "-b", "main", &format, utf8(&origin)]);
    let seed = env.root().join(format!("{name}-seed"));
    env.git(env.root(), &["init", "-q", "-b", "main", &format, utf8(&seed)]);
    fs::write(seed.join("file"), "base\n").unwrap();
    env.git(&seed, &["add", "-A"]);
    env.git(&seed, &["commit", "-qm", "base"]);
    env.git(&seed, &["push", "-q", utf8(&origin), "main"]);
    let path = env.src().join(name);
    init(&origin, &path);
    path
}

#[test]
fn every_layout_of_a_clone_counts() {
    let env = TestEnv::new();
    let git = |args: &[&str]| drop(env.git(env.root(), args));
    let plain = |origin: &Path, path: &Path| git(&["clone", "-q", utf8(origin), utf8(path)]);
    let layouts = [
        in_layout(&env, "sha1", "plain", plain),
        in_layout(&env, "sha256", "sha256", plain),
        in_layout(&env, "sha1", "bare", |origin, path| {
            git(&["clone", "-q", "--bare", utf8(origin), utf8(path)]);
        }),
        in_layout(&env, "sha1", "dot-bare", |origin, path| {
            git(&["clone", "-q", "--bare", utf8(origin), utf8(&path.join(".bare"))]);
            fs::write(path.join(".git"), "gitdir: ./.bare\n").unwrap();
        }),
        in_layout(&env, "sha1", "separate", |origin, path| {
            let apart = env.src().join("separate-git-dir");
            git(&["clone", "-q", "--separate-git-dir", utf8(&apart), utf8(origin), utf8(path)]);
        }),
        in_layout(&env, "sha1", "linked", |origin, path| {
            plain(origin, path);
            let apart = env.src().join("linked-git-dir");
            fs::rename(path.join(".git"), &apart).unwrap();
            symlink(apart, path.join(".git")).unwrap();
        }),
        in_layout(&env, "sha1", "split", |origin, path| {
            plain(origin, path);
            env.git(path, &["config", "extensions.worktreeConfig", "true"]);
            env.git(path, &["config", "core.splitIndex", "true"]);
            env.git(path, &["config", "index.version", "4"]);
        }),
    ];
    for path in &layouts {
        let name = format!("wt-{}", path.file_name().unwrap().to_str().unwrap());
        let dir = env.src().join("checkouts").join(&name);
        let git = |dir: &Path, args: &[&str]| env.git(dir, args);
        let trunk = if path.ends_with("bare") || path.ends_with("dot-bare") { "main" } else { "origin/main" };
        git(path, &["worktree", "add", "-q", "--no-track", "-b", &name, utf8(&dir), trunk]);
        fs::write(dir.join("work"), "work\n").unwrap();
        git(&dir, &["add", "-A"]);
        git(&dir, &["commit", "-qm", "work"]);
        let origin = env.root().join(format!("{}.git", path.file_name().unwrap().to_str().unwrap()));
        git(&dir, &["push", "-q", utf8(&origin), "HEAD:main"]);
        match trunk {
            "main" => git(path, &["update-ref", "refs/heads/main", &name]),
            _ => git(path, &["fetch", "-q", "origin"]),
        };
        env.treesweep(&["setup", "--engine", "none"]).args(EAGER).arg(&dir).arg("--").assert().success();
    }
    let plan =
        Document::of(env.treesweep(&["plan", "--json", "--engine", "none"]).args(EAGER).arg(env.src()));
    for path in &layouts {
        let name = format!("wt-{}", path.file_name().unwrap().to_str().unwrap());
        plan.assert_verdict(&name, "reclaim");
    }
    let swept = sweep(&env);
    for path in &layouts {
        swept.reclaimed(&format!("wt-{}", path.file_name().unwrap().to_str().unwrap()), "deleted");
    }
}

#[test]
fn a_submodules_own_worktrees_are_worktrees() {
    let env = TestEnv::new();
    let library = HostClone::new(&env, "library");
    let clone = HostClone::new(&env, "app");
    let add =
        ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", utf8(&library.origin), "lib"];
    clone.git(&add);
    clone.git(&["commit", "-qm", "lib"]);
    let dir = env.src().join("lib-wt");
    env.git(&clone.path.join("lib"), &["worktree", "add", "-q", "-b", "lib-wt", utf8(&dir), "origin/main"]);
    fs::write(dir.join("new"), "new\n").unwrap();
    sweep(&env).kept("lib-wt", "dirty");
    fs::remove_file(dir.join("new")).unwrap();
    env.treesweep(&["setup", "--engine", "none"]).args(EAGER).arg(&dir).assert().success();
    sweep(&env).reclaimed("lib-wt", "deleted");
}

#[test]
fn links_of_any_spelling_join() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = |name: &str| clone.path.join(".worktrees").join(name);
    for name in ["relative", "crlf", "bare", "trail", "half", "container", "moved-by-git"] {
        clone.ready(name);
    }
    fs::write(clone.entry("relative").join("gitdir"), "../../../.worktrees/relative/.git\n").unwrap();
    fs::write(at("relative").join(".git"), "gitdir: ../../.git/worktrees/relative\n").unwrap();
    for (name, end) in [("crlf", "\r\n"), ("bare", ""), ("trail", " \t\n\n")] {
        fs::write(clone.entry(name).join("gitdir"), format!("{}/.git{end}", at(name).display())).unwrap();
        let pointer = format!("gitdir: {}{end}", clone.entry(name).display());
        fs::write(at(name).join(".git"), pointer).unwrap();
    }
    // Only one of the two is relative.
    fs::write(at("half").join(".git"), "gitdir: ../../.git/worktrees/half\n").unwrap();
    clone.as_container_wrote_it("container");
    clone.git(&["worktree", "move", utf8(&at("moved-by-git")), utf8(&env.src().join("moved"))]);
    let swept = sweep(&env);
    for name in ["relative", "crlf", "bare", "trail", "half", "container", "moved-by-git"] {
        swept.reclaimed(name, "deleted");
    }
}

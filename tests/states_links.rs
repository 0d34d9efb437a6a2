//! Where registration and directory do not answer for each other: nothing goes that is not proven to be what it seems.

#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;

use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use common::states::{CONTAINER, sweep, sweep_with};

#[test]
fn the_clone_itself_is_never_a_target() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "team/app");
    for (name, recorded) in [
        ("itself", clone.path.clone()),
        ("its-git", clone.common_dir()),
        ("in-its-git", clone.common_dir().join("objects")),
        ("above", env.src().join("team")),
    ] {
        clone.ready(name);
        fs::write(clone.entry(name).join("gitdir"), format!("{}/.git\n", recorded.display())).unwrap();
        // Nothing else names the entry.
        fs::remove_dir_all(clone.path.join(".worktrees").join(name)).unwrap();
    }
    let swept = sweep(&env);
    for name in ["itself", "its-git", "in-its-git", "above"] {
        swept.kept(name, "main-worktree");
    }
    // Also when the directory's own file plays along.
    let pointer = format!("gitdir: {}\n", clone.entry("above").display());
    fs::write(env.src().join("team/.git"), pointer).unwrap();
    sweep(&env).kept("above", "main-worktree");
}

#[test]
fn what_names_something_else_is_left_alone() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let at = |name: &str| clone.path.join(".worktrees").join(name);
    // Something else was put where the worktree was.
    for name in ["repository", "copy-of-another"] {
        fs::remove_dir_all(clone.ready(name)).unwrap();
    }
    env.git(env.root(), &["clone", "-q", utf8(&clone.origin), utf8(&at("repository"))]);
    let other = clone.ready("other");
    env.run("cp", &["-a", utf8(&other), utf8(&at("copy-of-another"))]);
    // The entry records another place than the directory that names it.
    clone.ready("elsewhere");
    fs::write(clone.entry("elsewhere").join("gitdir"), "/workspaces/gone/.git\n").unwrap();
    // The pointer names another clone's entry of the same name.
    let second = HostClone::new(&env, "second");
    second.ready("twin");
    clone.ready("twin");
    let pointer = format!("gitdir: {}\n", second.entry("twin").display());
    fs::write(at("twin").join(".git"), pointer).unwrap();
    let swept = sweep(&env);
    swept.kept("repository", "links-disagree");
    swept.kept("copy-of-another", "links-disagree");
    assert!(
        at("copy-of-another").join("other").exists() && !other.exists(),
        "the copy is not what was enrolled"
    );
    let rows = swept.plan.0["clones"][0]["worktrees"].as_array().unwrap();
    for row in rows.iter().filter(|row| row["name"] == "twin") {
        assert_eq!(row["verdict"], "keep", "{row:#}");
    }
    // The other clone's own one answers for its own directory.
    assert!(!second.path.join(".worktrees/twin").exists() && at("twin").join("twin").exists());
    swept.kept("elsewhere", "links-disagree");
}

#[test]
fn a_directory_without_a_readable_pointer_is_broken() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["gone", "empty", "junk", "fifo", "link"] {
        let file = clone.ready(name).join(".git");
        fs::remove_file(&file).unwrap();
        match name {
            "empty" => fs::write(&file, "").unwrap(),
            "junk" => fs::write(&file, [0xff; 64]).unwrap(),
            "fifo" => drop(env.run("mkfifo", &[utf8(&file)])),
            "link" => symlink(clone.entry(name), &file).unwrap(),
            _ => {}
        }
    }
    // In an ignored folder, so that git would walk up to the clone and call it clean.
    fs::write(clone.path.join(".worktrees/gone/work"), "work\n").unwrap();
    let swept = sweep(&env);
    for name in ["gone", "empty", "junk", "fifo"] {
        swept.kept(name, "broken-link");
    }
    swept.plan.assert_kept("link", &["broken-link", "links-disagree"]);
}

#[test]
fn a_broken_entry_is_kept_and_the_others_go_on() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let broken = ["gitdir", "HEAD", "commondir"];
    let ways = ["missing", "empty", "directory"];
    let states: Vec<_> = broken.iter().flat_map(|file| ways.map(|how| (*file, how))).collect();
    states.iter().for_each(|(file, how)| drop(clone.ready(&format!("{file}-{how}"))));
    clone.ready("good");
    clone.ready("index");
    // One of them is enough to stop git for the whole clone.
    for (file, how) in &states {
        let path = clone.entry(&format!("{file}-{how}")).join(file);
        fs::remove_file(&path).unwrap();
        match *how {
            "empty" => fs::write(&path, "").unwrap(),
            "directory" => fs::create_dir(&path).unwrap(),
            _ => {}
        }
    }
    assert!(!env.try_git(&clone.path, &["worktree", "list"]).status.success());
    let index = clone.entry("index").join("index");
    let bytes = fs::read(&index).unwrap();
    fs::write(&index, &bytes[..bytes.len() / 2]).unwrap();
    fs::create_dir(clone.entry("nothing")).unwrap();
    fs::write(clone.entry("file"), "").unwrap();
    symlink(clone.entry("good"), clone.entry("link")).unwrap();
    let swept = sweep(&env);
    for (file, how) in states {
        let name = format!("{file}-{how}");
        swept.kept(&name, "unreadable");
        swept.says(&name, file);
    }
    for name in ["nothing", "file", "link"] {
        swept.kept(name, "unreadable");
    }
    swept.kept("index", "unreadable");
    // Whether one of the broken ones has its branch checked out is not known.
    swept.reclaimed("good", "kept");
}

#[test]
fn a_clone_that_can_not_be_read_is_kept_whole() {
    let env = TestEnv::new();
    for name in ["reftable", "unknown", "fifo", "borrowing", "commondir"] {
        let clone = HostClone::new(&env, name);
        clone.ready(&format!("wt-{name}"));
        let config = |key: &str, value: &str| drop(clone.git(&["config", key, value]));
        match name {
            "reftable" | "unknown" => {
                let key =
                    if name == "reftable" { "extensions.refStorage" } else { "extensions.somethingNew" };
                config("core.repositoryFormatVersion", "1");
                fs::write(
                    clone.common_dir().join("config"),
                    [
                        fs::read(clone.common_dir().join("config")).unwrap(),
                        format!("[extensions]\n\t{} = reftable\n", key.split('.').next_back().unwrap())
                            .into_bytes(),
                    ]
                    .concat(),
                )
                .unwrap();
            }
            "fifo" => {
                let dir = clone.common_dir().join("objects/ab");
                fs::create_dir_all(&dir).unwrap();
                env.run("mkfifo", &[utf8(&dir.join("cd"))]);
            }
            "borrowing" => {
                let lender = env.root().join("lender");
                env.git(env.root(), &["clone", "-q", utf8(&clone.origin), utf8(&lender)]);
                let path = format!("{}\n", lender.join(".git/objects").display());
                fs::write(clone.common_dir().join("objects/info/alternates"), path).unwrap();
            }
            _ => {
                let other = format!("{}\n", env.src().join("unknown/.git").display());
                fs::write(clone.common_dir().join("commondir"), other).unwrap();
            }
        }
    }
    HostClone::new(&env, "good").ready("good");
    let swept = sweep(&env);
    for (name, words) in [
        ("reftable", "refStorage"),
        ("unknown", "somethingNew"),
        ("fifo", "FIFO"),
        ("borrowing", "lender"),
        ("commondir", "commondir"),
    ] {
        let name = format!("wt-{name}");
        swept.kept(&name, "unreadable");
        swept.says(&name, words);
    }
    swept.reclaimed("good", "deleted");
    // What is borrowed from beneath another root that was named is evidence.
    let mut run = env.treesweep(&["plan", "--json", "--engine", "none"]);
    let plan = Document::of(run.args(EAGER).args([env.src(), env.root().join("lender")]));
    plan.assert_verdict("wt-borrowing", "reclaim");
}

#[test]
fn one_broken_ref_breaks_its_own_worktree_only() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    clone.ready("broken");
    clone.ready("good");
    // What a power failure leaves.
    fs::write(clone.common_dir().join("refs/heads/broken"), "").unwrap();
    let swept = sweep(&env);
    swept.kept("broken", "unreadable");
    swept.says("broken", "refs/heads/broken");
    // What the other one has checked out is not known: it might be this branch.
    swept.reclaimed("good", "kept");
    let warnings = swept.plan.0["clones"][0]["warnings"].to_string();
    assert!(warnings.contains("refs/heads/broken"), "{warnings}");
}

#[test]
fn what_was_moved_by_hand_is_not_absent() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    fs::rename(clone.ready("moved"), env.src().join("moved-here")).unwrap();
    // Out of every root: it is gone as far as can be seen, but its own vantage proves that only by the marker.
    let swept = sweep(&env);
    swept.kept("moved", "links-disagree");
    swept.says("moved", "moved-here");
}

/// Git keeps the first by name of two entries that record one path, whichever the directory names.
#[test]
fn of_two_entries_for_one_path_the_one_that_the_directory_names_is_joined() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let dir = clone.ready("zz");
    clone.ready("aa");
    fs::remove_dir_all(clone.path.join(".worktrees/aa")).unwrap();
    fs::write(clone.entry("aa").join("gitdir"), format!("{}/.git\n", dir.display())).unwrap();
    fs::write(dir.join("new"), "new\n").unwrap();
    let swept = sweep(&env);
    swept.kept("aa", "links-disagree");
    swept.kept("zz", "dirty");
    fs::remove_file(dir.join("new")).unwrap();
    let swept = sweep(&env);
    swept.kept("aa", "links-disagree");
    swept.reclaimed("zz", "deleted");
}

#[test]
fn a_missing_directory_is_absent_only_where_that_is_proven() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    // Enrolled at this path of this host: its own vantage proves it.
    fs::remove_dir_all(clone.ready("own")).unwrap();
    // The same without a marker: a person may say so.
    fs::remove_dir_all(clone.fresh("unmarked")).unwrap();
    // A container's path: the sibling that joined says where it would be, which is weak.
    clone.ready("sibling");
    clone.as_container_wrote_it("sibling");
    fs::write(clone.path.join(".worktrees/sibling/new"), "new\n").unwrap();
    clone.ready("inferred");
    clone.as_container_wrote_it("inferred");
    fs::remove_dir_all(clone.path.join(".worktrees/inferred")).unwrap();
    // Nothing at all says where this one is.
    clone.ready("unknown");
    fs::write(clone.entry("unknown").join("gitdir"), "/elsewhere/unknown/.git\n").unwrap();
    fs::remove_dir_all(clone.path.join(".worktrees/unknown")).unwrap();
    // Written on another system.
    clone.ready("windows");
    fs::write(clone.entry("windows").join("gitdir"), "C:/src/app/.worktrees/windows/.git\n").unwrap();
    fs::remove_dir_all(clone.path.join(".worktrees/windows")).unwrap();
    // Only the case differs from what is there.
    fs::remove_dir_all(clone.ready("Case")).unwrap();
    fs::create_dir(clone.path.join(".worktrees/case")).unwrap();
    // A disk that is not mounted: everything that lies there is missing at once.
    let disk = env.src().join("disk");
    fs::create_dir(&disk).unwrap();
    clone.fresh_at("unmounted", &disk.join("unmounted"));
    fs::remove_dir_all(disk.join("unmounted")).unwrap();
    // Staged and never committed: only the entry's index has it.
    let dir = clone.ready("staged");
    fs::write(dir.join("new"), "new\n").unwrap();
    env.git(&dir, &["add", "-A"]);
    fs::remove_dir_all(dir).unwrap();
    let swept = sweep(&env);
    swept.forgotten("own", "deleted");
    swept.offered("unmarked", "stale");
    swept.offered("inferred", "stale");
    for name in ["unknown", "windows"] {
        swept.kept(name, "outside-vantage");
    }
    swept.kept("Case", "absence-unproven");
    swept.kept("unmounted", "absence-unproven");
    swept.kept("staged", "dirty");
    // A map that covers it proves the rest.
    let map = format!("{CONTAINER}={}", clone.path.display());
    sweep_with(&env, &["--engine", "none", "--map", &map]).forgotten("inferred", "deleted");
}

#[test]
fn symlinks_on_the_way_keep() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let real = env.src().join("real");
    fs::create_dir(&real).unwrap();
    symlink(&real, env.src().join("link")).unwrap();
    clone.ready_at("linked", &env.src().join("link/linked"));
    fs::write(clone.entry("linked").join("gitdir"), format!("{}/link/linked/.git\n", env.src().display()))
        .unwrap();
    // The directory itself was replaced by a link to where it went.
    let dir = clone.ready("replaced");
    fs::rename(&dir, env.src().join("went-here")).unwrap();
    symlink(env.src().join("went-here"), &dir).unwrap();
    let swept = sweep(&env);
    swept.kept("linked", "path-escapes");
    swept.plan.assert_verdict("replaced", "keep");
}

#[test]
fn what_lies_outside_of_the_root_is_named() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let outside = env.root().join("outside");
    clone.ready_at("outside", &outside);
    let swept = sweep(&env);
    swept.kept("outside", "outside-root");
    swept.says("outside", utf8(env.root()));
    assert!(outside.join("outside").exists());
    let before = Snapshot::of(&outside);
    // With the root that the reason names, it goes.
    let mut run = env.treesweep(&["plan", "--json", "--engine", "none"]);
    let plan = Document::of(run.args(EAGER).arg(env.root()));
    plan.assert_verdict("outside", "reclaim");
    before.assert_same(&Snapshot::of(&outside));
}

#[test]
fn two_clones_of_one_container_path_are_not_told_apart_by_a_name() {
    let env = TestEnv::new();
    let (one, two) = (HostClone::new(&env, "one"), HostClone::new(&env, "two"));
    for clone in [&one, &two] {
        clone.ready("x");
        clone.as_container_wrote_it("x");
    }
    fs::write(one.path.join(".worktrees/x/new"), "new\n").unwrap();
    let swept = sweep(&env);
    let verdict = |clone: &HostClone<'_>| swept.plan.worktree_of(Some(&clone.path), "x")["verdict"].clone();
    assert_eq!(verdict(&one), "keep");
    assert_eq!(verdict(&two), "reclaim", "each directory lies below its own clone");
    assert!(one.path.join(".worktrees/x/new").exists());
}

#[test]
fn directories_that_no_registration_answers_for_are_listed_and_left() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["same", "changed", "precious"] {
        clone.ready(name);
        fs::remove_dir_all(clone.entry(name)).unwrap();
    }
    fs::write(clone.path.join(".worktrees/changed/new"), "new\n").unwrap();
    fs::write(clone.path.join(".worktrees/precious/.env"), "TOKEN=1\n").unwrap();
    let swept = sweep(&env);
    swept.offered("same", "orphan");
    swept.kept("changed", "dirty");
    swept.kept("precious", "precious-ignored");
    assert_eq!(swept.plan.worktree("same")["recorded_path"], serde_json::Value::Null);
}

//! One test for each rule of the walk.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::{Fixture, paths};
use crate::beneath::{Kind, lstat};
use crate::git::index::Depth;
use crate::stop::Stop;
use crate::survey::walk::{Finding, Thoroughness, fingerprint_of};
use crate::vantage::paths::LocalPath;

const FILES: &[(&str, &str)] = &[
    ("file.txt", "base\n"),
    ("dir/a", "a\n"),
    ("dir/sub/b", "b\n"),
    (".gitignore", ".env*\nscratch/\ntarget/\nnode_modules/\n"),
];

#[test]
fn a_fresh_worktree_is_clean() {
    for format in ["sha1", "sha256"] {
        for depth in [Depth::Plan, Depth::BeforeRemoval] {
            let mut f = Fixture::with_format(FILES, format);
            f.depth = depth;
            let seen = f.walk();
            seen.assert_clean();
            assert_eq!(seen.facts.size.files, 5, "four and the .git file");
            assert_eq!(seen.facts.size.directories, 3);
        }
    }
}

#[test]
fn every_kind_of_change_is_found() {
    let f = Fixture::new(FILES);
    f.write("wt/file.txt", "changed\n");
    std::fs::set_permissions(f.path("wt/dir/a"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::remove_file(f.path("wt/dir/sub/b")).unwrap();
    f.write("wt/new", "");
    f.write("wt/deep/er/new", "");
    symlink("nowhere", f.path("wt/link")).unwrap();
    f.write("wt/scratch/ignored", "");
    f.write("wt/.env", "SECRET=1\n");
    let seen = f.walk();
    assert_eq!(paths(&seen.facts.modified), ["file.txt"]);
    assert_eq!(paths(&seen.facts.mode_only), ["dir/a"]);
    assert_eq!(paths(&seen.facts.deleted), ["dir/sub/b"]);
    assert_eq!(paths(&seen.facts.untracked), ["deep/er/new", "link", "new"]);
    assert_eq!(paths(&seen.facts.precious), [".env"]);
    assert_eq!(seen.of(Finding::Ignored), [".env", "scratch/ignored"]);
}

#[test]
fn stat_data_of_another_vantage_does_not_make_it_dirty() {
    let f = Fixture::new(FILES);
    for name in ["file.txt", "dir/a"] {
        let text = std::fs::read(f.path("wt").join(name)).unwrap();
        std::fs::remove_file(f.path("wt").join(name)).unwrap();
        f.write(&format!("wt/{name}"), text);
    }
    f.walk().assert_clean();
}

#[test]
fn settings_that_weaken_git_do_not_weaken_us() {
    for (key, value) in [
        ("status.showUntrackedFiles", "no"),
        ("core.fileMode", "false"),
        ("core.ignoreCase", "true"),
        ("core.checkStat", "minimal"),
        ("core.trustCtime", "false"),
        ("core.symlinks", "false"),
        ("core.untrackedCache", "true"),
        ("core.worktree", "/nonexistent"),
        ("core.bare", "true"),
    ] {
        let f = Fixture::new(&[("f", "1\n"), ("x", "1\n"), ("Case", "1\n")]);
        std::os::unix::fs::symlink("f", f.path("wt/l")).unwrap();
        f.git(&["add", "l"]);
        f.git(&["commit", "-qm", "link"]);
        f.write("excludes", "*\n");
        f.git(&["config", "core.excludesFile", f.path("excludes").to_str().unwrap()]);
        f.git(&["config", key, value]);
        std::fs::set_permissions(f.path("wt/x"), std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::remove_file(f.path("wt/l")).unwrap();
        f.write("wt/l", "f");
        f.write("wt/case", "");
        let seen = f.walk();
        assert_eq!(paths(&seen.facts.mode_only), ["x"], "{key}");
        assert_eq!(paths(&seen.facts.modified), ["l"], "{key}");
        assert_eq!(paths(&seen.facts.untracked), ["case"], "{key}");
    }
}

#[test]
fn flagged_entries_are_compared_and_may_be_absent() {
    for flag in ["--assume-unchanged", "--skip-worktree"] {
        let f = Fixture::new(FILES);
        f.git(&["update-index", flag, "file.txt", "dir/a", "dir/sub/b"]);
        std::fs::remove_file(f.path("wt/dir/a")).unwrap();
        f.walk().assert_clean();
        f.write("wt/file.txt", "edited\n");
        let seen = f.walk();
        assert_eq!(paths(&seen.facts.hidden), ["file.txt"], "{flag}");
        assert!(seen.facts.modified.is_empty() && seen.facts.deleted.is_empty());
    }
}

#[test]
fn what_sparse_checkout_left_out_is_compared_where_it_is() {
    for sparse_index in ["--sparse-index", "--no-sparse-index"] {
        let f = Fixture::new(&[("in/a", "a\n"), ("out/b", "b\n"), ("out/deep/c", "c\n"), ("top", "t\n")]);
        f.git(&["sparse-checkout", "set", "--cone", sparse_index, "in"]);
        f.walk().assert_clean();
        f.write("wt/out/deep/c", "c\n");
        f.walk().assert_clean();
        f.write("wt/out/b", "other\n");
        f.write("wt/out/new", "n\n");
        let seen = f.walk();
        assert_eq!(paths(&seen.facts.hidden), ["out/b"], "{sparse_index}");
        assert_eq!(paths(&seen.facts.untracked), ["out/new"], "{sparse_index}");
        assert!(seen.facts.deleted.is_empty());
    }
}

#[test]
fn a_split_index_is_joined() {
    for depth in [Depth::Plan, Depth::BeforeRemoval] {
        let mut f = Fixture::new(FILES);
        f.depth = depth;
        f.git(&["update-index", "--split-index"]);
        f.walk().assert_clean();
        f.write("wt/file.txt", "staged\n");
        f.write("wt/added", "added\n");
        f.git(&["rm", "-q", "dir/a"]);
        f.git(&["add", "-A"]);
        let seen = f.walk();
        assert_eq!(paths(&seen.index.staged), ["added", "dir/a", "file.txt"]);
        assert!(seen.all.is_empty(), "{:?}", seen.all);
    }
}

#[test]
fn repositories_inside_are_found_wherever_they_are() {
    let mut f = Fixture::new(FILES);
    f.git(&["init", "-q", "scratch/fork"]);
    f.git(&["init", "-q", "plain"]);
    f.git(&["init", "-q", "--bare", "target/bare"]);
    f.write("wt/scratch/pointer/.git", "gitdir: /nowhere\n");
    std::fs::create_dir(f.path("wt/scratch/linked")).unwrap();
    symlink("/nowhere", f.path("wt/scratch/linked/.git")).unwrap();
    f.git(&["worktree", "add", "-q", "-b", "inner", "target/inner"]);
    let inner = lstat(&LocalPath::new(f.path("wt/target/inner")).unwrap()).unwrap();
    f.known.insert(inner.id);
    let seen = f.walk();
    assert_eq!(
        seen.of(Finding::NestedRepository),
        ["plain", "scratch/fork", "scratch/linked", "scratch/pointer", "target/bare"]
    );
    assert_eq!(seen.facts.nested_checkouts, [LocalPath::new(f.path("wt/target/inner")).unwrap()]);
    assert!(seen.facts.untracked.is_empty());
}

#[test]
fn the_git_file_must_be_one() {
    let f = Fixture::new(FILES);
    std::fs::remove_file(f.path("wt/.git")).unwrap();
    assert_eq!(f.walk().facts.unreadable.len(), 1);
    std::fs::create_dir(f.path("wt/.git")).unwrap();
    let why = &f.walk().facts.unreadable[0].1;
    assert!(why.contains(Kind::Directory.described()), "{why}");
}

#[test]
fn precious_files_count_unless_main_has_them() {
    let f = Fixture::new(FILES);
    f.write("app/.env", "SAME=1\n");
    f.write("wt/.env", "SAME=1\n");
    f.write("app/.env.other", "A=1\n");
    f.write("wt/.env.other", "A=2\n");
    f.write("wt/scratch/dev.sqlite", "data");
    f.write("wt/node_modules/dep/.env", "X=1\n");
    f.write("wt/scratch/node_modules/x.db", "data");
    symlink("/etc/passwd", f.path("wt/.env.link")).unwrap();
    let seen = f.walk();
    assert_eq!(paths(&seen.facts.precious), [".env.other", "scratch/dev.sqlite"]);
    assert!(seen.facts.untracked.is_empty());
}

#[test]
fn hard_links_count_once_and_only_where_they_end() {
    let f = Fixture::new(FILES);
    let block = vec![1; 64 << 10];
    f.write("wt/target/one", &block);
    std::fs::hard_link(f.path("wt/target/one"), f.path("wt/target/two")).unwrap();
    f.write("outside", &block);
    std::fs::hard_link(f.path("outside"), f.path("wt/target/three")).unwrap();
    let size = f.walk().facts.size;
    assert_eq!(size.shared, 64 << 10);
    assert!((64 << 10..128 << 10).contains(&size.ignored), "{size:?}");
    assert!(size.freed >= size.ignored);
}

#[test]
fn the_fingerprint_outlives_a_rename_and_no_write() {
    let f = Fixture::new(FILES);
    f.write("wt/target/x", "x");
    let walked = f.walk().facts.fingerprint.unwrap();
    let print = || fingerprint_of(&f.dir("aside"), &Stop::never()).unwrap();
    std::fs::rename(f.path("wt"), f.path("aside")).unwrap();
    assert_eq!(print(), walked);
    std::fs::set_permissions(f.path("aside/dir/a"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let changed = print();
    assert_ne!(changed, walked);
    std::fs::rename(f.path("aside/target/x"), f.path("aside/dir/x")).unwrap();
    assert_ne!(print(), changed);
}

#[test]
fn the_walk_stops_when_asked_or_when_it_knows_enough() {
    let mut f = Fixture::new(FILES);
    f.write("wt/new", "");
    f.thoroughness = Thoroughness::UntilFirstHold;
    let seen = f.walk();
    assert!(!seen.facts.interrupted && seen.facts.fingerprint.is_none());
    assert_eq!(paths(&seen.facts.untracked), ["new"]);
    f.stop.request();
    let seen = f.walk();
    assert!(seen.facts.interrupted && seen.facts.fingerprint.is_none());
    assert!(fingerprint_of(&f.dir("wt"), &f.stop).is_err());
}

#[test]
fn special_files_hold_nobody_up() {
    let fifo = |path: std::path::PathBuf| nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let f = Fixture::new(FILES);
    for name in ["wt/.gitattributes", "wt/dir/.gitignore", "wt/target", "wt/dir/fifo"] {
        fifo(f.path(name));
    }
    std::os::unix::net::UnixListener::bind(f.path("wt/socket")).unwrap();
    symlink("loop", f.path("app/target")).unwrap();
    f.walk().assert_clean();
    std::fs::remove_file(f.path("wt/file.txt")).unwrap();
    fifo(f.path("wt/file.txt"));
    std::fs::remove_file(f.path("wt/.gitignore")).unwrap();
    symlink("/dev/zero", f.path("wt/.gitignore")).unwrap();
    let seen = f.walk();
    assert_eq!(paths(&seen.facts.modified), [".gitignore", "file.txt"]);
    f.write("wt/dir/sub/.gitignore", vec![b'#'; 5 << 20]);
    assert!(f.walk().facts.unreadable[0].1.contains("more than"));
}

#[test]
fn rules_that_sparse_checkout_left_out_still_hold() {
    let f = Fixture::new(&[("in/a", "a\n"), ("out/.gitignore", "*.tmp\n"), ("out/b", "b\n")]);
    f.git(&["sparse-checkout", "set", "--cone", "in"]);
    f.write("wt/out/x.tmp", "");
    assert_eq!(f.walk().of(Finding::Ignored), ["out/x.tmp"]);
}

#[test]
fn a_directory_in_place_of_a_rule_file_says_nothing() {
    let f = Fixture::new(&[(".gitignore", "*.tmp\n"), (".gitattributes", "* text\n"), ("a", "a\n")]);
    f.git(&["update-index", "--skip-worktree", ".gitignore"]);
    for name in ["wt/.gitignore", "wt/.gitattributes"] {
        std::fs::remove_file(f.path(name)).unwrap();
    }
    f.write("wt/x.tmp", "");
    assert_eq!(f.walk().of(Finding::Ignored), ["x.tmp"], "it is read from the index");
    for name in ["wt/.gitignore", "wt/.gitattributes"] {
        std::fs::create_dir(f.path(name)).unwrap();
    }
    let seen = f.walk();
    assert_eq!(paths(&seen.facts.untracked), ["x.tmp"]);
    assert_eq!(paths(&seen.facts.hidden), [".gitignore"]);
}

#[test]
fn deep_trees_and_long_names_are_walked() {
    let f = Fixture::new(FILES);
    let name = "n".repeat(255);
    let mut dir =
        rustix::fs::open(f.path("wt"), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    for _ in 0..1_000 {
        rustix::fs::mkdirat(&dir, &name, rustix::fs::Mode::RWXU).unwrap();
        dir = rustix::fs::openat(&dir, &name, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    rustix::fs::openat(&dir, "last", flags, rustix::fs::Mode::RUSR).unwrap();
    let seen = f.walk();
    assert!(seen.facts.unreadable.is_empty(), "{:?}", seen.facts.unreadable);
    assert_eq!(seen.facts.size.directories, 1_003);
    assert_eq!(seen.facts.untracked.count, 1);
    assert!(seen.facts.untracked.first[0].ends_with(b"/last"));
    let again = fingerprint_of(&f.dir("wt"), &Stop::never()).unwrap();
    assert_eq!(Some(again), seen.facts.fingerprint);
    // The temporary directory's own removal goes by path, and can't reach so deep.
    remove_chain(&f.path("wt"), &name);
}

fn remove_chain(top: &std::path::Path, name: &str) {
    let mut chain = vec![rustix::fs::open(top, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap()];
    while let Ok(dir) =
        rustix::fs::openat(&chain[0], name, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
    {
        // Lifting the grandchildren up one level keeps the number of handles small.
        let inner = rustix::fs::openat(&dir, name, rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
        if inner.is_err() {
            let _ = rustix::fs::unlinkat(&dir, "last", rustix::fs::AtFlags::empty());
            rustix::fs::unlinkat(&chain[0], name, rustix::fs::AtFlags::REMOVEDIR).unwrap();
            continue;
        }
        rustix::fs::renameat(&dir, name, &chain[0], "lifted").unwrap();
        rustix::fs::unlinkat(&chain[0], name, rustix::fs::AtFlags::REMOVEDIR).unwrap();
        rustix::fs::renameat(&chain[0], "lifted", &chain[0], name).unwrap();
    }
    chain.clear();
}

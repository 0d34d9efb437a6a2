//! One test for each rule of the walk.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::{Fixture, paths};
use crate::survey::walk::Finding;

const FILES: &[(&str, &str)] = &[
    ("file.txt", "base\n"),
    ("dir/a", "a\n"),
    ("dir/sub/b", "b\n"),
    (".gitignore", ".env\nscratch/\ntarget/\n"),
];

#[test]
fn a_fresh_worktree_is_clean() {
    let f = Fixture::new(FILES);
    let seen = f.walk();
    seen.assert_clean();
    assert_eq!(seen.facts.size.files, 5, "four and the .git file");
    assert_eq!(seen.facts.size.directories, 3);
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

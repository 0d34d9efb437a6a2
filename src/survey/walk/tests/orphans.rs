//! Checkouts without a registration.

use std::collections::HashSet;

use super::Fixture;
use crate::config::Precious;
use crate::git::index::Depth;
use crate::git::open::{Unreadable, open_clone};
use crate::stop::Stop;
use crate::survey::orphan::{OrphanMatch, match_orphan};
use crate::survey::walk::{Options, Thoroughness};

/// A worktree two commits ahead of `main`, whose registration is gone.
fn orphan() -> Fixture {
    let f = Fixture::new(&[("file", "1\n"), ("dir/sub/a", "a\n"), (".gitignore", "target/\n*.log\n")]);
    for text in ["2\n", "3\n"] {
        f.write("wt/file", text);
        f.write("wt/dir/new", text);
        f.git(&["add", "-A"]);
        f.git(&["commit", "-qm", text]);
    }
    std::fs::remove_dir_all(f.path("app/.git/worktrees/wt")).unwrap();
    f
}

fn look(f: &Fixture) -> Result<OrphanMatch, Unreadable> {
    let (common, main) = (f.dir("app/.git"), f.dir("app"));
    let precious = Precious::of(Precious::DEFAULT.iter().copied()).unwrap();
    let options = Options {
        depth: Depth::Plan,
        thoroughness: Thoroughness::UntilFirstHold,
        known_checkouts: &HashSet::new(),
        main_worktree: Some(&main),
        precious: &precious,
        stop: &f.stop,
    };
    match_orphan(&f.dir("wt"), &common, &open_clone(&common).unwrap(), &options)
}

fn equal(f: &Fixture) -> (String, String) {
    match look(f).unwrap() {
        OrphanMatch::Equal { commit, reference, .. } => (commit.to_string(), reference.to_string()),
        OrphanMatch::Differs { why, tree } => panic!("{why}: {tree:?}"),
    }
}

fn differs(f: &Fixture) -> String {
    match look(f).unwrap() {
        OrphanMatch::Differs { why, .. } => why,
        equal => panic!("{equal:?}"),
    }
}

#[test]
fn the_commit_is_found_by_its_content() {
    let f = orphan();
    let commit = |name: &str| f.git_in("app", &["rev-parse", name]).trim().to_owned();
    assert_eq!(equal(&f), (commit("wt"), "refs/heads/wt".into()));
    // An older commit, which the branch only reaches; and one that a tag alone names.
    f.git_in("app", &["--work-tree=../wt", "checkout", "-q", "wt~1", "--", "."]);
    assert_eq!(equal(&f), (commit("wt~1"), "refs/heads/wt".into()));
    f.git_in("app", &["tag", "-m", "x", "kept", "wt~1"]);
    f.git_in("app", &["branch", "-q", "-D", "wt"]);
    assert_eq!(equal(&f), (commit("kept^{}"), "refs/tags/kept".into()));
    f.git_in("app", &["tag", "-d", "kept"]);
    differs(&f);
}

#[test]
fn stat_data_do_not_matter_and_ignored_files_stay_out() {
    let f = orphan();
    f.write("wt/target/out", "big");
    f.write("wt/x.log", "");
    let text = std::fs::read(f.path("wt/file")).unwrap();
    std::fs::remove_file(f.path("wt/file")).unwrap();
    f.write("wt/file", text);
    let OrphanMatch::Equal { tree, .. } = look(&f).unwrap() else { panic!() };
    assert!(tree.fingerprint.is_some() && tree.size.ignored > 0);
}

#[test]
fn one_file_more_or_less_or_other_differs() {
    use std::os::unix::fs::PermissionsExt;
    type Change = fn(&Fixture);
    let changes: [(&str, Change); 9] = [
        ("more", |f| f.write("wt/more", "")),
        ("less", |f| std::fs::remove_file(f.path("wt/dir/sub/a")).unwrap()),
        ("other", |f| f.write("wt/dir/sub/a", "b\n")),
        ("mode", |f| {
            let mode = std::fs::Permissions::from_mode(0o755);
            std::fs::set_permissions(f.path("wt/file"), mode).unwrap();
        }),
        ("type", |f| {
            std::fs::remove_file(f.path("wt/file")).unwrap();
            std::os::unix::fs::symlink("dir", f.path("wt/file")).unwrap();
        }),
        ("other rules", |f| f.write("wt/.gitignore", "target/\n")),
        ("rules of its own", |f| {
            f.write("wt/dir/.gitignore", "*\n");
            f.write("wt/dir/hidden", "");
        }),
        ("the clone's rules", |f| {
            f.write("app/.git/info/exclude", "hidden\n");
            f.write("wt/hidden", "");
        }),
        ("a branch", |f| {
            f.git_in("app", &["update-ref", "refs/kept/wt", "wt"]);
            f.git_in("app", &["branch", "-q", "-D", "wt"]);
        }),
    ];
    for (what, change) in changes {
        let f = orphan();
        change(&f);
        assert!(!differs(&f).is_empty(), "{what}");
    }
}

#[test]
fn what_is_inside_is_told_with_it() {
    let f = orphan();
    f.git_in("app", &["init", "-q", "../wt/target/repo"]);
    f.write("wt/target/.env", "ignored, in a disposable directory\n");
    f.write("wt/secret.log", "");
    let tree = look(&f).unwrap();
    assert!(matches!(tree, OrphanMatch::Equal { .. }));
    assert_eq!(tree.tree().nested_repositories.count, 1);
    assert!(tree.tree().precious.is_empty());
}

#[test]
fn line_ends_are_converted_as_in_a_checkout() {
    let f = Fixture::new(&[(".gitattributes", "*.txt text eol=crlf\n*.bin filter=lfs\n"), ("a.txt", "x\n")]);
    std::fs::remove_dir_all(f.path("app/.git/worktrees/wt")).unwrap();
    assert_eq!(std::fs::read(f.path("wt/a.txt")).unwrap(), b"x\r\n");
    assert_eq!(equal(&f).1, "refs/heads/main");
    f.write("wt/a.txt", "y\r\n");
    differs(&f);
}

#[test]
fn a_missing_blob_leaves_the_only_copy_here() {
    let f = orphan();
    let blob = f.git_in("app", &["rev-parse", "wt:dir/sub/a"]);
    let (fan, rest) = blob.trim().split_at(2);
    std::fs::remove_file(f.path("app/.git/objects").join(fan).join(rest)).unwrap();
    assert!(look(&f).unwrap_err().0.contains(blob.trim()));
}

#[test]
fn it_stops_when_asked() {
    let mut f = orphan();
    f.stop = Stop::never();
    f.stop.request();
    assert!(look(&f).is_err());
}

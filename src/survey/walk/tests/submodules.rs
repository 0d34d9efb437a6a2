//! Submodules: checked out, absent, changed, with commits of their own, and what is no submodule.

use super::{Fixture, paths};
use crate::git::index::Depth;
use crate::git::submodule::modules_facts;
use crate::judge::tree_facts::SubmoduleState;
use crate::stop::Stop;

/// A worktree with the submodule `lib` (called `the/lib`), checked out in it.
fn with_submodule() -> Fixture {
    let f = Fixture::new(&[("file", "1\n"), (".gitignore", "*.log\n")]);
    std::fs::create_dir(f.path("sub")).unwrap();
    f.git_in("sub", &["init", "-q", "-b", "main"]);
    f.write("sub/s", "s\n");
    f.write("sub/.gitignore", "*.tmp\n");
    f.git_in("sub", &["add", "-A"]);
    f.git_in("sub", &["commit", "-qm", "sub"]);
    let url = f.path("sub");
    f.git(&["submodule", "add", "-q", "--name", "the/lib", url.to_str().unwrap(), "lib"]);
    f.git(&["commit", "-qm", "add"]);
    f
}

fn state(f: &Fixture) -> SubmoduleState {
    let seen = f.walk();
    assert!(seen.facts.unreadable.is_empty() && seen.facts.nested_repositories.is_empty());
    let [lib] = seen.facts.submodules.as_slice() else { panic!("{:?}", seen.facts.submodules) };
    assert_eq!(lib.path, "lib");
    lib.state.clone()
}

fn modules(f: &Fixture) -> Vec<(String, SubmoduleState)> {
    let facts = modules_facts(&f.dir("app/.git/worktrees/wt"), Depth::Plan, &Stop::never());
    facts.into_iter().map(|s| (s.path.to_string(), s.state)).collect()
}

#[test]
fn a_clean_one_is_clean_under_any_recorded_path() {
    let f = with_submodule();
    let recorded = std::fs::read_to_string(f.path("wt/lib/.git")).unwrap();
    f.write("wt/lib/scratch.tmp", "ignored there\n");
    for text in [
        recorded.clone(),
        "gitdir: /workspaces/app/.git/worktrees/wt/modules/the/lib\n".into(),
        "gitdir: /modules/x/.git/worktrees/wt/modules/the/lib\n".into(),
        "gitdir: ../../.git/modules/the/lib\r\n".into(),
    ] {
        f.write("wt/lib/.git", &text);
        assert_eq!(state(&f), SubmoduleState::Clean, "{text}");
    }
    for text in ["gitdir: /elsewhere/.git\n", "gitdir: /x/worktrees/wt/modules/../../y\n", "", "gitdir: \n"] {
        f.write("wt/lib/.git", text);
        assert!(matches!(state(&f), SubmoduleState::Unreadable(_)), "{text:?}");
    }
    assert_eq!(modules(&f), [("the/lib".into(), SubmoduleState::Clean)]);
}

#[test]
fn changes_in_it_are_found() {
    type Change = fn(&Fixture);
    let changes: [(&str, Change); 7] = [
        ("modified", |f| f.write("wt/lib/s", "changed\n")),
        ("deleted", |f| std::fs::remove_file(f.path("wt/lib/s")).unwrap()),
        ("untracked", |f| f.write("wt/lib/x.log", "")),
        ("flagged", |f| {
            f.git_in("wt/lib", &["update-index", "--assume-unchanged", "s"]);
            f.write("wt/lib/s", "changed\n");
        }),
        ("staged", |f| {
            f.write("wt/lib/s", "changed\n");
            f.git_in("wt/lib", &["add", "s"]);
        }),
        ("operation", |f| f.write("app/.git/worktrees/wt/modules/the/lib/MERGE_HEAD", "")),
        ("checked out", |f| {
            f.write("sub/s", "newer\n");
            f.git_in("sub", &["commit", "-qam", "newer"]);
            f.git_in("wt/lib", &["fetch", "-q"]);
            f.git_in("wt/lib", &["checkout", "-q", "origin/main"]);
        }),
    ];
    for (what, change) in changes {
        let f = with_submodule();
        change(&f);
        let SubmoduleState::Changed(why) = state(&f) else { panic!("{what}: {:?}", state(&f)) };
        assert!(why.contains(what), "{what}: {why}");
    }
}

#[test]
fn commits_that_no_remote_has_are_found_without_a_checkout_too() {
    type Change = fn(&Fixture);
    let changes: [(&str, Change); 8] = [
        ("its reflog", |f| {
            f.git_in("wt/lib", &["checkout", "-q", "--detach"]);
            f.git_in("wt/lib", &["commit", "-q", "--allow-empty", "-m", "own"]);
            // What `git submodule update` does, too.
            f.git_in("wt/lib", &["checkout", "-q", "origin/main"]);
        }),
        ("its reflog", |f| {
            f.git_in("wt/lib", &["switch", "-q", "-c", "wip"]);
            f.git_in("wt/lib", &["commit", "-q", "--allow-empty", "-m", "own"]);
            f.git_in("wt/lib", &["reset", "-q", "--hard", "origin/main"]);
            std::fs::remove_file(f.path("app/.git/worktrees/wt/modules/the/lib/logs/HEAD")).unwrap();
        }),
        ("refs/heads/wip", |f| {
            f.git_in("wt/lib", &["switch", "-q", "-c", "wip"]);
            f.git_in("wt/lib", &["commit", "-q", "--allow-empty", "-m", "own"]);
            f.git_in("wt/lib", &["switch", "-q", "main"]);
        }),
        ("refs/stash", |f| {
            f.write("wt/lib/s", "stashed\n");
            f.git_in("wt/lib", &["stash", "-q"]);
        }),
        ("refs/tags/t", |f| {
            f.git_in("wt/lib", &["checkout", "-q", "--detach"]);
            f.git_in("wt/lib", &["commit", "-q", "--allow-empty", "-m", "own"]);
            f.git_in("wt/lib", &["tag", "-m", "x", "t"]);
            f.git_in("wt/lib", &["switch", "-q", "main"]);
        }),
        ("HEAD", |f| {
            f.git_in("wt/lib", &["checkout", "-q", "--detach"]);
            f.git_in("wt/lib", &["commit", "-q", "--allow-empty", "-m", "own"]);
        }),
        ("HEAD", |f| {
            f.git_in("wt/lib", &["remote", "remove", "origin"]);
        }),
        ("worktree of its own", |f| {
            f.git_in("wt/lib", &["worktree", "add", "-q", "--detach", "../../of-lib"]);
        }),
    ];
    for (what, change) in changes {
        let f = with_submodule();
        change(&f);
        for _ in 0..2 {
            let [(name, SubmoduleState::Unpushed(why))] = &modules(&f)[..] else {
                panic!("{what}: {:?}", modules(&f))
            };
            assert!(name == "the/lib" && why.contains(what), "{what}: {why}");
            if f.path("wt/lib/.git").exists() {
                assert!(matches!(state(&f), SubmoduleState::Unpushed(_)), "{what}");
                std::fs::remove_dir_all(f.path("wt/lib")).unwrap();
            }
        }
    }
}

#[test]
fn what_others_took_back_and_what_is_gone_already_is_no_loss() {
    let f = with_submodule();
    f.git_in("sub", &["commit", "-q", "--allow-empty", "-m", "theirs"]);
    f.git_in("wt/lib", &["fetch", "-q"]);
    f.git_in("sub", &["reset", "-q", "--hard", "HEAD~1"]);
    f.git_in("wt/lib", &["fetch", "-q"]);
    let log = f.path("app/.git/worktrees/wt/modules/the/lib/logs/HEAD");
    let text = std::fs::read_to_string(&log).unwrap();
    let gone = format!("{0} {0} t <t@example.invalid> 1 +0000\tcommit: gone\n", "1".repeat(40));
    std::fs::write(&log, text + &gone).unwrap();
    assert_eq!(modules(&f), [("the/lib".into(), SubmoduleState::Clean)]);
    std::fs::write(&log, "junk\n").unwrap();
    assert!(matches!(&modules(&f)[..], [(_, SubmoduleState::Unreadable(_))]));
}

#[test]
fn what_nobody_can_explain_in_modules_is_unreadable() {
    let f = with_submodule();
    f.write("app/.git/worktrees/wt/modules/half/config", "");
    let [(half, SubmoduleState::Unreadable(_)), (_, SubmoduleState::Clean)] = &modules(&f)[..] else {
        panic!("{:?}", modules(&f))
    };
    assert_eq!(half, "half/config");
    let f = with_submodule();
    let refs = f.path("app/.git/worktrees/wt/modules/the/lib/refs/heads/fifo");
    nix::unistd::mkfifo(&refs, nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(matches!(state(&f), SubmoduleState::Unreadable(why) if why.contains("FIFO")));
}

#[test]
fn an_empty_place_is_fine_and_plain_files_in_it_are_nobodys() {
    let f = with_submodule();
    f.git(&["submodule", "deinit", "-q", "-f", "lib"]);
    f.walk().assert_clean();
    f.write("wt/lib/found.log", "ignored elsewhere, but not here\n");
    assert_eq!(paths(&f.walk().facts.untracked), ["lib/found.log"]);
}

#[test]
fn an_ignored_place_hides_nothing() {
    let f = with_submodule();
    f.write("app/.git/info/exclude", "lib\n");
    f.walk().assert_clean();
    f.write("wt/lib/new", "");
    assert!(matches!(state(&f), SubmoduleState::Changed(_)));
    std::fs::remove_dir_all(f.path("wt/lib")).unwrap();
    f.write("wt/lib/new", "");
    assert_eq!(paths(&f.walk().facts.untracked), ["lib/new"]);
}

#[test]
fn a_repository_in_place_and_one_inside_another_are_read() {
    let f = with_submodule();
    let inner = f.path("sub");
    f.git_in("wt/lib", &["submodule", "add", "-q", inner.to_str().unwrap(), "deep"]);
    f.git_in("wt/lib", &["commit", "-qm", "deep"]);
    f.git_in("wt/lib", &["push", "-q", "origin", "HEAD:refs/heads/deep"]);
    f.git(&["commit", "-qam", "deep"]);
    let names: Vec<_> = modules(&f);
    assert_eq!(names[0].0, "the/lib");
    assert_eq!(names[1], ("the/lib/modules/deep".into(), SubmoduleState::Clean));
    let submodules = f.walk().facts.submodules;
    assert_eq!(submodules.iter().map(|s| s.path.to_string()).collect::<Vec<_>>(), ["lib", "lib/deep"]);
    assert_eq!(submodules[1].state, SubmoduleState::Clean);
    // Old ways: the repository is in the checkout itself.
    let f = with_submodule();
    std::fs::remove_file(f.path("wt/lib/.git")).unwrap();
    std::fs::rename(f.path("app/.git/worktrees/wt/modules/the/lib"), f.path("wt/lib/.git")).unwrap();
    assert_eq!(state(&f), SubmoduleState::Clean);
}

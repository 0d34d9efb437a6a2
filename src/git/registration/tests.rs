use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::git::testing::Repo;

#[test]
fn heads_are_branches_or_commits() {
    assert_eq!(parse_head(b"ref: refs/heads/x\n"), Some(Head::Branch("refs/heads/x".into())));
    assert_eq!(parse_head(b"ref:refs/heads/x"), Some(Head::Branch("refs/heads/x".into())));
    let hex = "0123456789abcdef0123456789abcdef01234567";
    assert_eq!(parse_head(hex.as_bytes()), Some(Head::Detached(ObjectId::from_hex(hex.as_bytes()).unwrap())));
    for junk in
        [&b""[..], b"ref: ", b"ref: refs/heads/.invalid\n", b"ref: ../../x", b"ref: HEAD", b"zz", b"\xff\x00"]
    {
        assert_eq!(parse_head(junk), None, "{}", escape(junk));
    }
}

#[test]
fn pointers_name_clone_and_entry() {
    let p = Pointer::parse(b"gitdir: /workspaces/app/.git/worktrees/x\r\n").unwrap();
    let (clone, name) = p.entry.unwrap();
    assert_eq!((clone.as_bstr(), name.as_bstr()), ("/workspaces/app/.git".into(), "x".into()));
    assert!(Pointer::parse(b"gitdir: /a/.git/modules/lib\n").unwrap().entry.is_none());
    assert_eq!(Pointer::parse(b"gitdir:/x"), None);
    assert_eq!(Pointer::parse(b"gitdir: \n"), None);
    let windows = Pointer::parse(b"gitdir: C:\\src\\app\\.git\\worktrees\\x").unwrap();
    assert_eq!(windows.entry.unwrap().1.as_bstr(), "x");
}

/// A clone with the worktrees `good` and `bad`, and the entry of the latter.
fn clone() -> (Repo, PathBuf) {
    let repo = Repo::new();
    repo.commit("one");
    repo.worktree("good");
    repo.worktree("bad");
    let entry = repo.git_dir().join("worktrees/bad");
    (repo, entry)
}

fn read(repo: &Repo, name: &str) -> Registration {
    let all = registrations(&repo.common()).unwrap();
    all.into_iter().find(|r| r.name.as_bstr() == name).unwrap()
}

fn fifo(path: &std::path::Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

#[test]
fn a_broken_entry_names_its_file_and_hides_no_other() {
    type Make<'a> = &'a dyn Fn(&std::path::Path);
    let ways: [(&str, Make<'_>); 7] = [
        ("missing", &|_| {}),
        ("empty", &|path| std::fs::write(path, "").unwrap()),
        ("blank", &|path| std::fs::write(path, " \n\n").unwrap()),
        ("a directory", &|path| std::fs::create_dir(path).unwrap()),
        ("a symlink", &|path| symlink("/etc/hostname", path).unwrap()),
        ("a FIFO", &fifo),
        ("huge", &|path| std::fs::File::create(path).unwrap().set_len(1 << 40).unwrap()),
    ];
    for file in ["gitdir", "HEAD", "commondir"] {
        for (what, make) in &ways {
            let (repo, entry) = clone();
            std::fs::remove_file(entry.join(file)).unwrap();
            make(&entry.join(file));
            let bad = read(&repo, "bad");
            let why = bad.broken().unwrap_or_else(|| panic!("{file} is {what}"));
            assert!(why.0.contains(&format!("worktrees/bad/{file}")), "{why}");
            assert!(read(&repo, "good").broken().is_none());
        }
    }
    for junk in [&b"\xff\xfe\x00"[..], b"ref: refs/heads/a..b\n", b"ref: HEAD\n", b"1234\n"] {
        let (repo, entry) = clone();
        std::fs::write(entry.join("HEAD"), junk).unwrap();
        assert!(read(&repo, "bad").broken().unwrap().0.contains("HEAD"));
    }
    let (repo, entry) = clone();
    std::fs::write(entry.join("gitdir"), b"/a/\0b/.git\n").unwrap();
    assert!(read(&repo, "bad").broken().unwrap().0.contains("NUL"));
}

#[test]
fn what_is_no_directory_is_no_entry_that_could_be_read() {
    let (repo, entry) = clone();
    let worktrees = repo.git_dir().join("worktrees");
    std::fs::write(worktrees.join("file"), "").unwrap();
    symlink(&entry, worktrees.join("link")).unwrap();
    fifo(&worktrees.join("fifo"));
    std::fs::create_dir(worktrees.join("empty")).unwrap();
    for name in ["file", "link", "fifo", "empty"] {
        assert!(read(&repo, name).broken().is_some(), "{name}");
    }
    assert!(read(&repo, "good").broken().is_none() && read(&repo, "bad").broken().is_none());
    // `worktrees` itself: a link would let another clone's entries answer.
    let away = repo.root().join("away");
    std::fs::rename(&worktrees, &away).unwrap();
    assert!(registrations(&repo.common()).unwrap().is_empty());
    symlink(&away, &worktrees).unwrap();
    assert!(registrations(&repo.common()).unwrap_err().0.contains("worktrees"));
    std::fs::remove_file(&worktrees).unwrap();
    std::fs::write(&worktrees, "").unwrap();
    assert!(registrations(&repo.common()).is_err());
}

#[test]
fn an_entry_of_another_clone_is_not_ours() {
    let (repo, entry) = clone();
    let (other, theirs) = clone();
    for (text, ours) in [
        ("../..", true),
        ("../..\n\n", true),
        (repo.git_dir().to_str().unwrap(), true),
        ("../../../.git", true),
        ("../../../../app/.git\n", true),
        (other.git_dir().to_str().unwrap(), false),
        ("..", false),
        ("/workspaces/app/.git", false),
        ("../../../../../../../../../../../..", false),
    ] {
        std::fs::write(entry.join("commondir"), text).unwrap();
        assert_eq!(read(&repo, "bad").broken().is_none(), ours, "{text}");
    }
    assert!(theirs.exists());
}

#[test]
fn recorded_paths_are_bytes_and_end_as_git_reads_them() {
    let (repo, entry) = clone();
    for (bytes, recorded) in [
        (&b"/src/a b/.git\n"[..], &b"/src/a b"[..]),
        (b"/src/x/.git", b"/src/x"),
        (b"/src/x/.git \t\r\n", b"/src/x"),
        (b"/src/new\nline/.git\n", b"/src/new\nline"),
        (b"/src/\xff\xfe/.git\n", b"/src/\xff\xfe"),
        (b"../../../../x/.git\n", b"../../../../x"),
        (b"C:/src/x/.git\n", b"C:/src/x"),
        (b"/src/x\n", b"/src/x"),
    ] {
        std::fs::write(entry.join("gitdir"), bytes).unwrap();
        assert_eq!(read(&repo, "bad").recorded.unwrap().as_bstr(), recorded.as_bstr());
    }
}

#[test]
fn names_of_entries_are_any_that_a_directory_can_have() {
    let repo = Repo::new();
    repo.commit("one");
    for name in [&b"with blank"[..], b"new\nline", b"\xff\xfe", b"-x", b"worktrees", "\u{202e}x".as_bytes()] {
        let path = repo.root().join(std::ffi::OsStr::from_bytes(name));
        let mut add = repo.command(&repo.path(), &["worktree", "add", "-q", "--detach", "--"]);
        assert!(add.arg(&path).status().unwrap().success());
        let all = registrations(&repo.common()).unwrap();
        let found = all.iter().filter(|r| {
            r.broken().is_none() && r.recorded.as_ref().unwrap().as_bstr() == path.as_os_str().as_bytes()
        });
        assert_eq!(found.count(), 1, "{}", escape(name));
    }
}

#[test]
fn locks_have_a_reason_and_an_age() {
    let (repo, _) = clone();
    assert_eq!(read(&repo, "bad").lock, Ok(None));
    let path = repo.root().join("bad");
    repo.git(&["worktree", "lock", path.to_str().unwrap()]);
    let lock = |repo: &Repo| read(repo, "bad").lock.unwrap().unwrap();
    assert_eq!(lock(&repo).reason, "");
    assert!(lock(&repo).since.seconds > 1_000_000_000);
    repo.git(&["worktree", "unlock", path.to_str().unwrap()]);
    repo.git(&["worktree", "lock", "--reason", "two\nlines ", path.to_str().unwrap()]);
    assert_eq!(lock(&repo).reason, "two\nlines");
    let file = repo.git_dir().join("worktrees/bad/locked");
    std::fs::remove_file(&file).unwrap();
    fifo(&file);
    assert!(read(&repo, "bad").broken().unwrap().0.contains("locked"));
}

#[test]
fn an_entry_is_young_as_long_as_git_wrote_something_in_it() {
    let (repo, entry) = clone();
    let dated = |name: &str, seconds: i64| {
        let times = nix::sys::time::TimeSpec::new(seconds, 0);
        let path = entry.join(name);
        nix::sys::stat::utimensat(
            nix::fcntl::AT_FDCWD,
            &path,
            &times,
            &times,
            nix::sys::stat::UtimensatFlags::NoFollowSymlink,
        )
        .unwrap();
    };
    for name in ["HEAD", "index", "logs/HEAD", "commondir"] {
        dated(name, 1000);
    }
    let seconds = |stamp: Option<Stamp>| stamp.unwrap().seconds;
    assert_eq!((seconds(read(&repo, "bad").touched), seconds(read(&repo, "bad").made)), (1000, 1000));
    for (at, name) in ["HEAD", "index", "logs/HEAD"].into_iter().enumerate() {
        dated(name, 2000 + at as i64);
        assert_eq!(seconds(read(&repo, "bad").touched), 2000 + at as i64, "{name}");
    }
}

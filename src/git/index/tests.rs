//! Indexes that git wrote, and some that it would never write.

use std::path::PathBuf;
use std::process::Command;

use gix::index::State;
use gix::index::entry::{Flags, Mode, Stage, Stat};

use super::*;
use crate::git::open::open_clone;
use crate::vantage::paths::LocalPath;

struct Clone {
    tmp: tempfile::TempDir,
}

impl Clone {
    fn new(format: &str) -> Self {
        let clone = Self { tmp: tempfile::tempdir().unwrap() };
        clone.git(&["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        for (path, text) in
            [("a", "a\n"), ("a-b", "ab\n"), ("dir/x", "x\n"), ("dir/deep/y", "y\n"), ("z", "z\n")]
        {
            std::fs::create_dir_all(clone.path(path).parent().unwrap()).unwrap();
            std::fs::write(clone.path(path), text).unwrap();
        }
        clone.git(&["add", "-A"]);
        clone.git(&["commit", "-qm", "one"]);
        clone
    }

    fn path(&self, name: &str) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join(name)
    }

    fn git(&self, args: &[&str]) {
        assert!(self.run(args), "git {args:?}");
    }

    fn run(&self, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.current_dir(self.path("")).args(["-c", "user.name=a", "-c", "user.email=a@b.invalid"]).args(args);
        git.env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap()
            .status
            .success()
    }

    fn facts(&self, depth: Depth) -> Result<(IndexFacts, Index), Unreadable> {
        let dir = Dir::open(&LocalPath::new(self.path(".git")).unwrap()).unwrap();
        let repo = open_clone(&dir)?;
        let head = repo.head_tree_id().ok().map(|id| id.detach());
        index_facts(&dir, &repo, head, depth)
    }

    /// Writes an index with these entries, all with the blob of `a`.
    fn write_index(&self, entries: &[(&str, Mode, Flags)]) {
        let dir = Dir::open(&LocalPath::new(self.path(".git")).unwrap()).unwrap();
        let repo = open_clone(&dir).unwrap();
        let (_, list) = index_facts(&dir, &repo, None, Depth::Plan).unwrap();
        let id = list.entries()[0].id;
        let mut state = State::new(repo.object_hash());
        for (path, mode, flags) in entries {
            state.dangerously_push_entry(Stat::default(), id, *flags, *mode, BStr::new(path));
        }
        let mut bytes = Vec::new();
        state.write_to(&mut bytes, Default::default()).unwrap();
        bytes.extend_from_slice(&vec![0; repo.object_hash().len_in_bytes()]);
        std::fs::write(self.path(".git/index"), bytes).unwrap();
    }
}

fn staged(clone: &Clone) -> Vec<String> {
    let both = [Depth::Plan, Depth::BeforeRemoval].map(|depth| clone.facts(depth).unwrap().0);
    assert_eq!(both[0], both[1]);
    both[0].staged.first.iter().map(|p| p.to_string()).collect()
}

#[test]
fn what_is_staged_is_found() {
    for format in ["sha1", "sha256"] {
        let clone = Clone::new(format);
        assert_eq!(staged(&clone), Vec::<String>::new());
        std::fs::write(clone.path("dir/deep/y"), "changed\n").unwrap();
        std::fs::write(clone.path("dir.new"), "new\n").unwrap();
        clone.git(&["add", "-A"]);
        clone.git(&["rm", "-q", "--cached", "a"]);
        clone.git(&["update-index", "--chmod=+x", "z"]);
        assert_eq!(staged(&clone), ["a", "dir.new", "dir/deep/y", "z"]);
    }
}

#[test]
fn a_directory_in_place_of_a_file_is_two_changes() {
    let clone = Clone::new("sha1");
    std::fs::remove_file(clone.path("a")).unwrap();
    std::fs::create_dir(clone.path("a")).unwrap();
    std::fs::write(clone.path("a/b"), "b\n").unwrap();
    std::fs::remove_dir_all(clone.path("dir")).unwrap();
    clone.git(&["add", "-A"]);
    assert_eq!(staged(&clone), ["a", "a/b", "dir/deep/y", "dir/x"]);
}

#[test]
fn intents_and_conflicts_are_told_apart() {
    let clone = Clone::new("sha1");
    clone.git(&["checkout", "-q", "-b", "side"]);
    std::fs::write(clone.path("z"), "side\n").unwrap();
    clone.git(&["commit", "-qm", "side", "--", "z"]);
    clone.git(&["checkout", "-q", "main"]);
    std::fs::write(clone.path("z"), "main\n").unwrap();
    clone.git(&["commit", "-qm", "main", "--", "z"]);
    assert!(!clone.run(&["merge", "-q", "side"]));
    std::fs::write(clone.path("intent"), "").unwrap();
    clone.git(&["add", "-N", "intent"]);
    let facts = clone.facts(Depth::Plan).unwrap().0;
    assert_eq!(facts.conflicted.first, ["z"]);
    assert_eq!(facts.intent_to_add.first, ["intent"]);
    assert!(facts.staged.is_empty());
}

#[test]
fn nothing_is_staged_without_an_index_and_all_of_it_before_the_first_commit() {
    let clone = Clone::new("sha1");
    let head = clone.path(".git/HEAD");
    std::fs::write(&head, "ref: refs/heads/unborn\n").unwrap();
    assert_eq!(clone.facts(Depth::Plan).unwrap().0.staged.count, 5);
    std::fs::remove_file(clone.path(".git/index")).unwrap();
    let (facts, index) = clone.facts(Depth::Plan).unwrap();
    assert!(facts.missing && facts.staged.is_empty() && index.entries().is_empty());
}

#[test]
fn a_forged_cache_counts_in_the_plan_only() {
    // A valid cached tree over an entry that is not in it, as no git writes it.
    let clone = Clone::new("sha1");
    let bytes = std::fs::read(clone.path(".git/index")).unwrap();
    let a = bytes.find(b"a\0").unwrap();
    let mut forged = bytes.clone();
    forged[a] = b'A';
    std::fs::write(clone.path(".git/index"), &forged).unwrap();
    assert!(clone.facts(Depth::Plan).unwrap().0.staged.is_empty());
    let why = clone.facts(Depth::BeforeRemoval).unwrap_err();
    assert!(why.0.contains("checksum"), "{why}");
    let trailer = forged.len() - 20;
    forged[trailer..].fill(0);
    std::fs::write(clone.path(".git/index"), &forged).unwrap();
    assert_eq!(clone.facts(Depth::BeforeRemoval).unwrap().0.staged.first, ["A", "a"]);
}

#[test]
fn what_git_does_not_write_is_unreadable() {
    let (file, none) = (Mode::FILE, Flags::empty());
    for entries in [
        &[("../x", file, none)][..],
        &[("/x", file, none)],
        &[("a//b", file, none)],
        &[("a/./b", file, none)],
        &[("dir/.git/config", file, none)],
        &[(".git", file, none)],
        &[("dir/", file, none)],
        &[("a\0b", file, none)],
        &[("b", file, none), ("a", file, none)],
        &[("a", file, none), ("a", file, none)],
        &[("dir/", Mode::DIR, none)],
        &[("dir", Mode::DIR, Flags::SKIP_WORKTREE)],
        &[("dir/", Mode::DIR, Flags::SKIP_WORKTREE), ("dir/x", file, none)],
    ] {
        let clone = Clone::new("sha1");
        clone.write_index(entries);
        assert!(clone.facts(Depth::BeforeRemoval).is_err(), "{entries:?}");
    }
    let clone = Clone::new("sha1");
    clone.write_index(&[("a", file, Flags::from_stage(Stage::Ours))]);
    assert_eq!(clone.facts(Depth::BeforeRemoval).unwrap().0.conflicted.first, ["a"]);
}

#[test]
fn cut_off_or_absurd_files_are_unreadable() {
    let clone = Clone::new("sha1");
    let bytes = std::fs::read(clone.path(".git/index")).unwrap();
    for length in [0, 1, 11, 12, 40, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(clone.path(".git/index"), &bytes[..length]).unwrap();
        for depth in [Depth::Plan, Depth::BeforeRemoval] {
            assert!(clone.facts(depth).is_err(), "{length}");
        }
    }
    clone.git(&["read-tree", "--empty"]);
    clone.git(&["read-tree", "HEAD"]);
    clone.git(&["update-index", "--split-index"]);
    assert_eq!(staged(&clone), Vec::<String>::new());
    let shared = std::fs::read_dir(clone.path(".git")).unwrap().map(|e| e.unwrap().path());
    let shared = shared.filter(|p| p.to_string_lossy().contains("sharedindex")).collect::<Vec<_>>();
    shared.iter().for_each(|p| std::fs::remove_file(p).unwrap());
    assert!(clone.facts(Depth::Plan).unwrap_err().0.contains("shared index"));
    nix::unistd::mkfifo(&shared[0], nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(clone.facts(Depth::Plan).unwrap_err().0.contains("FIFO"));
}

#[test]
fn groups_are_found_by_doubling_steps() {
    let (file, none) = (Mode::FILE, Flags::empty());
    for count in 0..70 {
        let clone_names: Vec<String> =
            (0..count).map(|n| format!("d/{n:03}")).chain(["e".into(), "f/x".into()]).collect();
        let mut state = State::new(gix::hash::Kind::Sha1);
        for name in &clone_names {
            let id = ObjectId::null(gix::hash::Kind::Sha1);
            state.dangerously_push_entry(Stat::default(), id, none, file, name.as_str().into());
        }
        let index = Index { state, ..Index::empty(gix::hash::Kind::Sha1) };
        let groups = index.children(0..clone_names.len(), 0).unwrap();
        let sizes: Vec<_> = groups.iter().map(|g| (g.name_in(&index).to_string(), g.end - g.at)).collect();
        let mut expected = vec![("d".to_owned(), count), ("e".into(), 1), ("f".into(), 1)];
        expected.retain(|(_, count)| *count > 0);
        assert_eq!(sizes, expected);
    }
}

//! A clone with one linked worktree, and what the walk says of it.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString};

use crate::beneath::Dir;
use crate::config::Precious;
use crate::git::index::{Depth, index_facts};
use crate::git::open::open_entry;
use crate::judge::tree_facts::{IndexFacts, TreeFacts};
use crate::stop::Stop;
use crate::survey::walk::{Checkout, Finding, Observer, Options, RuleFiles, Thoroughness, walk_observed};
use crate::vantage::paths::{FileId, LocalPath};

/// The clone is `app`, its worktree `wt`, named `wt`.
pub(in crate::survey::walk) struct Fixture {
    tmp: tempfile::TempDir,
    pub(in crate::survey::walk) known: HashSet<FileId>,
    pub(in crate::survey::walk) depth: Depth,
    pub(in crate::survey::walk) thoroughness: Thoroughness,
    pub(in crate::survey::walk) stop: Stop,
}

/// Everything that the walk told.
#[derive(Debug)]
pub(in crate::survey::walk) struct Seen {
    pub(in crate::survey::walk) facts: TreeFacts,
    pub(in crate::survey::walk) index: IndexFacts,
    pub(in crate::survey::walk) all: Vec<(Finding, BString)>,
}

#[derive(Default)]
struct All(Mutex<Vec<(Finding, BString)>>);

impl Observer for All {
    fn found(&self, what: Finding, path: &BStr) {
        self.0.lock().unwrap().push((what, path.to_owned()));
    }
}

impl Fixture {
    /// With these files committed on `main`, and a worktree on branch `wt`.
    pub(in crate::survey::walk) fn new(files: &[(&str, &str)]) -> Self {
        Self::with_format(files, "sha1")
    }

    pub(in crate::survey::walk) fn with_format(files: &[(&str, &str)], format: &str) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let fixture = Self {
            tmp,
            known: HashSet::new(),
            depth: Depth::Plan,
            thoroughness: Thoroughness::Everything,
            stop: Stop::never(),
        };
        std::fs::create_dir(fixture.path("app")).unwrap();
        fixture.git_in("app", &["init", "-q", "-b", "main", &format!("--object-format={format}")]);
        for (name, text) in files {
            fixture.write(&format!("app/{name}"), text);
        }
        fixture.git_in("app", &["add", "-A"]);
        fixture.git_in("app", &["commit", "-q", "--allow-empty", "-m", "one"]);
        fixture.git_in("app", &["worktree", "add", "-q", "-b", "wt", "../wt"]);
        fixture
    }

    pub(in crate::survey::walk) fn path(&self, relative: &str) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join(relative)
    }

    pub(in crate::survey::walk) fn dir(&self, relative: &str) -> Dir {
        Dir::open(&LocalPath::new(self.path(relative)).unwrap()).unwrap()
    }

    pub(in crate::survey::walk) fn write(&self, relative: &str, text: impl AsRef<[u8]>) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Runs git in the worktree.
    pub(in crate::survey::walk) fn git(&self, args: &[&str]) -> String {
        self.git_in("wt", args)
    }

    pub(in crate::survey::walk) fn git_in(&self, dir: &str, args: &[&str]) -> String {
        let output = git_command(&self.path(dir)).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(in crate::survey::walk) fn walk(&self) -> Seen {
        let (dir, common) = (self.dir("wt"), self.dir("app/.git"));
        let entry = self.dir("app/.git/worktrees/wt");
        let main = self.dir("app");
        let repo = open_entry(&common, &entry).unwrap();
        let head = repo.head_tree_id().ok().map(|id| id.detach());
        let (index, state) = index_facts(&entry, &repo, head, self.depth).unwrap();
        let checkout = Checkout {
            dir: &dir,
            entry: Some(&entry),
            common: &common,
            repo: &repo,
            index: Arc::new(state),
            rules: RuleFiles::AsGit,
        };
        let precious = Precious::of(Precious::DEFAULT.iter().copied()).unwrap();
        let options = Options {
            depth: self.depth,
            thoroughness: self.thoroughness,
            known_checkouts: &self.known,
            main_worktree: Some(&main),
            precious: &precious,
            stop: &self.stop,
        };
        let all = All::default();
        let facts = walk_observed(&checkout, &options, &all);
        let mut all = all.0.into_inner().unwrap();
        all.sort();
        Seen { facts, index, all }
    }
}

impl Seen {
    pub(in crate::survey::walk) fn of(&self, what: Finding) -> Vec<String> {
        self.all.iter().filter(|(w, _)| *w == what).map(|(_, p)| p.to_string()).collect()
    }

    /// Nothing that would keep it, and a fingerprint.
    pub(in crate::survey::walk) fn assert_clean(&self) {
        let found: Vec<_> = self.all.iter().filter(|(what, _)| *what != Finding::Ignored).collect();
        assert!(found.is_empty(), "{found:?}");
        assert!(self.facts.unreadable.is_empty() && self.facts.undeletable.is_none(), "{:?}", self.facts);
        assert!(self.index.staged.is_empty() && self.index.conflicted.is_empty(), "{:?}", self.index);
        assert!(self.facts.fingerprint.is_some());
    }
}

/// Git with nobody's configuration.
pub(in crate::survey::walk) fn git_command(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env_clear();
    git.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    git.env("GIT_CEILING_DIRECTORIES", std::env::temp_dir());
    for (key, value) in [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b.invalid"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@b.invalid"),
        ("GIT_ALLOW_PROTOCOL", "file"),
    ] {
        git.env(key, value);
    }
    git
}

/// Paths as text, for comparing.
pub(in crate::survey::walk) fn paths(sample: &crate::judge::tree_facts::Sample) -> Vec<String> {
    sample.first.iter().map(|p| p.to_string()).collect()
}

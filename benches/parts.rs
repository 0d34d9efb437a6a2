//! The parts of a plan that a change is most likely to slow down. `cargo bench`; `scripts/bench` times the whole.

// Samples are made with git and the file system.
#![allow(clippy::disallowed_methods)]

use std::collections::HashSet;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;
use treesweep::beneath::Dir;
use treesweep::config::{Settings, Sources, resolve};
use treesweep::git::index::{Depth, Index, index_facts};
use treesweep::git::open::{open_clone, open_entry};
use treesweep::stop::Stop;
use treesweep::survey::discover::{Root, Scope, discover};
use treesweep::survey::terrain::Terrain;
use treesweep::survey::walk::{Checkout, Options, RuleFiles, Thoroughness, walk};
use treesweep::vantage::paths::LocalPath;
use treesweep::vantage::translate::Translator;

/// What a container calls the clone.
const INSIDE: &str = "/workspaces/app";
/// Files of a worktree.
const FILES: usize = 2000;

fn local(path: &Path) -> LocalPath {
    LocalPath::new(path.canonicalize().expect("it is there")).expect("a path")
}

fn git(dir: &Path, arguments: &[&str]) {
    let who = ["-c", "user.name=dev", "-c", "user.email=dev@example.invalid"];
    let done = Command::new("git").arg("-C").arg(dir).args(who).args(arguments).output().expect("git starts");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn fill(dir: &Path) {
    for number in 0..FILES {
        let group = number / 20;
        let below = dir.join(format!("pkg{}/part{group}", group % 7));
        fs::create_dir_all(&below).expect("a directory");
        fs::write(below.join(format!("file{number}.txt")), format!("{number}\n")).expect("a file");
    }
    fs::write(dir.join(".gitignore"), "*.log\nbuild/\n").expect("a file");
}

/// A clone with one linked worktree of many files.
struct Sample {
    _held: TempDir,
    clone: PathBuf,
}

impl Sample {
    fn new() -> Self {
        let held = tempfile::tempdir().expect("a directory");
        let clone = held.path().join("app");
        fs::create_dir(&clone).expect("a directory");
        git(&clone, &["init", "-q", "-b", "main"]);
        fill(&clone);
        git(&clone, &["add", "-A"]);
        git(&clone, &["commit", "-q", "-m", "begin"]);
        git(&clone, &["worktree", "add", "-q", "-b", "wt/one", "../one"]);
        // Older than the index, so that stat data can be believed.
        let old = ["-exec", "touch", "-h", "-d", "2026-01-05", "{}", "+"];
        let touched =
            Command::new("find").arg(held.path().join("one")).args(old).status().expect("find starts");
        assert!(touched.success());
        git(&held.path().join("one"), &["update-index", "-q", "--really-refresh"]);
        Self { _held: held, clone }
    }

    fn common(&self) -> Dir {
        Dir::open(&local(&self.clone.join(".git"))).expect("the clone")
    }

    fn entry(&self) -> Dir {
        Dir::open(&local(&self.clone.join(".git/worktrees/one"))).expect("the entry")
    }

    fn checkout(&self) -> Dir {
        Dir::open(&local(&self.clone.join("../one"))).expect("the checkout")
    }
}

fn the_walk(criterion: &mut Criterion) {
    let sample = Sample::new();
    let (common, entry, dir) = (sample.common(), sample.entry(), sample.checkout());
    let repo = open_entry(&common, &entry).expect("it opens");
    let (_, index) = index_facts(&entry, &repo, None, Depth::Plan).expect("an index");
    let checkout = Checkout {
        dir: &dir,
        entry: Some(&entry),
        common: &common,
        repo: &repo,
        index: Arc::new(index),
        rules: RuleFiles::AsGit,
    };
    let settings: Settings = resolve(Sources::default()).expect("defaults").settings;
    let (known, stop) = (HashSet::new(), Stop::never());
    let options = Options {
        depth: Depth::Plan,
        thoroughness: Thoroughness::UntilFirstHold,
        known_checkouts: &known,
        main_worktree: None,
        precious: &settings.precious,
        stop: &stop,
    };
    assert!(walk(&checkout, &options).fingerprint.is_some(), "nothing may be in the way of the walk");
    let mut group = criterion.benchmark_group("walk");
    group.throughput(Throughput::Elements(FILES as u64));
    group.bench_function("clean", |b| b.iter(|| black_box(walk(&checkout, &options))));
    group.finish();
}

fn the_index(criterion: &mut Criterion) {
    let sample = Sample::new();
    let (common, entry) = (sample.common(), sample.entry());
    let repo = open_clone(&common).expect("it opens");
    let tree = repo.find_reference("refs/heads/wt/one").expect("a branch").into_fully_peeled_id();
    let tree = tree.expect("a commit").object().expect("it").peel_to_tree().expect("a tree").id;
    let mut group = criterion.benchmark_group("index");
    group.throughput(Throughput::Elements(FILES as u64));
    for (name, depth) in [("by its cached tree", Depth::Plan), ("compared whole", Depth::BeforeRemoval)] {
        let read = || -> Index {
            let (facts, index) = index_facts(&entry, &repo, Some(tree), depth).expect("an index");
            assert!(facts.staged.is_empty());
            index
        };
        group.bench_function(name, |b| b.iter(|| black_box(read())));
    }
    group.finish();
}

/// A clone with `count` worktrees of a container, as their links are.
fn registered(count: usize) -> TempDir {
    let held = tempfile::tempdir().expect("a directory");
    let clone = held.path().join("app");
    fs::create_dir(&clone).expect("a directory");
    git(&clone, &["init", "-q", "-b", "main"]);
    for number in 0..count {
        let (entry, checkout) =
            (clone.join(format!(".git/worktrees/w{number}")), clone.join(format!(".worktrees/w{number}")));
        fs::create_dir_all(&entry).expect("a directory");
        fs::create_dir_all(&checkout).expect("a directory");
        let write = |path: PathBuf, text: String| fs::write(path, text).expect("a file");
        write(entry.join("HEAD"), format!("ref: refs/heads/wt/w{number}\n"));
        write(entry.join("commondir"), "../..\n".into());
        write(entry.join("gitdir"), format!("{INSIDE}/.worktrees/w{number}/.git\n"));
        write(checkout.join(".git"), format!("gitdir: {INSIDE}/.git/worktrees/w{number}\n"));
    }
    held
}

fn the_join(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("join");
    for count in [100, 1000] {
        let held = registered(count);
        let root = Root { path: local(held.path()), scope: Scope::All, depth: None };
        let look = || {
            let field = discover(std::slice::from_ref(&root), &Stop::never());
            Terrain::survey(vec![root.path.clone()], field, true, |_| vec![Translator::Identity])
        };
        let terrain = look();
        assert_eq!(terrain.joins(&terrain.sides()).joined.len(), count);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::new("read", count), |b| b.iter(|| black_box(look())));
        group.bench_function(BenchmarkId::new("joined", count), |b| {
            b.iter(|| black_box(terrain.joins(&terrain.sides())));
        });
    }
    group.finish();
}

criterion_group! {
    name = parts;
    config = Criterion::default().sample_size(20);
    targets = the_walk, the_index, the_join
}
criterion_main!(parts);

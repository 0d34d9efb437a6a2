//! Worktrees in all kinds of states, and a sweep over them that has to leave no other trace than it says.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use serde_json::Value;

use super::env::{EAGER, TestEnv, utf8};
use super::git::HostClone;
use super::plan::Document;
use super::snapshot::Snapshot;

/// Where a container would have the clone.
pub const CONTAINER: &str = "/workspaces/app";

impl HostClone<'_> {
    /// A worktree in `.worktrees` on a new branch of its name, off what the remote has, without a commit of its own.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.fresh_at(name, &self.path.join(".worktrees").join(name))
    }

    /// The same anywhere; the entry is called as the last part of `path`.
    pub fn fresh_at(&self, branch: &str, path: &Path) -> PathBuf {
        self.git(&["worktree", "add", "-q", "--no-track", "-b", branch, utf8(path), "origin/main"]);
        path.to_owned()
    }

    /// A file of that name, committed in the worktree at `dir`.
    pub fn work(&self, dir: &Path, file: &str) {
        fs::write(dir.join(file), format!("{file}\n")).expect("a file");
        self.env.git(dir, &["add", "-A"]);
        self.env.git(dir, &["commit", "-qm", file]);
    }

    /// A worktree with a commit that has landed, enrolled: what a sweep takes unless something speaks against it.
    pub fn ready(&self, name: &str) -> PathBuf {
        self.ready_at(name, &self.path.join(".worktrees").join(name))
    }

    pub fn ready_at(&self, branch: &str, path: &Path) -> PathBuf {
        let dir = self.fresh_at(branch, path);
        self.work(&dir, &branch.replace('/', "-"));
        self.land(branch);
        self.enrol(&dir);
        dir
    }

    pub fn enrol(&self, dir: &Path) {
        self.env.treesweep(&["setup", "--engine", "none"]).args(EAGER).arg(dir).assert().success();
    }

    /// Both links of the worktree at `.worktrees/<name>` as a container at [`CONTAINER`] would have written them.
    pub fn as_container_wrote_it(&self, name: &str) {
        let (dir, entry) = (self.path.join(".worktrees").join(name), self.entry(name));
        fs::write(entry.join("gitdir"), format!("{CONTAINER}/.worktrees/{name}/.git\n")).expect("gitdir");
        let pointer = format!("gitdir: {CONTAINER}/.git/worktrees/{name}\n");
        fs::write(dir.join(".git"), pointer).expect(".git file");
    }
}

/// What one sweep planned and did.
pub struct Swept {
    pub plan: Document,
    pub pruned: Document,
}

/// Plans and prunes everything below `src`, without an engine.
pub fn sweep(env: &TestEnv) -> Swept {
    sweep_with(env, &["--engine", "none"])
}

/// The same with these flags; afterwards nothing is different but what was removed, and that is gone.
pub fn sweep_with(env: &TestEnv, flags: &[&str]) -> Swept {
    sweep_by(env, |verb| {
        let mut command = env.treesweep(verb);
        command.args(EAGER).args(flags).arg(env.src());
        command
    })
}

/// The same with commands of the caller's own.
pub fn sweep_by(env: &TestEnv, command: impl Fn(&[&str]) -> assert_cmd::Command) -> Swept {
    let before = Snapshot::of(&env.src());
    let plan = Document::of(&mut command(&["plan", "--json"]));
    before.assert_same(&Snapshot::of(&env.src()));
    let pruned = Document::of(&mut command(&["prune", "--yes", "--json"]));
    let mut traces = Vec::new();
    for clone in plan.0["clones"].as_array().expect("clones") {
        let common = PathBuf::from(clone["common_dir"].as_str().expect("common_dir"));
        // The lock, and records for people.
        traces.push(common.join("treesweep"));
        for row in clone["worktrees"].as_array().expect("worktrees") {
            traces.extend(traces_of(&common, row, &pruned));
        }
    }
    let src = env.src();
    let below: Vec<&Path> = traces.iter().filter_map(|t| t.strip_prefix(&src).ok()).collect();
    before.without(&below).assert_same(&Snapshot::of(&src).without(&below));
    Swept { plan, pruned }
}

/// What may be gone of the worktree of `row`; and what has to be, is.
fn traces_of(common: &Path, row: &Value, pruned: &Document) -> Vec<PathBuf> {
    let name = bytes_of(row, "name").unwrap_or_default();
    let outcome = pruned.0["outcomes"].as_array().expect("outcomes").iter().find(|o| {
        bytes_of(o, "name").as_deref() == Some(name.as_slice())
            && bytes_of(o, "path") == bytes_of(row, "path")
    });
    let verdict = row["verdict"].as_str().expect("verdict");
    let expected = match verdict {
        "reclaim" => Some("removed"),
        "forget" => Some("forgotten"),
        _ => None,
    };
    let result = outcome.map(|o| o["result"].as_str().expect("result"));
    assert_eq!(result, expected, "{row:#} {outcome:#?}");
    if expected.is_none() {
        return Vec::new();
    }
    let entry = common.join("worktrees").join(path_of(&name));
    let mut gone = vec![entry];
    gone.extend(bytes_of(row, "path").map(|p| path_of(&p)));
    gone.iter().for_each(|path| assert!(path.symlink_metadata().is_err(), "{} is there", path.display()));
    if outcome.is_some_and(|o| o["branch"] == "deleted") {
        let branch = path_of(&bytes_of(row, "branch").expect("a branch"));
        gone.push(common.join("refs/heads").join(&branch));
        gone.push(common.join("logs/refs/heads").join(&branch));
        gone.push(common.join("packed-refs"));
        // Directories of a name with slashes go when they are empty.
        for dir in branch.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()) {
            let (refs, logs) =
                (common.join("refs/heads").join(dir), common.join("logs/refs/heads").join(dir));
            gone.extend([refs, logs].into_iter().filter(|dir| !dir.exists()));
        }
    }
    gone
}

fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// A field that may not be UTF-8, with the bytes beside it then.
fn bytes_of(row: &Value, field: &str) -> Option<Vec<u8>> {
    let encoded = row[&format!("{field}_bytes")].as_str();
    match encoded {
        Some(text) => Some(base64::engine::general_purpose::STANDARD.decode(text).expect("base64")),
        None => row[field].as_str().map(|text| text.as_bytes().to_owned()),
    }
}

impl Swept {
    /// It is kept, and the first reason is this one.
    #[track_caller]
    pub fn kept(&self, name: &str, code: &str) {
        self.plan.assert_verdict(name, "keep");
        let row = self.plan.worktree(name);
        assert_eq!(row["reasons"][0]["code"], code, "{row:#}");
    }

    /// The detail of its first reason says so.
    #[track_caller]
    pub fn says(&self, name: &str, words: &str) {
        let row = self.plan.worktree(name);
        let detail = row["reasons"][0]["detail"].as_str().expect("a detail");
        assert!(detail.contains(words), "{words:?} is not in {row:#}");
    }

    #[track_caller]
    pub fn offered(&self, name: &str, class: &str) {
        self.plan.assert_verdict(name, "offer");
        let row = self.plan.worktree(name);
        assert_eq!(row["class"], class, "{row:#}");
    }

    /// It is gone; `branch` says what became of its branch.
    #[track_caller]
    pub fn reclaimed(&self, name: &str, branch: &str) {
        self.plan.assert_verdict(name, "reclaim");
        self.pruned.assert_removed(name, branch);
    }

    #[track_caller]
    pub fn forgotten(&self, name: &str, branch: &str) {
        self.plan.assert_verdict(name, "forget");
        let outcome = self.pruned.outcome(name);
        assert_eq!(
            (&outcome["result"], &outcome["branch"]),
            (&"forgotten".into(), &branch.into()),
            "{outcome:#}"
        );
    }
}

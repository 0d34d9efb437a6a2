//! Reading `plan --json` and `prune --json` in tests.

use std::path::Path;

use serde_json::Value;

use super::env::{EAGER, TestEnv};

/// The document of `plan --json` or `prune --json`.
#[derive(Debug)]
pub struct Document(pub Value);

impl Document {
    /// `treesweep plan --json` of one root, with [`EAGER`].
    pub fn plan(env: &TestEnv, root: &Path) -> Self {
        Self::of(env.treesweep(&["plan", "--json"]).args(EAGER).arg(root))
    }

    /// `treesweep prune --yes --json` of one root, with [`EAGER`].
    pub fn prune(env: &TestEnv, root: &Path) -> Self {
        Self::of(env.treesweep(&["prune", "--yes", "--json"]).args(EAGER).arg(root))
    }

    /// The document that a successful run prints.
    pub fn of(command: &mut assert_cmd::Command) -> Self {
        let run = command.assert().success();
        let stdout = &run.get_output().stdout;
        let text = String::from_utf8_lossy(stdout);
        Self(serde_json::from_slice(stdout).unwrap_or_else(|e| panic!("no JSON document: {e}\n{text}")))
    }

    /// The worktree of that name, in the clone at `clone` if one is given.
    pub fn worktree_of(&self, clone: Option<&Path>, name: &str) -> &Value {
        let clones = self.0["clones"].as_array().expect("clones");
        let wanted = clones
            .iter()
            .filter(|c| clone.is_none_or(|path| c["path"].as_str().map(Path::new) == Some(path)));
        let mut found =
            wanted.flat_map(|c| c["worktrees"].as_array().expect("worktrees")).filter(|w| w["name"] == name);
        let first = found.next().unwrap_or_else(|| panic!("no worktree {name} in {:#}", self.0));
        assert!(found.next().is_none(), "worktree {name} is listed twice in {:#}", self.0);
        first
    }

    pub fn worktree(&self, name: &str) -> &Value {
        self.worktree_of(None, name)
    }

    #[track_caller]
    pub fn assert_verdict(&self, name: &str, verdict: &str) {
        let worktree = self.worktree(name);
        assert_eq!(worktree["verdict"], verdict, "{worktree:#}");
    }

    /// The worktree is kept, and one of these codes is among its reasons.
    #[track_caller]
    pub fn assert_kept(&self, name: &str, codes: &[&str]) {
        let worktree = self.worktree(name);
        assert_eq!(worktree["verdict"], "keep", "{worktree:#}");
        let reasons = worktree["reasons"].as_array().expect("reasons");
        let known = reasons.iter().any(|r| codes.contains(&r["code"].as_str().expect("code")));
        assert!(known, "none of {codes:?} in {worktree:#}");
    }

    fn outcomes(&self) -> &Vec<Value> {
        self.0["outcomes"].as_array().unwrap_or_else(|| panic!("no outcomes in {:#}", self.0))
    }

    pub fn outcome(&self, name: &str) -> &Value {
        let mut found = self.outcomes().iter().filter(|o| o["name"] == name);
        found.next().unwrap_or_else(|| panic!("no outcome of {name} in {:#}", self.0))
    }

    /// The same, where there may be none.
    pub fn outcome_of(&self, name: &str) -> Option<&Value> {
        self.outcomes().iter().find(|o| o["name"] == name)
    }

    /// The worktrees of the clone at `clone`; none if it is not listed.
    pub fn worktrees_of(&self, clone: &Path) -> Vec<&Value> {
        let clones = self.0["clones"].as_array().expect("clones");
        let found = clones.iter().filter(|c| c["path"].as_str().map(Path::new) == Some(clone));
        found.flat_map(|c| c["worktrees"].as_array().expect("worktrees")).collect()
    }

    /// The outcome of what is, or was, at `path`.
    pub fn outcome_at(&self, path: &Path) -> Option<&Value> {
        self.outcomes().iter().find(|o| o["path"].as_str().map(Path::new) == Some(path))
    }

    /// Names in the order in which they were removed.
    pub fn removed(&self) -> Vec<&str> {
        let done = self.outcomes().iter().filter(|o| o["result"] == "removed");
        done.map(|o| o["name"].as_str().expect("name")).collect()
    }

    #[track_caller]
    pub fn assert_nothing_done(&self) {
        let done = self.outcomes().iter().any(|o| o["result"] != "skipped");
        assert!(!done, "{:#}", self.0["outcomes"]);
    }

    #[track_caller]
    pub fn assert_removed(&self, name: &str, branch: &str) {
        let outcome = self.outcome(name);
        assert_eq!(outcome["result"], "removed", "{outcome:#}");
        assert_eq!(outcome["branch"], branch, "{outcome:#}");
    }
}

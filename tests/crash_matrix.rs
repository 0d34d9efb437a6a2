//! The crash matrix: a real `prune` is killed before, or given an error at, every system call with which it changes
//! something; then it runs once more. Nothing may be lost, and the second run has to finish.
//!
//! A run of all tests takes a sample of it. `scripts/test --faults` runs the whole and prints it as a table.

// Stopping at calls is done by registers.
#![cfg(target_arch = "x86_64")]
// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::env::{TestEnv, utf8};
use common::git::HostClone;
use common::snapshot::Snapshot;
use common::tracer::{self, Act, Call, Landlock, Traced};
use nix::libc;
use serde_json::Value;
use walkdir::WalkDir;

/// `all`: the whole matrix, as a table.
const EXTENT: &str = "TREESWEEP_FAULTS";

/// What has to go: a worktree with commits that only its log names, in another one; one with a submodule.
const OWNED: [&str; 3] = ["inner", "outer", "sub"];

const EAGER: [&str; 4] = ["--idle", "0s", "--unstarted-after", "0s"];

const ERRORS: [(&str, i32); 7] = [
    ("EIO", libc::EIO),
    ("EACCES", libc::EACCES),
    ("ENOSPC", libc::ENOSPC),
    ("EDQUOT", libc::EDQUOT),
    ("EMFILE", libc::EMFILE),
    ("EBUSY", libc::EBUSY),
    ("ENOLCK", libc::ENOLCK),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    Error(&'static str, i32),
}

impl Fault {
    fn name(self) -> &'static str {
        match self {
            Fault::Kill => "KILL",
            Fault::Error(name, _) => name,
        }
    }
}

/// Everything below one directory, built once and put back before each run.
struct Scene {
    env: TestEnv,
    before: State,
}

/// What is compared.
#[derive(Clone)]
struct State {
    /// Main worktree, kept worktree, neighbours, and the common directory but for what has to go.
    kept: Snapshot,
    /// References but for those of the branches that have to go.
    refs: BTreeSet<String>,
    /// Every commit that a reference, a HEAD or a log of any worktree reaches.
    reachable: BTreeSet<String>,
    /// The checkouts that have to go, whole.
    owned: Vec<Snapshot>,
}

impl Scene {
    fn build() -> Self {
        let env = TestEnv::in_memory();
        let clone = HostClone::new(&env, "app");
        let app = clone.path.clone();
        let outer = clone.add_landed("outer");
        let inner = outer.join(".worktrees/inner");
        env.git(
            &app,
            &["worktree", "add", "-q", "--no-track", "-b", "wt/inner", utf8(&inner), "origin/main"],
        );
        for name in ["kept.txt", "lost.txt"] {
            fs::create_dir_all(inner.join("dir")).expect("a folder");
            fs::write(inner.join("dir").join(name), name).expect("a file");
            env.git(&inner, &["add", "."]);
            env.git(&inner, &["commit", "-qm", name]);
        }
        env.git(&inner, &["reset", "-q", "--hard", "HEAD~1"]);
        clone.land("wt/inner");
        clone.git(&["pack-refs", "--all"]);
        let sub = clone.add_landed("sub");
        let library = HostClone::new(&env, "library");
        let allow = ["-c", "protocol.file.allow=always"];
        env.git(
            &sub,
            &[&allow[..], &["submodule", "--quiet", "add", utf8(&library.origin), "library"]].concat(),
        );
        env.git(&sub, &["commit", "-qm", "library"]);
        clone.land("wt/sub");
        let dirty = clone.add_landed("dirty");
        fs::write(dirty.join("work"), "not committed").expect("a file");
        for path in [app.join(".worktrees/stray"), env.src().join("beside")] {
            fs::create_dir_all(path.join("deep")).expect("a stray directory");
            fs::write(path.join("deep/file"), "nobody's").expect("a stray file");
        }
        fs::remove_dir_all(&library.path).expect("only its remote is used");
        let setup = ["setup", utf8(&outer), utf8(&inner), utf8(&sub), utf8(&dirty)];
        env.treesweep(&setup).args(EAGER).args(["--engine", "none"]).assert().success();
        for name in ["src", "state"] {
            env.run("cp", &["-a", name, &format!("{name}.template")]);
        }
        let before = State::of(&env);
        Self { env, before }
    }

    fn reset(&self) {
        for name in ["src", "state"] {
            fs::remove_dir_all(self.env.root().join(name)).expect("the last run's");
            self.env.run("cp", &["-a", &format!("{name}.template"), name]);
        }
    }

    fn prune(&self, decide: &mut (dyn FnMut(&Call) -> Act + Send)) -> Traced {
        let mut command = self.env.treesweep_command(&["prune", "--yes", "--json", "--jobs", "1"]);
        command.args(["--engine", "none"]).args(EAGER).arg(self.env.src());
        tracer::run(command, Landlock::On, decide)
    }

    /// One fault and a run without; what is wrong then.
    fn fault(&self, number: usize, fault: Fault) -> Result<(), String> {
        self.reset();
        let first = self.prune(&mut |call| match fault {
            _ if call.number != number => Act::Go,
            Fault::Kill => Act::Kill,
            Fault::Error(_, errno) => Act::Fail(errno),
        });
        if first.calls.len() < number {
            return Err(format!("the call was not reached: {} calls", first.calls.len()));
        }
        match fault {
            Fault::Kill if first.code.is_some() => return Err("it was not killed".into()),
            Fault::Kill => {}
            Fault::Error(..) => named(&first)?,
        }
        lost(&self.before, &State::of(&self.env), &self.env, Some(fault))
            .map_err(|why| format!("LOST: {why}\n{}", told(&[&first])))?;
        let second = self.prune(&mut |_| Act::Go);
        lost(&self.before, &State::of(&self.env), &self.env, Some(fault))
            .map_err(|why| format!("LOST: {why}\n{}", told(&[&first, &second])))?;
        let said = (fault != Fault::Kill).then_some(&first);
        self.converged(&second, said).map_err(|why| format!("{why}\n{}", told(&[&first, &second])))
    }

    /// Nothing is left to do, and nothing left over. `said` may have said of a branch that it stays.
    fn converged(&self, second: &Traced, said: Option<&Traced>) -> Result<(), String> {
        if second.code != Some(0) {
            return Err(format!("the second run ended with {:?}", second.code));
        }
        let app = self.env.src().join("app");
        let common = app.join(".git");
        for name in OWNED {
            if State::checkout(&self.env, name).symlink_metadata().is_ok() {
                return Err(format!("the checkout of {name} is still there"));
            }
            if common.join("worktrees").join(name).symlink_metadata().is_ok() {
                return Err(format!("the registration of {name} is still there"));
            }
            let branch = format!("refs/heads/wt/{name}");
            if !self.env.git(&app, &["for-each-ref", &branch]).is_empty()
                && !said.is_some_and(|run| kept_branch(run, name))
            {
                return Err(format!("{branch} is still there and nobody said why"));
            }
        }
        for found in ["src", "state"].into_iter().flat_map(|name| WalkDir::new(self.env.root().join(name))) {
            let path = found.map_err(|e| e.to_string())?.into_path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let holder = path.parent().and_then(Path::file_name).unwrap_or_default();
            let left = name.contains(".unfinished-")
                || name.ends_with(".lock")
                || name.starts_with(".treesweep-trash-")
                || ["trash", "journal"].iter().any(|h| *h == holder);
            if left {
                return Err(format!("{} is left", path.display()));
            }
        }
        let records: BTreeSet<String> = records(&self.env).into_iter().map(|r| text(&r["id"])).collect();
        let anchors = fs::read_dir(common.join("refs/treesweep/retired")).into_iter().flatten();
        for anchor in anchors {
            let id = anchor.map_err(|e| e.to_string())?.file_name().to_string_lossy().into_owned();
            if !records.contains(&id) {
                return Err(format!("anchors of {id}, which has no record"));
            }
        }
        let fsck = self.env.try_git(&app, &["fsck", "--connectivity-only", "--no-dangling"]);
        if !fsck.status.success() {
            return Err(format!("{fsck:?}"));
        }
        Ok(())
    }
}

impl State {
    fn checkout(env: &TestEnv, name: &str) -> PathBuf {
        let trees = env.src().join("app/.worktrees");
        if name == "inner" { trees.join("outer/.worktrees/inner") } else { trees.join(name) }
    }

    fn of(env: &TestEnv) -> Self {
        let app = env.src().join("app");
        let mut gone: Vec<PathBuf> = ["treesweep", "refs/treesweep", "packed-refs"].map(PathBuf::from).into();
        for name in OWNED {
            gone.push(format!("worktrees/{name}").into());
            // Its folder too: git and treesweep remove what is empty.
            gone.extend(["refs/heads/wt", "logs/refs/heads/wt"].map(|of| Path::new(of).join(name)));
        }
        let mut gone: Vec<PathBuf> = gone.iter().map(|path| Path::new("app/.git").join(path)).collect();
        gone.extend(["outer", "sub"].map(|name| Path::new("app/.worktrees").join(name)));
        let trash = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let lock = |of: &str| path == Path::new("app/.git").join(format!("{of}.lock"));
            let locks = OWNED.map(|name| format!("refs/heads/wt/{name}"));
            name.starts_with(".treesweep-trash-") || lock("packed-refs") || locks.iter().any(|of| lock(of))
        };
        let lines = |text: String| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let mut refs = lines(env.git(&app, &["for-each-ref", "--format=%(refname) %(objectname)"]));
        refs.retain(|line| {
            let ours = OWNED.iter().any(|name| line.starts_with(&format!("refs/heads/wt/{name} ")));
            !ours && !line.starts_with("refs/treesweep/")
        });
        Self {
            kept: Snapshot::of(&env.src()).without(&gone).without_any(trash),
            refs,
            reachable: lines(env.git(&app, &["rev-list", "--all", "--reflog"])),
            owned: OWNED.map(|name| whole(env, name)).into(),
        }
    }
}

/// A checkout of its own, without one that is nested in it.
fn whole(env: &TestEnv, name: &str) -> Snapshot {
    let path = State::checkout(env, name);
    let at = if path.exists() { path } else { env.root().join("cache") };
    let trash = |p: &Path| p.to_string_lossy().contains(".treesweep-trash-");
    Snapshot::of(&at).without(&[".worktrees"]).without_any(trash)
}

/// What holds at any moment, whatever happened.
fn lost(before: &State, now: &State, env: &TestEnv, fault: Option<Fault>) -> Result<(), String> {
    let differs = before.kept.difference(&now.kept);
    if !differs.is_empty() {
        return Err(differs);
    }
    if before.refs != now.refs {
        return Err(format!("references: {:?}", before.refs.symmetric_difference(&now.refs)));
    }
    if let Some(commit) = before.reachable.difference(&now.reachable).next() {
        return Err(format!("{commit} is not reachable any more"));
    }
    for (at, name) in OWNED.iter().enumerate() {
        let intact = before.owned[at] == now.owned[at];
        let written = journals(env).iter().chain(&records(env)).any(|r| r["name"] == *name);
        // On a full disk what needs no anchor goes on without them.
        let full = matches!(fault, Some(Fault::Error("ENOSPC" | "EDQUOT", _))) && *name != "inner";
        if !intact && !written && !full {
            return Err(format!("{name} is not whole, and neither journal nor record knows it"));
        }
    }
    Ok(())
}

/// What is not done is said, with a reason.
fn named(run: &Traced) -> Result<(), String> {
    let Some(code @ (0 | 1 | 3)) = run.code else { return Err(format!("it ended badly:\n{}", told(&[run]))) };
    if run.stderr.contains("panicked") {
        return Err(format!("it panicked:\n{}", told(&[run])));
    }
    let said = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    for name in OWNED {
        let outcome = outcome(run, name);
        let fine = match &outcome {
            Some(outcome) if outcome["result"] == "removed" => {
                outcome["branch"] == "deleted" || said(&outcome["branch_detail"])
            }
            Some(outcome) => said(&outcome["note"]) || outcome["reason"].is_object(),
            None => code != 0 && !run.stderr.is_empty(),
        };
        if !fine {
            return Err(format!("the outcome of {name} is not named:\n{}", told(&[run])));
        }
    }
    Ok(())
}

/// Runs, for a message.
fn told(runs: &[&Traced]) -> String {
    let mut text = String::new();
    for run in runs {
        let document: Value = serde_json::from_str(&run.stdout).unwrap_or_default();
        text += &format!("-- ended with {:?}\n{}{:#}\n", run.code, run.stderr, document["outcomes"]);
        text.extend(run.calls.iter().map(|call| call.shown() + "\n"));
    }
    text
}

fn kept_branch(run: &Traced, name: &str) -> bool {
    outcome(run, name).is_some_and(|o| o["result"] == "removed" && o["branch"] == "kept")
}

fn outcome(run: &Traced, name: &str) -> Option<Value> {
    let document: Value = serde_json::from_str(&run.stdout).ok()?;
    document["outcomes"].as_array()?.iter().rev().find(|o| o["name"] == name).cloned()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn records(env: &TestEnv) -> Vec<Value> {
    state_files(env, "retired")
}

fn journals(env: &TestEnv) -> Vec<Value> {
    state_files(env, "journal").into_iter().map(|journal| journal["record"].clone()).collect()
}

fn state_files(env: &TestEnv, kind: &str) -> Vec<Value> {
    let clones = fs::read_dir(env.root().join("state/treesweep")).expect("the state directory");
    let dirs = clones.map(|e| e.expect("entry").path().join(kind)).filter(|dir| dir.is_dir());
    let files =
        dirs.flat_map(|dir| fs::read_dir(dir).expect("a directory").map(|e| e.expect("entry").path()));
    files.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
}

/// Which calls are met with which faults.
fn plan(calls: &[Call], all: bool) -> Vec<(usize, Fault)> {
    let errors = ERRORS.map(|(name, errno)| Fault::Error(name, errno));
    if all {
        let faults = || [Fault::Kill].into_iter().chain(errors);
        return calls.iter().flat_map(|call| faults().map(|fault| (call.number, fault))).collect();
    }
    let mut kinds: BTreeMap<(&str, bool), Vec<usize>> = BTreeMap::new();
    for call in calls {
        kinds.entry((call.name, call.directory)).or_default().push(call.number);
    }
    let picked: BTreeSet<usize> =
        kinds.values().flat_map(|of| [of[0], of[of.len() / 2], of[of.len() - 1]]).collect();
    let kills = picked.iter().map(|number| (*number, Fault::Kill));
    let failures = picked.iter().zip(errors.into_iter().cycle()).map(|(number, error)| (*number, error));
    kills.chain(failures).collect()
}

#[derive(Clone, Copy, Default)]
struct Count {
    injected: usize,
    converged: usize,
    lost: usize,
}

#[test]
fn any_system_call_may_be_the_last_or_fail() {
    let all = std::env::var(EXTENT).is_ok_and(|v| v == "all");
    let scenes: Vec<Scene> = (0..2).map(|_| Scene::build()).collect();
    scenes[0].reset();
    let reference = scenes[0].prune(&mut |_| Act::Go);
    let scene = &scenes[0];
    lost(&scene.before, &State::of(&scene.env), &scene.env, None).expect("a run without faults");
    scene.converged(&reference, None).unwrap_or_else(|why| panic!("{why}\n{}", told(&[&reference])));
    assert!(reference.calls.len() > 100, "{:#?}", reference.calls);
    let anchored = records(&scene.env).iter().any(|r| r["anchors"].as_array().is_some_and(|a| !a.is_empty()));
    assert!(anchored, "nothing had to be anchored");
    // Other threads make the state directory, and change nothing of a clone.
    let src = scene.env.src();
    assert!(!reference.elsewhere.iter().any(|c| c.path.starts_with(&src)), "{:#?}", reference.elsewhere);

    let faults = plan(&reference.calls, all);
    let (next, table, wrong) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for scene in &scenes {
            let (next, table, wrong, faults, reference) = (&next, &table, &wrong, &faults, &reference);
            scope.spawn(move || {
                while let Some((number, fault)) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let call = &reference.calls[*number - 1];
                    let result = scene.fault(*number, *fault);
                    let mut table = table.lock().expect("the table");
                    let count: &mut Count = table.entry((call.name, fault.name())).or_default();
                    count.injected += 1;
                    match result {
                        Ok(()) => count.converged += 1,
                        Err(why) => {
                            count.lost += usize::from(why.starts_with("LOST"));
                            let what = format!("{} at {}", fault.name(), call.shown());
                            if all {
                                println!("{what}: {}", why.lines().next().unwrap_or_default());
                            }
                            wrong.lock().expect("the list").push(format!("{what}: {why}"));
                        }
                    }
                }
            });
        }
    });
    let table = table.into_inner().expect("the table");
    print(&table, reference.calls.len());
    let wrong = wrong.into_inner().expect("the list");
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), faults.len(), wrong.join("\n\n"));
}

fn print(table: &BTreeMap<(&str, &str), Count>, calls: usize) {
    let row = |call: &str, fault: &str, count: Count| {
        let Count { injected, converged, lost } = count;
        println!("{call:<12} {fault:<8} {injected:>8} {converged:>9} {lost:>6}");
    };
    println!(
        "{calls} changing calls\n{:<12} {:<8} {:>8} {:>9} {:>6}",
        "call", "fault", "injected", "converged", "lost"
    );
    let mut sum = Count::default();
    for ((call, fault), count) in table {
        row(call, fault, *count);
        sum.injected += count.injected;
        sum.converged += count.converged;
        sum.lost += count.lost;
    }
    row("all", "", sum);
}

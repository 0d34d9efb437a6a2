//! Container engines that are missing, broken, slow or lying, played by a socket, met by the built program.
//!
//! What they could have said of is kept; what they can't have a part in is judged all the same, and the run ends in time.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::env::{EAGER, TestEnv, is_root, utf8};
use common::fake_engine::{Fake, Reply};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use serde_json::{Value, json};

/// An engine may take 5 s before each look; a run has a few, and this machine may be busy.
const DEADLINE: Duration = Duration::from_secs(60);

/// A clone that containers use: `inside` bears a container's path, `here` one of this host.
struct Scene<'e> {
    env: &'e TestEnv,
    clone: HostClone<'e>,
    inside: PathBuf,
    here: PathBuf,
}

impl<'e> Scene<'e> {
    fn new(env: &'e TestEnv) -> Self {
        let clone = HostClone::new(env, "app");
        let [inside, here] = ["inside", "here"].map(|name| {
            let path = clone.path.join(".worktrees").join(name);
            clone.git(&["worktree", "add", "-q", "--no-track", "-b", name, utf8(&path)]);
            path
        });
        fs::write(clone.entry("inside").join("gitdir"), "/workspaces/app/.worktrees/inside/.git\n").unwrap();
        fs::write(inside.join(".git"), "gitdir: /workspaces/app/.git/worktrees/inside\n").unwrap();
        let setup = ["setup", "--engine", "none", utf8(&inside), utf8(&here)];
        env.treesweep(&setup).args(EAGER).assert().success();
        Self { env, clone, inside, here }
    }

    fn prune(&self, socket: &Path) -> (Document, String, Option<i32>) {
        let mut command = self.env.treesweep(&["prune", "--yes", "--json", "--engine", utf8(socket)]);
        let started = Instant::now();
        let output = command.args(EAGER).arg(self.env.src()).output().expect("a prune");
        assert!(started.elapsed() < DEADLINE, "it took {:?}", started.elapsed());
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {stderr}"));
        (Document(document), stderr, output.status.code())
    }

    /// The engine failed: the run says so and fails, keeps what the engine may know of, and goes on with the rest.
    #[track_caller]
    fn fails(&self, socket: &Path, words: &str) {
        let before = Snapshot::of(&self.inside);
        let (pruned, stderr, code) = self.prune(socket);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(words), "{words:?} is not in {stderr}");
        assert!(!stderr.contains('\x1b'), "{stderr:?}");
        pruned.assert_kept("inside", &["liveness-unknown"]);
        pruned.assert_removed("here", "deleted");
        before.assert_same(&Snapshot::of(&self.inside));
        assert!(self.clone.entry("inside").exists() && self.clone.has_branch("inside"));
    }
}

fn container(state: &str, source: &Path) -> Value {
    json!({
        "Id": "0a1b", "Names": ["/dev"], "State": state, "Labels": {},
        "Mounts": [{"Type": "bind", "Source": source, "Destination": "/workspaces/app"}],
    })
}

#[test]
fn one_that_is_missing() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    scene.fails(&env.root().join("none.sock"), "none.sock");
}

#[test]
fn one_that_refuses() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let socket = env.root().join("dead.sock");
    drop(UnixListener::bind(&socket).unwrap());
    scene.fails(&socket, "nobody listens");
}

#[test]
fn one_that_is_no_socket() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let socket = env.root().join("file");
    fs::write(&socket, "").unwrap();
    scene.fails(&socket, utf8(&socket));
}

#[test]
fn one_that_fails_in_any_way() {
    type Way = fn() -> Reply;
    let ways: [(&str, Way); 7] = [
        ("hangs", || Reply::Hang),
        ("closes at once", || Reply::CloseAtOnce),
        ("closes in the middle", || Reply::CloseMidAnswer),
        ("junk", || Reply::Junk),
        ("404", || Reply::Status(404)),
        ("500", || Reply::Status(500)),
        ("no list", || Reply::Json(json!({"message": "\x1b[31mred"}))),
    ];
    for (what, way) in ways {
        println!("{what}, at once");
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let fake = Fake::serve(&env, move |_, _| way());
        scene.fails(&fake.socket, "engine");
        println!("{what}, when it is asked for its containers");
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let fake = Fake::listing(&env, move |_| way());
        scene.fails(&fake.socket, "engine");
    }
}

#[test]
fn one_without_an_end() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let fake = Fake::listing(&env, |_| Reply::Endless);
    scene.fails(&fake.socket, "engine");
}

/// Anything between the plan and the removal counts as if it had been so before.
#[test]
fn one_that_changes_between_plan_and_act() {
    type Change = fn(&Path) -> Reply;
    let changes: [(&str, &str, Change); 3] = [
        ("it stops", "liveness-unknown", |_| Reply::CloseAtOnce),
        ("it hangs", "liveness-unknown", |_| Reply::Hang),
        ("a container starts", "live-container", |app| Reply::Json(json!([container("running", app)]))),
    ];
    for (what, code, change) in changes {
        println!("{what}");
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let app = scene.clone.path.clone();
        let fake = Fake::listing(&env, move |nth| match nth {
            0 => Reply::Json(json!([container("exited", &app)])),
            _ => change(&app),
        });
        let before = Snapshot::of(&scene.inside);
        let (pruned, _, _) = scene.prune(&fake.socket);
        pruned.assert_verdict("inside", "reclaim");
        let outcome = pruned.outcome("inside");
        assert_eq!(outcome["result"], "skipped", "{outcome:#}");
        assert_eq!(outcome["reason"]["code"], code, "{outcome:#}");
        before.assert_same(&Snapshot::of(&scene.inside));
        assert!(fake.lists.load(Ordering::SeqCst) > 1);
    }
}

/// A container that is there tells the truth of a path that only it knows; without the lie nothing is held.
#[test]
fn one_that_answers_well() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let app = scene.clone.path.clone();
    let fake = Fake::listing(&env, move |_| Reply::Json(json!([container("exited", &app)])));
    let (pruned, stderr, code) = scene.prune(&fake.socket);
    assert_eq!(code, Some(0), "{stderr}");
    pruned.assert_removed("inside", "deleted");
    pruned.assert_removed("here", "deleted");
    assert!(!scene.here.exists() && !scene.inside.exists());
}

/// What it leaves out is unknown, and unknown holds.
#[test]
fn one_that_leaves_things_out() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let app = scene.clone.path.clone();
    let fake = Fake::listing(&env, move |_| {
        let mount = json!({"Source": app, "Destination": "/workspaces/app"});
        Reply::Json(json!([{"Id": "0a1b", "Mounts": [mount]}, {}, {"Id": null, "Mounts": null}]))
    });
    let (pruned, stderr, _) = scene.prune(&fake.socket);
    pruned.assert_kept("inside", &["live-container", "liveness-unknown"]);
    assert!(scene.inside.exists(), "{stderr}");
}

#[test]
fn one_with_thousands_of_containers() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let (app, elsewhere) = (scene.clone.path.clone(), env.root().join("elsewhere"));
    let fake = Fake::listing(&env, move |_| {
        let mut all: Vec<Value> = (0..10_000)
            .map(|n| {
                let mut one = container("exited", &elsewhere);
                one["Id"] = json!(format!("{n:064x}"));
                one
            })
            .collect();
        all.push(container("exited", &app));
        Reply::Json(Value::Array(all))
    });
    let (pruned, stderr, code) = scene.prune(&fake.socket);
    assert_eq!(code, Some(0), "{stderr}");
    pruned.assert_removed("inside", "deleted");
}

#[test]
fn one_whose_api_is_too_old() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let fake = Fake::serve(&env, |path, _| match path {
        "/version" => Reply::Json(json!({"ApiVersion": "1.12", "Version": "old"})),
        _ => Reply::Status(400),
    });
    scene.fails(&fake.socket, "engine");
}

/// A socket that the user named and may not open fails the run, and it says which group may.
#[test]
fn one_that_may_not_be_opened() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to sweep as another user");
    }
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let fake = Fake::listing(&env, |_| Reply::Json(json!([])));
    env.run("chgrp", &["daemon", utf8(&fake.socket)]);
    fs::set_permissions(&fake.socket, fs::Permissions::from_mode(0o660)).unwrap();
    env.run("chown", &["-R", "1000:1000", "src"]);
    let mut command = env.treesweep_as(1000, &["plan", "--json", "--engine", utf8(&fake.socket)]);
    let output = command.args(EAGER).arg(env.src()).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let plan = Document(serde_json::from_slice(&output.stdout).unwrap());
    let engine = plan.0["engines"][0].to_string();
    assert!(engine.contains("members of the group daemon may"), "{engine}");
    plan.assert_kept("inside", &["liveness-unknown"]);
    assert_eq!(fake.lists.load(Ordering::SeqCst), 0);
    drop(scene);
}

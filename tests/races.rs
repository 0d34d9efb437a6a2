//! Races that are won: the sweeping thread is stopped at an exact system call, the world is changed, and the thread goes
//! on. Whatever was changed is skipped, or ends the removal with the reason; nothing is lost and nothing outside reached.

// Stopping at calls is done by registers.
#![cfg(target_arch = "x86_64")]
// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use common::containers::{DevContainer, bind, require_engine};
use common::env::{TestEnv, is_root, utf8};
use common::git::HostClone;
use common::plan::Document;
use common::snapshot::Snapshot;
use common::tracer::{self, Act, Call, Landlock, Traced};
use serde_json::Value;
use testcontainers::ImageExt;

/// For what another process does by itself.
const DEADLINE: Duration = Duration::from_secs(60);
const EAGER: [&str; 4] = ["--idle", "0s", "--unstarted-after", "0s"];

/// A clone with one worktree that has to go and one that stays, and a canary outside of the root.
struct Scene<'e> {
    clone: HostClone<'e>,
    env: &'e TestEnv,
    done: PathBuf,
    canary: PathBuf,
    before: Snapshot,
}

impl<'e> Scene<'e> {
    fn new(env: &'e TestEnv) -> Self {
        let clone = HostClone::new(env, "app");
        let done = clone.add_landed("done");
        for name in ["a", "b", "c"] {
            fs::create_dir_all(done.join("target").join(name)).expect("a folder");
            fs::write(done.join("target").join(name).join("file"), name).expect("an ignored file");
        }
        let wip = clone.add_landed("wip");
        fs::write(wip.join("work"), "not committed").expect("a file");
        env.treesweep(&["setup", utf8(&done), utf8(&wip)])
            .args(EAGER)
            .args(["--engine", "none"])
            .assert()
            .success();
        let canary = env.root().join("canary");
        fs::create_dir_all(canary.join("target/a")).expect("the canary");
        fs::write(canary.join("target/a/file"), "theirs").expect("the canary");
        let before = Snapshot::of(&canary);
        Self { clone, env, done, canary, before }
    }

    fn command(&self, engine: &str) -> Command {
        let mut command = self.env.treesweep_command(&["prune", "--yes", "--json", "--jobs", "1"]);
        command.args(["--engine", engine]).args(EAGER).arg(self.env.src());
        command
    }

    /// Prunes, and makes `change` at the first call that `window` is true for; that there is one is proven.
    fn at(&self, window: impl Fn(&Call) -> bool + Send + Sync, change: impl FnOnce(&Call) + Send) -> Ended {
        self.run(self.command("none"), window, change)
    }

    fn run(
        &self,
        command: Command,
        window: impl Fn(&Call) -> bool + Send + Sync,
        change: impl FnOnce(&Call) + Send,
    ) -> Ended {
        let mut change = Some(change);
        let run = tracer::run(command, Landlock::On, &mut |call| {
            if window(call)
                && let Some(change) = change.take()
            {
                change(call);
            }
            Act::Go
        });
        let calls: Vec<String> = run.calls.iter().map(Call::shown).collect();
        assert!(change.is_none(), "the window was not met: {calls:#?}\n{}{}", run.stdout, run.stderr);
        self.before.assert_same(&Snapshot::of(&self.canary));
        assert_eq!(fs::read_to_string(self.clone.path.join(".worktrees/wip/work")).unwrap(), "not committed");
        self.clone.git(&["fsck", "--connectivity-only"]);
        Ended { run, calls }
    }

    fn trash(&self) -> Option<PathBuf> {
        let dir = fs::read_dir(self.done.parent().expect("a parent")).expect("worktrees");
        let mut names = dir.map(|e| e.expect("entry").path());
        names.find(|path| utf8(path).contains(".treesweep-trash-"))
    }

    fn tip(&self, branch: &str) -> String {
        self.clone.git(&["rev-parse", branch])
    }

    /// Moves the branch on to a commit that nothing else names, without a look at the worktree.
    fn commit_on_branch(&self) -> String {
        let new = self.clone.git(&["commit-tree", "wt/done^{tree}", "-p", "wt/done", "-m", "late"]);
        self.clone.git(&["update-ref", "refs/heads/wt/done", &new]);
        new
    }

    /// Without a fault or a race, the rest goes, or is kept with a reason; nothing of ours is left.
    fn settles(&self) -> Document {
        let document = Document::of(self.env.treesweep(&["prune", "--yes", "--json"]).args(EAGER).args([
            "--engine",
            "none",
            utf8(&self.env.src()),
        ]));
        assert_eq!(self.trash(), None);
        document
    }

    fn is_whole(&self) -> bool {
        self.done.join("target/c/file").exists()
            && self.done.join(".git").exists()
            && self.clone.entry("done").join("gitdir").exists()
            && self.clone.has_branch("wt/done")
    }
}

/// A run that met its window.
struct Ended {
    run: Traced,
    calls: Vec<String>,
}

impl Ended {
    /// The outcome of `done`.
    #[track_caller]
    fn says(&self, result: &str, words: &str) -> Value {
        let document: Value = serde_json::from_str(&self.run.stdout).expect("a document");
        let outcomes = document["outcomes"].as_array().expect("outcomes");
        let of_done: Vec<_> = outcomes.iter().filter(|o| o["name"] == "done").collect();
        assert_eq!(of_done.len(), 1, "{outcomes:#?}");
        let text = of_done[0].to_string();
        assert_eq!(of_done[0]["result"], result, "{:#}\n{:#?}", of_done[0], self.calls);
        assert!(text.contains(words), "{words:?} is not in {:#}", of_done[0]);
        assert_eq!(self.run.code, Some(i32::from(result == "failed")), "{}", self.run.stderr);
        of_done[0].clone()
    }
}

type Window = fn(&Call) -> bool;

/// The first changing call: the plan is made, and nothing is judged anew yet.
fn after_the_plan(call: &Call) -> bool {
    call.number == 1
}

/// The record is written: it was judged anew, and the world is not asked for the last time yet.
fn after_the_judgement(call: &Call) -> bool {
    call.name == "openat2" && utf8(&call.path).contains("/retired/.unfinished-")
}

fn at_the_rename(done: &Path) -> impl Fn(&Call) -> bool + Send + Sync + '_ {
    move |call| call.renames(done)
}

/// The checkout was checked where it is aside, and is about to be deleted.
fn at_the_first_deletion(call: &Call) -> bool {
    call.name == "unlinkat" && utf8(&call.path).contains(".treesweep-trash-")
}

/// The checkout is gone, and its registration is about to be moved away.
fn at_the_registration(call: &Call) -> bool {
    call.to.as_ref().is_some_and(|to| utf8(to).contains("/.git/treesweep/trash/"))
}

/// Everything is gone but the branch, which is about to be locked.
fn at_the_branch(call: &Call) -> bool {
    call.to.as_ref().is_some_and(|to| to.ends_with("refs/heads/wt/done.lock"))
}

#[test]
fn what_changes_after_the_plan_is_skipped() {
    type Change = fn(&Scene<'_>);
    let changes: [(&str, &str, Change); 9] = [
        ("written", "dirty", |s| fs::write(s.done.join("new"), "work").expect("a write")),
        ("committed", "not-landed", |s| {
            s.env.git(&s.done, &["commit", "-q", "--allow-empty", "-m", "late"]);
        }),
        ("locked", "locked", |s| {
            s.clone.git(&["worktree", "lock", utf8(&s.done)]);
        }),
        ("moved", "its directory is not what the plan saw", |s| {
            s.clone.git(&["worktree", "move", utf8(&s.done), utf8(&s.env.src().join("moved"))]);
        }),
        ("switched", "branch other matches no template", |s| {
            s.env.git(&s.done, &["switch", "-q", "-c", "other"]);
        }),
        ("a link", "path-escapes", |s| {
            fs::rename(&s.done, s.env.src().join("moved")).expect("a rename");
            symlink(&s.canary, &s.done).expect("a link");
        }),
        ("another directory", "broken-link", |s| {
            fs::rename(&s.done, s.env.src().join("moved")).expect("a rename");
            fs::create_dir(&s.done).expect("a directory");
            fs::write(s.done.join("theirs"), "").expect("a file");
        }),
        ("a worktree of its name", "unowned", |s| {
            s.clone.git(&["worktree", "remove", "--force", utf8(&s.done)]);
            s.clone.git(&["worktree", "add", "-q", utf8(&s.done), "wt/done"]);
        }),
        ("its twin", "its administrative entry is not what the plan saw", |s| {
            let entry = s.clone.entry("done");
            s.env.run("cp", &["-a", utf8(&entry), utf8(&s.env.root().join("twin"))]);
            fs::remove_dir_all(&entry).expect("the entry goes");
            fs::rename(s.env.root().join("twin"), &entry).expect("the twin takes its place");
        }),
    ];
    for (what, words, change) in changes {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let ended = scene.at(after_the_plan, |_| change(&scene));
        println!("{what}");
        ended.says("skipped", words);
        assert!(!ended.calls.iter().any(|call| call.contains(".treesweep-trash-")), "{what}");
        assert!(scene.clone.has_branch("wt/done"), "{what}");
        let kept = scene.settles();
        // Where it was only moved, or exchanged for the same, the next run judges it anew.
        let again = ["moved", "its twin"].contains(&what);
        assert!(again || kept.outcome_of("done").is_none_or(|o| o["result"] != "removed"), "{what}");
    }
}

#[test]
fn what_changes_at_the_rename_goes_back() {
    type Change = fn(&Scene<'_>);
    let changes: [(&str, &str, Change); 6] = [
        ("written", "something in it was written", |s| {
            fs::write(s.done.join("new"), "work").expect("a write")
        }),
        ("written below", "something in it was written", |s| {
            fs::write(s.done.join("target/c/file"), "work").expect("a write");
        }),
        ("committed", "changed since it was judged", |s| {
            s.env.git(&s.done, &["commit", "-q", "--allow-empty", "-m", "late"]);
        }),
        ("locked", "registration done changed since it was judged", |s| {
            s.clone.git(&["worktree", "lock", utf8(&s.done)]);
        }),
        ("another directory", "another directory has its name", |s| {
            fs::rename(&s.done, s.env.src().join("moved")).expect("a rename");
            fs::create_dir(&s.done).expect("a directory");
            fs::write(s.done.join("theirs"), "").expect("a file");
        }),
        ("a link", "no directory any more", |s| {
            fs::rename(&s.done, s.env.src().join("moved")).expect("a rename");
            symlink(&s.canary, &s.done).expect("a link");
        }),
    ];
    for (what, words, change) in changes {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let mut changed = None;
        let ended = scene.at(at_the_rename(&scene.done), |_| {
            change(&scene);
            changed = Some(Snapshot::of(&scene.env.src()).without(&["app/.git"]));
        });
        println!("{what}");
        ended.says("skipped", words);
        changed.expect("the window").assert_same(&Snapshot::of(&scene.env.src()).without(&["app/.git"]));
        assert!(scene.clone.has_branch("wt/done") && scene.clone.entry("done").join("gitdir").exists());
        scene.settles();
    }
    let env = TestEnv::in_memory();
    let scene = Scene::new(&env);
    let away = env.src().join("moved");
    let ended = scene.at(at_the_rename(&scene.done), |_| {
        scene.clone.git(&["worktree", "move", utf8(&scene.done), utf8(&away)]);
    });
    ended.says("skipped", "it is gone");
    env.git(&away, &["status"]);
    scene.settles();
}

/// What moves on while nothing holds it can be found by its branch, which stays.
#[test]
fn a_branch_that_moves_or_is_used_again_stays() {
    let windows: [Window; 3] = [at_the_first_deletion, at_the_registration, at_the_branch];
    for window in windows {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let mut late = None;
        let ended = scene.at(window, |_| late = Some(scene.commit_on_branch()));
        let outcome = ended.says("removed", "");
        assert_eq!(outcome["branch"], "kept", "{outcome:#}");
        assert_eq!(scene.tip("wt/done"), late.unwrap());
        scene.settles();
    }
    for window in windows {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let elsewhere = env.src().join("elsewhere");
        let ended = scene.at(window, |_| {
            scene.clone.git(&["worktree", "add", "-q", "--force", utf8(&elsewhere), "wt/done"]);
        });
        let outcome = ended.says("removed", "elsewhere has it checked out");
        assert_eq!(outcome["branch"], "kept", "{outcome:#}");
        env.git(&elsewhere, &["status"]);
        assert!(scene.clone.has_branch("wt/done"));
    }
}

#[test]
fn a_branch_that_was_worked_on_and_put_back_stays() {
    let windows: [Window; 3] = [at_the_first_deletion, at_the_registration, at_the_branch];
    for window in windows {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let was = scene.tip("wt/done");
        let mut late = None;
        let ended = scene.at(window, |_| {
            late = Some(scene.commit_on_branch());
            scene.clone.git(&["update-ref", "refs/heads/wt/done", &was]);
        });
        let late = late.unwrap();
        let outcome = ended.says("removed", &format!("its reflog names {late}"));
        assert_eq!(outcome["branch"], "kept", "{outcome:#}");
        assert_eq!(scene.clone.git(&["rev-parse", "wt/done@{1}"]), late);
        scene.settles();
    }
}

/// Killed when it had just begun to delete; somebody was in there all the time.
#[test]
fn who_is_still_inside_of_what_is_aside_keeps_it() {
    let env = TestEnv::in_memory();
    let scene = Scene::new(&env);
    let mut inside = Command::new("sleep");
    inside.arg("600");
    let run =
        tracer::run(scene.command("none"), Landlock::On, &mut |call| match at_the_first_deletion(call) {
            true => Act::Kill,
            false => Act::Go,
        });
    assert_eq!(run.code, None);
    let trash = scene.trash().expect("it is aside");
    let mut inside = inside.current_dir(trash.join("target")).spawn().expect("sleep");
    let again = || {
        Document::of(scene.env.treesweep(&["prune", "--yes", "--json"]).args(EAGER).args([
            "--engine",
            "none",
            utf8(&env.src()),
        ]))
    };
    let seen = again();
    let outcome = seen.outcome("done").clone();
    inside.kill().and_then(|()| inside.wait()).expect("it ends");
    assert_eq!(
        (&outcome["result"], &outcome["reason"]["code"]),
        (&"skipped".into(), &"process-inside".into()),
        "{outcome:#}"
    );
    assert!(trash.join("target/c/file").exists() && scene.clone.has_branch("wt/done"));
    again().assert_removed("done", "deleted");
}

#[test]
fn a_path_that_is_made_anew_ends_the_removal() {
    let env = TestEnv::in_memory();
    let scene = Scene::new(&env);
    let new = scene.done.join("new");
    let ended = scene.at(at_the_first_deletion, |_| {
        fs::create_dir(&scene.done).expect("a directory");
        fs::write(&new, "work").expect("a file");
    });
    let outcome = ended.says("failed", "appeared again while it was removed");
    assert!(outcome["observed"].as_str().unwrap().contains("refs/heads/wt/done is at"), "{outcome:#}");
    assert!(outcome["retry"].as_str().unwrap().starts_with("treesweep prune "));
    assert!(scene.clone.has_branch("wt/done") && scene.clone.entry("done").exists());
    scene.settles();
    assert_eq!(fs::read_to_string(&new).unwrap(), "work");
}

#[test]
fn a_worktree_of_the_same_name_is_not_mistaken_for_the_old_one() {
    let env = TestEnv::in_memory();
    let scene = Scene::new(&env);
    let ended = scene.at(at_the_branch, |_| {
        scene.clone.git(&["worktree", "add", "-q", utf8(&scene.done), "wt/done"]);
        fs::write(scene.done.join("new"), "work").expect("a file");
    });
    let outcome = ended.says("removed", "has it checked out");
    assert_eq!(outcome["branch"], "kept", "{outcome:#}");
    env.git(&scene.done, &["status"]);
    assert!(scene.done.join("new").exists() && scene.clone.has_branch("wt/done"));
    scene.settles();
    assert!(scene.done.join("new").exists());
}

#[test]
fn a_registration_that_is_locked_while_its_checkout_goes_stays() {
    for window in [at_the_first_deletion, at_the_registration] {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let ended = scene.at(window, |_| {
            fs::write(scene.clone.entry("done").join("locked"), "mine").expect("a lock");
        });
        ended.says("failed", "registration done changed since it was judged");
        assert!(scene.clone.entry("done").join("locked").exists() && scene.clone.has_branch("wt/done"));
    }
}

/// Whatever is put in the place of what is being deleted: nothing that it leads to is touched.
#[test]
fn a_link_in_the_place_of_what_is_deleted_leads_nowhere() {
    type Change = fn(&Scene<'_>, &Path);
    let changes: [(&str, &str, Change); 3] = [
        ("the trash", "failed", |s, trash| {
            fs::rename(trash, s.env.src().join("moved")).expect("a rename");
            symlink(&s.canary, trash).expect("a link");
        }),
        ("a directory in it", "removed", |s, trash| {
            fs::rename(trash.join("target"), s.env.src().join("moved")).expect("a rename");
            symlink(s.canary.join("target"), trash.join("target")).expect("a link");
        }),
        ("a directory below", "removed", |s, trash| {
            for name in ["a", "b", "c"] {
                fs::rename(trash.join("target").join(name), s.env.src().join(name)).expect("a rename");
                symlink(s.canary.join("target/a"), trash.join("target").join(name)).expect("a link");
            }
        }),
    ];
    for landlock in [Landlock::On, Landlock::Off] {
        for (what, result, change) in changes {
            let env = TestEnv::in_memory();
            let scene = Scene::new(&env);
            let mut change = Some(change);
            let run = tracer::run(scene.command("none"), landlock, &mut |call| {
                if at_the_first_deletion(call)
                    && let Some(change) = change.take()
                {
                    change(&scene, &scene.trash().expect("the trash"));
                }
                Act::Go
            });
            assert!(change.is_none(), "{what}: {run:#?}");
            scene.before.assert_same(&Snapshot::of(&scene.canary));
            let calls = run.calls.iter().map(Call::shown).collect();
            Ended { run, calls }.says(result, "");
        }
    }
}

/// The directory above is exchanged: the handle leads to the old one, its path to a link.
#[test]
fn a_link_in_the_place_of_the_directory_above_leads_nowhere() {
    let windows: [Window; 3] = [after_the_plan, after_the_judgement, at_the_first_deletion];
    for (window, result) in windows.into_iter().zip(["skipped", "removed", "failed"]) {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let trees = scene.clone.path.join(".worktrees");
        fs::create_dir_all(scene.canary.join("done")).expect("bait");
        let bait = Snapshot::of(&scene.canary);
        let mut window_met = false;
        let run = tracer::run(scene.command("none"), Landlock::On, &mut |call| {
            if window(call) && !window_met {
                window_met = true;
                fs::rename(&trees, env.src().join("moved")).expect("a rename");
                symlink(&scene.canary, &trees).expect("a link");
            }
            Act::Go
        });
        assert!(window_met);
        bait.assert_same(&Snapshot::of(&scene.canary));
        let document: Value = serde_json::from_str(&run.stdout).expect("a document");
        let outcome = document["outcomes"].as_array().unwrap().iter().find(|o| o["name"] == "done").unwrap();
        assert!(outcome["result"] == result || outcome["result"] == "failed", "{outcome:#}");
        assert!(scene.clone.has_branch("wt/done"), "{outcome:#}");
        assert!(env.src().join("moved/wip/work").exists());
    }
}

/// A namespace of its own that a process keeps open.
struct OtherNamespace(Child);

impl OtherNamespace {
    fn with_mount(source: &Path, target: &Path) -> Self {
        let script = r#"mount --bind "$0" "$1" && echo mounted && exec sleep 2147483647"#;
        let mut child = Command::new("unshare")
            .args(["--mount", "--propagation", "private", "sh", "-c", script, utf8(source), utf8(target)])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut line = [0; 8];
        std::io::Read::read_exact(child.stdout.as_mut().expect("its output"), &mut line).expect("it mounts");
        Self(child)
    }

    fn still_has(&self, target: &Path) -> bool {
        let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", self.0.id())).expect("its mounts");
        mounts.lines().any(|line| line.split(' ').nth(4) == target.to_str())
    }
}

impl Drop for OtherNamespace {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_mount_that_only_another_namespace_has_stops_it_in_time() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to mount");
    }
    for window in [after_the_plan as Window, after_the_judgement] {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let target = scene.done.join("target/b");
        let mut other = None;
        let ended = scene.at(window, |_| {
            other = Some(OtherNamespace::with_mount(&scene.canary, &target));
        });
        ended.says("skipped", "in the mount namespace of process");
        assert!(scene.is_whole() && other.as_ref().unwrap().still_has(&target));
    }
}

#[test]
fn a_mount_inside_stops_it_at_any_moment() {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, to mount");
    }
    let windows: [(Window, &str); 3] =
        [(after_the_plan, "skipped"), (after_the_judgement, "skipped"), (at_the_first_deletion, "failed")];
    for (window, result) in windows {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let mut command = env.command("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command.arg(scene.command("none").get_program()).args(scene.command("none").get_args());
        let ended = scene.run(command, window, |call| {
            let checkout = scene.trash().unwrap_or(scene.done.clone());
            let target = checkout.join("target/b");
            // In the namespace of the run.
            let pid = call.pid.to_string();
            env.run("nsenter", &["-t", &pid, "-m", "mount", "--bind", utf8(&scene.canary), utf8(&target)]);
        });
        ended.says(result, if result == "failed" { "mount-inside" } else { "" });
        assert!(scene.clone.has_branch("wt/done") && scene.clone.entry("done").exists());
        // The mount went with the run: what was begun is finished, and the rest is as before.
        if result == "skipped" {
            assert!(scene.is_whole());
        }
        scene.settles().assert_removed("done", "deleted");
        scene.before.assert_same(&Snapshot::of(&scene.canary));
    }
}

#[test]
fn a_container_that_starts_over_it_keeps_it() {
    let Some(engine) = require_engine() else { return };
    for window in [after_the_plan as Window, after_the_judgement] {
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let mut container = None;
        let ended = scene.run(scene.command("auto"), window, |_| {
            container =
                Some(DevContainer::start(engine.container().with_mount(bind(&scene.done, "/workspace"))));
        });
        ended.says("skipped", "live-container");
        assert!(scene.is_whole());
        container.unwrap().exec("/workspace", &["test", "-e", "target/c/file"]);
    }
}

#[test]
fn a_second_prune_waits_and_says_for_whom() {
    let env = TestEnv::in_memory();
    let scene = Scene::new(&env);
    let mut second = None;
    let ended = scene.at(at_the_first_deletion, |_| {
        second = Some(scene.command("none").output().expect("a second prune"));
    });
    let second = second.unwrap();
    let words = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(words.contains("is being swept by another run (pid "), "{words}");
    ended.says("removed", "");
    assert!(!scene.clone.has_branch("wt/done"));
    scene.settles();
}

#[test]
fn two_prunes_at_once_remove_everything_once() {
    for _ in 0..3 {
        let env = TestEnv::in_memory();
        let scene = Scene::new(&env);
        let both = [(); 2].map(|()| {
            let mut command = scene.command("none");
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().expect("a prune")
        });
        let mut removed = 0;
        for child in both {
            let output = child.wait_with_output().expect("a prune");
            assert!(output.status.success(), "{output:?}");
            let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
            let outcomes = document["outcomes"].as_array().expect("outcomes").iter();
            removed += outcomes.filter(|o| o["result"] == "removed").count();
        }
        assert_eq!(removed, 1);
        assert!(!scene.done.exists() && !scene.clone.has_branch("wt/done"));
        scene.settles();
    }
}

/// `gc` rewrites the reflog of an entry whose checkout is gone already, and makes the entry's directory anew if that went
/// meanwhile. The removal sees either, says so, and the next run finishes it.
fn outdone_by_git(text: &str) -> bool {
    text.contains("changed since it was judged, and stays") || text.contains("still there: registration")
}

/// git in a container adds, removes and collects while the host prunes again and again: neither breaks the other.
#[test]
fn prune_beside_git_in_a_container() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let container =
        DevContainer::start(engine.container().with_mount(bind(&scene.clone.path, "/workspaces/app")));
    let names: Vec<String> = (0..6).map(|n| format!("w{n}")).collect();
    let script = r#"set -e
        for round in 1 2 3; do for n in 0 1 2 3 4 5; do
            git worktree add -q --no-track -B c$n .worktrees/w$n origin/main
            echo $round >.worktrees/w$n/c$n.txt
            git -C .worktrees/w$n add . && git -C .worktrees/w$n commit -qm c$n
            [ $round = 3 ] || git worktree remove .worktrees/w$n
            git gc -q
        done; done"#;
    std::thread::scope(|scope| {
        let git = scope.spawn(|| container.try_exec("/workspaces/app", &["sh", "-c", script]));
        let mut rounds = 0;
        while !git.is_finished() || rounds == 0 {
            let mut command = scene.command("auto");
            let output = command.output().expect("a prune");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let outdone = outdone_by_git(&text);
            assert!(output.status.success() || outdone, "{text}{}", String::from_utf8_lossy(&output.stderr));
            rounds += 1;
        }
        let ran = git.join().expect("git ran");
        assert_eq!(ran.code, 0, "{ran:?}");
    });
    for name in &names {
        let path = format!("/workspaces/app/.worktrees/{name}");
        assert_eq!(container.git(&path, &["status", "--porcelain"]), "");
    }
    // The maintenance that a commit starts goes on behind it, and may touch an entry once more.
    let until = Instant::now() + DEADLINE;
    loop {
        let last = scene.command("auto").output().expect("a prune");
        if last.status.success() {
            break;
        }
        let text = String::from_utf8_lossy(&last.stdout);
        assert!(outdone_by_git(&text) && Instant::now() < until, "{text}");
    }
    assert!(!scene.done.exists());
    container.git("/workspaces/app", &["fsck"]);
}

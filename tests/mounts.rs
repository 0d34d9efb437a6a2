//! Mounts in and around a worktree: what is mounted is not touched, and no mount of another namespace is detached.
//!
//! Each test runs in a mount namespace of its own; what it mounts ends with it.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::containers::{DevContainer, bind, require_engine};
use common::env::{EAGER, TestEnv, utf8};
use common::git::HostClone;
use common::namespace::{in_namespace, mount};
use common::plan::Document;
use common::scene::APP;
use common::snapshot::Snapshot;
use testcontainers::ImageExt;
use testcontainers::core::Mount;

/// A clone with two owned and landed worktrees, and data that is mounted somewhere.
struct Scene<'e> {
    clone: HostClone<'e>,
    done: PathBuf,
    other: PathBuf,
    data: PathBuf,
}

impl<'e> Scene<'e> {
    fn new(env: &'e TestEnv) -> Self {
        Self::of(HostClone::new(env, "app"))
    }

    fn of(clone: HostClone<'e>) -> Self {
        let env = clone.env;
        let [done, other] = ["done", "other"].map(|name| clone.add_landed(name));
        fs::create_dir_all(done.join("target/data")).expect("an ignored folder");
        fs::write(done.join("target/file"), "built").expect("an ignored file");
        let setup = ["setup", "--engine", "none", utf8(&done), utf8(&other)];
        env.treesweep(&setup).args(AGES).assert().success();
        let data = env.root().join("data");
        fs::create_dir_all(data.join("deep")).expect("the data");
        fs::write(data.join("deep/file"), "precious").expect("the data");
        Self { clone, done, other, data }
    }

    fn prune(&self) -> Document {
        let mut command = self.clone.env.treesweep(&["prune", "--yes", "--json", "--engine", "none"]);
        Document::of(command.args(AGES).arg(self.clone.env.src()))
    }

    /// What is mounted keeps its worktree, and nothing but it: it is there after the sweep, with every byte.
    #[track_caller]
    fn keeps(&self, code: &str, mounted: &Path) {
        let before =
            (Snapshot::of(&self.done), Snapshot::of(&self.clone.entry("done")), Snapshot::of(&self.data));
        let pruned = self.prune();
        pruned.assert_kept("done", &[code]);
        pruned.assert_removed("other", "deleted");
        assert!(self.other.symlink_metadata().is_err());
        before.0.assert_same(&Snapshot::of(&self.done));
        before.1.assert_same(&Snapshot::of(&self.clone.entry("done")));
        before.2.assert_same(&Snapshot::of(&self.data));
        assert!(self.clone.has_branch("wt/done"));
        let mounts = fs::read_to_string("/proc/self/mountinfo").expect("mounts");
        assert!(
            mounts.lines().any(|line| line.split(' ').nth(4) == mounted.to_str()),
            "it is mounted no more"
        );
    }

    /// Everything goes, and the data stays.
    #[track_caller]
    fn goes(&self) {
        let before = Snapshot::of(&self.data);
        let pruned = self.prune();
        pruned.assert_removed("done", "deleted");
        pruned.assert_removed("other", "deleted");
        assert!(self.done.symlink_metadata().is_err() && !self.clone.entry("done").exists());
        before.assert_same(&Snapshot::of(&self.data));
        self.clone.git(&["fsck", "--strict"]);
    }
}

const AGES: [&str; 4] = ["--idle", "0s", "--unstarted-after", "0s"];

#[test]
fn what_is_mounted_inside_keeps_it() {
    in_namespace("inside_child");
}

#[test]
#[ignore = "started by what_is_mounted_inside_keeps_it"]
fn inside_child() {
    type Mounting = fn(&Scene<'_>, &Path);
    let ways: [(&str, &str, Mounting); 4] = [
        ("a bind mount of the same file system", "target/data", |s, at| {
            mount(&["--bind", utf8(&s.data), utf8(at)]);
        }),
        ("a file", "target/file", |s, at| {
            mount(&["--bind", utf8(&s.data.join("deep/file")), utf8(at)]);
        }),
        ("a file system in memory", "target/data", |_, at| {
            mount(&["-t", "tmpfs", "none", utf8(at)]);
            fs::write(at.join("kept"), "precious").expect("a file in memory");
        }),
        ("an overlay", "target/data", |s, at| {
            let memory = s.clone.env.root().join("memory");
            fs::create_dir(&memory).expect("a directory");
            mount(&["-t", "tmpfs", "none", utf8(&memory)]);
            let [upper, work] = ["upper", "work"].map(|name| memory.join(name));
            for dir in [&upper, &work] {
                fs::create_dir(dir).expect("a layer");
            }
            let layers =
                format!("lowerdir={},upperdir={},workdir={}", utf8(&s.data), utf8(&upper), utf8(&work));
            mount(&["-t", "overlay", "overlay", "-o", &layers, utf8(at)]);
            fs::write(at.join("kept"), "precious").expect("a file in the upper layer");
        }),
    ];
    for (what, at, mounting) in ways {
        println!("{what}");
        let env = TestEnv::new();
        let scene = Scene::new(&env);
        let at = scene.done.join(at);
        mounting(&scene, &at);
        scene.keeps("mount-inside", &at);
        assert!(Command::new("umount").arg(&at).status().expect("umount starts").success());
        // Nothing holds it any more.
        let before = Snapshot::of(&scene.data);
        scene.prune().assert_removed("done", "deleted");
        before.assert_same(&Snapshot::of(&scene.data));
    }
}

#[test]
fn a_worktree_that_is_a_mount_point_stays() {
    in_namespace("mount_point_child");
}

#[test]
#[ignore = "started by a_worktree_that_is_a_mount_point_stays"]
fn mount_point_child() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    mount(&["--bind", utf8(&scene.done), utf8(&scene.done)]);
    scene.keeps("mount-inside", &scene.done);
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    mount(&["-t", "tmpfs", "none", utf8(&scene.done)]);
    // What lies beneath can't be seen, so it is not known to be gone.
    scene.keeps("broken-link", &scene.done);
}

#[test]
fn a_mount_in_the_registration_keeps_it() {
    in_namespace("registration_child");
}

#[test]
#[ignore = "started by a_mount_in_the_registration_keeps_it"]
fn registration_child() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let logs = scene.clone.entry("done").join("logs");
    mount(&["--bind", utf8(&scene.data), utf8(&logs)]);
    scene.keeps("unreadable", &logs);
}

/// On the way to a worktree mounts are usual: a disk for all of them, say.
#[test]
fn a_mount_on_the_way_is_no_hindrance() {
    in_namespace("way_child");
}

#[test]
#[ignore = "started by a_mount_on_the_way_is_no_hindrance"]
fn way_child() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let trees = clone.path.join(".worktrees");
    fs::create_dir(&trees).expect("a directory");
    mount(&["-t", "tmpfs", "none", utf8(&trees)]);
    Scene::of(clone).goes();
}

#[test]
fn a_clone_in_an_overlays_lower_layer_is_swept_in_place() {
    in_namespace("overlay_child");
}

#[test]
#[ignore = "started by a_clone_in_an_overlays_lower_layer_is_swept_in_place"]
fn overlay_child() {
    let env = TestEnv::new();
    let scene = Scene::new(&env);
    let memory = env.root().join("memory");
    fs::create_dir(&memory).expect("a directory");
    mount(&["-t", "tmpfs", "none", utf8(&memory)]);
    let [upper, work, lower] = ["upper", "work", "lower"].map(|name| memory.join(name));
    for dir in [&upper, &work, &lower] {
        fs::create_dir(dir).expect("a layer");
    }
    mount(&["--bind", utf8(&env.src()), utf8(&lower)]);
    let layers = format!("lowerdir={},upperdir={},workdir={}", utf8(&lower), utf8(&upper), utf8(&work));
    mount(&["-t", "overlay", "overlay", "-o", &layers, utf8(&env.src())]);
    let refused = fs::rename(&scene.done, scene.done.with_extension("x")).expect_err("a rename");
    assert_eq!(refused.kind(), std::io::ErrorKind::CrossesDevices);
    let below = Snapshot::of(&lower);
    scene.goes();
    below.assert_same(&Snapshot::of(&lower));
}

/// A subvolume is another device on the same mount: neither number alone tells it.
#[test]
fn a_subvolume_inside_keeps_it() {
    in_namespace("subvolume_child");
}

#[test]
#[ignore = "started by a_subvolume_inside_keeps_it"]
fn subvolume_child() {
    if Command::new("mkfs.btrfs").arg("--version").output().is_err() {
        return println!("SKIPPED: needs mkfs.btrfs (Debian: btrfs-progs)");
    }
    let place = TestEnv::new();
    let [image, at] = ["image", "btrfs"].map(|name| place.root().join(name));
    let file = fs::File::create(&image).expect("an image");
    file.set_len(256 << 20).expect("a sparse image");
    fs::create_dir(&at).expect("a mount point");
    place.run("mkfs.btrfs", &["-q", utf8(&image)]);
    let mounted = Command::new("mount").args(["-o", "loop", utf8(&image), utf8(&at)]).output();
    if !mounted.expect("mount starts").status.success() {
        return println!("SKIPPED: this kernel mounts no btrfs image");
    }
    let env = TestEnv::within(&at);
    let scene = Scene::new(&env);
    let sub = scene.done.join("target/sub");
    env.run("btrfs", &["-q", "subvolume", "create", utf8(&sub)]);
    fs::write(sub.join("kept"), "precious").expect("a file");
    let before = Snapshot::of(&scene.done);
    let pruned = scene.prune();
    pruned.assert_kept("done", &["mount-inside"]);
    pruned.assert_removed("other", "deleted");
    before.assert_same(&Snapshot::of(&scene.done));
}

/// A container's volume inside a worktree is a mount that only its namespace has.
#[test]
fn a_containers_volume_inside_keeps_it_and_its_data() {
    let Some(engine) = require_engine() else { return };
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let tree = "/workspaces/app/.worktrees/done";
    let container = DevContainer::start(engine.container().with_mount(bind(&clone.path, APP)));
    container.add_worktree(APP, "done", tree);
    container.exec(tree, &["mkdir", "-p", "target/data"]);
    clone.land("done");
    container.remove();
    let done = clone.path.join(".worktrees/done");
    env.treesweep(&["setup"]).args(EAGER).arg(&done).assert().success();
    let volume = engine.volume("inside");
    let inside = format!("{tree}/target/data");
    let request = engine
        .container()
        .with_mount(bind(&clone.path, APP))
        .with_mount(Mount::volume_mount(&volume.name, &inside))
        .with_user("root");
    let container = DevContainer::start(request);
    container.exec(&inside, &["sh", "-c", "echo precious >file"]);
    let before = Snapshot::of(&done);

    let pruned = Document::prune(&env, &env.src());

    pruned.assert_nothing_done();
    pruned.assert_kept("done", &["live-container", "mount-inside"]);
    before.assert_same(&Snapshot::of(&done));
    assert_eq!(container.exec(&inside, &["cat", "file"]), "precious");
    let mounted = container.exec("/", &["sh", "-c", &format!("grep -c ' {inside} ' /proc/mounts")]);
    assert_eq!(mounted, "1", "it was detached");
    container.remove();
    Document::prune(&env, &env.src()).assert_removed("done", "deleted");
    let container =
        DevContainer::start(engine.container().with_mount(Mount::volume_mount(&volume.name, "/trees")));
    assert_eq!(container.exec("/trees", &["cat", "file"]), "precious");
}

//! Whole removals where something is mounted, each in a mount namespace of its own.

use std::process::Command;

use super::*;
use crate::judge::reason::Code;

/// Runs the ignored test `name` of this file behind `unshare -m`; nothing where we may not.
fn in_namespace(name: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let output = Command::new("unshare")
        .arg("-m")
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("sweep::tests::mounts::{name}")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn mount(args: &[&str]) {
    assert!(Command::new("mount").args(args).status().unwrap().success(), "mount {args:?}");
}

#[test]
fn a_clone_in_an_overlays_lower_layer_is_swept_in_place() {
    in_namespace("overlay_child");
}

#[test]
#[ignore = "started by a_clone_in_an_overlays_lower_layer_is_swept_in_place"]
fn overlay_child() {
    let below = Scene::new();
    let tmp = tempfile::tempdir().unwrap();
    mount(&["-t", "tmpfs", "none", tmp.path().to_str().unwrap()]);
    let dir = |name: &str| {
        let path = tmp.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // Over itself, so that the recorded paths lead into the overlay.
    let root = below.clone.root.to_str().unwrap();
    let layers = format!("lowerdir={root},upperdir={},workdir={}", dir("upper"), dir("work"));
    mount(&["-t", "overlay", "overlay", "-o", &layers, root]);
    let Scene { clone, tip, lost, .. } = below;
    let scene = Scene::of(clone, tip, lost);
    let moved = std::fs::rename(scene.checkout(), scene.clone.root.join("w/moved"));
    assert_eq!(moved.unwrap_err().raw_os_error(), Some(rustix::io::Errno::XDEV.raw_os_error()));
    let before = scene.neighbours();
    let outcome = scene.execute(scene.warrant(What::Remove));
    assert_eq!((outcome.result, outcome.note), (Ending::Removed, None));
    assert!(!scene.checkout().exists() && !scene.entry().exists() && !scene.has_branch());
    assert_same(&scene.neighbours(), &before, "overlay");
    scene.assert_tidy("overlay");
    assert_eq!(scene.clone.git(&["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_mount_in_a_checkout_ends_its_removal_untouched() {
    in_namespace("mount_child");
}

#[test]
#[ignore = "started by a_mount_in_a_checkout_ends_its_removal_untouched"]
fn mount_child() {
    let scene = Scene::new();
    let volume = scene.clone.root.join("volume");
    std::fs::create_dir(&volume).unwrap();
    std::fs::write(volume.join("data"), "precious").unwrap();
    let inside = scene.checkout().join("target/debug");
    let warrant = scene.warrant(What::Remove);
    // After the check, when the deletion is about to begin.
    let calls = std::cell::Cell::new(0);
    let late = |dir: &Dir| {
        let found = fingerprint(dir);
        if calls.replace(calls.get() + 1) == 1 {
            let trash = scene.clone.root.join("w");
            let names = std::fs::read_dir(&trash).unwrap().map(|e| e.unwrap().path());
            let aside = names.into_iter().find(|p| p.to_string_lossy().contains(".treesweep-trash")).unwrap();
            mount(&["--bind", volume.to_str().unwrap(), aside.join("target/debug").to_str().unwrap()]);
        }
        found
    };
    let outcome = scene.execute_with(warrant, &Hooks { fingerprint: &late, ..HOOKS });
    assert_eq!(outcome.result, Ending::Failed, "{outcome:?}");
    assert_eq!(outcome.reason.unwrap().code, Code::MountInside);
    assert_eq!(std::fs::read(volume.join("data")).unwrap(), b"precious");
    assert!(scene.entry().exists() && scene.has_branch() && !inside.exists());
    // Unmounted, the next run finishes.
    assert!(
        Command::new("sh")
            .arg("-c")
            .arg(format!("umount {}/w/.treesweep-trash-*/target/debug", scene.clone.root.display()))
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(scene.resume().pop().unwrap().result, Ending::Removed);
    assert_eq!(std::fs::read(volume.join("data")).unwrap(), b"precious");
}

#[test]
fn a_checkout_that_is_a_mount_point_stays() {
    in_namespace("mount_point_child");
}

#[test]
#[ignore = "started by a_checkout_that_is_a_mount_point_stays"]
fn mount_point_child() {
    let scene = Scene::new();
    let warrant = scene.warrant(What::Remove);
    let path = scene.checkout();
    mount(&["--bind", path.to_str().unwrap(), path.to_str().unwrap()]);
    let outcome = scene.execute(warrant);
    assert_eq!(outcome.result, Ending::Skipped);
    assert!(outcome.note.unwrap().contains("mounted"));
    assert!(path.join("file").exists() && scene.entry().exists());
}

//! Mounts, and what can't be deleted. These need root, as a test machine's container has it; without it they say so.

use std::os::unix::fs::{PermissionsExt, chown};

use super::{Fixture, paths};
use crate::judge::tree_facts::UndeletableReason;
use crate::stop::Stop;
use crate::survey::walk::{Powers, fingerprint_of, hold_of_parent};

fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: it needs root");
    }
    root
}

/// Runs `act` in a mount namespace of its own; workers reach it through the handles opened there.
fn in_own_mounts(act: impl FnOnce() + Send + 'static) {
    std::thread::spawn(move || {
        use rustix::mount::{MountPropagationFlags, mount_change};
        let own = rustix::thread::UnshareFlags::NEWNS | rustix::thread::UnshareFlags::FS;
        // SAFETY: this thread holds no borrow of its working directory or namespace.
        if let Err(e) = unsafe { rustix::thread::unshare_unsafe(own) } {
            return eprintln!("skipped: no mount namespace: {e}");
        }
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
        act();
    })
    .join()
    .unwrap();
}

#[test]
fn mounts_are_seen_and_not_entered() {
    if !is_root() {
        return;
    }
    in_own_mounts(|| {
        let f = Fixture::new(&[("tracked", "t\n"), ("dir/a", "a\n"), (".gitignore", "target/\n")]);
        f.write("elsewhere/db", "precious");
        f.write("wt/target/data/x", "");
        f.write("one", "single file");
        let bind = |from: &str, to: &str| rustix::mount::mount_bind(f.path(from), f.path(to)).unwrap();
        bind("elsewhere", "wt/target/data");
        bind("one", "wt/tracked");
        bind("elsewhere", "wt/dir");
        let seen = f.walk();
        assert_eq!(paths(&seen.facts.mounts), ["dir", "target/data", "tracked"]);
        assert!(seen.facts.untracked.is_empty(), "a mount's files are not looked at");
        assert!(fingerprint_of(&f.dir("wt"), &Stop::never()).is_err());
        for mount in ["wt/target/data", "wt/tracked", "wt/dir"] {
            rustix::mount::unmount(f.path(mount), rustix::mount::UnmountFlags::DETACH).unwrap();
        }
    });
}

#[test]
fn a_read_only_mount_takes_no_change() {
    if !is_root() {
        return;
    }
    in_own_mounts(|| {
        use rustix::mount::{MountFlags, UnmountFlags, mount_bind, mount_remount, unmount};
        let f = Fixture::new(&[("a", "a\n")]);
        mount_bind(f.path("wt"), f.path("wt")).unwrap();
        mount_remount(f.path("wt"), MountFlags::BIND | MountFlags::RDONLY, "").unwrap();
        let held = f.walk().facts.undeletable.unwrap();
        assert_eq!((held.path.to_string().as_str(), held.why), ("", UndeletableReason::ReadOnlyFileSystem));
        unmount(f.path("wt"), UnmountFlags::DETACH).unwrap();
    });
}

/// What an ordinary user is told: the walk runs on threads that gave up their capabilities.
fn walked_as(uid: u32, f: &Fixture) -> crate::judge::tree_facts::TreeFacts {
    let become_user = move || {
        let id = rustix::process::Uid::from_raw(uid);
        // Per thread, unlike the library functions of the same name.
        rustix::thread::set_thread_res_uid(id, id, id).unwrap();
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).start_handler(move |_| become_user()).build();
    pool.unwrap().install(|| f.walk().facts)
}

#[test]
fn files_of_others_are_found_before_anything_is_touched() {
    if !is_root() {
        return;
    }
    const ME: u32 = 12_345;
    let f = Fixture::new(&[("own/a", "a\n"), ("other/b", "b\n"), ("empty/c", "c\n"), ("sticky/d", "d\n")]);
    let all = std::process::Command::new("chown").args(["-R", &ME.to_string()]).arg(f.path("")).status();
    assert!(all.unwrap().success());
    std::fs::set_permissions(f.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(walked_as(ME, &f).undeletable, None);
    // Read-only, but ours.
    std::fs::set_permissions(f.path("wt/own"), std::fs::Permissions::from_mode(0o555)).unwrap();
    // A foreign file in our directory is no hindrance, nor is a foreign empty directory.
    chown(f.path("wt/own/a"), Some(0), None).unwrap();
    std::fs::create_dir(f.path("wt/own/none")).unwrap();
    chown(f.path("wt/own/none"), Some(0), None).unwrap();
    assert_eq!(walked_as(ME, &f).undeletable, None);
    chown(f.path("wt/other"), Some(0), None).unwrap();
    let held = walked_as(ME, &f).undeletable.unwrap();
    assert_eq!((held.path.to_string().as_str(), held.why), ("other", UndeletableReason::Owner(0)));
    // Writable for all, yet sticky: our file goes, another's does not.
    std::fs::set_permissions(f.path("wt/other"), std::fs::Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(walked_as(ME, &f).undeletable, None);
    chown(f.path("wt/other/b"), Some(1), None).unwrap();
    let held = walked_as(ME, &f).undeletable.unwrap();
    assert_eq!((held.path.to_string().as_str(), held.why), ("other/b", UndeletableReason::Sticky(1)));
    assert_eq!(f.walk().facts.undeletable, None, "root may");
}

#[test]
fn the_checkouts_own_directory_is_asked_apart() {
    let f = Fixture::new(&[("a", "a\n")]);
    let (parent, checkout) = (f.dir(""), f.dir("wt").own_meta().unwrap());
    assert_eq!(hold_of_parent(&parent, &checkout, &Powers::of_this_process()).unwrap(), None);
}

#[test]
fn flags_hold() {
    if !is_root() {
        return;
    }
    let f = Fixture::new(&[("a/b", "b\n")]);
    let chattr = |how: &str| {
        std::process::Command::new("chattr")
            .arg(how)
            .arg(f.path("wt/a/b"))
            .output()
            .is_ok_and(|o| o.status.success())
    };
    if !chattr("+i") {
        return eprintln!("skipped: no flags here");
    }
    let held = f.walk().facts.undeletable;
    assert!(chattr("-i"));
    let held = held.unwrap();
    assert_eq!((held.path.to_string().as_str(), held.why), ("a/b", UndeletableReason::Flag));
}

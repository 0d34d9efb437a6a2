use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};

use crate::sweep::act::faults::{self, Fault};
use crate::vantage::paths::LocalPath;

struct Place {
    _tmp: tempfile::TempDir,
    path: PathBuf,
    parent: Dir,
}

/// A directory `t` with files, links, directories and a `.git` file, beside a neighbour.
fn place() -> Place {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().canonicalize().unwrap();
    for dir in ["t/a/b/c", "t/a/d", "t/e", "neighbour/x"] {
        std::fs::create_dir_all(path.join(dir)).unwrap();
    }
    for file in ["t/.git", "t/f", "t/a/f", "t/a/b/c/f", "t/e/\n\u{1b}", "neighbour/x/f"] {
        std::fs::write(path.join(file), vec![b'x'; 5000]).unwrap();
    }
    symlink("../../neighbour", path.join("t/a/link")).unwrap();
    symlink("nowhere", path.join("t/dangling")).unwrap();
    nix::unistd::mkfifo(&path.join("t/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let parent = Dir::open(&LocalPath::new(&path).unwrap()).unwrap();
    Place { _tmp: tmp, path, parent }
}

impl Place {
    fn id(&self) -> FileId {
        self.parent.meta("t").unwrap().id
    }

    fn remove(&self, jobs: usize) -> (Removed, Result<End, RemoveError>) {
        self.remove_as(jobs, self.id(), &Stop::never())
    }

    fn remove_as(&self, jobs: usize, id: FileId, stop: &Stop) -> (Removed, Result<End, RemoveError>) {
        let jobs = NonZeroUsize::new(jobs).unwrap();
        let order = Order { parent: &self.parent, name: b"t", id, last: b".git", jobs, stop, progress: &() };
        remove_tree(&order)
    }

    fn has(&self, name: &str) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }
}

#[test]
fn all_of_it_goes_and_nothing_else() {
    for jobs in [1, 4] {
        let place = place();
        let (removed, end) = place.remove(jobs);
        assert_eq!(end.unwrap(), End::Complete);
        assert_eq!((removed.files, removed.directories), (8, 6));
        assert!(removed.freed >= 5 * 5000, "{removed:?}");
        assert!(!place.has("t") && place.has("neighbour/x/f"));
    }
}

#[test]
fn links_elsewhere_free_nothing_and_links_within_count_once() {
    let place = place();
    std::fs::write(place.path.join("t/e/big"), vec![1; 1 << 20]).unwrap();
    std::fs::hard_link(place.path.join("t/e/big"), place.path.join("t/a/big")).unwrap();
    std::fs::write(place.path.join("neighbour/store"), vec![1; 4 << 20]).unwrap();
    std::fs::hard_link(place.path.join("neighbour/store"), place.path.join("t/store")).unwrap();
    let (removed, end) = place.remove(1);
    end.unwrap();
    assert!((1 << 20..2 << 20).contains(&removed.freed), "{removed:?}");
    assert_eq!(std::fs::read(place.path.join("neighbour/store")).unwrap().len(), 4 << 20);
}

/// With an error, or a kill, at each change in turn: the last file is the last to go.
#[test]
fn the_last_name_goes_last() {
    let (_, calls) = faults::run(None, || place().remove(1));
    assert!(calls.len() > 10, "{calls:?}");
    for at in 1..=calls.len() {
        for fault in [Fault::Kill, Fault::Error(Errno::IO), Fault::Error(Errno::ACCESS)] {
            let place = place();
            let (result, _) = faults::run(Some((at, fault)), || place.remove(1));
            assert_eq!(result.is_none(), matches!(fault, Fault::Kill));
            if let Some((_, end)) = result {
                assert!(end.is_err(), "{fault:?} at {at}");
            }
            let left = std::fs::read_dir(place.path.join("t")).unwrap().count();
            assert!(left == 0 || place.has("t/.git"), "{fault:?} at {at}: {left} left");
            assert!(place.has("neighbour/x/f"));
            let (_, end) = place.remove(1);
            assert_eq!(end.unwrap(), End::Complete, "{fault:?} at {at}");
        }
    }
}

#[test]
fn another_object_of_that_name_is_refused() {
    let place = place();
    let judged = place.id();
    std::fs::rename(place.path.join("t"), place.path.join("moved")).unwrap();
    let refused = |why: &str| {
        let (removed, end) = place.remove_as(1, judged, &Stop::never());
        assert!(matches!(end, Err(RemoveError::Replaced { .. })), "{why}: {end:?}");
        assert_eq!(removed, Removed::default(), "{why}");
    };
    refused("gone");
    symlink("moved", place.path.join("t")).unwrap();
    refused("a symlink to it");
    std::fs::remove_file(place.path.join("t")).unwrap();
    std::fs::create_dir(place.path.join("t")).unwrap();
    std::fs::write(place.path.join("t/new"), "").unwrap();
    refused("another directory");
    assert!(place.has("t/new") && place.has("moved/f"));
}

#[test]
fn a_directory_in_the_place_of_the_last_file_stays() {
    let place = place();
    std::fs::remove_file(place.path.join("t/.git")).unwrap();
    std::fs::create_dir_all(place.path.join("t/.git/objects")).unwrap();
    let (_, end) = place.remove(1);
    assert!(matches!(end, Err(RemoveError::Replaced { path }) if path == ".git"));
    assert!(place.has("t/.git/objects"));
}

#[test]
fn a_request_to_stop_ends_it() {
    let place = place();
    let stop = Stop::never();
    stop.request();
    let (removed, end) = place.remove_as(2, place.id(), &stop);
    assert_eq!((removed, end.unwrap()), (Removed::default(), End::Deferred));
    assert!(place.has("t/f"));
}

/// A writer that never rests gets one more pass, and is named then.
#[test]
fn a_late_writer_is_bounded() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let place = place();
    let done = AtomicBool::new(false);
    let end = std::thread::scope(|scope| {
        let (target, done) = (place.path.join("t/a/d"), &done);
        scope.spawn(move || {
            for n in 0_u64.. {
                if done.load(Ordering::Relaxed)
                    || std::fs::write(target.join(format!("late{n}")), "").is_err()
                {
                    break;
                }
            }
        });
        while !place.has("t/a/d/late0") {
            std::thread::yield_now();
        }
        let end = place.remove(1).1;
        done.store(true, Ordering::Relaxed);
        end
    });
    match end {
        // The directory went between two writes, and the writer's next one failed.
        Ok(End::Complete) => assert!(!place.has("t")),
        Err(RemoveError::Reappeared { path, names }) => {
            assert!(path == "a/d" && names.contains("late"), "{path}: {names}");
            assert!(place.has("t/.git"));
            assert_eq!(place.remove(1).1.unwrap(), End::Complete);
        }
        other => panic!("{other:?}"),
    }
}

/// Whoever writes one file, before whichever call, is not waited for any longer than that file takes.
#[test]
fn one_late_file_goes_too() {
    let (_, calls) = faults::run(None, || place().remove(1));
    for at in 1..=calls.len() {
        let place = place();
        let late = place.path.join("t/late");
        let write = move |call| {
            if call == at {
                std::fs::write(&late, "").unwrap();
            }
        };
        let (_, end) = faults::run_beside(write, || place.remove(1));
        assert_eq!(end.unwrap(), End::Complete, "before call {at}");
        assert!(!place.has("t"));
    }
}

#[test]
fn where_somebody_is_at_work_the_last_file_stays() {
    let place = place();
    let path = place.path.join("t");
    let write = move |call| std::fs::write(path.join(format!("late{call}")), "").unwrap();
    let (_, end) = faults::run_beside(write, || place.remove(1));
    assert!(matches!(&end, Err(RemoveError::Reappeared { names, .. }) if names.contains("late")), "{end:?}");
    assert!(place.has("t/.git"), "what it belongs to");
}

#[test]
fn another_directory_of_that_name_stays_at_the_end_too() {
    let (_, calls) = faults::run(None, || place().remove(1));
    let place = place();
    let path = place.path.clone();
    let swap = move |call| {
        if call == calls.len() - 1 {
            std::fs::rename(path.join("t"), path.join("moved")).unwrap();
            std::fs::create_dir(path.join("t")).unwrap();
        }
    };
    let (_, end) = faults::run_beside(swap, || place.remove(1));
    assert!(matches!(&end, Err(RemoveError::Replaced { path }) if path == "."), "{end:?}");
    assert!(place.has("t") && place.has("moved"));
}

#[test]
fn a_fault_says_what_it_is() {
    let refused = |refused| one::Fault::refused(b"a", refused).into_error();
    assert!(matches!(refused(Refused::MountCrossed), RemoveError::MountInside { .. }));
    assert!(matches!(refused(Refused::Absent), RemoveError::Replaced { .. }));
    assert!(matches!(refused(Refused::Io(Errno::ACCESS.into())), RemoveError::NotDeletable { .. }));
    assert!(matches!(refused(Refused::Io(Errno::IO.into())), RemoveError::Io { .. }));
    let reappeared = |names: &[&str]| {
        let names: Vec<BString> = names.iter().map(|n| (*n).into()).collect();
        one::Fault::reappeared(&names).into_error().to_string()
    };
    assert_eq!(reappeared(&["a", "b", "c"]), ". was written to while it was removed: a, b, c appeared");
    let more = ". was written to while it was removed: a, b, c, 2 more appeared";
    assert_eq!(reappeared(&["a", "b", "c", "d", "e"]), more);
}

/// What was a directory when its name was read may be something else when it is opened.
#[test]
fn what_is_no_directory_any_more_goes_as_what_it_is() {
    let place = place();
    let (stop, top) = (Stop::never(), place.parent.dir("t").unwrap());
    let engine = one::Engine::new(&stop, &());
    let held = engine.adopt(top).ok().unwrap();
    for name in ["f", "fifo", "dangling", "nothing"] {
        assert!(matches!(engine.open(&held, name.as_bytes()), Ok(None)), "{name}");
        assert!(!place.has(&format!("t/{name}")));
    }
    assert!(matches!(engine.open(&held, b"a"), Ok(Some(_))));
}

/// 1,000 levels of names of 255 bytes: far beyond what a path can name, with fewer handles than levels.
#[test]
fn depth_has_no_bound() {
    let place = place();
    let output = in_child(&["prlimit", "--nofile=128:128"], "depth_has_no_bound_child", &place.path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "a child of depth_has_no_bound"]
fn depth_has_no_bound_child() {
    let place = target();
    let name = [b'd'; 255];
    let mut at = std::os::fd::OwnedFd::from(std::fs::File::open(place.path.join("t")).unwrap());
    for level in 0..1000 {
        act::mkdir(&at, &name, 0o755).unwrap();
        if level % 100 == 0 {
            act::create(&at, b"g", 0o644).unwrap();
            act::mkdir(&at, b"side", 0o755).unwrap();
        }
        at = rustix::fs::openat(&at, &name[..], OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    drop(at);
    let (removed, end) = place.remove(2);
    assert_eq!(end.unwrap(), End::Complete);
    assert_eq!(removed.directories, 6 + 1000 + 10);
    assert!(!place.has("t"));
}

/// Runs the ignored test `name` of this file in a process of its own, behind `wrapper`, with `TARGET` as its directory.
fn in_child(wrapper: &[&str], name: &str, target: &Path) -> std::process::Output {
    let exe = std::env::current_exe().unwrap();
    Command::new(wrapper[0])
        .args(&wrapper[1..])
        .arg(exe)
        .args(["--ignored", "--exact", &format!("sweep::remove::tests::{name}")])
        .env("TARGET", target)
        .output()
        .unwrap()
}

fn target() -> Place {
    let tmp = tempfile::tempdir().unwrap();
    let path = PathBuf::from(std::env::var_os("TARGET").expect("started by in_child"));
    let parent = Dir::open(&LocalPath::new(&path).unwrap()).unwrap();
    Place { _tmp: tmp, path, parent }
}

fn mount(args: &[&str]) {
    assert!(Command::new("mount").args(args).status().unwrap().success(), "mount {args:?}");
}

#[test]
#[ignore = "a child of mounts_are_not_entered"]
fn mounts_are_not_entered_child() {
    let place = target();
    let path = |name: &str| place.path.join(name).to_str().unwrap().to_owned();
    // The same file system, another one, and a single file.
    for (what, on) in [("dir", "t/a/d"), ("tmpfs", "t/a/b"), ("file", "t/a/f"), ("top", "t")] {
        // What is beside the mount may be gone since the last round.
        std::fs::create_dir_all(path("t/a/d")).unwrap();
        std::fs::create_dir_all(path("t/a/b")).unwrap();
        std::fs::write(path("t/a/f"), "").unwrap();
        match what {
            "dir" | "top" => mount(&["--bind", &path("neighbour/x"), &path(on)]),
            "tmpfs" => mount(&["-t", "tmpfs", "none", &path(on)]),
            _ => mount(&["--bind", &path("neighbour/x/f"), &path(on)]),
        }
        let (_, end) = place.remove_as(2, place.id(), &Stop::never());
        let shown = on.strip_prefix("t/").unwrap_or(".");
        assert!(matches!(&end, Err(RemoveError::MountInside { path }) if path == shown), "{what}: {end:?}");
        assert!(place.has("neighbour/x/f"), "{what}");
        assert!(Command::new("umount").arg(path(on)).status().unwrap().success());
        assert!(place.has("t/.git"));
    }
}

#[test]
fn mounts_are_not_entered() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let place = place();
    let output = in_child(&["unshare", "-m"], "mounts_are_not_entered_child", &place.path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "a child of closed_directories_are_opened_by_handle"]
fn closed_directories_child() {
    let place = target();
    let (_, end) = place.remove(2);
    assert_eq!(end.unwrap(), End::Complete);
    assert!(!place.has("t"));
}

#[test]
#[ignore = "a child of foreign_files_are_named"]
fn foreign_files_child() {
    let place = target();
    let (_, end) = place.remove(2);
    assert!(
        matches!(&end, Err(RemoveError::NotDeletable { path, why })
        if path == "e/foreign/f" && why.contains("uid 0")),
        "{end:?}"
    );
    assert!(place.has("t/.git") && place.has("t/e/foreign/f"));
}

/// A place that belongs to an ordinary user, and how to run as that user; `None` if we are not root.
fn users_place() -> Option<(Place, [&'static str; 6])> {
    let user = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups"];
    let place = rustix::process::geteuid().is_root().then(place)?;
    let done = Command::new("chown").args(["-R", "12345:12345"]).arg(&place.path).status().unwrap();
    assert!(done.success());
    Some((place, user))
}

#[test]
fn foreign_files_are_named() {
    let Some((place, user)) = users_place() else { return };
    std::fs::create_dir(place.path.join("t/e/foreign")).unwrap();
    std::fs::write(place.path.join("t/e/foreign/f"), "").unwrap();
    let output = in_child(&user, "foreign_files_child", &place.path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
#[ignore = "a child of nothing_is_begun_where_the_directory_itself_could_not_go"]
fn closed_parent_child() {
    use crate::sweep::aside::{self, NotMoved};
    let place = target();
    let aside = aside::Place { parent: &place.parent, name: b"t", id: place.id() };
    assert!(matches!(aside.move_aside(b"trash"), Err(NotMoved::NotDeletable(_))));
}

#[test]
fn nothing_is_begun_where_the_directory_itself_could_not_go() {
    let Some((place, user)) = users_place() else { return };
    std::os::unix::fs::chown(&place.path, Some(0), Some(0)).unwrap();
    let output = in_child(&user, "closed_parent_child", &place.path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn closed_directories_are_opened_by_handle() {
    let Some((place, user)) = users_place() else { return };
    symlink("../neighbour", place.path.join("t/shared")).unwrap();
    let modes =
        [("t/a/b/c", 0), ("t/a/b", 0o555), ("t/a", 0o100), ("t/e", 0o400), ("neighbour", 0o555), ("t", 0)];
    for (name, mode) in modes {
        std::fs::set_permissions(place.path.join(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    let output = in_child(&user, "closed_directories_child", &place.path);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let shared = std::fs::metadata(place.path.join("neighbour")).unwrap();
    assert_eq!(shared.permissions().mode() & 0o777, 0o555, "a link's target is not ours to change");
}

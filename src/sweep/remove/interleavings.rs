//! Workers that overtake each other: whoever is held, killed or fails at whichever call, what is left is whole, and the
//! next run removes it.

use std::path::PathBuf;

use super::*;
use crate::sweep::act::faults::Fault;
use crate::sweep::act::interleave::{Ran, Schedule, run};
use crate::vantage::paths::LocalPath;

struct Tree {
    _tmp: tempfile::TempDir,
    path: PathBuf,
    parent: Dir,
}

/// Directories that are done at different times: wide ones, deep ones, empty ones.
fn tree() -> Tree {
    let tmp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let path = tmp.path().canonicalize().unwrap();
    for dir in ["t/a/b/c", "t/a/d", "t/e/f", "t/g", "t/h/i/j"] {
        std::fs::create_dir_all(path.join(dir)).unwrap();
    }
    for file in ["t/.git", "t/1", "t/a/2", "t/a/b/3", "t/a/b/c/4", "t/e/5", "t/e/f/6", "t/h/i/7", "t/h/8"] {
        std::fs::write(path.join(file), file).unwrap();
    }
    let parent = Dir::open(&LocalPath::new(&path).unwrap()).unwrap();
    Tree { _tmp: tmp, path, parent }
}

type Result = (Removed, std::result::Result<End, RemoveError>);

impl Tree {
    fn remove(&self, schedule: Schedule) -> Ran<Result> {
        let jobs = NonZeroUsize::new(4).unwrap();
        let id = self.parent.meta("t").unwrap().id;
        let stop = Stop::never();
        let order =
            Order { parent: &self.parent, name: b"t", id, last: b".git", jobs, stop: &stop, progress: &() };
        run(schedule, || remove_tree(&order))
    }

    fn is_gone(&self) -> bool {
        self.path.join("t").symlink_metadata().is_err()
    }

    /// What is left still says what it is, unless it is empty.
    fn assert_whole(&self, when: &str) {
        let empty = std::fs::read_dir(self.path.join("t")).is_ok_and(|mut all| all.next().is_none());
        assert!(self.is_gone() || empty || self.path.join("t/.git").exists(), "{when}");
    }
}

/// Calls of a run that nothing disturbs: 9 files, and 11 directories with the top.
const CALLS: usize = 20;

fn schedules(fault: impl Fn(usize) -> Option<(usize, Fault)>) -> impl Iterator<Item = Schedule> {
    let holds = (1..=CALLS).flat_map(|at| [1, 3, 9].map(|more| (at, more)));
    holds.enumerate().map(move |(n, hold)| Schedule { hold: Some(hold), fault: fault(n) })
}

#[test]
fn whoever_is_overtaken_all_of_it_goes_once() {
    let mut held = 0;
    for schedule in schedules(|_| None) {
        let tree = tree();
        let ran = tree.remove(schedule);
        let (removed, end) = ran.result.unwrap();
        assert_eq!(end.unwrap(), End::Complete, "{schedule:?}");
        assert_eq!((removed.files, removed.directories), (9, 11), "{schedule:?}");
        assert_eq!(ran.calls, CALLS, "{schedule:?}");
        assert!(tree.is_gone());
        held += usize::from(ran.held);
    }
    // Of the last ones nobody is left to overtake them.
    assert!(held > CALLS, "others went on in only {held} runs");
}

#[test]
fn whoever_is_killed_the_next_run_goes_on() {
    for schedule in schedules(|n| Some((1 + n * 7 % CALLS, Fault::Kill))) {
        let tree = tree();
        assert!(tree.remove(schedule).result.is_none(), "{schedule:?}");
        let when = format!("{schedule:?}");
        tree.assert_whole(&when);
        assert!(!tree.is_gone(), "{when}");
        let (_, end) = tree.remove(Schedule::default()).result.unwrap();
        assert_eq!(end.unwrap(), End::Complete, "{when}");
        assert!(tree.is_gone(), "{when}");
    }
}

#[test]
fn whoever_fails_is_named_and_the_next_run_goes_on() {
    for schedule in schedules(|n| Some((1 + n * 5 % CALLS, Fault::Error(Errno::IO)))) {
        let tree = tree();
        let when = format!("{schedule:?}");
        let (removed, end) = tree.remove(schedule).result.unwrap();
        assert!(matches!(end, Err(RemoveError::Io { .. })), "{when}: {end:?}");
        assert!(removed.files + removed.directories < CALLS as u64, "{when}");
        tree.assert_whole(&when);
        let (_, end) = tree.remove(Schedule::default()).result.unwrap();
        assert_eq!(end.unwrap(), End::Complete, "{when}");
        assert!(tree.is_gone(), "{when}");
    }
}

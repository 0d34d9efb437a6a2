//! Failpoints for the workers of one removal: the changing calls of all its threads are counted together, one of them is
//! held until the others have made some more, and one of them is the last, or fails.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::faults::{Fault, Killed, quiet_kills};

/// The others may have nothing left to do, or wait for the one that is held.
const HELD_AT_MOST: Duration = Duration::from_millis(20);

/// What happens at which call, counted from 1 over all threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schedule {
    /// This call is held until so many more were made.
    pub hold: Option<(usize, usize)>,
    pub fault: Option<(usize, Fault)>,
}

pub struct Points {
    schedule: Schedule,
    seen: Mutex<Seen>,
    more: Condvar,
}

#[derive(Default)]
struct Seen {
    calls: usize,
    /// A kill ends all threads.
    killed: bool,
    /// A call was held until the others had made theirs.
    held: bool,
}

thread_local! {
    static POINTS: RefCell<Option<Arc<Points>>> = const { RefCell::new(None) };
}

/// What a thread that this one starts has to [`enter`].
pub fn of_this_thread() -> Option<Arc<Points>> {
    POINTS.with_borrow(Clone::clone)
}

pub fn enter(points: Option<Arc<Points>>) {
    POINTS.set(points);
}

pub(super) fn gate() -> Result<(), Errno> {
    match of_this_thread() {
        Some(points) => points.gate(),
        None => Ok(()),
    }
}

impl Points {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn gate(&self) -> Result<(), Errno> {
        let mut seen = self.lock();
        seen.calls += 1;
        self.more.notify_all();
        let this = seen.calls;
        if let Some((_, more)) = self.schedule.hold.filter(|(at, _)| *at == this) {
            let until = Instant::now() + HELD_AT_MOST;
            while seen.calls < this + more && !seen.killed {
                let Some(left) = until.checked_duration_since(Instant::now()) else { break };
                seen = self.more.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
            }
            seen.held = seen.calls >= this + more;
        }
        match self.schedule.fault.filter(|(at, _)| *at == this) {
            Some((_, Fault::Error(errno))) => return Err(errno),
            Some((_, Fault::Kill)) => seen.killed = true,
            None => {}
        }
        if seen.killed {
            self.more.notify_all();
            drop(seen);
            panic_any(Killed);
        }
        Ok(())
    }
}

/// What came of a run.
pub struct Ran<T> {
    /// `None` if it was killed.
    pub result: Option<T>,
    /// Changing calls of all threads.
    pub calls: usize,
    /// Whether others went on while a call was held.
    pub held: bool,
}

/// Runs `act`, and all threads that it starts, by `schedule`.
pub fn run<T>(schedule: Schedule, act: impl FnOnce() -> T) -> Ran<T> {
    quiet_kills();
    let points = Arc::new(Points { schedule, seen: Mutex::default(), more: Condvar::new() });
    enter(Some(Arc::clone(&points)));
    let result = catch_unwind(AssertUnwindSafe(act));
    enter(None);
    let seen = points.lock();
    match result {
        Ok(value) => Ran { result: Some(value), calls: seen.calls, held: seen.held },
        // A scope that a thread dies in panics with words of its own.
        Err(_) if seen.killed => Ran { result: None, calls: seen.calls, held: seen.held },
        Err(payload) => std::panic::resume_unwind(payload),
    }
}

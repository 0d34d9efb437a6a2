//! Random states of a worktree, compared with what `git status` says of them.
//!
//! Every state comes from a seed, which is printed when the two disagree. `TREESWEEP_STATES` sets how many states are
//! tried (300 by default), `TREESWEEP_SEED` the first seed; with `TREESWEEP_KEEP` the states that differ stay on disk.

mod compare;
mod git;
mod random;
mod state;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| value.parse().expect("a number"))
}

#[test]
fn what_git_status_says_is_what_the_walk_finds() {
    let first = from_env("TREESWEEP_SEED").unwrap_or(1);
    let count = from_env("TREESWEEP_STATES").unwrap_or(300);
    let next = AtomicU64::new(first);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + count {
                        break;
                    }
                    let state = state::State::build(seed);
                    let wrong = compare::differences(&state);
                    if !wrong.is_empty() {
                        let text = format!("seed {seed}: {}\nmade by: {}", wrong.join("\n  "), state.story());
                        let kept = std::env::var_os("TREESWEEP_KEEP").map(|_| state.keep());
                        failures.lock().unwrap().push(format!("{text}\n{}", kept.unwrap_or_default()));
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {count} states differ:\n{}", failures.len(), failures.join("\n\n"));
}

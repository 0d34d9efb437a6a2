//! Random states of a worktree, compared with what `git status` says of them.
//!
//! Every state comes from a seed, which is printed when the two disagree. `TREESWEEP_STATES` sets how many states are
//! tried (300 by default), `TREESWEEP_SEED` the first seed; with `TREESWEEP_KEEP` the states that differ stay on disk.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod compare;
mod git;
mod patterns;
mod pool;
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
    let work = || {
        while let Some(seed) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < first + count)
        {
            let state = state::State::build(seed);
            let wrong = compare::differences(&state);
            if !wrong.is_empty() {
                let text = format!("seed {seed}: {}\nmade by: {}", wrong.join("\n  "), state.story());
                let kept = std::env::var_os("TREESWEEP_KEEP").map(|_| state.keep());
                failures.lock().unwrap().push(format!("{text}\n{}", kept.unwrap_or_default()));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(work);
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {count} states differ:\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn random_patterns_ignore_what_they_ignore_for_git() {
    let first = from_env("TREESWEEP_SEED").unwrap_or(1);
    let count = from_env("TREESWEEP_STATES").unwrap_or(300);
    let wrong = patterns::differences(first, count);
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
}

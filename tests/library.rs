//! treesweep as a library: the plan and the sweep without the command line.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::sync::atomic::{AtomicU64, Ordering};

use common::env::{EAGER, TestEnv};
use common::git::HostClone;
use treesweep::config::{Engines, Layer, Origin, Setting, Sources};
use treesweep::library::{Event, Progress, Silent, Treesweep};
use treesweep::plan::{ResultKind, VerdictKind};

fn setting<T>(value: T) -> Setting<T> {
    Setting::new(value, Origin::Flag("library"))
}

/// With nothing of the user's who runs the tests.
fn treesweep(env: &TestEnv) -> Treesweep {
    let flags = Layer {
        roots: vec![setting(env.src())],
        idle: Some(setting(std::time::Duration::ZERO)),
        unstarted_after: Some(setting(std::time::Duration::ZERO)),
        engines: Some(setting(Engines::None)),
        ..Layer::default()
    };
    let state = env.root().join("state/treesweep");
    Treesweep::with(Sources { flags, ..Sources::default() }, &state).expect("settings")
}

#[derive(Default)]
struct Freed(AtomicU64);

impl Progress for Freed {
    fn tell(&self, event: Event<'_>) {
        if let Event::Freed(bytes) = event {
            self.0.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

#[test]
fn another_program_sees_the_plan_and_sweeps_what_is_enrolled() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    for name in ["done", "spike"] {
        clone.add_landed(name);
    }
    env.treesweep(&["setup", "done"]).args(EAGER).current_dir(&clone.path).assert().success();
    let treesweep = treesweep(&env);
    let survey = treesweep.survey(&Silent).expect("a survey");
    let verdict = |name: &str| {
        let all = survey.plan().clones.iter().flat_map(|clone| &clone.worktrees);
        all.into_iter()
            .find(|row| row.name.text.as_deref() == Some(name))
            .map(|row| row.verdict)
            .expect("a row")
    };
    assert_eq!((verdict("done"), verdict("spike")), (VerdictKind::Reclaim, VerdictKind::Offer));
    let freed = Freed::default();
    let report = survey.sweep(&freed).expect("a sweep");
    let results: Vec<_> =
        report.outcomes.iter().map(|o| (o.name.text.clone().unwrap_or_default(), o.result)).collect();
    assert_eq!(results, [("done".to_owned(), ResultKind::Removed)]);
    assert!(freed.0.into_inner() > 0);
    assert_eq!(clone.entries(), ["spike"]);
    assert!(!clone.path.join(".worktrees/done").exists() && clone.path.join(".worktrees/spike").exists());
}

#[test]
fn a_root_that_is_not_there_is_an_error() {
    let env = TestEnv::new();
    let flags = Layer { roots: vec![setting(env.root().join("nowhere"))], ..Layer::default() };
    let state = env.root().join("state");
    let error = Treesweep::with(Sources { flags, ..Sources::default() }, &state).err().expect("an error");
    assert!(error.to_string().contains("nowhere"), "{error}");
}

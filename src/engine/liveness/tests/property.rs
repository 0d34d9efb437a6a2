//! Facts only add holds.

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as Up, MountPoint};
use proptest::prelude::*;

use super::builder::*;
use super::*;

/// A few places that lie in every way to the checkout, and in and out of each other.
fn any_source() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "/",
        "/src",
        CLONE,
        CHECKOUT,
        "/src/app/.worktrees/x/y",
        "/src/app/.worktrees/y",
        "/host_mnt/src/app",
        "C:\\x",
        "",
    ])
}

fn any_mount() -> impl Strategy<Value = MountPoint> {
    let destination = prop::sample::select(vec![
        "/workspaces/app",
        "/workspaces",
        "/",
        RECORDED,
        "/w",
        "/workspaces/app/.worktrees",
    ]);
    let kind = prop::sample::select(vec![Some("bind"), Some("volume"), Some("tmpfs"), Some("new"), None]);
    (any_source(), destination, kind, any::<bool>()).prop_map(|(source, destination, kind, named)| {
        MountPoint { typ: kind.map(Into::into), name: named.then(|| "v".into()), ..bind(source, destination) }
    })
}

fn any_container() -> impl Strategy<Value = (ContainerSummary, Inspected)> {
    let state =
        prop::sample::select(vec![Up::RUNNING, Up::PAUSED, Up::EMPTY, Up::CREATED, Up::EXITED, Up::DEAD]);
    let dir = prop::sample::select(vec![
        None,
        Some(""),
        Some("/workspaces/app"),
        Some(RECORDED),
        Some("/w/.worktrees/x"),
    ]);
    let inspected = prop::option::of((prop::sample::select(vec![0, i64::from(INIT), 501]), dir));
    let mounts = prop::collection::vec(any_mount(), 0..3);
    let compose = prop::option::of(any_source());
    (0..4u64, state, mounts, compose, inspected).prop_map(|(n, state, mounts, compose, inspected)| {
        let plain = summary(n, state, mounts);
        let label = "com.docker.compose.project.working_dir";
        (compose.map_or(plain.clone(), |dir| labelled(plain, label, dir)), inspected)
    })
}

fn any_process() -> impl Strategy<Value = Seen> {
    let chain = prop::sample::select(vec![&[][..], &[ABOVE], &[CHECKOUT_ID, ABOVE]]);
    (2..9u32, prop::option::of(0..4u64), chain, any::<bool>()).prop_map(|(pid, n, chain, denied)| {
        let access = if denied { Access::Denied } else { Access::Whole };
        let seen = n.map_or_else(|| process(pid, chain), |n| contained(pid, n, chain));
        Seen { access, ..seen }
    })
}

fn any_world() -> impl Strategy<Value = Builder> {
    let own = prop::sample::select(vec![OwnContainer::No, OwnContainer::Unnamed, OwnContainer::Named(id(8))]);
    let containers = prop::collection::vec(any_container(), 0..3);
    let processes = prop::collection::vec(any_process(), 0..4);
    (own, containers, processes, any::<bool>()).prop_map(|(own, containers, mut processes, with_init)| {
        processes.push(process(SELF, &[]));
        if with_init {
            processes.extend([contained(INIT, 1, &[ABOVE]), contained(501, 2, &[ABOVE])]);
        }
        Builder { own, containers, processes, ..world() }
    })
}

/// Reasons without their words: which container, which code. What is said of it may become more.
fn kinds(builder: &Builder, subject: &Subject, mode: LiveMode) -> Vec<String> {
    let kind = |hold: &Hold| match hold {
        // Of a container that no engine told of; once one does, it has a name.
        Hold::LiveContainer { container, .. } if container.starts_with("process ") => hold.code().to_owned(),
        Hold::LiveContainer { container, .. } | Hold::ContainerBound { container, .. } => {
            format!("{} {container}", hold.code())
        }
        Hold::LivenessUnknown(Unknown::Unplaceable { container, .. }) => {
            format!("{} {container}", hold.code())
        }
        Hold::ProcessInside(holder) | Hold::CurrentWorktree(holder) => {
            format!("{} {}", hold.code(), holder.pid)
        }
        other => other.to_string(),
    };
    holds(subject, &builder.clone().build(), mode).iter().map(kind).collect()
}

proptest! {
    #[test]
    fn more_facts_never_remove_a_hold(
        before in any_world(),
        container in any_container(),
        mount in any_mount(),
        process in any_process(),
        mode in prop::sample::select(vec![LiveMode::Used, LiveMode::Mounted]),
        subject in prop::sample::select(vec![foreign(), ours()]),
    ) {
        let held = kinds(&before, &subject, mode);
        let mut with_mount = before.clone();
        if let Some((summary, _)) = with_mount.containers.first_mut() {
            summary.mounts.get_or_insert_default().push(mount);
        }
        // The process is no awaited init: their pids are greater.
        let more = [before.clone().container(container.0, container.1), before.process(process), with_mount];
        for after in more {
            let now = kinds(&after, &subject, mode);
            let still = |hold: &String| now.iter().any(|n| n == hold || hold == "live-container" && n.starts_with(hold));
            prop_assert!(held.iter().all(still), "{held:?} became {now:?}");
        }
    }
}

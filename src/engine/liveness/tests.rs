//! Tables of who holds what.

use bollard::models::{ContainerSummary, ContainerSummaryStateEnum as Up, MountPoint};

use super::*;
use crate::engine::client::EngineState;
use crate::engine::endpoints::Origin;
use crate::engine::foreign::ForeignNamespace;
use crate::engine::processes::{Access, Seen, View};
use crate::vantage::mountinfo::MountTable;

mod builder;
mod property;

use builder::*;

const LIVE: &[&str] = &["live-container"];
const BOUND: &[&str] = &["container-bound"];
const UNKNOWN: &[&str] = &["liveness-unknown"];
const NOTHING: &[&str] = &[];

#[test]
fn a_mount_holds_by_where_it_lies_and_whether_the_container_is_up() {
    let sources = [
        (CHECKOUT, LIVE, BOUND),
        ("/src/app/.worktrees/x/node_modules", LIVE, BOUND),
        // Not looked into: there is no init to ask.
        (CLONE, LIVE, NOTHING),
        ("/", LIVE, NOTHING),
        ("/src/app/.worktrees", LIVE, NOTHING),
        ("/src/app/.worktrees/xy", NOTHING, NOTHING),
        ("/src/app/.worktrees/y", NOTHING, NOTHING),
        ("/src/app-b", NOTHING, NOTHING),
    ];
    for (source, up, down) in sources {
        for (state, expected) in [
            (Up::RUNNING, up),
            (Up::PAUSED, up),
            (Up::RESTARTING, up),
            (Up::STOPPING, up),
            (Up::EMPTY, up),
            (Up::CREATED, down),
            (Up::EXITED, down),
            (Up::DEAD, down),
            (Up::REMOVING, down),
        ] {
            for subject in [foreign(), ours()] {
                let world = world().container(summary(1, state, vec![bind(source, "/w")]), None);
                assert_eq!(world.codes(&subject, LiveMode::Used), expected, "{source} {state}");
            }
        }
    }
}

#[test]
fn a_running_container_with_a_mount_above_is_looked_into() {
    let in_clone = Some("/workspaces/app");
    let inside = Some("/workspaces/app/.worktrees/x/src");
    let looked = |inspected, processes: Vec<Seen>| {
        let up = summary(1, Up::RUNNING, vec![bind(CLONE, "/workspaces/app")]);
        let mut world = world().container(up, inspected);
        world.processes.extend(processes);
        world
    };
    let pid = i64::from(INIT);
    let init = || contained(INIT, 1, &[ABOVE]);
    let busy = contained(501, 1, &[CHECKOUT_ID, ABOVE]);
    let denied = Seen { access: Access::Denied, ..contained(501, 1, &[]) };
    let stranger = process(INIT, &[]);
    let both: &[&str] = &["process-inside", "live-container"];
    for (name, inspected, processes, expected) in [
        ("idle", Some((pid, in_clone)), vec![init()], NOTHING),
        ("idle in /", Some((pid, Some(""))), vec![init()], NOTHING),
        ("idle, another is not in it", Some((pid, in_clone)), vec![init(), process(502, &[ABOVE])], NOTHING),
        ("works inside", Some((pid, inside)), vec![init()], LIVE),
        ("works nowhere known", Some((pid, None)), vec![init()], LIVE),
        ("works at a relative path", Some((pid, Some("x"))), vec![init()], LIVE),
        ("has a process inside", Some((pid, in_clone)), vec![init(), busy], both),
        ("has a process of another user", Some((pid, in_clone)), vec![init(), denied], LIVE),
        ("its init is not found", Some((pid, in_clone)), vec![], LIVE),
        ("its init is another's", Some((pid, in_clone)), vec![stranger], LIVE),
        ("it has no init", Some((0, in_clone)), vec![init()], LIVE),
        ("it was not inspected", None, vec![init()], LIVE),
    ] {
        assert_eq!(
            looked(inspected, processes.clone()).codes(&foreign(), LiveMode::Used),
            expected,
            "{name}"
        );
        let mounted = looked(inspected, processes).codes(&foreign(), LiveMode::Mounted);
        assert!(mounted.contains(&"live-container"), "{name}: --live mounted");
    }
    for view in [View::OtherNamespace, View::OthersHidden] {
        let world = Builder { view, ..looked(Some((pid, in_clone)), vec![init()]) };
        assert_eq!(world.codes(&foreign(), LiveMode::Used), LIVE, "{view:?}");
    }
    let sandboxed = Builder { foreign: Vec::new(), ..looked(Some((pid, in_clone)), vec![init()]) };
    assert_eq!(
        sandboxed.codes(&foreign(), LiveMode::Used),
        LIVE,
        "its init is a sandbox, not one of its processes"
    );
    let mut unknown = looked(Some((pid, in_clone)), vec![init()]);
    unknown.containers[0].0.state = None;
    assert_eq!(unknown.codes(&foreign(), LiveMode::Used), LIVE, "it may run");
}

#[test]
fn a_working_directory_is_looked_for_through_every_mount() {
    let work = |mounts, dir| {
        world()
            .container(summary(1, Up::RUNNING, mounts), Some((i64::from(INIT), Some(dir))))
            .process(contained(INIT, 1, &[ABOVE]))
            .codes(&foreign(), LiveMode::Used)
    };
    let clone = || bind(CLONE, "/w");
    let volume = MountPoint {
        typ: Some("volume".into()),
        name: Some("v".into()),
        destination: Some("/data".into()),
        ..Default::default()
    };
    assert_eq!(work(vec![clone(), volume.clone()], "/data/x"), NOTHING, "a volume is no checkout");
    assert_eq!(work(vec![clone(), volume], "/w/.worktrees/x"), LIVE);
    assert_eq!(work(vec![clone(), bind("/elsewhere", "/w/.worktrees/x")], "/w/.worktrees/x"), LIVE);
    assert_eq!(work(vec![clone(), bind("C:\\Users", "/win")], "/win/app"), LIVE, "not to be placed");
    assert_eq!(work(vec![clone()], "/opt"), NOTHING, "in the container's own layer");
}

#[test]
fn a_compose_project_holds_where_it_lives_only() {
    let project = |state, dir| {
        let up = summary(1, state, vec![]);
        let up = labelled(up, "com.docker.compose.project.working_dir", dir);
        world().container(up, None).codes(&foreign(), LiveMode::Used)
    };
    assert_eq!(project(Up::RUNNING, CHECKOUT), LIVE);
    assert_eq!(project(Up::RUNNING, "/src/app/.worktrees/x/deploy"), LIVE);
    assert_eq!(project(Up::EXITED, CHECKOUT), BOUND);
    assert_eq!(project(Up::RUNNING, CLONE), NOTHING);
    assert_eq!(project(Up::RUNNING, "C:\\x"), NOTHING);
}

#[test]
fn an_engine_that_cannot_be_asked_makes_unknown_what_it_could_affect() {
    let failures = [
        EngineState::Missing,
        EngineState::Refused,
        EngineState::PermissionDenied { group: None },
        EngineState::TimedOut,
        EngineState::Failed("junk".into()),
    ];
    for state in failures {
        let grave = matches!(state, EngineState::TimedOut | EngineState::Failed(_));
        for origin in [Origin::Configured, Origin::Found] {
            // A second engine answers, so that only the failure itself counts.
            let world = |containers: Vec<ContainerSummary>| {
                let mut one = Builder { state: state.clone(), origin, ..world() }.build();
                let mut other = Builder {
                    containers: containers.into_iter().map(|c| (c, None)).collect(),
                    ..self::world()
                };
                other.origin = Origin::Found;
                one.engines.extend(other.build().engines);
                one
            };
            let holding = origin == Origin::Configured || grave;
            let codes = |subject: &Subject, world: &World| -> Vec<&str> {
                holds(subject, world, LiveMode::Used).iter().map(Hold::code).collect()
            };
            let expected = if holding { UNKNOWN } else { NOTHING };
            assert_eq!(codes(&foreign(), &world(vec![])), expected, "{state} {origin:?}");
            assert_eq!(codes(&ours(), &world(vec![])), NOTHING, "{state} {origin:?}: not concerned");
            let mounting = summary(1, Up::EXITED, vec![bind(CLONE, "/w")]);
            assert_eq!(
                codes(&ours(), &world(vec![mounting])),
                expected,
                "{state} {origin:?}: a mount ties it"
            );
            let labels = labelled(summary(1, Up::EXITED, vec![]), "devcontainer.local_folder", CLONE);
            assert_eq!(codes(&ours(), &world(vec![labels])), expected, "{state} {origin:?}: a label ties it");
        }
    }
}

#[test]
fn when_no_engine_answers_container_paths_are_unknown_unless_there_is_none() {
    for state in [EngineState::Remote, EngineState::Ignored, EngineState::PermissionDenied { group: None }] {
        let world = || Builder { state: state.clone(), ..world() };
        assert_eq!(world().codes(&foreign(), LiveMode::Used), UNKNOWN, "{state}");
        assert_eq!(world().codes(&ours(), LiveMode::Used), NOTHING, "{state}");
    }
    let none = |choice| {
        let mut world = Builder { choice, ..world() }.build();
        world.engines.clear();
        holds(&foreign(), &world, LiveMode::Used).len()
    };
    assert_eq!(none(EngineChoice::Auto), 1);
    assert_eq!(none(EngineChoice::None), 0);
}

#[test]
fn a_source_that_cannot_be_placed_holds_what_lies_below_its_destination() {
    let unplaceable = |state, source, destination| {
        world().container(summary(1, state, vec![bind(source, destination)]), None)
    };
    let desktop = "/run/desktop/mnt/host/wsl/docker-desktop-bind-mounts/Ubuntu/0a1b";
    let up = |source, destination| unplaceable(Up::RUNNING, source, destination);
    assert_eq!(up(desktop, "/workspaces/app").codes(&foreign(), LiveMode::Used), UNKNOWN);
    assert_eq!(up("", "/workspaces").codes(&foreign(), LiveMode::Used), UNKNOWN);
    assert_eq!(up(desktop, "/workspaces/ap").codes(&foreign(), LiveMode::Used), NOTHING);
    assert_eq!(
        up(desktop, RECORDED)
            .codes(&subject("/workspaces/app/.worktrees/x/.git", RecordedBy::Foreign), LiveMode::Used),
        UNKNOWN
    );
    assert_eq!(
        unplaceable(Up::EXITED, desktop, "/workspaces/app").codes(&foreign(), LiveMode::Used),
        NOTHING
    );
    let mut silent = summary(1, Up::RUNNING, vec![]);
    silent.mounts = None;
    assert_eq!(
        world().container(silent, None).codes(&foreign(), LiveMode::Used),
        UNKNOWN,
        "it may mount anything"
    );
}

#[test]
fn our_own_container_holds_nothing() {
    let own = Builder { own: OwnContainer::Named(id(1)), ..world() };
    let world = own
        .container(summary(1, Up::RUNNING, vec![bind("/home/u/src", "/src")]), None)
        .container(summary(2, Up::RUNNING, vec![bind("/home/u/src/app-b", "/w")]), None);
    assert_eq!(world.clone().codes(&foreign(), LiveMode::Mounted), NOTHING);
    let busy = world.container(summary(3, Up::RUNNING, vec![bind("/home/u/src/app", "/w")]), None);
    assert_eq!(busy.codes(&foreign(), LiveMode::Mounted), LIVE, "placed through our own mounts");
}

#[test]
fn in_a_container_that_the_engine_does_not_list_both_readings_hold() {
    let guess = || Builder { own: OwnContainer::Named(id(9)), ..world() };
    let literal = guess().container(summary(1, Up::RUNNING, vec![bind(CHECKOUT, "/w")]), None);
    assert_eq!(literal.codes(&foreign(), LiveMode::Used), LIVE);
    let elsewhere =
        guess().container(summary(1, Up::RUNNING, vec![bind("/home/u/app", "/workspaces/app")]), None);
    assert_eq!(elsewhere.codes(&foreign(), LiveMode::Used), UNKNOWN);
}

#[test]
fn processes_hold_whatever_the_engines_say() {
    let none = Builder { choice: EngineChoice::None, ..world() };
    let world = none.process(process(600, &[FileId { dev: 1, ino: 99 }, CHECKOUT_ID, ABOVE]));
    assert_eq!(world.codes(&foreign(), LiveMode::Used), ["process-inside"]);
    let parent =
        Builder { processes: vec![process(SELF, &[]), process(PARENT, &[CHECKOUT_ID])], ..self::world() };
    assert_eq!(parent.codes(&ours(), LiveMode::Used), ["current-worktree"]);
}

#[test]
fn an_absent_checkout_is_held_by_its_place() {
    let absent = Subject { checkout: Checkout::Absent { path: local(CHECKOUT) }, ..foreign() };
    let unknown = Subject { checkout: Checkout::Unknown, ..foreign() };
    for (source, expected) in [(CHECKOUT, LIVE), (CLONE, LIVE), ("/src/app-b", NOTHING)] {
        let world = || world().container(summary(1, Up::RUNNING, vec![bind(source, "/w")]), None);
        assert_eq!(world().codes(&absent, LiveMode::Used), expected, "{source}");
        assert_eq!(world().codes(&unknown, LiveMode::Used), NOTHING, "{source}");
    }
}

fn namespace(n: u64, mounts: &str) -> ForeignNamespace {
    let mounts = MountTable::parse(mounts.as_bytes()).unwrap();
    ForeignNamespace { id: None, pid: 700, command: "x".into(), containers: vec![id(n)], mounts }
}

#[test]
fn a_container_that_no_engine_knows_is_found_by_its_mounts() {
    let shows = "1 0 0:50 / / rw - overlay o rw\n2 1 8:1 /src/app/.worktrees/x /w rw - ext4 d rw\n";
    let other = "1 0 0:50 / / rw - overlay o rw\n2 1 8:1 /src/app /w rw - ext4 d rw\n";
    let world = |mounts| Builder { foreign: vec![namespace(1, mounts)], ..world() };
    assert_eq!(world(shows).codes(&foreign(), LiveMode::Used), LIVE);
    assert_eq!(world(other).codes(&foreign(), LiveMode::Used), NOTHING);
    let known = world(shows).container(summary(1, Up::RUNNING, vec![bind(CHECKOUT, "/w")]), None);
    assert_eq!(known.codes(&foreign(), LiveMode::Used), LIVE, "said once");
    let own = Builder { own: OwnContainer::Named(id(1)), ..world(shows) };
    assert_eq!(own.codes(&foreign(), LiveMode::Used), NOTHING);
}

#[test]
fn a_container_that_no_engine_knows_is_looked_into_if_it_sees_what_lies_above() {
    let init = |access| Seen { access, ..contained(INIT, 1, &[]) };
    let one = |state: EngineState, access| Builder { state, ..world() }.process(init(access));
    for state in [
        EngineState::PermissionDenied { group: None },
        EngineState::Missing,
        EngineState::Answered { api_version: "1.44".into() },
    ] {
        let codes = |access| one(state.clone(), access).codes(&ours(), LiveMode::Used);
        assert_eq!(codes(Access::Denied), LIVE, "{state}");
        assert_eq!(codes(Access::Whole), NOTHING, "{state}: nobody is in it");
    }
    let stranger = Seen { containers: Some(Vec::new()), ..init(Access::Denied) };
    let service =
        Builder { foreign: vec![ForeignNamespace { containers: Vec::new(), ..namespace_of(1) }], ..world() };
    assert_eq!(service.process(stranger).codes(&ours(), LiveMode::Used), NOTHING, "it is no container");
    let own = Builder { own: OwnContainer::Named(id(1)), ..world() };
    assert_eq!(own.process(init(Access::Denied)).codes(&ours(), LiveMode::Used), NOTHING);
}

#[test]
fn details_name_who_and_why() {
    let up = summary(1, Up::RUNNING, vec![bind(CLONE, "/workspaces/app")]);
    let down = summary(2, Up::EXITED, vec![bind(CHECKOUT, "/w")]);
    let world = world().container(up, Some((4_194_999, None))).container(down, None);
    let text: Vec<_> =
        holds(&foreign(), &world.build(), LiveMode::Used).iter().map(Hold::to_string).collect();
    insta::assert_snapshot!(text.join("\n"), @r"
    container c1 (000000000000) is up and mounts /src/app, which contains it; whether it is in use there is not known: its working directory is not known
    container c2 (000000000000) is stopped and mounts /src/app/.worktrees/x: it could not start again
    ");
}

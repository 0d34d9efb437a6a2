//! Worlds for the tables, made of what engines and `/proc` say.

use bollard::models::{
    ContainerConfig, ContainerInspectResponse, ContainerState as InspectedState, ContainerSummary,
    ContainerSummaryStateEnum as Up, MountPoint,
};

use super::super::*;
use crate::engine::client::EngineState;
use crate::engine::endpoints::{Address, Endpoint, Origin};
use crate::engine::foreign::ForeignNamespace;
use crate::engine::processes::{Access, Asker, Held, HeldPlace, ProcessTable, Seen, View};
use crate::engine::reading::{Reader, Volumes};
use crate::vantage::mountinfo::MountTable;

pub(super) const CLONE: &str = "/src/app";
pub(super) const CHECKOUT: &str = "/src/app/.worktrees/x";
pub(super) const RECORDED: &str = "/workspaces/app/.worktrees/x";
pub(super) const OWN_MOUNTS: &str = "1 0 8:1 / / rw - ext4 d rw\n";
pub(super) const CHECKOUT_ID: FileId = FileId { dev: 1, ino: 30 };
pub(super) const ABOVE: FileId = FileId { dev: 1, ino: 20 };
pub(super) const SELF: u32 = 10;
pub(super) const PARENT: u32 = 11;
pub(super) const INIT: u32 = 500;

pub(super) fn id(n: u64) -> ContainerId {
    ContainerId::new(format!("{n:064x}"))
}

pub(super) fn local(path: &str) -> LocalPath {
    LocalPath::new(path).unwrap()
}

pub(super) fn mounts() -> MountTable {
    MountTable::parse(OWN_MOUNTS.as_bytes()).unwrap()
}

pub(super) fn bind(source: &str, destination: &str) -> MountPoint {
    MountPoint {
        typ: Some("bind".into()),
        source: Some(source.into()),
        destination: Some(destination.into()),
        ..MountPoint::default()
    }
}

pub(super) fn summary(n: u64, state: Up, mounts: Vec<MountPoint>) -> ContainerSummary {
    ContainerSummary {
        id: Some(id(n).as_str().into()),
        names: Some(vec![format!("/c{n}")]),
        state: Some(state),
        mounts: Some(mounts),
        ..ContainerSummary::default()
    }
}

pub(super) fn labelled(mut summary: ContainerSummary, label: &str, value: &str) -> ContainerSummary {
    summary.labels.get_or_insert_default().insert(label.into(), value.into());
    summary
}

/// What `inspect` answers: pid and working directory.
pub(super) type Inspected = Option<(i64, Option<&'static str>)>;

#[derive(Clone, Debug)]
pub(super) struct Builder {
    pub(super) choice: EngineChoice,
    pub(super) state: EngineState,
    pub(super) origin: Origin,
    pub(super) containers: Vec<(ContainerSummary, Inspected)>,
    pub(super) processes: Vec<Seen>,
    pub(super) view: View,
    pub(super) foreign: Vec<ForeignNamespace>,
    pub(super) own: OwnContainer,
}

pub(super) fn world() -> Builder {
    Builder {
        choice: EngineChoice::Auto,
        state: EngineState::Answered { api_version: "1.44".into() },
        origin: Origin::Found,
        containers: Vec::new(),
        processes: vec![process(1, &[]), process(SELF, &[])],
        view: View::All,
        foreign: (0..4).map(namespace_of).collect(),
        own: OwnContainer::No,
    }
}

pub(super) fn process(pid: u32, chain: &[FileId]) -> Seen {
    Seen {
        pid,
        command: "cmd".into(),
        containers: Some(Vec::new()),
        mount_namespace: Some(1),
        places: vec![HeldPlace { what: Held::Cwd, chain: chain.iter().copied().collect() }],
        access: Access::Whole,
    }
}

/// The mount namespace of a container that mounts the clone and what lies above it.
pub(super) fn namespace_of(n: u64) -> ForeignNamespace {
    let mounts = "1 0 0:50 / / rw - overlay o rw\n2 1 8:1 /src/app /workspaces/app rw - ext4 d rw\n\
                  3 1 8:1 / /w rw - ext4 d rw\n4 1 8:1 /src /s rw - ext4 d rw\n";
    let mounts = MountTable::parse(mounts.as_bytes()).unwrap();
    ForeignNamespace { id: Some(100 + n), pid: INIT, command: "cmd".into(), containers: vec![id(n)], mounts }
}

pub(super) fn contained(pid: u32, n: u64, chain: &[FileId]) -> Seen {
    Seen { containers: Some(vec![id(n)]), mount_namespace: Some(100 + n), ..process(pid, chain) }
}

impl Builder {
    pub(super) fn container(mut self, summary: ContainerSummary, inspected: Inspected) -> Self {
        self.containers.push((summary, inspected));
        self
    }

    pub(super) fn process(mut self, process: Seen) -> Self {
        self.processes.push(process);
        self
    }

    pub(super) fn build(self) -> World {
        let mounts = mounts();
        let summaries: Vec<_> = self.containers.iter().map(|(summary, _)| summary.clone()).collect();
        let reader = Reader::new(&summaries, Volumes::default(), &self.own, None, &mounts);
        let read = |(summary, inspected): &(ContainerSummary, Inspected)| {
            let mut container = reader.container(summary.clone());
            if let Some((pid, working_dir)) = inspected {
                let answer = ContainerInspectResponse {
                    state: Some(InspectedState { pid: Some(*pid), ..Default::default() }),
                    config: Some(ContainerConfig {
                        working_dir: working_dir.map(Into::into),
                        ..Default::default()
                    }),
                    ..Default::default()
                };
                container.init = reader.init(answer, &container.mounts);
            }
            container
        };
        let containers = self.containers.iter().map(read).collect();
        let endpoint = Endpoint {
            name: "docker".into(),
            address: Address::Unix("/var/run/docker.sock".into()),
            origin: self.origin,
        };
        let engines = vec![Engine { endpoint, state: self.state, containers }];
        let asker = Asker { pid: SELF, line: vec![SELF, PARENT, 1], mount_namespace: Some(1) };
        let processes = ProcessTable::new(self.view, asker, self.processes, self.foreign);
        World { choice: self.choice, engines, own_container: self.own, processes, mounts }
    }

    pub(super) fn codes(self, subject: &Subject, mode: LiveMode) -> Vec<&'static str> {
        holds(subject, &self.build(), mode).iter().map(Hold::code).collect()
    }
}

pub(super) fn subject(recorded: &str, recorded_by: RecordedBy) -> Subject {
    Subject {
        checkout: Checkout::Present { path: local(CHECKOUT), id: CHECKOUT_ID },
        recorded: Some(RecordedPath::new(recorded)),
        recorded_by,
        clone: local(CLONE),
    }
}

pub(super) fn foreign() -> Subject {
    subject(RECORDED, RecordedBy::Foreign)
}

pub(super) fn ours() -> Subject {
    subject(CHECKOUT, RecordedBy::OurVantage)
}

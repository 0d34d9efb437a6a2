//! What an engine tells of a container, its labels above all: whoever starts the container writes them.

use bollard::models::{ContainerSummary, MountPoint};

use crate::engine::forms::{self, Source, Wsl};
use crate::engine::place::Placement;
use crate::engine::reading::{Reader, Volumes};
use crate::fuzzing::assert_tame;
use crate::vantage::mountinfo::MountTable;
use crate::vantage::own_container::OwnContainer;
use crate::vantage::paths::{LocalPath, RecordedPath};

/// Lines of text: the container's name, its two labels, and source and destination of each mount.
pub fn label(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines: Vec<&str> = text.split('\n').collect();
    let line = |at: usize| lines.get(at).map(|line| (*line).to_owned()).unwrap_or_default();
    let labels =
        [("devcontainer.local_folder", line(1)), ("com.docker.compose.project.working_dir", line(2))];
    let mounts = lines.iter().skip(3).take(8).collect::<Vec<_>>();
    let mounts = mounts.chunks(2).map(|mount| MountPoint {
        typ: Some("bind".into()),
        source: Some((*mount[0]).to_owned()),
        destination: mount.get(1).map(|to| (**to).to_owned()),
        ..MountPoint::default()
    });
    let summary = ContainerSummary {
        id: Some("0123456789abcdef".into()),
        names: Some(vec![line(0)]),
        labels: Some(labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        mounts: Some(mounts.collect()),
        ..ContainerSummary::default()
    };
    let wsl = Wsl { distro: Some("Ubuntu".into()) };
    for wsl in [None, Some(&wsl)] {
        read(summary.clone(), wsl);
        spelled(&line(1), wsl);
    }
}

fn read(summary: ContainerSummary, wsl: Option<&Wsl>) {
    let table = MountTable::parse(b"1 0 8:1 / / rw - ext4 d rw\n").expect("a table");
    let reader = Reader::new(&[], Volumes::default(), &OwnContainer::No, wsl, &table);
    let container = reader.container(summary);
    assert_tame(&container.described());
    for folder in [&container.local_folder, &container.compose_dir].into_iter().flatten() {
        assert_tame(&folder.text);
        sound(&folder.place);
    }
    for mount in &container.mounts {
        assert_tame(&mount.source.to_string());
        sound(&mount.place);
        let Some(to) = &mount.destination else { continue };
        assert!(to.is_absolute() && to.normalized().as_ref() == Some(to), "{to:?}");
        let inside = RecordedPath::new([to.as_bstr().as_ref(), &b"/x"[..]].concat());
        if let (Some(at), Some(base)) = (mount.locate(&inside), mount.place.known()) {
            assert!(at.is_beneath_or_at(base.resolved()), "{at:?} is outside of {base:?}");
        }
    }
}

/// A place is where a path of this host leads, with nothing left to resolve in it.
fn sound(place: &Placement) {
    if let Placement::At(place) | Placement::Perhaps(place) = place {
        for path in [place.path(), place.resolved()] {
            assert_eq!(LocalPath::new(path.as_path()).as_ref(), Some(path));
        }
    }
}

fn spelled(text: &str, wsl: Option<&Wsl>) {
    match (forms::host_path(text, wsl), Source::of_mount(text, wsl)) {
        (Some(path), source) => {
            assert!(path.as_bstr().starts_with(b"/"), "{path:?}");
            assert_ne!(source, Source::Absent);
        }
        (None, Source::Host(path)) => panic!("{path:?} as a mount and not as a label"),
        (None, _) => {}
    }
}

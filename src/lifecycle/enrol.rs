//! Enrolment: a person's act that records, in the exact entry and in the state directory, that this lifecycle may
//! reclaim a worktree (decision record 0315).

use std::io;

use crate::beneath::{Dir, Refused};
use crate::git::registration::{Head, Registration};
use crate::state_dir::{StateDir, StateError};
use crate::survey::absence::file_system_of;
use crate::survey::discover::CloneSite;
use crate::sweep::bytes::Bytes;
use crate::sweep::marker::{self, FileSystem, Marker};
use crate::vantage::paths::LocalPath;

/// Why a worktree could not be enrolled.
#[derive(Debug, thiserror::Error)]
pub enum EnrolError {
    #[error(transparent)]
    State(#[from] StateError),
    #[error("{path}: the marker could not be written: {source}")]
    Marker { path: LocalPath, source: io::Error },
    #[error("{path}: {refused}")]
    Entry { path: LocalPath, refused: Refused },
    #[error("the administrative entry was replaced while it was looked at; try again")]
    Replaced,
    #[error("its registration can't be read: {0}")]
    Unreadable(String),
}

/// Writes the record into the state directory and then the ready marker into the exact administrative entry: a marker
/// without its record owns less than both do, a record without a marker owns nothing.
pub fn enrol(
    state: &StateDir,
    site: &CloneSite,
    registration: &Registration,
    checkout: &LocalPath,
) -> Result<(), EnrolError> {
    let entry = entry(site, registration)?;
    let recorded = registration.recorded.as_ref().map_err(|e| EnrolError::Unreadable(e.0.clone()))?;
    let branch = match registration.head.as_ref().map_err(|e| EnrolError::Unreadable(e.0.clone()))? {
        Head::Branch(name) => Some(Bytes::new(name.clone())),
        Head::Detached(_) => None,
    };
    let failed = |source| EnrolError::Marker { path: entry.path().clone(), source };
    let now = file_system_of(checkout).map_err(failed)?;
    let marker = Marker {
        schema: marker::SCHEMA,
        name: Bytes::new(registration.name.as_bstr()),
        branch,
        vantage: state.vantage_or_new()?,
        path: Bytes::new(checkout.as_bstr()),
        recorded_path: Bytes::new(recorded.as_bstr()),
        file_system: FileSystem { id: now.id, mount_point: Bytes::new(now.mount_point) },
        time: jiff::Timestamp::now(),
    };
    let clone_state = state.clone_state(site.common_id)?;
    marker::enrol(&clone_state, &entry, &marker).map_err(failed)?;
    marker::write(&entry, &marker).map_err(failed)
}

fn entry(site: &CloneSite, registration: &Registration) -> Result<Dir, EnrolError> {
    let refused = |refused| EnrolError::Entry { path: site.common_path().clone(), refused };
    let worktrees = site.common.dir("worktrees").map_err(refused)?;
    let entry = worktrees.dir(registration.name.as_os_str()).map_err(refused)?;
    let now = entry.own_meta().map_err(refused)?.id;
    if Some(now) == registration.id { Ok(entry) } else { Err(EnrolError::Replaced) }
}

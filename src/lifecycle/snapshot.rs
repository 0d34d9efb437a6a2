//! Snapshots of registrations in the state directory: what it takes to make one again whose entry was lost.
//!
//! There is one for each entry, by its name, its identity and its recorded path. A later one of the same entry takes its
//! place; none goes because its entry is gone, for that is when it is needed.

use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::state_dir::CloneState;
use crate::survey::discover::Sighting;
use crate::sweep::atomic::Durable;
use crate::sweep::bytes::Bytes;
use crate::sweep::marker::record_name;
use crate::sweep::record::Hex;
use crate::vantage::paths::FileId;

/// The version that this program writes, and the only one that it reads.
const SCHEMA: u32 = 1;

const KIND: &str = "guarded";

/// One registration, as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshot {
    schema: u32,
    pub name: Bytes,
    /// The entry's directory.
    pub entry: FileId,
    /// What `gitdir` said, without `/.git`.
    pub recorded_path: Bytes,
    /// What the checkout's `.git` file said, where the checkout was found.
    pub pointer: Option<Bytes>,
    pub path: Option<Bytes>,
    pub checkout: Option<FileId>,
    /// Full name of HEAD's branch; none if it was detached.
    pub branch: Option<Bytes>,
    /// The commit; none if the branch had none yet.
    pub tip: Option<Hex>,
    /// When it was first seen so.
    pub time: Timestamp,
}

/// What became of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    New,
    /// An older one of the same entry was replaced.
    Updated,
    /// The known one says the same.
    Same,
}

impl Snapshot {
    /// Of the entry `entry`, called `name`, that records `recorded_path`, and of its checkout, if one was found.
    pub fn new(name: Bytes, entry: FileId, recorded_path: Bytes, checkout: Option<&Sighting>) -> Self {
        Self {
            schema: SCHEMA,
            name,
            entry,
            recorded_path,
            pointer: checkout.map(|c| Bytes::from(&c.pointer.target)),
            path: checkout.map(|c| Bytes::from(&c.path)),
            checkout: checkout.map(|c| c.id),
            branch: None,
            tip: None,
            time: Timestamp::now(),
        }
    }

    /// It is of the directory `checkout`: the same object, or the same place, with the same pointer.
    pub fn is_of(&self, checkout: &Sighting) -> bool {
        let same = self.checkout == Some(checkout.id) || self.path.as_ref() == Some(&(&checkout.path).into());
        let name = checkout.pointer.entry.as_ref().map(|(_, name)| Bytes::from(name));
        same && name.as_ref() == Some(&self.name)
            && self.pointer.as_ref() == Some(&(&checkout.pointer.target).into())
    }

    fn file(&self) -> String {
        let id = format!("{}-{}", self.entry.dev, self.entry.ino);
        record_name(&[self.name.0.as_slice(), b"\0", &self.recorded_path.0, b"\0", id.as_bytes()].concat())
    }
}

/// Keeps `snapshot`, on the disk when this returns. One that is known and was seen with a checkout stays if now none is
/// found.
pub fn keep(state: &CloneState, mut snapshot: Snapshot) -> io::Result<Kept> {
    let file = snapshot.file();
    let known = state.read(KIND, &file)?.and_then(|bytes| parse(&bytes).ok());
    let Some(known) = known else {
        state.write(KIND, &file, &serde_json::to_vec(&snapshot)?, Durable::Yes)?;
        return Ok(Kept::New);
    };
    if snapshot.checkout.is_none() {
        snapshot.pointer = known.pointer.clone();
        snapshot.path = known.path.clone();
        snapshot.checkout = known.checkout;
    }
    if (Snapshot { time: known.time, ..snapshot.clone() }) == known {
        return Ok(Kept::Same);
    }
    state.write(KIND, &file, &serde_json::to_vec(&snapshot)?, Durable::Yes)?;
    Ok(Kept::Updated)
}

/// All that are kept of a clone; those that can't be read come as why.
pub fn read_all(state: &CloneState) -> io::Result<(Vec<Snapshot>, Vec<String>)> {
    let (mut all, mut damaged) = (Vec::new(), Vec::new());
    for name in state.names(KIND)?.iter().filter(|name| name.ends_with(".json")) {
        match state.read(KIND, name)?.map(|bytes| parse(&bytes)) {
            Some(Ok(snapshot)) => all.push(snapshot),
            Some(Err(why)) => damaged.push(format!("snapshot {name}: {why}")),
            None => {}
        }
    }
    Ok((all, damaged))
}

/// The newest of `snapshots` that is of the directory `checkout`.
pub fn of<'a>(snapshots: &'a [Snapshot], checkout: &Sighting) -> Option<&'a Snapshot> {
    snapshots.iter().filter(|s| s.is_of(checkout)).max_by_key(|s| s.time)
}

fn parse(bytes: &[u8]) -> Result<Snapshot, String> {
    let snapshot: Snapshot = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    match snapshot.schema {
        SCHEMA => Ok(snapshot),
        other => Err(format!("schema {other} is not known")),
    }
}

//! Where retirement records are written and read.

use std::io;

use crate::beneath::Refused;
use crate::state_dir::CloneState;
use crate::sweep::atomic::{self, Durable};
use crate::sweep::ending::Halt;
use crate::sweep::record::{Record, RecordId, SCHEMA};
use crate::sweep::work::Work;
use crate::sweep::{LockedClone, act};

const KIND: &str = "retired";

/// Writes the record as it stands now, and its copy.
///
/// Durably once it is complete. Before that the journal, which is durable, holds all of it and the next run writes it
/// anew; after that the journal goes.
pub(super) fn update(work: &mut Work<'_>) -> Result<(), Halt> {
    let record = &work.open.journal.record;
    let last = record.completed.as_ref().is_some_and(|c| c.branch.is_some());
    let durable = if last { Durable::Yes } else { Durable::No };
    let written = write(work.clone, record, durable);
    if let Err(error) = written {
        let needed = !record.anchors.is_empty();
        if !act::is_full(&error) || needed {
            return Err(Halt::failed(format!("retirement record: {error}")));
        }
        work.notes.push("the disk is full: there is no retirement record".into());
    }
    if let Err(error) = copy(work.clone, &work.open.journal.record) {
        work.notes.push(format!("no copy of the record in the common directory: {error}"));
    }
    Ok(())
}

fn write(clone: &LockedClone, record: &Record, durable: Durable) -> io::Result<()> {
    let Some(state) = clone.state() else { return Err(rustix::io::Errno::NOSPC.into()) };
    state.write(KIND, &file_name(&record.id), &serde_json::to_vec_pretty(record)?, durable)
}

/// The copy for people. Whoever can write there can write anything into it, so nothing ever reads it back.
fn copy(clone: &LockedClone, record: &Record) -> io::Result<()> {
    let ours = atomic::ensure_dir(clone.common(), b"treesweep", 0o777).map_err(atomic::io_error)?;
    let dir = atomic::ensure_dir(&ours, KIND.as_bytes(), 0o777).map_err(atomic::io_error)?;
    let bytes = serde_json::to_vec_pretty(record)?;
    atomic::write(&dir, file_name(&record.id).as_bytes(), &bytes, 0o666, Durable::No)
}

/// Takes a record away again: for a removal that did not happen.
pub(super) fn remove(clone: &LockedClone, id: &RecordId) -> io::Result<()> {
    remove_own(clone, id)?;
    remove_copy(clone, id)
}

/// Removes the record itself.
pub(super) fn remove_own(clone: &LockedClone, id: &RecordId) -> io::Result<()> {
    clone.state().map_or(Ok(()), |state| state.remove(KIND, &file_name(id)))
}

/// Removes the copy for people.
pub(super) fn remove_copy(clone: &LockedClone, id: &RecordId) -> io::Result<()> {
    match clone.common().dir("treesweep/retired") {
        Ok(dir) => match act::unlink(&dir, file_name(id).as_bytes()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        },
        Err(Refused::Absent) => Ok(()),
        Err(refused) => Err(atomic::io_error(refused)),
    }
}

/// A record and its copy, for tests.
#[cfg(test)]
pub(super) fn write_both(clone: &LockedClone, record: &Record) -> io::Result<()> {
    write(clone, record, Durable::No)?;
    copy(clone, record)
}

/// All records of a clone, oldest first; with each that can't be read, why.
pub fn read_all(state: &CloneState) -> io::Result<(Vec<Record>, Vec<String>)> {
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    for name in state.names(KIND)? {
        let Some(id) = name.strip_suffix(".json").and_then(|n| n.parse::<RecordId>().ok()) else { continue };
        let Some(bytes) = state.read(KIND, &name)? else { continue };
        match serde_json::from_slice::<Record>(&bytes) {
            Ok(record) if record.schema == SCHEMA && record.id == id => records.push(record),
            Ok(_) => damaged.push(format!("record {name}: not of this version, or another one's name")),
            Err(error) => damaged.push(format!("record {name}: {error}")),
        }
    }
    Ok((records, damaged))
}

fn file_name(id: &RecordId) -> String {
    format!("{id}.json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_dir::StateDir;
    use crate::sweep::testing::{local, place, record};
    use crate::vantage::paths::FileId;

    /// A record answers for a commit's reference: only one of this version that is what its name says is read.
    #[test]
    fn another_version_and_another_name_are_no_record() {
        let record = record(jiff::Timestamp::UNIX_EPOCH);
        let other = RecordId::random(record.started).unwrap();
        for (id, schema, good) in [
            (&record.id, SCHEMA, true),
            (&record.id, SCHEMA + 1, false),
            (&other, SCHEMA, false),
            (&other, SCHEMA + 1, false),
        ] {
            let tmp = place();
            let path = tmp.path().canonicalize().unwrap().join("treesweep");
            let state =
                StateDir::open(&local(&path)).unwrap().clone_state(FileId { dev: 1, ino: 1 }).unwrap();
            let bytes = serde_json::to_vec(&Record { schema, ..record.clone() }).unwrap();
            state.write(KIND, &file_name(id), &bytes, Durable::No).unwrap();
            state.write(KIND, "somebody's.json", &bytes, Durable::No).unwrap();
            let (records, damaged) = read_all(&state).unwrap();
            assert_eq!(records, if good { vec![record.clone()] } else { vec![] }, "{id} {schema}");
            assert_eq!(damaged.len(), usize::from(!good), "{id} {schema}: {damaged:?}");
        }
    }
}

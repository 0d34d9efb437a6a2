//! The ready marker, `treesweep/ready` in an administrative entry, and the record of it in the state directory.
//!
//! The marker says that a lifecycle made or enrolled this worktree. Whoever can write the common directory can forge it,
//! so what only a person on the host can write, the record, is asked for too where that matters; the judge decides.

use std::io;

use bstr::BString;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::beneath::{Dir, Kind, Refused};
use crate::state_dir::{CloneState, VantageId};
use crate::sweep::atomic::{self, Durable};
use crate::sweep::bytes::Bytes;
use crate::vantage::paths::{EntryName, FileId};

/// The version that this program writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// A marker is a few hundred bytes.
const LIMIT: u64 = 64 << 10;

const DIR: &[u8] = b"treesweep";
const FILE: &[u8] = b"ready";
const RECORDS: &str = "enrolled";

/// What a ready marker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Marker {
    pub schema: u32,
    /// Of the entry that it lies in.
    pub name: Bytes,
    /// Full name of HEAD's branch at that time.
    pub branch: Option<Bytes>,
    /// Who wrote it: paths mean something there.
    pub vantage: VantageId,
    /// Where the checkout was, at that vantage.
    pub path: Bytes,
    /// What the entry's `gitdir` said.
    pub recorded_path: Bytes,
    pub file_system: FileSystem,
    pub time: Timestamp,
}

/// The file system that a checkout was on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystem {
    /// `f_fsid`, which stays over a reboot where the device number need not.
    pub id: u64,
    pub mount_point: Bytes,
}

impl FileSystem {
    /// The id of the file system that `dir` is on.
    pub fn id_of(dir: &Dir) -> io::Result<u64> {
        Ok(rustix::fs::fstatvfs(dir)?.f_fsid)
    }
}

/// What was found in an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerState {
    None,
    Ready(Marker),
    /// Something is there that counts as none, and why.
    Invalid {
        why: String,
    },
}

/// The state directory's own note of an enrolment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enrolment {
    pub marker: Marker,
    /// The entry that was enrolled: one made anew under the same name is another.
    pub entry: FileId,
    /// When that was made, in seconds and nanoseconds: a later one may get its inode.
    #[serde(default)]
    pub born: Option<(i64, u32)>,
}

/// Reads the marker of `entry`, which is called `name`. Everything that is not exactly a marker of ours counts as none.
pub fn read(entry: &Dir, name: &EntryName) -> MarkerState {
    let invalid = |why: String| MarkerState::Invalid { why };
    let bytes = match entry.read("treesweep/ready", LIMIT) {
        Ok(bytes) => bytes,
        Err(Refused::Absent) => return MarkerState::None,
        Err(refused) => return invalid(format!("treesweep/ready: {refused}")),
    };
    match parse(&bytes, name) {
        Ok(marker) => MarkerState::Ready(marker),
        Err(why) => invalid(format!("treesweep/ready: {why}")),
    }
}

pub(crate) fn parse(bytes: &[u8], name: &EntryName) -> Result<Marker, String> {
    let marker: Marker = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if marker.schema != SCHEMA {
        return Err(format!("schema {} is not known", marker.schema));
    }
    if marker.name.0 != name.as_bstr() {
        return Err(format!("it names {}", crate::vantage::paths::escape(&marker.name.0)));
    }
    Ok(marker)
}

/// Writes `marker` into `entry`, whole or not at all. The caller holds the clone's lock.
pub fn write(entry: &Dir, marker: &Marker) -> io::Result<()> {
    let bytes = serde_json::to_vec_pretty(marker)?;
    let dir = atomic::ensure_dir(entry, DIR, 0o777).map_err(atomic::io_error)?;
    atomic::remove_unfinished(&dir)?;
    // A rename would put a file in the place of a link or a FIFO, but a directory there is not ours to touch.
    match dir.meta("ready") {
        Err(Refused::Absent) => {}
        Ok(meta) if meta.kind == Kind::File => {}
        Ok(meta) => {
            return Err(io::Error::other(format!("treesweep/ready is {}", meta.kind.described())));
        }
        Err(refused) => return Err(atomic::io_error(refused)),
    }
    atomic::write(&dir, FILE, &bytes, 0o666, Durable::Yes)?;
    let (file, _) = dir.file("ready").map_err(atomic::io_error)?;
    atomic::give_to_owner_of(entry, file).map_err(atomic::io_error)
}

/// Notes in the state directory that the entry `entry` was enrolled with `marker`.
///
/// To be called before [`write`]: a marker without its record owns less than both, a record without a marker nothing.
pub fn enrol(state: &CloneState, entry: &Dir, marker: &Marker) -> io::Result<()> {
    let (entry, born) = identity(entry).map_err(atomic::io_error)?;
    let bytes = serde_json::to_vec(&Enrolment { marker: marker.clone(), entry, born })?;
    state.write(RECORDS, &record_name(&marker.name.0), &bytes, Durable::Yes)
}

/// What the state directory knows of an enrolment of `name`.
pub fn enrolment(state: &CloneState, name: &EntryName) -> io::Result<Option<Enrolment>> {
    let Some(bytes) = state.read(RECORDS, &record_name(name.as_bstr()))? else { return Ok(None) };
    let enrolment: Enrolment = serde_json::from_slice(&bytes)?;
    let ours = enrolment.marker.name.0 == name.as_bstr() && enrolment.marker.schema == SCHEMA;
    Ok(ours.then_some(enrolment))
}

fn identity(entry: &Dir) -> Result<(FileId, Option<(i64, u32)>), Refused> {
    Ok((entry.own_meta()?.id, entry.born()?.map(|at| (at.seconds, at.nanos))))
}

impl Enrolment {
    /// It is of this entry, and of what this marker says: the path is no part of it, as worktrees move. What can't be
    /// looked at is another one.
    pub fn matches(&self, entry: &Dir, marker: &Marker) -> bool {
        let same = identity(entry)
            .is_ok_and(|(id, born)| id == self.entry && (self.born.is_none() || self.born == born));
        same && self.marker.name == marker.name
            && self.marker.branch == marker.branch
            && self.marker.vantage == marker.vantage
    }
}

/// A name of an entry may have any bytes, and as many as a file's name may have.
pub(crate) fn record_name(name: &[u8]) -> String {
    let digest: BString = Sha256::digest(name).iter().flat_map(|b| format!("{b:02x}").into_bytes()).collect();
    format!("{digest}.json")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::state_dir::StateDir;
    use crate::sweep::act::faults::{Fault, run};
    use crate::sweep::testing::{local, place};

    fn marker(name: &[u8], state: &StateDir) -> Marker {
        Marker {
            schema: SCHEMA,
            name: Bytes::new(name),
            branch: Some(Bytes::new("refs/heads/wt/x")),
            vantage: state.vantage_or_new().unwrap(),
            path: Bytes::new("/w/x"),
            recorded_path: Bytes::new(b"/workspaces/\xff".as_slice()),
            file_system: FileSystem { id: 7, mount_point: Bytes::new("/") },
            time: Timestamp::from_second(1).unwrap(),
        }
    }

    #[test]
    fn a_marker_and_its_record_survive() {
        let tmp = place();
        std::fs::create_dir(tmp.path().join("x")).unwrap();
        let entry = Dir::open(&local(&tmp.path().join("x"))).unwrap();
        let state = StateDir::open(&local(&tmp.path().join("state/treesweep"))).unwrap();
        let id = entry.own_meta().unwrap().id;
        let (name, marker) = (EntryName::new("x").unwrap(), marker(b"x", &state));
        assert_eq!(read(&entry, &name), MarkerState::None);
        let clone = state.clone_state(id).unwrap();
        assert_eq!(enrolment(&clone, &name).unwrap(), None);
        enrol(&clone, &entry, &marker).unwrap();
        write(&entry, &marker).unwrap();
        write(&entry, &marker).unwrap();
        assert_eq!(read(&entry, &name), MarkerState::Ready(marker.clone()));
        let noted = enrolment(&clone, &name).unwrap().unwrap();
        assert!(noted.matches(&entry, &marker));
        let another = FileId { ino: id.ino + 1, ..id };
        assert!(
            !Enrolment { entry: another, ..noted.clone() }.matches(&entry, &marker),
            "another of that name"
        );
        let earlier = noted.born.map(|(seconds, nanos)| (seconds - 1, nanos));
        assert!(
            earlier.is_none_or(|born| {
                !Enrolment { born: Some(born), ..noted.clone() }.matches(&entry, &marker)
            }),
            "another one with its inode"
        );
        let branch = Some(Bytes::new("refs/heads/other"));
        assert!(!noted.matches(&entry, &Marker { branch, ..marker.clone() }));
        let moved = Marker { path: Bytes::new("/w/y"), recorded_path: Bytes::new("/w/y"), ..marker };
        assert!(noted.matches(&entry, &moved), "worktrees move");
    }

    #[test]
    fn each_name_has_a_record_of_its_own_and_another_ones_is_none() {
        let tmp = place();
        let state = StateDir::open(&local(&tmp.path().join("state/treesweep"))).unwrap();
        let entry = Dir::open(&local(tmp.path())).unwrap();
        let id = entry.own_meta().unwrap().id;
        let clone = state.clone_state(id).unwrap();
        let noted = |name: &str| enrolment(&clone, &EntryName::new(name).unwrap()).unwrap();
        let (x, y) = (marker(b"x", &state), marker(b"y", &state));
        enrol(&clone, &entry, &x).unwrap();
        enrol(&clone, &entry, &y).unwrap();
        assert_eq!((noted("x").unwrap().marker, noted("y").unwrap().marker), (x.clone(), y.clone()));
        for marker in [y, Marker { schema: SCHEMA + 1, ..x }] {
            let bytes = serde_json::to_vec(&Enrolment { marker, entry: id, born: None }).unwrap();
            clone.write(RECORDS, &record_name(b"x"), &bytes, Durable::Yes).unwrap();
            assert_eq!(noted("x"), None);
        }
    }

    #[test]
    fn file_systems_are_told_apart() {
        let id = |path: &str| FileSystem::id_of(&Dir::open(&local(path.as_ref())).unwrap()).unwrap();
        assert_eq!(id("/proc/1"), id("/proc"));
        assert_ne!(id("/proc"), id("/"));
    }

    #[test]
    fn whatever_is_not_exactly_a_marker_counts_as_none() {
        let tmp = place();
        let dir = tmp.path().join("x/treesweep");
        std::fs::create_dir_all(&dir).unwrap();
        let entry = Dir::open(&local(&tmp.path().join("x"))).unwrap();
        let state = StateDir::open(&local(&tmp.path().join("state/treesweep"))).unwrap();
        let name = EntryName::new("x").unwrap();
        let good = serde_json::to_string(&marker(b"x", &state)).unwrap();
        let invalid = |why: &str| match read(&entry, &name) {
            MarkerState::Invalid { why: said } => assert!(said.contains(why), "{said:?} is not {why:?}"),
            other => panic!("{other:?} instead of {why}"),
        };
        let foreign = serde_json::to_string(&marker(b"y", &state)).unwrap();
        for (content, why) in [
            ("", "EOF"),
            ("ready", "expected"),
            (foreign.as_str(), "it names y"),
            (&good.replace("\"schema\":1", "\"schema\":2"), "schema 2"),
            (&good.replace("\"schema\"", "\"more\":1,\"schema\""), "unknown field"),
            (&format!("{good}x"), "trailing"),
            (&" ".repeat(1 << 20), "more than"),
        ] {
            std::fs::write(dir.join("ready"), content).unwrap();
            invalid(why);
        }
        std::fs::remove_file(dir.join("ready")).unwrap();
        std::fs::write(tmp.path().join("outside"), &good).unwrap();
        symlink("../../outside", dir.join("ready")).unwrap();
        invalid("symlink");
        assert!(write(&entry, &marker(b"x", &state)).is_err());
        std::fs::remove_file(dir.join("ready")).unwrap();
        nix::unistd::mkfifo(&dir.join("ready"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        invalid("FIFO");
        std::fs::remove_dir_all(&dir).unwrap();
        std::fs::create_dir(tmp.path().join("other")).unwrap();
        symlink("../other", &dir).unwrap();
        invalid("symlink");
        assert!(write(&entry, &marker(b"x", &state)).is_err());
        assert_eq!(std::fs::read_dir(tmp.path().join("other")).unwrap().count(), 0);
    }

    /// Killed at any call there is a whole marker or none, and the next one is written.
    #[test]
    fn a_marker_is_there_whole_or_not_at_all() {
        let tmp = place();
        let state = StateDir::open(&local(&tmp.path().join("state/treesweep"))).unwrap();
        let marker = marker(b"x", &state);
        for at in 1.. {
            let path = tmp.path().join(at.to_string());
            std::fs::create_dir(&path).unwrap();
            let entry = Dir::open(&local(&path)).unwrap();
            let (done, _) = run(Some((at, Fault::Kill)), || write(&entry, &marker));
            let found = read(&entry, &EntryName::new("x").unwrap());
            assert!(matches!(found, MarkerState::None | MarkerState::Ready(_)), "{found:?}");
            write(&entry, &marker).unwrap();
            assert_eq!(
                std::fs::read_dir(path.join("treesweep")).unwrap().count(),
                1,
                "nothing unfinished stays"
            );
            if done.is_some() {
                return;
            }
        }
    }
}

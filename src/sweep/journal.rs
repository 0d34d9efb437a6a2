//! The journal: one file for each removal under way, in the state directory, so that the next run finishes exactly what
//! this one began and nothing that merely looks like it.
//!
//! The step is part of the file's name, `<record id>.<step>`. To go a step further is then one rename: it is whole or
//! not at all, and it needs no room on a full disk, where a rewritten file would.

use std::io;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::judge::tree_facts::Fingerprint;
use crate::judge::warrant::{Act, BranchFate, Warrant};
use crate::state_dir::CloneState;
use crate::sweep::act;
use crate::sweep::atomic::Durable;
use crate::sweep::bytes::Bytes;
use crate::sweep::record::{Hex, Record, RecordId, SCHEMA};
use crate::vantage::paths::{FileId, LocalPath};

const KIND: &str = "journal";

/// How far a removal is. Each step is on the disk before the first change that only it explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// Nothing is deleted. If the checkout or the entry was moved already, its state was not checked: it goes back.
    Planned,
    /// The checkout is aside and was checked there: what bears the trash name and the identity may be deleted.
    Aside,
    /// The checkout could not be moved and was checked at its place: it may be deleted there, unless something in it is
    /// younger than this journal.
    InPlace,
    /// The checkout is gone, and the entry was checked where it is now: it may be deleted.
    Forgetting,
}

impl Step {
    const ALL: [Step; 4] = [Step::Planned, Step::Aside, Step::InPlace, Step::Forgetting];

    pub fn as_str(self) -> &'static str {
        match self {
            Step::Planned => "planned",
            Step::Aside => "aside",
            Step::InPlace => "in-place",
            Step::Forgetting => "forgetting",
        }
    }
}

/// All that is needed to finish a removal without its warrant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    pub schema: u32,
    pub record: Record,
    /// The root that bounds it.
    pub root: Bytes,
    pub checkout: Option<CheckoutMark>,
    pub entry: Option<EntryMark>,
    pub branch: FateMark,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckoutMark {
    pub path: Bytes,
    pub id: FileId,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryMark {
    pub id: FileId,
    #[serde(with = "fingerprint_hex")]
    pub fingerprint: Fingerprint,
}

/// What is to become of the branch: the warrant's word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "kebab-case")]
pub enum FateMark {
    Delete { name: Bytes, expected: Hex, trunk: Bytes },
    Keep { name: Bytes, why: String },
    None,
}

impl Journal {
    /// What `warrant` allows.
    pub fn of(warrant: &Warrant, record: Record) -> Self {
        Self {
            schema: SCHEMA,
            record,
            root: Bytes::from(&warrant.scope().root),
            checkout: warrant.checkout().map(|c| CheckoutMark { path: Bytes::from(&c.path), id: c.seen.id }),
            entry: match warrant.act() {
                Act::Remove { entry, .. } | Act::Forget { entry, .. } => {
                    Some(EntryMark { id: entry.id, fingerprint: entry.fingerprint })
                }
                Act::RemoveOrphan { .. } => None,
            },
            branch: match warrant.branch() {
                BranchFate::Delete { name, expected, trunk } => FateMark::Delete {
                    name: Bytes::new(name.clone()),
                    expected: (*expected).into(),
                    trunk: Bytes::new(trunk.clone()),
                },
                BranchFate::Keep { name, why } => {
                    FateMark::Keep { name: Bytes::new(name.clone()), why: why.clone() }
                }
                BranchFate::None => FateMark::None,
            },
        }
    }

    pub fn id(&self) -> &RecordId {
        &self.record.id
    }

    /// Where the checkout was.
    pub fn path(&self) -> Option<LocalPath> {
        self.checkout.as_ref().and_then(|c| c.path.local())
    }

    /// What the checkout is called while it is aside.
    pub fn trash_name(&self) -> Vec<u8> {
        crate::sweep::trash::name(self.id(), &self.record.name.0)
    }
}

/// A journal and where it stands on the disk.
#[derive(Debug)]
pub struct Open {
    pub journal: Journal,
    step: Step,
    /// Not on the disk: it was full, and no anchor hangs on it.
    stored: bool,
}

impl Open {
    /// Puts the journal on the disk at [`Step::Planned`]. On a full disk it goes on without if `journal` has no anchors.
    pub fn begin(state: Option<&CloneState>, journal: Journal) -> io::Result<Self> {
        let bytes = serde_json::to_vec(&journal)?;
        let name = file_name(journal.id(), Step::Planned);
        let written = match state {
            Some(state) => state.write(KIND, &name, &bytes, Durable::Yes),
            None => Err(Errno::NOSPC.into()),
        };
        let stored = match written {
            Ok(()) => true,
            Err(error) if act::is_full(&error) && journal.record.anchors.is_empty() => {
                // Its name may be there although the wait for it failed: it would tell of a checkout never touched.
                state.map_or(Ok(()), |state| state.remove(KIND, &name))?;
                false
            }
            Err(error) => return Err(error),
        };
        Ok(Self { journal, step: Step::Planned, stored })
    }

    pub fn step(&self) -> Step {
        self.step
    }

    /// Goes on to `step`, on the disk before this returns: a deletion that outlives a power cut while its step does not
    /// would be taken for a checkout that was never touched. Where even a rename finds no room, the journal goes away
    /// rather than tell of an earlier step.
    pub fn advance(&mut self, state: Option<&CloneState>, step: Step) -> io::Result<()> {
        if let (true, Some(state)) = (self.stored, state) {
            let dir = state.ensured(KIND)?;
            let (from, to) = (file_name(self.journal.id(), self.step), file_name(self.journal.id(), step));
            match act::replace(&dir, from.as_bytes(), &dir, to.as_bytes()).map_err(io::Error::from) {
                Ok(()) => {}
                Err(error) if act::is_full(&error) && self.journal.record.anchors.is_empty() => {
                    act::unlink(&dir, from.as_bytes())?;
                    self.stored = false;
                }
                Err(error) => return Err(error),
            }
            act::sync_dir(&dir)?;
        }
        self.step = step;
        Ok(())
    }

    /// Takes the journal off the disk: nothing is left to be finished.
    pub fn close(&self, state: Option<&CloneState>) -> io::Result<()> {
        let Some(state) = state.filter(|_| self.stored) else { return Ok(()) };
        let dir = state.ensured(KIND)?;
        // A step may have reached the disk although its call failed: whatever bears the id goes.
        for step in Step::ALL {
            match act::unlink(&dir, file_name(self.journal.id(), step).as_bytes()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }
}

/// What the journals of a clone say, oldest first; with each that can't be read, why.
pub fn read_all(state: &CloneState) -> io::Result<(Vec<Open>, Vec<String>)> {
    let (mut open, mut damaged) = (Vec::new(), Vec::new());
    for name in state.names(KIND)? {
        let Some((id, step)) = parse_file_name(&name) else { continue };
        let Some(bytes) = state.read(KIND, &name)? else { continue };
        match serde_json::from_slice::<Journal>(&bytes) {
            Ok(journal) if journal.schema == SCHEMA && *journal.id() == id => {
                open.push(Open { journal, step, stored: true });
            }
            Ok(_) => damaged.push(format!("journal {name}: not of this version, or another one's name")),
            Err(error) => damaged.push(format!("journal {name}: {error}")),
        }
    }
    Ok((open, damaged))
}

fn file_name(id: &RecordId, step: Step) -> String {
    format!("{id}.{}", step.as_str())
}

fn parse_file_name(name: &str) -> Option<(RecordId, Step)> {
    let (id, step) = name.split_once('.')?;
    let step = Step::ALL.into_iter().find(|s| s.as_str() == step)?;
    Some((id.parse().ok()?, step))
}

mod fingerprint_hex {
    use serde::{Deserialize, Deserializer, Serializer, de};

    use crate::judge::tree_facts::Fingerprint;

    pub fn serialize<S: Serializer>(fingerprint: &Fingerprint, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", fingerprint.0))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fingerprint, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Fingerprint).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_dir::StateDir;
    use crate::sweep::testing::{local, place, record};

    /// A state directory with `bytes` in the journal's file `name`.
    fn holding(name: &str, bytes: &[u8]) -> (tempfile::TempDir, CloneState) {
        let tmp = place();
        let state = StateDir::open(&local(&tmp.path().canonicalize().unwrap().join("treesweep"))).unwrap();
        let clone = state.clone_state(FileId { dev: 1, ino: 1 }).unwrap();
        clone.write(KIND, name, bytes, Durable::No).unwrap();
        (tmp, clone)
    }

    /// A journal is obeyed by what it says: only one that is of this version and is what its name says is read.
    #[test]
    fn another_version_and_another_name_are_no_journal() {
        let record = record(jiff::Timestamp::UNIX_EPOCH);
        let journal = |schema| Journal {
            schema,
            record: record.clone(),
            root: Bytes::new("/r"),
            checkout: None,
            entry: None,
            branch: FateMark::None,
        };
        let other = RecordId::random(record.started).unwrap();
        for (id, schema, step, read, damaged) in [
            (&record.id, SCHEMA, "aside", 1, 0),
            (&record.id, SCHEMA + 1, "aside", 0, 1),
            (&other, SCHEMA, "aside", 0, 1),
            (&other, SCHEMA + 1, "aside", 0, 1),
            (&record.id, SCHEMA, "elsewhere", 0, 0),
        ] {
            let bytes = serde_json::to_vec(&journal(schema)).unwrap();
            let (_tmp, state) = holding(&format!("{id}.{step}"), &bytes);
            let (open, why) = read_all(&state).unwrap();
            assert_eq!((open.len(), why.len()), (read, damaged), "{id} {schema} {step}: {why:?}");
            assert!(open.iter().all(|open| open.step() == Step::Aside && open.journal == journal(SCHEMA)));
        }
    }
}

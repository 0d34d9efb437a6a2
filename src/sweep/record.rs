//! Retirement records: what is known of a worktree, kept after it. The state directory's file is the record; the copy in
//! the common directory is for people and is never read back.

use std::fmt;
use std::str::FromStr;

use gix::ObjectId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::judge::reason::Reason;
use crate::judge::warrant::{Act, Authority, BranchFate, Warrant};
use crate::sweep::bytes::Bytes;
use crate::sweep::outcome::{BranchOutcome, Ending, Removed};

/// The version of records and journals that this program writes, and the only one that it reads.
pub const SCHEMA: u32 = 1;

/// Names one retirement: its time to the millisecond, then random digits. Names sort by time and are safe as a file name
/// and as a component of a ref's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RecordId(String);

impl RecordId {
    /// `20250301T101112123Z-0123456789ab`.
    pub const LEN: usize = 32;

    /// A new name.
    pub fn random(now: Timestamp) -> std::io::Result<Self> {
        let time = now.strftime("%Y%m%dT%H%M%S");
        let millis = now.subsec_millisecond().unsigned_abs();
        Ok(Self(format!("{time}{millis:03}Z-{}", random_hex::<6>()?)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// `2 * N` random hexadecimal digits.
pub(crate) fn random_hex<const N: usize>() -> std::io::Result<String> {
    let mut bytes = [0u8; N];
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    if got != N {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

/// The text is no record's name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the name of a retirement record")]
pub struct NotARecordId;

impl FromStr for RecordId {
    type Err = NotARecordId;

    fn from_str(text: &str) -> Result<Self, NotARecordId> {
        let b = text.as_bytes();
        let shape = b.len() == Self::LEN
            && b.iter().enumerate().all(|(at, c)| match at {
                8 => *c == b'T',
                18 => *c == b'Z',
                19 => *c == b'-',
                0..18 => c.is_ascii_digit(),
                _ => matches!(c, b'0'..=b'9' | b'a'..=b'f'),
            });
        if shape { Ok(Self(text.into())) } else { Err(NotARecordId) }
    }
}

impl TryFrom<String> for RecordId {
    type Error = NotARecordId;

    fn try_from(text: String) -> Result<Self, NotARecordId> {
        text.parse()
    }
}

impl From<RecordId> for String {
    fn from(id: RecordId) -> Self {
        id.0
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An object id as text; parsed again where it is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Hex(String);

impl Hex {
    /// `None` if the text is no object id.
    pub fn id(&self) -> Option<ObjectId> {
        ObjectId::from_hex(self.0.as_bytes()).ok()
    }
}

impl From<ObjectId> for Hex {
    fn from(id: ObjectId) -> Self {
        Self(id.to_string())
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acted {
    Remove,
    Forget,
    RemoveOrphan,
}

/// Who answered for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum AnsweredBy {
    /// Recorded ownership.
    Owned,
    /// A person, and what they overrode.
    Person { overridden: Vec<Reason> },
}

/// A retirement record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub schema: u32,
    pub id: RecordId,
    pub name: Bytes,
    pub common_dir: Bytes,
    pub recorded_path: Option<Bytes>,
    /// What the checkout's `.git` file said: the entry's path, in the namespace of whoever wrote it.
    #[serde(default)]
    pub pointer: Option<Bytes>,
    pub path: Option<Bytes>,
    /// Full name of the branch.
    pub branch: Option<Bytes>,
    /// What HEAD was.
    pub tip: Option<Hex>,
    pub act: Acted,
    pub authority: AnsweredBy,
    /// Held by `refs/treesweep/retired/<id>/<n>`, in this order from 0.
    pub anchors: Vec<Hex>,
    /// The trunk that the tip was found in, if the branch was to go.
    pub trunk: Option<Bytes>,
    pub started: Timestamp,
    /// Set when checkout and registration were gone; without it the retirement was interrupted.
    pub completed: Option<Completion>,
}

/// How a retirement ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    pub time: Timestamp,
    pub result: Ending,
    pub removed: Removed,
    /// Unknown if the run ended between the removal and the branch.
    pub branch: Option<BranchOutcome>,
}

impl Record {
    /// What `warrant` allows, before anything is done.
    pub fn of(warrant: &Warrant, id: RecordId, started: Timestamp) -> Self {
        let entry = warrant.entry();
        let (act, name) = match warrant.act() {
            Act::Remove { entry, .. } => (Acted::Remove, Bytes::from(&entry.name)),
            Act::Forget { entry, .. } => (Acted::Forget, Bytes::from(&entry.name)),
            Act::RemoveOrphan { name, .. } => (Acted::RemoveOrphan, Bytes::new(name.clone())),
        };
        let path = match warrant.act() {
            Act::Forget { absent, .. } => absent.as_ref(),
            Act::Remove { checkout, .. } | Act::RemoveOrphan { checkout, .. } => Some(&checkout.path),
        };
        Self {
            schema: SCHEMA,
            id,
            name,
            common_dir: Bytes::from(&warrant.scope().common_dir),
            recorded_path: entry.and_then(|e| e.recorded.as_ref()).map(Bytes::from),
            pointer: None,
            path: path.map(Bytes::from),
            branch: entry.and_then(|e| e.branch.clone()).map(Bytes::new),
            tip: entry.and_then(|e| e.tip).map(Hex::from),
            act,
            authority: match warrant.authority() {
                Authority::Owned => AnsweredBy::Owned,
                Authority::Person { overridden } => AnsweredBy::Person { overridden: overridden.clone() },
            },
            anchors: warrant.anchors().iter().copied().map(Hex::from).collect(),
            trunk: match warrant.branch() {
                BranchFate::Delete { trunk, .. } => Some(Bytes::new(trunk.clone())),
                BranchFate::Keep { .. } | BranchFate::None => None,
            },
            started,
            completed: None,
        }
    }

    /// When it ended, or began if it was interrupted.
    pub fn ended(&self) -> Timestamp {
        self.completed.as_ref().map_or(self.started, |c| c.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_sort_by_time_and_nothing_else_is_one() {
        let at = |ms| RecordId::random(Timestamp::from_millisecond(ms).unwrap()).unwrap();
        let (a, b) = (at(1_700_000_000_001), at(1_700_000_000_002));
        assert!(a < b && a.as_str().len() == RecordId::LEN, "{a} {b}");
        assert_eq!(a.as_str().parse::<RecordId>().unwrap(), a);
        for text in ["", "../../../../../../../../etc/passwd", "20250301T101112123Z-0123456789aB"] {
            assert!(text.parse::<RecordId>().is_err(), "{text}");
        }
        assert!(gix::validate::reference::name_partial(a.as_str().into()).is_ok());
    }

    /// What is a name of ours is joined to paths and references: nothing else may pass at any place of it.
    #[test]
    fn no_character_of_an_id_may_be_another_kind() {
        let good = "20250301T101112123Z-0123456789ab";
        assert!(good.parse::<RecordId>().is_ok());
        for at in 0..good.len() {
            for wrong in ["/", ".", "\0", "\n", "G", "g", " "] {
                let text = [&good[..at], wrong, &good[at + 1..]].concat();
                assert!(text.parse::<RecordId>().is_err(), "{text:?}");
            }
            assert!(good[..at].parse::<RecordId>().is_err(), "{}", &good[..at]);
        }
        for text in ["2025030aT101112123Z-0123456789ab", "20250301Ta01112123Z-0123456789ab"] {
            assert!(text.parse::<RecordId>().is_err(), "{text}");
        }
        assert!(format!("{good}0").parse::<RecordId>().is_err());
        assert!(serde_json::from_str::<RecordId>(r#""../x""#).is_err());
    }
}

//! What this program itself writes, and somebody may have forged: the journal, records, the ready marker.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sweep::journal::Journal;
use crate::sweep::marker::{self, Enrolment, Marker};
use crate::sweep::record::{Record, RecordId};
use crate::sweep::trash;
use crate::vantage::paths::EntryName;

/// A journal, a record, and an enrolment of the same bytes.
pub fn journal(bytes: &[u8]) {
    survives::<Enrolment>(bytes);
    if let Some(record) = survives::<Record>(bytes) {
        safe(&record.id);
    }
    let Some(journal) = survives::<Journal>(bytes) else { return };
    safe(journal.id());
    let name = journal.trash_name();
    assert!(name.len() <= 255 && !name.contains(&b'/') && !name.contains(&0));
    let said = trash::parse(&name);
    if let (Some(entry), Some(said)) = (journal.record.name.entry_name(), said) {
        assert_eq!(said.record, *journal.id());
        assert!(said.entry.is_none_or(|said| said == entry));
    }
    if let Some(path) = journal.path() {
        assert!(path.as_path().is_absolute());
        assert!(path.components().all(|part| part != "." && part != ".."), "{path:?}");
    }
}

/// The ready marker of the entry `x`.
pub fn marker(bytes: &[u8]) {
    let name = EntryName::new("x").expect("a plain name");
    match (survives::<Marker>(bytes), marker::parse(bytes, &name)) {
        (Some(marker), Ok(read)) => {
            assert!(marker.schema == marker::SCHEMA && marker.name.0 == "x");
            assert_eq!(marker, read);
        }
        (Some(marker), Err(_)) => assert!(marker.schema != marker::SCHEMA || marker.name.0 != "x"),
        (None, Ok(read)) => panic!("{read:?} out of nothing"),
        (None, Err(_)) => {}
    }
}

fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) -> Option<T> {
    let value: T = serde_json::from_slice(bytes).ok()?;
    let written = serde_json::to_vec(&value).expect("it was read from JSON");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("it was written by us"), value);
    Some(value)
}

/// The id of a record becomes a file's name and a part of a ref's name.
fn safe(id: &RecordId) {
    assert_eq!(id.as_str().len(), RecordId::LEN);
    assert!(id.as_str().bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'), "{id}");
}

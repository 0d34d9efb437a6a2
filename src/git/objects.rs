//! Trees and blobs, read up to a bound; with `verified` only if their bytes hash to their names, since whoever can write
//! the object store can put anything under any name.

use std::collections::BTreeMap;

use bstr::BString;
use gix::ObjectId;
use gix::objs::Kind;
use gix::objs::tree::EntryMode;

use crate::git::history::hashes_to;
use crate::git::open::{Unreadable, chain};

/// The entries of one tree by their names.
pub type Entries = BTreeMap<BString, (EntryMode, ObjectId)>;

/// The objects of one clone.
#[derive(Clone, Copy)]
pub struct Objects<'r> {
    pub repo: &'r gix::Repository,
    pub verified: bool,
}

impl Objects<'_> {
    /// The entries of the tree `id`.
    ///
    /// # Errors
    /// It is missing, broken, forged, or no tree.
    pub fn tree(&self, id: ObjectId) -> Result<Entries, Unreadable> {
        let data = self.find(id, Kind::Tree)?;
        let decoded = gix::objs::TreeRef::from_bytes(&data, id.kind()).map_err(|e| wrong(id, &chain(&e)))?;
        Ok(decoded.entries.iter().map(|e| (e.filename.to_owned(), (e.mode, e.oid.to_owned()))).collect())
    }

    /// The bytes of the blob `id`.
    ///
    /// # Errors
    /// It is missing, broken, forged, or no blob.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>, Unreadable> {
        self.find(id, Kind::Blob)
    }

    /// How many bytes the object `id` says that it has.
    ///
    /// # Errors
    /// It is missing or broken.
    pub fn size(&self, id: ObjectId) -> Result<u64, Unreadable> {
        self.is_of_this_clone(id)?;
        Ok(self.repo.find_header(id).map_err(|e| wrong(id, &chain(&e)))?.size())
    }

    fn find(&self, id: ObjectId, kind: Kind) -> Result<Vec<u8>, Unreadable> {
        self.is_of_this_clone(id)?;
        let mut object = self.repo.find_object(id).map_err(|e| wrong(id, &chain(&e)))?;
        if object.kind != kind {
            return Err(wrong(id, &format!("it is a {}, not a {kind}", object.kind)));
        }
        if self.verified && !hashes_to(&object.data, kind, id) {
            return Err(wrong(id, "its content has another name"));
        }
        Ok(std::mem::take(&mut object.data))
    }

    fn is_of_this_clone(&self, id: ObjectId) -> Result<(), Unreadable> {
        match id.kind() == self.repo.object_hash() {
            true => Ok(()),
            false => Err(wrong(id, "no object of this clone has such an id")),
        }
    }
}

fn wrong(id: ObjectId, why: &str) -> Unreadable {
    Unreadable(format!("object {id}: {why}"))
}

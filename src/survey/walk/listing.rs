//! All names of one directory and what each of them is, read through its handle.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::RawDir;

use crate::beneath::{Kind, Meta, Refused, meta_at};
use crate::stop::Stop;
use crate::survey::walk::handle::STOPPED;

/// The children of a directory in the order of their names' bytes.
#[derive(Debug, Default)]
pub(super) struct Listing {
    names: Vec<u8>,
    children: Vec<Child>,
    /// Names that could not be looked at, with why; one that went away meanwhile too.
    pub(super) failed: Vec<(BString, Refused)>,
}

#[derive(Debug)]
pub(super) struct Child {
    name: Range<usize>,
    pub(super) meta: Meta,
}

impl Listing {
    /// Reads `dir`, whose position must be at its start: it was opened for this.
    pub(super) fn read(dir: BorrowedFd<'_>, stop: &Stop) -> Result<Self, Refused> {
        let mut listing = Self::default();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut entries = RawDir::new(dir, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(Refused::from)?;
            let name = entry.file_name().to_bytes();
            if listing.children.len() % 1024 == 1023 && stop.is_set() {
                return Err(Refused::Io(std::io::Error::other(STOPPED)));
            }
            if name == b"." || name == b".." {
                continue;
            }
            match meta_at(dir, Path::new(OsStr::from_bytes(name))) {
                Ok(meta) => {
                    let start = listing.names.len();
                    listing.names.extend_from_slice(name);
                    listing.children.push(Child { name: start..listing.names.len(), meta });
                }
                Err(refused) => listing.failed.push((name.into(), refused)),
            }
        }
        let names = &listing.names;
        listing.children.sort_unstable_by(|a, b| names[a.name.clone()].cmp(&names[b.name.clone()]));
        Ok(listing)
    }

    pub(super) fn children(&self) -> &[Child] {
        &self.children
    }

    pub(super) fn name(&self, child: &Child) -> &BStr {
        self.names[child.name.clone()].as_bstr()
    }

    pub(super) fn child(&self, name: impl AsRef<[u8]>) -> Option<&Child> {
        let names = &self.names;
        let at = self.children.binary_search_by(|c| names[c.name.clone()].cmp(name.as_ref())).ok()?;
        Some(&self.children[at])
    }

    /// Whether it looks like a bare repository, as git recognises one (`is_git_directory`): `HEAD`, `objects`, `refs`.
    pub(super) fn is_git_directory(&self) -> bool {
        let is_dir = |name| self.child(name).is_some_and(|c| c.meta.kind == Kind::Directory);
        self.child("HEAD").is_some_and(|c| c.meta.kind != Kind::Directory)
            && is_dir("objects")
            && is_dir("refs")
    }
}

//! How far the absence of a translated path is proven, and what casts doubt on it (design: Absence).

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

use bstr::ByteSlice;

use crate::beneath::{Dir, Refused};
use crate::git::registration::Registration;
use crate::judge::facts::AbsenceProof;
use crate::survey::ground::Ground;
use crate::vantage::mountinfo::MountTable;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};
use crate::vantage::translate::{TranslationKind, Translator};

/// What the marker of an entry says of a path at which nothing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// There is none of this vantage, or it speaks of another path.
    Silent,
    /// The checkout was at this very path, and the file system that it was on is there.
    Mounted(String),
    /// It was at this very path, on a file system that is not there now.
    NotMounted(String),
}

impl Ground<'_> {
    /// How far it is proven that the checkout of `registration` is gone, `translator` having placed it at `local`, where
    /// nothing is.
    ///
    /// # Errors
    /// Why that means nothing.
    pub(super) fn absence(
        &self,
        c: usize,
        registration: &Registration,
        translator: &Translator,
        local: &LocalPath,
        witness: &dyn Fn(&LocalPath) -> Witness,
    ) -> Result<AbsenceProof, String> {
        let recorded = registration.recorded.as_ref().ok();
        if let Some(spelling) = self.listings.other_spelling(local) {
            return Err(spelling);
        }
        if let Some(trash) = self.trash.get(registration.name.as_bstr()).and_then(|all| all.first()) {
            return Err(format!("{trash} is what is left of it"));
        }
        if let Some(base) = recorded.and_then(|path| translator.base(path))
            && !self.sides[c].site.dir.is_beneath_or_at(&base)
            && !self.is_alive(c, translator, &base)
        {
            return Err(format!(
                "nothing that lies below {base} by this translation is there; is a disk not mounted?"
            ));
        }
        match witness(local) {
            Witness::NotMounted(why) => return Err(why),
            Witness::Mounted(proof) => return Ok(AbsenceProof::Proven(proof)),
            Witness::Silent => {}
        }
        match recorded.and_then(|path| proof_by(translator, path)) {
            Some(proof) => Ok(AbsenceProof::Proven(proof)),
            None => match self.parent_gone(c, local) {
                Some(doubt) => Err(doubt),
                None => Ok(AbsenceProof::Weak(translator.evidence().text)),
            },
        }
    }

    /// Away from the clone, a directory that is gone or empty may be a mount point without its mount.
    fn parent_gone(&self, c: usize, local: &LocalPath) -> Option<String> {
        if local.is_beneath_or_at(&self.sides[c].site.dir) {
            return None;
        }
        let parent = local.parent()?;
        match &*self.listings.of(&parent) {
            Ok(names) if names.is_empty() => Some(format!("{parent} is empty; is a disk not mounted?")),
            Ok(_) => None,
            Err(refused) => Some(format!("{parent} is not there ({refused}); is a disk not mounted?")),
        }
    }
}

/// What a translation proves by itself: a container's bind of this host, and the user's own word for what lies strictly
/// below it. Identity proves nothing: the marker of its vantage has to.
fn proof_by(translator: &Translator, recorded: &RecordedPath) -> Option<String> {
    let strictly = |from: &RecordedPath| {
        let path = recorded.slashed().normalized();
        path.and_then(|path| path.below(&from.slashed()).map(|rest| !rest.is_empty())).unwrap_or(false)
    };
    match translator {
        Translator::Container(_) => Some(translator.evidence().text),
        Translator::Prefix { kind: TranslationKind::Map, from, .. } if strictly(from) => {
            Some(translator.evidence().text)
        }
        _ => None,
    }
}

/// Directories that were listed once for all that is missing in them.
#[derive(Default)]
pub(super) struct Listings(RefCell<HashMap<LocalPath, Rc<Listing>>>);

/// Each name by what is left of it without case and composition.
type Listing = Result<HashMap<Vec<u8>, Vec<u8>>, Refused>;

impl Listings {
    fn of(&self, dir: &LocalPath) -> Rc<Listing> {
        if let Some(known) = self.0.borrow().get(dir) {
            return Rc::clone(known);
        }
        let names = Dir::open(dir).and_then(|dir| dir.names());
        let listing =
            Rc::new(names.map(|names| names.into_iter().map(|name| (folded(&name), name)).collect()));
        self.0.borrow_mut().insert(dir.clone(), Rc::clone(&listing));
        listing
    }

    /// A name beside that differs in case or Unicode form only: the file system of the recorder may not have told them
    /// apart.
    fn other_spelling(&self, local: &LocalPath) -> Option<String> {
        let mut missing = local.clone();
        loop {
            let parent = missing.parent()?;
            match &*self.of(&parent) {
                Ok(names) => {
                    let other = names.get(&folded(missing.file_name()?))?;
                    let other = escape(other);
                    return Some(format!("{parent} has '{other}', which may be another spelling of it"));
                }
                Err(Refused::Absent) => missing = parent,
                Err(refused) => return Some(format!("{parent} can't be looked at: {refused}")),
            }
        }
    }
}

/// Case and composition folded away.
fn folded(name: &[u8]) -> Vec<u8> {
    use unicode_normalization::UnicodeNormalization;
    match name.to_str() {
        Ok(text) => text.nfkd().flat_map(char::to_lowercase).nfkd().collect::<String>().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// The file system that is at a path now: what a marker records, and has to find again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemNow {
    /// `f_fsid`; some file systems have none, and say 0.
    pub id: u64,
    pub mount_point: Vec<u8>,
}

/// The file system of the deepest mount over `path`; the path itself need not exist.
///
/// # Errors
/// The mount table or the file system can't be read.
pub fn file_system_of(path: &LocalPath) -> std::io::Result<FileSystemNow> {
    file_system_in(&MountTable::own().map_err(std::io::Error::other)?, path)
}

/// The same by a mount table of this process that was read before.
///
/// # Errors
/// No mount is over it, or its file system can't be read.
pub fn file_system_in(table: &MountTable, path: &LocalPath) -> std::io::Result<FileSystemNow> {
    let mount = table.deepest_over(path).ok_or_else(|| std::io::Error::other("no mount is over it"))?;
    let point = mount.mount_point.clone();
    let stat = rustix::fs::statvfs(std::ffi::OsStr::from_bytes(&point))?;
    Ok(FileSystemNow { id: stat.f_fsid, mount_point: point.into() })
}

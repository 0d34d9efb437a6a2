//! Forgetting one registration: exactly the entry that was judged, never another one, never by a walk over all.
//!
//! The entry is moved to `<common-dir>/treesweep/trash/<record id>` first: deleted where it is, git would go on listing
//! it half gone, and would find a registration that it can't read. `worktrees` itself stays, as git removes it when it
//! is empty.

use rustix::io::Errno;

use crate::beneath::{Dir, Refused};
use crate::git::open::Unreadable;
use crate::judge::tree_facts::Fingerprint;
use crate::sweep::act;
use crate::sweep::aside::{Differs, Place};
use crate::sweep::atomic::{self, bstr_path};
use crate::sweep::record::RecordId;
use crate::vantage::paths::{EntryName, FileId};

/// One entry, by all that it is known by.
pub struct EntryPlace<'a> {
    pub common: &'a Dir,
    pub name: &'a EntryName,
    pub id: FileId,
    pub fingerprint: Fingerprint,
    pub record: &'a RecordId,
}

/// Where an entry is.
#[derive(Debug)]
pub enum Found {
    /// In `worktrees`, which is this directory.
    Registered(Dir),
    /// In our trash, which is this directory.
    Trashed(Dir),
    /// Neither here nor there; under its name there may be another one, made since.
    Gone,
}

/// Why an entry was not forgotten.
#[derive(Debug)]
pub enum NotForgotten {
    Differs(Differs),
    /// It could not be put back, and lies in the trash.
    Stranded(Differs, Errno),
    Refused(Refused),
}

impl EntryPlace<'_> {
    /// Finds the entry by device and inode.
    pub fn find(&self) -> Result<Found, Refused> {
        let places = [
            ("worktrees", self.name.as_bstr().as_ref()),
            ("treesweep/trash", self.record.as_str().as_bytes()),
        ];
        for (holder, name) in places {
            let dir = match self.common.dir(holder) {
                Ok(dir) => dir,
                Err(Refused::Absent) => continue,
                Err(refused) => return Err(refused),
            };
            match dir.meta(bstr_path(name)) {
                Ok(meta) if meta.id == self.id => {
                    let registered = holder == "worktrees";
                    return Ok(if registered { Found::Registered(dir) } else { Found::Trashed(dir) });
                }
                Ok(_) | Err(Refused::Absent) => {}
                Err(refused) => return Err(refused),
            }
        }
        Ok(Found::Gone)
    }

    /// Checks the entry in `holder`, where it is called `name`.
    pub fn check(
        &self,
        holder: &Dir,
        name: &[u8],
        fingerprint: &dyn Fn(&Dir) -> Result<Fingerprint, Unreadable>,
    ) -> Result<(), Differs> {
        Place { parent: holder, name, id: self.id }.check(name, self.fingerprint, fingerprint)
    }

    /// Moves the entry into the trash and checks it there; it goes back if it is not what was judged. `None`: the kernel
    /// refused to move it, so that it has to go where it is.
    pub fn move_to_trash(
        &self,
        worktrees: &Dir,
        fingerprint: &dyn Fn(&Dir) -> Result<Fingerprint, Unreadable>,
    ) -> Result<Option<Dir>, NotForgotten> {
        let name = self.name.as_bstr();
        // Before the move too: what is in use again should not vanish even for a moment.
        self.check(worktrees, name, fingerprint).map_err(NotForgotten::Differs)?;
        let trash = match self.trash() {
            Ok(trash) => trash,
            Err(Refused::Io(error)) if act::is_full(&error) => return Ok(None),
            Err(refused) => return Err(NotForgotten::Refused(refused)),
        };
        let aside = self.record.as_str().as_bytes();
        match act::rename(worktrees, name, &trash, aside) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(NotForgotten::Differs(Differs::Changed("it is gone".into()))),
            Err(Errno::XDEV | Errno::BUSY | Errno::ACCESS | Errno::PERM | Errno::NOSPC | Errno::DQUOT) => {
                return Ok(None);
            }
            Err(errno) => return Err(NotForgotten::Refused(errno.into())),
        }
        match self.check(&trash, aside, fingerprint) {
            Ok(()) => Ok(Some(trash)),
            Err(differs) => match self.move_back(worktrees, &trash) {
                Ok(()) => Err(NotForgotten::Differs(differs)),
                Err(errno) => Err(NotForgotten::Stranded(differs, errno)),
            },
        }
    }

    /// Registers the entry again under its name, if that is free.
    pub fn move_back(&self, worktrees: &Dir, trash: &Dir) -> Result<(), Errno> {
        act::rename(trash, self.record.as_str().as_bytes(), worktrees, self.name.as_bstr())
    }

    /// `<common-dir>/treesweep/trash`, each a real directory.
    pub fn trash(&self) -> Result<Dir, Refused> {
        let ours = atomic::ensure_dir(self.common, b"treesweep", 0o777)?;
        atomic::ensure_dir(&ours, b"trash", 0o700)
    }
}

//! Moving a checkout aside, and looking at it there.
//!
//! A check before the rename would be worth little: whoever writes by path between the two writes into what is deleted
//! then. After it nobody finds the checkout by its path, so what is checked is what goes; and what turns out to be
//! different, or another object that was put there, goes back to its name unharmed.

use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::open::Unreadable;
use crate::judge::tree_facts::Fingerprint;
use crate::sweep::act;
use crate::sweep::atomic::bstr_path;
use crate::vantage::paths::FileId;

/// A directory that is to go, in the directory that holds it.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub parent: &'a Dir,
    pub name: &'a [u8],
    pub id: FileId,
}

/// Where it is after the attempt to move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moved {
    Aside,
    /// The kernel refused the rename: it is where it was, and is deleted there.
    InPlace,
}

/// Why nothing was moved.
#[derive(Debug)]
pub enum NotMoved {
    /// It is not there any more.
    Gone,
    /// Nothing in that directory can be removed by us, so a deletion would leave it empty.
    NotDeletable(Errno),
    Other(Errno),
}

/// Why a directory is not what was judged.
#[derive(Debug, PartialEq, Eq)]
pub enum Differs {
    Changed(String),
    Unreadable(String),
}

impl std::fmt::Display for Differs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Differs::Changed(what) => write!(f, "changed since it was judged: {what}"),
            Differs::Unreadable(why) => write!(f, "could not be checked again: {why}"),
        }
    }
}

impl Place<'_> {
    /// Renames it to `trash` in the same directory, which needs no other right than to remove it does.
    pub fn move_aside(&self, trash: &[u8]) -> Result<Moved, NotMoved> {
        match act::rename(self.parent, self.name, self.parent, trash) {
            Ok(()) => Ok(Moved::Aside),
            Err(Errno::NOENT) => Err(NotMoved::Gone),
            // An overlay does not move what lies in a lower layer; a mount point is busy; some names are too long.
            Err(Errno::XDEV | Errno::BUSY | Errno::NAMETOOLONG | Errno::NOSPC | Errno::DQUOT) => {
                Ok(Moved::InPlace)
            }
            Err(errno @ (Errno::ACCESS | Errno::PERM)) => {
                let ours = Access::WRITE_OK | Access::EXEC_OK;
                match rustix::fs::accessat(self.parent, ".", ours, AtFlags::EACCESS) {
                    Ok(()) => Ok(Moved::InPlace),
                    Err(_) => Err(NotMoved::NotDeletable(errno)),
                }
            }
            Err(errno @ Errno::ROFS) => Err(NotMoved::NotDeletable(errno)),
            Err(errno) => Err(NotMoved::Other(errno)),
        }
    }

    /// Renames what is called `trash` back; fails if the name was taken meanwhile.
    pub fn move_back(&self, trash: &[u8]) -> Result<(), Errno> {
        act::rename(self.parent, trash, self.parent, self.name)
    }

    /// Whether what is called `name` in the same directory is this directory, in the state `expected`.
    pub fn check(
        &self,
        name: &[u8],
        expected: Fingerprint,
        fingerprint: &dyn Fn(&Dir) -> Result<Fingerprint, Unreadable>,
    ) -> Result<(), Differs> {
        let dir = self.open(name)?;
        let found = fingerprint(&dir).map_err(|e| Differs::Unreadable(e.to_string()))?;
        if found == expected { Ok(()) } else { Err(Differs::Changed("something in it was written".into())) }
    }

    /// Opens what is called `name` in the same directory, if it is this directory and lies on its parent's mount.
    pub fn open(&self, name: &[u8]) -> Result<Dir, Differs> {
        let dir = self.parent.dir(bstr_path(name)).map_err(|refused| match refused {
            Refused::Absent => Differs::Changed("it is gone".into()),
            Refused::MountCrossed => Differs::Changed("something is mounted on it".into()),
            Refused::NotPlain | Refused::WrongKind(_) => {
                Differs::Changed("it is no directory any more".into())
            }
            other => Differs::Unreadable(other.to_string()),
        })?;
        let meta = dir.own_meta().map_err(|r| Differs::Unreadable(r.to_string()))?;
        if meta.id != self.id || meta.kind != Kind::Directory {
            return Err(Differs::Changed("another directory has its name".into()));
        }
        Ok(dir)
    }
}

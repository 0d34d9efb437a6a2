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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::act::faults::{run_beside, run_where};
    use crate::sweep::testing::local;
    use std::path::{Path, PathBuf};

    struct Scene {
        tmp: tempfile::TempDir,
        common: Dir,
        name: EntryName,
        record: RecordId,
    }

    /// A common directory with the entry `x`.
    fn scene() -> Scene {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(tmp.path().join("worktrees/x")).unwrap();
        let common = Dir::open(&local(&tmp.path().canonicalize().unwrap())).unwrap();
        let record = "20250301T101112123Z-0123456789ab".parse().unwrap();
        Scene { tmp, common, name: EntryName::new("x").unwrap(), record }
    }

    impl Scene {
        fn path(&self, name: &str) -> PathBuf {
            self.tmp.path().join(name)
        }

        fn entry(&self) -> EntryPlace<'_> {
            let id = self.common.meta("worktrees/x").unwrap().id;
            let (common, name, record) = (&self.common, &self.name, &self.record);
            EntryPlace {
                common,
                name,
                id,
                fingerprint: names_in(&self.worktrees().dir("x").unwrap()),
                record,
            }
        }

        fn worktrees(&self) -> Dir {
            self.common.dir("worktrees").unwrap()
        }
    }

    fn names_in(dir: &Dir) -> Fingerprint {
        Fingerprint(dir.names().unwrap().len() as u128)
    }

    fn moved(entry: &EntryPlace<'_>, worktrees: &Dir) -> Result<Option<Dir>, NotForgotten> {
        entry.move_to_trash(worktrees, &|dir| Ok(names_in(dir)))
    }

    #[test]
    fn an_entry_is_found_by_what_it_is_and_not_by_its_name() {
        let scene = scene();
        let entry = scene.entry();
        assert!(matches!(entry.find().unwrap(), Found::Registered(_)));
        assert!(moved(&entry, &scene.worktrees()).unwrap().is_some());
        assert!(matches!(entry.find().unwrap(), Found::Trashed(_)));
        std::fs::create_dir(scene.path("worktrees/x")).unwrap();
        assert!(matches!(entry.find().unwrap(), Found::Trashed(_)), "another one has its name");
        std::fs::remove_dir(scene.path("treesweep/trash").join(scene.record.as_str())).unwrap();
        assert!(matches!(entry.find().unwrap(), Found::Gone));
    }

    /// Git uses it again, before whichever call: it is registered after that as it was before.
    #[test]
    fn an_entry_that_is_written_to_while_it_is_moved_goes_back() {
        let calls = {
            let scene = scene();
            crate::sweep::act::faults::run(None, || moved(&scene.entry(), &scene.worktrees())).1
        };
        for at in 1..=calls.len() {
            let scene = scene();
            let (entry, worktrees) = (scene.entry(), scene.worktrees());
            let (place, trash) = (scene.path("worktrees/x"), scene.path("treesweep/trash"));
            let record = scene.record.clone();
            let write = move |call| {
                let write = |dir: &Path| std::fs::write(dir.join("index.lock"), "");
                if call == at && write(&place).is_err() {
                    write(&trash.join(record.as_str())).unwrap();
                }
            };
            let result = run_beside(write, || moved(&entry, &worktrees));
            assert!(matches!(result, Err(NotForgotten::Differs(Differs::Changed(_)))), "{at}: {result:?}");
            assert!(scene.path("worktrees/x/index.lock").exists(), "{at}");
        }
    }

    #[test]
    fn where_there_is_no_room_for_trash_it_goes_where_it_is() {
        for (errno, goes) in [(Errno::NOSPC, true), (Errno::DQUOT, true), (Errno::IO, false)] {
            let scene = scene();
            let (entry, worktrees) = (scene.entry(), scene.worktrees());
            let (result, _) = run_where(Some(("mkdir", errno)), None, || moved(&entry, &worktrees));
            match result.unwrap() {
                Ok(None) => assert!(goes, "{errno}"),
                Err(NotForgotten::Refused(_)) => assert!(!goes, "{errno}"),
                other => panic!("{other:?}"),
            }
            assert!(scene.path("worktrees/x").exists());
        }
    }
}

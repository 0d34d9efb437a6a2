//! What appears under its name whole or not at all: built in `<common-dir>/treesweep/`, then renamed to where nothing of
//! that name may be.

use std::io;

use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Refused};
use crate::sweep::act;
use crate::sweep::atomic::{self, UNFINISHED, bstr_path, io_error};

/// The files of an administrative entry that this program makes; nothing else is ever removed from an unfinished one.
const FILES: [&str; 5] = ["HEAD", "commondir", "gitdir", "index", "locked"];
/// The only directory in it, and the only file there.
const LOGS: (&str, &str) = ("logs", "HEAD");
/// As a name of a file in [`entry`]: the reflog of HEAD.
pub const REFLOG: &str = "logs/HEAD";

/// Makes the administrative entry `name` in `worktrees` with these files, on the disk when this returns.
///
/// # Errors
/// `AlreadyExists` if something has that name, and then nothing was changed.
pub fn entry(common: &Dir, worktrees: &Dir, name: &[u8], files: &[(&'static str, &[u8])]) -> io::Result<Dir> {
    let ours = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(io_error)?;
    let unfinished = atomic::unfinished_name()?;
    act::mkdir(&ours, &unfinished, 0o777)?;
    let built = ours.dir(bstr_path(&unfinished)).map_err(io_error).and_then(|dir| {
        atomic::give_to_owner_of(&ours, &dir).map_err(io_error)?;
        for (name, bytes) in files {
            if *name == REFLOG {
                let logs = atomic::ensure_dir(&dir, LOGS.0.as_bytes(), 0o777).map_err(io_error)?;
                file_in(&logs, LOGS.1, bytes)?;
                act::sync_dir(&logs)?;
            } else {
                file_in(&dir, name, bytes)?;
            }
        }
        act::sync_dir(&dir)?;
        act::rename(&ours, &unfinished, worktrees, name)?;
        act::sync_dir(worktrees)?;
        Ok(())
    });
    match built {
        Ok(()) => worktrees.dir(bstr_path(name)).map_err(io_error),
        Err(error) => {
            remove(&ours, &unfinished)?;
            Err(error)
        }
    }
}

fn file_in(dir: &Dir, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = act::create(dir, name.as_bytes(), 0o666)?;
    act::write(&mut file, bytes)?;
    atomic::give_to_owner_of(dir, &file).map_err(io_error)?;
    Ok(act::sync(&file)?)
}

/// Makes the file `name` in `into`, a directory of the common directory.
///
/// # Errors
/// `AlreadyExists` if something has that name, and then nothing was changed.
pub fn file(common: &Dir, into: &Dir, name: &[u8], bytes: &[u8]) -> io::Result<()> {
    let ours = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(io_error)?;
    let unfinished = atomic::unfinished_name()?;
    let mut file = act::create(&ours, &unfinished, 0o666)?;
    let made = act::write(&mut file, bytes)
        .and_then(|()| atomic::give_to_owner_of(into, &file).map_err(io_error))
        .and_then(|()| Ok(act::sync(&file)?))
        .and_then(|()| Ok(act::rename(&ours, &unfinished, into, name)?));
    if let Err(error) = made {
        act::unlink(&ours, &unfinished)?;
        return Err(error);
    }
    Ok(act::sync_dir(into)?)
}

/// Removes entries that a killed run did not finish. They never had a name that git knows.
pub fn remove_unfinished(ours: &Dir) -> io::Result<()> {
    for name in ours.names().map_err(io_error)? {
        if !name.starts_with(UNFINISHED) {
            continue;
        }
        match ours.meta(bstr_path(&name)) {
            Ok(meta) if meta.kind == Kind::Directory => remove(ours, &name)?,
            Ok(_) | Err(Refused::Absent) => {}
            Err(refused) => return Err(io_error(refused)),
        }
    }
    Ok(())
}

/// Removes one, if it has nothing but what this program puts there.
fn remove(ours: &Dir, name: &[u8]) -> io::Result<()> {
    let dir = match ours.dir(bstr_path(name)) {
        Ok(dir) => dir,
        Err(Refused::Absent) => return Ok(()),
        Err(refused) => return Err(io_error(refused)),
    };
    match dir.dir(LOGS.0) {
        Ok(logs) => {
            unlink(&logs, LOGS.1)?;
            match act::rmdir(&dir, LOGS.0.as_bytes()) {
                Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Err(Refused::Absent | Refused::NotPlain) => {}
        Err(refused) => return Err(io_error(refused)),
    }
    FILES.iter().try_for_each(|file| unlink(&dir, file))?;
    match act::rmdir(ours, name) {
        Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn unlink(dir: &Dir, name: &str) -> io::Result<()> {
    match act::unlink(dir, name.as_bytes()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::act::faults::{Fault, run};
    use crate::sweep::testing::{Clone, local};

    const ENTRY: [(&str, &[u8]); 4] =
        [("HEAD", b"x\n"), ("commondir", b"../..\n"), ("gitdir", b"/x/.git\n"), (REFLOG, b"line\n")];

    fn worktrees(clone: &Clone) -> Dir {
        std::fs::create_dir_all(clone.path.join(".git/worktrees")).unwrap();
        Dir::open(&local(&clone.path.join(".git/worktrees"))).unwrap()
    }

    fn ours(clone: &Clone) -> Dir {
        clone.common().dir("treesweep").unwrap()
    }

    #[test]
    fn killed_at_any_call_it_is_there_whole_or_not_at_all() {
        for at in 1.. {
            let clone = Clone::new();
            let worktrees = worktrees(&clone);
            let make = || entry(&clone.common(), &worktrees, b"x", &ENTRY).unwrap();
            let (done, _) = run(Some((at, Fault::Kill)), make);
            let there = clone.path.join(".git/worktrees/x");
            assert!(!there.exists() || std::fs::read_dir(&there).unwrap().count() == 4, "call {at}");
            if let Ok(ours) = clone.common().dir("treesweep") {
                remove_unfinished(&ours).unwrap();
                assert_eq!(ours.names().unwrap().len(), 0, "call {at}");
            }
            if done.is_some() {
                return;
            }
        }
    }

    #[test]
    fn what_has_the_name_stays() {
        let clone = Clone::new();
        let worktrees = worktrees(&clone);
        std::fs::create_dir(clone.path.join(".git/worktrees/x")).unwrap();
        let error = entry(&clone.common(), &worktrees, b"x", &ENTRY).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        std::fs::write(clone.path.join(".git/worktrees/x/locked"), "mine").unwrap();
        let dir = worktrees.dir("x").unwrap();
        let error = file(&clone.common(), &dir, b"locked", b"ours").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(clone.path.join(".git/worktrees/x/locked")).unwrap(), b"mine");
        assert_eq!(ours(&clone).names().unwrap().len(), 0);
    }

    /// Whoever can write there can put anything under a name of ours.
    #[test]
    fn what_is_not_ours_is_not_removed() {
        let clone = Clone::new();
        let fake = clone.path.join(".git/treesweep/.unfinished-x");
        std::fs::create_dir_all(fake.join("deep")).unwrap();
        std::fs::write(fake.join("precious"), "x").unwrap();
        let outside = clone.root.join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("HEAD"), "x").unwrap();
        std::os::unix::fs::symlink(&outside, clone.path.join(".git/treesweep/.unfinished-y")).unwrap();
        remove_unfinished(&ours(&clone)).unwrap();
        assert!(
            fake.join("precious").exists() && fake.join("deep").exists() && outside.join("HEAD").exists()
        );
    }
}

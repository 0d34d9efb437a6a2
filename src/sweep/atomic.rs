//! Files that are there whole or not at all, and the directories that hold them.

use std::io;

use rustix::io::Errno;

use crate::beneath::{Dir, Kind, Meta, Refused};
use crate::sweep::act;
use crate::sweep::record::random_hex;

/// What our unfinished files are called. Only the holder of the clone's lock writes any, so that what is found with this
/// name after locking was left by a kill.
pub(super) const UNFINISHED: &[u8] = b".unfinished-";

/// How far a write has to be on the disk before the caller goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// The file's bytes and its name: what follows relies on it after a power cut too.
    Yes,
    /// Not waited for: its loss costs a convenience.
    No,
}

/// Writes `bytes` to `name`, replacing what is there. The bytes are on the disk before the name is: a power cut in
/// between would else leave an empty file under the final name.
pub fn write(dir: &Dir, name: &[u8], bytes: &[u8], mode: u32, durable: Durable) -> io::Result<()> {
    let unfinished = unfinished_name()?;
    let mut file = act::create(dir, &unfinished, mode)?;
    let result = act::write(&mut file, bytes)
        .and_then(|()| if durable == Durable::Yes { Ok(act::sync(&file)?) } else { Ok(()) })
        .and_then(|()| Ok(act::replace(dir, &unfinished, dir, name)?));
    if let Err(error) = result {
        // On a full disk the unfinished file takes room that others need.
        act::unlink(dir, &unfinished)?;
        return Err(error);
    }
    if durable == Durable::Yes {
        act::sync_dir(dir)?;
    }
    Ok(())
}

/// Writes `bytes` to `name` if there is nothing of that name yet (`AlreadyExists`). The bytes are on the disk then; that
/// the name is too takes a sync of `dir`.
pub fn write_new(dir: &Dir, name: &[u8], bytes: &[u8], mode: u32) -> io::Result<()> {
    let unfinished = unfinished_name()?;
    let mut file = act::create(dir, &unfinished, mode)?;
    let result = act::write(&mut file, bytes).and_then(|()| Ok(act::sync(&file)?)).and_then(|()| {
        match act::claim(dir, &unfinished, dir, name) {
            Err(Errno::INVAL) => Ok(act::rename(dir, &unfinished, dir, name)?),
            result => Ok(result?),
        }
    });
    if let Err(error) = result {
        act::unlink(dir, &unfinished)?;
        return Err(error);
    }
    Ok(())
}

/// A name for a file that is not finished.
pub fn unfinished_name() -> io::Result<Vec<u8>> {
    Ok([UNFINISHED, random_hex::<6>()?.as_bytes()].concat())
}

/// Removes what a killed run did not finish. Regular files of our name only.
pub fn remove_unfinished(dir: &Dir) -> io::Result<()> {
    for name in dir.names().map_err(io_error)? {
        if !name.starts_with(UNFINISHED) {
            continue;
        }
        match dir.meta(bstr_path(&name)) {
            Ok(meta) if meta.kind == Kind::File => match act::unlink(dir, &name) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno.into()),
            },
            Ok(_) | Err(Refused::Absent) => {}
            Err(refused) => return Err(io_error(refused)),
        }
    }
    Ok(())
}

/// The directory `name`, made with `mode` if it is not there. It must be a real directory on the same mount.
///
/// Made by root in a directory of somebody else's, it is given to that user, who could not work with it otherwise.
pub fn ensure_dir(dir: &Dir, name: &[u8], mode: u32) -> Result<Dir, Refused> {
    match dir.dir(bstr_path(name)) {
        Err(Refused::Absent) => {}
        result => return result,
    }
    match act::mkdir(dir, name, mode) {
        Ok(()) => {
            let made = dir.dir(bstr_path(name))?;
            give_to_owner_of(dir, &made)?;
            Ok(made)
        }
        Err(Errno::EXIST) => dir.dir(bstr_path(name)),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives what root made in `dir` to the owner of `dir`.
pub fn give_to_owner_of(dir: &Dir, made: impl std::os::fd::AsFd) -> Result<(), Refused> {
    let owner = dir.own_meta()?;
    if rustix::process::geteuid().is_root() && owner.uid != 0 {
        act::chown(made, owner.uid, owner.gid)?;
    }
    Ok(())
}

/// Gives `made` the mode of the file that it is to replace, and to its owner if we may.
pub fn take_after(model: &Meta, made: &std::fs::File) -> Result<(), Errno> {
    // Without the set-id bits: a container may have set them.
    act::chmod(made, model.mode & 0o777)?;
    if rustix::process::geteuid().is_root() { act::chown(made, model.uid, model.gid) } else { Ok(()) }
}

/// A name's bytes as what `Dir` takes.
pub fn bstr_path(name: &[u8]) -> &std::path::Path {
    use std::os::unix::ffi::OsStrExt;
    std::path::Path::new(std::ffi::OsStr::from_bytes(name))
}

/// A refusal as an I/O error, where callers tell only a full disk from the rest.
pub fn io_error(refused: Refused) -> io::Error {
    match refused {
        Refused::Io(error) => error,
        Refused::Absent => io::ErrorKind::NotFound.into(),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};

    use super::*;
    use crate::sweep::act::faults::{run, run_beside, run_where};
    use crate::sweep::testing::{local, place};

    fn dir() -> (tempfile::TempDir, Dir) {
        let tmp = place();
        let dir = Dir::open(&local(&tmp.path().canonicalize().unwrap())).unwrap();
        (tmp, dir)
    }

    /// A power cut forgets what was not waited for: first the bytes, then the name, then the caller goes on.
    #[test]
    fn what_is_durable_is_waited_for_in_order() {
        let (_tmp, dir) = dir();
        let calls = |durable| run(None, || write(&dir, b"f", b"x", 0o600, durable).unwrap()).1;
        assert_eq!(calls(Durable::Yes), ["create", "write", "fsync", "replace", "fsync"]);
        assert_eq!(calls(Durable::No), ["create", "write", "replace"]);
        let (_, calls) = run(None, || write_new(&dir, b"new", b"x", 0o600).unwrap());
        assert_eq!(calls, ["create", "write", "fsync", "claim"]);
    }

    /// Some network file systems know no sync of a directory, and no claim of a name.
    #[test]
    fn a_file_system_that_can_not_has_nothing_to_wait_for_and_replaces_nothing() {
        let (tmp, dir) = dir();
        for (errno, passes) in [(Errno::INVAL, true), (Errno::OPNOTSUPP, true), (Errno::IO, false)] {
            let (synced, _) = run_where(Some(("fsync", errno)), None, || act::sync_dir(&dir));
            assert_eq!(synced.unwrap().is_ok(), passes, "{errno}");
        }
        let new =
            |bytes| run_where(Some(("claim", Errno::INVAL)), None, || write_new(&dir, b"f", bytes, 0o600));
        assert!(new(b"first").0.unwrap().is_ok());
        assert_eq!(new(b"second").0.unwrap().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(tmp.path().join("f")).unwrap(), b"first");
        assert_eq!(dir.names().unwrap(), [b"f"]);
    }

    /// Others may have put something under a name like ours: only a plain file of that name was ours.
    #[test]
    fn only_unfinished_files_are_removed() {
        let (tmp, dir) = dir();
        let at = |name: &str| tmp.path().join(name);
        for name in [".unfinished-a", "unfinished-b", "f", ".unfinished", "x.unfinished-c"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at(".unfinished-dir")).unwrap();
        symlink("f", at(".unfinished-link")).unwrap();
        remove_unfinished(&dir).unwrap();
        let mut left = dir.names().unwrap();
        left.sort();
        let expected: [&[u8]; 6] = [
            b".unfinished",
            b".unfinished-dir",
            b".unfinished-link",
            b"f",
            b"unfinished-b",
            b"x.unfinished-c",
        ];
        assert_eq!(left, expected);
        assert!(unfinished_name().unwrap().starts_with(UNFINISHED));
        assert_ne!(unfinished_name().unwrap(), unfinished_name().unwrap());
    }

    /// Another process may make it first; what a container puts there leads nowhere.
    #[test]
    fn a_directory_that_is_made_meanwhile_is_taken_and_a_link_is_not() {
        for link in [false, true] {
            let (tmp, dir) = dir();
            let path = tmp.path().join("made");
            let meanwhile = move |_| match link {
                true => symlink("/", &path).unwrap(),
                false => std::fs::create_dir(&path).unwrap(),
            };
            let made = run_beside(meanwhile, || ensure_dir(&dir, b"made", 0o700));
            assert!(if link { matches!(made, Err(Refused::NotPlain)) } else { made.is_ok() }, "{made:?}");
        }
    }

    /// What root makes in a user's clone is that user's; what it makes in its own place stays as it is made.
    #[test]
    fn what_root_makes_belongs_to_whom_it_is_made_for() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        for (owner, group, given) in [(1234, 5678, (1234, 5678)), (0, 5678, (0, 0))] {
            let (tmp, dir) = dir();
            chown(tmp.path(), Some(owner), Some(group)).unwrap();
            ensure_dir(&dir, b"made", 0o700).unwrap();
            let meta = std::fs::metadata(tmp.path().join("made")).unwrap();
            assert_eq!((meta.uid(), meta.gid()), given, "{owner}");
        }
    }

    /// A container may have set the set-id bits of a file that is replaced.
    #[test]
    fn a_replacement_takes_mode_and_owner_after_it_and_no_set_id_bits() {
        let (tmp, dir) = dir();
        let model = tmp.path().join("model");
        std::fs::write(&model, "").unwrap();
        let owned = rustix::process::geteuid().is_root();
        if owned {
            chown(&model, Some(1234), Some(5678)).unwrap();
        }
        for mode in [0o640, 0o6640, 0o1404] {
            std::fs::set_permissions(&model, PermissionsExt::from_mode(mode)).unwrap();
            let made = std::fs::File::create(tmp.path().join("made")).unwrap();
            take_after(&dir.meta("model").unwrap(), &made).unwrap();
            let meta = made.metadata().unwrap();
            assert_eq!(meta.mode() & 0o7777, mode & 0o777, "{mode:o}");
            assert!(!owned || (meta.uid(), meta.gid()) == (1234, 5678));
        }
    }
}

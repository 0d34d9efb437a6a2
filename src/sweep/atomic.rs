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

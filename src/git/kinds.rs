//! What gix opens by path in the object stores is first seen to be plain: a FIFO in the place of a loose object would
//! hold its reader for ever, and a symlink would lead it elsewhere.
//!
//! The kinds come with the listing of each directory (`d_type`), so that a store of ten thousand loose objects costs a
//! few milliseconds. Sizes are not asked: gix maps packs, their indices and loose objects into memory, and inflates
//! none beyond its limit for repositories of reduced trust.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::FileType;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::open::{Unreadable, chain};
use crate::vantage::paths::{FileId, LocalPath, RecordedPath, escape};

/// More stores than this are not followed; git itself stops at a depth of five.
const MOST_STORES: usize = 64;
/// Most bytes of `info/alternates`.
const ALTERNATES_FILE: u64 = 1 << 20;

/// Looks at the object store of the clone `common` and at those that its `info/alternates` leads to, and returns where
/// these others are, with every link of their paths followed.
///
/// # Errors
/// Something in one of them is neither a directory nor a regular file, or one can't be looked at.
pub fn object_stores(common: &Dir) -> Result<Vec<LocalPath>, Unreadable> {
    let own = common
        .dir("objects")
        .map_err(|refused| Unreadable(format!("{}/objects: {refused}", common.path())))?;
    let base = own.path().clone();
    let mut seen: Vec<FileId> = Vec::new();
    let mut others = Vec::new();
    let mut pending = vec![own];
    while let Some(store) = pending.pop() {
        let id = store.own_meta().map_err(|refused| Unreadable(format!("{}: {refused}", store.path())))?.id;
        if seen.contains(&id) {
            continue;
        }
        if seen.len() == MOST_STORES {
            return Err(Unreadable(format!(
                "{base}/info/alternates: leads to more than {MOST_STORES} stores"
            )));
        }
        if !seen.is_empty() {
            others.push(store.path().clone());
        }
        seen.push(id);
        look_at_store(&store)?;
        // As gix resolves them: also what another store's list names is relative to this clone's own.
        for path in alternates_of(&store)? {
            let from = format!("{}/info/alternates", store.path());
            pending.push(open_alternate(&base, &path, &from)?);
        }
    }
    Ok(others)
}

fn alternates_of(store: &Dir) -> Result<Vec<std::path::PathBuf>, Unreadable> {
    let wrong = |why: &dyn std::fmt::Display| Unreadable(format!("{}/info/alternates: {why}", store.path()));
    match store.read("info/alternates", ALTERNATES_FILE) {
        Ok(bytes) => gix::odb::alternate::parse(&bytes).map_err(|e| wrong(&chain(&e))),
        Err(Refused::Absent) => Ok(Vec::new()),
        Err(refused) => Err(wrong(&refused)),
    }
}

fn open_alternate(base: &LocalPath, path: &Path, from: &str) -> Result<Dir, Unreadable> {
    let shown = || escape(path.as_os_str().as_bytes());
    let real = base.as_path().join(path).canonicalize();
    let real = real.map_err(|e| Unreadable(format!("{from}: '{}': {e}", shown())))?;
    let real = LocalPath::new(real).ok_or_else(|| Unreadable(format!("{from}: '{}'", shown())))?;
    Dir::open(&real).map_err(|refused| Unreadable(format!("{from}: {real}: {refused}")))
}

/// Where the object store of the clone `common` looks for objects besides its own, as it is written: an absolute path, or
/// one from `objects`. What those stores borrow themselves is theirs to say.
///
/// # Errors
/// There is no store, or its list can't be read.
pub fn borrowed(common: &Dir) -> Result<Vec<RecordedPath>, Unreadable> {
    let store = common.dir("objects").map_err(|e| Unreadable(format!("{}/objects: {e}", common.path())))?;
    let base = RecordedPath::new(store.path().as_bstr());
    let paths = alternates_of(&store)?;
    Ok(paths
        .iter()
        .filter_map(|p| RecordedPath::new(p.as_os_str().as_bytes()).resolved_from(&base))
        .collect())
}

/// The directories that objects are looked for in: the fan-out of loose ones, packs, and lists.
fn look_at_store(store: &Dir) -> Result<(), Unreadable> {
    for (name, kind) in listed(store)? {
        let fan_out = name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit);
        if !fan_out && !matches!(name.as_slice(), b"pack" | b"info") {
            continue;
        }
        let shown = || format!("{}/{}", store.path(), escape(&name));
        if kind != Kind::Directory {
            return Err(Unreadable(format!("{}: it is {}", shown(), kind.described())));
        }
        let dir = store.dir(OsStr::from_bytes(&name)).map_err(|e| Unreadable(format!("{}: {e}", shown())))?;
        for (file, kind) in listed(&dir)? {
            // A directory can't be opened as a file, so that it holds nobody.
            if !matches!(kind, Kind::File | Kind::Directory) {
                return Err(Unreadable(format!("{}/{}: it is {}", shown(), escape(&file), kind.described())));
            }
        }
    }
    Ok(())
}

/// The names in a directory with what they are, links not followed.
///
/// # Errors
/// The directory can't be listed, or one of its names can't be looked at.
pub fn listed(dir: &Dir) -> Result<Vec<(Vec<u8>, Kind)>, Unreadable> {
    let wrong = |e: &dyn std::fmt::Display| Unreadable(format!("{}: {e}", dir.path()));
    let mut found = Vec::new();
    for entry in rustix::fs::Dir::read_from(dir).map_err(|e| wrong(&e))? {
        let entry = entry.map_err(|e| wrong(&e))?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Directory => Kind::Directory,
            FileType::RegularFile => Kind::File,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => Kind::Device,
            // Some file systems don't tell.
            FileType::Unknown => match dir.meta(OsStr::from_bytes(name)) {
                Ok(meta) => meta.kind,
                Err(Refused::Absent) => continue,
                Err(refused) => return Err(wrong(&refused)),
            },
        };
        found.push((name.to_vec(), kind));
    }
    Ok(found)
}

#[cfg(test)]
mod tests;

//! References as files, read and changed through held directories.
//!
//! gix's own transactions work by path: between the look at `refs/heads` and the `unlink` in it, a container could put a
//! link in its place, and the unlink would lead out of the clone. Here every component is opened beneath the one before.
//! The protocol is git's: `<ref>.lock` excludes other writers, `packed-refs.lock` those of that file, and the packed
//! value goes before the loose one, as an old packed value would otherwise come back into force.

use std::io;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use rustix::io::Errno;

use crate::beneath::{Dir, Refused};
use crate::sweep::act;
use crate::sweep::atomic::{self, bstr_path};
use crate::sweep::packed;
use crate::sweep::record::RecordId;
use crate::sweep::ref_lock::Lock;
use crate::vantage::paths::{escape, is_gits_space};

/// The most that is read of a loose reference.
const LIMIT: u64 = 4 << 10;

/// How many symbolic references may lead to each other, as in git.
const HOPS: usize = 5;

/// What a reference is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Direct(ObjectId),
    Symbolic(BString),
}

/// Why a reference could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum RefError {
    #[error("{path}: {why}")]
    Unreadable { path: String, why: String },
    #[error("{path} is locked by another process")]
    Locked { path: String },
    #[error("it is {found} now, and was {expected}")]
    Moved { found: String, expected: ObjectId },
    #[error("it is symbolic")]
    Symbolic,
    #[error("it is gone")]
    Absent,
    /// What the caller asked again under the lock.
    #[error("{0}")]
    Forbidden(String),
    /// The next run knows it for ours and removes it, if it comes by.
    #[error("{path} could not be removed: {source}")]
    LockStays { path: String, source: io::Error },
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

impl RefError {
    pub(super) fn refused(path: &[u8], refused: Refused) -> Self {
        let path = escape(path);
        match refused {
            Refused::Io(source) => Self::Io { path, source },
            other => Self::Unreadable { path, why: other.to_string() },
        }
    }

    pub(super) fn errno(path: &[u8], errno: Errno) -> Self {
        Self::Io { path: escape(path), source: errno.into() }
    }
}

/// The name is a full one that git would accept: no component of it leads elsewhere.
fn checked(name: &BStr) -> Result<(), RefError> {
    let unreadable = |why: &str| RefError::Unreadable { path: escape(name), why: why.into() };
    gix::validate::reference::name(name).map_err(|_| unreadable("not a valid name of a reference"))?;
    if name.starts_with(b"refs/") { Ok(()) } else { Err(unreadable("not below refs/")) }
}

/// The value of the reference `name`: the loose one, else the packed one.
pub fn read(common: &Dir, name: &BStr) -> Result<Option<Value>, RefError> {
    checked(name)?;
    match common.read(bstr_path(name), LIMIT) {
        Ok(bytes) => parse(name, &bytes).map(Some),
        // A directory of that name holds other references, or is empty.
        Err(Refused::Absent | Refused::WrongKind(crate::beneath::Kind::Directory)) => {
            Ok(packed::read(common, name)?.map(Value::Direct))
        }
        Err(refused) => Err(RefError::refused(name, refused)),
    }
}

/// What `bytes`, the content of the file `name`, say: `HEAD` has the form of a reference too.
pub fn parse(name: &BStr, bytes: &[u8]) -> Result<Value, RefError> {
    if let Some(target) = bytes.strip_prefix(b"ref:") {
        return Ok(Value::Symbolic(target.trim_with(is_gits_space).into()));
    }
    let word = bytes.split(|b| is_gits_space(char::from(*b))).next().unwrap_or_default();
    ObjectId::from_hex(word).map(Value::Direct).map_err(|_| RefError::Unreadable {
        path: escape(name),
        why: "neither an object id nor a symbolic reference".into(),
    })
}

/// All names that lead from `name` to a direct reference, `name` and that one included, and its value if it exists.
pub fn resolve(common: &Dir, name: &BStr) -> Result<(Vec<BString>, Option<ObjectId>), RefError> {
    let mut way = vec![name.to_owned()];
    for _ in 0..HOPS {
        let at = &way[way.len() - 1];
        match read(common, at.as_bstr())? {
            None => return Ok((way, None)),
            Some(Value::Direct(id)) => return Ok((way, Some(id))),
            Some(Value::Symbolic(target)) => way.push(target),
        }
    }
    Err(RefError::Unreadable { path: escape(name), why: "too many symbolic references".into() })
}

/// Makes the direct reference `name`, which must be new, on the disk when this returns; without a reflog. It being there
/// with the same value already is as good: a run that was killed had come that far.
pub fn create(common: &Dir, name: &BStr, id: ObjectId) -> Result<(), RefError> {
    checked(name)?;
    let (dir, last) = made_holder(common, name)?;
    match atomic::write_new(&dir, last, format!("{id}\n").as_bytes(), 0o666) {
        Ok(()) => act::sync_dir(&dir).map_err(|errno| RefError::errno(name, errno)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match read(common, name)? {
            Some(Value::Direct(found)) if found == id => Ok(()),
            _ => Err(RefError::Moved { found: "another one".into(), expected: id }),
        },
        Err(source) => Err(RefError::Io { path: escape(name), source }),
    }
}

/// The same under the reference's lock, so that no git makes one of that name meanwhile; directories of that name that
/// are empty, as git leaves them, go before.
pub fn create_locked(common: &Dir, name: &BStr, id: ObjectId, record: &RecordId) -> Result<(), RefError> {
    checked(name)?;
    let lock = Lock::acquire(common, name, record)?;
    let inside = BString::from([name.as_bytes(), b"/x"].concat());
    let result =
        remove_empty_parents(common, inside.as_bstr(), name.split_str("/").count() - 1).and_then(|()| {
            match read(common, name)? {
                None => create(common, name, id),
                Some(Value::Direct(found)) if found == id => Ok(()),
                Some(_) => Err(RefError::Moved { found: "another one".into(), expected: id }),
            }
        });
    lock.release()?;
    result
}

/// Deletes the direct reference `name` if it is `expected`, with its reflog. `allows` is asked under the lock, directly
/// before the first change.
pub fn delete(
    common: &Dir,
    name: &BStr,
    expected: ObjectId,
    record: &RecordId,
    allows: &dyn Fn() -> Result<(), String>,
) -> Result<(), RefError> {
    checked(name)?;
    let lock = Lock::acquire(common, name, record)?;
    let result = delete_locked(common, name, expected, record, allows);
    lock.release()?;
    remove_empty_parents(common, name, 2)?;
    result
}

fn delete_locked(
    common: &Dir,
    name: &BStr,
    expected: ObjectId,
    record: &RecordId,
    allows: &dyn Fn() -> Result<(), String>,
) -> Result<(), RefError> {
    match read(common, name)? {
        None => return Err(RefError::Absent),
        Some(Value::Symbolic(_)) => return Err(RefError::Symbolic),
        Some(Value::Direct(id)) if id == expected => {}
        Some(Value::Direct(id)) => return Err(RefError::Moved { found: id.to_string(), expected }),
    }
    allows().map_err(RefError::Forbidden)?;
    // The log before the reference, as in git: a log without one would stand in the way of other names.
    let log = BString::from([b"logs/", name.as_bytes()].concat());
    remove_file(common, log.as_bstr())?;
    remove_empty_parents(common, log.as_bstr(), 3)?;
    packed::remove(common, name, record)?;
    remove_file(common, name)
}

/// Unlinks the regular file `path`, if there is one; anything else there is refused.
fn remove_file(common: &Dir, path: &BStr) -> Result<(), RefError> {
    let Some((dir, last)) = holder(common, path)? else { return Ok(()) };
    match dir.meta(bstr_path(last)) {
        Ok(meta) if meta.kind == crate::beneath::Kind::File => {}
        // Of other references, or of their logs.
        Ok(meta) if meta.kind == crate::beneath::Kind::Directory => return Ok(()),
        Ok(meta) => return Err(RefError::refused(path, Refused::WrongKind(meta.kind))),
        Err(Refused::Absent) => return Ok(()),
        Err(refused) => return Err(RefError::refused(path, refused)),
    }
    match act::unlink(&dir, last) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(RefError::errno(path, errno)),
    }
}

/// The directory that holds `path`, each component of the way a real directory, and the last component's name; `None`
/// if one is not there.
pub(super) fn holder<'p>(common: &Dir, path: &'p BStr) -> Result<Option<(Dir, &'p [u8])>, RefError> {
    walk(common, path, &|dir, part| match dir.dir(bstr_path(part)) {
        Ok(next) => Ok(Some(next)),
        Err(Refused::Absent) => Ok(None),
        Err(refused) => Err(refused),
    })
}

/// The same, with what is missing of the way made.
pub(super) fn made_holder<'p>(common: &Dir, path: &'p BStr) -> Result<(Dir, &'p [u8]), RefError> {
    let found = walk(common, path, &|dir, part| atomic::ensure_dir(dir, part, 0o777).map(Some))?;
    found.ok_or_else(|| RefError::errno(path, Errno::NOENT))
}

type Step<'a> = dyn Fn(&Dir, &[u8]) -> Result<Option<Dir>, Refused> + 'a;

fn walk<'p>(common: &Dir, path: &'p BStr, step: &Step<'_>) -> Result<Option<(Dir, &'p [u8])>, RefError> {
    let refused = |refused| RefError::refused(path, refused);
    let mut dir = common.dir(".").map_err(refused)?;
    let Some((parents, last)) = path.rsplit_once_str("/") else { return Ok(Some((dir, path))) };
    for part in parents.split_str("/") {
        match step(&dir, part).map_err(refused)? {
            Some(next) => dir = next,
            None => return Ok(None),
        }
    }
    Ok(Some((dir, last)))
}

/// Removes the directories above `path` that are empty now, all but the first `keep` components, as git does: they would
/// stand in the way of a branch of their name.
pub(super) fn remove_empty_parents(common: &Dir, path: &BStr, keep: usize) -> Result<(), RefError> {
    let mut at = path;
    while let Some((parent, _)) = at.rsplit_once_str("/") {
        let parent = parent.as_bstr();
        if parent.split_str("/").count() <= keep {
            return Ok(());
        }
        let Some((dir, last)) = holder(common, parent)? else { return Ok(()) };
        match act::rmdir(&dir, last) {
            Ok(()) | Err(Errno::NOENT) => at = parent,
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => return Ok(()),
            Err(errno) => return Err(RefError::errno(parent, errno)),
        }
    }
    Ok(())
}

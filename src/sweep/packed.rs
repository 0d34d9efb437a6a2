//! `packed-refs`: looking a reference up, and taking one out of it while every other byte stays.

use bstr::{BStr, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Refused};
use crate::sweep::act;
use crate::sweep::atomic;
use crate::sweep::record::RecordId;
use crate::sweep::ref_lock::Lock;
use crate::sweep::refs::RefError;

const FILE: &[u8] = b"packed-refs";

/// The most that is read of it: some millions of references.
const LIMIT: u64 = 512 << 20;

/// The packed value of `name`.
pub(super) fn read(common: &Dir, name: &BStr) -> Result<Option<ObjectId>, RefError> {
    let Some(bytes) = bytes(common)? else { return Ok(None) };
    Ok(find(&bytes, name)?.map(|(_, id)| id))
}

/// Takes `name` out of the file, if it is in there.
pub(super) fn remove(common: &Dir, name: &BStr, record: &RecordId) -> Result<(), RefError> {
    if read(common, name)?.is_none() {
        return Ok(());
    }
    let lock = Lock::acquire(common, FILE.as_bstr(), record)?;
    let result = remove_locked(common, name);
    lock.release()?;
    result
}

fn remove_locked(common: &Dir, name: &BStr) -> Result<(), RefError> {
    let io = |source| RefError::Io { path: "packed-refs".into(), source };
    let (_, meta) = common.file("packed-refs").map_err(|r| RefError::refused(FILE, r))?;
    // Read again, under its lock: another process may have written it.
    let Some(bytes) = bytes(common)? else { return Ok(()) };
    let Some((lines, _)) = find(&bytes, name)? else { return Ok(()) };
    let rest = [&bytes[..lines.start], &bytes[lines.end..]].concat();
    let ours = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(|r| RefError::refused(FILE, r))?;
    let unfinished = atomic::unfinished_name().map_err(io)?;
    let errno = |errno| RefError::errno(FILE, errno);
    let mut file = act::create(&ours, &unfinished, 0o600).map_err(errno)?;
    let result = act::write(&mut file, &rest)
        .and_then(|()| Ok(atomic::take_after(&meta, &file)?))
        .and_then(|()| Ok(act::sync(&file)?))
        .and_then(|()| Ok(act::replace(&ours, &unfinished, common, FILE)?));
    if let Err(source) = result {
        act::unlink(&ours, &unfinished).map_err(errno)?;
        return Err(io(source));
    }
    act::sync_dir(common).map_err(errno)
}

fn bytes(common: &Dir) -> Result<Option<Vec<u8>>, RefError> {
    match common.read("packed-refs", LIMIT) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Refused::Absent) => Ok(None),
        Err(refused) => Err(RefError::refused(FILE, refused)),
    }
}

/// The lines of `name`, with that of the object that a tag of it peels to, and its value. A file with a line that is
/// none of the known ones is not understood, and so not changed.
pub(crate) fn find(
    bytes: &[u8],
    name: &BStr,
) -> Result<Option<(std::ops::Range<usize>, ObjectId)>, RefError> {
    let mut found: Option<(std::ops::Range<usize>, ObjectId)> = None;
    let (mut at, mut previous_was_it) = (0, false);
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let (start, end) = (at, at + line.len());
        at = end;
        let unreadable = |why: &str| RefError::Unreadable {
            path: "packed-refs".into(),
            why: format!("byte {start}: {why}"),
        };
        let Some(text) = line.strip_suffix(b"\n") else { return Err(unreadable("the last line has no end")) };
        if text.starts_with(b"#") || text.is_empty() {
            previous_was_it = false;
            continue;
        }
        if let Some(peeled) = text.strip_prefix(b"^") {
            ObjectId::from_hex(peeled).map_err(|_| unreadable("not an object id"))?;
            if let (true, Some((lines, _))) = (previous_was_it, &mut found) {
                lines.end = end;
            }
            previous_was_it = false;
            continue;
        }
        let (id, of) = text.split_once_str(" ").ok_or_else(|| unreadable("not a reference"))?;
        previous_was_it = of == name;
        if previous_was_it {
            if found.is_some() {
                return Err(unreadable("the reference is there twice"));
            }
            let id = ObjectId::from_hex(id).map_err(|_| unreadable("not an object id"))?;
            found = Some((start..end, id));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_whole() {
        let id = "1".repeat(40);
        let text = format!(
            "# pack-refs with: peeled\n{id} refs/heads/a\n{id} refs/tags/a\n^{id}\n{id} refs/tags/b\n"
        );
        let lines = |name: &str| find(text.as_bytes(), name.into()).unwrap().map(|(l, _)| text[l].to_owned());
        assert_eq!(lines("refs/heads/a").unwrap(), format!("{id} refs/heads/a\n"));
        assert_eq!(lines("refs/tags/a").unwrap(), format!("{id} refs/tags/a\n^{id}\n"));
        assert_eq!(lines("refs/tags/b").unwrap(), format!("{id} refs/tags/b\n"));
        assert_eq!(lines("refs/heads"), None);
    }

    #[test]
    fn what_is_not_understood_is_not_changed() {
        let id = "1".repeat(40);
        for text in [
            format!("{id} refs/heads/a"),
            format!("{id} refs/heads/a\n{id} refs/heads/a\n"),
            "junk\n".into(),
            format!("^junk\n{id} refs/heads/a\n"),
            "xyz refs/heads/a\n".into(),
        ] {
            assert!(find(text.as_bytes(), "refs/heads/a".into()).is_err(), "{text}");
        }
    }
}

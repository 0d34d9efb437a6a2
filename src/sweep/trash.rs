//! What a checkout is called while it is being deleted: `.treesweep-trash-<record id>-<entry name>`, beside its old
//! place. The name alone tells a person, and a run without a journal, what this is and what it was.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::sweep::record::RecordId;
use crate::vantage::paths::EntryName;

/// What every trash name starts with.
pub const PREFIX: &[u8] = b".treesweep-trash-";

/// `NAME_MAX` of every file system that git works on.
const LONGEST: usize = 255;

/// What a trash name says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrashName {
    pub record: RecordId,
    /// `None` if the name was too long to be carried whole.
    pub entry: Option<EntryName>,
}

/// The trash name for `entry`. Control characters, bytes that are no ASCII and the characters with a meaning here are
/// escaped as `%xx`; a name that does not fit is cut and ends in `~`.
pub fn name(record: &RecordId, entry: &[u8]) -> Vec<u8> {
    let mut out = [PREFIX, record.as_str().as_bytes(), b"-"].concat();
    for byte in entry {
        let piece = match byte {
            b'%' | b'~' | b'/' => format!("%{byte:02x}").into_bytes(),
            b' '..=b'~' => vec![*byte],
            _ => format!("%{byte:02x}").into_bytes(),
        };
        if out.len() + piece.len() >= LONGEST {
            out.push(b'~');
            break;
        }
        out.extend(piece);
    }
    out
}

/// What `name` says, if it is a trash name. It proves nothing: anybody can write such a name.
pub fn parse(name: &[u8]) -> Option<TrashName> {
    let rest = name.strip_prefix(PREFIX)?;
    let (id, entry) = rest.split_at_checked(RecordId::LEN)?;
    let record = std::str::from_utf8(id).ok()?.parse().ok()?;
    let escaped = entry.strip_prefix(b"-")?;
    let entry = if escaped.ends_with(b"~") { None } else { Some(EntryName::new(unescape(escaped)?)?) };
    Some(TrashName { record, entry })
}

/// The trash among the names of a directory, so that a survey can report what no journal knows.
pub fn find_trash<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Vec<(&'a Path, TrashName)> {
    let path = |n: &'a [u8]| Path::new(std::ffi::OsStr::from_bytes(n));
    names.into_iter().filter_map(|n| Some((path(n), parse(n)?))).collect()
}

fn unescape(escaped: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some((first, tail)) = rest.split_first() {
        if *first != b'%' {
            out.push(*first);
            rest = tail;
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2)?;
        out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = tail;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id() -> RecordId {
        "20250301T101112123Z-0123456789ab".parse().unwrap()
    }

    #[test]
    fn names_survive() {
        for entry in [&b"x"[..], b"a b%41~", b"n\nl\x1b[31m", b"\xff\xc3", b"-", &[b'y'; 203]] {
            let name = name(&id(), entry);
            let parsed = parse(&name).unwrap();
            assert_eq!(parsed.record, id());
            assert_eq!(parsed.entry.unwrap().as_bstr(), entry);
            assert!(name.iter().all(|b| (b' '..=b'~').contains(b)));
        }
    }

    #[test]
    fn a_long_name_is_cut_and_says_so() {
        for entry in [vec![b'y'; 255], vec![0xff; 255], [vec![b'y'; 202], vec![b'%'; 9]].concat()] {
            let name = name(&id(), &entry);
            assert!(name.len() <= LONGEST && name.len() > LONGEST - 4, "{}", name.len());
            assert_eq!(parse(&name).unwrap().entry, None);
        }
    }

    #[test]
    fn other_names_are_not_trash() {
        for name in [&b".treesweep-trash-"[..], b".treesweep-trash-x-y", b"x", b".treesweep-trash"] {
            assert_eq!(parse(name), None);
        }
        let real = name(&id(), b"x");
        let names = [b"a".as_slice(), &real];
        assert_eq!(find_trash(names).len(), 1);
    }
}

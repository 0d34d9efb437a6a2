//! Verified absence: what a removal has to show before it may call itself done.

use std::fmt;

use bstr::ByteSlice;

use crate::beneath::{Dir, Meta, Refused, lstat};
use crate::sweep::atomic::bstr_path;
use crate::sweep::record::RecordId;
use crate::vantage::paths::{EntryName, LocalPath};

/// All that has to be absent after one removal.
pub struct Expected<'a> {
    pub checkout: Option<Spot<'a>>,
    pub entry: Option<(&'a Dir, &'a EntryName, &'a RecordId)>,
}

/// A checkout's place and its trash beside it.
pub struct Spot<'a> {
    pub parent: &'a Dir,
    pub path: &'a LocalPath,
    pub trash: &'a [u8],
}

/// What was found in the place of nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed(Vec<String>);

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("; "))
    }
}

/// Looks at each place. Only `ENOENT` proves absence: a permission or an I/O error leaves it unknown.
///
/// The checkout's place is asked twice, by its held parent and by its path: a parent that was moved away would make
/// either alone say nothing.
pub fn verify(expected: &Expected<'_>) -> Result<(), Observed> {
    let mut found = Vec::new();
    if let Some(spot) = &expected.checkout {
        let name = spot.path.file_name().unwrap_or_default();
        note(&mut found, format!("path {}", spot.path), spot.parent.meta(bstr_path(name)));
        if found.is_empty() {
            note(&mut found, format!("path {}", spot.path), lstat(spot.path));
        }
        note(
            &mut found,
            format!("trash {}", shown_in(spot.parent, spot.trash)),
            spot.parent.meta(bstr_path(spot.trash)),
        );
    }
    if let Some((common, name, record)) = &expected.entry {
        // git itself removes an empty `worktrees`.
        for (what, holder, name) in [
            ("registration", "worktrees", name.as_bstr().as_bytes()),
            ("registry trash", "treesweep/trash", record.as_str().as_bytes()),
        ] {
            let what = format!("{what} {}/{holder}/{}", common.path(), crate::vantage::paths::escape(name));
            match common.dir(holder) {
                Ok(holder) => note(&mut found, what, holder.meta(bstr_path(name))),
                Err(refused) => note(&mut found, what, Err(refused)),
            }
        }
    }
    if found.is_empty() { Ok(()) } else { Err(Observed(found)) }
}

/// Whether nothing is at `path`.
pub fn is_absent(path: &LocalPath) -> Result<(), String> {
    let mut found = Vec::new();
    note(&mut found, format!("path {path}"), lstat(path));
    found.pop().map_or(Ok(()), Err)
}

fn note(found: &mut Vec<String>, what: String, seen: Result<Meta, Refused>) {
    match seen {
        Err(Refused::Absent) => {}
        Ok(meta) => found.push(format!("{what} is {} of uid {}", meta.kind.described(), meta.uid)),
        Err(refused) => found.push(format!("{what} could not be looked at: {refused}")),
    }
}

fn shown_in(parent: &Dir, name: &[u8]) -> String {
    format!("{}/{}", parent.path(), crate::vantage::paths::escape(name))
}

/// The command that finishes what was begun beneath `root`, and changes nothing where all is done.
pub fn retry(root: &LocalPath) -> String {
    format!("treesweep prune {}", shell_quoted(root.as_bstr()))
}

/// `bytes` as one word of a POSIX shell, or of bash where they can't be shown plainly.
pub fn shell_quoted(bytes: &[u8]) -> String {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+,@%:=".contains(b);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_str_lossy().into_owned();
    }
    let shown = crate::vantage::paths::escape(bytes);
    if shown.as_bytes() == bytes {
        return format!("'{}'", shown.replace('\'', r"'\''"));
    }
    let escaped: String = bytes
        .iter()
        .map(|b| match b {
            b'\'' | b'\\' => format!("\\{}", char::from(*b)),
            b' '..=b'~' => char::from(*b).to_string(),
            _ => format!("\\x{b:02x}"),
        })
        .collect();
    format!("$'{escaped}'")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_enoent_proves() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("worktrees")).unwrap();
        let parent = Dir::open(&LocalPath::new(&path).unwrap()).unwrap();
        let checkout = LocalPath::new(path.join("x")).unwrap();
        let (name, id) = (EntryName::new("n").unwrap(), "20250301T101112123Z-0123456789ab".parse().unwrap());
        let observed = || {
            let spot = Spot { parent: &parent, path: &checkout, trash: b"trash" };
            verify(&Expected { checkout: Some(spot), entry: Some((&parent, &name, &id)) })
                .err()
                .map(|o| o.to_string())
        };
        assert_eq!(observed(), None);
        symlink("nowhere", path.join("x")).unwrap();
        assert!(observed().unwrap().contains("is a symlink"));
        std::fs::remove_file(path.join("x")).unwrap();
        std::fs::create_dir(path.join("trash")).unwrap();
        assert!(observed().unwrap().starts_with(&format!("trash {}/trash is a directory", path.display())));
        std::fs::remove_dir(path.join("trash")).unwrap();
        std::fs::create_dir(path.join("worktrees/n")).unwrap();
        assert!(observed().unwrap().contains("registration"));
        std::fs::remove_dir_all(path.join("worktrees")).unwrap();
        assert_eq!(observed(), None);
        symlink("elsewhere", path.join("worktrees")).unwrap();
        assert!(observed().unwrap().contains("could not be looked at"));
    }

    #[test]
    fn words_are_quoted() {
        for (bytes, word) in [
            (&b"/w/app"[..], "/w/app"),
            (b"", "''"),
            (b"/w/a b", "'/w/a b'"),
            (b"it's", r"'it'\''s'"),
            (b"a\n\xff'", r"$'a\x0a\xff\''"),
            ("/w/\u{fc}".as_bytes(), "'/w/\u{fc}'"),
        ] {
            assert_eq!(shell_quoted(bytes), word);
        }
    }
}

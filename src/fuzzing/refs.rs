//! HEAD, refs, their logs, and LFS pointers.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use gix::hash::Kind::Sha1;

use crate::git::lfs;
use crate::git::reflog;
use crate::git::refs::{Target, packed, parse_loose};
use crate::git::registration::{Head, parse_head};
use crate::sweep::packed::find;

/// HEAD, and a loose ref of the same bytes.
pub fn head(bytes: &[u8]) {
    let loose = parse_loose(bytes, Sha1);
    match parse_head(bytes) {
        Some(Head::Branch(name)) => {
            assert!(name.starts_with(b"refs/"));
            assert!(name.split_str("/").all(|part| !part.is_empty() && !part.starts_with(b".")), "{name}");
            assert!(!name.iter().any(u8::is_ascii_control), "{name}");
            let written = [b"ref: ", name.as_slice(), b"\n"].concat();
            assert_eq!(parse_head(&written).as_ref(), Some(&Head::Branch(name.clone())));
            assert_eq!(loose, Target::Symbolic(name), "a ref of these bytes says something else");
        }
        Some(Head::Detached(id)) => {
            assert_eq!(parse_head(format!("{id}\n").as_bytes()), Some(Head::Detached(id)));
            if id.kind() == Sha1 && !id.is_null() {
                assert_eq!(loose, Target::Direct(id));
            }
        }
        None => assert!(!matches!(loose, Target::Symbolic(name) if name.starts_with(b"refs/"))),
    }
}

/// `packed-refs`: both readers say the same, and taking one ref out changes no other.
pub fn packed_refs(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        let mut refs: BTreeMap<BString, Target> = BTreeMap::new();
        packed(bytes, Sha1, &mut refs).map(|()| refs)
    };
    let Ok(refs) = read(bytes) else { return };
    for (name, target) in refs.iter().take(16) {
        let Ok(found) = find(bytes, name.as_bstr()) else { continue };
        let (lines, id) = found.expect("the other reader found it");
        match target {
            Target::Direct(direct) => assert_eq!(id, *direct),
            Target::Broken(_) => assert!(id.is_null()),
            Target::Symbolic(to) => panic!("a packed ref leads to {to}"),
        }
        let rest = [&bytes[..lines.start], &bytes[lines.end..]].concat();
        let mut fewer = refs.clone();
        fewer.remove(name);
        assert_eq!(read(&rest), Ok(fewer), "without {name}");
    }
}

/// A reflog: no line of it is passed over, as a commit that only it names would be lost.
pub fn reflog(bytes: &[u8]) {
    let Ok(lines) = reflog::parse(bytes) else { return };
    assert_eq!(lines.len(), bytes.lines().count());
    for line in &lines {
        assert!(!reflog::makes_commit(line) || line.old != line.new);
    }
}

/// A pointer of Git LFS has one spelling.
pub fn lfs(bytes: &[u8]) {
    let Some(pointer) = lfs::Pointer::parse(bytes) else { return };
    let hex: String = pointer.sha256.iter().map(|byte| format!("{byte:02x}")).collect();
    let version = "version https://git-lfs.github.com/spec/v1";
    let spelled = format!("{version}\noid sha256:{hex}\nsize {}\n", pointer.size);
    assert_eq!(spelled.as_bytes(), bytes);
}

//! The index of a checkout.

use bstr::ByteSlice;
use gix::hash::Kind::Sha1;
use gix::index::State;

use crate::beneath::Stamp;
use crate::git::index::{Depth, Index, checked, decoded, joined_state, shared_by};

/// An index file: what is accepted falls into directories and names with nothing left over.
pub fn index(bytes: &[u8]) {
    if let Some(state) = parse(bytes) {
        whole(state);
    }
}

/// Two index files, the first with its length in front of it: a split index and the one that it shares.
pub fn split_index(bytes: &[u8]) {
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let Some((own, shared)) = rest.split_at_checked(u16::from_be_bytes(*length).into()) else { return };
    let (Some(own), Some(shared)) = (parse(own), parse(shared)) else { return };
    if shared_by(&own).is_none() {
        return;
    }
    let Ok(joined) = joined_state(&own, &shared, Sha1) else { return };
    let most = own.entries().len() + shared.entries().len();
    assert!(joined.entries().len() <= most, "joining made entries of nothing");
    whole(joined);
}

fn parse(bytes: &[u8]) -> Option<State> {
    // With a checksum to be met, next to nothing that is tried would get any further.
    decoded(bytes, Sha1, Depth::Plan, None).ok()
}

fn whole(state: State) {
    let Ok(index) = checked(state, Stamp::default()) else { return };
    let all = index.entries().len();
    let mut leaves = 0;
    let mut pending = vec![(0..all, 0)];
    while let Some((range, prefix)) = pending.pop() {
        let mut next = range.start;
        let Ok(groups) = index.children(range.clone(), prefix) else { return };
        for group in groups {
            assert_eq!(group.at, next, "an entry was passed over");
            assert!(group.end > group.at && group.end <= range.end);
            next = group.end;
            let name = group.name_in(&index);
            assert!(!matches!(name.as_bytes(), b"" | b"." | b".." | b".git"), "{name}");
            assert!(!name.contains(&b'/') && !name.contains(&0), "{name:?}");
            if group.is_dir && !group.is_sparse_directory(&index) {
                pending.push((group.at..group.end, group.name.end + 1));
            } else {
                leaves += group.end - group.at;
                found_by_its_path(&index, group.at);
            }
        }
        assert_eq!(next, range.end, "an entry was passed over");
    }
    assert_eq!(leaves, all);
}

fn found_by_its_path(index: &Index, at: usize) {
    let entry = &index.entries()[at];
    if entry.flags.stage_raw() == 0 {
        assert_eq!(index.entry(index.path(at)), Some(entry), "{}", index.path(at));
    }
}

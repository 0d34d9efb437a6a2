//! The index against a tree: what `git diff --cached` would list.

use std::cmp::Ordering;

use bstr::{BStr, BString};
use gix::ObjectId;
use gix::index::entry::{Flags, Mode};
use gix::object::tree::EntryKind;

use crate::git::index::{Group, Index, joined};
use crate::git::open::{Unreadable, chain};
use crate::judge::tree_facts::Sample;

/// Deeper trees than this are not followed.
const DEEPEST: usize = 2048;

/// A directory to compare: its tree (if HEAD has it), its entries, its path with a slash at the end.
struct Pending {
    tree: Option<ObjectId>,
    range: std::ops::Range<usize>,
    prefix: BString,
    depth: usize,
}

/// Paths in which index and tree differ; conflicted and intent-to-add ones are told apart by their own facts, and an
/// intent to add counts as absent, as in git.
pub(super) fn staged(
    repo: &gix::Repository,
    tree: Option<ObjectId>,
    index: &Index,
) -> Result<Sample, Unreadable> {
    let mut staged = Sample::default();
    let root = Pending { tree, range: 0..index.entries().len(), prefix: BString::default(), depth: 0 };
    let mut pending = vec![root];
    while let Some(next) = pending.pop() {
        if next.depth > DEEPEST {
            return Err(Unreadable::new(format_args!("tree of HEAD: it is deeper than {DEEPEST} levels")));
        }
        directory(repo, index, next, &mut pending, &mut staged)?;
    }
    staged.first.sort_unstable();
    Ok(staged)
}

/// Merges one directory's tree with its part of the index: both are in git's order, where a directory's name counts
/// as if it ended in a slash. What finds no partner differs, so no order can make different things look equal.
fn directory(
    repo: &gix::Repository,
    index: &Index,
    dir: Pending,
    pending: &mut Vec<Pending>,
    staged: &mut Sample,
) -> Result<(), Unreadable> {
    let groups = index.children(dir.range.clone(), dir.prefix.len())?;
    let mut groups = groups.iter().peekable();
    let tree = match dir.tree {
        Some(id) => {
            Some(repo.find_tree(id).map_err(|e| Unreadable::new(format_args!("tree {id}: {}", chain(&e))))?)
        }
        None => None,
    };
    for entry in tree.iter().flat_map(|t| t.iter()) {
        let entry = entry.map_err(|e| Unreadable::new(format_args!("tree below HEAD: {}", chain(&e))))?;
        let in_tree =
            InTree { name: entry.filename(), kind: entry.mode().kind(), id: entry.object_id(), dir: &dir };
        while let Some(group) = groups.next_if(|g| order(index, g, &in_tree) == Ordering::Less) {
            only_in_index(index, group, &dir, pending, staged);
        }
        match groups.next_if(|g| order(index, g, &in_tree) == Ordering::Equal) {
            Some(group) => in_both(index, group, &in_tree, pending, staged),
            None => only_in_tree(&in_tree, pending, staged),
        }
    }
    for group in groups {
        only_in_index(index, group, &dir, pending, staged);
    }
    Ok(())
}

/// An entry of the tree, and the directory that it is in.
struct InTree<'a> {
    name: &'a BStr,
    kind: EntryKind,
    id: ObjectId,
    dir: &'a Pending,
}

impl InTree<'_> {
    fn path(&self) -> BString {
        joined(self.dir.prefix.as_ref(), self.name)
    }

    /// Compares the tree as a directory below this one, with what `range` of the index has there.
    fn below(&self, range: std::ops::Range<usize>) -> Pending {
        let mut prefix = self.path();
        prefix.push(b'/');
        Pending { tree: Some(self.id), range, prefix, depth: self.dir.depth + 1 }
    }
}

/// Git's order of names in a tree (`base_name_compare`).
fn order(index: &Index, group: &Group, entry: &InTree<'_>) -> Ordering {
    let (a, b) = (group.name_in(index), entry.name);
    let shared = a.len().min(b.len());
    let next = |name: &BStr, is_dir: bool| match name.get(shared) {
        Some(byte) => *byte,
        None if is_dir => b'/',
        None => 0,
    };
    let in_tree = next(b, entry.kind == EntryKind::Tree);
    a[..shared].cmp(&b[..shared]).then_with(|| next(a, group.is_dir).cmp(&in_tree))
}

fn only_in_index(
    index: &Index,
    group: &Group,
    dir: &Pending,
    pending: &mut Vec<Pending>,
    staged: &mut Sample,
) {
    if group.is_dir && !group.is_sparse_directory(index) {
        let mut prefix = joined(dir.prefix.as_ref(), group.name_in(index));
        prefix.push(b'/');
        pending.push(Pending { tree: None, range: group.at..group.end, prefix, depth: dir.depth + 1 });
    } else if counts(index, group) {
        staged.add(index.path(group.at));
    }
}

fn only_in_tree(entry: &InTree<'_>, pending: &mut Vec<Pending>, staged: &mut Sample) {
    match entry.kind {
        EntryKind::Tree => pending.push(entry.below(0..0)),
        _ => staged.add(entry.path()),
    }
}

fn in_both(
    index: &Index,
    group: &Group,
    entry: &InTree<'_>,
    pending: &mut Vec<Pending>,
    staged: &mut Sample,
) {
    let listed = &index.entries()[group.at];
    if group.is_dir && !group.is_sparse_directory(index) {
        pending.push(entry.below(group.at..group.end));
    } else if listed.flags.contains(Flags::INTENT_TO_ADD) {
        staged.add(entry.path());
    } else if counts(index, group) && (listed.id != entry.id || listed.mode != Mode::from(entry.kind)) {
        staged.add(index.path(group.at));
    }
}

/// Whether an entry takes part: conflicts are told by a fact of their own, and an intent to add is not there yet.
fn counts(index: &Index, group: &Group) -> bool {
    !index.entries()[group.at].flags.intersects(Flags::STAGE_MASK | Flags::INTENT_TO_ADD)
}

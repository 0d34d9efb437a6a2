//! Reading the index file, with a shared index where it is split.

use bstr::{BStr, BString};
use gix::ObjectId;
use gix::index::entry::{Flags, Mode, Stat};
use gix::index::{State, decode};

use crate::beneath::{Dir, Refused, Stamp};
use crate::git::index::{Depth, Index, joined};
use crate::git::open::{Unreadable, chain};
use crate::vantage::paths::escape;

/// The most bytes that are read of an index: some 10 million entries.
const LIMIT: u64 = 2 << 30;

/// Deeper trees than this are not followed: no path that git can check out has as many components.
const DEEPEST: usize = 2048;

/// The checked index of `git_dir`; `None` if it has none.
pub(super) fn index(git_dir: &Dir, hash: gix::hash::Kind, depth: Depth) -> Result<Option<Index>, Unreadable> {
    let Some((bytes, written)) = content(git_dir, "index")? else { return Ok(None) };
    let wrong = |why: String| unreadable(git_dir, "index", why);
    let state = decoded(&bytes, hash, depth, None).map_err(wrong)?;
    let Some(id) = shared_by(&state) else { return checked(state, written).map(Some) };
    let name = format!("sharedindex.{id}");
    let (shared, _) = content(git_dir, &name)?
        .ok_or_else(|| wrong("split index: its shared index is missing".to_owned()))?;
    let shared = decoded(&shared, hash, depth, Some(id)).map_err(|why| unreadable(git_dir, &name, why))?;
    let state = joined_state(&state, &shared, hash).map_err(|why| wrong(format!("split index: {why}")))?;
    checked(state, written).map(Some)
}

/// The shared index that a split one is to be joined with.
pub(crate) fn shared_by(state: &State) -> Option<ObjectId> {
    state.link().map(|link| link.shared_index_checksum).filter(|id| !id.is_null())
}

/// Sees that everything in `state` is as git writes it. A joined state has no cached tree: whatever that of a split
/// index covers, it is not the entries that were read.
pub(crate) fn checked(state: State, written: Stamp) -> Result<Index, Unreadable> {
    check(&state)?;
    let cached_root = state
        .tree()
        .filter(|t| t.num_entries.is_some_and(|n| n as usize == state.entries().len()))
        .map(|t| t.id);
    Ok(Index { state, written, cached_root })
}

fn unreadable(git_dir: &Dir, name: &str, why: impl std::fmt::Display) -> Unreadable {
    Unreadable::new(format_args!("{}/{name}: {why}", git_dir.path()))
}

fn content(git_dir: &Dir, name: &str) -> Result<Option<(Vec<u8>, Stamp)>, Unreadable> {
    let (file, meta) = match git_dir.file(name) {
        Ok(opened) => opened,
        Err(Refused::Absent) => return Ok(None),
        Err(refused) => return Err(unreadable(git_dir, name, refused)),
    };
    if meta.size > LIMIT {
        return Err(unreadable(git_dir, name, Refused::TooLarge { size: meta.size, limit: LIMIT }));
    }
    let mut bytes = Vec::with_capacity(meta.size as usize);
    std::io::Read::read_to_end(&mut std::io::Read::take(file, LIMIT + 1), &mut bytes)
        .map_err(|e| unreadable(git_dir, name, e))?;
    Ok(Some((bytes, meta.mtime)))
}

pub(crate) fn decoded(
    bytes: &[u8],
    hash: gix::hash::Kind,
    depth: Depth,
    expected_checksum: Option<ObjectId>,
) -> Result<State, String> {
    if depth == Depth::BeforeRemoval {
        verify_checksum(bytes, hash)?;
    }
    // Threads would only cost: workers already run beside each other.
    let options = decode::Options { thread_limit: Some(1), expected_checksum, ..decode::Options::default() };
    // gix only passes the time on; what we compare with is the file's own.
    let time = State::new(hash).timestamp();
    State::from_bytes(bytes, time, hash, options).map(|(state, _)| state).map_err(|e| chain(&e))
}

/// The trailer is the hash of all before it, or zeroes (`index.skipHash`).
fn verify_checksum(bytes: &[u8], hash: gix::hash::Kind) -> Result<(), String> {
    let Some(split) = bytes.len().checked_sub(hash.len_in_bytes()) else {
        return Err("it is too short".into());
    };
    let (content, trailer) = bytes.split_at(split);
    let trailer = ObjectId::from_bytes_or_panic(trailer);
    if trailer.is_null() {
        return Ok(());
    }
    let mut hasher = gix::hash::hasher(hash);
    hasher.update(content);
    match hasher.try_finalize() {
        Ok(actual) if actual == trailer => Ok(()),
        Ok(_) => Err("its checksum does not match its content".into()),
        Err(e) => Err(chain(&e)),
    }
}

/// A split index joined with the shared one that it names (git's `merge_base_index`): the first entries replace those
/// that the replace bitmap names, keeping their paths; the others are added; the delete bitmap drops shared ones.
pub(crate) fn joined_state(
    split: &State,
    shared: &State,
    hash: gix::hash::Kind,
) -> Result<State, &'static str> {
    let bitmaps = split.link().ok_or("no link")?.bitmaps.as_ref().ok_or("no bitmaps")?;
    let count = shared.entries().len();
    let (mut replaced, mut deleted) = (vec![false; count], vec![false; count]);
    for (map, marks) in [(&bitmaps.replace, &mut replaced), (&bitmaps.delete, &mut deleted)] {
        map.for_each_set_bit(|at| marks.get_mut(at).map(|mark| *mark = true))
            .ok_or("a bitmap names entries that the shared index lacks")?;
    }
    let mut own = split.entries().iter();
    let mut state = State::new(hash);
    for (at, entry) in shared.entries().iter().enumerate() {
        let path = entry.path(shared);
        if deleted[at] && replaced[at] {
            return Err("an entry is both replaced and deleted");
        }
        if replaced[at] {
            let by = own.next().ok_or("a replacement is missing")?;
            if !by.path(split).is_empty() {
                return Err("a replacement has a path");
            }
            state.dangerously_push_entry(by.stat, by.id, by.flags, by.mode, path);
        } else if !deleted[at] {
            state.dangerously_push_entry(entry.stat, entry.id, entry.flags, entry.mode, path);
        }
    }
    for entry in own {
        state.dangerously_push_entry(entry.stat, entry.id, entry.flags, entry.mode, entry.path(split));
    }
    state.sort_entries();
    Ok(state)
}

/// Sees that entries are in order and of a kind that git writes; names are checked where they are used.
fn check(state: &State) -> Result<(), Unreadable> {
    state.verify_entries().map_err(|e| Unreadable::new(format_args!("index: {}", chain(&e))))?;
    let mut sparse_directory: Option<&BStr> = None;
    for entry in state.entries() {
        let path = entry.path(state);
        if sparse_directory.is_some_and(|dir| path.starts_with(dir)) {
            // Git itself can make this (`update-index` on a path in such a directory), and is confused by it.
            return Err(Unreadable::new(format_args!(
                "index: `{}` is in a directory that one entry stands for",
                escape(path)
            )));
        }
        let known = matches!(
            entry.mode,
            Mode::FILE | Mode::FILE_EXECUTABLE | Mode::SYMLINK | Mode::COMMIT | Mode::DIR
        );
        // Only a directory of a sparse index ends in a slash, and it is left out by definition.
        let sparse = entry.mode == Mode::DIR;
        let flagged =
            entry.flags.contains(Flags::SKIP_WORKTREE) && !entry.flags.intersects(Flags::STAGE_MASK);
        // A short name's length stands before it, so that the file can hold one that no directory has.
        if !known || sparse != path.ends_with(b"/") || (sparse && !flagged) || path.contains(&0) {
            return Err(Unreadable::new(format_args!(
                "index: the entry `{}` is of a kind that git does not write",
                escape(path)
            )));
        }
        if sparse {
            sparse_directory = Some(path);
        }
    }
    Ok(())
}

/// All files of `tree` as entries below `prefix`, with these flags.
pub(super) fn of_tree(
    repo: &gix::Repository,
    tree: ObjectId,
    prefix: &BStr,
    flags: Flags,
) -> Result<Index, Unreadable> {
    let mut index = Index::empty(repo.object_hash());
    let mut pending = vec![(tree, BString::from(prefix), 0)];
    while let Some((id, prefix, depth)) = pending.pop() {
        if depth > DEEPEST {
            return Err(Unreadable::new(format_args!("tree {tree}: it is deeper than {DEEPEST} levels")));
        }
        let found =
            repo.find_tree(id).map_err(|e| Unreadable::new(format_args!("tree {id}: {}", chain(&e))))?;
        for entry in found.iter() {
            let entry = entry.map_err(|e| Unreadable::new(format_args!("tree {id}: {}", chain(&e))))?;
            let mut path = joined(prefix.as_ref(), entry.filename());
            let kind = entry.mode().kind();
            if kind == gix::object::tree::EntryKind::Tree {
                path.push(b'/');
                pending.push((entry.object_id(), path, depth + 1));
                continue;
            }
            index.state.dangerously_push_entry(
                Stat::default(),
                entry.object_id(),
                flags,
                Mode::from(kind),
                path.as_ref(),
            );
        }
    }
    index.state.sort_entries();
    check(&index.state)?;
    Ok(index)
}

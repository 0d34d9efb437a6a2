//! The index of a checkout: read by handle, checked, and compared with the tree of HEAD.
//!
//! Nothing in it is believed that would let a change pass: entries must be in order, paths plain, modes known; the
//! untracked cache and the fsmonitor bits are never asked.

mod compare;
mod read;

#[cfg(any(test, fuzzing))]
pub(crate) use read::{checked, decoded, joined_state, shared_by};

use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::index::entry::{Flags, Mode, Stage};

use crate::beneath::{Dir, Stamp};
use crate::git::open::Unreadable;
use crate::judge::tree_facts::IndexFacts;

/// How much is asked: the plan may use what git cached, the check before a removal may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The index's cached root tree answers whether something is staged, and its checksum is not computed. Time stamps
    /// count to the nanosecond.
    Plan,
    /// Everything is compared, and an entry that git itself would distrust (written in the second of the index) is
    /// compared by content.
    BeforeRemoval,
}

/// A decoded and checked index.
#[derive(Debug)]
pub struct Index {
    state: gix::index::State,
    /// When the index file was written: an entry as young as that may have changed unseen ("racy git").
    written: Stamp,
    /// The root tree that git cached, if that cache covers every entry.
    cached_root: Option<ObjectId>,
}

impl Index {
    /// The index that a checkout without an index file has.
    pub fn empty(hash: gix::hash::Kind) -> Self {
        Self { state: gix::index::State::new(hash), written: Stamp::default(), cached_root: None }
    }

    /// An index that lists exactly the files of `tree`, with paths below `prefix` (empty, or ending in a slash). Its
    /// stat data is empty, so content decides.
    pub fn of_tree(repo: &gix::Repository, tree: ObjectId, prefix: &BStr) -> Result<Self, Unreadable> {
        read::of_tree(repo, tree, prefix, Flags::empty())
    }

    /// The same for a directory that sparse checkout left out: its entries say so.
    pub fn of_left_out_tree(
        repo: &gix::Repository,
        tree: ObjectId,
        prefix: &BStr,
    ) -> Result<Self, Unreadable> {
        read::of_tree(repo, tree, prefix, Flags::SKIP_WORKTREE)
    }

    /// All entries, in the order of their paths' bytes.
    pub fn entries(&self) -> &[gix::index::Entry] {
        self.state.entries()
    }

    /// The path of the entry `at`, from the root of the repository.
    pub fn path(&self, at: usize) -> &BStr {
        self.state.entries()[at].path(&self.state)
    }

    /// When the index file was written.
    pub fn written(&self) -> Stamp {
        self.written
    }

    /// The entry of `path` in stage 0.
    pub fn entry(&self, path: &BStr) -> Option<&gix::index::Entry> {
        self.state.entry_by_path_and_stage(path, Stage::Unconflicted)
    }

    /// The names directly below the directory whose entries are `range` and whose path is `prefix` bytes long (its
    /// slash included), in the order of the index.
    pub fn children(&self, range: Range<usize>, prefix: usize) -> Result<Vec<Group>, Unreadable> {
        let mut groups = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let path = self.path(at);
            let rest = &path[prefix..];
            let (name_len, is_dir) = match rest.find_byte(b'/') {
                Some(slash) => (slash, true),
                None => (rest.len(), false),
            };
            let name = &rest[..name_len];
            if matches!(name.as_bytes(), b"" | b"." | b".." | b".git") {
                return Err(Unreadable::new(format_args!(
                    "index: the path `{}` is not one that git writes",
                    crate::vantage::paths::escape(path)
                )));
            }
            let shared = prefix + name_len + usize::from(is_dir);
            let end = self.end_of(at, range.end, |p| match is_dir {
                true => p.len() >= shared && p[..shared] == path[..shared],
                false => p == path,
            });
            let name = prefix..prefix + name_len;
            groups.push(Group { name, at, end, is_dir });
            at = end;
        }
        Ok(groups)
    }

    /// The first entry after `at` and before `end` whose path does not `belong`: steps double until one does not.
    fn end_of(&self, at: usize, end: usize, belong: impl Fn(&BStr) -> bool) -> usize {
        let mut known = at;
        let mut step = 1;
        while known + step < end && belong(self.path(known + step)) {
            known += step;
            step *= 2;
        }
        let (mut low, mut high) = (known + 1, end.min(known + step));
        while low < high {
            let middle = low + (high - low) / 2;
            match belong(self.path(middle)) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// What the index has of one name in a directory: the stages of a file, or what lies below a directory.
#[derive(Clone, Debug)]
pub struct Group {
    /// Where the name is in the path of the entry `at`.
    pub name: Range<usize>,
    pub at: usize,
    pub end: usize,
    /// The entries lie below the name; else they are the stages of the name itself.
    pub is_dir: bool,
}

impl Group {
    /// The name itself, in the directory.
    pub fn name_in<'a>(&self, index: &'a Index) -> &'a BStr {
        index.path(self.at)[self.name.clone()].as_bstr()
    }

    /// A directory that a sparse index holds as one entry.
    pub fn is_sparse_directory(&self, index: &Index) -> bool {
        self.is_dir && index.entries()[self.at].mode == Mode::DIR
    }
}

/// The index in the git directory `git_dir`, and what it says against `head_tree` (`None`: HEAD is unborn, the empty
/// tree). `repo` is that directory opened; only objects are asked of it, and a missing one is an error, never fetched.
pub fn index_facts(
    git_dir: &Dir,
    repo: &gix::Repository,
    head_tree: Option<ObjectId>,
    depth: Depth,
) -> Result<(IndexFacts, Index), Unreadable> {
    let Some(index) = read::index(git_dir, repo.object_hash(), depth)? else {
        return Ok((IndexFacts { missing: true, ..IndexFacts::default() }, Index::empty(repo.object_hash())));
    };
    let mut facts = IndexFacts::default();
    let mut last_conflict: Option<&BStr> = None;
    for (at, entry) in index.entries().iter().enumerate() {
        if entry.flags.intersects(Flags::STAGE_MASK) && last_conflict != Some(index.path(at)) {
            last_conflict = Some(index.path(at));
            facts.conflicted.add(index.path(at));
        } else if entry.flags.contains(Flags::INTENT_TO_ADD) {
            facts.intent_to_add.add(index.path(at));
        }
    }
    // Git drops its cached root whenever an entry changes, and has none while there are conflicts.
    let cached = depth == Depth::Plan && head_tree.is_some() && index.cached_root == head_tree;
    if !(cached && facts.conflicted.is_empty() && facts.intent_to_add.is_empty()) {
        facts.staged = compare::staged(repo, head_tree, &index)?;
    }
    Ok((facts, index))
}

/// A path with what is below it counted from there: `dir/` and `name` give `dir/name`.
pub(crate) fn joined(prefix: &BStr, name: &[u8]) -> BString {
    let mut path = BString::from(Vec::with_capacity(prefix.len() + name.len()));
    path.extend_from_slice(prefix);
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests;

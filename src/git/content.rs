//! Whether a branch's content has landed though its commits have not (squash, rebase): merging it changes nothing, and
//! it has a net change of its own. Trees decide, patch ids never do (case C85).
//!
//! The comparison goes down three trees at once and ends at the first path that a merge would change, so that a branch
//! that has plainly not landed costs a few trees. Where only content can tell, git's built-in text merge must give the
//! trunk's own bytes, and no attribute may ask for another way to merge. The answer is never wider than that of
//! `git merge-tree`: what it would call a conflict has not landed.

mod attributes;
mod renames;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::merge::blob::{Resolution, builtin_driver::text};
use gix::objs::tree::EntryMode;

use crate::git::objects::{Entries, Objects};
use crate::git::open::Unreadable;
use crate::stop::Stop;

/// Larger blobs are not merged: then the content has not landed, as far as we can tell.
const MERGE_LIMIT: usize = 8 << 20;
/// Trees with longer paths are not followed: nobody can check them out (`PATH_MAX`).
const LONGEST: usize = 4096;
/// More trees than these are not compared: forged ones can hold themselves, several times.
const MOST_TREES: usize = 1_000_000;

/// Whether merging the tree `tip` into the tree `trunk`, with `base` as their common ancestor, leaves `trunk` as it is,
/// and `tip` is not `base`.
///
/// # Errors
/// An object is missing, broken or forged, the trees are too large, or the run was asked to stop.
pub fn has_landed(
    objects: Objects<'_>,
    base: ObjectId,
    tip: ObjectId,
    trunk: ObjectId,
    stop: &Stop,
) -> Result<bool, Unreadable> {
    if base == tip {
        return Ok(false);
    }
    let mut merge = Merge { objects, stop, trunk, trees: 0, pending: Vec::new() };
    let trees = [Some(base), Some(tip), Some(trunk)];
    Ok(merge.lands(trees)? && !merge.has_moved(trees)?)
}

/// What a tree has at one name.
type Entry = Option<(EntryMode, ObjectId)>;

/// Base, tip and trunk.
type Three<T> = [T; 3];

/// Three trees at the same path; `None` is an absent one.
struct Place {
    path: BString,
    trees: Three<Option<ObjectId>>,
}

struct Merge<'a> {
    objects: Objects<'a>,
    stop: &'a Stop,
    trunk: ObjectId,
    /// How many were read.
    trees: usize,
    /// Where there is more to compare: no tree is so deep that it could overflow a stack.
    pending: Vec<Place>,
}

impl Merge<'_> {
    /// Whether the merge of the trees gives the trunk's.
    fn lands(&mut self, trees: Three<Option<ObjectId>>) -> Result<bool, Unreadable> {
        self.pending = vec![Place { path: BString::default(), trees }];
        while let Some(place) = self.pending.pop() {
            let [base, tip, trunk] = self.entries(place.trees)?;
            let names: BTreeSet<&BString> = base.keys().chain(tip.keys()).collect();
            for name in names {
                let at = |entries: &Entries| entries.get(name).copied();
                let path = self.below(&place.path, name.as_bstr())?;
                if !self.entry(path, [at(&base), at(&tip), at(&trunk)])? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Whether the merge of one entry gives the trunk's, as far as what lies below it does.
    fn entry(&mut self, path: BString, [base, tip, trunk]: Three<Entry>) -> Result<bool, Unreadable> {
        if tip == trunk || tip == base {
            return Ok(true);
        }
        // The trunk did not take the change, or has something where the tip removed something: if that was a directory,
        // git may take the removal for a renaming and carry the trunk's new files along.
        if trunk == base || tip.is_none() {
            return Ok(false);
        }
        let sides = [base, tip, trunk];
        let trees = sides.iter().flatten().filter(|(mode, _)| mode.is_tree()).count();
        if trees == 0 {
            return self.files(path.as_bstr(), sides);
        }
        // A file in the place of a directory conflicts.
        let all = trees == sides.iter().flatten().count();
        if all {
            self.pending.push(Place { path, trees: sides.map(tree) });
        }
        Ok(all)
    }

    /// All three differ: only a clean merge of text that gives the trunk's bytes will do.
    fn files(&self, path: &BStr, entries: Three<Entry>) -> Result<bool, Unreadable> {
        let [Some((base_mode, base)), Some((tip_mode, tip)), Some((trunk_mode, trunk))] = entries else {
            return Ok(false);
        };
        let blobs = [base_mode, tip_mode, trunk_mode].iter().all(|mode| mode.is_blob());
        let mode_lands = tip_mode == base_mode || tip_mode == trunk_mode;
        if !blobs || !mode_lands {
            return Ok(false);
        }
        if tip == base || tip == trunk {
            return Ok(true);
        }
        if trunk == base {
            return Ok(false);
        }
        if [base, tip, trunk].iter().any(|id| self.objects.size(*id).is_ok_and(|n| n > MERGE_LIMIT as u64)) {
            return Ok(false);
        }
        let [base, tip, trunk] =
            [self.objects.blob(base)?, self.objects.blob(tip)?, self.objects.blob(trunk)?];
        // Git's own test for binary content (`buffer_is_binary`).
        if [&base, &tip, &trunk].iter().any(|b| b[..b.len().min(8000)].contains(&0)) {
            return Ok(false);
        }
        // Which changes meet depends on how lines are matched, and git's ways are not quite ours: all have to agree.
        let algorithms = [gix::diff::blob::Algorithm::Histogram, gix::diff::blob::Algorithm::Myers];
        Ok(algorithms.into_iter().all(|algorithm| merges_to_trunk(algorithm, &base, &tip, &trunk))
            && attributes::merges_as_text(self.objects, self.trunk, path)?)
    }

    /// Whether the trunk has moved, not removed, one of the files that the tip removed: for git that is a conflict. To be
    /// asked only of what lands.
    fn has_moved(&mut self, [base, tip, trunk]: Three<Option<ObjectId>>) -> Result<bool, Unreadable> {
        let removed = self.only_in_first([base, tip, None])?;
        if removed.is_empty() {
            return Ok(false);
        }
        let added = self.only_in_first([trunk, base, tip])?;
        renames::any_similar(self.objects, &removed, &added, self.stop)
    }

    /// The files of the first tree at whose paths the second has nothing and the third nothing that is equal.
    fn only_in_first(&mut self, trees: Three<Option<ObjectId>>) -> Result<Vec<ObjectId>, Unreadable> {
        let mut found = Vec::new();
        let mut pending = vec![Place { path: BString::default(), trees }];
        while let Some(place) = pending.pop() {
            let [first, second, third] = self.entries(place.trees)?;
            for (name, entry) in first {
                let others = [second.get(&name).copied(), third.get(&name).copied()];
                let (mode, id) = entry;
                if others.contains(&Some(entry)) || mode.is_commit() {
                    continue;
                }
                if mode.is_tree() {
                    let path = self.below(&place.path, name.as_bstr())?;
                    pending.push(Place { path, trees: [Some(id), tree(others[0]), tree(others[1])] });
                } else if others[0].is_none() {
                    found.push(id);
                }
            }
        }
        Ok(found)
    }

    fn below(&self, path: &BString, name: &BStr) -> Result<BString, Unreadable> {
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        let path = BString::from([path.as_slice(), slash, name.as_bytes()].concat());
        match path.len() > LONGEST {
            true => Err(Unreadable(format!("tree {}: it is deeper than any checkout", self.trunk))),
            false => Ok(path),
        }
    }

    fn entries(&mut self, trees: Three<Option<ObjectId>>) -> Result<Three<Entries>, Unreadable> {
        self.trees += 1;
        if self.trees > MOST_TREES || self.stop.is_set() {
            return Err(Unreadable(format!("tree {}: it was not compared whole", self.trunk)));
        }
        let read = |tree: Option<ObjectId>| tree.map_or(Ok(Entries::new()), |id| self.objects.tree(id));
        let [base, tip, trunk] = trees;
        Ok([read(base)?, read(tip)?, read(trunk)?])
    }
}

fn tree(entry: Entry) -> Option<ObjectId> {
    entry.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id)
}

fn merges_to_trunk(algorithm: gix::diff::blob::Algorithm, base: &[u8], tip: &[u8], trunk: &[u8]) -> bool {
    let mut input = Default::default();
    let merge = text::Merge::new(&mut input, trunk, base, tip, algorithm);
    let mut merged = Vec::new();
    let resolution = merge.run(&mut merged, text::Labels::default(), text::Options::default().conflict);
    resolution == Resolution::Complete && merged == trunk
}

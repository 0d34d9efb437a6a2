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
/// Deeper trees are not followed: no path that git can check out has as many components.
const DEEPEST: usize = 1024;
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
    let mut merge = Merge { objects, stop, trunk, trees: 0, removed: Vec::new(), path: BString::default() };
    let trees = [Some(base), Some(tip), Some(trunk)];
    Ok(merge.trees(trees)? && !(merge.removed_by_both() && merge.has_moved(trees)?))
}

/// What a tree has at one name.
type Entry = Option<(EntryMode, ObjectId)>;

struct Merge<'a> {
    objects: Objects<'a>,
    stop: &'a Stop,
    trunk: ObjectId,
    /// How many were read.
    trees: usize,
    /// What the tip and the trunk both lack of the base.
    removed: Vec<(EntryMode, ObjectId)>,
    /// Where the comparison is.
    path: BString,
}

/// Base, tip and trunk.
type Three<T> = [T; 3];

impl Merge<'_> {
    /// Three trees at the same place; `None` is an absent one.
    fn trees(&mut self, trees: Three<Option<ObjectId>>) -> Result<bool, Unreadable> {
        let [base, tip, trunk] = self.entries(trees)?;
        let names: BTreeSet<&BString> = base.keys().chain(tip.keys()).collect();
        for name in names {
            let at = |entries: &Entries| entries.get(name).copied();
            let here = self.enter(name.as_bstr())?;
            let lands = self.entry([at(&base), at(&tip), at(&trunk)])?;
            self.path.truncate(here);
            if !lands {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the merge of one entry gives the trunk's.
    fn entry(&mut self, [base, tip, trunk]: Three<Entry>) -> Result<bool, Unreadable> {
        if tip == trunk {
            if tip.is_none() {
                self.removed.extend(base);
            }
            return Ok(true);
        }
        if tip == base {
            return Ok(true);
        }
        // The trunk did not take the change, or has something where the tip removed something: if that was a directory,
        // git may take the removal for a renaming and carry the trunk's new files along.
        if trunk == base || tip.is_none() {
            return Ok(false);
        }
        let tree = |entry: Entry| entry.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
        match [base, tip, trunk].iter().flatten().filter(|(mode, _)| mode.is_tree()).count() {
            0 => self.files([base, tip, trunk]),
            // What lies below it decides; a file in the place of a directory conflicts.
            trees if trees == [base, tip, trunk].iter().flatten().count() => {
                self.trees([tree(base), tree(tip), tree(trunk)])
            }
            _ => Ok(false),
        }
    }

    /// All three differ: only a clean merge of text that gives the trunk's bytes will do.
    fn files(&self, entries: Three<Entry>) -> Result<bool, Unreadable> {
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
            && attributes::merges_as_text(self.objects, self.trunk, self.path.as_bstr())?)
    }

    fn removed_by_both(&self) -> bool {
        !self.removed.is_empty()
    }

    /// Whether the trunk has moved, not removed, one of the files that the tip removed: for git that is a conflict.
    fn has_moved(&mut self, trees: Three<Option<ObjectId>>) -> Result<bool, Unreadable> {
        let mut sources = Vec::new();
        for entry in std::mem::take(&mut self.removed) {
            self.files_below(entry, &mut sources)?;
        }
        let mut added = Vec::new();
        self.added_by_trunk(trees, &mut added)?;
        renames::any_similar(self.objects, &sources, &added, self.stop)
    }

    /// The files that `entry` is or has below it.
    fn files_below(
        &mut self,
        entry: (EntryMode, ObjectId),
        files: &mut Vec<ObjectId>,
    ) -> Result<(), Unreadable> {
        let mut pending = vec![entry];
        while let Some((mode, id)) = pending.pop() {
            if mode.is_tree() {
                let [entries, ..] = self.entries([Some(id), None, None])?;
                pending.extend(entries.into_values());
            } else if !mode.is_commit() {
                files.push(id);
            }
        }
        Ok(())
    }

    /// Files of the trunk that neither the base nor the tip has.
    fn added_by_trunk(
        &mut self,
        trees: Three<Option<ObjectId>>,
        added: &mut Vec<ObjectId>,
    ) -> Result<(), Unreadable> {
        let [base, tip, trunk] = self.entries(trees)?;
        let tree = |entry: Entry| entry.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
        for (name, entry) in trunk {
            let (in_base, in_tip) = (base.get(&name).copied(), tip.get(&name).copied());
            if in_base == Some(entry) || in_tip == Some(entry) {
                continue;
            }
            let here = self.enter(name.as_bstr())?;
            match entry {
                (mode, id) if mode.is_tree() => {
                    self.added_by_trunk([tree(in_base), tree(in_tip), Some(id)], added)?;
                }
                (mode, id) if in_base.is_none() && !mode.is_commit() => added.push(id),
                _ => {}
            }
            self.path.truncate(here);
        }
        Ok(())
    }

    /// Goes on to `name`; what the path was before is its first so many bytes.
    fn enter(&mut self, name: &BStr) -> Result<usize, Unreadable> {
        let here = self.path.len();
        if here > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        if self.path.iter().filter(|b| **b == b'/').count() > DEEPEST {
            return Err(Unreadable(format!("tree {}: it is deeper than {DEEPEST} levels", self.trunk)));
        }
        Ok(here)
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

fn merges_to_trunk(algorithm: gix::diff::blob::Algorithm, base: &[u8], tip: &[u8], trunk: &[u8]) -> bool {
    let mut input = Default::default();
    let merge = text::Merge::new(&mut input, trunk, base, tip, algorithm);
    let mut merged = Vec::new();
    let resolution = merge.run(&mut merged, text::Labels::default(), text::Options::default().conflict);
    resolution == Resolution::Complete && merged == trunk
}

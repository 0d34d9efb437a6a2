//! Whether a branch's content has landed though its commits have not (squash, rebase): merging it changes nothing, and
//! it has a net change of its own. Trees decide, patch ids never do (case C85).
//!
//! The comparison goes down three trees at once and ends at the first path that a merge would change, so that a branch
//! that has plainly not landed costs a few trees. It uses no merge driver and no attribute: where only content can
//! tell, git's built-in text merge must give the trunk's own bytes.

use std::collections::BTreeSet;

use bstr::BString;
use gix::ObjectId;
use gix::merge::blob::{Resolution, builtin_driver::text};
use gix::objs::tree::EntryMode;

use crate::git::open::Unreadable;

/// Larger blobs are not merged: then the content has not landed, as far as we can tell.
const MERGE_LIMIT: usize = 8 << 20;

/// Whether merging the tree `tip` into the tree `trunk`, with `base` as their common ancestor, leaves `trunk` as it is,
/// and `tip` is not `base`.
///
/// # Errors
/// An object is missing or broken.
pub fn has_landed(
    repo: &gix::Repository,
    base: ObjectId,
    tip: ObjectId,
    trunk: ObjectId,
) -> Result<bool, Unreadable> {
    Ok(base != tip && Merge { repo }.trees(Some(base), Some(tip), Some(trunk))?)
}

struct Merge<'r> {
    repo: &'r gix::Repository,
}

type Entry = Option<(EntryMode, ObjectId)>;

impl Merge<'_> {
    /// Three trees at the same place; `None` is an absent one.
    fn trees(
        &self,
        base: Option<ObjectId>,
        tip: Option<ObjectId>,
        trunk: Option<ObjectId>,
    ) -> Result<bool, Unreadable> {
        let [base, tip, trunk] = [self.entries(base)?, self.entries(tip)?, self.entries(trunk)?];
        let names: BTreeSet<&BString> = base.keys().chain(tip.keys()).collect();
        for name in names {
            let at = |entries: &Entries| entries.get(name).copied();
            if !self.entry(at(&base), at(&tip), at(&trunk))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the merge of one entry gives the trunk's.
    fn entry(&self, base: Entry, tip: Entry, trunk: Entry) -> Result<bool, Unreadable> {
        if tip == base || tip == trunk {
            return Ok(true);
        }
        if trunk == base {
            return Ok(false);
        }
        let tree = |entry: Entry| entry.filter(|(mode, _)| mode.is_tree()).map(|(_, id)| id);
        match (tree(base), tree(tip), tree(trunk)) {
            (None, None, None) => self.files(base, tip, trunk),
            // A directory on one side at least: what lies below it decides, and a file in its place conflicts.
            (b, t, k) if [base, tip, trunk].iter().flatten().all(|(mode, _)| mode.is_tree()) => {
                self.trees(b, t, k)
            }
            _ => Ok(false),
        }
    }

    /// All three differ: only a clean merge of text that gives the trunk's bytes will do.
    fn files(&self, base: Entry, tip: Entry, trunk: Entry) -> Result<bool, Unreadable> {
        let (Some((base_mode, base)), Some((tip_mode, tip)), Some((trunk_mode, trunk))) = (base, tip, trunk)
        else {
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
        let [base, tip, trunk] = [self.blob(base)?, self.blob(tip)?, self.blob(trunk)?];
        if [&base, &tip, &trunk].iter().any(|b| b.len() > MERGE_LIMIT || b[..b.len().min(8000)].contains(&0))
        {
            return Ok(false);
        }
        let mut input = Default::default();
        let options = text::Options::default();
        let merge = text::Merge::new(&mut input, &trunk, &base, &tip, options.diff_algorithm);
        let mut merged = Vec::new();
        let resolution = merge.run(&mut merged, text::Labels::default(), options.conflict);
        Ok(resolution == Resolution::Complete && merged == trunk)
    }

    fn entries(&self, tree: Option<ObjectId>) -> Result<Entries, Unreadable> {
        let Some(id) = tree else { return Ok(Entries::new()) };
        let tree = self.repo.find_tree(id).map_err(|e| missing(id, &e))?;
        let decoded = tree.decode().map_err(|e| missing(id, &e))?;
        Ok(decoded.entries.iter().map(|e| (e.filename.to_owned(), (e.mode, e.oid.to_owned()))).collect())
    }

    fn blob(&self, id: ObjectId) -> Result<Vec<u8>, Unreadable> {
        let mut blob = self.repo.find_blob(id).map_err(|e| missing(id, &e))?;
        Ok(blob.take_data())
    }
}

type Entries = std::collections::BTreeMap<BString, (EntryMode, ObjectId)>;

fn missing(id: ObjectId, error: &dyn std::fmt::Display) -> Unreadable {
    Unreadable(format!("object {id}: {error}"))
}

//! Whether a directory can be a checkout of a tree, asked for many trees: every answer about a file or a subtree is
//! remembered, so that a commit costs what it changed.
//!
//! Only what a tree has is looked for. That nothing else is there, the walk itself must say.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::index::entry::Mode;
use gix::object::tree::EntryKind;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::open::{Unreadable, chain};
use crate::git::tree;
use crate::stop::Stop;
use crate::survey::walk::fingerprint::child_path;
use crate::survey::walk::handle::{open_deep, read_file};
use crate::survey::walk::listing::Listing;
use crate::survey::walk::rules::{LIMIT, Rules};
use crate::survey::walk::tracked::{Files, Outcome, Stored};
use crate::survey::walk::{RuleFiles, Tree, rules_of};
use crate::vantage::paths::escape;

/// Deeper trees than this are not followed.
const DEEPEST: usize = 2048;

/// What is known of one directory.
pub(in crate::survey) struct Likeness<'a> {
    root: Dir,
    repo: &'a gix::Repository,
    stop: &'a Stop,
    tree: Tree,
    top: Rules,
    /// Directories by path; `None` if there is no such directory.
    directories: HashMap<BString, Option<Known>>,
    files: HashMap<(BString, ObjectId), bool>,
    trees: HashMap<(BString, ObjectId), bool>,
}

struct Known {
    listing: Listing,
    rules: Rules,
}

impl<'a> Likeness<'a> {
    pub(in crate::survey) fn new(
        checkout: &Dir,
        common: &Dir,
        repo: &'a gix::Repository,
        stop: &'a Stop,
    ) -> Result<Self, Unreadable> {
        Ok(Self {
            root: checkout.dir(".").map_err(|e| Unreadable::new(format_args!("{}: {e}", checkout.path())))?,
            repo,
            stop,
            tree: Tree::new(repo, RuleFiles::OnlyTracked, None)?,
            top: rules_of(common, RuleFiles::OnlyTracked)?,
            directories: HashMap::new(),
            files: HashMap::new(),
            trees: HashMap::new(),
        })
    }

    /// Whether each file of `tree` is there, with its mode and content. A file that only a filter could compare counts
    /// as alike.
    pub(in crate::survey) fn is_like(&mut self, tree: ObjectId) -> Result<bool, Unreadable> {
        self.directory_is_like(BStr::new(""), tree, 0)
    }

    /// How many of `files` are not there, or differ.
    pub(in crate::survey) fn differing(&mut self, files: &[tree::File]) -> Result<u64, Unreadable> {
        let mut differing = 0;
        for file in files.iter().filter(|file| file.kind != EntryKind::Commit) {
            if self.stop.is_set() {
                return Err(Unreadable::new("the run was asked to stop"));
            }
            let (dir, name) = file.place();
            // A directory is looked at after the one that it is in.
            self.known(BStr::new(""))?;
            for end in dir.find_iter("/").chain((!dir.is_empty()).then_some(dir.len())) {
                self.known(dir[..end].as_bstr())?;
            }
            differing += u64::from(!self.file_is_like(dir, name, file.kind, file.id)?);
        }
        Ok(differing)
    }

    fn directory_is_like(&mut self, path: &BStr, id: ObjectId, depth: usize) -> Result<bool, Unreadable> {
        let key = (path.to_owned(), id);
        if let Some(known) = self.trees.get(&key) {
            return Ok(*known);
        }
        if depth > DEEPEST {
            return Err(Unreadable::new(format_args!("tree {id}: it is nested too deeply")));
        }
        let wrong = |e: &dyn std::error::Error| Unreadable::new(format_args!("tree {id}: {}", chain(e)));
        let tree = self.repo.find_tree(id).map_err(|e| wrong(&e))?;
        let mut like = self.known(path)?.is_some();
        // Files first: they answer at once.
        for subtrees in [false, true] {
            for entry in tree.iter() {
                let entry = entry.map_err(|e| wrong(&e))?;
                let kind = entry.mode().kind();
                if !like || (kind == EntryKind::Tree) != subtrees || kind == EntryKind::Commit {
                    continue;
                }
                let inner = child_path(path, entry.filename());
                like = match subtrees {
                    true => self.directory_is_like(inner.as_ref(), entry.object_id(), depth + 1)?,
                    false => self.file_is_like(path, entry.filename(), kind, entry.object_id())?,
                };
            }
        }
        self.trees.insert(key, like);
        Ok(like)
    }

    fn file_is_like(
        &mut self,
        dir: &BStr,
        name: &BStr,
        kind: EntryKind,
        id: ObjectId,
    ) -> Result<bool, Unreadable> {
        let path = child_path(dir, name);
        let key = (path, id);
        if let Some(known) = self.files.get(&key) {
            return Ok(*known);
        }
        let known = self.directories.get(dir).and_then(Option::as_ref);
        let like = match known.and_then(|known| Some((known, known.listing.child(name)?))) {
            None => false,
            Some((known, child)) => {
                let at = |e: &dyn std::fmt::Display| Unreadable::new(format_args!("{}: {e}", escape(&key.0)));
                let fd = self.open(dir).map_err(|e| at(&e))?;
                let stored = Stored { path: key.0.as_ref(), mode: Mode::from(kind), id };
                let mut files = Files::new(&self.tree, &known.rules, fd.as_fd(), self.stop);
                let outcome = files.compare_content(name, &child.meta, stored).map_err(|e| at(&e))?;
                matches!(outcome, Outcome::Clean | Outcome::NeedsFilter)
            }
        };
        self.files.insert(key, like);
        Ok(like)
    }

    /// The directory `path`, listed once.
    fn known(&mut self, path: &BStr) -> Result<Option<&Known>, Unreadable> {
        if !self.directories.contains_key(path) {
            let known = self.look(path)?;
            self.directories.insert(path.to_owned(), known);
        }
        Ok(self.directories.get(path).and_then(Option::as_ref))
    }

    fn look(&self, path: &BStr) -> Result<Option<Known>, Unreadable> {
        let mut rules = self.top.clone();
        if !path.is_empty() {
            let (above, name) = path.rsplit_once_str("/").unwrap_or((b"", path));
            let Some(above) = self.directories.get(above.as_bstr()).and_then(Option::as_ref) else {
                return Ok(None);
            };
            match above.listing.child(name) {
                Some(child) if child.meta.kind == Kind::Directory => rules = above.rules.clone(),
                _ => return Ok(None),
            }
        }
        let at = |e: Refused| Unreadable::new(format_args!("{}: {e}", escape(path)));
        let fd = self.open(path).map_err(at)?;
        let listing = Listing::read(fd.as_fd(), self.stop).map_err(at)?;
        let attributes = match listing.child(".gitattributes") {
            Some(child) if child.meta.kind == Kind::File => {
                Some(read_file(fd.as_fd(), ".gitattributes".into(), LIMIT).map_err(at)?)
            }
            _ => None,
        };
        let dir = if path.is_empty() { BString::default() } else { child_path(path, "".into()) };
        if attributes.is_some() {
            rules = rules.within(dir.as_ref(), None, attributes);
        }
        Ok(Some(Known { listing, rules }))
    }

    fn open(&self, dir: &BStr) -> Result<OwnedFd, Refused> {
        open_deep(self.root.as_fd(), if dir.is_empty() { ".".into() } else { dir })
    }
}

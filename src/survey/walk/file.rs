//! One name in a directory: what the index has of it, against what is there.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use bstr::{BStr, BString};
use gix::index::entry::{Flags, Mode};

use crate::beneath::{Kind, Meta};
use crate::git::index::{Group, Index};
use crate::judge::tree_facts::{Sample, SubmoduleState, TreeFacts};
use crate::survey::disposable;
use crate::survey::precious::is_also_in;
use crate::survey::walk::directory::{Job, Zone, note_mount, split};
use crate::survey::walk::findings::{Finding, Found};
use crate::survey::walk::fingerprint::child_path;
use crate::survey::walk::handle::{Parent, Stoppable, open_file};
use crate::survey::walk::listing::Child;
use crate::survey::walk::rules::Rules;
use crate::survey::walk::tracked::{Files, Outcome};
use crate::survey::walk::{Walk, locked};
use crate::vantage::paths::escape;

/// The visit of one directory, name by name.
pub(super) struct Visit<'a> {
    walk: &'a Walk<'a>,
    job: &'a Job,
    rules: &'a Rules,
    fd: BorrowedFd<'a>,
    found: &'a mut Found,
    files: Files<'a>,
    next: Vec<Job>,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        walk: &'a Walk<'a>,
        job: &'a Job,
        rules: &'a Rules,
        fd: BorrowedFd<'a>,
        found: &'a mut Found,
    ) -> Self {
        let files = Files::new(&job.tree, rules, fd, walk.options.stop);
        Self { walk, job, rules, fd, found, files, next: Vec::new() }
    }

    /// The directories that are to be visited; their parent's handle is still to be put in.
    pub(super) fn finish(self) -> Vec<Job> {
        self.next
    }

    /// Names that the index has and the directory has not.
    pub(super) fn missing(&mut self, groups: &[Group]) {
        for at in groups.iter().flat_map(|g| g.at..g.end) {
            self.missing_entry(at);
        }
    }

    fn missing_entry(&mut self, at: usize) {
        let entry = &self.job.index.entries()[at];
        // Conflicts and intents to add are the index's facts; what is flagged need not be there.
        let spoken_for =
            Flags::STAGE_MASK | Flags::INTENT_TO_ADD | Flags::SKIP_WORKTREE | Flags::ASSUME_VALID;
        if !entry.flags.intersects(spoken_for) {
            self.report(Finding::Deleted, self.entry_path(at));
        }
    }

    /// A name that is there, with what the index has of it.
    pub(super) fn child(&mut self, name: &BStr, child: &Child, groups: &[Group]) {
        let meta = &child.meta;
        let path = || child_path(self.job.path.as_ref(), name);
        self.found.modified_at(meta.mtime, path);
        if let Some(why) = self.walk.powers.hold_of_child(&self.job.meta, meta) {
            self.found.undeletable(path(), why);
        }
        // A bind mount of the same file system has another mount id; a btrfs subvolume is a directory with another
        // device. (The files of an overlay may differ in device without being mounted.)
        let root = &self.walk.root_meta;
        let dir = meta.kind == Kind::Directory;
        if meta.mount != root.mount || (dir && meta.id.dev != root.id.dev) {
            return note_mount(self.walk, path().as_ref(), self.found);
        }
        let (file, below) = split(groups);
        if dir {
            self.directory(name, meta, file, below);
        } else {
            self.missing(below.map_or(&[], std::slice::from_ref));
            self.file(name, meta, file);
        }
    }

    fn directory(&mut self, name: &BStr, meta: &Meta, file: Option<&Group>, below: Option<&Group>) {
        let path = child_path(self.job.path.as_ref(), name);
        let job = self.job;
        let submodule = file.map(|g| &job.index.entries()[g.at]).filter(|entry| entry.mode == Mode::COMMIT);
        // That a submodule's place is ignored says nothing of its files: they follow its own rules.
        let ignored = submodule.is_none() && (job.ignored || self.ignores(path.as_ref(), true));
        self.found.count_directory(meta, ignored);
        if self.walk.options.known_checkouts.contains(&meta.id) {
            return self.known_checkout(path, file.or(below).is_some());
        }
        let mut zone = job.zone;
        if name == ".git" {
            zone = Zone::Foreign;
        }
        match (file, submodule) {
            (_, Some(entry)) => {
                zone = Zone::Submodule(entry.id);
                if below.is_some() {
                    self.found.unreadable(path.clone(), "the index has files where it has a submodule");
                }
            }
            (Some(group), None) => self.directory_in_place_of(group.at),
            (None, None) => {}
        }
        let (index, range) = match below {
            Some(group) if group.is_sparse_directory(&job.index) => match self.left_out(group) {
                Some(index) => {
                    let count = index.entries().len();
                    (Arc::new(index), 0..count)
                }
                None => return,
            },
            Some(group) => (Arc::clone(&job.index), group.at..group.end),
            None => (Arc::clone(&job.index), 0..0),
        };
        self.next.push(Job {
            parent: Parent::Root,
            path,
            meta: *meta,
            tree: Arc::clone(&job.tree),
            index,
            range,
            rules: self.rules.clone(),
            zone,
            ignored,
            disposable: ignored && (job.disposable || disposable::by_name(name).is_some()),
        });
    }

    /// The files that a sparse index has below one entry; sparse checkout left them out, yet the directory is here.
    fn left_out(&mut self, group: &Group) -> Option<Index> {
        let tree = self.job.index.entries()[group.at].id;
        let prefix = self.job.index.path(group.at);
        match Index::of_left_out_tree(&self.job.tree.repo.to_thread_local(), tree, prefix) {
            Ok(index) => Some(index),
            Err(why) => {
                self.found.unreadable(self.entry_path(group.at), why);
                None
            }
        }
    }

    /// A directory where the index has a file: git calls the file deleted.
    fn directory_in_place_of(&mut self, at: usize) {
        let flags = self.job.index.entries()[at].flags;
        if flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID) {
            self.report(Finding::Hidden, self.entry_path(at));
        } else {
            self.missing_entry(at);
        }
    }

    fn known_checkout(&mut self, path: BString, tracked: bool) {
        self.walk.observer.found(Finding::NestedCheckout, path.as_ref());
        if tracked {
            self.found.unreadable(path.clone(), "the index has files where another checkout is");
        }
        match self.walk.root.path().join(&path) {
            Some(place) => self.found.facts.nested_checkouts.push(place),
            None => self.found.unreadable(path, "its path leads out of the checkout"),
        }
    }

    fn file(&mut self, name: &BStr, meta: &Meta, group: Option<&Group>) {
        let dot_git = name == ".git";
        if self.job.zone == Zone::Foreign || dot_git {
            return self.found.count(meta, self.job.ignored);
        }
        if let Some(group) = group {
            self.found.count(meta, false);
            return self.tracked(name, meta, group.at);
        }
        let path = child_path(self.job.path.as_ref(), name);
        let ignored = self.job.ignored || self.ignores(path.as_ref(), false);
        self.found.count(meta, ignored);
        match meta.kind {
            Kind::File | Kind::Symlink if ignored => self.ignored(name, meta, path),
            Kind::File | Kind::Symlink => self.report(Finding::Untracked, path),
            // Git knows no FIFOs, sockets and devices (`dir.c`, `treat_path`), and none holds data.
            _ => {}
        }
    }

    /// Whether the file or directory at `path` is ignored by a pattern; in the place of a submodule nothing is, since
    /// the rules are those of another repository.
    fn ignores(&self, path: &BStr, is_dir: bool) -> bool {
        self.job.zone == Zone::Tree && self.rules.ignores(self.job.tree.inner(path), is_dir)
    }

    fn tracked(&mut self, name: &BStr, meta: &Meta, at: usize) {
        let entry = &self.job.index.entries()[at];
        if entry.flags.intersects(Flags::STAGE_MASK | Flags::INTENT_TO_ADD) {
            return;
        }
        let outcome = match entry.mode {
            // A file where a submodule should be.
            Mode::COMMIT => Ok(Outcome::Modified),
            _ => self.files.compare(name, meta, &self.job.index, at, self.walk.options.depth),
        };
        let flagged = entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID);
        let finding = match outcome {
            Ok(Outcome::Clean) => return,
            Ok(Outcome::NeedsFilter) => Finding::NeedsFilter,
            Ok(_) if flagged => Finding::Hidden,
            Ok(Outcome::Modified) => Finding::Modified,
            Ok(Outcome::ModeOnly) => Finding::ModeOnly,
            Err(why) => return self.found.unreadable(self.entry_path(at), why),
        };
        self.report(finding, self.entry_path(at));
    }

    fn ignored(&mut self, name: &BStr, meta: &Meta, path: BString) {
        self.walk.observer.found(Finding::Ignored, path.as_ref());
        let options = self.walk.options;
        if meta.kind != Kind::File || self.job.disposable || !options.precious.matches(path.as_ref()) {
            return;
        }
        let kept = match (options.main_worktree, open_file(self.fd, name)) {
            (None, _) => Ok(false),
            (Some(main), Ok((file, seen))) => {
                is_also_in(main, path.as_ref(), Stoppable::new(file, options.stop), seen.size)
                    .map_err(|e| e.to_string())
            }
            (Some(_), Err(refused)) => Err(refused.to_string()),
        };
        match kept {
            Ok(true) => {}
            Ok(false) => self.report(Finding::Precious, path),
            Err(why) => self.found.unreadable(path, why),
        }
    }

    fn report(&mut self, finding: Finding, path: BString) {
        self.walk.observer.found(finding, path.as_ref());
        if let (Some(submodule), Some(state)) = (&self.job.tree.submodule, state_of(finding, path.as_ref())) {
            let known = &mut locked(submodule).state;
            // What is worse, or was found before, is not forgotten.
            if *known == SubmoduleState::Clean {
                *known = state;
            }
            self.found.holds = true;
        } else if let Some(sample) = sample_of(&mut self.found.facts, finding) {
            sample.add(path);
        }
    }

    /// The path of an entry, from the checkout.
    fn entry_path(&self, at: usize) -> BString {
        let mut path = BString::from(&self.job.path[..self.job.tree.prefix.min(self.job.path.len())]);
        if path.len() < self.job.tree.prefix {
            path.push(b'/');
        }
        path.extend_from_slice(self.job.index.path(at));
        path
    }
}

/// What a finding says of the submodule that it is in; `None` if it says something of the whole checkout.
fn state_of(finding: Finding, path: &BStr) -> Option<SubmoduleState> {
    let path = escape(path);
    Some(match finding {
        Finding::Modified | Finding::ModeOnly => SubmoduleState::Changed(format!("{path} is modified")),
        Finding::Deleted => SubmoduleState::Changed(format!("{path} is deleted")),
        Finding::Untracked => SubmoduleState::Changed(format!("{path} is untracked")),
        Finding::Hidden => SubmoduleState::Changed(format!("{path} is modified and flagged as unchanged")),
        Finding::NeedsFilter => SubmoduleState::Unreadable(format!("{path} needs a filter to be compared")),
        Finding::NestedRepository | Finding::NestedCheckout | Finding::Precious => return None,
        Finding::Mount | Finding::Ignored => return None,
    })
}

fn sample_of(facts: &mut TreeFacts, finding: Finding) -> Option<&mut Sample> {
    Some(match finding {
        Finding::Modified => &mut facts.modified,
        Finding::ModeOnly => &mut facts.mode_only,
        Finding::Deleted => &mut facts.deleted,
        Finding::Untracked => &mut facts.untracked,
        Finding::Hidden => &mut facts.hidden,
        Finding::NeedsFilter => &mut facts.needs_filter,
        Finding::NestedRepository => &mut facts.nested_repositories,
        Finding::Precious => &mut facts.precious,
        Finding::Mount => &mut facts.mounts,
        Finding::Ignored | Finding::NestedCheckout => return None,
    })
}

//! Visiting one directory: opening and listing it, its rules, and which of its children are what.

use std::ffi::OsStr;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bstr::{BStr, BString};
use gix::ObjectId;
use gix::index::entry::{Flags, Mode};

use crate::beneath::{Kind, Meta, Refused};
use crate::git::index::{Group, Index};
use crate::git::open::Unreadable;
use crate::git::submodule::{self, Submodule};
use crate::judge::tree_facts::{SubmoduleFacts, SubmoduleState};
use crate::survey::walk::file::Visit;
use crate::survey::walk::findings::{Finding, Found};
use crate::survey::walk::fingerprint::{child_path, of_listing, open_job};
use crate::survey::walk::handle::{Parent, read_file};
use crate::survey::walk::listing::Listing;
use crate::survey::walk::rules::{LIMIT, Rules};
use crate::survey::walk::{RuleFiles, Tree, Walk, locked, rules_of};

/// A directory to visit.
pub(super) struct Job {
    pub(super) parent: Parent,
    /// From the checkout.
    pub(super) path: BString,
    /// What its parent saw.
    pub(super) meta: Meta,
    pub(super) tree: Arc<Tree>,
    pub(super) index: Arc<Index>,
    /// Its entries in `index`.
    pub(super) range: Range<usize>,
    /// Those of its parent; its own files are still to be read.
    pub(super) rules: Rules,
    pub(super) zone: Zone,
    /// It, or a directory above, is ignored.
    pub(super) ignored: bool,
    /// It, or a directory above, is ignored and has a disposable name.
    pub(super) disposable: bool,
}

/// What a directory's files are judged as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zone {
    /// Files of the repository that the walk is in.
    Tree,
    /// The place of a submodule, of which the index wants this commit.
    Submodule(ObjectId),
    /// Below the place of a submodule that has no repository: nobody else knows these files.
    InPlaceOfSubmodule,
    /// In a repository that is not this one, or in a git directory: only sizes, mounts and whether it can be deleted.
    Foreign,
}

/// Visits the directory of `job`; gives the directories in it that are to be visited.
pub(super) fn visit(walk: &Walk<'_>, mut job: Job, found: &mut Found) -> Vec<Job> {
    let fd = match open_job(&walk.root, &job.parent, job.path.as_ref(), &job.meta) {
        Ok(fd) => fd,
        Err(Refused::MountCrossed) => {
            note_mount(walk, job.path.as_ref(), found);
            return Vec::new();
        }
        Err(refused) => {
            found.unreadable(job.path, refused);
            return Vec::new();
        }
    };
    let listing = match Listing::read(fd.as_fd(), walk.options.stop) {
        Ok(listing) => listing,
        Err(refused) => {
            found.unreadable(job.path, refused);
            return Vec::new();
        }
    };
    for (name, refused) in &listing.failed {
        found.unreadable(child_path(job.path.as_ref(), name.as_ref()), refused);
    }
    found.sum = of_listing(job.path.as_ref(), &listing);
    hold_of_directory(walk, &job, fd.as_fd(), &listing, found);
    if let Zone::Submodule(commit) = job.zone {
        enter_submodule(walk, &mut job, commit, &listing, found);
    }
    note_repositories(walk, &mut job, &listing, found);
    let next = match children(walk, &job, fd.as_fd(), &listing, found) {
        Ok(next) => next,
        Err(why) => {
            found.unreadable(job.path.clone(), why);
            return Vec::new();
        }
    };
    let parent = match next.is_empty() {
        true => Parent::Root,
        false => Parent::of(fd),
    };
    next.into_iter().map(|job| Job { parent: parent.clone(), ..job }).collect()
}

pub(super) fn note_mount(walk: &Walk<'_>, path: &BStr, found: &mut Found) {
    walk.observer.found(Finding::Mount, path);
    found.facts.mounts.add(path);
}

/// Whether the names in this directory can be deleted; an empty one needs only its parent's permission.
fn hold_of_directory(walk: &Walk<'_>, job: &Job, fd: BorrowedFd<'_>, listing: &Listing, found: &mut Found) {
    if listing.children().is_empty() {
        return;
    }
    match walk.powers.hold_of_directory(fd, &job.meta) {
        Ok(Some(why)) => found.undeletable(job.path.clone(), why),
        Ok(None) => {}
        Err(refused) => found.unreadable(job.path.clone(), refused),
    }
}

/// What stands in the place of a submodule: nothing, its repository, or files that nobody else knows.
fn enter_submodule(walk: &Walk<'_>, job: &mut Job, commit: ObjectId, listing: &Listing, found: &mut Found) {
    let entry = match (listing.child(".git"), walk.entry) {
        (None, _) => return job.zone = Zone::InPlaceOfSubmodule,
        (Some(_), None) => return job.zone = Zone::Tree,
        (Some(_), Some(entry)) => entry,
    };
    let options = walk.options;
    let opened = walk
        .root
        .dir(OsStr::from_bytes(&job.path))
        .map_err(Unreadable::new)
        .and_then(|checkout| submodule::find(&checkout, entry))
        .and_then(|git_dir| Submodule::open(git_dir, options.depth))
        .and_then(|inner| {
            let state = inner.state(Some(commit), options.stop);
            let facts = SubmoduleFacts { path: job.path.clone(), state };
            let tree = Tree::new(&inner.repo, RuleFiles::AsGit, Some(facts))?;
            Ok((tree, rules_of(&inner.git_dir, RuleFiles::AsGit)?, inner.index))
        });
    match opened {
        Ok((tree, rules, index)) => {
            job.zone = Zone::Tree;
            job.tree = Arc::new(tree);
            job.rules = rules;
            job.range = 0..index.entries().len();
            job.index = Arc::new(index);
            found.holds |=
                job.tree.submodule.as_ref().is_some_and(|s| locked(s).state != SubmoduleState::Clean);
            locked(&walk.submodules).push(Arc::clone(&job.tree));
        }
        Err(Unreadable(why)) => {
            let state = SubmoduleState::Unreadable(why);
            found.facts.submodules.push(SubmoduleFacts { path: job.path.clone(), state });
            job.zone = Zone::Foreign;
        }
    }
}

/// Finds repositories by their `.git`, of whatever kind it is, and bare ones by their shape.
fn note_repositories(walk: &Walk<'_>, job: &mut Job, listing: &Listing, found: &mut Found) {
    let own = match job.zone {
        Zone::Foreign | Zone::Submodule(_) => return,
        Zone::Tree => job.tree.prefix == job.path.len() || (job.path.len() + 1 == job.tree.prefix),
        Zone::InPlaceOfSubmodule => false,
    };
    let dot_git = listing.child(".git");
    if own {
        // A submodule's own `.git` was understood before; the checkout's must be the file that names its entry.
        match dot_git {
            Some(child) if job.tree.prefix == 0 && child.meta.kind != Kind::File => {
                found.unreadable(".git", Refused::WrongKind(child.meta.kind));
            }
            None if job.tree.prefix == 0 => found.unreadable(".git", Refused::Absent),
            _ => {}
        }
    }
    let tracked_head = || {
        let head = child_path(job.tree.inner(job.path.as_ref()), "HEAD".into());
        job.index.entry(head.as_ref()).is_some()
    };
    let bare = listing.is_git_directory() && !tracked_head();
    if (own || dot_git.is_none()) && !bare {
        return;
    }
    walk.observer.found(Finding::NestedRepository, job.path.as_ref());
    found.facts.nested_repositories.add(job.path.clone());
    if job.range.is_empty() {
        job.zone = Zone::Foreign;
    }
}

/// Merges the directory's names with the index's.
fn children(
    walk: &Walk<'_>,
    job: &Job,
    fd: BorrowedFd<'_>,
    listing: &Listing,
    found: &mut Found,
) -> Result<Vec<Job>, Unreadable> {
    let inner = job.tree.inner(job.path.as_ref());
    let dir = match inner.is_empty() {
        true => BString::default(),
        false => child_path(inner, "".into()),
    };
    let rules = match job.zone {
        Zone::Foreign | Zone::InPlaceOfSubmodule => job.rules.clone(),
        Zone::Tree | Zone::Submodule(_) => own_rules(job, fd, listing, dir.as_ref(), found),
    };
    let mut groups = match job.zone {
        Zone::Foreign | Zone::InPlaceOfSubmodule => Vec::new(),
        Zone::Tree | Zone::Submodule(_) => job.index.children(job.range.clone(), dir.len())?,
    };
    // The index orders a directory's name as if it ended in a slash; here plain names are compared, and a name can be
    // both a file's (in a conflict) and a directory's.
    let index = &*job.index;
    groups.sort_by(|a, b| a.name_in(index).cmp(b.name_in(index)));
    let mut groups = groups.as_slice();
    let mut visit = Visit::new(walk, job, &rules, fd, found);
    for (count, child) in listing.children().iter().enumerate() {
        if count % 64 == 63 && walk.options.stop.is_set() {
            // The walk asks again, and says that it was interrupted.
            return Ok(Vec::new());
        }
        let name = listing.name(child);
        let before = groups.partition_point(|g| g.name_in(index) < name);
        visit.missing(&groups[..before]);
        groups = &groups[before..];
        let same = groups.iter().take_while(|g| g.name_in(index) == name).count();
        visit.child(name, child, &groups[..same]);
        groups = &groups[same..];
    }
    visit.missing(groups);
    Ok(visit.finish())
}

/// The rules within this directory: those above and its own files. As in git, a rule file that is absent or a symlink is
/// read from the index instead: a `.gitignore` if sparse checkout left it out (`add_patterns`), a `.gitattributes` always
/// (`read_attr`). Any other object in its place says nothing.
fn own_rules(job: &Job, fd: BorrowedFd<'_>, listing: &Listing, dir: &BStr, found: &mut Found) -> Rules {
    let counts = |name: &str| match job.tree.rule_files {
        RuleFiles::AsGit => true,
        RuleFiles::OnlyTracked => {
            job.index.entry(crate::git::index::joined(dir, name.as_bytes()).as_ref()).is_some()
        }
    };
    let mut read = |name: &str, always: bool| match listing.child(name) {
        Some(child) if child.meta.kind == Kind::File && counts(name) => {
            let bytes = read_file(fd, name.into(), LIMIT);
            bytes
                .map_err(|refused| found.unreadable(child_path(job.path.as_ref(), name.into()), refused))
                .ok()
        }
        Some(child) if child.meta.kind != Kind::Symlink && child.meta.kind != Kind::File => None,
        _ => stored_rule_file(job, dir, name, always, found),
    };
    let (ignore, attributes) = (read(".gitignore", false), read(".gitattributes", true));
    match (&ignore, &attributes) {
        (None, None) => job.rules.clone(),
        _ => job.rules.within(dir, ignore.as_deref(), attributes),
    }
}

fn stored_rule_file(job: &Job, dir: &BStr, name: &str, always: bool, found: &mut Found) -> Option<Vec<u8>> {
    if job.range.is_empty() {
        return None;
    }
    let path = crate::git::index::joined(dir, name.as_bytes());
    let entry = job.index.entry(path.as_ref())?;
    let file = matches!(entry.mode, Mode::FILE | Mode::FILE_EXECUTABLE);
    if !file || !(always || entry.flags.contains(Flags::SKIP_WORKTREE)) {
        return None;
    }
    match job.tree.repo.to_thread_local().find_object(entry.id) {
        Ok(blob) => Some(blob.detach().data),
        Err(e) => {
            found.unreadable(child_path(job.path.as_ref(), name.into()), crate::git::open::chain(&e));
            None
        }
    }
}

/// Which of `groups`, all of one name, is the file and which the directory.
pub(super) fn split(groups: &[Group]) -> (Option<&Group>, Option<&Group>) {
    (groups.iter().find(|g| !g.is_dir), groups.iter().find(|g| g.is_dir))
}

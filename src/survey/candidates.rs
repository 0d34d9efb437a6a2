//! Which branches the files of a checkout are nearest to, where nothing says which one it was on.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString};
use gix::ObjectId;

use crate::beneath::Dir;
use crate::config::Precious;
use crate::git::index::{Depth, Index};
use crate::git::objects::Objects;
use crate::git::open::{Unreadable, chain};
use crate::git::refs::SharedRefs;
use crate::git::tree;
use crate::stop::Stop;
use crate::survey::walk::likeness::Likeness;
use crate::survey::walk::{self, Finding, Observer, Options, RuleFiles, Thoroughness};
use crate::vantage::paths::FileId;

/// So many branches are compared, the newest commits first.
pub const MOST_BRANCHES: usize = 256;

/// One branch, and how far the files are from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Full name.
    pub branch: BString,
    pub tip: ObjectId,
    /// Of the commit, in seconds.
    pub time: i64,
    /// Files that are missing, differ, or are neither in the branch nor ignored.
    pub differs: u64,
}

/// What came of the comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Candidates {
    /// The nearest first; of equals the newest.
    pub rows: Vec<Candidate>,
    /// Branches that were not compared: there are too many, or the time was up.
    pub left_out: usize,
    /// Branches that can't be read, and why.
    pub unreadable: Vec<(BString, String)>,
}

/// Where to look, and how long.
pub struct Question<'a> {
    pub checkout: &'a Dir,
    pub common: &'a Dir,
    pub repo: &'a gix::Repository,
    pub precious: &'a Precious,
    pub known_checkouts: &'a HashSet<FileId>,
    pub stop: &'a Stop,
}

impl Question<'_> {
    /// Compares the checkout with each local branch. No filter is run: a file that only one could compare counts as alike.
    ///
    /// # Errors
    /// The checkout or the refs can't be read.
    pub fn answer(&self) -> Result<Candidates, Unreadable> {
        let objects = Objects { repo: self.repo, verified: true };
        let refs = SharedRefs::read(self.common, self.repo.object_hash())?;
        let mut found = Candidates::default();
        let mut branches = Vec::new();
        for (branch, tip) in refs.branches() {
            match self.commit(tip) {
                Ok((time, tree)) => branches.push((Reverse(time), branch.clone(), tip, tree)),
                Err(why) => found.unreadable.push((branch.clone(), why.0)),
            }
        }
        branches.sort();
        found.left_out = branches.len().saturating_sub(MOST_BRANCHES);
        branches.truncate(MOST_BRANCHES);
        let mut likeness = Likeness::new(self.checkout, self.common, self.repo, self.stop)?;
        let here = self.files()?;
        let mut known: HashMap<ObjectId, u64> = HashMap::new();
        for (Reverse(time), branch, tip, tree) in branches {
            let differs = match known.get(&tree) {
                Some(differs) => *differs,
                None if self.stop.is_set() => {
                    found.left_out += 1;
                    continue;
                }
                None => match distance(objects, tree, &mut likeness, &here) {
                    Ok(differs) => differs,
                    Err(_) if self.stop.is_set() => {
                        found.left_out += 1;
                        continue;
                    }
                    Err(why) => {
                        found.unreadable.push((branch, why.0));
                        continue;
                    }
                },
            };
            known.insert(tree, differs);
            found.rows.push(Candidate { branch, tip, time, differs });
        }
        // Stable: the newest stays first among equals.
        found.rows.sort_by_key(|row| row.differs);
        Ok(found)
    }

    fn commit(&self, tip: ObjectId) -> Result<(i64, ObjectId), Unreadable> {
        let wrong = |e: &dyn std::error::Error| Unreadable(format!("commit {tip}: {}", chain(e)));
        let time = self.repo.find_commit(tip).map_err(|e| wrong(&e))?.time().map_err(|e| wrong(&e))?.seconds;
        Ok((time, tree::of_commit(self.repo, tip)?))
    }

    /// All files that are not ignored.
    fn files(&self) -> Result<HashSet<BString>, Unreadable> {
        let checkout = walk::Checkout {
            dir: self.checkout,
            entry: None,
            common: self.common,
            repo: self.repo,
            index: Arc::new(Index::empty(self.repo.object_hash())),
            rules: RuleFiles::AsGit,
        };
        let options = Options {
            depth: Depth::BeforeRemoval,
            thoroughness: Thoroughness::Everything,
            known_checkouts: self.known_checkouts,
            main_worktree: None,
            precious: self.precious,
            stop: self.stop,
        };
        let all = Names::default();
        let seen = walk::walk_observed(&checkout, &options, &all);
        if seen.interrupted {
            return Err(Unreadable::new("its files could not be listed in time"));
        }
        Ok(all.0.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

fn distance(
    objects: Objects<'_>,
    tree: ObjectId,
    likeness: &mut Likeness<'_>,
    here: &HashSet<BString>,
) -> Result<u64, Unreadable> {
    let files = tree::files(objects, tree)?;
    let shared = files.iter().filter(|file| here.contains(&file.path)).count();
    Ok(likeness.differing(&files)? + (here.len() - shared) as u64)
}

#[derive(Default)]
struct Names(Mutex<HashSet<BString>>);

impl Observer for Names {
    fn found(&self, what: Finding, path: &BStr) {
        if what == Finding::Untracked {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
        }
    }
}

//! Gathers the facts of one worktree, question by question, as the judge asks for them.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use bstr::{BString, ByteSlice};

use crate::beneath::{self, Dir, Stamp};
use crate::config::Precious;
use crate::config::Settings;
use crate::engine::world::World;
use crate::git::head::head_facts;
use crate::git::history::Reach;
use crate::git::index::{self, Depth, Index};
use crate::git::open::{Unreadable, open_clone, open_entry};
use crate::git::refs::short;
use crate::git::registration::{Head, Registration};
use crate::git::submodule::modules_facts;
use crate::judge::facts::{
    ActivityFacts, Asked, Facts, HeadFacts, HistoryFacts, OrphanMatch, Placement, Question, Subject,
};
use crate::judge::rules::Policy;
use crate::judge::tree_facts::{IndexFacts, TreeFacts};
use crate::judge::verdict::{self, Judgement};
use crate::report::progress::{Event, Progress};
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::survey::discover::CloneSite;
use crate::survey::eyes::{CloneEyes, History, Worktree};
use crate::survey::holds::holds;
use crate::survey::orphan;
use crate::survey::standing::Standings;
use crate::survey::walk::{self, Thoroughness, fingerprint_of};
use crate::vantage::paths::{FileId, LocalPath};

/// What a run asks with; the same for all its worktrees.
pub struct Inquiry<'a> {
    pub settings: &'a Settings,
    pub precious: &'a Precious,
    pub world: &'a World,
    pub state: Option<&'a StateDir>,
    pub policy: &'a Policy,
    /// How sure the answers have to be: a removal asks the whole comparison.
    pub depth: Depth,
    /// All questions, whatever the first ones answer.
    pub thorough: bool,
    pub known_checkouts: &'a HashSet<FileId>,
    /// All that were found: an orphan must be a copy of a commit of only one.
    pub clones: &'a [ClonePlace],
    pub stop: &'a Stop,
    pub progress: &'a dyn Progress,
}

impl Inquiry<'_> {
    /// From now on, how long one clone's history may be read: whoever writes it can make it as long as they like.
    pub fn history_time(&self) -> Stop {
        self.stop.within(self.settings.history_limit.value)
    }
}

/// Where a clone is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClonePlace {
    pub dir: LocalPath,
    pub common: LocalPath,
}

/// A worktree's facts and the verdict on them.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What its entry says by itself, whether or not HEAD was asked; `None` without an entry.
    pub registration: Option<Registration>,
    pub facts: Facts,
    pub judgement: Judgement,
}

/// Everything that the questions about one clone's worktrees need.
pub struct Examiner<'a> {
    pub site: &'a CloneSite,
    pub eyes: &'a CloneEyes,
    pub history: &'a History<'a>,
    pub standings: &'a Standings<'a>,
    pub inquiry: &'a Inquiry<'a>,
}

/// What the first, cheap part leaves for the second.
pub struct HalfExamined {
    facts: Facts,
    registration: Option<Registration>,
}

impl<'a> Examiner<'a> {
    /// Asks what needs the clone's shared history: everything before the index. Not for several threads at once.
    pub fn begin(&self, r: usize, registration: &Registration, reach: &mut Reach<'_>) -> HalfExamined {
        let (standing, enrolled) = self.standings.of_registration(r);
        let subject = Subject::Registered {
            name: registration.name.clone(),
            id: registration.id,
            recorded: registration.recorded.clone().ok(),
        };
        let mut facts = Facts::new(subject, standing);
        let entry = OnceCell::new();
        // Most entries answer for themselves, so that theirs is not opened before it is asked.
        let entry = || match entry.get_or_init(|| held_entry(self.site, registration)) {
            Ok(entry) => Ok(entry),
            Err(why) => Err(why.clone()),
        };
        if self.inquiry.depth == Depth::BeforeRemoval {
            facts.entry_fingerprint = entry().ok().and_then(|e| fingerprint_of(e, self.inquiry.stop).ok());
        }
        while let Some(question) = self.next(&facts).filter(|q| *q < Question::Index) {
            match question {
                Question::Standing => break,
                Question::Liveness => self.liveness(&mut facts),
                Question::Head => {
                    facts.head = asked(entry().and_then(|entry| self.head(entry, registration, reach)));
                }
                Question::History => {
                    let answer = entry().and_then(|e| self.history(&facts, e, registration, enrolled, reach));
                    facts.history = asked(answer);
                }
                Question::Activity => facts.activity = asked(self.activity(&facts, Some(registration))),
                Question::Index | Question::Tree => {}
            }
        }
        HalfExamined { facts, registration: Some(registration.clone()) }
    }

    /// The same for a checkout without a registration.
    pub fn begin_orphan(&self, w: usize) -> HalfExamined {
        self.begin_unregistered(self.standings.of_orphan(w))
    }

    /// The same for anything that has no registration.
    pub fn begin_unregistered(&self, mut facts: Facts) -> HalfExamined {
        while let Some(question) = self.next(&facts).filter(|q| *q < Question::Index) {
            match question {
                Question::Liveness => self.liveness(&mut facts),
                Question::Activity => facts.activity = asked(self.activity(&facts, None)),
                _ => break,
            }
        }
        HalfExamined { facts, registration: None }
    }

    fn next(&self, facts: &Facts) -> Option<Question> {
        verdict::next(facts, self.inquiry.policy, self.inquiry.thorough)
    }

    fn liveness(&self, facts: &mut Facts) {
        facts.liveness = Asked::Answered(holds(facts, self.site, self.inquiry));
    }

    fn head(
        &self,
        entry: &Dir,
        registration: &Registration,
        reach: &mut Reach<'_>,
    ) -> Result<HeadFacts, Unreadable> {
        let head = registration.head.as_ref().map_err(Clone::clone)?;
        let facts = head_facts(&self.eyes.repo, entry, head, &self.eyes.refs, reach)?;
        // What is beyond reach may only not have been met yet.
        self.history.in_time().map(|()| facts)
    }

    fn history(
        &self,
        facts: &Facts,
        entry: &Dir,
        registration: &Registration,
        enrolled: Option<Stamp>,
        reach: &mut Reach<'_>,
    ) -> Result<HistoryFacts, Unreadable> {
        let head = facts.head.answer().ok_or_else(|| Unreadable::new("its HEAD is not known"))?;
        let branch_may_go = facts.standing.ownership.is_owned();
        let worktree = Worktree { site: self.site, entry, registration, head, enrolled, branch_may_go };
        let removing = self.inquiry.depth == Depth::BeforeRemoval;
        self.history.ask(self.eyes, &worktree, removing.then_some(reach))
    }

    /// The newest of what git writes when something is done in a worktree, and of the checkout's top directory.
    fn activity(
        &self,
        facts: &Facts,
        registration: Option<&Registration>,
    ) -> Result<ActivityFacts, Unreadable> {
        let mut seen: Vec<(Stamp, String)> = Vec::new();
        if let Some(registration) = registration {
            seen.extend(registration.touched.map(|at| (at, "its HEAD, index or reflog".to_owned())));
            if let Ok(Head::Branch(branch)) = &registration.head {
                let mut path = BString::from("logs/");
                path.extend_from_slice(branch);
                match self.site.common.meta(path.to_path_lossy().as_ref()) {
                    Ok(meta) => seen.push((meta.mtime, "its branch's reflog".to_owned())),
                    Err(beneath::Refused::Absent) => {}
                    Err(refused) => return Err(Unreadable(format!("{path}: {refused}"))),
                }
            }
        }
        match (&facts.standing.placement, &facts.subject) {
            (Placement::Joined { seen: meta, .. }, _) | (_, Subject::Orphan { seen: Some(meta), .. }) => {
                seen.push((meta.mtime, "its directory".to_owned()));
            }
            _ => {}
        }
        Ok(ActivityFacts { last: seen.into_iter().max() })
    }
}

/// An entry whose index has been read.
struct Opened {
    entry: Dir,
    repo: gix::Repository,
    index: Arc<Index>,
}

/// Asks the second, costly part. It shares nothing that can be written, so that several threads may finish at once.
#[derive(Clone, Copy)]
pub struct Finisher<'a> {
    pub site: &'a CloneSite,
    pub inquiry: &'a Inquiry<'a>,
}

impl Finisher<'_> {
    /// Asks the index and the walk, and judges.
    pub fn finish(&self, half: HalfExamined) -> Examined {
        let HalfExamined { mut facts, registration } = half;
        let mut opened: Option<Opened> = None;
        while let Some(question) = self.next(&facts) {
            match (question, &registration) {
                (Question::Index, Some(registration)) => {
                    facts.index = match self.ask_index(&mut facts, registration) {
                        Ok((answer, index)) => {
                            opened = index;
                            Asked::Answered(answer)
                        }
                        Err(why) => Asked::Failed(why.0),
                    };
                }
                (Question::Tree, Some(_)) => {
                    facts.tree = match &opened {
                        Some(opened) => asked(self.tree(&facts, opened)),
                        None => Asked::Failed(
                            "its index could not be read, so its files were not compared".into(),
                        ),
                    }
                }
                (Question::Tree, None) if matches!(facts.subject, Subject::Trash { .. }) => {
                    facts.tree = asked(self.trash_tree(&facts));
                }
                (Question::Tree, None) => self.orphan_tree(&mut facts),
                _ => break,
            }
        }
        let judgement = verdict::judge(&facts, self.inquiry.policy);
        self.inquiry.progress.tell(Event::Judged);
        Examined { registration, facts, judgement }
    }

    fn next(&self, facts: &Facts) -> Option<Question> {
        verdict::next(facts, self.inquiry.policy, self.inquiry.thorough)
    }

    /// Asks the index, and the repositories of submodules in the entry.
    fn ask_index(
        &self,
        facts: &mut Facts,
        registration: &Registration,
    ) -> Result<(IndexFacts, Option<Opened>), Unreadable> {
        let entry = held_entry(self.site, registration)?;
        facts.modules = modules_facts(&entry, self.inquiry.depth, self.inquiry.stop);
        if let Some(none) = self.no_index(facts, &entry) {
            return Ok((none, None));
        }
        let (answer, opened) = self.index(facts, entry)?;
        Ok((answer, Some(opened)))
    }

    /// The index of a registration without a directory: most stale entries have none, and then nothing was staged.
    fn no_index(&self, facts: &Facts, entry: &Dir) -> Option<IndexFacts> {
        let absent = matches!(facts.standing.placement, Placement::Absent { .. });
        let none = absent && matches!(entry.meta("index"), Err(beneath::Refused::Absent));
        none.then(|| IndexFacts { missing: true, ..IndexFacts::default() })
    }

    fn index(&self, facts: &Facts, entry: Dir) -> Result<(IndexFacts, Opened), Unreadable> {
        let repo = open_entry(&self.site.common, &entry)?;
        let tip = facts.head.answer().and_then(|h| h.tip);
        let tree = match tip {
            Some(tip) => {
                let commit = repo.find_commit(tip).map_err(|e| Unreadable(format!("commit {tip}: {e}")))?;
                Some(commit.tree_id().map_err(|e| Unreadable(format!("commit {tip}: {e}")))?.detach())
            }
            None => None,
        };
        let (answer, index) = index::index_facts(&entry, &repo, tree, self.inquiry.depth)?;
        Ok((answer, Opened { entry, repo, index: Arc::new(index) }))
    }

    fn tree(&self, facts: &Facts, Opened { entry, repo, index }: &Opened) -> Result<TreeFacts, Unreadable> {
        let Placement::Joined { path, seen, .. } = &facts.standing.placement else {
            return Err(Unreadable::new("it has no directory"));
        };
        let dir = held_checkout(path, seen.id)?;
        let checkout = walk::Checkout {
            dir: &dir,
            entry: Some(entry),
            common: &self.site.common,
            repo,
            index: Arc::clone(index),
            rules: walk::RuleFiles::AsGit,
        };
        let main = self.main_worktree();
        let found = walk::walk(&checkout, &self.walk_options(main.as_ref()));
        with_own_mount(found, &dir)
    }

    fn orphan_tree(&self, facts: &mut Facts) {
        let Subject::Orphan { path, seen: Some(seen), .. } = &facts.subject else {
            facts.tree = Asked::Failed("it could not be looked at".to_owned());
            return;
        };
        let main = self.main_worktree();
        let found = held_checkout(path, seen.id).and_then(|dir| {
            let matched = self.orphan_of(&dir, &self.site.common, main.as_ref())?;
            Ok((self.only_here(&dir, &matched, main.as_ref())?, matched, dir))
        });
        match found {
            Ok((answer, matched, dir)) => {
                facts.tree = asked(with_own_mount(matched.tree().clone(), &dir));
                facts.orphan_match = Some(answer);
            }
            Err(why) => {
                facts.orphan_match = Some(OrphanMatch::Differs { why: why.0.clone() });
                facts.tree = Asked::Failed(why.0);
            }
        }
    }

    fn orphan_of(
        &self,
        dir: &Dir,
        common: &Dir,
        main: Option<&Dir>,
    ) -> Result<orphan::OrphanMatch, Unreadable> {
        let repo = open_clone(common)?;
        orphan::match_orphan(dir, common, &repo, &self.walk_options(main))
    }

    /// A match counts only if no other clone has such a commit too.
    fn only_here(
        &self,
        dir: &Dir,
        matched: &orphan::OrphanMatch,
        main: Option<&Dir>,
    ) -> Result<OrphanMatch, Unreadable> {
        let (commit, reference) = match matched {
            orphan::OrphanMatch::Differs { why, .. } => return Ok(OrphanMatch::Differs { why: why.clone() }),
            orphan::OrphanMatch::Equal { commit, reference, .. } => (*commit, reference.clone()),
        };
        for other in self.inquiry.clones.iter().filter(|c| c.common != *self.site.common_path()) {
            // A clone that can't be read may have it, too.
            let common = Dir::open(&other.common).map_err(Unreadable::new);
            match common.and_then(|common| self.orphan_of(dir, &common, main)) {
                Ok(orphan::OrphanMatch::Differs { .. }) => {}
                Ok(orphan::OrphanMatch::Equal { commit, .. }) => {
                    let why = format!("commit {commit} of {} has its files too", other.dir);
                    return Ok(OrphanMatch::Several { why });
                }
                Err(why) => {
                    let why = format!("{} may have its files too, and can't be read: {why}", other.dir);
                    return Ok(OrphanMatch::Several { why });
                }
            }
        }
        Ok(OrphanMatch::Equal { commit, reference })
    }

    /// What lies in trash that must not be deleted, whatever is left of the checkout.
    fn trash_tree(&self, facts: &Facts) -> Result<TreeFacts, Unreadable> {
        let Subject::Trash { path, seen: Some(seen), .. } = &facts.subject else {
            return Err(Unreadable::new("it could not be looked at"));
        };
        let dir = held_checkout(path, seen.id)?;
        let repo = open_clone(&self.site.common)?;
        let checkout = walk::Checkout {
            dir: &dir,
            entry: None,
            common: &self.site.common,
            index: Arc::new(Index::empty(repo.object_hash())),
            repo: &repo,
            rules: walk::RuleFiles::AsGit,
        };
        let main = self.main_worktree();
        let found = walk::walk(&checkout, &self.walk_options(main.as_ref()));
        with_own_mount(found, &dir)
    }

    fn main_worktree(&self) -> Option<Dir> {
        self.site.main_worktree.as_ref().and_then(|path| Dir::open(path).ok())
    }

    fn walk_options<'b>(&'b self, main: Option<&'b Dir>) -> walk::Options<'b> {
        walk::Options {
            depth: self.inquiry.depth,
            thoroughness: match self.inquiry.thorough {
                true => Thoroughness::Everything,
                false => Thoroughness::UntilFirstHold,
            },
            known_checkouts: self.inquiry.known_checkouts,
            main_worktree: main,
            precious: self.inquiry.precious,
            stop: self.inquiry.stop,
        }
    }
}

/// `found` in `dir`, with the directory itself if it is a mount point: then it can't be removed, only emptied.
fn with_own_mount(mut found: TreeFacts, dir: &Dir) -> Result<TreeFacts, Unreadable> {
    let wrong = |path: &LocalPath, refused| Unreadable(format!("{path}: {refused}"));
    let (Some(parent), own) = (dir.path().parent(), dir.own_meta().map_err(|e| wrong(dir.path(), e))?) else {
        return Ok(found);
    };
    let above = beneath::lstat(&parent).map_err(|e| wrong(&parent, e))?;
    if above.mount != own.mount || above.id.dev != own.id.dev {
        found.mounts.add(b".".as_bstr());
    }
    Ok(found)
}

/// The administrative entry, if it still is the one that was read.
fn held_entry(site: &CloneSite, registration: &Registration) -> Result<Dir, Unreadable> {
    let worktrees = site.common.dir("worktrees").map_err(Unreadable::new)?;
    let dir = worktrees.dir(registration.name.as_os_str()).map_err(Unreadable::new)?;
    let id = dir.own_meta().map_err(Unreadable::new)?.id;
    match Some(id) == registration.id {
        true => Ok(dir),
        false => Err(Unreadable(format!("{}: was replaced while it was looked at", dir.path()))),
    }
}

/// The directory at `path`, if it still is the one that was seen.
fn held_checkout(path: &LocalPath, id: FileId) -> Result<Dir, Unreadable> {
    let dir = Dir::open(path).map_err(|e| Unreadable(format!("{path}: {e}")))?;
    let now = dir.own_meta().map_err(|e| Unreadable(format!("{path}: {e}")))?.id;
    match now == id {
        true => Ok(dir),
        false => Err(Unreadable(format!("{path}: was replaced while it was looked at"))),
    }
}

fn asked<T>(answer: Result<T, Unreadable>) -> Asked<T> {
    match answer {
        Ok(answer) => Asked::Answered(answer),
        Err(why) => Asked::Failed(why.0),
    }
}

/// The short name of the branch that a registration's HEAD is on.
pub fn branch_of(registration: &Registration) -> Option<&bstr::BStr> {
    match &registration.head {
        Ok(Head::Branch(name)) => Some(short(name.as_bstr())),
        _ => None,
    }
}

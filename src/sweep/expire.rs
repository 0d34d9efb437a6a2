//! Dropping retirement records that are old enough, with the references that hold their commits.
//!
//! The references first, each exactly by its name and its commit, then the copy for people, the record last: as long as
//! the record is there, the next run drops what this one could not.

use std::collections::HashSet;
use std::io;

use gix::ObjectId;
use jiff::Timestamp;

use crate::sweep::record::{Record, RecordId};
use crate::sweep::{LockedClone, anchors, journal, records};

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Oldest first.
    pub dropped: Vec<RecordId>,
    /// Commits that nothing of ours holds any more.
    pub released: usize,
    /// Records that stay, and why.
    pub stay: Vec<(RecordId, String)>,
    /// What is to be said to the person, and stops nothing.
    pub notes: Vec<String>,
}

/// Drops the records that were complete at `until` or before. One whose removal is not finished stays: its journal would
/// write it anew.
///
/// # Errors
/// The records or the journals can't be read.
pub fn expire(clone: &LockedClone, until: Timestamp) -> io::Result<Expired> {
    let Some(state) = clone.state() else { return Err(rustix::io::Errno::NOSPC.into()) };
    let (open, _damaged_are_reported_by_pending) = journal::read_all(state)?;
    let open: HashSet<&RecordId> = open.iter().map(|open| open.journal.id()).collect();
    let mut expired = Expired::default();
    for record in records::read_all(state)?.0 {
        if record.ended() > until || open.contains(&record.id) {
            continue;
        }
        match drop_one(clone, &record, &mut expired.notes) {
            Ok(released) => {
                expired.released += released;
                expired.dropped.push(record.id);
            }
            Err(why) => expired.stay.push((record.id, why)),
        }
    }
    Ok(expired)
}

/// How many references went with it.
fn drop_one(clone: &LockedClone, record: &Record, notes: &mut Vec<String>) -> Result<usize, String> {
    let commits: Option<Vec<ObjectId>> = record.anchors.iter().map(|hex| hex.id()).collect();
    let commits = commits.ok_or("it names a commit by what is no object id")?;
    anchors::remove(clone.common(), &record.id, &commits)
        .map_err(|error| format!("a reference that holds its commits stays: {error}"))?;
    if let Err(error) = records::remove_copy(clone, &record.id) {
        notes.push(format!("the copy of record {} stays in the common directory: {error}", record.id));
    }
    records::remove_own(clone, &record.id).map_err(|error| error.to_string())?;
    Ok(commits.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_dir::StateDir;
    use crate::stop::Stop;
    use crate::sweep::act::faults::{Fault, run};
    use crate::sweep::testing::{Clone, local};

    /// A record with two anchors, its copy, and everything that holds them.
    struct Scene {
        clone: Clone,
        state: StateDir,
    }

    impl Scene {
        fn new() -> Self {
            let clone = Clone::new();
            let state = StateDir::open(&local(&clone.root.join("state/treesweep"))).unwrap();
            Self { clone, state }
        }

        fn enter(&self) -> LockedClone {
            LockedClone::enter_unconfined(&self.state, &Stop::never(), self.clone.common()).unwrap()
        }

        fn retire(&self, at: i64) -> Record {
            let started = Timestamp::from_second(at).unwrap();
            let mut record = crate::sweep::testing::record(started);
            let commits = ["one", "two"].map(|m| self.clone.commit_on("main", m));
            anchors::create(&self.clone.common(), &record.id, &commits).unwrap();
            record.anchors = commits.map(Into::into).to_vec();
            records::write_both(&self.enter(), &record).unwrap();
            record
        }

        fn refs(&self) -> usize {
            self.clone.git(&["for-each-ref", "refs/treesweep"]).lines().count()
        }

        fn known(&self) -> Vec<RecordId> {
            let records = records::read_all(self.enter().state().unwrap()).unwrap().0;
            records.into_iter().map(|r| r.id).collect()
        }
    }

    #[test]
    fn the_old_go_with_their_references_and_the_young_stay() {
        let scene = Scene::new();
        let (old, young) = (scene.retire(1_000), scene.retire(2_000));
        scene.clone.git(&["pack-refs", "--all"]);
        let expired = expire(&scene.enter(), Timestamp::from_second(1_500).unwrap()).unwrap();
        assert_eq!((expired.dropped, expired.released), (vec![old.id.clone()], 2));
        assert_eq!((expired.stay, expired.notes), (Vec::new(), Vec::new()));
        assert_eq!((scene.known(), scene.refs()), (vec![young.id.clone()], 2));
        let copies = scene.clone.path.join(".git/treesweep/retired");
        assert!(!copies.join(format!("{}.json", old.id)).exists());
        assert!(copies.join(format!("{}.json", young.id)).exists());
    }

    #[test]
    fn a_reference_that_is_another_one_now_keeps_its_record() {
        let scene = Scene::new();
        let record = scene.retire(1_000);
        let moved = anchors::name(&record.id, 1).to_string();
        scene.clone.git(&["update-ref", &moved, "main"]);
        let expired = expire(&scene.enter(), Timestamp::now()).unwrap();
        assert_eq!(expired.dropped, []);
        assert!(expired.stay[0].1.contains("it is "), "{:?}", expired.stay);
        assert_eq!(scene.known(), std::slice::from_ref(&record.id));
        assert_eq!(scene.clone.git(&["rev-parse", &moved]), scene.clone.git(&["rev-parse", "main"]));
    }

    /// The copy is in a container's reach: what it puts in the way holds no record, and leads nowhere.
    #[test]
    fn a_link_in_the_place_of_the_copies_holds_nothing() {
        let scene = Scene::new();
        let record = scene.retire(1_000);
        let copies = scene.clone.path.join(".git/treesweep/retired");
        std::fs::rename(&copies, scene.clone.root.join("moved")).unwrap();
        std::os::unix::fs::symlink(scene.clone.root.join("moved"), &copies).unwrap();
        let expired = expire(&scene.enter(), Timestamp::now()).unwrap();
        assert_eq!((expired.dropped.len(), expired.notes.len()), (1, 1), "{expired:?}");
        assert!(scene.clone.root.join(format!("moved/{}.json", record.id)).exists());
    }

    #[test]
    fn killed_at_any_call_the_next_run_drops_the_rest() {
        for at in 1.. {
            let scene = Scene::new();
            let record = scene.retire(1_000);
            let clone = scene.enter();
            let (done, _) = run(Some((at, Fault::Kill)), || expire(&clone, Timestamp::now()).unwrap());
            drop(clone);
            if done.is_none() {
                let left = scene.known();
                assert!(
                    left == std::slice::from_ref(&record.id) || scene.refs() == 0,
                    "a reference without its record"
                );
                expire(&scene.enter(), Timestamp::now()).unwrap();
            }
            assert_eq!((scene.known(), scene.refs()), (Vec::new(), 0));
            if done.is_some() {
                return;
            }
        }
    }
}

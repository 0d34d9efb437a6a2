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
    use crate::sweep::bytes::Bytes;
    use crate::sweep::journal::{FateMark, Journal, Open};
    use crate::sweep::outcome::{Ending, Removed};
    use crate::sweep::record::{Completion, SCHEMA};
    use crate::sweep::testing::{Clone, local};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

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

        fn retire(&self, started: i64) -> Record {
            let mut record = crate::sweep::testing::record(at(started));
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
        let expired = expire(&scene.enter(), at(1_000)).unwrap();
        assert_eq!((expired.dropped, expired.released), (vec![old.id.clone()], 2));
        assert_eq!((expired.stay, expired.notes), (Vec::new(), Vec::new()));
        assert_eq!((scene.known(), scene.refs()), (vec![young.id.clone()], 2));
        let copies = scene.clone.path.join(".git/treesweep/retired");
        assert!(!copies.join(format!("{}.json", old.id)).exists());
        assert!(copies.join(format!("{}.json", young.id)).exists());
    }

    /// The time that counts is that of its end.
    #[test]
    fn what_ended_later_stays() {
        let scene = Scene::new();
        let mut record = scene.retire(1_000);
        record.completed = Some(Completion {
            time: at(3_000),
            result: Ending::Removed,
            removed: Removed::default(),
            branch: None,
        });
        records::write_both(&scene.enter(), &record).unwrap();
        assert_eq!(expire(&scene.enter(), at(2_999)).unwrap(), Expired::default());
        assert_eq!((scene.known(), scene.refs()), (vec![record.id.clone()], 2));
        assert_eq!(expire(&scene.enter(), at(3_000)).unwrap().dropped, [record.id]);
    }

    /// Its anchors hold what the removal under way has not proven to be held elsewhere.
    #[test]
    fn what_a_journal_is_still_about_stays() {
        let scene = Scene::new();
        let (record, other) = (scene.retire(1_000), scene.retire(1_000));
        let journal = Journal {
            schema: SCHEMA,
            record: record.clone(),
            root: Bytes::new("/r"),
            checkout: None,
            entry: None,
            branch: FateMark::None,
        };
        let clone = scene.enter();
        let open = Open::begin(clone.state(), journal).unwrap();
        assert_eq!(expire(&clone, Timestamp::now()).unwrap().dropped, [other.id]);
        open.close(clone.state()).unwrap();
        drop(clone);
        assert_eq!((scene.known(), scene.refs()), (vec![record.id.clone()], 2));
        assert_eq!(expire(&scene.enter(), Timestamp::now()).unwrap().dropped, [record.id]);
    }

    /// Which references would have to go can't be known then: dropped, the record would leave some that nobody knows.
    #[test]
    fn what_names_a_commit_by_no_object_id_stays() {
        let scene = Scene::new();
        let mut record = scene.retire(1_000);
        record.anchors[0] = serde_json::from_str(r#""no commit""#).unwrap();
        records::write_both(&scene.enter(), &record).unwrap();
        let expired = expire(&scene.enter(), Timestamp::now()).unwrap();
        assert_eq!((expired.dropped, expired.released), (vec![], 0));
        assert!(expired.stay[0].1.contains("no object id"), "{:?}", expired.stay);
        assert_eq!((scene.known(), scene.refs()), (vec![record.id], 2));
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

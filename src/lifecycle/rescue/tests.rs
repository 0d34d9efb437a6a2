use super::*;
use std::path::PathBuf;

use crate::lifecycle::links::{Form, Spot, again};
use crate::state_dir::StateDir;
use crate::stop::Stop;
use crate::sweep::act::faults::{Fault, run};
use crate::sweep::testing::{Clone, git_in, listing, local};
use crate::vantage::translate::Translator;

/// A clone whose worktree `x` on branch `wt/x` lost its entry.
struct Scene {
    clone: Clone,
    path: PathBuf,
    was: std::collections::BTreeMap<PathBuf, String>,
}

impl Scene {
    fn new() -> Self {
        let clone = Clone::new();
        let path = clone.path.join(".worktrees/x");
        clone.git(&["worktree", "add", "-q", "-b", "wt/x", path.to_str().unwrap()]);
        std::fs::write(path.join("more"), "more\n").unwrap();
        git_in(&path, &["add", "-A"]);
        git_in(&path, &["commit", "-qm", "more"]);
        std::fs::write(path.join("file"), "changed\n").unwrap();
        std::fs::write(path.join("new"), "new\n").unwrap();
        std::fs::remove_dir_all(clone.path.join(".git/worktrees")).unwrap();
        let was = listing(&path);
        Self { clone, path, was }
    }

    fn enter(&self) -> LockedClone {
        let state = StateDir::open(&local(&self.clone.root.join("state/treesweep"))).unwrap();
        LockedClone::enter_unconfined(&state, &Stop::never(), self.clone.common()).unwrap()
    }

    fn wanted(&self) -> Wanted {
        let path = local(&self.path);
        let pointer = Pointer::parse(&std::fs::read(self.path.join(".git")).unwrap()).unwrap();
        let id = Dir::open(&path).unwrap().own_meta().unwrap().id;
        let name = EntryName::new("x").unwrap();
        let common = local(&self.clone.path.join(".git"));
        let spot = Spot { common: &common, name: &name, checkout: &path };
        let links = again(&pointer.target, spot, &[Translator::Identity]).unwrap();
        assert_eq!(links.form, Form::Here);
        let checkout = Sighting { path, id, pointer };
        Wanted { name, checkout, links, head: Head::Branch("refs/heads/wt/x".into()), unborn: false }
    }

    fn rescue(&self) -> Result<Rescued, NotRescued> {
        rescue(&self.enter(), &self.wanted())
    }

    fn assert_back(&self, at: &str) {
        assert_eq!(listing(&self.path), self.was, "{at}");
        assert_eq!(git_in(&self.path, &["status", "--porcelain", "-b"]), "## wt/x\n M file\n?? new", "{at}");
        assert_eq!(self.clone.git(&["fsck", "--no-progress"]), "", "{at}");
        let ours = self.clone.common().dir("treesweep").unwrap().names().unwrap();
        assert_eq!(ours, [b"lock".to_vec()], "{at}");
    }
}

#[test]
fn it_is_registered_again_and_no_file_changes() {
    let scene = Scene::new();
    let rescued = scene.rescue().unwrap();
    assert_eq!((rescued.commit, rescued.files), (Some(scene.clone.id_of("wt/x")), 2));
    scene.assert_back("rescued");
    let log = git_in(&scene.path, &["reflog", "-1", "--format=%H %gs"]);
    let said = format!("{} worktree: registered again by treesweep rescue", scene.clone.id_of("wt/x"));
    assert_eq!(log, said);
    assert!(matches!(scene.rescue(), Err(NotRescued::NameTaken(_))), "it is there");
}

#[test]
fn killed_at_any_call_the_next_run_begins_anew() {
    for at in 1.. {
        let scene = Scene::new();
        let (clone, wanted) = (scene.enter(), scene.wanted());
        let (done, _) = run(Some((at, Fault::Kill)), || rescue(&clone, &wanted));
        drop(clone);
        assert_eq!(listing(&scene.path), scene.was, "call {at}");
        match scene.rescue() {
            Ok(_) | Err(NotRescued::NameTaken(_)) => {}
            Err(error) => panic!("call {at}: {error}"),
        }
        scene.assert_back(&format!("call {at}"));
        if done.is_some() {
            return;
        }
    }
}

#[test]
fn an_error_at_any_call_leaves_nothing_half_made() {
    for at in 1.. {
        let scene = Scene::new();
        let (clone, wanted) = (scene.enter(), scene.wanted());
        let fault = Fault::Error(rustix::io::Errno::NOSPC);
        let (done, calls) = run(Some((at, fault)), || rescue(&clone, &wanted));
        drop(clone);
        if calls.len() < at {
            done.unwrap().unwrap();
            return scene.assert_back("without a fault");
        }
        match scene.rescue() {
            Ok(_) | Err(NotRescued::NameTaken(_)) => {}
            Err(error) => panic!("call {at}: {error}"),
        }
        scene.assert_back(&format!("call {at}"));
    }
}

#[test]
fn what_is_taken_is_refused() {
    let scene = Scene::new();
    let wanted = scene.wanted();
    let rescue = |wanted: &Wanted| rescue(&scene.enter(), wanted).unwrap_err();
    let head = |branch: &str| Wanted { head: Head::Branch(branch.into()), ..wanted.clone() };
    let in_use = rescue(&head("refs/heads/main"));
    assert!(in_use.to_string().contains("the main worktree has it checked out"), "{in_use}");
    assert!(matches!(rescue(&head("refs/heads/no")), NotRescued::NoBranch(_)));
    let gone = ObjectId::from_bytes_or_panic(&[7; 20]);
    let detached = Wanted { head: Head::Detached(gone), ..wanted.clone() };
    assert!(matches!(rescue(&detached), NotRescued::NoCommit(_)));
    scene.clone.git(&["worktree", "add", "-q", "--detach", "y"]);
    let theirs = crate::vantage::paths::RecordedPath::new(local(&scene.clone.path.join("y")).as_bstr());
    let taken = Wanted { links: Links { checkout: theirs, ..wanted.links.clone() }, ..wanted.clone() };
    assert!(matches!(rescue(&taken), NotRescued::PathTaken(_)));
    std::fs::write(scene.path.join(".git"), "gitdir: /elsewhere/.git/worktrees/x\n").unwrap();
    assert!(matches!(rescue(&wanted), NotRescued::Replaced(_)));
    assert!(!scene.clone.path.join(".git/worktrees/x").exists());
}

/// A container can put a link in the place of `worktrees`.
#[test]
fn no_link_leads_out() {
    let scene = Scene::new();
    let outside = scene.clone.root.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::os::unix::fs::symlink(&outside, scene.clone.path.join(".git/worktrees")).unwrap();
    assert!(scene.rescue().is_err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
}

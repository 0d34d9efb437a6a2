use std::os::unix::fs::symlink;
use std::path::PathBuf;

use super::*;
use crate::git::open::{open_clone, open_clone_within};
use crate::git::testing::Repo;

fn fifo(path: PathBuf) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
}

/// A repository whose objects are loose and packed.
fn repository() -> Repo {
    let repo = Repo::new();
    repo.commit("packed");
    repo.git(&["gc", "-q"]);
    repo.commit("loose");
    repo
}

#[test]
fn a_store_as_git_leaves_it_is_plain() {
    let repo = repository();
    repo.git(&["commit-graph", "write", "--reachable", "--split"]);
    repo.git(&["multi-pack-index", "write"]);
    std::fs::create_dir(repo.git_dir().join("objects/tmp_objdir-incoming-x")).unwrap();
    std::fs::write(repo.git_dir().join("objects/pack/tmp_pack_x"), "").unwrap();
    assert_eq!(object_stores(&repo.common()), Ok(Vec::new()));
}

#[test]
fn what_would_hold_a_reader_or_lead_it_elsewhere_is_named() {
    for name in ["objects/00/11", "objects/pack/pack-x.idx", "objects/pack/pack-x.pack", "objects/info/x"] {
        let repo = repository();
        fifo(repo.git_dir().join(name));
        let error = open_clone(&repo.common()).unwrap_err();
        assert!(error.0.contains(name) && error.0.contains("FIFO"), "{error}");

        let repo = repository();
        let path = repo.git_dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink("/etc/passwd", path).unwrap();
        let error = open_clone(&repo.common()).unwrap_err();
        assert!(error.0.contains(name) && error.0.contains("symlink"), "{error}");
    }
    for (dir, to) in [("objects/pack", "/"), ("objects/ab", "pack"), ("objects/info", "/nowhere")] {
        let repo = repository();
        let path = repo.git_dir().join(dir);
        if path.exists() {
            std::fs::rename(&path, repo.root().join("away")).unwrap();
        }
        symlink(to, &path).unwrap();
        let error = open_clone(&repo.common()).unwrap_err();
        assert!(error.0.contains(dir), "{error}");
    }
}

/// A clone that borrows the objects of another one.
fn borrowing(repo: &Repo, from: &str) {
    let info = repo.git_dir().join("objects/info");
    std::fs::create_dir_all(&info).unwrap();
    std::fs::write(info.join("alternates"), format!("# lent\n{from}\n")).unwrap();
}

#[test]
fn borrowed_objects_are_looked_at_too() {
    let (lender, repo) = (repository(), Repo::new());
    let lent = lender.git_dir().join("objects");
    borrowing(&repo, lent.to_str().unwrap());
    let found = object_stores(&repo.common()).unwrap();
    assert_eq!(found, [LocalPath::new(&lent).unwrap()]);
    let opened = open_clone(&repo.common()).unwrap();
    assert!(opened.find_object(lender.id("HEAD")).is_ok(), "gix reads them");

    fifo(lent.join("00/11"));
    assert!(open_clone(&repo.common()).unwrap_err().0.contains("00/11"));
}

#[test]
fn what_lies_outside_of_every_root_is_no_evidence() {
    let (lender, repo) = (repository(), Repo::new());
    let root = |repo: &Repo| LocalPath::new(repo.root()).unwrap();
    borrowing(&repo, lender.git_dir().join("objects").to_str().unwrap());
    let error = open_clone_within(&repo.common(), &[root(&repo)]).unwrap_err();
    assert!(error.0.contains("outside of every root") && error.0.contains(&root(&lender).to_string()));
    assert!(open_clone_within(&repo.common(), &[root(&repo), root(&lender)]).is_ok());
    // A link of a path that lies beneath leads out.
    let link = repo.root().join("link");
    symlink(lender.git_dir().join("objects"), &link).unwrap();
    borrowing(&repo, link.to_str().unwrap());
    assert!(open_clone_within(&repo.common(), &[root(&repo)]).is_err());
}

#[test]
fn chains_and_circles_of_stores_end() {
    let (first, second, repo) = (repository(), repository(), Repo::new());
    let objects = |repo: &Repo| repo.git_dir().join("objects").to_str().unwrap().to_owned();
    borrowing(&repo, &objects(&first));
    borrowing(&first, &objects(&second));
    let found = object_stores(&repo.common()).unwrap();
    assert_eq!(found, [&first, &second].map(|r| LocalPath::new(objects(r)).unwrap()));
    borrowing(&second, &objects(&first));
    assert!(open_clone(&repo.common()).is_err(), "gix refuses a circle");

    borrowing(&repo, "../../nowhere/objects");
    assert!(open_clone(&repo.common()).unwrap_err().0.contains("nowhere"));
    fifo(first.git_dir().join("objects/info/alternates2"));
    borrowing(&repo, &objects(&first));
    assert!(open_clone(&repo.common()).unwrap_err().0.contains("FIFO"));
}

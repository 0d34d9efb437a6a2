use std::os::unix::fs::symlink;

use super::*;
use crate::git::testing::Repo;

const SHA1: gix::hash::Kind = gix::hash::Kind::Sha1;

fn id(digit: char) -> ObjectId {
    ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
}

/// Refs that are direct, or symbolic refs to what is given.
fn refs(names: &[(&str, Option<&str>)]) -> SharedRefs {
    let target = |to: &Option<&str>| to.map_or(Target::Direct(id('1')), |to| Target::Symbolic(to.into()));
    SharedRefs { refs: names.iter().map(|(n, to)| (BString::from(*n), target(to))).collect() }
}

fn trunk(refs: &SharedRefs, named: Option<&str>, remotes: &[&str]) -> Option<(String, Vec<String>)> {
    let remotes: Vec<BString> = remotes.iter().map(|r| BString::from(*r)).collect();
    let trunk = refs.trunk(named.map(BStr::new), &remotes)?;
    Some((trunk.name, trunk.refs.iter().map(ToString::to_string).collect()))
}

fn is(name: &str, refs: &[&str]) -> Option<(String, Vec<String>)> {
    Some((name.to_owned(), refs.iter().map(|r| (*r).to_owned()).collect()))
}

#[test]
fn the_trunk_is_what_the_remote_says() {
    let r = refs(&[
        ("refs/heads/main", None),
        ("refs/heads/dev", None),
        ("refs/remotes/origin/HEAD", Some("refs/remotes/origin/dev")),
        ("refs/remotes/origin/dev", None),
    ]);
    assert_eq!(trunk(&r, None, &[]), is("dev", &["refs/heads/dev", "refs/remotes/origin/dev"]));
    assert_eq!(trunk(&r, Some("main"), &[]), is("main", &["refs/heads/main"]));
    assert_eq!(trunk(&r, Some("origin/dev"), &[]), is("origin/dev", &["refs/remotes/origin/dev"]));
    assert_eq!(trunk(&r, Some("refs/heads/dev"), &[]), is("refs/heads/dev", &["refs/heads/dev"]));
    assert_eq!(trunk(&r, Some("nope"), &[]), None);
}

#[test]
fn one_usual_name_will_do_and_two_will_not() {
    assert_eq!(trunk(&refs(&[("refs/heads/master", None)]), None, &[]), is("master", &["refs/heads/master"]));
    assert_eq!(trunk(&refs(&[("refs/heads/master", None), ("refs/heads/main", None)]), None, &[]), None);
    assert_eq!(trunk(&refs(&[("refs/heads/x", None)]), None, &[]), None);
    // Also when one of them only the remote has.
    let r = refs(&[("refs/heads/master", None), ("refs/remotes/origin/main", None)]);
    assert_eq!(trunk(&r, None, &["origin"]), None);
}

#[test]
fn a_head_that_leads_nowhere_says_nothing() {
    // What `git remote prune` leaves when the remote's trunk was renamed.
    let dangling = ("refs/remotes/origin/HEAD", Some("refs/remotes/origin/master"));
    let r = refs(&[dangling, ("refs/remotes/origin/main", None), ("refs/heads/main", None)]);
    assert_eq!(trunk(&r, None, &["origin"]), is("main", &["refs/heads/main", "refs/remotes/origin/main"]));
    // The old local branch is not the trunk because of it.
    let r = refs(&[dangling, ("refs/heads/master", None), ("refs/heads/main", None)]);
    assert_eq!(trunk(&r, None, &["origin"]), None);
    // Another namespace than the remote's own is none of its branches.
    let r = refs(&[
        ("refs/remotes/origin/HEAD", Some("refs/heads/feature")),
        ("refs/heads/feature", None),
        ("refs/heads/main", None),
    ]);
    assert_eq!(trunk(&r, None, &["origin"]), is("main", &["refs/heads/main"]));
    // A detached one neither.
    let r = refs(&[("refs/remotes/origin/HEAD", None), ("refs/heads/main", None)]);
    assert_eq!(trunk(&r, None, &["origin"]), is("main", &["refs/heads/main"]));
}

#[test]
fn a_broken_ref_is_there_and_answers_for_nothing() {
    let mut r = refs(&[("refs/heads/master", None)]);
    r.refs.insert("refs/heads/main".into(), Target::Broken("it is empty".into()));
    assert_eq!(trunk(&r, None, &[]), None, "main exists, so master is not the only one");
    let mut r = refs(&[("refs/heads/main", None), ("refs/heads/dev", None)]);
    r.refs.insert("refs/remotes/origin/HEAD".into(), Target::Broken("it is empty".into()));
    assert_eq!(trunk(&r, None, &["origin"]), None, "where it pointed is not known");
}

#[test]
fn remotes_have_any_name() {
    let r = refs(&[
        ("refs/heads/main", None),
        ("refs/heads/dev", None),
        ("refs/remotes/team/fork/HEAD", Some("refs/remotes/team/fork/dev")),
        ("refs/remotes/team/fork/dev", None),
    ]);
    assert_eq!(trunk(&r, None, &["team/fork"]), is("dev", &["refs/heads/dev", "refs/remotes/team/fork/dev"]));
    // Several without an origin: none of them leads.
    assert_eq!(trunk(&r, None, &["team/fork", "mine"]), is("main", &["refs/heads/main"]));
    // What is left of a remote that is configured no more is not asked.
    let r = refs(&[
        ("refs/heads/main", None),
        ("refs/remotes/old/HEAD", Some("refs/remotes/old/dev")),
        ("refs/remotes/old/dev", None),
    ]);
    assert_eq!(trunk(&r, None, &["up"]), is("main", &["refs/heads/main"]));
    // Without a configuration the refs tell.
    assert_eq!(trunk(&r, None, &[]), is("dev", &["refs/remotes/old/dev"]));
    // The trunk of the one remote is not another remote's branch that reads like it.
    let r = refs(&[
        ("refs/remotes/origin/HEAD", Some("refs/remotes/origin/up/main")),
        ("refs/remotes/origin/up/main", None),
        ("refs/remotes/up/main", None),
    ]);
    assert_eq!(trunk(&r, None, &["origin", "up"]), is("up/main", &["refs/remotes/origin/up/main"]));
}

#[test]
fn names_that_are_not_utf8_are_names() {
    let mut r = refs(&[("refs/remotes/origin/main", None)]);
    r.refs.insert(b"refs/heads/\xff".into(), Target::Direct(id('2')));
    let named = r.trunk(Some(b"\xff".as_bstr()), &[]).unwrap();
    assert_eq!(named.refs, [BString::from(b"refs/heads/\xff".as_slice())]);
}

#[test]
fn a_loop_of_symbolic_refs_resolves_to_nothing() {
    let r = refs(&[("refs/heads/a", Some("refs/heads/b")), ("refs/heads/b", Some("refs/heads/a"))]);
    assert_eq!(r.resolve("refs/heads/a".into()), None);
    assert!(r.chase("refs/heads/a".into()).is_err());
    assert_eq!(r.chase("refs/heads/none".into()), Ok(None));
}

#[test]
fn loose_and_packed_refs_are_what_git_says() {
    for format in ["sha1", "sha256"] {
        let repo = Repo::with_format(format);
        repo.commit("one");
        for name in ["a", "a-b/c", "ünïcode", "it's", "x.y", "-dash", "deep/er/than/that"] {
            repo.git(&["update-ref", &format!("refs/heads/{name}"), "HEAD"]);
        }
        repo.git(&["tag", "-a", "-m", "t", "annotated"]);
        repo.git(&["update-ref", "refs/worktree/mine", "HEAD"]);
        repo.git(&["update-ref", "refs/bisect/bad", "HEAD"]);
        repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/a"]);
        repo.git(&["pack-refs", "--all"]);
        repo.commit("two");
        repo.git(&["update-ref", "refs/heads/a", "HEAD"]);
        repo.git(&["update-ref", "refs/heads/loose", "HEAD"]);
        repo.git(&["update-ref", "-d", "refs/heads/x.y"]);
        let shown = repo.git(&["for-each-ref", "--format=%(refname) %(objectname) %(symref)"]);
        let expected: BTreeMap<BString, Target> = shown
            .lines()
            .map(|line| {
                let mut words = line.split(' ');
                let name = BString::from(words.next().unwrap());
                let id = ObjectId::from_hex(words.next().unwrap().as_bytes()).unwrap();
                let symbolic = words.next().filter(|s| !s.is_empty());
                (name, symbolic.map_or(Target::Direct(id), |to| Target::Symbolic(to.into())))
            })
            .filter(|(name, _)| !PER_WORKTREE.iter().any(|p| name.starts_with(p)))
            .collect();
        assert_eq!(repo.refs().refs, expected);
        assert!(expected.len() >= 10);
    }
}

#[test]
fn a_broken_ref_hides_no_other() {
    let repo = Repo::new();
    let one = repo.commit("one");
    repo.git(&["branch", "packed"]);
    repo.git(&["pack-refs", "--all"]);
    let heads = repo.git_dir().join("refs/heads");
    std::fs::write(heads.join("empty"), "").unwrap();
    std::fs::write(heads.join("junk"), "what\n").unwrap();
    std::fs::write(heads.join("null"), format!("{}\n", "0".repeat(40))).unwrap();
    std::fs::write(heads.join("sha256"), format!("{}\n", "1".repeat(64))).unwrap();
    std::fs::write(heads.join("packed"), "").unwrap();
    std::fs::write(heads.join("huge"), vec![b'1'; 5000]).unwrap();
    std::fs::write(heads.join("bad name"), format!("{one}\n")).unwrap();
    std::fs::write(heads.join("main.lock"), format!("{one}\n")).unwrap();
    std::fs::write(heads.join("worse"), "ref: ../../etc/passwd\n").unwrap();
    symlink("main", heads.join("link")).unwrap();
    symlink("/", heads.join("out")).unwrap();
    nix::unistd::mkfifo(&heads.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let refs = repo.refs();
    assert_eq!(refs.resolve("refs/heads/main".into()), Some(one));
    let broken: Vec<_> = refs.broken().map(|(name, _)| short(name.as_bstr()).to_string()).collect();
    assert_eq!(broken, ["empty", "fifo", "huge", "junk", "link", "null", "out", "packed", "sha256", "worse"]);
    assert_eq!(refs.get("refs/heads/bad name".into()), None);
    assert_eq!(refs.get("refs/heads/main.lock".into()), None);
    // The broken loose one is newer than the packed one.
    assert!(refs.chase("refs/heads/packed".into()).is_err());
}

#[test]
fn packed_refs_that_nobody_wrote_are_refused() {
    let one = "1".repeat(40);
    let read = |text: &str| {
        let mut refs = BTreeMap::new();
        packed(text.as_bytes(), SHA1, &mut refs).map(|()| refs)
    };
    let good = read(&format!("# pack-refs with: peeled\n{one} refs/heads/a\n{one} refs/tags/t\n^{one}\n"));
    assert_eq!(good.unwrap().len(), 2);
    for text in [
        format!("{one} refs/heads/a"),
        "junk\n".into(),
        format!("{one}\n"),
        format!("{}  refs/heads/a\n", "1".repeat(64)),
        "^x\n".into(),
    ] {
        assert!(read(&text).is_err(), "{text}");
    }
    let twice = read(&format!("{one} refs/heads/a\n{} refs/heads/a\n", "2".repeat(40))).unwrap();
    assert!(matches!(twice[b"refs/heads/a".as_bstr()], Target::Broken(_)));
    assert!(read(&format!("{one} refs/worktree/a\n{one} ../x\n")).unwrap().is_empty());
}

#[test]
fn our_own_anchors_and_per_worktree_refs_hold_nothing() {
    let repo = Repo::new();
    repo.commit("one");
    let lost = repo.commit("two");
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    for name in ["refs/treesweep/retired/x/0", "refs/worktree/mine", "refs/bisect/bad", "refs/rewritten/x"] {
        repo.set(name, lost);
        assert!(!repo.refs().holders().any(|id| id == lost), "{name}");
    }
    repo.set("refs/anything/else", lost);
    assert!(repo.refs().holders().any(|id| id == lost));
}

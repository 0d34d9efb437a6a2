//! What becomes of the branch, and which commits are anchored.

use crate::judge::facts::{Facts, Landed};
use crate::judge::testing::*;
use crate::judge::verdict::{Mandate, warrant};
use crate::judge::warrant::{BranchFate, Warrant};

/// A change of facts.
type Change = fn(&mut Facts);

const FORCE: Mandate = Mandate::Person { force: true };

fn warranted(facts: &Facts, mandate: Mandate) -> Warrant {
    warrant(facts, &policy(), mandate, scope()).unwrap()
}

fn kept(warrant: &Warrant) -> bool {
    why(warrant).is_some()
}

fn why(warrant: &Warrant) -> Option<&str> {
    match warrant.branch() {
        BranchFate::Keep { name, why } if name == "refs/heads/x" => Some(why),
        _ => None,
    }
}

#[test]
fn an_owned_branch_that_the_trunk_contains_goes() {
    for facts in [reclaimable(), absent(proven())] {
        for mandate in [Mandate::Automatic, Mandate::Person { force: false }, FORCE] {
            let warrant = warranted(&facts, mandate);
            let BranchFate::Delete { name, expected, trunk } = warrant.branch() else { panic!() };
            assert_eq!((name.as_slice(), *expected), (&b"refs/heads/x"[..], commit(1)));
            assert_eq!(trunk, "refs/remotes/origin/main");
        }
    }
}

#[test]
fn every_other_branch_stays() {
    let content: Change = |f| history(f).landed = Landed::Content { trunk_ref: "refs/heads/main".into() };
    let selected = "you chose its checkout, not its branch";
    let cases: [(Change, Mandate, &str); 6] = [
        (content, Mandate::Automatic, "only its content has landed in refs/heads/main, not its commits"),
        (content, Mandate::Person { force: false }, "only its content"),
        (|f| head(f).symbolic_branch = true, Mandate::Automatic, "it is a symbolic ref"),
        (|f| f.standing.ownership = unowned(), Mandate::Person { force: false }, selected),
        (|f| tree(f).modified = sample("a"), FORCE, selected),
        (|f| history(f).landed = Landed::No { ahead: Some(1) }, FORCE, selected),
    ];
    for (change, mandate, text) in cases {
        let mut facts = reclaimable();
        change(&mut facts);
        let warrant = warranted(&facts, mandate);
        assert!(why(&warrant).is_some_and(|why| why.starts_with(text)), "{:?}", warrant.branch());
    }
    assert!(kept(&warranted(&contained(), FORCE)));
    assert!(kept(&warranted(&absent(weak()), Mandate::Person { force: false })));
}

#[test]
fn a_detached_head_and_an_orphan_have_none() {
    let mut facts = reclaimable();
    head(&mut facts).branch = None;
    assert!(matches!(warranted(&facts, Mandate::Automatic).branch(), BranchFate::None));
    let person = Mandate::Person { force: false };
    assert!(matches!(warranted(&orphan(), person).branch(), BranchFate::None));
}

#[test]
fn commits_that_nothing_else_names_are_anchored_once() {
    let mut facts = reclaimable();
    history(&mut facts).anchors = vec![commit(5), commit(4), commit(5)];
    assert_eq!(warranted(&facts, Mandate::Automatic).anchors(), [commit(4), commit(5)]);
    head(&mut facts).stray = vec![("HEAD".into(), commit(3)), ("refs/worktree/a".into(), commit(4))];
    assert_eq!(warranted(&facts, FORCE).anchors(), [commit(3), commit(4), commit(5)]);
}

#[test]
fn a_warrant_names_exactly_what_was_judged() {
    let warrant = warranted(&reclaimable(), Mandate::Automatic);
    assert_eq!(*warrant.scope(), scope());
    let (checkout, entry) = (warrant.checkout().unwrap(), warrant.entry().unwrap());
    assert_eq!((&checkout.path, checkout.seen.id), (&local("/src/app/.worktrees/x"), meta().id));
    assert_eq!(entry.name.as_bstr(), "x");
    let forget = warranted(&absent(proven()), Mandate::Automatic);
    assert!(forget.checkout().is_none() && forget.entry().is_some());
    let orphan = warranted(&orphan(), FORCE);
    assert!(orphan.checkout().is_some() && orphan.entry().is_none());
    let mut unread = reclaimable();
    unread.entry_fingerprint = None;
    warrant_fails(&unread);
    let mut unseen = orphan_unseen();
    warrant_fails(&unseen);
    unseen.tree = reclaimable().tree;
    warrant_fails(&unseen);
}

fn orphan_unseen() -> Facts {
    let mut facts = orphan();
    let crate::judge::facts::Subject::Orphan { seen, .. } = &mut facts.subject else { unreachable!() };
    *seen = None;
    facts
}

#[track_caller]
fn warrant_fails(facts: &Facts) {
    for mandate in [Mandate::Automatic, Mandate::Person { force: false }, FORCE] {
        warrant(facts, &policy(), mandate, scope()).unwrap_err();
    }
}

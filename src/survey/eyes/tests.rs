use std::collections::BTreeSet;

use super::*;
use crate::git::head::head_facts;
use crate::git::index::Depth;
use crate::git::registration::registrations;
use crate::git::testing::{File, Made, Repo, made};
use crate::stop::Stop;

/// What is known of HEAD and of the history of one worktree.
struct Known {
    head: HeadFacts,
    history: HistoryFacts,
}

fn site(repo: &Repo) -> CloneSite {
    let common = repo.common();
    CloneSite {
        dir: LocalPath::new(repo.path()).unwrap(),
        common_id: common.own_meta().unwrap().id,
        common,
        main_worktree: LocalPath::new(repo.path()),
        root: LocalPath::new(repo.root()).unwrap(),
        outside: false,
        in_scope: true,
    }
}

/// Asks of the worktree `name` what is asked before a removal.
fn ask(repo: &Repo, name: &str) -> Known {
    ask_with(repo, name, None).unwrap()
}

fn ask_with(repo: &Repo, name: &str, trunk: Option<&str>) -> Result<Known, Unreadable> {
    let site = site(repo);
    let eyes = CloneEyes::open(&site, std::slice::from_ref(&site.root), trunk.map(BStr::new))?;
    let all = registrations(&site.common)?;
    let registration = all.iter().find(|r| r.name.as_bstr() == name).unwrap();
    let commits = Commits::of(&eyes.repo, Depth::BeforeRemoval, Stop::never())?;
    let mut reach = Reach::new(&commits, eyes.refs.holders());
    let entry = repo.entry(name);
    let head_file = registration.head.clone()?;
    let head = head_facts(&eyes.repo, &entry, &head_file, &eyes.refs, &mut reach)?;
    let worktree = Worktree {
        site: &site,
        entry: &entry,
        registration,
        head: &head,
        enrolled: None,
        branch_may_go: true,
    };
    let shared = eyes.paint(&commits, &all).ask(&eyes, &worktree, Some(&mut reach))?;
    // Before a removal it is asked of the one worktree alone.
    let alone = eyes.paint_one(&commits, registration).ask(&eyes, &worktree, Some(&mut reach))?;
    assert_eq!(alone, shared);
    Ok(Known { head, history: alone })
}

/// A clone with a commit on `main`, and a worktree `wt` on a branch of its name.
fn clone() -> Repo {
    let repo = Repo::new();
    repo.write("file", "base\n");
    repo.commit("base");
    repo.worktree("wt");
    repo
}

fn in_wt(repo: &Repo, args: &[&str]) -> String {
    repo.git_in(&repo.root().join("wt"), args)
}

/// A commit in the worktree.
fn work(repo: &Repo, what: &str) -> ObjectId {
    std::fs::write(repo.root().join("wt").join(what), format!("{what}\n")).unwrap();
    in_wt(repo, &["add", "-A"]);
    in_wt(repo, &["commit", "-q", "-m", what]);
    repo.id("wt")
}

fn anchors(known: &Known) -> BTreeSet<ObjectId> {
    known.history.anchors.iter().copied().collect()
}

fn by_ancestry(known: &Known) -> bool {
    matches!(known.history.landed, Landed::Ancestry { .. })
}

#[test]
fn a_branch_has_a_commit_of_its_own_when_it_made_one_that_it_still_has() {
    let repo = clone();
    let fresh = ask(&repo, "wt");
    assert!(by_ancestry(&fresh) && !fresh.history.has_own_commit);

    // The trunk goes on, and the branch follows without a commit of its own.
    repo.write("more", "more\n");
    repo.commit("more");
    for follow in
        [&["merge", "-q", "main"][..], &["reset", "-q", "--hard", "main"], &["rebase", "-q", "main"]]
    {
        in_wt(&repo, &["reset", "-q", "--hard", "main~1"]);
        in_wt(&repo, follow);
        assert_eq!(repo.id("wt"), repo.id("main"), "{follow:?}");
        let known = ask(&repo, "wt");
        assert!(by_ancestry(&known) && !known.history.has_own_commit, "{follow:?}");
    }

    // One that was reset away is no beginning: it has not landed.
    let lost = work(&repo, "lost");
    in_wt(&repo, &["reset", "-q", "--hard", "main"]);
    let known = ask(&repo, "wt");
    assert!(by_ancestry(&known) && !known.history.has_own_commit);
    assert_eq!(anchors(&known), [lost].into());

    let own = work(&repo, "own");
    assert!(!by_ancestry(&ask(&repo, "wt")));
    repo.git(&["merge", "-q", "--ff-only", "wt"]);
    let known = ask(&repo, "wt");
    assert!(by_ancestry(&known) && known.history.has_own_commit);
    // It stays its own when the branch goes on to what the trunk made of it.
    repo.write("later", "later\n");
    repo.commit("later");
    in_wt(&repo, &["merge", "-q", "main"]);
    assert_ne!(repo.id("wt"), own);
    assert!(ask(&repo, "wt").history.has_own_commit);

    // Without a reflog nobody knows.
    std::fs::remove_file(repo.git_dir().join("logs/refs/heads/wt")).unwrap();
    assert!(!ask(&repo, "wt").history.has_own_commit);
}

#[test]
fn every_way_to_make_a_commit_counts() {
    for how in ["commit", "amend", "cherry-pick", "revert", "merge", "am"] {
        let repo = clone();
        repo.git(&["checkout", "-q", "-b", "other"]);
        repo.write("other", "other\n");
        repo.commit("other");
        let patch = repo.git(&["format-patch", "-1", "-o", repo.root().to_str().unwrap()]);
        repo.git(&["checkout", "-q", "main"]);
        repo.write("trunk", "trunk\n");
        repo.commit("trunk");
        match how {
            "commit" => drop(work(&repo, "x")),
            "amend" => drop(in_wt(&repo, &["commit", "-q", "--amend", "-m", "amended"])),
            "cherry-pick" => drop(in_wt(&repo, &["cherry-pick", "main"])),
            "revert" => {
                in_wt(&repo, &["merge", "-q", "other"]);
                in_wt(&repo, &["revert", "--no-edit", "HEAD"]);
            }
            "merge" => {
                in_wt(&repo, &["merge", "-q", "main"]);
                in_wt(&repo, &["merge", "-q", "--no-edit", "other"]);
            }
            _ => drop(in_wt(&repo, &["am", "-q", &patch])),
        }
        assert!(ask(&repo, "wt").history.has_own_commit, "{how}");
    }
}

#[test]
fn what_only_the_worktree_knows_gets_an_anchor_at_its_tips() {
    let repo = clone();
    // Two commits that were reset away, the second on top of the first.
    work(&repo, "first");
    let second = work(&repo, "second");
    in_wt(&repo, &["reset", "-q", "--hard", "main"]);
    // One that was made on a detached HEAD and left; and one that was amended.
    in_wt(&repo, &["checkout", "-q", "--detach"]);
    std::fs::write(repo.root().join("wt/d"), "d\n").unwrap();
    in_wt(&repo, &["add", "-A"]);
    in_wt(&repo, &["commit", "-q", "-m", "detached"]);
    let detached = ObjectId::from_hex(in_wt(&repo, &["rev-parse", "HEAD"]).as_bytes()).unwrap();
    in_wt(&repo, &["checkout", "-q", "wt"]);
    let before = work(&repo, "before");
    in_wt(&repo, &["commit", "-q", "--amend", "-m", "after"]);
    repo.git(&["merge", "-q", "--ff-only", "wt"]);
    assert_eq!(anchors(&ask(&repo, "wt")), [second, detached, before].into());

    // What a shared ref reaches needs none: a branch, a tag, a stash, a remote's branch.
    repo.set("refs/heads/kept", second);
    repo.git(&["tag", "-a", "-m", "kept", "kept-too", &detached.to_string()]);
    assert_eq!(anchors(&ask(&repo, "wt")), [before].into());
    repo.set("refs/remotes/origin/x", before);
    assert_eq!(anchors(&ask(&repo, "wt")), [].into());
    // Our own anchors of another removal do not count: they go some day.
    repo.git(&["update-ref", "-d", "refs/remotes/origin/x"]);
    repo.set("refs/treesweep/retired/x/0", before);
    assert_eq!(anchors(&ask(&repo, "wt")), [before].into());
}

#[test]
fn pseudo_refs_and_logs_of_per_worktree_refs_are_names_too() {
    let repo = clone();
    let lost = repo.history(&[
        made("root", &[], 1),
        made("a", &["root"], 2),
        made("b", &["root"], 3),
        made("c", &["root"], 4),
        made("d", &["root"], 5),
    ]);
    let entry = repo.git_dir().join("worktrees/wt");
    for (name, commit) in [("ORIG_HEAD", "a"), ("REBASE_HEAD", "b")] {
        std::fs::write(entry.join(name), format!("{}\n", lost[commit])).unwrap();
    }
    let fetched = format!("{}\tnot-for-merge\tbranch 'x' of ../elsewhere\n", lost["c"]);
    std::fs::write(entry.join("FETCH_HEAD"), fetched).unwrap();
    // A per-worktree ref that was moved on: its reflog still knows where it was.
    for commit in ["d", "root"] {
        in_wt(&repo, &["update-ref", "--create-reflog", "refs/worktree/w", &lost[commit].to_string()]);
    }
    in_wt(&repo, &["update-ref", "-d", "--no-deref", "refs/worktree/w"]);
    let log = entry.join("logs/refs/worktree");
    std::fs::create_dir_all(&log).unwrap();
    let zero = "0".repeat(40);
    let line = format!("{zero} {} dev <dev@example.invalid> 5 +0000\tmade\n", lost["d"]);
    std::fs::write(log.join("w"), line).unwrap();
    let known = ask(&repo, "wt");
    assert_eq!(anchors(&known), ["a", "b", "c", "d"].map(|n| lost[n]).into());

    // What the reflog names and the store has no more can't be held.
    let gone = format!("{zero} {} dev <dev@example.invalid> 5 +0000\tmade\n", "7".repeat(40));
    std::fs::write(log.join("gone"), gone).unwrap();
    assert_eq!(anchors(&ask(&repo, "wt")).len(), 4);
    // And one that nobody can read is not passed over.
    nix::unistd::mkfifo(&log.join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    assert!(ask_with(&repo, "wt", None).err().unwrap().0.contains("FIFO"));
}

#[test]
fn a_detached_head_and_own_refs_are_strays_unless_something_shared_reaches_them() {
    let repo = clone();
    let on_branch = work(&repo, "x");
    in_wt(&repo, &["checkout", "-q", "--detach"]);
    assert_eq!(ask(&repo, "wt").head.stray, [], "the branch wt still holds it");
    repo.git(&["branch", "-D", "wt"]);
    let stray =
        |repo: &Repo| ask(repo, "wt").head.stray.iter().map(|(n, _)| n.to_string()).collect::<Vec<_>>();
    assert_eq!(stray(&repo), ["HEAD"]);
    repo.git(&["tag", "-a", "-m", "t", "t", &on_branch.to_string()]);
    assert_eq!(stray(&repo), [""; 0]);
    repo.git(&["tag", "-d", "t"]);
    repo.set("refs/stash", on_branch);
    assert_eq!(stray(&repo), [""; 0]);
    repo.git(&["update-ref", "-d", "refs/stash"]);
    // Another worktree's HEAD is nothing that lasts.
    let beside = repo.root().join("beside");
    repo.git(&["worktree", "add", "-q", "--detach", beside.to_str().unwrap(), &on_branch.to_string()]);
    assert_eq!(stray(&repo), ["HEAD"]);
    for name in ["refs/worktree/deep/er", "refs/bisect/bad", "refs/rewritten/x"] {
        in_wt(&repo, &["update-ref", name, &on_branch.to_string()]);
    }
    assert_eq!(stray(&repo), ["HEAD", "refs/bisect/bad", "refs/rewritten/x", "refs/worktree/deep/er"]);
    // Also what is no commit: nobody else has it.
    let blob = repo.git(&["hash-object", "-w", "file"]);
    in_wt(&repo, &["checkout", "-q", "main~0"]);
    for name in ["refs/worktree/deep/er", "refs/bisect/bad", "refs/rewritten/x"] {
        in_wt(&repo, &["update-ref", "-d", name]);
    }
    in_wt(&repo, &["update-ref", "refs/worktree/note", &blob]);
    assert_eq!(stray(&repo), ["refs/worktree/note"]);
}

#[test]
fn heads_of_any_kind_are_told_apart() {
    let repo = clone();
    let entry = repo.git_dir().join("worktrees/wt");
    let known = |repo: &Repo| ask(repo, "wt").head;
    assert_eq!(known(&repo).branch, Some("refs/heads/wt".into()));

    in_wt(&repo, &["checkout", "-q", "--orphan", "new"]);
    let head = known(&repo);
    assert_eq!((head.branch, head.tip), (Some("refs/heads/new".into()), None));

    in_wt(&repo, &["symbolic-ref", "HEAD", "refs/heads/wt"]);
    repo.git(&["symbolic-ref", "refs/heads/alias", "refs/heads/wt"]);
    in_wt(&repo, &["symbolic-ref", "HEAD", "refs/heads/alias"]);
    let head = known(&repo);
    assert!(head.symbolic_branch);
    assert_eq!(head.tip, Some(repo.id("wt")));

    // The branch is gone: what the worktree was on is what its own reflog says.
    in_wt(&repo, &["symbolic-ref", "HEAD", "refs/heads/wt"]);
    let last = work(&repo, "x");
    repo.git(&["update-ref", "-d", "refs/heads/wt"]);
    let head = known(&repo);
    assert_eq!((head.tip, head.last_known), (None, Some(last)));

    // A branch that names no commit answers for nothing.
    let tree = repo.id("main^{tree}");
    std::fs::write(repo.git_dir().join("refs/heads/wt"), format!("{tree}\n")).unwrap();
    let Known { head, history } = ask(&repo, "wt");
    assert_eq!((head.tip, history.landed), (Some(tree), Landed::No { ahead: None }));
    repo.git(&["tag", "-a", "-m", "t", "t", "main"]);
    let tag = repo.id("refs/tags/t");
    std::fs::write(repo.git_dir().join("refs/heads/wt"), format!("{tag}\n")).unwrap();
    assert_eq!(ask(&repo, "wt").history.landed, Landed::No { ahead: None });
    // A broken one neither; the error names it.
    std::fs::write(repo.git_dir().join("refs/heads/wt"), "").unwrap();
    assert!(ask_with(&repo, "wt", None).err().unwrap().0.contains("refs/heads/wt: it is empty"));

    // HEAD on a ref that only this worktree has, and an id of another kind of repository.
    std::fs::write(entry.join("HEAD"), "ref: refs/worktree/w\n").unwrap();
    assert_eq!(known(&repo).tip, None);
    std::fs::write(entry.join("HEAD"), format!("{}\n", "1".repeat(64))).unwrap();
    let Known { head, history } = ask(&repo, "wt");
    assert_eq!(head.stray.len(), 1);
    assert_eq!(history.landed, Landed::No { ahead: None });
}

#[test]
fn every_operation_that_git_began_is_seen() {
    let kinds = |repo: &Repo| ask(repo, "wt").head.operations.iter().map(|o| o.kind).collect::<Vec<_>>();
    let conflicting = || {
        let repo = clone();
        repo.write("file", "main\n");
        repo.commit("main");
        std::fs::write(repo.root().join("wt/file"), "wt\n").unwrap();
        in_wt(&repo, &["commit", "-qam", "wt"]);
        std::fs::write(repo.root().join("wt/other"), "wt\n").unwrap();
        work(&repo, "two");
        repo
    };
    let fails = |repo: &Repo, args: &[&str]| {
        let output = repo.command(&repo.root().join("wt"), args).env("GIT_EDITOR", "true").output().unwrap();
        assert!(!output.status.success(), "{args:?}");
    };
    for (args, kind) in [
        (&["merge", "-q", "main"][..], "merge"),
        (&["rebase", "-q", "main"], "rebase"),
        (&["rebase", "-q", "--apply", "main"], "rebase"),
        (&["cherry-pick", "main"], "cherry-pick"),
        (&["revert", "main"], "revert"),
    ] {
        let repo = conflicting();
        fails(&repo, args);
        assert!(kinds(&repo).contains(&kind), "{args:?}: {:?}", kinds(&repo));
    }
    let repo = conflicting();
    let patch = repo.git(&["format-patch", "-1", "-o", repo.root().to_str().unwrap()]);
    fails(&repo, &["am", "-q", &patch]);
    assert_eq!(kinds(&repo), ["am"]);

    // A sequence whose second step waits, with nothing in conflict any more.
    let repo = conflicting();
    fails(&repo, &["cherry-pick", "main", "main~1"]);
    in_wt(&repo, &["checkout", "-q", "--theirs", "file"]);
    in_wt(&repo, &["add", "file"]);
    in_wt(&repo, &["commit", "-q", "-m", "picked"]);
    assert_eq!(kinds(&repo), ["sequencer"]);

    let repo = conflicting();
    in_wt(&repo, &["bisect", "start"]);
    assert_eq!(kinds(&repo), ["bisect"]);
    std::fs::remove_file(repo.git_dir().join("worktrees/wt/BISECT_LOG")).unwrap();
    assert_eq!(kinds(&repo), ["bisect"], "it was killed between two files");
    in_wt(&repo, &["bisect", "reset"]);
    assert_eq!(kinds(&repo), [""; 0]);

    for name in ["index.lock", "HEAD.lock"] {
        let lock = repo.git_dir().join("worktrees/wt").join(name);
        std::fs::write(&lock, "").unwrap();
        let operations = ask(&repo, "wt").head.operations;
        assert!(operations[0].kind.starts_with(name) && operations[0].since.seconds > 0);
        std::fs::remove_file(lock).unwrap();
    }
    std::fs::write(repo.git_dir().join("worktrees/wt/MERGE_AUTOSTASH"), "").unwrap();
    assert_eq!(kinds(&repo), ["autostash"]);
}

#[test]
fn content_lands_in_the_trunk_that_has_it() {
    let repo = clone();
    work(&repo, "one");
    let tip = work(&repo, "two");
    repo.set("refs/remotes/origin/main", repo.id("main"));
    assert_eq!(ask(&repo, "wt").history.landed, Landed::No { ahead: Some(2) });
    // Squashed on the remote; the local trunk is behind.
    repo.git(&["merge", "-q", "--squash", "wt"]);
    let squash = repo.commit("squash");
    repo.set("refs/remotes/origin/main", squash);
    repo.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let of = |trunk: &str| Landed::Content { trunk_ref: trunk.into() };
    assert_eq!(ask(&repo, "wt").history.landed, of("refs/remotes/origin/main"));
    // Then the branch takes the trunk in, as people do to update it.
    repo.set("refs/heads/main", squash);
    in_wt(&repo, &["merge", "-q", "--no-edit", "main"]);
    assert_ne!(repo.id("wt"), tip);
    assert_eq!(
        ask(&repo, "wt").history.landed,
        Landed::No { ahead: Some(3) },
        "it has no net change any more"
    );
    work(&repo, "three");
    assert_eq!(ask(&repo, "wt").history.landed, Landed::No { ahead: Some(4) });
    repo.git(&["reset", "-q", "--hard", "main"]);
    repo.git(&["merge", "-q", "--squash", "wt"]);
    repo.commit("again");
    assert_eq!(ask(&repo, "wt").history.landed, of("refs/heads/main"));
}

/// The local trunk has a commit that was never pushed, the branch begins there, and the remote has only the branch's own
/// change: merging the branch into the remote's trunk would bring the other commit along.
#[test]
fn each_trunk_is_asked_from_where_the_branch_left_it() {
    let repo = clone();
    let pushed = repo.id("main");
    repo.write("unpushed", "unpushed\n");
    repo.commit("unpushed");
    in_wt(&repo, &["reset", "-q", "--hard", "main"]);
    work(&repo, "own");
    repo.git(&["checkout", "-q", "-b", "remote", &pushed.to_string()]);
    repo.write("own", "own\n");
    let squash = repo.commit("squash of own");
    repo.set("refs/remotes/origin/main", squash);
    repo.git(&["checkout", "-q", "main"]);
    assert_eq!(ask(&repo, "wt").history.landed, Landed::No { ahead: Some(1) });
}

/// The trunk reaches the commit that the branch took in only through one that says it is ancient, so that a walk by
/// dates ends before it, and an older base offers itself. The branch took back what the trunk had changed: seen from the
/// older base it changed nothing there, and all else has landed.
#[test]
fn wrong_dates_do_not_make_content_land() {
    let repo = clone();
    let (old, new, own) =
        (("f", File::Text("old\n")), ("f", File::Text("new\n")), ("own", File::Text("own\n")));
    let ids = repo.history(&[
        Made { name: "root", parents: &[], date: 1_000_000, files: &[old] },
        Made { name: "new", parents: &["root"], date: 5_000_000, files: &[new] },
        made("ancient", &["new"], 10),
        Made { name: "trunk", parents: &["ancient", "root"], date: 8_000_000, files: &[own] },
        // A merge that keeps the old text.
        made("merge", &["root", "new"], 6_000_000),
        Made { name: "tip", parents: &["merge"], date: 7_000_000, files: &[own] },
    ]);
    repo.git(&["checkout", "-q", "--detach"]);
    repo.set("refs/heads/main", ids["trunk"]);
    repo.set("refs/heads/wt", ids["tip"]);
    assert_eq!(repo.git(&["merge-base", "--all", "main", "wt"]), ids["new"].to_string());
    assert!(matches!(ask(&repo, "wt").history.landed, Landed::No { .. }));
}

#[test]
fn criss_cross_merges_leave_it_open() {
    let repo = clone();
    let text = |t| ("f", File::Text(t));
    let ids = repo.history(&[
        Made { name: "root", parents: &[], date: 1, files: &[text("x\n")] },
        Made { name: "left", parents: &["root"], date: 3, files: &[("l", File::Text("l\n"))] },
        Made { name: "right", parents: &["root"], date: 2, files: &[text("y\n")] },
        // Each takes the other in: the tip by keeping the old text, the trunk by taking the new one.
        Made { name: "tip", parents: &["left", "right"], date: 4, files: &[("own", File::Text("o\n"))] },
        Made {
            name: "trunk",
            parents: &["right", "left"],
            date: 5,
            files: &[("own", File::Text("o\n")), ("l", File::Text("l\n"))],
        },
    ]);
    repo.git(&["checkout", "-q", "--detach"]);
    repo.set("refs/heads/main", ids["trunk"]);
    repo.set("refs/heads/wt", ids["tip"]);
    assert_eq!(repo.git(&["merge-base", "--all", "main", "wt"]).lines().count(), 2);
    assert_eq!(ask(&repo, "wt").history.landed, Landed::No { ahead: Some(1) });
}

#[test]
fn a_container_is_live_only_while_it_has_not_landed() {
    let repo = clone();
    std::fs::write(repo.root().join("wt/file"), "stage one\n").unwrap();
    work(&repo, "one");
    let containers = |repo: &Repo| {
        let history = ask(repo, "wt").history;
        history.containers.iter().map(|c| (c.branch.to_string(), c.ahead)).collect::<Vec<_>>()
    };
    assert_eq!(containers(&repo), []);
    repo.git(&["branch", "twin", "wt"]);
    assert_eq!(containers(&repo), [], "equal tips are twins");
    repo.git(&["checkout", "-q", "-b", "stage/two", "wt"]);
    repo.write("file", "stage two\n");
    repo.commit("two");
    repo.git(&["checkout", "-q", "-b", "stage/three"]);
    repo.write("three", "three\n");
    repo.commit("three");
    repo.git(&["checkout", "-q", "main"]);
    let both = [("stage/two".to_owned(), 1), ("stage/three".to_owned(), 2)];
    assert_eq!(containers(&repo), both);
    // A tag, a remote's branch and a detached HEAD are no live local branches.
    repo.git(&["tag", "t", "stage/three"]);
    repo.set("refs/remotes/origin/x", repo.id("stage/three"));
    let beside = repo.root().join("beside");
    repo.git(&["worktree", "add", "-q", "--detach", beside.to_str().unwrap(), "stage/three"]);
    assert_eq!(containers(&repo), both);
    // The second stage is squashed: it has landed by content and contains nothing any more. The first one has not, since
    // the second changed its line again, and still travels in the third.
    repo.git(&["merge", "-q", "--squash", "stage/two"]);
    repo.commit("squash");
    assert!(!by_ancestry(&ask(&repo, "wt")));
    assert_eq!(containers(&repo), both[1..]);
    // When that has landed too, the first stage is contained in nothing that lives.
    repo.git(&["merge", "-q", "--no-edit", "-X", "ours", "stage/three"]);
    assert!(by_ancestry(&ask(&repo, "wt")));
    assert_eq!(containers(&repo), []);
}

#[test]
fn the_trunk_is_named_by_the_user_or_by_the_remotes_head() {
    let repo = clone();
    work(&repo, "x");
    repo.git(&["branch", "dev", "wt"]);
    assert!(!by_ancestry(&ask(&repo, "wt")));
    assert!(by_ancestry(&ask_with(&repo, "wt", Some("dev")).unwrap()));
    let known = ask_with(&repo, "wt", Some("nope")).unwrap();
    assert_eq!((known.history.trunk, known.history.landed), (None, Landed::No { ahead: Some(2) }));
    repo.git(&["remote", "add", "team/up", "/nowhere"]);
    repo.set("refs/remotes/team/up/dev", repo.id("dev"));
    repo.git(&["symbolic-ref", "refs/remotes/team/up/HEAD", "refs/remotes/team/up/dev"]);
    let known = ask(&repo, "wt");
    assert_eq!(known.history.trunk.as_ref().unwrap().name, "dev");
    assert!(by_ancestry(&known));
}

#[test]
fn a_sha256_clone_is_a_clone() {
    let repo = Repo::with_format("sha256");
    repo.write("file", "base\n");
    repo.commit("base");
    repo.worktree("wt");
    let lost = work(&repo, "lost");
    in_wt(&repo, &["reset", "-q", "--hard", "main"]);
    let own = work(&repo, "own");
    repo.git(&["merge", "-q", "--no-ff", "--no-edit", "wt"]);
    let known = ask(&repo, "wt");
    assert!(by_ancestry(&known) && known.history.has_own_commit);
    assert_eq!((known.head.tip, anchors(&known)), (Some(own), [lost].into()));
    in_wt(&repo, &["checkout", "-q", "--detach"]);
    let made = work_detached(&repo);
    assert_eq!(ask(&repo, "wt").head.stray, [("HEAD".into(), made)]);
}

fn work_detached(repo: &Repo) -> ObjectId {
    in_wt(repo, &["commit", "-q", "--allow-empty", "-m", "detached"]);
    ObjectId::from_hex(in_wt(repo, &["rev-parse", "HEAD"]).as_bytes()).unwrap()
}

#[test]
fn a_history_that_takes_too_long_says_nothing() {
    let repo = clone();
    in_wt(&repo, &["commit", "-q", "--allow-empty", "-m", "work"]);
    let site = site(&repo);
    let eyes = CloneEyes::open(&site, std::slice::from_ref(&site.root), None).unwrap();
    let registration = &registrations(&site.common).unwrap()[0];
    let ask = |stop: Stop| {
        let commits = Commits::of(&eyes.repo, Depth::BeforeRemoval, stop)?;
        let entry = repo.entry("wt");
        let head = HeadFacts { tip: Some(repo.id("refs/heads/wt")), ..HeadFacts::default() };
        let mut reach = Reach::new(&commits, eyes.refs.holders());
        let enrolled = None;
        let worktree =
            Worktree { site: &site, entry: &entry, registration, head: &head, enrolled, branch_may_go: true };
        eyes.paint_one(&commits, registration).ask(&eyes, &worktree, Some(&mut reach))
    };
    assert!(matches!(ask(Stop::never()).unwrap().landed, Landed::No { ahead: Some(1) }));
    let over = Stop::never().within(std::time::Duration::ZERO);
    assert!(ask(over).unwrap_err().0.contains("history-limit"));
}

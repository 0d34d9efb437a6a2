use std::collections::{BTreeSet, HashMap};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;
use crate::git::testing::{Made, Repo, made};

const DAY: i64 = SKEW;

fn never() -> Stop {
    Stop::never()
}

/// How the tips of `names` stand to the trunk refs `trunk`, walked at once.
fn painted(repo: &gix::Repository, trunk: &[ObjectId], tips: &[(&str, ObjectId)]) -> Painted {
    let commits = Commits::of(repo, Depth::BeforeRemoval, never()).unwrap();
    let tips = tips.iter().map(|(name, id)| (BString::from(*name), *id)).collect();
    paint(&commits, trunk, tips)
}

fn container_names(painted: &Painted, at: usize) -> Vec<(String, u64)> {
    let named = |(other, ahead): (usize, u64)| (painted.tip(other).0.to_string(), ahead);
    painted.containers(at).into_iter().map(named).collect()
}

#[test]
fn a_train_is_contained_in_its_next_stages_nearest_first() {
    let repo = Repo::new();
    let ids = repo.history(&[
        made("base", &[], 10),
        made("one", &["base"], 20),
        made("two", &["one"], 30),
        made("two-b", &["two"], 31),
        made("three", &["two-b"], 40),
        made("side", &["base"], 50),
        made("octopus", &["one", "side", "base"], 60),
        made("trunk", &["base"], 70),
    ]);
    let names = ["one", "two-b", "three", "side", "octopus", "twin-of-three", "landed"];
    let of = |name: &str| match name {
        "twin-of-three" => ids["three"],
        "landed" => ids["base"],
        other => ids[other],
    };
    let tips: Vec<(&str, ObjectId)> = names.iter().map(|n| (*n, of(n))).collect();
    let painted = painted(&repo.open(), &[ids["trunk"]], &tips);
    let stands: Vec<Standing> = (0..names.len()).map(|at| painted.standing(at)).collect();
    let ahead = Standing::Ahead;
    assert_eq!(stands, [ahead(1), ahead(3), ahead(4), ahead(1), ahead(3), ahead(4), Standing::InTrunk(0)]);
    let named = |list: &[(&str, u64)]| list.iter().map(|(n, a)| ((*n).to_owned(), *a)).collect::<Vec<_>>();
    assert_eq!(
        container_names(&painted, 0),
        named(&[("octopus", 2), ("two-b", 2), ("three", 3), ("twin-of-three", 3)])
    );
    assert_eq!(container_names(&painted, 1), named(&[("three", 1), ("twin-of-three", 1)]));
    assert_eq!(container_names(&painted, 2), [], "a twin contains nothing");
    assert_eq!(container_names(&painted, 3), named(&[("octopus", 2)]));
    assert_eq!(container_names(&painted, 6), [], "what has landed is in no other branch");
}

#[test]
fn either_trunk_ref_counts() {
    let repo = Repo::new();
    let ids = repo.history(&[made("a", &[], 1), made("local", &["a"], 2), made("remote", &["a"], 3)]);
    let tips = [("local", ids["local"]), ("remote", ids["remote"])];
    let painted = painted(&repo.open(), &[ids["remote"], ids["local"]], &tips);
    assert_eq!([painted.standing(0), painted.standing(1)], [Standing::InTrunk(1), Standing::InTrunk(0)]);
}

#[test]
fn commits_of_one_second_are_told_apart() {
    let repo = Repo::new();
    let names: Vec<String> = (0..600).map(|n| n.to_string()).collect();
    let parents: Vec<Vec<&str>> =
        (0..600).map(|n| if n == 0 { vec![] } else { vec![names[n - 1].as_str()] }).collect();
    let chain: Vec<Made<'_>> = names.iter().zip(&parents).map(|(n, p)| made(n, p, 77)).collect();
    let ids = repo.history(&chain);
    let tips: Vec<(&str, ObjectId)> = ["0", "1", "299", "300", "598"].iter().map(|n| (*n, ids[*n])).collect();
    let painted = painted(&repo.open(), &[ids["599"]], &tips);
    for (at, (name, _)) in tips.iter().enumerate() {
        assert_eq!(painted.standing(at), Standing::InTrunk(0), "{name}");
    }
}

/// Two thousand commits, and branches that left the trunk anywhere; some of them have landed by a merge.
#[test]
fn a_long_history_with_many_branches_is_walked_once() {
    let repo = Repo::new();
    let trunk: Vec<String> = (0..2000).map(|n| format!("t{n}")).collect();
    let branch: Vec<String> = (0..200).map(|n| format!("b{n}")).collect();
    let mut commits = Vec::new();
    let mut lists: Vec<Vec<String>> = Vec::new();
    for n in 0..2000 {
        let mut parents = Vec::new();
        if n > 0 {
            parents.push(trunk[n - 1].clone());
        }
        // Half of the branches are merged five commits after they left.
        if n % 20 == 10 {
            parents.push(branch[n / 10 - 1].clone());
        }
        lists.push(parents);
    }
    for (n, parents) in lists.iter().enumerate() {
        if n % 10 == 5 && n / 10 < 200 {
            commits.push((branch[n / 10].clone(), vec![trunk[n - 1].clone()], n as i64 * 1000 - 1));
        }
        commits.push((trunk[n].clone(), parents.clone(), n as i64 * 1000));
    }
    let made_parents: Vec<Vec<&str>> =
        commits.iter().map(|(_, p, _)| p.iter().map(String::as_str).collect()).collect();
    let all: Vec<Made<'_>> =
        commits.iter().zip(&made_parents).map(|((n, _, date), p)| made(n, p, *date)).collect();
    let ids = repo.history(&all);
    let tips: Vec<(&str, ObjectId)> = branch.iter().map(|b| (b.as_str(), ids[b])).collect();
    let opened = repo.open();
    let painted = painted(&opened, &[ids["t1999"]], &tips);
    for (at, (name, id)) in tips.iter().enumerate() {
        let landed = painted.standing(at) == Standing::InTrunk(0);
        let git = repo.try_git(&["merge-base", "--is-ancestor", &id.to_string(), &ids["t1999"].to_string()]);
        assert_eq!(landed, git.status.success(), "{name}");
        assert!(landed || painted.standing(at) == Standing::Ahead(1));
    }
}

#[test]
fn a_wrong_date_hides_at_most() {
    // The trunk reaches the tip only through a commit that says it is ancient.
    let repo = Repo::new();
    let mut names = vec!["root".to_owned()];
    names.extend((0..600).map(|n| format!("n{n}")));
    let mut commits = vec![made("root", &[], 1)];
    let parents: Vec<[&str; 1]> = (0..600).map(|n| [names[n].as_str()]).collect();
    for n in 0..600 {
        commits.push(made(&names[n + 1], &parents[n], 100 * DAY + n as i64));
    }
    commits.push(made("ancient", &["n599"], 5));
    commits.push(made("trunk", &["ancient"], 200 * DAY));
    commits.push(made("elsewhere", &["n10"], 300 * DAY));
    let ids = repo.history(&commits);
    let tips = [("n599", ids["n599"]), ("elsewhere", ids["elsewhere"])];
    let painted = painted(&repo.open(), &[ids["trunk"]], &tips);
    assert_ne!(painted.standing(1), Standing::InTrunk(0), "it is no ancestor, and no date makes it one");
    assert!(painted.containers(0).is_empty(), "what has landed contains nothing either");
}

#[test]
fn history_that_is_not_here_is_not_known() {
    let full = Repo::new();
    let ids = full.history(&[
        made("a", &[], 10),
        made("b", &["a"], 20),
        made("c", &["b"], 30),
        made("d", &["c"], 40),
        made("x", &["a"], 50),
    ]);
    full.set("refs/heads/main", ids["d"]);
    full.set("refs/heads/x", ids["x"]);
    let shallow = Repo::new();
    let url = format!("file://{}", full.path().display());
    shallow.git(&["fetch", "-q", "--depth=2", &url, "main:refs/heads/trunk", "x:refs/heads/x"]);
    let opened = shallow.open();
    let commits = Commits::of(&opened, Depth::Plan, never()).unwrap();
    let tips = [("c", ids["c"]), ("b", ids["b"]), ("a", ids["a"]), ("x", ids["x"])];
    let tips = tips.iter().map(|(n, id)| (BString::from(*n), *id)).collect();
    let painted = paint(&commits, &[ids["d"]], tips);
    assert_eq!(painted.standing(0), Standing::InTrunk(0));
    assert_eq!(painted.standing(1), Standing::Unknown, "its commit is not here");
    assert_eq!(painted.standing(2), Standing::Ahead(1), "the boundary hides that it is an ancestor");
    assert_eq!(painted.standing(3), Standing::Ahead(2));
    assert_eq!(painted.fork(3), None);
    assert_eq!(merge_bases(&commits, ids["x"], ids["d"]), None, "the boundary hides the base");
    assert_eq!(merge_bases(&commits, ids["c"], ids["d"]), Some(vec![ids["c"]]));
}

#[test]
fn missing_and_forged_commits_lead_nowhere() {
    let repo = Repo::new();
    let ids =
        repo.history(&[made("a", &[], 1), made("b", &["a"], 2), made("c", &["b"], 3), made("x", &["a"], 4)]);
    let loose = |id: ObjectId| {
        let hex = id.to_string();
        repo.git_dir().join("objects").join(&hex[..2]).join(&hex[2..])
    };
    // A container that can write the object store makes x an ancestor of the trunk: the file of c says so.
    let x_on_top = repo.history(&[
        made("a", &[], 1),
        made("x", &["a"], 4),
        Made { name: "c2", parents: &["x"], date: 5, files: &[] },
    ])["c2"];
    std::fs::remove_file(loose(ids["c"])).unwrap();
    std::fs::copy(loose(x_on_top), loose(ids["c"])).unwrap();
    let opened = repo.open();
    let standing = |depth: Depth, tip: &str| {
        let commits = Commits::of(&opened, depth, never()).unwrap();
        let tips = vec![(BString::from(tip), ids[tip])];
        paint(&commits, &[ids["c"]], tips).standing(0)
    };
    assert_eq!(standing(Depth::Plan, "x"), Standing::InTrunk(0), "the plan believes it");
    assert_eq!(standing(Depth::BeforeRemoval, "x"), Standing::Ahead(2), "a removal does not");

    std::fs::remove_file(loose(ids["c"])).unwrap();
    let opened = repo.open();
    let commits = Commits::of(&opened, Depth::Plan, never()).unwrap();
    let gone = paint(&commits, &[ids["c"]], vec![("b".into(), ids["b"]), ("c".into(), ids["c"])]);
    assert_eq!([gone.standing(0), gone.standing(1)], [Standing::Ahead(2), Standing::Unknown]);
    assert_eq!(merge_bases(&commits, ids["b"], ids["c"]), None);
}

#[test]
fn an_id_of_another_kind_is_no_commit() {
    let repo = Repo::with_format("sha256");
    let ids = repo.history(&[made("a", &[], 1), made("b", &["a"], 2)]);
    let opened = repo.open();
    let commits = Commits::of(&opened, Depth::BeforeRemoval, never()).unwrap();
    let short = ObjectId::from_hex("1".repeat(40).as_bytes()).unwrap();
    let tips = vec![("a".into(), ids["a"]), ("short".into(), short)];
    let painted = paint(&commits, &[ids["b"]], tips);
    assert_eq!([painted.standing(0), painted.standing(1)], [Standing::InTrunk(0), Standing::Unknown]);
    let mut reach = Reach::new(&commits, [short, ids["b"]].into_iter());
    assert!(reach.contains(ids["a"]) && !reach.contains(short));
    assert!(reach.strays([short]).is_empty());
}

#[test]
fn a_forged_graph_file_and_grafts_are_not_asked() {
    let repo = Repo::new();
    let ids =
        repo.history(&[made("a", &[], 1), made("x", &["a"], 2), made("b", &["a"], 3), made("c", &["b"], 4)]);
    repo.set("refs/heads/main", ids["c"]);
    repo.set("refs/heads/x", ids["x"]);
    let believes = |repo: &Repo| repo.try_git(&["merge-base", "--is-ancestor", "x", "main"]).status.success();
    let standing = |repo: &Repo| {
        let opened = repo.open();
        let painted = painted(&opened, &[ids["c"]], &[("x", ids["x"])]);
        let commits = Commits::of(&opened, Depth::Plan, never()).unwrap();
        let bases = merge_bases(&commits, ids["x"], ids["c"]);
        assert_eq!(bases, Some(vec![ids["a"]]));
        painted.standing(0)
    };
    assert!(!believes(&repo));

    std::fs::create_dir_all(repo.git_dir().join("info")).unwrap();
    let graft = format!("{} {}\n", ids["b"], ids["x"]);
    std::fs::write(repo.git_dir().join("info/grafts"), graft).unwrap();
    assert!(believes(&repo), "git believes a graft");
    assert_eq!(standing(&repo), Standing::Ahead(1));
    std::fs::remove_file(repo.git_dir().join("info/grafts")).unwrap();

    repo.git(&["commit-graph", "write", "--reachable"]);
    let path = repo.git_dir().join("objects/info/commit-graph");
    let mut forged = std::fs::read(&path).unwrap();
    reparent(&mut forged, ids["b"], ids["x"]);
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, forged).unwrap();
    assert!(believes(&repo), "git believes its graph file");
    assert_eq!(standing(&repo), Standing::Ahead(1));
}

/// Makes `to` the parent of `of` in a commit graph file (gitformat-commit-graph(5)).
fn reparent(file: &mut [u8], of: ObjectId, to: ObjectId) {
    let (chunks, mut at) = (usize::from(file[6]), HashMap::new());
    for n in 0..chunks {
        let entry = &file[8 + 12 * n..20 + 12 * n];
        let offset = u64::from_be_bytes(entry[4..12].try_into().unwrap()) as usize;
        at.insert(<[u8; 4]>::try_from(&entry[..4]).unwrap(), offset);
    }
    let ids = at[b"OIDL"];
    let position =
        |id: ObjectId| (0..).find(|n| &file[ids + 20 * n..ids + 20 * n + 20] == id.as_slice()).unwrap();
    let (of, to) = (position(of), position(to));
    let parent = at[b"CDAT"] + 36 * of + 20;
    file[parent..parent + 4].copy_from_slice(&(to as u32).to_be_bytes());
    let end = file.len() - 20;
    let mut hasher = gix::hash::hasher(gix::hash::Kind::Sha1);
    hasher.update(&file[..end]);
    let hash = hasher.try_finalize().unwrap();
    file[end..].copy_from_slice(hash.as_slice());
}

/// A history of any shape: for each commit its parents (among those before it) and its date.
#[derive(Clone, Debug)]
struct Shape {
    commits: Vec<(Vec<usize>, i64)>,
    trunk: Vec<usize>,
    tips: Vec<usize>,
}

fn shapes(dates: impl Strategy<Value = Vec<i64>> + Clone) -> impl Strategy<Value = Shape> {
    let links = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 24);
    let picks = |n| prop::collection::vec(any::<prop::sample::Index>(), n);
    (links, dates, picks(1..3), picks(1..7), 4..24usize).prop_map(|(links, dates, trunk, tips, size)| {
        let commits = (0..size)
            .map(|n| {
                let mut parents: Vec<usize> = match n {
                    0 => Vec::new(),
                    _ => links[n].iter().map(|i| n - 1 - i.index(n.min(6))).collect(),
                };
                parents.sort_unstable();
                parents.dedup();
                (parents, dates[n])
            })
            .collect();
        let of = |picked: Vec<prop::sample::Index>| picked.iter().map(|i| i.index(size)).collect();
        Shape { commits, trunk: of(trunk), tips: of(tips) }
    })
}

impl Shape {
    fn ancestors(&self) -> Vec<BTreeSet<usize>> {
        let mut all: Vec<BTreeSet<usize>> = Vec::new();
        for (n, (parents, _)) in self.commits.iter().enumerate() {
            let mut own: BTreeSet<usize> = parents.iter().flat_map(|p| all[*p].iter().copied()).collect();
            own.insert(n);
            all.push(own);
        }
        all
    }

    fn make(&self, repo: &Repo) -> Vec<ObjectId> {
        let names: Vec<String> = (0..self.commits.len()).map(|n| n.to_string()).collect();
        let parents: Vec<Vec<&str>> =
            self.commits.iter().map(|(p, _)| p.iter().map(|n| names[*n].as_str()).collect()).collect();
        let made: Vec<Made<'_>> = (0..names.len())
            .map(|n| Made { name: &names[n], parents: &parents[n], date: self.commits[n].1, files: &[] })
            .collect();
        let ids = repo.history(&made);
        names.iter().map(|n| ids[n]).collect()
    }
}

/// Compares with the transitive closure; with `exact` in both directions, else only that nothing is made up.
fn compare(repo: &Repo, shape: &Shape, exact: bool) -> Result<(), TestCaseError> {
    let ids = shape.make(repo);
    let ancestors = shape.ancestors();
    let opened = repo.open();
    let commits = Commits::of(&opened, Depth::BeforeRemoval, never()).unwrap();
    let trunk: Vec<ObjectId> = shape.trunk.iter().map(|n| ids[*n]).collect();
    let tips = shape.tips.iter().enumerate().map(|(at, n)| (BString::from(format!("{at:02}")), ids[*n]));
    let painted = paint(&commits, &trunk, tips.collect());
    let landed: BTreeSet<usize> = shape.trunk.iter().flat_map(|t| ancestors[*t].iter().copied()).collect();
    for (at, tip) in shape.tips.iter().enumerate() {
        let own: BTreeSet<usize> = ancestors[*tip].difference(&landed).copied().collect();
        match painted.standing(at) {
            Standing::InTrunk(t) => prop_assert!(ancestors[shape.trunk[t]].contains(tip)),
            Standing::Ahead(n) if exact => prop_assert_eq!(n, own.len() as u64),
            Standing::Ahead(n) => prop_assert!(n >= own.len() as u64 && n > 0),
            Standing::Unknown => prop_assert!(false, "everything is there"),
        }
        prop_assert!(!exact || landed.contains(tip) == matches!(painted.standing(at), Standing::InTrunk(_)));
        let containers: Vec<usize> = painted.containers(at).iter().map(|(other, _)| *other).collect();
        for other in &containers {
            let theirs = shape.tips[*other];
            prop_assert!(theirs != *tip && ancestors[theirs].contains(tip));
            prop_assert!(!exact || !landed.contains(&theirs));
        }
        let expected = shape.tips.iter().enumerate().filter(|(_, theirs)| {
            *theirs != tip && ancestors[**theirs].contains(tip) && !landed.contains(tip)
        });
        prop_assert!(
            !exact || containers.iter().copied().collect::<BTreeSet<_>>() == expected.map(|e| e.0).collect()
        );

        // Exact whatever the dates are, apart from what is redundant.
        for t in &shape.trunk {
            let common: BTreeSet<usize> = ancestors[*tip].intersection(&ancestors[*t]).copied().collect();
            let best = |n: &&usize| !common.iter().any(|other| other != *n && ancestors[*other].contains(n));
            let best: BTreeSet<ObjectId> = common.iter().filter(best).map(|n| ids[*n]).collect();
            let found = merge_bases(&commits, ids[*tip], ids[*t]).unwrap();
            let found: BTreeSet<ObjectId> = found.into_iter().collect();
            prop_assert!(found.is_superset(&best));
            prop_assert!(found.iter().all(|id| common.iter().any(|n| ids[*n] == *id)));
            prop_assert!(!exact || found == best);
            if best.len() == 1 && found.len() == 1 {
                prop_assert_eq!(found, best);
            }
        }
    }
    let mut reach = Reach::new(&commits, trunk.iter().copied());
    let mut missed = Vec::new();
    for n in (0..ids.len()).rev() {
        let reached = reach.contains(ids[n]);
        prop_assert!(landed.contains(&n) || !reached, "made up");
        prop_assert!(!exact || landed.contains(&n) == reached);
        missed.extend((!reached).then_some(n));
    }
    let strays = Reach::new(&commits, trunk.iter().copied()).strays(ids.iter().copied());
    let held = |n: usize| {
        landed.contains(&n)
            || strays
                .iter()
                .any(|s| ids.iter().position(|id| id == s).is_some_and(|s| ancestors[s].contains(&n)))
    };
    prop_assert!((0..ids.len()).all(held), "a commit would be lost");
    if exact {
        let tops = |n: &&usize| !missed.iter().any(|other| other != *n && ancestors[*other].contains(n));
        let tops: BTreeSet<ObjectId> = missed.iter().filter(tops).map(|n| ids[*n]).collect();
        prop_assert_eq!(strays.into_iter().collect::<BTreeSet<_>>(), tops);
    }
    Ok(())
}

fn run(strategy: impl Strategy<Value = Shape>, exact: bool) {
    let repo = Repo::new();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { Config::default().cases } else { 48 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner.run(&strategy, |shape| compare(&repo, &shape, exact)).unwrap();
}

#[test]
fn any_history_with_true_dates_is_told_exactly() {
    // Steps from commit to commit, many of them none.
    let steps = prop::collection::vec(prop_oneof![Just(0i64), Just(1), Just(40 * DAY)], 24);
    let dates = steps.prop_map(|steps| {
        steps
            .iter()
            .scan(1000, |date, step| {
                *date += step;
                Some(*date)
            })
            .collect::<Vec<i64>>()
    });
    run(shapes(dates), true);
}

#[test]
fn any_history_with_wrong_dates_makes_nothing_up() {
    run(shapes(prop::collection::vec(0..200 * DAY, 24)), false);
}

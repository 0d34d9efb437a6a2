use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::*;
use crate::git::testing::{File, Made, Repo};

use File::{Executable, Gone, Link, Module, Text};

type Files<'a> = &'a [(&'a str, File<'a>)];

/// Whether the tip's content has landed, by us and by git: `base` is what both begin with, the others are changes.
fn asked(base: Files<'_>, tip: Files<'_>, trunk: Files<'_>) -> (bool, bool) {
    let repo = Repo::new();
    let ids = repo.history(&[
        Made { name: "base", parents: &[], date: 1, files: base },
        Made { name: "tip", parents: &["base"], date: 2, files: tip },
        Made { name: "trunk", parents: &["base"], date: 3, files: trunk },
    ]);
    let opened = repo.open();
    let tree = |name: &str| opened.find_commit(ids[name]).unwrap().tree_id().unwrap().detach();
    let objects = Objects { repo: &opened, verified: true };
    let ours = has_landed(objects, tree("base"), tree("tip"), tree("trunk"), &Stop::never()).unwrap();
    (ours, by_git(&repo, ids["tip"], ids["trunk"], tree("trunk")))
}

/// Whether git's merge of `tip` into `trunk` is clean and changes nothing.
fn by_git(repo: &Repo, tip: ObjectId, trunk: ObjectId, tree: ObjectId) -> bool {
    let merged = repo.try_git(&["merge-tree", "--write-tree", &trunk.to_string(), &tip.to_string()]);
    merged.status.success() && merged.stdout.trim_ascii() == tree.to_string().as_bytes()
}

/// Ours and git's answer are the same.
#[track_caller]
fn landed(expected: bool, base: Files<'_>, tip: Files<'_>, trunk: Files<'_>) {
    assert_eq!(asked(base, tip, trunk), (expected, expected), "{base:?} {tip:?} {trunk:?}");
}

const POEM: &str = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";

fn poem(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(POEM.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[test]
fn a_squash_and_what_came_after_it() {
    let base = [("a", Text(POEM)), ("d/b", Text("b\n")), ("gone", Text("gone\n"))];
    let (changed, more) = (poem(&[("two\n", "2\n")]), poem(&[("two\n", "2\n"), ("nine\n", "9\n")]));
    let tip = [("a", Text(&changed)), ("new/c", Text("c\n")), ("gone", Gone)];
    landed(true, &base, &tip, &tip);
    landed(false, &base, &tip, &[]);
    // The trunk goes on, in the same file and elsewhere.
    let later =
        [("a", Text(&more)), ("new/c", Text("c\n")), ("gone", Gone), ("z/z", Text("z\n")), ("d/b", Gone)];
    landed(true, &base, &tip, &later);
    // A part of it is missing, was edited, or was taken back.
    landed(false, &base, &tip, &tip[..2]);
    landed(false, &base, &tip, &tip[1..]);
    landed(false, &base, &tip, &[("a", Text(&more)), ("new/c", Text("C\n")), ("gone", Gone)]);
    let reverted = poem(&[("nine\n", "9\n")]);
    landed(false, &base, &tip, &[("a", Text(&reverted)), ("new/c", Text("c\n")), ("gone", Gone)]);
}

#[test]
fn a_branch_without_a_net_change_has_not_landed() {
    // For git, merging it changes nothing; but there is nothing that could have landed.
    assert_eq!(asked(&[("a", Text("a\n"))], &[], &[("a", Text("b\n"))]), (false, true));
}

#[test]
fn white_space_is_content() {
    let base = [("f.py", Text("if x:\n    a()\n"))];
    let tip = [("f.py", Text("if x:\n    a()\n    b()\n"))];
    landed(false, &base, &tip, &[("f.py", Text("if x:\n    a()\nb()\n"))]);
}

#[test]
fn modes_links_and_submodules_are_content() {
    let (one, two, three) = ("1".repeat(40), "2".repeat(40), "3".repeat(40));
    let base = [("a", Text("a\n")), ("l", Link("a")), ("m", Module(&one))];
    landed(true, &base, &[("a", Executable("a\n"))], &[("a", Executable("a\n"))]);
    landed(true, &base, &[("a", Executable("a\n"))], &[("a", Executable("b\n"))]);
    landed(false, &base, &[("a", Executable("a\n"))], &[("a", Text("b\n"))]);
    landed(false, &base, &[("a", Executable("a\n"))], &[("b", Text("b\n"))]);
    landed(true, &base, &[("l", Link("b"))], &[("l", Link("b"))]);
    landed(false, &base, &[("l", Link("b"))], &[("l", Link("c"))]);
    landed(false, &base, &[("l", Text("a"))], &[("l", Link("b"))]);
    landed(true, &base, &[("m", Module(&two))], &[("m", Module(&two))]);
    landed(false, &base, &[("m", Module(&two))], &[("m", Module(&three))]);
    landed(false, &base, &[("m", Module(&two))], &[]);
}

#[test]
fn binary_content_lands_whole_or_not() {
    let base = [("b", Text("\0one\ntwo\nthree\nfour\nfive\n"))];
    let tip = [("b", Text("\0one\n2\nthree\nfour\nfive\n"))];
    landed(true, &base, &tip, &tip);
    landed(false, &base, &tip, &[("b", Text("\0one\n2\nthree\nfour\n5\n"))]);
}

#[test]
fn directories_and_files_in_each_others_place_conflict() {
    let base = [("a", Text("a\n")), ("d/x", Text("x\n"))];
    landed(true, &base, &[("d", Text("file\n"))], &[("d", Text("file\n"))]);
    landed(false, &base, &[("d", Text("file\n"))], &[("d/x", Text("y\n"))]);
    landed(false, &base, &[("a", Gone), ("a/b", Text("b\n"))], &[("a", Text("b\n"))]);
    landed(true, &base, &[("d/x", Gone)], &[("d/x", Gone)]);
}

/// The branch removes a file; the trunk has moved it. That the path is missing in both says nothing.
#[test]
fn what_the_trunk_moved_was_not_removed() {
    let base = [("old", Text(POEM)), ("z", Text("z\n"))];
    let tip = [("old", Gone)];
    landed(true, &base, &tip, &[("old", Gone)]);
    landed(true, &base, &tip, &[("old", Gone), ("other", Text("nothing\nlike\nit\n"))]);
    landed(false, &base, &tip, &[("old", Gone), ("new/place", Text(POEM))]);
    let edited = poem(&[("one\n", "1\n"), ("ten\n", "10\n")]);
    landed(false, &base, &tip, &[("old", Gone), ("new/place", Text(&edited))]);
    // Beside something else that changed, in a directory that is the same in both now.
    let base = [("d/old", Text(POEM)), ("d/a", Text("a\n"))];
    let tip = [("d/old", Gone), ("d/a", Text("b\n"))];
    landed(true, &base, &tip, &tip);
    landed(false, &base, &tip, &[tip[0], tip[1], ("e/new", Text(POEM))]);
    // In a directory that both removed.
    let base = [("d/e/old", Text(POEM)), ("z", Text("z\n"))];
    landed(false, &base, &[("d/e/old", Gone)], &[("d/e/old", Gone), ("y/new", Text(POEM))]);
    // Where the branch itself moved it, and the trunk took that, all is well.
    let moved = [("d/e/old", Gone), ("y/new", Text(POEM))];
    landed(true, &base, &moved, &moved);
}

/// The branch renames a directory, which has landed; then the trunk adds a file under the old name. Git can't say where
/// that belongs.
#[test]
fn a_renamed_directory_that_came_back_is_not_clear() {
    let base = [("a/x", Text(POEM)), ("a/y", Text("y\ny\ny\n"))];
    let tip = [("a/x", Gone), ("a/y", Gone), ("b/x", Text(POEM)), ("b/y", Text("y\ny\ny\n"))];
    landed(true, &base, &tip, &tip);
    let later: Vec<(&str, File<'_>)> = tip.iter().copied().chain([("a/new", Text("new\n"))]).collect();
    landed(false, &base, &tip, &later);
}

#[test]
fn attributes_that_ask_for_another_merge_are_heard() {
    let changed = poem(&[("two\n", "2\n")]);
    let more = poem(&[("two\n", "2\n"), ("nine\n", "9\n")]);
    for (attributes, lands) in [
        ("*.x text\n", true),
        ("*.lock -merge\n", false),
        ("*.lock binary\n", false),
        ("*.lock merge=theirs\n", false),
        ("*.lock merge\n", true),
        ("*.lock binary\np.lock merge\n", true),
        ("[attr]frozen -merge\n*.lock frozen\n", false),
    ] {
        let base = [(".gitattributes", Text(attributes)), ("d/p.lock", Text(POEM))];
        let (ours, _) = asked(&base, &[("d/p.lock", Text(&changed))], &[("d/p.lock", Text(&more))]);
        assert_eq!(ours, lands, "{attributes}");
        // One in the directory itself outranks it.
        let base = [
            (".gitattributes", Text(attributes)),
            ("d/.gitattributes", Text("p.* -merge\n")),
            ("d/p.lock", Text(POEM)),
        ];
        assert!(!asked(&base, &[("d/p.lock", Text(&changed))], &[("d/p.lock", Text(&more))]).0);
    }
}

#[test]
fn missing_and_forged_objects_are_errors() {
    let repo = Repo::new();
    let ids = repo.history(&[
        Made { name: "base", parents: &[], date: 1, files: &[("d/a", Text("a\n"))] },
        Made { name: "tip", parents: &["base"], date: 2, files: &[("d/a", Text("b\n"))] },
        Made { name: "trunk", parents: &["base"], date: 3, files: &[("d/a", Text("c\n"))] },
    ]);
    let tree_of = |rev: &str| repo.id(&format!("{rev}:d"));
    let loose = |id: ObjectId| {
        let hex = id.to_string();
        repo.git_dir().join("objects").join(&hex[..2]).join(&hex[2..])
    };
    let ask = |verified: bool| {
        let opened = repo.open();
        let tree = |name: &str| opened.find_commit(ids[name]).unwrap().tree_id().unwrap().detach();
        let objects = Objects { repo: &opened, verified };
        has_landed(objects, tree("base"), tree("tip"), tree("trunk"), &Stop::never())
    };
    assert_eq!(ask(true), Ok(false));
    // The object store says of the trunk's directory that it has the tip's files.
    let (tip, trunk) = (tree_of(&ids["tip"].to_string()), tree_of(&ids["trunk"].to_string()));
    std::fs::remove_file(loose(trunk)).unwrap();
    std::fs::copy(loose(tip), loose(trunk)).unwrap();
    assert_eq!(ask(false), Ok(true), "the plan believes it");
    assert!(ask(true).unwrap_err().0.contains(&trunk.to_string()), "a removal does not");
    std::fs::remove_file(loose(trunk)).unwrap();
    assert!(ask(false).unwrap_err().0.contains(&trunk.to_string()));
}

#[test]
fn a_tree_that_holds_itself_ends() {
    let repo = Repo::new();
    let loose = |id: &str| repo.git_dir().join("objects").join(&id[..2]).join(&id[2..]);
    let ids: Vec<String> = ["1", "2", "3"].iter().map(|d| d.repeat(40)).collect();
    for id in &ids {
        let entry: String = (0..20).map(|_| id[..1].repeat(2)).collect();
        assert_eq!(entry.len(), 40);
        let hex: Vec<u8> = ObjectId::from_hex(id.as_bytes()).unwrap().as_slice().to_vec();
        let mut raw = Vec::new();
        for name in ["a", "b"] {
            raw.extend(format!("40000 {name}\0").into_bytes());
            raw.extend(&hex);
        }
        std::fs::write(repo.root().join("raw"), &raw).unwrap();
        let written = repo.git(&["hash-object", "-w", "-t", "tree", "--literally", "../raw"]);
        std::fs::create_dir_all(loose(id).parent().unwrap()).unwrap();
        std::fs::copy(loose(&written), loose(id)).unwrap();
    }
    let id = |n: usize| ObjectId::from_hex(ids[n].as_bytes()).unwrap();
    let opened = repo.open();
    let objects = Objects { repo: &opened, verified: false };
    assert!(has_landed(objects, id(0), id(1), id(2), &Stop::never()).unwrap_err().0.contains("deeper"));
}

/// A file as a random state has it.
#[derive(Clone, Debug, PartialEq)]
enum Any {
    Text(String),
    Executable(String),
    Link(String),
}

type State = BTreeMap<String, Any>;

#[derive(Clone, Debug)]
enum Change {
    Line(prop::sample::Index, prop::sample::Index, u8),
    Drop(prop::sample::Index, prop::sample::Index),
    Add(String, u8),
    Remove(prop::sample::Index),
    Rename(prop::sample::Index, String),
    Mode(prop::sample::Index),
    ToLink(prop::sample::Index),
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("a"),
        Just("b"),
        Just("d/a"),
        Just("d/b"),
        Just("d/e/a"),
        Just("e/a"),
        Just("e/b"),
        Just("e")
    ]
    .prop_map(str::to_owned)
}

fn change() -> impl Strategy<Value = Change> {
    use prop::sample::Index;
    let index = any::<Index>;
    prop_oneof![
        6 => (index(), index(), 0..6u8).prop_map(|(f, l, t)| Change::Line(f, l, t)),
        2 => (index(), index()).prop_map(|(f, l)| Change::Drop(f, l)),
        2 => (name(), 0..6u8).prop_map(|(n, t)| Change::Add(n, t)),
        1 => index().prop_map(Change::Remove),
        1 => (index(), name()).prop_map(|(f, n)| Change::Rename(f, n)),
        1 => index().prop_map(Change::Mode),
        1 => index().prop_map(Change::ToLink),
    ]
}

/// Text of enough lines that git may take it for the same after a change.
fn text(seed: u8) -> String {
    (0..8).map(|n| format!("line {} of {seed}\n", n * usize::from(seed + 1))).collect()
}

/// A name that is free, and that no file stands in the way of.
fn fits(state: &State, name: &str) -> bool {
    let blocks = |other: &String| {
        other == name || other.starts_with(&format!("{name}/")) || name.starts_with(&format!("{other}/"))
    };
    !state.keys().any(blocks)
}

fn apply(state: &mut State, change: &Change) {
    let names: Vec<String> = state.keys().cloned().collect();
    let picked = |at: &prop::sample::Index| (!names.is_empty()).then(|| names[at.index(names.len())].clone());
    let mut edit = |at: &prop::sample::Index, how: &dyn Fn(&mut Vec<String>)| {
        let Some(Any::Text(text) | Any::Executable(text)) = picked(at).and_then(|n| state.get_mut(&n)) else {
            return;
        };
        let mut lines: Vec<String> = text.lines().map(|l| format!("{l}\n")).collect();
        how(&mut lines);
        *text = lines.concat();
    };
    match change {
        Change::Line(file, line, new) => edit(file, &|lines| {
            let at = line.index(lines.len() + 1);
            match lines.get_mut(at) {
                Some(line) => *line = format!("new {new}\n"),
                None => lines.push(format!("new {new}\n")),
            }
        }),
        Change::Drop(file, line) => edit(file, &|lines| {
            if !lines.is_empty() {
                lines.remove(line.index(lines.len()));
            }
        }),
        Change::Add(name, seed) => {
            if fits(state, name) {
                state.insert(name.clone(), Any::Text(text(*seed)));
            }
        }
        Change::Remove(file) => {
            picked(file).map(|n| state.remove(&n));
        }
        Change::Rename(file, to) => {
            if let Some(from) = picked(file)
                && let Some(content) = state.remove(&from)
            {
                let to = if fits(state, to) { to.clone() } else { from };
                state.insert(to, content);
            }
        }
        Change::Mode(file) => {
            let file = picked(file).and_then(|n| state.get_mut(&n));
            if let Some(file) = file {
                *file = match file.clone() {
                    Any::Text(text) => Any::Executable(text),
                    Any::Executable(text) => Any::Text(text),
                    link => link,
                };
            }
        }
        Change::ToLink(file) => {
            picked(file).map(|n| state.insert(n, Any::Link("target".to_owned())));
        }
    }
}

fn differences<'a>(from: &'a State, to: &'a State) -> Vec<(&'a str, File<'a>)> {
    let gone = from.keys().filter(|n| !to.contains_key(*n)).map(|n| (n.as_str(), Gone));
    let new = to.iter().filter(|(n, file)| from.get(*n) != Some(file)).map(|(n, file)| {
        let file = match file {
            Any::Text(text) => Text(text),
            Any::Executable(text) => Executable(text),
            Any::Link(text) => Link(text),
        };
        (n.as_str(), file)
    });
    gone.chain(new).collect()
}

/// What is landed for us is landed for git; and most of what git calls landed is so for us.
#[test]
fn ours_is_never_wider_than_gits_answer() {
    let changes = |n| prop::collection::vec(change(), n);
    let strategy = (changes(0..2), changes(1..4), any::<bool>(), changes(0..4));
    let mut runner = TestRunner::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { runner.config().cases } else { 200 };
    let start: State =
        [("a", 1), ("b", 2), ("d/a", 3), ("d/b", 4)].map(|(n, s)| (n.to_owned(), Any::Text(text(s)))).into();
    let states: Vec<[State; 3]> = (0..cases)
        .map(|_| {
            let (before, ours, squashed, after) = strategy.new_tree(&mut runner).unwrap().current();
            let of = |state: &State, changes: &[Change]| {
                let mut state = state.clone();
                changes.iter().for_each(|c| apply(&mut state, c));
                state
            };
            let base = of(&start, &before);
            let tip = of(&base, &ours);
            let trunk = of(if squashed { &tip } else { &base }, &after);
            [base, tip, trunk]
        })
        .collect();
    let empty = State::new();
    let names: Vec<[String; 3]> =
        (0..states.len()).map(|n| ["base", "tip", "trunk"].map(|what| format!("{what}{n}"))).collect();
    let files: Vec<[Vec<(&str, File<'_>)>; 3]> = states
        .iter()
        .map(|[base, tip, trunk]| {
            [differences(&empty, base), differences(base, tip), differences(base, trunk)]
        })
        .collect();
    let parents: Vec<[&str; 1]> = names.iter().map(|[base, ..]| [base.as_str()]).collect();
    let mut commits = Vec::new();
    for ((names, files), parent) in names.iter().zip(&files).zip(&parents) {
        for (at, name) in names.iter().enumerate() {
            let parents: &[&str] = if at == 0 { &[] } else { parent };
            commits.push(Made { name, parents, date: 1000 + at as i64, files: &files[at] });
        }
    }
    let repo = Repo::new();
    let ids = repo.history(&commits);
    let opened = repo.open();
    let objects = Objects { repo: &opened, verified: true };
    let (mut ours_landed, mut git_landed) = (0, 0);
    for (names, state) in names.iter().zip(&states) {
        let commit = |at: usize| ids[&names[at]];
        let tree = |at: usize| opened.find_commit(commit(at)).unwrap().tree_id().unwrap().detach();
        let ours = has_landed(objects, tree(0), tree(1), tree(2), &Stop::never()).unwrap();
        let by_git = by_git(&repo, commit(1), commit(2), tree(2)) && tree(0) != tree(1);
        assert!(by_git || !ours, "ours is wider for {state:#?}");
        ours_landed += u32::from(ours);
        git_landed += u32::from(by_git);
    }
    assert!(ours_landed * 10 >= git_landed * 8, "{ours_landed} of {git_landed}, {cases} cases");
}

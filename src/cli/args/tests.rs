use super::*;
use crate::config::{Engines, Live};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A directory with `src` and `a\xff` in it, and what a line means there.
fn run(line: &[&str]) -> Result<Invocation, clap::Error> {
    run_os(&line.iter().map(|w| OsStr::new(w).to_owned()).collect::<Vec<_>>())
}

fn run_os(line: &[OsString]) -> Result<Invocation, clap::Error> {
    let tmp = tempfile::tempdir().unwrap();
    std::fs::create_dir(tmp.path().join("src")).unwrap();
    std::fs::create_dir(tmp.path().join(OsStr::from_bytes(b"a\xff"))).unwrap();
    let line = [&[OsString::from("treesweep")], line].concat();
    parse(line)?.resolve(tmp.path(), Some(Path::new("/home/me")))
}

fn refused(line: &[&str]) -> String {
    let error = run(line).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{line:?}");
    error.to_string()
}

fn roots(invocation: &Invocation) -> Vec<&OsStr> {
    invocation.flags.roots.iter().map(|r| r.strip_prefix(&invocation.cwd).unwrap().as_os_str()).collect()
}

#[test]
fn the_definition_is_sound() {
    command().debug_assert();
}

#[test]
fn without_a_command_it_is_the_plan() {
    for line in [&["src"][..], &["plan", "src"]] {
        let i = run(line).unwrap();
        assert_eq!(i.request, Request::Plan { explain: None }, "{line:?}");
        assert_eq!(roots(&i), ["src"]);
    }
    assert!(run(&[]).unwrap().flags.roots.is_empty());
    let explain = Request::Plan { explain: Some("x".into()) };
    assert_eq!(run(&["--explain", "x"]).unwrap().request, explain);
    assert_eq!(run(&["plan", "src", "--explain=x"]).unwrap().request, explain);
}

#[test]
fn the_flag_prune_is_the_command_prune() {
    for line in [
        &["--prune", "src", "-y"][..],
        &["src", "--prune", "--yes"],
        &["prune", "-y", "src"],
        &["prune", "src", "-y"],
    ] {
        let i = run(line).unwrap();
        assert_eq!(i.request, Request::Prune(Prune { yes: true, ..Prune::default() }), "{line:?}");
        assert_eq!(roots(&i), ["src"]);
    }
    let i =
        run(&["--prune", "--stale=a", "--stale", "b", "--orphan", "src/x", "--time-limit", "10s"]).unwrap();
    let Request::Prune(prune) = &i.request else { panic!("{i:?}") };
    let stale: Vec<_> = prune.stale.iter().map(ToString::to_string).collect();
    assert_eq!(stale, ["a", "b"]);
    assert_eq!(prune.orphans, [i.cwd.join("src/x")]);
    assert_eq!(i.flags.time_limit.unwrap().as_secs(), 10);
}

#[test]
fn what_belongs_to_prune_needs_prune() {
    assert!(refused(&["-y", "src"]).contains("--prune"));
    assert!(refused(&["--stale", "x"]).contains("--prune"));
    assert!(refused(&["--prune", "--explain", "x"]).contains("cannot be used with"));
    assert!(refused(&["--prune", "plan"]).contains("leave one of them out"));
    assert!(refused(&["--prune", "prune"]).contains("leave one of them out"));
    assert!(refused(&["plan", "--prune"]).contains("unexpected argument"));
}

#[test]
fn global_flags_stand_anywhere_and_add_up() {
    let rest = ["--map", "/w=/h", "--protect", "a", "--idle", "0s", "--engine", "none", "--json"];
    for line in [
        [&rest[..], &["plan", "src"]].concat(),
        [&["plan"], &rest[..], &["src"]].concat(),
        [&["plan", "src"], &rest[..]].concat(),
        [&rest[..], &["src"]].concat(),
        [&["src"], &rest[..]].concat(),
        [&["setup", "x"], &rest[..], &["--root", "src"]].concat(),
        [&rest[..], &["drop", "x", "--root", "src"]].concat(),
    ] {
        let i = run(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        assert!(i.json);
        assert_eq!(i.flags.maps.len(), 1, "{line:?}");
        assert_eq!(i.flags.protect[0].as_str(), "a");
        assert_eq!(i.flags.idle.as_ref().unwrap().as_secs(), 0);
        assert_eq!(i.flags.engines.as_ref().unwrap().value, Engines::None);
        assert_eq!(roots(&i), ["src"], "{line:?}");
    }
    let i = run(&[
        "--protect",
        "a",
        "--idle",
        "1h",
        "--live=used",
        "plan",
        "--protect",
        "b",
        "--protect",
        "c",
        "--idle",
        "2h",
    ])
    .unwrap();
    let globs: Vec<_> = i.flags.protect.iter().map(|p| p.as_str().to_owned()).collect();
    assert_eq!(globs, ["a", "b", "c"], "none is forgotten");
    assert_eq!(i.flags.idle.unwrap().as_secs(), 7_200);
    assert_eq!(i.flags.live.unwrap().value, Live::Used);
}

#[test]
fn the_last_of_two_values_wins() {
    let i = run(&["plan", "--idle", "1h", "--idle", "3h", "--json", "--json"]).unwrap();
    assert_eq!(i.flags.idle.unwrap().as_secs(), 10_800);
}

#[test]
fn the_lines_of_launch_scripts_and_harnesses_are_read() {
    let i = run(&[
        "plan",
        "--json",
        "--branch-template",
        "{name}",
        "--idle",
        "0s",
        "--unstarted-after",
        "0s",
        "--engine",
        "none",
        "src",
    ])
    .unwrap();
    assert_eq!(i.flags.templates.unwrap().value[0].to_string(), "{name}");
    let i = run(&["setup", "--branch-template", "{name}", "src/x"]).unwrap();
    let subject = Subject { typed: "src/x".into(), local: i.cwd.join("src/x") };
    assert_eq!(i.request, Request::Setup(Setup::Exactly(vec![subject])));
}

#[test]
fn bytes_that_are_not_text_are_arguments_too() {
    let os = |b: &[u8]| OsStr::from_bytes(b).to_owned();
    let i =
        run_os(&[os(b"plan"), os(b"a\xff"), os(b"--explain"), os(b"n\xfe"), os(b"--map"), os(b"/w\xff=/h")])
            .unwrap();
    assert_eq!(roots(&i), [OsStr::from_bytes(b"a\xff")]);
    assert_eq!(i.request, Request::Plan { explain: Some(b"n\xfe".into()) });
    let i = run_os(&[os(b"drop"), os(b"n\xfe")]).unwrap();
    let Request::Drop(drop) = i.request else { panic!() };
    assert_eq!(drop.worktrees[0].typed, b"n\xfe".as_slice());
    assert_eq!(roots(&run_os(&[os(b"a\xff")]).unwrap()), [OsStr::from_bytes(b"a\xff")]);
}

#[test]
fn a_mistyped_command_is_no_root() {
    assert!(refused(&["prnue"]).contains("did you mean `prune`?"));
    assert!(refused(&["stup", "x"]).contains("did you mean `setup`?"));
    assert!(refused(&["src", "plan"]).contains("`plan` is a command"));
    assert!(refused(&["nowhere"]).contains("ROOT `nowhere`: there is no such directory"));
    assert!(refused(&["plan", "prnue"]).contains("there is no such directory"));
    assert!(refused(&["plan", "--idel", "1h"]).contains("--idle"), "clap's own did-you-mean");
}

#[test]
fn a_bad_value_names_its_flag() {
    for (line, expected) in [
        (&["--idle", "1"][..], "--idle: `1` is not a duration"),
        (&["--idle", "-1h"], "unexpected argument"),
        (&["--idle=-1h"], "--idle: `-1h` is not a duration"),
        (&["--map", "x"], "--map: `x` is not CONTAINER=HOST"),
        (&["--engine", "tcp://h:1"], "--engine: `tcp://h:1` is a remote engine"),
        (&["--live", "maybe"], "[possible values: used, mounted]"),
        (&["--branch-template", "x"], "--branch-template: `x` needs `{name}`"),
        (&["--protect", "["], "--protect: "),
        (&["--jobs", "0"], "--jobs: `0` is not a number"),
        (&["--trunk", ""], "--trunk: it is empty"),
        (&["-C", "nowhere"], "-C `nowhere`: there is no such directory"),
        (&["prune", "--stale", "a/b"], "--stale: `a/b` is not the name of a registration"),
        (&["prune", "--time-limit", "soon"], "--time-limit: `soon` is not a duration"),
        (&["--explain", "x", "drop", "y"], "go after the command"),
    ] {
        let message = refused(line);
        assert!(message.contains(expected), "{line:?}: {message}");
    }
}

#[test]
fn dropping_needs_names_where_nobody_is_asked() {
    assert!(run(&["drop"]).is_ok());
    assert!(refused(&["drop", "--yes"]).contains("WORKTREE"));
    assert!(refused(&["drop", "--force"]).contains("WORKTREE"));
    assert!(run(&["drop", "--force", "--yes", "x", "y"]).is_ok());
    assert!(refused(&["setup"]).contains("WORKTREE"));
    assert!(refused(&["setup", "x", "--matching", "y*"]).contains("cannot be used with"));
    assert!(matches!(
        run(&["setup", "--matching", "y*"]).unwrap().request,
        Request::Setup(Setup::Matching(_))
    ));
}

#[test]
fn another_directory_is_where_paths_start() {
    let i = run(&["-C", "src", "drop", "x"]).unwrap();
    assert!(i.cwd.ends_with("src"));
    let Request::Drop(drop) = i.request else { panic!() };
    assert_eq!(drop.worktrees[0].local, i.cwd.join("x"));
}

#[test]
fn rescue_and_guard_take_what_they_need() {
    let i = run(&["rescue", "wt/x", "src", "--branch", "x", "--recorded", "/w/x"]).unwrap();
    let rescue = Rescue { path: i.cwd.join("wt/x"), branch: Some("x".into()), recorded: Some("/w/x".into()) };
    assert_eq!((i.request.clone(), roots(&i)), (Request::Rescue(rescue), vec![OsStr::new("src")]));
    assert!(refused(&["rescue", ""]).contains("can't be empty"));
    refused(&["rescue"]);
    assert_eq!(run(&["guard"]).unwrap().request, Request::Guard(Guard::Protect { lock: false }));
    let i = run(&["guard", "--lock", "src"]).unwrap();
    assert_eq!((i.request.clone(), roots(&i).len()), (Request::Guard(Guard::Protect { lock: true }), 1));
    assert_eq!(run(&["guard", "--undo"]).unwrap().request, Request::Guard(Guard::Undo));
    assert!(refused(&["guard", "--undo", "--lock"]).contains("cannot be used with"));
}

#[test]
fn hints_ask_the_same_question() {
    let i = run(&["--protect", "a b", "plan", "--engine", "none", "--json", "-q", "src"]).unwrap();
    assert_eq!(i.again.with_roots(["prune"]), "treesweep prune --engine none --protect 'a b' src");
}

fn help(line: &[&str]) -> String {
    let mut command = command().term_width(80);
    let error = command.try_get_matches_from_mut([&["treesweep"], line].concat()).unwrap_err();
    assert_eq!(error.exit_code(), 0);
    error.to_string()
}

#[test]
fn the_help_of_every_command() {
    insta::assert_snapshot!("help", help(&["--help"]));
    for name in ["plan", "prune", "up", "setup", "drop", "log", "restore", "rescue", "guard", "completions"] {
        insta::assert_snapshot!(format!("help_{name}"), help(&[name, "-h"]));
    }
}

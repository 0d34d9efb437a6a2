//! Which registration and which checkout name each other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use TranslationKind::{Identity, Inferred, Label, Map, Mount, Relative};

use crate::judge::facts::Placement;
use crate::judge::reason::Code;
use crate::survey::testing::Scene;
use crate::vantage::paths::RecordedPath;
use crate::vantage::translate::{TranslationKind, Translator};

#[test]
fn paths_of_this_host() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@").worktree("app", "b", "app-b", "@");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    seen.assert_joined(&scene, "app", "b", "app-b", Identity);
}

#[test]
fn relative_links_mean_the_same_everywhere() {
    let scene = Scene::new();
    scene.clone("app");
    scene
        .entry("app/.git", "x", "../../../.worktrees/x")
        .checkout("app/.worktrees/x", "../../.git/worktrees/x");
    scene.plain().assert_joined(&scene, "app", "x", "app/.worktrees/x", Relative);
    let own_vantage = scene.survey_in(&[scene.root("")], false, |_| Vec::new());
    own_vantage.assert_joined(&scene, "app", "x", "app/.worktrees/x", Relative);
    scene.entry("app/.git", "x", "../../../.worktrees/y");
    scene.plain().assert_held(&scene, "app", "x", Code::LinksDisagree, Some("app/.worktrees/x"));
}

#[test]
fn one_link_relative_and_the_other_of_a_container() {
    for (recorded, pointer) in [
        ("../../../.worktrees/x", "/workspaces/app/.git/worktrees/x"),
        ("/workspaces/app/.worktrees/x", "../../.git/worktrees/x"),
    ] {
        let scene = Scene::new();
        scene.clone("app").entry("app/.git", "x", recorded).checkout("app/.worktrees/x", pointer);
        scene.plain().assert_joined(&scene, "app", "x", "app/.worktrees/x", Inferred);
    }
}

#[test]
fn paths_of_a_container_by_each_rule() {
    let scene = Scene::new();
    scene.clone("app");
    scene.worktree("app", "x", "app/.worktrees/x", "/workspaces");
    scene.plain().assert_joined(&scene, "app", "x", "app/.worktrees/x", Inferred);
    let map = scene.map("/workspaces/app", "app");
    scene.survey(|_| vec![map.clone()]).assert_joined(&scene, "app", "x", "app/.worktrees/x", Map);
    let label = Translator::Prefix {
        kind: Label,
        from: RecordedPath::new("/workspaces/app"),
        to: scene.local("app"),
        evidence: String::new(),
    };
    scene.survey(|_| vec![label.clone()]).assert_joined(&scene, "app", "x", "app/.worktrees/x", Label);
    let mount = scene.container("dev", &[("/workspaces/app", "@app")]);
    let best_first = scene.survey(|_| vec![mount.clone(), label.clone(), map.clone()]);
    best_first.assert_joined(&scene, "app", "x", "app/.worktrees/x", Mount);
}

#[test]
fn inside_a_dev_container_nothing_is_guessed() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "/home/me/src");
    let seen = scene.survey_in(&[scene.root("")], false, |_| Vec::new());
    seen.assert_held(&scene, "app", "x", Code::OutsideVantage, Some("app/.worktrees/x"));
}

#[test]
fn ends_of_lines_and_blanks_belong_to_no_path() {
    for end in ["", "\n", "\r\n", " \t\n", "\n\n"] {
        let scene = Scene::new();
        scene.clone("app").worktree("app", "x", "app/.worktrees/x", "/workspaces");
        let write = |file: &str, text: String| scene.file(file, text + end);
        write("app/.git/worktrees/x/gitdir", "/workspaces/app/.worktrees/x/.git".into());
        write("app/.worktrees/x/.git", "gitdir: /workspaces/app/.git/worktrees/x".into());
        scene.plain().assert_joined(&scene, "app", "x", "app/.worktrees/x", Inferred);
    }
}

#[test]
fn a_name_is_bytes() {
    for name in [&b"new\nline"[..], b"\xff\xfe", "gr\u{fc}n".as_bytes(), b"a b", b"-x", b"\x1b[31m"] {
        let scene = Scene::new();
        scene.clone("app");
        let name = OsStr::from_bytes(name);
        let entry = scene.path("app/.git/worktrees").join(name);
        let at = scene.path("app/.worktrees").join(name);
        std::fs::create_dir_all(&entry).unwrap();
        std::fs::create_dir_all(&at).unwrap();
        let bytes = |parts: [&[u8]; 3]| parts.concat();
        let gitdir = bytes([b"/workspaces/app/.worktrees/", name.as_bytes(), b"/.git\n"]);
        let pointer = bytes([b"gitdir: /workspaces/app/.git/worktrees/", name.as_bytes(), b"\n"]);
        std::fs::write(entry.join("gitdir"), gitdir).unwrap();
        std::fs::write(entry.join("commondir"), "../..\n").unwrap();
        std::fs::write(entry.join("HEAD"), "ref: refs/heads/x\n").unwrap();
        std::fs::write(at.join(".git"), pointer).unwrap();
        match scene.plain().place_of(&scene, "app", name.as_bytes()) {
            Placement::Joined { path, .. } if path.as_path() == at => {}
            other => panic!("{name:?}: {other:?}"),
        }
    }
}

#[test]
fn neither_equation_alone_joins() {
    let scene = Scene::new();
    scene.clone("app");
    // The directory names the entry, which records another path.
    scene.entry("app/.git", "a", "@/elsewhere").checkout("app/a", "@/app/.git/worktrees/a");
    // The entry records the directory, which names another entry.
    scene.entry("app/.git", "b", "@/app/b").checkout("app/b", "@/app/.git/worktrees/c");
    scene.dir("app/.git/worktrees");
    let seen = scene.plain();
    seen.assert_held(&scene, "app", "a", Code::LinksDisagree, Some("app/a"));
    seen.assert_held(&scene, "app", "b", Code::LinksDisagree, Some("app/b"));
}

#[test]
fn who_records_the_path_of_anothers_directory_claims_nothing() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@");
    scene.entry("app/.git", "thief", "@/app/.worktrees/x");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    seen.assert_held(&scene, "app", "thief", Code::LinksDisagree, Some("app/.worktrees/x"));
}

#[test]
fn two_clones_that_were_one_path_find_their_own_inside() {
    let scene = Scene::new();
    for clone in ["one/app", "two/app", "app-b"] {
        scene.clone(clone).entry(&format!("{clone}/.git"), "x", "/workspaces/app/.worktrees/x");
        scene.checkout(&format!("{clone}/.worktrees/x"), "/workspaces/app/.git/worktrees/x");
    }
    let seen = scene.plain();
    for clone in ["one/app", "two/app", "app-b"] {
        seen.assert_joined(&scene, clone, "x", &format!("{clone}/.worktrees/x"), Inferred);
    }
}

#[test]
fn beside_and_nested_it_can_be_told_only_if_one_of_them_has_it() {
    let scene = Scene::new();
    scene.clone("app").clone("app-b");
    let both = |name: &str, at: &str| {
        for clone in ["app", "app-b"] {
            scene.entry(&format!("{clone}/.git"), name, &format!("/workspaces/{at}"));
        }
        scene.checkout(at, &format!("/workspaces/app/.git/worktrees/{name}"));
    };
    scene.worktree("app", "own", "own", "/workspaces");
    both("x", "x");
    both("n", "x/.worktrees/n");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "own", "own", Inferred);
    for (name, at) in [("x", "x"), ("n", "x/.worktrees/n")] {
        seen.assert_held(&scene, "app", name, Code::Ambiguous, Some(at));
        let other = seen.place(&scene, "app-b", name);
        assert!(matches!(&other, Placement::Held { .. }), "{other:?}");
    }
    // The engine says that it was this clone: there is nothing left to guess.
    let mount = scene.container("dev", &[("/workspaces", "@")]);
    let known = scene.survey(|site| match site.dir == scene.local("app") {
        true => vec![mount.clone()],
        false => Vec::new(),
    });
    known.assert_joined(&scene, "app", "x", "x", Mount);
    known.assert_joined(&scene, "app", "n", "x/.worktrees/n", Mount);
}

#[test]
fn the_rival_with_a_directory_of_its_own_is_none() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "x", "/workspaces");
    scene.clone("two/app").entry("two/app/.git", "x", "/workspaces/x");
    scene.checkout("two/x", "/workspaces/app/.git/worktrees/x");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "x", Inferred);
    seen.assert_joined(&scene, "two/app", "x", "two/x", Inferred);
}

#[test]
fn evidence_makes_ambiguous_what_is_swept() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "x", "/workspaces");
    scene.clone("far/app-b").entry("far/app-b/.git", "x", "/workspaces/x");
    let mut roots = [scene.root(""), scene.root("far")];
    roots[0].depth = Some(2);
    let alone = scene.survey_in(&roots[..1], true, |_| Vec::new());
    alone.assert_joined(&scene, "app", "x", "x", Inferred);
    roots[1].scope = crate::survey::discover::Scope::Evidence;
    let both = scene.survey_in(&roots, true, |_| Vec::new());
    both.assert_held(&scene, "app", "x", Code::Ambiguous, Some("x"));
}

#[test]
fn a_copied_clone_does_not_take_the_originals_checkouts() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@");
    // As `cp -a app copy` leaves it: every link still leads to the original.
    scene.clone("copy").entry("copy/.git", "x", "@/app/.worktrees/x");
    scene.checkout("copy/.worktrees/x", "@/app/.git/worktrees/x");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    seen.assert_held(&scene, "copy", "x", Code::Ambiguous, Some("copy/.worktrees/x"));
}

#[test]
fn a_copied_clone_without_its_original_in_sight() {
    let scene = Scene::new();
    scene.clone("out/app").worktree("out/app", "x", "out/app/.worktrees/x", "@");
    scene.clone("in/copy").entry("in/copy/.git", "x", "@/out/app/.worktrees/x");
    scene.checkout("in/copy/.worktrees/x", "@/out/app/.git/worktrees/x");
    let seen = || scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    seen().assert_held(&scene, "in/copy", "x", Code::Ambiguous, Some("in/copy/.worktrees/x"));
    // A clone that was moved looks the same, and has no original.
    scene.remove("out");
    seen().assert_joined(&scene, "in/copy", "x", "in/copy/.worktrees/x", Inferred);
}

#[test]
fn a_copied_directory_is_shown_beside_the_one_that_is_joined() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@");
    scene.checkout("app/.worktrees/x2", "@/app/.git/worktrees/x");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    seen.with(|ground| {
        let [(w, _)] = *ground.strays() else { panic!("{:?}", ground.strays()) };
        assert_eq!(ground.checkouts[w].path, scene.local("app/.worktrees/x2"));
        assert_eq!(ground.is_orphan(w).unwrap_err().code, Code::LinksDisagree);
    });
}

#[test]
fn a_directory_seen_at_two_paths_is_ambiguous() {
    // A bind mount would show one directory twice; two maps that lead to it do the same for the join.
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "/t/x");
    scene.checkout("one/x", "/t/app/.git/worktrees/x").checkout("two/x", "/t/app/.git/worktrees/x");
    let maps = [("/t/app", "app"), ("/t", "one"), ("/t", "two")].map(|(from, to)| scene.map(from, to));
    let view = |trees: &str| scene.container(trees, &[("/t", trees), ("/t/app", "@app")]);
    let seen = scene.survey(|_| vec![view("@one"), view("@two")]);
    seen.assert_held(&scene, "app", "x", Code::Ambiguous, None);
    // No single translation gives both equations.
    let seen = scene.survey(|_| maps.to_vec());
    assert!(matches!(seen.place(&scene, "app", "x"), Placement::Held { .. }));
}

#[test]
fn another_spelling_of_the_root_is_the_same_directory() {
    let scene = Scene::new();
    scene.clone("app").dir("app/.worktrees/x");
    std::os::unix::fs::symlink("src", scene.top.join("code")).unwrap();
    scene.worktree("app", "x", "app/.worktrees/x", "@/../code");
    let code = scene.top.join("code").to_string_lossy().into_owned();
    scene.entry("app/.git", "x", &format!("{code}/app/.worktrees/x"));
    scene.checkout("app/.worktrees/x", &format!("{code}/app/.git/worktrees/x"));
    scene.plain().assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    // Below the root a link leads elsewhere at any moment.
    scene.link("trees", "app/.worktrees");
    scene.entry("app/.git", "x", "@/trees/x").checkout("app/.worktrees/x", "@/app/.git/worktrees/x");
    scene.plain().assert_held(&scene, "app", "x", Code::PathEscapes, Some("app/.worktrees/x"));
}

#[test]
fn windows_paths_are_the_maps_alone() {
    let scene = Scene::new();
    scene.clone("app");
    let (recorded, pointer) = ("C:\\\\Users\\me\\app\\.worktrees\\x", "C:/Users/me/app/.git/worktrees/x");
    let gitdir = recorded.replace("\\\\", "\\") + "/.git\n";
    scene.entry("app/.git", "x", "ignored").file("app/.git/worktrees/x/gitdir", gitdir);
    scene.checkout("app/.worktrees/x", pointer);
    let at = "app/.worktrees/x";
    scene.plain().assert_held(&scene, "app", "x", Code::OutsideVantage, Some(at));
    let map = scene.map("C:\\Users\\me", "");
    scene.survey(|_| vec![map.clone()]).assert_joined(&scene, "app", "x", at, Map);
    scene.remove("app/.worktrees/x");
    scene.plain().assert_held(&scene, "app", "x", Code::OutsideVantage, None);
}

#[test]
fn case_and_composition_make_another_path() {
    for (recorded, real) in [("Fix", "fix"), ("gru\u{308}n", "gr\u{fc}n")] {
        let scene = Scene::new();
        scene.clone("app").entry("app/.git", "x", &format!("/workspaces/app/{recorded}"));
        scene.checkout(&format!("app/{real}"), "/workspaces/app/.git/worktrees/x");
        let at = format!("app/{real}");
        scene.plain().assert_held(&scene, "app", "x", Code::LinksDisagree, Some(&at));
    }
}

#[test]
fn a_container_that_has_the_path_elsewhere_recorded_another_directory() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "v", "app/.worktrees/v", "/workspaces");
    let mounts = [("/workspaces/app", "@app"), ("/workspaces/app/.worktrees", "volume trees")];
    let dev = scene.container("dev", &mounts);
    // The pair would join by what can be inferred: the engine knows better.
    let seen = scene.survey(|_| vec![dev.clone()]);
    seen.assert_held(&scene, "app", "v", Code::OutsideVantage, Some("app/.worktrees/v"));
    // A container that calls the clone otherwise did not write these links.
    let sidecar = scene.container("ci", &[("/repo", "@app")]);
    scene.survey(|_| vec![sidecar.clone()]).assert_joined(&scene, "app", "v", "app/.worktrees/v", Inferred);
}

#[test]
fn clones_within_worktrees_of_others_have_their_own() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@");
    scene.clone("app/.worktrees/x/lib");
    scene.worktree("app/.worktrees/x/lib", "x", "app/.worktrees/x/lib/wt/x", "@");
    let seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app/.worktrees/x", Identity);
    seen.assert_joined(&scene, "app/.worktrees/x/lib", "x", "app/.worktrees/x/lib/wt/x", Identity);
}

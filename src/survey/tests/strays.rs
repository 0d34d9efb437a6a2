//! Checkouts that no registration answers for.

use crate::judge::reason::Code;
use crate::survey::testing::{Scene, Surveyed};

/// Each stray with the clone that lists it and why it is no orphan.
fn strays(scene: &Scene, seen: &Surveyed) -> Vec<(String, String, Option<Code>)> {
    seen.with(|ground| {
        let below =
            |path: &crate::vantage::paths::LocalPath| path.below(&scene.local("")).unwrap().to_string();
        let row = |(w, c): &(usize, usize)| {
            let why = ground.is_orphan(*w).err().map(|reason| reason.code);
            (below(&ground.checkouts[*w].path), below(&ground.sides[*c].site.dir), why)
        };
        ground.strays().iter().map(row).collect()
    })
}

#[track_caller]
fn assert_strays(scene: &Scene, seen: &Surveyed, expected: &[(&str, &str, Option<Code>)]) {
    let found = strays(scene, seen);
    let found: Vec<_> = found.iter().map(|(at, clone, why)| (at.as_str(), clone.as_str(), *why)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_checkout_is_listed_where_it_belongs() {
    let scene = Scene::new();
    scene.clone("app").clone("lib").clone("deep/lib");
    scene.checkout("lib/wt/a", "@/app/.git/worktrees/a");
    scene.checkout("lib/wt/b", "/workspaces/gone/.git/worktrees/b");
    scene.checkout("deep/c", "/workspaces/gone/.git/worktrees/c");
    scene.checkout("lib/wt/d", "../../../app/.git/worktrees/d");
    let rows = [
        ("deep/c", "deep/lib", None),
        ("lib/wt/a", "app", None),
        ("lib/wt/b", "lib", None),
        ("lib/wt/d", "app", None),
    ];
    assert_strays(&scene, &scene.plain(), &rows);
}

#[test]
fn the_rows_registration_shows_it_if_it_has_none_of_its_own() {
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "@/app/.worktrees/x");
    scene.checkout("one", "@/app/.git/worktrees/x").checkout("two", "@/app/.git/worktrees/x");
    // The first is in the row of the registration.
    assert_strays(&scene, &scene.plain(), &[("two", "app", Some(Code::LinksDisagree))]);
}

#[test]
fn the_worktree_of_a_clone_that_is_out_of_sight_is_no_orphan() {
    let scene = Scene::new();
    scene.clone("in/app").clone("out/other").worktree("out/other", "x", "in/x", "@");
    scene.entry("out/other/.git", "rel", "../../../../../in/rel");
    scene.checkout("in/rel", "../../out/other/.git/worktrees/rel");
    let seen = || scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    let outside = Some(Code::OutsideRoot);
    assert_strays(&scene, &seen(), &[("in/rel", "in/app", outside), ("in/x", "in/app", outside)]);
    scene.remove("out/other/.git/worktrees");
    assert_strays(&scene, &seen(), &[("in/rel", "in/app", None), ("in/x", "in/app", None)]);
    // The clone may be on a disk that is not mounted now.
    scene.remove("out/other");
    let unproven = Some(Code::AbsenceUnproven);
    assert_strays(&scene, &seen(), &[("in/rel", "in/app", unproven), ("in/x", "in/app", unproven)]);
    scene.dir("out/more");
    assert_strays(&scene, &seen(), &[("in/rel", "in/app", None), ("in/x", "in/app", None)]);
}

#[test]
fn nothing_is_an_orphan_of_a_clone_whose_registrations_cant_be_read() {
    let scene = Scene::new();
    scene.clone("app").checkout("x", "@/app/.git/worktrees/x");
    scene.checkout("app/y", "/workspaces/app/.git/worktrees/y");
    assert_strays(&scene, &scene.plain(), &[("app/y", "app", None), ("x", "app", None)]);
    scene.link("app/.git/worktrees", "@");
    let unreadable = Some(Code::Unreadable);
    assert_strays(&scene, &scene.plain(), &[("app/y", "app", unreadable), ("x", "app", unreadable)]);
}

#[test]
fn what_may_be_another_clones_is_none() {
    let scene = Scene::new();
    scene.clone("app").clone("far/app-b").entry("far/app-b/.git", "x", "/workspaces/trees/x");
    scene.checkout("x", "/workspaces/app/.git/worktrees/x");
    assert_strays(&scene, &scene.plain(), &[("x", "app", Some(Code::Ambiguous))]);
    // Two containers knew both clones by the name that it has.
    let seen = scene.survey(|site| {
        let at = site.dir.below(&scene.local("")).unwrap().to_string();
        vec![scene.container(&at, &[("/workspaces/app", &format!("@{at}"))])]
    });
    seen.with(|ground| assert!(ground.strays().is_empty(), "the registration shows it"));
    seen.assert_held(&scene, "far/app-b", "x", Code::OutsideVantage, Some("x"));
}

#[test]
fn the_clones_that_a_pointer_leads_to_are_the_only_ones() {
    let scene = Scene::new();
    scene.clone("app").clone("lib").entry("lib/.git", "x", "/elsewhere/x");
    scene.checkout("x", "@/app/.git/worktrees/x");
    assert_strays(&scene, &scene.plain(), &[("x", "app", None)]);
}

#[test]
fn a_submodule_may_be_called_worktrees() {
    let scene = Scene::new();
    scene.clone("app").git_dir("app/.git/modules/worktrees/x");
    scene.checkout("app/sub", "../.git/modules/worktrees/x");
    let field = scene.discover();
    assert!(field.checkouts.is_empty(), "{:?}", field.checkouts);
    assert!(field.clones.iter().any(|site| site.dir == scene.local("app/sub")));
}

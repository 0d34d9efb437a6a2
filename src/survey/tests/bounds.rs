//! Rule 5: within a root.

use crate::judge::facts::Placement;
use crate::judge::reason::{Code, Reason};
use crate::survey::testing::{Scene, Surveyed};

fn reason(seen: &Surveyed, scene: &Scene, clone: &str, name: &str) -> Reason {
    match seen.place(scene, clone, name) {
        Placement::Held { reasons, .. } => reasons[0].clone(),
        other => panic!("{other:?}"),
    }
}

/// The reason is `outside-root`, and names the root to add.
#[track_caller]
fn assert_outside(seen: &Surveyed, scene: &Scene, clone: &str, name: &str, add: &str) {
    let reason = reason(seen, scene, clone, name);
    assert_eq!(reason.code, Code::OutsideRoot, "{reason}");
    assert!(reason.detail.contains(&format!("the root {} ", scene.local(add))), "{reason}");
}

#[test]
fn a_checkout_outside() {
    let scene = Scene::new();
    scene.clone("in/app").worktree("in/app", "x", "out/x", "@");
    let seen = scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    assert_outside(&seen, &scene, "in/app", "x", "out");
    let seen = scene.survey_in(&[scene.root("in"), scene.root("out")], true, |_| Vec::new());
    assert!(matches!(seen.place(&scene, "in/app", "x"), Placement::Joined { .. }));
    // Its trash would lie beside it, outside.
    let seen = scene.survey_in(&[scene.root("in"), scene.root("out/x")], true, |_| Vec::new());
    assert_outside(&seen, &scene, "in/app", "x", "out");
}

#[test]
fn a_root_in_the_checkout() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@").dir("app/.worktrees/x/deep");
    for inner in ["app/.worktrees/x", "app/.worktrees/x/deep"] {
        let seen = scene.survey_in(&[scene.root(""), scene.root(inner)], true, |_| Vec::new());
        assert_eq!(reason(&seen, &scene, "app", "x").code, Code::Protected);
    }
    let seen = scene.survey_in(&[scene.root(""), scene.root("app/.worktrees")], true, |_| Vec::new());
    assert!(matches!(seen.place(&scene, "app", "x"), Placement::Joined { .. }));
}

#[test]
fn a_git_directory_outside() {
    let scene = Scene::new();
    scene.git_dir("git/app").file("in/app/.git", scene.text("gitdir: @/git/app\n"));
    scene.entry("git/app", "x", "@/in/app/.worktrees/x");
    scene.checkout("in/app/.worktrees/x", "@/git/app/worktrees/x");
    let seen = scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    assert_outside(&seen, &scene, "in/app", "x", "git");
    let seen = scene.survey_in(&[scene.root("in"), scene.root("git")], true, |_| Vec::new());
    assert!(matches!(seen.place(&scene, "in/app", "x"), Placement::Joined { .. }));
    // The same through a link.
    std::fs::remove_file(scene.path("in/app/.git")).unwrap();
    scene.link("in/app/.git", "@/git/app");
    let seen = scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    assert_outside(&seen, &scene, "in/app", "x", "git");
}

#[test]
fn a_translation_leads_outside() {
    let scene = Scene::new();
    scene.clone("in/app").entry("in/app/.git", "x", "/trees/x").dir("out");
    let map = scene.map("/trees", "out");
    let seen = scene.survey_in(&[scene.root("in")], true, |_| vec![map.clone()]);
    assert_outside(&seen, &scene, "in/app", "x", "out");
}

#[test]
fn absence_is_looked_at_through_other_spellings_of_the_root() {
    let scene = Scene::new();
    scene.clone("app").dir("app/.worktrees/other");
    std::os::unix::fs::symlink("src", scene.top.join("code")).unwrap();
    let code = scene.top.join("code").to_string_lossy().into_owned();
    scene.entry("app/.git", "x", &format!("{code}/app/.worktrees/x"));
    match scene.plain().place(&scene, "app", "x") {
        Placement::Absent { expected, .. } if expected == scene.local("app/.worktrees/x") => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_can_be_looked_at_by_no_root_is_not_there_for_us() {
    let scene = Scene::new();
    scene.clone("in/app").entry("in/app/.git", "x", "@/out/x").file("out/x/.git", "gitdir: junk");
    let seen = scene.survey_in(&[scene.root("in")], true, |_| Vec::new());
    assert_outside(&seen, &scene, "in/app", "x", "out");
}

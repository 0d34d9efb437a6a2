//! The sentences of the design about absence, one by one. What a marker proves is asked in `standing`.

use crate::judge::facts::{AbsenceProof, Placement};
use crate::judge::reason::Code;
use crate::survey::absence::Witness;
use crate::survey::testing::{Scene, Surveyed};
use crate::vantage::paths::RecordedPath;
use crate::vantage::translate::{TranslationKind, Translator};

/// A clone with an entry `x` that records `path`, and a worktree `sibling` that a container made.
fn scene(path: &str) -> Scene {
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", path);
    scene.worktree("app", "sibling", "app/.worktrees/sibling", "/workspaces");
    scene
}

#[track_caller]
fn assert_absent(seen: &Surveyed, scene: &Scene, at: &str, proven: bool) {
    match seen.place(scene, "app", "x") {
        Placement::Absent { expected, proof, .. }
            if expected == scene.local(at) && matches!(proof, AbsenceProof::Proven(_)) == proven => {}
        other => panic!("{other:?}"),
    }
}

const INSIDE: &str = "/workspaces/app/.worktrees/x";

#[test]
fn a_containers_bind_proves_it() {
    let scene = scene(INSIDE);
    let dev = scene.container("dev", &[("/workspaces/app", "@app")]);
    assert_absent(&scene.survey(|_| vec![dev.clone()]), &scene, "app/.worktrees/x", true);
    // Whose deepest mount is that bind.
    let mounts = [("/workspaces/app", "@app"), ("/workspaces/app/.worktrees", "volume trees")];
    let dev = scene.container("dev", &mounts);
    scene.survey(|_| vec![dev.clone()]).assert_held(&scene, "app", "x", Code::OutsideVantage, None);
}

#[test]
fn the_users_map_proves_what_is_strictly_below_it() {
    let scene = scene(INSIDE);
    let map = scene.map("/workspaces/app", "app");
    assert_absent(&scene.survey(|_| vec![map.clone()]), &scene, "app/.worktrees/x", true);
    let exactly = scene.map(INSIDE, "app/.worktrees/x");
    let seen = scene.survey(|_| vec![exactly.clone()]);
    seen.assert_held(&scene, "app", "x", Code::AbsenceUnproven, Some("app/.worktrees/x"));
}

#[test]
fn a_sibling_a_label_and_inference_are_weak() {
    let scene = scene(INSIDE);
    assert_absent(&scene.plain(), &scene, "app/.worktrees/x", false);
    let label = Translator::Prefix {
        kind: TranslationKind::Label,
        from: RecordedPath::new("/workspaces/app"),
        to: scene.local("app"),
        evidence: "a label".into(),
    };
    assert_absent(&scene.survey(|_| vec![label.clone()]), &scene, "app/.worktrees/x", false);
    // Without a sibling there is nothing to infer from.
    scene.remove("app/.worktrees/sibling");
    scene.plain().assert_held(&scene, "app", "x", Code::OutsideVantage, None);
}

#[test]
fn a_path_of_this_host_proves_nothing_by_itself() {
    let scene = scene("@/app/.worktrees/x");
    assert_absent(&scene.plain(), &scene, "app/.worktrees/x", false);
}

#[test]
fn what_a_known_container_has_elsewhere_is_outside() {
    let beside = scene("/workspaces/x");
    let own_layer = beside.container("dev", &[("/workspaces/app", "@app")]);
    let held =
        |seen: &Surveyed, scene: &Scene| seen.assert_held(scene, "app", "x", Code::OutsideVantage, None);
    held(&beside.survey(|_| vec![own_layer.clone()]), &beside);
    // Another container's bind does not take that back: either may have recorded the path.
    let wide = beside.container("wide", &[("/workspaces", "@")]);
    for views in [[&own_layer, &wide], [&wide, &own_layer]] {
        held(&beside.survey(|_| views.map(Clone::clone).to_vec()), &beside);
    }
    // One that calls the clone otherwise did not.
    beside.dir("other");
    let sidecar = beside.container("ci", &[("/repo", "@app")]);
    assert_absent(&beside.survey(|_| vec![wide.clone(), sidecar.clone()]), &beside, "x", true);
    // No container is left that could have known it: the evidence is weak.
    assert_absent(&beside.plain(), &beside, "x", false);
    // What nothing places is in the own layer of whoever recorded it.
    let scene = scene("/opt/layer");
    let dev = scene.container("dev", &[("/workspaces/app", "@app")]);
    held(&scene.survey(|_| vec![dev.clone()]), &scene);
}

#[test]
fn a_path_that_both_have_is_outside_as_long_as_the_container_may_have_it() {
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "@/x").dir("other");
    let src = String::from_utf8(scene.text("@/app")).unwrap();
    let same = scene.container("dev", &[(&src, "@app")]);
    scene.survey(|_| vec![same.clone()]).assert_held(&scene, "app", "x", Code::OutsideVantage, None);
    // A container that has the clone at another place has nothing to do with paths of this host.
    let dev = scene.container("dev", &[("/workspaces/app", "@app")]);
    assert_absent(&scene.survey(|_| vec![dev.clone()]), &scene, "x", false);
}

#[test]
fn every_place_that_it_may_be_at_has_to_be_empty() {
    let scene = scene("/workspaces/trees/x");
    scene.dir("one").dir("two/x");
    let view = |trees: &str| {
        scene.container(trees, &[("/workspaces/app", "@app"), ("/workspaces/trees", &format!("@{trees}"))])
    };
    for views in [["one", "two"], ["two", "one"]] {
        let seen = scene.survey(|_| views.map(view).to_vec());
        seen.assert_held(&scene, "app", "x", Code::BrokenLink, Some("two/x"));
    }
}

#[test]
fn a_disk_that_is_not_mounted() {
    let scene = scene("@/disk/x");
    let unproven = |scene: &Scene| {
        scene.plain().assert_held(scene, "app", "x", Code::AbsenceUnproven, Some("disk/x"));
    };
    unproven(&scene);
    scene.dir("disk");
    unproven(&scene);
    scene.dir("disk/other");
    assert_absent(&scene.plain(), &scene, "disk/x", false);
}

#[test]
fn everything_that_one_translation_names_is_missing_at_once() {
    let scene = scene("/trees/x");
    scene.entry("app/.git", "y", "/trees/y").dir("disk");
    let mounts = [("/workspaces/app", "@app"), ("/trees", "@disk")];
    for rule in [scene.map("/trees", "disk"), scene.container("dev", &mounts)] {
        // The sibling, which lies elsewhere by the same container, proves nothing of the disk.
        let seen = || scene.survey(|_| vec![rule.clone()]);
        seen().assert_held(&scene, "app", "x", Code::AbsenceUnproven, Some("disk/x"));
        scene.dir("disk/unknown");
        seen().assert_held(&scene, "app", "x", Code::AbsenceUnproven, Some("disk/x"));
        scene.dir("disk/y");
        assert_absent(&seen(), &scene, "disk/x", true);
        scene.remove("disk/y").remove("disk/unknown");
    }
}

#[test]
fn another_spelling_beside_it() {
    for (recorded, beside) in
        [("fix", "Fix"), ("gr\u{fc}n", "gru\u{308}n"), ("\u{df}", "\u{1e9e}"), ("\u{fb01}x", "fix")]
    {
        let scene = scene(&format!("@/app/trees/{recorded}"));
        scene.dir(&format!("app/trees/{beside}"));
        let at = format!("app/trees/{recorded}");
        scene.plain().assert_held(&scene, "app", "x", Code::AbsenceUnproven, Some(&at));
    }
    // Further up as well.
    let scene = scene("@/app/Trees/x");
    scene.dir("app/trees");
    scene.plain().assert_held(&scene, "app", "x", Code::AbsenceUnproven, Some("app/Trees/x"));
}

#[test]
fn what_a_removal_of_ours_left_is_no_absence() {
    let id = "20250301T101112123Z-0123456789ab";
    let scene = scene("@/app/.worktrees/x");
    let trash = format!("app/.worktrees/.treesweep-trash-{id}-x");
    scene.dir(&trash);
    let unproven = |scene: &Scene| {
        scene.plain().assert_held(scene, "app", "x", Code::AbsenceUnproven, Some("app/.worktrees/x"));
    };
    unproven(&scene);
    // A name that was cut says nothing, but the file in it does.
    scene.remove(&trash);
    let cut = format!("app/.worktrees/.treesweep-trash-{id}-loooong~");
    scene.checkout(&cut, "/workspaces/app/.git/worktrees/x");
    unproven(&scene);
}

#[test]
fn outside_main_and_disagreement_come_before_any_proof() {
    let seen_by = |scene: &Scene, code, at| {
        let dev = scene.container("dev", &[("/workspaces/app", "@app")]);
        let place = scene.survey(|_| vec![dev.clone()]).with(|ground| {
            let sides = ground.sides;
            let r = sides[0].registrations.iter().position(|r| r.name.as_bstr() == "x").unwrap();
            ground.place_seen_by(0, r, &|_| Witness::Mounted("the marker".into()))
        });
        match place {
            Placement::Held { path, reasons, .. }
                if reasons[0].code == code && path == Option::map(at, |at: &str| scene.local(at)) => {}
            other => panic!("{other:?}"),
        }
    };
    seen_by(&scene("/workspaces/x"), Code::OutsideVantage, None);
    seen_by(&scene("/workspaces/app"), Code::MainWorktree, Some("app"));
    let moved = scene(INSIDE);
    moved.checkout("moved", "/workspaces/app/.git/worktrees/x");
    seen_by(&moved, Code::LinksDisagree, Some("moved"));
}

#[test]
fn the_marker_speaks_for_a_disk_and_against_it() {
    let place = |scene: &Scene, witness: Witness| {
        scene.plain().with(|ground| {
            let r = ground.registered(0, "x".into()).unwrap();
            ground.place_seen_by(0, r, &|_| witness.clone())
        })
    };
    // The directory above went too, and the file system that the marker names is there.
    let scene = scene("@/disk/x");
    match place(&scene, Witness::Mounted("the marker".into())) {
        Placement::Absent { proof: AbsenceProof::Proven(_), .. } => {}
        other => panic!("{other:?}"),
    }
    // A container's bind would prove it: the marker knows that it was on another file system.
    match place(&scene, Witness::NotMounted("another one".into())) {
        Placement::Held { reasons, .. } if reasons[0].code == Code::AbsenceUnproven => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn two_guesses_that_differ_say_nothing() {
    let scene = scene("/workspaces/app2/.worktrees/x");
    scene.worktree("app", "late", "app/.worktrees/late", "/workspaces");
    scene.entry("app/.git", "late", "/workspaces/app2/.worktrees/late");
    scene.checkout("app/.worktrees/late", "/workspaces/app2/.git/worktrees/late");
    scene.plain().assert_held(&scene, "app", "x", Code::Ambiguous, None);
}

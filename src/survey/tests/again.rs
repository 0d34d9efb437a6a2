//! What changed between the plan and the act: whatever could claim the same name is looked at again.

use TranslationKind::{Inferred, Map, Mount};

use crate::judge::reason::Code;
use crate::survey::run::Candidate;
use crate::survey::testing::{Scene, Surveyed};
use crate::vantage::paths::EntryName;
use crate::vantage::translate::{TranslationKind, Translator};

impl Surveyed {
    /// Looks again at `name` of `clone`, with these translations besides identity.
    fn again(&mut self, scene: &Scene, clone: &str, name: &str, more: &[Translator]) {
        let candidate = Candidate::Registered(EntryName::new(name).unwrap());
        self.again_at(scene, clone, &candidate, more);
    }

    fn again_at(&mut self, scene: &Scene, clone: &str, candidate: &Candidate, more: &[Translator]) {
        let c = self.0.field.clones.iter().position(|site| site.dir == scene.local(clone)).unwrap();
        let translators = |_: &_| [vec![Translator::Identity], more.to_vec()].concat();
        self.0.look_again(c, candidate, true, translators);
    }
}

/// Two clones beside each other, of which only `app` has a worktree; it is a container's, and lies beside them.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.clone("app").clone("other").dir("other/.git/worktrees");
    scene.worktree("app", "x", "app-x", "/workspaces").worktree("app", "y", "app-y", "/workspaces");
    scene
}

#[test]
fn a_rival_in_another_clone() {
    let scene = scene();
    let mut seen = scene.plain();
    seen.assert_joined(&scene, "app", "x", "app-x", Inferred);
    // The other clone was called the same, and has the same to say.
    scene.entry("other/.git", "x", "/workspaces/app-x");
    seen.again(&scene, "app", "x", &[]);
    seen.assert_held(&scene, "app", "x", Code::Ambiguous, Some("app-x"));
    scene.remove("other/.git/worktrees");
    seen.again(&scene, "app", "x", &[]);
    seen.assert_joined(&scene, "app", "x", "app-x", Inferred);
}

#[test]
fn the_registration_itself() {
    let scene = scene();
    let mut seen = scene.plain();
    scene.entry("app/.git", "x", "/workspaces/elsewhere");
    seen.again(&scene, "app", "x", &[]);
    seen.assert_held(&scene, "app", "x", Code::LinksDisagree, Some("app-x"));
    scene.remove("app/.git/worktrees/x");
    seen.again(&scene, "app", "x", &[]);
    let names: Vec<String> =
        seen.0.registrations[0].as_ref().unwrap().iter().map(|r| r.name.to_string()).collect();
    assert_eq!(names, ["y"]);
}

#[test]
fn what_was_registered_in_the_same_clone_meanwhile() {
    let scene = scene();
    let mut seen = scene.plain();
    scene.worktree("app", "new", "app-x/.worktrees/new", "/workspaces");
    seen.again(&scene, "app", "x", &[]);
    let names = seen.0.registrations[0].as_ref().unwrap().iter().map(|r| r.name.as_bstr());
    assert_eq!(names.collect::<Vec<_>>(), ["new", "x", "y"]);
    // It lies in the candidate, and is nobody's to take along.
    seen.with(|ground| assert!(ground.unjoined_beneath(&scene.local("app-x")).next().is_some()));
}

#[test]
fn the_checkout() {
    let scene = scene();
    let mut seen = scene.plain();
    scene.checkout("app-x", "/workspaces/app/.git/worktrees/y");
    seen.again(&scene, "app", "x", &[]);
    seen.assert_held(&scene, "app", "x", Code::LinksDisagree, Some("app-x"));
    scene.checkout("app-x", "/workspaces/app/.git/worktrees/x");
    let mut seen = scene.plain();
    scene.remove("app-x");
    seen.again(&scene, "app", "x", &[]);
    assert!(!seen.0.field.checkouts.iter().any(|c| c.path == scene.local("app-x")));
}

/// Somebody gives an orphan to another entry, or takes its `.git` file away, after the plan.
#[test]
fn an_orphan_is_looked_at_whatever_it_names_by_now() {
    let scene = scene();
    scene.remove("app/.git/worktrees/x").remove("app-y");
    let orphan = Candidate::Orphan(scene.local("app-x"));
    let strays = |seen: &Surveyed| seen.with(|ground| ground.strays().len());
    let mut seen = scene.plain();
    assert_eq!(strays(&seen), 1);
    scene.entry("app/.git", "y", "/workspaces/app-x").checkout("app-x", "/workspaces/app/.git/worktrees/y");
    seen.again_at(&scene, "app", &orphan, &[]);
    assert_eq!(strays(&seen), 0);
    seen.assert_joined(&scene, "app", "y", "app-x", Inferred);
    let mut seen = scene.plain();
    std::fs::remove_file(scene.path("app-x/.git")).unwrap();
    seen.again_at(&scene, "app", &orphan, &[]);
    assert!(!seen.0.field.checkouts.iter().any(|c| c.path == scene.local("app-x")));
}

#[test]
fn containers_of_this_moment() {
    let scene = scene();
    scene.dir("else");
    let mount = scene.container("dev", &[("/workspaces", "@")]);
    let mut seen = scene.survey(|_| vec![mount.clone()]);
    seen.assert_joined(&scene, "app", "x", "app-x", Mount);
    // That container is gone; the user's own map holds as before.
    let map = scene.map("/workspaces", "");
    seen.again(&scene, "app", "x", std::slice::from_ref(&map));
    seen.assert_joined(&scene, "app", "x", "app-x", Map);
    // A directory that only a container which came since places somewhere answers to the same keys.
    scene.checkout("else/app-x", "/workspaces/app/.git/worktrees/x");
    let moved = scene.container("new", &[("/workspaces/app-x", "@else/app-x"), ("/workspaces", "@")]);
    seen.again(&scene, "app", "x", &[moved, map]);
    seen.assert_held(&scene, "app", "x", Code::Ambiguous, None);
}

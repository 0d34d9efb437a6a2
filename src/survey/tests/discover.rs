//! Finding clones and checkouts of every layout.

use crate::survey::discover::{EnclosingClone, Field, Scope, enclosing_clone};
use crate::survey::testing::Scene;

fn clones(scene: &Scene, field: &Field) -> Vec<(String, String)> {
    let below = |path: &crate::vantage::paths::LocalPath| path.below(&scene.local("")).unwrap().to_string();
    field.clones.iter().map(|site| (below(&site.dir), below(site.common_path()))).collect()
}

#[track_caller]
fn assert_clones(scene: &Scene, expected: &[(&str, &str)]) {
    let found = clones(scene, &scene.discover());
    let found: Vec<_> = found.iter().map(|(dir, common)| (dir.as_str(), common.as_str())).collect();
    assert_eq!(found, expected);
}

fn checkouts(scene: &Scene, field: &Field) -> Vec<String> {
    let below = |path: &crate::vantage::paths::LocalPath| path.below(&scene.local("")).unwrap().to_string();
    field.checkouts.iter().map(|seen| below(&seen.path)).collect()
}

#[test]
fn every_layout_is_one_clone() {
    /// What it is, how it is made, and which clones are found: directory and common directory.
    type Case = (&'static str, fn(&Scene), &'static [(&'static str, &'static str)]);
    let cases: [Case; 8] = [
        ("plain", |s| _ = s.clone("app"), &[("app", "app/.git")]),
        ("bare", |s| _ = s.git_dir("app.git"), &[("app.git", "app.git")]),
        (
            "bare with a file beside it",
            |s| _ = s.git_dir("app/.bare").file("app/.git", "gitdir: ./.bare\n"),
            &[("app", "app/.bare")],
        ),
        (
            "separate",
            |s| _ = s.git_dir("git/app").file("app/.git", s.text("gitdir: @/git/app\n")),
            &[("app", "git/app")],
        ),
        ("linked", |s| _ = s.git_dir("git/app").link("app/.git", "@/git/app"), &[("app", "git/app")]),
        (
            "a submodule",
            |s| _ = s.clone("app").git_dir("app/.git/modules/lib").checkout("app/lib", "../.git/modules/lib"),
            &[("app", "app/.git"), ("app/lib", "app/.git/modules/lib")],
        ),
        (
            "a submodule that is not checked out, and one in it",
            |s| _ = s.clone("app").git_dir("app/.git/modules/a/b").git_dir("app/.git/modules/a/b/modules/c"),
            &[
                ("app", "app/.git"),
                ("app/.git/modules/a/b", "app/.git/modules/a/b"),
                ("app/.git/modules/a/b/modules/c", "app/.git/modules/a/b/modules/c"),
            ],
        ),
        (
            "in a worktree of another",
            |s| _ = s.clone("app").worktree("app", "x", "app/x", "@").clone("app/x/lib"),
            &[("app", "app/.git"), ("app/x/lib", "app/x/lib/.git")],
        ),
    ];
    for (what, build, expected) in cases {
        let scene = Scene::new();
        build(&scene);
        let found = clones(&scene, &scene.discover());
        let found: Vec<_> = found.iter().map(|(dir, common)| (dir.as_str(), common.as_str())).collect();
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn worktrees_within_a_bare_clone_are_found() {
    for name in ["wt/x", ".x", "ZZ/x", "a"] {
        let scene = Scene::new();
        scene.git_dir("app").dir("app/logs").dir("app/hooks").dir("app/info");
        let at = format!("app/{name}");
        scene.entry("app", "x", &format!("/workspaces/{at}"));
        scene.checkout(&at, "/workspaces/app/worktrees/x");
        assert_eq!(checkouts(&scene, &scene.discover()), [at]);
        assert_clones(&scene, &[("app", "app")]);
    }
}

#[test]
fn links_to_directories_are_not_followed() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/x", "@");
    scene.link("again", "@/app").link("loop/loop", "@/loop").link("out", "/");
    assert_clones(&scene, &[("app", "app/.git")]);
    assert_eq!(checkouts(&scene, &scene.discover()), ["app/x"]);
}

#[test]
fn one_clone_seen_twice_is_one() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/x", "@").link("alias/.git", "@/app/.git");
    let mut roots = [scene.root("app"), scene.root(""), scene.root("alias")];
    roots[0].scope = Scope::Evidence;
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let roots = order.map(|at| roots[at].clone());
        let field = scene.discover_in(&roots);
        assert_eq!(clones(&scene, &field), [("app".to_owned(), "app/.git".to_owned())], "{order:?}");
        assert!(field.clones[0].in_scope);
        assert_eq!(checkouts(&scene, &field), ["app/x"]);
    }
}

#[test]
fn what_cant_be_read_is_named_and_the_walk_goes_on() {
    let scene = Scene::new();
    scene.clone("app").dir("shut/in").clone("zoo");
    scene.file("a/.git", "junk").file("b/.git", "gitdir: \n").file("c/.git", vec![b'x'; 1 << 20]);
    nix::unistd::mkfifo(&scene.dir("d").path("d/.git"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    drop(std::os::unix::net::UnixListener::bind(scene.dir("e").path("e/.git")).unwrap());
    scene.link("f/.git", "/nowhere").link("g/.git", "g");
    let field = scene.discover();
    assert_eq!(clones(&scene, &field).len(), 2);
    for name in ["a", "b", "c", "d", "e", "f", "g"] {
        let at = format!("{}/.git", scene.local(name));
        assert_eq!(field.warnings.iter().filter(|w| w.starts_with(&at)).count(), 1, "{:?}", field.warnings);
    }
}

#[test]
fn a_directory_that_may_not_be_entered_is_named() {
    if rustix::process::geteuid().is_root() {
        // Root may enter any; the integration tests look as another user.
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    scene.clone("app").dir("shut/in").clone("zoo");
    std::fs::set_permissions(scene.path("shut"), std::fs::Permissions::from_mode(0o0)).unwrap();
    let field = scene.discover();
    std::fs::set_permissions(scene.path("shut"), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(clones(&scene, &field).len(), 2);
    assert_eq!(field.warnings.len(), 1, "{:?}", field.warnings);
}

#[test]
fn a_git_directory_of_links_is_none() {
    let scene = Scene::new();
    scene.dir("x/.git").link("x/.git/objects", "@").link("x/.git/refs", "@").file("x/.git/HEAD", "");
    assert_clones(&scene, &[]);
}

#[test]
fn a_depth_bounds_what_is_around_a_clone_and_not_the_clone() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "in", "app/a/b/c/d/in", "@");
    scene.clone("one/two/far").worktree("app", "out", "one/two/three/out", "/nowhere");
    let mut root = scene.root("");
    (root.scope, root.depth) = (Scope::Only(scene.local("app")), Some(3));
    let field = scene.discover_in(&[root]);
    assert_eq!(clones(&scene, &field).len(), 1);
    assert_eq!(checkouts(&scene, &field), ["app/a/b/c/d/in"]);
    assert!(field.clones[0].in_scope);
}

#[test]
fn only_the_named_clone_is_in_scope() {
    let scene = Scene::new();
    scene.clone("app").clone("lib").git_dir("app/.git/modules/m");
    let mut root = scene.root("");
    root.scope = Scope::Only(scene.local("app"));
    let field = scene.discover_in(&[root]);
    let scoped: Vec<_> = field.clones.iter().filter(|c| c.in_scope).map(|c| c.dir.clone()).collect();
    assert_eq!(scoped, [scene.local("app")]);
    assert_eq!(field.clones.len(), 3);
}

#[test]
fn trash_is_no_place_to_look_for_clones() {
    let scene = Scene::new();
    let trash = ".treesweep-trash-20250301T101112123Z-0123456789ab-x";
    scene.clone("app").checkout(&format!("app/{trash}"), "@/app/.git/worktrees/x");
    let field = scene.discover();
    assert!(field.checkouts.is_empty());
    assert_eq!(field.trash, [scene.local(&format!("app/{trash}"))]);
    // Whoever only borrows the beginning of the name can't hide anything behind it.
    scene.clone(".treesweep-trash-mine");
    assert_eq!(scene.discover().clones.len(), 2);
    assert_eq!(scene.discover().trash.len(), 1);
}

#[test]
fn the_clone_around_a_directory() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "/workspaces").dir("app/deep/er");
    scene.git_dir("p/.bare").file("p/.git", "gitdir: ./.bare\n").dir("p/main").git_dir("bare.git");
    let around = |name: &str| enclosing_clone(&scene.local(name)).unwrap();
    let clone = |name: &str| Some(EnclosingClone::Clone(scene.local(name)));
    for at in ["app", "app/deep/er", "app/.git", "app/.git/refs"] {
        assert_eq!(around(at), clone("app"), "{at}");
    }
    assert_eq!(around("p/main"), clone("p"));
    assert_eq!(around("bare.git/refs"), clone("bare.git"));
    assert_eq!(around(""), None);
    match around("app/.worktrees/x") {
        Some(EnclosingClone::Checkout { dir, .. }) if dir == scene.local("app/.worktrees/x") => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_found_does_not_depend_on_how_many_look() {
    let scene = Scene::new();
    for n in 0..12 {
        scene.clone(&format!("app{n}")).dir(&format!("app{n}/a/b/c")).dir(&format!("deep/er{n}/x/y"));
        scene.worktree(&format!("app{n}"), "x", &format!("trees/{n}/x"), "/nowhere");
        scene.file(&format!("odd{n}/.git"), "junk").git_dir(&format!("bare/{n}.git"));
    }
    let looked = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let field = pool.install(|| scene.discover());
        (clones(&scene, &field), checkouts(&scene, &field), field.trash, field.warnings)
    };
    let alone = looked(1);
    assert_eq!((alone.0.len(), alone.1.len(), alone.3.len()), (24, 12, 12));
    for threads in [2, 3, 8] {
        assert_eq!(looked(threads), alone, "{threads} threads");
    }
}

#[test]
fn a_walk_that_is_stopped_says_so_once() {
    let scene = Scene::new();
    scene.clone("app").clone("lib");
    let stop = crate::stop::Stop::never();
    stop.request();
    let field = crate::survey::discover::discover(&[scene.root("")], &stop);
    assert!(field.clones.is_empty());
    let [only] = &field.warnings[..] else { panic!("{:?}", field.warnings) };
    assert!(only.ends_with("the time was up before it was walked whole"), "{only}");
}

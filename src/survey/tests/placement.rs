//! What keeps a registration that is not joined.

use crate::judge::facts::Placement;
use crate::judge::reason::Code;
use crate::survey::testing::Scene;

/// A clone whose entry `x` records the host's `app/.worktrees/x`.
fn scene() -> Scene {
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "@/app/.worktrees/x");
    scene
}

const AT: Option<&str> = Some("app/.worktrees/x");

#[test]
fn what_stands_in_the_place_of_the_checkout() {
    type Build = fn(&Scene);
    let cases: [(&str, Code, Build); 11] = [
        ("a file", Code::LinksDisagree, |s| _ = s.file("app/.worktrees/x", "")),
        ("an empty directory", Code::BrokenLink, |s| _ = s.dir("app/.worktrees/x")),
        ("a repository", Code::LinksDisagree, |s| _ = s.clone("app/.worktrees/x")),
        ("a .git that is empty", Code::BrokenLink, |s| _ = s.file("app/.worktrees/x/.git", "")),
        ("a .git of junk", Code::BrokenLink, |s| _ = s.file("app/.worktrees/x/.git", b"\x00\xff")),
        ("a huge .git", Code::BrokenLink, |s| {
            let file = std::fs::File::create(s.dir("app/.worktrees/x").path("app/.worktrees/x/.git"));
            file.unwrap().set_len(1 << 40).unwrap();
        }),
        ("a link named .git", Code::BrokenLink, |s| _ = s.link("app/.worktrees/x/.git", "@/app/.git")),
        ("a FIFO named .git", Code::BrokenLink, |s| {
            let path = s.dir("app/.worktrees/x").path("app/.worktrees/x/.git");
            nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        }),
        ("a socket named .git", Code::BrokenLink, |s| {
            let path = s.dir("app/.worktrees/x").path("app/.worktrees/x/.git");
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
        }),
        ("a checkout of another entry", Code::LinksDisagree, |s| {
            s.checkout("app/.worktrees/x", "@/app/.git/worktrees/y");
        }),
        ("a submodule", Code::LinksDisagree, |s| _ = s.checkout("app/.worktrees/x", "../../.git/modules/x")),
    ];
    for (what, code, build) in cases {
        let scene = scene();
        build(&scene);
        match scene.plain().place(&scene, "app", "x") {
            Placement::Held { path, reasons, .. }
                if reasons[0].code == code && path == AT.map(|at| scene.local(at)) => {}
            other => panic!("{what}: {other:?}"),
        }
    }
}

#[test]
fn a_link_in_the_way_leads_out() {
    let cases: [fn(&Scene); 4] = [
        |s| _ = s.link("app/.worktrees/x", "@"),
        |s| _ = s.link("app/.worktrees/x", "/nowhere"),
        |s| _ = s.dir("trees").link("app/.worktrees", "@/trees"),
        |s| _ = s.file("app/.worktrees", "no directory"),
    ];
    for build in cases {
        let scene = scene();
        build(&scene);
        scene.plain().assert_held(&scene, "app", "x", Code::PathEscapes, AT);
    }
}

#[test]
fn an_entry_that_cant_be_read_is_shown_where_its_directory_is() {
    for (file, bytes) in [("HEAD", "junk"), ("commondir", "../../../other\n"), ("gitdir", "")] {
        let scene = Scene::new();
        scene.clone("app").worktree("app", "x", "app/.worktrees/x", "/workspaces");
        scene.file(&format!("app/.git/worktrees/x/{file}"), bytes);
        scene.plain().assert_held(&scene, "app", "x", Code::Unreadable, AT);
    }
}

#[test]
fn entries_that_are_no_entries_hide_no_others() {
    let scene = Scene::new();
    scene.clone("app").worktree("app", "x", "app/.worktrees/x", "@");
    scene.file("app/.git/worktrees/file", "").link("app/.git/worktrees/link", "@/app/.git/worktrees/x");
    scene.dir("app/.git/worktrees/empty");
    nix::unistd::mkfifo(&scene.path("app/.git/worktrees/fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let seen = scene.plain();
    for name in ["file", "link", "empty", "fifo"] {
        seen.assert_held(&scene, "app", name, Code::Unreadable, None);
    }
    assert!(matches!(seen.place(&scene, "app", "x"), Placement::Joined { .. }));
}

#[test]
fn a_worktree_that_was_moved_by_hand() {
    let scene = scene();
    scene.checkout("moved", "@/app/.git/worktrees/x");
    let codes = |seen: Placement| match seen {
        Placement::Held { reasons, .. } => reasons.iter().map(|r| r.code).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    // It still names the entry: that its recorded path is gone proves nothing.
    let seen = scene.plain();
    seen.assert_held(&scene, "app", "x", Code::LinksDisagree, Some("moved"));
    assert_eq!(codes(seen.place(&scene, "app", "x")), [Code::LinksDisagree, Code::AbsenceUnproven]);
    scene.dir("app/.worktrees/x");
    assert_eq!(codes(scene.plain().place(&scene, "app", "x")), [Code::LinksDisagree]);
}

#[test]
fn what_nothing_translates() {
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "/opt/trees/x").entry("app/.git", "y", "/home/me/app/y");
    let seen = scene.plain();
    seen.assert_held(&scene, "app", "x", Code::OutsideVantage, None);
    seen.assert_held(&scene, "app", "y", Code::OutsideVantage, None);
    // A component called as the clone is gives the row a path, and no more.
    scene.dir("app/y");
    scene.plain().assert_held(&scene, "app", "y", Code::BrokenLink, Some("app/y"));
    scene.checkout("app/y", "/home/me/app/.git/worktrees/z");
    scene.plain().assert_held(&scene, "app", "y", Code::LinksDisagree, Some("app/y"));
    let own_vantage = scene.survey_in(&[scene.root("")], false, |_| Vec::new());
    own_vantage.assert_held(&scene, "app", "x", Code::OutsideVantage, None);
}

#[test]
fn the_clone_itself_and_what_holds_it_are_never_a_checkout() {
    for recorded in ["@/app", "@", "@/app/.git", "@/app/.git/worktrees/x", "@/app/.git/wt", "/", "@/.."] {
        let scene = Scene::new();
        scene.clone("app").entry("app/.git", "x", recorded);
        match scene.plain().place(&scene, "app", "x") {
            Placement::Held { reasons, .. }
                if matches!(reasons[0].code, Code::MainWorktree | Code::OutsideVantage) => {}
            other => panic!("{recorded}: {other:?}"),
        }
    }
    let scene = Scene::new();
    scene.clone("app").entry("app/.git", "x", "/workspaces/app");
    scene.plain().assert_held(&scene, "app", "x", Code::MainWorktree, Some("app"));
}

#[test]
fn a_checkout_in_any_git_directory_is_refused() {
    let scene = Scene::new();
    scene.clone("app").clone("other");
    for (name, at) in [("own", "app/.git/objects"), ("others", "other/.git/refs")] {
        scene.worktree("app", name, at, "@");
        scene.plain().assert_held(&scene, "app", name, Code::MainWorktree, Some(at));
    }
}

#[test]
fn two_registrations_of_one_path() {
    let scene = scene();
    scene.entry("app/.git", "y", "@/app/.worktrees/x");
    scene.checkout("app/.worktrees/x", "@/app/.git/worktrees/y");
    let seen = scene.plain();
    assert!(matches!(seen.place(&scene, "app", "y"), Placement::Joined { .. }));
    seen.assert_held(&scene, "app", "x", Code::LinksDisagree, AT);
}

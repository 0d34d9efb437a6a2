use super::*;
use crate::judge::reason::{Code, Reason};
use crate::report::sample::{clone, plan, row, usual, view};

#[test]
fn the_usual_plan_in_80_columns() {
    let text = render(&usual(), &view(Some(80)));
    assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_usual_plan_on_a_narrow_terminal() {
    let text = render(&usual(), &view(Some(44)));
    let table = text.split("\nNext:").next().unwrap();
    insta::assert_snapshot!(table);
}

#[test]
fn before_acting_nothing_is_said_of_what_to_type() {
    let text = before_acting(&usual(), &view(Some(80)));
    assert!(!text.contains("treesweep prune"), "{text}");
    assert!(text.ends_with("3 worktrees, 40.8 GB await your choice.\n2 worktrees are kept.\n\n"), "{text}");
}

#[test]
fn the_usual_plan_on_a_wide_terminal() {
    let text = render(&usual(), &view(Some(130)));
    assert!(text.lines().all(|l| l.chars().count() <= 130), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_usual_plan_in_a_file() {
    insta::assert_snapshot!(render(&usual(), &view(None)));
}

#[test]
fn colours_change_no_column() {
    let mut colored = view(Some(80));
    colored.style.color = true;
    colored.style.hyperlinks = true;
    let text = render(&usual(), &colored);
    assert!(text.contains("\u{1b}[32mreclaim"), "{text}");
    assert!(text.contains("\u{1b}]8;;file:///home/me/src/app\u{1b}\\"));
    assert_eq!(anstream::adapter::strip_str(&text).to_string(), render(&usual(), &view(Some(80))));
}

#[test]
fn warnings_name_their_clone() {
    insta::assert_snapshot!(warnings(&usual(), &view(Some(80))), @r"
    warning: /home/me/src/private: permission denied
    warning: ~/src/lib: worktrees/\u{1b}[31m is unreadable
    ");
}

#[test]
fn names_can_not_drive_the_terminal() {
    let keep = |name: &[u8]| Row {
        reasons: vec![Reason::new(Code::NotLanded, "2 commits")],
        ..row(name, VerdictKind::Keep)
    };
    let names: [&[u8]; 6] =
        [b"new\nline", b"\x1b[2Jclear", "\u{202e}rtl".as_bytes(), "שלום".as_bytes(), b"raw\xff", b" blank "];
    let text = render(&plan(vec![clone("/srv/a\nb", names.map(keep).into())]), &view(Some(100)));
    assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{text:?}");
    insta::assert_snapshot!(text);
}

#[test]
fn long_names_are_wrapped_and_not_cut() {
    let long = "a-very-long-worktree-name-that-some-agent-made-up-20240101-120000";
    let kept = Row {
        reasons: vec![Reason::new(Code::Dirty, "1 untracked: notes.txt")],
        ..row(long.as_bytes(), VerdictKind::Keep)
    };
    let text =
        render(&plan(vec![clone("/srv/app", vec![kept, row(b"b", VerdictKind::Reclaim)])]), &view(Some(80)));
    assert!(text.lines().take_while(|l| *l != "Next:").all(|l| l.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn without_worktrees_it_says_so() {
    let text = |clones| render(&plan(clones), &view(Some(80)));
    let own = || clone("/home/me/src/app", vec![]);
    assert_eq!(text(vec![]), "No clones found.\n");
    assert_eq!(text(vec![own()]), "No worktrees in ~/src/app besides its own.\n");
    assert_eq!(text(vec![own(), own()]), "No worktrees in 2 clones besides their own.\n");
    let mut here = view(None);
    here.again.roots.clear();
    assert!(render(&plan(vec![]), &here).contains("`treesweep plan DIR`"));
}

#[test]
fn the_question_says_what_will_happen() {
    let ask = |reclaim, forget, bytes| question(&Totals { reclaim, forget, bytes, ..Totals::default() });
    assert_eq!(ask(5, 2, 12_000_000_000).unwrap(), "Reclaim 5 worktrees (12 GB) and forget 2 registrations?");
    assert_eq!(ask(1, 0, 0).unwrap(), "Reclaim 1 worktree (0 B)?");
    assert_eq!(ask(0, 1, 0).unwrap(), "Forget 1 registration?");
    assert_eq!(ask(0, 0, 0), None);
}

#[test]
fn hints_name_the_clone_where_a_name_is_not_enough() {
    let stale = || Row { class: Some(Class::Stale), ..row(b"old", VerdictKind::Offer) };
    let text =
        render(&plan(vec![clone("/srv/a", vec![stale()]), clone("/srv/b", vec![stale()])]), &view(None));
    assert!(text.contains("treesweep prune --stale=old /srv/a  #"), "{text}");
}

#[test]
fn a_thousand_rows_are_quick_and_whole() {
    let rows: Vec<_> = (0..1_000).map(|n| row(format!("w{n}").as_bytes(), VerdictKind::Keep)).collect();
    let started = std::time::Instant::now();
    let text = render(&plan(vec![clone("/srv/app", rows)]), &view(Some(80)));
    assert_eq!(text.lines().filter(|l| l.starts_with("  keep ")).count(), 1_000);
    assert!(started.elapsed() < std::time::Duration::from_secs(5), "{:?}", started.elapsed());
}

proptest::proptest! {
    #[test]
    fn whatever_the_names_and_the_width_each_row_is_one_row(
        names in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 1..80), 1..8),
        words in ".{0,200}",
        width in 40usize..200,
    ) {
        let kept = |name: &Vec<u8>| Row {
            reasons: vec![Reason::new(Code::Dirty, words.clone())],
            ..row(name, VerdictKind::Keep)
        };
        let rows: Vec<_> = names.iter().map(kept).collect();
        for width in [Some(width), None] {
            let text = render(&plan(vec![clone("/srv/app", rows.clone())]), &view(width));
            proptest::prop_assert_eq!(text.lines().filter(|l| l.starts_with("  keep ")).count(), rows.len());
            proptest::prop_assert!(!text.chars().any(|c| c != '\n' && c.is_control()), "{:?}", text);
        }
    }
}

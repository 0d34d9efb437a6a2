//! What became of each candidate, for a person.

use super::text::{Field, count, indented, listed, size};
use super::{Style, View};
use crate::plan::{BranchResult, OutcomeRow, ResultKind};
use crate::vantage::paths::escape;

/// One entry for each candidate, and the sum. `quiet` leaves out what was neither done nor failed, and the sum.
pub fn render(rows: &[OutcomeRow], quiet: bool, view: &View) -> String {
    let told: Vec<_> = rows.iter().filter(|row| !quiet || tells_when_quiet(row.result)).collect();
    let width = told.iter().map(|row| name(row).chars().count()).max().unwrap_or(0);
    let mut out: String = told.iter().map(|row| entry(row, width, view)).collect();
    if !quiet {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&sum(rows, &view.style));
    }
    out
}

fn tells_when_quiet(result: ResultKind) -> bool {
    match result {
        ResultKind::Removed | ResultKind::Forgotten | ResultKind::Failed => true,
        ResultKind::Skipped | ResultKind::Deferred => false,
    }
}

pub(super) fn word(result: ResultKind) -> &'static str {
    match result {
        ResultKind::Removed => "removed",
        ResultKind::Forgotten => "forgotten",
        ResultKind::Skipped => "skipped",
        ResultKind::Deferred => "deferred",
        ResultKind::Failed => "failed",
    }
}

fn painted(result: ResultKind, text: &str, style: &Style) -> String {
    match result {
        ResultKind::Removed | ResultKind::Forgotten => style.good(text),
        ResultKind::Skipped | ResultKind::Deferred => style.asking(text),
        ResultKind::Failed => style.bad(text),
    }
}

fn name(row: &OutcomeRow) -> String {
    match row.name.shown() {
        none if none.is_empty() => row.path.shown(),
        name => name,
    }
}

/// Where the second lines start, below the name.
const UNDER: usize = 11;

fn entry(row: &OutcomeRow, width: usize, view: &View) -> String {
    let mut parts = Vec::new();
    if row.result == ResultKind::Removed {
        parts.push(size(row.bytes));
    }
    let (branch, why_kept) = branch(row);
    parts.extend(branch.map(str::to_owned));
    let name = name(row);
    let taken = UNDER + width + "  ".len() + parts.join(", ").chars().count();
    let fits = |why: &String| view.style.width.is_none_or(|w| taken + ": ".len() + why.chars().count() <= w);
    let (beside, below) =
        if why_kept.as_ref().is_none_or(fits) { (why_kept, None) } else { (None, why_kept) };
    if let (Some(why), Some(last)) = (beside, parts.last_mut()) {
        last.push_str(&format!(": {why}"));
    }
    let pad = if parts.is_empty() { 0 } else { width.saturating_sub(name.chars().count()) };
    let rest = if parts.is_empty() { String::new() } else { format!("{:pad$}  {}", "", parts.join(", ")) };
    let word = painted(row.result, &format!("{:9}", word(row.result)), &view.style);
    let mut out = format!("{word}  {name}{rest}\n");
    let failed = row.result == ResultKind::Failed;
    let deferred = row.result == ResultKind::Deferred;
    // The detail of a reason is often the note itself.
    let said = |note: &&String| row.reason.as_ref().is_some_and(|r| r.detail.contains(note.as_str()));
    let details = [
        ("", below),
        ("", row.reason.as_ref().map(ToString::to_string)),
        ("", row.note.as_ref().filter(|note| !said(note)).cloned()),
        ("", deferred.then(|| "the next run finishes it".to_owned())),
        ("path: ", failed.then(|| row.path.shown()).filter(|p| !p.is_empty())),
        ("observed: ", row.observed.clone()),
        ("retry: ", row.retry.clone()),
    ];
    for (label, text) in details {
        let Some(text) = text else { continue };
        let text = escape(format!("{label}{text}").as_bytes());
        // A command has to stay on one line to be copied.
        match label {
            "retry: " => out.push_str(&format!("{:UNDER$}{text}\n", "")),
            _ => out.push_str(&indented(&text, UNDER, &view.style)),
        }
    }
    out
}

/// What became of the branch, and why it was kept.
fn branch(row: &OutcomeRow) -> (Option<&'static str>, Option<String>) {
    let why = row.branch_detail.as_deref().map(|d| escape(d.as_bytes()));
    match row.branch {
        BranchResult::Deleted => (Some("branch deleted"), None),
        BranchResult::Kept => (Some("branch kept"), why),
        BranchResult::None => (None, None),
    }
}

/// `Removed 2 worktrees (1.2 GB) and forgot 1 registration. 1 skipped, 1 failed.`
fn sum(rows: &[OutcomeRow], style: &Style) -> String {
    let number = |kind| rows.iter().filter(|row| row.result == kind).count() as u64;
    let (removed, forgotten) = (number(ResultKind::Removed), number(ResultKind::Forgotten));
    let freed: u64 = rows.iter().map(|row| row.bytes).sum();
    let mut done = Vec::new();
    if removed > 0 {
        done.push(format!(
            "removed {} ({})",
            style.good(count(removed, "worktree")),
            style.bold(size(freed))
        ));
    }
    if forgotten > 0 {
        done.push(format!("forgot {}", style.good(count(forgotten, "registration"))));
    }
    let mut out = match done.is_empty() {
        true => "Nothing was removed.".to_owned(),
        false => capital(&listed(&done)) + ".",
    };
    let others: Vec<_> = [ResultKind::Skipped, ResultKind::Deferred, ResultKind::Failed]
        .into_iter()
        .filter(|kind| number(*kind) > 0)
        .map(|kind| painted(kind, &format!("{} {}", number(kind), word(kind)), style))
        .collect();
    if !others.is_empty() {
        out.push_str(&format!(" {}.", others.join(", ")));
    }
    out.push('\n');
    out
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::reason::{Code, Reason};
    use crate::plan::{LocalPlace, Name};
    use crate::report::sample::view;
    use bstr::ByteSlice;

    fn outcome(name: &str, result: ResultKind, branch: BranchResult) -> OutcomeRow {
        OutcomeRow {
            name: Name::of(Some(name.into())),
            path: LocalPlace::of(Some(format!("/src/{name}").as_bytes().as_bstr())),
            result,
            branch,
            branch_detail: None,
            bytes: if result == ResultKind::Removed { 1_200_000_000 } else { 0 },
            reason: None,
            note: None,
            observed: None,
            retry: None,
            record: None,
        }
    }

    fn usual() -> Vec<OutcomeRow> {
        use BranchResult::{Deleted, Kept, None as NoBranch};
        vec![
            outcome("fix-login", ResultKind::Removed, Deleted),
            OutcomeRow {
                branch_detail: Some("only its content has landed".into()),
                ..outcome("squashed", ResultKind::Removed, Kept)
            },
            outcome("gone", ResultKind::Forgotten, Deleted),
            OutcomeRow {
                reason: Some(Reason::new(Code::Dirty, "1 untracked: notes\n.txt")),
                note: Some("it may not go any more".into()),
                ..outcome("spike", ResultKind::Skipped, NoBranch)
            },
            OutcomeRow {
                branch_detail: Some("wt/chosen: you chose its checkout, not its branch".into()),
                ..outcome("chosen", ResultKind::Removed, Kept)
            },
            OutcomeRow {
                note: Some("the time was up".into()),
                ..outcome("big", ResultKind::Deferred, NoBranch)
            },
            OutcomeRow {
                note: Some("a late writer".into()),
                observed: Some(
                    "the path is there again: /src/late/build/log; the registration is there; the branch is unchanged"
                        .into(),
                ),
                retry: Some("treesweep drop --force --yes late --root '/home/me/a rather long path/src/app'".into()),
                ..outcome("late", ResultKind::Failed, Kept)
            },
        ]
    }

    #[test]
    fn each_outcome_and_the_sum() {
        insta::assert_snapshot!(render(&usual(), false, &view(Some(80))));
    }

    #[test]
    fn quiet_tells_what_was_done_and_what_failed() {
        insta::assert_snapshot!(render(&usual(), true, &view(None)));
        assert_eq!(render(&[], true, &view(None)), "");
    }

    #[test]
    fn nothing_done_is_said_so() {
        assert_eq!(render(&[], false, &view(None)), "Nothing was removed.\n");
        let failed = [outcome("x", ResultKind::Failed, BranchResult::None)];
        assert!(render(&failed, false, &view(None)).ends_with("Nothing was removed. 1 failed.\n"));
    }

    #[test]
    fn colours_change_no_column() {
        let mut colored = view(Some(80));
        colored.style.color = true;
        let text = render(&usual(), false, &colored);
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), render(&usual(), false, &view(Some(80))));
    }
}

//! Everything that was asked of one worktree, and what was answered.

use super::plan::{branch, class_word, name, painted, verdict_word};
use super::text::{Field, age, heading, indented, size, wrap};
use super::{View, reasons};
use crate::plan::{ClonePlan, Plan, Row};
use crate::vantage::paths::escape;

/// Each worktree of the plan that has the name `name`, with every question; `None` if there is none.
pub fn render(plan: &Plan, name: &[u8], view: &View) -> Option<String> {
    let rows = plan.clones.iter().flat_map(|c| c.worktrees.iter().map(move |row| (c, row)));
    let named: Vec<_> = rows
        .filter(|(_, row)| row.name.raw().as_deref() == Some(name))
        .map(|(c, row)| one(c, row, view))
        .collect();
    (!named.is_empty()).then(|| named.join("\n"))
}

const INDENT: usize = 2;
/// Width of the column of facts, as `recorded path`.
const LABEL: usize = 15;

fn one(clone: &ClonePlan, row: &Row, view: &View) -> String {
    let title = view.style.bold(name(row));
    let place = view.style.dim(format!("in {}", heading(clone, view.home.as_deref())));
    let mut out = format!("{title}  {place}\n");
    for (label, value) in facts(row, view) {
        out.push_str(&fact(label, &value, view));
    }
    for reason in &row.reasons {
        out.push_str(&format!("\n{:INDENT$}{}\n", "", view.style.asking(reason.code)));
        if !reason.detail.is_empty() {
            out.push_str(&plain(&reason.detail, view));
        }
        let meaning = reasons::of(reason.code);
        out.push_str(&indented(&format!("{} {}", meaning.means, meaning.act), INDENT * 2, &view.style));
    }
    if !row.explanation.is_empty() {
        out.push_str(&questions(row, view));
    }
    out
}

/// What is known of it, as far as anything is.
fn facts(row: &Row, view: &View) -> Vec<(&'static str, String)> {
    let class = row.class.map(|class| format!(" ({})", class_word(class))).unwrap_or_default();
    let verdict = format!("{}{class}", painted(verdict_word(row.verdict), &view.style));
    let head = row.head.as_deref().map(|h| format!(" at {}", short(h))).unwrap_or_default();
    let translation = match (&row.translation, &row.translation_evidence) {
        (Some(kind), Some(evidence)) => {
            format!("{}: {}", escape(kind.as_bytes()), escape(evidence.as_bytes()))
        }
        (Some(kind), None) => escape(kind.as_bytes()),
        _ => String::new(),
    };
    let owned = if row.owned { "yes" } else { "no" };
    let all = [
        ("verdict", verdict),
        ("branch", format!("{}{head}", branch(row))),
        ("recorded path", row.recorded_path.shown()),
        ("path here", row.path.shown()),
        ("translated by", translation),
        ("owned", format!("{owned}: {}", escape(row.ownership.as_bytes()))),
        ("frees", row.bytes.map(size).unwrap_or_default()),
        (
            "last activity",
            row.last_activity.map(|t| format!("{t:.0}, {}", age(t, view.now))).unwrap_or_default(),
        ),
    ];
    all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// An object name in the length that git shows.
fn short(id: &str) -> &str {
    id.get(..10).unwrap_or(id)
}

fn fact(label: &str, value: &str, view: &View) -> String {
    let width = view.style.width.map(|w| w.saturating_sub(INDENT + LABEL));
    // A painted verdict is one short word: it need not be measured.
    let lines = if value.starts_with('\x1b') { vec![value.to_owned()] } else { wrap(value, width) };
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let label = if number == 0 { label } else { "" };
        out.push_str(&format!("{:INDENT$}{}{line}\n", "", view.style.dim(format!("{label:LABEL$}"))));
    }
    out
}

fn plain(text: &str, view: &View) -> String {
    let indent = INDENT * 2;
    let lines = wrap(&escape(text.as_bytes()), view.style.width.map(|w| w.saturating_sub(indent)));
    lines.iter().map(|l| format!("{:indent$}{l}\n", "")).collect()
}

/// Each question in the order asked, its answer below.
fn questions(row: &Row, view: &View) -> String {
    let mut out = format!("\n{:INDENT$}{}\n", "", view.style.bold("Questions, in the order asked"));
    for explained in &row.explanation {
        out.push_str(&format!("{:INDENT$}{}\n", "", explained.question));
        out.push_str(&plain(&explained.answer, view));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::reason::{Code, Reason};
    use crate::plan::{Explained, VerdictKind};
    use crate::report::sample::{clone, plan, row, view};

    fn asked() -> Plan {
        let explained = |question, answer: &str| Explained { question, answer: answer.into() };
        let kept = Row {
            reasons: vec![Reason::new(Code::Dirty, "2 modified: src/a.rs, src/b.rs")],
            explanation: vec![
                explained("Is it locked?", "no"),
                explained(
                    "Does a running container hold it?",
                    "no: container dev (3f2a) mounts /home/me/src/app; 12 of its 12 processes were looked into",
                ),
                explained("Is everything committed?", "no: 2 modified\u{1b}[31m"),
            ],
            ..row(b"fix", VerdictKind::Keep)
        };
        plan(vec![clone("/home/me/src/app", vec![kept, row(b"other", VerdictKind::Keep)])])
    }

    #[test]
    fn every_question_is_shown_with_its_answer() {
        let text = render(&asked(), b"fix", &view(Some(80))).unwrap();
        assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn colours_change_no_column() {
        let mut colored = view(Some(80));
        colored.style.color = true;
        let text = render(&asked(), b"fix", &colored).unwrap();
        let bare = render(&asked(), b"fix", &view(Some(80))).unwrap();
        assert_eq!(anstream::adapter::strip_str(&text).to_string(), bare);
    }

    #[test]
    fn an_unknown_name_has_no_answer() {
        assert_eq!(render(&asked(), b"fi", &view(None)), None);
    }
}

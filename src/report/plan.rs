//! The plan for a person: each worktree with its verdict and why; then first what awaits the person, then what `prune`
//! would do; then what to type.

use super::table::{self, Cells};
use super::text::{Field, age, count, heading, listed, size, wrap};
use super::{Style, View};
use crate::plan::{Class, ClonePlan, Plan, Row, Totals, VerdictKind};
use crate::vantage::paths::escape;

/// The whole plan, without its [`warnings`].
pub fn render(plan: &Plan, view: &View) -> String {
    let Some(mut out) = worktrees(plan, view) else { return nothing(plan, view) };
    out.push_str(&awaiting(&plan.totals, view));
    out.push_str(&would(&plan.totals, view));
    out.push_str(&kept(&plan.totals, view));
    let hints = super::hints::render(plan, view);
    if !hints.is_empty() {
        out.push('\n');
        out.push_str(&hints);
    }
    out
}

/// The plan of a run that goes on to act: what it will do it says itself.
pub fn before_acting(plan: &Plan, view: &View) -> String {
    let Some(mut out) = worktrees(plan, view) else { return nothing(plan, view) };
    let sums = awaiting(&plan.totals, view) + &kept(&plan.totals, view);
    if !sums.is_empty() {
        out.push_str(&(sums + "\n"));
    }
    out
}

/// Every worktree, clone by clone, and an empty line; `None` if there is none.
fn worktrees(plan: &Plan, view: &View) -> Option<String> {
    let clones: Vec<_> = plan.clones.iter().map(|clone| (clone, sorted(clone))).collect();
    let shown: Vec<_> = clones.iter().filter(|(_, rows)| !rows.is_empty()).collect();
    if shown.is_empty() {
        return None;
    }
    let rows = shown.iter().flat_map(|(_, rows)| rows.iter().map(|row| cells(row, view))).collect::<Vec<_>>();
    let blocks = table::blocks(&rows, &view.style, |verdict| painted(verdict, &view.style));
    let mut out = blocks.header;
    let mut next = blocks.rows.iter();
    for (clone, rows) in shown {
        out.push('\n');
        out.push_str(&title(clone, view));
        out.extend(next.by_ref().take(rows.len()).map(String::as_str));
    }
    out.push('\n');
    Some(out)
}

/// What a person should know besides, one line each, for standard error.
pub fn warnings(plan: &Plan, view: &View) -> String {
    let general = plan.warnings.iter().map(|w| (None, w));
    let of_clones = plan.clones.iter().flat_map(|c| c.warnings.iter().map(move |w| (Some(c), w)));
    let line = |(clone, text): (Option<&ClonePlan>, &String)| {
        let place = clone.map(|c| format!("{}: ", heading(c, view.home.as_deref()))).unwrap_or_default();
        let text = format!("{place}{}", escape(text.as_bytes()));
        let under = "warning: ".len();
        let lines = wrap(&text, view.style.width.map(|w| w.saturating_sub(under)));
        format!("{} {}\n", view.style.asking("warning:"), lines.join(&format!("\n{:under$}", "")))
    };
    general.chain(of_clones).map(line).collect()
}

/// The one question before `prune` acts; `None` if it has nothing to do.
pub fn question(totals: &Totals) -> Option<String> {
    automatic(totals, &Style::default(), ["Reclaim", "forget"]).map(|what| format!("{what}?"))
}

/// What is done first, what is kept last; by name within.
fn sorted(clone: &ClonePlan) -> Vec<&Row> {
    let mut rows: Vec<_> = clone.worktrees.iter().collect();
    rows.sort_by_cached_key(|row| (rank(row.verdict), row.name.raw(), row.path.raw()));
    rows
}

fn rank(verdict: VerdictKind) -> u8 {
    match verdict {
        VerdictKind::Reclaim => 0,
        VerdictKind::Forget => 1,
        VerdictKind::Offer => 2,
        VerdictKind::Keep => 3,
    }
}

fn title(clone: &ClonePlan, view: &View) -> String {
    let path = view.style.bold(heading(clone, view.home.as_deref()));
    let path = view.style.link(&clone.path.raw().unwrap_or_default(), path);
    let trunk = match &clone.trunk {
        Some(trunk) => format!("trunk {}", escape(trunk.as_bytes())),
        None => "trunk unknown".to_owned(),
    };
    format!("{path}  {}\n", view.style.dim(trunk))
}

fn cells(row: &Row, view: &View) -> Cells {
    Cells {
        verdict: verdict_word(row.verdict).to_owned(),
        name: name(row),
        branch: branch(row),
        state: state(row),
        size: row.bytes.map(size).unwrap_or_default(),
        active: row.last_activity.map(|then| age(then, view.now)).unwrap_or_default(),
        why: why(row),
    }
}

/// The word for a verdict.
pub(super) fn verdict_word(verdict: VerdictKind) -> &'static str {
    match verdict {
        VerdictKind::Reclaim => "reclaim",
        VerdictKind::Forget => "forget",
        VerdictKind::Offer => "offer",
        VerdictKind::Keep => "keep",
    }
}

pub(super) fn painted(verdict: &str, style: &Style) -> String {
    match verdict {
        "reclaim" | "forget" => style.good(verdict),
        "offer" => style.asking(verdict),
        _ => verdict.to_owned(),
    }
}

/// The entry's name, or what comes nearest to one.
pub(super) fn name(row: &Row) -> String {
    let named = [row.name.shown(), row.path.shown(), row.recorded_path.shown()];
    named.into_iter().find(|n| !n.is_empty()).unwrap_or_else(|| "?".to_owned())
}

pub(super) fn branch(row: &Row) -> String {
    match row.branch.shown() {
        none if none.is_empty() && row.head.is_some() => "(detached)".to_owned(),
        branch => branch,
    }
}

/// The state in a word or two: for what is kept the code that decides.
fn state(row: &Row) -> String {
    match (row.verdict, row.class) {
        (_, Some(class)) => class_word(class).to_owned(),
        (VerdictKind::Reclaim, None) => "landed".to_owned(),
        (VerdictKind::Forget, None) => "gone".to_owned(),
        _ => row.reasons.first().map(|r| r.code.to_string()).unwrap_or_default(),
    }
}

/// The word for a class.
pub(super) fn class_word(class: Class) -> &'static str {
    match class {
        Class::Contained => "contained",
        Class::Stale => "stale",
        Class::Orphan => "orphan",
        Class::Unowned => "unowned",
        Class::Resume => "resume",
    }
}

/// The first reason with its detail, the others by their codes.
fn why(row: &Row) -> String {
    if row.verdict == VerdictKind::Offer && row.class == Some(Class::Unowned) {
        // The other reason is only that it is nobody's.
        let safe = if row.pickable { "landed, clean and idle; " } else { "" };
        return format!("{safe}{}", escape(row.ownership.as_bytes()));
    }
    let Some((first, others)) = row.reasons.split_first() else { return String::new() };
    let known = state(row) == first.code.as_str();
    let mut parts = Vec::new();
    match known {
        true if first.detail.is_empty() => {}
        true => parts.push(first.detail.clone()),
        false => parts.push(first.to_string()),
    }
    if !others.is_empty() {
        let mut codes: Vec<_> = others.iter().map(|r| r.code).filter(|code| *code != first.code).collect();
        codes.dedup();
        let codes: Vec<_> = codes.iter().map(ToString::to_string).collect();
        if !codes.is_empty() {
            parts.push(format!("also {}", codes.join(", ")));
        }
    }
    escape(parts.join("; ").as_bytes())
}

/// `2 worktrees, 41 GB await your choice.`
fn awaiting(totals: &Totals, view: &View) -> String {
    if totals.offer == 0 {
        return String::new();
    }
    let number = view.style.asking(count(totals.offer, "worktree"));
    let bytes = match totals.offer_bytes {
        0 => String::new(),
        bytes => format!(", {}", view.style.bold(size(bytes))),
    };
    let verb = if totals.offer == 1 { "awaits" } else { "await" };
    format!("{number}{bytes} {verb} your choice.\n")
}

fn would(totals: &Totals, view: &View) -> String {
    match automatic(totals, &view.style, ["reclaim", "forget"]) {
        Some(what) => format!("`treesweep prune` would {what}.\n"),
        None => "`treesweep prune` would remove nothing.\n".to_owned(),
    }
}

fn kept(totals: &Totals, view: &View) -> String {
    if totals.keep == 0 {
        return String::new();
    }
    let verb = if totals.keep == 1 { "is" } else { "are" };
    format!("{}\n", view.style.dim(format!("{} {verb} kept.", count(totals.keep, "worktree"))))
}

/// `reclaim 5 worktrees (12 GB) and forget 2 registrations`
fn automatic(totals: &Totals, style: &Style, [reclaim, forget]: [&str; 2]) -> Option<String> {
    let mut parts = Vec::new();
    if totals.reclaim > 0 {
        let number = style.good(count(totals.reclaim, "worktree"));
        parts.push(format!("{reclaim} {number} ({})", style.bold(size(totals.bytes))));
    }
    if totals.forget > 0 {
        let forget = if parts.is_empty() && reclaim == "Reclaim" { "Forget" } else { forget };
        parts.push(format!("{forget} {}", style.good(count(totals.forget, "registration"))));
    }
    (!parts.is_empty()).then(|| listed(&parts))
}

fn nothing(plan: &Plan, view: &View) -> String {
    match plan.clones.as_slice() {
        [] if view.again.roots.is_empty() => {
            "No clone here. Name a directory to look in: `treesweep plan DIR`.\n".to_owned()
        }
        [] => "No clones found.\n".to_owned(),
        [one] => format!("No worktrees in {} besides its own.\n", heading(one, view.home.as_deref())),
        many => format!("No worktrees in {} besides their own.\n", count(many.len() as u64, "clone")),
    }
}

#[cfg(test)]
mod tests;

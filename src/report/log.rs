//! Retirement records, for a person and for a program.

use bstr::ByteSlice;
use jiff::Timestamp;
use serde::Serialize;

use super::View;
use super::text::{Field, age, count, indented, place, size};
use crate::git::refs::short;
use crate::plan::{Branch, BranchResult, CommonDir, LocalPlace, Name, Path, Recorded};
use crate::sweep::anchors;
use crate::sweep::record::{Acted, AnsweredBy, Hex, Record};
use crate::vantage::paths::escape;

pub use crate::sweep::outcome::BranchOutcome;

/// What `log --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Log {
    pub schema: u32,
    pub clones: Vec<CloneLog>,
    /// What concerns no single clone.
    pub warnings: Vec<String>,
}

/// The records of one clone.
#[derive(Clone, Debug, Serialize)]
pub struct CloneLog {
    #[serde(flatten)]
    pub path: Path,
    #[serde(flatten)]
    pub common_dir: CommonDir,
    /// Newest first.
    pub records: Vec<RecordRow>,
    /// With `--expire`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expired: Option<ExpiredRow>,
    pub warnings: Vec<String>,
}

/// What `--expire` did in one clone.
#[derive(Clone, Debug, Serialize)]
pub struct ExpiredRow {
    /// Ids of the records that are gone.
    pub dropped: Vec<String>,
    /// Refs that went with them.
    pub refs: usize,
    /// What should have gone and stays, with the reason.
    pub failed: Vec<StayRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct StayRow {
    pub id: String,
    pub why: String,
}

/// One retirement.
#[derive(Clone, Debug, Serialize)]
pub struct RecordRow {
    pub id: String,
    #[serde(flatten)]
    pub name: Name,
    pub act: Acted,
    pub started: Timestamp,
    pub completed: Option<Timestamp>,
    /// It did not come to its end.
    pub interrupted: bool,
    /// The next `prune` finishes it.
    pub pending: bool,
    #[serde(flatten)]
    pub recorded_path: Recorded,
    #[serde(flatten)]
    pub path: LocalPlace,
    #[serde(flatten)]
    pub branch: Branch,
    /// What became of the branch; null where that is not known.
    pub branch_result: Option<BranchResult>,
    pub branch_detail: Option<String>,
    /// What HEAD was.
    pub tip: Option<Hex>,
    /// The ref that had its work, where that decided.
    pub trunk: Option<String>,
    pub authority: AnsweredBy,
    /// Commits that are kept by refs of ours.
    pub anchors: Vec<AnchorRow>,
    pub files: u64,
    /// Allocated bytes that were freed.
    pub bytes: u64,
}

/// A ref that holds a commit.
#[derive(Clone, Debug, Serialize)]
pub struct AnchorRow {
    #[serde(rename = "ref")]
    pub name: String,
    pub commit: Hex,
}

impl AnchorRow {
    /// Those of `record`.
    pub fn all(record: &Record) -> Vec<Self> {
        let named = |(n, commit): (usize, &Hex)| Self {
            name: anchors::name(&record.id, n).to_string(),
            commit: commit.clone(),
        };
        record.anchors.iter().enumerate().map(named).collect()
    }
}

impl RecordRow {
    /// `pending`: a journal of ours still has it.
    pub fn of(record: &Record, pending: bool) -> Self {
        let done = record.completed.as_ref();
        let (branch_result, branch_detail) = match done.and_then(|c| c.branch.as_ref()) {
            Some(BranchOutcome::Deleted { .. }) => (Some(BranchResult::Deleted), None),
            Some(BranchOutcome::Kept { why, .. }) => (Some(BranchResult::Kept), Some(why.clone())),
            Some(BranchOutcome::None) => (Some(BranchResult::None), None),
            None => (None, None),
        };
        let bytes = |b: &Option<crate::sweep::bytes::Bytes>| b.as_ref().map(|b| b.0.clone());
        Self {
            id: record.id.to_string(),
            name: Name::of(Some(record.name.0.as_bstr())),
            act: record.act,
            started: record.started,
            completed: done.map(|c| c.time),
            interrupted: done.is_none(),
            pending,
            recorded_path: Recorded::of(bytes(&record.recorded_path).as_ref().map(|b| b.as_bstr())),
            path: LocalPlace::of(bytes(&record.path).as_ref().map(|b| b.as_bstr())),
            branch: Branch::of(bytes(&record.branch).as_ref().map(|b| short(b.as_bstr()))),
            branch_result,
            branch_detail,
            tip: record.tip.clone(),
            trunk: bytes(&record.trunk).map(|t| t.to_str_lossy().into_owned()),
            authority: record.authority.clone(),
            anchors: AnchorRow::all(record),
            files: done.map_or(0, |c| c.removed.files),
            bytes: done.map_or(0, |c| c.removed.freed),
        }
    }
}

const INDENT: usize = 2;

/// The records of all clones that have some, and what can be done with them.
pub fn render(log: &Log, view: &View) -> String {
    let shown: Vec<&CloneLog> = log.clones.iter().filter(|c| !c.records.is_empty()).collect();
    let rows = || shown.iter().flat_map(|c| &c.records);
    let Some(width) = rows().map(|r| r.name.shown().chars().count()).max() else {
        return "Nothing has been removed here, as far as is recorded.\n".to_owned();
    };
    let mut out = String::new();
    for clone in &shown {
        let path = clone.path.raw().or_else(|| clone.common_dir.raw()).unwrap_or_default();
        out.push_str(&format!("{}\n", view.style.bold(place(&path, view.home.as_deref()))));
        clone.records.iter().for_each(|row| out.push_str(&entry(row, width, view)));
        out.push('\n');
    }
    out.push_str(&format!("{}.", count(rows().count() as u64, "record")));
    match rows().any(|r| r.pending) {
        true => out.push_str(" `treesweep prune` finishes what was interrupted.\n"),
        false => out.push_str(" `treesweep restore NAME` brings a worktree back.\n"),
    }
    out
}

fn entry(row: &RecordRow, width: usize, view: &View) -> String {
    let name = row.name.shown();
    let pad = width.saturating_sub(name.chars().count());
    let when = age(row.completed.unwrap_or(row.started), view.now);
    let mut out = format!("{:INDENT$}{name}{:pad$}  {when:14}  {}\n", "", "", what(row, view));
    let mut details = vec![row.id.clone(), who(&row.authority)];
    if let Some(path) = row.path.raw().or_else(|| row.recorded_path.raw()) {
        details.push(format!("it was {}", place(&path, view.home.as_deref())));
    }
    if let Some(why) = row.branch_detail.as_ref() {
        details.push(format!("its branch is kept: {}", escape(why.as_bytes())));
    }
    details.extend(row.anchors.iter().map(|a| format!("{} holds {}", a.name, hex(&a.commit))));
    details.iter().for_each(|text| out.push_str(&indented(text, INDENT * 2, &view.style)));
    out
}

/// `removed 1.2 GB, branch wt/x deleted at 1a2b3c4d5e6f`
fn what(row: &RecordRow, view: &View) -> String {
    let mut parts = Vec::new();
    parts.push(match (row.interrupted, row.act) {
        (true, _) => view.style.asking("interrupted"),
        (false, Acted::Forget) => "forgotten".to_owned(),
        (false, Acted::Remove | Acted::RemoveOrphan) => format!("removed {}", size(row.bytes)),
    });
    if row.act == Acted::RemoveOrphan {
        parts.push("an orphan".to_owned());
    }
    let at = row.tip.as_ref().map(|tip| format!(" at {}", hex(tip))).unwrap_or_default();
    let branch = row.branch.shown();
    match (branch.is_empty(), row.branch_result) {
        (true, _) if at.is_empty() => {}
        (true, _) => parts.push(format!("detached{at}")),
        (false, Some(BranchResult::Deleted)) => parts.push(format!("branch {branch} deleted{at}")),
        (false, Some(BranchResult::Kept)) => parts.push(format!("branch {branch} kept{at}")),
        (false, _) => parts.push(format!("branch {branch}{at}")),
    }
    parts.join(", ")
}

fn who(authority: &AnsweredBy) -> String {
    match authority {
        AnsweredBy::Owned => "as owned and landed".to_owned(),
        AnsweredBy::Person { overridden } if overridden.is_empty() => "by a person's choice".to_owned(),
        AnsweredBy::Person { overridden } => {
            let all: Vec<String> = overridden.iter().map(|r| escape(r.to_string().as_bytes())).collect();
            format!("by a person, who overrode {}", all.join("; "))
        }
    }
}

fn hex(commit: &Hex) -> String {
    commit.id().map_or_else(|| "?".to_owned(), |id| id.to_hex_with_len(12).to_string())
}

/// What `--expire` did.
pub fn render_expired(log: &Log, keep: std::time::Duration, quiet: bool, view: &View) -> String {
    let all = || log.clones.iter().filter_map(|c| c.expired.as_ref());
    let (dropped, refs) =
        (all().map(|e| e.dropped.len()).sum::<usize>(), all().map(|e| e.refs).sum::<usize>());
    let days = keep.as_secs() / 86_400;
    let older = if days > 0 { format!("older than {}", count(days, "day")) } else { "of any age".to_owned() };
    let mut out = String::new();
    match dropped {
        0 if quiet => {}
        0 => out.push_str(&format!("No record is {older}.\n")),
        n => {
            let records = view.style.good(count(n as u64, "record"));
            let with = if refs > 0 { format!(", and {}", count(refs as u64, "ref")) } else { String::new() };
            out.push_str(&format!("Dropped {records} {older}{with}.\n"));
        }
    }
    for stay in all().flat_map(|e| &e.failed) {
        let why = escape(stay.why.as_bytes());
        out.push_str(&format!("{}  {}: {why}\n", view.style.bad("failed"), stay.id));
    }
    out
}

#[cfg(test)]
mod tests;

//! What was registered again, or the branches to choose from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use comfy_table::{CellAlignment, Table, presets};
use jiff::Timestamp;
use serde::Serialize;

use super::View;
use super::shell::{CommandLine, quote};
use super::text::{Field, age, count, indented, listed, place};
use crate::git::refs::short;
use crate::git::registration::Head;
use crate::lifecycle::links::Form;
use crate::lifecycle::rescue::{Rescued, Wanted};
use crate::lifecycle::snapshot::Snapshot;
use crate::plan::{Branch, LocalPlace, Name, Recorded, SCHEMA};
use crate::survey::candidates::{Candidate, Candidates};
use crate::sweep::record::Hex;
use crate::vantage::paths::{LocalPath, escape};

/// What went with the entry.
const LOST: [&str; 6] = [
    "what was staged, and not committed (the files are there)",
    "refs of this worktree alone, and the reflog of its HEAD",
    "operations that were under way",
    "configuration of its own, with sparse checkout",
    "the repositories of its submodules",
    "its enrolment (`treesweep setup` enrols it again)",
];

/// So many branches are shown to a person.
const SHOWN: usize = 10;

/// What `rescue --json` prints: one of the two, or none if it is registered already.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub schema: u32,
    pub rescued: Option<RescuedRow>,
    pub candidates: Option<CandidatesRow>,
}

/// The document about one worktree.
pub fn rescued(row: RescuedRow) -> Document {
    Document { schema: SCHEMA, rescued: Some(row), candidates: None }
}

/// The document where nothing was to be done.
pub fn nothing() -> Document {
    Document { schema: SCHEMA, rescued: None, candidates: None }
}

/// The document with branches to choose from.
pub fn to_choose(rows: CandidatesRow) -> Document {
    Document { schema: SCHEMA, rescued: None, candidates: Some(rows) }
}

/// One worktree that is registered again.
#[derive(Clone, Debug, Serialize)]
pub struct RescuedRow {
    #[serde(flatten)]
    pub name: Name,
    #[serde(flatten)]
    pub path: LocalPlace,
    #[serde(flatten)]
    pub recorded_path: Recorded,
    /// `here`, `relative` or `as-before`: whose paths its links are in.
    pub links: &'static str,
    #[serde(flatten)]
    pub branch: Branch,
    /// Null if the branch has no commit yet.
    pub head: Option<Hex>,
    /// When `guard` saw its HEAD; null if the branch was named.
    pub snapshot: Option<Timestamp>,
    /// The commit that HEAD was at then.
    pub was: Option<Hex>,
    /// Files of the commit.
    pub files: u64,
    pub submodules: Vec<String>,
    pub lost: [&'static str; 6],
    /// Shows what differs, as typed where its links mean something.
    pub next: String,
}

/// Branches to choose from.
#[derive(Clone, Debug, Serialize)]
pub struct CandidatesRow {
    #[serde(flatten)]
    pub path: LocalPlace,
    /// The nearest first.
    pub branches: Vec<CandidateRow>,
    /// Branches that were not compared.
    pub left_out: u64,
    pub unreadable: Vec<UnreadableRow>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CandidateRow {
    #[serde(flatten)]
    pub branch: Branch,
    pub head: Hex,
    /// Files that are missing, differ, or are neither in the branch nor ignored.
    pub differs: u64,
    /// Why it can't be taken.
    pub in_use: Option<String>,
    /// The command that takes it.
    pub next: Option<String>,
    /// Of the commit, in seconds.
    #[serde(skip)]
    pub time: i64,
}

#[derive(Clone, Debug, Serialize)]
pub struct UnreadableRow {
    #[serde(flatten)]
    pub branch: Branch,
    pub why: String,
}

impl RescuedRow {
    /// `snapshot`: the one that HEAD was taken from.
    pub fn of(wanted: &Wanted, done: &Rescued, snapshot: Option<&Snapshot>) -> Self {
        let branch = match &wanted.head {
            Head::Branch(name) => Some(name),
            Head::Detached(_) => None,
        };
        let (links, at) = match wanted.links.form {
            Form::Here | Form::Lost => ("here", wanted.checkout.path.as_bstr()),
            Form::Relative => ("relative", wanted.checkout.path.as_bstr()),
            Form::AsBefore => ("as-before", wanted.links.checkout.as_bstr()),
        };
        Self {
            name: Name::of(Some(wanted.name.as_bstr())),
            path: LocalPlace::of(Some(wanted.checkout.path.as_bstr())),
            recorded_path: Recorded::of(Some(wanted.links.checkout.as_bstr())),
            links,
            branch: Branch::of(branch.map(|b| short(b.as_bstr()))),
            head: done.commit.map(Into::into),
            snapshot: snapshot.map(|s| s.time),
            was: snapshot.and_then(|s| s.tip.clone()),
            files: done.files,
            submodules: done.submodules.iter().map(|path| escape(path)).collect(),
            lost: LOST,
            next: format!("git -C {} status", quote(OsStr::from_bytes(at))),
        }
    }
}

impl CandidatesRow {
    /// Of the checkout at `path`; `in_use` says why a branch can't be taken, `words` are what else was typed.
    pub fn of(
        path: &LocalPath,
        found: &Candidates,
        in_use: impl Fn(&BString) -> Option<String>,
        again: &CommandLine,
        words: &[OsString],
    ) -> Self {
        let row = |candidate: &Candidate| {
            let name = short(candidate.branch.as_bstr());
            let in_use = in_use(&candidate.branch);
            let next = in_use.is_none().then(|| {
                let own = ["rescue".into(), path.as_path().as_os_str().to_owned(), "--branch".into()];
                let branch = OsStr::from_bytes(name).to_owned();
                again.with_roots(own.into_iter().chain([branch]).chain(words.iter().cloned()))
            });
            CandidateRow {
                branch: Branch::of(Some(name)),
                head: candidate.tip.into(),
                differs: candidate.differs,
                in_use,
                next,
                time: candidate.time,
            }
        };
        let unreadable = found.unreadable.iter().map(|(branch, why)| UnreadableRow {
            branch: Branch::of(Some(short(branch.as_bstr()))),
            why: why.clone(),
        });
        Self {
            path: LocalPlace::of(Some(path.as_bstr())),
            branches: found.rows.iter().map(row).collect(),
            left_out: found.left_out as u64,
            unreadable: unreadable.collect(),
        }
    }
}

/// One sentence, and what a person should know besides.
pub fn render(row: &RescuedRow, quiet: bool, view: &View) -> String {
    let at = row.path.raw().map(|raw| place(&raw, view.home.as_deref())).unwrap_or_default();
    let name = view.style.good(row.name.shown());
    let mut out = format!("Rescued {name} at {at}, {}. No file was changed.\n", head(row));
    if quiet {
        return out;
    }
    let mut note = |text: String| out.push_str(&indented(&text, 2, &view.style));
    if row.links == "as-before" {
        let recorded = row.recorded_path.shown();
        note(format!("It is registered as {recorded}: git works where that path means something."));
    }
    match (row.snapshot, &row.was) {
        (Some(time), Some(was)) if row.head.as_ref() != Some(was) => note(format!(
            "Its HEAD is as guard saw it {}; the branch was at {} then.",
            age(time, view.now),
            hex(was)
        )),
        (Some(time), _) => note(format!("Its HEAD is as guard saw it {}.", age(time, view.now))),
        _ => {}
    }
    note(format!("`{}` shows what differs.", row.next));
    if !row.submodules.is_empty() {
        note(format!(
            "The repositories of its submodules are gone ({}): move their files away, and `git submodule update \
             --init` fetches them. Until then `git status` needs --ignore-submodules=all.",
            listed(&row.submodules)
        ));
    }
    note(format!("What was lost with the registration: {}.", LOST.join("; ")));
    out
}

fn head(row: &RescuedRow) -> String {
    match (&row.head, row.branch.shown()) {
        (Some(head), branch) if branch.is_empty() => format!("detached at {}", hex(head)),
        (Some(head), branch) => format!("on branch {branch} at {}", hex(head)),
        (None, branch) => format!("on branch {branch}, which has no commit yet"),
    }
}

fn hex(commit: &Hex) -> String {
    commit.id().map_or_else(|| "?".to_owned(), |id| id.to_hex_with_len(12).to_string())
}

/// The branches that its files are nearest to, with what to type next.
pub fn render_candidates(rows: &CandidatesRow, view: &View) -> String {
    let at = rows.path.raw().map(|raw| place(&raw, view.home.as_deref())).unwrap_or_default();
    let mut out = format!("Nothing says which branch {at} was on. Its files are nearest to:\n\n");
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["DIFFERS IN", "BRANCH", "AT", "COMMITTED", ""]);
    for row in rows.branches.iter().take(SHOWN) {
        let committed = Timestamp::from_second(row.time).map_or_else(|_| "?".into(), |t| age(t, view.now));
        let in_use = row.in_use.as_ref().map(|why| escape(why.as_bytes())).unwrap_or_default();
        table.add_row([count(row.differs, "file"), row.branch.shown(), hex(&row.head), committed, in_use]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.lines().for_each(|line| out.push_str(&format!("{}\n", line.trim_end())));
    match rows.branches.len().saturating_sub(SHOWN) {
        0 => {}
        1 => out.push_str("\n1 branch more is further away.\n"),
        n => out.push_str(&format!("\n{n} branches more are further away.\n")),
    }
    if rows.left_out > 0 {
        out.push_str(&format!(
            "\nNot compared, as there are too many or the time was up: {}.\n",
            rows.left_out
        ));
    }
    for row in &rows.unreadable {
        out.push_str(&format!("\n{} can't be read: {}\n", row.branch.shown(), escape(row.why.as_bytes())));
    }
    match rows.branches.iter().find_map(|row| row.next.as_ref()) {
        Some(next) => out.push_str(&format!("\nNothing was changed. To take the nearest one:\n  {next}\n")),
        None => {
            out.push_str("\nNothing was changed. No branch is free: make one, and name it with --branch.\n")
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::view;
    use gix::ObjectId;

    #[test]
    fn the_branches_to_choose_from() {
        let tip = ObjectId::from_bytes_or_panic(&[0x1a; 20]);
        let row = |name: &str, differs| Candidate {
            branch: name.into(),
            tip,
            time: 1_700_000_000 - 7_200,
            differs,
        };
        let found = Candidates {
            rows: vec![
                row("refs/heads/main", 0),
                row("refs/heads/wt/it's", 1),
                row("refs/heads/\x1b[31m", 9),
            ],
            left_out: 2,
            unreadable: vec![("refs/heads/forged".into(), "object 1a: its content has another name".into())],
        };
        let path = LocalPath::new("/home/me/src/app/.worktrees/x").unwrap();
        let in_use = |name: &BString| {
            (name == "refs/heads/main").then(|| "the main worktree has it checked out".into())
        };
        let rows = CandidatesRow::of(&path, &found, in_use, &view(None).again, &[]);
        insta::assert_snapshot!(render_candidates(&rows, &view(None)));
    }
}

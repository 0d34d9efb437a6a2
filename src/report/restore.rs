//! What came back of a worktree, and what did not.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bstr::{BString, ByteSlice};
use serde::Serialize;

use super::View;
use super::shell::quote;
use super::text::{Field, count, indented, listed, place};
use crate::git::refs::short;
use crate::git::registration::Head;
use crate::judge::reason::Reason;
use crate::lifecycle::links::Form;
use crate::lifecycle::restore::{HeadIs, Restored, Wanted};
use crate::plan::{Branch, LocalPlace, Name, Recorded, SCHEMA};
use crate::sweep::record::{AnsweredBy, Hex};
use crate::vantage::paths::escape;

use super::log::AnchorRow;

/// What no record holds.
const LOST: [&str; 6] = [
    "untracked and ignored files",
    "changes that were not committed",
    "refs of this worktree alone, and the reflog of its HEAD",
    "operations that were under way",
    "configuration of its own, with sparse checkout",
    "its enrolment (`treesweep setup` enrols it again)",
];

/// What `restore --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub schema: u32,
    pub restored: RestoredRow,
}

/// The document about one worktree.
pub fn document(restored: RestoredRow) -> Document {
    Document { schema: SCHEMA, restored }
}

/// One worktree that came back.
#[derive(Clone, Debug, Serialize)]
pub struct RestoredRow {
    /// Of its record.
    pub id: String,
    #[serde(flatten)]
    pub name: Name,
    #[serde(flatten)]
    pub path: LocalPlace,
    #[serde(flatten)]
    pub recorded_path: Recorded,
    /// `here`, `relative`, `as-before` or `lost`: whose paths its links are in.
    pub links: &'static str,
    #[serde(flatten)]
    pub branch: Branch,
    /// `existing`, `recreated` or `detached`.
    pub head_is: &'static str,
    /// Why HEAD is detached.
    pub head_detail: Option<String>,
    pub head: Hex,
    /// What HEAD was when it was removed.
    pub was: Option<Hex>,
    pub files: u64,
    pub bytes: u64,
    /// Files that were there already and were left as they are.
    pub there: u64,
    pub lfs_pointers: u64,
    /// Files that an attribute would have changed.
    pub filtered: Vec<FilteredRow>,
    pub submodules: Vec<String>,
    /// Files that could not be read from the repository.
    pub missing: Vec<MissingRow>,
    /// An earlier run had begun it.
    pub resumed: bool,
    /// What was overridden when it was removed.
    pub overridden: Vec<Reason>,
    pub anchors: Vec<AnchorRow>,
    pub lost: [&'static str; 6],
    /// Commands that complete it, for where its links mean something.
    pub next: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct FilteredRow {
    pub by: String,
    pub files: u64,
    /// The first few.
    pub first: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct MissingRow {
    pub path: String,
    pub why: String,
}

impl RestoredRow {
    pub fn of(wanted: &Wanted<'_>, restored: &Restored) -> Self {
        let (record, written) = (wanted.record, &restored.written);
        let (branch, head_is, head_detail): (Option<&BString>, _, _) = match &restored.head {
            HeadIs::Branch(name) | HeadIs::AsFound(Head::Branch(name)) => (Some(name), "existing", None),
            HeadIs::Recreated(name) => (Some(name), "recreated", None),
            HeadIs::Detached(why) => (None, "detached", Some(why.clone())),
            HeadIs::AsFound(Head::Detached(_)) => (None, "detached", None),
        };
        let shown = |paths: &[BString]| paths.iter().map(|p| escape(p)).collect::<Vec<_>>();
        let filtered = written.filtered.iter().map(|(by, filtered)| FilteredRow {
            by: by.clone(),
            files: filtered.files,
            first: shown(&filtered.first),
        });
        Self {
            id: record.id.to_string(),
            name: Name::of(Some(wanted.name.as_bstr())),
            path: LocalPlace::of(Some(wanted.at.as_bstr())),
            recorded_path: Recorded::of(Some(wanted.links.checkout.as_bstr())),
            links: match wanted.links.form {
                Form::Here => "here",
                Form::Relative => "relative",
                Form::AsBefore => "as-before",
                Form::Lost => "lost",
            },
            branch: Branch::of(branch.map(|b| short(b.as_bstr()))),
            head_is,
            head_detail,
            head: restored.commit.into(),
            was: record.tip.clone(),
            files: written.files,
            bytes: written.bytes,
            there: written.there,
            lfs_pointers: written.lfs,
            filtered: filtered.collect(),
            submodules: shown(&written.submodules),
            missing: written
                .missing
                .iter()
                .map(|(path, why)| MissingRow { path: escape(path), why: why.clone() })
                .collect(),
            resumed: restored.resumed,
            overridden: match &record.authority {
                AnsweredBy::Owned => Vec::new(),
                AnsweredBy::Person { overridden } => overridden.clone(),
            },
            anchors: AnchorRow::all(record),
            lost: LOST,
            next: next(wanted, restored),
        }
    }
}

/// What completes it, as typed where its links mean something.
fn next(wanted: &Wanted<'_>, restored: &Restored) -> Vec<String> {
    let place = match wanted.links.form {
        Form::AsBefore => quote(OsStr::from_bytes(wanted.links.checkout.as_bstr())),
        _ => quote(wanted.at.as_path().as_os_str()),
    };
    let mut next = Vec::new();
    if restored.written.lfs > 0 {
        next.push(format!("git -C {place} lfs pull"));
    }
    if !restored.written.submodules.is_empty() {
        next.push(format!("git -C {place} submodule update --init"));
    }
    next
}

/// One sentence, and everything that a person should know besides.
pub fn render(row: &RestoredRow, quiet: bool, view: &View) -> String {
    let at = row.path.raw().map(|raw| place(&raw, view.home.as_deref())).unwrap_or_default();
    let name = view.style.good(row.name.shown());
    let mut out = format!("Restored {name} at {at}, {}, {}.\n", head(row), count(row.files, "file"));
    let mut note = |text: String| out.push_str(&indented(&text, 2, &view.style));
    for missing in &row.missing {
        note(format!("{} could not be written: {}", missing.path, missing.why));
    }
    if quiet {
        return out;
    }
    paths(row).into_iter().chain(stored(row)).for_each(&mut note);
    note(format!("What does not come back: {}.", LOST.join("; ")));
    for reason in &row.overridden {
        note(format!("Overridden when it was removed: {}", escape(reason.to_string().as_bytes())));
    }
    for anchor in &row.anchors {
        note(format!("{} still holds {}", anchor.name, hex(&anchor.commit)));
    }
    out
}

fn hex(commit: &Hex) -> String {
    commit.id().map_or_else(|| "?".to_owned(), |id| id.to_hex_with_len(12).to_string())
}

fn head(row: &RestoredRow) -> String {
    let (branch, head) = (row.branch.shown(), hex(&row.head));
    let moved = row.was.as_ref().filter(|was| **was != row.head).map(|was| format!(", then {}", hex(was)));
    match (row.head_is, &row.head_detail) {
        ("recreated", _) => format!("on branch {branch}, made anew at {head}"),
        ("existing", _) => format!("on branch {branch} at {head}{}", moved.unwrap_or_default()),
        (_, Some(why)) => format!("detached at {head} ({})", escape(why.as_bytes())),
        (_, None) => format!("detached at {head}"),
    }
}

/// Where its links mean something.
fn paths(row: &RestoredRow) -> Vec<String> {
    let recorded = row.recorded_path.shown();
    let text = match row.links {
        "as-before" => {
            format!("It is registered as {recorded}, as it was: git works where that path means something.")
        }
        "lost" => {
            "It is registered by its path here: nothing tells what a container calls this place.".to_owned()
        }
        _ => return Vec::new(),
    };
    vec![text]
}

/// What is not as git would have written it.
fn stored(row: &RestoredRow) -> Vec<String> {
    let mut all = Vec::new();
    let command = |what: &str| row.next.iter().find(|command| command.contains(what));
    if let Some(command) = command(" lfs ") {
        let files = count(row.lfs_pointers, "file");
        all.push(format!("Pointers of Git LFS in {files}: `{command}` completes them."));
    }
    for filtered in &row.filtered {
        let (by, files) = (escape(filtered.by.as_bytes()), count(filtered.files, "file"));
        all.push(format!(
            "As the repository stores them, without {by}: {files} ({}). Remove one, and `git checkout -- FILE` \
             writes it as git would.",
            listed(&filtered.first)
        ));
    }
    if let Some(command) = command(" submodule ") {
        let submodules = count(row.submodules.len() as u64, "submodule");
        all.push(format!("Without files: {submodules}. `{command}` fetches them."));
    }
    if row.there > 0 {
        all.push(format!("Left as they were there: {}.", count(row.there, "file")));
    }
    all
}

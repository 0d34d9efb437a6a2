//! How each clone is protected.

use bstr::ByteSlice;
use serde::Serialize;

use super::View;
use super::text::{Field, count, indented, place};
use crate::lifecycle::guard::{Gc, Guarded, LockIs};
use crate::lifecycle::snapshot::Kept;
use crate::plan::{CommonDir, Name, Path, SCHEMA};
use crate::survey::discover::CloneSite;
use crate::vantage::paths::escape;

/// What `guard --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    pub schema: u32,
    /// `guard`, or `undo`.
    pub act: &'static str,
    pub clones: Vec<CloneRow>,
    /// What concerns no single clone.
    pub warnings: Vec<String>,
}

/// The document about all clones of a run.
pub fn document(undo: bool, clones: Vec<CloneRow>, warnings: Vec<String>) -> Document {
    Document { schema: SCHEMA, act: if undo { "undo" } else { "guard" }, clones, warnings }
}

/// One clone.
#[derive(Clone, Debug, Serialize)]
pub struct CloneRow {
    #[serde(flatten)]
    pub path: Path,
    #[serde(flatten)]
    pub common_dir: CommonDir,
    pub snapshots: Snapshots,
    /// What became of `gc.worktreePruneExpire`: `set`, `ours`, `never`, `unset`, `not-ours` or `failed`.
    pub gc: &'static str,
    /// What it was, where it was set now.
    pub gc_former: Option<String>,
    pub locks: Vec<LockRow>,
    /// What could not be done, and why.
    pub failed: Vec<String>,
}

/// How many registrations have a snapshot.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Snapshots {
    pub new: u64,
    pub updated: u64,
    pub unchanged: u64,
}

/// One worktree of another vantage.
#[derive(Clone, Debug, Serialize)]
pub struct LockRow {
    #[serde(flatten)]
    pub name: Name,
    /// `locked`, `ours`, `somebody` or `unlocked`.
    pub result: &'static str,
    /// Somebody's reason.
    pub reason: Option<String>,
}

impl CloneRow {
    pub fn of(site: &CloneSite, done: &Guarded) -> Self {
        let kept = |is: Kept| done.snapshots.iter().filter(|(_, kept)| *kept == is).count() as u64;
        let (gc, gc_former) = match &done.gc {
            Gc::Set(former) => ("set", former.as_ref().map(|value| value.to_str_lossy().into_owned())),
            Gc::Ours => ("ours", None),
            Gc::Never => ("never", None),
            Gc::Unset => ("unset", None),
            Gc::NotOurs => ("not-ours", None),
            Gc::Failed => ("failed", None),
        };
        let locks = done.locks.iter().map(|(name, is)| {
            let (result, reason) = match is {
                LockIs::Locked => ("locked", None),
                LockIs::Ours => ("ours", None),
                LockIs::Somebody(reason) => ("somebody", Some(reason.clone())),
                LockIs::Unlocked => ("unlocked", None),
            };
            LockRow { name: Name::of(Some(name.as_bstr())), result, reason }
        });
        Self {
            path: Path::of(Some(site.dir.as_bstr())),
            common_dir: CommonDir::of(Some(site.common_path().as_bstr())),
            snapshots: Snapshots {
                new: kept(Kept::New),
                updated: kept(Kept::Updated),
                unchanged: kept(Kept::Same),
            },
            gc,
            gc_former,
            locks: locks.collect(),
            failed: done.failed.clone(),
        }
    }
}

/// What was done in each clone, and what it does not stop.
pub fn render(document: &Document, quiet: bool, view: &View) -> String {
    let mut out = String::new();
    for row in &document.clones {
        let path = row.path.raw().or_else(|| row.common_dir.raw()).unwrap_or_default();
        let lines = if quiet { Vec::new() } else { lines(row) };
        if lines.is_empty() && row.failed.is_empty() {
            continue;
        }
        out.push_str(&format!("{}\n", view.style.bold(place(&path, view.home.as_deref()))));
        lines.iter().for_each(|line| out.push_str(&indented(line, 2, &view.style)));
        for why in &row.failed {
            out.push_str(&format!("  {}  {}\n", view.style.bad("failed"), escape(why.as_bytes())));
        }
    }
    if document.clones.is_empty() {
        out.push_str("No clone is here.\n");
    } else if document.act == "guard" && !quiet {
        let unlocked = document.clones.iter().all(|row| row.locks.is_empty());
        out.push_str("\nThis stops the prune of `git gc`, not `git worktree prune`");
        out.push_str(match unlocked {
            true => ": --lock locks worktrees against that.\n",
            false => ", which leaves only what is locked.\n",
        });
    }
    out
}

fn lines(row: &CloneRow) -> Vec<String> {
    let mut lines = Vec::new();
    let Snapshots { new, updated, unchanged } = row.snapshots;
    let all = [(new, "new"), (updated, "updated"), (unchanged, "unchanged")];
    let parts: Vec<String> =
        all.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !parts.is_empty() {
        lines.push(format!("{}: {}", count(new + updated + unchanged, "snapshot"), parts.join(", ")));
    }
    match (row.gc, &row.gc_former) {
        ("set", Some(former)) => {
            lines.push(format!("gc.worktreePruneExpire is never now, and was {}", escape(former.as_bytes())))
        }
        ("set", None) => lines.push("gc.worktreePruneExpire is never now, and was not set".into()),
        ("ours", _) => lines.push("gc.worktreePruneExpire is never, as an earlier run has set it".into()),
        ("never", _) => lines.push("gc.worktreePruneExpire was never already".into()),
        ("unset", _) => lines.push("gc.worktreePruneExpire is what it was".into()),
        ("not-ours", _) => {
            lines.push("gc.worktreePruneExpire stays: it was not set by guard, or was changed since".into());
        }
        _ => {}
    }
    for lock in &row.locks {
        let name = lock.name.shown();
        lines.push(match (lock.result, &lock.reason) {
            ("locked", _) => format!("{name} is locked now"),
            ("ours", _) => format!("{name} is locked, as an earlier run has done"),
            ("unlocked", _) => format!("{name} is unlocked"),
            (_, Some(reason)) if !reason.is_empty() => {
                format!("{name} was locked already, by somebody else: {reason}")
            }
            _ => format!("{name} was locked already, by somebody else"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample::view;

    #[test]
    fn what_was_done_and_what_it_does_not_stop() {
        let lock = |name: &str, result, reason: Option<&str>| LockRow {
            name: Name::of(Some(name.into())),
            result,
            reason: reason.map(Into::into),
        };
        let clone = |gc, gc_former: Option<&str>, locks, failed: &[&str]| CloneRow {
            path: Path::of(Some("/home/me/src/app".into())),
            common_dir: CommonDir::of(Some("/home/me/src/app/.git".into())),
            snapshots: Snapshots { new: 2, updated: 0, unchanged: 1 },
            gc,
            gc_former: gc_former.map(Into::into),
            locks,
            failed: failed.iter().map(ToString::to_string).collect(),
        };
        let locks = vec![
            lock("a", "locked", None),
            lock("b", "ours", None),
            lock("c\x1b[31m", "somebody", Some("agent")),
            lock("d", "somebody", Some("")),
        ];
        let clones = vec![
            clone("set", Some("1.week"), locks, &[]),
            clone("failed", None, Vec::new(), &["x: no snapshot: HEAD: does not exist"]),
        ];
        insta::assert_snapshot!(render(&document(false, clones.clone(), Vec::new()), false, &view(None)));
        let quiet = render(&document(false, clones, Vec::new()), true, &view(None));
        assert_eq!(quiet, "~/src/app\n  failed  x: no snapshot: HEAD: does not exist\n");
    }
}

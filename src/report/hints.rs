//! What to type next: exact commands, each about the same clones under the same flags.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::View;
use super::shell::CommandLine;
use super::text::Field;
use crate::plan::{Class, ClonePlan, Plan, Row, VerdictKind};

/// A command, and what it does.
type Hint = (String, &'static str);

/// One line for each kind of thing that can be done next; empty if there is none.
pub(super) fn render(plan: &Plan, view: &View) -> String {
    let hints: Vec<Hint> = Names::of(plan, view).hints(plan);
    if hints.is_empty() {
        return String::new();
    }
    let length = |hint: &Hint| hint.0.chars().count();
    let longest = hints.iter().map(|(_, does)| does.len()).max().unwrap_or(0);
    let room = view.style.width.map_or(usize::MAX, |width| width.saturating_sub("    # ".len() + longest));
    let column = hints.iter().map(length).filter(|length| *length <= room).max().unwrap_or(0);
    let mut out = String::from("Next:\n");
    for hint in &hints {
        // A shell takes what follows `#` for a comment, so a whole line can be copied.
        let (command, comment) = (&hint.0, view.style.dim(format!("# {}", hint.1)));
        out.push_str(&match length(hint) <= room {
            true => format!("  {command:column$}  {comment}\n"),
            false => format!("  {command}\n      {comment}\n"),
        });
    }
    out
}

/// Which names say which worktree is meant.
struct Names<'a> {
    count: HashMap<Vec<u8>, usize>,
    view: &'a View,
}

impl<'a> Names<'a> {
    fn of(plan: &Plan, view: &'a View) -> Self {
        let mut count = HashMap::new();
        for name in plan.clones.iter().flat_map(|c| &c.worktrees).filter_map(|row| row.name.raw()) {
            *count.entry(name).or_insert(0) += 1;
        }
        Self { count, view }
    }

    fn hints(&self, plan: &Plan) -> Vec<Hint> {
        let rows = || plan.clones.iter().flat_map(|c| c.worktrees.iter().map(move |row| (c, row)));
        let mut hints = Vec::new();
        let (automatic, pickable) =
            (plan.totals.reclaim + plan.totals.forget > 0, rows().any(|(_, row)| row.pickable));
        let does = match (automatic, pickable) {
            (true, true) => Some("ask, remove, then let you choose"),
            (true, false) => Some("ask, then remove"),
            (false, true) => Some("let you choose"),
            (false, false) => None,
        };
        hints.extend(does.map(|does| (self.view.again.with_roots(["prune"]), does)));
        for class in [Class::Unowned, Class::Stale, Class::Orphan] {
            let mut offers =
                rows().filter(|(_, r)| r.verdict == VerdictKind::Offer && r.class == Some(class));
            if let Some((clone, row)) = offers.find(|(clone, row)| self.offer(clone, row, class).is_some()) {
                hints.extend(self.offer(clone, row, class));
                hints.extend(self.rescue(clone, row).filter(|_| class == Class::Orphan));
            }
        }
        let mut kept = rows().filter(|(_, row)| row.verdict == VerdictKind::Keep);
        hints.extend(kept.find_map(|(clone, row)| self.explain(clone, row)));
        hints
    }

    fn offer(&self, clone: &ClonePlan, row: &Row, class: Class) -> Option<Hint> {
        let scope = self.scope(clone, row);
        match class {
            Class::Stale => {
                let flag = joined("--stale=", &row.name.raw()?);
                Some((scope.with_roots([OsStr::new("prune"), &flag]), "forget this one"))
            }
            Class::Orphan => {
                let flag = joined("--orphan=", &row.path.raw()?);
                Some((scope.with_roots([OsStr::new("prune"), &flag]), "remove this orphan"))
            }
            _ => {
                let name = row.name.raw().filter(|n| !n.starts_with(b"-")).or_else(|| row.path.raw())?;
                let words = [OsStr::new("drop"), OsStr::from_bytes(&name)];
                Some((scope.with_root_flags(words), "remove this one"))
            }
        }
    }

    fn rescue(&self, clone: &ClonePlan, row: &Row) -> Option<Hint> {
        let words = [OsString::from("rescue"), OsString::from_vec(row.path.raw()?)];
        Some((self.scope(clone, row).with_roots(words), "register it again"))
    }

    fn explain(&self, clone: &ClonePlan, row: &Row) -> Option<Hint> {
        let flag = joined("--explain=", &row.name.raw()?);
        Some((self.scope(clone, row).with_roots([OsStr::new("plan"), &flag]), "why this one is kept"))
    }

    /// What was typed; where another clone has a worktree of that name too, this clone alone.
    fn scope(&self, clone: &ClonePlan, row: &Row) -> CommandLine {
        let twins = row.name.raw().and_then(|n| self.count.get(&n).copied()).unwrap_or(0) > 1;
        match clone.path.raw().filter(|_| twins) {
            Some(path) => {
                CommandLine { flags: self.view.again.flags.clone(), roots: vec![OsString::from_vec(path)] }
            }
            None => self.view.again.clone(),
        }
    }
}

fn joined(flag: &str, value: &[u8]) -> OsString {
    OsString::from_vec([flag.as_bytes(), value].concat())
}

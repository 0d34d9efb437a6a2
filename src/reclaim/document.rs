//! What came of a run, as data.

use bstr::ByteSlice;

use super::Reclaimed;
use crate::git::refs::short;
use crate::plan::{BranchResult, LocalPlace, Name, OutcomeRow, Plan, Report, ResultKind};
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome};
use crate::vantage::paths::{LocalPath, escape};

/// The document of a run.
pub fn report(plan: Plan, done: &Reclaimed) -> Report {
    Report { plan, outcomes: done.outcomes.iter().map(row).collect(), space: Vec::new(), holders: Vec::new() }
}

/// The row of one outcome.
pub fn row(outcome: &Outcome) -> OutcomeRow {
    let (branch, branch_detail) = match &outcome.branch {
        BranchOutcome::Deleted { name } => (BranchResult::Deleted, Some(shown(&name.0))),
        BranchOutcome::Kept { name, why } => (BranchResult::Kept, Some(format!("{}: {why}", shown(&name.0)))),
        BranchOutcome::None => (BranchResult::None, None),
    };
    OutcomeRow {
        name: Name::of(Some(outcome.name.as_bstr())),
        path: LocalPlace::of(outcome.path.as_ref().map(LocalPath::as_bstr)),
        result: match outcome.result {
            Ending::Removed => ResultKind::Removed,
            Ending::Forgotten => ResultKind::Forgotten,
            Ending::Skipped => ResultKind::Skipped,
            Ending::Deferred => ResultKind::Deferred,
            Ending::Failed => ResultKind::Failed,
        },
        branch,
        branch_detail,
        bytes: outcome.removed.freed,
        reason: outcome.reason.clone(),
        note: outcome.note.clone(),
        observed: outcome.observed.clone(),
        retry: outcome.retry.clone(),
        record: outcome.record.as_ref().map(ToString::to_string),
    }
}

fn shown(full_name: &[u8]) -> String {
    escape(short(full_name.as_bstr()))
}

//! What `prune` and `drop` say at the end, and the exit code that follows.

use bstr::ByteSlice;

use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::git::refs::short;
use crate::plan::{BranchResult, LocalPlace, Name, OutcomeRow, Plan, Report, ResultKind};
use crate::reclaim::Reclaimed;
use crate::report::{View, outcome};
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome};
use crate::vantage::paths::{LocalPath, escape};

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

/// Says on standard error what came of a run whose standard output is another's; nothing if there was nothing to do.
pub fn aside(done: &Reclaimed, quiet: bool, view: &View, output: &Output) {
    warn(done, output);
    let outcomes: Vec<OutcomeRow> = done.outcomes.iter().map(row).collect();
    if !outcomes.is_empty() {
        output.aside(&outcome::render(&outcomes, quiet, view));
    }
}

/// What concerns no candidate.
fn warn(done: &Reclaimed, output: &Output) -> Exit {
    let warnings =
        done.warnings.iter().map(|w| output.aside(&format!("warning: {}\n", escape(w.as_bytes()))));
    let refused = done.refused.iter().map(|(why, environment)| {
        let code = if *environment { Exit::Unsupported } else { Exit::Failed };
        output.complain(&escape(why.as_bytes()), code)
    });
    warnings.chain(refused).collect()
}

/// The document of a run.
pub fn report(plan: Plan, done: &Reclaimed) -> Report {
    Report { plan, outcomes: done.outcomes.iter().map(row).collect(), space: Vec::new(), holders: Vec::new() }
}

/// Prints what came of a run.
pub fn show(
    report: &Report,
    done: &Reclaimed,
    json: bool,
    quiet: bool,
    view: &View,
    output: &Output,
) -> Exit {
    let failed = report.outcomes.iter().any(|o| o.result == ResultKind::Failed);
    let exit = if failed { Exit::Failed } else { Exit::Done };
    exit.and(warn(done, output)).and(match json {
        true => output.json(report),
        false => output.text(&outcome::render(&report.outcomes, quiet, view)),
    })
}

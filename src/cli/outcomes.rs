//! What `prune` and `drop` say at the end, and the exit code that follows.

use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::plan::{OutcomeRow, Report, ResultKind};
use crate::reclaim::{Reclaimed, row};
use crate::report::{View, outcome};
use crate::vantage::paths::escape;

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

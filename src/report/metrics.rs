//! A run in the text format that Prometheus reads, for the textfile collector of its node exporter.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};

use jiff::Timestamp;

use super::text::Field;
use crate::plan::{Report, ResultKind, VerdictKind};

/// A run as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    pub ended: Timestamp,
    pub seconds: f64,
    pub exit_code: u8,
}

/// All metrics. A run that ended before there was a plan has no `report`.
pub fn render(run: &Run, report: Option<&Report>) -> String {
    let mut out = Page::default();
    out.one("run_timestamp_seconds", "When the last run ended", run.ended.as_second());
    out.one("run_duration_seconds", "How long it took", format_args!("{:.3}", run.seconds));
    out.one("run_exit_code", "0: all is done; 1: something is left; 2: usage; 3: environment", run.exit_code);
    if let Some(report) = report {
        of_the_plan(&mut out, report);
        of_the_outcomes(&mut out, report);
        of_the_disk(&mut out, report);
    }
    out.0
}

fn of_the_plan(out: &mut Page, report: &Report) {
    let totals = &report.plan.totals;
    out.head("worktrees", "Worktrees by verdict, before the sweep");
    for (verdict, number) in [
        (VerdictKind::Reclaim, totals.reclaim),
        (VerdictKind::Forget, totals.forget),
        (VerdictKind::Offer, totals.offer),
        (VerdictKind::Keep, totals.keep),
    ] {
        out.line("worktrees", &[("verdict", super::plan::verdict_word(verdict))], number);
    }
    let rows = report.plan.clones.iter().flat_map(|c| &c.worktrees);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for code in rows.filter(|r| r.verdict == VerdictKind::Keep).filter_map(|r| Some(r.reasons.first()?.code))
    {
        *reasons.entry(code.as_str()).or_default() += 1;
    }
    out.head("kept_worktrees", "Worktrees that are kept, by the reason that decides");
    for (reason, number) in reasons {
        out.line("kept_worktrees", &[("reason", reason)], number);
    }
    out.one("reclaimable_bytes", "Allocated bytes of what may go, before the sweep", totals.bytes);
    out.one("offered_bytes", "Allocated bytes of what awaits a person", totals.offer_bytes);
}

fn of_the_outcomes(out: &mut Page, report: &Report) {
    use ResultKind::{Deferred, Failed, Forgotten, Removed, Skipped};
    out.head("outcomes", "What became of the worktrees that were to go");
    for result in [Removed, Forgotten, Skipped, Deferred, Failed] {
        let number = report.outcomes.iter().filter(|o| o.result == result).count();
        out.line("outcomes", &[("result", super::outcome::word(result))], number);
    }
}

fn of_the_disk(out: &mut Page, report: &Report) {
    let place = |row: &crate::plan::SpaceRow| row.path.shown();
    out.head("filesystem_avail_bytes", "Free space of the file systems of the roots, before and after");
    for row in &report.space {
        let at = place(row);
        for (when, bytes) in [("before", row.available_before), ("after", row.available_after)] {
            out.line("filesystem_avail_bytes", &[("root", &at), ("when", when)], bytes);
        }
    }
    out.head("filesystem_wanted_bytes", "What --min-free asks for");
    for (row, wanted) in report.space.iter().filter_map(|row| Some((row, row.wanted?))) {
        out.line("filesystem_wanted_bytes", &[("root", &place(row))], wanted);
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, help: &str) {
        self.add(format_args!("# HELP treesweep_{name} {help}.\n# TYPE treesweep_{name} gauge\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
        let labels: Vec<String> = labels.iter().map(label).collect();
        let braces = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        self.add(format_args!("treesweep_{name}{braces} {value}\n"));
    }

    fn one(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, help);
        self.line(name, &[], value);
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes all that is written to it.
        let _ = self.0.write_fmt(text);
    }
}

fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{LocalPlace, SpaceRow};
    use crate::report::sample::usual;
    use bstr::ByteSlice;

    #[test]
    fn a_page_of_metrics() {
        let run = Run { ended: Timestamp::UNIX_EPOCH, seconds: 1.25, exit_code: 1 };
        let space = SpaceRow {
            path: LocalPlace::of(Some(b"/srv/\"a\\\xff".as_bstr())),
            size: 100,
            available_before: 10,
            available_after: 20,
            wanted: Some(30),
        };
        let report = Report { plan: usual(), outcomes: Vec::new(), space: vec![space], holders: Vec::new() };
        let text = render(&run, Some(&report));
        insta::assert_snapshot!(text);
        for line in text.lines().filter(|l| !l.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with("treesweep_") && value.parse::<f64>().is_ok(), "{line}");
        }
        assert!(render(&run, None).ends_with("treesweep_run_exit_code 1\n"));
    }
}

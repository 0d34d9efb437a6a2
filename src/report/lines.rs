//! What a run is at, for a program: one JSON object a line, and the document as the last one.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::json;
use super::progress::{Event, Progress};

/// At most so often while it looks or removes; what begins and what ends is always told.
const INTERVAL: Duration = Duration::from_millis(200);

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Line<'a> {
    /// So many clones were found, and so many of their worktrees are judged.
    Looking { clones: u64, judged: u64, worktrees: u64 },
    /// It is the turn of this worktree (its name is escaped); of the bytes that were planned so many are free.
    Removing { name: &'a str, freed: u64, planned: u64 },
}

/// The last line.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename = "result")]
pub struct Last<'a, T> {
    pub document: &'a T,
}

/// Writes lines to `W`, from any thread.
#[derive(Debug)]
pub struct Lines<W> {
    state: Mutex<State<W>>,
}

#[derive(Debug)]
struct State<W> {
    out: W,
    clones: u64,
    judged: u64,
    worktrees: u64,
    name: String,
    freed: u64,
    planned: u64,
    removing: bool,
    /// Something was told to us that has not been written.
    news: bool,
    written: Option<Instant>,
}

impl Lines<io::Stdout> {
    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }
}

impl<W: Write> Lines<W> {
    pub fn new(out: W) -> Self {
        let name = String::new();
        let (clones, judged, worktrees, freed, planned) = (0, 0, 0, 0, 0);
        let (removing, news, written) = (false, false, None);
        let state = State { out, clones, judged, worktrees, name, freed, planned, removing, news, written };
        Self { state: Mutex::new(state) }
    }
}

impl<W: Write> State<W> {
    fn write(&mut self) {
        let line = match self.removing {
            true => Line::Removing { name: &self.name, freed: self.freed, planned: self.planned },
            false => Line::Looking { clones: self.clones, judged: self.judged, worktrees: self.worktrees },
        };
        // Whoever reads may have gone; the document tells the exit code so.
        let _ = json::write_line(&line, &mut self.out);
        (self.news, self.written) = (false, Some(Instant::now()));
    }

    /// What is known is news; it is written if the last line is old enough.
    fn tell(&mut self) {
        self.news = true;
        if self.written.is_none_or(|at| at.elapsed() >= INTERVAL) {
            self.write();
        }
    }

    /// What is known so far, before something else begins.
    fn finish(&mut self) {
        if self.news {
            self.write();
        }
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn tell(&self, event: Event<'_>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::CloneFound => state.clones += 1,
            Event::ToJudge(worktrees) => state.worktrees += worktrees,
            Event::Judged => state.judged += 1,
            Event::Removing { bytes } => {
                state.finish();
                (state.removing, state.planned) = (true, bytes);
                return;
            }
            Event::Now(name) => {
                state.finish();
                state.name = name.to_owned();
                return state.write();
            }
            Event::Freed(bytes) => state.freed += bytes,
            Event::Pause => return state.finish(),
        }
        state.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(events: &[Event<'_>]) -> Vec<String> {
        let lines = Lines::new(Vec::new());
        events.iter().for_each(|event| lines.tell(*event));
        let out = lines.state.into_inner().unwrap().out;
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn it_tells_what_began_and_what_ended_and_little_between() {
        let mut events = vec![Event::CloneFound, Event::ToJudge(100)];
        events.extend((0..100).map(|_| Event::Judged));
        events.extend([Event::Pause, Event::Removing { bytes: 500 }, Event::Now("a")]);
        events.extend((0..250).map(|_| Event::Freed(2)));
        events.extend([Event::Now("b"), Event::Pause]);
        let lines = lines(&events);
        assert!(lines.len() < 100, "{lines:#?}");
        for wanted in [
            r#"{"event":"looking","clones":1,"judged":0,"worktrees":0}"#,
            r#"{"event":"looking","clones":1,"judged":100,"worktrees":100}"#,
            r#"{"event":"removing","name":"a","freed":0,"planned":500}"#,
            r#"{"event":"removing","name":"a","freed":500,"planned":500}"#,
            r#"{"event":"removing","name":"b","freed":500,"planned":500}"#,
        ] {
            assert_eq!(lines.iter().filter(|line| *line == wanted).count(), 1, "{wanted} in {lines:#?}");
        }
    }

    #[test]
    fn each_line_is_as_it_is_published() {
        use crate::report::json::validator::Validator;
        let mut validator = Validator::new(include_str!("../../docs/schema/lines-1.json"));
        for line in lines(&[Event::CloneFound, Event::Removing { bytes: 1 }, Event::Now("a")]) {
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            let of = format!("/$defs/{}", line["event"].as_str().unwrap());
            validator.check(&of, &line, "line");
        }
        assert_eq!(validator.seen.len(), 8);
    }

    #[test]
    fn a_name_breaks_no_line() {
        let name = crate::vantage::paths::escape(b"a\nb\x1b[2J");
        let lines = lines(&[Event::Removing { bytes: 0 }, Event::Now(&name)]);
        assert_eq!(lines.len(), 1);
        assert!(serde_json::from_str::<serde_json::Value>(&lines[0]).is_ok());
    }
}

//! What a run is at, for whoever waits: a spinner while it looks, a bar with bytes and an estimate while it removes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::text::count;

/// What a run tells while it works.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Another clone was found.
    CloneFound,
    /// So many more worktrees are to be judged.
    ToJudge(u64),
    /// One of them is judged.
    Judged,
    /// Looking is over, removing begins; so many bytes are to be freed.
    Removing { bytes: u64 },
    /// It is the turn of this worktree; the name is escaped.
    Now(&'a str),
    /// So many more bytes are free.
    Freed(u64),
    /// What follows has the terminal for itself: a question, or the end.
    Pause,
}

/// Who listens; from any thread.
pub trait Progress: Send + Sync {
    fn tell(&self, event: Event<'_>);
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn tell(&self, _: Event<'_>) {}
}

/// Draws on standard error, and only if that is a terminal.
#[derive(Debug)]
pub struct Bars {
    looking: ProgressBar,
    found: AtomicU64,
    ticking: AtomicBool,
    removing: ProgressBar,
}

const LOOKING: &str = "{spinner} {msg}";
const REMOVING: &str = "{spinner} {bar:24} {decimal_bytes} of {decimal_total_bytes}, {eta} left  {wide_msg}";
/// Draws also while nothing is told, so that a run that waits does not look dead.
const TICK: Duration = Duration::from_millis(120);

impl Bars {
    pub fn new() -> Self {
        Self {
            looking: ProgressBar::new(0).with_style(style(LOOKING)),
            found: AtomicU64::new(0),
            ticking: AtomicBool::new(false),
            removing: ProgressBar::new(0).with_style(style(REMOVING)),
        }
    }

    fn look(&self) {
        let (judged, all) = (self.looking.position(), self.looking.length().unwrap_or(0));
        let clones = count(self.found.load(Ordering::Relaxed), "clone");
        self.looking.set_message(match all {
            0 => format!("{clones} found"),
            all => format!("{clones} found, {judged} of {} judged", count(all, "worktree")),
        });
        // Each call would start a thread, and wait for the one before.
        if !self.ticking.swap(true, Ordering::Relaxed) {
            self.looking.enable_steady_tick(TICK);
        }
    }

    fn freed(&self, bytes: u64) {
        self.removing.inc(bytes);
        // What was planned is a lower bound.
        if self.removing.length().is_some_and(|planned| planned < self.removing.position()) {
            self.removing.set_length(self.removing.position());
        }
    }
}

impl Default for Bars {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Bars {
    fn tell(&self, event: Event<'_>) {
        match event {
            Event::CloneFound => {
                self.found.fetch_add(1, Ordering::Relaxed);
                self.look();
            }
            Event::ToJudge(worktrees) => {
                self.looking.inc_length(worktrees);
                self.look();
            }
            Event::Judged => {
                self.looking.inc(1);
                self.look();
            }
            Event::Removing { bytes } => {
                self.looking.finish_and_clear();
                self.removing.reset();
                self.removing.set_length(bytes);
                self.removing.enable_steady_tick(TICK);
            }
            Event::Now(name) => self.removing.set_message(name.to_owned()),
            Event::Freed(bytes) => self.freed(bytes),
            Event::Pause => {
                self.looking.finish_and_clear();
                self.removing.finish_and_clear();
            }
        }
    }
}

/// The templates are constants that a test reads; a spinner stands in for one that can't be read.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner());
    style.progress_chars("=> ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_can_be_read() {
        for template in [LOOKING, REMOVING] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }

    #[test]
    fn it_counts_what_it_is_told() {
        let bars = Bars::new();
        for event in
            [Event::CloneFound, Event::ToJudge(3), Event::CloneFound, Event::ToJudge(1), Event::Judged]
        {
            bars.tell(event);
        }
        assert_eq!(bars.looking.message(), "2 clones found, 1 of 4 worktrees judged");
        bars.tell(Event::Removing { bytes: 100 });
        bars.tell(Event::Now("fix"));
        bars.tell(Event::Freed(60));
        assert_eq!((bars.removing.position(), bars.removing.length()), (60, Some(100)));
        bars.tell(Event::Freed(60));
        assert_eq!(bars.removing.length(), Some(120));
        bars.tell(Event::Pause);
        assert!(bars.removing.is_finished());
    }
}

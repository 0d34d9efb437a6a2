//! A request to stop, that all workers look at: a deadline (`--time-limit`) or Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Shared by all workers of a run; cheap to clone and to ask.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    requested: Arc<AtomicBool>,
    listening: Arc<AtomicBool>,
    deadline: Option<Instant>,
}

impl Stop {
    /// Never stops by itself.
    pub fn never() -> Self {
        Self::default()
    }

    /// Stops at `deadline`.
    pub fn at(deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..Self::default() }
    }

    /// This one, and also `limit` from now on.
    pub fn within(&self, limit: Duration) -> Self {
        let limit = Instant::now().checked_add(limit);
        Self { deadline: self.deadline.into_iter().chain(limit).min(), ..self.clone() }
    }

    /// Asks all who hold a clone of this to stop.
    pub fn request(&self) {
        self.requested.store(true, Ordering::Relaxed);
    }

    /// Ctrl-C and SIGTERM ask all who hold a clone of this to stop, from now on; a second one ends the process at once.
    ///
    /// # Errors
    /// The handlers can't be set; then the signals end the process, and the next run finishes what was begun.
    pub fn on_signals(&self) -> std::io::Result<()> {
        // A second handler of the first signal would take it for the second.
        if self.listening.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // The second of these first: it acts on what the first one will have set.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&self.requested))?;
            signal_hook::flag::register(signal, Arc::clone(&self.requested))?;
        }
        Ok(())
    }

    /// Somebody asked to stop; the deadline is not meant.
    pub fn was_requested(&self) -> bool {
        self.requested.load(Ordering::Relaxed)
    }

    /// Work has to end now; workers ask this at least once a directory.
    pub fn is_set(&self) -> bool {
        self.requested.load(Ordering::Relaxed) || self.deadline.is_some_and(|d| Instant::now() >= d)
    }
}

//! How a removal ends: what is said of it, and whether its journal goes.

use bstr::ByteSlice;

use crate::judge::reason::{Code, Reason};
use crate::sweep::absence;
use crate::sweep::journal::FateMark;
use crate::sweep::outcome::{BranchOutcome, Ending, Outcome};
use crate::sweep::record::Acted;
use crate::sweep::refs::{self, Value};
use crate::sweep::remove::RemoveError;
use crate::sweep::work::Work;
use crate::vantage::paths::escape;

/// Why the branch of a worktree that was not removed is kept.
pub(super) const STAYS: &str = "its worktree stays";

/// What ends a removal before its end.
#[derive(Debug)]
pub(super) struct Halt {
    pub ending: Ending,
    pub reason: Option<Reason>,
    pub note: String,
}

impl Halt {
    pub fn failed(note: impl Into<String>) -> Self {
        Self { ending: Ending::Failed, reason: None, note: note.into() }
    }

    pub fn skipped(note: impl Into<String>) -> Self {
        Self { ending: Ending::Skipped, reason: None, note: note.into() }
    }

    pub fn deferred(note: impl Into<String>) -> Self {
        Self { ending: Ending::Deferred, reason: None, note: note.into() }
    }

    pub fn because(mut self, code: Code) -> Self {
        self.reason = Some(Reason::new(code, self.note.clone()));
        self
    }

    pub fn of_removal(error: RemoveError) -> Self {
        let halt = Self::failed(error.to_string());
        match error {
            RemoveError::MountInside { .. } => halt.because(Code::MountInside),
            RemoveError::NotDeletable { .. } => halt.because(Code::NotDeletable),
            RemoveError::Replaced { .. } | RemoveError::Reappeared { .. } | RemoveError::Io { .. } => halt,
        }
    }
}

impl Work<'_> {
    /// The outcome when all is done; the journal goes.
    pub(super) fn conclude(mut self, branch: BranchOutcome) -> Outcome {
        let mut outcome = self.outcome(branch);
        outcome.result = self.ending();
        if let Err(error) = self.open.close(self.clone.state()) {
            self.notes.push(format!("its journal could not be removed: {error}"));
        }
        outcome.note = note(self.notes);
        outcome
    }

    pub(super) fn ending(&self) -> Ending {
        if self.open.journal.record.act == Acted::Forget { Ending::Forgotten } else { Ending::Removed }
    }

    /// The outcome of a removal that did not come to its end; the journal stays as it is.
    pub fn halted(mut self, halt: Halt) -> Outcome {
        let journal = &self.open.journal;
        let branch = match &journal.branch {
            FateMark::None => BranchOutcome::None,
            FateMark::Keep { name, why } => BranchOutcome::kept(name.0.clone(), why.as_str()),
            FateMark::Delete { name, .. } if halt.ending == Ending::Skipped => {
                BranchOutcome::kept(name.0.clone(), STAYS)
            }
            FateMark::Delete { name, .. } => {
                BranchOutcome::kept(name.0.clone(), "its worktree is not verified to be gone")
            }
        };
        let mut outcome = self.outcome(branch);
        outcome.result = halt.ending;
        outcome.reason = halt.reason;
        if halt.ending == Ending::Failed {
            outcome.observed = Some(self.observed());
        }
        if halt.ending != Ending::Skipped {
            outcome.retry = self.open.journal.root.local().map(|root| absence::retry(&root));
        }
        self.notes.insert(0, halt.note);
        outcome.note = note(self.notes);
        outcome
    }

    fn outcome(&self, branch: BranchOutcome) -> Outcome {
        let record = &self.open.journal.record;
        Outcome {
            name: record.name.0.clone(),
            path: record.path.as_ref().and_then(|p| p.local()),
            result: Ending::Failed,
            branch,
            removed: self.removed,
            reason: None,
            note: None,
            observed: None,
            retry: None,
            record: Some(record.id.clone()),
        }
    }

    /// What is there after a failure: path, trash and entry, and the branch.
    fn observed(&self) -> String {
        let mut seen = match self.verify() {
            Ok(()) => "path, trash and registration are absent".to_owned(),
            Err(halt) => halt.note,
        };
        if let Some(name) = &self.open.journal.record.branch {
            let value = match refs::read(self.clone.common(), name.0.as_bstr()) {
                Ok(Some(Value::Direct(id))) => format!("is at {id}"),
                Ok(Some(Value::Symbolic(to))) => format!("is symbolic ({})", escape(&to)),
                Ok(None) => "does not exist".into(),
                Err(error) => error.to_string(),
            };
            seen.push_str(&format!("; {} {value}", escape(&name.0)));
        }
        seen
    }
}

fn note(notes: Vec<String>) -> Option<String> {
    if notes.is_empty() { None } else { Some(notes.join("; ")) }
}

//! What is to go.

use super::Expected;
use crate::judge::facts::Subject;
use crate::judge::verdict::Mandate;
use crate::survey::examine::Examined;
use crate::survey::run::Candidate;

/// One thing that is to go, as the plan saw it.
#[derive(Clone, Debug)]
pub struct Order {
    pub candidate: Candidate,
    pub mandate: Mandate,
    pub expected: Expected,
}

impl Order {
    /// For what was examined.
    pub fn of(examined: &Examined, mandate: Mandate) -> Self {
        Self {
            candidate: candidate(&examined.facts.subject),
            mandate,
            expected: Expected::of(&examined.facts),
        }
    }

    /// Whether it is for this one.
    pub fn is_of(&self, examined: &Examined) -> bool {
        self.candidate == candidate(&examined.facts.subject)
            && self.expected.path.as_ref() == examined.facts.path()
    }
}

fn candidate(subject: &Subject) -> Candidate {
    match subject {
        Subject::Registered { name, .. } => Candidate::Registered(name.clone()),
        Subject::Orphan { path, .. } => Candidate::Orphan(path.clone()),
        Subject::Trash { path, .. } => Candidate::Trash(path.clone()),
    }
}

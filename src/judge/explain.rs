//! Every question with its answer and the evidence, for `--explain`.

use crate::judge::facts::{AbsenceProof, Asked, Facts, Landed, LockedBy, Ownership, Placement, Question};
use crate::judge::rules::{self, Policy, span};
use crate::plan::Explained;
use crate::vantage::paths::escape;

/// What was asked of one worktree, in the order of the questions; one that was not asked says so.
pub fn explain(facts: &Facts, policy: &Policy) -> Vec<Explained> {
    let mut rows = vec![place(facts), ownership(facts)];
    for question in Question::ALL {
        let reasons = rules::reasons(question, facts, policy);
        let seen = evidence(question, facts, policy);
        let against: Vec<String> = reasons.iter().map(ToString::to_string).collect();
        let answer = match (seen, against.is_empty()) {
            (Some(seen), true) => format!("{seen}; nothing against it"),
            (Some(seen), false) => format!("{seen}; {}", against.join("; ")),
            (None, false) => against.join("; "),
            (None, true) => "not asked".to_owned(),
        };
        rows.push(Explained { question: question.as_str(), answer });
    }
    rows
}

fn place(facts: &Facts) -> Explained {
    let answer = match &facts.standing.placement {
        Placement::Joined { path, by, .. } => format!("{path}, by {}: {}", by.kind.as_str(), by.text),
        Placement::Absent { expected, by, proof } => {
            let proof = match proof {
                AbsenceProof::Proven(how) => format!("its absence is proven: {how}"),
                AbsenceProof::Weak(how) => format!("weak evidence of absence: {how}"),
            };
            format!("{expected} is not there, by {}; {proof}", by.kind.as_str())
        }
        Placement::Unregistered => match facts.path() {
            Some(path) => format!("{path}, whose registration is gone"),
            None => "its registration is gone".to_owned(),
        },
        Placement::Held { path: Some(path), .. } => format!("{path}, not joined"),
        Placement::Held { path: None, .. } => "not known".to_owned(),
    };
    Explained { question: "place", answer }
}

fn ownership(facts: &Facts) -> Explained {
    Explained { question: "ownership", answer: owned_by(&facts.standing.ownership) }
}

/// What an ownership rests on, or what it lacks.
pub fn owned_by(ownership: &Ownership) -> String {
    match ownership {
        Ownership::Owned { marker, template } => format!("marker {marker}, branch template '{template}'"),
        Ownership::Unowned { why } => why.clone(),
    }
}

/// What was seen; `None` if the question was not asked.
fn evidence(question: Question, facts: &Facts, policy: &Policy) -> Option<String> {
    let failed = |why: &str| Some(format!("could not be asked: {why}"));
    match question {
        Question::Standing => Some(match &facts.standing.lock {
            Some(lock) if lock.by == LockedBy::Guard => {
                "locked by treesweep's own guard, which does not hold".to_owned()
            }
            Some(_) => "locked".to_owned(),
            None => "not locked".to_owned(),
        }),
        Question::Liveness => match &facts.liveness {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(holds) => Some(match holds.is_empty() {
                true => "no container and no process holds it".to_owned(),
                false => "containers and processes were asked".to_owned(),
            }),
        },
        Question::Head => match &facts.head {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(head) => {
                let at = head.branch.as_ref().map_or("detached".to_owned(), |b| escape(b));
                Some(match head.tip {
                    Some(tip) => format!("{at} at {tip}"),
                    None => format!("{at}, without a commit"),
                })
            }
        },
        Question::History => match &facts.history {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(history) => Some(landed(&history.landed, policy, history.born)),
        },
        Question::Activity => match &facts.activity {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(seen) => Some(match &seen.last {
                Some((at, what)) => {
                    format!("{what} changed {} ago", span(policy.now.seconds.saturating_sub(at.seconds)))
                }
                None => "no time is known".to_owned(),
            }),
        },
        Question::Index => match &facts.index {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(index) if index.missing => Some("there is no index".to_owned()),
            Asked::Answered(_) => Some("compared with the tree of HEAD".to_owned()),
        },
        Question::Tree => match &facts.tree {
            Asked::NotYet => None,
            Asked::Failed(why) => failed(why),
            Asked::Answered(tree) => {
                let files = if tree.size.files == 1 { "file" } else { "files" };
                let directories = if tree.size.directories == 1 { "directory" } else { "directories" };
                Some(format!(
                    "{} {files} in {} {directories}, all looked at",
                    tree.size.files, tree.size.directories
                ))
            }
        },
    }
}

fn landed(landed: &Landed, policy: &Policy, born: Option<crate::beneath::Stamp>) -> String {
    let how = match landed {
        Landed::Ancestry { trunk_ref } => format!("{} contains it", escape(trunk_ref)),
        Landed::Content { trunk_ref } => format!("merging it into {} changes nothing", escape(trunk_ref)),
        Landed::No { .. } => "it has not landed".to_owned(),
    };
    match born {
        Some(born) => format!("{how}, made {} ago", span(policy.now.seconds.saturating_sub(born.seconds))),
        None => how,
    }
}

//! Ownership: recorded lifecycle evidence, and the exact relation of branch and entry (decision record 0315).
//!
//! A prefix, a place, a merged branch, the environment, or anything inside the checkout is no evidence.

use bstr::BStr;

use crate::config::BranchTemplate;
use crate::judge::facts::Ownership;
use crate::vantage::paths::{EntryName, escape};

/// What was found in an entry, and in the state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerFact {
    None,
    /// Something is there that counts as none, and why.
    Invalid(String),
    /// A marker that names this entry; its place below the entry.
    Ready(String),
}

/// Everything that ownership depends on.
#[derive(Clone, Debug)]
pub struct OwnershipInput<'a> {
    pub name: &'a EntryName,
    /// HEAD's branch, its short name.
    pub branch: Option<&'a BStr>,
    pub marker: &'a MarkerFact,
    pub templates: &'a [BranchTemplate],
    /// A host-vantage checkout in a clone with foreign registrations: whoever can write the common directory can forge
    /// a marker, so that the state directory has to know it too.
    pub needs_record: bool,
    pub has_record: bool,
}

/// The one ownership predicate.
pub fn ownership(input: &OwnershipInput<'_>) -> Ownership {
    let unowned = |why: String| Ownership::Unowned { why };
    let marker = match input.marker {
        MarkerFact::Ready(marker) => marker,
        MarkerFact::None => return unowned("no ready marker; `treesweep setup` enrols it".to_owned()),
        MarkerFact::Invalid(why) => return unowned(format!("its marker counts as none: {why}")),
    };
    let Some(branch) = input.branch else { return unowned("its HEAD is detached".to_owned()) };
    let matching = input.templates.iter().find(|t| t.matches(input.name.as_bstr(), branch));
    let Some(template) = matching else {
        let fitting = BranchTemplate::inferred(input.name.as_bstr(), branch);
        let hint = fitting.map_or(String::new(), |t| format!("; the branch template '{t}' would match"));
        return unowned(format!("branch {} matches no template of {}{hint}", escape(branch), input.name));
    };
    if input.needs_record && !input.has_record {
        return unowned(
            "the state directory has no record of its marker, and containers can write this clone; \
             `treesweep setup` enrols it"
                .to_owned(),
        );
    }
    Ownership::Owned { marker: marker.clone(), template: template.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates() -> Vec<BranchTemplate> {
        ["wt/{name}", "{name}", "worktree-{name}"]
            .map(|t| BranchTemplate::parse(t.as_bytes()).unwrap())
            .into()
    }

    fn owned(marker: &MarkerFact, branch: Option<&str>, needs_record: bool, has_record: bool) -> bool {
        let name = EntryName::new("fix").unwrap();
        let templates = templates();
        let input = OwnershipInput {
            name: &name,
            branch: branch.map(BStr::new),
            marker,
            templates: &templates,
            needs_record,
            has_record,
        };
        ownership(&input).is_owned()
    }

    #[test]
    fn marker_and_exact_relation_are_both_needed() {
        let ready = MarkerFact::Ready("treesweep/ready".into());
        for branch in ["fix", "wt/fix", "worktree-fix"] {
            assert!(owned(&ready, Some(branch), false, false), "{branch}");
            assert!(!owned(&MarkerFact::None, Some(branch), false, true), "{branch}");
            assert!(!owned(&MarkerFact::Invalid("junk".into()), Some(branch), false, true), "{branch}");
        }
        for branch in ["wt/fix2", "wt/", "fix2", "xfix", "wt/fix/", "worktree-", "other"] {
            assert!(!owned(&ready, Some(branch), false, true), "{branch}");
        }
        assert!(!owned(&ready, None, false, true), "detached");
    }

    #[test]
    fn where_a_container_could_forge_the_record_decides() {
        let ready = MarkerFact::Ready("treesweep/ready".into());
        assert!(!owned(&ready, Some("fix"), true, false));
        assert!(owned(&ready, Some("fix"), true, true));
    }
}

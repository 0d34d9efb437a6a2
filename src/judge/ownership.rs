//! Ownership: recorded lifecycle evidence, and the exact relation of branch and entry (decision record 0315).
//!
//! A prefix, a place, a merged branch, the environment, or anything inside the checkout is no evidence.

use bstr::{BStr, ByteSlice};

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
    /// Branch templates, each with one `{name}`.
    pub templates: &'a [String],
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
    let matching = input.templates.iter().find(|t| matches(t, input.name.as_bstr(), branch));
    let Some(template) = matching else {
        let fitting = fitting_template(input.name, branch);
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
    Ownership::Owned { marker: marker.clone(), template: template.clone() }
}

/// Whether `branch` is exactly `template` with `name` in the place of `{name}`.
pub fn matches(template: &str, name: &BStr, branch: &BStr) -> bool {
    let Some((before, after)) = template.split_once("{name}") else { return false };
    branch
        .strip_prefix(before.as_bytes())
        .and_then(|rest| rest.strip_suffix(after.as_bytes()))
        .is_some_and(|middle| middle == name.as_bytes())
}

/// The template that would make `branch` match `name`, if the branch has the name in it as a whole part.
pub fn fitting_template(name: &EntryName, branch: &BStr) -> Option<String> {
    let branch = branch.to_str().ok()?;
    let name = name.as_bstr().to_str().ok()?;
    let (before, after) = branch.split_once(name)?;
    let whole = |edge: Option<char>| edge.is_none_or(|c| matches!(c, '/' | '-' | '_' | '.'));
    (whole(before.chars().last()) && whole(after.chars().next())).then(|| format!("{before}{{name}}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn templates() -> Vec<String> {
        ["wt/{name}", "{name}", "worktree-{name}"].map(str::to_owned).into()
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

    #[test]
    fn the_hint_names_a_template_that_matches() {
        let name = EntryName::new("fix").unwrap();
        assert_eq!(fitting_template(&name, BStr::new("agents/fix")), Some("agents/{name}".into()));
        assert_eq!(fitting_template(&name, BStr::new("prefix")), None);
        let hint = fitting_template(&name, BStr::new("a-fix-b")).unwrap();
        assert!(matches(&hint, BStr::new("fix"), BStr::new("a-fix-b")));
    }
}

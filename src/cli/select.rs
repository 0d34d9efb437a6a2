//! Which worktree a person means by a name, a recorded path, or a path here.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use crate::cli::args::Subject;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};

/// What a worktree answers to.
#[derive(Clone, Debug)]
pub struct Answers<'a, T> {
    pub name: &'a BStr,
    pub recorded: Option<&'a BStr>,
    pub path: Option<&'a LocalPath>,
    /// Which clone, for telling namesakes apart.
    pub clone: &'a LocalPath,
    pub which: T,
}

/// Why a subject names nothing that can be acted on.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum NotSelected {
    #[error("'{0}' is no worktree here: neither a name, nor a recorded path, nor a path")]
    Unknown(String),
    #[error("'{typed}' is the name of several worktrees: {places}; use a path")]
    Several { typed: String, places: String },
}

/// One way to mean a worktree.
type Rule<'r, 'a, T> = &'r dyn Fn(&Answers<'a, T>) -> bool;

/// The one worktree that `subject` means: an exact path here, else an exact recorded path, else an exact name.
pub fn select<'a, T: Copy>(subject: &Subject, all: &[Answers<'a, T>]) -> Result<T, NotSelected> {
    let local = resolved(&subject.local);
    let typed = RecordedPath::new(subject.typed.clone());
    let rules: [Rule<'_, 'a, T>; 3] = [
        &|a| local.is_some() && a.path == local.as_ref(),
        &|a| {
            a.recorded
                .is_some_and(|r| RecordedPath::new(r).normalized() == typed.without_dot_git().normalized())
        },
        &|a| a.name == subject.typed.as_bstr(),
    ];
    for rule in rules {
        let found: Vec<&Answers<'a, T>> = all.iter().filter(|a| rule(a)).collect();
        match found.as_slice() {
            [] => {}
            [only] => return Ok(only.which),
            several => {
                let place = |a: &&Answers<'a, T>| match a.path {
                    Some(path) => path.to_string(),
                    None => format!("{} of {}", escape(a.name), a.clone),
                };
                let places: Vec<String> = several.iter().map(place).collect();
                return Err(NotSelected::Several {
                    typed: escape(&subject.typed),
                    places: places.join(", "),
                });
            }
        }
    }
    Err(NotSelected::Unknown(escape(&subject.typed)))
}

/// With the links of its parents followed; the last component may be gone.
fn resolved(path: &Path) -> Option<LocalPath> {
    if let Ok(real) = path.canonicalize() {
        return LocalPath::new(real);
    }
    let parent = path.parent()?.canonicalize().ok()?;
    LocalPath::new(parent.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(typed: &str) -> Subject {
        Subject { typed: typed.into(), local: Path::new("/nowhere").join(typed) }
    }

    #[test]
    fn paths_go_before_names_and_names_must_be_unique() {
        let clone = LocalPath::new("/src/app").unwrap();
        let answers = |name: &'static str, recorded: Option<&'static str>, which: u8| Answers {
            name: name.into(),
            recorded: recorded.map(Into::into),
            path: None,
            clone: &clone,
            which,
        };
        let all = [answers("a", Some("/workspaces/app/a"), 1), answers("b", None, 2), answers("b", None, 3)];
        assert_eq!(select(&subject("a"), &all), Ok(1));
        assert_eq!(select(&subject("/workspaces/app/a/"), &all), Ok(1));
        assert!(matches!(select(&subject("b"), &all), Err(NotSelected::Several { .. })));
        assert_eq!(select(&subject("a*"), &all), Err(NotSelected::Unknown("a*".into())));
    }
}

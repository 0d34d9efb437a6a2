//! The two links of a worktree: `gitdir` in the administrative entry, `.git` in the checkout. Whoever made the worktree
//! wrote them in the paths of its own namespace, and can use it only if they are written so again.

use bstr::{BString, ByteSlice};

use crate::vantage::paths::{EntryName, LocalPath, RecordedPath};
use crate::vantage::translate::{Place, TranslationKind, Translator};

/// What the links of a worktree were, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Old {
    /// What `gitdir` said, without `/.git`.
    pub recorded: Option<RecordedPath>,
    /// What the `.git` file said.
    pub pointer: Option<RecordedPath>,
    /// Where the checkout was here.
    pub path: Option<LocalPath>,
}

/// Where a worktree is to be.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'a> {
    pub common: &'a LocalPath,
    pub name: &'a EntryName,
    pub checkout: &'a LocalPath,
}

/// The links, without the words around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// The checkout, without `/.git`.
    pub checkout: RecordedPath,
    /// The administrative entry.
    pub entry: RecordedPath,
    pub form: Form,
}

/// Whose paths they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Of this host.
    Here,
    /// The same for everybody who has both places.
    Relative,
    /// Of whoever made the worktree: a container, or this host by another spelling.
    AsBefore,
    /// Of this host, since nothing tells what the others call this place.
    Lost,
}

impl Links {
    /// The content of `gitdir`.
    pub fn gitdir(&self) -> Vec<u8> {
        [self.checkout.as_bstr().as_bytes(), b"/.git\n"].concat()
    }

    /// The content of the checkout's `.git` file.
    pub fn dot_git(&self) -> Vec<u8> {
        [b"gitdir: ", self.entry.as_bstr().as_bytes(), b"\n"].concat()
    }

    fn here(spot: Spot<'_>, form: Form) -> Self {
        Self {
            checkout: RecordedPath::new(spot.checkout.as_bstr()),
            entry: RecordedPath::new(spot.entry_path()),
            form,
        }
    }
}

impl Spot<'_> {
    fn entry_path(&self) -> BString {
        [self.common.as_bstr().as_bytes(), b"/worktrees/", self.name.as_bstr().as_bytes()].concat().into()
    }

    fn relative_entry(&self) -> RecordedPath {
        relative(self.checkout.as_bstr(), &self.entry_path())
    }

    fn relative_checkout(&self) -> RecordedPath {
        relative(&self.entry_path(), self.checkout.as_bstr())
    }
}

/// The links for a worktree at `spot` in the form that they had. `rules` are the translations that hold for the clone,
/// best first.
pub fn like(old: &Old, spot: Spot<'_>, rules: &[Translator]) -> Links {
    let Some(recorded) = &old.recorded else { return Links::here(spot, Form::Here) };
    let is_relative = |path: &RecordedPath| !path.is_absolute() && !path.is_windows();
    if is_relative(recorded) {
        let entry = match &old.pointer {
            Some(pointer) if !is_relative(pointer) => pointer.clone(),
            _ => spot.relative_entry(),
        };
        return Links { checkout: spot.relative_checkout(), entry, form: Form::Relative };
    }
    let identity = old.path.as_ref().is_some_and(|path| path.as_bstr() == recorded.as_bstr());
    let relative_pointer = old.pointer.as_ref().is_some_and(is_relative);
    if identity {
        let mut links = Links::here(spot, Form::Here);
        if relative_pointer {
            links.entry = spot.relative_entry();
        }
        return links;
    }
    foreign(old, recorded, relative_pointer, spot, rules).unwrap_or_else(|| Links::here(spot, Form::Lost))
}

/// The links of the checkout at `spot` whose `.git` file is `pointer` and stays as it is, where its entry is lost. `rules`
/// are translations that lead from what `pointer` calls the clone to the clone, best first.
///
/// # Errors
/// Nothing tells what the writer of `pointer` calls the checkout, or two rules tell it differently.
pub fn again(pointer: &RecordedPath, spot: Spot<'_>, rules: &[Translator]) -> Result<Links, Unknown> {
    let entry = pointer.clone();
    if !pointer.is_absolute() && !pointer.is_windows() {
        return Ok(Links { checkout: spot.relative_checkout(), entry, form: Form::Relative });
    }
    let names = rules.iter().filter_map(|rule| Some((rule, rule.name_of(spot.checkout)?)));
    let mut names = names.collect::<Vec<_>>().into_iter();
    let (rule, checkout) = names.next().ok_or(Unknown::Nothing)?;
    if let Some((_, other)) = names.find(|(other, name)| other.kind() == rule.kind() && *name != checkout) {
        return Err(Unknown::Two(checkout, other));
    }
    let form = if rule.kind().is_of_this_vantage() { Form::Here } else { Form::AsBefore };
    Ok(Links { checkout, entry, form })
}

/// Why it is not known what the writer of a `.git` file calls its directory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("nothing tells what the container calls it")]
    Nothing,
    #[error("it may be '{0}' or '{1}' there")]
    Two(RecordedPath, RecordedPath),
}

/// In the paths of another namespace, if it is known what it calls both places.
fn foreign(
    old: &Old,
    recorded: &RecordedPath,
    relative_pointer: bool,
    spot: Spot<'_>,
    rules: &[Translator],
) -> Option<Links> {
    let rule = || {
        let path = old.path.as_ref()?;
        let holds = |rule: &&Translator| rule.place(recorded) == Place::Here(path.clone());
        rules.iter().find(holds).cloned().or_else(|| by_tail(recorded, path))
    };
    let checkout = match old.path.as_ref() == Some(spot.checkout) {
        true => recorded.clone(),
        false => rule()?.name_of(spot.checkout)?,
    };
    let entry = match &old.pointer {
        Some(_) if relative_pointer => spot.relative_entry(),
        Some(pointer) => pointer.clone(),
        None => {
            let common = rule()?.name_of(spot.common)?;
            let path = [common.as_bstr().as_bytes(), b"/worktrees/", spot.name.as_bstr().as_bytes()];
            RecordedPath::new(path.concat())
        }
    };
    Some(Links { checkout, entry, form: Form::AsBefore })
}

/// What two paths of one directory say of its parents: the components that both end in are the same directories.
fn by_tail(recorded: &RecordedPath, local: &LocalPath) -> Option<Translator> {
    let recorded = Some(recorded).filter(|p| !p.is_windows())?.normalized()?;
    let (theirs, ours): (Vec<_>, Vec<_>) = (recorded.components().collect(), local.components().collect());
    let shared = theirs.iter().rev().zip(ours.iter().rev()).take_while(|(a, b)| a == b).count();
    let absolute = |parts: &[&bstr::BStr]| BString::from([b"/", bstr::join("/", parts).as_slice()].concat());
    Some(Translator::Prefix {
        kind: TranslationKind::Inferred,
        from: RecordedPath::new(absolute(&theirs[..theirs.len() - shared])),
        to: LocalPath::new(absolute(&ours[..ours.len() - shared]).to_path_lossy())?,
        evidence: format!("{local} was '{recorded}'"),
    })
}

/// `to` as it is called from the directory `from`; both are absolute and have no link on the way.
fn relative(from: &[u8], to: &[u8]) -> RecordedPath {
    let parts = |path: &[u8]| -> Vec<Vec<u8>> {
        path.split(|b| *b == b'/').filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect()
    };
    let (from, to) = (parts(from), parts(to));
    let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n(b"..".to_vec(), from.len() - shared);
    let all: Vec<Vec<u8>> = up.chain(to[shared..].iter().cloned()).collect();
    RecordedPath::new(bstr::join("/", &all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rec(path: &str) -> Option<RecordedPath> {
        Some(RecordedPath::new(path))
    }

    fn loc(path: &str) -> LocalPath {
        LocalPath::new(path).unwrap()
    }

    /// The worktree `x` of the clone `/src/app`, which was at `/src/app/.worktrees/x` and is to be at `at`.
    fn links(
        recorded: &str,
        pointer: Option<&str>,
        at: &str,
        rules: &[Translator],
    ) -> (String, String, Form) {
        let name = EntryName::new("x").unwrap();
        let (common, at) = (loc("/src/app/.git"), loc(at));
        let old = Old {
            recorded: rec(recorded),
            pointer: pointer.and_then(rec),
            path: Some(loc("/src/app/.worktrees/x")),
        };
        let links = like(&old, Spot { common: &common, name: &name, checkout: &at }, rules);
        (links.checkout.to_string(), links.entry.to_string(), links.form)
    }

    const OLD: &str = "/src/app/.worktrees/x";

    fn is(links: (String, String, Form), checkout: &str, entry: &str, form: Form) {
        assert_eq!(links, (checkout.to_owned(), entry.to_owned(), form));
    }

    #[test]
    fn a_path_of_this_host_is_one_again() {
        let entry = "/src/app/.git/worktrees/x";
        is(links(OLD, Some(entry), OLD, &[]), OLD, entry, Form::Here);
        is(links(OLD, None, "/src/y", &[]), "/src/y", entry, Form::Here);
    }

    #[test]
    fn relative_links_are_relative_again() {
        let (recorded, pointer) = ("../../../.worktrees/x", Some("../../.git/worktrees/x"));
        is(links(recorded, pointer, OLD, &[]), recorded, "../../.git/worktrees/x", Form::Relative);
        is(
            links(recorded, pointer, "/src/y", &[]),
            "../../../../y",
            "../app/.git/worktrees/x",
            Form::Relative,
        );
    }

    #[test]
    fn a_containers_paths_are_written_as_the_container_wrote_them() {
        let (recorded, entry) = ("/workspaces/app/.worktrees/x", "/workspaces/app/.git/worktrees/x");
        for pointer in [Some(entry), None] {
            is(links(recorded, pointer, OLD, &[]), recorded, entry, Form::AsBefore);
            is(links(recorded, pointer, "/src/y", &[]), "/workspaces/y", entry, Form::AsBefore);
            let lost = links(recorded, pointer, "/elsewhere/y", &[]);
            is(lost, "/elsewhere/y", "/src/app/.git/worktrees/x", Form::Lost);
        }
    }

    /// The clone and its worktrees are mounted apart: what the two paths share says nothing of the clone.
    #[test]
    fn what_is_known_of_the_container_is_better_than_a_shared_tail() {
        let map = |from: &str, to: &str| Translator::Prefix {
            kind: TranslationKind::Map,
            from: RecordedPath::new(from),
            to: loc(to),
            evidence: String::new(),
        };
        let recorded = "/trees/x";
        let rules = [map("/main", "/src/app"), map("/trees", "/src/app/.worktrees")];
        is(
            links(recorded, Some("/main/.git/worktrees/x"), OLD, &rules),
            recorded,
            "/main/.git/worktrees/x",
            Form::AsBefore,
        );
        let beside = links(recorded, Some("/main/.git/worktrees/x"), "/src/app/.worktrees/y", &rules);
        is(beside, "/trees/y", "/main/.git/worktrees/x", Form::AsBefore);
        let lost = links(recorded, None, OLD, &rules);
        is(lost, OLD, "/src/app/.git/worktrees/x", Form::Lost);
    }
}

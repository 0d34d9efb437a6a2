//! From a recorded path to a local one: the rules, each with its evidence and in the order of its strength.

use bstr::{BString, ByteSlice};

use crate::vantage::paths::{LocalPath, RecordedPath};

/// The kinds of translation, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TranslationKind {
    /// The path means here what it meant to its writer.
    Identity,
    /// Relative to the entry or to the checkout: the same in every namespace that has both.
    Relative,
    /// A container's mounts, as its engine tells them.
    Mount,
    /// The label `devcontainer.local_folder` of a container.
    Label,
    /// `--map CONTAINER=HOST`.
    Map,
    /// The two pointers of a pair, read against the clone's own path.
    Inferred,
}

impl TranslationKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Relative => "relative",
            Self::Mount => "mount",
            Self::Label => "label",
            Self::Map => "map",
            Self::Inferred => "inferred",
        }
    }

    /// The path means the same here and to its writer; every other kind leads here from another vantage.
    pub fn is_of_this_vantage(self) -> bool {
        matches!(self, Self::Identity | Self::Relative)
    }
}

/// A translation that was used, for the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    pub kind: TranslationKind,
    /// What it rests on.
    pub text: String,
}

/// A rule that takes recorded paths here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Translator {
    Identity,
    Container(ContainerView),
    Prefix { kind: TranslationKind, from: RecordedPath, to: LocalPath, evidence: String },
}

/// The file system of a container, as far as its mounts say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerView {
    pub name: String,
    /// What each destination shows; order does not matter, the deepest decides.
    pub mounts: Vec<(RecordedPath, MountedFrom)>,
}

/// What a container's mount shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MountedFrom {
    Here(LocalPath),
    /// A volume, a tmpfs, or whatever else is no directory of this host that we may touch.
    Elsewhere(String),
    /// A bind whose source can't be placed on this host.
    Unplaceable(String),
}

/// Where a recorded path is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Here(LocalPath),
    /// In a volume or in the container's own layer: a local path says nothing about it.
    Elsewhere(String),
    /// This rule does not speak of the path.
    NotCovered,
}

impl Translator {
    pub fn kind(&self) -> TranslationKind {
        match self {
            Self::Identity => TranslationKind::Identity,
            Self::Container(_) => TranslationKind::Mount,
            Self::Prefix { kind, .. } => *kind,
        }
    }

    pub fn evidence(&self) -> Evidence {
        let text = match self {
            Self::Identity => "the recorded path is a path of this host".to_owned(),
            Self::Container(view) => format!("mounts of container {}", view.name),
            Self::Prefix { evidence, .. } => evidence.clone(),
        };
        Evidence { kind: self.kind(), text }
    }

    /// The local directory that stands for everything this rule says of `path`: a mount's source, a prefix's other side.
    /// If it is gone, or nothing below it is there, the absence of one path proves nothing.
    pub fn base(&self, path: &RecordedPath) -> Option<LocalPath> {
        match self {
            Self::Identity => LocalPath::new("/"),
            Self::Prefix { to, .. } => Some(to.clone()),
            Self::Container(view) => match view.deepest(&path.normalized()?) {
                Some((_, MountedFrom::Here(source))) => Some(source.clone()),
                _ => None,
            },
        }
    }

    /// Where the absolute path `path` is.
    pub fn place(&self, path: &RecordedPath) -> Place {
        let windows = path.is_windows();
        match self {
            // A drive letter or a backslash: only the user's own map may speak of it.
            Self::Identity | Self::Container(_) if windows => Place::NotCovered,
            Self::Prefix { kind, .. } if windows && *kind != TranslationKind::Map => Place::NotCovered,
            Self::Identity if path.is_absolute() => {
                LocalPath::new(path.as_bstr().to_path_lossy()).map_or(Place::NotCovered, Place::Here)
            }
            Self::Identity => Place::NotCovered,
            Self::Container(view) => view.place(path),
            Self::Prefix { from, to, .. } => {
                let Some(path) = path.slashed().normalized() else { return Place::NotCovered };
                match path.below(&from.slashed()).and_then(|rest| to.join(rest)) {
                    Some(local) => Place::Here(local),
                    None => Place::NotCovered,
                }
            }
        }
    }
}

impl Translator {
    /// What whoever writes paths of this rule's namespace calls the local directory `local`.
    pub fn name_of(&self, local: &LocalPath) -> Option<RecordedPath> {
        let name = match self {
            Self::Identity => RecordedPath::new(local.as_bstr()),
            Self::Container(view) => return view.name_of(local),
            Self::Prefix { from, to, .. } => extended(from, local.below(to)?),
        };
        (self.place(&name) == Place::Here(local.clone())).then_some(name)
    }
}

impl ContainerView {
    /// The deepest mount over `path` decides; a path that none covers is in the container's own layer.
    pub fn place(&self, path: &RecordedPath) -> Place {
        let Some(path) = path.normalized() else { return Place::NotCovered };
        match self.deepest(&path) {
            None => Place::Elsewhere(format!("the own layer of container {}", self.name)),
            Some((rest, MountedFrom::Here(source))) => {
                source.join(rest).map_or(Place::NotCovered, Place::Here)
            }
            Some((_, MountedFrom::Elsewhere(what))) => {
                Place::Elsewhere(format!("{what} of container {}", self.name))
            }
            Some((_, MountedFrom::Unplaceable(source))) => Place::Elsewhere(format!(
                "'{source}', which can't be placed on this host, of container {}",
                self.name
            )),
        }
    }

    /// The deepest mount over `path`, which is normalized, and what is left of the path below it.
    fn deepest<'p>(&self, path: &'p RecordedPath) -> Option<(&'p bstr::BStr, &MountedFrom)> {
        self.mounts
            .iter()
            .filter_map(|(to, from)| path.below(to).map(|rest| (to.components().count(), rest, from)))
            .max_by_key(|(depth, _, _)| *depth)
            .map(|(_, rest, from)| (rest, from))
    }

    /// What the container calls the local directory `local`, if a mount shows it.
    pub fn name_of(&self, local: &LocalPath) -> Option<RecordedPath> {
        let covering = self.mounts.iter().filter_map(|(to, from)| match from {
            MountedFrom::Here(source) => local.below(source).map(|rest| (to, rest)),
            _ => None,
        });
        covering
            .map(|(to, rest)| extended(to, rest))
            // A deeper mount may cover the name; then it does not lead back.
            .find(|name| self.place(name) == Place::Here(local.clone()))
    }
}

/// `rest` below `path`, with the separators of whoever wrote `path`.
fn extended(path: &RecordedPath, rest: &bstr::BStr) -> RecordedPath {
    if rest.is_empty() {
        return path.clone();
    }
    let separator = if path.as_bstr().contains(&b'\\') { b'\\' } else { b'/' };
    let mut bytes = path.as_bstr().trim_end_with(|c| c == char::from(separator)).to_vec();
    bytes.push(separator);
    bytes.extend(rest.iter().map(|b| if *b == b'/' { separator } else { *b }));
    RecordedPath::new(bytes)
}

/// Infers what `called`, the path that a container recorded for the common directory `common`, says about its parents:
/// the components that both end in are the same directories, within the root.
///
/// With no shared component only what lies beneath the common directory is mapped. A Windows path infers nothing.
pub fn infer(called: &RecordedPath, common: &LocalPath, root: &LocalPath) -> Option<Translator> {
    if !called.is_absolute() || called.is_windows() {
        return None;
    }
    let called = called.normalized()?;
    let theirs: Vec<_> = called.components().collect();
    let ours: Vec<_> = common.components().collect();
    let bound = ours.len().checked_sub(root.components().count())?;
    let shared = theirs.iter().rev().zip(ours.iter().rev()).take_while(|(a, b)| a == b).count().min(bound);
    let from = absolute(&theirs[..theirs.len() - shared]);
    let to = LocalPath::new(absolute(&ours[..ours.len() - shared]).to_path_lossy())?;
    let evidence = format!("the container called {common} '{called}'");
    Some(Translator::Prefix { kind: TranslationKind::Inferred, from: RecordedPath::new(from), to, evidence })
}

fn absolute(components: &[&bstr::BStr]) -> BString {
    let mut path = BString::from("/");
    path.extend_from_slice(&bstr::join("/", components));
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rec(s: &str) -> RecordedPath {
        RecordedPath::new(s)
    }
    fn loc(s: &str) -> LocalPath {
        LocalPath::new(s).unwrap()
    }
    fn here(s: &str) -> Place {
        Place::Here(loc(s))
    }

    #[test]
    fn the_shared_tail_fixes_the_parents() {
        let t =
            infer(&rec("/workspaces/app/.git"), &loc("/home/u/src/app/.git"), &loc("/home/u/src")).unwrap();
        assert_eq!(t.place(&rec("/workspaces/app-b")), here("/home/u/src/app-b"));
        assert_eq!(t.place(&rec("/elsewhere/x")), Place::NotCovered);
    }

    #[test]
    fn another_name_maps_only_the_clone() {
        let t = infer(&rec("/workspaces/app/.git"), &loc("/src/app-b/.git"), &loc("/src")).unwrap();
        assert_eq!(t.place(&rec("/workspaces/app/.worktrees/x")), here("/src/app-b/.worktrees/x"));
        assert_eq!(t.place(&rec("/workspaces/app-x")), Place::NotCovered);
    }

    #[test]
    fn the_root_bounds_the_tail() {
        let t = infer(&rec("/workspaces/app/.git"), &loc("/src/app/.git"), &loc("/src/app")).unwrap();
        assert_eq!(t.place(&rec("/workspaces/app/x")), here("/src/app/x"));
        assert_eq!(t.place(&rec("/workspaces/y")), Place::NotCovered);
    }

    #[test]
    fn an_empty_tail_maps_what_lies_beneath() {
        let t = infer(&rec("/repo"), &loc("/src/app.git"), &loc("/src")).unwrap();
        assert_eq!(t.place(&rec("/repo/wt/x")), here("/src/app.git/wt/x"));
        assert_eq!(t.place(&rec("/wt")), Place::NotCovered);
        assert_eq!(infer(&rec("C:/src/app/.git"), &loc("/src/app/.git"), &loc("/src")), None);
    }

    #[test]
    fn a_name_leads_back_or_there_is_none() {
        let prefix = |from: &str| Translator::Prefix {
            kind: TranslationKind::Map,
            from: rec(from),
            to: loc("/src/app"),
            evidence: String::new(),
        };
        assert_eq!(Translator::Identity.name_of(&loc("/src/app")), Some(rec("/src/app")));
        assert_eq!(prefix("/w/app/").name_of(&loc("/src/app/x")), Some(rec("/w/app/x")));
        assert_eq!(prefix("/w/app").name_of(&loc("/src/app")), Some(rec("/w/app")));
        assert_eq!(prefix("/w/app").name_of(&loc("/src/app-b")), None);
        assert_eq!(prefix(r"C:\src").name_of(&loc("/src/app/a/b")), Some(rec(r"C:\src\a\b")));
        assert_eq!(prefix("/w/app").name_of(&loc(r"/src/app/a\b")), None, "it would be read as another path");
    }

    #[test]
    fn the_deepest_mount_decides() {
        let view = ContainerView {
            name: "dev".into(),
            mounts: vec![
                (rec("/workspaces/app"), MountedFrom::Here(loc("/src/app"))),
                (rec("/workspaces/app/.worktrees"), MountedFrom::Elsewhere("volume wt".into())),
                (rec("/workspaces/app/.worktrees/k"), MountedFrom::Here(loc("/src/k"))),
            ],
        };
        assert_eq!(view.place(&rec("/workspaces/app/x")), here("/src/app/x"));
        assert_eq!(view.place(&rec("/workspaces/app/.worktrees/k/y")), here("/src/k/y"));
        assert!(matches!(view.place(&rec("/workspaces/app/.worktrees/v")), Place::Elsewhere(_)));
        assert!(matches!(view.place(&rec("/workspaces/app-b")), Place::Elsewhere(_)));
        assert_eq!(view.name_of(&loc("/src/app")), Some(rec("/workspaces/app")));
        assert_eq!(view.name_of(&loc("/src/app/.worktrees")), None);
    }

    #[test]
    fn windows_paths_are_for_the_map_alone() {
        let windows = rec("C:\\src\\app\\wt");
        assert_eq!(Translator::Identity.place(&windows), Place::NotCovered);
        let map = Translator::Prefix {
            kind: TranslationKind::Map,
            from: rec("C:\\src"),
            to: loc("/src"),
            evidence: String::new(),
        };
        assert_eq!(map.place(&windows), here("/src/app/wt"));
    }
}

//! Where a path of an engine's host lies here.
//!
//! On the host it is the same path. Inside a container that the engine lists, our own mounts lead to it. In a container
//! that the engine does not list, the engine may share our paths (it runs in here too) or not (its socket was passed
//! in): then a place is only a guess, which holds a checkout but proves nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;

use crate::engine::forms::Source;
use crate::vantage::mountinfo::{FsPlace, Mount, MountTable};
use crate::vantage::paths::{HostPath, LocalPath};

/// A local directory, in all the ways in which a mount's source may name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    path: LocalPath,
    fs: Option<FsPlace>,
}

impl Spot {
    /// `path` has no symlink among its components.
    pub fn new(path: LocalPath, mounts: &MountTable) -> Self {
        let fs = mounts.fs_place(&path);
        Self { path, fs }
    }

    pub fn path(&self) -> &LocalPath {
        &self.path
    }

    pub fn fs(&self) -> Option<&FsPlace> {
        self.fs.as_ref()
    }
}

/// Where a source lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    At(Place),
    /// There, if the engine shares our paths.
    Perhaps(Place),
    /// Not visible here, but it contains these directories, which are.
    Around(Vec<LocalPath>),
    /// Not to be found here.
    Nowhere,
}

/// A place here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// As reported, read here.
    path: LocalPath,
    resolved: LocalPath,
    /// The literal reading of a Docker Desktop form.
    literal: Option<LocalPath>,
    fs: Vec<FsPlace>,
    /// The engine's JSON had to replace bytes that are not UTF-8.
    lossy: bool,
}

/// How a source lies to a directory; the nearer relation if its spellings differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The source contains the directory.
    Above,
    /// The source is the directory or lies inside it.
    AtOrInside,
}

impl Placement {
    /// How what is placed lies to `spot`; `None` if neither contains the other, as far as is known.
    pub fn relation_to(&self, spot: &Spot) -> Option<Relation> {
        match self {
            Self::At(place) | Self::Perhaps(place) => place.relation_to(spot),
            Self::Around(inner) => inner
                .iter()
                .any(|i| spot.path.is_beneath_or_at(i) || i.is_beneath_or_at(&spot.path))
                .then_some(Relation::Above),
            Self::Nowhere => None,
        }
    }

    /// It is, perhaps, the very directory, and nothing inside it.
    pub fn may_be(&self, spot: &Spot) -> bool {
        match self {
            Self::At(place) | Self::Perhaps(place) => place.is(spot),
            Self::Around(_) | Self::Nowhere => false,
        }
    }

    /// The place, if it is known and no guess.
    pub fn known(&self) -> Option<&Place> {
        match self {
            Self::At(place) => Some(place),
            Self::Perhaps(_) | Self::Around(_) | Self::Nowhere => None,
        }
    }
}

impl Place {
    /// The place that the engine's words name; symlinks in it are not resolved.
    pub fn path(&self) -> &LocalPath {
        &self.path
    }

    /// The same with its symlinks resolved, as far as it exists.
    pub fn resolved(&self) -> &LocalPath {
        &self.resolved
    }

    fn is(&self, spot: &Spot) -> bool {
        self.spellings().any(|path| *path == spot.path)
            || self.fs.iter().any(|fs| Some(fs) == spot.fs.as_ref())
    }

    /// This is what `mount` shows, in whatever namespace that is.
    pub fn is_shown_by(&self, mount: &Mount) -> bool {
        self.fs.contains(&mount.source_place())
    }

    fn relation_to(&self, spot: &Spot) -> Option<Relation> {
        let by_path = self.spellings().filter_map(|p| relation(p.as_path(), spot.path.as_path())).max();
        let by_fs = spot.fs.as_ref().and_then(|at| self.fs.iter().filter_map(|fs| fs_relation(fs, at)).max());
        let by_text =
            self.lossy.then(|| lossy(&spot.path)).and_then(|text| relation(self.path.as_path(), &text));
        by_path.max(by_fs).max(by_text)
    }

    fn spellings(&self) -> impl Iterator<Item = &LocalPath> {
        [&self.path, &self.resolved].into_iter().chain(&self.literal)
    }
}

fn relation(source: &Path, directory: &Path) -> Option<Relation> {
    if source.starts_with(directory) {
        Some(Relation::AtOrInside)
    } else {
        directory.starts_with(source).then_some(Relation::Above)
    }
}

fn fs_relation(source: &FsPlace, directory: &FsPlace) -> Option<Relation> {
    if source.is_beneath_or_at(directory) {
        Some(Relation::AtOrInside)
    } else {
        directory.is_beneath_or_at(source).then_some(Relation::Above)
    }
}

/// `path` as Go's JSON encoder writes it: each byte that is not UTF-8 becomes U+FFFD.
fn lossy(path: &LocalPath) -> PathBuf {
    let mut out = String::new();
    for chunk in path.as_bstr().utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    out.into()
}

/// How one engine's paths are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// The engine's host is where we are.
    Same,
    /// Perhaps it is.
    Guess,
    /// The engine lists the container that we are in, with these mounts.
    Own(OwnMounts),
}

/// What our own container mounts, by the words of its engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnMounts {
    pub binds: Vec<(HostPath, LocalPath)>,
    pub volumes: HashMap<String, LocalPath>,
}

/// Places the sources that one engine reports. What it resolved once it remembers: many containers share a source.
pub struct Placer<'a> {
    view: View,
    mounts: &'a MountTable,
    resolved: RefCell<HashMap<LocalPath, LocalPath>>,
}

impl<'a> Placer<'a> {
    /// `mounts` are this process's own.
    pub fn new(view: View, mounts: &'a MountTable) -> Self {
        Self { view, mounts, resolved: RefCell::default() }
    }

    pub fn place(&self, source: &Source) -> Placement {
        match source {
            Source::Host(path) => self.place_host(path),
            Source::Desktop { shared, literal } => {
                let mut placement = self.place_host(shared);
                if let Placement::At(place) | Placement::Perhaps(place) = &mut placement {
                    let literal = LocalPath::new(OsStr::from_bytes(literal.as_bstr()));
                    place.fs.extend(literal.as_ref().and_then(|path| self.mounts.fs_place(path)));
                    place.literal = literal;
                }
                placement
            }
            Source::Unplaceable(_) | Source::Absent => Placement::Nowhere,
        }
    }

    /// Where the host's `path` lies here.
    pub fn place_host(&self, path: &HostPath) -> Placement {
        let text = path.as_bstr();
        let Some(absolute) = LocalPath::new(OsStr::from_bytes(text)) else { return Placement::Nowhere };
        let lossy = text.contains_str("\u{fffd}");
        match &self.view {
            View::Same => Placement::At(self.local(absolute, lossy)),
            View::Guess => Placement::Perhaps(self.local(absolute, lossy)),
            View::Own(own) => self.through(own, &absolute, lossy),
        }
    }

    /// Where `rest`, a path below the root of the volume `name`, lies here: only our own mounts can tell.
    pub fn place_volume(&self, name: &str, rest: &[u8]) -> Placement {
        match &self.view {
            View::Own(own) => match own.volumes.get(name).and_then(|here| here.join(rest)) {
                Some(path) => Placement::At(self.local(path, false)),
                None => Placement::Nowhere,
            },
            View::Same | View::Guess => Placement::Nowhere,
        }
    }

    /// The deepest of our own mounts that the host's path lies in leads to it.
    fn through(&self, own: &OwnMounts, path: &LocalPath, lossy: bool) -> Placement {
        let sources = || {
            own.binds
                .iter()
                .filter_map(|(host, here)| Some((LocalPath::new(OsStr::from_bytes(host.as_bstr()))?, here)))
        };
        let over = sources()
            .filter_map(|(host, here)| Some((host.as_bstr().len(), here.join(path.below(&host)?)?)))
            .max_by_key(|(depth, _)| *depth);
        if let Some((_, here)) = over {
            return Placement::At(self.local(here, lossy));
        }
        let inside: Vec<_> =
            sources().filter(|(host, _)| host.is_beneath_or_at(path)).map(|(_, here)| here.clone()).collect();
        if inside.is_empty() { Placement::Nowhere } else { Placement::Around(inside) }
    }

    fn local(&self, path: LocalPath, lossy: bool) -> Place {
        let resolved = self.resolve(&path);
        let fs = self.mounts.fs_place(&resolved).into_iter().collect();
        Place { path, resolved, literal: None, fs, lossy }
    }

    /// `path` with the symlinks resolved in as much of it as exists and may be looked at.
    fn resolve(&self, path: &LocalPath) -> LocalPath {
        if let Some(known) = self.resolved.borrow().get(path) {
            return known.clone();
        }
        let resolved = resolve(path);
        self.resolved.borrow_mut().insert(path.clone(), resolved.clone());
        resolved
    }
}

fn resolve(path: &LocalPath) -> LocalPath {
    let mut rest: Vec<OsString> = Vec::new();
    for ancestor in path.as_path().ancestors() {
        if let Ok(mut real) = ancestor.canonicalize() {
            real.extend(rest.iter().rev());
            return LocalPath::new(real).unwrap_or_else(|| path.clone());
        }
        rest.extend(ancestor.file_name().map(OsStr::to_owned));
    }
    path.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn local(path: &str) -> LocalPath {
        LocalPath::new(path).unwrap()
    }

    fn table() -> MountTable {
        MountTable::parse(
            b"1 0 8:1 / / rw - ext4 d rw\n2 1 8:1 /src/app /alias rw - ext4 d rw\n3 1 8:2 / /big rw - ext4 d rw\n",
        )
        .unwrap()
    }

    fn spot(path: &str) -> Spot {
        Spot::new(local(path), &table())
    }

    fn relation_of(view: View, source: &str, path: &str) -> Option<Relation> {
        let table = table();
        Placer::new(view, &table).place_host(&HostPath::new(source)).relation_to(&spot(path))
    }

    #[test]
    fn on_the_host_a_source_is_where_it_says() {
        use Relation::{Above, AtOrInside};
        for (source, path, expected) in [
            ("/src/app", "/src/app", Some(AtOrInside)),
            ("/src/app/", "/src/app", Some(AtOrInside)),
            ("/src/app/x/y", "/src/app/x", Some(AtOrInside)),
            ("/src", "/src/app", Some(Above)),
            ("/", "/src/app", Some(Above)),
            ("/src/app-b", "/src/app", None),
            ("/src/ap", "/src/app", None),
            ("relative", "/src/app", None),
            // A bind mount of the host: another path, the same place in the file system.
            ("/alias/x", "/src/app/x", Some(AtOrInside)),
            ("/alias", "/src/app/x", Some(Above)),
            ("/src/app", "/alias/x", Some(Above)),
            ("/big", "/src/app", None),
        ] {
            assert_eq!(relation_of(View::Same, source, path), expected, "{source} to {path}");
            assert_eq!(relation_of(View::Guess, source, path), expected, "{source} to {path}, a guess");
        }
    }

    fn own(binds: &[(&str, &str)]) -> View {
        let binds = binds.iter().map(|(host, here)| (HostPath::new(*host), local(here))).collect();
        View::Own(OwnMounts { binds, volumes: HashMap::from([("v".into(), local("/vol"))]) })
    }

    #[test]
    fn inside_a_container_our_own_mounts_lead_to_it() {
        use Relation::{Above, AtOrInside};
        let view = || own(&[("/home/u/src", "/work"), ("/home/u/src/app/deep", "/deep")]);
        for (source, path, expected) in [
            ("/home/u/src/app", "/work/app", Some(AtOrInside)),
            ("/home/u/src/app", "/work/app/x", Some(Above)),
            ("/home/u/src/app/deep/er", "/deep", Some(AtOrInside)),
            ("/home/u", "/work/app", Some(Above)),
            ("/", "/work/app", Some(Above)),
            ("/work/app", "/work/app", None),
            ("/home/u/src2", "/work/app", None),
        ] {
            assert_eq!(relation_of(view(), source, path), expected, "{source} to {path}");
        }
        let table = table();
        let placer = Placer::new(view(), &table);
        assert_eq!(placer.place_volume("v", b"x").known().unwrap().path(), &local("/vol/x"));
        assert_eq!(placer.place_volume("w", b""), Placement::Nowhere);
        assert_eq!(placer.place_host(&HostPath::new("/home")).known(), None);
    }

    #[test]
    fn either_spelling_of_a_symlinked_root_is_the_same_place() {
        let tmp = tempfile::tempdir().unwrap();
        let base = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("src/app")).unwrap();
        symlink("src", base.join("code")).unwrap();
        let mounts = MountTable::own().unwrap();
        let placer = Placer::new(View::Same, &mounts);
        let at = Spot::new(LocalPath::new(base.join("src/app/gone")).unwrap(), &mounts);
        for source in ["src/app/gone", "code/app/gone"] {
            let host = HostPath::new(base.join(source).as_os_str().as_bytes());
            let placement = placer.place_host(&host);
            assert_eq!(placement.relation_to(&at), Some(Relation::AtOrInside), "{source}");
            assert_eq!(placement.known().unwrap().resolved(), at.path());
        }
    }

    #[test]
    fn bytes_that_json_lost_are_matched_by_what_is_left() {
        let at = Spot::new(LocalPath::new(OsStr::from_bytes(b"/src/a\xff\xfeb")).unwrap(), &table());
        let table = table();
        let placer = Placer::new(View::Same, &table);
        let relation = |text: &str| placer.place_host(&HostPath::new(text)).relation_to(&at);
        assert_eq!(relation("/src/a\u{fffd}\u{fffd}b/c"), Some(Relation::AtOrInside));
        assert_eq!(relation("/src/a\u{fffd}b"), None);
    }

    #[test]
    fn a_desktop_form_is_also_taken_literally() {
        let table = table();
        let placer = Placer::new(View::Same, &table);
        let source = Source::of_mount("/host_mnt/src/app", None);
        for path in ["/src/app", "/host_mnt/src/app"] {
            assert_eq!(placer.place(&source).relation_to(&spot(path)), Some(Relation::AtOrInside), "{path}");
        }
        assert_eq!(placer.place(&Source::Absent), Placement::Nowhere);
    }
}

//! Clones and checkouts of nothing but the files that tie them together, for the tests of discovery, join and placement.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::judge::facts::Placement;
use crate::judge::reason::Code;
use crate::stop::Stop;
use crate::survey::discover::{self, CloneSite, Field, Root};
use crate::survey::ground::Ground;
use crate::survey::join::{JoinSide, Joins};
use crate::survey::terrain::Terrain;
use crate::vantage::paths::LocalPath;
use crate::vantage::translate::{ContainerView, MountedFrom, TranslationKind, Translator};

/// A directory with `src` in it, which is the root.
pub struct Scene {
    _tmp: tempfile::TempDir,
    pub top: PathBuf,
}

impl Scene {
    pub fn new() -> Self {
        let tmp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let top = tmp.path().canonicalize().unwrap();
        fs::create_dir(top.join("src")).unwrap();
        Self { _tmp: tmp, top }
    }

    /// `name` below `src`; an absolute one as it is.
    pub fn path(&self, name: &str) -> PathBuf {
        self.top.join("src").join(name)
    }

    pub fn local(&self, name: &str) -> LocalPath {
        LocalPath::new(self.path(name)).unwrap()
    }

    /// `text` with `@` as the host's name for `src`.
    pub fn text(&self, text: &str) -> Vec<u8> {
        let src = self.top.join("src");
        let mut out = Vec::new();
        for byte in text.bytes() {
            match byte {
                b'@' => out.extend_from_slice(src.as_os_str().as_bytes()),
                byte => out.push(byte),
            }
        }
        out
    }

    pub fn dir(&self, name: &str) -> &Self {
        fs::create_dir_all(self.path(name)).unwrap();
        self
    }

    pub fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    pub fn link(&self, name: &str, target: &str) -> &Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(Path::new(std::ffi::OsStr::from_bytes(&self.text(target))), path).unwrap();
        self
    }

    /// A git directory.
    pub fn git_dir(&self, name: &str) -> &Self {
        self.dir(&format!("{name}/objects")).dir(&format!("{name}/refs"));
        self.file(&format!("{name}/HEAD"), "ref: refs/heads/main\n")
    }

    pub fn clone(&self, name: &str) -> &Self {
        self.git_dir(&format!("{name}/.git"))
    }

    /// An entry of the git directory `common`, which records `path` (without its `/.git`).
    pub fn entry(&self, common: &str, name: &str, path: &str) -> &Self {
        let entry = format!("{common}/worktrees/{name}");
        let mut gitdir = self.text(path);
        gitdir.extend_from_slice(b"/.git\n");
        self.file(&format!("{entry}/gitdir"), gitdir);
        self.file(&format!("{entry}/commondir"), "../..\n");
        self.file(&format!("{entry}/HEAD"), format!("ref: refs/heads/{}\n", name.len()))
    }

    /// A checkout whose `.git` file names `entry`.
    pub fn checkout(&self, name: &str, entry: &str) -> &Self {
        let mut pointer = b"gitdir: ".to_vec();
        pointer.extend(self.text(entry));
        pointer.push(b'\n');
        self.file(&format!("{name}/.git"), pointer)
    }

    /// An entry of the clone `clone` and a checkout that name each other, as somebody for whom `src` is `called` wrote
    /// them.
    pub fn worktree(&self, clone: &str, name: &str, at: &str, called: &str) -> &Self {
        self.entry(&format!("{clone}/.git"), name, &format!("{called}/{at}"));
        self.checkout(at, &format!("{called}/{clone}/.git/worktrees/{name}"))
    }

    pub fn remove(&self, name: &str) -> &Self {
        fs::remove_dir_all(self.path(name)).unwrap();
        self
    }

    pub fn root(&self, name: &str) -> Root {
        Root { path: self.local(name), scope: discover::Scope::All, depth: None }
    }

    pub fn discover(&self) -> Field {
        self.discover_in(&[self.root("")])
    }

    pub fn discover_in(&self, roots: &[Root]) -> Field {
        discover::discover(roots, &Stop::never())
    }

    /// What is known with these translations besides identity.
    pub fn survey(&self, more: impl Fn(&CloneSite) -> Vec<Translator>) -> Surveyed {
        self.survey_in(&[self.root("")], true, more)
    }

    pub fn survey_in(
        &self,
        roots: &[Root],
        infers: bool,
        more: impl Fn(&CloneSite) -> Vec<Translator>,
    ) -> Surveyed {
        let translators = |site: &CloneSite| {
            let more = more(site);
            std::iter::once(Translator::Identity).chain(more).collect()
        };
        let bounds = roots.iter().map(|root| root.path.clone()).collect();
        Surveyed(Terrain::survey(bounds, self.discover_in(roots), infers, translators))
    }

    /// No other translation than identity and what can be inferred.
    pub fn plain(&self) -> Surveyed {
        self.survey(|_| Vec::new())
    }

    pub fn map(&self, from: &str, to: &str) -> Translator {
        Translator::Prefix {
            kind: TranslationKind::Map,
            from: crate::vantage::paths::RecordedPath::new(from),
            to: self.local(to),
            evidence: format!("--map {from}={to}"),
        }
    }

    /// A container with these binds (`@...`) and other mounts.
    pub fn container(&self, name: &str, mounts: &[(&str, &str)]) -> Translator {
        let mounts = mounts.iter().map(|(to, from)| {
            let from = match from.strip_prefix('@') {
                Some(path) => MountedFrom::Here(self.local(path)),
                None => MountedFrom::Elsewhere((*from).to_owned()),
            };
            (crate::vantage::paths::RecordedPath::new(*to), from)
        });
        Translator::Container(ContainerView { name: name.into(), mounts: mounts.collect() })
    }
}

/// A surveyed scene.
pub struct Surveyed(pub Terrain);

impl Surveyed {
    pub fn with<T>(&self, look: impl FnOnce(&Ground<'_>) -> T) -> T {
        let sides = self.0.sides();
        let joins: Joins = self.0.joins(&sides);
        look(&self.0.ground(&sides, &joins))
    }

    fn find(sides: &[JoinSide<'_>], scene: &Scene, clone: &str, name: &[u8]) -> (usize, usize) {
        let dir = scene.local(clone);
        let c = sides.iter().position(|s| s.site.dir == dir).unwrap_or_else(|| panic!("no clone {clone}"));
        let r = sides[c].registrations.iter().position(|r| r.name.as_bstr() == name);
        (c, r.unwrap_or_else(|| panic!("no entry {name:?} in {clone}")))
    }

    pub fn place(&self, scene: &Scene, clone: &str, name: &str) -> Placement {
        self.place_of(scene, clone, name.as_bytes())
    }

    pub fn place_of(&self, scene: &Scene, clone: &str, name: &[u8]) -> Placement {
        self.with(|ground| {
            let (c, r) = Self::find(ground.sides, scene, clone, name);
            ground.place(c, r)
        })
    }

    /// Joined with the checkout at `at`, by this kind of translation.
    #[track_caller]
    pub fn assert_joined(&self, scene: &Scene, clone: &str, name: &str, at: &str, kind: TranslationKind) {
        match self.place(scene, clone, name) {
            Placement::Joined { path, by, .. } if path == scene.local(at) && by.kind == kind => {}
            other => panic!("{other:?}"),
        }
    }

    /// Kept, with this code first and at this path.
    #[track_caller]
    pub fn assert_held(&self, scene: &Scene, clone: &str, name: &str, code: Code, at: Option<&str>) {
        match self.place(scene, clone, name) {
            Placement::Held { path, reasons, .. }
                if reasons[0].code == code && path == at.map(|at| scene.local(at)) => {}
            other => panic!("{other:?}"),
        }
    }
}

//! The state directory: what this program knows and a container can't reach.
//!
//! `$XDG_STATE_HOME/treesweep/` holds `vantage`, the random name of this namespace, and for each clone a directory that
//! is named by device and inode of its common directory, with `journal/`, `retired/` and `enrolled/`. What is read here
//! is trusted; whoever can write it could delete the files that it speaks of anyway. So it must be ours alone, and must
//! not lie where a container can write.

use std::io;
use std::path::PathBuf;

use crate::beneath::{Dir, Refused};
use crate::sweep::atomic::{self, Durable};
use crate::sweep::record::random_hex;
use crate::vantage::paths::{FileId, LocalPath};

/// The state directory, held open.
#[derive(Debug)]
pub struct StateDir {
    dir: Dir,
}

/// What is kept for one clone. Its directories are made when something is first written.
#[derive(Debug)]
pub struct CloneState {
    dir: Dir,
}

/// The random name of a namespace: who has this state directory sees paths as whoever wrote the name into a marker did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct VantageId(String);

impl VantageId {
    const LEN: usize = 32;

    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?.strip_suffix('\n')?;
        let plain = text.len() == Self::LEN && text.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why the state directory can't be used; the text names it.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(
        "neither XDG_STATE_HOME nor HOME is an absolute path, so there is no place for treesweep's state"
    )]
    NoHome,
    #[error("the state directory {path}: {why}")]
    Unusable { path: LocalPath, why: String },
    #[error("the state directory {path}: {source}")]
    Io { path: LocalPath, source: io::Error },
}

impl StateError {
    /// The disk, or the quota, is full: a removal that needs no anchor goes on without a journal.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if crate::sweep::act::is_full(source))
    }

    fn refused(path: &LocalPath, refused: Refused) -> Self {
        match refused {
            Refused::Io(source) => Self::Io { path: path.clone(), source },
            other => Self::Unusable { path: path.clone(), why: other.to_string() },
        }
    }
}

impl StateDir {
    /// Where the environment places it. A relative `XDG_STATE_HOME` counts as unset, as its specification says.
    pub fn default_path() -> Result<LocalPath, StateError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let base = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|h| h.join(".local/state")));
        base.and_then(|b| LocalPath::new(b.join("treesweep"))).ok_or(StateError::NoHome)
    }

    /// Opens it, making it if it is not there.
    pub fn open(path: &LocalPath) -> Result<Self, StateError> {
        let parent = path.parent().ok_or(StateError::NoHome)?;
        let io = |source| StateError::Io { path: path.clone(), source };
        // The directories above belong to the user, and no clone is near: `enter` checks that.
        #[allow(clippy::disallowed_methods)]
        std::fs::create_dir_all(parent.as_path()).map_err(io)?;
        let parent = resolved(&parent).map_err(io)?;
        let parent = Dir::open(&parent).map_err(|r| StateError::refused(path, r))?;
        let name = path.file_name().ok_or(StateError::NoHome)?;
        // The directory itself may be a mount: the documented way to run from an image.
        let dir = match parent.dir_across_mounts(atomic::bstr_path(name)) {
            Err(Refused::Absent) => atomic::ensure_dir(&parent, name, 0o700),
            result => result,
        };
        Self::checked(dir.map_err(|r| StateError::refused(path, r))?)
    }

    /// Opens it for reading; `None` if it is not there.
    pub fn open_existing(path: &LocalPath) -> Result<Option<Self>, StateError> {
        let path = match resolved(path) {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Io { path: path.clone(), source }),
        };
        match Dir::open(&path) {
            Ok(dir) => Self::checked(dir).map(Some),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(StateError::refused(&path, refused)),
        }
    }

    /// Refuses what another user could have written: a forged journal could name any directory. Root may work with a
    /// user's state, whose worktrees it then sweeps for them.
    fn checked(dir: Dir) -> Result<Self, StateError> {
        let path = dir.path();
        let meta = dir.own_meta().map_err(|r| StateError::refused(path, r))?;
        let uid = rustix::process::geteuid();
        if meta.uid != uid.as_raw() && !uid.is_root() {
            let why = format!("it belongs to uid {}, and this is uid {}", meta.uid, uid.as_raw());
            return Err(StateError::Unusable { path: path.clone(), why });
        }
        if meta.mode & 0o022 != 0 {
            let why = format!("others may write it (mode {:o})", meta.mode);
            return Err(StateError::Unusable { path: path.clone(), why });
        }
        Ok(Self { dir })
    }

    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// Device and inode of this directory and of each above it: where one of these is a clone's, a container that has
    /// the clone mounted could write journals.
    pub fn ancestry(&self) -> Result<Vec<FileId>, StateError> {
        let mut ids = Vec::new();
        let mut at = Some(self.dir.path().clone());
        while let Some(path) = at {
            ids.push(crate::beneath::lstat(&path).map_err(|r| StateError::refused(&path, r))?.id);
            at = path.parent();
        }
        Ok(ids)
    }

    /// The name of this vantage; `None` if none was given yet.
    pub fn vantage(&self) -> Result<Option<VantageId>, StateError> {
        let path = self.dir.path();
        match self.dir.read("vantage", 1 << 10) {
            Ok(bytes) => VantageId::parse(&bytes).map(Some).ok_or_else(|| StateError::Unusable {
                path: path.clone(),
                why: "`vantage` is damaged".into(),
            }),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(StateError::refused(path, refused)),
        }
    }

    /// The name of this vantage, given now if there is none.
    pub fn vantage_or_new(&self) -> Result<VantageId, StateError> {
        if let Some(id) = self.vantage()? {
            return Ok(id);
        }
        let io = |source| StateError::Io { path: self.dir.path().clone(), source };
        let text = format!("{}\n", random_hex::<16>().map_err(io)?);
        // Another process may be doing the same: the first name stays, as markers may already carry it.
        match atomic::write_new(&self.dir, b"vantage", text.as_bytes(), 0o600) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io(error)),
        }
        self.vantage()?.ok_or_else(|| io(io::ErrorKind::NotFound.into()))
    }

    /// What is kept for the clone whose common directory is `common`, its directory made if it is not there.
    pub fn clone_state(&self, common: FileId) -> Result<CloneState, StateError> {
        let dir = atomic::ensure_dir(&self.dir, clone_key(common).as_bytes(), 0o700);
        Ok(CloneState { dir: dir.map_err(|r| StateError::refused(self.dir.path(), r))? })
    }

    /// The same for reading; `None` if nothing was ever kept.
    pub fn existing_clone_state(&self, common: FileId) -> Result<Option<CloneState>, StateError> {
        match self.dir.dir(clone_key(common)) {
            Ok(dir) => Ok(Some(CloneState { dir })),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(StateError::refused(self.dir.path(), refused)),
        }
    }
}

/// A clone is known by what its common directory is, not by a path: a container can't make another clone of itself.
fn clone_key(common: FileId) -> String {
    format!("{}-{}", common.dev, common.ino)
}

/// Where the user keeps state may well be reached through links of theirs.
fn resolved(path: &LocalPath) -> io::Result<LocalPath> {
    let real = std::fs::canonicalize(path.as_path())?;
    LocalPath::new(real).ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// The bound for one file of ours; a larger one is damaged.
const FILE_LIMIT: u64 = 16 << 20;

impl CloneState {
    /// The directory `kind`, if anything was ever kept in it.
    fn existing(&self, kind: &str) -> io::Result<Option<Dir>> {
        match self.dir.dir(kind) {
            Ok(dir) => Ok(Some(dir)),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(atomic::io_error(refused)),
        }
    }

    /// The directory `kind`, made if it is not there.
    pub(crate) fn ensured(&self, kind: &str) -> io::Result<Dir> {
        atomic::ensure_dir(&self.dir, kind.as_bytes(), 0o700).map_err(atomic::io_error)
    }

    /// Writes `name` of `kind`.
    pub(crate) fn write(&self, kind: &str, name: &str, bytes: &[u8], durable: Durable) -> io::Result<()> {
        atomic::write(&self.ensured(kind)?, name.as_bytes(), bytes, 0o600, durable)
    }

    /// The bytes of `name` of `kind`; `None` if it is not there.
    pub(crate) fn read(&self, kind: &str, name: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(dir) = self.existing(kind)? else { return Ok(None) };
        match dir.read(name, FILE_LIMIT) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Refused::Absent) => Ok(None),
            Err(refused) => Err(atomic::io_error(refused)),
        }
    }

    /// Removes `name` of `kind`, if it is there.
    pub(crate) fn remove(&self, kind: &str, name: &str) -> io::Result<()> {
        let Some(dir) = self.existing(kind)? else { return Ok(()) };
        match crate::sweep::act::unlink(&dir, name.as_bytes()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes what a killed run did not finish to write.
    pub(crate) fn remove_unfinished(&self) -> io::Result<()> {
        for kind in self.dir.names().map_err(atomic::io_error)? {
            match self.dir.dir(atomic::bstr_path(&kind)) {
                Ok(dir) => atomic::remove_unfinished(&dir)?,
                Err(Refused::Absent | Refused::NotPlain) => {}
                Err(refused) => return Err(atomic::io_error(refused)),
            }
        }
        Ok(())
    }

    /// The names of what is kept of `kind`, in order.
    pub(crate) fn names(&self, kind: &str) -> io::Result<Vec<String>> {
        let Some(dir) = self.existing(kind)? else { return Ok(Vec::new()) };
        let names = dir.names().map_err(atomic::io_error)?;
        Ok(names.into_iter().filter_map(|n| String::from_utf8(n).ok()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn place() -> (tempfile::TempDir, LocalPath) {
        let tmp = tempfile::tempdir().unwrap();
        let path = LocalPath::new(tmp.path().canonicalize().unwrap().join("state/treesweep")).unwrap();
        (tmp, path)
    }

    #[test]
    fn a_vantage_is_named_once() {
        let (_tmp, path) = place();
        assert!(StateDir::open_existing(&path).unwrap().is_none());
        let state = StateDir::open(&path).unwrap();
        assert_eq!(state.vantage().unwrap(), None);
        let id = state.vantage_or_new().unwrap();
        assert_eq!(state.vantage_or_new().unwrap(), id);
        assert_eq!(StateDir::open_existing(&path).unwrap().unwrap().vantage().unwrap(), Some(id));
        std::fs::write(path.as_path().join("vantage"), "../x\n").unwrap();
        assert!(state.vantage().is_err());
    }

    #[test]
    fn what_others_may_write_is_refused() {
        let (_tmp, path) = place();
        StateDir::open(&path).unwrap();
        std::fs::set_permissions(path.as_path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(StateDir::open(&path), Err(StateError::Unusable { .. })));
    }
}

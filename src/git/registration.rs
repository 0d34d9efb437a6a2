//! The registrations of a clone: each administrative entry is read by itself, so that a broken one hides no other.
//!
//! `git worktree list` fails or stays silent for all entries where one is corrupt (case C24); a listing that failed
//! must never be read as "no worktrees".

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use rayon::prelude::*;

use crate::beneath::{Dir, Kind, Refused, Stamp};
use crate::git::open::Unreadable;
use crate::vantage::paths::{EntryName, FileId, RecordedPath, escape, is_gits_space};

/// Most bytes of a path file; git's own limit is the file system's `PATH_MAX` with a prefix.
const PATH_FILE: u64 = 16 << 10;
/// Most bytes of `HEAD`.
const HEAD_FILE: u64 = 4 << 10;
/// Most bytes of a lock's reason that are read.
const LOCK_FILE: u64 = 64 << 10;

/// One administrative entry, as its files say.
#[derive(Clone, Debug)]
pub struct Registration {
    pub name: EntryName,
    /// The entry's directory; `None` where the name is no directory.
    pub id: Option<FileId>,
    /// The recorded path without its `/.git`, not resolved.
    pub recorded: Result<RecordedPath, Unreadable>,
    pub head: Result<Head, Unreadable>,
    /// Whether `commondir` leads to the clone.
    pub common: Result<(), Unreadable>,
    pub lock: Result<Option<Lock>, Unreadable>,
    /// Modification of `commondir`: git writes it once, when it makes the entry.
    pub made: Option<Stamp>,
    /// The newest modification of `HEAD`, `index` and `logs/HEAD`.
    pub touched: Option<Stamp>,
}

/// What `HEAD` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// The full name of the ref that it is a symbolic ref to.
    Branch(BString),
    Detached(ObjectId),
}

/// A worktree's lock (`git worktree lock`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its reason without the final newline, perhaps empty.
    pub reason: BString,
    pub since: Stamp,
}

impl Registration {
    /// The first file that makes the entry unreadable, if one does.
    pub fn broken(&self) -> Option<&Unreadable> {
        self.common
            .as_ref()
            .err()
            .or(self.recorded.as_ref().err())
            .or(self.head.as_ref().err())
            .or(self.lock.as_ref().err())
    }
}

/// All entries below `<common>/worktrees`, sorted by name; none if there is no such directory.
///
/// # Errors
/// `worktrees` is not a real directory of this mount, or can't be listed.
pub fn registrations(common: &Dir) -> Result<Vec<Registration>, Unreadable> {
    let Some(worktrees) = Worktrees::open(common)? else { return Ok(Vec::new()) };
    // Each by itself, so that none waits for another; the order stays that of the names.
    Ok(worktrees.names()?.into_par_iter().map(|name| worktrees.registration(name)).collect())
}

/// The directory `worktrees` of a clone.
pub struct Worktrees {
    dir: Dir,
    common_id: FileId,
}

impl Worktrees {
    /// `None` if the clone has no such directory.
    ///
    /// # Errors
    /// It is not a real directory of this mount.
    pub fn open(common: &Dir) -> Result<Option<Self>, Unreadable> {
        let dir = match common.dir("worktrees") {
            Ok(dir) => dir,
            Err(Refused::Absent) => return Ok(None),
            Err(refused) => return Err(Unreadable(format!("{}/worktrees: {refused}", common.path()))),
        };
        let common_id = common.own_meta().map_err(|e| Unreadable(format!("{}: {e}", common.path())))?.id;
        Ok(Some(Self { dir, common_id }))
    }

    /// The names of all entries, sorted.
    ///
    /// # Errors
    /// It can't be listed.
    pub fn names(&self) -> Result<Vec<EntryName>, Unreadable> {
        let names = self.dir.names().map_err(|e| Unreadable(format!("{}: {e}", self.dir.path())))?;
        Ok(names.into_iter().filter_map(EntryName::new).collect())
    }

    /// Whether anything has this name; what can't be looked at counts.
    pub fn has(&self, name: &EntryName) -> bool {
        !matches!(self.dir.meta(name.as_os_str()), Err(Refused::Absent))
    }

    /// One entry as it is now; a name without an entry gives an unreadable one.
    pub fn registration(&self, name: EntryName) -> Registration {
        read_entry(&self.dir, self.common_id, name)
    }
}

fn read_entry(worktrees: &Dir, common_id: FileId, name: EntryName) -> Registration {
    let entry = match worktrees.dir(name.as_os_str()) {
        Ok(entry) => entry,
        Err(refused) => return Registration::unreadable(name, format!("the entry: {refused}")),
    };
    let id = match entry.own_meta() {
        Ok(meta) => meta.id,
        Err(refused) => return Registration::unreadable(name, format!("the entry: {refused}")),
    };
    let (head, head_at) = split(read_head(&entry));
    let (common, made) = split(check_common(worktrees, &entry, common_id));
    let touched = [head_at, stamp_of(&entry, "index"), stamp_of(&entry, "logs/HEAD")];
    Registration {
        id: Some(id),
        recorded: read_recorded(&entry),
        head,
        common,
        lock: read_lock(&entry),
        made,
        touched: touched.into_iter().flatten().max(),
        name,
    }
}

/// What a file says, and when it was written.
fn split<T>(read: Result<(T, Stamp), Unreadable>) -> (Result<T, Unreadable>, Option<Stamp>) {
    match read {
        Ok((said, at)) => (Ok(said), Some(at)),
        Err(why) => (Err(why), None),
    }
}

impl Registration {
    fn unreadable(name: EntryName, why: String) -> Self {
        let err = || Unreadable(why.clone());
        Self {
            name,
            id: None,
            recorded: Err(err()),
            head: Err(err()),
            common: Err(err()),
            lock: Err(err()),
            made: None,
            touched: None,
        }
    }
}

fn required(entry: &Dir, name: &str, limit: u64) -> Result<(Vec<u8>, Stamp), Unreadable> {
    match entry.read_with_meta(name, limit) {
        Ok((bytes, meta)) => Ok((bytes, meta.mtime)),
        Err(refused) => Err(Unreadable(format!("{}/{name}: {refused}", entry.path()))),
    }
}

fn read_recorded(entry: &Dir) -> Result<RecordedPath, Unreadable> {
    let (bytes, _) = required(entry, "gitdir", PATH_FILE)?;
    parse_gitdir(&bytes).map_err(|why| Unreadable(format!("{}/gitdir: {why}", entry.path())))
}

/// The worktree's path in the bytes of a `gitdir` file.
pub(crate) fn parse_gitdir(bytes: &[u8]) -> Result<RecordedPath, &'static str> {
    if bytes.contains(&0) {
        return Err("has a NUL byte");
    }
    Ok(RecordedPath::parse(bytes).ok_or("is empty")?.without_dot_git())
}

fn read_head(entry: &Dir) -> Result<(Head, Stamp), Unreadable> {
    let (bytes, at) = required(entry, "HEAD", HEAD_FILE)?;
    let head = parse_head(&bytes).ok_or_else(|| {
        let shown = escape(&bytes[..bytes.len().min(60)]);
        Unreadable(format!("{}/HEAD: is neither a branch nor a commit: '{shown}'", entry.path()))
    })?;
    Ok((head, at))
}

/// `ref: <name>` or a hexadecimal object id, as git writes them; a name must be a valid one below `refs/`.
pub fn parse_head(bytes: &[u8]) -> Option<Head> {
    let text = bytes.trim_end_with(is_gits_space);
    if let Some(rest) = text.strip_prefix(b"ref:") {
        let name = rest.trim_start_with(is_gits_space).as_bstr();
        // The stub that reftable leaves in HEAD is `refs/heads/.invalid`, which is no valid name (case C43).
        let valid = name.starts_with(b"refs/") && gix::validate::reference::name(name).is_ok();
        return valid.then(|| Head::Branch(name.to_owned()));
    }
    ObjectId::from_hex(text).ok().map(Head::Detached)
}

/// `commondir` is a path relative to the entry (git writes `../..`); it must lead to the clone, by device and inode.
fn check_common(worktrees: &Dir, entry: &Dir, common_id: FileId) -> Result<((), Stamp), Unreadable> {
    let (bytes, written) = required(entry, "commondir", PATH_FILE)?;
    let shown = |why: &str| Unreadable(format!("{}/commondir: {why}", entry.path()));
    let path = RecordedPath::parse(&bytes).ok_or_else(|| shown("is empty"))?;
    if path.as_bstr() == "../.." {
        // The usual case: the entry was opened beneath `worktrees`, and that beneath the clone's directory.
        return Ok(((), written));
    }
    let entry_path = RecordedPath::new(entry.path().as_bstr());
    let resolved = path
        .resolved_from(&entry_path)
        .and_then(|p| crate::vantage::paths::LocalPath::new(p.as_bstr().to_path_lossy()));
    let Some(resolved) = resolved else { return Err(shown("leads nowhere")) };
    match crate::beneath::lstat(&resolved) {
        Ok(meta) if meta.kind == Kind::Directory && meta.id == common_id => Ok(((), written)),
        Ok(_) => Err(shown(&format!("'{path}' is not the clone of {}", worktrees.path()))),
        Err(refused) => Err(shown(&format!("'{path}' {refused}"))),
    }
}

fn read_lock(entry: &Dir) -> Result<Option<Lock>, Unreadable> {
    match entry.read_with_meta("locked", LOCK_FILE) {
        Ok((bytes, meta)) => {
            let reason = bytes.trim_end_with(|c| c.is_ascii_whitespace()).into();
            Ok(Some(Lock { reason, since: meta.mtime }))
        }
        Err(Refused::Absent) => Ok(None),
        Err(refused) => Err(Unreadable(format!("{}/locked: {refused}", entry.path()))),
    }
}

fn stamp_of(dir: &Dir, name: &str) -> Option<Stamp> {
    dir.meta(name).ok().map(|m| m.mtime)
}

/// What the `.git` file of a checkout says: where its administrative entry is, in the namespace of who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The whole path after `gitdir: `.
    pub target: RecordedPath,
    /// What the writer called the clone's common directory, and the entry's name, if the path ends in
    /// `/worktrees/<name>`.
    pub entry: Option<(RecordedPath, EntryName)>,
}

impl Pointer {
    /// Reads a `.git` file's content as git does (`read_gitfile_gently`): `gitdir: ` and a path.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let target = RecordedPath::parse(bytes.strip_prefix(b"gitdir: ")?)?;
        if target.as_bstr().contains(&0) {
            return None;
        }
        let entry = split_entry(&target);
        Some(Self { target, entry })
    }
}

fn split_entry(target: &RecordedPath) -> Option<(RecordedPath, EntryName)> {
    let bytes = target.as_bstr();
    // A pointer that was written on Windows keeps its separators; only `--map` will translate it.
    let separator = |b: &u8| *b == b'/' || (target.is_windows() && *b == b'\\');
    let name_at = bytes.iter().rposition(separator)?;
    let name = EntryName::new(&bytes[name_at + 1..])?;
    let head: &BStr = bytes[..name_at].as_bstr();
    let worktrees_at = head.iter().rposition(separator)?;
    (&head[worktrees_at + 1..] == b"worktrees").then(|| (RecordedPath::new(&head[..worktrees_at]), name))
}

#[cfg(test)]
mod tests;

//! Writing the files of a commit into a directory of ours: each as the repository stores it, through no filter, never
//! over anything that is there, and never through a link.
//!
//! Every directory is opened from the top, beneath it and on its mount. A file is written under one name of ours at the
//! top and renamed to its place, where nothing of its name may be: it is there whole or not at all, so that a run that
//! was killed can be taken up where it ended.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::objs::tree::EntryKind;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::convert::{Attributes, Converter, Settings};
use crate::git::lfs;
use crate::git::objects::Objects;
use crate::git::open::Unreadable;
use crate::git::tree::File;
use crate::stop::Stop;
use crate::sweep::act;
use crate::sweep::atomic::{self, bstr_path};
use crate::vantage::paths::escape;

/// The most bytes of attribute files that are read of one tree.
const ATTRIBUTES: u64 = 4 << 20;

/// Paths are resolved in pieces of at most so many bytes; the kernel takes 4095.
const PIECE: usize = 4000;

/// What was written, and what is not as git would have written it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    pub files: u64,
    pub bytes: u64,
    /// Something was there already, and stays as it is.
    pub there: u64,
    /// Pointers of Git LFS, which stand for files.
    pub lfs: u64,
    /// Files that an attribute would have changed, by that attribute; the first few paths of each.
    pub filtered: BTreeMap<String, Filtered>,
    pub submodules: Vec<BString>,
    /// Files whose object can't be read, and why.
    pub missing: Vec<(BString, String)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    pub files: u64,
    pub first: Vec<BString>,
}

/// Why it ended early. What is there stays; a later run goes on.
#[derive(Debug, thiserror::Error)]
pub enum Ended {
    #[error("asked to stop")]
    Stopped,
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

/// What is written, and into what.
pub struct Checkout<'a> {
    pub objects: Objects<'a>,
    pub files: &'a [File],
    pub top: &'a Dir,
    /// The name at the top under which a file is written; no file of the tree has it.
    pub unfinished: &'a [u8],
    /// `info/attributes` of the clone.
    pub attributes: Option<&'a [u8]>,
    pub stop: &'a Stop,
}

impl Checkout<'_> {
    /// Writes everything that is not there yet.
    pub fn write(&self) -> Result<Written, Ended> {
        let mut by_dir: BTreeMap<&BStr, Vec<&File>> = BTreeMap::new();
        for file in self.files {
            let mut dir = file.place().0;
            by_dir.entry(dir).or_default().push(file);
            while let Some((above, _)) = dir.rsplit_once_str("/") {
                dir = above.as_bstr();
                by_dir.entry(dir).or_default();
            }
        }
        by_dir.entry(BStr::new("")).or_default();
        self.remove_unfinished()?;
        let mut asked = Asked::new(self)?;
        let mut written = Written::default();
        // A directory stands before all that is in it.
        for (dir, files) in by_dir {
            let opened = self.directory(dir)?;
            let mut converter = asked.below(dir)?;
            for file in files {
                if self.stop.is_set() {
                    return Err(Ended::Stopped);
                }
                self.one(&opened, file, converter.as_mut(), &mut written)?;
            }
        }
        Ok(written)
    }

    /// The directory `path`, made if it is not there.
    fn directory(&self, path: &BStr) -> Result<Dir, Ended> {
        let (above, name) = match path.rsplit_once_str("/") {
            Some((above, name)) => (above.as_bstr(), name),
            None => (BStr::new(""), path.as_bytes()),
        };
        let above = open_below(self.top, above).map_err(|r| refused(path, r))?;
        if name.is_empty() {
            return Ok(above);
        }
        atomic::ensure_dir(&above, name, 0o777).map_err(|r| refused(path, r))
    }

    fn one(
        &self,
        dir: &Dir,
        file: &File,
        converter: Option<&mut Converter>,
        written: &mut Written,
    ) -> Result<(), Ended> {
        let (_, name) = file.place();
        if file.kind == EntryKind::Commit {
            // As git leaves it until `git submodule update`.
            atomic::ensure_dir(dir, name, 0o777).map_err(|r| refused(&file.path, r))?;
            written.submodules.push(file.path.clone());
            return Ok(());
        }
        let bytes = match self.objects.blob(file.id) {
            Ok(bytes) => bytes,
            Err(why) => {
                written.missing.push((file.path.clone(), why.0));
                return Ok(());
            }
        };
        let made = match file.kind {
            EntryKind::Link => self.link(dir, name, &bytes),
            kind => self.file(dir, name, &bytes, kind == EntryKind::BlobExecutable),
        };
        match made {
            Ok(()) => {
                written.files += 1;
                written.bytes += bytes.len() as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => written.there += 1,
            Err(source) => return Err(Ended::Io { path: escape(&file.path), source }),
        }
        if file.kind != EntryKind::Link
            && let Some(by) = converter.and_then(|c| c.conversion(file.path.as_bstr()).on_checkout())
        {
            written.note(file, by, &bytes);
        }
        Ok(())
    }

    fn file(&self, dir: &Dir, name: &BStr, bytes: &[u8], executable: bool) -> io::Result<()> {
        let mode = if executable { 0o777 } else { 0o666 };
        let mut made = act::create(self.top, self.unfinished, mode)?;
        let placed = act::write(&mut made, bytes)
            .and_then(|()| atomic::give_to_owner_of(self.top, &made).map_err(atomic::io_error))
            .and_then(|()| Ok(act::rename(self.top, self.unfinished, dir, name)?));
        if placed.is_err() {
            act::unlink(self.top, self.unfinished)?;
        }
        placed
    }

    fn link(&self, dir: &Dir, name: &BStr, target: &[u8]) -> io::Result<()> {
        act::symlink(target, dir, name)?;
        let owner = dir.own_meta().map_err(atomic::io_error)?;
        if rustix::process::geteuid().is_root() && owner.uid != 0 {
            act::chown_at(dir, name, owner.uid, owner.gid)?;
        }
        Ok(())
    }

    /// What a run that was killed had begun to write.
    fn remove_unfinished(&self) -> Result<(), Ended> {
        match self.top.meta(bstr_path(self.unfinished)) {
            Ok(meta) if meta.kind == Kind::File => act::unlink(self.top, self.unfinished)
                .map_err(|errno| Ended::Io { path: escape(self.unfinished), source: errno.into() }),
            Ok(meta) => Err(refused(self.unfinished, Refused::WrongKind(meta.kind))),
            Err(Refused::Absent) => Ok(()),
            Err(other) => Err(refused(self.unfinished, other)),
        }
    }
}

impl Written {
    fn note(&mut self, file: &File, by: String, bytes: &[u8]) {
        if by == "filter=lfs" && lfs::Pointer::parse(bytes).is_some() {
            self.lfs += 1;
            return;
        }
        let filtered = self.filtered.entry(by).or_default();
        filtered.files += 1;
        if filtered.first.len() < 3 {
            filtered.first.push(file.path.clone());
        }
    }
}

fn refused(path: &[u8], refused: Refused) -> Ended {
    Ended::Io { path: escape(path), source: atomic::io_error(refused) }
}

/// The directory `path` below `top`, piece by piece where the path is too long for the kernel.
pub fn open_below(top: &Dir, path: &BStr) -> Result<Dir, Refused> {
    let mut dir = top.dir(".")?;
    let mut rest = path;
    while rest.len() > PIECE {
        // A name has at most 255 bytes, so there is a slash.
        let cut = rest[..PIECE].rfind_byte(b'/').ok_or(Refused::NotPlain)?;
        dir = dir.dir(bstr_path(&rest[..cut]))?;
        rest = rest[cut + 1..].as_bstr();
    }
    if rest.is_empty() { Ok(dir) } else { dir.dir(bstr_path(rest)) }
}

/// The attributes that hold in each directory, by the commit's own `.gitattributes`.
struct Asked<'a> {
    settings: Settings,
    info: Option<&'a [u8]>,
    /// The directory of each file (empty, or ending in a slash), from the top down, and its bytes.
    files: Vec<(BString, Vec<u8>)>,
    /// Of the directories whose attributes were compiled, how many files they have and what came of it.
    compiled: Option<(Vec<usize>, Arc<Attributes>)>,
}

impl<'a> Asked<'a> {
    fn new(checkout: &Checkout<'a>) -> Result<Self, Unreadable> {
        let mut files = Vec::new();
        let mut left = ATTRIBUTES;
        for file in checkout.files.iter().filter(|f| f.kind != EntryKind::Link) {
            let (dir, name) = file.place();
            if name != ".gitattributes" || file.kind == EntryKind::Commit {
                continue;
            }
            let size = checkout.objects.size(file.id)?;
            left = left.checked_sub(size).ok_or_else(|| {
                Unreadable(format!("'{}': the tree has too many bytes of attributes", escape(&file.path)))
            })?;
            let dir =
                if dir.is_empty() { BString::default() } else { [dir.as_bytes(), b"/"].concat().into() };
            files.push((dir, checkout.objects.blob(file.id)?));
        }
        files.sort_by_key(|(dir, _)| dir.len());
        let settings = Settings::of(checkout.objects.repo)?;
        Ok(Self { settings, info: checkout.attributes, files, compiled: None })
    }

    /// For the files in `dir`; none if no attribute is named anywhere.
    fn below(&mut self, dir: &BStr) -> Result<Option<Converter>, Unreadable> {
        if self.files.is_empty() && self.info.is_none() {
            return Ok(None);
        }
        let within = [dir.as_bytes(), b"/"].concat();
        let applies = |(_, (at, _)): &(usize, &(BString, Vec<u8>))| within.starts_with(at.as_slice());
        let chosen: Vec<usize> = self.files.iter().enumerate().filter(applies).map(|(n, _)| n).collect();
        if self.compiled.as_ref().is_none_or(|(known, _)| *known != chosen) {
            let files = chosen.iter().map(|n| (self.files[*n].0.as_bstr(), self.files[*n].1.as_slice()));
            let attributes = Arc::new(Attributes::new(files, self.info)?);
            self.compiled = Some((chosen, attributes));
        }
        Ok(self
            .compiled
            .as_ref()
            .map(|(_, attributes)| Converter::new(self.settings, Arc::clone(attributes))))
    }
}

/// Objects that the clone does not have: a partial one fetches them when git needs them, and nothing is fetched here.
pub fn absent(objects: Objects<'_>, files: &[File]) -> Vec<ObjectId> {
    let wanted = files.iter().filter(|f| f.kind != EntryKind::Commit);
    wanted.map(|f| f.id).filter(|id| objects.size(*id).is_err()).collect()
}

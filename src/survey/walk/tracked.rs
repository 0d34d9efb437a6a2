//! A tracked file against its entry in the index: first by stat data, as git does, then by content.

use std::io::Read;
use std::os::fd::BorrowedFd;

use bstr::{BStr, ByteSlice};
use gix::ObjectId;
use gix::index::Entry;
use gix::index::entry::{Mode, Stat};

use crate::beneath::{Kind, Meta, Refused, Stamp};
use crate::git::convert::{Conversion, Converter};
use crate::git::index::{Depth, Index};
use crate::git::lfs::{self, Pointer};
use crate::git::open::{Unreadable, chain};
use crate::stop::Stop;
use crate::survey::walk::Tree;
use crate::survey::walk::handle::{Stoppable, open_file};
use crate::survey::walk::rules::Rules;

/// The most bytes of one file that are read at once to convert them; git reads such files whole too.
const CONVERTED_LIMIT: u64 = 1 << 30;

/// What the comparison of one file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Clean,
    Modified,
    /// Only the executable bit differs.
    ModeOnly,
    /// A filter would have to be run.
    NeedsFilter,
}

/// How stat data compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    /// Nothing happened to the file since its entry was written.
    Fresh,
    /// Something did, or it was written from elsewhere: content decides.
    Stale,
    /// It has another size than when its content was known, which git takes as changed without a look.
    OtherSize,
}

/// What git has of a file: its path from the root of the repository, its mode, its blob.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'a> {
    pub(super) path: &'a BStr,
    pub(super) mode: Mode,
    pub(super) id: ObjectId,
}

/// Compares the files of one directory.
pub(super) struct Files<'a> {
    tree: &'a Tree,
    rules: &'a Rules,
    dir: BorrowedFd<'a>,
    stop: &'a Stop,
    converter: Option<Converter>,
    repo: Option<gix::Repository>,
}

impl<'a> Files<'a> {
    pub(super) fn new(tree: &'a Tree, rules: &'a Rules, dir: BorrowedFd<'a>, stop: &'a Stop) -> Self {
        Self { tree, rules, dir, stop, converter: None, repo: None }
    }

    /// The file `name`, seen as `meta`, against the entry `at` of `index`, which is no gitlink.
    pub(super) fn compare(
        &mut self,
        name: &BStr,
        meta: &Meta,
        index: &Index,
        at: usize,
        depth: Depth,
    ) -> Result<Outcome, Unreadable> {
        let entry = &index.entries()[at];
        let freshness = freshness(entry, meta, index.written(), depth);
        let stored = Stored { path: index.path(at), mode: entry.mode, id: entry.id };
        self.against(name, meta, stored, freshness)
    }

    /// The file `name`, seen as `meta`, against what git has `stored` of it; only content counts.
    pub(super) fn compare_content(
        &mut self,
        name: &BStr,
        meta: &Meta,
        stored: Stored<'_>,
    ) -> Result<Outcome, Unreadable> {
        self.against(name, meta, stored, Freshness::Stale)
    }

    fn against(
        &mut self,
        name: &BStr,
        meta: &Meta,
        stored: Stored<'_>,
        freshness: Freshness,
    ) -> Result<Outcome, Unreadable> {
        let link = stored.mode == Mode::SYMLINK;
        match meta.kind {
            Kind::File if !link => {}
            Kind::Symlink if link => {}
            // Another type is another content (git's `ce_match_stat_basic`).
            _ => return Ok(Outcome::Modified),
        }
        // Git knows one bit of the mode: whether its owner may execute it.
        let mode_differs = !link && (stored.mode == Mode::FILE_EXECUTABLE) != (meta.mode & 0o100 != 0);
        let same = match freshness {
            Freshness::Fresh => Same::Yes,
            _ if link => self.link_is(name, stored.id)?,
            freshness => self.content(name, meta, stored, freshness)?,
        };
        Ok(match same {
            Same::Yes if mode_differs => Outcome::ModeOnly,
            Same::Yes => Outcome::Clean,
            Same::No => Outcome::Modified,
            Same::Unknown => Outcome::NeedsFilter,
        })
    }

    fn link_is(&self, name: &BStr, id: ObjectId) -> Result<Same, Unreadable> {
        let target = rustix::fs::readlinkat(self.dir, name.as_bytes(), Vec::new())
            .map_err(|e| Unreadable::new(Refused::from(e)))?;
        let actual = gix::objs::compute_hash(id.kind(), gix::objs::Kind::Blob, target.as_bytes())
            .map_err(|e| Unreadable::new(chain(&e)))?;
        Ok(Same::of(actual == id))
    }

    /// Whether git would store the file's content as the blob that is stored.
    fn content(
        &mut self,
        name: &BStr,
        meta: &Meta,
        Stored { path, id, .. }: Stored<'_>,
        freshness: Freshness,
    ) -> Result<Same, Unreadable> {
        match self.converter()?.conversion(path) {
            Conversion::Driver(driver) => self.filtered(name, meta, id, driver.as_ref()),
            _ if freshness == Freshness::OtherSize => Ok(Same::No),
            Conversion::None => Ok(Same::of(hash_of(self.open(name, meta)?, id.kind(), meta.size)? == id)),
            Conversion::Foreign(_) => Ok(Same::Unknown),
            Conversion::BuiltIn(_) if meta.size > CONVERTED_LIMIT => Ok(Same::Unknown),
            Conversion::BuiltIn(conversion) => {
                let bytes = read(self.open(name, meta)?, meta.size)?;
                let bytes = conversion.to_git(bytes, &mut || self.blob(id))?;
                let actual = gix::objs::compute_hash(id.kind(), gix::objs::Kind::Blob, &bytes)
                    .map_err(|e| Unreadable::new(chain(&e)))?;
                Ok(Same::of(actual == id))
            }
        }
    }

    fn blob(&mut self, id: ObjectId) -> Result<Vec<u8>, Unreadable> {
        let found = self.repo().find_object(id);
        found
            .map(|blob| blob.detach().data)
            .map_err(|e| Unreadable::new(format_args!("blob {id}: {}", chain(&e))))
    }

    /// A file with a filter: LFS is understood natively, any other driver would have to be run.
    fn filtered(
        &mut self,
        name: &BStr,
        meta: &Meta,
        id: ObjectId,
        driver: &BStr,
    ) -> Result<Same, Unreadable> {
        if driver != "lfs" {
            return Ok(Same::Unknown);
        }
        let header = self.repo().find_header(id);
        let length = header.map_err(|e| Unreadable::new(format_args!("blob {id}: {}", chain(&e))))?.size();
        if length > lfs::LONGEST {
            return Ok(Same::Unknown);
        }
        let blob = self.blob(id)?;
        let size = meta.size;
        let file = || self.open(name, meta);
        // An empty file is stored as it is (git-lfs `docs/spec.md`).
        if blob.is_empty() && size == 0 {
            return Ok(Same::Yes);
        }
        let Some(pointer) = Pointer::parse(&blob) else {
            return Ok(Same::Unknown);
        };
        // The content was not fetched: the pointer itself was checked out.
        if size == blob.len() as u64 && read(file()?, size)? == blob {
            return Ok(Same::Yes);
        }
        if size != pointer.size {
            return Ok(Same::No);
        }
        pointer.stands_for(file()?).map(Same::of).map_err(Unreadable::new)
    }

    fn open(&self, name: &BStr, meta: &Meta) -> Result<Stoppable<'a>, Unreadable> {
        let (file, opened) = open_file(self.dir, name).map_err(Unreadable::new)?;
        match opened.id == meta.id && opened.size == meta.size {
            true => Ok(Stoppable::new(file, self.stop)),
            false => Err(Unreadable::new("it changed while it was looked at")),
        }
    }

    fn converter(&mut self) -> Result<&mut Converter, Unreadable> {
        let converter = match self.converter.take() {
            Some(converter) => converter,
            None => Converter::new(self.tree.settings, self.rules.attributes()?),
        };
        Ok(self.converter.insert(converter))
    }

    fn repo(&mut self) -> &gix::Repository {
        self.repo.get_or_insert_with(|| self.tree.repo.to_thread_local())
    }
}

/// Whether content is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Same {
    Yes,
    No,
    Unknown,
}

impl Same {
    fn of(same: bool) -> Self {
        if same { Same::Yes } else { Same::No }
    }
}

/// The id of the blob with the content of `file`, which has `size` bytes. What is appended meanwhile is not read: it
/// changes the fingerprint.
fn hash_of(mut file: impl Read, kind: gix::hash::Kind, size: u64) -> Result<ObjectId, Unreadable> {
    let mut hasher = gix::hash::hasher(kind);
    hasher.update(&gix::objs::encode::loose_header(gix::objs::Kind::Blob, size));
    let mut buffer = vec![0; size.min(64 << 10) as usize];
    let mut left = size;
    while left > 0 {
        let part = left.min(buffer.len() as u64) as usize;
        match file.read(&mut buffer[..part]).map_err(Unreadable::new)? {
            0 => return Err(Unreadable::new("it became shorter while it was read")),
            n => {
                left -= n as u64;
                hasher.update(&buffer[..n]);
            }
        }
    }
    hasher.try_finalize().map_err(|e| Unreadable::new(chain(&e)))
}

/// All of `file`, which has `size` bytes.
fn read(file: impl Read, size: u64) -> Result<Vec<u8>, Unreadable> {
    let mut bytes = Vec::with_capacity(size as usize + 1);
    file.take(size + 1).read_to_end(&mut bytes).map_err(Unreadable::new)?;
    match bytes.len() as u64 == size {
        true => Ok(bytes),
        false => Err(Unreadable::new("it changed while it was read")),
    }
}

/// Compares as git does by default (`match_stat_data`, `is_racy_stat`), and nanoseconds where the index has them. The
/// device is left out, as in git: it differs between vantages.
fn freshness(entry: &Entry, meta: &Meta, written: Stamp, depth: Depth) -> Freshness {
    let Stat { mtime, ctime, dev: _, ino, uid, gid, size } = entry.stat;
    let smudged = size == 0 && entry.id != ObjectId::empty_blob(entry.id.kind());
    if size != stored_size(meta.size) {
        // Entries that git never saw on disk, or no longer trusts, have the size 0.
        return if size == 0 { Freshness::Stale } else { Freshness::OtherSize };
    }
    let same_time = |recorded: gix::index::entry::stat::Time, now: Stamp| {
        recorded.secs == now.seconds as u32 && (recorded.nsecs == 0 || recorded.nsecs == now.nanos)
    };
    let same = same_time(mtime, meta.mtime)
        && same_time(ctime, meta.ctime)
        && ino == meta.id.ino as u32
        && uid == meta.uid
        && gid == meta.gid;
    // A file as young as the index may have changed after it was entered, within one tick of the clock. Git counts
    // ticks of a second.
    let whole_seconds = depth == Depth::BeforeRemoval || mtime.nsecs == 0 || written.nanos == 0;
    let racy = match meta.mtime.seconds.cmp(&written.seconds) {
        std::cmp::Ordering::Equal => whole_seconds || meta.mtime.nanos >= written.nanos,
        order => order.is_gt(),
    };
    if same && !racy && !smudged { Freshness::Fresh } else { Freshness::Stale }
}

/// A size as git stores it in 32 bits (`munge_st_size`): a multiple of 4 GiB must not look empty.
fn stored_size(size: u64) -> u32 {
    match size as u32 {
        0 if size > 0 => 0x8000_0000,
        stored => stored,
    }
}

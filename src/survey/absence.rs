//! How far the absence of a translated path is proven, and what casts doubt on it (design: Absence).

use std::os::unix::ffi::OsStrExt;

use crate::beneath::{self, Dir, Refused};
use crate::judge::facts::AbsenceProof;
use crate::vantage::paths::LocalPath;
use crate::vantage::translate::{TranslationKind, Translator};

/// A path at which nothing was found.
pub struct Missing<'a> {
    pub local: &'a LocalPath,
    pub clone_dir: &'a LocalPath,
    /// The local directory that the translation stands on.
    pub base: Option<LocalPath>,
    /// Everything that the same translation names for this clone, `local` among it.
    pub others: &'a [LocalPath],
}

/// What a translation proves by itself. Identity proves nothing: the marker of its vantage has to.
pub fn proof_of(translator: &Translator) -> AbsenceProof {
    let evidence = translator.evidence();
    match translator.kind() {
        TranslationKind::Mount | TranslationKind::Map => AbsenceProof::Proven(evidence.text),
        _ => AbsenceProof::Weak(evidence.text),
    }
}

/// Why the absence of `missing` means nothing: a disk that is not mounted, another spelling, a path that can't be looked
/// at.
pub fn doubt(missing: &Missing<'_>, kind: TranslationKind) -> Option<String> {
    other_spelling(missing.local).or_else(|| all_missing(missing)).or_else(|| parent_gone(missing, kind))
}

/// A name beside that differs in case or Unicode form only: the file system of the recorder may not have told them apart.
fn other_spelling(local: &LocalPath) -> Option<String> {
    let mut missing = local.clone();
    loop {
        let parent = missing.parent()?;
        match Dir::open(&parent) {
            Ok(dir) => {
                let name = folded(missing.file_name()?);
                return match dir.names() {
                    Ok(names) => names.iter().find(|n| folded(n) == name).map(|n| {
                        let n = crate::vantage::paths::escape(n);
                        format!("{parent} has '{n}', which may be another spelling of it")
                    }),
                    Err(refused) => Some(format!("{parent} can't be listed: {refused}")),
                };
            }
            Err(Refused::Absent) => missing = parent,
            Err(refused) => return Some(format!("{parent} can't be looked at: {refused}")),
        }
    }
}

/// Case and composition folded away.
fn folded(name: &[u8]) -> Vec<u8> {
    use unicode_normalization::UnicodeNormalization;
    match std::str::from_utf8(name) {
        Ok(text) => text.nfkd().flat_map(char::to_lowercase).nfkd().collect::<String>().into_bytes(),
        Err(_) => name.to_ascii_lowercase(),
    }
}

/// Everything that the translation names is missing at once: it may be the translation that is wrong, or a disk.
fn all_missing(missing: &Missing<'_>) -> Option<String> {
    let base = missing.base.as_ref()?;
    if missing.clone_dir.is_beneath_or_at(base) {
        return None;
    }
    let something =
        missing.others.iter().any(|other| other != missing.local && beneath::lstat(other).is_ok());
    (!something).then(|| {
        format!("nothing that lies below {base} by this translation is there; is a disk not mounted?")
    })
}

/// Away from the clone, a directory that is gone or empty may be a mount point without its mount.
fn parent_gone(missing: &Missing<'_>, kind: TranslationKind) -> Option<String> {
    let strong = matches!(kind, TranslationKind::Mount | TranslationKind::Map);
    if strong || missing.local.is_beneath_or_at(missing.clone_dir) {
        return None;
    }
    let parent = missing.local.parent()?;
    match std::fs::read_dir(parent.as_path()) {
        Ok(mut entries) => match entries.next() {
            Some(Ok(_)) => None,
            Some(Err(error)) => Some(format!("{parent} can't be listed: {error}")),
            None => Some(format!("{parent} is empty; is a disk not mounted?")),
        },
        Err(error) => Some(format!("{parent} is not there ({error}); is a disk not mounted?")),
    }
}

/// The file system that is at a path now: what a marker records, and has to find again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemNow {
    /// `f_fsid`.
    pub id: u64,
    pub mount_point: Vec<u8>,
}

/// The file system of the deepest mount over `path`; the path itself need not exist.
///
/// # Errors
/// The mount table or the file system can't be read.
pub fn file_system_of(path: &LocalPath) -> std::io::Result<FileSystemNow> {
    let table = crate::vantage::mountinfo::MountTable::own().map_err(std::io::Error::other)?;
    let mount = table.deepest_over(path).ok_or_else(|| std::io::Error::other("no mount is over it"))?;
    let point = mount.mount_point.clone();
    let stat = rustix::fs::statvfs(std::ffi::OsStr::from_bytes(&point))?;
    Ok(FileSystemNow { id: stat.f_fsid, mount_point: point.into() })
}

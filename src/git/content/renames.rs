//! Whether a file was moved rather than removed, as git's rename detection would say.

use std::collections::HashMap;

use gix::ObjectId;

use crate::git::objects::Objects;
use crate::git::open::Unreadable;
use crate::stop::Stop;

/// More pairs than these are not compared, nor larger files: then any of them may be a renaming.
const MOST_PAIRS: usize = 100_000;
const LARGEST: u64 = 8 << 20;
/// Git cuts content into lines of at most so many bytes (`hash_chars`).
const PIECE: usize = 64;
/// Percent of the larger file that have to be the same. Git asks for 50 (`DEFAULT_RENAME_SCORE`), and finds what is the
/// same by a hash of its own: below that there is room for what it might count otherwise.
const ENOUGH: u64 = 40;

/// Whether one of `added` is one of `removed`, or similar enough to be called the same file under another name.
pub(super) fn any_similar(
    objects: Objects<'_>,
    removed: &[ObjectId],
    added: &[ObjectId],
    stop: &Stop,
) -> Result<bool, Unreadable> {
    if added.iter().any(|id| removed.contains(id) && !id.is_empty_blob()) {
        return Ok(true);
    }
    if removed.len().saturating_mul(added.len()) > MOST_PAIRS {
        return Ok(true);
    }
    let sizes = |ids: &[ObjectId]| -> Result<Vec<(ObjectId, u64)>, Unreadable> {
        ids.iter().map(|id| Ok((*id, objects.size(*id)?))).collect()
    };
    let (removed, added) = (sizes(removed)?, sizes(added)?);
    for (from, size) in &removed {
        let mut pieces = None;
        for (to, _) in added.iter().filter(|(_, other)| may_be_similar(*size, *other)) {
            if *size > LARGEST || stop.is_set() {
                return Ok(true);
            }
            if pieces.is_none() {
                pieces = Some(Pieces::of(&objects.blob(*from)?));
            }
            if let Some(pieces) = &pieces
                && pieces.is_similar(&Pieces::of(&objects.blob(*to)?))
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Sizes alone can tell that too little is the same.
fn may_be_similar(one: u64, two: u64) -> bool {
    let (small, large) = (one.min(two), one.max(two));
    small > 0 && small.saturating_mul(100) >= large.saturating_mul(ENOUGH)
}

/// How many bytes a file has of each piece of content.
struct Pieces {
    bytes: HashMap<Vec<u8>, u64>,
    total: u64,
}

impl Pieces {
    fn of(content: &[u8]) -> Self {
        let mut bytes: HashMap<Vec<u8>, u64> = HashMap::new();
        for line in content.split_inclusive(|b| *b == b'\n') {
            // Line ends of another system are the same content for git.
            let line = line.strip_suffix(b"\r\n").unwrap_or(line.strip_suffix(b"\n").unwrap_or(line));
            for piece in line.chunks(PIECE) {
                *bytes.entry(piece.to_owned()).or_default() += piece.len() as u64;
            }
        }
        let total = bytes.values().sum();
        Self { bytes, total }
    }

    fn is_similar(&self, other: &Self) -> bool {
        let shared = |(piece, n): (&Vec<u8>, &u64)| other.bytes.get(piece).map_or(0, |m| (*n).min(*m));
        let same: u64 = self.bytes.iter().map(shared).sum();
        let largest = self.total.max(other.total);
        largest == 0 || same.saturating_mul(100) >= largest.saturating_mul(ENOUGH)
    }
}

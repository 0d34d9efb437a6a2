//! The shared refs of a clone, read once by handle, and the trunk among them.
//!
//! gix reads refs by path: a symlink in `refs/` would lead it out of the clone, and a FIFO would hold it. It also gives
//! up at the first broken one; here that one is noted, so that it can answer for nothing and hides no other.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::kinds::listed;
use crate::git::open::{Unreadable, read_optional};
use crate::judge::facts::Trunk;
use crate::vantage::paths::{escape, is_gits_space};

/// What a shared ref holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Direct(ObjectId),
    /// The full name of another ref.
    Symbolic(BString),
    /// It is there, and this is why nobody can say what it holds.
    Broken(String),
}

/// All refs of the clone that every worktree shares: not HEAD, and not `refs/bisect`, `refs/worktree`,
/// `refs/rewritten`, which git keeps per worktree (gitrepository-layout(5)).
#[derive(Clone, Debug, Default)]
pub struct SharedRefs {
    refs: BTreeMap<BString, Target>,
}

const PER_WORKTREE: [&[u8]; 3] = [b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/"];
/// Our own anchors: they are temporary, so that they prove nothing.
const RETIRED: &[u8] = b"refs/treesweep/";
/// Most bytes of a loose ref.
const LOOSE_FILE: u64 = 4 << 10;
/// Most bytes of `packed-refs`: some millions of refs.
const PACKED_FILE: u64 = 512 << 20;
/// How deep refs are looked for; a name of git's has at most some thousand bytes.
const DEEPEST: usize = 256;

impl SharedRefs {
    /// Reads loose and packed refs of the clone `common`, whose object ids are of kind `hash`.
    ///
    /// # Errors
    /// A directory of refs or `packed-refs` can't be read: what is reachable would not be known.
    pub fn read(common: &Dir, hash: gix::hash::Kind) -> Result<Self, Unreadable> {
        let mut refs = BTreeMap::new();
        let dir =
            common.dir("refs").map_err(|refused| Unreadable(format!("{}/refs: {refused}", common.path())))?;
        // Loose ones first, as in git: what is packed meanwhile is then found there. A loose ref is newer than a packed
        // one of its name, a broken one too.
        loose(&dir, "refs/".into(), hash, DEEPEST, &mut refs)?;
        if let Some(bytes) = read_optional(common, "packed-refs", PACKED_FILE)? {
            let wrong = |why: String| Unreadable(format!("{}/packed-refs: {why}", common.path()));
            packed(&bytes, hash, &mut refs).map_err(wrong)?;
        }
        Ok(Self { refs })
    }

    pub fn get(&self, name: &BStr) -> Option<&Target> {
        self.refs.get(name)
    }

    /// A ref beside which there can be none called `name`: one is a directory where the other is a file.
    pub fn in_the_way_of(&self, name: &BStr) -> Option<&BString> {
        let inside = [name.as_bytes(), b"/"].concat();
        let below = self.refs.keys().find(|other| other.starts_with(&inside));
        let mut at = name;
        let above = std::iter::from_fn(|| {
            at = at.rsplit_once_str("/")?.0.as_bstr();
            Some(at)
        });
        below.or_else(|| above.filter_map(|part| self.refs.get_key_value(part)).map(|(key, _)| key).next())
    }

    /// The object that `name` leads to, through a few symbolic refs at most.
    pub fn resolve(&self, name: &BStr) -> Option<ObjectId> {
        self.chase(name).ok().flatten()
    }

    /// The same; none if a ref on the way is not there.
    ///
    /// # Errors
    /// A ref on the way is broken, or there are too many of them.
    pub fn chase(&self, name: &BStr) -> Result<Option<ObjectId>, Unreadable> {
        const DEPTH: usize = 5; // git's own limit (SYMREF_MAXDEPTH)
        let mut at = name;
        for _ in 0..DEPTH {
            match self.refs.get(at) {
                None => return Ok(None),
                Some(Target::Direct(id)) => return Ok(Some(*id)),
                Some(Target::Symbolic(next)) => at = next.as_bstr(),
                Some(Target::Broken(why)) => return Err(Unreadable(format!("{}: {why}", escape(at)))),
            }
        }
        Err(Unreadable(format!("{}: more than {DEPTH} symbolic refs lead from it", escape(name))))
    }

    /// Local branches with the commits that they name directly.
    pub fn branches(&self) -> impl Iterator<Item = (&BString, ObjectId)> {
        self.refs.iter().filter_map(|(name, target)| match target {
            Target::Direct(id) if name.starts_with(b"refs/heads/") => Some((name, *id)),
            _ => None,
        })
    }

    /// Whatever keeps commits alive, tags too (not peeled), our own anchors not.
    pub fn holders(&self) -> impl Iterator<Item = ObjectId> {
        self.refs.iter().filter_map(|(name, target)| match target {
            Target::Direct(id) if !name.starts_with(RETIRED) => Some(*id),
            _ => None,
        })
    }

    /// Broken refs, each with why: they hold nothing, and what they are the name of is not known.
    pub fn broken(&self) -> impl Iterator<Item = (&BString, &str)> {
        self.refs.iter().filter_map(|(name, target)| match target {
            Target::Broken(why) => Some((name, why.as_str())),
            _ => None,
        })
    }

    /// The remote whose HEAD says what the trunk is: `origin`, or the only one. `configured` are the names in the
    /// configuration; without any, the names of remote-tracking refs tell (up to their first slash).
    fn leading_remote(&self, configured: &[BString]) -> Option<BString> {
        let mut names = configured.to_vec();
        if names.is_empty() {
            let tracking = self.refs.keys().filter_map(|name| name.strip_prefix(b"refs/remotes/"));
            names = tracking.filter_map(|rest| Some(rest[..rest.find_byte(b'/')?].into())).collect();
        }
        names.sort();
        names.dedup();
        match names.as_slice() {
            [only] => Some(only.clone()),
            many => many.iter().find(|name| *name == "origin").cloned(),
        }
    }

    /// The branch that work lands on: the one named by the user, else where the `HEAD` of `origin` (or of the only
    /// remote) points, else `main` or `master` if exactly one exists.
    pub fn trunk(&self, named: Option<&BStr>, configured_remotes: &[BString]) -> Option<Trunk> {
        let remote = self.leading_remote(configured_remotes);
        let tracking = |name: &BStr| {
            let remote = remote.as_ref()?;
            Some(BString::from([b"refs/remotes/", remote.as_slice(), b"/", name.as_bytes()].concat()))
        };
        let local = |name: &BStr| BString::from([b"refs/heads/", name.as_bytes()].concat());
        if let Some(name) = named {
            let candidates = match name.starts_with(b"refs/") {
                true => vec![name.to_owned()],
                false => {
                    let full = BString::from([b"refs/remotes/", name.as_bytes()].concat());
                    [Some(local(name)), tracking(name), Some(full)].into_iter().flatten().collect()
                }
            };
            return self.trunk_of(name, candidates);
        }
        let of_name = |name: &BStr| {
            let candidates: Vec<BString> =
                [Some(local(name)), tracking(name)].into_iter().flatten().collect();
            let exists = candidates.iter().any(|r| self.refs.contains_key(r));
            exists.then(|| self.trunk_of(name, candidates))
        };
        let head = tracking("HEAD".into()).and_then(|head| self.refs.get(&head).map(|target| (head, target)));
        match head {
            // It says something, and nobody knows what: the usual names would be a guess.
            Some((_, Target::Broken(_))) => return None,
            Some((head, Target::Symbolic(to))) => {
                let prefix = &head[..head.len() - b"HEAD".len()];
                // A dangling one is what is left of a remote whose trunk was renamed: it says nothing any more.
                if let Some(name) = to.strip_prefix(prefix)
                    && self.refs.contains_key(to)
                {
                    return of_name(name.as_bstr()).flatten();
                }
            }
            Some((_, Target::Direct(_))) | None => {}
        }
        match (of_name("main".into()), of_name("master".into())) {
            (Some(only), None) | (None, Some(only)) => only,
            _ => None,
        }
    }

    /// The trunk `name` with those of `candidates` that lead to something.
    fn trunk_of(&self, name: &BStr, mut candidates: Vec<BString>) -> Option<Trunk> {
        candidates.dedup();
        candidates.retain(|r| self.resolve(r.as_bstr()).is_some());
        (!candidates.is_empty()).then(|| Trunk { name: escape(name), refs: candidates })
    }
}

/// Reads one directory of loose refs and those below it. What git passes over (`.` in front, `.lock` behind, names that
/// are not valid) is passed over.
fn loose(
    dir: &Dir,
    prefix: BString,
    hash: gix::hash::Kind,
    depth: usize,
    refs: &mut BTreeMap<BString, Target>,
) -> Result<(), Unreadable> {
    if depth == 0 {
        return Err(Unreadable(format!("{}: refs are nested deeper than {DEEPEST} levels", dir.path())));
    }
    for (file, kind) in listed(dir)? {
        let name = BString::from([prefix.as_slice(), &file].concat());
        let inner = BString::from([name.as_slice(), b"/"].concat());
        if file.starts_with(b".")
            || file.ends_with(b".lock")
            || PER_WORKTREE.iter().any(|p| inner.starts_with(p))
        {
            continue;
        }
        let path = OsStr::from_bytes(&file);
        if kind == Kind::Directory {
            match dir.dir(path) {
                Ok(below) => loose(&below, inner, hash, depth - 1, refs)?,
                Err(Refused::Absent) => {}
                Err(refused) => {
                    return Err(Unreadable(format!("{}/{}: {refused}", dir.path(), escape(&file))));
                }
            }
        } else if gix::validate::reference::name(name.as_bstr()).is_ok() {
            let target = match dir.read(path, LOOSE_FILE) {
                Ok(bytes) => parse_loose(&bytes, hash),
                // Packed or deleted in this moment.
                Err(Refused::Absent) => continue,
                Err(refused) => Target::Broken(refused.to_string()),
            };
            refs.insert(name, target);
        }
    }
    Ok(())
}

/// What a loose ref says, as git reads it (`parse_loose_ref_contents`).
pub(crate) fn parse_loose(bytes: &[u8], hash: gix::hash::Kind) -> Target {
    if let Some(to) = bytes.strip_prefix(b"ref:") {
        let to = to.trim_with(is_gits_space).as_bstr();
        return match gix::validate::reference::name(to) {
            Ok(_) => Target::Symbolic(to.to_owned()),
            Err(_) => Target::Broken(format!("it points to '{}', which is no name of a ref", escape(to))),
        };
    }
    let word = bytes.split(|b| is_gits_space(char::from(*b))).next().unwrap_or_default();
    match ObjectId::from_hex(word) {
        Ok(id) if id.kind() == hash && !id.is_null() => Target::Direct(id),
        _ if bytes.is_empty() => Target::Broken("it is empty".to_owned()),
        _ => Target::Broken("it is neither an object id nor the name of a ref".to_owned()),
    }
}

/// Adds the refs of a `packed-refs` file that are not there yet.
pub(crate) fn packed(
    bytes: &[u8],
    hash: gix::hash::Kind,
    refs: &mut BTreeMap<BString, Target>,
) -> Result<(), String> {
    let mut own: BTreeMap<BString, Target> = BTreeMap::new();
    for (number, line) in bytes.split_inclusive(|b| *b == b'\n').enumerate() {
        let wrong = |why: &str| format!("line {}: {why}", number + 1);
        let text = line.strip_suffix(b"\n").ok_or_else(|| wrong("it has no end"))?;
        if text.is_empty() || text.starts_with(b"#") {
            continue;
        }
        let id = |hex: &[u8]| {
            let id = ObjectId::from_hex(hex).ok().filter(|id| id.kind() == hash);
            id.ok_or_else(|| wrong("no object id of this clone's kind"))
        };
        // What the tag before it peels to: it can be read from the tag itself, which nobody can forge.
        if let Some(peeled) = text.strip_prefix(b"^") {
            id(peeled)?;
            continue;
        }
        let (hex, name) = text.split_once_str(" ").ok_or_else(|| wrong("it names no ref"))?;
        let target = match id(hex)? {
            null if null.is_null() => Target::Broken("packed-refs has no object for it".to_owned()),
            id => Target::Direct(id),
        };
        let valid = name.starts_with(b"refs/") && gix::validate::reference::name(name.as_bstr()).is_ok();
        if !valid || PER_WORKTREE.iter().any(|p| name.starts_with(p)) {
            continue;
        }
        if own.get(name.as_bstr()).is_some_and(|known| *known != target) {
            own.insert(name.into(), Target::Broken("packed-refs has it twice".to_owned()));
        } else {
            own.insert(name.into(), target);
        }
    }
    for (name, target) in own {
        refs.entry(name).or_insert(target);
    }
    Ok(())
}

/// `refs/heads/x` as `x`; other refs keep their full name.
pub fn short(name: &BStr) -> &BStr {
    name.strip_prefix(b"refs/heads/").map_or(name, |s| s.as_bstr())
}

#[cfg(test)]
mod tests;

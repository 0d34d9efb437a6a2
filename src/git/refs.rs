//! The shared refs of a clone, read once, and the trunk among them.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::refs::TargetRef;

use crate::git::open::{Unreadable, chain};
use crate::judge::facts::Trunk;

/// What a shared ref holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Direct(ObjectId),
    /// The full name of another ref.
    Symbolic(BString),
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

impl SharedRefs {
    /// Reads loose and packed refs.
    ///
    /// # Errors
    /// One that can't be read: what is reachable would not be known.
    pub fn read(repo: &gix::Repository) -> Result<Self, Unreadable> {
        let unreadable = |e: &dyn std::error::Error| Unreadable(format!("refs: {}", chain(e)));
        let platform = repo.references().map_err(|e| unreadable(&e))?;
        let mut refs = BTreeMap::new();
        for reference in platform.all().map_err(|e| unreadable(&e))? {
            let reference = reference.map_err(|e| Unreadable(format!("a ref can't be read: {e}")))?;
            let name = reference.name().as_bstr().to_owned();
            if !name.starts_with(b"refs/") || PER_WORKTREE.iter().any(|p| name.starts_with(p)) {
                continue;
            }
            let target = match reference.target() {
                TargetRef::Object(id) => Target::Direct(id.to_owned()),
                TargetRef::Symbolic(to) => Target::Symbolic(to.as_bstr().to_owned()),
            };
            refs.insert(name, target);
        }
        Ok(Self { refs })
    }

    pub fn get(&self, name: &BStr) -> Option<&Target> {
        self.refs.get(name)
    }

    /// The object that `name` leads to, through a few symbolic refs at most.
    pub fn resolve(&self, name: &BStr) -> Option<ObjectId> {
        const DEPTH: usize = 5; // git's own limit (SYMREF_MAXDEPTH)
        let mut name = name.to_owned();
        for _ in 0..DEPTH {
            match self.refs.get(&name)? {
                Target::Direct(id) => return Some(*id),
                Target::Symbolic(next) => name = next.clone(),
            }
        }
        None
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

    /// Names of the remotes that have remote-tracking refs.
    fn remotes(&self) -> Vec<&BStr> {
        let mut remotes: Vec<&BStr> = self
            .refs
            .keys()
            .filter_map(|name| name.strip_prefix(b"refs/remotes/"))
            .filter_map(|rest| rest.find_byte(b'/').map(|at| rest[..at].as_bstr()))
            .collect();
        remotes.dedup();
        remotes
    }

    /// The branch that work lands on: the one named by the user, else where the `HEAD` of `origin` (or of the only
    /// remote) points, else `main` or `master` if exactly one exists.
    pub fn trunk(&self, named: Option<&str>) -> Option<Trunk> {
        let remotes = self.remotes();
        let remote = match remotes.as_slice() {
            [only] => Some(*only),
            many => many.iter().find(|r| **r == "origin").copied(),
        };
        if let Some(named) = named {
            return self.trunk_named(named, remote);
        }
        let by_remote = remote.and_then(|remote| {
            let prefix = format!("refs/remotes/{}/", remote.to_str_lossy());
            match self.get(format!("{prefix}HEAD").as_str().into())? {
                Target::Symbolic(to) => Some(to.strip_prefix(prefix.as_bytes())?.to_str_lossy().into_owned()),
                Target::Direct(_) => None,
            }
        });
        if let Some(name) = by_remote {
            return self.trunk_named(&name, remote);
        }
        let mut usual = ["main", "master"].into_iter().filter_map(|name| self.trunk_named(name, remote));
        match (usual.next(), usual.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// The local branch `name` and the remote-tracking one; `origin/main` and full names are understood.
    fn trunk_named(&self, name: &str, remote: Option<&BStr>) -> Option<Trunk> {
        let candidates = match name.starts_with("refs/") {
            true => vec![name.to_owned()],
            false => {
                let tracking = remote.map(|r| format!("refs/remotes/{}/{name}", r.to_str_lossy()));
                [Some(format!("refs/heads/{name}")), tracking, Some(format!("refs/remotes/{name}"))]
                    .into_iter()
                    .flatten()
                    .collect()
            }
        };
        let mut refs: Vec<BString> = candidates.into_iter().map(BString::from).collect();
        refs.dedup();
        refs.retain(|r| self.resolve(r.as_bstr()).is_some());
        (!refs.is_empty()).then(|| Trunk { name: name.to_owned(), refs })
    }
}

/// `refs/heads/x` as `x`; other refs keep their full name.
pub fn short(name: &BStr) -> &BStr {
    name.strip_prefix(b"refs/heads/").map_or(name, |s| s.as_bstr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(names: &[(&str, Option<&str>)]) -> SharedRefs {
        let id = ObjectId::null(gix::hash::Kind::Sha1);
        let target = |to: &Option<&str>| to.map_or(Target::Direct(id), |to| Target::Symbolic(to.into()));
        SharedRefs { refs: names.iter().map(|(n, to)| (BString::from(*n), target(to))).collect() }
    }

    #[test]
    fn the_trunk_is_what_the_remote_says() {
        let r = refs(&[
            ("refs/heads/main", None),
            ("refs/heads/dev", None),
            ("refs/remotes/origin/HEAD", Some("refs/remotes/origin/dev")),
            ("refs/remotes/origin/dev", None),
        ]);
        let trunk = r.trunk(None).unwrap();
        assert_eq!(trunk.name, "dev");
        assert_eq!(trunk.refs, vec![BString::from("refs/heads/dev"), "refs/remotes/origin/dev".into()]);
        assert_eq!(r.trunk(Some("main")).unwrap().refs, vec![BString::from("refs/heads/main")]);
        assert_eq!(r.trunk(Some("origin/dev")).unwrap().refs, vec![BString::from("refs/remotes/origin/dev")]);
        assert_eq!(r.trunk(Some("nope")), None);
    }

    #[test]
    fn one_usual_name_will_do_and_two_will_not() {
        assert_eq!(refs(&[("refs/heads/master", None)]).trunk(None).unwrap().name, "master");
        assert_eq!(refs(&[("refs/heads/master", None), ("refs/heads/main", None)]).trunk(None), None);
        assert_eq!(refs(&[("refs/heads/x", None)]).trunk(None), None);
    }

    #[test]
    fn a_loop_of_symbolic_refs_resolves_to_nothing() {
        let r = refs(&[("refs/heads/a", Some("refs/heads/b")), ("refs/heads/b", Some("refs/heads/a"))]);
        assert_eq!(r.resolve("refs/heads/a".into()), None);
    }
}

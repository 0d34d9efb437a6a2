//! What no removal may touch, whatever a warrant says: a file system's root, a home directory, and whatever is or contains
//! a main worktree, a common directory or another place that was named.

use std::collections::HashMap;
use std::ffi::OsString;

use crate::beneath::{Refused, lstat};
use crate::vantage::paths::{FileId, LocalPath};

/// Places by what they are, so that no other spelling and no bind mount of them is missed.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// Each place and all that contain it, with the place.
    places: HashMap<FileId, LocalPath>,
}

/// A place that should be protected could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("{path} could not be looked at: {refused}")]
pub struct Unseen {
    pub path: LocalPath,
    pub refused: Refused,
}

impl Protected {
    /// Protects the root, every home directory, and `places` (main worktrees, common directories...).
    ///
    /// A place that does not exist needs no protection; one that can't be looked at is an error, as it could be anything.
    pub fn new(places: impl IntoIterator<Item = LocalPath>) -> Result<Self, Unseen> {
        let mut protected = Self::default();
        for place in LocalPath::new("/").into_iter().chain(places) {
            protected.add(&place)?;
        }
        for home in homes() {
            // Another user's home that this process may not even look at is out of its reach; what leads there is not.
            let _unseen = protected.add(&home);
        }
        Ok(protected)
    }

    fn add(&mut self, place: &LocalPath) -> Result<(), Unseen> {
        // Both the way as it is spelled and the way that it leads through links.
        let real = std::fs::canonicalize(place.as_path()).ok().and_then(LocalPath::new);
        for way in [Some(place.clone()), real].into_iter().flatten() {
            let mut at = Some(way);
            while let Some(path) = at {
                match lstat(&path) {
                    Ok(meta) => {
                        self.places.entry(meta.id).or_insert_with(|| place.clone());
                    }
                    Err(Refused::Absent | Refused::NotPlain) => {}
                    Err(refused) => return Err(Unseen { path, refused }),
                }
                at = path.parent();
            }
        }
        Ok(())
    }

    /// The place that `target` is or contains.
    pub fn why(&self, target: FileId) -> Option<&LocalPath> {
        self.places.get(&target)
    }
}

/// The homes of all users that the system knows by file, and `$HOME`. The password database is read as the file that it
/// is: `getpwuid` loads modules, which a static binary can't.
fn homes() -> Vec<LocalPath> {
    // Without the file there are no other homes to know of.
    let users = std::fs::read("/etc/passwd").unwrap_or_default();
    homes_of(std::env::var_os("HOME"), &users)
}

fn homes_of(own: Option<OsString>, users: &[u8]) -> Vec<LocalPath> {
    let mut homes: Vec<LocalPath> = own.and_then(LocalPath::new).into_iter().collect();
    for line in users.split(|b| *b == b'\n') {
        let home = line.split(|b| *b == b':').nth(5).unwrap_or_default();
        homes.extend(LocalPath::new(crate::sweep::atomic::bstr_path(home)));
    }
    homes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_and_all_that_contain_it_are_protected() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("src/app/.git")).unwrap();
        std::fs::create_dir_all(path.join("src/app/.worktrees/x")).unwrap();
        std::os::unix::fs::symlink(path.join("src"), path.join("link")).unwrap();
        let local = |name: &str| LocalPath::new(path.join(name)).unwrap();
        let protected = Protected::new([local("link/app/.git")]).unwrap();
        let id = |name: &str| lstat(&local(name)).unwrap().id;
        for name in ["src/app/.git", "src/app", "src", "/", "link"] {
            assert!(protected.why(id(name)).is_some(), "{name}");
        }
        assert!(protected.why(id("src/app/.worktrees/x")).is_none());
        let homes: Vec<_> = homes().iter().filter_map(|h| lstat(h).ok()).collect();
        assert!(!homes.is_empty() && homes.iter().all(|home| protected.why(home.id).is_some()));
    }

    #[test]
    fn every_users_home_is_known() {
        let users = b"root:x:0:0:root:/root:/bin/sh\nme:x:1000:1000:,,,:/home/me:/bin/sh\nbroken\n";
        let homes = |own: Option<&str>| -> Vec<String> {
            homes_of(own.map(Into::into), users).iter().map(ToString::to_string).collect()
        };
        assert_eq!(homes(Some("/home/other")), ["/home/other", "/root", "/home/me"]);
        assert_eq!(homes(None), ["/root", "/home/me"]);
        assert_eq!(homes(Some("relative")), ["/root", "/home/me"]);
    }
}

//! How much a directory takes, for a person who looks for what fills the disk. Nothing is decided by it.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::beneath::{Dir, Kind, Refused};
use crate::stop::Stop;
use crate::vantage::paths::FileId;

/// Allocated bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weight {
    pub bytes: u64,
    /// Not everything could be looked at, so that it may be more.
    pub at_least: bool,
}

/// What lies beneath `dir`, on its mount, links not followed and the directories `without` left out. A file with
/// several links counts once.
pub fn weigh(dir: &Dir, without: &HashSet<FileId>, stop: &Stop) -> Weight {
    let mut weight = Weight::default();
    let mut linked: HashSet<FileId> = HashSet::new();
    let mut left = vec![PathBuf::new()];
    while let Some(relative) = left.pop() {
        if stop.is_set() {
            weight.at_least = true;
            break;
        }
        let opened;
        let here = match relative.as_os_str().is_empty() {
            true => Ok(dir),
            false => {
                opened = dir.dir(&relative);
                opened.as_ref()
            }
        };
        let names = here.map(|here| (here, here.names()));
        let Ok((here, Ok(names))) = names else {
            // What is mounted there is not this directory's.
            weight.at_least |= !matches!(names, Err(Refused::MountCrossed));
            continue;
        };
        for name in names {
            let name = Path::new(std::ffi::OsStr::from_bytes(&name));
            let Ok(meta) = here.meta(name) else {
                weight.at_least = true;
                continue;
            };
            if meta.kind == Kind::Directory {
                if without.contains(&meta.id) {
                    continue;
                }
                left.push(relative.join(name));
            } else if meta.links > 1 && !linked.insert(meta.id) {
                continue;
            }
            weight.bytes += meta.allocated;
        }
    }
    weight
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vantage::paths::LocalPath;

    #[test]
    fn links_count_once_and_what_is_left_out_does_not() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        let blob = vec![1u8; 100_000];
        std::fs::create_dir_all(at("a/b")).unwrap();
        std::fs::create_dir(at("other")).unwrap();
        std::fs::write(at("a/b/blob"), &blob).unwrap();
        std::fs::hard_link(at("a/b/blob"), at("twin")).unwrap();
        std::fs::write(at("other/blob"), &blob).unwrap();
        std::os::unix::fs::symlink("a/b", at("link")).unwrap();
        let dir = Dir::open(&LocalPath::new(tmp.path().canonicalize().unwrap()).unwrap()).unwrap();
        let other = dir.meta("other").unwrap().id;
        let with = weigh(&dir, &HashSet::new(), &Stop::never());
        let without = weigh(&dir, &HashSet::from([other]), &Stop::never());
        assert!((100_000..150_000).contains(&without.bytes) && !without.at_least, "{without:?}");
        assert!(with.bytes >= without.bytes + 100_000 && with.bytes < 250_000, "{with:?}");
        let stop = Stop::never();
        stop.request();
        assert_eq!(weigh(&dir, &HashSet::new(), &stop), Weight { bytes: 0, at_least: true });
    }
}

//! Changing a clone's `config`, as git does: under `config.lock`, the file replaced whole. Files that it includes are
//! not touched, and a `config` that is no plain file is refused.

use std::io;

use bstr::BStr;
use jiff::Timestamp;

use crate::beneath::Dir;
use crate::sweep::act;
use crate::sweep::atomic::{self, io_error};
use crate::sweep::record::RecordId;
use crate::sweep::ref_lock::Lock;
use crate::sweep::refs::RefError;

const FILE: &str = "config";
/// As much as is read of it anywhere.
const LIMIT: u64 = 4 << 20;

/// Why the config stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{0}")]
    Lock(#[from] RefError),
    #[error("config: {0}")]
    Io(#[from] io::Error),
    #[error("config: {0}")]
    NotUnderstood(String),
}

/// The bytes of the config of the clone `common`.
///
/// # Errors
/// It is no plain file within its bound.
pub fn read(common: &Dir) -> Result<Vec<u8>, ConfigError> {
    Ok(common.read(FILE, LIMIT).map_err(io_error)?)
}

/// Gives the config the content that `change` makes of it; `None` leaves it as it is. Whether it was changed.
///
/// # Errors
/// Nothing was changed, but that a lock may stay, which the next run removes.
pub fn change(
    common: &Dir,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, String>,
) -> Result<bool, ConfigError> {
    let id = RecordId::random(Timestamp::now())?;
    let lock = Lock::acquire(common, BStr::new(FILE), &id)?;
    let result = replace(common, change);
    lock.release()?;
    result
}

fn replace(
    common: &Dir,
    change: impl FnOnce(&[u8]) -> Result<Option<Vec<u8>>, String>,
) -> Result<bool, ConfigError> {
    let old = read(common)?;
    let Some(new) = change(&old).map_err(ConfigError::NotUnderstood)? else { return Ok(false) };
    let model = common.meta(FILE).map_err(io_error)?;
    let ours = atomic::ensure_dir(common, b"treesweep", 0o777).map_err(io_error)?;
    let unfinished = atomic::unfinished_name()?;
    let mut file = act::create(&ours, &unfinished, 0o600).map_err(io::Error::from)?;
    let written = act::write(&mut file, &new)
        .and_then(|()| Ok(atomic::take_after(&model, &file)?))
        .and_then(|()| Ok(act::sync(&file)?))
        .and_then(|()| Ok(act::replace(&ours, &unfinished, common, FILE.as_bytes())?));
    if let Err(error) = written {
        act::unlink(&ours, &unfinished).map_err(io::Error::from)?;
        return Err(error.into());
    }
    act::sync_dir(common).map_err(io::Error::from)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

    use super::*;
    use crate::sweep::act::faults::run;
    use crate::sweep::testing::{Clone, listing};

    /// A power cut leaves the old one or the new one, and whoever could use the old one can use the new one.
    #[test]
    fn it_is_on_the_disk_before_it_takes_the_place_mode_and_owner_of_the_old_one() {
        let clone = Clone::new();
        let path = clone.path.join(".git/config");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o664)).unwrap();
        let owned = rustix::process::geteuid().is_root();
        if owned {
            chown(&path, Some(1234), Some(5678)).unwrap();
        }
        let (changed, mut calls) =
            run(None, || change(&clone.common(), |old| Ok(Some([old, b"# more\n"].concat()))));
        assert!(changed.unwrap().unwrap());
        let meta = std::fs::metadata(&path).unwrap();
        assert_eq!(meta.mode() & 0o7777, 0o664);
        assert!(!owned || (meta.uid(), meta.gid()) == (1234, 5678));
        assert!(std::fs::read(&path).unwrap().ends_with(b"# more\n"));
        calls.retain(|call| *call != "chown");
        let order = ["create", "write", "chmod", "fsync", "replace", "fsync"];
        assert!(calls.windows(order.len()).any(|calls| calls == order), "{calls:?}");
    }

    #[test]
    fn what_is_not_understood_stays_as_it_is() {
        let clone = Clone::new();
        change(&clone.common(), |_| Ok(None)).unwrap();
        let before = listing(&clone.path);
        assert!(!change(&clone.common(), |_| Ok(None)).unwrap());
        let refused = change(&clone.common(), |_| Err("no section".into()));
        assert!(matches!(refused, Err(ConfigError::NotUnderstood(why)) if why == "no section"));
        assert_eq!(listing(&clone.path), before);
    }
}

//! `--metrics FILE`: a whole page, or the one before.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes `page` to `file`. It is written beside it first, under a name that the collector passes over.
///
/// # Errors
/// What was there before is still there.
pub fn write(file: &Path, page: &str) -> io::Result<()> {
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Another user reads it.
    let mode = Permissions::from_mode(0o644);
    let mut unfinished =
        tempfile::Builder::new().prefix(".treesweep-").suffix(".tmp").permissions(mode).tempfile_in(dir)?;
    unfinished.write_all(page.as_bytes())?;
    unfinished.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_replaces_the_one_before_or_leaves_it() {
        let tmp = tempfile::tempdir().unwrap();
        let file = tmp.path().join("treesweep.prom");
        write(&file, "one\n").unwrap();
        write(&file, "two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        let taken = tmp.path().join("taken");
        std::fs::create_dir_all(taken.join("x")).unwrap();
        assert!(write(&taken, "three\n").is_err() && write(&tmp.path().join("no/file"), "").is_err());
        assert_eq!(std::fs::read_dir(tmp.path()).unwrap().count(), 2, "nothing unfinished is left");
    }
}

//! Whether an ignored file that is worth keeping is in the main worktree too; which files these are, the settings say.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::BStr;

use crate::beneath::Dir;

/// Whether `main` has a regular file at the same `path` with the content of `file`, whose size is `size` bytes. What
/// can't be read there does not count as a copy; an error in reading `file` itself is the caller's.
pub fn is_also_in(main: &Dir, path: &BStr, file: impl Read, size: u64) -> io::Result<bool> {
    match main.file(Path::new(OsStr::from_bytes(path))) {
        Ok((other, meta)) if meta.size == size => same_content(file, other),
        Ok(_) | Err(_) => Ok(false),
    }
}

fn same_content(a: impl Read, b: impl Read) -> io::Result<bool> {
    let (mut a, mut b) =
        (io::BufReader::with_capacity(64 << 10, a), io::BufReader::with_capacity(64 << 10, b));
    loop {
        let left = io::BufRead::fill_buf(&mut a)?;
        if left.is_empty() {
            return Ok(b.read(&mut [0])? == 0);
        }
        let mut right = vec![0; left.len()];
        match b.read_exact(&mut right) {
            Ok(()) if right == left => {}
            Ok(()) => return Ok(false),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(e) => return Err(e),
        }
        let read = left.len();
        io::BufRead::consume(&mut a, read);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    use crate::vantage::paths::LocalPath;

    #[test]
    fn only_an_equal_regular_file_is_a_copy() {
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().canonicalize().unwrap();
        let main = Dir::open(&LocalPath::new(&path).unwrap()).unwrap();
        let file = || File::open(path.join("mine")).unwrap();
        std::fs::write(path.join("mine"), vec![7; 200_000]).unwrap();
        std::fs::write(path.join("same"), vec![7; 200_000]).unwrap();
        let mut other = vec![7; 200_000];
        other[199_999] = 8;
        std::fs::write(path.join("other"), other).unwrap();
        std::os::unix::fs::symlink("same", path.join("link")).unwrap();
        for (name, same) in [("same", true), ("other", false), ("link", false), ("absent", false)] {
            assert_eq!(is_also_in(&main, name.into(), file(), 200_000).unwrap(), same, "{name}");
        }
    }
}

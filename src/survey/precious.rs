//! Ignored files that are worth keeping: secrets and local databases, which no commit has.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::beneath::Dir;

/// What is precious when the user's config names nothing else.
pub const DEFAULT: &[&str] = &[".env*", "*.local", "*.pem", "*.key", "*.sqlite", "*.db"];

/// The compiled `precious` patterns.
#[derive(Clone, Debug)]
pub struct Precious {
    names: GlobSet,
    paths: GlobSet,
}

/// A pattern that is no glob.
#[derive(Debug, thiserror::Error)]
#[error("precious: {0}")]
pub struct BadPattern(#[from] globset::Error);

impl Precious {
    /// A pattern with a slash is matched with the path in the checkout, any other with the file's name. Upper and lower
    /// case are the same: to keep `ID.PEM` too costs nothing.
    pub fn new<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, BadPattern> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        for pattern in patterns {
            let text = pattern.as_ref();
            let glob = |text| GlobBuilder::new(text).case_insensitive(true).literal_separator(true).build();
            match text.contains('/') {
                true => paths.add(glob(text.trim_start_matches('/'))?),
                false => names.add(glob(text)?),
            };
        }
        Ok(Self { names: names.build()?, paths: paths.build()? })
    }

    /// Whether the file at `path`, relative to the checkout, is one of them.
    pub fn matches(&self, path: &BStr) -> bool {
        let name = path.rfind_byte(b'/').map_or(path.as_bytes(), |slash| &path[slash + 1..]);
        self.names.is_match(OsStr::from_bytes(name)) || self.paths.is_match(OsStr::from_bytes(path))
    }
}

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
    fn names_and_paths_match() {
        let precious = Precious::new(DEFAULT.iter().copied().chain(["conf/*.yml", "/top/secret"])).unwrap();
        for path in [".env", "a/b/.env.production", "x/dev.sqlite", "ID.PEM", "conf/a.yml", "top/secret"] {
            assert!(precious.matches(path.into()), "{path}");
        }
        for path in ["env", "a.env", "conf/x/a.yml", "a/conf/a.yml", "dbs", "keys"] {
            assert!(!precious.matches(path.into()), "{path}");
        }
        assert!(Precious::new(["a[", "b"]).is_err());
    }

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

//! Finds and reads the user's config file.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::ConfigError;

/// Below the configuration directory.
const FILE: &str = "treesweep/config.toml";
const LIMIT: u64 = 1 << 20;

/// Why the config file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("it is not a regular file")]
    NotAFile,
    #[error("every user may write it, so it is not read: `chmod o-w` it")]
    WorldWritable,
    #[error("it has more than {LIMIT} bytes")]
    TooLarge,
    #[error("it is not valid UTF-8")]
    NotText,
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Where the config file is looked for: `$XDG_CONFIG_HOME`, which counts only if it is absolute, else `~/.config`.
pub fn path(xdg_config_home: Option<&Path>, home: Option<&Path>) -> Option<PathBuf> {
    let base = match xdg_config_home.filter(|p| p.is_absolute()) {
        Some(base) => base.to_owned(),
        None => home?.join(".config"),
    };
    Some(base.join(FILE))
}

/// Its text; `None` if there is none. A FIFO can't hold us, and what every user may write configures nothing.
pub fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    match text(path) {
        Ok(text) => Ok(Some(text)),
        Err(ReadError::Io(e))
            if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(ConfigError::Read { path: path.to_owned(), error }),
    }
}

fn text(path: &Path) -> Result<String, ReadError> {
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(nonblocking).open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(ReadError::NotAFile);
    }
    if std::os::unix::fs::MetadataExt::mode(&meta) & 0o002 != 0 {
        return Err(ReadError::WorldWritable);
    }
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LIMIT {
        return Err(ReadError::TooLarge);
    }
    String::from_utf8(bytes).map_err(|_| ReadError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_relative_xdg_directory_does_not_count() {
        let home = Some(Path::new("/home/me"));
        let expected = Some(PathBuf::from("/home/me/.config/treesweep/config.toml"));
        assert_eq!(path(None, home), expected);
        assert_eq!(path(Some(Path::new("cfg")), home), expected);
        assert_eq!(path(Some(Path::new("/c")), home), Some("/c/treesweep/config.toml".into()));
        assert_eq!(path(None, None), None);
    }

    #[test]
    fn only_a_plain_file_of_ones_own_is_read() {
        let tmp = tempfile::tempdir().unwrap();
        let at = |name: &str| tmp.path().join(name);
        assert!(read(&at("none")).unwrap().is_none());
        std::fs::write(at("good"), "idle = '1h'").unwrap();
        assert_eq!(read(&at("good")).unwrap().unwrap(), "idle = '1h'");
        assert!(read(&at("good/below")).unwrap().is_none());
        std::fs::set_permissions(at("good"), PermissionsExt::from_mode(0o666)).unwrap();
        nix::unistd::mkfifo(&at("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(at("bytes"), b"\xff").unwrap();
        std::fs::write(at("large"), vec![b'#'; LIMIT as usize + 1]).unwrap();
        for (name, part) in
            [("good", "chmod"), ("fifo", "regular"), ("bytes", "UTF-8"), ("large", "bytes"), (".", "regular")]
        {
            let error = read(&at(name)).unwrap_err().to_string();
            assert!(error.contains(part), "{name}: {error}");
        }
    }
}

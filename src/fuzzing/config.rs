//! git's configuration, as a repository has it, and our own file.

use std::path::Path;
use std::sync::OnceLock;

use crate::beneath::Dir;
use crate::config::{ConfigError, Sources, resolve};
use crate::fuzzing::assert_tame;
use crate::git::open::{only_known_extensions, open_clone};
use crate::survey::eyes::SharedConfig;
use crate::vantage::paths::LocalPath;

/// The extensions and the shared configuration: what is there can't be hidden by what stands before it.
pub fn config(bytes: &[u8]) {
    let Ok(before) = SharedConfig::parse(bytes) else {
        assert!(only_known_extensions(bytes).is_err());
        return;
    };
    let with = |more: &str| [bytes, b"\n\n", more.as_bytes()].concat();
    for strange in ["refStorage = reftable", "somethingNew = true", "OBJECTFORMAT2"] {
        let more = with(&format!("[extensions]\n\t{strange}\n"));
        assert!(only_known_extensions(&more).is_err(), "{strange} was passed over");
    }
    let Ok(after) = SharedConfig::parse(&with("[core]\n\thooksPath = /w/h\n[Remote \"r\"]\n")) else {
        return;
    };
    assert_eq!(after.pointed_at.last(), Some(&("core.hooksPath".to_owned(), "/w/h".into())));
    assert_eq!(after.pointed_at.len(), before.pointed_at.len() + 1);
    assert_eq!(after.remotes.last().map(|r| r.as_slice()), Some(&b"r"[..]));
}

/// A clone with this `config`: if it opens, it opens as we want it.
pub fn clone_config(bytes: &[u8]) {
    static CLONE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let place = CLONE.get_or_init(|| bare_clone().expect("a directory for a clone"));
    std::fs::write(place.path().join("config"), bytes).expect("the clone's config");
    let path = LocalPath::new(place.path()).expect("absolute");
    let common = Dir::open(&path).expect("the clone");
    let repo = match open_clone(&common) {
        Ok(repo) => repo,
        Err(refused) => return assert_tame(&refused.to_string()),
    };
    assert_eq!(repo.git_dir_trust(), gix::sec::Trust::Reduced);
    assert_eq!(repo.common_dir(), place.path());
    let config = repo.config_snapshot();
    for (key, value) in [
        ("core.useReplaceRefs", false),
        ("core.commitGraph", false),
        ("core.trustCtime", true),
        ("core.fileMode", true),
        ("core.ignoreCase", false),
        ("core.fsmonitor", false),
    ] {
        assert_eq!(config.boolean(key), Some(value), "{key}");
    }
    assert!(config.string("core.checkStat").is_some_and(|v| v == "default"));
}

fn bare_clone() -> std::io::Result<tempfile::TempDir> {
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    for dir in ["objects", "refs"] {
        std::fs::create_dir(place.path().join(dir))?;
    }
    std::fs::write(place.path().join("HEAD"), "ref: refs/heads/main\n")?;
    Ok(place)
}

/// Our own file: an error names a line that is there, and every value the line that it stands in.
pub fn own_config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines = 1 + text.matches('\n').count();
    let file = Some((Path::new("/h/config.toml").to_owned(), text.to_owned()));
    let sources = Sources { file, home: Some("/h".into()), ..Sources::default() };
    match resolve(sources) {
        Ok(resolved) => {
            for root in &resolved.settings.roots.known {
                assert!(root.value.is_absolute(), "{root:?}");
            }
            for map in &resolved.settings.maps {
                assert_tame(&map.origin.to_string());
            }
        }
        Err(error) => {
            if let ConfigError::File { line, .. } = &error {
                assert!((1..=lines).contains(line), "{error}");
            }
            assert_tame(&error.to_string());
        }
    }
}

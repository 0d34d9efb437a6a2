//! `gc.worktreePruneExpire` in the text of a clone's config file: set so that every other byte stays, and taken back.
//!
//! The value is appended: of several, git takes the last, and what stood there before needs no memory but the file.
//! Each result is parsed again and must say the same as before but for this one value.

use bstr::{BStr, BString, ByteSlice};

use crate::git::open::chain;

/// Our section, and the line by which it is known again.
const LINE: &[u8] = b"\tworktreePruneExpire = never # treesweep guard\n";
const HEADER: &[u8] = b"[gc]\n";
const KEY: (&str, &str) = ("gc", "worktreepruneexpire");

/// One value of the file: section, subsection, key, and the value, if it has one.
type Said = (String, Option<BString>, String, Option<BString>);

/// What the file says of the setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// The line of ours is in it, and nothing after it takes it back.
    Ours,
    /// Somebody else has set it to never.
    Never,
    /// Another value, or none.
    Other(Option<BString>),
}

/// What `config` says of the setting. Files that it includes are not asked.
///
/// # Errors
/// The file can't be parsed.
pub fn setting(config: &[u8]) -> Result<Setting, String> {
    let value = last(&said(config)?);
    Ok(match value {
        Some(value) if value.eq_ignore_ascii_case(b"never") => {
            if line(config).is_some() {
                Setting::Ours
            } else {
                Setting::Never
            }
        }
        other => Setting::Other(other),
    })
}

/// `config` with the value set, as git would read it.
///
/// # Errors
/// The file can't be parsed, or ends so that nothing can be appended.
pub fn set(config: &[u8]) -> Result<Vec<u8>, String> {
    let before = said(config)?;
    let end: &[u8] = if config.is_empty() || config.ends_with(b"\n") { b"" } else { b"\n" };
    let after = [config, end, HEADER, LINE].concat();
    let mut expected = before;
    expected.push((KEY.0.into(), None, KEY.1.into(), Some("never".into())));
    if said(&after)? == expected { Ok(after) } else { Err("nothing can be appended to it".into()) }
}

/// `config` without the line that [`set`] wrote, and without its section if nothing else is in there; `None` if the line
/// is not there. `end` says that the file had no line break at its end before.
///
/// # Errors
/// The file can't be parsed, or would say something else without it.
pub fn unset(config: &[u8], end: bool) -> Result<Option<Vec<u8>>, String> {
    let Some(at) = line(config) else { return Ok(None) };
    let (before, after) = (&config[..at], &config[at + LINE.len()..]);
    let alone = after.trim_start().is_empty() || after.trim_start().starts_with(b"[");
    let mut kept = match before.strip_suffix(HEADER) {
        Some(above) if alone && (above.is_empty() || above.ends_with(b"\n")) => above,
        _ => before,
    };
    if end && after.is_empty() && kept.len() < before.len() {
        kept = kept.strip_suffix(b"\n").unwrap_or(kept);
    }
    let result = [kept, after].concat();
    let mut expected = said(config)?;
    let ours = (KEY.0.to_owned(), None, KEY.1.to_owned(), Some(BString::from("never")));
    let same = (0..expected.len()).filter(|n| expected[*n] == ours).any(|n| {
        let mut without = expected.clone();
        without.remove(n);
        said(&result).is_ok_and(|said| said == without)
    });
    expected.clear();
    if same { Ok(Some(result)) } else { Err("without treesweep's line it would say something else".into()) }
}

/// Where the line of ours begins; none if it is there twice, since one of them is not ours.
fn line(config: &[u8]) -> Option<usize> {
    let starts = |at: &usize| *at == 0 || config[at - 1] == b'\n';
    let mut all = config.find_iter(LINE).filter(starts);
    all.next().filter(|_| all.next().is_none())
}

fn last(said: &[Said]) -> Option<BString> {
    let ours = |(section, sub, key, _): &&Said| section == KEY.0 && sub.is_none() && key == KEY.1;
    said.iter().rfind(ours).and_then(|(.., value)| value.clone())
}

fn said(config: &[u8]) -> Result<Vec<Said>, String> {
    let meta = gix::config::file::Metadata::from(gix::config::Source::Local);
    let file = gix::config::File::from_bytes_no_includes(config, meta, Default::default())
        .map_err(|error| chain(&error))?;
    let mut all = Vec::new();
    for section in file.sections() {
        let name = section.header().name().to_str_lossy().to_ascii_lowercase();
        let sub = section.header().subsection_name().map(BStr::to_owned);
        let mut keys: Vec<String> = section.value_names().map(|key| key.to_ascii_lowercase()).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            let values = section.values(&key);
            // A key without a value has none here.
            let values = if values.is_empty() { vec![None] } else { values.into_iter().map(Some).collect() };
            all.extend(values.into_iter().map(|value| (name.clone(), sub.clone(), key.clone(), value)));
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &[u8] = b"[core]\n\tbare = false\n[gc]\n\tauto = 0\n\tworktreePruneExpire = 1.week\n";

    #[test]
    fn every_other_byte_stays_and_comes_back() {
        for config in [PLAIN, b"", b"[a]\n\tb = c", b"# only this", b"[a]\r\n\tb = c ; d\r\n\r\n"] {
            let guarded = set(config).unwrap();
            assert!(guarded.starts_with(config));
            assert_eq!(setting(&guarded), Ok(Setting::Ours));
            let end = !config.is_empty() && !config.ends_with(b"\n");
            assert_eq!(unset(&guarded, end).unwrap().as_deref(), Some(config), "{:?}", config.as_bstr());
        }
        assert_eq!(setting(PLAIN), Ok(Setting::Other(Some("1.week".into()))));
        assert_eq!(setting(b"[gc]\n\tworktreepruneexpire = Never\n"), Ok(Setting::Never));
    }

    #[test]
    fn what_others_wrote_since_stays() {
        let guarded = set(PLAIN).unwrap();
        let added = [guarded.as_slice(), b"\tauto = 1\n[x]\n\ty = z\n"].concat();
        let without = unset(&added, false).unwrap().unwrap();
        assert_eq!(without, [PLAIN, b"[gc]\n\tauto = 1\n[x]\n\ty = z\n"].concat());
        let section = [guarded.as_slice(), b"[x]\n\ty = z\n"].concat();
        assert_eq!(unset(&section, false).unwrap().unwrap(), [PLAIN, b"[x]\n\ty = z\n"].concat());
        let changed = guarded.replace(b"never # treesweep guard", b"now");
        assert_eq!(unset(&changed, false), Ok(None));
        assert_eq!(setting(&changed), Ok(Setting::Other(Some("now".into()))));
        assert_eq!(unset(&[LINE, LINE].concat(), false), Ok(None), "one of them is not ours");
    }

    /// Appended text must not become a part of what is there.
    #[test]
    fn a_file_that_would_swallow_it_is_refused() {
        for config in [&b"[a]\n\tb = c\\"[..], b"[a]\n\tb = \"c", b"[a"] {
            assert!(set(config).is_err(), "{:?}", config.as_bstr());
        }
    }
}

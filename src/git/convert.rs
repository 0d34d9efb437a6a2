//! What git would store of a file: attributes, line ends, encodings and `$Id$`, and never a driver.
//!
//! The order is git's (`convert.c`, `convert_to_git`): driver, encoding, line ends, `$Id$`.

use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString};
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::filter::plumbing::eol::{self, AttributesDigest, AutoCrlf};
use gix::filter::plumbing::ident;
use gix::glob::pattern::Case;

use crate::git::open::{Unreadable, chain};
use crate::vantage::paths::escape;

/// The attributes that decide about conversion (`convert_attrs`).
const ASKED: [&str; 6] = ["filter", "working-tree-encoding", "text", "crlf", "eol", "ident"];

/// The patterns of all attribute files that matter below one directory, ready to be asked.
#[derive(Debug)]
pub struct Attributes {
    search: Search,
    names: MetadataCollection,
    /// No file names any attribute.
    none: bool,
}

impl Attributes {
    /// `files` are the `.gitattributes` from the root down, each with the directory it is in (empty, or ending in a
    /// slash); `info` is `info/attributes`, which outranks them all (git's `attr.c` puts it on top of the stack).
    pub fn new<'a>(
        files: impl IntoIterator<Item = (&'a BStr, &'a [u8])>,
        info: Option<&[u8]>,
    ) -> Result<Self, Unreadable> {
        let wrong = |e: std::io::Error| Unreadable::new(format_args!("attributes: {}", chain(&e)));
        let mut names = MetadataCollection::default();
        let no_files: [&Path; 0] = [];
        let mut search = Search::new_globals(no_files, &mut Vec::new(), &mut names).map_err(wrong)?;
        let mut none = true;
        for (dir, bytes) in files {
            none = false;
            let source = gix::path::from_bstr(dir)
                .map_err(|e| Unreadable::new(format_args!("attributes: {}", chain(&e))))?
                .join(".gitattributes");
            // Macros count at the top only (gitattributes(5)).
            search
                .add_patterns_buffer(bytes, source, Some(Path::new("")), &mut names, dir.is_empty())
                .map_err(wrong)?;
        }
        if let Some(bytes) = info {
            none = false;
            search
                .add_patterns_buffer(bytes, "info/attributes".into(), None, &mut names, true)
                .map_err(wrong)?;
        }
        Ok(Self { search, names, none })
    }

    fn fill(&self, path: &BStr, outcome: &mut Outcome) {
        self.search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), outcome);
    }
}

/// How a file becomes what git stores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// Its bytes are stored.
    None,
    BuiltIn(BuiltIn),
    /// The filter driver of this name would be run; whether anybody configured it is not asked, since the user's own
    /// configuration is not read.
    Driver(BString),
    /// It is in this encoding, whose tables only git's `iconv` has.
    Foreign(BString),
}

impl Conversion {
    /// What git would do to the stored bytes before it writes the file, if that leaves others than a plain write; line
    /// ends and `$Id$` come out as unchanged either way.
    pub fn on_checkout(&self) -> Option<String> {
        match self {
            Self::Driver(name) => Some(format!("filter={}", escape(name))),
            Self::Foreign(name) => Some(format!("working-tree-encoding={}", escape(name))),
            Self::BuiltIn(BuiltIn { encoding: Some(_), .. }) => Some("working-tree-encoding=UTF-16".into()),
            Self::BuiltIn(_) | Self::None => None,
        }
    }
}

/// Conversions that are computed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    encoding: Option<Utf16>,
    line_ends: LineEnds,
    ident: bool,
}

/// The encodings with which files in the work tree are common enough; the name says what a byte order mark means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Utf16 {
    /// `UTF-16`: there must be a mark, which names the order.
    Marked,
    /// There must be none.
    LittleEndian,
    BigEndian,
    /// `UTF-16LE-BOM`: read as `UTF-16`, and nothing is required.
    WrittenMarked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnds {
    Kept,
    /// CRLF becomes LF.
    Text,
    /// As `Text`, if the content looks like text and the index has no CRLF.
    Auto,
}

/// Which conversions the attributes of one directory's files ask for.
pub struct Converter {
    attributes: Arc<Attributes>,
    asked: Outcome,
    /// What `core.autocrlf` makes of a file about which no attribute speaks.
    unspoken: LineEnds,
}

/// `core.autocrlf` of a repository's config.
#[derive(Clone, Copy, Debug)]
pub struct Settings(LineEnds);

impl Settings {
    /// `core.eol` and `core.safecrlf` are not asked: they matter when files are written.
    pub fn of(repo: &gix::Repository) -> Result<Self, Unreadable> {
        let options = gix::filter::Pipeline::options(repo)
            .map_err(|e| Unreadable::new(format_args!("config: {}", chain(&e))))?;
        Ok(Self(match options.eol_config.auto_crlf {
            AutoCrlf::Disabled => LineEnds::Kept,
            AutoCrlf::Input | AutoCrlf::Enabled => LineEnds::Auto,
        }))
    }
}

impl Converter {
    pub fn new(settings: Settings, attributes: Arc<Attributes>) -> Self {
        let mut asked = Outcome::default();
        asked.initialize_with_selection(&attributes.names, ASKED);
        Self { attributes, asked, unspoken: settings.0 }
    }

    /// What would be done to the file at `path`, relative to its repository.
    pub fn conversion(&mut self, path: &BStr) -> Conversion {
        let none = BuiltIn { encoding: None, line_ends: LineEnds::Kept, ident: false };
        let mut built_in = BuiltIn { line_ends: self.unspoken, ..none };
        if !self.attributes.none {
            self.asked.reset();
            self.attributes.fill(path, &mut self.asked);
            let mut states = [StateRef::Unspecified; ASKED.len()];
            for (state, found) in states.iter_mut().zip(self.asked.iter_selected()) {
                *state = found.assignment.state;
            }
            let [filter, encoding, text, crlf, eol, ident] = states;
            // A filter that is merely set or unset names no driver (`git_path_check_convert`).
            if let StateRef::Value(driver) = filter {
                return Conversion::Driver(driver.as_bstr().to_owned());
            }
            built_in.encoding = match encoding_of(encoding) {
                Ok(encoding) => encoding,
                Err(foreign) => return Conversion::Foreign(foreign),
            };
            built_in.line_ends = line_ends_of(text, crlf, eol).unwrap_or(self.unspoken);
            built_in.ident = ident.is_set();
        }
        if built_in == none { Conversion::None } else { Conversion::BuiltIn(built_in) }
    }
}

/// `git_path_check_crlf` and `git_path_check_eol`, as far as they matter on the way into git; `None` if nothing is said.
fn line_ends_of(text: StateRef<'_>, crlf: StateRef<'_>, eol: StateRef<'_>) -> Option<LineEnds> {
    let said = |state: StateRef<'_>| match state {
        StateRef::Set => Some(LineEnds::Text),
        StateRef::Unset => Some(LineEnds::Kept),
        StateRef::Value(v) if v.as_bstr() == "input" => Some(LineEnds::Text),
        StateRef::Value(v) if v.as_bstr() == "auto" => Some(LineEnds::Auto),
        StateRef::Value(_) | StateRef::Unspecified => None,
    };
    let named = matches!(eol, StateRef::Value(v) if v.as_bstr() == "lf" || v.as_bstr() == "crlf");
    match said(text).or_else(|| said(crlf)) {
        // To name line ends is to say that it is text.
        None if named => Some(LineEnds::Text),
        said => said,
    }
}

/// `git_path_check_encoding`; an error names an encoding that is not computed here, or that git refuses.
fn encoding_of(state: StateRef<'_>) -> Result<Option<Utf16>, BString> {
    let name = match state {
        StateRef::Unspecified => return Ok(None),
        StateRef::Set | StateRef::Unset => return Err("true or false".into()),
        StateRef::Value(name) => name.as_bstr(),
    };
    // `UTF16` is `UTF-16`, in any case (`same_utf_encoding`).
    let upper = name.to_ascii_uppercase();
    let Some(rest) = upper.strip_prefix(b"UTF") else {
        return if name.is_empty() { Ok(None) } else { Err(name.to_owned()) };
    };
    match rest.strip_prefix(b"-").unwrap_or(rest) {
        b"8" => Ok(None),
        b"16" => Ok(Some(Utf16::Marked)),
        b"16LE" => Ok(Some(Utf16::LittleEndian)),
        b"16BE" => Ok(Some(Utf16::BigEndian)),
        b"16LE-BOM" => Ok(Some(Utf16::WrittenMarked)),
        _ => Err(name.to_owned()),
    }
}

impl Utf16 {
    /// The text as UTF-8; `None` where git reports an error and stores the bytes as they are (`encode_to_git`).
    fn decode(self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mark = bytes.get(..2).filter(|mark| [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|m| m == mark));
        let big_endian = match (self, mark) {
            (Utf16::Marked, None) | (Utf16::LittleEndian | Utf16::BigEndian, Some(_)) => return None,
            (Utf16::BigEndian, None) => true,
            (_, Some(mark)) => mark == [0xfe, 0xff],
            (_, None) => false,
        };
        let units = &bytes[mark.map_or(0, <[u8]>::len)..];
        let pairs = units.chunks_exact(2);
        if !pairs.remainder().is_empty() {
            return None;
        }
        let units = pairs.map(|pair| match big_endian {
            true => u16::from_be_bytes([pair[0], pair[1]]),
            false => u16::from_le_bytes([pair[0], pair[1]]),
        });
        let text: String = char::decode_utf16(units).collect::<Result<_, _>>().ok()?;
        Some(text.into_bytes())
    }
}

impl BuiltIn {
    /// What git stores of `bytes`. `stored` gives what the index has, which decides whether automatic conversion
    /// applies (`has_crlf_in_index`).
    pub fn to_git(
        self,
        bytes: Vec<u8>,
        stored: &mut dyn FnMut() -> Result<Vec<u8>, Unreadable>,
    ) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = match self.encoding {
            Some(encoding) if !bytes.is_empty() => encoding.decode(&bytes).unwrap_or(bytes),
            _ => bytes,
        };
        let digest = match self.line_ends {
            LineEnds::Kept => AttributesDigest::Binary,
            LineEnds::Text => AttributesDigest::TextInput,
            LineEnds::Auto => AttributesDigest::TextAutoInput,
        };
        let mut missing = None;
        let mut blob = |buffer: &mut Vec<u8>| match stored() {
            Ok(blob) => {
                *buffer = blob;
                Ok(Some(()))
            }
            Err(why) => {
                missing = Some(why);
                Ok(None)
            }
        };
        let mut buffer = Vec::new();
        if eol::convert_to_git(&bytes, digest, &mut buffer, &mut blob, Default::default())
            .map_err(|e| Unreadable::new(chain(&e)))?
        {
            std::mem::swap(&mut bytes, &mut buffer);
        }
        if let Some(why) = missing {
            return Err(why);
        }
        if self.ident && ident::undo(&bytes, &mut buffer).map_err(Unreadable::new)? {
            std::mem::swap(&mut bytes, &mut buffer);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bstr::ByteSlice;

    fn conversion(lines: &str, path: &str) -> Conversion {
        let attributes = Attributes::new([(BStr::new(""), lines.as_bytes())], None).unwrap();
        Converter::new(Settings(LineEnds::Kept), Arc::new(attributes)).conversion(path.into())
    }

    fn stored(lines: &str, bytes: &[u8], in_index: &[u8]) -> Vec<u8> {
        match conversion(lines, "f") {
            Conversion::None => bytes.to_vec(),
            Conversion::BuiltIn(built_in) => {
                built_in.to_git(bytes.to_vec(), &mut || Ok(in_index.to_vec())).unwrap()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn line_ends_follow_the_attributes() {
        for (lines, crlf_goes) in [
            ("", false),
            ("f text", true),
            ("f -text eol=crlf", false),
            ("f eol=crlf", true),
            ("f eol=odd", false),
            ("f crlf=input", true),
            ("f text=auto", true),
            ("f binary", false),
            ("[attr]mine text\nf mine", true),
            ("f text\nf !text", false),
        ] {
            let expected: &[u8] = if crlf_goes { b"a\n" } else { b"a\r\n" };
            assert_eq!(stored(lines, b"a\r\n", b"a\n").as_bstr(), expected.as_bstr(), "{lines}");
        }
        assert_eq!(stored("f text=auto", b"a\r\n", b"b\r\n"), b"a\r\n", "the index has CRLF already");
        assert_eq!(stored("f text=auto", b"a\0\r\n", b""), b"a\0\r\n", "it is no text");
        assert_eq!(stored("f ident", b"$Id: 123 $\r\n", b""), b"$Id$\r\n");
    }

    #[test]
    fn what_is_not_well_formed_is_stored_as_it_is() {
        let little: &[u8] = b"\xff\xfea\0\n\0";
        for (name, bytes, text) in [
            ("UTF-16", little, Some("a\n")),
            ("utf16", b"\xfe\xff\0a\0\n", Some("a\n")),
            ("UTF-16", b"a\0\n\0", None),
            ("UTF-16LE", b"a\0\n\0", Some("a\n")),
            ("UTF-16BE", b"\0a\0\n", Some("a\n")),
            ("UTF-16LE", little, None),
            ("UTF-16LE", b"a\0\n", None),
            ("UTF-16LE", b"\0\xd8\n\0", None),
            ("UTF-8", little, None),
        ] {
            let expected = text.map_or(bytes, str::as_bytes);
            let lines = format!("f working-tree-encoding={name}");
            assert_eq!(stored(&lines, bytes, b"").as_bstr(), expected.as_bstr(), "{name}");
        }
    }

    #[test]
    fn what_is_not_computed_here_is_named() {
        assert_eq!(conversion("f filter=lfs text", "f"), Conversion::Driver("lfs".into()));
        assert_eq!(conversion("f filter", "f"), Conversion::None);
        let foreign = conversion("f working-tree-encoding=SHIFT-JIS", "f");
        assert_eq!(foreign, Conversion::Foreign("SHIFT-JIS".into()));
        assert!(matches!(conversion("f working-tree-encoding", "f"), Conversion::Foreign(_)));
    }

    #[test]
    fn info_attributes_outrank_all() {
        let files = [(BStr::new(""), &b"f text"[..]), (BStr::new("d/"), &b"f text"[..])];
        let attributes = Arc::new(Attributes::new(files, Some(b"f -text")).unwrap());
        for path in ["f", "d/f"] {
            let mut converter = Converter::new(Settings(LineEnds::Kept), Arc::clone(&attributes));
            assert_eq!(converter.conversion(path.into()), Conversion::None, "{path}");
        }
    }
}

//! What git would store of a file: attributes, line ends, encodings and `$Id$`, and never a driver.

use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString};
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::filter::plumbing::eol::AutoCrlf;
use gix::filter::plumbing::pipeline::{CrlfRoundTripCheck, Options};
use gix::glob::pattern::Case;

use crate::git::open::{Unreadable, chain};

/// The attributes that decide about conversion, as gix-filter asks for them; the first is the one that we ask alone.
const ASKED: [&str; 6] = ["filter", "text", "crlf", "eol", "ident", "working-tree-encoding"];

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
    /// Line ends, encoding or `$Id$` are converted.
    BuiltIn,
    /// The filter driver of this name would be run; whether anybody configured it is not asked, since the user's own
    /// configuration is not read.
    Driver(BString),
}

/// The conversion settings of a repository's config.
#[derive(Clone)]
pub struct Settings {
    options: Options,
    hash: gix::hash::Kind,
}

impl Settings {
    /// `core.autocrlf` and `core.eol` are honoured, drivers are dropped. Checks that only warn about a later checkout
    /// (`core.safecrlf`) are off, as in git when it computes a status.
    pub fn of(repo: &gix::Repository) -> Result<Self, Unreadable> {
        let mut options = gix::filter::Pipeline::options(repo)
            .map_err(|e| Unreadable::new(format_args!("config: {}", chain(&e))))?;
        options.drivers.clear();
        options.crlf_roundtrip_check = CrlfRoundTripCheck::Skip;
        options.encodings_with_roundtrip_check.clear();
        Ok(Self { options, hash: repo.object_hash() })
    }
}

/// Converts the files of one directory: what gix-filter remembers holds for one set of attributes only.
pub struct Converter {
    attributes: Arc<Attributes>,
    pipeline: gix::filter::plumbing::Pipeline,
    asked: Outcome,
    always: bool,
}

impl Converter {
    pub fn new(settings: &Settings, attributes: Arc<Attributes>) -> Self {
        let options = settings.options.clone();
        let mut asked = Outcome::default();
        asked.initialize_with_selection(&attributes.names, ASKED);
        Self {
            always: options.eol_config.auto_crlf != AutoCrlf::Disabled,
            pipeline: gix::filter::plumbing::Pipeline::new(Default::default(), settings.hash, options),
            asked,
            attributes,
        }
    }

    /// What would be done to the file at `path`, relative to its repository.
    pub fn conversion(&mut self, path: &BStr) -> Conversion {
        if self.attributes.none {
            return if self.always { Conversion::BuiltIn } else { Conversion::None };
        }
        self.asked.reset();
        self.attributes.fill(path, &mut self.asked);
        let mut named = self.always;
        for (asked, found) in ASKED.iter().zip(self.asked.iter_selected()) {
            match found.assignment.state {
                StateRef::Value(driver) if *asked == "filter" => {
                    return Conversion::Driver(driver.as_bstr().to_owned());
                }
                StateRef::Unspecified => {}
                // A filter that is merely set or unset names no driver (git's `git_path_check_drv`).
                _ => named |= *asked != "filter",
            }
        }
        if named { Conversion::BuiltIn } else { Conversion::None }
    }

    /// What git stores of `bytes`, the file at `path`. `stored` fills in what the index has, which decides whether
    /// automatic conversion applies (git's `has_crlf_in_index`). An error means that it can't be known, as for an
    /// encoding that only `iconv` has.
    pub fn to_git(
        &mut self,
        path: &BStr,
        bytes: &[u8],
        stored: &mut dyn FnMut(&mut Vec<u8>) -> gix::Result<Option<()>>,
    ) -> Result<Vec<u8>, Unreadable> {
        let wrong = |e: &dyn std::error::Error| Unreadable::new(chain(e));
        let file_path = gix::path::from_bstr(path).map_err(|e| wrong(&e))?;
        let attributes = &self.attributes;
        let mut fill = |_: &BStr, outcome: &mut Outcome| {
            outcome.initialize(&attributes.names);
            attributes.fill(path, outcome);
        };
        let converted =
            self.pipeline.convert_to_git(bytes, &file_path, &mut fill, stored).map_err(|e| wrong(&e))?;
        Ok(converted.as_bytes().unwrap_or(bytes).to_vec())
    }
}

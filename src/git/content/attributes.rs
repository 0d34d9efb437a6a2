//! Whether a file is merged as text, by the trunk's own attributes.

use std::path::Path;

use bstr::{BStr, ByteSlice};
use gix::ObjectId;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::glob::pattern::Case;

use crate::git::objects::Objects;
use crate::git::open::{Unreadable, chain};

/// `-merge` (and so `binary`) makes a conflict of any two changes; another driver than `text` may do anything.
///
/// # Errors
/// An object is missing, broken or forged, or the attributes can't be read.
pub(super) fn merges_as_text(objects: Objects<'_>, trunk: ObjectId, path: &BStr) -> Result<bool, Unreadable> {
    let wrong = |e: &dyn std::error::Error| Unreadable(format!("attributes of tree {trunk}: {}", chain(e)));
    let mut names = MetadataCollection::default();
    let no_files: [&Path; 0] = [];
    let mut search = Search::new_globals(no_files, &mut Vec::new(), &mut names).map_err(|e| wrong(&e))?;
    let mut tree = trunk;
    let mut dir_len = 0;
    loop {
        let entries = objects.tree(tree)?;
        if let Some((mode, id)) = entries.get(b".gitattributes".as_bstr())
            && mode.is_blob()
        {
            let source = gix::path::from_bstr(path[..dir_len].as_bstr()).map_err(|e| wrong(&e))?;
            let source = source.join(".gitattributes");
            let bytes = objects.blob(*id)?;
            // Macros count at the top only (gitattributes(5)).
            search
                .add_patterns_buffer(&bytes, source, Some(Path::new("")), &mut names, dir_len == 0)
                .map_err(|e| wrong(&e))?;
        }
        let Some(slash) = path[dir_len..].find_byte(b'/') else { break };
        let Some((_, below)) = entries.get(&path[dir_len..dir_len + slash]) else { break };
        tree = *below;
        dir_len += slash + 1;
    }
    let mut asked = Outcome::default();
    asked.initialize_with_selection(&names, ["merge"]);
    search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), &mut asked);
    Ok(asked.iter_selected().all(|found| match found.assignment.state {
        StateRef::Set | StateRef::Unspecified => true,
        StateRef::Value(driver) => driver.as_bstr() == "text",
        StateRef::Unset => false,
    }))
}

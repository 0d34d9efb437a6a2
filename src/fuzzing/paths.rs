//! Paths that files of a repository record.

use bstr::ByteSlice;

use crate::fuzzing::assert_tame;
use crate::git::registration::{Pointer, parse_gitdir};
use crate::sweep::trash::{self, TrashName};
use crate::vantage::paths::{LocalPath, RecordedPath};
use crate::vantage::translate::{Place, infer};

/// `gitdir` of an administrative entry.
pub fn gitdir(bytes: &[u8]) {
    let Ok(path) = parse_gitdir(bytes) else {
        let blank = bytes.iter().all(|b| b" \t\r\n".contains(b));
        assert!(blank || bytes.contains(&0), "a path was refused");
        return;
    };
    let written = [path.as_bstr().trim_end_with(|c| c == '/'), b"/.git\r\n"].concat();
    let again = parse_gitdir(&written).expect("what git writes for it");
    assert_eq!(again.normalized(), path.normalized(), "it is read back as another path");
    assert_tame(&path.to_string());
    stays_within(&path);
}

/// The `.git` file of a checkout.
pub fn dot_git(bytes: &[u8]) {
    let Some(pointer) = Pointer::parse(bytes) else { return };
    let written = [b"gitdir: ", pointer.target.as_bstr().as_bytes(), b"\n"].concat();
    assert_eq!(Pointer::parse(&written).as_ref(), Some(&pointer));
    assert!(!pointer.target.as_bstr().contains(&0));
    stays_within(&pointer.target);
    let Some((common, name)) = &pointer.entry else { return };
    assert!(!name.as_bstr().contains(&b'/') && !matches!(name.as_bstr().as_bytes(), b"" | b"." | b".."));
    let spelled = [common.slashed().as_bstr().as_bytes(), b"/worktrees/", name.as_bstr()].concat();
    let target = if pointer.target.is_windows() { pointer.target.slashed() } else { pointer.target.clone() };
    assert_eq!(spelled.as_bstr(), target.as_bstr());
}

/// However `path` is read, it leads neither above the root nor out of where it is read from.
fn stays_within(path: &RecordedPath) {
    let plain = |path: &RecordedPath| path.components().all(|c| c != "." && c != "..");
    if let Some(normal) = path.normalized() {
        assert_eq!(normal.normalized().as_ref(), Some(&normal));
        assert!(!path.is_absolute() || plain(&normal), "{normal:?}");
    }
    let base = LocalPath::new("/src/app/.git/worktrees/x").expect("absolute");
    if let Some(resolved) = path.resolved_from(&RecordedPath::new(base.as_bstr())) {
        assert!(resolved.is_absolute() && plain(&resolved), "{resolved:?}");
    }
    if let Some(joined) = base.join(path.as_bstr()) {
        assert!(joined.is_beneath_or_at(&base), "{joined:?} is outside of {base:?}");
        assert!(joined.below(&base).is_some());
    }
}

/// A translation that two lines imply, the first for the clone, the second for a path in its namespace.
pub fn inferred(bytes: &[u8]) {
    let (called, path) = bytes.split_once_str("\n").unwrap_or((bytes, b"/workspaces/app/x"));
    let (Some(called), Some(path)) = (RecordedPath::parse(called), RecordedPath::parse(path)) else { return };
    let at = |path: &str| LocalPath::new(path).expect("absolute");
    for (common, root) in [("/src/work/app/.git", "/src"), ("/src/app.git", "/src/app.git"), ("/a/b/c", "/")]
    {
        let (common, root) = (at(common), at(root));
        let Some(rule) = infer(&called, &common, &root) else { continue };
        assert_eq!(rule.place(&called), Place::Here(common), "it says of the clone that it lies elsewhere");
        if let Place::Here(local) = rule.place(&path) {
            assert!(local.is_beneath_or_at(&root), "{local:?} is outside of {root:?}");
            let name = rule.name_of(&local).expect("it came from a name");
            assert_eq!(rule.place(&name), Place::Here(local));
        }
    }
}

/// The name of a directory that looks like one of ours.
pub fn trash(bytes: &[u8]) {
    let Some(TrashName { record, entry }) = trash::parse(bytes) else { return };
    let Some(entry) = entry else { return };
    let name = trash::name(&record, entry.as_bstr());
    assert!(name.len() <= 255 && !name.contains(&b'/') && name.is_ascii());
    assert_tame(name.to_str().expect("ASCII"));
    let again = trash::parse(&name).expect("a name of our own");
    assert_eq!(again.record, record);
    assert!(again.entry.is_none_or(|again| again == entry));
}

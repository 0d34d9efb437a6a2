//! A commit's tree as the list of its files, and the index that lists exactly these.

use bstr::{BStr, BString, ByteSlice};
use gix::ObjectId;
use gix::index::entry::{Flags, Mode, Stat};
use gix::objs::tree::{EntryKind, EntryMode};
use gix::validate::path::component;

use crate::git::history::hashes_to;
use crate::git::objects::Objects;
use crate::git::open::{Unreadable, chain};
use crate::vantage::paths::escape;

/// Deeper trees than this are not followed: no path that git can check out has as many components.
const DEEPEST: usize = 2048;

/// One file, symlink or submodule of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub path: BString,
    pub kind: EntryKind,
    pub id: ObjectId,
}

impl File {
    /// The directory that it is in (empty at the top), and its name there.
    pub fn place(&self) -> (&BStr, &BStr) {
        match self.path.rsplit_once_str("/") {
            Some((dir, name)) => (dir.as_bstr(), name.as_bstr()),
            None => (BStr::new(""), self.path.as_bstr()),
        }
    }
}

/// The tree of `commit`, whose bytes hash to its name.
///
/// # Errors
/// The commit is missing, broken or forged.
pub fn of_commit(repo: &gix::Repository, commit: ObjectId) -> Result<ObjectId, Unreadable> {
    let wrong = |why: &dyn std::fmt::Display| Unreadable(format!("commit {commit}: {why}"));
    let found = repo.find_commit(commit).map_err(|e| wrong(&chain(&e)))?;
    if !hashes_to(&found.data, gix::objs::Kind::Commit, commit) {
        return Err(wrong(&"its content has another name"));
    }
    Ok(found.tree_id().map_err(|e| wrong(&chain(&e)))?.detach())
}

/// All files of the tree `tree` in the order of their paths. Each name was seen to be one that may be written: no `.git`
/// in any of its spellings, no `..`, no slash.
///
/// # Errors
/// A tree is missing, broken or forged, or has such a name.
pub fn files(objects: Objects<'_>, tree: ObjectId) -> Result<Vec<File>, Unreadable> {
    let mut files = Vec::new();
    let mut pending = vec![(tree, BString::default(), 0)];
    while let Some((id, prefix, depth)) = pending.pop() {
        if depth > DEEPEST {
            return Err(Unreadable(format!("tree {tree}: it is deeper than {DEEPEST} levels")));
        }
        for (name, (mode, id)) in objects.tree(id)? {
            let path = BString::from([prefix.as_slice(), &name].concat());
            may_be_written(name.as_bstr(), mode)
                .map_err(|why| Unreadable(format!("tree {tree}: '{}': {why}", escape(&path))))?;
            match mode.kind() {
                EntryKind::Tree => pending.push((id, [path.as_slice(), b"/"].concat().into(), depth + 1)),
                kind => files.push(File { path, kind, id }),
            }
        }
    }
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    match files.windows(2).find(|two| two[0].path == two[1].path || is_above(&two[0], &two[1])) {
        Some(two) => Err(Unreadable(format!("tree {tree}: '{}' is there twice", escape(&two[0].path)))),
        None => Ok(files),
    }
}

/// A file of the name of a directory: git writes no such tree.
fn is_above(a: &File, b: &File) -> bool {
    b.path.strip_prefix(a.path.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
}

fn may_be_written(name: &BStr, mode: EntryMode) -> Result<(), component::Error> {
    let options = component::Options { protect_windows: false, protect_hfs: true, protect_ntfs: true };
    let mode = mode.is_link().then_some(component::Mode::Symlink);
    gix::validate::path::component(name, mode, options).map(|_| ())
}

/// The bytes of an index that lists exactly `files`. It knows no stat data, so that whoever reads it next compares
/// contents.
///
/// # Errors
/// It can't be encoded.
pub fn index_of(files: &[File], hash: gix::hash::Kind) -> Result<Vec<u8>, Unreadable> {
    let mut state = gix::index::State::new(hash);
    for file in files {
        let mode = Mode::from(file.kind);
        state.dangerously_push_entry(Stat::default(), file.id, Flags::empty(), mode, file.path.as_bstr());
    }
    let mut bytes = Vec::new();
    gix::index::File::from_state(state, "index")
        .write_to(&mut bytes, gix::index::write::Options::default())
        .map_err(|e| Unreadable(format!("index: {}", chain(&e))))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::Dir;
    use crate::git::open::open_clone;
    use crate::sweep::testing::{Clone, local};

    fn objects(clone: &Clone) -> gix::Repository {
        open_clone(&Dir::open(&local(&clone.path.join(".git"))).unwrap()).unwrap()
    }

    #[test]
    fn files_come_in_the_order_of_the_index_and_git_reads_it() {
        let clone = Clone::new();
        std::fs::create_dir_all(clone.path.join("a/b")).unwrap();
        for name in ["a/b/x", "a/c", "a.x", "a-x"] {
            std::fs::write(clone.path.join(name), name).unwrap();
        }
        std::os::unix::fs::symlink("a/c", clone.path.join("link")).unwrap();
        clone.git(&["add", "-A"]);
        clone.git(&["update-index", "--chmod=+x", "a/c"]);
        clone.git(&["commit", "-qm", "more"]);
        let repo = objects(&clone);
        let objects = Objects { repo: &repo, verified: true };
        let files = files(objects, clone.id_of("HEAD^{tree}")).unwrap();
        let index = clone.path.join(".git/index");
        let listed = clone.git(&["ls-files", "--stage"]);
        std::fs::write(&index, index_of(&files, repo.object_hash()).unwrap()).unwrap();
        assert_eq!(clone.git(&["ls-files", "--stage"]), listed);
        assert_eq!(clone.git(&["fsck", "--no-progress"]), "");
    }

    #[test]
    fn a_name_that_git_would_not_write_is_refused() {
        let clone = Clone::new();
        let blob = clone.git(&["rev-parse", "HEAD:file"]);
        let tree = |name: &str| {
            let inner = format!("100644 blob {blob}\t{name}\n");
            let made = clone.git_with_input(&["mktree"], &inner);
            clone.git_with_input(&["mktree"], &format!("040000 tree {made}\tdir\n"))
        };
        let repo = objects(&clone);
        let objects = Objects { repo: &repo, verified: true };
        for name in [".git", ".GIT", "git~1", ".git ", ".."] {
            let id = ObjectId::from_hex(tree(name).as_bytes()).unwrap();
            let error = files(objects, id).unwrap_err().to_string();
            assert!(error.contains("dir/"), "{name}: {error}");
        }
        let fine = ObjectId::from_hex(tree(r"a\b").as_bytes()).unwrap();
        assert_eq!(files(objects, fine).unwrap()[0].path, r"dir/a\b");
    }
}

//! HEAD of a worktree, operations that have begun in it, and refs that only it has.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::{BString, ByteSlice};
use gix::ObjectId;

use crate::beneath::{Dir, Kind, Refused};
use crate::git::history::Reach;
use crate::git::open::Unreadable;
use crate::git::reflog;
use crate::git::refs::{SharedRefs, Target};
use crate::git::registration::Head;
use crate::judge::facts::{HeadFacts, Operation};

/// Files and directories of an entry that git makes when an operation begins and removes when it ends.
const OPERATIONS: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    // Written before the log and removed after it.
    ("BISECT_START", "bisect"),
    // Work that was put aside for a merge and has not come back.
    ("MERGE_AUTOSTASH", "autostash"),
    // The conflicts of `git notes merge` are resolved in files that lie in the entry itself.
    ("NOTES_MERGE_WORKTREE", "notes merge"),
    ("NOTES_MERGE_PARTIAL", "notes merge"),
    ("sequencer", "sequencer"),
    ("index.lock", "index.lock (a git process at work, or the remains of one)"),
    ("HEAD.lock", "HEAD.lock (a git process at work, or the remains of one)"),
];

/// How deep per-worktree refs are looked for.
const REF_DEPTH: usize = 32;

/// Reads what `entry` says of its HEAD, with `head` as the registration read it.
///
/// # Errors
/// A ref or the reflog can't be read.
pub fn head_facts(
    repo: &gix::Repository,
    entry: &Dir,
    head: &Head,
    refs: &SharedRefs,
    reach: &mut Reach<'_>,
) -> Result<HeadFacts, Unreadable> {
    let mut facts = HeadFacts { operations: operations(entry)?, ..HeadFacts::default() };
    match head {
        Head::Branch(name) => {
            facts.branch = Some(name.clone());
            facts.tip = refs.chase(name.as_bstr())?;
            facts.symbolic_branch = matches!(refs.get(name.as_bstr()), Some(Target::Symbolic(_)));
            if facts.tip.is_none() {
                facts.last_known = reflog::read(entry, "logs/HEAD")?.last().map(|line| line.new);
            }
        }
        Head::Detached(id) => {
            facts.tip = Some(*id);
            if !reach.contains(*id) {
                facts.stray.push(("HEAD".into(), *id));
            }
        }
    }
    for (name, id) in own_refs(entry, repo.object_hash())? {
        if !reach.contains(id) {
            facts.stray.push((name, id));
        }
    }
    Ok(facts)
}

/// The operations that are under way in the git directory `entry`.
///
/// # Errors
/// Whether one is can't be looked at.
pub fn operations(entry: &Dir) -> Result<Vec<Operation>, Unreadable> {
    let mut found: Vec<Operation> = Vec::new();
    for (path, kind) in OPERATIONS {
        match entry.meta(path) {
            Ok(meta) if *kind == "rebase" && found.iter().any(|o| o.kind == "am") => {
                found.retain(|o| o.kind != "am");
                found.push(Operation { kind: "am", since: meta.mtime });
            }
            Ok(_) if found.iter().any(|o| o.kind == *kind) => {}
            Ok(meta) => found.push(Operation { kind, since: meta.mtime }),
            // A file in the place of a directory on the way: the operation's file is not there.
            Err(Refused::Absent) => {}
            Err(Refused::NotPlain) if path.contains('/') => {}
            Err(refused) => return Err(Unreadable(format!("{}/{path}: {refused}", entry.path()))),
        }
    }
    Ok(found)
}

/// Refs below the entry's own `refs`: `refs/worktree`, `refs/bisect`, `refs/rewritten`, always loose files.
fn own_refs(entry: &Dir, hash: gix::hash::Kind) -> Result<Vec<(BString, ObjectId)>, Unreadable> {
    let mut found = Vec::new();
    match entry.dir("refs") {
        Ok(dir) => walk_refs(&dir, "refs".into(), hash, REF_DEPTH, &mut found)?,
        Err(Refused::Absent) => {}
        Err(refused) => return Err(Unreadable(format!("{}/refs: {refused}", entry.path()))),
    }
    Ok(found)
}

fn walk_refs(
    dir: &Dir,
    prefix: BString,
    hash: gix::hash::Kind,
    depth: usize,
    found: &mut Vec<(BString, ObjectId)>,
) -> Result<(), Unreadable> {
    let unreadable = |what: &dyn std::fmt::Display| Unreadable(format!("{}: {what}", dir.path()));
    if depth == 0 {
        return Err(unreadable(&"refs are nested too deep"));
    }
    for name in dir.names().map_err(|e| unreadable(&e))? {
        let path = Path::new(OsStr::from_bytes(&name));
        let mut full = prefix.clone();
        full.push(b'/');
        full.extend_from_slice(&name);
        match dir.meta(path).map_err(|e| unreadable(&e))?.kind {
            Kind::Directory => {
                let below = dir.dir(path).map_err(|e| unreadable(&e))?;
                walk_refs(&below, full, hash, depth - 1, found)?;
            }
            Kind::File => {
                let bytes = dir.read(path, 4 << 10).map_err(|e| unreadable(&e))?;
                let text = bytes.trim_end_with(|c| c.is_ascii_whitespace());
                // A symbolic one holds nothing by itself.
                if !text.starts_with(b"ref:") {
                    let id = ObjectId::from_hex(text).ok().filter(|id| id.kind() == hash);
                    found.push((full, id.ok_or_else(|| unreadable(&"a ref that is no object id"))?));
                }
            }
            other => return Err(unreadable(&format!("a ref that is {}", other.described()))),
        }
    }
    Ok(())
}

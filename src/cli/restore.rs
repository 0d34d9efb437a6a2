//! `treesweep restore`: brings a worktree back from its retirement record.

use std::path::Path;

use bstr::{BStr, ByteSlice};

use crate::beneath;
use crate::cli::args::{Invocation, Restore};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run::view;
use crate::git::refs::short;
use crate::lifecycle::links::{Old, Spot, like};
use crate::lifecycle::locked::{NotEntered, in_clone};
use crate::lifecycle::restore::{NotRestored, Restored, Wanted, restore};
use crate::report::restore::{RestoredRow, document, render};
use crate::report::{age, count};
use crate::session::{Session, SessionError};
use crate::state_dir::{StateDir, StateError};
use crate::stop::Stop;
use crate::survey::terrain::Terrain;
use crate::sweep::record::Record;
use crate::sweep::records;
use crate::sweep::resume::pending;
use crate::sweep::trash;
use crate::vantage::paths::{LocalPath, RecordedPath, escape};

/// A record, and the number of its clone.
type Found = (usize, Record);

/// Runs `restore`.
pub fn run(invocation: &Invocation, request: &Restore, output: &Output) -> Result<Exit, SessionError> {
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be restored safely here: {why}"), Exit::Unsupported));
    }
    let session = Session::begin(invocation, &[])?;
    let state = StateDir::open_existing(&StateDir::default_path()?)?;
    let (_, terrain) = session.see()?;
    let mut all = Vec::new();
    for (c, site) in terrain.field.clones.iter().enumerate().filter(|(_, site)| site.in_scope) {
        let Some(state) = &state else { continue };
        let Some(own) = state.existing_clone_state(site.common_id)? else { continue };
        let io = |source| StateError::Io { path: state.dir().path().clone(), source };
        all.extend(records::read_all(&own).map_err(io)?.0.into_iter().map(|record| (c, record)));
    }
    let (Some(state), Some((c, record))) = (&state, chosen(request.what.as_bstr(), &all, output)) else {
        let shown = escape(&request.what);
        return Ok(match matching(request.what.as_bstr(), &all).is_empty() {
            true => output.complain(
                &format!(
                    "no record of a removal has the name or the id '{shown}'; `treesweep log` lists them"
                ),
                Exit::Usage,
            ),
            false => Exit::Usage,
        });
    };
    let site = &terrain.field.clones[*c];
    if pending(state, site.common_id)?.0.iter().any(|open| open.record == record.id) {
        let why = "its removal is not finished; `treesweep prune` finishes it, or takes it back";
        return Ok(output.complain(why, Exit::Failed));
    }
    let wanted = match wanted(&terrain, *c, record, request.at.as_deref()) {
        Ok(wanted) => wanted,
        Err(why) => return Ok(output.complain(&why, Exit::Usage)),
    };
    let stop = Stop::never();
    if let Err(error) = stop.on_signals() {
        output.aside(&format!("warning: Ctrl-C will leave it to the next run: {error}\n"));
    }
    let holding = existing_above(&wanted.at);
    let done = in_clone(state, &stop, site, &[holding], |clone| restore(clone, &wanted, &stop));
    Ok(tell(invocation, request, &wanted, done, output))
}

/// The records that `what` names: by name, or by the beginning of their id.
fn matching<'a>(what: &BStr, all: &'a [Found]) -> Vec<&'a Found> {
    let is_it = |(_, record): &&Found| {
        record.name.0 == what || record.id.as_str().as_bytes().starts_with(what.as_bytes())
    };
    all.iter().filter(is_it).collect()
}

/// The one record that is meant; otherwise all of them are listed, the newest first.
fn chosen<'a>(what: &BStr, all: &'a [Found], output: &Output) -> Option<&'a Found> {
    let mut found = matching(what, all);
    if found.len() < 2 {
        return found.pop();
    }
    found.sort_by(|a, b| b.1.id.cmp(&a.1.id));
    let mut text = format!("'{}' may be one of {}:\n", escape(what), count(found.len() as u64, "record"));
    let now = jiff::Timestamp::now();
    for (_, record) in found {
        let branch = record.branch.as_ref().map(|b| format!(", branch {}", escape(short(b.0.as_bstr()))));
        let path = record.path.as_ref().map(|p| format!(", {}", escape(&p.0))).unwrap_or_default();
        text.push_str(&format!(
            "  {}  {}, {}{}{path}\n",
            record.id,
            escape(&record.name.0),
            age(record.ended(), now),
            branch.unwrap_or_default(),
        ));
    }
    output.aside(&format!("error: {text}"));
    None
}

/// Where and how it is to come back.
fn wanted<'a>(
    terrain: &Terrain,
    c: usize,
    record: &'a Record,
    at: Option<&Path>,
) -> Result<Wanted<'a>, String> {
    let name = record.name.entry_name().ok_or("the record names no registration")?;
    let old = record.path.as_ref().and_then(|p| p.local());
    let at = match at {
        Some(typed) => resolved(typed)?,
        None => old.clone().ok_or("it is not known where it was; name a place with --at PATH")?,
    };
    let root = terrain.roots.iter().find(|root| at.is_beneath_or_at(root) && at != **root);
    let root = root.cloned().ok_or_else(|| {
        let add = at.parent().unwrap_or_else(|| at.clone());
        format!("{at} lies outside of every root: name another place with --at PATH, or add the root {add}")
    })?;
    let commons = terrain.field.clones.iter().map(|site| site.common_path());
    if let Some(common) = commons.into_iter().find(|common| at.is_beneath_or_at(common)) {
        return Err(format!("{at} lies in the git directory {common}; name another place with --at PATH"));
    }
    if at.file_name().is_some_and(|n| n.starts_with(trash::PREFIX) || n.eq_ignore_ascii_case(b".git")) {
        return Err(format!("{at} is no name for a worktree; name another place with --at PATH"));
    }
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let rules: Vec<_> = sides[c].translators.iter().chain(ground.inferred(c)).cloned().collect();
    let path = |bytes: &Option<crate::sweep::bytes::Bytes>| {
        bytes.as_ref().map(|bytes| RecordedPath::new(bytes.0.clone()))
    };
    let old = Old { recorded: path(&record.recorded_path), pointer: path(&record.pointer), path: old };
    let spot = Spot { common: sides[c].site.common_path(), name: &name, checkout: &at };
    let links = like(&old, spot, &rules);
    Ok(Wanted { record, name, at, root, links })
}

/// A path that a person typed, with the links above it followed.
pub(super) fn resolved(typed: &Path) -> Result<LocalPath, String> {
    let shown = || escape(typed.as_os_str().as_encoded_bytes());
    let typed = LocalPath::new(typed).ok_or_else(|| format!("'{}' is no absolute path", shown()))?;
    let existing = existing_above(&typed);
    let real = existing.as_path().canonicalize().map_err(|e| format!("{existing}: {e}"))?;
    let rest = typed.below(&existing).unwrap_or_default();
    LocalPath::new(real)
        .and_then(|real| real.join(rest))
        .ok_or_else(|| format!("'{}' leads nowhere", shown()))
}

/// The nearest directory above `path` that is there.
fn existing_above(path: &LocalPath) -> LocalPath {
    let mut above = path.parent();
    while let Some(dir) = above {
        if beneath::lstat(&dir).is_ok() {
            return dir;
        }
        above = dir.parent();
    }
    path.clone()
}

fn tell(
    invocation: &Invocation,
    request: &Restore,
    wanted: &Wanted<'_>,
    done: Result<Result<Restored, NotRestored>, NotEntered>,
    output: &Output,
) -> Exit {
    let restored = match done {
        Ok(Ok(restored)) => restored,
        Ok(Err(error)) => return complain(invocation, request, wanted, &error, output),
        Err(error) => {
            let exit = if error.is_environment() { Exit::Unsupported } else { Exit::Failed };
            return output.complain(&error.to_string(), exit);
        }
    };
    let row = RestoredRow::of(wanted, &restored);
    let exit = if row.missing.is_empty() { Exit::Done } else { Exit::Failed };
    exit.and(match invocation.json {
        true => output.json(&document(row)),
        false => output.text(&render(&row, invocation.quiet, &view(invocation, output))),
    })
}

/// Why not, and what would help.
fn complain(
    invocation: &Invocation,
    request: &Restore,
    wanted: &Wanted<'_>,
    error: &NotRestored,
    output: &Output,
) -> Exit {
    let (help, exit) = match error {
        NotRestored::NotFree { .. } => ("name another place with --at PATH".to_owned(), Exit::Usage),
        NotRestored::NameTaken(_) => {
            let branch = wanted.record.branch.as_ref().map(|b| escape(short(b.0.as_bstr())));
            let tip = wanted.record.tip.as_ref().and_then(|t| t.id()).map(|id| id.to_string());
            let what = branch.or(tip).unwrap_or_default();
            (format!("`git worktree add PATH {what}` makes one under another name"), Exit::Usage)
        }
        NotRestored::Absent { commit, .. } => {
            (format!("`git worktree add --detach PATH {commit}` fetches them"), Exit::Failed)
        }
        NotRestored::Unfinished { .. } => {
            let mut words = vec!["restore".into(), wanted.record.id.to_string().into()];
            words.extend(request.at.iter().flat_map(|at| ["--at".into(), at.clone().into_os_string()]));
            let again = invocation.again.with_roots::<std::ffi::OsString>(words);
            (format!("what is there stays; `{again}` goes on"), Exit::Failed)
        }
        _ => (String::new(), Exit::Failed),
    };
    let help = if help.is_empty() { help } else { format!("; {help}") };
    output.complain(&format!("{} was not restored: {error}{help}", wanted.name), exit)
}

//! `treesweep rescue`: registers a worktree again whose registration was pruned.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use crate::beneath::{self, Dir, Refused};
use crate::cli::args::{Invocation, Rescue};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::restore::resolved;
use crate::cli::run::view;
use crate::git::open::{Unreadable, open_clone_within};
use crate::git::refs::short;
use crate::git::registration::Head;
use crate::lifecycle::links::{Form, Links, Spot, again};
use crate::lifecycle::locked::in_clone;
use crate::lifecycle::rescue::{NotRescued, Wanted, rescue};
use crate::lifecycle::snapshot::{self, Snapshot};
use crate::report::rescue::{
    CandidatesRow, RescuedRow, nothing, render, render_candidates, rescued, to_choose,
};
use crate::report::shell::quote;
use crate::session::{Session, SessionError};
use crate::state_dir::{StateDir, StateError};
use crate::stop::Stop;
use crate::survey::candidates::{Candidates, Question};
use crate::survey::discover::{CloneSite, Sighting};
use crate::survey::origin::Origin;
use crate::survey::run::known_checkouts;
use crate::survey::terrain::Terrain;
use crate::sweep::uses;
use crate::vantage::paths::{EntryName, LocalPath, RecordedPath, escape};
use crate::vantage::translate::Place;

/// How long branches are compared.
const COMPARED: Duration = Duration::from_secs(60);

/// Runs `rescue`.
pub fn run(invocation: &Invocation, request: &Rescue, output: &Output) -> Result<Exit, SessionError> {
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be rescued safely here: {why}"), Exit::Unsupported));
    }
    let path = match resolved(&request.path) {
        Ok(path) => path,
        Err(why) => return Ok(output.complain(&why, Exit::Usage)),
    };
    let session = Session::begin(invocation, std::slice::from_ref(&request.path))?;
    let state = StateDir::open(&StateDir::default_path()?)?;
    let (_, terrain) = session.see()?;
    let Some(w) = terrain.field.checkouts.iter().position(|c| c.path == path) else {
        return Ok(output.complain(&no_checkout(&path), Exit::Usage));
    };
    let checkout = &terrain.field.checkouts[w];
    let snapshots = snapshots(&state, &terrain, output)?;
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    if let Some(((c, r), _)) = joins.joined.iter().find(|(_, pair)| pair.checkout == w) {
        let (name, dir) = (&sides[*c].registrations[*r].name, &sides[*c].site.dir);
        let told = output.aside(&format!("{path} is registered already, as {name} of {dir}.\n"));
        return Ok(if invocation.json { told.and(output.json(&nothing())) } else { told });
    }
    let refused = |why: &str, exit| Ok(output.complain(&format!("{path} was not rescued: {why}"), exit));
    let witness = |c: usize| snapshot::of(&snapshots[c], checkout).is_some();
    let origin = match ground.origin(w, &witness) {
        Ok(origin) => origin,
        Err(reason) => return refused(&escape(reason.to_string().as_bytes()), Exit::Failed),
    };
    let site = sides[origin.clone].site;
    let known = snapshot::of(&snapshots[origin.clone], checkout);
    let (name, links) = match links(request, checkout, site, &origin, known) {
        Ok(links) => links,
        Err(why) => return refused(&why, Exit::Usage),
    };
    let Some((head, from)) = head(request, known) else {
        return Ok(choose(invocation, request, &session, &terrain, site, checkout, output));
    };
    let unborn = from.is_some_and(|snapshot| snapshot.tip.is_none());
    let wanted = Wanted { name, checkout: checkout.clone(), links, head, unborn };
    let stop = Stop::never();
    match in_clone(&state, &stop, site, &[], |clone| rescue(clone, &wanted)) {
        Ok(Ok(done)) => {
            let row = RescuedRow::of(&wanted, &done, from);
            Ok(match invocation.json {
                true => output.json(&rescued(row)),
                false => output.text(&render(&row, invocation.quiet, &view(invocation, output))),
            })
        }
        Ok(Err(error)) => refused(&format!("{error}{}", help(&error, site, from)), Exit::Failed),
        Err(error) if error.is_environment() => refused(&error.to_string(), Exit::Unsupported),
        Err(error) => refused(&error.to_string(), Exit::Failed),
    }
}

/// Why there is nothing at `path` that could be rescued.
fn no_checkout(path: &LocalPath) -> String {
    let dot_git = path.join(b".git").map(|dot_git| beneath::lstat(&dot_git));
    match (beneath::lstat(path), dot_git) {
        (Err(Refused::Absent), _) => {
            format!("{path} does not exist; `treesweep restore NAME` brings back what treesweep removed")
        }
        (Err(refused), _) => format!("{path}: {refused}"),
        (Ok(_), Some(Err(Refused::Absent))) => {
            format!("{path} has no .git file, so that nothing says whose worktree it was")
        }
        (Ok(_), Some(Err(refused))) => format!("{path}/.git: {refused}"),
        _ => format!("{path} is no worktree whose registration is gone, or lies outside of every root"),
    }
}

/// Those of each clone.
fn snapshots(
    state: &StateDir,
    terrain: &Terrain,
    output: &Output,
) -> Result<Vec<Vec<Snapshot>>, SessionError> {
    let mut all = Vec::new();
    for site in &terrain.field.clones {
        let Some(own) = state.existing_clone_state(site.common_id)? else {
            all.push(Vec::new());
            continue;
        };
        let io = |source| StateError::Io { path: state.dir().path().clone(), source };
        let (found, damaged) = snapshot::read_all(&own).map_err(io)?;
        for why in damaged {
            output.aside(&format!("warning: {}\n", escape(why.as_bytes())));
        }
        all.push(found);
    }
    Ok(all)
}

/// What it was called, and what its registration is to say.
fn links(
    request: &Rescue,
    checkout: &Sighting,
    site: &CloneSite,
    origin: &Origin,
    known: Option<&Snapshot>,
) -> Result<(EntryName, Links), String> {
    let pointer = &checkout.pointer;
    let (_, name) = pointer.entry.as_ref().ok_or("its .git file names no entry")?;
    let recorded = match (&request.recorded, known) {
        (Some(typed), _) => Some(typed_path(typed, checkout, origin)?),
        // A worktree that was moved is not where the snapshot saw it.
        (None, Some(snapshot)) if snapshot.path.as_ref() == Some(&(&checkout.path).into()) => {
            Some(RecordedPath::new(snapshot.recorded_path.0.clone()))
        }
        _ => None,
    };
    let spot = Spot { common: site.common_path(), name, checkout: &checkout.path };
    let links = match recorded {
        Some(recorded) => {
            let form = match recorded.as_bstr() == checkout.path.as_bstr() {
                true => Form::Here,
                false if !recorded.is_absolute() && !recorded.is_windows() => Form::Relative,
                false => Form::AsBefore,
            };
            Links { checkout: recorded, entry: pointer.target.clone(), form }
        }
        None => again(&pointer.target, spot, &origin.rules)
            .map_err(|unknown| format!("{unknown}; say it with --recorded PATH"))?,
    };
    Ok((name.clone(), links))
}

/// `--recorded`, which must not be a path that is known to be another directory's.
fn typed_path(typed: &bstr::BString, checkout: &Sighting, origin: &Origin) -> Result<RecordedPath, String> {
    let shown = escape(typed);
    let path = RecordedPath::parse(typed).map(|path| path.without_dot_git());
    let path = path.filter(|p| p.is_absolute() || p.is_windows());
    let path = path.filter(|p| !p.as_bstr().iter().any(|b| matches!(b, 0 | b'\n')));
    let path = path.ok_or_else(|| format!("--recorded: '{shown}' is no absolute path"))?;
    let elsewhere = origin.rules.iter().find_map(|rule| match rule.place(&path) {
        Place::Here(local) if local != checkout.path => Some(local.to_string()),
        Place::Elsewhere(what) => Some(what),
        _ => None,
    });
    match elsewhere {
        Some(place) => Err(format!("--recorded: '{shown}' is in another place, {place}")),
        None => Ok(path),
    }
}

/// HEAD, and the snapshot that it is taken from.
fn head<'a>(request: &Rescue, known: Option<&'a Snapshot>) -> Option<(Head, Option<&'a Snapshot>)> {
    if let Some(typed) = &request.branch {
        let full = match typed.starts_with(b"refs/heads/") {
            true => typed.clone(),
            false => [b"refs/heads/", typed.as_slice()].concat().into(),
        };
        return Some((Head::Branch(full), None));
    }
    let snapshot = known?;
    let head = match (&snapshot.branch, &snapshot.tip) {
        (Some(branch), _) => Head::Branch(branch.0.clone()),
        (None, tip) => Head::Detached(tip.as_ref()?.id()?),
    };
    Some((head, Some(snapshot)))
}

/// What would help.
fn help(error: &NotRescued, site: &CloneSite, from: Option<&Snapshot>) -> String {
    let tip = from.and_then(|snapshot| snapshot.tip.as_ref()?.id());
    match (error, tip) {
        (NotRescued::NoBranch(branch), Some(tip)) => {
            let (dir, name) = (site.dir.as_path().as_os_str(), short(branch.as_bstr()));
            let name = quote(std::ffi::OsStr::from_bytes(name));
            format!(
                "; `git -C {} branch {name} {tip}` makes it as it was, --branch names another",
                quote(dir)
            )
        }
        (NotRescued::NoBranch(_) | NotRescued::Branch { .. } | NotRescued::NoCommit(_), _) => {
            "; --branch names another".into()
        }
        (NotRescued::PathTaken(_), _) => "; --recorded names another".into(),
        _ => String::new(),
    }
}

/// Lists the branches that it may have been on; a person chooses.
fn choose(
    invocation: &Invocation,
    request: &Rescue,
    session: &Session,
    terrain: &Terrain,
    site: &CloneSite,
    checkout: &Sighting,
    output: &Output,
) -> Exit {
    let found = match compare(session, terrain, site, checkout) {
        Ok(found) => found,
        Err(why) => {
            let text = format!("{} was not rescued: {why}; name its branch with --branch", checkout.path);
            return output.complain(&text, Exit::Failed);
        }
    };
    let in_use = |branch: &bstr::BString| uses::unused(&site.common, branch.as_bstr()).err();
    let recorded = request.recorded.iter();
    let words: Vec<OsString> =
        recorded.flat_map(|path| ["--recorded".into(), OsString::from_vec(path.to_vec())]).collect();
    let rows = CandidatesRow::of(&checkout.path, &found, in_use, &invocation.again, &words);
    let shown = match invocation.json {
        true => output.json(&to_choose(rows)),
        false => output.text(&render_candidates(&rows, &view(invocation, output))),
    };
    // Nothing was done until a branch is named.
    shown.and(Exit::Usage)
}

fn compare(
    session: &Session,
    terrain: &Terrain,
    site: &CloneSite,
    checkout: &Sighting,
) -> Result<Candidates, Unreadable> {
    let repo = open_clone_within(&site.common, &terrain.roots)?;
    let dir = Dir::open(&checkout.path).map_err(|e| Unreadable(format!("{}: {e}", checkout.path)))?;
    let stop = Stop::at(Instant::now() + COMPARED);
    let question = Question {
        checkout: &dir,
        common: &site.common,
        repo: &repo,
        precious: &session.settings.precious,
        known_checkouts: &known_checkouts(terrain),
        stop: &stop,
    };
    question.answer()
}

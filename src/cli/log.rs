//! `treesweep log`: what was removed, and what is kept of it.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::cli::args::Invocation;
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run::view;
use crate::lifecycle::locked::in_clone;
use crate::plan::{CommonDir, Path, SCHEMA};
use crate::report::log::{CloneLog, ExpiredRow, Log, RecordRow, StayRow, render, render_expired};
use crate::session::{Session, SessionError};
use crate::state_dir::{StateDir, StateError};
use crate::survey::discover::CloneSite;
use crate::sweep::expire::{Expired, expire};
use crate::sweep::records;
use crate::sweep::resume::pending;
use crate::vantage::paths::escape;

/// Runs `log`, dropping the old ones first if that was asked.
pub fn run(invocation: &Invocation, expires: bool, output: &Output) -> Result<Exit, SessionError> {
    let session = Session::begin(invocation, &[])?;
    let state = StateDir::open_existing(&StateDir::default_path()?)?;
    let field = session.field();
    let mut log = Log {
        schema: SCHEMA,
        clones: Vec::new(),
        warnings: session.warnings.iter().chain(&field.warnings).cloned().collect(),
    };
    let mut exit = Exit::Done;
    for site in field.clones.iter().filter(|site| site.in_scope) {
        let mut clone = CloneLog {
            path: Path::of(Some(site.dir.as_bstr())),
            common_dir: CommonDir::of(Some(site.common_path().as_bstr())),
            records: Vec::new(),
            expired: expires.then(|| ExpiredRow { dropped: Vec::new(), refs: 0, failed: Vec::new() }),
            warnings: Vec::new(),
        };
        if let Some(state) = &state {
            if expires && state.existing_clone_state(site.common_id)?.is_some() {
                exit = exit.and(drop_old(&session, state, site, &mut clone, output));
            }
            read(state, site, &mut clone)?;
        }
        log.clones.push(clone);
    }
    Ok(exit.and(show(invocation, &session, &log, expires, output)))
}

fn drop_old(
    session: &Session,
    state: &StateDir,
    site: &CloneSite,
    clone: &mut CloneLog,
    output: &Output,
) -> Exit {
    let keep = session.settings.retired_keep.value;
    // A duration is at most 100 years: before that there is no record.
    let until = Timestamp::now().checked_sub(keep).unwrap_or(Timestamp::MIN);
    let done = in_clone(state, &session.stop, site, &[], |locked| {
        let expired = expire(locked, until);
        (expired, std::mem::take(&mut locked.warnings))
    });
    match done {
        Ok((Ok(expired), warnings)) => {
            let Expired { dropped, released, stay, notes } = expired;
            clone.warnings.extend(warnings.into_iter().chain(notes));
            let failed = stay.into_iter().map(|(id, why)| StayRow { id: id.to_string(), why }).collect();
            let dropped = dropped.iter().map(ToString::to_string).collect();
            let row = ExpiredRow { dropped, refs: released, failed };
            let exit = if row.failed.is_empty() { Exit::Done } else { Exit::Failed };
            clone.expired = Some(row);
            exit
        }
        Ok((Err(error), _)) => output.complain(&format!("{}: records: {error}", site.dir), Exit::Failed),
        Err(error) => {
            let exit = if error.is_environment() { Exit::Unsupported } else { Exit::Failed };
            output.complain(&format!("{}: {error}", site.dir), exit)
        }
    }
}

fn read(state: &StateDir, site: &CloneSite, clone: &mut CloneLog) -> Result<(), SessionError> {
    let Some(own) = state.existing_clone_state(site.common_id)? else { return Ok(()) };
    let (open, damaged) = pending(state, site.common_id)?;
    let open: HashSet<_> = open.iter().map(|i| &i.record).collect();
    let read = records::read_all(&own);
    let (records, bad) =
        read.map_err(|source| StateError::Io { path: state.dir().path().clone(), source })?;
    clone.records = records.iter().rev().map(|r| RecordRow::of(r, open.contains(&r.id))).collect();
    clone.warnings.extend(damaged.into_iter().chain(bad));
    Ok(())
}

fn show(invocation: &Invocation, session: &Session, log: &Log, expires: bool, output: &Output) -> Exit {
    if invocation.json {
        return output.json(log);
    }
    let mut exit = Exit::Done;
    let of_clones = log.clones.iter().flat_map(|c| {
        let place = c.path.text.as_deref().unwrap_or_default();
        c.warnings.iter().map(move |w| format!("{place}: {w}"))
    });
    for warning in log.warnings.iter().cloned().chain(of_clones).filter(|_| !invocation.quiet) {
        exit = exit.and(output.aside(&format!("warning: {}\n", escape(warning.as_bytes()))));
    }
    let view = view(invocation, output);
    exit.and(output.text(&match expires {
        true => render_expired(log, session.settings.retired_keep.value, invocation.quiet, &view),
        false => render(log, &view),
    }))
}

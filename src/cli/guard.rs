//! `treesweep guard`: protects clones from the prune of a host that does not know their containers' paths.

use crate::beneath;
use crate::cli::args::{Guard, Invocation};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::run::view;
use crate::lifecycle::guard::{Guarded, Known, NotGuarded, guard, undo};
use crate::lifecycle::locked::{NotEntered, in_clone};
use crate::report::guard::{CloneRow, document, render};
use crate::session::{Session, SessionError};
use crate::state_dir::StateDir;
use crate::survey::ground::Ground;
use crate::survey::standing::is_foreign;
use crate::vantage::paths::escape;

/// Runs `guard`.
pub fn run(invocation: &Invocation, request: Guard, output: &Output) -> Result<Exit, SessionError> {
    if let Err(why) = beneath::supported() {
        return Ok(output.complain(&format!("nothing can be guarded safely here: {why}"), Exit::Unsupported));
    }
    let session = Session::begin(invocation, &[])?;
    let state = StateDir::open(&StateDir::default_path()?)?;
    let (_, terrain) = session.see()?;
    let sides = terrain.sides();
    let joins = terrain.joins(&sides);
    let ground = terrain.ground(&sides, &joins);
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for (c, side) in sides.iter().enumerate().filter(|(_, side)| side.site.in_scope) {
        let known = known(&ground, c);
        let done = in_clone(&state, &session.stop, side.site, &[], |clone| {
            let done = match request {
                Guard::Protect { lock } => guard(clone, &known, lock),
                Guard::Undo => undo(clone),
            };
            done.map(|done| (done, std::mem::take(&mut clone.warnings)))
        });
        match done {
            Ok(Ok((done, warnings))) => {
                let done = Guarded { failed: [warnings, done.failed.clone()].concat(), ..done };
                if !done.failed.is_empty() {
                    exit = exit.and(Exit::Failed);
                }
                rows.push(CloneRow::of(side.site, &done));
            }
            Ok(Err(error)) => exit = exit.and(complain(side.site.dir.to_string(), &error, output)),
            Err(error) => {
                let failed = if error.is_environment() { Exit::Unsupported } else { Exit::Failed };
                exit = exit.and(not_entered(side.site.dir.to_string(), &error, failed, output));
            }
        }
    }
    let warnings: Vec<String> = session.warnings.iter().chain(&terrain.field.warnings).cloned().collect();
    if !invocation.json && !invocation.quiet {
        for warning in &warnings {
            exit = exit.and(output.aside(&format!("warning: {}\n", escape(warning.as_bytes()))));
        }
    }
    let document = document(request == Guard::Undo, rows, warnings);
    Ok(exit.and(match invocation.json {
        true => output.json(&document),
        false => output.text(&render(&document, invocation.quiet, &view(invocation, output))),
    }))
}

/// What the survey knows of the registrations of clone `c`.
fn known<'a>(ground: &Ground<'a>, c: usize) -> Vec<Known<'a>> {
    let all = ground.sides[c].registrations.iter().enumerate();
    all.filter_map(|(r, registration)| {
        Some(Known {
            name: registration.name.clone(),
            id: registration.id?,
            checkout: ground.joins.joined.get(&(c, r)).map(|pair| &ground.checkouts[pair.checkout]),
            foreign: is_foreign(ground, c, r),
        })
    })
    .collect()
}

fn complain(dir: String, error: &NotGuarded, output: &Output) -> Exit {
    output.complain(&format!("{dir} is not guarded: {error}"), Exit::Failed)
}

fn not_entered(dir: String, error: &NotEntered, exit: Exit, output: &Output) -> Exit {
    output.complain(&format!("{dir}: {error}"), exit)
}

//! `treesweep up`: a sweep that fails no launch, and then the dev container CLI.
//!
//! The sweep runs on a thread of its own and is waited for only so long. If it hangs (a dead network file system), the
//! program is replaced under it, which is to the sweep what a kill is: the next run converges.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::beneath;
use crate::cli::args::{Invocation, Up};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::prune::without_asking;
use crate::cli::{outcomes, run};
use crate::config::Layer;
use crate::lifecycle::launch;
use crate::plan::Plan;
use crate::reclaim::Reclaimed;
use crate::report::{View, plan as plan_report};
use crate::session::Session;
use crate::stop::Stop;
use crate::vantage::paths::escape;

/// How long a launch waits for its sweep if nobody says.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it waits besides for the removal at hand to come to an end.
const GRACE: Duration = Duration::from_secs(2);

/// Runs `up`: returns only if nothing could be launched.
pub fn run(invocation: &Invocation, up: &Up, output: &Output) -> Exit {
    let Some(cli) = launch::find() else {
        return output.complain(
            &format!(
                "`{}` is not in PATH, so nothing was swept or started; `npm install -g @devcontainers/cli` installs it",
                launch::CLI
            ),
            Exit::Unsupported,
        );
    };
    if up.prune {
        // A launch from within a worktree, or of one, must not take it away: being there holds it.
        if let Err(error) = std::env::set_current_dir(&up.folder) {
            let folder = escape(up.folder.as_os_str().as_encoded_bytes());
            return output.complain(&format!("{folder}: {error}; nothing was started"), Exit::Usage);
        }
        let limit = invocation.flags.time_limit.as_ref().map_or(LIMIT, |l| l.value);
        let stop = Stop::at(Instant::now() + limit);
        sweep(invocation, up, limit, &stop, output);
        if stop.was_requested() {
            return output.complain("stopped before the launch; no container was started", Exit::Failed);
        }
    }
    let error = launch::become_devcontainer_up(&cli, &up.folder, &up.arguments, &invocation.cwd);
    let cli = escape(cli.as_os_str().as_encoded_bytes());
    output.complain(&format!("{cli} does not start: {error}"), Exit::Unsupported)
}

/// Sweeps around the folder and says on standard error what came of it; all that can go wrong is a warning.
fn sweep(invocation: &Invocation, up: &Up, limit: Duration, stop: &Stop, output: &Output) {
    let view = View { style: output.error_style(), ..run::view(invocation, output) };
    let (tell, told) = channel();
    let there = Invocation {
        flags: Layer { roots: Vec::new(), ..invocation.flags.clone() },
        cwd: up.folder.clone(),
        ..invocation.clone()
    };
    let own = stop.clone();
    let sweeping = move || {
        // Nobody listens any more if it took too long.
        let _ = tell.send(swept(&there, own));
    };
    let started = std::thread::Builder::new().name("sweep".to_owned()).spawn(sweeping);
    let warn = |why: &str| {
        output.aside(&format!("warning: {why}\n"));
    };
    let late = || {
        let limit = limit.as_secs();
        warn(&format!("the sweep reached its time limit of {limit} s; the next one takes what is left"));
    };
    match started.map(|_| told.recv_timeout(limit + GRACE)) {
        Ok(Ok(Ok((plan, done)))) => {
            if !invocation.quiet {
                output.aside(&plan_report::warnings(&plan, &view));
            }
            outcomes::aside(&done, invocation.quiet, &view, output);
            if stop.is_set() && !stop.was_requested() {
                late();
            }
        }
        Ok(Ok(Err(why))) => warn(&format!("nothing was swept: {}", escape(why.as_bytes()))),
        Ok(Err(RecvTimeoutError::Timeout)) => late(),
        // The panic has said what happened.
        Ok(Err(RecvTimeoutError::Disconnected)) => warn("the sweep broke off; the next one finishes it"),
        Err(error) => warn(&format!("nothing was swept: no thread could be started: {error}")),
    }
}

fn swept(invocation: &Invocation, stop: Stop) -> Result<(Plan, Reclaimed), String> {
    beneath::supported()?;
    let mut session = Session::begin(invocation, &[]).map_err(|e| e.to_string())?;
    session.stop = match &session.settings.time_limit {
        Some(configured) => stop.within(configured.value),
        None => stop,
    };
    without_asking(&session).map_err(|e| e.to_string())
}

//! From a command line to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use bstr::BStr;

use crate::cli::args::{Invocation, Request, parse};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::{drop, log, prune, restore, setup};
use crate::config::{Color, home};
use crate::plan::Plan;
use crate::report::progress::{Bars, Event, Progress};
use crate::report::{View, explain, plan as plan_report};
use crate::session::{Session, SessionError};
use crate::state_dir::StateDir;
use crate::vantage::paths::escape;

/// Runs one command line.
pub fn main(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let plain = Output::new(Color::Auto);
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => return plain.complain(&format!("the current directory: {error}"), Exit::Usage).into(),
    };
    match parse(line).and_then(|cli| cli.resolve(&cwd, home().as_deref())) {
        Ok(invocation) => dispatch(&invocation).into(),
        Err(error) => {
            let shown = Exit::of_output(&error.print());
            // `--help` and `--version` are what was asked for.
            if error.use_stderr() { Exit::Usage.into() } else { shown.into() }
        }
    }
}

fn dispatch(invocation: &Invocation) -> Exit {
    let color = invocation.flags.color.as_ref().map_or(Color::Auto, |c| c.value);
    let mut output = Output::new(color);
    let done = match &invocation.request {
        Request::Plan { explain } => plan(invocation, explain.as_ref().map(|e| e.as_ref()), &output),
        Request::Setup(request) => setup::run(invocation, request, &mut output),
        Request::Prune(request) => prune::run(invocation, request, &mut output),
        Request::Drop(request) => drop::run(invocation, request, &mut output),
        Request::Restore(request) => restore::run(invocation, request, &output),
        Request::Log { expire } => log::run(invocation, *expire, &output),
    };
    done.unwrap_or_else(|error| output.complain(&error.to_string(), exit_of(&error)))
}

fn exit_of(error: &SessionError) -> Exit {
    match error {
        SessionError::World(_) | SessionError::State(_) | SessionError::Threads(_) => Exit::Failed,
        _ => Exit::Usage,
    }
}

fn plan(invocation: &Invocation, named: Option<&BStr>, output: &Output) -> Result<Exit, SessionError> {
    let session = Session::begin(invocation, &[])?;
    let progress = Bars::new();
    let state = StateDir::open_existing(&StateDir::default_path()?)?;
    let seen = session.look(state.as_ref(), named, &progress)?;
    progress.tell(Event::Pause);
    let view = view(invocation, output);
    let shown = match (named, invocation.json) {
        (_, true) => output.json(&seen.plan),
        (None, false) => output
            .aside(&plan_report::warnings(&seen.plan, &view))
            .and(output.text(&plan_report::render(&seen.plan, &view))),
        (Some(name), false) => match explain::render(&seen.plan, name, &view) {
            Some(text) => output.text(&text),
            None => output.complain(&format!("no worktree here is called '{}'", escape(name)), Exit::Usage),
        },
    };
    Ok(shown.and(engines(&seen.plan)))
}

/// A configured engine that failed makes the run fail: what it holds is not known.
pub fn engines(plan: &Plan) -> Exit {
    let failed = |e: &&crate::plan::EngineRow| {
        e.configured && !matches!(e.state.as_str(), "answered" | "ignored" | "remote")
    };
    if plan.engines.iter().any(|e| failed(&e)) { Exit::Failed } else { Exit::Done }
}

/// How this run's text looks.
pub fn view(invocation: &Invocation, output: &Output) -> View {
    View { style: output.style(), now: jiff::Timestamp::now(), home: home(), again: invocation.again.clone() }
}

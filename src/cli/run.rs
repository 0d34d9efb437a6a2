//! From a command line to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use bstr::BStr;

use crate::cli::args::{self, Invocation, Request, parse};
use crate::cli::exit::Exit;
use crate::cli::output::Output;
use crate::cli::{complete, drop, guard, log, prune, rescue, restore, setup, up};
use crate::config::{Color, home};
use crate::plan::Plan;
use crate::report::progress::Event;
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
    let line: Vec<OsString> = line.into_iter().collect();
    let answered = complete::answered(&line, &cwd);
    if let Ok(true) = answered {
        return Exit::Done.into();
    }
    match answered.and_then(|_| parse(line)).and_then(|cli| cli.resolve(&cwd, home().as_deref())) {
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
    let mut output = Output::new(color).with_lines(invocation.json_lines);
    let done = match &invocation.request {
        Request::Plan { explain } => plan(invocation, explain.as_ref().map(|e| e.as_ref()), &output),
        Request::Setup(request) => setup::run(invocation, request, &mut output),
        Request::Prune(request) => prune::run(invocation, request, &mut output),
        Request::Drop(request) => drop::run(invocation, request, &mut output),
        Request::Restore(request) => restore::run(invocation, request, &output),
        Request::Rescue(request) => rescue::run(invocation, request, &output),
        Request::Guard(request) => guard::run(invocation, *request, &output),
        Request::Up(request) => Ok(up::run(invocation, request, &output)),
        Request::Completions { shell } => Ok(match complete::script(shell) {
            Ok(script) => output.text(&script),
            Err(error) => output.complain(&format!("{shell}: {error}"), Exit::Failed),
        }),
        Request::Man { dir } => Ok(match clap_mangen::generate_to(args::manual(), dir) {
            Ok(()) => Exit::Done,
            Err(error) => {
                let dir = escape(dir.as_os_str().as_encoded_bytes());
                output.complain(&format!("{dir}: the man pages could not be written: {error}"), Exit::Failed)
            }
        }),
        Request::Log { expire } => log::run(invocation, *expire, &output),
    };
    done.unwrap_or_else(|error| output.complain(&error.to_string(), exit_of(&error)))
}

/// The exit code of a command that could not begin.
pub fn exit_of(error: &SessionError) -> Exit {
    match error {
        SessionError::World(_) | SessionError::State(_) | SessionError::Threads(_) => Exit::Failed,
        _ => Exit::Usage,
    }
}

fn plan(invocation: &Invocation, named: Option<&BStr>, output: &Output) -> Result<Exit, SessionError> {
    let session = Session::begin(invocation, &[])?;
    let progress = output.progress();
    let state = StateDir::open_existing(&StateDir::default_path()?)?;
    let seen = session.look(state.as_ref(), named, &*progress)?;
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

//! From a command line to an exit code.

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use crate::cli::args::{Invocation, Request, parse};
use crate::cli::exit::Exit;
use crate::cli::session::{Session, SessionError};
use crate::config::home;
use crate::state_dir::StateDir;

/// Runs one command line.
pub fn main(line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cwd = match std::env::current_dir() {
        Ok(cwd) => cwd,
        Err(error) => return complain(&format!("the current directory: {error}"), Exit::Usage).into(),
    };
    let invocation = parse(line).and_then(|cli| cli.resolve(&cwd, home().as_deref()));
    match invocation {
        Ok(invocation) => dispatch(&invocation).into(),
        Err(error) => {
            let shown = Exit::of_output(&error.print());
            let asked = !error.use_stderr();
            if asked { shown.into() } else { Exit::Usage.into() }
        }
    }
}

fn dispatch(invocation: &Invocation) -> Exit {
    match &invocation.request {
        Request::Plan { explain } => plan(invocation, explain.as_ref().map(|e| e.as_ref())),
        _ => complain("not wired", Exit::Usage),
    }
}

/// `error: ...` on standard error.
pub fn complain(message: &str, exit: Exit) -> Exit {
    let written = writeln!(anstream::stderr(), "error: {message}");
    Exit::of_output(&written).and(exit)
}

fn plan(invocation: &Invocation, explain: Option<&bstr::BStr>) -> Exit {
    let looked = Session::begin(invocation, &[]).and_then(|session| {
        let state = StateDir::open_existing(&StateDir::default_path()?)?;
        session.look(state.as_ref(), explain.is_some())
    });
    let seen = match looked {
        Ok(seen) => seen,
        Err(error) => return complain(&error.to_string(), exit_of(&error)),
    };
    println!("{}", serde_json::to_string(&seen.plan).unwrap_or_default());
    Exit::Done
}

fn exit_of(error: &SessionError) -> Exit {
    match error {
        SessionError::World(_) | SessionError::State(_) => Exit::Failed,
        _ => Exit::Usage,
    }
}

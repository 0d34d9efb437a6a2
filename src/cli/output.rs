//! Where a command's words go: results to standard output, questions and complaints to standard error.

use std::io::{self, Write};

use anstream::ColorChoice;
use serde::Serialize;

use crate::cli::exit::Exit;
use crate::config::Color;
use crate::report::lines::{Last, Lines};
use crate::report::progress::{Bars, Progress};
use crate::report::prompt::{Ask, Terminal};
use crate::report::{Style, json};

/// The two streams of a run, and the person at the terminal if there is one.
pub struct Output {
    color: ColorChoice,
    terminal: Option<Terminal>,
    /// `--json-lines`: progress and the document, a line each.
    lines: bool,
}

impl Output {
    pub fn new(color: Color) -> Self {
        let color = match color {
            Color::Auto => ColorChoice::Auto,
            Color::Always => ColorChoice::Always,
            Color::Never => ColorChoice::Never,
        };
        Self { color, terminal: Terminal::open(), lines: false }
    }

    /// With progress and the document as lines of JSON.
    pub fn with_lines(self, lines: bool) -> Self {
        Self { lines, ..self }
    }

    /// Whoever wants to know what the run is at: a person at the terminal, or a program.
    pub fn progress(&self) -> Box<dyn Progress> {
        if self.lines { Box::new(Lines::stdout()) } else { Box::new(Bars::new()) }
    }

    /// What standard output can show.
    pub fn style(&self) -> Style {
        Style::stdout(self.color)
    }

    /// What standard error can show.
    pub fn error_style(&self) -> Style {
        Style::stderr(self.color)
    }

    /// The person at the terminal; none in a script.
    pub fn asker(&mut self) -> Option<&mut Terminal> {
        self.terminal.as_mut()
    }

    /// Asks the person; no without one.
    pub fn confirm(&mut self, question: &str) -> io::Result<bool> {
        match &mut self.terminal {
            Some(terminal) => terminal.confirm(question),
            None => Ok(false),
        }
    }

    /// Text that has its own line ends.
    pub fn text(&self, text: &str) -> Exit {
        let mut out = anstream::AutoStream::new(io::stdout(), self.color).lock();
        Exit::of_output(&out.write_all(text.as_bytes()).and_then(|()| out.flush()))
    }

    pub fn line(&self, line: &str) -> Exit {
        self.text(&format!("{line}\n"))
    }

    /// Text for standard error.
    pub fn aside(&self, text: &str) -> Exit {
        let mut err = anstream::AutoStream::new(io::stderr(), self.color).lock();
        Exit::of_output(&err.write_all(text.as_bytes()))
    }

    /// `error: ...` on standard error; the exit code that it makes.
    pub fn complain(&self, message: &str, exit: Exit) -> Exit {
        self.aside(&format!("error: {message}\n")).and(exit)
    }

    pub fn json(&self, document: &impl Serialize) -> Exit {
        let out = &mut io::stdout().lock();
        Exit::of_output(&match self.lines {
            true => json::write_line(&Last { document }, out),
            false => json::write(document, out),
        })
    }
}

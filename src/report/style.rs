//! Colours, width and links, as far as the place that the text goes to has them.

use std::fmt::Display;

use anstream::ColorChoice;
use anstyle::{AnsiColor, Effects};
use dialoguer::console::Term;

/// What the output can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    pub color: bool,
    /// In columns; `None` where lines may have any length.
    pub width: Option<usize>,
    /// OSC 8.
    pub hyperlinks: bool,
}

/// Narrower terminals get lines that they have to wrap themselves.
const NARROWEST: usize = 40;

const BOLD: anstyle::Style = anstyle::Style::new().effects(Effects::BOLD);
const DIM: anstyle::Style = anstyle::Style::new().effects(Effects::DIMMED);
const GOOD: anstyle::Style = AnsiColor::Green.on_default();
const ASKING: anstyle::Style = AnsiColor::Yellow.on_default();
const BAD: anstyle::Style = AnsiColor::Red.on_default().effects(Effects::BOLD);

impl Style {
    /// For standard output under the choice of `--color`.
    pub fn stdout(color: ColorChoice) -> Self {
        Self::of(&std::io::stdout(), &Term::stdout(), color)
    }

    /// For standard error under the choice of `--color`.
    pub fn stderr(color: ColorChoice) -> Self {
        Self::of(&std::io::stderr(), &Term::stderr(), color)
    }

    fn of(stream: &impl anstream::stream::RawStream, term: &Term, color: ColorChoice) -> Self {
        let color = match color {
            ColorChoice::Auto => anstream::AutoStream::choice(stream) != ColorChoice::Never,
            chosen => chosen != ColorChoice::Never,
        };
        let terminal = stream.is_terminal();
        let width =
            terminal.then(|| term.size_checked()).flatten().map(|(_, w)| usize::from(w).max(NARROWEST));
        Self { color, width, hyperlinks: terminal && color && links(|name| std::env::var(name).ok()) }
    }

    pub(super) fn bold(&self, text: impl Display) -> String {
        self.paint(BOLD, text)
    }

    pub(super) fn dim(&self, text: impl Display) -> String {
        self.paint(DIM, text)
    }

    pub(super) fn good(&self, text: impl Display) -> String {
        self.paint(GOOD, text)
    }

    pub(super) fn asking(&self, text: impl Display) -> String {
        self.paint(ASKING, text)
    }

    pub(super) fn bad(&self, text: impl Display) -> String {
        self.paint(BAD, text)
    }

    fn paint(&self, style: anstyle::Style, text: impl Display) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// `text` as a link to the directory `path`.
    pub(super) fn link(&self, path: &[u8], text: String) -> String {
        if !self.hyperlinks {
            return text;
        }
        let mut url = String::from("file://");
        for byte in path {
            match byte {
                b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
                b if b.is_ascii_alphanumeric() => url.push(char::from(*b)),
                b => url.push_str(&format!("%{b:02X}")),
            }
        }
        format!("\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\")
    }
}

/// Terminals that are known to show OSC 8 links; others would print what they don't understand.
fn links(env: impl Fn(&str) -> Option<String>) -> bool {
    let vte = env("VTE_VERSION").and_then(|v| v.parse().ok()).is_some_and(|v: u32| v >= 5_000);
    let program = env("TERM_PROGRAM")
        .is_some_and(|p| matches!(p.as_str(), "iTerm.app" | "WezTerm" | "vscode" | "ghostty" | "Hyper"));
    let term = env("TERM")
        .is_some_and(|t| matches!(t.as_str(), "xterm-kitty" | "alacritty" | "foot" | "xterm-ghostty"));
    // tmux and screen may swallow links, or print them.
    let multiplexed = env("TERM").is_some_and(|t| t.starts_with("screen") || t.starts_with("tmux"));
    !multiplexed && (vte || program || term || env("WT_SESSION").is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_for_terminals_that_are_known_to_show_them() {
        let with = |name: &'static str, value: &'static str| links(|n| (n == name).then(|| value.to_owned()));
        assert!(with("VTE_VERSION", "7600") && with("TERM", "xterm-kitty") && with("TERM_PROGRAM", "vscode"));
        assert!(
            !with("VTE_VERSION", "4000") && !with("TERM", "xterm-256color") && !with("TERM", "tmux-256color")
        );
        assert!(!links(|_| None));
    }

    #[test]
    fn a_link_can_not_leave_its_place() {
        let style = Style { hyperlinks: true, ..Style::default() };
        let link = style.link(b"/a b/\x1b\\\xff", "x".into());
        assert_eq!(link, "\x1b]8;;file:///a%20b/%1B%5C%FF\x1b\\x\x1b]8;;\x1b\\");
        assert_eq!(Style::default().link(b"/a", "x".into()), "x");
    }
}

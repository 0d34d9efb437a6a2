//! Questions to a person. The answer to each is no until a person at a terminal says otherwise; leaving it with
//! Escape, Ctrl-C or the end of the input is a no.

use std::io::{self, IsTerminal};

use dialoguer::console::{Term, truncate_str};
use dialoguer::{Confirm, Input, MultiSelect};
use jiff::Timestamp;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};

use super::plan::branch;
use super::text::{Field, age, count, listed, size};
use crate::plan::{Class, Row};
use crate::vantage::paths::escape;

/// Someone who can be asked.
pub trait Ask {
    /// Yes or no; no by default.
    fn confirm(&mut self, question: &str) -> io::Result<bool>;
    /// Which of `items`, by their indices; none by default.
    fn pick(&mut self, question: &str, items: &[String]) -> io::Result<Vec<usize>>;
    /// Whatever is typed.
    fn line(&mut self, question: &str) -> io::Result<String>;
}

/// A person at a terminal.
#[derive(Debug)]
pub struct Terminal {
    term: Term,
}

impl Terminal {
    /// `None` unless both the questions can be seen and the answers can be typed.
    pub fn open() -> Option<Self> {
        let term = Term::stderr();
        (io::stdin().is_terminal() && term.is_term()).then_some(Self { term })
    }

    /// Asks while Ctrl-C can't end us with a hidden cursor; it is delivered afterwards, to whatever handles it.
    fn ask<T>(&self, empty: T, ask: impl FnOnce(&Term) -> dialoguer::Result<T>) -> io::Result<T> {
        let mut interrupt = SigSet::empty();
        interrupt.add(Signal::SIGINT);
        let before = interrupt.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let answer = ask(&self.term).map_err(io::Error::from);
        let restored = self.term.show_cursor();
        before.thread_set_mask()?;
        restored?;
        match answer {
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::UnexpectedEof) => {
                self.term.write_line("")?;
                Ok(empty)
            }
            answer => answer,
        }
    }
}

impl Ask for Terminal {
    fn confirm(&mut self, question: &str) -> io::Result<bool> {
        self.ask(false, |term| {
            let confirm = Confirm::new().with_prompt(question).default(false);
            // A stray key is no answer: it takes Enter, too.
            let confirm = confirm.wait_for_newline(true).interact_on_opt(term)?;
            Ok(confirm.unwrap_or(false))
        })
    }

    fn pick(&mut self, question: &str, items: &[String]) -> io::Result<Vec<usize>> {
        // A line that the terminal wraps would not be erased again.
        let width = usize::from(self.term.size().1).saturating_sub(8).max(20);
        let items: Vec<_> = items.iter().map(|item| truncate_str(item, width, "…").into_owned()).collect();
        self.ask(Vec::new(), |term| {
            // Neither would a prompt.
            let keys = " (space picks, enter ends, escape leaves)";
            let keys = if question.len() + keys.len() < usize::from(self.term.size().1) { keys } else { "" };
            let prompt = format!("{question}{keys}");
            let select = MultiSelect::new().with_prompt(prompt).items(&items).report(false).max_length(20);
            Ok(select.interact_on_opt(term)?.unwrap_or_default())
        })
    }

    fn line(&mut self, question: &str) -> io::Result<String> {
        self.ask(String::new(), |term| {
            Input::new().with_prompt(question).allow_empty(true).report(false).interact_text_on(term)
        })
    }
}

/// Lets a person choose among what is offered, and asks once whether to remove what was chosen. The indices into
/// `offers`; none if the person wants none. Ages are relative to `now`.
pub fn choose(ask: &mut dyn Ask, offers: &[&Row], now: Timestamp) -> io::Result<Vec<usize>> {
    if offers.is_empty() {
        return Ok(Vec::new());
    }
    let width = offers.iter().map(|row| row.name.shown().chars().count()).max().unwrap_or(0);
    let items: Vec<_> = offers.iter().map(|row| item(row, width, now)).collect();
    let mut picked = ask.pick("Which of these shall go?", &items)?;
    picked.retain(|index| *index < offers.len());
    if picked.is_empty() {
        return Ok(picked);
    }
    let bytes: u64 = picked.iter().filter_map(|index| offers[*index].bytes).sum();
    let names: Vec<_> = picked.iter().map(|index| offers[*index].name.shown()).collect();
    // A line that the terminal wraps would not be erased again.
    let what = Some(listed(&names)).filter(|names| names.chars().count() <= LONGEST_LIST);
    let what = what.unwrap_or_else(|| count(picked.len() as u64, "worktree"));
    let question = format!("Remove {what} ({})? Branches stay.", size(bytes));
    Ok(if ask.confirm(&question)? { picked } else { Vec::new() })
}

/// Names up to this length are asked for by name.
const LONGEST_LIST: usize = 30;

/// Name, size and evidence on one line.
fn item(row: &Row, width: usize, now: Timestamp) -> String {
    let name = row.name.shown();
    let pad = width.saturating_sub(name.chars().count());
    let mut evidence = vec![branch(row)];
    match row.class {
        // What is offered as nobody's has nothing else against it.
        Some(Class::Unowned) => evidence.push("landed".to_owned()),
        _ => evidence.extend(row.reasons.first().map(ToString::to_string)),
    }
    evidence.extend(row.last_activity.map(|then| age(then, now)));
    evidence.retain(|part| !part.is_empty());
    let evidence = evidence.join(", ");
    let bytes = row.bytes.map(size).unwrap_or_default();
    format!("{name}{:pad$}  {bytes:>8}  {}", "", escape(evidence.as_bytes()))
}

/// `drop --force` asks for the name itself: a reflex can't type it. `name` is the worktree's, in its bytes; what is no
/// text is typed as it is shown.
pub fn name_is_typed(ask: &mut dyn Ask, name: &[u8]) -> io::Result<bool> {
    let shown = super::text::visible(name);
    let typed = ask.line(&format!("Type `{shown}` to remove it with all of that"))?;
    Ok(!typed.is_empty() && (typed == shown || typed.as_bytes() == name))
}

/// Answers that were written beforehand, and the questions that were asked.
#[cfg(test)]
#[derive(Debug, Default)]
pub(crate) struct Scripted {
    pub answers: std::collections::VecDeque<Answer>,
    pub asked: Vec<String>,
}

#[cfg(test)]
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Confirm(bool),
    Pick(Vec<usize>),
    Line(String),
}

#[cfg(test)]
impl Scripted {
    pub(crate) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self { answers: answers.into_iter().collect(), asked: Vec::new() }
    }

    fn next(&mut self, question: &str) -> Option<Answer> {
        self.asked.push(question.to_owned());
        self.answers.pop_front()
    }
}

#[cfg(test)]
impl Ask for Scripted {
    fn confirm(&mut self, question: &str) -> io::Result<bool> {
        Ok(matches!(self.next(question), Some(Answer::Confirm(true))))
    }

    fn pick(&mut self, question: &str, items: &[String]) -> io::Result<Vec<usize>> {
        match self.next(&format!("{question} {}", items.join(" | "))) {
            Some(Answer::Pick(picked)) => Ok(picked),
            _ => Ok(Vec::new()),
        }
    }

    fn line(&mut self, question: &str) -> io::Result<String> {
        match self.next(question) {
            Some(Answer::Line(text)) => Ok(text),
            _ => Ok(String::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::reason::{Code, Reason};
    use crate::plan::VerdictKind;
    use crate::report::sample::{row, view};

    fn offers() -> Vec<Row> {
        let offer = |name: &[u8], bytes| Row {
            bytes: Some(bytes),
            class: Some(Class::Unowned),
            reasons: vec![Reason::new(Code::Unowned, "no ready marker")],
            ..row(name, VerdictKind::Offer)
        };
        vec![offer(b"spike", 800_000_000), offer(b"a\n", 2_000_000_000)]
    }

    fn chosen(answers: impl IntoIterator<Item = Answer>) -> (Vec<usize>, Vec<String>) {
        let (offers, mut ask) = (offers(), Scripted::new(answers));
        let now = view(None).now;
        let picked = choose(&mut ask, &offers.iter().collect::<Vec<_>>(), now).unwrap();
        (picked, ask.asked)
    }

    #[test]
    fn what_is_chosen_is_confirmed_once() {
        let (picked, asked) = chosen([Answer::Pick(vec![0, 1]), Answer::Confirm(true)]);
        assert_eq!(picked, [0, 1]);
        assert_eq!(
            asked,
            [
                "Which of these shall go? spike    800 MB  wt/spike, landed, 5 days ago | a\\n        2 GB  wt/a\\n, landed, 5 days ago",
                "Remove spike and a\\n (2.8 GB)? Branches stay.",
            ]
        );
    }

    #[test]
    fn without_a_yes_nothing_is_chosen() {
        assert!(chosen([Answer::Pick(vec![1]), Answer::Confirm(false)]).0.is_empty());
        assert!(chosen([Answer::Pick(vec![1])]).0.is_empty());
        let (picked, asked) = chosen([]);
        assert!(picked.is_empty() && asked.len() == 1, "nothing is confirmed where nothing was picked");
        assert!(choose(&mut Scripted::default(), &[], view(None).now).unwrap().is_empty());
    }

    #[test]
    fn the_name_has_to_be_typed() {
        let typed = |name: &[u8], text: &str| {
            name_is_typed(&mut Scripted::new([Answer::Line(text.into())]), name).unwrap()
        };
        assert!(typed(b"spike", "spike"));
        assert!(typed(b"raw\xff", "raw\\xff"));
        for text in ["", "y", "Spike", "spike "] {
            assert!(!typed(b"spike", text), "{text:?}");
        }
        assert!(!typed(b"", ""));
        assert!(!name_is_typed(&mut Scripted::default(), b"spike").unwrap());
    }
}

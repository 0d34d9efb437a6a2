//! What the exit code says of a run.

use std::io;
use std::process::ExitCode;

/// How a run ended; the numbers are part of the contract with scripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exit {
    /// All is done, also when things were kept, offered, skipped or deferred.
    #[default]
    Done,
    /// A removal failed, absence could not be verified, or a configured engine failed.
    Failed,
    /// The command line or the configuration is wrong, or a terminal is needed.
    Usage,
    /// The kernel or the file system lacks what a safe removal needs; nothing was touched.
    Unsupported,
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Unsupported => 3,
        }
    }

    /// Of two parts of a run the one that a person has to know first: what was asked wrongly, then what is left half
    /// done, then what was not begun.
    pub fn and(self, other: Exit) -> Exit {
        let rank = |exit: Exit| match exit {
            Exit::Done => 0,
            Exit::Unsupported => 1,
            Exit::Failed => 2,
            Exit::Usage => 3,
        };
        if rank(other) > rank(self) { other } else { self }
    }

    /// A reader that has seen enough (`treesweep | head`) is no failure; another error of the output is one.
    pub fn of_output(written: &io::Result<()>) -> Exit {
        match written {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Exit::Failed,
            _ => Exit::Done,
        }
    }
}

impl FromIterator<Exit> for Exit {
    fn from_iter<I: IntoIterator<Item = Exit>>(parts: I) -> Exit {
        parts.into_iter().fold(Exit::Done, Exit::and)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Exit::*;

    const ALL: [Exit; 4] = [Done, Failed, Usage, Unsupported];

    #[test]
    fn the_numbers_are_the_contract() {
        assert_eq!(ALL.map(Exit::code), [0, 1, 2, 3]);
    }

    #[test]
    fn a_failure_outweighs_what_was_not_begun() {
        assert_eq!(Exit::from_iter([]), Done);
        assert_eq!(Exit::from_iter([Done, Unsupported, Done]), Unsupported);
        assert_eq!(Exit::from_iter([Unsupported, Failed]), Failed);
        assert_eq!(Exit::from_iter([Failed, Usage, Done]), Usage);
    }

    #[test]
    fn the_order_of_the_parts_does_not_matter() {
        for a in ALL {
            assert_eq!(a.and(a), a);
            assert_eq!(a.and(Done), a);
            for b in ALL {
                assert_eq!(a.and(b), b.and(a));
            }
        }
    }

    #[test]
    fn a_broken_pipe_is_success() {
        assert_eq!(Exit::of_output(&Ok(())), Done);
        assert_eq!(Exit::of_output(&Err(io::ErrorKind::BrokenPipe.into())), Done);
        assert_eq!(Exit::of_output(&Err(io::ErrorKind::StorageFull.into())), Failed);
    }
}

//! A thread that is not confined, for questions that a confined one can't ask.
//!
//! The kernel lets a thread under Landlock look into no process outside its domain: `/proc/<pid>/cwd` and `root` answer
//! `EACCES`, as if nobody were in the checkout. Whoever looks for processes on behalf of a sweep asks here.

use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread::Scope;

type Question<'env> = Box<dyn FnOnce() + Send + 'env>;

/// The way to that thread, which ends when the last of these is dropped.
#[derive(Clone)]
pub struct Outside<'env>(Sender<Question<'env>>);

/// The thread is gone: it could not be started, or a question made it panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the thread that looks for processes is gone")]
pub struct Gone;

impl<'env> Outside<'env> {
    /// Starts it from a thread that is not confined yet.
    pub fn start<'scope>(scope: &'scope Scope<'scope, 'env>) -> std::io::Result<Self>
    where
        'env: 'scope,
    {
        let (questions, asked) = channel::<Question<'env>>();
        std::thread::Builder::new().spawn_scoped(scope, move || asked.into_iter().for_each(|ask| ask()))?;
        Ok(Self(questions))
    }

    /// The answer, waited for.
    pub fn ask<T: Send + 'env>(&self, question: impl FnOnce() -> T + Send + 'env) -> Result<T, Gone> {
        let (answer, answered) = sync_channel(1);
        let question = Box::new(move || {
            // Whoever asked waits for it, unless it was killed.
            let _asker_is_gone = answer.send(question());
        });
        self.0.send(question).map_err(|_| Gone)?;
        answered.recv().map_err(|_| Gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::beneath::Dir;
    use crate::sweep::confine::{Confinement, confine};
    use crate::sweep::testing::{local, place};

    #[test]
    fn what_a_confined_thread_is_denied_is_answered_outside() {
        let tmp = place();
        let dir = Dir::open(&local(tmp.path())).unwrap();
        let mut child =
            std::process::Command::new("sleep").arg("60").current_dir(tmp.path()).spawn().unwrap();
        let cwd = format!("/proc/{}/cwd", child.id());
        std::thread::scope(|scope| {
            let outside = Outside::start(scope).unwrap();
            let (cwd, dir) = (cwd.clone(), &dir);
            scope.spawn(move || {
                let confined = confine(&[dir], &[]) == Confinement::Active;
                assert_eq!(std::fs::read_link(&cwd).is_err(), confined);
                let seen = outside.ask(move || std::fs::read_link(cwd)).unwrap();
                assert_eq!(seen.unwrap(), dir.path().as_path());
            });
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

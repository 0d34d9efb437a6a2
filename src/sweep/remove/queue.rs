//! The queue of directories and the threads that work it off.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use bstr::BString;

use crate::sweep::remove::deep;
use crate::sweep::remove::one::{Engine, Fault, Held, names};

/// Directories are held open down to this depth; times the threads, it bounds the open handles.
const HELD_DEPTH: usize = 32;

/// A directory of the tree, held open until all below it is gone.
struct Node {
    held: Held,
    /// `None`: below the top, which the caller holds and removes.
    parent: Option<Arc<Node>>,
    name: BString,
    depth: usize,
    /// Directories in it that are not gone yet, and one while its names are read.
    pending: AtomicUsize,
    /// It was emptied and not empty then; it gets no third pass.
    again: AtomicBool,
}

/// A directory that waits to be opened.
struct Task {
    parent: Option<Arc<Node>>,
    name: BString,
}

struct Queue<'a> {
    engine: &'a Engine<'a>,
    top: &'a Held,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    tasks: Vec<Task>,
    running: usize,
    fault: Option<Fault>,
}

/// Removes everything in `top` except the name `keep`, on up to `jobs` threads, of which the caller's is one: with one
/// job no other thread changes anything.
pub(super) fn empty(engine: &Engine<'_>, top: &Held, keep: &[u8], jobs: NonZeroUsize) -> Result<(), Fault> {
    engine.ask_stop()?;
    let mut tasks = Vec::new();
    engine.empty(top, keep, &mut |name| {
        tasks.push(Task { parent: None, name: name.into() });
        ControlFlow::Continue(())
    })?;
    // One directory at a time needs no help.
    let helpers = jobs.get().min(tasks.len()).saturating_sub(1);
    let queue =
        Queue { engine, top, state: Mutex::new(State { tasks, ..State::default() }), wake: Condvar::new() };
    #[cfg(test)]
    let points = crate::sweep::act::interleave::of_this_thread();
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            let work = || {
                #[cfg(test)]
                crate::sweep::act::interleave::enter(points.clone());
                queue.work();
            };
            // Without a further thread those that run do its work.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        queue.work();
    });
    let state = queue.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.fault.map_or(Ok(()), Err)
}

impl Queue<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        while let Some(task) = self.next() {
            let running = Running(self);
            if let Err(fault) = self.remove(task) {
                self.lock().fault.get_or_insert(fault);
            }
            drop(running);
        }
    }

    /// The newest task, so that what is begun is finished first; `None` when all is done or something went wrong.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if state.fault.is_some() {
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.running += 1;
                return Some(task);
            }
            if state.running == 0 {
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn remove(&self, task: Task) -> Result<(), Fault> {
        let Task { parent, name } = task;
        let (holder, depth) = match &parent {
            Some(node) => (&node.held, node.depth + 1),
            None => (self.top, 1),
        };
        let within = |fault: Fault| place(fault, &name, parent.as_ref());
        let opened = self.engine.ask_stop().and_then(|()| self.engine.open(holder, &name));
        // `open` names the directory itself.
        let opened = opened.map_err(|fault| match &parent {
            Some(node) => place(fault, &node.name, node.parent.as_ref()),
            None => fault,
        })?;
        let Some(held) = opened else { return self.gone(parent) };
        if depth >= HELD_DEPTH {
            deep::empty(self.engine, &held).map_err(within)?;
        }
        let (pending, again) = (AtomicUsize::new(0), AtomicBool::new(false));
        self.scan(&Arc::new(Node { held, parent, name, depth, pending, again }))
    }

    /// Empties `node` of files and queues its directories; the last one of those to go removes it.
    fn scan(&self, node: &Arc<Node>) -> Result<(), Fault> {
        // Counted while its names are read: a directory of it that goes meanwhile must not find itself the last.
        node.pending.store(1, Ordering::Release);
        self.engine
            .empty(&node.held, b"", &mut |name| {
                node.pending.fetch_add(1, Ordering::Relaxed);
                self.push(Task { parent: Some(Arc::clone(node)), name: name.into() });
                ControlFlow::Continue(())
            })
            .map_err(|fault| place(fault, &node.name, node.parent.as_ref()))?;
        self.gone(Some(Arc::clone(node)))
    }

    fn push(&self, task: Task) {
        self.lock().tasks.push(task);
        self.wake.notify_one();
    }

    /// One directory of `node` is gone, or its names are read: if it was the last, `node` goes too, and so on upwards.
    fn gone(&self, mut node: Option<Arc<Node>>) -> Result<(), Fault> {
        while let Some(this) = node {
            if this.pending.fetch_sub(1, Ordering::AcqRel) != 1 {
                return Ok(());
            }
            let holder = this.parent.as_ref().map_or(self.top, |p| &p.held);
            let removed = self.engine.rmdir(holder, &this.name).map_err(|fault| match &this.parent {
                Some(parent) => place(fault, &parent.name, parent.parent.as_ref()),
                None => fault,
            })?;
            if !removed {
                if this.again.swap(true, Ordering::Relaxed) {
                    let here = |fault| place(fault, &this.name, this.parent.as_ref());
                    let left = names(&this.held.fd).map_err(|errno| here(Fault::errno(b".", errno)))?;
                    return Err(here(Fault::reappeared(&left)));
                }
                return self.scan(&this);
            }
            node = this.parent.clone();
        }
        Ok(())
    }
}

/// A fault in the directory `name`, named from the top.
fn place(fault: Fault, name: &BString, parent: Option<&Arc<Node>>) -> Fault {
    let mut fault = fault.within(name);
    let mut at = parent;
    while let Some(node) = at {
        fault = fault.within(&node.name);
        at = node.parent.as_ref();
    }
    fault
}

/// Counts one task as running, and wakes those that wait for more, also if it panics.
struct Running<'q, 'a>(&'q Queue<'a>);

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        if state.running == 0 || state.fault.is_some() {
            self.0.wake.notify_all();
        }
    }
}

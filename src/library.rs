//! treesweep for other programs: look beneath some roots, read the plan, remove what recorded ownership answers for.
//!
//! It is what the command line does, without a terminal: [`Survey::plan`] is what `treesweep plan` shows, and
//! [`Survey::sweep`] what `treesweep prune --yes` does. What takes a person's act can't be done from here.
//!
//! ```no_run
//! use std::path::PathBuf;
//! use treesweep::library::{Silent, Treesweep};
//!
//! # fn main() -> Result<(), treesweep::library::Error> {
//! let treesweep = Treesweep::beneath(&[PathBuf::from("/home/me/src")])?;
//! let survey = treesweep.survey(&Silent)?;
//! for row in survey.plan().clones.iter().flat_map(|clone| &clone.worktrees) {
//!     println!("{:?} {:?}", row.name.text, row.verdict);
//! }
//! let report = survey.sweep(&Silent)?;
//! println!("{} outcomes", report.outcomes.len());
//! # Ok(())
//! # }
//! ```

use std::path::{Path, PathBuf};

pub use crate::config::Sources;
pub use crate::plan::{Plan, Report};
pub use crate::report::progress::{Event, Progress, Silent};
pub use crate::session::SessionError as Error;

use crate::beneath;
use crate::config::{Layer, Origin, Setting};
use crate::reclaim::{Reclaimed, automatic, reclaim, report};
use crate::session::{Seen, Session};
use crate::state_dir::StateDir;
use crate::vantage::paths::LocalPath;

/// Settings, and the roots beneath which is looked.
pub struct Treesweep {
    session: Session,
    state: LocalPath,
}

impl Treesweep {
    /// Beneath `roots`, with the environment and the config file of this process's user.
    ///
    /// # Errors
    /// A root is not there, the config file can't be understood, or no home directory is known.
    pub fn beneath(roots: &[PathBuf]) -> Result<Self, Error> {
        let typed = roots.iter().map(|root| Setting::new(root.clone(), Origin::Flag("roots")));
        let sources = Sources::of_process(Layer { roots: typed.collect(), ..Layer::default() })?;
        Ok(Self { session: Session::with(sources, Path::new("/"), &[])?, state: StateDir::default_path()? })
    }

    /// With exactly these settings, and `state` (absolute) in the place of the user's own state directory.
    ///
    /// # Errors
    /// A root is not there, or a setting can't be understood.
    pub fn with(sources: Sources, state: &Path) -> Result<Self, Error> {
        let absolute = || Error::Root {
            path: crate::vantage::paths::escape(state.as_os_str().as_encoded_bytes()),
            why: "is not absolute".to_owned(),
        };
        let state = LocalPath::new(state).ok_or_else(absolute)?;
        Ok(Self { session: Session::with(sources, Path::new("/"), &[])?, state })
    }

    /// Looks at everything and judges it. Nothing is changed.
    ///
    /// # Errors
    /// The engines could not be asked at all, or the state directory can't be trusted.
    pub fn survey(&self, progress: &dyn Progress) -> Result<Survey<'_>, Error> {
        let state = StateDir::open_existing(&self.state)?;
        let seen = self.session.look(state.as_ref(), None, progress)?;
        Ok(Survey { treesweep: self, seen })
    }
}

/// What was seen, and what would be done.
pub struct Survey<'t> {
    treesweep: &'t Treesweep,
    seen: Seen,
}

impl Survey<'_> {
    pub fn plan(&self) -> &Plan {
        &self.seen.plan
    }

    /// Removes what the plan reclaims and forgets, each after it has been judged once more. What changed meanwhile, or
    /// could not be done, is an outcome with its reason, or a warning of the plan.
    ///
    /// # Errors
    /// The kernel lacks what a safe removal needs, or the state directory can't be written.
    pub fn sweep(mut self, progress: &dyn Progress) -> Result<Report, Error> {
        let unsafe_here = |why| Error::Root { path: "/".to_owned(), why };
        beneath::supported().map_err(unsafe_here)?;
        let state = StateDir::open(&self.treesweep.state)?;
        let orders = automatic(&self.seen);
        let done = match orders.is_empty() {
            true => Reclaimed::default(),
            false => reclaim(&self.treesweep.session, &mut self.seen.terrain, &state, orders, progress),
        };
        let mut all = report(self.seen.plan, &done);
        all.plan.warnings.extend(done.warnings);
        all.plan.warnings.extend(done.refused.into_iter().map(|(why, _)| why));
        Ok(all)
    }
}

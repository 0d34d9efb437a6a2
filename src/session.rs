//! What every command starts with: settings, roots, the world outside, and the terrain.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use bstr::{BStr, ByteSlice};

use crate::beneath::{Dir, Stamp};
use crate::cli::args::Invocation;
use crate::config::{ConfigError, Engines, Settings, Sources, resolve};
use crate::engine::endpoints::{EndpointSources, EngineChoice};
use crate::engine::world::{GatherError, GatherOptions, Gatherer, World};
use crate::git::index::Depth;
use crate::git::registration::Worktrees;
use crate::judge::rules::Policy;
use crate::plan::Plan;
use crate::planning::{self, Leftovers};
use crate::report::progress::{Progress, Silent};
use crate::state_dir::{StateDir, StateError};
use crate::stop::Stop;
use crate::survey::discover::{CloneSite, EnclosingClone, Field, Root, Scope, discover, enclosing_clone};
use crate::survey::examine::{ClonePlace, Inquiry};
use crate::survey::holds::translators;
use crate::survey::run::{Candidate, SurveyedClone, clone_places, known_checkouts, survey};
use crate::survey::terrain::Terrain;
use crate::sweep::remove;
use crate::sweep::resume::{Interrupted, pending};
use crate::vantage::own_container::OwnContainer;
use crate::vantage::paths::{EntryName, FileId, LocalPath, RecordedPath, escape};
use crate::vantage::translate::{TranslationKind, Translator};

/// How far around a clone is looked for checkouts and for clones that could be confused with it, when no root is named.
const AROUND: usize = 3;

/// Why a command can't begin.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("{path}: {why}")]
    Root { path: String, why: String },
    #[error(
        "no clone is here, and the configuration names no roots: go into a clone, or name a directory to look in"
    )]
    NoRoot,
    #[error(transparent)]
    World(#[from] GatherError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("no threads could be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// The settings of one run and what they lead to.
pub struct Session {
    pub settings: Settings,
    pub roots: Vec<Root>,
    pub gatherer: Gatherer,
    pub stop: Stop,
    pub warnings: Vec<String>,
    /// Ctrl-C and SIGTERM ask a removal to stop.
    pub listens: bool,
    /// Threads for looking.
    pool: rayon::ThreadPool,
}

/// Everything that was seen, for one plan.
pub struct Seen {
    pub terrain: Terrain,
    pub world: World,
    pub policy: Policy,
    pub clones: Vec<SurveyedClone>,
    /// Of each of these clones.
    pub leftovers: Vec<Leftovers>,
    pub plan: Plan,
}

impl Session {
    /// `subjects` are paths that a person named: without a root, the clones that they belong to are looked at.
    pub fn begin(invocation: &Invocation, subjects: &[PathBuf]) -> Result<Self, SessionError> {
        let session = Self::with(Sources::of_process(invocation.flags.clone())?, &invocation.cwd, subjects)?;
        Ok(Self { listens: true, ..session })
    }

    /// With exactly these settings, for a program that handles its signals itself.
    pub fn with(sources: Sources, cwd: &Path, subjects: &[PathBuf]) -> Result<Self, SessionError> {
        let resolved = resolve(sources)?;
        let settings = resolved.settings;
        let mut warnings = resolved.warnings;
        let roots = roots(&settings, cwd, subjects, &mut warnings)?;
        let choice = match &settings.engines.value {
            Engines::Auto => EngineChoice::Auto,
            Engines::None => EngineChoice::None,
            Engines::Socket(path) => EngineChoice::Socket(path.clone()),
        };
        let bounds = roots.iter().map(|r| r.path.clone()).collect();
        let mut options = GatherOptions::new(choice, EndpointSources::of_this_process(), bounds);
        let ignored = settings.ignored_sockets.iter().map(|s| escape(s.value.as_os_str().as_bytes()));
        options.ignore = ignored.collect();
        let stop = match &settings.time_limit {
            Some(limit) => Stop::at(Instant::now() + limit.value),
            None => Stop::never(),
        };
        let lookers = settings.jobs.as_ref().map_or_else(cores, |jobs| jobs.value);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(lookers.get()).build()?;
        Ok(Self { settings, roots, gatherer: Gatherer::new(options), stop, warnings, pool, listens: false })
    }

    /// Looks for everything beneath the roots, and asks engines and processes meanwhile.
    pub fn see(&self) -> Result<(World, Terrain), SessionError> {
        let (world, field) = std::thread::scope(|scope| {
            let walking = scope.spawn(|| self.field());
            let world = self.gatherer.gather();
            (world, walking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let world = world?;
        let bounds = self.roots.iter().map(|r| r.path.clone()).collect();
        let translators = |site: &CloneSite| self.translators(site, &world);
        let survey = || Terrain::survey(bounds, field, infers(&world), translators);
        let terrain = self.pool.install(survey);
        Ok((world, terrain))
    }

    /// Looks again at what the join of `candidate` of clone `c` rests on, with the containers that `world` knows.
    pub fn look_again(&self, terrain: &mut Terrain, c: usize, candidate: &Candidate, world: &World) {
        terrain.look_again(c, candidate, infers(world), |site| self.translators(site, world));
    }

    /// Looks for clones beneath the roots; engines and processes are not asked.
    pub fn field(&self) -> Field {
        self.pool.install(|| discover(&self.roots, &self.stop))
    }

    /// What the questions of this run are asked with.
    pub fn inquiry<'a>(
        &'a self,
        world: &'a World,
        state: Option<&'a StateDir>,
        policy: &'a Policy,
        known_checkouts: &'a HashSet<FileId>,
        clones: &'a [ClonePlace],
    ) -> Inquiry<'a> {
        Inquiry {
            settings: &self.settings,
            precious: &self.settings.precious,
            world,
            state,
            policy,
            depth: Depth::Plan,
            thorough: false,
            known_checkouts,
            clones,
            stop: &self.stop,
            progress: &Silent,
        }
    }

    /// Looks at everything and judges it. With the name of a worktree to `explain`, every question is asked, and the plan
    /// has the answers for that name.
    pub fn look(
        &self,
        state: Option<&StateDir>,
        explain: Option<&BStr>,
        progress: &dyn Progress,
    ) -> Result<Seen, SessionError> {
        let (world, terrain) = self.see()?;
        let mut policy = self.policy();
        let (mut known, clones) = (known_checkouts(&terrain), clone_places(&terrain));
        // What this program began to remove is no part of the worktree that it lies in: it goes first.
        for interrupted in all_interrupted(&terrain, state) {
            known.extend(interrupted.checkout);
            policy.going.extend(interrupted.path.into_iter().chain(interrupted.trash));
        }
        let thorough = explain.is_some();
        let inquiry = Inquiry { thorough, progress, ..self.inquiry(&world, state, &policy, &known, &clones) };
        let clones = self.pool.install(|| survey(&terrain, &inquiry));
        let leftovers = leftovers(&terrain, &clones, state);
        let mut plan = planning::plan(&terrain, &clones, &world, &policy, &leftovers, explain);
        plan.warnings.splice(0..0, self.warnings.iter().cloned());
        Ok(Seen { terrain, world, policy, clones, leftovers, plan })
    }

    /// The translations for one clone, best first: identity, containers, labels, the user's maps.
    pub fn translators(&self, site: &CloneSite, world: &World) -> Vec<Translator> {
        let mut all = vec![Translator::Identity];
        if infers(world) {
            all.extend(translators(site, world));
        }
        all.extend(self.settings.maps.iter().map(|map| Translator::Prefix {
            kind: TranslationKind::Map,
            from: map.value.container.clone(),
            // The roots are resolved, so that what is typed has to be.
            to: resolved(map.value.host.as_path()).unwrap_or_else(|_| map.value.host.clone()),
            evidence: format!("--map {}={}", map.value.container, map.value.host),
        }));
        all
    }

    /// The judge's policy, with the time of now.
    pub fn policy(&self) -> Policy {
        let seconds = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
        Policy {
            now: now(),
            idle: seconds(self.settings.idle.value),
            unstarted_after: seconds(self.settings.unstarted_after.value),
            going: Default::default(),
        }
    }

    /// Threads for deleting: more than there are cores, as each waits for the disk most of the time.
    pub fn deleters(&self) -> NonZeroUsize {
        let named = self.settings.jobs.as_ref().map(|jobs| jobs.value);
        named.unwrap_or_else(|| cores().saturating_mul(remove::THREADS_PER_CORE))
    }
}

fn cores() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// The time, for ages.
pub fn now() -> Stamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Stamp { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

/// Inside a container that no engine answers for, only the own vantage is judged: what paths mean elsewhere can't be
/// known there.
fn infers(world: &World) -> bool {
    match &world.own_container {
        OwnContainer::No => true,
        _ => world
            .engines
            .iter()
            .flat_map(|e| &e.containers)
            .any(|c| c.role == crate::engine::containers::Role::Own),
    }
}

/// Interrupted removals of all clones; journals that can't be read are told of with the clone's rows.
fn all_interrupted(terrain: &Terrain, state: Option<&StateDir>) -> Vec<Interrupted> {
    let clones = terrain.field.clones.iter().zip(std::iter::repeat(state));
    let read = clones.filter_map(|(site, state)| pending(state?, site.common_id).ok());
    read.flat_map(|(interrupted, _)| interrupted).collect()
}

/// Interrupted removals and unknown trash, for each surveyed clone.
fn leftovers(terrain: &Terrain, clones: &[SurveyedClone], state: Option<&StateDir>) -> Vec<Leftovers> {
    let mut all: Vec<Leftovers> = clones
        .iter()
        .map(|clone| {
            let site = &terrain.field.clones[clone.clone];
            match state.map(|state| pending(state, site.common_id)) {
                None => Leftovers::default(),
                Some(Ok((interrupted, warnings))) => Leftovers { interrupted, unknown: Vec::new(), warnings },
                Some(Err(error)) => Leftovers { warnings: vec![error.to_string()], ..Leftovers::default() },
            }
        })
        .collect();
    for trash in &terrain.field.trash {
        let known = all.iter().flat_map(|l| &l.interrupted).any(|i| i.trash.as_ref() == Some(trash));
        let holder =
            terrain.nearest_clone(trash).and_then(|c| clones.iter().position(|known| known.clone == c));
        if let (false, Some(at)) = (known, holder) {
            all[at].unknown.push(trash.clone());
        }
    }
    all
}

/// The roots of a run: those that were typed, else around the clones of `subjects`, else around the clone that the
/// current directory is in, else the configured ones. All that any layer names are evidence against ambiguity.
fn roots(
    settings: &Settings,
    cwd: &Path,
    subjects: &[PathBuf],
    warnings: &mut Vec<String>,
) -> Result<Vec<Root>, SessionError> {
    let mut roots = Vec::new();
    for typed in &settings.roots.typed {
        roots.push(Root { path: resolved(&typed.value)?, scope: Scope::All, depth: None });
    }
    if roots.is_empty() {
        let found = subjects.iter().map(|s| around(s, Scope::All)).collect::<Result<Vec<_>, _>>()?;
        for root in found.into_iter().flatten() {
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
    }
    if roots.is_empty() {
        // What a `.git` file says must not widen a sweep: around a checkout of unknown origin nothing is swept.
        roots.extend(around(cwd, Scope::Evidence)?);
        if roots.iter().all(|root| root.scope == Scope::Evidence) {
            roots.clear();
        }
    }
    if roots.is_empty() {
        for configured in &settings.roots.configured {
            match resolved(&configured.value) {
                Ok(path) => roots.push(Root { path, scope: Scope::All, depth: None }),
                Err(error) => warnings.push(format!("a configured root is not looked into: {error}")),
            }
        }
    }
    if roots.is_empty() {
        return Err(SessionError::NoRoot);
    }
    for known in &settings.roots.known {
        match resolved(&known.value) {
            Ok(path) if roots.iter().any(|r| path.is_beneath_or_at(&r.path) && r.depth.is_none()) => {}
            Ok(path) => roots.push(Root { path, scope: Scope::Evidence, depth: None }),
            // One that is not there (a disk, another machine) can hold nothing that could be confused.
            Err(_) if matches!(known.value.try_exists(), Ok(false)) => {}
            Err(error) => warnings.push(format!("a configured root is not looked into: {error}")),
        }
    }
    Ok(roots)
}

/// Roots for the clone that `path` lies in: the directory that holds the clone, and the one that holds the checkout.
/// `otherwise` is what is swept around a checkout of which it can't be told whose it is.
fn around(path: &Path, otherwise: Scope) -> Result<Vec<Root>, SessionError> {
    let Ok(path) = resolved(path) else { return Ok(Vec::new()) };
    let fail =
        |why: &dyn std::fmt::Display| SessionError::Root { path: path.to_string(), why: why.to_string() };
    let holding = |clone: LocalPath| Root {
        path: clone.parent().unwrap_or_else(|| clone.clone()),
        scope: Scope::Only(clone),
        depth: Some(AROUND),
    };
    match enclosing_clone(&path).map_err(|e| fail(&e))? {
        None => Ok(Vec::new()),
        Some(EnclosingClone::Clone(clone)) => Ok(vec![holding(clone)]),
        Some(EnclosingClone::Checkout { dir, target }) => {
            let beside = dir.parent().unwrap_or_else(|| dir.clone());
            let around_checkout = |scope| Root { path: beside.clone(), scope, depth: Some(AROUND) };
            if let Some(clone) = clone_of(&dir, &target) {
                let holding = holding(clone);
                // A root of its own only where that one does not reach: what contains a root can't be reclaimed.
                return Ok(match beside.is_beneath_or_at(&holding.path) {
                    true => vec![holding],
                    false => vec![holding, around_checkout(Scope::Evidence)],
                });
            }
            match enclosing_clone(&beside).map_err(|e| fail(&e))? {
                Some(EnclosingClone::Clone(clone)) => Ok(vec![holding(clone)]),
                // A worktree within a worktree: whatever holds that one holds this one.
                Some(EnclosingClone::Checkout { dir, .. }) => around(dir.as_path(), otherwise),
                None => Ok(vec![around_checkout(otherwise)]),
            }
        }
    }
}

/// The clone that the checkout at `dir` is of, as its pointer `target` says: by a path of this host, to a clone that has
/// it in its registrations or lies around it; or by the name that a container had for a clone above it or beside it.
fn clone_of(dir: &LocalPath, target: &RecordedPath) -> Option<LocalPath> {
    let entry = target.resolved_from(&RecordedPath::new(dir.as_bstr()))?;
    let called = entry.parent()?.parent()?;
    let mut above = std::iter::successors(dir.parent(), LocalPath::parent).take(AROUND);
    let real = PathBuf::from(called.as_bstr().to_path_lossy().as_ref()).canonicalize();
    if let Some(common) = real.ok().and_then(LocalPath::new) {
        let own_dir = matches!(common.file_name().map(|n| n.as_bytes()), Some(b".git" | b".bare"));
        let clone = if own_dir { common.parent()? } else { common.clone() };
        let near = dir.is_beneath_or_at(&clone) || above.any(|above| Some(above) == clone.parent());
        let named = || {
            let name = EntryName::new(entry.components().next_back()?)?;
            let known = Worktrees::open(&Dir::open(&common).ok()?).ok()??.registration(name.clone());
            let here = RecordedPath::new(common.join(b"worktrees")?.join(name.as_bstr())?.as_bstr());
            known.recorded.ok()?.resolved_from(&here)
        };
        return (near || named().is_some_and(|named| named.as_bstr() == dir.as_bstr())).then_some(clone);
    }
    let name = called.without_dot_git().components().next_back()?.to_owned();
    above.filter_map(|above| above.join(&name)).find(
        |clone| matches!(enclosing_clone(clone), Ok(Some(EnclosingClone::Clone(found))) if found == *clone),
    )
}

fn resolved(path: &Path) -> Result<LocalPath, SessionError> {
    let shown = || escape(path.as_os_str().as_bytes());
    let real = path.canonicalize().map_err(|e| SessionError::Root { path: shown(), why: e.to_string() })?;
    LocalPath::new(real)
        .ok_or_else(|| SessionError::Root { path: shown(), why: "is not absolute".to_owned() })
}

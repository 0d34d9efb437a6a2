//! What one source of settings says, and how the layers become one.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use super::value::BadValue;
use super::{
    BranchTemplate, Color, Engines, Live, MarkerPath, Origin, PathMap, Pattern, Precious, Protect, Roots,
    Setting, Settings,
};

/// The branch templates without any configuration.
const TEMPLATES: &[&str] = &["wt/{name}", "{name}", "worktree-{name}"];
const IDLE: Duration = Duration::from_secs(3_600);
const UNSTARTED_AFTER: Duration = Duration::from_secs(7 * 86_400);
const HISTORY_LIMIT: Duration = Duration::from_secs(60);
const RETIRED_KEEP: Duration = Duration::from_secs(90 * 86_400);

/// What one source says; what it leaves out is `None` or empty.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    pub roots: Vec<Setting<PathBuf>>,
    pub trunk: Option<Setting<BString>>,
    pub templates: Option<Setting<Vec<BranchTemplate>>>,
    pub markers: Vec<Setting<MarkerPath>>,
    pub idle: Option<Setting<Duration>>,
    pub unstarted_after: Option<Setting<Duration>>,
    pub history_limit: Option<Setting<Duration>>,
    pub protect: Vec<Setting<Pattern>>,
    /// In the place of the default; an empty list is one too.
    pub precious: Option<Vec<Setting<Pattern>>>,
    pub precious_extra: Vec<Setting<Pattern>>,
    pub maps: Vec<Setting<PathMap>>,
    pub jobs: Option<Setting<NonZeroUsize>>,
    pub time_limit: Option<Setting<Duration>>,
    pub engines: Option<Setting<Engines>>,
    pub ignored_sockets: Vec<Setting<PathBuf>>,
    pub live: Option<Setting<Live>>,
    pub retired_keep: Option<Setting<Duration>>,
    pub color: Option<Setting<Color>>,
}

/// The environment's layer has nothing but what it may set; so no rule here says what it may not.
pub(super) fn settle(file: Layer, env: Layer, flags: Layer) -> Result<Settings, BadValue> {
    let limit = match (file.time_limit, env.time_limit) {
        (Some(file), Some(env)) => Some(if env.value < file.value { env } else { file }),
        (file, env) => env.or(file),
    };
    let protect = [file.protect, env.protect, flags.protect].concat();
    let precious = match file.precious {
        Some(list) => list,
        None => default_precious()?,
    };
    Ok(Settings {
        roots: roots(file.roots, env.roots, flags.roots),
        trunk: flags.trunk.or(file.trunk),
        templates: match flags.templates.or(file.templates) {
            Some(list) => list,
            None => default(default_templates()?),
        },
        markers: file.markers,
        idle: flags.idle.or(file.idle).unwrap_or(default(IDLE)),
        unstarted_after: flags.unstarted_after.or(file.unstarted_after).unwrap_or(default(UNSTARTED_AFTER)),
        history_limit: file.history_limit.unwrap_or(default(HISTORY_LIMIT)),
        protect: Protect::new(protect)?,
        precious: Precious::new([precious, file.precious_extra].concat())?,
        maps: maps(file.maps, flags.maps),
        jobs: flags.jobs.or(env.jobs).or(file.jobs),
        time_limit: flags.time_limit.or(limit),
        engines: flags.engines.or(file.engines).unwrap_or(default(Engines::Auto)),
        ignored_sockets: file.ignored_sockets,
        live: flags.live.or(file.live).unwrap_or(default(Live::Used)),
        retired_keep: file.retired_keep.unwrap_or(default(RETIRED_KEEP)),
        color: flags.color.or(env.color).or(file.color).unwrap_or(default(Color::Auto)),
    })
}

fn default<T>(value: T) -> Setting<T> {
    Setting::new(value, Origin::Default)
}

fn default_templates() -> Result<Vec<BranchTemplate>, BadValue> {
    TEMPLATES.iter().map(|t| BranchTemplate::parse(t.as_bytes())).collect()
}

fn default_precious() -> Result<Vec<Setting<Pattern>>, BadValue> {
    Precious::DEFAULT.iter().map(|g| Pattern::parse(g.as_ref(), None).map(default)).collect()
}

fn roots(file: Vec<Setting<PathBuf>>, env: Vec<Setting<PathBuf>>, typed: Vec<Setting<PathBuf>>) -> Roots {
    let mut known: Vec<Setting<PathBuf>> = Vec::new();
    for root in typed.iter().chain(&env).chain(&file) {
        if !known.iter().any(|k| k.value == root.value) {
            known.push(root.clone());
        }
    }
    Roots { configured: if env.is_empty() { file } else { env }, typed, known }
}

/// A container's directory that the command line maps is mapped as it says there.
fn maps(file: Vec<Setting<PathMap>>, typed: Vec<Setting<PathMap>>) -> Vec<Setting<PathMap>> {
    let remapped = |map: &Setting<PathMap>| typed.iter().any(|t| t.container == map.container);
    let kept: Vec<_> = file.into_iter().filter(|m| !remapped(m)).collect();
    [typed, kept].concat()
}

//! The layer of the environment, which a repository may have set: it can show, name roots and narrow, nothing else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::ByteSlice;

use super::nearest::nearest;
use super::value::{BadValue, Color, duration, expand_home, jobs};
use super::{ConfigError, Layer, Origin, Pattern, Setting};
use crate::vantage::paths::escape;

const PREFIX: &str = "TREESWEEP_";

/// What the environment may set.
const MAY: &[&str] =
    &["TREESWEEP_ROOTS", "TREESWEEP_PROTECT", "TREESWEEP_JOBS", "TREESWEEP_TIME_LIMIT", "TREESWEEP_COLOR"];

/// What it may not, though there are such settings; each with the setting's key.
const MAY_NOT: &[(&str, &str)] = &[
    ("TREESWEEP_TRUNK", "trunk"),
    ("TREESWEEP_BRANCH_TEMPLATE", "branch-templates"),
    ("TREESWEEP_BRANCH_TEMPLATES", "branch-templates"),
    ("TREESWEEP_IDLE", "idle"),
    ("TREESWEEP_UNSTARTED_AFTER", "unstarted-after"),
    ("TREESWEEP_HISTORY_LIMIT", "history-limit"),
    ("TREESWEEP_PRECIOUS", "precious"),
    ("TREESWEEP_PRECIOUS_EXTRA", "precious-extra"),
    ("TREESWEEP_MAP", "map"),
    ("TREESWEEP_MARKERS", "ownership.markers"),
    ("TREESWEEP_OWNERSHIP_MARKERS", "ownership.markers"),
    ("TREESWEEP_ENGINE", "engines.use"),
    ("TREESWEEP_ENGINES_USE", "engines.use"),
    ("TREESWEEP_ENGINES_IGNORE", "engines.ignore"),
    ("TREESWEEP_RETIRED_KEEP", "retired.keep"),
    ("TREESWEEP_LIVE", "engines.live"),
    ("TREESWEEP_ENGINES_LIVE", "engines.live"),
];

/// The environment's settings, and a warning for each variable of ours that is ignored. A variable that is empty counts
/// as not set; one that narrows and can't be understood is an error, for ignoring it would widen.
pub(super) fn read(
    mut env: Vec<(OsString, OsString)>,
    home: Option<&Path>,
) -> Result<(Layer, Vec<String>), ConfigError> {
    let (mut layer, mut warnings) = (Layer::default(), Vec::new());
    env.retain(|(name, value)| name.as_bytes().starts_with(PREFIX.as_bytes()) && !value.is_empty());
    env.sort();
    for (name, value) in &env {
        match MAY.iter().find(|known| name == **known) {
            Some(variable) => set(&mut layer, variable, value, home)
                .map_err(|problem| ConfigError::Env { variable, problem })?,
            None => warnings.push(ignored(name)),
        }
    }
    Ok((layer, warnings))
}

fn set(
    layer: &mut Layer,
    variable: &'static str,
    value: &OsStr,
    home: Option<&Path>,
) -> Result<(), BadValue> {
    let origin = Origin::Env(variable);
    match variable {
        "TREESWEEP_ROOTS" => {
            for part in parts(value) {
                let root = expand_home(part, home)?;
                if !root.is_absolute() {
                    return Err(BadValue::NotAbsolute(escape(part.as_bytes())));
                }
                layer.roots.push(Setting::new(root, origin.clone()));
            }
        }
        "TREESWEEP_PROTECT" => {
            for part in parts(value) {
                layer.protect.push(Setting::new(Pattern::parse(part, home)?, origin.clone()));
            }
        }
        "TREESWEEP_JOBS" => layer.jobs = Some(Setting::new(jobs(text(value)?)?, origin)),
        "TREESWEEP_TIME_LIMIT" => layer.time_limit = Some(Setting::new(duration(text(value)?)?, origin)),
        _ => layer.color = Some(Setting::new(Color::parse(text(value)?)?, origin)),
    }
    Ok(())
}

/// A list is written as in `PATH`.
fn parts(value: &OsStr) -> impl Iterator<Item = &OsStr> {
    value.as_bytes().split_str(":").filter(|p| !p.is_empty()).map(OsStr::from_bytes)
}

fn text(value: &OsStr) -> Result<&str, BadValue> {
    value.to_str().ok_or_else(|| BadValue::NotText(escape(value.as_bytes())))
}

fn ignored(name: &OsStr) -> String {
    let shown = escape(name.as_bytes());
    if let Some((_, key)) = MAY_NOT.iter().find(|(known, _)| name == *known) {
        return format!(
            "{shown} is ignored: the environment can't set `{key}`; the config file and the command line can"
        );
    }
    // The prefix, which all have, must not make them look alike.
    match nearest(&shown[PREFIX.len()..], MAY.iter().map(|known| &known[PREFIX.len()..])) {
        Some(known) => format!("{shown} is ignored: there is no such setting; did you mean {PREFIX}{known}?"),
        None => format!("{shown} is ignored: there is no such setting"),
    }
}

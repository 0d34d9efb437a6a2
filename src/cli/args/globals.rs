//! The flags that every command takes, before its name or after it.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Args;
use clap::builder::PossibleValuesParser;
use clap::error::ErrorKind;

use super::error;
use crate::config::value::{BadValue, duration, jobs};
use crate::config::{BranchTemplate, Color, Engines, Layer, Live, Origin, PathMap, Pattern, Setting};
use crate::vantage::paths::escape;

/// As typed. They are no `global` arguments of clap, for of those it forgets the ones before the command when there
/// are others after it, and a forgotten `--protect` would widen a sweep.
#[derive(Args, Clone, Debug, Default)]
pub struct Globals {
    /// How a container's directory is called on this host (repeatable)
    #[arg(long, value_name = "CONTAINER=HOST", help_heading = JUDGING, hide_short_help = true)]
    map: Vec<OsString>,
    /// Container engine to ask: `auto`, `none` (there is none), or a socket [default: auto]
    #[arg(long, value_name = "ENGINE", help_heading = JUDGING, hide_short_help = true)]
    engine: Option<OsString>,
    /// When a running container that mounts something above a worktree holds it [default: used]
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(Live::NAMES), help_heading = JUDGING, hide_short_help = true)]
    live: Option<String>,
    /// The branch that work lands on [default: what the clone says]
    #[arg(long, value_name = "NAME", help_heading = JUDGING, hide_short_help = true)]
    trunk: Option<OsString>,
    /// How a worktree's branch is named after it (repeatable) [default: wt/{name}, {name}, worktree-{name}]
    #[arg(long, value_name = "TEMPLATE", help_heading = JUDGING, hide_short_help = true)]
    branch_template: Vec<OsString>,
    /// How long nothing may have happened in it, like 30m, 1h or 7d [default: 1h]
    #[arg(long, value_name = "DURATION", help_heading = JUDGING, hide_short_help = true)]
    idle: Option<OsString>,
    /// How long a worktree without a commit of its own is kept [default: 7d]
    #[arg(long, value_name = "DURATION", help_heading = JUDGING, hide_short_help = true)]
    unstarted_after: Option<OsString>,
    /// Keep what matches by name, branch or path (repeatable)
    #[arg(long, value_name = "GLOB", help_heading = JUDGING, hide_short_help = true)]
    protect: Vec<OsString>,
    /// Number of workers
    #[arg(long, value_name = "N", help_heading = JUDGING, hide_short_help = true)]
    jobs: Option<OsString>,
    /// Print one JSON document
    #[arg(long, help_heading = OUTPUT)]
    json: bool,
    /// Print progress as JSON, an object a line, and the document as the last one
    #[arg(long, help_heading = OUTPUT, hide_short_help = true)]
    json_lines: bool,
    /// Print only what was done, and failures
    #[arg(short, long, help_heading = OUTPUT)]
    quiet: bool,
    /// When to use colours
    #[arg(long, value_name = "WHEN", value_parser = PossibleValuesParser::new(Color::NAMES), help_heading = OUTPUT)]
    color: Option<String>,
    /// Run as if started in DIR
    #[arg(short = 'C', value_name = "DIR", help_heading = OUTPUT)]
    directory: Option<OsString>,
}

const JUDGING: &str = "Judging, on every command";
const OUTPUT: &str = "Output, on every command";

impl Globals {
    /// What was typed before the command, and `later` what was typed after it, which wins; lists are joined.
    pub(super) fn merge(self, later: Globals) -> Globals {
        Globals {
            map: [self.map, later.map].concat(),
            engine: later.engine.or(self.engine),
            live: later.live.or(self.live),
            trunk: later.trunk.or(self.trunk),
            branch_template: [self.branch_template, later.branch_template].concat(),
            idle: later.idle.or(self.idle),
            unstarted_after: later.unstarted_after.or(self.unstarted_after),
            protect: [self.protect, later.protect].concat(),
            jobs: later.jobs.or(self.jobs),
            json: later.json || self.json,
            json_lines: later.json_lines || self.json_lines,
            quiet: later.quiet || self.quiet,
            color: later.color.or(self.color),
            directory: later.directory.or(self.directory),
        }
    }

    pub(super) fn json(&self) -> bool {
        self.json || self.json_lines
    }

    pub(super) fn json_lines(&self) -> bool {
        self.json_lines
    }

    pub(super) fn quiet(&self) -> bool {
        self.quiet
    }

    pub(super) fn directory(&self) -> Option<&Path> {
        self.directory.as_deref().map(Path::new)
    }

    /// What the flags mean.
    pub(super) fn layer(&self, home: Option<&Path>) -> Result<Layer, clap::Error> {
        let mut layer = Layer::default();
        for map in &self.map {
            layer.maps.push(flag("--map", map, |m| PathMap::parse(m, home))?);
        }
        for glob in &self.protect {
            layer.protect.push(flag("--protect", glob, |g| Pattern::parse(g, home))?);
        }
        layer.engines = one("--engine", &self.engine, Engines::parse)?;
        layer.live = one("--live", &self.live, |t| Live::parse(text(t)?))?;
        layer.trunk = one("--trunk", &self.trunk, trunk)?;
        layer.templates = self.templates()?;
        layer.idle = one("--idle", &self.idle, |t| duration(text(t)?))?;
        layer.unstarted_after = one("--unstarted-after", &self.unstarted_after, |t| duration(text(t)?))?;
        layer.jobs = one("--jobs", &self.jobs, |t| jobs(text(t)?))?;
        layer.color = one("--color", &self.color, |t| Color::parse(text(t)?))?;
        Ok(layer)
    }

    fn templates(&self) -> Result<Option<Setting<Vec<BranchTemplate>>>, clap::Error> {
        const FLAG: &str = "--branch-template";
        let parse = |t: &OsString| flag(FLAG, t, |t| BranchTemplate::parse(t.as_encoded_bytes()));
        let list: Vec<_> =
            self.branch_template.iter().map(|t| parse(t).map(|s| s.value)).collect::<Result<_, _>>()?;
        Ok((!list.is_empty()).then(|| Setting::new(list, Origin::Flag(FLAG))))
    }

    /// The flags that bear on verdicts, to be typed again.
    pub(super) fn again(&self) -> Vec<OsString> {
        let one = |name: &'static str, value: Option<&OsStr>| value.map(|v| [name.into(), v.to_owned()]);
        let many = |name: &'static str, list: &[OsString]| -> Vec<[OsString; 2]> {
            list.iter().map(|v| [name.into(), v.clone()]).collect()
        };
        let single = [
            one("-C", self.directory.as_deref()),
            one("--engine", self.engine.as_deref()),
            one("--live", self.live.as_deref().map(OsStr::new)),
            one("--trunk", self.trunk.as_deref()),
            one("--idle", self.idle.as_deref()),
            one("--unstarted-after", self.unstarted_after.as_deref()),
        ];
        let lists = [
            many("--map", &self.map),
            many("--branch-template", &self.branch_template),
            many("--protect", &self.protect),
        ];
        single.into_iter().flatten().chain(lists.into_iter().flatten()).flatten().collect()
    }
}

/// The value of one flag; an error names the flag and what was typed.
pub(super) fn flag<T>(
    name: &'static str,
    typed: &OsStr,
    parse: impl Fn(&OsStr) -> Result<T, BadValue>,
) -> Result<Setting<T>, clap::Error> {
    match parse(typed) {
        Ok(value) => Ok(Setting::new(value, Origin::Flag(name))),
        Err(problem) => Err(error(ErrorKind::ValueValidation, format!("{name}: {problem}"))),
    }
}

/// The same for a flag that may be missing.
pub(super) fn one<T>(
    name: &'static str,
    typed: &Option<impl AsRef<OsStr>>,
    parse: impl Fn(&OsStr) -> Result<T, BadValue>,
) -> Result<Option<Setting<T>>, clap::Error> {
    typed.as_ref().map(|t| flag(name, t.as_ref(), parse)).transpose()
}

/// A value that has to be text.
pub(super) fn text(typed: &OsStr) -> Result<&str, BadValue> {
    typed.to_str().ok_or_else(|| BadValue::NotText(escape(typed.as_encoded_bytes())))
}

fn trunk(typed: &OsStr) -> Result<bstr::BString, BadValue> {
    if typed.is_empty() { Err(BadValue::Empty) } else { Ok(typed.as_encoded_bytes().into()) }
}

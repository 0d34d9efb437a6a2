//! The layer of the config file: TOML, read key by key, so that each value knows its line and no key passes unknown.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::nearest::nearest;
use super::value::{self, BadValue, BranchTemplate, Color, Engines, Live, MarkerPath, PathMap, expand_home};
use super::{ConfigError, Layer, Origin, Pattern, Problem, Setting};
use crate::vantage::paths::escape;

const TOP: &[&str] = &[
    "roots",
    "trunk",
    "branch-templates",
    "idle",
    "unstarted-after",
    "history-limit",
    "protect",
    "precious",
    "precious-extra",
    "map",
    "jobs",
    "time-limit",
    "ownership",
    "engines",
    "retired",
    "display",
];
const OWNERSHIP: &[&str] = &["markers"];
const ENGINES: &[&str] = &["use", "ignore", "live"];
const RETIRED: &[&str] = &["keep"];
const DISPLAY: &[&str] = &["color"];
const MAP: &[&str] = &["container", "host"];

type Value<'a, 'i> = &'a Spanned<DeValue<'i>>;
type Result<T> = std::result::Result<T, ConfigError>;

/// Reads the whole file into a layer; `home` is what `~` stands for, and where a relative root starts.
pub(super) fn read(path: &Path, text: &str, home: Option<&Path>) -> Result<Layer> {
    let reader = Reader { path: path.into(), text, home };
    let table = DeTable::parse(text).map_err(|e| {
        reader.error(e.span().unwrap_or_default(), Problem::Syntax(escape(e.message().as_bytes())))
    })?;
    let mut layer = Layer::default();
    for (key, value) in table.get_ref() {
        reader.top(&mut layer, key, value)?;
    }
    Ok(layer)
}

struct Reader<'a> {
    path: Arc<Path>,
    text: &'a str,
    home: Option<&'a Path>,
}

impl Reader<'_> {
    fn top(
        &self,
        layer: &mut Layer,
        key: &Spanned<toml::de::DeString<'_>>,
        value: Value<'_, '_>,
    ) -> Result<()> {
        let name = key.get_ref().as_ref();
        match name {
            "roots" => layer.roots = self.list(name, value, |t| self.root(t))?,
            "trunk" => layer.trunk = Some(self.one(name, value, |t| filled(t).map(Into::into))?),
            "branch-templates" => {
                let list = self.list(name, value, |t| BranchTemplate::parse(t.as_bytes()))?;
                let origin = self.origin(value.span());
                layer.templates = Some(Setting::new(list.into_iter().map(|t| t.value).collect(), origin));
            }
            "idle" => layer.idle = Some(self.one(name, value, value::duration)?),
            "history-limit" => layer.history_limit = Some(self.one(name, value, value::duration)?),
            "unstarted-after" => layer.unstarted_after = Some(self.one(name, value, value::duration)?),
            "protect" => layer.protect = self.globs(name, value)?,
            "precious" => layer.precious = Some(self.globs(name, value)?),
            "precious-extra" => layer.precious_extra = self.globs(name, value)?,
            "map" => layer.maps = self.maps(name, value)?,
            "jobs" => layer.jobs = Some(self.jobs(name, value)?),
            "time-limit" => layer.time_limit = Some(self.one(name, value, value::duration)?),
            "ownership" => self.table(name, value, OWNERSHIP, |key, _, value| {
                layer.markers = self.list(key, value, MarkerPath::parse)?;
                Ok(())
            })?,
            "engines" => self.table(name, value, ENGINES, |key, name, value| {
                match name {
                    "use" => layer.engines = Some(self.one(key, value, |t| Engines::parse(OsStr::new(t)))?),
                    "ignore" => layer.ignored_sockets = self.list(key, value, socket)?,
                    _ => layer.live = Some(self.one(key, value, Live::parse)?),
                }
                Ok(())
            })?,
            "retired" => self.table(name, value, RETIRED, |key, _, value| {
                layer.retired_keep = Some(self.one(key, value, value::duration)?);
                Ok(())
            })?,
            "display" => self.table(name, value, DISPLAY, |key, _, value| {
                layer.color = Some(self.one(key, value, Color::parse)?);
                Ok(())
            })?,
            _ => return Err(self.unknown(key.span(), name, name, TOP)),
        }
        Ok(())
    }

    /// Hands each key of a table, first as it is called from the top, to `each`, after a look whether it is known.
    fn table(
        &self,
        name: &str,
        value: Value<'_, '_>,
        known: &[&str],
        mut each: impl FnMut(&str, &str, Value<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.wrong(name, value, "a table"));
        };
        for (key, value) in table {
            let short = key.get_ref().as_ref();
            let full = format!("{name}.{short}");
            if !known.contains(&short) {
                return Err(self.unknown(key.span(), &full, short, known));
            }
            each(&full, short, value)?;
        }
        Ok(())
    }

    /// One string.
    fn one<T>(
        &self,
        key: &str,
        value: Value<'_, '_>,
        parse: impl Fn(&str) -> std::result::Result<T, BadValue>,
    ) -> Result<Setting<T>> {
        let DeValue::String(text) = value.get_ref() else {
            return Err(self.wrong(key, value, "a string"));
        };
        let parsed = parse(text).map_err(|problem| self.bad(key, value, problem))?;
        Ok(Setting::new(parsed, self.origin(value.span())))
    }

    /// A list of strings.
    fn list<T>(
        &self,
        key: &str,
        value: Value<'_, '_>,
        parse: impl Fn(&str) -> std::result::Result<T, BadValue>,
    ) -> Result<Vec<Setting<T>>> {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key, value, "a list of strings"));
        };
        items.iter().map(|item| self.one(key, item, &parse)).collect()
    }

    fn globs(&self, key: &str, value: Value<'_, '_>) -> Result<Vec<Setting<Pattern>>> {
        self.list(key, value, |t| Pattern::parse(OsStr::new(t), self.home))
    }

    /// `"CONTAINER=HOST"` or `{ container = "...", host = "..." }`, each any number of times.
    fn maps(&self, key: &str, value: Value<'_, '_>) -> Result<Vec<Setting<PathMap>>> {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(key, value, "a list"));
        };
        items.iter().map(|item| self.map(key, item)).collect()
    }

    fn map(&self, key: &str, item: Value<'_, '_>) -> Result<Setting<PathMap>> {
        if !item.get_ref().is_table() {
            return self.one(key, item, |t| PathMap::parse(OsStr::new(t), self.home));
        }
        let (mut container, mut host) = (None, None);
        self.table(key, item, MAP, |key, name, value| {
            let side = if name == "container" { &mut container } else { &mut host };
            *side = Some(self.one(key, value, |t| Ok(t.to_owned()))?.value);
            Ok(())
        })?;
        let lacks = |missing| self.error(item.span(), Problem::Incomplete { key: key.to_owned(), missing });
        let container = container.ok_or_else(|| lacks("container"))?;
        let host = host.ok_or_else(|| lacks("host"))?;
        let map = PathMap::new(container.as_bytes(), OsStr::new(&host), self.home)
            .map_err(|problem| self.bad(key, item, problem))?;
        Ok(Setting::new(map, self.origin(item.span())))
    }

    fn jobs(&self, key: &str, value: Value<'_, '_>) -> Result<Setting<std::num::NonZeroUsize>> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong(key, value, "a number"));
        };
        let jobs = value::jobs(number.as_str()).map_err(|problem| self.bad(key, value, problem))?;
        Ok(Setting::new(jobs, self.origin(value.span())))
    }

    /// A root may start at the home directory without saying so.
    fn root(&self, text: &str) -> std::result::Result<PathBuf, BadValue> {
        let path = expand_home(OsStr::new(filled(text)?), self.home)?;
        match self.home {
            _ if path.is_absolute() => Ok(path),
            Some(home) => Ok(home.join(path)),
            None => Err(BadValue::NoHome(escape(text.as_bytes()))),
        }
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        Origin::File { path: Arc::clone(&self.path), line: self.line(span) }
    }

    fn line(&self, span: Range<usize>) -> usize {
        let before = &self.text.as_bytes()[..span.start.min(self.text.len())];
        1 + before.iter().filter(|b| **b == b'\n').count()
    }

    fn error(&self, span: Range<usize>, problem: Problem) -> ConfigError {
        ConfigError::File { path: self.path.to_path_buf(), line: self.line(span), problem }
    }

    fn unknown(&self, span: Range<usize>, full: &str, short: &str, known: &[&str]) -> ConfigError {
        let prefix = &full[..full.len() - short.len()];
        let nearest = nearest(short, known.iter().copied()).map(|n| format!("{prefix}{n}"));
        self.error(span, Problem::UnknownKey { key: escape(full.as_bytes()), nearest })
    }

    fn wrong(&self, key: &str, value: Value<'_, '_>, expected: &'static str) -> ConfigError {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.error(value.span(), Problem::WrongType { key: key.to_owned(), expected, found })
    }

    fn bad(&self, key: &str, value: Value<'_, '_>, problem: BadValue) -> ConfigError {
        self.error(value.span(), Problem::Value { key: key.to_owned(), problem })
    }
}

fn filled(text: &str) -> std::result::Result<&str, BadValue> {
    if text.is_empty() { Err(BadValue::Empty) } else { Ok(text) }
}

fn socket(text: &str) -> std::result::Result<PathBuf, BadValue> {
    match Engines::parse(OsStr::new(text))? {
        Engines::Socket(path) => Ok(path),
        Engines::Auto | Engines::None => Err(BadValue::NotAbsolute(escape(text.as_bytes()))),
    }
}

/// Every key that the file knows, as it is called from the top.
#[cfg(test)]
pub(super) fn keys() -> Vec<String> {
    let tables = [("ownership", OWNERSHIP), ("engines", ENGINES), ("retired", RETIRED), ("display", DISPLAY)];
    let top = TOP.iter().filter(|k| tables.iter().all(|(t, _)| t != *k)).map(|k| k.to_string());
    top.chain(tables.iter().flat_map(|(t, keys)| keys.iter().map(move |k| format!("{t}.{k}")))).collect()
}

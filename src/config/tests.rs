//! The layers together.

use super::*;

fn with(file: &str, env: &[(&str, &str)], flags: Layer) -> Result<Resolved, ConfigError> {
    resolve(Sources {
        file: (!file.is_empty()).then(|| ("/c/config.toml".into(), file.to_owned())),
        env: env.iter().map(|(k, v)| (k.into(), v.into())).collect(),
        flags,
        home: Some("/home/me".into()),
    })
}

fn file(text: &str) -> Settings {
    with(text, &[], Layer::default()).unwrap().settings
}

fn error(text: &str) -> String {
    with(text, &[], Layer::default()).unwrap_err().to_string()
}

fn flag<T>(value: T) -> Setting<T> {
    Setting::new(value, Origin::Flag("--x"))
}

fn paths(roots: &[Setting<PathBuf>]) -> Vec<&str> {
    roots.iter().map(|r| r.to_str().unwrap()).collect()
}

#[test]
fn without_any_source_the_defaults_hold() {
    let s = file("");
    assert_eq!(s.idle, Setting::new(Duration::from_secs(3_600), Origin::Default));
    assert_eq!(s.unstarted_after.as_secs(), 7 * 86_400);
    assert_eq!(s.history_limit.as_secs(), 60);
    assert_eq!(s.retired_keep.as_secs(), 90 * 86_400);
    let templates: Vec<_> = s.templates.iter().map(ToString::to_string).collect();
    assert_eq!(templates, ["wt/{name}", "{name}", "worktree-{name}"]);
    assert_eq!(*s.engines, Engines::Auto);
    assert_eq!(*s.live, Live::Used);
    assert_eq!(*s.color, Color::Auto);
    assert_eq!(s.precious.patterns().len(), Precious::DEFAULT.len());
    assert!(s.trunk.is_none() && s.jobs.is_none() && s.time_limit.is_none());
    assert!(s.markers.is_empty() && s.maps.is_empty() && s.protect.patterns().is_empty());
}

const ALL: &str = r#"
roots = ["~/src", "work", "/srv"]
trunk = "develop"
branch-templates = ["me/{name}"]
idle = "2h"
unstarted-after = "0s"
history-limit = "5m"
protect = ["release*"]
precious = ["*.pem"]
precious-extra = ["*.tfstate"]
map = ["/workspaces/app=~/src/app", { container = "/w", host = "/srv/w" }]
jobs = 3
time-limit = "10m"

[ownership]
markers = ["discern/worktree-ready"]

[engines]
use = "/run/user/1000/docker.sock"
ignore = ["/var/run/docker.sock"]
live = "mounted"

[retired]
keep = "30d"

[display]
color = "never"
"#;

#[test]
fn every_key_of_the_file_is_read_with_its_line() {
    let s = file(ALL);
    assert_eq!(paths(&s.roots.configured), ["/home/me/src", "/home/me/work", "/srv"]);
    assert_eq!(s.roots.configured[0].origin.to_string(), "/c/config.toml:2");
    assert_eq!(s.trunk.unwrap().value, "develop");
    assert_eq!(s.templates.value.len(), 1);
    assert_eq!(s.idle.as_secs(), 7_200);
    assert_eq!(s.idle.origin.to_string(), "/c/config.toml:5");
    assert_eq!(s.unstarted_after.value, Duration::ZERO);
    assert_eq!(s.protect.hit([b"release-1".as_slice()]).unwrap().origin.to_string(), "/c/config.toml:8");
    assert!(
        s.precious.matches("a.pem".into())
            && s.precious.matches("a.tfstate".into())
            && !s.precious.matches(".env".into())
    );
    assert_eq!(s.maps.len(), 2);
    assert_eq!(s.maps[0].host.as_bstr(), "/home/me/src/app");
    assert_eq!(s.jobs.unwrap().get(), 3);
    assert_eq!(s.time_limit.unwrap().as_secs(), 600);
    assert_eq!(s.markers[0].to_string(), "discern/worktree-ready");
    assert_eq!(*s.engines, Engines::Socket("/run/user/1000/docker.sock".into()));
    assert_eq!(s.ignored_sockets[0].value, Path::new("/var/run/docker.sock"));
    assert_eq!(*s.live, Live::Mounted);
    assert_eq!(s.history_limit.as_secs(), 300);
    assert_eq!(s.retired_keep.as_secs(), 30 * 86_400);
    assert_eq!(*s.color, Color::Never);
}

#[test]
fn dotted_keys_and_arrays_of_tables_mean_the_same() {
    let s = file("engines.live = 'mounted'\n[[map]]\ncontainer = '/w'\nhost = '/srv/w'\n");
    assert_eq!(*s.live, Live::Mounted);
    assert_eq!(s.maps[0].origin.to_string(), "/c/config.toml:2");
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    for (text, expected) in [
        ("idel = '1h'", "/c/config.toml:1: unknown key `idel`; did you mean `idle`?"),
        ("\n\nfrobnicate = 1", "/c/config.toml:3: unknown key `frobnicate`"),
        (
            "[engines]\nlife = 'used'",
            "/c/config.toml:2: unknown key `engines.life`; did you mean `engines.live`?",
        ),
        ("idle = 3600", "/c/config.toml:1: `idle` is a string, not a number"),
        ("roots = '~/src'", "/c/config.toml:1: `roots` is a list of strings, not a string"),
        ("jobs = '4'", "/c/config.toml:1: `jobs` is a number, not a string"),
        ("jobs = 0", "/c/config.toml:1: `jobs`: `0` is not a number from 1 to 256"),
        ("engines = 'none'", "/c/config.toml:1: `engines` is a table, not a string"),
        ("map = [{ container = '/w' }]", "/c/config.toml:1: `map` lacks `host`"),
        (
            "branch-templates = [\n 'wt/{name}',\n 'x',\n]",
            "/c/config.toml:3: `branch-templates`: `x` needs `{name}` exactly once: it stands for the worktree's name",
        ),
        ("[engines]\nlive = 'yes'", "/c/config.toml:2: `engines.live`: `yes` is not one of used, mounted"),
        (
            "[engines]\nignore = ['docker.sock']",
            "/c/config.toml:2: `engines.ignore`: `docker.sock` is neither `auto`, `none` nor the absolute path of a socket",
        ),
        ("trunk = ''", "/c/config.toml:1: `trunk`: it is empty"),
        (
            "roots = ['~you/x']",
            "/c/config.toml:1: `roots`: `~you/x`: only `~` and `~/...` are known, no other user's home",
        ),
        ("idle = '1h'\nidle = '2h'", "/c/config.toml:2: duplicate key"),
        ("idle = ", "/c/config.toml:1: string values must be quoted, expected literal string"),
        ("\"a\\u001b\" = 1", "/c/config.toml:1: unknown key `a\\u{1b}`"),
    ] {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn the_command_line_wins_and_adds_where_adding_narrows() {
    let flags = Layer {
        idle: Some(flag(Duration::ZERO)),
        roots: vec![flag("/typed".into())],
        protect: vec![flag(Pattern::parse("mine".as_ref(), None).unwrap())],
        maps: vec![flag(PathMap::parse("/w=/else".as_ref(), None).unwrap())],
        templates: Some(flag(vec![BranchTemplate::parse(b"{name}").unwrap()])),
        ..Layer::default()
    };
    let s = with(ALL, &[("TREESWEEP_PROTECT", "theirs:x/y")], flags).unwrap().settings;
    assert_eq!(s.idle.value, Duration::ZERO);
    assert_eq!(s.templates.value.len(), 1);
    assert_eq!(paths(&s.roots.typed), ["/typed"]);
    assert_eq!(paths(&s.roots.known), ["/typed", "/home/me/src", "/home/me/work", "/srv"]);
    for name in ["mine", "theirs", "x/y", "release"] {
        assert!(s.protect.hit([name.as_bytes()]).is_some(), "{name}");
    }
    let maps: Vec<_> = s.maps.iter().map(|m| (m.container.to_string(), m.host.to_string())).collect();
    assert_eq!(maps, [("/w".into(), "/else".into()), ("/workspaces/app".into(), "/home/me/src/app".into())]);
}

#[test]
fn the_environment_shows_names_roots_and_narrows() {
    let env = [
        ("TREESWEEP_ROOTS", "/a:~/b:"),
        ("TREESWEEP_JOBS", "2"),
        ("TREESWEEP_TIME_LIMIT", "5s"),
        ("TREESWEEP_COLOR", "always"),
        ("PATH", "/bin"),
    ];
    let resolved = with(ALL, &env, Layer::default()).unwrap();
    let s = resolved.settings;
    assert!(resolved.warnings.is_empty());
    assert_eq!(paths(&s.roots.configured), ["/a", "/home/me/b"]);
    assert_eq!(s.roots.known.len(), 5, "those of the file stay evidence");
    assert_eq!(s.jobs.unwrap().origin, Origin::Env("TREESWEEP_JOBS"));
    assert_eq!(*s.color, Color::Always);
    assert_eq!(s.time_limit.unwrap().as_secs(), 5);
    let longer = with(ALL, &[("TREESWEEP_TIME_LIMIT", "1h")], Layer::default()).unwrap().settings;
    assert_eq!(longer.time_limit.unwrap().as_secs(), 600, "it only shortens");
}

#[test]
fn the_environment_can_not_widen() {
    let env: Vec<_> = [
        "TRUNK",
        "BRANCH_TEMPLATE",
        "IDLE",
        "UNSTARTED_AFTER",
        "HISTORY_LIMIT",
        "PRECIOUS",
        "MAP",
        "MARKERS",
        "ENGINE",
        "LIVE",
    ]
    .iter()
    .map(|name| (format!("TREESWEEP_{name}"), "0s"))
    .collect();
    let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), *v)).collect();
    let resolved = with("", &env, Layer::default()).unwrap();
    assert_eq!(resolved.warnings.len(), env.len());
    assert!(resolved.warnings.contains(
        &"TREESWEEP_IDLE is ignored: the environment can't set `idle`; the config file and the command line can"
            .to_owned()
    ));
    let (before, after) = (file(""), resolved.settings);
    assert_eq!(before.idle, after.idle);
    assert_eq!(before.templates, after.templates);
    assert_eq!(before.unstarted_after, after.unstarted_after);
    assert_eq!(before.engines, after.engines);
    assert_eq!(before.live, after.live);
    assert!(after.trunk.is_none() && after.maps.is_empty() && after.markers.is_empty());
}

#[test]
fn a_variable_that_is_not_understood_is_not_passed_over() {
    let warnings = |name: &str| with("", &[(name, "x")], Layer::default()).unwrap().warnings;
    assert_eq!(
        warnings("TREESWEEP_PROTECTS"),
        ["TREESWEEP_PROTECTS is ignored: there is no such setting; did you mean TREESWEEP_PROTECT?"]
    );
    assert_eq!(
        warnings("TREESWEEP_SOMETHING_ELSE"),
        ["TREESWEEP_SOMETHING_ELSE is ignored: there is no such setting"]
    );
    assert!(with("", &[("TREESWEEP_IDLE", "")], Layer::default()).unwrap().warnings.is_empty());
    for (name, value) in [
        ("TREESWEEP_PROTECT", "a[b"),
        ("TREESWEEP_JOBS", "many"),
        ("TREESWEEP_TIME_LIMIT", "5"),
        ("TREESWEEP_COLOR", "yes"),
        ("TREESWEEP_ROOTS", "src"),
    ] {
        let error = with("", &[(name, value)], Layer::default()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name} in the environment: ")), "{error}");
    }
}

const DOC: &str = include_str!("../../docs/config.md");

#[test]
fn the_documentation_has_every_key_and_no_other() {
    let rows = DOC.lines().filter_map(|l| l.strip_prefix("| `")).filter_map(|l| l.split('`').next());
    let documented: std::collections::BTreeSet<_> = rows.map(str::to_owned).collect();
    assert_eq!(documented, super::file::keys().into_iter().collect());
    for key in &documented {
        assert!(DOC.contains(&format!("**`{key}`**")), "{key} is not explained");
    }
}

#[test]
fn the_documented_example_is_read() {
    let example = DOC.split("```toml\n").nth(1).and_then(|d| d.split("```").next()).unwrap();
    let s = file(example);
    assert_eq!(s.templates.value.len(), 2);
    assert_eq!(s.maps[0].host.as_bstr(), "/home/me/src/app");
    assert_eq!(s.precious.patterns().len(), Precious::DEFAULT.len() + 1);
}

#[test]
fn the_documented_defaults_hold() {
    let defaults = file("");
    for glob in defaults.precious.patterns() {
        assert!(DOC.contains(&format!("\"{}\"", glob.as_str())), "{glob:?}");
    }
    for template in &defaults.templates.value {
        assert!(DOC.contains(&format!("\"{template}\"")), "{template}");
    }
}

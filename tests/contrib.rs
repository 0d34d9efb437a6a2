//! What lies in `contrib/`, and the lines of the pages: each command line is one that treesweep takes, and what is a
//! script is run.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::env::{TestEnv, utf8};
use common::git::HostClone;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The command lines that begin with `treesweep` in a text that is no prose: up to what a shell would take for itself.
fn command_lines(text: &str) -> Vec<Vec<String>> {
    let starts = |line: &str| -> Option<String> {
        let at = line.match_indices("treesweep ").map(|(at, _)| at).find(|at| {
            let before = line[..*at].trim_end();
            let path = line[..*at].ends_with("/usr/bin/");
            path || before.is_empty() || before.ends_with(['"', '!', ';', '-', ':'])
        })?;
        Some(line[at..].to_owned())
    };
    let end = |word: &&str| {
        matches!(*word, "||" | "|" | "&&" | "#" | "fi" | "then") || word.starts_with(['>', '#'])
    };
    let mut all = Vec::new();
    for line in text.lines().filter(|line| !line.trim_start().starts_with('#')).filter_map(starts) {
        let line = line.split(';').next().expect("a first part");
        let words = line.split_whitespace().take_while(|word| !end(word));
        let plain = |word: &str| {
            let word = word.trim_end_matches([';', ',']).trim_matches(['"', '\'']);
            word.replace("%%", "%").replace("{{args}}", "x").replace("$(ARGS)", "x")
        };
        all.push(words.map(plain).collect());
    }
    all
}

/// The fenced blocks of a page that are for a shell, or for a program that starts treesweep.
fn blocks(page: &str) -> String {
    let mut fence: Option<bool> = None;
    let mut out = String::new();
    for line in page.lines() {
        match (line.strip_prefix("```"), fence) {
            (Some(language), None) => fence = Some(!matches!(language, "console" | "" | "toml")),
            (Some(_), Some(_)) => fence = None,
            (None, Some(true)) => out.push_str(&format!("{line}\n")),
            _ => {}
        }
    }
    out
}

#[test]
fn every_command_line_is_one_that_treesweep_takes() {
    let tmp = tempfile::tempdir().expect("a folder");
    let mut texts: Vec<(PathBuf, String)> = Vec::new();
    for path in files(&root().join("contrib")) {
        texts.push((path.clone(), fs::read_to_string(path).expect("text")));
    }
    let pages = files(&root().join("docs")).into_iter().chain([root().join("README.md")]);
    // The page of commands shows what each line may have, and examples with a word on each.
    let written =
        |path: &PathBuf| path.extension().is_some_and(|e| e == "md") && !path.ends_with("commands.md");
    for path in pages.filter(written) {
        texts.push((path.clone(), blocks(&fs::read_to_string(path).expect("a page"))));
    }
    let mut lines = 0;
    let manifest = root().join("contrib/kubernetes/cronjob.yaml");
    let args = fs::read_to_string(&manifest).expect("the manifest");
    let (_, args) = args.split_once("args:\n").expect("arguments");
    let args = args.lines().map_while(|line| line.trim().strip_prefix("- ")).collect::<Vec<_>>().join(" ");
    texts.push((manifest, format!("treesweep {args}\n")));
    for (path, text) in texts {
        for mut words in command_lines(&text) {
            // Places that this machine does not have.
            for word in
                words.iter_mut().skip(1).filter(|w| w.starts_with(['~', '/', '$']) && !w.contains('.'))
            {
                *word = utf8(tmp.path()).to_owned();
            }
            let parsed = treesweep::cli::args::parse(&words).and_then(|cli| cli.resolve(tmp.path(), None));
            assert!(parsed.is_ok(), "{}: {words:?}: {}", path.display(), parsed.unwrap_err());
            lines += 1;
        }
    }
    assert!(lines > 30, "only {lines} lines were found");
}

#[test]
fn the_runner_s_hook_sweeps_and_fails_no_job() {
    let env = TestEnv::new();
    let clone = HostClone::new(&env, "app");
    let done = clone.add_landed("done");
    env.treesweep(&["setup", "--engine", "none", utf8(&done)]).assert().success();
    clone.age();
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_treesweep"), bin.join("treesweep")).expect("a link");
    let hook = |more: &[(&str, &str)]| {
        let mut command = env.command(root().join("contrib/github/sweep.sh"));
        command
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("RUNNER_WORKSPACE", env.src().join("app"));
        let output = command.envs(more.iter().copied()).output().expect("it starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };

    let (code, said) = hook(&[("SWEEP_OLDER_THAN", "30d")]);
    assert_eq!((code, said.as_str(), done.exists()), (Some(0), "", true));
    let (code, said) = hook(&[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("removed    done") && !done.exists(), "{said}");

    let (code, said) = hook(&[("SWEEP_ROOTS", "/nowhere\n")]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("::warning title=treesweep::"), "{said}");
    let full = [("SWEEP_MIN_FREE", "99%"), ("SWEEP_STRICT", "true")];
    let (code, said) = hook(&full);
    assert_eq!(code, Some(1), "{said}");
}

#[test]
fn systemd_takes_the_units() {
    let tmp = tempfile::tempdir().expect("a folder");
    for name in ["treesweep@.service", "treesweep@.timer"] {
        let text = fs::read_to_string(root().join("contrib/systemd").join(name)).expect("a unit");
        // It looks whether the program is there.
        let here =
            text.replace("/usr/bin/treesweep", env!("CARGO_BIN_EXE_treesweep")).replace("User=%i\n", "");
        fs::write(tmp.path().join(name.replace('@', "@nobody")), here).expect("a unit");
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).arg(tmp.path().join("treesweep@nobody.timer"));
    let Ok(output) = verify.arg(tmp.path().join("treesweep@nobody.service")).output() else {
        return eprintln!("SKIPPED: needs systemd-analyze");
    };
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && !said.contains("treesweep@"), "{said}");
}

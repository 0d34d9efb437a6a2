//! Habits of the command line: completions, `git treesweep`, man pages.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use common::env::{TestEnv, stdout_of};
use common::git::HostClone;
use common::snapshot::Snapshot;

/// A `PATH` on which `treesweep` and `git-treesweep` are.
fn installed(env: &TestEnv) -> String {
    let bin = env.root().join("bin");
    fs::create_dir(&bin).expect("a folder");
    symlink(env!("CARGO_BIN_EXE_treesweep"), bin.join("treesweep")).expect("a link");
    symlink("treesweep", bin.join("git-treesweep")).expect("a link");
    format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"))
}

fn clone_with_worktrees(env: &TestEnv) -> HostClone<'_> {
    let clone = HostClone::new(env, "app");
    for name in ["fix-login", "fix-cart", "spike"] {
        clone.add_landed(name);
    }
    // Nothing that a shell could stumble over is completed.
    fs::rename(clone.entry("spike"), clone.common_dir().join("worktrees/sp\u{1b}ike")).expect("a name");
    clone
}

/// What bash offers after these words, with the function that the program prints.
fn bash(env: &TestEnv, path: &str, dir: &Path, words: &[&str]) -> Vec<String> {
    let line = words.iter().map(|w| format!("'{w}'")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "source <(treesweep completions bash)
        COMP_WORDS=({line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE=\"${{COMP_WORDS[*]}}\"
        COMP_POINT=${{#COMP_LINE}}; COMP_TYPE=9
        function=$(complete -p treesweep | sed 's/.*-F \\([^ ]*\\).*/\\1/')
        $function treesweep \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"
        printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let mut bash = env.command("bash");
    bash.args(["--norc", "-c", &script]).env("PATH", path).current_dir(dir);
    let printed = stdout_of("bash", bash.output().expect("bash starts"));
    printed.lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn bash_completes_commands_flags_and_worktrees() {
    let env = TestEnv::new();
    let clone = clone_with_worktrees(&env);
    let path = installed(&env);
    let before = Snapshot::of(env.root());
    let offered = |words: &[&str]| bash(&env, &path, &clone.path, words);
    assert_eq!(offered(&["treesweep", "pru"]), ["prune"]);
    assert_eq!(offered(&["treesweep", "prune", "--min"]), ["--min-free"]);
    assert_eq!(offered(&["treesweep", "drop", "fix"]), ["fix-cart", "fix-login"]);
    assert_eq!(offered(&["treesweep", "plan", "--explain", "fix-l"]), ["fix-login"]);
    assert_eq!(offered(&["treesweep", "plan", "--color", "al"]), ["always"]);
    assert_eq!(offered(&["treesweep", "setup", ".work"]), [".worktrees/"]);
    assert!(!offered(&["treesweep", "drop", ""]).iter().any(|name| name.starts_with("sp")));
    before.assert_same(&Snapshot::of(env.root()));
    // What was removed comes back by its name.
    env.treesweep(&["drop", "--yes", "--force", "fix-cart"]).current_dir(&clone.path).assert().success();
    assert_eq!(offered(&["treesweep", "drop", "fix"]), ["fix-login"]);
    assert_eq!(offered(&["treesweep", "restore", "fix"]), ["fix-cart"]);
}

#[test]
fn every_shell_gets_a_function_that_asks_for_worktrees() {
    let env = TestEnv::new();
    let clone = clone_with_worktrees(&env);
    for shell in ["bash", "fish", "zsh"] {
        let script = env.treesweep(&["completions", shell]).assert().success().get_output().stdout.clone();
        let script = String::from_utf8(script).expect("text");
        assert!(script.contains("TREESWEEP_COMPLETE") && script.contains("treesweep"), "{shell}: {script}");
        if let Ok(checked) = env.command(shell).args(["-n", "-c", &script]).output() {
            assert!(checked.status.success(), "{shell}: {checked:?}");
        }
        // As that function asks.
        let mut asked = env.treesweep_command(&["--", "treesweep", "drop", "fix-"]);
        asked.env("TREESWEEP_COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", "2").env("_CLAP_IFS", "\n");
        asked.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
        let output = stdout_of(shell, asked.current_dir(&clone.path).output().expect("it starts"));
        assert!(output.contains("fix-cart") && output.contains("fix-login"), "{shell}: {output}");
    }
    env.treesweep(&["completions", "csh"]).assert().code(2);
}

#[test]
fn git_runs_it_under_its_own_name() {
    let env = TestEnv::new();
    let clone = clone_with_worktrees(&env);
    let path = installed(&env);
    let git = |args: &[&str]| {
        let mut git = env.command("git");
        git.env("PATH", &path)
            .current_dir(&clone.path)
            .arg("treesweep")
            .args(args)
            .output()
            .expect("git starts")
    };
    let planned = stdout_of("git treesweep", git(&["plan", "--engine", "none"]));
    assert!(planned.contains("fix-login") && planned.contains("fix-cart"), "{planned}");
    assert_eq!(git(&["prune", "--engine", "none"]).status.code(), Some(2), "no terminal, no --yes");
    assert!(stdout_of("git treesweep -h", git(&["-h"])).contains("Usage: treesweep"));
}

#[test]
fn each_command_has_a_man_page() {
    let env = TestEnv::new();
    let dir = env.root().join("man");
    env.treesweep(&["man", "man"]).assert().code(1);
    fs::create_dir(&dir).expect("a folder");
    env.treesweep(&["man", "man"]).assert().success();
    for name in ["treesweep", "treesweep-plan", "treesweep-prune", "treesweep-up", "treesweep-drop"] {
        let page = fs::read_to_string(dir.join(format!("{name}.1"))).expect("a page");
        assert!(page.contains(".SH NAME") && page.contains("Examples:"), "{name}: {page}");
        assert!(page.contains("How long nothing may have happened in it"), "{name}: {page}");
    }
}

//! The tutorial's commands, typed in their order; what they print is what the page shows.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

mod common;

use std::process::Command;

use common::env::{TestEnv, stdout_of};

const TUTORIAL: &str = include_str!("../docs/tutorial.md");

/// Each command of the `console` blocks, with the lines that are shown below it.
fn session() -> Vec<(&'static str, Vec<&'static str>)> {
    let blocks = TUTORIAL.split("```console\n").skip(1);
    let lines = blocks.flat_map(|block| block.split("```").next().expect("an end").lines());
    let mut all: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push((command, Vec::new())),
            (None, Some((_, shown))) => shown.push(line),
            (None, None) => panic!("{line} stands before any command"),
        }
    }
    all
}

/// Without what differs from one day and file system to the next: sizes, the number of seconds, the record's name.
fn comparable(line: &str) -> String {
    const UNITS: [&str; 4] = ["B", "kB", "MB", "GB"];
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let mut out = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let bare = word.trim_matches(['(', ')', ',', '.']);
        let next = words.get(at + 1).map(|next| next.trim_matches(['(', ')', ',', '.']));
        let number = bare.parse::<f64>().is_ok();
        let sized = number && next.is_some_and(|next| UNITS.contains(&next));
        let aged = number && next == Some("s");
        let record = bare.len() == 32 && bare.contains("Z-");
        let unit = at > 0 && UNITS.contains(&bare);
        match sized || aged || record {
            true => out.push("*".to_owned()),
            false if unit => out.push("*B".to_owned()),
            false => out.push((*word).to_owned()),
        }
    }
    out.join(" ")
}

#[test]
fn it_goes_as_the_tutorial_says() {
    let env = TestEnv::new();
    let session = session();
    assert!(session.len() > 10, "{session:?}");
    let bin = env.root().join("bin");
    std::fs::create_dir(&bin).expect("a folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_treesweep"), bin.join("treesweep")).expect("a link");
    // One shell for all, as a person has; a line that can't be printed by accident parts what each command says.
    const END: &str = "-- end of command --";
    let script: String = session.iter().map(|(command, _)| format!("{command}\necho '{END}'\n")).collect();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("PATH"));
    let mut shell: Command = env.command("sh");
    shell.args(["-euc", &script]).env("HOME", env.root()).env("PATH", path);
    for date in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
        shell.env(date, "2026-01-05T10:00:00Z");
    }
    for person in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        shell.env(format!("{person}_NAME"), "me").env(format!("{person}_EMAIL"), "me@example.com");
    }
    let printed = stdout_of("the tutorial", shell.output().expect("sh starts"));
    let printed: Vec<&str> = printed.split(END).collect();
    assert_eq!(printed.len(), session.len() + 1);
    for ((command, shown), printed) in session.iter().zip(printed) {
        let lines = |all: &mut dyn Iterator<Item = &str>| -> Vec<String> {
            all.map(comparable).filter(|line| !line.is_empty()).collect()
        };
        assert_eq!(
            lines(&mut printed.lines()),
            lines(&mut shown.iter().copied()),
            "$ {command}\nprints:\n{printed}"
        );
    }
}

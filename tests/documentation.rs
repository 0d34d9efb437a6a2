//! What the documents name exists: links lead somewhere, paths and tests are there.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of the repository itself, and everything in `docs/`.
fn pages() -> Vec<(PathBuf, String)> {
    let docs = fs::read_dir(root().join("docs")).expect("docs");
    let mut pages: Vec<PathBuf> = docs.map(|e| e.expect("entry").path()).collect();
    pages.extend(
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"].map(|name| root().join(name)),
    );
    pages.retain(|path| path.extension().is_some_and(|e| e == "md"));
    pages.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).expect("a page"))).collect()
}

/// The text without its fenced blocks.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let outside = |line: &&str| {
        let fence = line.starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    };
    text.lines().filter(outside).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_book_has_every_page() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).expect("the summary");
    for (page, _) in pages() {
        let name = page.file_name().expect("a name").to_str().expect("a name in UTF-8");
        if page.parent() == Some(&root().join("docs")) && name != "SUMMARY.md" {
            assert!(summary.contains(&format!("]({name})")), "docs/SUMMARY.md lacks {name}");
        }
    }
}

/// Each command with its help, as the program prints it.
fn commands() -> String {
    let mut all = String::from(
        "# Commands\n\nWhat `treesweep help` and `treesweep COMMAND --help` print. This page is made by\n\
         `TREESWEEP_WRITE_DOCS=1 cargo test --test documentation`.\n",
    );
    let mut top = treesweep::cli::args::command().term_width(110);
    top.build();
    let mut add = |title: &str, command: &mut clap::Command| {
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
        all.push_str(&format!("\n## {title}\n\n```text\n{}\n```\n", help.join("\n")));
    };
    add("treesweep", &mut top);
    for command in top.get_subcommands_mut().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
        let title = format!("treesweep {}", command.get_name());
        add(&title, command);
    }
    all
}

#[test]
fn the_page_of_commands_is_what_the_program_prints() {
    let (page, now) = (root().join("docs/commands.md"), commands());
    if std::env::var_os("TREESWEEP_WRITE_DOCS").is_some() {
        fs::write(&page, &now).expect("the page");
    }
    let page = fs::read_to_string(&page).expect("docs/commands.md");
    let differs = page.lines().zip(now.lines()).find(|(page, now)| page != now);
    assert!(page == now, "docs/commands.md is of another version, write it anew: {differs:?}");
}

#[test]
fn links_lead_somewhere() {
    for (page, text) in pages() {
        let dir = page.parent().expect("a folder");
        for link in prose(&text).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().expect("a first part");
            if !target.starts_with("https://") && !target.is_empty() {
                assert!(dir.join(target).exists(), "{} links to {target}", page.display());
            }
        }
    }
}

#[test]
fn files_and_tests_that_are_named_are_there() {
    let mut tests = 0;
    for (page, text) in pages() {
        let text = prose(&text);
        let spans = text.split('`').skip(1).step_by(2);
        let paths = spans.filter(|span| {
            ["src/", "tests/", "scripts/", "docker/", "contrib/"].iter().any(|top| span.starts_with(top))
        });
        for path in paths {
            let path = path
                .split_whitespace()
                .next()
                .expect("a word")
                .trim_end_matches("**")
                .trim_end_matches("*.rs");
            let (file, test) = path.split_once("::").map_or((path, None), |(file, test)| (file, Some(test)));
            assert!(root().join(file).exists(), "{} names {file}", page.display());
            if let Some(test) = test {
                let code = fs::read_to_string(root().join(file)).expect("a file of tests");
                assert!(
                    code.contains(&format!("fn {test}(")),
                    "{}: no test {test} in {file}",
                    page.display()
                );
                tests += 1;
            }
        }
    }
    assert!(tests > 40, "the threat model names {tests} tests");
}

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

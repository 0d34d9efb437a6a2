//! Random `.gitignore` lines over a fixed tree of untracked files, compared with git.

use std::path::Path;

use crate::compare;
use crate::git;
use crate::random::Random;

/// Pieces that mean something, and some that nearly do.
const PIECES: &[&str] = &[
    "a",
    "b",
    "ab",
    "a.b",
    "c",
    "*",
    "**",
    "/",
    "?",
    "[a-b]",
    "[!a]",
    "[^b]",
    "[]a]",
    "[a",
    "]",
    "\\",
    "\\a",
    "\\*",
    "!",
    "#",
    " ",
    "\t",
    ".",
    "-",
    "[[:alpha:]]",
    "[[:digit:]",
    "[\\]]",
    "[a-]",
    "[--b]",
    "/**/",
    "**/",
    "/**",
    "/*",
    "*/",
    "\r",
    "$",
    "{a,b}",
    "[a-bc]",
    "[b-a]",
    "é",
    "\u{feff}",
];
const NAMES: &[&str] = &[
    "a", "b", "ab", "a.b", "c", "ba", "aab", "A", "*", "[a", "\\a", "]", "-", " ", "a ", "!", "#", "é", "$a",
    "{a,b}",
];

fn make_tree(top: &Path) {
    let dirs = ["", "a/", "b/", "a/b/", "a/b/a/", "c/ab/", "a.b/c/"];
    for dir in dirs {
        std::fs::create_dir_all(top.join(dir)).unwrap();
    }
    for dir in dirs {
        for name in NAMES {
            let place = top.join(dir).join(name);
            if !place.exists() {
                std::fs::write(place, "").unwrap();
            }
        }
    }
}

fn line(random: &mut Random) -> String {
    let mut line = String::new();
    for _ in 0..1 + random.below(5) {
        line.push_str(random.pick::<&str>(PIECES));
    }
    line
}

/// Which of `count` random sets of patterns, from the seed `first` on, ignore something else for us than for git.
pub fn differences(first: u64, count: u64) -> Vec<String> {
    let tmp = tempfile::tempdir().unwrap();
    let top = tmp.path().canonicalize().unwrap();
    let (app, wt) = (top.join("app"), top.join("wt"));
    std::fs::create_dir(&app).unwrap();
    git::must(&app, &["init", "-q", "--template=", "-b", "main"]);
    git::must(&app, &["commit", "-q", "--allow-empty", "-m", "one"]);
    git::must(&app, &["worktree", "add", "-q", "-b", "wt", "../wt"]);
    make_tree(&wt);
    let mut wrong = Vec::new();
    for seed in first..first + count {
        let mut random = Random::new(seed);
        let mut texts = Vec::new();
        for place in ["", "a/", "a/b/"] {
            let file = wt.join(place).join(".gitignore");
            let _ = std::fs::remove_file(&file);
            if place.is_empty() || random.once_in(4) {
                let lines: Vec<_> = (0..1 + random.below(4)).map(|_| line(&mut random)).collect();
                let text = lines.join("\n") + random.pick::<&str>(&["\n", "\r\n", ""]);
                std::fs::write(file, &text).unwrap();
                texts.push(format!("{place} {text:?}"));
            }
        }
        let (git, ours) = (git::status(&wt).untracked, compare::untracked(&app, &wt));
        if git != ours {
            let only = |a: &git::Paths, b: &git::Paths| {
                a.difference(b).take(3).map(|p| String::from_utf8_lossy(p).into_owned()).collect::<Vec<_>>()
            };
            wrong.push(format!(
                "seed {seed}: {texts:?}: untracked only for git {:?}, only for us {:?}",
                only(&git, &ours),
                only(&ours, &git)
            ));
        }
    }
    wrong
}

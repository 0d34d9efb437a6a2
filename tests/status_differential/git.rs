//! Running git with nobody's configuration, and reading its status.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

pub fn command(dir: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(dir).env_clear();
    git.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    // Whatever a random state did to its repositories, none above them is found.
    git.env("GIT_CEILING_DIRECTORIES", std::env::temp_dir());
    for (key, value) in [
        ("HOME", "/nonexistent"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b.invalid"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@b.invalid"),
        ("GIT_ALLOW_PROTOCOL", "file"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "maintenance.auto"),
        ("GIT_CONFIG_VALUE_0", "false"),
    ] {
        git.env(key, value);
    }
    git
}

/// Runs git; whether it succeeded.
pub fn run(dir: &Path, args: &[&str]) -> bool {
    command(dir).args(args).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// Runs git, which must succeed.
pub fn must(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = command(dir).args(args).output().unwrap();
    assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Runs git with `input`.
pub fn feed(dir: &Path, args: &[&str], input: &[u8]) -> Vec<u8> {
    let mut child = command(dir)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "git {args:?}");
    output.stdout
}

pub type Paths = BTreeSet<Vec<u8>>;

/// `git status --porcelain=v2`, sorted by what it says.
#[derive(Debug, Default)]
pub struct Status {
    pub staged: Paths,
    pub conflicted: Paths,
    pub modified: Paths,
    pub deleted: Paths,
    pub intent_to_add: Paths,
    pub submodules: Paths,
    pub untracked: Paths,
    pub ignored: Paths,
}

pub fn status(dir: &Path) -> Status {
    let out = must(
        dir,
        &[
            "status",
            "--porcelain=v2",
            "-z",
            "-uall",
            "--ignored=matching",
            "--ignore-submodules=none",
            "--no-renames",
        ],
    );
    let mut status = Status::default();
    for line in out.split(|b| *b == 0).filter(|line| !line.is_empty()) {
        let fields = |count: usize| line.splitn(count, |b| *b == b' ').last().unwrap().to_vec();
        match line[0] {
            b'1' => {
                let path = fields(9);
                let (x, y) = (line[2], line[3]);
                if x != b'.' {
                    status.staged.insert(path.clone());
                }
                match y {
                    b'.' => {}
                    b'D' => drop(status.deleted.insert(path)),
                    b'A' => drop(status.intent_to_add.insert(path)),
                    // A file in its place is a change of type, `T`.
                    b'M' if line[5] == b'S' => drop(status.submodules.insert(path)),
                    b'M' | b'T' => drop(status.modified.insert(path)),
                    other => panic!("status {}", other as char),
                }
            }
            b'u' => drop(status.conflicted.insert(fields(11))),
            b'?' => drop(status.untracked.insert(line[2..].to_vec())),
            b'!' => drop(status.ignored.insert(line[2..].to_vec())),
            other => panic!("status line {}", other as char),
        }
    }
    status
}

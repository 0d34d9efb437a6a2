//! What this room's tests share: a repository made by real git, and histories of any shape with any dates.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use gix::ObjectId;

use crate::beneath::Dir;
use crate::git::open::open_clone;
use crate::git::refs::SharedRefs;
use crate::vantage::paths::LocalPath;

/// A clone in a directory of its own; without a commit at first, HEAD on `main`.
pub struct Repo {
    tmp: tempfile::TempDir,
}

/// One commit of a made-up history.
pub struct Made<'a> {
    pub name: &'a str,
    /// Names of earlier ones.
    pub parents: &'a [&'a str],
    /// Committer's and author's time.
    pub date: i64,
    /// Files that differ from the first parent's.
    pub files: &'a [(&'a str, File<'a>)],
}

/// What a commit makes of a file.
#[derive(Clone, Copy, Debug)]
pub enum File<'a> {
    Text(&'a str),
    Executable(&'a str),
    Link(&'a str),
    /// A submodule's commit, in hexadecimal digits.
    Module(&'a str),
    Gone,
}

/// A commit without a change of its own.
pub fn made<'a>(name: &'a str, parents: &'a [&'a str], date: i64) -> Made<'a> {
    Made { name, parents, date, files: &[] }
}

impl File<'_> {
    /// For `git fast-import`.
    fn as_command(self, path: &str) -> String {
        let inline =
            |mode: &str, text: &str| format!("M {mode} inline \"{path}\"\ndata {}\n{text}\n", text.len());
        match self {
            File::Text(text) => inline("100644", text),
            File::Executable(text) => inline("100755", text),
            File::Link(text) => inline("120000", text),
            File::Module(commit) => format!("M 160000 {commit} \"{path}\"\n"),
            File::Gone => format!("D \"{path}\"\n"),
        }
    }
}

impl Repo {
    pub fn new() -> Self {
        Self::with_format("sha1")
    }

    pub fn with_format(format: &str) -> Self {
        let repo = Self { tmp: tempfile::tempdir().unwrap() };
        std::fs::create_dir(repo.path()).unwrap();
        repo.git(&["init", "-q", "-b", "main", &format!("--object-format={format}"), "."]);
        repo
    }

    /// The directory that holds the clone.
    pub fn root(&self) -> PathBuf {
        self.tmp.path().canonicalize().unwrap()
    }

    pub fn path(&self) -> PathBuf {
        self.root().join("app")
    }

    pub fn git_dir(&self) -> PathBuf {
        self.path().join(".git")
    }

    pub fn common(&self) -> Dir {
        held(&self.git_dir())
    }

    /// The administrative entry `name`.
    pub fn entry(&self, name: &str) -> Dir {
        held(&self.git_dir().join("worktrees").join(name))
    }

    pub fn open(&self) -> gix::Repository {
        open_clone(&self.common()).unwrap()
    }

    pub fn refs(&self) -> SharedRefs {
        SharedRefs::read(&self.common(), self.open().object_hash()).unwrap()
    }

    pub fn command(&self, dir: &Path, args: &[&str]) -> Command {
        let mut git = Command::new("git");
        git.current_dir(dir)
            .args(["-c", "core.fsync=none", "-c", "gc.auto=0"])
            .args(args)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0");
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "dev").env(format!("GIT_{who}_EMAIL"), "dev@example.invalid");
        }
        git
    }

    pub fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.path(), args)
    }

    /// In `dir`; it must succeed.
    pub fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.command(dir, args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    pub fn try_git(&self, args: &[&str]) -> Output {
        self.command(&self.path(), args).output().unwrap()
    }

    pub fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Everything that is there, as a commit on HEAD.
    pub fn commit(&self, message: &str) -> ObjectId {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.id("HEAD")
    }

    /// A worktree beside the clone, with a branch of its name.
    pub fn worktree(&self, name: &str) -> PathBuf {
        let path = self.root().join(name);
        self.git(&["worktree", "add", "-q", "-b", name, path.to_str().unwrap()]);
        path
    }

    pub fn id(&self, rev: &str) -> ObjectId {
        ObjectId::from_hex(self.git(&["rev-parse", rev]).as_bytes()).unwrap()
    }

    /// Makes all of `commits`, without any ref that holds them, and returns them by name.
    pub fn history(&self, commits: &[Made<'_>]) -> HashMap<String, ObjectId> {
        let mut stream = Vec::new();
        let mark = |name: &str| commits.iter().position(|c| c.name == name).unwrap() + 1;
        for commit in commits {
            if commit.parents.is_empty() {
                stream.extend(b"reset refs/made\n\n");
            }
            let (number, date, name) = (mark(commit.name), commit.date, commit.name);
            let head = format!(
                "commit refs/made\nmark :{number}\ncommitter dev <dev@example.invalid> {date} +0000\n\
                 data {}\n{name}\n",
                name.len()
            );
            stream.extend(head.into_bytes());
            for (at, parent) in commit.parents.iter().enumerate() {
                let how = if at == 0 { "from" } else { "merge" };
                stream.extend(format!("{how} :{}\n", mark(parent)).into_bytes());
            }
            for (path, file) in commit.files {
                stream.extend(file.as_command(path).into_bytes());
            }
            stream.push(b'\n');
        }
        let marks = self.root().join("marks");
        let option = format!("--export-marks={}", marks.display());
        let mut import = self
            .command(&self.path(), &["fast-import", "--quiet", "--force", &option])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&stream).unwrap();
        assert!(import.wait().unwrap().success());
        self.git(&["update-ref", "-d", "refs/made"]);
        let listed = std::fs::read_to_string(marks).unwrap();
        listed
            .lines()
            .map(|line| {
                let (mark, id) = line.strip_prefix(':').unwrap().split_once(' ').unwrap();
                let name = commits[mark.parse::<usize>().unwrap() - 1].name.to_owned();
                (name, ObjectId::from_hex(id.as_bytes()).unwrap())
            })
            .collect()
    }

    /// Points the branch or other ref `name` at `id`.
    pub fn set(&self, name: &str, id: ObjectId) {
        self.git(&["update-ref", name, &id.to_string()]);
    }
}

pub fn held(path: &Path) -> Dir {
    Dir::open(&LocalPath::new(path).unwrap()).unwrap()
}

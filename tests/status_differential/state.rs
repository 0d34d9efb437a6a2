//! Making a random state: a commit, a linked worktree of it, and things done to both.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::git;
use crate::pool::{ATTRIBUTES, CONTENTS, DIRECTORIES, IGNORES, NAMES, TARGETS};
use crate::random::Random;

pub struct State {
    tmp: tempfile::TempDir,
    random: Random,
    story: Vec<String>,
    /// What the first commit has.
    tracked: Vec<Vec<u8>>,
}

impl State {
    pub fn build(seed: u64) -> Self {
        let tmp = tempfile::tempdir().unwrap();
        let mut state = Self { tmp, random: Random::new(seed), story: Vec::new(), tracked: Vec::new() };
        state.clone_and_commit();
        state.worktree();
        for _ in 0..3 + state.random.below(12) {
            state.change();
        }
        state
    }

    pub fn app(&self) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join("app")
    }

    pub fn wt(&self) -> PathBuf {
        self.tmp.path().canonicalize().unwrap().join("wt")
    }

    /// Leaves it on disk, and says where.
    pub fn keep(self) -> String {
        format!("kept in {}", self.tmp.keep().display())
    }

    pub fn story(&self) -> String {
        self.story.join(", ")
    }

    fn tell(&mut self, what: impl Into<String>) {
        self.story.push(what.into());
    }

    fn a_path(&mut self) -> Vec<u8> {
        let mut path = self.random.pick(DIRECTORIES).as_bytes().to_vec();
        path.extend_from_slice(self.random.pick::<&[u8]>(NAMES));
        path
    }

    /// Puts a random file at `path`; what is in the way stays there.
    fn put(&mut self, top: &Path, path: &[u8]) {
        let place = top.join(std::ffi::OsStr::from_bytes(path));
        if std::fs::create_dir_all(place.parent().unwrap()).is_err() || place.is_dir() {
            return;
        }
        let _ = std::fs::remove_file(&place);
        if self.random.once_in(10) {
            symlink(self.random.pick(TARGETS), &place).unwrap();
            return;
        }
        std::fs::write(&place, self.random.pick(CONTENTS)).unwrap();
        let mode = if self.random.once_in(5) { 0o755 } else { 0o644 };
        std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn lines(&mut self, from: &[&str], most: usize) -> String {
        let count = 1 + self.random.below(most);
        let mut text = String::new();
        for _ in 0..count {
            text.push_str(self.random.pick::<&str>(from));
            text.push('\n');
        }
        if self.random.once_in(6) {
            text.pop();
        }
        text
    }

    fn rule_files(&mut self, top: &Path) {
        for (name, from) in [(".gitignore", IGNORES), (".gitattributes", ATTRIBUTES)] {
            for dir in ["", "dir/", "dir/sub/", "a/"] {
                let wanted = if dir.is_empty() { 2 } else { 5 };
                let place = top.join(dir).join(name);
                if self.random.once_in(wanted) && (dir.is_empty() || top.join(dir).is_dir()) {
                    let text = self.lines(from, 5);
                    self.tell(format!("{dir}{name} {text:?}"));
                    // A directory may have taken its place.
                    let _ = std::fs::write(place, text);
                }
            }
        }
    }

    fn clone_and_commit(&mut self) {
        let app = self.app();
        std::fs::create_dir(&app).unwrap();
        let format = if self.random.once_in(8) { "--object-format=sha256" } else { "--object-format=sha1" };
        git::must(&app, &["init", "-q", "--template=", "-b", "main", format]);
        for _ in 0..2 + self.random.below(14) {
            let path = self.a_path();
            self.put(&app, &path);
        }
        self.rule_files(&app);
        self.configure(&app);
        if !git::run(&app, &["add", "-A", "-f"]) {
            // Some random content is in no encoding that the random attributes name.
            let _ = std::fs::remove_file(app.join(".gitattributes"));
            for dir in ["dir/", "dir/sub/", "a/"] {
                let _ = std::fs::remove_file(app.join(dir).join(".gitattributes"));
            }
            git::must(&app, &["add", "-A", "-f"]);
        }
        if self.random.once_in(8) {
            // A conversion that was switched off when the file was added.
            git::run(&app, &["-c", "core.autocrlf=false", "add", "-A", "-f", "--renormalize"]);
        }
        git::must(&app, &["commit", "-q", "--allow-empty", "-m", "one"]);
        let listed = git::must(&app, &["ls-files", "-z"]);
        self.tracked = listed.split(|b| *b == 0).filter(|p| !p.is_empty()).map(<[u8]>::to_vec).collect();
        for (name, from) in [("exclude", IGNORES), ("attributes", ATTRIBUTES)] {
            if self.random.once_in(4) {
                let text = self.lines(from, 3);
                self.tell(format!("info/{name} {text:?}"));
                std::fs::create_dir_all(app.join(".git/info")).unwrap();
                std::fs::write(app.join(".git/info").join(name), text).unwrap();
            }
        }
    }

    fn configure(&mut self, app: &Path) {
        let mut config = std::fs::read_to_string(app.join(".git/config")).unwrap();
        for (key, once_in, values) in [
            ("[core] autocrlf", 4, &["true", "input", "false"][..]),
            ("[core] eol", 6, &["crlf", "lf", "native"]),
            ("[index] version", 2, &["4", "2"]),
        ] {
            if self.random.once_in(once_in) {
                let value = *self.random.pick(values);
                self.tell(format!("{key}={value}"));
                config.push_str(&format!("{key} = {value}\n"));
            }
        }
        std::fs::write(app.join(".git/config"), config).unwrap();
    }

    fn worktree(&mut self) {
        git::must(&self.app(), &["worktree", "add", "-q", "-b", "wt", "../wt"]);
        let wt = self.wt();
        if self.random.once_in(6) {
            self.tell("split index");
            git::must(&wt, &["update-index", "--split-index"]);
        } else if self.random.once_in(6) {
            let kind = *self.random.pick(&["--sparse-index", "--no-sparse-index"]);
            self.tell(format!("sparse {kind}"));
            git::must(&wt, &["sparse-checkout", "set", "--cone", kind, "dir/sub"]);
        }
        if self.random.once_in(10) {
            git::must(&wt, &["update-index", "--force-untracked-cache"]);
        }
    }

    fn change(&mut self) {
        let wt = self.wt();
        match self.random.below(26) {
            0..=4 => {
                let path = self.a_path();
                self.tell(format!("put {}", String::from_utf8_lossy(&path)));
                self.put(&wt, &path);
            }
            5 => self.rule_files(&wt),
            6 => self.odd_object(&wt),
            7 => self.whole_index(&wt),
            10 => self.gitlink(&wt),
            // Rule files that are flagged, absent or something else: where git reads them then is easy to get wrong.
            11..=13 => {
                let is_rules = |path: &&Vec<u8>| {
                    [&b".gitignore"[..], b".gitattributes"].iter().any(|n| path.ends_with(n))
                };
                let files: Vec<_> = self.tracked.iter().filter(is_rules).cloned().collect();
                if !files.is_empty() {
                    let path = self.random.pick(&files).clone();
                    self.change_tracked(&wt, &path);
                }
            }
            8 => {
                self.tell("add -A");
                git::run(&wt, &["add", "-A"]);
            }
            9 => {
                let path = self.a_path();
                self.tell(format!("add -f -N {}", String::from_utf8_lossy(&path)));
                self.on(&wt, &["add", "-f", "-N", "--"], &path);
            }
            _ => {
                if !self.tracked.is_empty() {
                    let path = self.random.pick(&self.tracked).clone();
                    self.change_tracked(&wt, &path);
                }
            }
        }
    }

    fn on(&self, wt: &Path, args: &[&str], path: &[u8]) {
        let mut git = git::command(wt);
        git.args(args).arg(std::ffi::OsStr::from_bytes(path));
        let _ = git.output().unwrap();
    }

    fn change_tracked(&mut self, wt: &Path, path: &[u8]) {
        let place = wt.join(std::ffi::OsStr::from_bytes(path));
        let is_file = std::fs::symlink_metadata(&place).is_ok_and(|m| m.is_file());
        let kind = self.random.below(14);
        self.tell(format!("change {kind} of {}", String::from_utf8_lossy(path)));
        match kind {
            0 => drop(std::fs::remove_file(&place)),
            1 if is_file => {
                let mode = std::fs::metadata(&place).unwrap().permissions().mode() ^ 0o111;
                std::fs::set_permissions(&place, std::fs::Permissions::from_mode(mode)).unwrap();
            }
            // The same bytes in a new file, as from another vantage.
            2 | 3 if is_file => {
                let mode = std::fs::metadata(&place).unwrap().permissions();
                let bytes = std::fs::read(&place).unwrap();
                std::fs::remove_file(&place).unwrap();
                std::fs::write(&place, bytes).unwrap();
                std::fs::set_permissions(&place, mode).unwrap();
            }
            // As many bytes, but others.
            4 if is_file => {
                let mut bytes = std::fs::read(&place).unwrap();
                bytes.iter_mut().take(1).for_each(|b| *b ^= 1);
                std::fs::write(&place, bytes).unwrap();
            }
            5 if is_file => {
                let text = std::fs::read(&place).unwrap();
                let other = match self.random.once_in(2) {
                    true => bstr_replace(&text, b"\n", b"\r\n"),
                    false => bstr_replace(&text, b"\r\n", b"\n"),
                };
                std::fs::write(&place, other).unwrap();
            }
            6 => {
                drop(std::fs::remove_file(&place));
                if std::fs::create_dir_all(&place).is_ok() && self.random.once_in(2) {
                    std::fs::write(place.join("x"), "in place of a file\n").unwrap();
                }
            }
            7 => {
                let flag = *self.random.pick(&["--assume-unchanged", "--skip-worktree"]);
                self.on(wt, &["update-index", flag, "--"], path);
            }
            8 => self.on(wt, &["rm", "-q", "--cached", "-f", "--"], path),
            9 => {
                let to = self.a_path();
                let target = wt.join(std::ffi::OsStr::from_bytes(&to));
                if std::fs::create_dir_all(target.parent().unwrap()).is_ok() {
                    let _ = std::fs::rename(&place, &target);
                }
            }
            10 => {
                drop(std::fs::remove_file(&place));
                self.put(wt, path);
            }
            11 => self.on(wt, &["update-index", "--chmod=+x", "--"], path),
            12 => self.conflict(wt, path),
            _ => self.on(wt, &["add", "-f", "--"], path),
        }
    }

    /// Gives `path` two or three stages instead of one.
    fn conflict(&mut self, wt: &Path, path: &[u8]) {
        let id = git::feed(wt, &["hash-object", "-w", "--stdin"], b"side\n");
        let id = id.trim_ascii();
        let mut input = [b"0 0000000000000000000000000000000000000000\t", path, b"\0"].concat();
        if id.len() == 64 {
            input = [&b"0 "[..], &b"0".repeat(64), b"\t", path, b"\0"].concat();
        }
        for stage in 1..=3 {
            if !self.random.once_in(3) {
                input.extend_from_slice(
                    &[b"100644 ", id, format!(" {stage}\t").as_bytes(), path, b"\0"].concat(),
                );
            }
        }
        git::feed(wt, &["update-index", "-z", "--index-info"], &input);
    }

    fn whole_index(&mut self, wt: &Path) {
        let args: &[&[&str]] = &[
            &["reset", "-q", "--mixed"],
            &["read-tree", "HEAD"],
            &["update-index", "-q", "--refresh"],
            &["rm", "-q", "-r", "--cached", "--ignore-unmatch", "dir"],
            &["commit", "-q", "-a", "--allow-empty", "-m", "two"],
        ];
        let args = *self.random.pick(args);
        self.tell(format!("{args:?}"));
        git::run(wt, args);
    }

    /// An entry for a submodule, and something in its place.
    fn gitlink(&mut self, wt: &Path) {
        let dir = *self.random.pick(&["sub", "dir/module", "a"]);
        let place = wt.join(dir);
        let kind = self.random.below(6);
        self.tell(format!("gitlink {kind} at {dir}"));
        if kind < 3 {
            let id = String::from_utf8(git::must(wt, &["rev-parse", "HEAD"])).unwrap();
            git::run(wt, &["update-index", "--add", "--cacheinfo", &format!("160000,{},{dir}", id.trim())]);
            if kind > 0 && std::fs::create_dir_all(&place).is_ok() && kind > 1 {
                std::fs::write(place.join("stray"), "nobody's\n").unwrap();
            }
            return;
        }
        if std::fs::create_dir_all(&place).is_err() {
            return;
        }
        git::must(&place, &["init", "-q", "--template="]);
        std::fs::write(place.join("inner"), "inner\n").unwrap();
        git::must(&place, &["add", "-A", "-f"]);
        git::must(&place, &["commit", "-q", "--allow-empty", "-m", "inner"]);
        git::run(wt, &["add", "-f", dir]);
        match kind {
            4 => std::fs::write(place.join("untracked"), "").unwrap(),
            5 => std::fs::write(place.join("inner"), "changed\n").unwrap(),
            _ => {}
        }
    }

    /// Things that git does not track: repositories, empty directories, FIFOs.
    fn odd_object(&mut self, wt: &Path) {
        let dir = *self.random.pick(&["build/repo", "nested", "dir/nested", "empty/er"]);
        let kind = self.random.below(4);
        self.tell(format!("object {kind} at {dir}"));
        if std::fs::create_dir_all(wt.join(dir)).is_err() {
            return;
        }
        match kind {
            0 => {
                git::must(&wt.join(dir), &["init", "-q"]);
                std::fs::write(wt.join(dir).join("inner"), "not ours\n").unwrap();
                git::must(&wt.join(dir), &["add", "-A", "-f"]);
                git::must(&wt.join(dir), &["commit", "-q", "--allow-empty", "-m", "inner"]);
            }
            1 => {
                let fifo = wt.join(dir).join("fifo");
                let _ = nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU);
            }
            _ => {}
        }
    }
}

fn bstr_replace(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    use bstr::ByteSlice;
    text.replace(from, to)
}

//! Real processes, some of them in mount namespaces of their own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::engine::foreign::{mounted_from, mounts_beneath};
use crate::engine::processes::{Holder, Relation};

/// A process that waits; it ends with this value.
struct Waiting(Child);

impl Waiting {
    /// Runs `script`, and waits until it has said that it is ready. `None` if it ended before.
    fn start(mut command: Command, script: &str) -> Option<Self> {
        let script = format!("set -e\n{script}\necho ready\nexec sleep 600");
        let mut child =
            command.args(["-c", &script]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        let read = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
        let waiting = Self(child);
        (read.is_ok() && line == "ready\n").then_some(waiting)
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn id(path: &Path) -> FileId {
    let meta = fs::metadata(path).unwrap();
    FileId { dev: meta.dev(), ino: meta.ino() }
}

fn now() -> ProcessTable {
    scan(&MountTable::own().unwrap()).unwrap()
}

/// How `pid` holds `path`.
fn held(table: &ProcessTable, path: &Path, pid: u32) -> Vec<Held> {
    table.inside(id(path)).iter().filter(|h| h.pid == pid).map(|h| h.what).collect()
}

/// A checkout in a directory of its own.
fn checkout() -> (tempfile::TempDir, LocalPath) {
    let tmp = tempfile::tempdir().unwrap();
    let base = tmp.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("app/wt/sub/deep")).unwrap();
    fs::create_dir_all(base.join("app/wt/data")).unwrap();
    fs::create_dir(base.join("elsewhere")).unwrap();
    (tmp, LocalPath::new(base).unwrap())
}

#[test]
fn a_working_directory_and_an_open_directory_are_found_from_every_directory_above() {
    let (_tmp, base) = checkout();
    let base = base.as_path();
    let mut sh = Command::new("sh");
    sh.current_dir(base.join("app/wt/sub/deep"));
    let works = Waiting::start(sh, "").unwrap();
    let mut sh = Command::new("sh");
    sh.current_dir("/").env("D", base.join("app/wt/data"));
    let opens = Waiting::start(sh, "exec 7< \"$D\"").unwrap();
    let table = now();
    for path in ["app/wt/sub/deep", "app/wt/sub", "app/wt", "app"] {
        assert_eq!(held(&table, &base.join(path), works.pid()), [Held::Cwd], "{path}");
    }
    assert_eq!(held(&table, &base.join("app/wt/data"), works.pid()), []);
    assert_eq!(held(&table, &base.join("app/wt"), opens.pid()), [Held::OpenDirectory]);
    assert_eq!(held(&table, Path::new("/"), opens.pid()), [], "the root directory is nobody's");
    drop(works);
    assert_eq!(now().inside(id(&base.join("app/wt/sub"))), [] as [Holder; 0]);
}

#[test]
fn a_deleted_working_directory_still_counts_above() {
    let (_tmp, base) = checkout();
    let base = base.as_path();
    let mut sh = Command::new("sh");
    sh.current_dir(base.join("app/wt/sub/deep"));
    let works = Waiting::start(sh, "").unwrap();
    fs::remove_dir(base.join("app/wt/sub/deep")).unwrap();
    assert_eq!(held(&now(), &base.join("app/wt"), works.pid()), [Held::Cwd]);
}

#[test]
fn we_hold_our_working_directory_but_not_what_we_look_at() {
    let (_tmp, base) = checkout();
    let _open = fs::File::open(base.as_path().join("app/wt")).unwrap();
    let table = now();
    let me = std::process::id();
    assert_eq!(held(&table, &base.as_path().join("app/wt"), me), []);
    let cwd = std::env::current_dir().unwrap();
    let ours: Vec<_> = table.inside(id(&cwd)).iter().filter(|h| h.pid == me).collect();
    assert!(ours.iter().any(|h| h.what == Held::Cwd && h.relation == Relation::Own), "{ours:?}");
    assert!(table.by_pid(me).is_some_and(|p| p.access == Access::Whole));
}

#[test]
fn threads_of_the_kernel_are_not_unreadable_processes() {
    let table = now();
    if fs::read_to_string("/proc/2/comm").is_ok_and(|comm| comm == "kthreadd\n") {
        assert!(table.unreadable().all(|process| process.pid != 2));
    }
    assert!(table.by_pid(1).is_some() || table.view != View::All);
}

/// Runs `script` in a mount namespace of its own; `None` where that is not allowed.
fn apart(base: &LocalPath, script: &str) -> Option<Waiting> {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "--propagation", "private", "sh"]).current_dir("/").env("B", base.as_path());
    let waiting = Waiting::start(unshare, script);
    if waiting.is_none() {
        eprintln!("skipped: no mount namespace can be made here");
    }
    waiting
}

#[test]
fn a_process_in_another_mount_namespace_is_found_through_its_bind_mount() {
    let (_tmp, base) = checkout();
    let script = "mount --bind $B/app $B/elsewhere; cd $B/elsewhere/wt/sub";
    let Some(waiting) = apart(&base, script) else { return };
    let table = now();
    let wt = base.as_path().join("app/wt");
    assert_eq!(held(&table, &wt, waiting.pid()), [Held::Cwd]);
    let own = MountTable::own().unwrap();
    let place = |path: &[u8]| own.fs_place(&base.join(path).unwrap()).unwrap();
    let from = |path| mounted_from(table.foreign(), &place(path), &own).len();
    assert_eq!(
        (from(b"app"), from(b"app/wt"), from(b"elsewhere")),
        (1, 0, 0),
        "it shows what is above the checkout"
    );
}

#[test]
fn a_mount_that_only_another_namespace_has_is_found_beneath_and_by_its_source() {
    let (_tmp, base) = checkout();
    let script = "mount --bind $B/app $B/elsewhere; mount -t tmpfs t $B/elsewhere/wt/data; \
                  mount --bind $B/elsewhere/wt/sub $B/elsewhere/wt/sub/deep";
    let Some(waiting) = apart(&base, script) else { return };
    let table = now();
    let own = MountTable::own().unwrap();
    let place = |path: &[u8]| own.fs_place(&base.join(path).unwrap()).unwrap();
    let wt = place(b"app/wt");
    let points = |mounts: Vec<crate::engine::foreign::ForeignMount<'_>>| {
        assert!(mounts.iter().all(|m| m.namespace.pid == waiting.pid()));
        mounts.len()
    };
    assert_eq!(points(mounts_beneath(table.foreign(), &wt)), 2);
    assert_eq!(points(mounts_beneath(table.foreign(), &place(b"app/wt/data"))), 1);
    assert_eq!(points(mounts_beneath(table.foreign(), &place(b"elsewhere"))), 1, "the bind mount itself");
    assert_eq!(points(mounted_from(table.foreign(), &wt, &own)), 1);
    assert_eq!(points(mounted_from(table.foreign(), &place(b"app/wt/sub"), &own)), 1);
    assert_eq!(points(mounted_from(table.foreign(), &place(b"app/wt/data"), &own)), 0);
}

/// Two runs at once must not keep each other's worktrees alive only because each looks at what the other one has open.
#[test]
fn another_run_that_looks_uses_nothing_but_where_it_works_it_does() {
    let (_tmp, base) = checkout();
    let base = base.as_path();
    let child = "engine::scan::tests::looking_child";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture"])
        .current_dir(base.join("app/wt/data"))
        .env("LOOKS_AT", base.join("app/wt/sub"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.ends_with("ready")));
    let child = Waiting(child);
    let table = now();
    assert_eq!(held(&table, &base.join("app/wt/sub"), child.pid()), []);
    assert_eq!(held(&table, &base.join("app/wt"), child.pid()), [Held::Cwd]);
}

#[test]
#[ignore = "started by another_run_that_looks_uses_nothing_but_where_it_works_it_does"]
fn looking_child() {
    let path = LocalPath::new(std::env::var_os("LOOKS_AT").unwrap()).unwrap();
    let _held = crate::beneath::Dir::open(&path).unwrap();
    println!("ready");
    // Until the other side is gone.
    let _ended = std::io::stdin().lines().next();
}

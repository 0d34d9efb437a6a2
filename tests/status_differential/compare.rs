//! What the walk and the index say, against what git says.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bstr::{BStr, BString, ByteSlice};
use treesweep::beneath::Dir;
use treesweep::config::Precious;
use treesweep::git::index::{Depth, Index, index_facts};
use treesweep::git::open::{Unreadable, open_entry};
use treesweep::judge::tree_facts::{IndexFacts, Sample, SubmoduleFacts, SubmoduleState, TreeFacts};
use treesweep::stop::Stop;
use treesweep::survey::walk::{
    Checkout, Finding, Observer, Options, RuleFiles, Thoroughness, fingerprint_of, walk_observed,
};
use treesweep::vantage::paths::LocalPath;

use crate::git::{self, Paths, Status};
use crate::state::State;

#[derive(Default)]
struct All(Mutex<Vec<(Finding, BString)>>);

impl Observer for All {
    fn found(&self, what: Finding, path: &BStr) {
        self.0.lock().unwrap().push((what, path.to_owned()));
    }
}

struct Ours {
    facts: TreeFacts,
    index: IndexFacts,
    list: Arc<Index>,
    depth: Depth,
    all: Vec<(Finding, BString)>,
}

impl Ours {
    fn of(&self, kinds: &[Finding]) -> Paths {
        self.all.iter().filter(|(what, _)| kinds.contains(what)).map(|(_, path)| path.to_vec()).collect()
    }
}

fn dir(path: &Path) -> Dir {
    Dir::open(&LocalPath::new(path).unwrap()).unwrap()
}

/// The untracked files of the worktree `wt` of the clone `app`, as the walk finds them.
pub fn untracked(app: &Path, wt: &Path) -> Paths {
    let ours = look(app, wt, Depth::Plan).unwrap();
    assert!(ours.facts.unreadable.is_empty(), "{:?}", ours.facts.unreadable);
    ours.of(&[Finding::Untracked])
}

fn look(app: &Path, wt: &Path, depth: Depth) -> Result<Ours, Unreadable> {
    let (wt, common, main) = (dir(wt), dir(&app.join(".git")), dir(app));
    let entry = dir(&app.join(".git/worktrees/wt"));
    let repo = open_entry(&common, &entry).unwrap();
    let head = repo.head_tree_id().unwrap().detach();
    let (index, list) = index_facts(&entry, &repo, Some(head), depth)?;
    let list = Arc::new(list);
    let checkout = Checkout {
        dir: &wt,
        entry: Some(&entry),
        common: &common,
        repo: &repo,
        index: Arc::clone(&list),
        rules: RuleFiles::AsGit,
    };
    let precious = Precious::of(Precious::DEFAULT.iter().copied()).unwrap();
    let (known, stop) = (HashSet::new(), Stop::never());
    let options = Options {
        depth,
        thoroughness: Thoroughness::Everything,
        known_checkouts: &known,
        main_worktree: Some(&main),
        precious: &precious,
        stop: &stop,
    };
    let all = All::default();
    let facts = walk_observed(&checkout, &options, &all);
    if facts.unreadable.is_empty() {
        assert_eq!(facts.fingerprint, Some(fingerprint_of(&wt, &stop).unwrap()));
    }
    Ok(Ours { facts, index, list, depth, all: all.0.into_inner().unwrap() })
}

/// Where the two disagree; empty if they don't.
pub fn differences(state: &State) -> Vec<String> {
    let status = git::status(&state.wt());
    let mut wrong = Vec::new();
    for depth in [Depth::Plan, Depth::BeforeRemoval] {
        match look(&state.app(), &state.wt(), depth) {
            Ok(ours) => compare(state, &status, &ours, &mut wrong),
            // Git lets `update-index` put a file into a directory that one entry stands for, and then reports it twice.
            Err(why) if why.0.contains("that one entry stands for") => {}
            Err(why) => wrong.push(why.0),
        }
        wrong.iter_mut().for_each(|w| {
            if !w.contains("Depth") {
                *w = format!("{w} (at Depth::{depth:?})");
            }
        });
    }
    wrong
}

fn compare(state: &State, status: &Status, ours: &Ours, wrong: &mut Vec<String>) {
    sample("staged", &ours.index.staged, &status.staged, wrong);
    sample("conflicted", &ours.index.conflicted, &status.conflicted, wrong);
    // Git reports a file that sparse checkout left out, and that is there; for us it is hidden.
    let hidden = ours.of(&[Finding::Hidden]);
    let filtered = ours.of(&[Finding::NeedsFilter]);
    let gitlinks = gitlinks(state);
    let outside = |path: &&Vec<u8>| !gitlinks.iter().any(|link| path.starts_with(link));
    let mut modified: Paths =
        ours.of(&[Finding::Modified, Finding::ModeOnly]).iter().filter(outside).cloned().collect();
    modified.extend(hidden.union(&filtered).filter(|p| status.modified.contains(*p)).cloned());
    // The plan counts nanoseconds where git counts seconds: a file that was not touched, and whose attributes changed,
    // is the same to it.
    let unseen = |path: &&Vec<u8>| ours.depth == Depth::Plan && untouched(state, ours, path);
    let by_luck: Paths = status.modified.difference(&modified).filter(unseen).cloned().collect();
    modified.extend(by_luck);
    // Without a driver git compares LFS content with its pointer; this is what the one pointer stands for.
    let fetched = |path: &&Vec<u8>| {
        path.ends_with(b".lfs")
            && std::fs::read(state.wt().join(OsStr::from_bytes(path))).is_ok_and(|c| c == b"data\n")
    };
    let fetched: Paths = status.modified.difference(&modified).filter(fetched).cloned().collect();
    modified.extend(fetched);
    equal("modified", &status.modified, &modified, wrong);
    let mut deleted = ours.of(&[Finding::Deleted]);
    deleted.extend(hidden.iter().filter(|p| status.deleted.contains(*p)).cloned());
    equal("deleted", &status.deleted, &deleted, wrong);
    // Git names an untracked or ignored repository with a slash at its end.
    let nested: Paths = ours.of(&[Finding::NestedRepository]);
    let slashed: Paths = nested.iter().map(|p| [p.as_slice(), b"/"].concat()).collect();
    let untracked: Paths = status.untracked.difference(&slashed).cloned().collect();
    // Git does not look at plain files in the place of a submodule; they are nobody else's.
    let ours_untracked: Paths = ours.of(&[Finding::Untracked]).iter().filter(outside).cloned().collect();
    equal("untracked", &untracked, &ours_untracked, wrong);
    for path in &status.submodules {
        let held = |s: &SubmoduleFacts| s.path == path.as_bstr() && s.state != SubmoduleState::Clean;
        if !ours.facts.submodules.iter().any(held) {
            wrong.push(format!("submodule: only git: {}", path.as_bstr()));
        }
    }
    compare_ignored(state, status, ours, &slashed, wrong);
    compare_hidden(state, &hidden, wrong);
    // A conflict may leave files below the place of a submodule: git shows both, we keep the checkout.
    let explained = |why: &str| why.contains("where it has a submodule");
    if !ours.facts.unreadable.iter().all(|(_, why)| explained(why)) {
        wrong.push(format!("unreadable: {:?}", ours.facts.unreadable));
    }
}

/// Where submodules are, each with a slash at its end.
fn gitlinks(state: &State) -> Paths {
    let listed = git::must(&state.wt(), &["ls-files", "-z", "-s"]);
    let links = listed.split(|b| *b == 0).filter(|line| line.starts_with(b"160000 "));
    links.filter_map(|line| line.split_once_str("\t")).map(|(_, path)| [path, b"/"].concat()).collect()
}

fn equal(what: &str, git: &Paths, ours: &Paths, wrong: &mut Vec<String>) {
    let only = |a: &Paths, b: &Paths| {
        a.difference(b).map(|p| p.as_bstr().to_string()).collect::<Vec<_>>().join(" | ")
    };
    if git != ours {
        wrong.push(format!("{what}: only git: [{}], only we: [{}]", only(git, ours), only(ours, git)));
    }
}

fn sample(what: &str, sample: &Sample, git: &Paths, wrong: &mut Vec<String>) {
    let shown: Paths = sample.first.iter().map(|p| p.to_vec()).collect();
    // Of a directory that sparse checkout left out we know that it differs, git which files do.
    if shown.iter().any(|p| p.ends_with(b"/")) {
        return if git.is_empty() {
            wrong.push(format!("{what}: only we: {shown:?}"))
        };
    }
    let expected: Paths =
        git.iter().filter(|p| git.len() <= Sample::SHOWN || shown.contains(*p)).cloned().collect();
    equal(what, &expected, &shown, wrong);
    if sample.count != git.len() as u64 {
        wrong.push(format!("{what}: git counts {}, we {}", git.len(), sample.count));
    }
}

/// Whether the file is, to the nanosecond, as it was entered in the index.
fn untouched(state: &State, ours: &Ours, path: &[u8]) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Some(entry) = ours.list.entry(path.as_bstr()) else { return false };
    let meta = std::fs::symlink_metadata(state.wt().join(OsStr::from_bytes(path)));
    meta.is_ok_and(|m| {
        let times =
            [(m.mtime(), m.mtime_nsec(), entry.stat.mtime), (m.ctime(), m.ctime_nsec(), entry.stat.ctime)];
        times.iter().all(|(s, n, recorded)| *s as u32 == recorded.secs && *n as u32 == recorded.nsecs)
            && m.size() as u32 == entry.stat.size
    })
}

/// Git names ignored directories as a whole, we name each file.
fn compare_ignored(state: &State, status: &Status, ours: &Ours, nested: &Paths, wrong: &mut Vec<String>) {
    let ours = ours.of(&[Finding::Ignored]);
    let covers = |by: &[u8], path: &[u8]| path == by || (by.ends_with(b"/") && path.starts_with(by));
    let listed = git::must(&state.wt(), &["ls-files", "-z"]);
    let in_place_of_file = |path: &[u8]| {
        let above = |file: &[u8]| path.starts_with(file) && path.get(file.len()) == Some(&b'/');
        listed.split(|b| *b == 0).any(|file| !file.is_empty() && above(file))
    };
    for path in &ours {
        // Git does not list an ignored directory whose name the index has as a file (`dir_add_ignored`).
        if in_place_of_file(path) {
            continue;
        }
        if !status.ignored.iter().any(|by| covers(by, path)) {
            wrong.push(format!("ignored: only we: {}", path.as_bstr()));
        }
    }
    for by in &status.ignored {
        let file = !by.ends_with(b"/");
        if file && !ours.contains(by) && !nested.iter().any(|n| covers(n, by)) {
            wrong.push(format!("ignored: only git: {}", by.as_bstr()));
        }
    }
}

/// Flagged files that are there and differ are hidden, and no others: git itself is asked what it would store.
fn compare_hidden(state: &State, hidden: &Paths, wrong: &mut Vec<String>) {
    let wt = state.wt();
    let listed = git::must(&wt, &["ls-files", "-z", "-v", "-s"]);
    for line in listed.split(|b| *b == 0).filter(|line| !line.is_empty()) {
        // `h 100644 <id> 0\t<path>`: lower case is assume-unchanged, S is skip-worktree.
        let flagged = line[0].is_ascii_lowercase() || line[0] == b'S';
        let (meta, path) = line.split_once_str("\t").unwrap();
        let fields: Vec<_> = meta.split_str(" ").collect();
        let place = wt.join(OsStr::from_bytes(path));
        let seen = std::fs::symlink_metadata(&place);
        let beyond_link = place.parent().is_some_and(|p| p.canonicalize().is_ok_and(|c| c != p));
        if !flagged || seen.is_err() || beyond_link || fields[3] != b"0" {
            continue;
        }
        let differs = differs(&wt, path, fields[1], fields[2]);
        if differs == Some(!hidden.contains(path)) {
            wrong.push(format!("hidden: {} differs: {differs:?}", path.as_bstr()));
        }
    }
}

/// Whether git would store something else for `path`; `None` where a filter or a size decides.
fn differs(wt: &Path, path: &[u8], mode: &[u8], id: &[u8]) -> Option<bool> {
    use std::os::unix::fs::PermissionsExt;
    let name = OsStr::from_bytes(path);
    let meta = std::fs::symlink_metadata(wt.join(name)).unwrap();
    if meta.is_symlink() != (mode == b"120000") || meta.is_dir() {
        return Some(true);
    }
    if meta.is_symlink() {
        let target = std::fs::read_link(wt.join(name)).unwrap();
        return Some(
            git::feed(wt, &["hash-object", "--stdin"], target.as_os_str().as_bytes()).trim_ascii() != id,
        );
    }
    if path.ends_with(b".lfs") {
        return None;
    }
    if (meta.permissions().mode() & 0o100 != 0) != (mode == b"100755") {
        return Some(true);
    }
    // Whether line ends are converted depends on the index, which `hash-object` does not ask; but what neither way gives
    // the same is another content.
    let same = [&["hash-object"][..], &["hash-object", "--no-filters"]].iter().any(|args| {
        let output = git::command(wt).args(*args).arg("--").arg(name).output().unwrap();
        output.stdout.trim_ascii() == id
    });
    (!same).then_some(true)
}

//! What a hostile container writes into the clones that are mounted into it leads nowhere: each attack of the threat
//! model on a clone of its own, written from inside a real container, then one sweep of all of them from the host.
//!
//! A canary tree outside of the root is compared byte by byte, and a canary command that every setting of git names
//! leaves a trace if anything runs it.

// Tests make their states as they need them.
#![allow(clippy::disallowed_methods)]
#![cfg(target_arch = "x86_64")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use common::containers::{DevContainer, Engine, bind, require_engine};
use common::env::{EAGER, TestEnv, is_root, utf8};
use common::git::{HostClone, copy_tree};
use common::plan::Document;
use common::snapshot::Snapshot;
use common::tracer::{self, Act, Landlock};
use serde_json::Value;
use testcontainers::ImageExt;

/// How many junk entries are made, if not 20,000.
const JUNK: &str = "TREESWEEP_JUNK";

/// A sweep of all clones ends by then, whatever lies in them; this machine may be busy.
const DEADLINE: Duration = Duration::from_secs(120);

#[derive(Clone, Copy, Debug)]
enum Expect {
    /// The plan keeps `done` for this reason.
    Keeps(&'static str),
    /// The plan would reclaim it; what is written on the way ends that with these words, and it is whole.
    Stops(&'static str),
    /// The clone is none that can be read, which is said.
    Unlisted,
    /// It goes, and nothing else.
    Goes,
    /// The same, but its branch stays, with these words.
    GoesWithoutBranch(&'static str),
}

use Expect::{Goes, GoesWithoutBranch, Keeps, Stops, Unlisted};

/// Its name, which is its clone's too; what `sh -e` runs in the clone, where `$entry` and `$tree` are those of `done`, and
/// `$host` (of the clone), `$canary` and `$run` are paths of the host; and what has to come of it.
type Attack = (&'static str, &'static str, Expect);

/// Links of git itself that lead elsewhere.
const LINKS: &[Attack] = &[
    ("nothing", "true", Goes),
    ("gitdir-outside", "echo $canary/.git >$entry/gitdir", Keeps("links-disagree")),
    ("gitdir-dotdot", "echo /workspaces/x/../../..$canary/.git >$entry/gitdir", Keeps("links-disagree")),
    (
        "gitdir-of-another-clone",
        "echo /workspaces/nothing/.worktrees/done/.git >$entry/gitdir",
        Keeps("links-disagree"),
    ),
    ("gitdir-of-a-neighbour", "echo $PWD/.worktrees/wip/.git >$entry/gitdir", Keeps("links-disagree")),
    ("gitdir-of-the-main-worktree", "echo $PWD/.git >$entry/gitdir", Keeps("links-disagree")),
    ("commondir-outside", "echo $canary >$entry/commondir", Keeps("unreadable")),
    ("commondir-of-another-clone", "echo ../../../../nothing/.git >$entry/commondir", Keeps("unreadable")),
    ("commondir-dotdot", "echo ../../../..$canary >$entry/commondir", Keeps("unreadable")),
    (
        "dotgit-of-another-clone",
        "echo 'gitdir: /workspaces/nothing/.git/worktrees/done' >$tree/.git",
        Keeps("links-disagree"),
    ),
    ("dotgit-outside", "echo \"gitdir: $canary/worktrees/done\" >$tree/.git", Keeps("links-disagree")),
    ("dotgit-link", "rm $tree/.git; ln -s $canary/file $tree/.git", Keeps("broken-link")),
    ("entry-link", "mv $entry .git/x; ln -s ../x $entry", Keeps("unreadable")),
    ("entry-link-outside", "ln -s $canary/entry .git/worktrees/evil", GoesWithoutBranch("worktree evil")),
    ("worktrees-link", "mv .git/worktrees .git/x; ln -s x .git/worktrees", Keeps("unreadable")),
    ("checkout-link", "mv $tree $tree.x; ln -s $canary $tree", Keeps("links-disagree")),
    ("parent-link", "mv .worktrees trees; ln -s trees .worktrees", Keeps("path-escapes")),
    ("head-link", "rm $entry/HEAD; ln -s $canary/file $entry/HEAD", Keeps("unreadable")),
    ("modules-link", "ln -s $canary $entry/modules", Keeps("unreadable")),
];

/// Links where the sweep writes or deletes.
const WRITTEN: &[Attack] = &[
    ("treesweep-link", "rm -rf .git/treesweep; ln -s $canary .git/treesweep", Stops("symlink")),
    ("lock-link", "rm -f .git/treesweep/lock; ln -s $canary/file .git/treesweep/lock", Stops("symlink")),
    ("lock-fifo", "rm -f .git/treesweep/lock; mkfifo .git/treesweep/lock", Stops("FIFO")),
    ("trash-link", "rm -rf .git/treesweep/trash; ln -s $canary .git/treesweep/trash", Stops("symlink")),
    ("retired-link", "rm -rf .git/treesweep/retired; ln -s $canary .git/treesweep/retired", Goes),
    ("anchors-link", "ln -s $canary/refs .git/refs/treesweep", Stops("symlink")),
    (
        "anchors-link-below",
        "mkdir .git/refs/treesweep; ln -s $canary/refs .git/refs/treesweep/retired",
        Stops("symlink"),
    ),
    ("logs-link", "mv .git/logs .git/x; ln -s $canary/logs .git/logs", Keeps("unreadable")),
    (
        "branch-logs-link",
        "mv .git/logs/refs .git/x; ln -s $canary/logs/refs .git/logs/refs",
        Keeps("unreadable"),
    ),
    (
        "branch-log-link",
        "rm .git/logs/refs/heads/done; ln -s $canary/logs/refs/heads/done .git/logs/refs/heads/done",
        Keeps("unreadable"),
    ),
    ("refs-link", "mv .git/refs/heads .git/x; ln -s ../x .git/refs/heads", Keeps("head-missing")),
    (
        "branch-link",
        "mv .git/refs/heads/done .git/x; ln -s ../../x .git/refs/heads/done",
        Keeps("unreadable"),
    ),
    ("config-link", "rm .git/config; ln -s $canary/config .git/config", Keeps("unreadable")),
    (
        "packed-refs-link",
        "rm -f .git/packed-refs; ln -s $canary/packed-refs .git/packed-refs",
        Keeps("unreadable"),
    ),
    ("objects-link", "mv .git/objects .git/x; ln -s x .git/objects", Unlisted),
    ("alternates-outside", "echo $canary/objects >.git/objects/info/alternates", Keeps("unreadable")),
];

/// Forgeries, settings that weaken a comparison, and commands.
const FORGED: &[Attack] = &[
    (
        "forged-trash",
        "mv .worktrees/wip .worktrees/.treesweep-trash-20250301T101112123Z-0123456789ab-wip
         mkdir -p .git/treesweep/journal .git/treesweep/retired .git/treesweep/trash
         for name in journal retired; do
             echo '{\"schema\":1,\"checkout\":{\"path\":\"'$canary'\"}}' >.git/treesweep/$name/20250301T101112123Z-0123456789ab.aside
         done
         cp -r .git/worktrees/wip .git/treesweep/trash/20250301T101112123Z-0123456789ab",
        Goes,
    ),
    ("forged-marker", "mkdir .git/worktrees/stranger/treesweep
         echo $host/.worktrees/stranger/.git >.git/worktrees/stranger/gitdir
         echo gitdir: $host/.git/worktrees/stranger >.worktrees/stranger/.git
         sed s/done/stranger/g $entry/treesweep/ready >.git/worktrees/stranger/treesweep/ready", Goes),
    ("symbolic-branch", "git branch twin done; echo 'ref: refs/heads/twin' >.git/refs/heads/done", GoesWithoutBranch("symbolic")),
    ("symbolic-trunk", "echo 'ref: refs/heads/done' >.git/refs/remotes/origin/main", GoesWithoutBranch("it is the trunk")),
    (
        "forged-object",
        "echo more >>$tree/file.txt; git -C $tree commit -qam more
         trunk=$(git rev-parse origin/main); forged=$(git commit-tree $trunk^{tree} -p done -m forged)
         file() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }
         cp -f $(file $forged) $(file $trunk)",
        Stops("not-landed"),
    ),
    (
        "replaced-object",
        "echo more >>$tree/file.txt; git -C $tree commit -qam more
         git replace $(git rev-parse origin/main) $(git commit-tree origin/main^{tree} -p done -m forged)",
        Keeps("not-landed"),
    ),
    (
        "grafts",
        "echo more >>$tree/file.txt; git -C $tree commit -qam more
         echo $(git rev-parse origin/main) $(git rev-parse done) >.git/info/grafts",
        Keeps("not-landed"),
    ),
    (
        "shallow",
        "echo more >>$tree/file.txt; git -C $tree commit -qam more; git rev-parse done origin/main >.git/shallow",
        Keeps("not-landed"),
    ),
    (
        "commit-graph",
        "echo more >>$tree/file.txt; git -C $tree commit -qam more
         git commit-graph write --reachable; chmod u+w .git/objects/info/commit-graph
         echo junk >>.git/objects/info/commit-graph",
        Keeps("not-landed"),
    ),
    (
        "weak-stat",
        "for key in checkStat=minimal trustctime=false fileMode=false ignoreCase=true untrackedCache=true; do
             git config core.${key%=*} ${key#*=}
         done
         touch -r $tree/file.txt .git/time; echo evil >$tree/file.txt; touch -r .git/time $tree/file.txt",
        Keeps("dirty"),
    ),
    ("hidden", "git -C $tree update-index --assume-unchanged file.txt; echo evil >$tree/file.txt", Keeps("hidden-changes")),
    ("skipped", "git -C $tree update-index --skip-worktree file.txt; echo evil >$tree/file.txt", Keeps("hidden-changes")),
    ("nothing-untracked", "git config status.showUntrackedFiles no; echo work >$tree/work", Keeps("dirty")),
    ("excluded", "git config core.excludesFile $canary/all; echo work >$tree/work", Keeps("dirty")),
    (
        "worktree-elsewhere",
        "git config extensions.worktreeConfig true; echo work >$tree/work
         for file in .git/config $entry/config.worktree; do printf '[core]\n\tworktree = %s\n' $canary >>$file; done",
        Keeps("dirty"),
    ),
    (
        "gitlink-over-files",
        "mkdir $tree/sub; echo work >$tree/sub/work
         git -C $tree update-index --add --cacheinfo 160000,$(git rev-parse main),sub
         git -C $tree commit -qm sub; git update-ref refs/remotes/origin/main done",
        Keeps("dirty"),
    ),
    (
        "submodule-elsewhere",
        "mkdir $tree/sub; echo \"gitdir: $canary\" >$tree/sub/.git
         git -C $tree update-index --add --cacheinfo 160000,$(git rev-parse main),sub
         git -C $tree commit -qm sub; git update-ref refs/remotes/origin/main done",
        Keeps("unreadable"),
    ),
    (
        "commands",
        "for key in core.fsmonitor core.sshCommand core.editor core.pager core.askPass core.gitProxy sequence.editor \
             diff.external diff.evil.textconv diff.evil.command filter.evil.clean filter.evil.smudge filter.evil.process \
             merge.evil.driver gpg.program gpg.ssh.program credential.helper uploadpack.packObjectsHook \
             core.alternateRefsCommand remote.origin.uploadpack remote.origin.receivepack remote.origin.vcs \
             pager.status alias.status submodule.sub.update interactive.diffFilter; do
             git config $key \"$run\"
         done
         git config core.hooksPath $(dirname $run)
         git config include.path $canary/include
         git config protocol.ext.allow always; git config remote.evil.url \"ext::$run\"; git config remote.evil.promisor true
         for hook in post-checkout pre-commit post-index-change reference-transaction fsmonitor-watchman; do
             printf '#!/bin/sh\\nexec %s' \"$run\" >.git/hooks/$hook 2>/dev/null || { mkdir -p .git/hooks; printf '#!/bin/sh\\nexec %s' \"$run\" >.git/hooks/$hook; }
             chmod +x .git/hooks/$hook
         done",
        Goes,
    ),
    (
        "filters",
        "git config filter.evil.clean \"$run\"; git config filter.evil.required true
         echo '* filter=evil diff=evil merge=evil' >.git/info/attributes; touch $tree/file.txt",
        Keeps("unreadable"),
    ),
];

/// Things that could hold a reader.
const READ: &[Attack] = &[
    ("head-fifo", "rm .git/HEAD; mkfifo .git/HEAD", Unlisted),
    ("packed-refs-fifo", "rm -f .git/packed-refs; mkfifo .git/packed-refs", Keeps("unreadable")),
    ("index-fifo", "rm $entry/index; mkfifo $entry/index", Keeps("unreadable")),
    ("entry-head-fifo", "rm $entry/HEAD; mkfifo $entry/HEAD", Keeps("unreadable")),
    ("gitdir-fifo", "rm $entry/gitdir; mkfifo $entry/gitdir", Keeps("unreadable")),
    ("branch-fifo", "mkfifo .git/refs/heads/x", Goes),
    ("remote-fifo", "mkfifo .git/refs/remotes/origin/x", Goes),
    ("logs-fifo", "rm $entry/logs/HEAD; mkfifo $entry/logs/HEAD", Keeps("unreadable")),
    (
        "branch-log-fifo",
        "rm .git/logs/refs/heads/done; mkfifo .git/logs/refs/heads/done",
        Keeps("unreadable"),
    ),
    ("alternates-fifo", "mkfifo .git/objects/info/alternates", Keeps("unreadable")),
    ("pack-fifo", "mkfifo .git/objects/pack/pack-0.idx .git/objects/pack/pack-0.pack", Keeps("unreadable")),
    ("exclude-fifo", "rm -f .git/info/exclude; mkfifo .git/info/exclude", Keeps("unreadable")),
    ("attributes-fifo", "mkfifo .git/info/attributes", Keeps("unreadable")),
    ("config-fifo", "rm .git/config; mkfifo .git/config", Keeps("unreadable")),
    ("marker-fifo", "rm $entry/treesweep/ready; mkfifo $entry/treesweep/ready", Keeps("unowned")),
    (
        "rules-fifo",
        "mkfifo $tree/target/.gitignore 2>/dev/null || { mkdir $tree/target; mkfifo $tree/target/.gitignore; }",
        Goes,
    ),
    ("dotgit-fifo", "rm $tree/.git; mkfifo $tree/.git", Keeps("broken-link")),
    ("device", "mknod .git/refs/heads/x c 1 5", Goes),
    ("device-head", "rm $entry/HEAD; mknod $entry/HEAD c 1 5", Keeps("unreadable")),
    (
        "device-ignored",
        "mkdir -p $tree/target; mknod $tree/target/zero c 1 5; mkfifo $tree/target/fifo",
        Goes,
    ),
    ("huge-head", "truncate -s 100G $entry/HEAD", Keeps("unreadable")),
    ("huge-main-head", "truncate -s 100G .git/HEAD", Keeps("unreadable")),
    ("huge-packed-refs", "truncate -s 100G .git/packed-refs", Keeps("unreadable")),
    ("huge-index", "truncate -s 100G $entry/index", Keeps("unreadable")),
    // A ref that can't be read holds nothing and lands nothing.
    ("huge-branch", "truncate -s 100G .git/refs/heads/x", Goes),
    ("huge-log", "truncate -s 100G $entry/logs/HEAD", Keeps("unreadable")),
    ("huge-ignored", "mkdir -p $tree/target; truncate -s 100G $tree/target/huge", Goes),
    ("loop", "ln -s loop .git/refs/heads/loop", Goes),
    ("loop-ignored", "mkdir -p $tree/target; ln -s . $tree/target/here; ln -s ../.. $tree/target/up", Goes),
];

/// Names and shapes.
const SHAPES: &[Attack] = &[
    (
        "names",
        "mkdir -p $tree/target; name=$(printf 'a\\n\\033[31mred\\007')
         echo x >\"$tree/target/$name\"; mkdir \".git/worktrees/$name\"; echo junk >\".git/worktrees/$name/gitdir\"
         long=$(printf '%0255d' 0); mkdir $tree/target/$long; echo x >$tree/target/$long/$long",
        GoesWithoutBranch("HEAD: does not exist"),
    ),
    (
        "long-paths",
        "mkdir -p $tree/target; cd $tree/target; name=$(printf '%0245d' 0)
         for level in 0 1 2 3 4 5 6 7 8 9 a b c d e f; do mkdir $level$name; cd $level$name; done; echo x >file",
        Goes,
    ),
    (
        "deep",
        "mkdir -p $tree/target; cd $tree/target
         level=0; while [ $level -lt 1000 ]; do mkdir d; cd d; level=$((level + 1)); done; echo x >file",
        Goes,
    ),
    ("junk", "cd .git/worktrees; seq $junk | sed s/^/junk/ | xargs mkdir", GoesWithoutBranch("HEAD: does not exist")),
];

struct Scene<'e> {
    env: &'e TestEnv,
    container: DevContainer,
    canary: PathBuf,
    canary_before: Snapshot,
    /// What the canary command leaves.
    ran: PathBuf,
    attacks: &'static [Attack],
    /// The checkouts of each attack's clone when it was made.
    attacked: Vec<Snapshot>,
}

impl<'e> Scene<'e> {
    fn build(env: &'e TestEnv, engine: &Engine, attacks: &'static [Attack]) -> Self {
        let src = env.src();
        let model = HostClone::new(env, "model");
        let container =
            DevContainer::start(engine.container().with_user("root").with_mount(bind(&src, "/workspaces")));
        for name in ["done", "wip", "stranger"] {
            container.add_worktree(
                "/workspaces/model",
                name,
                &format!("/workspaces/model/.worktrees/{name}"),
            );
            model.land(name);
        }
        let done = "/workspaces/model/.worktrees/done";
        // Only the logs name this one: it has to be anchored.
        container.git(done, &["commit", "-q", "--allow-empty", "-m", "lost"]);
        container.git(done, &["reset", "-q", "--hard", "HEAD~1"]);
        container.exec("/workspaces/model/.worktrees/wip", &["sh", "-c", "echo work >work"]);
        let canary = env.root().join("canary");
        for name in [
            "file",
            "config",
            "packed-refs",
            "all",
            "entry/gitdir",
            "logs/refs/heads/done",
            "refs/heads/done",
        ] {
            let path = canary.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("the canary");
            fs::write(path, "theirs\n").expect("the canary");
        }
        for name in ["objects", "lock", "trash", "retired", ".git", "target"] {
            fs::create_dir_all(canary.join(name)).expect("the canary");
        }
        fs::write(canary.join("all"), "*\n").expect("the canary");
        let ran = env.root().join("ran");
        let run = env.root().join("tools/run");
        for dir in [&ran, &env.root().join("tools")] {
            fs::create_dir(dir).expect("a directory");
        }
        fs::write(&run, format!("#!/bin/sh\necho \"$0 $*\" >>{}/trace\n", utf8(&ran))).expect("the command");
        for name in ["run", "pre-commit", "post-checkout", "post-index-change", "reference-transaction"] {
            if name != "run" {
                fs::copy(&run, env.root().join("tools").join(name)).expect("a hook");
            }
            let path = env.root().join("tools").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
        }
        fs::write(canary.join("include"), format!("[core]\n\tfsmonitor = {}\n", utf8(&run)))
            .expect("the canary");

        let mut paths = Vec::new();
        for (name, _, _) in attacks {
            copy_tree(env, &model.path, &src.join(name));
            for of in ["done", "wip", "stranger"] {
                let files = [format!(".git/worktrees/{of}/gitdir"), format!(".worktrees/{of}/.git")];
                for file in files.map(|file| src.join(name).join(file)) {
                    let text = fs::read_to_string(&file).expect("a pointer");
                    fs::write(&file, text.replace("/workspaces/model/", &format!("/workspaces/{name}/")))
                        .expect("a pointer");
                }
            }
            paths.extend(["done", "wip"].map(|of| src.join(name).join(".worktrees").join(of)));
        }
        fs::remove_dir_all(&model.path).expect("the model goes");
        env.treesweep(&["setup", "--engine", "none"]).args(EAGER).args(&paths).assert().success();
        let canary_before = Snapshot::of(&canary);
        Self { env, container, canary, canary_before, ran, attacks, attacked: Vec::new() }
    }

    /// Every attack, from inside the container.
    fn attack(&mut self) {
        let junk = std::env::var(JUNK).unwrap_or_else(|_| "20000".into());
        for (name, script, _) in self.attacks {
            let script = format!(
                "entry=.git/worktrees/done tree=.worktrees/done host={} canary={} run={}/tools/run junk={junk}\n{script}",
                utf8(&self.env.src().join(name)),
                utf8(&self.canary),
                utf8(self.env.root()),
            );
            self.container.exec(&format!("/workspaces/{name}"), &["sh", "-ec", &script]);
        }
        // A socket can't be made with the container's few tools.
        let tree = self.env.src().join("device-ignored/.worktrees/done/target");
        if tree.exists() {
            drop(UnixListener::bind(tree.join("socket")).expect("a socket"));
        }
        self.attacked = self.attacks.iter().map(|(name, _, _)| self.trees(name)).collect();
    }

    /// The checkouts of a clone, but what is to go.
    fn trees(&self, name: &str) -> Snapshot {
        let clone = self.env.src().join(name);
        let all = Snapshot::of_many(&clone, &[".worktrees", "trees", "file.txt"]);
        all.without(&[".worktrees/done/target"])
    }

    /// Variables that a hostile `.env` could set.
    fn hostile_variables(&self) -> Vec<(String, PathBuf)> {
        let run = self.env.root().join("tools/run");
        let of_canary = |name: &str, of: &str| (name.to_owned(), self.canary.join(of));
        let mut all = vec![
            of_canary("GIT_DIR", ".git"),
            of_canary("GIT_WORK_TREE", ""),
            of_canary("GIT_COMMON_DIR", ".git"),
            of_canary("GIT_INDEX_FILE", "file"),
            of_canary("GIT_OBJECT_DIRECTORY", "objects"),
            of_canary("GIT_ALTERNATE_OBJECT_DIRECTORIES", "objects"),
            of_canary("GIT_CONFIG_GLOBAL", "include"),
            of_canary("GIT_CONFIG_SYSTEM", "include"),
            of_canary("GIT_CONFIG", "include"),
            of_canary("GIT_TRACE", "trace"),
            of_canary("GIT_TRACE2", "trace"),
            of_canary("GIT_EXEC_PATH", ""),
            of_canary("GIT_TEMPLATE_DIR", ""),
        ];
        for name in [
            "GIT_SSH",
            "GIT_SSH_COMMAND",
            "GIT_EXTERNAL_DIFF",
            "GIT_EDITOR",
            "GIT_PAGER",
            "GIT_ASKPASS",
            "PAGER",
            "EDITOR",
        ] {
            all.push((name.to_owned(), run.clone()));
        }
        let settings = [
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_REPLACE_REF_BASE", "refs/heads"),
            ("GIT_CONFIG_NOSYSTEM", "0"),
            ("GIT_NAMESPACE", "x"),
            ("GIT_SHALLOW_FILE", "/dev/zero"),
        ];
        all.extend(settings.map(|(name, value)| (name.to_owned(), value.into())));
        all.push(("GIT_CONFIG_VALUE_0".into(), run));
        all
    }

    fn prune(&self) -> Command {
        let mut command = self.env.treesweep_command(&["prune", "--yes", "--json", "--jobs", "1"]);
        command.args(EAGER).arg(self.env.src()).envs(self.hostile_variables());
        command
    }

    fn check(&self, stdout: &str, stderr: &str, took: Duration) {
        let document: Value =
            serde_json::from_str(stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"));
        let document = Document(document);
        let mut wrong = Vec::new();
        for ((name, _, expect), attacked) in self.attacks.iter().zip(&self.attacked) {
            if let Err(why) = self.one(&document, stderr, name, *expect, attacked) {
                wrong.push(format!("{name}: {why}"));
            }
        }
        self.canary_before.assert_same(&Snapshot::of(&self.canary));
        assert!(!self.ran.join("trace").exists(), "{:?}", fs::read_to_string(self.ran.join("trace")));
        for text in [stdout, stderr] {
            assert!(!text.contains('\x1b') && !text.contains('\x07'), "an escape reached the output");
        }
        assert!(wrong.is_empty(), "{}\n{stderr}", wrong.join("\n"));
        assert!(took < DEADLINE, "it took {took:?}");
    }

    fn one(
        &self,
        document: &Document,
        stderr: &str,
        name: &str,
        expect: Expect,
        attacked: &Snapshot,
    ) -> Result<(), String> {
        let clone = self.env.src().join(name);
        let rows = document.worktrees_of(&clone);
        let row = rows.iter().find(|w| w["name"] == "done");
        let outcome = document.outcome_at(&clone.join(".worktrees/done"));
        let differs = attacked.difference(&self.trees(name));
        let said = || {
            format!(
                "{:#} {:#}",
                row.map_or(Value::Null, |r| r["reasons"].clone()),
                outcome.unwrap_or(&Value::Null)
            )
        };
        let gone = matches!(expect, Goes | GoesWithoutBranch(_));
        if gone {
            let outcome = outcome.ok_or_else(said)?;
            let others: Vec<&str> =
                differs.lines().filter(|line| !line.starts_with("- .worktrees/done")).collect();
            if outcome["result"] != "removed" || clone.join(".worktrees/done").symlink_metadata().is_ok() {
                return Err(said());
            }
            if !others.is_empty() {
                return Err(others.join("\n"));
            }
        } else if !differs.is_empty() {
            return Err(differs);
        }
        match expect {
            Keeps(code) => {
                let row = row.ok_or("it is not listed")?;
                let reasons = row["reasons"].as_array().expect("reasons");
                let has = reasons.iter().any(|r| r["code"] == code);
                if row["verdict"] == "reclaim" || row["verdict"] == "forget" || !has {
                    Err(said())
                } else {
                    Ok(())
                }
            }
            Unlisted => {
                let warning = format!("/{name}/.git: ");
                if row.is_none() && stderr.contains(&warning) { Ok(()) } else { Err(said()) }
            }
            Stops(words) => {
                let told = outcome.map(ToString::to_string).unwrap_or_default();
                let refused = stderr.lines().any(|l| l.contains(&format!("/{name}/")) && l.contains(words));
                if refused || told.contains(words) { Ok(()) } else { Err(said()) }
            }
            Goes => {
                if outcome.is_some_and(|o| o["branch"] == "deleted") {
                    Ok(())
                } else {
                    Err(said())
                }
            }
            GoesWithoutBranch(words) => {
                let kept = outcome.is_some_and(|o| o["branch"] == "kept" && o.to_string().contains(words));
                if kept { Ok(()) } else { Err(said()) }
            }
        }
    }

    /// Stock git runs the canary command in the clone of `commands`: the test would see it.
    fn stock_git_is_fooled(&self) {
        let clone = self.env.src().join("commands");
        if clone.exists() {
            let status = self.env.command("git").args(["-C", utf8(&clone), "status"]).output();
            status.expect("git starts");
            assert!(self.ran.join("trace").exists(), "no canary command works");
        }
    }
}

fn survives(attacks: &'static [Attack]) {
    if !is_root() {
        return eprintln!("SKIPPED: needs root, as the container writes as root");
    }
    let Some(engine) = require_engine() else { return };
    for landlock in [Landlock::On, Landlock::Off] {
        let env = TestEnv::in_memory();
        let mut scene = Scene::build(&env, engine, attacks);
        scene.attack();
        // For people too: no name drives the terminal.
        let mut plan = env.treesweep_command(&["plan"]);
        let plan = plan.args(EAGER).arg(env.src()).envs(scene.hostile_variables()).output().expect("a plan");
        assert!(!plan.stdout.contains(&0x1b) && !plan.stderr.contains(&0x1b));
        let started = Instant::now();
        let run = tracer::run(scene.prune(), landlock, &mut |_| Act::Go);
        scene.check(&run.stdout, &run.stderr, started.elapsed());
        assert!(matches!(run.code, Some(0 | 1)), "{:?}", run.code);
        scene.stock_git_is_fooled();
    }
}

#[test]
fn links_of_git_lead_nowhere() {
    survives(LINKS);
}

#[test]
fn links_where_it_writes_lead_nowhere() {
    survives(WRITTEN);
}

#[test]
fn forgeries_and_settings_land_nothing_and_run_nothing() {
    survives(FORGED);
}

#[test]
fn nothing_holds_a_reader() {
    survives(READ);
}

#[test]
fn names_and_shapes_are_only_names_and_shapes() {
    survives(SHAPES);
}

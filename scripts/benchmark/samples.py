"""The samples, each made by a function with real git, and kept in a cache directory between runs."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

# Part of each sample's name: a sample of another recipe is made anew.
RECIPE = 1
CONTAINER = "/workspaces/app"
# When the files of all samples were written, and when their indices were.
OLD, LATER = "2026-01-05T10:00:00Z", "2026-01-05T10:00:10Z"


class Place:
    """Where samples lie, and the environment that everything runs in: none of the caller's settings."""

    def __init__(self, cache, treesweep):
        self.cache, self.treesweep = cache, treesweep
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(cache / "home"),
            "XDG_CONFIG_HOME": str(cache / "config"),
            "XDG_STATE_HOME": str(cache / "state"),
            "XDG_CACHE_HOME": str(cache / "cache"),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "LC_ALL": "C",
        }
        for who in ("AUTHOR", "COMMITTER"):
            self.env |= {f"GIT_{who}_NAME": "dev", f"GIT_{who}_EMAIL": "dev@example.invalid"}
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
            Path(self.env[name]).mkdir(parents=True, exist_ok=True)

    def run(self, *command, text=None):
        """Runs what must succeed; gives what it printed."""
        done = subprocess.run([str(part) for part in command], env=self.env, input=text, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            shown = " ".join(str(part) for part in command[:8])
            raise SystemExit(f"scripts/bench: {shown}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def git(self, where, *arguments, text=None):
        return self.run("git", "-C", where, *arguments, text=text)

    def sample(self, name, make):
        """The directory of the sample `name`; `make` fills it if it is not there yet."""
        done = self.cache / f"{name}.{RECIPE}"
        if not done.is_dir():
            print(f"making the sample {name} ...", flush=True)
            started = time.monotonic()
            shutil.rmtree(self.cache / name, ignore_errors=True)
            (self.cache / name).mkdir(parents=True)
            make(self.cache / name)
            done.mkdir()
            print(f"  took {time.monotonic() - started:.0f} s", flush=True)
        return self.cache / name

    def verdicts(self, root, *flags):
        """How many worktrees the plan gives each verdict: what is measured must be what it is called."""
        plan = json.loads(self.run(self.treesweep, "plan", "--json", *flags, root))
        rows = [row["verdict"] for clone in plan["clones"] for row in clone["worktrees"]]
        return {verdict: rows.count(verdict) for verdict in sorted(set(rows))}


def fill(where, files, size=400):
    """`files` files in directories of 20, three levels deep, and an ignored and an attributes file."""
    for number in range(files - 2):
        group = number // 20
        directory = where / f"pkg{group % 7}" / f"mod{group % 11}" / f"part{group}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"file{number}.txt").write_text(f"{number}\n" + "x" * (size - 8) + "\n")
    (where / ".gitignore").write_text("/.worktrees/\n*.log\nbuild/\n")
    (where / ".gitattributes").write_text("*.txt text\n*.png binary\n")


def clone(place, root, files):
    """A clone of one commit with so many files."""
    app = root / "app"
    place.run("git", "init", "-q", "-b", "main", app)
    fill(app, files)
    place.git(app, "add", "-A")
    place.git(app, "commit", "-q", "-m", "begin")
    return app


def add(place, app, name, landed=True, files=True):
    """A worktree with a commit of its own on the branch `wt/<name>`."""
    checkout = app / ".worktrees" / name
    how = [] if files else ["--no-checkout"]
    place.git(app, "worktree", "add", "-q", *how, "-b", f"wt/{name}", checkout)
    if files:
        (checkout / f"{name}.txt").write_text(f"{name}\n")
        place.git(checkout, "add", f"{name}.txt")
        place.git(checkout, "commit", "-q", "-m", name)
        if landed:
            place.git(app, "merge", "-q", "--ff-only", f"wt/{name}")
    return checkout


def enrol(place, root, names):
    place.run(place.treesweep, "setup", "--quiet", "--engine", "none", "--root", root, *names)


def age(place, app, names):
    """Nothing was touched lately, and git knows it."""
    place.run("find", app, "-exec", "touch", "-h", "-d", OLD, "{}", "+")
    refresh(place, app, names)
    # The index is a little younger than its files, as when nothing was changed since the checkout.
    for name in names:
        entry = app / ".git" / "worktrees" / name
        place.run("touch", "-d", LATER, *(entry / part for part in ("index", "HEAD", "logs/HEAD")))


def told_where(app, name):
    """Git that is told where a worktree is, as it can't be found by links that a container wrote."""
    return f"git --git-dir={app}/.git/worktrees/{name} --work-tree={app}/.worktrees/{name}"


def refresh(place, app, names):
    """Stat data in each index as the files are now."""
    for name in names:
        place.run(*told_where(app, name).split(), "update-index", "-q", "--really-refresh")


def copied(model, app, names):
    """The lines of a script that makes `app` anew: a copy of `model` with its own paths in all links, and indices that
    know the inodes of the copy."""
    lines = [f"rm -rf {app}", f"cp -a {model} {app}"]
    for name in names:
        entry, checkout = f"{app}/.git/worktrees/{name}", f"{app}/.worktrees/{name}"
        lines += [f"echo {checkout}/.git >{entry}/gitdir", f"echo gitdir: {entry} >{checkout}/.git",
                  f"{told_where(app, name)} update-index -q --really-refresh",
                  f"touch -d {OLD} {checkout} {checkout}/.git", f"touch -d {LATER} {entry}/index"]
    return "\n".join(lines) + "\n"


def as_in_container(app, names):
    """Writes both links of each worktree as a container writes them, which has the clone under another path."""
    for name in names:
        dot_git, entry = app / ".worktrees" / name / ".git", app / ".git" / "worktrees" / name
        times = [(path, path.stat()) for path in (dot_git.parent, dot_git, entry)]
        dot_git.write_text(f"gitdir: {CONTAINER}/.git/worktrees/{name}\n")
        (entry / "gitdir").write_text(f"{CONTAINER}/.worktrees/{name}/.git\n")
        for path, was in times:
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))


def names(count):
    return [f"w{number:04}" for number in range(count)]


def landed(place, count, files, container):
    """Owned and landed worktrees: everything is asked of each."""
    def make(root):
        app = clone(place, root, files)
        for name in names(count):
            add(place, app, name)
        enrol(place, root, names(count))
        age(place, app, names(count))
        if container:
            as_in_container(app, names(count))
    kind = "container" if container else "host"
    return place.sample(f"landed-{count}x{files}-{kind}", make)


def mixed(place, count, landing, files):
    """Worktrees of which `landing` have landed, and every second one is owned."""
    def make(root):
        app = clone(place, root, files)
        for at, name in enumerate(names(count)):
            add(place, app, name, landed=at < landing)
        enrol(place, root, names(count)[::2])
        age(place, app, names(count))
        as_in_container(app, names(count))
    return place.sample(f"mixed-{count}-{landing}x{files}", make)


def stale(place, count):
    """Registrations without a directory."""
    def make(root):
        app = clone(place, root, 20)
        for name in names(count):
            add(place, app, name, files=False)
        shutil.rmtree(app / ".worktrees")
        as_in_container_stale(app, names(count))
    return place.sample(f"stale-{count}", make)


def as_in_container_stale(app, all_names):
    for name in all_names:
        (app / ".git/worktrees" / name / "gitdir").write_text(f"{CONTAINER}/.worktrees/{name}/.git\n")


def kept(place, count, files=20):
    """Worktrees with work that has not landed. Git takes seconds to add one where thousands are, so from the hundredth
    on they are copies of the first hundred, written as git writes them."""
    def make(root):
        app = clone(place, root, files)
        first = names(min(count, 100))
        for name in first:
            add(place, app, name, landed=False)
        refs = []
        for at, name in enumerate(names(count)[100:]):
            model = first[at % 100]
            copy(app, model, name)
            commit = (app / ".git/refs/heads/wt" / model).read_text().strip()
            refs.append(f"create refs/heads/wt/{name} {commit}\n")
        place.git(app, "update-ref", "--stdin", text="".join(refs))
        place.git(app, "pack-refs", "--all")
        as_in_container(app, names(count))
        age(place, app, names(count))
    return place.sample(f"kept-{count}x{files}", make)


def copy(app, model, name):
    """The worktree `model` once more under another name, on a branch of that name."""
    entries, checkouts = app / ".git/worktrees", app / ".worktrees"
    shutil.copytree(checkouts / model, checkouts / name, symlinks=True)
    shutil.copytree(entries / model, entries / name)
    (checkouts / name / ".git").write_text(f"gitdir: {entries / name}\n")
    (entries / name / "gitdir").write_text(f"{checkouts / name}/.git\n")
    (entries / name / "HEAD").write_text(f"ref: refs/heads/wt/{name}\n")


def deep_tree(where):
    """50,000 files in 5,000 directories, five levels deep."""
    where.mkdir(parents=True)
    (where / ".git").write_text("gitdir: /nowhere\n")
    level, left = [where], 5000
    for width in (5, 5, 5, 5, 7):
        below = [parent / f"dir{number}" for parent in level for number in range(width)][:left]
        left -= len(below)
        for directory in below:
            directory.mkdir()
            for number in range(10):
                (directory / f"file{number}").write_bytes(b"x" * 1000)
        level = below

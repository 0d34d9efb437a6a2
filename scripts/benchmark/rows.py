"""What is measured: each row is a function that makes sure of its sample, times it, and says which bars it is held to."""

import os
import shlex
import shutil
import socket
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmark import samples
from benchmark.engine import PlayedEngine
from benchmark.measure import Command, line_through, peak_memory, side_by_side


@dataclass
class Bar:
    what: str
    value: float
    bar: float
    goal: float
    unit: str = "x"

    @property
    def met(self):
        return self.value <= self.bar


@dataclass
class Result:
    sample: str
    # Label, and milliseconds of wall and processor time.
    times: list = field(default_factory=list)
    bars: list = field(default_factory=list)
    notes: list = field(default_factory=list)

    def timed(self, timed):
        self.times += [(t.label, t.time * 1000, t.work * 1000) for t in timed.values()]


@dataclass
class Bench:
    place: samples.Place
    # Programs by their names; a competitor that could not be installed is absent.
    tools: dict
    # How many rounds are made of each row.
    rounds: int

    def line(self, tool, *arguments):
        return shlex.join([str(self.tools[tool]), *map(str, arguments)])

    def treesweep(self, *arguments, engine="none"):
        return self.line("treesweep", *arguments[:1], "--engine", engine, *arguments[1:])

    def measure(self, commands, runs):
        return side_by_side(self.place, commands, rounds=self.rounds, runs=runs)

    def expect(self, root, wanted, *flags):
        found = self.place.verdicts(root, "--engine", "none", *flags)
        if found != wanted:
            raise SystemExit(f"scripts/bench: {root}: the plan has {found}, and {wanted} was to be measured")

    def status_loop(self, root):
        """A script that asks git of every worktree. Git is told where each one is: it can't find them by its own links,
        which a container wrote."""
        script, app = root / "status.sh", root / "app"
        names = sorted(os.listdir(app / ".git/worktrees"))
        script.write_text("".join(f"{samples.told_where(app, name)} status --porcelain\n" for name in names))
        return f"sh {script}"


def plan(bench):
    root = samples.landed(bench.place, 60, 2000, container=True)
    twin = samples.landed(bench.place, 60, 2000, container=False)
    bench.expect(root, {"reclaim": 60})
    commands = [
        Command("treesweep plan", bench.treesweep("plan", root)),
        Command("git status loop", bench.status_loop(root)),
        Command("lstat walk", bench.line("lstat_walk", 2, root)),
    ]
    if "wt" in bench.tools:
        # It knows nothing of another vantage, so it gets the same worktrees under their own paths.
        commands.append(Command("wt list", f"env -C {twin}/app {bench.line('wt', 'list')}"))
    timed = bench.measure(commands, runs=5)
    ours, walk = timed["treesweep plan"], timed["lstat walk"]
    result = Result("60 owned, landed worktrees of 2,000 files, container paths, warm")
    result.timed(timed)
    result.bars.append(Bar("`git status` loop", ours.ratio(timed["git status loop"]), 0.6, 0.4))
    if "wt list" in timed:
        result.bars.append(Bar("`wt list`", ours.ratio(timed["wt list"]), 0.5, 0.3))
    result.bars.append(Bar("two-thread `lstat` walk", ours.ratio(walk), 2.2, 1.5))
    return result


def disqualified(bench):
    root = samples.mixed(bench.place, 500, 20, 200)
    bench.expect(root, {"keep": 480, "offer": 10, "reclaim": 10})
    timed = bench.measure([
        Command("treesweep plan", bench.treesweep("plan", root)),
        Command("git status loop", bench.status_loop(root)),
    ], runs=3)
    result = Result("500 worktrees of 200 files, 480 not landed, half of them not owned")
    result.timed(timed)
    ratio = timed["treesweep plan"].ratio(timed["git status loop"])
    result.bars.append(Bar("`git status` loop", ratio, 0.06, 0.04))
    return result


def stale(bench):
    root = samples.stale(bench.place, 900)
    timed = bench.measure([
        Command("treesweep plan", bench.treesweep("plan", root)),
        Command("git worktree list", f"git -C {root}/app worktree list"),
    ], runs=10)
    result = Result("900 registrations without a directory")
    result.timed(timed)
    ratio = timed["treesweep plan"].ratio(timed["git worktree list"])
    result.bars.append(Bar("one `git worktree list`", ratio, 3, 2))
    return result


def delete_tmpfs(bench):
    return delete(bench, Path("/dev/shm"), "in memory", 0.65, 0.5, 1.1, 0.9, runs=5)


def delete_disk(bench):
    return delete(bench, bench.place.cache, "on disk, after `sync`", 0.5, 0.4, 0.8, 0.65, runs=3)


def delete(bench, where, medium, rm_bar, rm_goal, rmz_bar, rmz_goal, runs):
    base = where / "treesweep-bench-delete"
    shutil.rmtree(base, ignore_errors=True)
    model, tree = base / "model", base / "tree"
    samples.deep_tree(model)
    again = base / "again.sh"
    again.write_text(f"set -e\nrm -rf {tree}\ncp -a {model} {tree}\nsync -f {tree}\n")
    commands = [
        Command("treesweep's engine", bench.line("remove_tree", tree), f"sh {again}"),
        Command("rm -rf", f"rm -rf {tree}", f"sh {again}"),
    ]
    if "rmz" in bench.tools:
        commands.append(Command("rmz", bench.line("rmz", "-f", tree), f"sh {again}"))
    try:
        timed = bench.measure(commands, runs=runs)
    finally:
        shutil.rmtree(base, ignore_errors=True)
    ours = timed["treesweep's engine"]
    result = Result(f"50,000 files in 5,000 directories, depth 5, {medium}")
    result.timed(timed)
    result.bars.append(Bar("`rm -rf`", ours.ratio(timed["rm -rf"]), rm_bar, rm_goal))
    if "rmz" in timed:
        result.bars.append(Bar("`rmz`", ours.ratio(timed["rmz"]), rmz_bar, rmz_goal))
    return result


def prune(bench):
    model, names = samples.landed(bench.place, 60, 2000, container=False) / "app", samples.names(60)
    root = bench.place.cache / "prune"
    root.mkdir(exist_ok=True)
    app, again, removal = root / "app", root / "again.sh", root / "remove.sh"
    again.write_text("set -e\n" + samples.copied(model, app, names) + f"sync -f {app}\n")
    removal.write_text("set -e\n" + "".join(
        f"git -C {app} worktree remove --force {app}/.worktrees/{name}\n" for name in names))
    bench.place.run("sh", again)
    bench.expect(root, {"reclaim": 60})
    try:
        timed = bench.measure([
            Command("treesweep prune --yes", bench.treesweep("prune", "--yes", root), f"sh {again}"),
            Command("git worktree remove loop", f"sh {removal}", f"sh {again}"),
        ], runs=1)
    finally:
        shutil.rmtree(root)
    result = Result("60 worktrees of 2,000 files on disk: plan, removal and proof")
    result.timed(timed)
    ratio = timed["treesweep prune --yes"].ratio(timed["git worktree remove loop"])
    result.bars.append(Bar("`git worktree remove --force` loop", ratio, 0.5, 0.35))
    return result


def nothing(bench):
    root = samples.kept(bench.place, 20, files=200)
    bench.expect(root, {"keep": 20})
    result = Result("one clone with 20 kept worktrees")
    commands = [
        Command("treesweep prune --yes, no engine", bench.treesweep("prune", "--yes", root)),
        Command("treesweep --version", bench.line("treesweep", "--version")),
    ]
    engine = Path("/var/run/docker.sock")
    if answers(engine):
        asked = bench.treesweep("prune", "--yes", root, engine=str(engine))
        commands.insert(0, Command("treesweep prune --yes", asked))
    else:
        result.notes.append("no engine answers here")
    timed = bench.measure(commands, runs=10)
    result.timed(timed)
    if "treesweep prune --yes" in timed:
        own = answer_time(engine)
        result.times.append(("the engine's own answer", own * 1000, 0))
        over = (timed["treesweep prune --yes"].time - own) * 1000
        result.bars.append(Bar("the engine's own answer, more than", over, 40, 20, "ms"))
    result.bars.append(Bar("`--version`", timed["treesweep --version"].time * 1000, 5, 5, "ms"))
    return result


def answers(engine):
    try:
        return stat.S_ISSOCK(engine.stat().st_mode) and answer_time(engine, 1) > 0
    except OSError:
        return False


def answer_time(engine, times=51):
    """How long the engine takes to list its containers, asked without any client."""
    return median(ask(engine) for _ in range(times))


def ask(engine):
    started = time.monotonic()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(str(engine))
        connection.sendall(b"GET /containers/json?all=true HTTP/1.0\r\nHost: d\r\n\r\n")
        answer = connection.recv(1 << 16)
        while connection.recv(1 << 16):
            pass
    if b" 200 " not in answer.split(b"\r\n")[0]:
        raise SystemExit(f"scripts/bench: {engine}: {answer[:200]}")
    return time.monotonic() - started


def memory(bench):
    root = samples.landed(bench.place, 1000, 500, container=True)
    bench.expect(root, {"reclaim": 1000})
    few, many = (samples.kept(bench.place, count) for count in (100, 1000))
    plan_of = lambda place: shlex.split(bench.treesweep("plan", place))
    peak = median(peak_memory(bench.place, plan_of(root)) for _ in range(3))
    low, high = (median(peak_memory(bench.place, plan_of(place)) for _ in range(3)) for place in (few, many))
    result = Result("1,000 owned, landed worktrees of 500 files; 100 and 1,000 kept ones")
    result.bars.append(Bar("peak resident", peak / 2**20, 150, 80, "MiB"))
    result.bars.append(Bar("more for a kept worktree", (high - low) / 900 / 2**10, 20, 20, "KiB"))
    return result


def scale(bench):
    result = Result("100, 1,000 and 5,000 kept registrations; 1, 100 and 1,000 containers")
    roots = {count: samples.kept(bench.place, count) for count in (100, 1000, 5000)}
    timed = bench.measure([
        Command(f"{count} registrations", bench.treesweep("plan", root)) for count, root in roots.items()
    ], runs=3)
    result.timed(timed)
    start, slope, fit = line_through([(count, timed[f"{count} registrations"].time) for count in roots])
    result.notes.append(f"time = {start * 1000:.1f} ms + {slope * 1e6:.0f} us a registration, R^2 = {fit:.4f}")
    work = {}
    for containers in (1, 100, 1000):
        with PlayedEngine(bench.place.cache / "engine.sock", containers) as engine:
            commands = [
                Command(f"{containers} containers, {count} registrations",
                        bench.treesweep("plan", roots[count], engine=str(engine.socket)))
                for count in (100, 1000)
            ]
            timed = bench.measure(commands, runs=3)
        result.timed(timed)
        work[containers] = [timed[command.label].work for command in commands]
    # What a thousand containers add may not depend on how many worktrees there are.
    added = [(work[1000][at] - work[1][at]) * 1000 for at in (0, 1)]
    result.notes.append(f"1,000 containers in place of 1 take {added[0]:.1f} ms of processor time more with 100 "
                        f"registrations, and {added[1]:.1f} ms with 1,000")
    return result


ROWS = {
    "plan": ("plan, all candidates", plan),
    "disqualified": ("plan, mostly disqualified", disqualified),
    "stale": ("plan, stale entries", stale),
    "delete-tmpfs": ("delete, in memory", delete_tmpfs),
    "delete-disk": ("delete, from disk", delete_disk),
    "prune": ("delete, many", prune),
    "nothing": ("nothing to do", nothing),
    "memory": ("memory", memory),
    "scale": ("scale", scale),
}

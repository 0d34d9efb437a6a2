"""Timing commands side by side with hyperfine: rounds of all of them in turn, so that a slow minute hits them alike."""

import json
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median


@dataclass
class Timed:
    """What one command took; times are in seconds."""

    label: str
    # Of each round, the median of its runs.
    rounds: list = field(default_factory=list)
    cpu: list = field(default_factory=list)

    @property
    def time(self):
        return median(self.rounds)

    @property
    def work(self):
        """User and system time of all threads."""
        return median(self.cpu)

    def ratio(self, other):
        """To `other`, the median over the rounds in which both ran."""
        return median(mine / theirs for mine, theirs in zip(self.rounds, other.rounds))

    def cpu_ratio(self, other):
        return median(mine / theirs for mine, theirs in zip(self.cpu, other.cpu))


@dataclass
class Command:
    label: str
    line: str
    # Run before each run and not timed.
    prepare: str = ""


def side_by_side(place, commands, rounds=5, runs=5, warmup=1):
    """Times of all of `commands`, by their labels."""
    timed = {command.label: Timed(command.label) for command in commands}
    for number in range(rounds):
        # Whoever runs first pays for caches that another left cold, so they take turns at it.
        for command in commands[number % len(commands):] + commands[:number % len(commands)]:
            result = hyperfine(place, command, runs, warmup)
            timed[command.label].rounds.append(result["median"])
            timed[command.label].cpu.append(result["user"] + result["system"])
    return timed


def hyperfine(place, command, runs, warmup):
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "report.json"
        line = ["hyperfine", "-N", "--style", "none", "--runs", str(runs), "--export-json", str(report)]
        # What destroys its sample needs a new one each time.
        if command.prepare:
            line += ["--prepare", command.prepare]
        else:
            line += ["--warmup", str(warmup)]
        done = subprocess.run([*line, command.line], env=place.env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"scripts/bench: {command.line}\n{done.stdout}{done.stderr}")
        return json.loads(report.read_text())["results"][0]


def peak_memory(place, command):
    """The most resident bytes of one run."""
    done = subprocess.run(["/usr/bin/env", "python3", "-c", PEAK, *command], env=place.env, capture_output=True,
                          text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"scripts/bench: {command}: {done.stderr}")
    return int(done.stdout) * 1024


# In a process of its own, whose other children would count too.
PEAK = """
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def line_through(points):
    """Least squares through (n, seconds): what it takes at 0, what each more takes, and the part that this explains."""
    count = len(points)
    mean_x, mean_y = (sum(p[axis] for p in points) / count for axis in (0, 1))
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    start = mean_y - slope * mean_x
    off = sum((y - start - slope * x) ** 2 for x, y in points)
    total = sum((y - mean_y) ** 2 for _, y in points)
    return start, slope, 1 - off / total

"""What was measured as text: on the terminal, and in docs/benchmarks.md between two marks."""

import os
import platform
import subprocess
from pathlib import Path

from benchmark.rows import ROWS

BEGIN, END = "<!-- written by scripts/bench -->", "<!-- until here -->"


def shown(title, result):
    lines = [f"\n{title}: {result.sample}"]
    for label, wall, cpu in result.times:
        lines.append(f"  {label:<44} {wall:9.1f} ms   {cpu:9.1f} ms of processor time")
    for bar in result.bars:
        said = "met" if bar.met else "MISSED"
        lines.append(f"  {plain(bar.what):<44} {value(bar):>9}      bar {limit(bar.bar, bar)}, {said}")
    return "\n".join(lines + [f"  {note}" for note in result.notes])


def plain(text):
    return text.replace("`", "")


def value(bar):
    return f"{bar.value:.2f} x" if bar.unit == "x" else f"{bar.value:.1f} {bar.unit}"


def limit(number, bar):
    return f"{number:g} {bar.unit}"


def write(path, results, tools, cache):
    text = path.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    parts = [machine(tools, cache), bars(results), times(results), notes(results)]
    path.write_text(before + BEGIN + "\n\n" + "\n\n".join(parts) + "\n\n" + END + after)


def machine(tools, cache):
    def said(*command):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else "unknown"
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    disk = said("stat", "-f", "-c", "%T", cache)
    commit = said("git", "-C", path_of_repository(), "rev-parse", "--short=10", "HEAD")
    versions = [said("git", "--version"), said("rm", "--version"), said("hyperfine", "--version")]
    versions += [f"{name} {said(tools[name], '--version').split()[-1]}" for name in ("wt", "rmz") if name in tools]
    return (f"{os.cpu_count()} cores of {model}, {memory:.0f} GiB, Linux {platform.release()}, {disk}; "
            f"{', '.join(versions)}; commit {commit}.")


def path_of_repository():
    return Path(__file__).resolve().parents[2]


def table(head, rows):
    lines = ["| " + " | ".join(row) + " |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines)


def bars(results):
    rows = []
    for row, result in results.items():
        for bar in result.bars:
            verdict = "goal" if bar.value <= bar.goal else "met" if bar.met else "**missed**"
            rows.append([ROWS[row][0], bar.what, value(bar), limit(bar.bar, bar), limit(bar.goal, bar), verdict])
    return table(["work", "beside", "measured", "bar", "goal", ""], rows)


def times(results):
    rows = []
    for row, result in results.items():
        for label, wall, cpu in result.times:
            rows.append([row, f"`{label}`", f"{wall:.1f} ms", f"{cpu:.1f} ms" if cpu else ""])
    return table(["row", "command", "time", "processor time"], rows)


def notes(results):
    samples = [f"- `{row}`: {result.sample}" + "".join(f"; {note}" for note in result.notes) + "."
               for row, result in results.items()]
    return "\n".join(samples)

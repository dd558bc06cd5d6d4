"""What the compiler's own steps cost: bind, edit, emit, explain per second; compile time per
candidate.

    ./dev bench compiler [--json]

Programs are those of examples/programs under the schedules of examples/schedules (E1 to E6, with
the numbers that their comments give) and under their default schedules. bench/compiler_speed.c
does the work: rates are calls per second of processor time, the median of five rounds; the last
column is the wall time that an installed C compiler takes per candidate, ten candidates to a file.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STEPS = ("bind", "edit", "emit", "explain")


def built() -> Path:
    """bench/compiler_speed.c, built beside the library."""
    folder = Path(os.environ.get("CANVAS_BENCH_BUILD", ROOT / "build"))
    command = ["cmake", "--build", str(folder), "--target", "compiler_speed"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return folder / "compiler_speed"


def subjects() -> list[tuple[str, list[str], str]]:
    """(name, program and schedule, values)"""
    found = []
    for path in sorted((ROOT / "examples/schedules").glob("*.schedule")):
        text = path.read_text()
        program = re.search(r"^# Program: (.+)$", text, re.M)
        values = re.search(r"^# Values: (.+)$", text, re.M)
        if program and not path.stem.endswith("_values"):
            words = [str(ROOT / program[1]), str(path)]
            found.append((path.stem, words, values[1] if values else ""))
    for path in sorted((ROOT / "examples/programs").glob("*.program")):
        found.append((f"{path.stem}, default", [str(path), "default"], ""))
    return found


def measure(program: Path, words: list[str], values: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        command = [str(program), *words, cache, *([values] if values else [])]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="time the compiler's own steps")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    program = built()
    rows = {name: measure(program, words, values) for name, words, values in subjects()}
    median = {
        step: statistics.median(row[step] for row in rows.values())
        for step in (*STEPS, "compile_ms")
    }
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    if options.json:
        print(json.dumps({"machine": machine, "median": median, "rows": rows}, indent=1))
        return
    print(f"calls per second of one core, {machine}; compile: wall time per candidate")
    print(f"{'':28}" + "".join(f"{step:>10}" for step in STEPS) + f"{'compile':>12}")
    for name, row in [*rows.items(), ("median", median)]:
        rates = "".join(f"{row[step]:10,.0f}" for step in STEPS)
        print(f"{name:28}{rates}{row['compile_ms']:9.1f} ms")


if __name__ == "__main__":
    main()

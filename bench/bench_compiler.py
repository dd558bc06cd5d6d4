"""The compiler's own speed: its steps, a candidate from schedule to verdict, a check.

    ./dev bench compiler [--candidates 200] [WORD...]
    ./dev bench compiler --screen 1000
    ./dev bench compiler --checks

Programs are those of examples/programs under the schedules of examples/schedules (E1 to E6, with
the numbers in their comments) and under their default schedules. bench/compiler_speed.c does the
work: rates are calls per second of processor time, the median of five rounds; `compile` is the
wall time of an installed C compiler per candidate, ten to a file. It also does the phases of
--candidates different candidates (0: none) of about a millisecond, twenty to a file. --checks:
seconds until the outputs of each convolution of ResNet-18 at batch 16 are known (docs/native.md),
with an empty cache and again. WORDs choose programs by their names.
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
from typing import Any

import harness
from harness import ROOT, built

STEPS = ("bind", "edit", "emit", "explain")


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


def json_of(*command: str) -> dict[str, Any]:
    """The JSON object that a program prints."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measure(program: Path, words: list[str], values: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as cache:
        return json_of(str(program), "steps", cache, *words, *([values] if values else []))


def candidates(count: int, what: str) -> dict[str, Any]:
    """What a candidate costs, by phase; wall time in milliseconds."""
    with tempfile.TemporaryDirectory() as cache:
        return json_of(str(built("compiler_speed")), what, cache, str(count))


def screen(count: int, recorder: harness.Recorder) -> str:
    """So many candidates, screened as in a search, and nothing else."""
    found = candidates(count, "screen")
    row = found["screen"]
    taken = {"wall time": (1e-3 * count * row["ms"], "s"),
             "processor time": (found["processor_s"], "s")}  # fmt: skip
    recorder.add("screen", f"{count} candidates", taken)
    return (
        f"{count} candidates in {1e-3 * count * row['ms']:.1f} s, {found['processor_s']:.1f} s of "
        f"processor time; fastest {row['fastest_ms']:.3f} ms, median {row['median_ms']:.3f} ms, "
        f"{row['compiler']}"
    )


def resnet18_layers() -> list[tuple[str, list[str]]]:
    """The different convolutions of ResNet-18 at 224 x 224, 16 images: names and arguments."""
    sizes = [(3, 64, 224, 7, 2), (64, 64, 56, 3, 1)]
    for channels, size in ((64, 56), (128, 28), (256, 14)):
        sizes += [(channels, 2 * channels, size, kernel, 2) for kernel in (3, 1)]
        sizes += [(2 * channels, 2 * channels, size // 2, 3, 1)]
    names = ("in_channels", "out_channels", "height", "kernel", "stride")
    found = []
    for row in sizes:
        given = [f"{name}={value}" for name, value in zip(names, row)]
        given += [f"width={row[2]}", f"padding={row[3] // 2}", "batch=16"]
        found.append((f"{row[3]}x{row[3]} s{row[4]} {row[0]}-{row[1]}@{row[2]}", given))
    return found


def check(given: list[str], folder: str) -> list[dict[str, Any]]:
    """`canvas run` of the convolution: with an empty cache, and again."""
    canvas, path = str(built("canvas")), Path(folder) / "layer.program"
    command = [canvas, "operator", "conv2d_nchw", *given]
    path.write_text(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    os.environ["XDG_CACHE_HOME"] = folder
    return [json_of(canvas, "run", str(path), "--repeats", "5", "--json") for _ in range(2)]


def checks(as_json: bool, recorder: harness.Recorder) -> None:
    rows = {}
    for name, given in resnet18_layers():
        with tempfile.TemporaryDirectory() as folder:
            rows[name] = check(given, folder)
        first, again = rows[name]
        recorder.add("checks", name, {"empty cache": (first["reference"], "s"),
                                      "again": (again["reference"], "s"),
                                      "elements": (first["elements"], "")})  # fmt: skip
    if as_json:
        print(json.dumps(rows))
        return
    print("seconds to find what the outputs are, 16 images: with an empty cache, and again")
    for name, runs in rows.items():
        counts = f"{runs[0]['compared']:,} of {runs[0]['elements']:,} compared"
        print(f"{name:20}{runs[0]['reference']:6.2f}{runs[1]['reference']:6.2f}  {counts}")


def print_phases(found: dict[str, Any]) -> None:
    print(f"\n{found['candidates']} candidates of one matrix product, wall time of each")
    print(f"  schedule to C              {found['write_ms']:7.2f} ms")
    print(f"  compile, twenty to a file  {found['compile_ms']:7.2f} ms")
    rows = {
        "measure": "check and time             ",
        "all": "compiled while measured    ",
        "screen": "screened (canvas_run_options)",
    }
    for name, words in rows.items():
        row = found[name]
        print(
            f"  {words:27}{row['ms']:7.2f} ms  fastest {row['fastest_ms']:.3f} ms, "
            f"median {row['median_ms']:.3f} ms, {row['compiler']}"
        )


PHASES = {"write_ms": "numbers drawn, bound, written as C", "compile_ms": "compiled with gcc -O2",
          "measure": "loaded, checked, timed (30 samples)",
          "all": "both, the next file compiled while one is measured",
          "screen": "screened"}  # fmt: skip


def steps(options: argparse.Namespace, recorder: harness.Recorder) -> None:
    program = built("compiler_speed")
    units = {step: (step, "per s") for step in STEPS} | {"compile": ("compile_ms", "ms")}
    rows = {}
    for name, words, values in subjects():
        if options.words and not any(word in name for word in options.words):
            continue
        rows[name] = measure(program, words, values)
        recorder.add("steps", name, harness.pick(rows[name], units))
    if not rows:
        sys.exit(f"no program's name has one of the words {' '.join(options.words)}")
    median = {
        step: statistics.median(row[step] for row in rows.values())
        for step in (*STEPS, "compile_ms")
    }
    machine = f"{platform.machine()}, {os.cpu_count()} cores"
    found = candidates(options.candidates, "candidates") if options.candidates else {}
    for key, phase in PHASES.items() if found else ():
        ms = found[key]["ms"] if isinstance(found[key], dict) else found[key]
        recorder.add("candidate", phase, {"time": (float(ms), "ms")})
    if options.json:
        print(json.dumps({"machine": machine, "median": median, "rows": rows, "candidate": found}))
        return
    print(f"calls per second of one core, {machine}; compile: wall time per candidate")
    print(f"{'':28}" + "".join(f"{step:>10}" for step in STEPS) + f"{'compile':>12}")
    for name, row in [*rows.items(), ("median", median)]:
        rates = "".join(f"{row[step]:10,.0f}" for step in STEPS)
        print(f"{name:28}{rates}{row['compile_ms']:9.1f} ms")
    if found:
        print_phases(found)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="only programs that hold one")
    parser.add_argument("--candidates", type=int, default=200, metavar="N")
    parser.add_argument("--screen", type=int, metavar="N", help="N candidates, nothing else")
    parser.add_argument("--checks", action="store_true", help="ResNet-18's layers, nothing else")
    options = parser.parse_args()
    recorder = harness.Recorder("compiler", options.record)
    if options.checks:
        checks(options.json, recorder)
    elif options.screen:
        print(screen(options.screen, recorder))
    else:
        steps(options, recorder)


if __name__ == "__main__":
    harness.run(main)

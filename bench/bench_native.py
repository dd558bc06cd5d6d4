"""Hand and default schedules against oneDNN and torch, case by case, on one core.

    ./dev bench native [--json] [--isa ISA] [--rounds N] [--compile all|rows|none] [--resume]
                       [--report FILE] [WORD...]

`ratio` is how many times faster the hand schedule is: than oneDNN (its C API, convolution_direct,
every layout as it likes, weights packed beforehand on both sides), of softmax, norms, gelu and
attention than the better of torch eager and torch.compile, of figure 6 than the same op by op in
oneDNN. Contenders take turns in one process, timed by the thread's processor time; every result is
compared with torch's before. An instruction set that this machine lacks is skipped by name. WORDs
choose cases whose names hold them ("b16" is in the name). Rows go to build/native/rows.jsonl as
they come; --resume keeps those that stand there. --compile rows (the default) runs torch.compile
where it is the yardstick, all everywhere. --report writes the page's table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import native_onednn

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "native"
NEEDS = {"avx512": "avx512f", "avx2": "avx2"}
LIMITS = {
    "avx512": {},
    "avx2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",  # of torch.compile; else AVX2 with 32 registers
    },
}
NOISE = 0.02  # a goal is met within it
DEFAULT = 0.8  # of the hand schedule: what a default should reach
Row = dict[str, Any]


def flags() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    match = re.search(r"^flags\s*:(.*)$", text, re.M)
    return set(match[1].split()) if match else set()


def processor() -> str:
    try:
        match = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        match = None
    return match[1] if match else platform.processor() or platform.machine()


def measured(isa: str, known: list[Row], options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a child; each stands in the file before the next begins."""
    done = [[row["name"], row["batch"]] for row in known if row["isa"] == isa]
    command = [sys.executable, str(HERE / "native_worker.py"), isa, str(FOLDER)]
    command += ["--rounds", str(options.rounds), "--compile", options.compile]
    command += ["--known", json.dumps(done), *options.words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **LIMITS[isa]}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(FOLDER / f"inductor-{isa}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout
        for line in child.stdout:
            with (FOLDER / "rows.jsonl").open("a") as file:
                file.write(line)
            yield json.loads(line)
    if child.returncode:
        yield {"name": "the rest", "batch": 0, "isa": isa, "error": "the process ended"}


# ---- what is printed ---------------------------------------------------------------------------


def number(row: Row, key: str, form: str = ".2f") -> str:
    value = row.get(key)
    return format(value, form) if isinstance(value, float) else ""


def duration(row: Row, key: str) -> str:
    value = row.get(f"{key}_us")
    if value is None:
        return ""
    return f"{value / 1000:.1f} ms" if value >= 1e4 else f"{value:.0f} us"


COLUMNS = {
    "case": lambda row: row["name"],
    "batch": lambda row: str(row["batch"]),
    "hand": lambda row: number(row, "ratio"),
    "default": lambda row: number(row, "default_ratio"),
    "goal": lambda row: verdict(row),
    "cycles/FMA": lambda row: number(row, "cycles_per_fma"),
    "bytes": lambda row: number(row, "bytes", ".1f"),
    "hand time": lambda row: duration(row, "hand"),
    "oneDNN": lambda row: duration(row, "onednn"),
    "torch": lambda row: duration(row, "torch"),
    "compile": lambda row: duration(row, "compile"),
    "oneDNN runs": lambda row: row.get("implementation", ""),
}


def met(row: Row) -> bool | None:
    if row.get("ratio") is None or not row.get("floor"):
        return None
    return row["ratio"] >= row["floor"] * (1 - NOISE)


def verdict(row: Row) -> str:
    words = {None: "", True: "met", False: f"missed ({row.get('floor')})"}
    return row.get("error") or row.get("hand_error") or words[met(row)]


def table(rows: list[Row]) -> str:
    used = {k: v for k, v in COLUMNS.items() if any(v(row) for row in rows)}
    lines = [f"| {' | '.join(used)} |", "|" + "---|" * len(used)]
    return "\n".join(lines + [f"| {' | '.join(f(r) for f in used.values())} |" for r in rows])


def mean(rows: list[Row], key: str = "ratio") -> float:
    logs = [math.log(row[key]) for row in rows if row.get(key) and row.get("goal") != "fused"]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def summary(isa: str, rows: list[Row]) -> str:
    judged = [row for row in rows if met(row) is not None]
    missed = [
        f"{row['name']} b{row['batch']} ({row['ratio']:.2f})" for row in judged if not met(row)
    ]
    below = [
        f"{row['name']} b{row['batch']} ({row['default_ratio'] / row['ratio']:.2f})"
        for row in rows
        if row.get("default_ratio") and row["default_ratio"] < DEFAULT * row["ratio"]
    ]
    text = f"{isa}: geometric mean {mean(rows):.2f} of hand schedules"
    text += f", {mean(rows, 'default_ratio'):.2f} of default ones"
    text += f" (without figure 6); {len(judged) - len(missed)} of {len(judged)} goals met"
    text += f"; missed: {', '.join(missed)}" if missed else ""
    return text + (f"; defaults below {DEFAULT} of hand: {', '.join(below)}" if below else "")


def setting() -> dict[str, str]:
    def of(*command: str) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=HERE)
        except OSError:
            return "none"
        return (done.stdout.splitlines() or [""])[0]

    library, why = native_onednn.build(FOLDER)
    version = why or native_onednn.Speed(library).version()
    torch = of(sys.executable, "-c", "import torch; print(torch.__version__)")
    compiler = of(*(os.environ.get("CANVAS_CC") or "cc").split()[:1], "--version")
    return {
        "processor": processor(),
        "compiler": compiler,
        "oneDNN": version,
        "torch": torch or "none",
        "commit": of("git", "describe", "--always", "--dirty"),
    }


def page(rows: list[Row], about: dict[str, str]) -> str:
    """A section for each instruction set that there are rows of."""
    command = " ".join(word for word in ["./dev bench native", *sys.argv[1:]] if word)
    lines = [f"- {name}: {value}" for name, value in [*about.items(), ("command", command)]]
    parts = []
    for isa in NEEDS:
        here = [row for row in rows if row["isa"] == isa]
        here.sort(key=lambda row: (row["name"], row["batch"]))
        if here:
            parts += [f"### {isa}", "\n".join(lines), summary(isa, here) + ".", table(here)]
    return "\n\n".join(parts) + "\n"


def sections(text: str) -> dict[str, str]:
    return {part.split("\n", 1)[0]: part for part in re.split(r"^(?=### )", text, flags=re.M)[1:]}


def write_report(path: Path, name: str, text: str) -> None:
    """Between the two marks of the benchmark in the page, or a page of its own; sections ("### ")
    that the text has not got stay as they are."""
    first, last = f"<!-- ./dev bench {name} -->\n", "<!-- end -->\n"
    old = path.read_text() if path.exists() else first + last
    before, rest = old.split(first)
    kept, after = rest.split(last)
    if text.startswith("### "):
        found = sections(kept) | sections(text)
        text = "\n\n".join(part.strip("\n") for part in found.values()) + "\n"
    path.write_text(f"{before}{first}\n{text}\n{last}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per case")
    parser.add_argument("--isa", choices=list(NEEDS), help="only this instruction set")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compile", choices=("all", "rows", "none"), default="rows")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--report", type=Path, help="write the table into this page")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that hold it")
    options = parser.parse_intermixed_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "rows.jsonl"
    if not options.resume:
        kept.unlink(missing_ok=True)
    rows: list[Row] = (
        [json.loads(t) for t in kept.read_text().splitlines()] if kept.exists() else []
    )
    about = setting()
    if not options.json:
        print("\n".join(f"{name}: {value}" for name, value in about.items()), flush=True)
    for isa, flag in NEEDS.items():
        if options.isa not in (None, isa):
            continue
        if flag not in flags():
            print(f"{isa}: skipped, this machine has no {flag}", file=sys.stderr)
            continue
        for row in measured(isa, rows, options):
            rows.append(row)
            if options.json:
                print(json.dumps({**row, **about}), flush=True)
            else:
                name = f"{row['name']} b{row['batch']}"
                shown = f"{number(row, 'ratio'):>6}{number(row, 'default_ratio'):>7}"
                print(f"{isa:7}{name:26}{shown}  {verdict(row)}", flush=True)
    if options.words and not rows:
        print(f"no case's name has the words {' '.join(options.words)}", file=sys.stderr)
        sys.exit(2)
    if not options.json:
        for isa in NEEDS:
            here = [row for row in rows if row["isa"] == isa]
            if here:
                print(summary(isa, here))
    if options.report:
        write_report(options.report, "native", page(rows, about))


if __name__ == "__main__":
    main()

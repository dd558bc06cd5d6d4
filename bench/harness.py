"""What all benchmarks share: their options, where they ran, and the results that they record.

A result is one line of bench/results/NAME.jsonl:

    {"table": "avx512", "case": "gemm 1024 b1", "column": "hand", "value": 0.98, "unit": "times",
     "machine": "AMD EPYC (Zen 5), 2 cores, AVX-512", "commit": "9656b51", "date": "2026-11-28"}

`table` is a group of cases, `column` the quantity measured. A value is a number, or text if no
number fits (a verdict, the name of a schedule's rule). `spread` and `seed` are optional;
`commit` ends with "-dirty" if tracked files differed from it. Rows of older reports have null
where the report did not say it. `./dev bench report` makes tables of these.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import itertools
import json
import math
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
TEXTS = ("table", "case", "column", "unit")  # fields that are always text
ORIGIN = ("machine", "commit", "date")  # fields that are text or null
OPTIONAL = ("spread", "seed")
MINE = (":!bench/results", ":!docs/reports")  # what recording itself changes: not a dirty tree
Row = dict[str, Any]


class BadResults(Exception):
    """A file of results that cannot be read or written."""


def folder() -> Path:
    """Where results are kept; CANVAS_BENCH_RESULTS names another folder for trial runs."""
    return Path(os.environ.get("CANVAS_BENCH_RESULTS") or RESULTS)


# ---- rows ---------------------------------------------------------------------------------------


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def fault(row: Any) -> str:
    """What is wrong with a row; "" if nothing is."""
    if not isinstance(row, dict):
        return "no JSON object"
    for name in TEXTS:
        if not isinstance(row.get(name), str):
            return f"'{name}' is not text"
    for name in ORIGIN:
        if name not in row or not isinstance(row[name], (str, type(None))):
            return f"'{name}' is neither text nor null"
    value = row.get("value")
    if not isinstance(value, str) and not (is_number(value) and math.isfinite(value)):
        return "'value' is neither a number nor text"
    for name in row.keys() - {*TEXTS, *ORIGIN, "value"}:
        if name not in OPTIONAL or not is_number(row[name]):
            return f"'{name}' is unknown or no number"
    return ""


def parse(text: str, path: Path) -> list[Row]:
    if text and not text.endswith("\n"):
        raise BadResults(f"the last line of '{path}' is cut off; remove it")
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        wrong = fault(row)
        if wrong:
            raise BadResults(
                f"line {number} of '{path}' is no result: {wrong}; correct or remove it"
            )
        rows.append(row)
    return rows


def read(name: str) -> list[Row]:
    """All rows of a benchmark, the oldest first; none if it has no file."""
    path = folder() / f"{name}.jsonl"
    try:
        return parse(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise BadResults(f"'{path}' cannot be read: {error}") from error


def append(name: str, rows: Iterable[Row]) -> None:
    """All of the rows or none: one write under a lock, undone if the disk is full."""
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path = folder() / f"{name}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "ab", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = os.fstat(file.fileno()).st_size
            try:
                if file.write(text) != len(text):
                    raise OSError("the disk is full")
            except BaseException:
                file.truncate(before)
                raise
    except OSError as error:
        raise BadResults(f"'{path}' cannot be written: {error}") from error


# ---- where it ran -------------------------------------------------------------------------------


def said_by(*command: str) -> str:
    """The first line that a command prints; "" if there is none or it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    except OSError:
        return ""
    return (done.stdout.splitlines() or [""])[0] if done.returncode == 0 else ""


def cpu_facts() -> dict[str, str]:
    """Of /proc/cpuinfo, the first processor."""
    try:
        text = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return {}
    return dict(re.findall(r"^(.+?)\s*: (.*)$", text, re.M))


def flags() -> set[str]:
    return set(cpu_facts().get("flags", "").split())


def processor() -> str:
    """Its name, with family and model, since virtual machines hide the name."""
    facts = cpu_facts()
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in facts:
        name += f" family {facts['cpu family']} model {facts.get('model', '?')}"
    return name


def machine() -> str:
    isa = next(
        (n for f, n in (("avx512f", "AVX-512"), ("avx2", "AVX2")) if f in flags()), "no AVX2"
    )
    parts = [processor(), f"{os.cpu_count()} cores", isa]
    if "torch" in sys.modules:
        parts.append(f"torch {sys.modules['torch'].__version__}")
    return ", ".join(parts)


def commit() -> str | None:
    found = said_by("git", "rev-parse", "--short=7", "HEAD")
    changed = said_by("git", "status", "--porcelain", "-uno", "--", ".", *MINE)
    return f"{found}-dirty" if found and changed else found or None


# ---- recording ----------------------------------------------------------------------------------


def rounded(value: Any) -> Any:
    return float(f"{value:.6g}") if isinstance(value, float) else value


class Recorder:
    """Appends results as they come, if the user asked for it; its file is checked first."""

    def __init__(self, name: str, wanted: bool) -> None:
        self.name, self.wanted = name, wanted
        self.origin: Row = {}
        if wanted:
            read(name)

    def add(self, table: str, case: str, values: dict[str, tuple[Any, str]],
            spreads: dict[str, float] | None = None, **more: Any) -> None:  # fmt: skip
        """`values`: column -> (value, unit); None and numbers that are not finite are left out."""
        if not self.wanted:
            return
        if not self.origin:  # late: torch is named if the benchmark has loaded it
            today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
            self.origin = {"machine": machine(), "commit": commit(), "date": today}
        rows = []
        for column, (value, unit) in values.items():
            if value is None or value == "" or (is_number(value) and not math.isfinite(value)):
                continue
            row: Row = {"table": table, "case": case, "column": column, "value": rounded(value)}
            row |= {"unit": unit, **self.origin, **more}
            if spreads and column in spreads:
                row["spread"] = rounded(spreads[column])
            rows.append(row)
        if rows:
            append(self.name, rows)


def pick(row: Row, columns: dict[str, tuple[str, str]]) -> dict[str, tuple[Any, str]]:
    """Values for `Recorder.add` from a benchmark's own row: column -> (key, unit)."""
    return {column: (row.get(key), unit) for column, (key, unit) in columns.items()}


def parser(doc: str | None, *, json_help: str = "one object per line") -> argparse.ArgumentParser:
    """With the options of every benchmark: --json and --record."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--json", action="store_true", help=json_help)
    made.add_argument("--record", action="store_true", help="append to bench/results")
    return made


def run(main: Callable[[], Any]) -> None:
    """A benchmark's main: bad results are one message and exit code 2."""
    try:
        main()
    except BadResults as error:
        print(f"bench: {error}", file=sys.stderr)
        sys.exit(2)


# ---- small helpers ------------------------------------------------------------------------------


def geometric(values: Iterable[float]) -> float:
    known = list(values)
    return statistics.geometric_mean(known) if known else math.nan


def spread(values: list[float]) -> float:
    """The interquartile range."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def solved_draws(targets: str, seed: int, budget: str, *, options: str = "", more: str = "",
                 first: int = 0) -> Iterator[tuple[int, str, str]]:  # fmt: skip
    """(number, kernel, pack) of the draws with sizes under the budget. `options` are those of the
    draw, `more` those of the solver."""
    from canvas import _core

    for number in itertools.count(first):
        drawn = _core.draw(targets, seed, number, options)
        if drawn is None:
            continue
        try:
            pack = _core.solve(drawn[0], targets, budget, f"G={drawn[1]} {more}".strip())
        except _core.NoSolution:
            continue
        yield number, drawn[0], pack


def built(target: str) -> Path:
    """A program of CMake's target, built beside the library."""
    place = Path(os.environ.get("CANVAS_BENCH_BUILD", ROOT / "build"))
    command = ["cmake", "--build", str(place), "--target", target]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return place / target

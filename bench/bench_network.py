"""Whole networks as native code against torch eager, torch.compile, onnxruntime and OpenVINO.

    ./dev bench network [--json] [--threads 1|2] [--find FILE] [--log FILE]
                        [--winograd] [--rounds N] [--resume] [--report FILE] [WORD...]
    ./dev bench network --sampled N [--rounds N] [--json]

fp32, batch 1 and 16; each network unchanged, with the kernel of figure 6 in the place of its dense
convolutions with a window, and with the kernel or pack in FILE (of the best find of the demo), in
other networks than ResNet-8 with sizes solved for half of the MACs. Engines take turns in one
process, with one thread by the processor time of the process, with more by the wall clock; every
result is compared with double precision before.
`ratio` is how many times faster than the fastest peer on the same network, `over unchanged` than
the fastest way of running the network without the kernel, ours included. --log takes schedules
from a tuning log, --winograd times canvas.compile(winograd=4), too, and only its own column is
compared with that of the network without the kernel. WORDs choose cases by the
parts of their names ("ResNet-18", "224", "figure6", "b1"), all of them, and whole. Peers
that are not installed (pip install -r bench/requirements-network.txt) are skipped by name. Rows go
to build/network/rows.jsonl as they come; --resume keeps those that stand there; --report writes
the table of all of them. --sampled times N sampled kernels in ResNet-8 against the unchanged
network, and nothing else.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import network_peers
import network_sampled
from bench_native import processor
from network_cases import Case, cases

from canvas import _core

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "network"
ROWS = FOLDER / "rows.jsonl"
LIMIT = 900  # seconds of one case
NOISE = 0.02
Row = dict[str, Any]


# ---- goals: (which rows, the figure, at least) -------------------------------------------------


def goals(row: Row) -> Iterator[tuple[str, float]]:
    unchanged = row["kernel"] == "unchanged"
    if unchanged and row["network"].endswith("@224"):
        yield "canvas ratio", 0.8
        if "canvas log ratio" in row:
            yield "canvas log ratio", 1.0
    if unchanged and row["batch"] == 1 and row["network"] in ("ResNet-8@16", "ResNet-18@32"):
        yield "canvas over compile", 2.0
    if row["kernel"] == "figure6" and row["network"] == "ResNet-18@224":
        yield "canvas over unchanged", 2.5
    if row["kernel"] == "find" and row["network"] == "ResNet-8@16":
        yield "canvas over unchanged", 1.3


def verdict(row: Row) -> str:
    if row["threads"] != 1:
        return ""
    told = []
    for name, least in goals(row):
        value = row.get(name)
        short = name.removeprefix("canvas ")
        if value is None:
            told.append(f"{short}: not measured")
        else:
            met = "met" if value >= least * (1 - NOISE) else "missed"
            fewer = row.get(name.replace("canvas", "canvas winograd", 1), 0)
            permitted = met == "missed" and fewer >= least * (1 - NOISE)
            more = f", met with winograd: {fewer:.2f}" if permitted else ""
            told.append(f"{met} ({short} {least:g}{more})")
    return ", ".join(told)


# ---- measuring ---------------------------------------------------------------------------------


def chosen(options: argparse.Namespace) -> Iterator[Case]:
    for case in cases(options.find is not None):
        parts = {*case.name.lower().split(), *case.name.lower().replace("@", " ").split()}
        if parts.issuperset(word.lower() for word in options.words):
            yield case


def one(case: Case, options: argparse.Namespace) -> Row:
    command = [sys.executable, str(HERE / "network_worker.py"), case.name, str(options.threads)]
    command += [str(FOLDER), "--rounds", str(options.rounds)]
    command += ["--find", str(options.find)] if options.find else []
    command += ["--log", str(options.log)] if options.log else []
    command += ["--winograd"] if options.winograd else []
    threads = str(options.threads)
    setting = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    row: Row = {"name": case.name, "network": case.network.name, "kernel": case.kernel,
                "batch": case.batch, "threads": options.threads}  # fmt: skip
    try:
        told = subprocess.run(command, env=setting, capture_output=True, text=True, timeout=LIMIT)
        lines = [line for line in told.stdout.splitlines() if line.startswith('{"name"')]
        if lines:
            return json.loads(lines[-1])
        last = (told.stderr.strip().splitlines() or ["nothing was said"])[-1]
        row["errors"] = {"case": f"status {told.returncode}: {last}"[:300]}
    except subprocess.TimeoutExpired:
        row["errors"] = {"case": f"not done in {LIMIT} s"}
    return row


def key(row: Row) -> tuple[str, int]:
    return row["name"], row["threads"]


def measured(options: argparse.Namespace) -> Iterator[Row]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = {}
    if options.resume and ROWS.exists():
        known = {key(row): row for row in map(json.loads, ROWS.read_text().splitlines())}
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in known.values()))
    for case in chosen(options):
        row = known.get((case.name, options.threads))
        if row is None:
            row = one(case, options)
            with ROWS.open("a") as file:
                file.write(json.dumps(row) + "\n")
        yield row


def kept() -> list[Row]:
    """All that is in build/network/rows.jsonl, of earlier runs too, in the order of the cases."""
    order = {case.name: place for place, case in enumerate(cases(True))}
    rows = list({key(row): row for row in map(json.loads, ROWS.read_text().splitlines())}.values())
    return sorted(rows, key=lambda row: (row["batch"], row["threads"], order.get(row["name"], 0)))


# ---- what is printed ---------------------------------------------------------------------------

ENGINES = ("canvas", "canvas log", "canvas winograd", *network_peers.PEERS)


def milliseconds(row: Row, name: str) -> str:
    value = row.get(f"{name} ms")
    if value is None:
        return "-" if name in row.get("errors", {}) else ""
    return f"{value:.3g} +- {row[f'{name} spread']:.2g}"


def figure(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else f"{value:.2f} +- {row[name + ' spread']:.2f}"


def cells(row: Row) -> list[str]:
    best = "canvas log" if "canvas log ratio" in row else "canvas"
    figures = [figure(row, f"{best} {kind}") for kind in ("ratio", "over unchanged")]
    times = [milliseconds(row, name) for name in ENGINES]
    return [row["name"], str(row["threads"]), *times, *figures, verdict(row)]


NAMES = ["network", "threads", *ENGINES, "ratio", "over unchanged", "goal"]


def line(row: Row) -> str:
    parts = [f"{name} {milliseconds(row, name)}" for name in ENGINES if milliseconds(row, name)]
    told = f"{row['name']:28} ms: {', '.join(parts)}  ratio {figure(row, 'canvas ratio')}"
    if "canvas over unchanged" in row:
        told += f"  over unchanged {figure(row, 'canvas over unchanged')}"
    if "cold_s" in row:
        told += f"  compiled in {row['cold_s']:.1f} s, from the cache in {row['cached_s']:.2f} s"
    wrong = "".join(f"\n  {name}: {why}" for name, why in row.get("errors", {}).items())
    return f"{told}  {verdict(row)}{wrong}"


def report(path: Path, rows: list[Row]) -> None:
    table = [f"| {' | '.join(NAMES)} |", "|" + "---|" * len(NAMES)]
    table += [f"| {' | '.join(cells(row))} |" for row in rows]
    seconds = [f"{row['network']} {row['cold_s']:.1f} and {row['cached_s']:.2f} s"
               for row in rows if "cold_s" in row]  # fmt: skip
    notes = [f"{row['name']}, {name}: {why}" for row in rows
             for name, why in row.get("errors", {}).items()]  # fmt: skip
    text = "\n".join(table) + "\n\n"
    text += f"From text to native code, with an empty cache and again: {'; '.join(seconds)}.\n"
    text += "".join(f"- {note}\n" for note in notes)
    text += f"\n{processor()}, {network_peers.versions()}, Canvas {_core.version()}.\n"
    page = path.read_text()
    new, count = re.subn(
        r"(<!-- network -->\n).*?(<!-- end -->)", lambda m: m[1] + text + m[2], page, flags=re.S
    )
    if not count:
        raise SystemExit(f"bench network: {path} has no lines '<!-- network -->', '<!-- end -->'")
    path.write_text(new)


def tell_sampled(count: int, rounds: int, as_json: bool) -> None:
    rows = []
    for row in network_sampled.sampled(count, rounds):
        rows.append(row)
        print(json.dumps(row) if as_json else network_sampled.line(row), flush=True)
    if not as_json:
        print(network_sampled.summary(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only cases that hold all of them"
    )
    parser.add_argument("--json", action="store_true", help="one object per case")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--find", type=Path, help="kernel or pack that the search found")
    parser.add_argument("--log", type=Path, help="schedules from this tuning log, too")
    parser.add_argument("--winograd", action="store_true", help="with fewer products, too")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--report", type=Path, help="write all rows that were kept into this page")
    parser.add_argument("--sampled", type=int, metavar="N", help="only N sampled kernels")
    options = parser.parse_args()
    if options.sampled:
        tell_sampled(options.sampled, options.rounds, options.json)
        return
    for name in network_peers.PEERS:
        if not network_peers.there(name):
            print(f"skipped: {name} is not installed", file=sys.stderr)
    if not any(chosen(options)):
        sys.exit(f"no case's name has all of the words {' '.join(options.words)}")
    for row in measured(options):
        print(json.dumps(row) if options.json else line(row), flush=True)
    if options.report:
        report(options.report, kept())


if __name__ == "__main__":
    main()

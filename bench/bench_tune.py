"""Tuned schedules against oneDNN, torch, TVM and default schedules, on one core.

    ./dev bench tune [--group layers|ansor|rows|sparse|sampled|ablation|
                     winograd|metaschedule|methods]
                     [--rounds N] [--seconds S] [--method NAME] [--resume] [WORD...]

`ratio` is how many times faster the winner of `quick` is. layers: than oneDNN's direct algorithm
(C API, any layout, weights packed beforehand on both sides). ansor: than the best of torch
eager, torch.compile (frozen weights) and oneDNN. sparse: than the same layer dense. rows and
sampled: than the default schedule. winograd: a search that may use Winograd's form than the
direct form that `quick` found. metaschedule: than TVM's tuner after 256 trials
(tune_metaschedule.py). ablation and methods: tune_groups.py. `oneshot` is the speed of the
schedule that the model picks unmeasured. Contenders take turns in one process, timed by the
thread's processor time; every result is compared with torch's before. CPU seconds are those of
the search, compilers included. WORDs choose cases whose names hold them. Rows go to
build/tune/rows.jsonl; --resume keeps those there.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator
from typing import Any

import harness
import tune_groups
import tune_metaschedule
from bench_native import number
from harness import geometric, pick
from tune_cases import GROUPS
from tune_worker import FOLDER, Bench

NOISE = 0.02
Row = dict[str, Any]
ROWS = {
    "sparse": tune_groups.sparse,
    "sampled": tune_groups.sampled,
    "ablation": tune_groups.ablation,
    "methods": tune_groups.methods,
    "metaschedule": tune_metaschedule.rows,
}
TABLES = {"ablation": tune_groups.ablation_table, "methods": tune_groups.methods_table}
RECORDED = {"ratio": ("ratio", "times"), "oneshot": ("oneshot_ratio", "times"),
            "gain": ("gain", "times"), "quick": ("quick_us", "us"), "direct": ("direct_us", "us"),
            "oneDNN": ("onednn_us", "us"), "torch": ("torch_us", "us"),
            "compile": ("compile_us", "us"), "MetaSchedule": ("trials_us", "us"),
            "their search": ("trials_s", "s"), "search": ("cpu_s", "CPU s"),
            "rule": ("rule", "")}  # fmt: skip


def measured(bench: Bench, group: str, known: list[Row]) -> Iterator[Row]:
    done = {(row["group"], row["name"], row["batch"]) for row in known}
    if group in ROWS:
        yield from ROWS[group](bench, known)
        return
    for case in GROUPS["layers" if group == "winograd" else group]():
        text = f"{case.name} b{case.batch}"
        if group == "winograd" and not case.winograd:
            continue
        if any(word not in text for word in bench.options.words):
            continue
        if (group, case.name, case.batch) in done:
            continue
        try:
            yield bench.winograd(case) if group == "winograd" else bench.measure(case)
        except Exception as error:
            row = {"group": group, "name": case.name, "batch": case.batch}
            yield {**row, "error": f"{type(error).__name__}: {error}"}


# ---- what is printed ----------------------------------------------------------------------------


def verdict(row: Row) -> str:
    if row.get("error"):
        return str(row["error"]).replace("|", "\\|")
    if row.get("goal_ratio") and row.get("ratio"):
        least = 1 / row["goal_ratio"]
        return "met" if row["ratio"] >= least * (1 - NOISE) else f"missed ({least:.2f})"
    if not row.get("floor") or row.get("ratio") is None:
        return ""
    return "met" if row["ratio"] >= row["floor"] * (1 - NOISE) else f"missed ({row['floor']})"


AGAINST = {
    "layers": "oneDNN direct",
    "ansor": "the best of oneDNN, torch eager and torch.compile",
    "rows": "the default schedule",
    "sparse": "the same layer dense",
    "sampled": "the default schedule",
    "ablation": "quick",
    "winograd": "the direct one",
    "metaschedule": "MetaSchedule after 256 trials",
    "methods": "each other",
}


def summary(group: str, rows: list[Row]) -> str:
    good = [row for row in rows if row.get("ratio")]
    ratios = [row["ratio"] for row in good]
    if not ratios:
        return f"{group}: nothing was measured"
    spent = [row["cpu_s"] for row in good]
    text = (
        f"{group}: {len(good)} of {len(rows)} right; against {AGAINST[group]} median "
        f"{statistics.median(ratios):.2f}, geometric mean {geometric(ratios):.2f}, least "
        f"{min(ratios):.2f}, {sum(r < 1 for r in ratios)} slower; CPU seconds of a search: median "
        f"{statistics.median(spent):.1f}, most {max(spent):.1f}"
    )
    shots = [row["oneshot_ratio"] for row in good if row.get("oneshot_ratio")]
    if shots:
        text += f"; oneshot's speed beside quick's: median {statistics.median(shots):.2f}, "
        text += f"least {min(shots):.2f}"
    return text


def record(recorder: harness.Recorder, row: Row) -> None:
    values = pick(row, RECORDED)
    if "parts" in row:  # ablation
        values = {name: (speed, "times") for name, speed in row["parts"].items()}
    elif "us" in row:  # methods
        values = {name: (1e-3 * us, "ms") for name, us in row["us"].items()}
    elif not row.get("error"):
        values["goal"] = (verdict(row), "")
        values["trials"] = (row.get("trials"), "")
    recorder.add(row["group"], f"{row['name']} b{row['batch']}", values)


def line(row: Row) -> str:
    if row["group"] in TABLES:
        return TABLES[row["group"]]([row]).splitlines()[2]
    shown = "".join(f"{number(row, k):>7}" for k in ("ratio", "oneshot_ratio", "gain"))
    name, cpu = f"{row['name']} b{row['batch']}", number(row, "cpu_s", ".1f")
    return f"{name:32}{shown}{cpu:>7}  {verdict(row)} {row.get('rule', '')}"


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("--group", choices=list(AGAINST), help="only these cases")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10, help="for each search")
    parser.add_argument("--method", default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that hold it")
    return parser.parse_intermixed_args()


def main() -> None:
    given = options()
    recorder = harness.Recorder("tune", given.record)
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "rows.jsonl"
    if not given.resume:
        kept.unlink(missing_ok=True)
    rows: list[Row] = (
        [json.loads(t) for t in kept.read_text().splitlines()] if kept.exists() else []
    )
    bench = Bench(given)
    for group in [given.group] if given.group else list(AGAINST):
        for row in measured(bench, group, rows):
            rows.append(row)
            with kept.open("a") as file:
                file.write(json.dumps(row) + "\n")
            record(recorder, row)
            print(json.dumps(row) if given.json else line(row), flush=True)
        here = [row for row in rows if row["group"] == group]
        if not given.json and here:
            print(TABLES[group](here) if group in TABLES else summary(group, here))


if __name__ == "__main__":
    harness.run(main)

"""Whether a correction that is learned on the way lets the model find better in as many trials.

    ./dev bench residual [--again]

Random points of ten operators are measured once, as trials are (`canvas tune --method random`),
and kept in build/residual; --again takes those. Then searches among them are played through, with
three seeds that each leave out a third: six trials that the prediction likes best, then two at a
time by prediction times correction, learned from the trials so far (`ridge`: ridge regression;
`stumps`: boosted stumps) or first from the other operators' (`+ log`). Numbers are the speed of
the best that was found, as a part of the fastest of the pool; `random` is the mean of fifty draws.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import re
import shutil
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from bench_cost import ROOT, speed
from tune_cases import ansor, layers

from canvas import _core

KEPT = ROOT / "build" / "residual"
CASES = ("3x3 256@14", "C1D 3", "C2D 2", "C2D 4", "CAP 2", "DEP 1", "DIL 3", "GMM 3", "GRP 2",
         "GRP 3")  # fmt: skip
PARTS = ("compute", "loads", "waits", "l2", "l3", "memory")
HOW = ("random", "model", "ridge", "stumps", "ridge + log", "stumps + log")
BUDGETS = (8, 16, 24)
FIRST, BATCH, SEEDS, POINTS = 6, 2, 3, 96
Learned = Callable[[Any], Any]


# ---- what is measured --------------------------------------------------------------------------


def measure(name: str, program: str) -> Path:
    path = KEPT / f"{name.replace(' ', '_').replace('@', '_')}.program"
    path.write_text(program)
    log = path.with_suffix(".log")
    log.unlink(missing_ok=True)
    words = f"--method random --trials {POINTS} --time 45s --seed 7 --log".split()
    subprocess.run(["canvas", "tune", str(path), *words, str(log)], capture_output=True)
    return log


def numbers(text: str, mark: str) -> float:
    found = re.findall(rf":(\d+)(?::peel|:mask)?:{mark}", text)
    return math.log(math.prod(int(x) for x in found))


def features(record: dict[str, Any], cost: dict[str, Any]) -> list[float]:
    text = record["schedule"].split("@Y")[0]
    parts = [cost[part] / cost["seconds"] for part in PARTS]
    tile = [numbers(text, "unroll"), numbers(text, "vec")]
    marks = [float(word in text) for word in ("peel", "mask")]
    return [1.0, *parts, *tile, *marks, math.log(cost["seconds"])]


def pool(log: Path) -> tuple[Any, Any, Any]:
    """Features, and the logarithms of what was predicted and measured."""
    records = [json.loads(text) for text in log.read_text().splitlines()]
    records = [r for r in records if r["screened"] and r["failure"] == "ok"]
    folder = log.with_suffix(".points")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "program").write_text(records[0]["program"])
    for i, record in enumerate(records):
        edited = _core.replay_edits(record["program"], record["edits"] or "", 4)
        (folder / f"{i}.program").write_text(edited)
        (folder / f"{i}.schedule").write_text(record["schedule"])
    costs = speed("predict", folder, len(records))
    rows = [features(records[cost["at"]], cost) for cost in costs]
    taken = [math.log(records[cost["at"]]["median"]) for cost in costs]
    return np.array(rows), np.log([c["seconds"] for c in costs]), np.array(taken)


# ---- what is learned ---------------------------------------------------------------------------


def ridge(x: Any, y: Any, weight: float) -> Learned:
    mean, spread = x[:, 1:].mean(0), x[:, 1:].std(0) + 1e-9

    def scaled(rows: Any) -> Any:
        return np.c_[np.ones(len(rows)), (rows[:, 1:] - mean) / spread]

    z = scaled(x)
    penalty = weight * np.eye(z.shape[1])
    penalty[0, 0] = 0
    found = np.linalg.solve(z.T @ z + penalty, z.T @ y)
    return lambda rows: scaled(rows) @ found


def best_stump(x: Any, left: Any) -> tuple[int, float, float, float] | None:
    best, found = 0.0, None
    for column in range(1, x.shape[1]):
        for at in np.unique(np.quantile(x[:, column], (0.2, 0.4, 0.6, 0.8))):
            low = x[:, column] <= at
            if min(low.sum(), (~low).sum()) < 3:
                continue
            gain = left[low].sum() ** 2 / low.sum() + left[~low].sum() ** 2 / (~low).sum()
            if gain > best:
                best, found = gain, (column, at, left[low].mean(), left[~low].mean())
    return found


def stumps(x: Any, y: Any, count: int, rate: float) -> Learned:
    base, made = y.mean(), []
    fitted = np.full(len(y), base)
    for _ in range(count):
        stump = best_stump(x, y - fitted)
        if not stump:
            break
        made.append(stump)
        column, at, low, high = stump
        fitted = fitted + rate * np.where(x[:, column] <= at, low, high)
    return lambda rows: base + sum(
        rate * np.where(rows[:, column] <= at, low, high) for column, at, low, high in made
    )


# ---- searches ----------------------------------------------------------------------------------


def found(how: str, rows: tuple[Any, Any, Any], budget: int, log: Learned | None) -> float:
    x, predicted, taken = rows
    start = predicted + log(x) if log else predicted
    seen = list(np.argsort(start, kind="stable")[: min(FIRST, budget)])
    while len(seen) < min(budget, len(taken)):
        score = start
        error = taken[seen] - start[seen]
        if how.startswith("ridge"):
            score = start + ridge(x[seen], error, 20 if log else 5)(x)
        elif how.startswith("stumps"):
            score = start + stumps(x[seen], error, 20 if log else 40, 0.1 if log else 0.2)(x)
        order = [i for i in np.argsort(score, kind="stable") if i not in seen]
        seen += order[:BATCH]
    return float(taken[seen[:budget]].min())


def drawn(taken: Any, budget: int, rng: random.Random) -> float:
    count = min(budget, len(taken))
    draws = [min(taken[i] for i in rng.sample(range(len(taken)), count)) for _ in range(50)]
    return statistics.fmean(draws)


def logs(pools: dict[str, tuple[Any, Any, Any]], name: str) -> dict[str, Learned]:
    others = [rows for other, rows in pools.items() if other != name]
    x = np.vstack([rows[0] for rows in others])
    errors = [rows[2] - rows[1] for rows in others]
    y = np.concatenate([error - error.mean() for error in errors])
    return {"ridge + log": ridge(x, y, 20), "stumps + log": stumps(x, y, 60, 0.2)}


def speeds(pools: dict[str, tuple[Any, Any, Any]], name: str) -> dict[str, list[list[float]]]:
    """By way and budget: with each seed."""
    known = logs(pools, name)
    out: dict[str, list[list[float]]] = {how: [[] for _ in BUDGETS] for how in HOW}
    for seed in range(SEEDS):
        rng = random.Random(seed)
        size = len(pools[name][2])
        kept = sorted(rng.sample(range(size), 7 * size // 10))
        rows = (pools[name][0][kept], pools[name][1][kept], pools[name][2][kept])
        for how in HOW:
            for column, budget in enumerate(BUDGETS):
                best = (drawn(rows[2], budget, rng) if how == "random"
                        else found(how, rows, budget, known.get(how)))  # fmt: skip
                out[how][column].append(math.exp(rows[2].min() - best))
    return out


def line(name: str, cells: Sequence[str]) -> str:
    return f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--again", action="store_true", help="with what was measured before")
    options = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    wanted = {c.name: c for c in [*layers(), *ansor()] if c.batch == 1 and c.name in CASES}
    if not options.again:
        for name in CASES:
            measure(name, wanted[name].program())
    found_logs = {name: KEPT / f"{name.replace(' ', '_').replace('@', '_')}.log" for name in CASES}
    pools = {name: pool(path) for name, path in found_logs.items()}
    results = {name: speeds(pools, name) for name in CASES}
    print(line(f"after {BUDGETS[0]} trials", ["points", *HOW]) + "\n" + "|---" * 8 + "|")
    for name in CASES:
        cells = [f"{statistics.fmean(results[name][how][0]):.3f}" for how in HOW]
        print(line(name, [str(len(pools[name][2])), *cells]))
    for column, budget in enumerate(BUDGETS):
        means = [
            statistics.fmean(x for name in CASES for x in results[name][how][column])
            for how in HOW
        ]
        print(line(f"mean, {budget} trials", ["", *(f"{mean:.3f}" for mean in means)]))


if __name__ == "__main__":
    main()

"""How fast kernels are drawn and solved, and how well they use a budget.

    ./dev bench sampling [--json] [--count 2000] [--budget macs=0.5x,params=0.5x]

Targets are ResNet-18's at 224x224 (examples/targets/resnet18.txt). The speed is that of the whole
`canvas sample` process (drawing, hashing, printing), in processor seconds of one core, median and
spread of five runs with different seeds. The published code draws 1.4 kernels a second at 5-25
primitives and 8.7 at 5-12 (four of these shapes), its predecessor with a budget 6.6 at 3-12; that
one uses 0.97 of its budget in the median over kernels that have a free variable, and 56 % of its
kernels have none.

Children (mutation, crossover) are made of solvable draws in this process, from text to text; the
share that differs and the share that fits the budget stand beside those of draws.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from canvas import _core, _testing

TARGETS = Path(__file__).resolve().parents[1] / "examples/targets/resnet18.txt"
CANVAS = Path(sys.executable).parent / "canvas"
RANGES = ("5..12", "5..25")
RUNS = 5


def seconds_of(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(primitives: str, count: int) -> dict[str, float]:
    """Kernels per processor second; the start of the process is timed alone and taken off."""
    command = [str(CANVAS), "sample", "--targets", str(TARGETS), "--primitives", primitives]
    rates = []
    for seed in range(1, RUNS + 1):
        start = seconds_of([*command, "--seed", str(seed), "--count", "1"])
        rates.append(
            count / (seconds_of([*command, "--seed", str(seed), "--count", str(count)]) - start)
        )
    return {"median": statistics.median(rates), "min": min(rates), "max": max(rates)}


def usage(primitives: str, count: int, budget: str) -> dict[str, float]:
    """Of `count` draws: equal ones, those with a free variable, and the budget they use."""
    targets = TARGETS.read_text()
    dense = json.loads(_testing.baseline(targets))
    share = float(budget.split("macs=")[1].split("x")[0])
    hashes, used, free, unsolved = set(), [], 0, 0
    for index in range(count):
        drawn = _core.draw(targets, 1, index, f"primitives={primitives}")
        if drawn is None or _core.hash(drawn[0]) in hashes:
            continue
        hashes.add(_core.hash(drawn[0]))
        variable = "x0" in drawn[0]
        free += variable
        try:
            pack = _core.solve(drawn[0], targets, budget, f"G={drawn[1]}")
        except _core.NoSolution:
            unsolved += 1
            continue
        cost = json.loads(_core.cost(pack))
        if variable:
            used.append(max(cost[k] / (share * dense[k]) for k in ("macs", "params")))
    return {
        "different": len(hashes) / count,
        "with_free_variable": free / len(hashes),
        "no_solution": unsolved / len(hashes),
        "budget_used_p10": statistics.quantiles(used, n=10)[0],
        "budget_used_median": statistics.median(used),
    }


def fits(targets: str, kernel: tuple[str, int], budget: str) -> bool:
    try:
        _core.solve(kernel[0], targets, budget, f"G={kernel[1]}")
    except _core.NoSolution:
        return False
    return True


def children(primitives: str, count: int, budget: str, parents: int) -> dict[str, float]:
    """Of about `count` children with one or two parents that fit the budget."""
    targets, options = TARGETS.read_text(), f"primitives={primitives}"
    drawn = (_core.draw(targets, 1, index, options) for index in range(120))
    old = [kernel for kernel in drawn if kernel and fits(targets, kernel, budget)]
    pairs = list(itertools.pairwise(old))
    made: list[tuple[str, int]] = []
    rates = []
    for seed in range(1, RUNS + 1):
        start = time.process_time()
        for index in range(count // RUNS):
            pair = pairs[index % len(pairs)]
            child = _core.mutate(targets, seed, index, options, list(pair[:parents]))
            if child:
                made.append(child)
        rates.append(count // RUNS / (time.process_time() - start))
    return {
        "made": len(made) / (count // RUNS * RUNS),
        "different": len({_core.hash(kernel) for kernel, _ in made}) / len(made),
        "no_solution": sum(not fits(targets, child, budget) for child in made) / len(made),
        "per_second_least": min(rates),
        "per_second_median": statistics.median(rates),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="time the sampler and the solver")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--budget", default="macs=0.5x,params=0.5x")
    options = parser.parse_args()
    report: dict[str, object] = {
        "version": _core.version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "budget": options.budget,
    }
    for primitives in RANGES:
        report[primitives] = {
            "kernels_per_second": speed(primitives, options.count),
            **usage(primitives, min(options.count, 1000), options.budget),
            **{
                f"children_of_{parents}_{name}": value
                for parents in (1, 2)
                for name, value in children(
                    primitives, min(options.count, 1000), options.budget, parents
                ).items()
            },
        }
    if options.json:
        print(json.dumps(report, indent=1))
        return
    print(f"canvas {report['version']} on {report['machine']}, budget {options.budget}")
    for primitives in RANGES:
        row = report[primitives]
        assert isinstance(row, dict)
        rate = row.pop("kernels_per_second")
        spread = f"{rate['min']:,.0f} to {rate['max']:,.0f}"
        print(f"{primitives} primitives: {rate['median']:,.0f} kernels/s ({spread})")
        for name, value in row.items():
            print(f"  {name.replace('_', ' '):32} {value:,.3f}")


if __name__ == "__main__":
    main()

"""Sampled kernels in ResNet-8 against the unchanged one: `./dev bench network --sampled N`.

Half of them are solved for 0.5x of the MACs, half for 0.3x, with norms as the search has them.
Each is timed in turns with the unchanged network, both as canvas.compile gives them.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from network_cases import NETWORKS, Case, trained
from network_peers import Engine
from network_worker import spread, turns

import canvas
from canvas import _core

SEED = 2
BUDGETS = ("0.5x", "0.3x")
NETWORK = NETWORKS[0]
Row = dict[str, Any]


def conversion() -> Any:
    torch.manual_seed(0)
    images = Case(NETWORK, "unchanged", 1).images()
    dense = lambda layer, path: layer.groups == 1  # noqa: E731
    return canvas.convert(NETWORK.make().eval(), images, filter_fn=dense)


def draws(targets: str, count: int) -> Iterator[tuple[str, int, str]]:
    """(budget, number of the draw, pack) of those that fit it; the first half has the first."""
    number = 0
    for at in range(count):
        budget = BUDGETS[at * len(BUDGETS) // count]
        while True:
            drawn, number = _core.draw(targets, SEED, number, ""), number + 1
            try:
                if drawn is None:
                    continue
                options = f"G={drawn[1]} norm=batch"
                pack = _core.solve(drawn[0], targets, f"macs={budget},params=none", options)
            except canvas.NoSolution:
                continue
            yield budget, number - 1, pack
            break


def sampled(count: int, rounds: int) -> Iterator[Row]:
    torch.set_num_threads(1)
    case = Case(NETWORK, "unchanged", 1)
    images = case.images()
    with torch.no_grad():
        unchanged = canvas.compile(case.model(None), images)
        for budget, number, pack in draws(conversion().targets, count):
            model = canvas.replace(conversion().model, canvas.KernelPack(pack))
            changed = canvas.compile(trained(model).eval(), images)
            networks = {"changed": changed, "unchanged": unchanged}
            engines: dict[str, Engine] = {
                name: partial(network, images) for name, network in networks.items()
            }
            times = turns(engines, time.process_time, rounds)
            ratios = [u / c for c, u in zip(times["changed"], times["unchanged"])]
            yield {
                "budget": budget,
                "draw": number,
                "ms": 1e3 * statistics.median(times["changed"]),
                "over unchanged": statistics.median(ratios),
                "spread": spread(ratios),
            }


def line(row: Row) -> str:
    ratio = f"{row['over unchanged']:.2f} +- {row['spread']:.2f}"
    return f"{row['budget']} draw {row['draw']:3}  {row['ms']:.4f} ms  over unchanged {ratio}"


def summary(rows: list[Row]) -> str:
    told = []
    for name, chosen in [("all", rows), *((b, [r for r in rows if r["budget"] == b])
                                          for b in BUDGETS)]:  # fmt: skip
        if chosen:
            logs = [math.log(row["over unchanged"]) for row in chosen]
            told.append(f"{name} {math.exp(statistics.fmean(logs)):.2f}")
    least = min(row["over unchanged"] for row in rows)
    return f"geometric mean over unchanged: {', '.join(told)}; least {least:.2f}"

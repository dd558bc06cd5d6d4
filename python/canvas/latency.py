"""How long a forward of the whole network takes, compared with the unchanged network.

Both networks run in one process, one thread, in evaluation mode without gradients, by turns:
unchanged, candidate, candidate, unchanged, ...  What counts is the process's CPU time, so that
others on the machine disturb little.  A sample is as many forwards as make the unchanged network
take SAMPLE seconds; of PAIRS pairs the first is thrown away (caches, allocator).  The speed-up
is the median of the pairs' ratios, not the ratio of medians: a slow moment hits both halves of a
pair.  The driver sees to it that nothing of ours trains meanwhile.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

PAIRS = 30
SAMPLE = 0.005


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one forward (median, interquartile range) and how much faster than the
    unchanged network.
    """

    ms: float
    spread_ms: float
    baseline_ms: float
    speedup: float


def measure(
    baseline: nn.Module, candidate: nn.Module, images: Tensor, pairs: int = PAIRS
) -> Latency:
    """Time both networks on `images` [N, C, H, W]; they are set to evaluation mode."""
    baseline.eval()
    candidate.eval()
    with torch.no_grad():
        _seconds(baseline, images, 1)
        forwards = max(1, math.ceil(SAMPLE / max(_seconds(baseline, images, 1), 1e-6)))
        timed = []
        for pair in range(pairs):
            if pair % 2 == 0:
                first = _seconds(baseline, images, forwards)
                timed.append((first, _seconds(candidate, images, forwards)))
            else:
                second = _seconds(candidate, images, forwards)
                timed.append((_seconds(baseline, images, forwards), second))
    return summarise(timed)


def summarise(timed: Sequence[tuple[float, float]]) -> Latency:
    """Median and spread of (baseline, candidate) seconds; the first pair does not count."""
    kept = list(timed[1:])
    ours = [candidate * 1e3 for _, candidate in kept]
    theirs = [baseline * 1e3 for baseline, _ in kept]
    low, _, high = statistics.quantiles(ours, n=4, method="inclusive")
    ratio = statistics.median(baseline / candidate for baseline, candidate in kept)
    return Latency(statistics.median(ours), high - low, statistics.median(theirs), ratio)


def _seconds(network: nn.Module, images: Tensor, forwards: int) -> float:
    """CPU seconds of one forward, the mean of `forwards` in a row."""
    start = time.process_time_ns()
    for _ in range(forwards):
        network(images)
    return max(time.process_time_ns() - start, 1) / forwards / 1e9

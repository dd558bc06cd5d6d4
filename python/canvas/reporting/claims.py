"""Statistics of a claim: whether one network beats another on the test images.

Both were trained from the same seeds s and scored on the same images, which fall into groups i
that show the same thing (placements of one scan; by itself each image is a group).  d is the mean
over s and i of what the find got right minus what the control got right.  Two things make it
uncertain, and both are estimated: other seeds would have trained other networks, other images
would have been harder for one of them.

    d_s    mean over the groups, for each of S seeds      A = var(d_s) / S
    d_i    mean over the seeds, for each of N groups      B = var(d_i) / N

    v = (A + B)^2 / (A^2 / (S - 1) + B^2 / (N - 1))       degrees of freedom, as Welch and
                                                          Satterthwaite have them
    the find beats the control if  d > t(0.95, v) sqrt(A + B)

Where nothing is wrong but chance, at most one comparison in twenty says so; tests/python/
test_null_worlds.py makes such worlds and counts.  What chance does to a single image counts in
both A and B, which errs on the safe side.

A metric that is no mean over images (mean IoU, RMSE) has d_s alone: v = S - 1, and the claim holds
for these test images.

Arrays may have axes in front of [seed, image]: that many comparisons at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SURE = 0.95  # of a claim, one-sided


@dataclass(frozen=True)
class Difference:
    """Accuracy of a find minus that of a control, 0..1: its standard error, its degrees of
    freedom, and the least difference that would have been shown (endless where none could be).
    """

    mean: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    least: np.ndarray

    @property
    def is_shown(self) -> np.ndarray:
        return self.mean > self.least


def compare(find: np.ndarray, control: np.ndarray, groups: Sequence[int]) -> Difference:
    """The difference of two arrays of hits, bool [..., seed, image]; `groups` has a number per
    image, equal for those that show the same thing.

    One seed or one group shows nothing, nor do differences that are all the same: nothing is
    known of their error.
    """
    cells = by_group(find.astype(np.int8) - control.astype(np.int8), groups)
    seeds, count = cells.shape[-2:]
    mean = cells.mean((-2, -1))
    if seeds < 2 or count < 2:
        nothing = np.full_like(mean, np.nan)
        return Difference(mean, nothing, nothing, np.full_like(mean, np.inf))
    of_seeds = cells.mean(-1).var(-1, ddof=1) / seeds
    of_groups = cells.mean(-2).var(-1, ddof=1) / count
    error = np.sqrt(of_seeds + of_groups)
    freedom = degrees(of_seeds, seeds, of_groups, count)
    least = np.where(error > 0, quantile(freedom) * error, np.inf)
    return Difference(mean, error, freedom, least)


def compare_values(find: Sequence[float], control: Sequence[float]) -> Difference:
    """The difference of two metrics, larger for better, of the same seeds: for metrics that are no
    mean over examples.  The chance of seeds counts alone, by a paired t-test.
    """
    cells = np.asarray(find, dtype=np.float64) - np.asarray(control, dtype=np.float64)
    seeds = cells.shape[-1]
    mean = cells.mean(-1)
    if seeds < 2:
        nothing = np.full_like(mean, np.nan)
        return Difference(mean, nothing, nothing, np.full_like(mean, np.inf))
    error = np.sqrt(cells.var(-1, ddof=1) / seeds)
    freedom = np.full_like(mean, seeds - 1)
    least = np.where(error > 0, quantile(freedom) * error, np.inf)
    return Difference(mean, error, freedom, least)


def by_group(values: np.ndarray, groups: Sequence[int]) -> np.ndarray:
    """The mean of each group: [..., image] -> [..., group]."""
    _, number, sizes = np.unique(np.asarray(groups), return_inverse=True, return_counts=True)
    if len(sizes) == len(number):
        return values.astype(np.float64)
    order = np.argsort(number, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    sums = np.add.reduceat(values[..., order], starts, axis=-1, dtype=np.int64)
    return np.asarray(sums / sizes)


def degrees(a: np.ndarray, seeds: int, b: np.ndarray, groups: int) -> np.ndarray:
    """The degrees of freedom of a + b; 1 where both are 0."""
    below = a**2 / (seeds - 1) + b**2 / (groups - 1)
    return np.divide((a + b) ** 2, below, out=np.ones_like(below), where=below > 0)


def quantile(freedom: np.ndarray) -> np.ndarray:
    """What a t-distributed number stays below with probability SURE."""
    from scipy.special import stdtrit  # type: ignore[import-untyped,unused-ignore]

    return np.asarray(stdtrit(freedom, SURE))


def read_hits(hits: Sequence[bytes], images: int) -> np.ndarray:
    """Hits as a study stores them, one text of bits per seed, as bool [seed, image]."""
    rows = [np.unpackbits(np.frombuffer(row, np.uint8), count=images) for row in hits]
    return np.array(rows, dtype=bool).reshape(len(hits), images)

"""The options of `canvas train` and `canvas export`, rows like those of a search and torch-free:
a network and its images, and how it is trained.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..options import BY_NAME, Option

PEAK_RATE = 0.1

IMAGES = ("data", "image_size", "images", "normalize", "flip", "crop")
NETWORK = ("model", *IMAGES, "width", "policy", "linear", "depthwise", "unequal", "seed")


def _rate(value: Any) -> float:
    expected = "a number above 0 and at most 100"
    try:
        rate = float(value)
    except (TypeError, ValueError):
        raise ValueError(expected) from None
    if isinstance(value, bool) or not 0 < rate <= 100:
        raise ValueError(expected)
    return rate


NETWORK_OPTIONS = tuple(
    replace(BY_NAME[name], help=BY_NAME[name].help.replace(" (required)", "")) for name in NETWORK
)
TRAIN_OPTIONS = (
    *NETWORK_OPTIONS,
    replace(BY_NAME["epochs"], default=30, help="passes over the training images"),
    BY_NAME["batch_size"],
    Option("rate", _rate, PEAK_RATE, True, "R", "peak of the learning rate"),
    BY_NAME["amp"],
)
THREADS = replace(
    BY_NAME["workers"],
    name="threads",
    default=None,
    help="threads on the CPU (default: as many as torch takes)",
)

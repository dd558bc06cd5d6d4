"""What a tuner calls after each batch."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from ...arguments import PATH, shown
from ...files import add_lines
from ...te.place import mistake
from ..measure import mean_cost
from ..record import encode

Callback = Callable[[Any, Sequence[Any], Sequence[Any]], None]


def log_to_file(file_out: Any, protocol: str = "json") -> Callback:
    """Adds a line for each candidate to a file, named or open."""

    named = isinstance(file_out, (str, os.PathLike))
    if (named and not PATH.holds(file_out)) or not (named or hasattr(file_out, "writelines")):
        raise mistake(f"log_to_file takes a path or an open file, not {shown(file_out)}")

    def callback(_tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        lines = [encode(inp, res, protocol) + "\n" for inp, res in zip(inputs, results)]
        if not named:
            file_out.writelines(lines)
            return
        try:
            add_lines(file_out, "".join(lines))
        except OSError as error:
            name = os.fspath(file_out)
            raise mistake(f"cannot write records to '{name}': {error.strerror}") from None

    return callback


def progress_bar(total: int, prefix: str = "", si_prefix: str = "G") -> Callback:
    """One line on standard error with the progress of the search."""
    if isinstance(total, bool) or not isinstance(total, int) or total < 1:
        raise mistake(f"progress_bar: total is a whole number from 1, not {shown(total)}")
    scale = si_scale(si_prefix)
    start, state = time.time(), {"seen": 0, "best": 0.0, "now": 0.0}

    def callback(tuner: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        for inp, res in zip(inputs, results):
            speed = inp.task.flop / mean_cost(res)
            state.update(now=speed, best=max(state["best"], speed))
        state["seen"] += len(inputs)
        sys.stderr.write(
            f"\r{prefix} Current/Best: {state['now'] / scale:7.2f}/{state['best'] / scale:7.2f} "
            f"{si_prefix}FLOPS | Progress: ({state['seen']}/{total}) | {time.time() - start:.2f} s"
        )
        if state["seen"] >= total or getattr(tuner, "ttl", 1) <= 0:
            sys.stderr.write(" Done.\n")
        sys.stderr.flush()

    return callback


def si_scale(prefix: Any) -> float:
    scales = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
    if not isinstance(prefix, str) or prefix not in scales:
        raise mistake(f"an SI prefix is one of {' '.join(scales).strip()}, not {shown(prefix)}")
    return scales[prefix]

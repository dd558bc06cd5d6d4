"""How a search shows that it is alive: a table on a terminal (live.py), else plain lines, one per
thing that ended.

A display hears what happens and shows what it likes; it decides nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from ..metric import Metric
from ..study import Candidate
from ..text import printable, printable_lines
from .table import kernel_summary

Say = Callable[[str], None]


class Display:
    """Plain lines for logs and pipes: one per candidate that came to an end."""

    def __init__(self, say: Say) -> None:
        self.say = say

    def line(self, text: str) -> None:
        """A message for the user."""
        self.say(text)

    def begin(self, candidates: Sequence[Candidate], baseline_macs: int) -> None:
        """The rows that the study has when the search begins, ended or not, and the MACs of
        the unchanged network.
        """

    def phase(self, text: str, total: int) -> None:
        """A stage of the search begins, with `total` things to do; "" are the trials."""
        if text:
            self.say(text)

    def after(self, seconds: float) -> None:
        """About how long the stages after this one will take."""

    def started(self, name: str, epochs: int) -> None:
        """A training begins."""

    def judged_by(self, metric: Metric) -> None:
        """What the networks are judged by, known before the first is shown."""

    def epoch(self, name: str, accuracy: float | None) -> None:
        """A training finished an epoch with this metric on the validation split; None where it
        was not scored.
        """

    def ended(self, name: str) -> None:
        """A training is over."""

    def finished(self, candidate: Candidate, elapsed: float, baseline_macs: int) -> None:
        """A candidate is done, pruned or failed, `elapsed` seconds after the start."""
        self.say(candidate_line(candidate, elapsed, baseline_macs))

    def timed(self, candidate: Candidate) -> None:
        """A candidate has its latency, or is known to get none."""

    def farewell(self, text: str) -> None:
        """What the user must know of a search that was stopped."""
        self.say(text)

    def close(self) -> None:
        """Nothing more comes."""


class Silent(Display):
    """Nothing but how to go on with a search that was stopped."""

    def line(self, text: str) -> None:
        pass

    def phase(self, text: str, total: int) -> None:
        pass

    def finished(self, candidate: Candidate, elapsed: float, baseline_macs: int) -> None:
        pass


def say_to_stderr(line: str) -> None:
    """A line on standard error; a full disk or a closed terminal there stops no search."""
    try:
        print(printable_lines(line), file=sys.stderr, flush=True)
    except BrokenPipeError:  # its reader wants no more
        raise
    except OSError:
        pass


def candidate_line(candidate: Candidate, elapsed: float, baseline_macs: int) -> str:
    """One line: elapsed time, index, MACs, accuracy, seconds of training, status, primitives."""
    ratio = "" if candidate.macs is None else f"{candidate.macs / baseline_macs:5.2f}x MACs"
    accuracy = (
        "" if candidate.val_accuracy is None else candidate.metric.text(candidate.val_accuracy)
    )
    seconds = "" if candidate.seconds is None else f"{candidate.seconds:.0f} s"
    status = candidate.status + (f" ({candidate.reason})" if candidate.reason else "")
    return printable(
        f"[{elapsed:4.0f} s] {candidate.name:<19} {ratio:>11} {accuracy:>8} {seconds:>6}  "
        f"{status}  {kernel_summary(candidate)}"
    )

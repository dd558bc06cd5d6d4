"""What a search lost by what it rejected: some of it trained to the end after all.

    finds rejected before or during their training --> N of them, by lot --> trained as the search
        trains --> the share that is as accurate as the best tenth of all finds

The lot follows from the study's seed and each find's name, so that a larger N adds to a smaller
one.  What is trained is stored in the study at once: an audit that was stopped goes on.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

from ..errors import CanvasError
from ..reporting.progress import say_to_stderr
from ..study import Audited, Candidate, Study, writing
from ..workers.pool import Pool
from .driver import memory_per_child
from .replay import YEAR, check_code, confirmed_options, images_of, training_job

REJECTED = ("rejected", "pruned", "waiting")  # not trained to the end; waiting: at a first rung
ENTERS = 10  # one in so many of all finds is one of the best
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Audit:
    """`rows` are the finds audited, `rejected` how many there were to choose from; `bar` is the
    accuracy that the best tenth of the `finds` reach, which is the `place`-th best.
    """

    rows: Sequence[tuple[Candidate, Audited]]
    rejected: int
    finds: int
    place: int
    bar: float

    def enters(self, audited: Audited) -> bool:
        return audited.accuracy is not None and audited.accuracy >= self.bar

    def __str__(self) -> str:
        count, total = sum(self.enters(audited) for _, audited in self.rows), len(self.rows)
        low, high = interval(count, total)
        return (
            f"{count} of {total} rejected finds, of {self.rejected}, would have entered the best "
            f"tenth: {100 * count / total:.0f} % ({100 * low:.0f} to {100 * high:.0f} % with 95 % "
            f"confidence); the best tenth of {self.finds} finds begins at {100 * self.bar:.1f} %, "
            f"place {self.place}"
        )


def audit(
    folder: Path,
    count: int,
    say: Callable[[str], None] = say_to_stderr,
    *,
    model: str | None = None,
) -> Audit:
    """Train `count` rejected finds of the study in `folder` to the end, less those that an earlier
    call has trained.  `model`: the study's, which must be given where it is code of the user's.
    Raises CanvasError with one message when there is nothing to audit.
    """
    Study.read(folder).close()  # nothing is made where there is none
    try:
        with ExitStack() as stack:
            with writing(folder):
                study = stack.enter_context(Study.open(folder, False))
            options = confirmed_options(study, model)
            chosen = lot(study.select("find", REJECTED), count, options["seed"])
            bar = _best_tenth(study, options["epochs"])
            if not chosen:
                raise CanvasError(
                    f"the study in '{folder}' has rejected no find: nothing to audit"
                )
            done = study.audited(options["epochs"])
            if missing := [row for row in chosen if row.id not in done]:
                say(f"training {len(missing)} rejected finds to the end")
                _train(study, options, missing, stack, say)
            done = study.audited(options["epochs"])
            rejected = len(study.select("find", REJECTED))
            return Audit([(row, done[row.id]) for row in chosen], rejected, *bar)
    except sqlite3.Error as error:
        raise CanvasError(f"the study in '{folder}' cannot be written: {error}") from error


def lot(rows: Sequence[Candidate], count: int, seed: int) -> list[Candidate]:
    """`count` of the rows, each with the same chance, in the order of the study."""

    def ticket(row: Candidate) -> bytes:
        return hashlib.sha256(f"audit {seed} {row.name}".encode()).digest()

    return sorted(sorted(rows, key=ticket)[:count], key=lambda row: row.id)


def _best_tenth(study: Study, epochs: int) -> tuple[int, int, float]:
    """How many finds there are, how many a tenth of them is, and the accuracy of its last; raises
    CanvasError where none was trained to the end.
    """
    curves = [study.curve(row.id) for row in study.select("find", "done")]
    accuracies = sorted((curve[-1] for curve in curves if len(curve) == epochs), reverse=True)
    if not accuracies:
        raise CanvasError(
            f"the study in '{study.folder}' has no find that was trained to the end: nothing to "
            "compare with"
        )
    finds = len(study.select("find", (*REJECTED, "done", "failed")))
    place = min(-(-finds // ENTERS), len(accuracies))
    return finds, place, accuracies[place - 1]


def _train(
    study: Study,
    options: dict[str, Any],
    rows: Sequence[Candidate],
    stack: ExitStack,
    say: Callable[[str], None],
) -> None:
    """Train each to the end and store it."""
    images, workers = images_of(study, options, stack), int(options["workers"])
    check_code(study, options, images)
    pool = stack.enter_context(Pool(workers, memory_per_child(workers)))
    under_way, queue = {row.id: row for row in rows}, list(rows)
    told: dict[int, tuple[float, float]] = {}  # accuracy and seconds after the last epoch
    while queue or pool.busy():
        while queue and pool.has_room():
            row = queue.pop(0)
            pool.start(row.id, training_job(study, options, images, row), YEAR)
        for id, message in pool.wait(1.0):
            if message["event"] == "epoch":
                told[id] = float(message["accuracy"]), float(message["seconds"])
                pool.answer(id, True)
            elif message["event"] == "done":
                study.record_audit(id, options["epochs"], Audited(*told[id]))
                say(f"{under_way[id].name} ({_why(under_way[id])}): {100 * told[id][0]:.1f} %")
            elif message["event"] == "failed":
                reason = f"{message['kind']}: {message['reason']}"
                study.record_audit(id, options["epochs"], Audited(None, None, reason))
                say(f"{under_way[id].name} ({_why(under_way[id])}): {reason}")


def _why(row: Candidate) -> str:
    return f"{row.status}: {row.reason}" if row.reason else row.status


# ---- how sure a share is ------------------------------------------------------------------------


def interval(count: int, total: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact (Clopper-Pearson) interval of a chance that came true `count` of `total` times."""

    def at_most(k: int, chance: float) -> float:
        terms = (comb(total, i) * chance**i * (1 - chance) ** (total - i) for i in range(k + 1))
        return sum(terms)

    def where(falls_to: Callable[[float], bool]) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if falls_to(middle) else (middle, high)
        return (low + high) / 2

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else where(lambda chance: 1 - at_most(count - 1, chance) >= tail)
    high = 1.0 if count == total else where(lambda chance: at_most(count, chance) <= tail)
    return low, high

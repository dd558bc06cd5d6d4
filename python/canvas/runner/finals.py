"""Finals: the test split, touched once.

The search chose its finds by their accuracy on the validation split, so that figure flatters them.
The finalists (the most accurate K finds of each budget), all controls and the unchanged network
are trained again, from seeds that the search has not used, and each training is scored once on the
test split.  What counts is the mean over the seeds; the spread stands beside it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ..errors import CanvasError
from ..reporting.front import find_order
from ..study import Candidate, final_epochs
from ..workers.pool import Pool
from .search_run import Run

FIRST_SEED = 1000  # how far the first seed of the finals is from the search's own
FINAL_LIMIT = 12  # a final may take this many times what the unchanged network took per epoch


def finalists(candidates: Sequence[Candidate], count: int) -> list[Candidate]:
    """Baseline, controls and the `count` most accurate finds of each budget, of those trained to
    the end.
    """
    done = [row for row in candidates if row.status == "done"]
    chosen = [row for row in done if row.kind != "find"]
    taken: dict[str, int] = {}
    for row in sorted((row for row in done if row.kind == "find"), key=find_order):
        taken[row.budget] = taken.get(row.budget, 0) + 1
        if taken[row.budget] <= count:
            chosen.append(row)
    return chosen


def final_seeds(options: dict[str, int]) -> list[int]:
    """The seeds of the finals: far enough from the search's own to be new to it, whatever a
    search trains from the seeds just after its own.
    """
    first = options["seed"] + FIRST_SEED
    return [(first + i) % 2**63 for i in range(options["final_seeds"])]


def expected_seconds(run: Run) -> float:
    """About how long the finals will take, to be kept of the time limit; 0 without finals."""
    if not run.options["finalists"]:
        return 0.0
    rows = [row for row in run.study.candidates() if row.kind != "find" and row.status != "failed"]
    budgets = len({row.budget for row in run.study.select("find")})
    networks = len(rows) + run.options["finalists"] * budgets
    one = (run.baseline_seconds() or 0.0) * final_epochs(run.options) / run.options["epochs"]
    return networks * run.options["final_seeds"] * one / run.options["workers"]


def train_finals(run: Run, pool: Pool) -> None:
    """Train what the finals still lack, seed by seed, so that a time limit leaves whole rows of
    the table comparable.
    """
    epochs = final_epochs(run.options)
    rows = finalists(run.study.candidates(), run.options["finalists"])
    if not run.options["finalists"] or not any(row.kind == "find" for row in rows):
        return
    queue = [
        (row, seed)
        for seed in final_seeds(run.options)
        for row in rows
        if seed not in run.study.final_seeds(row.id, epochs)
    ]
    if queue:
        run.display.phase(f"finals: {len(queue)} trainings of {epochs} epochs", len(queue))
    Finals(run, pool, epochs, queue).train()


class Finals:
    """The finals under way: a job is the place of (candidate, seed) in `queue`."""

    def __init__(
        self, run: Run, pool: Pool, epochs: int, queue: Sequence[tuple[Candidate, int]]
    ) -> None:
        self.run = run
        self.pool = pool
        self.epochs = epochs
        self.queue = queue
        self.validation: dict[int, tuple[float, float]] = {}  # job -> accuracy, seconds

    def train(self) -> None:
        next = 0
        while next < len(self.queue) or self.pool.busy():
            while next < len(self.queue) and self.pool.has_room() and self._in_time():
                self._start(next)
                next += 1
            if not self.pool.busy():
                break
            for job, message in self.pool.wait(0.5):
                self._hear(job, message)
            if time.monotonic() > self.run.timing_moment():
                for job in self.pool.busy():
                    self.pool.stop(job)
                    candidate, seed = self.queue[job]
                    self.run.study.final_stopped(candidate.id, seed, self.epochs)
                self.run.time_is_up("all finals were trained")
                break

    def _in_time(self) -> bool:
        seconds = (self.run.baseline_seconds() or 0) * self.epochs / self.run.options["epochs"]
        if time.monotonic() + seconds < self.run.timing_moment():
            return True
        self.run.time_is_up("all finals were trained")
        return False

    def _start(self, job: int) -> None:
        candidate, seed = self.queue[job]
        seconds = self.run.baseline_processor() or 0.0
        limit = max(120.0, FINAL_LIMIT * seconds * self.epochs / self.run.options["epochs"])
        words = self.run.training(candidate, self.epochs, seed=seed, check=False, test=True)
        self.run.study.final_started(candidate.id, seed, self.epochs)
        self.pool.start(job, words, limit)
        self.run.display.started(f"{candidate.name} seed {seed}", self.epochs)

    def _hear(self, job: int, message: dict[str, object]) -> None:
        """One message about a final; what makes no sense is a failure of that training."""
        try:
            self._obey(job, message)
        except CanvasError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            self.pool.stop(job)
            self._failed(job, f"error: the child sent a message that cannot be ({error})")

    def _obey(self, job: int, message: dict[str, object]) -> None:
        candidate, seed = self.queue[job]
        if message["event"] == "epoch":
            accuracy, seconds = float(message["accuracy"]), float(message["seconds"])  # type: ignore[arg-type]
            self.validation[job] = (accuracy, seconds)
            self.run.display.epoch(f"{candidate.name} seed {seed}", accuracy)
            self.pool.answer(job, True)
        elif message["event"] == "done":
            hits = bytes.fromhex(str(message["hits"]))
            validation, seconds = self.validation[job]
            scores = (validation, hits)
            test = self.run.study.final(candidate.id, seed, self.epochs, scores, seconds)
            self.run.display.line(
                f"final {candidate.name}, seed {seed}: {100 * test:.1f} % on the test split"
            )
            self.run.display.ended(f"{candidate.name} seed {seed}")
        elif message["event"] == "failed":
            self._failed(job, f"{message['kind']}: {message['reason']}")

    def _failed(self, job: int, reason: str) -> None:
        candidate, seed = self.queue[job]
        self.run.study.final_failed(candidate.id, seed, self.epochs, reason)
        self.run.display.line(f"final {candidate.name}, seed {seed} failed: {reason}")
        self.run.display.ended(f"{candidate.name} seed {seed}")

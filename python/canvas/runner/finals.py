"""Finals: the test split, touched once.

The search chose its finds by their accuracy on the validation split, so that figure flatters them.
The finalists (the most accurate K finds of each budget; the first of them is what a claim is
about), all controls and the unchanged network are trained again, from seeds that the search has
not used, and each training is scored once on the test split, image by image.  Where a time limit
ends that, it goes on after the networks were timed, which seldom takes all that was kept for it.

First a grouped convolution of the chosen find's MACs is added to the controls, if there is none,
and trained as the others were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from statistics import median

from ..errors import CanvasError
from ..nn.memory_format import FORMATS
from ..reporting.front import chosen_finds, title
from ..reporting.verdict import SEEDS, rivals
from ..study import WHOLE, Candidate, final_epochs
from ..text import several
from ..workers.pool import Executor, Message
from .compiled_engines import UNCHANGED
from .control_rows import add_grouped
from .precompile import compile_beside_finals
from .search_run import Run
from .timing_plan import finalists

FIRST_SEED = 1000  # how far the first seed of the finals is from the search's own
FINAL_LIMIT = 12  # a final may take this many times what the unchanged network took per epoch
FINALS_SHARE = 0.45  # of a time limit: a search that finds nothing has nothing to compare
OWN_SEED = -1  # in the place of a final's seed
ALL_FINALS = "all finals were trained"


def order_of_finals(
    rows: Sequence[Candidate], seeds: Sequence[int]
) -> list[tuple[Candidate, int]]:
    """Every row from every seed: first as many seeds as a claim needs, then the others; in each
    part the chosen find of the smallest budget with what it is compared with, seed by seed, then
    what the next one needs beside that, and so on.
    """
    baseline = [row for row in rows if row.kind == "baseline"]
    groups: list[list[Candidate]] = []
    placed: set[int] = set()
    for find in reversed(chosen_finds(rows)):
        needed = {row.id: row for row in (*baseline, find, *rivals(find, rows))}
        groups.append([row for id, row in needed.items() if id not in placed])
        placed |= needed.keys()
    groups.append([row for row in rows if row.id not in placed])
    parts = (seeds[:SEEDS], seeds[SEEDS:])
    return [(row, s) for part in parts for group in groups for s in part for row in group]


def final_seeds(options: dict[str, int]) -> list[int]:
    """The seeds of the finals: far enough from the search's own to be new to it, whatever a
    search trains from the seeds just after its own.
    """
    first = options["seed"] + FIRST_SEED
    return [(first + i) % 2**63 for i in range(options["final_seeds"])]


def expected_seconds(run: Run) -> float:
    """About how long the finals will take, to be kept of the time limit, of which they get no more
    than FINALS_SHARE; 0 without finals.
    """
    if not run.options["finalists"]:
        return 0.0
    rows = [row for row in run.study.candidates() if row.kind != "find" and row.status != "failed"]
    budgets = len({row.budget for row in run.study.select("find")})
    unchanged = run.baseline_seconds() or 0.0
    paces = run.study.paces()
    find = max(unchanged, median(paces) * run.options["epochs"]) if paces else unchanged
    # each budget's grouped control of the find's MACs is one more
    once = sum(row.seconds or unchanged for row in rows) + budgets * unchanged
    once += budgets * run.options["finalists"] * find
    seeds = run.options["final_seeds"] * final_epochs(run.options) / run.options["epochs"]
    expected = (once * seeds + budgets * unchanged) / run.options["workers"]
    return min(expected, FINALS_SHARE * (run.options["time_limit"] or math.inf))


def train_finals(run: Run, pool: Executor) -> None:
    """Train what the finals still lack, in an order that leaves as many claims as possible where a
    time limit ends it.
    """
    epochs, count = final_epochs(run.options), run.options["finalists"]
    if not count or not run.study.select("find", "done"):
        return
    if not run.timed:
        add_grouped(run)
    missing = missing_finals(run, epochs)
    if run.timed and missing:
        missing = [(row, seed) for row, seed in missing if row.latency_ms is not None]
        if not missing or not Finals(run, pool, epochs, missing).in_time():
            run.time_is_up(ALL_FINALS)
            return
    if missing:
        run.display.after(run.timing_seconds())
        run.display.phase(
            f"finals: {several(len(missing), 'training')} of {several(epochs, 'epoch')}",
            len(missing),
        )
        if not run.timed:
            compile_beside_finals(run, pool)
    Finals(run, pool, epochs, missing).train()
    if run.timed and missing_finals(run, epochs):
        run.time_is_up(ALL_FINALS)


def missing_finals(run: Run, epochs: int) -> list[tuple[Candidate, int]]:
    """The finals that were not trained, in their order."""
    rows = finalists(run.study.candidates(), run.options["finalists"])
    own = [(row, OWN_SEED) for row in rows if row.status == "new"]
    return own + [
        (row, seed)
        for row, seed in order_of_finals(rows, final_seeds(run.options))
        if seed not in run.study.final_seeds(row.id, epochs)
    ]


class Finals:
    """The finals under way: a job is the place of (candidate, seed) in `queue`; OWN_SEED is the
    search's, from which a control that was added late is trained.
    """

    def __init__(
        self, run: Run, pool: Executor, epochs: int, queue: Sequence[tuple[Candidate, int]]
    ) -> None:
        self.run = run
        self.pool = pool
        self.epochs = epochs
        self.queue = queue
        self.validation: dict[int, tuple[float, float]] = {}  # job -> accuracy, seconds
        self.behind: dict[int, float] = {}  # job -> seconds of the epochs behind it

    def train(self) -> None:
        next = 0
        while next < len(self.queue) or self._trained():
            while next < len(self.queue) and self.pool.has_room() and self.in_time():
                self._start(next)
                next += 1
            if not self._trained():
                break
            for job, message in self.pool.wait(0.5):
                if job == UNCHANGED:
                    self.run.compiled.record(job, message)
                else:
                    self._hear(job, message)
            if time.monotonic() > self.run.timing_moment():
                for job in self._trained():
                    self._stop(job)
                break

    def _trained(self) -> list[int]:
        """The jobs under way that are trainings."""
        return [job for job in self.pool.busy() if job != UNCHANGED]

    def _stop(self, job: int) -> None:
        candidate, seed = self.queue[job]
        self.pool.stop(job)
        if seed == OWN_SEED:
            self.run.study.put_back(candidate.id)
        else:
            self.run.study.final_stopped(candidate.id, seed, self.epochs)

    def in_time(self) -> bool:
        """Whether one more training could end in time."""
        seconds = (self.run.baseline_seconds() or 0) * self.epochs / self.run.options["epochs"]
        return time.monotonic() + seconds < self.run.timing_moment()

    def _start(self, job: int) -> None:
        row, seed = self.queue[job]
        candidate = self.run.study.candidate(row.id)  # with its memory format
        seconds = self.run.baseline_processor() or 0.0
        limit = max(120.0, FINAL_LIMIT * seconds * self.epochs / self.run.options["epochs"])
        if seed == OWN_SEED:
            words = self.run.training(candidate, self.run.options["epochs"])
            self.run.study.started(candidate.id)
        else:
            asked = {"seed": seed, "check": False, "test": True, "score_last": True}
            words = self.run.training(candidate, self.epochs, **asked)
            self.run.study.final_started(candidate.id, seed, self.epochs)
        self.pool.start(job, words, limit)
        self.run.display.started(self._title(job), words["epochs"])

    def _title(self, job: int) -> str:
        candidate, seed = self.queue[job]
        return candidate.name if seed == OWN_SEED else f"{candidate.name} seed {seed}"

    def _hear(self, job: int, message: Message) -> None:
        """One message about a final; what makes no sense is a failure of that training."""
        try:
            self._obey(job, message)
        except CanvasError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            self.pool.stop(job)
            self._failed(job, f"error: the child sent a message that cannot be ({error})")

    def _obey(self, job: int, message: Message) -> None:
        candidate, seed = self.queue[job]
        if message["event"] == "epoch":
            self._epoch(job, message)
        elif message["event"] == "built" and seed == OWN_SEED:
            macs, params = int(message["macs"]), int(message["params"])
            form = str(message.get("memory_format", ""))
            self.run.study.built(candidate.id, macs, params, form if form in FORMATS else "")
        elif message["event"] == "done" and seed == OWN_SEED:
            options = self.run.options
            self.run.study.reached(candidate.id, WHOLE, options["epochs"], options["seed"], "done")
            self.run.report_end(self.run.study.candidate(candidate.id))
        elif message["event"] == "done":
            test = message.get("test")
            self._done(job, bytes.fromhex(str(message.get("hits", ""))), test)
        elif message["event"] == "failed":
            self._failed(job, f"{message['kind']}: {message['reason']}")

    def _epoch(self, job: int, message: Message) -> None:
        candidate, seed = self.queue[job]
        number, loss = int(message["number"]), float(message["loss"])
        seconds, value = float(message["seconds"]), message["accuracy"]
        if value is not None:
            value = float(value)
            self.validation[job] = (value, seconds)
            if seed == OWN_SEED:
                self.run.study.epoch(candidate.id, number, value, loss, seconds)
        self.run.display.epoch(self._title(job), value)
        self.pool.answer(job, True)
        training = ("final", candidate, seed, self.epochs)
        if seed == OWN_SEED:
            options = self.run.options
            training = ("trial", candidate, options["seed"], options["epochs"])
        took = seconds - self.behind.get(job, 0.0)
        self.behind[job] = seconds
        self.run.report_epoch(training, number, loss, value, took)

    def _done(self, job: int, hits: bytes, known: float | None) -> None:
        candidate, seed = self.queue[job]
        validation, seconds = self.validation[job]
        scores = (validation, hits)
        if (known is None) is not candidate.metric.per_example or not _possible(candidate, known):
            raise ValueError(f"a final of {known}, {len(hits)} bytes of hits")
        test = self.run.study.final(candidate.id, seed, self.epochs, scores, seconds, known)
        told = candidate.metric.text(test)
        self.run.display.line(f"final {title(candidate)}, seed {seed}: {told} on the test split")
        self.run.display.ended(self._title(job))

    def _failed(self, job: int, reason: str) -> None:
        candidate, seed = self.queue[job]
        if seed == OWN_SEED:
            self.run.study.finished(candidate.id, "failed", reason)
            self.run.report_end(self.run.study.candidate(candidate.id))
            return
        self.run.study.final_failed(candidate.id, seed, self.epochs, reason)
        self.run.display.line(f"final {title(candidate)}, seed {seed} failed: {reason}")
        self.run.display.ended(self._title(job))


def _possible(candidate: Candidate, value: float | None) -> bool:
    """Whether a metric can have this value; None: it was not told."""
    return value is None or candidate.metric.can_be(value)

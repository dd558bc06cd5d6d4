"""The trials of a search: what was asked for is trained and pruned.

    ask (asking.py) --> [child: check by the interpreter, train, score] --> prune --> done
   one item after another         several at a time

A failure of a candidate is a row of the study, never the end of the search.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from ..errors import CanvasError
from ..nn.controls import BASELINE, Control, budget_controls, solve_controls
from ..nn.memory_format import FORMATS
from ..options import budgets
from ..study import WHOLE, Candidate
from ..workers.pool import Message, Pool
from .asking import Asking
from .control_rows import add_control
from .finals import expected_seconds
from .prune import Finished, best_curve, keeps_up, threshold
from .search_run import Run

SLOWEST = 6  # a training may take this many times what the unchanged network took ...
SHORTEST = 30.0  # ... but at least this many seconds


def add_controls(run: Run) -> None:
    """The baseline and each control that is not in the study yet (a kill may have come between
    two).
    """
    study = run.study
    there = {candidate.name for candidate in study.candidates() if candidate.kind != "find"}
    if BASELINE not in there:
        study.add(BASELINE, "baseline")
    for failed in study.select("baseline", "failed"):
        study.put_back(failed.id)  # nothing can be compared without it
    for control, budget in all_controls(run):
        if control.name in there:
            continue
        add_control(run, control, budget)


def all_controls(run: Run) -> list[tuple[Control, str]]:
    """Controls with the budget that they were solved for; those that fill a budget once for each
    of them.
    """
    targets, all_budgets = run.plan.targets, budgets(run.options)
    controls = [(control, "") for control in solve_controls(targets, run.options["norm"])]
    for budget in all_budgets:
        sizes = budget.partition(",")[0].partition("=")[2] if len(all_budgets) > 1 else ""
        for control in budget_controls(targets, budget, run.options["norm"]):
            name = f"{control.name}-{sizes}" if sizes else control.name
            controls.append((replace(control, name=name), budget))
    return controls


class Trials:
    """The candidates of a search on their way: what comes next, the verdicts.

    What is queued or running stands in the study alone.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.study = run.study
        self.options = run.options
        self.display = run.display
        self.asking = Asking(run)
        # candidate -> (epoch, accuracy) without a verdict
        self.waiting: dict[int, tuple[int, float]] = {}

    def total(self) -> int:
        """Finds that the search shall train."""
        return int(self.options["trials"]) * len(budgets(self.options))

    def train(self, pool: Pool) -> None:
        """Train until the trials are done or the time is up; then nothing is under way."""
        self.display.phase("", self.total())
        while True:
            while pool.has_room() and self._time_to_start() and (job := self._next()) is not None:
                self._start(pool, job)
            if not pool.busy():
                break
            for id, message in pool.wait(0.5):
                self._hear(pool, id, message)
            self._judge(pool)
            if time.monotonic() > self._last_moment():
                self._stop_all(pool)

    # ---- what comes next ----------------------------------------------------------------------

    def _next(self) -> int | None:
        """The next candidate to train: what was left over first, then new draws."""
        if self.study.stopped and not self.run.ended:
            self.run.ended = "a callback stopped the search"
        if self.run.ended:
            return None
        if queued := self.study.select(status="new"):
            return queued[0].id
        return self.asking.next(True, lambda: time.monotonic() > self._last_moment())

    def _start(self, pool: Pool, id: int) -> None:
        candidate = self.study.candidate(id)
        self.study.started(id)
        signals = self.options["pretests"] == "yes"
        words = self.run.training(candidate, self.options["epochs"], signals=signals)
        pool.start(id, words, self._train_limit())
        self.display.started(candidate.name, self.options["epochs"])

    def _train_limit(self) -> float:
        """Seconds of processor time that a training may take."""
        if self.options["train_limit"] is not None:
            return float(self.options["train_limit"])
        seconds = self.run.baseline_processor()
        return 24 * 3600.0 if seconds is None else max(SHORTEST, SLOWEST * seconds)

    # ---- what a child says --------------------------------------------------------------------

    def _hear(self, pool: Pool, id: int, message: Message) -> None:
        """One message of a child about candidate `id`; what is pruned has nothing more to say."""
        if self.study.candidate(id).status != "running":
            return
        try:
            self._obey(id, message)
            if message["event"] == "signals":
                pool.answer(id, True)
        except CanvasError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            pool.stop(id)
            self._finish(id, "failed", f"error: the child sent a message that cannot be ({error})")

    def _obey(self, id: int, message: Message) -> None:
        event = message["event"]
        if event == "built":
            memory_format = str(message.get("memory_format", ""))
            if memory_format not in ("", *FORMATS):
                raise ValueError(f"memory format {memory_format}")
            self.study.built(id, int(message["macs"]), int(message["params"]), memory_format)
        elif event == "signals":
            pass  # of no consequence yet
        elif event == "epoch":
            number, accuracy = int(message["number"]), float(message["accuracy"])
            if not 0 <= accuracy <= 1 or number != len(self.study.curve(id)):
                raise ValueError(f"epoch {number}, accuracy {accuracy}")
            seconds = float(message["seconds"])
            processor = float(message.get("processor", seconds))
            loss = float(message["loss"])
            self.study.epoch(id, number, accuracy, loss, seconds, processor)
            self.display.epoch(self.study.candidate(id).name, accuracy)
            self.waiting[id] = (number, accuracy)
        elif event == "done":
            if len(self.study.curve(id)) != self.options["epochs"]:
                raise ValueError("done before the last epoch")
            self._reached(id, WHOLE)
        elif event == "failed":
            reason = f"{message['kind']}: {message['reason']}"
            self._finish(id, "failed", reason, str(message.get("log", "")))
        else:
            raise ValueError(f"event {event}")

    def _judge(self, pool: Pool) -> None:
        """Give every training that waits its verdict, unless a candidate that counts for it is
        not ended yet.
        """
        for id, (epoch, accuracy) in sorted(self.waiting.items()):
            candidate = self.study.candidate(id)
            if (
                candidate.kind == "find"
                and epoch >= self.options["grace"]
                and not self._ended_before(candidate)
            ):
                continue
            del self.waiting[id]
            best = self._best_curve(candidate) if candidate.kind == "find" else None
            if keeps_up(accuracy, epoch, self.options["epochs"], self.options["grace"], best):
                pool.answer(id, True)
                continue
            assert best is not None
            wanted = threshold(epoch, self.options["epochs"]) * best[epoch]
            pool.answer(id, False)
            self._finish(
                id,
                "pruned",
                f"{100 * accuracy:.1f} % after epoch {epoch + 1}, {100 * wanted:.1f} % wanted",
            )

    def _ended_before(self, candidate: Candidate) -> bool:
        assert candidate.number is not None
        last = candidate.number - self.options["lag"]
        under_way = self.study.select("find", ("new", "running"))
        return all(other.number is None or other.number > last for other in under_way)

    def _best_curve(self, candidate: Candidate) -> Any:
        assert candidate.number is not None and candidate.macs is not None
        finished = [
            Finished(other.number or 0, other.macs or 0, self.study.curve(other.id))
            for other in self.study.select("find", "done")
        ]
        return best_curve(
            self.options["prune"],
            candidate.number,
            candidate.macs,
            finished,
            self.options["lag"],
        )

    def _reached(self, id: int, rung: int) -> None:
        self.waiting.pop(id, None)
        self.study.reached(id, rung, self.options["epochs"], self.options["seed"], "done")
        self.run.tell(self.study.candidate(id))

    def _finish(self, id: int, status: str, reason: str = "", log: str = "") -> None:
        self.waiting.pop(id, None)
        self.study.finished(id, status, reason, log)
        candidate = self.study.candidate(id)
        self.display.after(expected_seconds(self.run) + self.run.timing_seconds())
        self.run.tell(candidate)
        if candidate.kind == "baseline" and status == "failed":
            raise CanvasError(f"the unchanged network cannot be trained: {reason}")

    # ---- the clock ----------------------------------------------------------------------------

    def _last_moment(self) -> float:
        """When training must have ended so that finals, latency and table are ready in time."""
        return self.run.timing_moment() - expected_seconds(self.run)

    def _time_to_start(self) -> bool:
        """Whether a new training could end in time; the first one always gets its chance."""
        seconds = self.run.baseline_seconds() or 0.0
        if time.monotonic() + seconds < self._last_moment():
            return True
        self.run.time_is_up("all trials were done")
        return False

    def _stop_all(self, pool: Pool) -> None:
        """The time is up: what is under way is new again."""
        for id in pool.busy():
            pool.stop(id)
            self.waiting.pop(id, None)
            candidate = self.study.candidate(id)
            if candidate.status == "running":
                self.study.put_back(id)
                self.display.ended(candidate.name)
        self.run.time_is_up("all trials were done")

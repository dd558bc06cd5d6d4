"""The trials of a search: what was asked for is measured, trained to its rung, pruned.

   ask (next_item.py) --> [child: check, measure, train, score] --> waiting at a rung, done, pruned
   one item after another        several at a time

The baseline and the controls are trained to the last rung, as the best finds are.

A failure of a candidate is a row of the study, never the end of the search.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

from ..errors import CanvasError
from ..nn.controls import BASELINE, Control, budget_controls, solve_controls
from ..nn.memory_format import FORMATS
from ..options import budgets, latency_limit
from ..study import (
    FIRST,
    KEPT,
    SECOND,
    WHOLE,
    Candidate,
    forget_kept,
    keeps,
    kept_file,
    layer_file,
    remove_kept,
)
from ..workers.pool import Executor, Message
from .clock import Clock
from .control_rows import add_control
from .finals import expected_seconds
from .measured import verdict
from .next_item import NextItem
from .prune import judge
from .search_run import Run
from .strategy import first_epochs, rungs_of, why_pruned

SECOND_SEED = 500  # how far the seed of the last rung is from the search's own
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


@dataclass
class Course:
    """A training under way: to `rung`, which it reaches after `until` epochs.  `next` is the
    number of the epoch to come, `begun` whether one was told; `before` is what it had taken when
    it was left off; `accuracy` and `seconds` are those of the last epoch.
    """

    rung: int
    until: int
    next: int = 0
    begun: bool = False
    before: float = 0.0
    accuracy: float = 0.0
    seconds: float = 0.0


class Trials:
    """The candidates of a search on their way: what comes next, the verdicts.

    What is queued or running stands in the study alone; `courses` is what was told of the
    trainings under way, `waiting` the epochs (number, accuracy) without a verdict, both by
    candidate.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.study = run.study
        self.options = run.options
        self.display = run.display
        self.items = NextItem(run)
        self.clock = Clock(run)
        self.rungs = rungs_of(self.options["prune"], self.options["epochs"], self.options["grace"])
        self.courses: dict[int, Course] = {}
        self.waiting: dict[int, tuple[int, float]] = {}
        self.closing = False  # no time is left for new finds

    def total(self) -> int:
        """Finds that the search shall train."""
        return int(self.options["trials"]) * len(budgets(self.options))

    def train(self, pool: Executor) -> None:
        """Train until the trials are done or the time is up; then nothing is under way."""
        self.display.phase("", self.total())
        self._ask_seconds()
        if FIRST in self.rungs and not keeps(self.study.folder):
            self.display.line(
                f"'{self.study.folder / KEPT}' is no folder of the study, no training is kept "
                "there: each goes on from its start"
            )
        if self._has_no_layer():
            self.display.line(
                f"'{layer_file(self.study.folder)}' is not there: finds are trained without a "
                "test at a layer"
            )
        while True:
            while pool.has_room() and (id := self._next()) is not None:
                self._start(pool, id)
            if not pool.busy():
                break
            for id, message in pool.wait(0.5):
                self._hear(pool, id, message)
            self._judge(pool)
            self._stop_late(pool)
        self._settle()

    def _has_no_layer(self) -> bool:
        """Whether the unchanged network was trained without leaving what finds are tested at."""
        trained = self.run.baseline_seconds() is not None
        wanted = self.options["pretests"] == "yes" and trained
        return wanted and not layer_file(self.study.folder).is_file()

    # ---- what comes next ----------------------------------------------------------------------

    def _next(self) -> int | None:
        """The next candidate to train: what was left over first, then what the strategy asks for,
        and where that must wait, a control from the second seed.
        """
        if self.study.stopped and not self.run.ended:
            self.run.ended = "a callback stopped the search"
        if self.run.ended:
            return None
        asked = {item.candidate for item in self.study.items()}
        seconds = [id for id in self.study.second_seeds("queued") if id not in self.courses]
        left = [row.id for row in self.study.select(status="new")]
        left += [id for id in seconds if id in asked]
        controls = [id for id in seconds if id not in asked]
        if early := self._in_time(left):
            return early[0]
        while self._controls_ended() and (id := self._ask()) is not None:
            if self._in_time([id]):
                return id
        return next(iter(self._in_time(controls[:1])), None)

    def _ask(self) -> int | None:
        self.closing = self.closing or not self.clock.time_for_new()
        return self.items.next(
            not self.closing, lambda: time.monotonic() > self.clock.last_moment()
        )

    def _controls_ended(self) -> bool:
        """Whether the baseline and the controls are trained from the search's own seed: what is
        asked and judged may depend on them.
        """
        under_way = self.study.select(status=("new", "running"))
        return all(row.kind == "find" for row in under_way)

    def _in_time(self, ids: list[int]) -> list[int]:
        """Those that there is time left to train; where that is not all, no new find is begun."""
        rows = [self.study.candidate(id) for id in ids]
        early = [row.id for row in rows if self.clock.in_time(row, self._rung(row))]
        self.closing = self.closing or len(early) < len(ids)
        return early

    def _rung(self, candidate: Candidate) -> int:
        """What the candidate is to be trained to next."""
        if candidate.id in self.study.second_seeds("queued", "running"):
            return SECOND
        asked = [item.rung for item in self.study.items() if item.candidate == candidate.id]
        return max(asked, default=WHOLE)

    def _ask_seconds(self) -> None:
        """The baseline and the controls are trained from the second seed, too, where finds are."""
        if not self.rungs:
            return
        first = next((item.candidate for item in self.study.items()), None)
        for row in self.study.select(status="done"):
            if row.kind != "find" and (first is None or row.id < first):  # finals add later ones
                self.study.add_second(row.id)

    def _start(self, pool: Executor, id: int) -> None:
        candidate = self.study.candidate(id)
        course = self._begin(candidate)
        words: dict[str, Any] = {"until": course.until}
        if course.rung == SECOND:
            words |= {"seed": second_seed(self.options["seed"]), "check": False}
        elif candidate.rung < FIRST:
            words["signals"] = self.options["pretests"] == "yes"
            if words["signals"] and candidate.kind != "control":
                words["layer"] = str(layer_file(self.study.folder))
            if candidate.kind == "find" and latency_limit(self.options) is not None:
                batch = self.options["latency_batch"]
                words["layers"] = {"targets": self.run.plan.targets, "batch": batch}
        first = candidate.kind == "find" and course.rung != SECOND and FIRST in self.rungs
        if first and keeps(self.study.folder):
            words["kept"] = str(kept_file(self.study.folder, candidate.name))
        job = self.run.training(candidate, self.options["epochs"], **words)
        pool.start(id, job, self._train_limit())
        self.display.started(self._name(candidate), course.until)

    def _begin(self, candidate: Candidate) -> Course:
        """Record that a training begins or goes on."""
        rung, epochs = self._rung(candidate), self.options["epochs"]
        first = first_epochs(epochs, self.options["grace"])
        course = Course(rung, first if rung == FIRST else epochs)
        self.courses[candidate.id] = course
        if rung == SECOND:
            self.study.second_started(candidate.id)
        else:
            self.study.started(candidate.id)
            course.next = len(self.study.curve(candidate.id))
            course.before = self.study.candidate(candidate.id).seconds or 0.0
        return course

    def _name(self, candidate: Candidate) -> str:
        """What the display calls a training."""
        second = self.courses[candidate.id].rung == SECOND
        return candidate.name + f" seed {second_seed(self.options['seed'])}" * second

    def _train_limit(self) -> float:
        """Seconds of processor time that a training may take."""
        if self.options["train_limit"] is not None:
            return float(self.options["train_limit"])
        seconds = self.run.baseline_processor()
        return 24 * 3600.0 if seconds is None else max(SHORTEST, SLOWEST * seconds)

    # ---- what a child says --------------------------------------------------------------------

    def _hear(self, pool: Executor, id: int, message: Message) -> None:
        """One message of a child about candidate `id`; what is over has nothing more to say."""
        if id not in self.courses:
            return
        try:
            self._obey(pool, id, message)
        except CanvasError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            pool.stop(id)
            self._failed(id, f"error: the child sent a message that cannot be ({error})")

    def _obey(self, pool: Executor, id: int, message: Message) -> None:
        event, course = message["event"], self.courses[id]
        if event == "built":
            memory_format = str(message.get("memory_format", ""))
            if memory_format not in ("", *FORMATS):
                raise ValueError(f"memory format {memory_format}")
            self.study.built(id, int(message["macs"]), int(message["params"]), memory_format)
        elif event == "layers":
            self._timed(pool, id, message)
        elif event == "signals":
            self._measured(pool, id, message)
        elif event == "epoch":
            self._epoch(id, course, message)
        elif event == "done":
            if not course.begun or course.next != course.until:
                raise ValueError("done before the last epoch")
            if reason := message.get("unrecorded"):
                self.display.line(f"finds are trained without a test at a layer: {reason}")
            self._reached(id, course)
        elif event == "failed":
            reason = f"{message['kind']}: {message['reason']}"
            self._failed(id, reason, str(message.get("log", "")))
        else:
            raise ValueError(f"event {event}")

    def _timed(self, pool: Executor, id: int, message: Message) -> None:
        """The time of its layers decides whether a find is trained."""
        limit, share = latency_limit(self.options) or math.inf, message["share"]
        if share is None:
            pool.answer(id, False)
            self._failed(id, f"error: {message['missing']}")
            return
        pool.answer(id, float(share) <= limit)
        if float(share) > limit:
            reason = f"latency {share:.2f}x of the layers replaced, over {limit:g}x"
            self._finish(id, "rejected", reason)

    def _measured(self, pool: Executor, id: int, message: Message) -> None:
        """What the network told before its training decides whether it is trained."""
        signals = {name: message[name] for name in ("error", "fingerprint", "broken")}
        if not 0 <= (signals["error"] or 0) <= 1:
            raise ValueError(f"error {signals['error']}")
        self.study.measured(id, signals["error"], signals["fingerprint"])
        go, reason = verdict(self.run, self.study.candidate(id), signals)
        pool.answer(id, go)
        if not go:
            self._finish(id, "rejected", reason)

    def _epoch(self, id: int, course: Course, message: Message) -> None:
        """An epoch is over.  A training that goes on may have to begin at its start once more."""
        number, accuracy = int(message["number"]), float(message["accuracy"])
        if not course.begun and number == 0:
            course.next, course.before = 0, 0.0
        if not self.study.metric.can_be(accuracy) or number != course.next:
            raise ValueError(f"epoch {number}, accuracy {accuracy}")
        course.begun, course.next, course.accuracy = True, number + 1, accuracy
        loss, earlier = float(message["loss"]), course.seconds or course.before
        course.seconds = course.before + float(message["seconds"])
        if course.rung != SECOND:
            # Of a training that goes on, processor time before it was left off is not known.
            processor = None if course.before else float(message.get("processor", course.seconds))
            self.study.epoch(id, number, accuracy, loss, course.seconds, processor)
        self.run.remarks.waited(float(message.get("waiting", 0.0)))
        candidate = self.study.candidate(id)
        self.display.epoch(self._name(candidate), accuracy)
        self.waiting[id] = (number, accuracy)
        seed = self.options["seed"]
        seed = second_seed(seed) if course.rung == SECOND else seed
        training = ("trial", candidate, seed, self.options["epochs"])
        self.run.report_epoch(training, number, loss, accuracy, course.seconds - earlier)

    def _judge(self, pool: Executor) -> None:
        """Give every training that waits its verdict, unless that has to wait itself."""
        for id, (epoch, accuracy) in sorted(self.waiting.items()):
            judgement = judge(self.run, self.study.candidate(id), epoch, accuracy)
            if judgement is None:
                continue
            go, reason = judgement
            del self.waiting[id]
            pool.answer(id, go)
            if not go:
                self._finish(id, "pruned", reason)

    # ---- ends ---------------------------------------------------------------------------------

    def _reached(self, id: int, course: Course) -> None:
        """A training has come to its rung."""
        name = self._name(self.study.candidate(id))
        self._over(id)
        if course.rung == SECOND:
            seed, epochs = second_seed(self.options["seed"]), self.options["epochs"]
            self.study.second(id, seed, epochs, course.accuracy, course.seconds, "")
            mean = self.study.candidate(id).val_accuracy or 0.0
            text = self.study.metric.text
            self.display.line(f"{name}: {text(course.accuracy)}, mean {text(mean)}")
            self.display.ended(name)
            return
        status = "waiting" if course.rung == FIRST else "done"
        self.study.reached(id, course.rung, course.until, self.options["seed"], status)
        self._ask_seconds()
        self.run.report_end(self.study.candidate(id))

    def _failed(self, id: int, reason: str, log: str = "") -> None:
        candidate, course = self.study.candidate(id), self.courses[id]
        if course.rung != SECOND:
            self._finish(id, "failed", reason, log)
            return
        name = self._name(candidate)
        self._over(id)
        seed, epochs = second_seed(self.options["seed"]), self.options["epochs"]
        self.study.second(id, seed, epochs, None, course.seconds, reason)
        self.display.line(f"{name} failed: {reason}")
        self.display.ended(name)

    def _finish(self, id: int, status: str, reason: str = "", log: str = "") -> None:
        self._over(id)
        self.study.finished(id, status, reason, log)
        candidate = self.study.candidate(id)
        self.display.after(expected_seconds(self.run) + self.run.timing_seconds())
        self.run.report_end(candidate)
        if candidate.kind == "baseline" and status == "failed":
            raise CanvasError(f"the unchanged network cannot be trained: {reason}")

    def _over(self, id: int) -> None:
        """A training is over: what it was left off with is of no more use, unless it waits."""
        self.waiting.pop(id, None)
        if self.courses.pop(id).rung == WHOLE:
            forget_kept(self.study.folder, [self.study.candidate(id).name])

    def _settle(self) -> None:
        """When nothing more can be asked for, what waits at the first rung is pruned."""
        if self.closing:
            self.run.time_is_up("all trials were done")
        if not self.items.exhausted:
            return
        items = self.study.items()
        reasons = {}
        for row in self.study.select("find", "waiting"):
            if reason := why_pruned(items, row):
                reasons[row.id] = reason
        self.study.settle(reasons)
        if not self.closing:
            remove_kept(self.study.folder, [row.name for row in self.study.select("find")])

    def _stop_late(self, pool: Executor) -> None:
        """What is under way and has no more time is to be done again."""
        for id in pool.busy():
            if time.monotonic() <= self.clock.last_moment(self.study.candidate(id)):
                continue
            self.closing = True
            pool.stop(id)
            self.waiting.pop(id, None)
            if id not in self.courses:
                continue
            self.display.ended(self._name(self.study.candidate(id)))
            self.study.put_back(id, self.courses.pop(id).rung == SECOND)


def second_seed(seed: int) -> int:
    """The seed of the last rung: neither the search's own nor one of the finals."""
    return (seed + SECOND_SEED) % 2**63

"""The search: draw, solve, train, prune, time, report.

    draw i --> solve --> [child: check by the interpreter, train, score] --> prune --> done
      a pure function of (seed, i)         several at a time                            |
                                                  table <-- latency, one at a time, afterwards

`search` is the table of contents.  The driver owns the study file and decides; children train
and answer.  A failure of a candidate is a row of the study, never the end of the search.  Ctrl-C
and kill -9 cost at most the trainings that were under way: the same call goes on.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import _core
from .controls import BASELINE, IDENTITY, solve_controls
from .data import Data, load_data
from .errors import CanvasError, NoSolution
from .latency import PAIRS, SAMPLE
from .network import Plan, Recipe, plan_network
from .options import read_options
from .pool import Message, Pool
from .prune import Finished, best_curve, keeps_up, lag, threshold
from .report import Report, kernel_summary, write_report
from .study import Candidate, Study

Say = Callable[[str], None]

DRY = 2000  # draws in a row without a candidate after which the search gives up
SLOWEST = 6  # a training may take this many times what the unchanged network took ...
SHORTEST = 30.0  # ... but at least this many seconds
LATENCY_LIMIT = 300.0
WRAP_UP = 4.0  # seconds kept for the table, or a new child that imports torch
TIMING_SLACK = 5  # finds may well be slower than the unchanged network


def search(
    model: str,
    data: str | Data,
    *,
    budget: str = "macs=0.5x",
    trials: int = 40,
    epochs: int = 6,
    time_limit: float | str | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    say: Say | None = None,
    **others: Any,
) -> Report:
    """Search for kernels that replace the convolutions of `model` under `budget`, and return the
    table.

    `model` is `resnet8`, `resnet18` or `package.module:callable`; `data` is `digits`,
    `digits-scattered` or a `canvas.data.Data` of your own.  `budget` counts the layers replaced
    (`macs=0.5x`).  `time_limit` is in seconds or like "10m" and covers everything.  `out` is the
    folder of the study (default canvas-runs/MODEL-DATA); the same call goes on with what is
    there, `fresh` starts over.  `say` receives one line of progress at a time (default: standard
    error).  `others` are the remaining options of `canvas search --help`, with underscores.

    Raises CanvasError with one sentence on bad input, and KeyboardInterrupt on Ctrl-C after the
    children are gone.
    """
    begin = time.monotonic()
    options = read_options(
        {
            "model": model,
            "data": data.name if isinstance(data, Data) else data,
            "budget": budget,
            "trials": trials,
            "epochs": epochs,
            "time_limit": time_limit,
            "seed": seed,
            **others,
        }
    )
    images = data if isinstance(data, Data) else load_data(options["data"])
    recipe = Recipe(
        options["model"],
        options["width"],
        images.shape,
        images.classes,
        options["policy"],
        options["seed"],
    )
    plan = plan_network(recipe, options["latency_batch"])
    check_question(plan.targets, options)
    folder = Path(out) if out is not None else default_folder(options)
    with Study.open(folder, fresh) as study:
        driver = Driver(study, options, recipe, plan, begin, say or say_to_stderr)
        driver.begin(images)
        workers = options["workers"]
        try:
            with Pool(workers, memory_per_child(workers)) as pool:
                driver.train(pool)
                pool.shrink(1)
                driver.time(pool)
        except KeyboardInterrupt:
            driver.interrupted()
            raise
        return write_report(study, driver.ended)


def say_to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def default_folder(options: dict[str, Any]) -> Path:
    """canvas-runs/MODEL-DATA in the current folder."""
    words = f"{options['model']}-{options['data']}"
    return Path("canvas-runs") / "".join(c if c.isalnum() or c in "-_." else "-" for c in words)


def draw_options(options: dict[str, Any]) -> str:
    """The options of a draw in the core's spelling."""
    words = [f"primitives={options['primitives']}", f"require={options['require']}"]
    if options["groups"] is not None:
        words.append(f"groups={options['groups']}")
    return " ".join(words)


def check_question(targets: str, options: dict[str, Any]) -> None:
    """Let the core judge budget and draw options before anything is trained."""
    try:
        _core.solve(IDENTITY, targets, options["budget"], "exempt=1")
    except NoSolution:
        pass  # the identity may well miss a minimum; the budget itself was understood
    except CanvasError as error:
        raise CanvasError(f"--budget '{options['budget']}' cannot be: {error}") from None
    try:
        _core.draw(targets, options["seed"], 0, draw_options(options))
    except CanvasError as error:
        raise CanvasError(f"no kernel can be '{draw_options(options)}': {error}") from None


class Driver:
    """One run of a search on an open study: the queue, the verdicts, the clock."""

    def __init__(
        self,
        study: Study,
        options: dict[str, Any],
        recipe: Recipe,
        plan: Plan,
        begin: float,
        say: Say,
    ) -> None:
        self.study = study
        self.options = options
        self.recipe = recipe
        self.plan = plan
        self.begun = begin
        self.say = say
        limit = options["time_limit"]
        self.deadline = math.inf if limit is None else begin + limit
        self.queue: list[int] = []  # candidates that a study left over
        self.finds = 0  # candidates that came of draws
        self.ended = ""  # why the search ended before all trials, for the report
        self.waiting: dict[
            int, tuple[int, float]
        ] = {}  # candidate -> (epoch, accuracy) without a verdict

    # ---- before -------------------------------------------------------------------------------

    def begin(self, images: Data) -> None:
        """Record the question, store the images for the children, queue the baseline and the
        controls.
        """
        known = self.study.begin(
            self.options,
            images.description,
            images.checksum,
            len(images.validation[1]),
            self.plan.targets,
        )
        self.data = (self.study.folder / "data.npz").resolve()
        images.save(self.data)
        self.say(f"{self.options['model']} on {images.name}: {images.description}")
        self.say(self.plan.table.rstrip())
        self._add_controls()
        done = self.study.candidates("kind = 'find' AND status NOT IN ('new', 'running')")
        if known:
            trials = f"{len(done)} of {self.options['trials']} trials"
            self.say(f"going on with '{self.study.folder}': {trials} are there")

    def _add_controls(self) -> None:
        """The baseline and each control that is not in the study yet (a kill may have come
        between two).
        """
        there = {candidate.name for candidate in self.study.candidates("kind != 'find'")}
        if BASELINE not in there:
            self.study.add(BASELINE, "baseline")
        for failed in self.study.candidates("kind = 'baseline' AND status = 'failed'"):
            self.study.put_back(failed.id)  # nothing can be compared without it
        for control in solve_controls(self.plan.targets, self.options["budget"]):
            if control.name in there:
                continue
            if control.missing:
                self.study.add_failed(control.name, "control", f"unsolved: {control.missing}")
                self.say(f"control {control.name} is missing: {control.missing}")
                continue
            self.study.add(
                control.name,
                "control",
                _kernel_of(control.pack),
                control.pack,
                _core.hash(control.pack),
                layer_macs(control.pack),
            )

    # ---- training -----------------------------------------------------------------------------

    def train(self, pool: Pool) -> None:
        """Train until the trials are done or the time is up; then nothing is under way."""
        self.queue = [candidate.id for candidate in self.study.candidates("status = 'new'")]
        self.finds = len(self.study.candidates("kind = 'find'"))
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

    def _next(self) -> int | None:
        """The next candidate to train: what was left over first, then new draws."""
        if self.queue:
            return self.queue.pop(0)
        if self.ended or self.finds >= self.options["trials"]:
            return None
        return self._draw()

    def _draw(self) -> int | None:
        """Draw until an index gives a new kernel that fits the budget, and record every index on
        the way.
        """
        counts: dict[str, int] = {}
        first = self.study.next_draw()
        for index in range(first, first + DRY):
            outcome, reason = self._try(index)
            if outcome == "trial":
                self.finds += 1
                return self.study.candidates("name = ?", str(index))[0].id
            self.study.record_draw(index, outcome, reason)
            counts[outcome] = counts.get(outcome, 0) + 1
            if time.monotonic() > self._last_moment():
                return None
        seen = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        self.ended = f"{DRY} draws in a row gave no new kernel within the budget ({seen})"
        return None

    def _try(self, index: int) -> tuple[str, str]:
        """Draw and solve one index; a new kernel becomes a candidate."""
        targets = self.plan.targets
        drawn = _core.draw(targets, self.options["seed"], index, draw_options(self.options))
        if drawn is None:
            return "skipped", ""
        kernel, groups = drawn
        hash = _core.hash(kernel)
        twin = self.study.named_by_hash(hash)
        if twin is not None:
            return "duplicate", f"the same kernel as {twin}"
        try:
            pack = _core.solve(kernel, targets, self.options["budget"], f"G={groups}")
        except NoSolution as error:
            return "unsolved", str(error)
        self.study.add(str(index), "find", kernel, pack, hash, layer_macs(pack))
        return "trial", ""

    def _start(self, pool: Pool, id: int) -> None:
        candidate = self.study.candidate(id)
        self.study.started(id)
        pool.start(
            id,
            {
                "kind": "accuracy",
                "recipe": self.recipe.to_json(),
                "pack": candidate.pack or None,
                "check": candidate.kind != "baseline",
                "data": str(self.data),
                "epochs": self.options["epochs"],
                "batch_size": self.options["batch_size"],
                "path": sys.path,
            },
            self._train_limit(),
        )

    def _train_limit(self) -> float:
        """Seconds that a training may take."""
        if self.options["train_limit"] is not None:
            return float(self.options["train_limit"])
        seconds = self._baseline_seconds()
        return 24 * 3600.0 if seconds is None else max(SHORTEST, SLOWEST * seconds)

    def _baseline_seconds(self) -> float | None:
        baseline = self.study.candidates("kind = 'baseline' AND status = 'done'")
        return baseline[0].seconds if baseline else None

    def _hear(self, pool: Pool, id: int, message: Message) -> None:
        """One message of a child about candidate `id`; what is pruned has nothing more to say."""
        if self.study.candidate(id).status != "running":
            return
        try:
            self._obey(pool, id, message)
        except CanvasError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            pool.stop(id)
            self._finish(id, "failed", f"error: the child sent a message that cannot be ({error})")

    def _obey(self, pool: Pool, id: int, message: Message) -> None:
        event = message["event"]
        if event == "built":
            self.study.built(id, int(message["macs"]), int(message["params"]))
        elif event == "epoch":
            number, accuracy = int(message["number"]), float(message["accuracy"])
            if not 0 <= accuracy <= 1 or number != len(self.study.curve(id)):
                raise ValueError(f"epoch {number}, accuracy {accuracy}")
            self.study.epoch(
                id, number, accuracy, float(message["loss"]), float(message["seconds"])
            )
            self.waiting[id] = (number, accuracy)
        elif event == "done":
            if len(self.study.curve(id)) != self.options["epochs"]:
                raise ValueError("done before the last epoch")
            self._finish(id, "done")
        elif event == "failed":
            reason = f"{message['kind']}: {message['reason']}"
            self._finish(id, "failed", reason, str(message.get("log", "")))
        else:
            raise ValueError(f"event {event}")

    def _judge(self, pool: Pool) -> None:
        """Give every training that waits its verdict, unless a candidate that counts for it is
        not settled yet.
        """
        for id, (epoch, accuracy) in sorted(self.waiting.items()):
            candidate = self.study.candidate(id)
            if (
                candidate.kind == "find"
                and epoch >= self.options["grace"]
                and not self._settled_before(candidate)
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

    def _settled_before(self, candidate: Candidate) -> bool:
        assert candidate.number is not None
        last = candidate.number - lag(self.options["workers"])
        return not self.study.candidates("number <= ? AND status IN ('new', 'running')", last)

    def _best_curve(self, candidate: Candidate) -> Any:
        assert candidate.number is not None and candidate.macs is not None
        finished = [
            Finished(other.number or 0, other.macs or 0, self.study.curve(other.id))
            for other in self.study.candidates("kind = 'find' AND status = 'done'")
        ]
        return best_curve(
            self.options["prune"],
            candidate.number,
            candidate.macs,
            finished,
            lag(self.options["workers"]),
        )

    def _finish(self, id: int, status: str, reason: str = "", log: str = "") -> None:
        self.waiting.pop(id, None)
        self.study.finished(id, status, reason, log)
        candidate = self.study.candidate(id)
        self.say(self._line(candidate))
        if candidate.kind == "baseline" and status == "failed":
            raise CanvasError(f"the unchanged network cannot be trained: {reason}")

    def _line(self, candidate: Candidate) -> str:
        """One line of progress: index, primitives, MACs, accuracy, status, time."""
        ratio = "" if candidate.macs is None else f"{candidate.macs / self.plan.macs:5.2f}x MACs"
        accuracy = (
            "" if candidate.val_accuracy is None else f"{100 * candidate.val_accuracy:5.1f} %"
        )
        seconds = "" if candidate.seconds is None else f"{candidate.seconds:.0f} s"
        elapsed = time.monotonic() - self.begun
        status = candidate.status + (f" ({candidate.reason})" if candidate.reason else "")
        return (
            f"[{elapsed:4.0f} s] {candidate.name:<19} {ratio:>11} {accuracy:>8} {seconds:>6}  "
            f"{status}  {kernel_summary(candidate)}"
        )

    # ---- the clock ----------------------------------------------------------------------------

    def _last_moment(self) -> float:
        """When training must have ended so that latency and table are ready in time."""
        rows = len(self.study.candidates("status IN ('done', 'running') AND latency_ms IS NULL"))
        one = TIMING_SLACK * PAIRS * max(SAMPLE, self.plan.seconds)
        return self.deadline - WRAP_UP - one * (rows + 1)

    def _time_to_start(self) -> bool:
        """Whether a new training could end in time; the first one always gets its chance."""
        if self.deadline == math.inf:
            return True
        seconds = self._baseline_seconds() or 0.0
        if time.monotonic() + seconds < self._last_moment():
            return True
        self._time_is_up()
        return False

    def _stop_all(self, pool: Pool) -> None:
        """The time is up: what is under way is new again."""
        for id in pool.busy():
            pool.stop(id)
            self.waiting.pop(id, None)
            if self.study.candidate(id).status == "running":
                self.study.put_back(id)
        self._time_is_up()

    def _time_is_up(self) -> None:
        if not self.ended:
            self.ended = (
                "the time limit came before all trials were done; the same command goes on"
            )

    def interrupted(self) -> None:
        """After Ctrl-C: children are gone by now; say what is kept and how to go on."""
        for candidate in self.study.candidates("status = 'running'"):
            self.study.put_back(candidate.id)
        done = len(self.study.candidates("kind = 'find' AND status NOT IN ('new', 'running')"))
        trials = f"{done} of {self.options['trials']} trials"
        self.say(f"stopped: {trials} are kept in '{self.study.folder}', the same command goes on")

    # ---- latency ------------------------------------------------------------------------------

    def time(self, pool: Pool) -> None:
        """Time what is finished and has no latency; the pool has one child and nothing trains.

        Baseline and controls come first, then the finds by falling accuracy.
        """
        rows = self.study.candidates("status = 'done' AND latency_ms IS NULL")
        rows.sort(key=lambda row: (row.kind == "find", -(row.val_accuracy or 0)))
        if rows:
            self.say(f"timing {len(rows)} networks, one at a time")
        for row in rows:
            if row.kind == "find" and time.monotonic() > self.deadline - 1:
                self.ended = (
                    "the time limit came before all finds were timed; the same command goes on"
                )
                break
            self._time(pool, row)

    def _time(self, pool: Pool, candidate: Candidate) -> None:
        pool.start(
            candidate.id,
            {
                "kind": "latency",
                "recipe": self.recipe.to_json(),
                "pack": candidate.pack or None,
                "batch": self.options["latency_batch"],
                "path": sys.path,
            },
            LATENCY_LIMIT,
        )
        while pool.busy():
            for id, message in pool.wait(1.0):
                if message["event"] == "done":
                    self.study.latency(id, message["ms"], message["spread_ms"], message["speedup"])
                else:
                    reason = f"{message['kind']}: {message['reason']}"
                    self.study.latency_failed(id, reason)
                    self.say(f"{candidate.name} could not be timed: {reason}")


def layer_macs(pack: str) -> int:
    """MACs of the layers replaced: what the budget counts."""
    return int(json.loads(_core.cost(pack))["macs"])


def _kernel_of(pack: str) -> str:
    """The kernel text of a pack: all lines but the bindings."""
    return "".join(line for line in pack.splitlines(keepends=True) if not line.startswith("bind "))


def memory_per_child(workers: int) -> int:
    """Bytes of data that one child may take: its share of four fifths of the machine, at least 2
    GiB.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2 << 30, total * 4 // 5 // workers)

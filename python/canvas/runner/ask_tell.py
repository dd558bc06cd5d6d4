"""Ask and tell: a search whose networks are trained and scored by whoever asks for them.

    study = canvas.create_study(model, example_input, budget="macs=0.5x")
    while (network := study.ask()) is not None:
        study.tell(network, score(network))
    print(study.report())

The unchanged network and the controls come first, then finds.  What is asked next is a pure
function of what was told, in the order asked: the same scores give the same networks, also after a
kill, where the same call goes on with the folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn

from ..arguments import FUNCTION, PATH, SWITCH, TEXT, WHOLE, checked, shown
from ..errors import CanvasError
from ..imports import stored_name
from ..layer_choice import LayerChoice
from ..metric import Metric
from ..nn.network import Recipe, build_network, cost_on, form_of, plan_network
from ..options import read_options
from ..reporting.progress import Display, Say, say_to_stderr
from ..reporting.report import Report, write_report
from ..study import WHOLE as LAST_RUNG
from ..study import Candidate, Study, writing
from ..study.learn import kernels_of
from ..tasks.evaluate import as_number
from ..tasks.task import Task
from ..workers.in_process import InProcess
from .driver import check_question, study_folder
from .next_item import NextItem, check_sampler
from .search_run import Run
from .subject import Subject, example_of
from .timing import time_networks
from .trials import add_controls

DIRECTIONS = ("maximize", "minimize")
FIXED = {  # what a search by ask and tell does not do by itself
    "epochs": 1, "prune": "none", "pretests": "no", "finalists": 0, "compile": "no", "workers": 1,
}  # fmt: skip


@checked(
    direction=TEXT,
    unit=TEXT,
    metric=TEXT,
    trials=WHOLE,
    seed=WHOLE,
    out=PATH,
    fresh=SWITCH,
    say=FUNCTION,
)
def create_study(
    model: str | nn.Module | Callable[..., nn.Module],
    example_input: Any,
    *,
    budget: str = "macs=0.5x",
    trials: int = 40,
    direction: str = "maximize",
    unit: str = "",
    metric: str = "score",
    seed: int = 1,
    out: str | os.PathLike[str] = "canvas-runs/asked",
    fresh: bool = False,
    say: Say | None = None,
    **others: Any,
) -> AskedStudy:
    """Begin a search whose networks you train and score yourself, or go on with the one in `out`.

    `model`: as in canvas.search; a module is copied with its weights.  `example_input`: what the
    network takes: a tensor [N, C, H, W], a tuple of tensors or a dict of named ones.  `budget`,
    `trials`, `seed`: as in canvas.search.
    `direction`: "maximize" or "minimize" the score, whose name in tables is `metric`; its `unit`
    is "points" for shares from 0 to 1.  `say` receives a line at a time (default: standard error).
    `others`: remaining options of `canvas search`, such as strategy="random".

    Raises CanvasError with one message on bad input, or where `out` holds another study.
    """
    if direction not in DIRECTIONS:
        raise CanvasError(f"direction is {' or '.join(DIRECTIONS)}, not '{direction}'")
    if fixed := sorted(FIXED.keys() & others.keys()):
        raise CanvasError(f"a study that you ask has no {fixed[0]}: leave it out")
    task = Task(None, None, None, direction == "maximize", unit, "asked", metric_name=metric)
    subject = Subject.of(model, None, task, {})
    given_inputs = example_of(example_input)
    given = {
        "model": stored_name(subject.model),
        "data": "asked",
        "task": "asked",
        "budget": budget,
    }
    others["learn"] = kernels_of(others.get("learn"))
    options = read_options({**others, **FIXED, **given, "trials": trials, "seed": seed})
    shape, form = form_of(given_inputs)
    recipe = Recipe(
        subject.model, options["width"], shape, 0, str(LayerChoice.of(options)), seed, form
    )
    plan = plan_network(recipe, options["latency_batch"])
    check_question(plan.targets, options)
    folder = study_folder(out, None, options)
    with ExitStack() as stack:
        with writing(folder):
            study = stack.enter_context(Study.open(folder, fresh))
            known = study.begin(
                options, "scores that were told", "", (0, 0), plan.targets, (), plan.record,
                {"name": task.name, "metric": task.judged_by.to_json()},
            )  # fmt: skip
        display = Display(say or say_to_stderr)
        run = Run(study, options, recipe, plan, time.monotonic(), display)
        check_sampler(run)
        add_controls(run)
        display.line(plan.table.rstrip())
        if known:
            display.line(f"going on with '{folder}'")
        stack.pop_all()
    return AskedStudy(run)


class AskedStudy:
    """A search by ask and tell; a context that closes its study.

    One process may have it open at a time.  What was asked and not told when it is closed is asked
    again.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._study = run.study
        self._items = NextItem(run)
        self._asked: dict[int, tuple[nn.Module, float]] = {}  # by candidate, with when
        self._closed = False

    @property
    def folder(self) -> Path:
        return self._study.folder

    @property
    def metric(self) -> Metric:
        """What the scores are."""
        return self._study.metric

    def __enter__(self) -> AskedStudy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def ask(self) -> nn.Module | None:
        """The next network, in training mode with weights of the study's seed; None when all
        trials have their scores.

        Raises CanvasError where the next network depends on scores that were not told yet.
        """
        self._check_open()
        row = self._next()
        if row is None:
            return None
        network = build_network(self._run.recipe, row.pack or None).train()
        macs, params = cost_on(network, self._run.recipe.example())
        self._study.started(row.id)
        self._study.built(row.id, macs, params, "contiguous")
        self._asked[row.id] = network, time.monotonic()
        return network

    def _next(self) -> Candidate | None:
        left = [row for row in self._study.select(status="new") if row.id not in self._asked]
        if left:
            return left[0]
        if not self._asked_finds_only():
            self._wait_for(self._asked)
        id = self._items.next(True, lambda: False)
        if id is not None:
            return self._study.candidate(id)
        if self._asked:
            self._wait_for(self._asked)
        return None

    def _asked_finds_only(self) -> bool:
        """Whether the unchanged network and the controls have scores: finds may depend on them."""
        under_way = self._study.select(status=("new", "running"))
        return all(row.kind == "find" for row in under_way)

    def _wait_for(self, asked: Any) -> None:
        names = ", ".join(self._study.candidate(id).name for id in asked)
        raise CanvasError(
            f"what comes next depends on scores that are not there: tell those of {names} first"
        )

    def name(self, network: nn.Module) -> str:
        """What the table calls a network that was asked."""
        return self._study.candidate(self._id(network)).name

    def tell(self, network: nn.Module, score: float | None, *, failed: str = "") -> None:
        """The score of a network that was asked, or, with None, why it has none.

        Raises CanvasError for a network that was not asked or was told, and a score that is no
        finite number, or, with the unit points, outside 0..1.
        """
        id = self._id(network)
        if score is None:
            reason = failed or "no score"
            if not isinstance(reason, str):
                raise CanvasError(f"failed is a text, not {shown(failed)}")
            self._study.finished(id, "failed", f"error: {reason}")
        else:
            value = self._value(score)
            seconds = time.monotonic() - self._asked[id][1]
            self._study.epoch(id, 0, value, 0.0, seconds)
            self._study.reached(id, LAST_RUNG, 1, self._run.options["seed"], "done")
        del self._asked[id]
        self._run.report_end(self._study.candidate(id))

    def _id(self, network: nn.Module) -> int:
        self._check_open()
        for id, (known, _) in self._asked.items():
            if known is network:
                return id
        raise CanvasError(
            f"{type(network).__name__} is no network of this study that waits for its score: tell "
            "the very object that ask returned, once"
        )

    def _value(self, score: Any) -> float:
        try:
            value = as_number(score)
        except (TypeError, ValueError, OverflowError, RuntimeError):
            raise CanvasError(f"a score is a number, not {shown(score)}") from None
        if not self.metric.can_be(value):
            wanted = "a share from 0 to 1" if self.metric.is_share else "a finite number"
            raise CanvasError(f"a score is {wanted}, not {value:g}")
        return value

    def report(self, timed: bool = True) -> Report:
        """The table and the conclusion of what was told so far, also written to the folder; first
        all networks are timed, unless not `timed`.
        """
        self._check_open()
        threads = torch.get_num_threads()
        try:
            if timed and self._study.select("baseline", "done"):
                with InProcess() as executor:
                    time_networks(self._run, executor)
        finally:
            torch.set_num_threads(threads)
        with writing(self.folder):
            self._study.session_ended(time.monotonic() - self._run.begun)
            return write_report(self._study, self._run.ended)

    def close(self) -> None:
        """Close the study; what was asked and not told is asked again."""
        if not self._closed:
            self._closed = True
            self._asked.clear()
            self._study.recover()
            self._study.close()

    def _check_open(self) -> None:
        if self._closed:
            raise CanvasError("the study is closed: create_study goes on with it")

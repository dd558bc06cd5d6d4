"""Make a trained network faster: `canvas.fit`.

    teacher --> what its layers see --> screening --> table --> choice --> tuning --> finals
                (layer_data)            (screen)   (item_table) (candidates)     (fit_run)

The method is that of LANA (Molchanov et al., ECCV 2022) and Puzzle (Bercovich et al., ICML 2025),
with drawn kernels in the menu: operators are fitted to single layers, scored by the divergence of
the network with one of them, chosen per layer by an integer program, and tuned together by
distillation.  Every mix stands beside the best one of known operators alone.
"""

from __future__ import annotations

import math
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import _core
from ..arguments import FUNCTION, PATH, SWITCH, TEXT, WHOLE, checked, shown
from ..data import Data, NamedSource, Streamed, as_data, keep_beside, stored, streamed
from ..devices import text_of
from ..errors import CanvasError
from ..fit_options import draws_of, read_fit_options
from ..layer_choice import LayerChoice
from ..nn.behaviour import record, record_answers
from ..nn.convert import copied
from ..nn.layer_target import targets_text
from ..nn.load_model import check_model
from ..nn.pack import KernelPack
from ..options import LOCAL
from ..reporting.callbacks import CALLBACKS, Callbacks
from ..reporting.displays import make_display
from ..reporting.epoch_log import open_log
from ..reporting.progress import Display
from ..reporting.report import Report, write_report
from ..stored_options import COMMAND, FIT
from ..study import Candidate as Network
from ..study import Study, writing
from ..study.learn import Learn, kernels_of
from ..tasks import Task, load_task
from ..tasks.check_task import check_task, some_inputs
from ..tasks.classification import CLASSIFICATION, UNLABELLED
from ..tasks.evaluate import NotFinite, evaluate, failing_as
from .candidates import CONTROLS, MIX, SINGLE
from .fit_jobs import IMAGES, VALIDATION
from .fit_run import TEACHER, TUNED, TUNED_TEACHER, Elsewhere, FitRun, Plan, the_device
from .teacher import Teacher

__all__ = ["CONTROLS", "MIX", "SINGLE", "TEACHER", "TUNED_TEACHER", "Candidate", "Fit", "fit"]

ANSWERS = 2  # examples whose outputs a study keeps, to know the network again
CHANCE = 2.0  # a teacher has at least so many times the accuracy of guessing


@dataclass(frozen=True)
class Candidate:
    """A network of the result.

    `kind`: teacher, "teacher, tuned", mix, controls or single; `name`: its row in the table;
    `choice`: what each layer has; `macs`, `params`: of the whole network for one example;
    `divergence`, `tuned_divergence`: from the teacher before and after tuning, in nats for a
    classification; `validation`: accuracy, 0..1; `tests`:
    accuracies on the test split, one per seed of the finals, that of `network` first; `hits`:
    which test images each is right on, bool [seeds, images]; `speedup`, `speedup_spread`: of the
    native code over that of the teacher, None if not timed.  What is called accuracy here is the
    metric of the task where that is another; `hits` are None then, and `validation` is NaN for a
    task without metric.
    """

    kind: str
    name: str
    budget: str
    pack: KernelPack | None = field(repr=False)
    choice: Mapping[str, str] = field(repr=False)
    network: nn.Module = field(repr=False)
    macs: int
    params: int
    divergence: float
    validation: float
    epochs: int = 0
    tests: tuple[float, ...] = ()
    hits: Tensor | None = field(default=None, repr=False)
    speedup: float | None = None
    speedup_spread: float | None = None
    tuned_divergence: float = 0.0
    merit: float = 0.0  # larger for what validation puts first

    @property
    def test(self) -> float | None:
        """Accuracy on the test split, 0..1, the mean over the seeds; None without finals."""
        return sum(self.tests) / len(self.tests) if self.tests else None


@dataclass(frozen=True)
class Fit:
    """What a fit found: the teacher first, then the networks of each budget; `report` has the
    table and the conclusion, which str() gives.
    """

    candidates: tuple[Candidate, ...]
    report: Report = field(repr=False)

    @property
    def teacher(self) -> Candidate:
        return self.candidates[0]

    def best(self, budget: str | None = None) -> Candidate:
        """The candidate of a budget (None: the first one) that validation puts first.

        Raises CanvasError for a budget that the fit did not have, or none of whose networks was
        tuned.
        """
        known = list(dict.fromkeys(c.budget for c in self.candidates if c.budget))
        if budget is None and not known:
            raise CanvasError("no network was tuned: give the fit more time")
        wanted = known[0] if budget is None else budget
        own = [c for c in self.candidates if c.budget == wanted]
        if not own:
            raise CanvasError(f"the fit had no budget '{wanted}', but: {', '.join(known)}")
        return max(own, key=lambda c: (c.epochs, c.merit, -c.divergence))

    def __str__(self) -> str:
        return str(self.report)


@checked(
    policy=TEXT,
    linear=TEXT,
    depthwise=TEXT,
    unequal=TEXT,
    say=FUNCTION,
    draws=WHOLE,
    space=TEXT,
    distribution=TEXT,
    epochs=WHOLE,
    longer=WHOLE,
    final_seeds=WHOLE,
    seed=WHOLE,
    memory=WHOLE,
    latency=TEXT,
    device=TEXT,
    amp=TEXT,
    pick=TEXT,
    out=PATH,
    fresh=SWITCH,
    progress=TEXT,
    callbacks=CALLBACKS,
    log_dir=PATH,
)
def fit(
    network: nn.Module,
    data: Any,
    *,
    task: Task | str = "classification",
    budget: str | Sequence[str] = "latency=0.6x",
    policy: str = "all",
    linear: str = "no",
    depthwise: str = "no",
    unequal: str = "gcd",
    draws: int = 200,
    space: str = "paper",
    distribution: str = "rules",
    learn: Learn | Sequence[Learn] | None = None,
    epochs: int = 2,
    longer: int = 6,
    final_seeds: int = 3,
    time_limit: float | str | None = None,
    seed: int = 1,
    memory: int = 1 << 30,
    latency: str = "native",
    workers: int | None = None,
    device: str = "cpu",
    amp: str = "no",
    pick: str | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    say: Callable[[str], None] | None = None,
    progress: str = "lines",
    callbacks: Sequence[Any] = (),
    log_dir: str | os.PathLike[str] | None = None,
) -> Fit:
    """Replace convolutions of a trained network by faster operators, a choice for each layer.

    `network`: trained; it stays as it is.  `data`: for a classification as in canvas.search, or
    canvas.stream(...); for other tasks (train, validation, test), each a torch Dataset, a
    DataLoader or an iterable that gives its batches anew, or a Dataset from which the others are
    cut.  `task`: a canvas.Task, or "classification", "segmentation", "regression", "multi-label"
    or "unlabelled".
    `budget`: one or several of "latency=0.6x" (a share of the whole network's native time),
    "macs=0.3x" and "params=0.5x" (a share of the layers replaced); each gets candidates of its
    own.  `policy`, `linear`, `depthwise` ("yes", "no"), `unequal`: which layers, as
    in canvas.convert.  `draws`: kernels that are screened;
    0 takes known operators alone.  `space`: their primitives, "paper", "published" or "wide";
    `distribution`: how often, "rules", "learned" or "paper", as `draws` of canvas.sample; `learn`:
    what "learned" learns from beside known kernels, such as the folder of a study.
    `epochs`: passes of distillation for every candidate; `longer`:
    for the best of each kind, which are made from `final_seeds` seeds and scored on test images.
    `time_limit`: seconds, or a text such as "10m", of which screening and table get 45 %.
    `memory`: bytes for recorded layers.  `latency`: "none" times no network, which a budget of
    latency needs.  `workers`: processes that fit and train.  `device` ("auto", "cpu", "cuda",
    "cuda:0") and `amp` ("no", "bf16", "fp16"): where and in what precision the chosen networks are
    tuned; `network` itself is on the CPU.  `pick`: the rule for the picked row, such as "fastest
    within 1.0".  `out`: the folder of the study, in
    which the same call goes on (default: none is kept); `fresh` starts over.  `say` receives a
    line of progress at a time (default: standard error); `progress` is "lines", "off" or "live".
    `callbacks` are as in canvas.search, except that study.stop() ends no fit; `log_dir` is a
    folder for CSV and TensorBoard events (docs/logging.md).

    The result is a function of its arguments on one machine, but for a time limit and budgets of
    latency.  Raises CanvasError for bad input, such as a teacher that is hardly better than
    guessing, and NoSolution if no choice is within a budget.
    """
    begun = time.monotonic()
    if not isinstance(network, nn.Module):
        raise CanvasError(f"canvas.fit takes a trained torch.nn.Module, not {shown(network)}")
    chosen = load_task(task)
    source = source_of(data, chosen)
    given = {
        "model": type(network).__name__,
        "data": source.name,
        "task": chosen.name,
        "budget": [] if budget is None else budget,
        "policy": policy,
        "linear": linear,
        "depthwise": depthwise,
        "unequal": unequal,
        "draws": draws,
        "space": space,
        "distribution": distribution,
        "learn": kernels_of(learn),
        "epochs": epochs,
        "longer": longer,
        "final_seeds": final_seeds,
        "time_limit": time_limit,
        "seed": seed,
        "memory": memory,
        "latency": latency,
        "workers": workers,
        "device": device,
        "amp": amp,
        "pick": pick,
    }
    options = read_fit_options(given)
    display = make_display(
        progress, say, f"{options['model']} on {source.name}", options["time_limit"], begun
    )
    with open_log(log_dir, fresh) as log, study_of(out, fresh) as study:
        followers = Callbacks(callbacks, log)
        followers.claim(study)
        return fit_into(study, network, source, chosen, options, display, begun, followers)


def source_of(data: Any, task: Task, name: str = "own") -> NamedSource:
    """The data of a fit: of a classification in memory, of other tasks as their loaders give
    them, and by name as they are.  Raises CanvasError with one message.
    """
    if isinstance(data, Streamed):
        return data
    if isinstance(data, (str, Data)) or task is CLASSIFICATION:
        return as_data(data)
    return streamed(data, name, tested=task.metric is not None)


@contextmanager
def study_of(out: str | os.PathLike[str] | None, fresh: bool) -> Iterator[Study]:
    """The study in a folder, or one that goes with the block."""
    with tempfile.TemporaryDirectory(prefix="canvas-fit-") as temporary:
        folder = Path(temporary if out is None else out)
        with writing(folder):
            study = Study.open(folder, fresh)
        with study:
            yield study


def fit_into(
    study: Study,
    network: nn.Module,
    source: NamedSource,
    task: Task,
    options: dict[str, Any],
    display: Display,
    begun: float,
    callbacks: Callbacks,
    elsewhere: Elsewhere | None = None,
) -> Fit:
    """All stages on an open study; Ctrl-C leaves it ready to go on.  `elsewhere` as in
    FitRun.run.
    """
    the_device(options)
    check_teacher(network, source, task, options["model"])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that one process gives what another one gives
    try:
        memory = int(options["memory"])
        train = some_inputs(source, task, "train", IMAGES, memory)
        validation = some_inputs(source, task, "validation", VALIDATION, memory)
        teacher = Teacher(network, str(LayerChoice.of(options)), train, validation, task)
        check_draws(options, teacher)
        run = FitRun(study, options, teacher, source, display, begun, callbacks)
        with writing(study.folder):
            begin(run)
            run.run(elsewhere)
            if why := callbacks.summary(study):
                display.line(why)
            study.session_ended(time.monotonic() - begun)
            display.close()
            report = write_report(study, run.ended)
        return Fit(candidates_of(run), report)
    except KeyboardInterrupt:
        study.recover()
        display.farewell(
            f"stopped: what is done is kept in '{study.folder}', the same command continues"
        )
        raise
    except sqlite3.Error as error:
        raise CanvasError(f"the study in '{study.folder}' cannot be written: {error}") from error
    finally:
        display.close()
        torch.set_num_threads(threads)


def check_draws(options: Mapping[str, Any], teacher: Teacher) -> None:
    """Raises CanvasError where no kernel can be drawn as the options say."""
    if not options["draws"] or not teacher.targets:
        return
    try:
        _core.draw(targets_text(teacher.targets), options["seed"], 0, draws_of(options))
    except CanvasError as error:
        words = draws_of(options).partition("\n")[0]
        raise CanvasError(f"no kernel can be '{words}': {error}") from None


def begin(run: FitRun) -> None:
    """Record the question, or see that it is the one recorded."""
    source, teacher, task = run.source, run.teacher, run.task
    what = source.description
    if getattr(source, "synthetic", False) and not what.startswith("synthetic"):
        what = f"synthetic images: {what}"
    name = run.options["model"]
    device = text_of([run.device]) if run.options["executor"] == LOCAL else run.options["device"]
    known = run.study.begin(
        {COMMAND: FIT, **run.options, "device": device},
        what,
        source.checksum,
        (source.count("validation"), source.count("test")),
        targets_text(teacher.targets),
        getattr(source, "test_groups", ()),
        record(lambda: copied(teacher.network), name, source.shape, source.classes)
        if isinstance(source, Data) and task is CLASSIFICATION
        else record_answers(teacher.network, teacher.validation[:ANSWERS], name),
        None if task is CLASSIFICATION else {
            "name": task.name, "metric": task.judged_by.to_json(),
        },
    )  # fmt: skip
    if isinstance(source, Data):
        keep_beside(source, run.study.folder / stored.FOLDER)
    run.callbacks.claim(run.study)
    for note in run.callbacks.notes(bool(known)):
        run.display.line(note)
    run.display.judged_by(task.judged_by)
    if task.metric is None:
        run.display.line(
            f"task '{task.name}' has no metric: networks are compared by their divergence from "
            "the teacher, and no accuracy is shown"
        )
    run.display.line(f"{run.options['model']} on {source.name}: {what}")
    run.display.line(teacher.table.rstrip())
    if known:
        run.display.line(f"going on with '{run.study.folder}'")


def check_teacher(network: nn.Module, source: NamedSource, task: Task, name: str) -> None:
    """Raises CanvasError for a network that no operator can be fitted to."""
    for weight_name, weight in network.named_parameters():
        if weight.dtype != torch.float32 or weight.device.type != "cpu":
            raise CanvasError(
                f"'{weight_name}' is {weight.dtype} on {weight.device}: a fit takes float32 on "
                "the CPU, give network.float().cpu()"
            )
    for buffer_name, buffer in network.named_buffers():
        if buffer.device.type != "cpu":
            raise CanvasError(
                f"'{buffer_name}' is on {buffer.device}: a fit takes networks on the CPU, give "
                "network.cpu()"
            )
    classes = 0
    if isinstance(source, Data) and task in (CLASSIFICATION, UNLABELLED):
        classes = source.classes
        check_model(network, name, source.shape, classes)
        if classes < 2:
            raise CanvasError("the data has one class: there is nothing to be right about")
    with failing_as(f"the network on examples of task '{task.name}'"):
        try:
            value = evaluate(task, copied(network), source.scoring("validation"))
        except NotFinite as error:
            raise CanvasError(f"the network cannot be a teacher: {error}") from None
        check_task(copied(network), source, task)
    if not classes or value is None:
        return
    if value < min(CHANCE / classes, (1 + 1 / classes) / 2):
        raise CanvasError(
            f"the network is right on {100 * value:.1f} % of the validation images, hardly "
            f"more than guessing among {classes} classes: load its trained weights first"
        )


def candidates_of(run: FitRun) -> tuple[Candidate, ...]:
    """The networks that were tuned, with their weights."""
    study, finals = run.study, run.study.finals()
    rows = {row.id: row for row in study.candidates()}
    images = run.source.count("test")
    found = []
    for plan in run.plans():
        network = run.trained(plan)
        if network is None:
            continue
        hits = [
            np.unpackbits(np.frombuffer(f.hits, np.uint8), count=images)
            for f in finals.get(plan.id, [])
            if f.hits
        ]
        found.append(_candidate(rows[plan.id], plan, network, study.tuned_epochs(plan.id), hits))
    return tuple(found)


def _candidate(
    row: Network, plan: Plan, network: nn.Module, epochs: int, hits: Sequence[np.ndarray]
) -> Candidate:
    kept = row.budget == ""
    return Candidate(
        {TEACHER: TEACHER, TUNED: TUNED_TEACHER}.get(row.role, row.role),
        row.name,
        row.budget,
        None if kept else KernelPack(row.pack),
        {}
        if kept
        else {layer: "keep" if s is None else s.name for layer, s in plan.layers.items()},
        network,
        row.macs or 0,
        row.params or 0,
        row.divergence or 0.0,
        math.nan if row.val_accuracy is None else row.val_accuracy,
        epochs,
        row.tests,
        torch.from_numpy(np.array(hits, dtype=bool)) if hits else None,
        row.speedup,
        row.speedup_spread,
        row.tuned_divergence or 0.0,
        row.merit,
    )

"""Make a trained network faster: `canvas.fit`.

    teacher --> what its layers see --> screening --> table --> proposals --> tuning --> result
                (layer_data)            (screen)   (item_table) (candidates)  (distillation)

The method is that of LANA (Molchanov et al., ECCV 2022) and Puzzle (Bercovich et al., ICML 2025),
with drawn kernels in the menu: operators are fitted to single layers, scored by the divergence of
the network with one of them, chosen per layer by an integer program, and tuned together by
distillation.  Every mix stands beside the best one of known operators alone.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..arguments import FUNCTION, TEXT, WHOLE, checked, shown
from ..data import Data, as_data
from ..errors import CanvasError
from ..nn.fold import fold
from ..nn.latency import NATIVE, measure
from ..nn.layer_target import screening_layer
from ..nn.load_model import check_model
from ..nn.network import cost
from ..nn.pack import KernelPack
from ..options import read_duration
from ..reporting.progress import say_to_stderr
from ..training.layer_data import MEMORY, LayerData
from ..training.train import NotFinite, Training, hits, score
from .budget import Budget, parse_budget
from .candidates import CONTROLS, MIX, SINGLE, Proposal, propose
from .divergence import distillation
from .item_table import Row, fill, fresh, kept_rows
from .menu import CONTROLS as KNOWN
from .menu import Sized, sizes_of
from .screen import Screened, screen, survivors
from .teacher import Fitted, Teacher

IMAGES = 3000  # recorded at most
VALIDATION = 1024  # images on which divergences are taken, at most
REFIT = 300  # steps of the operators that are tuned
TUNED = {MIX: 2, CONTROLS: 2, SINGLE: 1}  # proposals of each kind that are tuned
SURVIVORS = 40
RATE = 0.05  # peak of the tuning
SHARE, TEMPERATURE = 0.9, 4.0  # of distillation
CHANCE = 2.0  # a teacher has at least so many times the accuracy of guessing
TEACHER, LONGER = "teacher", "teacher, tuned"
LATENCY = ("native", "none")


@dataclass(frozen=True)
class Candidate:
    """A network of the result.

    `kind`: teacher, "teacher, tuned", mix, controls or single; `choice`: what each layer has;
    `macs`, `params`: of the whole network for one image; `divergence`: from the teacher before
    tuning, in nats; `validation`, `test`: accuracy, 0..1; `hits`: which test images are right;
    `speedup`, `speedup_spread`: of the native code over that of the teacher, None if not timed.
    """

    kind: str
    budget: str
    pack: KernelPack | None
    choice: Mapping[str, str]
    network: nn.Module
    macs: int
    params: int
    divergence: float
    validation: float
    epochs: int = 0
    test: float | None = None
    hits: Tensor | None = None
    speedup: float | None = None
    speedup_spread: float | None = None


@dataclass(frozen=True)
class Fit:
    """What a fit found: the teacher first, then the candidates of each budget, the best of each
    kind tuned longest; the table of items and the screened kernels.
    """

    candidates: tuple[Candidate, ...]
    rows: tuple[Row, ...]
    screened: tuple[Screened, ...]

    @property
    def teacher(self) -> Candidate:
        return self.candidates[0]

    def best(self, budget: str | None = None) -> Candidate:
        """The candidate of a budget (None: the first one) with the highest validation accuracy.

        Raises CanvasError for a budget that the fit did not have.
        """
        known = list(dict.fromkeys(c.budget for c in self.candidates if c.budget))
        wanted = known[0] if budget is None else budget
        own = [c for c in self.candidates if c.budget == wanted]
        if not own:
            raise CanvasError(f"the fit had no budget '{wanted}', but: {', '.join(known)}")
        return max(own, key=lambda c: (c.validation, -c.divergence))

    def __str__(self) -> str:
        head = ("network", "budget", "MACs", "speed-up", "KL", "validation", "test")
        lines = [head, *(_line(c, self.teacher) for c in self.candidates)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        cells = [[word.ljust(width) for word, width in zip(line, widths)] for line in lines]
        return "\n".join("  ".join(line).rstrip() for line in cells) + "\n"


def _line(c: Candidate, teacher: Candidate) -> tuple[str, ...]:
    speed = "" if c.speedup is None else f"{c.speedup:.2f} +- {c.speedup_spread:.2f}"
    test = "" if c.test is None else f"{100 * c.test:.1f}"
    return (
        c.kind,
        c.budget,
        f"{c.macs / teacher.macs:.2f}x",
        speed,
        f"{c.divergence:.3f}",
        f"{100 * c.validation:.1f}",
        test,
    )


@checked(
    policy=TEXT,
    say=FUNCTION,
    draws=WHOLE,
    epochs=WHOLE,
    longer=WHOLE,
    seed=WHOLE,
    memory=WHOLE,
    latency=TEXT,
)
def fit(
    network: nn.Module,
    data: Any,
    *,
    budget: str | Sequence[str] = "latency=0.6x",
    policy: str = "all",
    draws: int = 200,
    epochs: int = 2,
    longer: int = 6,
    time_limit: float | str | None = None,
    seed: int = 1,
    memory: int = MEMORY,
    latency: str = "native",
    say: Callable[[str], None] | None = None,
) -> Fit:
    """Replace convolutions of a trained classifier by faster operators, a choice for each layer.

    `network`: trained, for images [N, C, H, W]; it stays as it is.  `data`: as in canvas.search.
    `budget`: one or several of "latency=0.6x" (a share of the whole network's native time),
    "macs=0.3x" and "params=0.5x" (a share of the layers replaced); each gets candidates of its
    own.  `policy`: which convolutions, as in canvas.convert.  `draws`: kernels that are screened;
    0 takes known operators alone.  `epochs`: passes of distillation for every candidate; `longer`:
    for the best of each kind.  `time_limit`: seconds, or a text such as "10m": screening and table
    end so that about half of it is left for the tuning.  `memory`: bytes for recorded layers.
    `latency`: "none" times no network, which a budget of latency needs.
    `say` receives a line of progress at a time (default: standard error).

    The result is a function of its arguments on one machine, but for a time limit and budgets of
    latency.  Raises CanvasError for bad input, such as a teacher that is hardly better than
    guessing, and NoSolution if no choice is within a budget.
    """
    begun = time.monotonic()
    say = say or say_to_stderr
    limit = math.inf if time_limit is None else _seconds(time_limit)
    if not isinstance(network, nn.Module):
        raise CanvasError(f"canvas.fit takes a trained torch.nn.Module, not {shown(network)}")
    budgets = _budgets(budget, latency)
    _check_counts(draws=draws, epochs=epochs, longer=longer, seed=seed, memory=memory)
    images = as_data(data)
    _check_type(network)
    check_model(network, "the network", images.shape, images.classes)
    teacher = Teacher(network, policy, images.train[0], images.validation[0][:VALIDATION])
    first = _teacher(teacher, images)
    say(teacher.table.rstrip())
    say(f"the teacher: {100 * first.validation:.1f} % on validation")
    recorded, count = teacher.layer_data(memory, IMAGES)
    say(f"recorded {len(recorded)} layers on {count} images")
    timed = any("latency" in one.limits for one in budgets)
    run = _Run(teacher, recorded, images, seed, epochs, longer, say)
    screened = _screen(run, draws, begun + 0.2 * limit)
    rows = _table(run, survivors(screened, SURVIVORS), timed, begun + 0.5 * limit)
    seconds = _native_seconds(teacher, images) if timed else math.nan
    found = [first, run.tuned_teacher()]
    for one in budgets:
        limits = one.of_layers(teacher.targets, rows, seconds)
        proposals = propose(rows, limits, drawn=bool(screened))
        found += run.tune_all(proposals, one)
    done = _score_test(found, images)
    if latency == "native":
        done = _time(done, images)
    return Fit(tuple(done), tuple(rows), tuple(screened))


def _check_type(network: nn.Module) -> None:
    for name, weight in network.named_parameters():
        if weight.dtype != torch.float32 or weight.device.type != "cpu":
            raise CanvasError(
                f"'{name}' is {weight.dtype} on {weight.device}: a fit takes float32 on the CPU, "
                "give network.float().cpu()"
            )


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if not 0 <= count < 2**63:
            raise CanvasError(f"{name} is a whole number from 0 to 2^63 - 1, not {count}")


def _seconds(value: float | str) -> float:
    try:
        if not isinstance(value, (int, float, str)):
            raise ValueError("a time such as 90s, 10m or 1.5h")
        return read_duration(value)
    except ValueError as error:
        raise CanvasError(f"time_limit is {error}, not {shown(value)}") from None


def _budgets(budget: str | Sequence[str], latency: str) -> list[Budget]:
    texts = [budget] if isinstance(budget, str) else budget
    if not isinstance(texts, (list, tuple)) or not texts:
        raise CanvasError(
            f"budget is a text such as latency=0.6x, or a list of them, not {shown(budget)}"
        )
    budgets = [parse_budget(text) for text in texts]
    if len({one.text for one in budgets}) < len(budgets):
        raise CanvasError(f"a budget stands twice in {shown(budget)}")
    known = latency in LATENCY
    if not known or (latency == "none" and any("latency" in one.limits for one in budgets)):
        raise CanvasError(
            f"latency is {' or '.join(LATENCY)}, and not none with a budget of latency; it is "
            f"{shown(latency)}"
        )
    return budgets


def _teacher(teacher: Teacher, images: Data) -> Candidate:
    if images.classes < 2:
        raise CanvasError("the data has one class: there is nothing to be right about")
    try:
        accuracy = score(teacher.network, images.validation)
    except NotFinite as error:
        raise CanvasError(f"the network cannot be a teacher: {error}") from None
    if accuracy < min(CHANCE / images.classes, (1 + 1 / images.classes) / 2):
        raise CanvasError(
            f"the network is right on {100 * accuracy:.1f} % of the validation images, hardly "
            f"more than guessing among {images.classes} classes: load its trained weights first"
        )
    macs, params = cost(teacher.network, images.shape)
    return Candidate(TEACHER, "", None, {}, teacher.network, macs, params, 0.0, accuracy)


def _screen(run: _Run, draws: int, until: float) -> list[Screened]:
    if not draws:
        return []
    layer = screening_layer(run.teacher.targets)
    run.say(f"screening {draws} kernels at '{layer.name}'")
    data = run.recorded[layer.name]
    return screen(run.teacher.targets, data, run.seed, draws, until, run.say)


def _table(run: _Run, drawn: Sequence[Any], timed: bool, until: float) -> list[Row]:
    targets = run.teacher.targets
    menu: list[Sized] = []
    for operator in (*KNOWN, *drawn):  # known ones first: no time limit leaves them out alone
        for target in targets:
            menu += sizes_of(operator, target)
    run.say(f"fitting {len(menu)} items: {len(KNOWN)} known operators, {len(drawn)} drawn")
    rows = fill(run.teacher, run.recorded, menu, run.seed, timed, run.say, until)
    return [*kept_rows(run.teacher, timed), *rows]


@dataclass(frozen=True)
class _Run:
    """What all stages need."""

    teacher: Teacher
    recorded: Mapping[str, LayerData]
    images: Data
    seed: int
    epochs: int
    longer: int
    say: Callable[[str], None]
    refits: dict[tuple[str, str, int], Fitted] = field(default_factory=dict)

    def tune_all(self, proposals: Sequence[Proposal], budget: Budget) -> list[Candidate]:
        """Assemble all, refit and tune the nearest to the teacher of each kind, and the best of
        those by validation for longer.
        """
        ranked = sorted(
            (
                (self.teacher.divergence(self._assemble(p, None)), i)
                for i, p in enumerate(proposals)
            )
        )
        found: list[Candidate] = []
        for kind, most in TUNED.items():
            own = [i for _, i in ranked if proposals[i].kind == kind][:most]
            tuned = [self._candidate(proposals[i], budget) for i in own]
            if tuned:
                best = max(range(len(tuned)), key=lambda i: (tuned[i].validation, -i))
                tuned[best] = self._candidate(proposals[own[best]], budget, self.longer)
            found += tuned
        return found

    def _assemble(self, proposal: Proposal, steps: int | None) -> nn.Module:
        """The network of a proposal; with `steps`, its operators are fitted anew for so many."""
        chosen: dict[str, Fitted] = {}
        for row in proposal.rows:
            if row.sized is not None and row.fitted is not None:
                chosen[row.layer] = row.fitted if steps is None else self._refitted(row, steps)
        return self.teacher.assemble(chosen)

    def _refitted(self, row: Row, steps: int) -> Fitted:
        """The row's operator after more steps; several proposals share it."""
        key = (row.layer, row.name, steps)
        if key not in self.refits:
            self.refits[key] = fresh(row, self.recorded[row.layer], steps, self.seed)
        return self.refits[key]

    def _candidate(self, proposal: Proposal, budget: Budget, epochs: int = 0) -> Candidate:
        epochs = epochs or self.epochs
        network = self._assemble(proposal, REFIT)
        divergence = self.teacher.divergence(network)
        accuracy = self.tune(network, epochs)
        self.say(
            f"{proposal.kind} at {budget.text}: KL {divergence:.3f}, after {epochs} epochs "
            f"{100 * accuracy:.1f} % on validation"
        )
        macs, params = cost(network, self.images.shape)
        pack = proposal.pack(self.teacher.targets)
        return Candidate(
            proposal.kind, budget.text, pack, proposal.names, network, macs, params, divergence,
            accuracy, epochs,
        )  # fmt: skip

    def tuned_teacher(self) -> Candidate:
        """The teacher, trained on for as long as the best candidates: the other yardstick."""
        network = copy.deepcopy(self.teacher.network)
        accuracy = self.tune(network, self.longer)
        macs, params = cost(network, self.images.shape)
        divergence = self.teacher.divergence(network)
        return Candidate(
            LONGER, "", None, {}, network, macs, params, divergence, accuracy, self.longer
        )

    def tune(self, network: nn.Module, epochs: int) -> float:
        """Distillation from the teacher; returns validation accuracy, 0 where it diverged."""
        if not epochs:
            return score(network, self.images.validation)
        objective = partial(_distill, self.teacher.network.eval())
        training = Training(
            network, self.images, epochs, self.seed, peak_rate=RATE, objective=objective
        )
        try:
            for epoch in range(epochs):
                last = training.epoch(scored=epoch == epochs - 1)
        except NotFinite as error:
            self.say(f"tuning failed: {error}")
            return 0.0
        return last.accuracy


def _distill(teacher: nn.Module, images: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    with torch.no_grad():
        wanted = teacher(images)
    return distillation(outputs, wanted, labels, SHARE, TEMPERATURE)


def _native(network: nn.Module, image: Tensor) -> nn.Module:
    from ..workers.engines import native

    return native(fold(network), image)


def _native_seconds(teacher: Teacher, images: Data) -> float:
    image = images.train[0][:1]
    return measure({NATIVE: _native(teacher.network, image)}, None, image)[NATIVE].ms / 1e3


def _score_test(found: Sequence[Candidate], images: Data) -> list[Candidate]:
    """With the test split scored, by which nothing is chosen; networks that overflow have none."""
    done = []
    for candidate in found:
        try:
            right = hits(candidate.network, images.test)
            done.append(replace(candidate, hits=right, test=int(right.sum()) / len(right)))
        except NotFinite:
            done.append(candidate)
    return done


def _time(found: Sequence[Candidate], images: Data) -> list[Candidate]:
    """With the native code of each timed beside that of the teacher."""
    image = images.train[0][:1]
    unchanged = {NATIVE: _native(found[0].network, image)}
    done = []
    for candidate in found:
        if candidate.pack is not None:
            timed = measure(unchanged, {NATIVE: _native(candidate.network, image)}, image)[NATIVE]
            candidate = replace(
                candidate, speedup=timed.speedup, speedup_spread=timed.speedup_spread
            )
        done.append(candidate)
    return done

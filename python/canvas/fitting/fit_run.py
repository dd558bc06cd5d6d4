"""The stages of a fit on an open study; what is recorded there is not done again.

    record -> screen -> table -> choose, for each budget -> tune -> finals -> latency

What travels between stages stands in the study, the weights in files beside it: a fit that is
killed goes on where it was.  Others do the work (job_runner.py); this process alone writes.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from .. import _core
from ..data import NamedSource, Remarks, Streamed
from ..devices import Device, check_amp, resolve_one
from ..errors import CanvasError, NoSolution, one_line
from ..fit_options import draws_of
from ..inputs import Inputs
from ..nn.latency import NATIVE
from ..nn.layer_target import screening_layer
from ..nn.network import cost_on
from ..options import LOCAL
from ..reporting.callbacks import Callbacks, EpochEvent
from ..reporting.progress import Display
from ..study import FittedItem, ScreenedKernel, Study, Timing, final_epochs
from ..tasks.evaluate import NotFinite
from ..tasks.task import Task
from ..text import several
from ..training.layer_data import LayerData
from . import weight_files
from .budget import Budget, parse_budget
from .candidates import CONTROLS, MIX, SINGLE, Proposal, propose
from .fit_jobs import FARTHEST, IMAGES, Chosen, FitJobs, Tuned, Tuning
from .item_table import LONG, SHORT, Outcome, Row, Way, fill, kept_rows
from .job_runner import Forked, JobRunner
from .menu import CONTROLS as KNOWN
from .menu import FLOOR, Sized, sized_from, sizes_of
from .screen import Screened, screen, screened_before, survivors
from .teacher import Fitted, Teacher

REFIT = 300  # steps of the operators that are tuned
TUNED_NETWORKS = {MIX: 2, CONTROLS: 2, SINGLE: 1}  # of each role that are tuned, for each budget
SURVIVORS = 40
TEACHER, TUNED = "teacher", "tuned"  # roles, beside MIX, CONTROLS and SINGLE
TUNED_TEACHER = "teacher, tuned"  # its name
FINAL_SEED = 1000  # how far the second seed of the finals is from the fit's own
OVER = 1.02  # a network may take so many times its budget of latency
STRANGE = 0.1  # a divergence by BatchNorm's statistics alone, which is 0.002 to 0.02 as a rule
ROUNDS = 3  # of choosing again because whole networks took longer than the sum of their layers

# Until when stages may begin work, as shares of a time limit; a teacher that takes longer than its
# share leaves less to each of the others.
TEACHER_ENDS = 0.1
SCREENING_ENDS, SHORT_FITS_END, TABLE_ENDS, REFITS_END, TUNING_ENDS = 0.15, 0.35, 0.45, 0.6, 0.9
TOO_SHORT = (
    "the time limit ended the fit before enough operators were fitted for a choice: give the same "
    "command more time"
)
TIME_IS_UP = "the time limit ended the fit before {}; the same command continues"


@dataclass(frozen=True)
class Plan:
    """A network to tune: what each layer has, None where it is kept; none in the teacher."""

    id: int
    name: str
    role: str
    budget: str
    layers: Mapping[str, Sized | None] = field(default_factory=dict)

    @property
    def chosen(self) -> list[Sized]:
        return [sized for sized in self.layers.values() if sized is not None]


@dataclass
class FitRun:
    """One run of a fit.  `begun`: as of time.monotonic(); `ended`: why it ended early, or ""."""

    study: Study
    options: Mapping[str, Any]
    teacher: Teacher
    source: NamedSource
    display: Display
    begun: float
    callbacks: Callbacks = field(default_factory=Callbacks)
    teacher_took: float = field(init=False)  # seconds from `begun` until there was a teacher
    ended: str = ""
    cut: bool = False  # the time limit ended the table
    recorded: Mapping[str, LayerData] = field(default_factory=dict)
    menu: dict[tuple[str, str], Sized] = field(default_factory=dict)  # by layer and name
    fits: dict[tuple[str, str, int, int], str] = field(default_factory=dict)  # -> sha256

    def __post_init__(self) -> None:
        self.teacher_took = time.monotonic() - self.begun
        self.remarks = Remarks(self.source, self.display.line)
        self.device: Device = the_device(self.options)
        self.fit_jobs = FitJobs(
            self.teacher, self.source, {}, self.device, self.options["amp"], self._kept
        )
        self.runner: JobRunner = Forked(self.fit_jobs, self.workers)

    @property
    def workers(self) -> int:
        return int(self.options["workers"])

    @property
    def task(self) -> Task:
        return self.teacher.task

    @property
    def example(self) -> Inputs:
        """One training example."""
        return self.teacher.train[:1]

    @property
    def seed(self) -> int:
        return int(self.options["seed"])

    @property
    def outputs(self) -> dict[str, int]:
        """Channels that each layer gives."""
        return {target.name: target.cout for target in self.teacher.targets}

    @property
    def budgets(self) -> list[Budget]:
        return [parse_budget(text) for text in self.options["budget"]]

    @property
    def quantities(self) -> list[str]:
        """What the budgets limit: some of latency, macs and params."""
        return sorted({name for one in self.budgets for name in one.limits})

    @property
    def timed(self) -> bool:
        return "latency" in self.quantities

    def until(self, share: float) -> float:
        if self.options["time_limit"] is None:
            return math.inf
        limit = float(self.options["time_limit"])
        return self.begun + share * limit + (1 - share) / (1 - TEACHER_ENDS) * self.late

    @property
    def late(self) -> float:
        """Seconds that the teacher took beyond its share of a time limit."""
        limit = self.options["time_limit"]
        return 0.0 if limit is None else max(0.0, self.teacher_took - TEACHER_ENDS * float(limit))

    # ---- all stages -----------------------------------------------------------------------------

    def run(self, elsewhere: Elsewhere | None = None) -> None:
        """`elsewhere`: what does the jobs in the place of children, once the teacher is kept."""
        self._teacher()
        macs = self.study.select("baseline")[0].macs or 1
        self.display.begin(self.study.candidates(), macs)
        with nullcontext() if elsewhere is None else elsewhere(self) as work:
            self.runner = work or self.runner
            self._stages()

    def _stages(self) -> None:
        self.recorded, count = self.teacher.layer_data(self.options["memory"], IMAGES)
        self.fit_jobs.recorded = self.recorded
        self.display.line(
            f"recorded {len(self.recorded)} layers on {count} examples; new statistics of "
            f"BatchNorm alone cost a divergence of {self.teacher.floor:.2g}"
        )
        if self.teacher.floor > STRANGE and isinstance(self.source, Streamed):
            self.display.line(
                "that is much: the first batches of the training loader are unlike the validation "
                "split; a loader that shuffles gives batches of all classes"
            )
        for item in self.study.fitted_items():
            self._know(item)
        plans = self.plans()
        for budget in self._missing(plans):
            rows = self._table(self._screen())
            for one in budget:
                self._choose(one, rows)
            plans = self.plans()
        self._tune(plans)
        self._finals(self._best(plans))
        self._latencies()

    def _teacher(self) -> None:
        """The rows of the teacher, and of the teacher that is tuned as the others are."""
        known = self.study.select("baseline")
        if known and known[0].status == "done":
            return
        macs, params = cost_on(self.teacher.network, self.example)
        score = self.fit_jobs.score(self.teacher.network)
        layer_macs = sum(target.macs for target in self.teacher.targets)
        teacher = {"name": TEACHER, "kind": "baseline", "role": TEACHER, "layer_macs": layer_macs}
        tuned = {**teacher, "name": TUNED_TEACHER, "kind": "control", "role": TUNED}
        id = known[0].id if known else self.study.add_networks([teacher, tuned])[0]
        data = weight_files.to_bytes(self.teacher.network.state_dict())
        weights = weight_files.store(self.study.folder, data)
        self.study.tuned(id, 0, score, (0.0, 0.0), weights, 0.0, (macs, params))
        self._tell(id)

    def _tell(self, id: int) -> None:
        """A network is done, or has failed."""
        row = self.study.candidate(id)
        macs = self.study.select("baseline")[0].macs or 1
        self.display.finished(row, time.monotonic() - self.begun, macs)
        self.callbacks.candidate(self.study, row)

    def _report_epochs(self, kind: str, plan: Plan, seed: int, tuned: Tuned) -> None:
        """Report the epochs of a tuning that is recorded to the callbacks."""
        epochs = len(tuned.curve)
        self.callbacks.epochs(
            *(
                EpochEvent(
                    self.study.folder, kind, plan.name, seed, number, epochs, loss or 0.0, value,
                    self.task.judged_by.name, seconds or 0.0,
                )
                for number, (loss, value, seconds) in enumerate(tuned.curve, 1)
            )
        )  # fmt: skip

    # ---- screening and table --------------------------------------------------------------------

    def _screen(self) -> list[Screened]:
        count = int(self.options["draws"])
        if not count:
            return []
        rows = self.study.screened()
        if why := self.study.other_draws():
            if len(rows) < count:
                raise CanvasError(
                    f"{why}: {len(rows)} of {count} kernels are screened; start over (fresh)"
                )
            return screened_before(rows, self.teacher.targets, self.quantities)
        layer = screening_layer(self.teacher.targets)
        known = {row.hash: row.error for row in rows}
        self.display.phase(f"screening {count} kernels at '{layer.name}'", count - len(known))
        best = min(known.values(), default=1.0)

        def tell(number: int, item: Screened, seconds: float) -> None:
            nonlocal best
            kernel, groups = item.operator.kernel, item.operator.groups
            self.study.record_screened(
                ScreenedKernel(number, kernel, groups, item.hash, item.error, seconds)
            )
            self._step(item.operator.name)
            best = min(best, item.error)
            if number % 100 == 0:
                self.display.line(f"{number} kernels screened, least error {best:.3f}")

        return screen(
            self.teacher.targets, self.recorded[layer.name], self.seed, count, self.workers,
            self.until(SCREENING_ENDS), known, tell, self.quantities,
            lambda jobs, until: self.runner.errors(jobs, self.seed, until), draws_of(self.options),
        )  # fmt: skip

    def _step(self, name: str) -> None:
        """One of the things of a stage is done."""
        self.display.started(name, 1)
        self.display.ended(name)

    def _table(self, screened: Sequence[Screened]) -> list[Row]:
        drawn = survivors(screened, SURVIVORS)
        menu: list[Sized] = []
        for operator in (*KNOWN, *drawn):
            for target in self.teacher.targets:
                menu += sizes_of(operator, target)
        self.menu.update({(sized.layer, sized.name): sized for sized in menu})
        known = {
            (item.layer, item.operator, item.steps): self._row(item)
            for item in self.study.fitted_items()
            if item.seed == self.seed and item.steps != REFIT
        }
        words = f"{len(KNOWN)} known operators, {len(drawn)} drawn"
        left = len(menu) + len(menu) // 2 - len(known)
        self.display.phase(f"fitting {len(menu)} items: {words}", max(left, 0))

        def tell(row: Row, outcome: Outcome) -> Row:
            row = replace(row, weights=self._store(outcome.weights))
            self._record(row, outcome.used)
            self._step(f"{row.layer} {row.name}")
            return row

        rows = fill(
            self.teacher, self.recorded, menu, Way(self.seed, self.timed), self.workers,
            (self.until(SHORT_FITS_END), self.until(TABLE_ENDS)), known, tell,
            outcomes_of=lambda jobs, steps, until: self.runner.items(
                jobs, steps, self.seed, self.timed, until
            ),
        )  # fmt: skip
        self.cut = time.monotonic() > self.until(SHORT_FITS_END)
        failed = [row for row in rows if row.why]
        for why in dict.fromkeys(row.why for row in failed):
            count = sum(row.why == why for row in failed)
            self.display.line(f"{count} of {len(rows)} items failed: {why}")
        floors = [f"{row.layer} {row.error:.2f}" for row in rows if row.name == FLOOR]
        if floors:
            self.display.line(
                "what pooling at strides costs alone, as the error of a dense operator behind it: "
                + ", ".join(floors)
            )
        return [*kept_rows(self.teacher, self.timed, self.runner.program_seconds), *rows]

    def _store(self, data: bytes) -> str:
        return weight_files.store(self.study.folder, data) if data else ""

    def _record(self, row: Row, used: float) -> None:
        assert row.sized is not None
        item = FittedItem(
            row.layer, row.name, row.steps, self.seed, row.sized.pack.text, row.error,
            _finite(row.loss), _finite(row.seconds), row.macs, row.params, row.weights, row.why,
            used,
        )  # fmt: skip
        self.study.record_fitted(item)
        self._know(item)

    def _know(self, item: FittedItem) -> None:
        self.fits[item.layer, item.operator, item.steps, item.seed] = item.weights
        sized = sized_from(item.layer, item.operator, item.pack)
        self.menu.setdefault((item.layer, item.operator), sized)

    def _row(self, item: FittedItem) -> Row:
        loss = math.inf if item.divergence is None else item.divergence
        seconds = item.native_seconds
        if seconds is None:
            seconds = math.inf if self.timed else math.nan
        return Row(
            self.menu[item.layer, item.operator], item.layer, item.steps,
            1.0 if item.error is None else item.error, loss, seconds, item.macs, item.params,
            why=item.reason, weights=item.weights,
        )  # fmt: skip

    # ---- which networks -------------------------------------------------------------------------

    def plans(self) -> list[Plan]:
        """The networks of the study, in their order."""
        plans = []
        for row in self.study.candidates():
            choice = self.study.choice_of(row.id)
            layers = {layer: self.menu.get((layer, name)) for layer, name in choice.items()}
            plans.append(Plan(row.id, row.name, row.role, row.budget, layers))
        return plans

    def _missing(self, plans: Sequence[Plan]) -> list[list[Budget]]:
        """The budgets without networks, as one list; none where each has some."""
        there = {plan.budget for plan in plans}
        left = [budget for budget in self.budgets if budget.text not in there]
        return [left] if left else []

    def _choose(self, budget: Budget, rows: Sequence[Row]) -> None:
        """Add the networks of a budget that shall be tuned: of each role the nearest to the
        teacher, of those whose layers together keep to the budget; where whole networks take
        longer than the sums of their layers, the sums get less.
        """
        whole = self.runner.time(None, []).ms / 1e3 if "latency" in budget.limits else 0.0
        limits = budget.of_layers(self.teacher.targets, rows, whole)
        drawn = any(row.sized is not None and not row.sized.operator.control for row in rows)
        try:
            proposals = propose(rows, limits, drawn)
        except NoSolution:
            if self.cut:
                raise NoSolution(TOO_SHORT) from None
            raise
        for again in range(ROUNDS):
            chosen = self._nearest(proposals)
            if not whole or again == ROUNDS - 1:
                break
            excess = whole * self._excess(chosen, budget.limits["latency"])
            if excess <= 0:
                break
            used = max(sum(row.seconds for row in proposal.rows) for proposal in chosen)
            limits["latency"] = min(limits["latency"], used) - excess
            self.display.line(
                f"{budget.text}: whole networks take {1e6 * excess:.1f} us more than allowed, "
                "layers get less"
            )
            try:
                proposals = propose(rows, limits, drawn)
            except NoSolution:
                break
        self._add(budget, chosen)

    def _nearest(self, proposals: Sequence[Proposal]) -> list[Proposal]:
        """Of each role, the networks with the least divergence before any tuning."""
        self.display.phase(f"comparing {len(proposals)} networks", len(proposals))
        losses: dict[int, float] = {}
        for at, loss in self.runner.divergences([self._chosen(one) for one in proposals]):
            losses[at] = loss
            self._step(f"network {at}")
        found: list[Proposal] = []
        for role, most in TUNED_NETWORKS.items():
            own = [at for at, proposal in enumerate(proposals) if proposal.kind == role]
            found += [proposals[at] for at in sorted(own, key=lambda at: (losses[at], at))[:most]]
        return found

    def _chosen(self, proposal: Proposal) -> list[Chosen]:
        return [
            Chosen(row.sized, row.steps, self.seed)
            for row in proposal.rows
            if row.sized is not None
        ]

    def _excess(self, chosen: Sequence[Proposal], share: float) -> float:
        """By how much of the teacher's time the whole networks exceed their share, the mean of
        those that do; 0 where most keep to it.  Each is timed interleaved with the teacher, so
        that other work on the machine counts for both.
        """
        shares = []
        for proposal in chosen:
            items = [row.sized for row in proposal.rows if row.sized is not None]
            network = self.fit_jobs.assembled(self._chosen(proposal))
            shares.append(1 / self.runner.time(network, items).speedup)
        most = [taken - share for taken in shares if taken > OVER * share]
        return sum(most) / len(most) if 2 * len(most) > len(shares) else 0.0

    def _add(self, budget: Budget, chosen: Sequence[Proposal]) -> None:
        found = len(self.study.select("find"))
        networks = []
        counts: dict[str, int] = {}
        there: set[str] = set()  # two items may be the same operator in other words
        for proposal in chosen:
            pack = proposal.pack(self.teacher.targets).text
            hash = _core.hash(pack) if proposal.kind == MIX else None
            if hash in there:
                continue
            there |= {hash} if hash else set()
            counts[proposal.kind] = counts.get(proposal.kind, 0) + 1
            if proposal.kind == MIX:
                kind, name = "find", str(found)
                found += 1
            elif proposal.kind == CONTROLS:
                kind, name = "control", f"known {counts[CONTROLS]} at {budget.text}"
            else:
                (operator,) = {row.sized.operator.name for row in proposal.rows if row.sized}
                kind, name = "control", f"{operator} at {budget.text}"
            networks.append(
                {
                    "name": name,
                    "kind": kind,
                    "role": proposal.kind,
                    "budget": budget.text,
                    "pack": pack,
                    "hash": hash,
                    "layer_macs": sum(row.macs for row in proposal.rows),
                    "choice": proposal.names,
                }
            )
        self.study.add_networks(networks)

    # ---- operators ------------------------------------------------------------------------------

    def _kept(self, one: Chosen) -> Mapping[str, Tensor] | None:
        """The weights of an operator, None where its file is gone."""
        key = (one.sized.layer, one.sized.name, one.steps, one.seed)
        return weight_files.fetch(self.study.folder, self.fits.get(key, ""))

    def _longest(self, sized: Sized, seed: int) -> Chosen:
        """An operator after REFIT steps, or after as many as a time limit has left it."""
        known = (
            s for s in (REFIT, LONG, SHORT) if (sized.layer, sized.name, s, seed) in self.fits
        )
        return Chosen(sized, next(known, REFIT), seed)

    def _refit(self, plans: Sequence[Plan], seeds: Sequence[int], until: float) -> None:
        """Fit the operators of networks for REFIT steps, each once for all that have it."""
        wanted = {
            (sized.layer, sized.name, seed): sized
            for seed in seeds
            for plan in plans
            for sized in plan.chosen
        }
        asked = [
            Chosen(sized, REFIT, key[2])
            for key, sized in wanted.items()
            if (sized.layer, sized.name, REFIT, key[2]) not in self.fits
        ]
        if not asked:
            return
        self.display.phase(f"refitting {len(asked)} operators for {REFIT} steps", len(asked))
        for at, made in self.runner.refits(asked, until):
            if made is None:  # tried again where it is needed
                continue
            sized, seed = asked[at].sized, asked[at].seed
            item = FittedItem(
                sized.layer, sized.name, REFIT, seed, sized.pack.text, _finite(made.error), None,
                None, int(sized.pack.cost["macs"]), int(sized.pack.cost["params"]),
                self._store(made.weights), "", made.used,
            )  # fmt: skip
            self.study.record_fitted(item)
            self._know(item)
            self._step(f"{sized.layer} {sized.name}")

    # ---- tuning ---------------------------------------------------------------------------------

    def _tune(self, plans: Sequence[Plan]) -> None:
        """Every network for some epochs, the best of each role longer."""
        epochs, until = int(self.options["epochs"]), self.until(TUNING_ENDS)
        new = [plan for plan in plans if not self._is_tuned(plan, 0)]
        self._refit(new, [self.seed], self.until(REFITS_END))
        first = [plan for plan in plans if plan.role not in (TEACHER, TUNED)]
        self._tune_all(first, epochs, until)
        self._tune_all(self._best(plans), final_epochs(self.options), until)
        if any(not self._is_tuned(plan, 0) for plan in plans):
            self._time_is_up("all networks were tuned")

    def _is_tuned(self, plan: Plan, epochs: int) -> bool:
        row = self.study.candidate(plan.id)
        return row.status == "failed" or (
            row.status == "done" and self.study.tuned_epochs(plan.id) >= epochs
        )

    def _tune_all(self, plans: Sequence[Plan], epochs: int, until: float) -> None:
        asked = [plan for plan in plans if not self._is_tuned(plan, epochs)]
        asked = [plan for plan in asked if plan.role != TEACHER]
        if not asked:
            return
        self.display.phase(
            f"tuning {several(len(asked), 'network')} for {several(epochs, 'epoch')}", len(asked)
        )
        jobs = [self._tuning(plan, self.seed, epochs) for plan in asked]
        for at, tuned in self.runner.tunings(jobs, until):
            plan = asked[at]
            self.remarks.waited(tuned.waiting)
            if tuned.untuned and epochs:
                self.display.line(
                    f"{plan.name}: {several(epochs, 'epoch')} of tuning made it worse on "
                    "validation, it stays as it was fitted"
                )
            if tuned.why:
                self.study.finished(plan.id, "failed", tuned.why)
            else:
                costs = cost_on(self.network_of(plan, tuned.weights), self.example)
                divergences = (min(tuned.divergence, FARTHEST), tuned.tuned_divergence)
                self.study.tuned(
                    plan.id, epochs, tuned.score, divergences, self._store(tuned.weights),
                    tuned.used, costs,
                )  # fmt: skip
                self._report_epochs("tuning", plan, self.seed, tuned)
            self._tell(plan.id)

    def _tuning(self, plan: Plan, seed: int, epochs: int) -> Tuning:
        """The job that tunes a network, with the longest fits of its operators."""
        chosen = [self._longest(sized, seed) for sized in plan.chosen]
        return Tuning(chosen, plan.role == TUNED, seed, epochs)

    def network_of(self, plan: Plan, data: bytes | Mapping[str, Tensor]) -> nn.Module:
        """The network of a plan with trained weights."""
        tensors = weight_files.from_bytes(data) if isinstance(data, bytes) else data
        if plan.role in (TEACHER, TUNED):
            return weight_files.load_into(copy.deepcopy(self.teacher.network), tensors).eval()
        chosen = {}
        for one in plan.chosen:
            bias = torch.zeros(self.outputs[one.layer])
            chosen[one.layer] = Fitted(weight_files.fresh_module(one), bias)
        return weight_files.load_into(self.teacher.assemble(chosen), tensors).eval()

    def trained(self, plan: Plan) -> nn.Module | None:
        """The tuned network of a plan; None where it is not tuned, or its file is gone."""
        row = self.study.candidate(plan.id)
        tensors = weight_files.fetch(self.study.folder, row.weights)
        if row.status != "done" or tensors is None:
            return None
        return self.network_of(plan, tensors)

    # ---- finals ---------------------------------------------------------------------------------

    def _best(self, plans: Sequence[Plan]) -> list[Plan]:
        """Teacher and tuned teacher, and of each budget and role the network that validation puts
        first.
        """
        done = {row.id: row for row in self.study.candidates() if row.status == "done"}
        best: dict[tuple[str, str], Plan] = {}

        def order(plan: Plan) -> tuple[int, float, float, int]:
            row = done[plan.id]
            epochs = self.study.tuned_epochs(plan.id)  # what was tuned longer was the best before
            return -epochs, -row.merit, row.divergence or 0.0, row.id

        tuned = [plan for plan in plans if plan.id in done and plan.budget]
        for plan in sorted(tuned, key=order):
            best.setdefault((plan.budget, plan.role), plan)
        ids = {plan.id for plan in best.values()}
        return [plan for plan in plans if plan.id in ids or plan.role in (TEACHER, TUNED)]

    def final_seeds(self) -> list[int]:
        """The fit's own, then others."""
        count = int(self.options["final_seeds"])
        return [self.seed, *((self.seed + FINAL_SEED + i) % 2**63 for i in range(count - 1))]

    def _finals(self, plans: Sequence[Plan]) -> None:
        """Each of the best networks from every seed, scored on the test split."""
        if self.task.metric is None:  # there is nothing to be scored
            return
        epochs = final_epochs(self.options)
        plans = [p for p in plans if p.role == TEACHER or self._is_tuned(p, epochs)]
        plans = [p for p in plans if self.study.candidate(p.id).status == "done"]
        seeds = self.final_seeds()
        asked = [
            (plan, seed, epochs)
            for seed in seeds
            for plan in plans
            if seed not in self.study.final_seeds(plan.id, epochs)
        ]
        if not asked:
            return
        until = self.until(TUNING_ENDS)
        for plan in (plan for plan, seed, _ in asked if plan.role == TEACHER):
            self._final_of_teacher(plan, seeds, epochs)
        asked = [job for job in asked if job[0].role != TEACHER]
        own = [job for job in asked if job[1] == self.seed]
        self._refit(plans, seeds, until)
        self.display.phase(
            f"finals: {several(len(asked), 'training')} of {several(epochs, 'epoch')}", len(asked)
        )
        for plan, seed, _ in own:
            self._record_final(plan, seed, epochs, self._own_final(plan))
        jobs = [job for job in asked if job[1] != self.seed]
        tunings = [self._tuning(plan, seed, epochs) for plan, seed, _ in jobs]
        for at, tuned in self.runner.tunings(tunings, until):
            plan, seed, _ = jobs[at]
            self._record_final(plan, seed, epochs, tuned)
        left = [p for p in plans if len(self.study.final_seeds(p.id, epochs)) < len(seeds)]
        if left:
            self._time_is_up("all finals were trained")

    def _own_final(self, plan: Plan) -> Tuned:
        """The network that was tuned from the fit's own seed, scored."""
        network = self.trained(plan)
        if network is None:
            return self.fit_jobs.tuned(self._tuning(plan, self.seed, final_epochs(self.options)))
        row = self.study.candidate(plan.id)
        try:
            test, right = self.fit_jobs.test(network)
        except NotFinite as error:
            return Tuned(why=f"nan: {error}")
        return Tuned(row.val_accuracy, row.divergence or 0.0, test=test, hits=right)

    def _final_of_teacher(self, plan: Plan, seeds: Sequence[int], epochs: int) -> None:
        """The teacher as it is: no seed changes it."""
        score = self.study.candidate(plan.id).val_accuracy or 0.0
        test, right = self.fit_jobs.test(self.teacher.network)
        for seed in seeds:
            self.study.final_started(plan.id, seed, epochs)
            self.study.final(plan.id, seed, epochs, (score, right), 0.0, test)

    def _record_final(self, plan: Plan, seed: int, epochs: int, tuned: Tuned) -> None:
        self.study.final_started(plan.id, seed, epochs)
        if tuned.why:
            self.study.final_failed(plan.id, seed, epochs, tuned.why)
            self.display.line(f"final {plan.name}, seed {seed} failed: {tuned.why}")
            return
        scores = (tuned.score or 0.0, tuned.hits)
        test = self.study.final(plan.id, seed, epochs, scores, tuned.used, tuned.test)
        self._report_epochs("final", plan, seed, tuned)
        self._step(f"{plan.name} seed {seed}")
        told = self.task.judged_by.text(test)
        self.display.line(f"final {plan.name}, seed {seed}: {told} on the test split")

    # ---- latency --------------------------------------------------------------------------------

    def _latencies(self) -> None:
        """Native code of each network that has finals, timed beside that of the teacher."""
        if self.options["latency"] == "none":
            return
        plans = [
            plan
            for plan in self._best(self.plans())
            if plan.role != TUNED and not self.study.timings(plan.id)
        ]
        if not plans:
            return
        self.display.phase(f"timing {len(plans)} networks", len(plans))
        for plan in plans:
            network = self.trained(plan)
            if network is None:
                continue
            self.study.timing_started(plan.id)
            used = time.process_time()
            try:
                timed = self.runner.time(None if plan.role == TEACHER else network, plan.chosen)
            except CanvasError as error:
                nothing = Timing(NATIVE, None, None, None, "", 1, one_line(error))
                self.study.latency_failed(plan.id, [nothing], one_line(error))
                continue
            words = asdict(timed)
            row = Timing(
                NATIVE, words["ms"], words["spread_ms"], words["speedup"], NATIVE, 1, "",
                words["speedup_spread"], processor=time.process_time() - used,
            )  # fmt: skip
            self.study.latency(plan.id, [row])
            self.display.timed(self.study.candidate(plan.id))

    def _time_is_up(self, before: str) -> None:
        if self.options["time_limit"] is not None and not self.ended:
            self.ended = TIME_IS_UP.format(before)


Elsewhere = Callable[[FitRun], AbstractContextManager[JobRunner]]


def the_device(options: Mapping[str, Any]) -> Device:
    """Where a fit trains in this process; raises CanvasError for several devices, or 16 bits that
    it has not.
    """
    if options["executor"] != LOCAL:
        return Device("cpu")
    found = resolve_one(options["device"], "a fit")
    check_amp(found, options["amp"])
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None

"""The jobs of a fit on the machines of a cluster (job_runner.py), as text and files.

What budgets of latency compare is timed where the pool times: on this machine, or on nodes with a
label of their own.
"""

from __future__ import annotations

import base64
import itertools
import math
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from ..cluster.cluster_pool import ClusterPool
from ..errors import CanvasError
from ..layer_choice import LayerChoice
from ..nn.latency import Latency
from ..nn.layer_time import seconds_of
from ..workers.pool import Message
from .fit_jobs import Chosen, FitJobs, Refitted, Tuned, Tuning
from .item_table import Outcome, lost
from .job_runner import Done, lost_tuning
from .menu import Sized

PROGRAM = ("-m", "canvas.fitting.fit_worker")
LIMIT = 24 * 3600.0  # seconds of processor time of one job
ERRORS = ("error", "nan", "wrong_result")  # kinds of failures that end a fit: others cost a job


def base_words(network: Any, options: Any, task: str, images: Any, teacher: Path) -> Message:
    """What every job of a fit has: how its teacher is made, from which file of weights."""
    facts = {"memory": options["memory"], "policy": str(LayerChoice.of(options))}
    return {
        "fit": {**facts, "network": network},
        "teacher": str(teacher),
        "task": task,
        "images": images,
        "path": sys.path,
    }


@dataclass
class OnCluster:
    """`base`: words that every job has; `file_of`: where the kept weights of an operator are, ""
    if nowhere; `fit_jobs` is that of this process.
    """

    pool: ClusterPool
    base: Message
    fit_jobs: FitJobs
    file_of: Callable[[Chosen], str]
    number: Iterator[int] = field(default_factory=itertools.count)

    def errors(self, jobs: Sequence[Sized], seed: int, until: float) -> Done[tuple[float, float]]:
        words = [{"kind": "error", "chosen": words_of(Chosen(one, 0, seed))} for one in jobs]
        for at, told, _ in self._each(words, until):
            yield at, (1.0, 0.0) if told["event"] == "failed" else (told["error"], told["used"])

    def items(
        self, jobs: Sequence[Sized], steps: int, seed: int, timed: bool, until: float
    ) -> Done[Outcome]:
        words = [{"kind": "item", "chosen": words_of(Chosen(one, steps, seed))} for one in jobs]
        made: dict[int, Outcome] = {}

        def timing(at: int, told: Message, data: bytes) -> Message | None:
            """The second job of an item: its time, on a quiet core."""
            if at in made or told["event"] == "failed":
                return None
            seconds = math.inf if told["why"] else math.nan
            made[at] = Outcome(
                told["error"], told["loss"], seconds, told["why"], data, told["used"]
            )
            if not timed or told["why"]:
                return None
            return {"kind": "seconds", "pack": jobs[at].pack.text}

        for at, told, _ in self._each(words, until, timing):
            if told["event"] == "failed":
                yield at, lost(str(told["reason"]))
            elif "seconds" in told and told["why"]:
                yield at, replace(made[at], seconds=math.inf, loss=math.inf, why=told["why"])
            elif "seconds" in told:
                yield at, replace(made[at], seconds=told["seconds"])
            else:
                yield at, made[at]

    def refits(self, jobs: Sequence[Chosen], until: float) -> Done[Refitted | None]:
        words = [{"kind": "refit", "chosen": words_of(one)} for one in jobs]
        for at, told, data in self._each(words, until):
            failed = told["event"] == "failed"
            yield at, None if failed else Refitted(data, told["error"], told["used"])

    def divergences(self, jobs: Sequence[Sequence[Chosen]]) -> Done[float]:
        words = [{"kind": "divergence", **self._network(chosen)} for chosen in jobs]
        for at, told, _ in self._each(words, math.inf):
            yield at, math.inf if told["event"] == "failed" else told["divergence"]

    def tunings(self, jobs: Sequence[Tuning], until: float) -> Done[Tuned]:
        words = [
            {
                "kind": "tune",
                **self._network(job.chosen),
                "unchanged": job.teacher,
                "seed": job.seed,
                "epochs": job.epochs,
            }
            for job in jobs
        ]
        for at, told, data in self._each(words, until):
            if told.pop("event") == "failed":
                yield at, lost_tuning(str(told["reason"]))
            else:
                hits = base64.b64decode(told.pop("hits"))
                yield at, Tuned(**told, weights=data, hits=hits)

    def program_seconds(self, program: str) -> float:
        if not self.pool.label:
            return seconds_of(program)
        for _, told, _ in self._each([{"kind": "seconds", "program": program}], math.inf):
            why = told["reason"] if told["event"] == "failed" else told["why"]
            if why:
                raise CanvasError(f"a layer cannot be timed: {why}")
            return float(told["seconds"])
        raise AssertionError("the pool answers every job")

    def time(self, network: nn.Module | None, items: Sequence[Sized]) -> Latency:
        if not self.pool.label:
            return self.fit_jobs.time(network)
        chosen = [Chosen(sized, 0, 0) for sized in items]
        words = {"kind": "network_time", **self._network(chosen), "unchanged": network is None}
        for _, told, _ in self._each([words], math.inf):
            if told.pop("event") == "failed":
                raise CanvasError(f"the network cannot be timed: {told['reason']}")
            return Latency(**told)
        raise AssertionError("the pool answers every job")

    def _network(self, chosen: Sequence[Chosen]) -> Message:
        return {
            "network": [words_of(one) for one in chosen],
            "weights": {one.sized.layer: self.file_of(one) for one in chosen},
        }

    def _each(
        self,
        jobs: Sequence[Message],
        until: float,
        more: Callable[[int, Message, bytes], Message | None] = lambda at, told, data: None,
    ) -> Iterator[tuple[int, Message, bytes]]:
        """(i, last message, file of the result) of every job as they end.  What `more` gives for
        one is a second job, whose end takes the place of the first.
        """
        under_way: dict[int, int] = {}  # number of a job in the pool -> place
        left = deque(range(len(jobs)))
        with tempfile.TemporaryDirectory(prefix="canvas-fit-") as folder:

            def start(at: int, words: Message) -> None:
                number = next(self.number)
                under_way[number] = at
                result = str(Path(folder, f"{number}.safetensors"))
                self.pool.start(number, {**self.base, **words, "result": result}, LIMIT)

            try:
                while True:
                    while left and time.monotonic() < until and self.pool.has_room():
                        at = left.popleft()
                        start(at, jobs[at])
                    if not under_way:
                        return
                    for number, message in self.pool.wait(0.5):
                        at = under_way.pop(number)
                        result = Path(folder, f"{number}.safetensors")
                        data = result.read_bytes() if result.exists() else b""
                        result.unlink(missing_ok=True)
                        if message["event"] == "failed" and message["kind"] in ERRORS:
                            raise CanvasError(f"a job on a node failed: {message['reason']}")
                        if (second := more(at, message, data)) is not None:
                            start(at, second)
                        else:
                            yield at, message, data
            finally:
                for number in under_way:
                    self.pool.stop(number)


def words_of(one: Chosen) -> list[Any]:
    """An operator as JSON has it."""
    return [one.sized.layer, one.sized.name, one.sized.pack.text, one.steps, one.seed]

"""The loop that all tuners share, and those that need no more than a list of indices."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from typing import Any

from ...arguments import shown
from ...te.place import mistake
from ..measure import Measure, MeasureInput, MeasureResult, mean_cost
from ..task import ConfigEntity, Task
from .callback import Callback, si_scale

logger = logging.getLogger("autotvm")


class Tuner:
    """Measures what `next_batch` returns until enough was tried; keeps the best."""

    def __init__(self, task: Task) -> None:
        if not isinstance(task, Task) or not task.config_space.space_map:
            raise mistake(f"a tuner takes what task.create answers, not {shown(task)}")
        self.task, self.space = task, task.config_space
        self.best_config: ConfigEntity | None = None
        self.best_flops = 0.0
        self.best_measure_pair: tuple[MeasureInput, MeasureResult] | None = None
        self.best_iter = 0
        self.ttl = 0.0
        self.n_trial: int | None = None
        self.early_stopping: float | None = None

    def has_next(self) -> bool:
        raise NotImplementedError

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        raise NotImplementedError

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        """What was measured, for tuners that learn from it."""

    def load_history(self, data_set: Any, min_seed_records: int = 500) -> None:
        """No tuner here begins with records of others."""

    def reset(self) -> None:
        self.best_config, self.best_flops, self.best_measure_pair = None, 0.0, None

    def tune(
        self,
        n_trial: int,
        measure_option: Any,
        early_stopping: int | None = None,
        callbacks: Sequence[Callback] = (),
        si_prefix: str = "G",
    ) -> None:
        """At most `n_trial` candidates; `early_stopping`: or as many without a better one.
        Raises CanvasError with the last failure where nothing worked.  Ctrl-C ends it at once;
        what was measured until then is in `best_config` and was given to the callbacks.
        """
        for name, value in (("n_trial", n_trial), ("early_stopping", early_stopping or 1)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise mistake(f"{name} is a whole number from 1, not {shown(value)}")
        if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
            raise mistake(f"callbacks is a list of functions, not {shown(callbacks)}")
        measure = Measure(measure_option)
        scale = si_scale(si_prefix)
        self.n_trial, self.early_stopping = n_trial, early_stopping or 1e9
        done, last = 0, ""
        while done < n_trial and self.has_next():
            most = min(measure.builder.n_parallel, n_trial - done)
            inputs = [
                MeasureInput(self.task.target, self.task, config)
                for config in self.next_batch(most)
            ]
            if not inputs:
                break
            results, raised = measure(inputs)
            inputs = inputs[: len(results)]
            for place, (inp, res) in enumerate(zip(inputs, results), done):
                last = self._look_at(place, inp, res, scale) or last
            done += len(inputs)
            self.ttl = min(self.early_stopping + self.best_iter, n_trial) - done
            self.update(inputs, results)
            for callback in callbacks if inputs else ():
                callback(self, inputs, results)
            if raised is not None:
                raise raised
            if done >= self.best_iter + self.early_stopping:
                logger.debug("Early stopped. Best iter: %d.", self.best_iter)
                break
        if self.best_config is None:
            raise mistake(f"none of {done} candidates worked, the last: {last}")

    def _look_at(self, place: int, inp: MeasureInput, res: MeasureResult, scale: float) -> str:
        """Why it failed; "" where it did not."""
        speed = self.task.flop / mean_cost(res)
        if speed > self.best_flops:
            assert isinstance(inp.config, ConfigEntity)
            self.best_flops, self.best_config = speed, inp.config
            self.best_measure_pair, self.best_iter = (inp, res), place
        logger.debug(
            "No: %d\tGFLOPS: %.2f/%.2f\tresult: %s\t%s",
            place + 1,
            speed / scale,
            self.best_flops / scale,
            res,
            inp.config,
        )
        return "" if res.error_no == 0 else str(res.costs[0])


def check_seed(seed: Any) -> None:
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise mistake(f"a seed is a whole number, not {shown(seed)}")


class _IndexTuner(Tuner):
    """Points in the order of `_indices`."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self._seen = 0

    def _index(self, place: int) -> int:
        return place

    def has_next(self) -> bool:
        return self._seen < len(self.space)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        last = min(self._seen + batch_size, len(self.space))
        found = [self.space.get(self._index(place)) for place in range(self._seen, last)]
        self._seen = last
        return found


class GridSearchTuner(_IndexTuner):
    """All points, in order."""


class RandomTuner(_IndexTuner):
    """Points at random, each once; `seed` makes them repeatable."""

    def __init__(self, task: Task, seed: int = 1) -> None:
        super().__init__(task)
        check_seed(seed)
        self._random, self._swapped = random.Random(seed), dict[int, int]()

    def _index(self, place: int) -> int:
        """A shuffle that is made as far as it is looked at."""
        other = self._random.randrange(place, len(self.space))
        answer = self._swapped.get(other, other)
        self._swapped[other] = self._swapped.get(place, place)
        return answer


class XGBTuner(Tuner):
    """There is none here."""

    def __init__(self, *_given: Any, **_named: Any) -> None:
        raise mistake(
            "XGBTuner: there is no learned model here, take GATuner, RandomTuner or "
            "GridSearchTuner, or canvas.tune, which has a model of the machine"
        )

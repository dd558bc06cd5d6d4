"""Callbacks of a run: user code that is called for each epoch and each network.

    the driver records an epoch           --> on_epoch(EpochEvent)
    the driver records a network's result --> on_candidate(study, candidate)

Calls come from the driver's process, in the order of the records, each after its record. An
exception in a callback ends the run, since a log with silent gaps is worse than a stop in the
first minute. Nothing is lost: the same command continues.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..arguments import Kind
from ..errors import CanvasError, one_line
from ..study import Candidate, Study
from ..text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS = ("on_epoch", "on_candidate")


def _is_callback(value: Any) -> bool:
    methods = any(callable(getattr(value, name, None)) for name in METHODS)
    return (callable(value) or methods) and not isinstance(value, type)


CALLBACKS = Kind(
    "a list of functions, or of objects with a method on_epoch or on_candidate",
    lambda value: isinstance(value, (list, tuple)) and all(map(_is_callback, value)),
)


@dataclass(frozen=True)
class EpochEvent:
    """An epoch that a search, a fit or `canvas train` has recorded.

    `folder`: of the study, or of the training of `canvas train`; `kind`: "trial", "final",
    "tuning", "teacher" or "training"; `name`: row of the table, such as "baseline" or "17";
    `seed`: of the training; `epoch`: 1 to `epochs`; `loss`: mean over the training batches;
    `value`: metric on the validation split, None if it was not taken, an accuracy is 0..1;
    `metric`: name of the metric; `seconds`: wall-clock time of the epoch.
    """

    folder: Path
    kind: str
    name: str
    seed: int
    epoch: int
    epochs: int
    loss: float
    value: float | None
    metric: str
    seconds: float

    @property
    def run(self) -> str:
        """Name of the training, unique in a study, such as `17/trial-6-epochs-seed-1`."""
        return f"{folder_name(self.name)}/{self.kind}-{self.epochs}-epochs-seed-{self.seed}"

    @property
    def metrics(self) -> dict[str, float]:
        """The figures by name, such as train_loss and val_accuracy."""
        figures = {"train_loss": self.loss}
        if self.value is not None:
            figures[f"val_{self.metric}"] = self.value
        return figures


def folder_name(name: str) -> str:
    """The name of a network as the name of a folder."""
    return re.sub(r"[^\w.=+-]+", "-", name).strip(".=+-") or "network"


class Log(Protocol):
    """A log that follows a run beside the user's callbacks (epoch_log.py)."""

    note: str
    there: set[tuple[str, str]]

    def claim(self, owner: str | None, goes_on: bool = False) -> None: ...

    def on_epoch(self, event: EpochEvent) -> None: ...

    def summary(self, candidates: Sequence[Candidate]) -> None: ...


class Callbacks:
    """The callbacks of a run in their order, and its log."""

    def __init__(self, given: Sequence[Any] = (), log: Log | None = None) -> None:
        self.given = given
        self.log = log

    @property
    def note(self) -> str:
        """What the user should know of the log, or ""."""
        return "" if self.log is None else self.log.note

    def notes(self, known: bool) -> list[str]:
        """The same, and that the log of a study that is `known` has no rows yet."""
        late = known and self.log is not None and not self.log.there
        words = "the log begins here: epochs of before are in the study alone"
        return [note for note in (self.note, words if late else "") if note]

    def claim(self, study: Study, goes_on: bool = False) -> None:
        """Raises CanvasError if the log belongs to another study.  `goes_on`: the study has not
        begun, but its teacher's training has.
        """
        if self.log is not None:
            created = study.fact("created")
            self.log.claim(None if created is None else f"{created:.3f}", goes_on)

    def claim_training(self, name: str, goes_on: bool) -> None:
        """The same for a training of `canvas train`."""
        if self.log is not None:
            owner = f"training of {name}"
            self.log.claim(owner if goes_on else None)
            self.log.claim(owner)

    def epochs(self, *events: EpochEvent) -> None:
        """Epochs are recorded: all stand in the log before a callback may end the run."""
        if self.log is not None:
            for event in events:
                self.log.on_epoch(event)
        for event in events:
            for callback in self.given:
                if (method := getattr(callback, "on_epoch", None)) is not None:
                    with _ended_by(callback, "on_epoch"):
                        method(event)

    def log_again(self, events: Iterable[EpochEvent]) -> None:
        """Epochs that a run before this one has recorded: the log gets those that it lacks."""
        if self.log is not None:
            for event in events:
                self.log.on_epoch(event)

    def candidate(self, study: Study, candidate: Candidate) -> None:
        """The result of a network is recorded; a function is its own on_candidate."""
        for callback in self.given:
            own = None if hasattr(callback, "on_epoch") else callback
            if (method := getattr(callback, "on_candidate", own)) is not None:
                with _ended_by(callback, "on_candidate"):
                    method(study, candidate)

    def summary(self, study: Study) -> str:
        """All that the run could measure is recorded; returns why the log lacks it, or ""."""
        try:
            if self.log is not None:
                self.log.summary(study.candidates())
        except CanvasError as error:
            return str(error)
        return ""


@contextmanager
def _ended_by(callback: Any, method: str) -> Iterator[None]:
    """Turns an exception of a callback into one message; KeyboardInterrupt is passed on."""
    try:
        yield
    except (Exception, SystemExit) as error:
        name = getattr(callback, "__qualname__", type(callback).__qualname__)
        raise CanvasError(
            f"callback {printable(name)} failed in {method}: {printable(one_line(error))}; what "
            "is recorded is kept, the same command continues"
        ) from error

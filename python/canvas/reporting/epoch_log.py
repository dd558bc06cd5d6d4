"""The log of --log-dir: CSV and, if TensorBoard is installed, its event files.

    DIR/epochs.csv              a row per epoch of every training (COLUMNS)
    DIR/candidates.csv          a row per network, once all are timed (FIGURES)
    DIR/17/trial-6-epochs-seed-1/events.out.tfevents...    scalars of a training
    DIR/17/events.out.tfevents...                          hyperparameters and figures of a network

A log belongs to one study, or to one training of `canvas train`: the column `study` names it. An
epoch that stands in epochs.csv is not written again, so a continued run appends.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import CanvasError, one_line
from ..files import at_once, try_lock
from ..study import Candidate
from ..text import csv_cell
from .callbacks import EpochEvent, folder_name
from .table import kernel_summary

EPOCHS, CANDIDATES = "epochs.csv", "candidates.csv"
COLUMNS = (
    "study", "run", "kind", "name", "seed", "epoch", "epochs", "loss", "metric", "value",
    "seconds",
)  # fmt: skip
FIGURES = (
    "name", "kind", "budget", "status", "metric", "value", "test", "macs", "params", "latency_ms",
    "speedup", "operators",
)  # fmt: skip
HEAD = ",".join(FIGURES) + "\n"  # of candidates.csv
OPEN = 16  # event files that are open at a time: each has a thread
NO_EVENTS = (
    "TensorBoard is not installed: --log-dir writes CSV only; "
    'pip install "canvas-kas[tensorboard]" adds event files'
)


@contextmanager
def open_log(folder: str | os.PathLike[str] | None, fresh: bool) -> Iterator[EpochLog | None]:
    """The log in a folder, which is made if missing; None without a folder.

    Raises CanvasError if it cannot be written, or if it holds a log although the run is `fresh`.
    """
    if folder is None:
        yield None
        return
    with EpochLog(Path(folder)) as log:
        if fresh and log.there:
            raise log.another()
        yield log


class EpochLog:
    """An open log.  `owner`: the study or training that it belongs to, "" if it has no row yet;
    `note`: what the user should know, or "".
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / EPOCHS
        self.owner = ""
        self.note = ""
        self.writers: dict[str, Any] = {}  # event files by run, the latest last
        if folder.exists() and not folder.is_dir():
            raise CanvasError(f"'{folder}' cannot hold a log: it is a file, give a folder")
        with self._writing():
            folder.mkdir(parents=True, exist_ok=True)
            for path in (self.path, folder / CANDIDATES):
                if path.exists() and not path.is_file():
                    raise self._foreign(path)
            self.file = self.path.open("a+b", buffering=0)  # nothing is left to write at its end
        try:
            with self._writing():
                if not try_lock(self.file):
                    raise CanvasError(f"another run writes the log in '{folder}'")
                self.there = self._read()
            self.make_writer = self._find_writer()
        except BaseException:
            self.file.close()
            raise

    def __enter__(self) -> EpochLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self.writers.values():
            with suppress(OSError):  # each event was flushed
                writer.close()
        with suppress(OSError):
            self.file.close()

    # ---- what is there ------------------------------------------------------------------------

    def _read(self) -> set[tuple[str, str]]:
        """The epochs (run, number) of the file; a new file gets its header, and a line that a
        killed run has cut off is removed.
        """
        self.file.seek(0)
        text, header = self.file.read().decode(), line_of(COLUMNS, dict(zip(COLUMNS, COLUMNS)))
        if not text.startswith(header) and not header.startswith(text):
            raise self._foreign(self.path)
        figures = self.folder / CANDIDATES
        if figures.exists() and not figures.read_text(encoding="utf-8").startswith(HEAD):
            raise self._foreign(figures)
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            self.file.truncate(len(whole.encode()))
        if not whole:
            self._append(header)
            os.fsync(self.file.fileno())
        there = set()
        for row in csv.DictReader(io.StringIO(whole)):
            self.owner = self.owner or row["study"] or ""
            there.add((row["run"], row["epoch"]))
        return there

    def _find_writer(self) -> Any:
        """TensorBoard's writer of event files, None if it is not installed, or not usable."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            self.note = NO_EVENTS
            return None
        except Exception as error:  # of a library that it needs, such as protobuf
            self.note = f"TensorBoard fails ({one_line(error)}): --log-dir writes CSV only"
            return None
        return SummaryWriter

    def claim(self, owner: str | None, goes_on: bool = False) -> None:
        """The study or training that goes on, None for a new one; `goes_on`: one that has no name
        yet has rows here all the same.  Raises CanvasError if the log belongs to another.
        """
        nameless = bool(self.there) and not self.owner
        if (self.owner and self.owner != owner) or (nameless and not owner and not goes_on):
            raise self.another()
        self.owner = owner or self.owner

    def another(self) -> CanvasError:
        return CanvasError(
            f"'{self.folder}' holds the log of another study or training: name another --log-dir, "
            "or remove it"
        )

    # ---- what is written ----------------------------------------------------------------------

    def on_epoch(self, event: EpochEvent) -> None:
        """Write an epoch that is not there yet."""
        key = (event.run, str(event.epoch))
        if key in self.there:
            return
        row = {name: getattr(event, name) for name in COLUMNS if name != "study"}
        with self._writing():
            self._append(line_of(COLUMNS, {"study": self.owner, **row}))
            self.there.add(key)
            if self.make_writer is not None:
                writer = self._events(event.run)
                for tag, value in event.metrics.items():
                    writer.add_scalar(tag, value, event.epoch)
                writer.flush()
                if event.epoch == event.epochs:
                    self.writers.pop(event.run).close()

    def summary(self, candidates: Sequence[Candidate]) -> None:
        """Write the figures of all networks; hyperparameters of those whose figures changed."""
        rows = [figures_of(row) for row in candidates]
        path = self.folder / CANDIDATES
        with self._writing():
            known = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
            with at_once(path) as file:
                file.write(HEAD.encode())
                for row in rows:
                    file.write(line_of(FIGURES, row).encode())
            for row in rows:
                new = line_of(FIGURES, row).rstrip("\n") not in known
                if new and row["status"] == "done" and self.make_writer is not None:
                    self._hyperparameters(row)

    def _hyperparameters(self, row: dict[str, Any]) -> None:
        figures = {name: row[name] for name in ("macs", "params", "latency_ms", "speedup")}
        figures |= {f"val_{row['metric']}": row["value"], f"test_{row['metric']}": row["test"]}
        words = {name: row[name] for name in ("kind", "budget", "operators")}
        with self.make_writer(str(self.folder / folder_name(row["name"]))) as writer:
            writer.add_hparams(
                words,
                {name: value for name, value in figures.items() if value is not None},
                run_name=".",
            )

    def _events(self, run: str) -> Any:
        """The writer of a run's event file; the one that was not used for longest is closed."""
        writer = self.writers.pop(run, None) or self.make_writer(str(self.folder / run))
        self.writers[run] = writer
        if len(self.writers) > OPEN:
            self.writers.pop(next(iter(self.writers))).close()
        return writer

    def _append(self, line: str) -> None:
        data = line.encode()
        while data:
            data = data[self.file.write(data) :]

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One message where the log cannot be written."""
        try:
            yield
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise CanvasError(f"the log in '{self.folder}' cannot be written: {reason}") from error

    def _foreign(self, path: Path) -> CanvasError:
        return CanvasError(f"'{path}' is not a log of Canvas: name another --log-dir")


def figures_of(row: Candidate) -> dict[str, Any]:
    """The figures of a network by FIGURES, None for what was not taken."""
    return {
        "name": row.name,
        "kind": row.kind,
        "budget": row.budget,
        "status": row.status,
        "metric": row.metric.name,
        "value": row.val_accuracy,
        "test": row.test_mean,
        "macs": row.macs,
        "params": row.params,
        "latency_ms": row.latency_ms,
        "speedup": row.speedup,
        "operators": kernel_summary(row),
    }


def line_of(columns: Sequence[str], row: dict[str, Any]) -> str:
    """A row as a line of CSV; figures have six digits, what was not taken is empty."""
    cells = [row[name] for name in columns]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(
        f"{cell:.6g}" if isinstance(cell, float) else csv_cell(cell) for cell in cells
    )
    return text.getvalue()

"""A search on a terminal: a table that stays at the bottom, what ended scrolls above it.

    resnet8 on digits-scattered   3:20 of 10:00
    trials 7 of 24, about 5:10 left

    training       epoch   accuracy
    17             3 of 6    91.4 %
    18             1 of 6    40.2 %

    best so far       accuracy   MACs  speed-up  status
    baseline            96.8 %  1.00x            done
    ...
    find 16             94.8 %  0.50x            done     group unfold fc relu

    7 done, 3 pruned, 0 failed

The search calls from its own thread; another draws once a second, so that the clock goes on while
nothing else does.  A line above the table moves it, and rich reckons from its height as it was
drawn last: so whoever writes (the search, the clock, callbacks, warnings, other threads) holds the
one lock from the first reckoning to the last byte.  All text is shown as it is (never as markup)
and on one line; the cursor stays visible, so that even kill -9 leaves a sane terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from rich.console import Console, Group, OverflowMethod, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..metric import Metric
from ..study import ENDED, TRIED, Candidate
from ..text import printable
from .front import find_order
from .lines import Lines
from .progress import Display, candidate_line
from .table import kernel_summary
from .uninterrupted import uninterrupted

PER_SECOND = 1
FINDS = 5  # of the most accurate finds are shown
TRAININGS = 8  # under way are shown, should there be more

COLOURS = {"failed": "red", "done": "green"}


@dataclass
class Training:
    """One that is under way: `epoch` of `epochs` are behind it, `accuracy`, or another
    metric, after the last."""

    name: str
    epochs: int
    epoch: int = 0
    accuracy: float | None = None


def terminal() -> Console:
    """Standard error; NO_COLOR takes the colours away."""
    return Console(stderr=True, highlight=False, emoji=False, markup=False)


class LiveDisplay(Display):
    """`limit` in seconds, `begun` a moment of time.monotonic(); the table appears with the first
    stage and goes when all is over.
    """

    def __init__(self, console: Console, title: str, limit: float | None, begun: float) -> None:
        super().__init__(self.above)
        self.console = console
        self.title = title
        self.limit = limit
        self.begun = begun
        self.rows: dict[str, Candidate] = {}
        self.baseline_macs = 1
        self.metric = Metric()
        self.trainings: dict[str, Training] = {}
        self.stage = ""  # empty: the trials
        self.total = 0
        self.stage_begun = begun
        self.ended_in_stage = 0
        self.later = 0.0  # seconds of the stages after this one
        self.live: Live | None = None
        self.lock = threading.RLock()
        self.over = threading.Event()
        self.streams: dict[
            str, Lines
        ] = {}  # what stands in the place of sys.stderr and sys.stdout

    # ---- what happens -------------------------------------------------------------------------

    def begin(self, candidates: Sequence[Candidate], baseline_macs: int) -> None:
        self.rows = {row.name: row for row in candidates}
        self.baseline_macs = baseline_macs

    def phase(self, text: str, total: int) -> None:
        self.stage, self.total = text.partition(" ")[0].rstrip(":"), total
        self.stage_begun, self.ended_in_stage = time.monotonic(), 0
        if self.live is None:
            self._appear()

    def after(self, seconds: float) -> None:
        self.later = seconds

    def started(self, name: str, epochs: int) -> None:
        self.trainings[name] = Training(name, epochs)

    def judged_by(self, metric: Metric) -> None:
        self.metric = metric

    def epoch(self, name: str, accuracy: float | None) -> None:
        if (training := self.trainings.get(name)) is not None:
            training.epoch, training.accuracy = training.epoch + 1, accuracy

    def ended(self, name: str) -> None:
        self.ended_in_stage += self.trainings.pop(name, None) is not None

    def finished(self, candidate: Candidate, elapsed: float, baseline_macs: int) -> None:
        self.rows[candidate.name] = candidate
        self.ended(candidate.name)
        line = candidate_line(candidate, elapsed, baseline_macs)
        self.above(line, whole=bool(candidate.reason))

    def timed(self, candidate: Candidate) -> None:
        self.rows[candidate.name] = candidate
        self.ended_in_stage += 1

    def close(self) -> None:
        self.over.set()
        for name, lines in self.streams.items():
            if getattr(sys, name) is lines:
                setattr(sys, name, lines.rich_proxied_file)
            lines.finish()
        self.streams = {}
        with self.lock:
            if self.live is not None:
                live, self.live = self.live, None
                with suppress(OSError):  # a terminal that is closed stops nothing
                    live.stop()

    def above(self, text: str, whole: bool = True) -> None:
        """Lines that scroll by above the table: wrapped, or cut to the width."""
        overflow: OverflowMethod = "fold" if whole else "ellipsis"
        with suppress(OSError), uninterrupted(), self.lock:
            for line in text.splitlines() or [""]:
                self.console.print(Text(printable(line)), no_wrap=not whole, overflow=overflow)

    def _appear(self) -> None:
        self.live = Live(
            console=self.console,
            get_renderable=self.picture,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        with uninterrupted(), self.lock:
            self.live.start(refresh=True)
            self.console.show_cursor(True)
        for name in ("stderr", "stdout"):
            if (stream := getattr(sys, name)) is not None and stream.isatty():
                self.streams[name] = Lines(stream, self.above)
                setattr(sys, name, self.streams[name])
        threading.Thread(target=self._tick, daemon=True).start()

    def _tick(self) -> None:
        while not self.over.wait(1 / PER_SECOND):
            self.refresh()

    def refresh(self) -> None:
        """Draw the table as it is now."""
        with suppress(OSError), self.lock:
            if self.live is not None:
                self.live.refresh()

    # ---- the picture --------------------------------------------------------------------------

    def picture(self) -> RenderableType:
        """All of it, from what is known at this moment; drawn from another thread."""
        parts: list[RenderableType] = [Text(), self._head()]
        if trainings := list(self.trainings.values()):
            parts += [Text(), trainings_table(trainings, self.metric)]
        if rows := best_rows(list(self.rows.values())):
            parts += [Text(), self._best(rows)]
        return Group(*parts, Text(), Text(self._counts(), style="dim"))

    def _head(self) -> Text:
        now = time.monotonic()
        limit = "" if self.limit is None else f" of {clock(self.limit)}"
        head = f"{printable(self.title)}   {clock(now - self.begun)}{limit}"
        done, todo = self._progress()
        words = f"\n{self.stage or 'trials'} {done} of {self.total}"
        left = self._left(now, todo)
        words += "" if left is None else f", about {clock(left)} left"
        if left is not None and self.later:
            words += f", {clock(self._within(now, left + self.later))} with all that follows"
        return Text.assemble((head, "bold"), words)

    def _progress(self) -> tuple[int, int]:
        """How many of `total` are done, and how many endings are still to come."""
        if self.stage:
            return self.ended_in_stage, self.total - self.ended_in_stage
        rows = list(self.rows.values())
        done = sum(row.kind == "find" and row.status in TRIED for row in rows)
        controls = sum(row.kind != "find" and row.status not in ENDED for row in rows)
        return done, self.total - done + controls

    def _left(self, now: float, todo: int) -> float | None:
        """Seconds that this stage may still take, by its pace so far; None while unknown."""
        if todo <= 0 or not self.ended_in_stage:
            return None
        return self._within(now, (now - self.stage_begun) / self.ended_in_stage * todo)

    def _within(self, now: float, seconds: float) -> float:
        """No more than the time limit leaves."""
        if self.limit is None:
            return seconds
        return max(0.0, min(seconds, self.limit - now + self.begun))

    def _best(self, rows: Sequence[Candidate]) -> Table:
        table = columns("best so far", self.metric.name, "MACs", "speed-up", "status")
        table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1, style="dim")
        table.expand = True  # with a ratio: the last column has what the others leave
        for row in rows:
            status = row.status if row.status in ENDED else "waiting"
            if row.name in self.trainings:
                status = "training"
            table.add_row(
                Text(printable(f"find {row.name}" if row.kind == "find" else row.name)),
                score(row),
                "" if row.macs is None else f"{row.macs / self.baseline_macs:.2f}x",
                "" if row.speedup is None else f"{row.speedup:.2f}x",
                Text(status, style=COLOURS.get(status, "")),
                Text(kernel_summary(row) if row.kind == "find" else printable(row.reason)),
            )
        return table

    def _counts(self) -> str:
        finds = [row.status for row in list(self.rows.values()) if row.kind == "find"]
        counts = [f"{finds.count(status)} {status}" for status in ENDED]
        return "finds: " + ", ".join(counts)


def best_rows(rows: Sequence[Candidate]) -> list[Candidate]:
    """Baseline, controls, and the most accurate finds."""
    finds = [row for row in rows if row.kind == "find" and row.status == "done"]
    return [row for row in rows if row.kind != "find"] + sorted(finds, key=find_order)[:FINDS]


def trainings_table(trainings: Sequence[Training], metric: Metric) -> Table:
    table = columns("training", "epoch", metric.name)
    for training in trainings[:TRAININGS]:
        epoch = f"{min(training.epoch + 1, training.epochs)} of {training.epochs}"
        reached = "" if training.accuracy is None else metric.text(training.accuracy)
        table.add_row(Text(printable(training.name)), epoch, reached)
    if len(trainings) > TRAININGS:
        table.add_row(f"and {len(trainings) - TRAININGS} more")
    return table


def columns(first: str, *others: str) -> Table:
    """A table without lines; figures end flush."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True, min_width=19)
    for name in others:
        table.add_column(name, no_wrap=True, justify="left" if name == "status" else "right")
    return table


def score(row: Candidate) -> str:
    """What a row that is done was judged by."""
    done = row.status == "done" and row.val_accuracy is not None
    return row.metric.text(row.val_accuracy) if done else ""


def clock(seconds: float) -> str:
    """1:05 or 2:03:04."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

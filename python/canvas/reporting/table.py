"""Rows of a search as a table of text."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Sequence

from ..study import Candidate
from ..text import printable
from .front import speed, title

MARKS = {"compiled": " (c)", "native": " (n)", "gpu-compiled": " (c)", "gpu-graph": " (g)"}
SHOWN = 16  # primitives of a kernel that a line of a table names
ROLES = {  # of the networks of a fit
    "teacher": "your network",
    "tuned": "your network, trained on",
    "mix": "a choice per layer, drawn kernels in the menu",
    "controls": "a choice per layer of known operators",
    "single": "one known operator everywhere",
}


def table(
    rows: Sequence[Candidate], picked: Candidate | None = None, width: int | None = None
) -> str:
    """The rows as text, the one to take with a star; a row that failed has its reason instead of
    figures.  Where a line would be longer than `width`, its last column is cut, never a figure.
    """
    lines = table_cells(rows, picked)
    return align(lines, right=set(range(1, len(lines[0]) - 1)), width=width)


def table_cells(rows: Sequence[Candidate], picked: Candidate | None = None) -> list[list[str]]:
    """The head and the rows of the table as cells; the names are in the first column, what the
    rows consist of in the last, and between them numbers.
    """
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    tested = any(row.tests for row in rows)
    name = rows[0].metric.name if rows else "accuracy"
    head = ["  candidate", name, "test", "latency", "speed-up", "MACs", "", "params", ""]
    body = [_cells(row, baseline, picked) for row in rows]
    lines = [[*head, "primitives"], *body]
    return lines if tested else [line[:2] + line[3:] for line in lines]


def terminal_width() -> int | None:
    """Columns of the terminal that standard output is; None where it is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def _cells(row: Candidate, baseline: Candidate | None, picked: Candidate | None) -> list[str]:
    name = ("* " if row is picked else "  ") + title(row)
    if row.status != "done":
        return [name, row.status, *[""] * 7, row.reason]
    return [
        name,
        row.metric.text(row.val_accuracy),
        test_cell(row),
        _latency(row),
        speed(row),
        short(row.macs),
        ratio_of(row.macs, baseline.macs if baseline else None),
        short(row.params),
        ratio_of(row.params, baseline.params if baseline else None),
        kernel_summary(row),
    ]


def test_cell(row: Candidate) -> str:
    """The metric on the test split, the mean over the seeds +- standard deviation."""
    return row.metric.text(row.test_mean, row.test_spread)


def _latency(row: Candidate) -> str:
    if row.latency_ms is None:
        return "-"
    engine = MARKS.get(row.engine, "")
    return (
        f"{milliseconds(row.latency_ms)} ms +- {milliseconds(row.latency_spread_ms or 0)}{engine}"
    )


def milliseconds(value: float) -> str:
    """Two digits behind the point, three below a tenth."""
    return f"{value:.2f}" if value >= 0.1 or value == 0 else f"{value:.3f}"


def ratio_of(value: int | None, base: int | None) -> str:
    """0.5 as 0.50x."""
    return f"{value / base:.2f}x" if value is not None and base else "-"


def short(value: int | None) -> str:
    """1234567 as 1.23 M."""
    if value is None:
        return "-"
    for limit, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return str(value)


def align(
    rows: Sequence[Sequence[str]], right: Iterable[int] = (), width: int | None = None
) -> str:
    """Rows of cells as lines with two blanks between columns; columns in `right` end flush, the
    last one is cut where a line would be longer than `width`.  What would not stand on one line
    of a terminal is escaped.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    if width is not None:
        room = max(0, width - sum(widths[:-1]) - 2 * len(widths[:-1]))
        rows = [[*row[:-1], shortened(row[-1], room)] for row in rows]
    flush = set(right)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in flush else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )


def shortened(text: str, room: int) -> str:
    """At most `room` characters of a text; dots stand for what is cut."""
    if len(text) <= room:
        return text
    return text[: room - 4] + " ..." if room > 4 else "..."[:room]


def kernel_summary(row: Candidate) -> str:
    """The primitives of a find in order, as `unfold fc relu`; what a control or the baseline
    is.
    """
    if row.role:
        return ROLES[row.role]
    if row.kind == "baseline":
        return "the unchanged network"
    names = primitives(row.kernel)
    if len(names) > SHOWN:
        return " ".join(names[:SHOWN]) + f" ... ({len(names)} primitives)"
    return " ".join(names) or "input = output"


def primitives(kernel: str) -> list[str]:
    """Names of the primitives in a kernel text, in the order of its lines, without input and
    out.
    """
    found = re.findall(r"^\s*\w+\s*=\s*(\w+)", kernel, re.MULTILINE)
    return [name for name in found if name != "input"]

"""What a search found: the table, one honest sentence, and files.

    DIR/pareto.csv              the table: baseline, controls, finds on the front
    DIR/find-0017/kernel.txt    per finished find: kernel text,
                 /pack.txt      kernel text with the sizes of every layer,
                 /kernel.py     PyTorch code, which runs without canvas

MACs, parameters and latency are the whole network's and ratios are to the unchanged network.  A
find is on the front if no other find is at least as accurate, as fast and as small in MACs, and
better in one of the three.  Everything comes from the study, so the report can be made again at
any time.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from . import _core
from .study import Candidate, Study

COLUMNS = (
    "candidate",
    "kind",
    "val_accuracy",
    "latency_ms",
    "macs",
    "params",
    "macs_ratio",
    "params_ratio",
    "speedup",
)


SHOWN = 16  # primitives of a kernel that a line of a table names


@dataclass(frozen=True)
class Report:
    """The result of a search: `rows` of the table (baseline, controls, finds on the front),
    sentence, text.

    `str(report)` is what the command prints.
    """

    folder: Path
    rows: Sequence[Candidate]
    sentence: str
    text: str
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def front(self) -> list[Candidate]:
        """The finds on the front, most accurate first; `.pack` of each is the text for
        `canvas.KernelPack`.
        """
        return [row for row in self.rows if row.kind == "find"]

    def __str__(self) -> str:
        return self.text


def write_report(study: Study, ended: str = "") -> Report:
    """Make the report of a study and write its files; `ended` says why a search stopped
    early.
    """
    report = make_report(study, ended)
    write_finds(study)
    write_atomically(study.folder / "pareto.csv", pareto_csv(report.rows))
    return report


def make_report(study: Study, ended: str = "") -> Report:
    rows = table_rows(study.candidates())
    images = study.validation_images()
    words = sentence(study.candidates(), images)
    counts = trial_counts(study)
    batch = study.options().get("latency_batch", 1)
    lines = [
        f"Of the whole network: accuracy on {images} validation images, latency of a forward at "
        f"batch {batch} (one thread, CPU time, median +- interquartile range), ratios to the "
        "unchanged network.",
        "",
        table(rows),
        "",
        counts_line(study, counts),
    ]
    lines += [ended[:1].upper() + ended[1:] + "."] if ended else []
    lines.append(words)
    return Report(study.folder, rows, words, "\n".join(lines), counts)


# ---- rows -------------------------------------------------------------------------------------


def table_rows(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Baseline, controls in their order, finds on the front by falling accuracy."""
    finds = front([row for row in candidates if row.kind == "find" and row.status == "done"])
    finds.sort(key=lambda row: (-(row.val_accuracy or 0), row.macs or 0, row.id))
    return (
        [row for row in candidates if row.kind == "baseline"]
        + [row for row in candidates if row.kind == "control"]
        + finds
    )


def front(finds: Sequence[Candidate]) -> list[Candidate]:
    """The finds that no other find dominates in accuracy, latency and MACs."""
    return [row for row in finds if not any(dominates(other, row) for other in finds)]


def dominates(a: Candidate, b: Candidate) -> bool:
    """Whether `a` is nowhere worse than `b` and somewhere better; a latency not taken counts as
    endless.
    """
    ours, theirs = _objectives(a), _objectives(b)
    return ours != theirs and all(x <= y for x, y in zip(ours, theirs))


def _objectives(row: Candidate) -> tuple[float, float, float]:
    """What is minimised.  Latency is compared as ratio to the unchanged network timed beside
    it.
    """
    slow = math.inf if not row.speedup else 1 / row.speedup
    return (-(row.val_accuracy or 0.0), slow, float(row.macs or 0))


# ---- the sentence -----------------------------------------------------------------------------


def sentence(candidates: Sequence[Candidate], images: int) -> str:
    """Whether a find beat the best control of no more MACs than the find has, and by how much.

    The most accurate find decides.  If it lost but another find beat its own best control, both
    are told.  `images`, the size of the validation split, gives the standard error.
    """
    done = [row for row in candidates if row.status == "done" and row.val_accuracy is not None]
    finds = sorted(
        (row for row in done if row.kind == "find"),
        key=lambda row: (-(row.val_accuracy or 0), row.macs or 0),
    )
    controls = [row for row in done if row.kind == "control"]
    baseline = next((row for row in done if row.kind == "baseline"), None)
    if baseline is None:
        return "No comparison: the unchanged network was not trained."
    if not finds:
        return "No find: no drawn kernel was trained to the end."
    pairs = [(find, best_control(find, controls)) for find in finds]
    fair = [(find, control) for find, control in pairs if control is not None]
    if not fair:
        return f"No comparison: no control has as few MACs as {_named(finds[0], baseline)}."
    first = _compared(*fair[0], baseline, images)
    if _points(*fair[0]) > 0:
        return f"A find beat the best control of no more MACs: {first}."
    better = next((pair for pair in fair if _points(*pair) > 0), None)
    if better is None:
        return f"No find beat the best control of no more MACs: the most accurate, {first}."
    second = _compared(*better, baseline, images)
    return (
        "The most accurate find did not beat the best control of no more MACs: "
        f"{first}; but {second}."
    )


def _compared(find: Candidate, control: Candidate, baseline: Candidate, images: int) -> str:
    points = _points(find, control)
    how = f"is {_amount(points)} points above" if points > 0 else "only equals"
    if points < 0:
        how = f"stays {_amount(-points)} points below"
    return (
        f"{_named(find, baseline)} {how} {_named(control, baseline)}, "
        f"standard error {_standard_error(find, control, images):.1f}"
    )


def best_control(find: Candidate, controls: Iterable[Candidate]) -> Candidate | None:
    """The most accurate control that has no more MACs than the find."""
    fair = [row for row in controls if (row.macs or 0) <= (find.macs or 0)]
    return max(fair, key=lambda row: row.val_accuracy or 0.0, default=None)


def _points(a: Candidate, b: Candidate) -> float:
    return 100 * ((a.val_accuracy or 0.0) - (b.val_accuracy or 0.0))


def _named(row: Candidate, baseline: Candidate) -> str:
    name = f"find {row.name}" if row.kind == "find" else row.name
    ratio = (row.macs or 0) / (baseline.macs or 1)
    return f"{name} ({100 * (row.val_accuracy or 0):.1f} % at {ratio:.2f}x of the MACs)"


def _amount(points: float) -> str:
    return f"{points:.1f}" if points >= 0.1 else f"{points:.1g}"


def _standard_error(a: Candidate, b: Candidate, images: int) -> float:
    """Of the difference of two accuracies measured on as many images, in points."""
    shares = [row.val_accuracy or 0.0 for row in (a, b)]
    return 100 * math.sqrt(sum(p * (1 - p) for p in shares) / max(images, 1))


# ---- the table --------------------------------------------------------------------------------


def table(rows: Sequence[Candidate]) -> str:
    """The rows as text; a row that failed has its reason instead of figures."""
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    head = ["candidate", "accuracy", "latency", "speed-up", "MACs", "", "params", "", "primitives"]
    body = [_cells(row, baseline) for row in rows]
    return align([head, *body], right={1, 2, 3, 4, 5, 6, 7})


def _cells(row: Candidate, baseline: Candidate | None) -> list[str]:
    name = row.name if row.kind != "find" else f"find {row.name}"
    if row.status != "done":
        return [name, row.status, "", "", "", "", "", "", row.reason]
    latency = (
        "-"
        if row.latency_ms is None
        else f"{row.latency_ms:.2f} ms +- {row.latency_spread_ms or 0:.2f}"
    )
    speedup = "-" if row.speedup is None else f"{row.speedup:.2f}x"
    return [
        name,
        f"{100 * (row.val_accuracy or 0):.1f} %",
        latency,
        speedup,
        short(row.macs),
        _ratio(row.macs, baseline.macs if baseline else None),
        short(row.params),
        _ratio(row.params, baseline.params if baseline else None),
        kernel_summary(row),
    ]


def _ratio(value: int | None, base: int | None) -> str:
    return f"{value / base:.2f}x" if value is not None and base else "-"


def short(value: int | None) -> str:
    """1234567 as 1.23 M."""
    if value is None:
        return "-"
    for limit, unit in ((10**9, " G"), (10**6, " M"), (10**3, " k")):
        if value >= limit:
            return f"{value / limit:.3g}{unit}"
    return str(value)


def align(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Rows of cells as lines with two blanks between columns; columns in `right` end flush."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    flush = set(right)
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i in flush else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )


def kernel_summary(row: Candidate) -> str:
    """The primitives of a find in order, as `unfold fc relu`; what a control or the baseline
    is.
    """
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


# ---- counts -----------------------------------------------------------------------------------


def trial_counts(study: Study) -> dict[str, int]:
    """Finds by status, draws without a candidate by outcome."""
    counts = dict.fromkeys(("done", "pruned", "failed", "new", "running"), 0)
    for row in study.candidates("kind = 'find'"):
        counts[row.status] += 1
    draws = study.draw_counts()
    for outcome in ("skipped", "duplicate", "unsolved"):
        counts[outcome] = draws.get(outcome, 0)
    return counts


def counts_line(study: Study, counts: dict[str, int]) -> str:
    trials = counts["done"] + counts["pruned"] + counts["failed"]
    line = (
        f"{trials} trials: {counts['done']} trained to the end, {counts['pruned']} pruned, "
        f"{counts['failed']} failed. Of the draws {counts['skipped']} were skipped, "
        f"{counts['duplicate']} were there already, {counts['unsolved']} did not fit the budget."
    )
    kinds: dict[str, int] = {}
    for row in study.candidates("kind = 'find' AND status = 'failed'"):
        kind = row.reason.partition(":")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
    if kinds:
        line += (
            " Failures: "
            + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            + "."
        )
    return line


# ---- files ------------------------------------------------------------------------------------


def pareto_csv(rows: Sequence[Candidate]) -> str:
    """The finished rows of the table as CSV; val_accuracy in 0..1, a latency that was not taken
    is empty.
    """
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        if row.status != "done":
            continue
        base_macs = baseline.macs if baseline else None
        base_params = baseline.params if baseline else None
        writer.writerow(
            [
                row.name,
                row.kind,
                _figure(row.val_accuracy),
                _figure(row.latency_ms),
                row.macs,
                row.params,
                _figure(row.macs / base_macs if row.macs is not None and base_macs else None),
                _figure(
                    row.params / base_params if row.params is not None and base_params else None
                ),
                _figure(row.speedup),
            ]
        )
    return text.getvalue()


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def find_folder(row: Candidate) -> str:
    return f"find-{int(row.name):04d}"


def write_finds(study: Study) -> None:
    """One folder per find that was trained to the end."""
    for row in study.candidates("kind = 'find' AND status = 'done'"):
        folder = study.folder / find_folder(row)
        if (folder / "pack.txt").exists():
            continue
        folder.mkdir(exist_ok=True)
        write_atomically(folder / "kernel.txt", row.kernel)
        write_atomically(folder / "kernel.py", _core.torch_code(row.pack))
        write_atomically(folder / "pack.txt", row.pack)


def write_atomically(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)

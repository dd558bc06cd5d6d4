"""What a search found: the table, one honest conclusion, and files.

    DIR/pareto.csv              the table: baseline, controls, finds on the front
    DIR/find-0017/kernel.txt    per finished find: kernel text,
                 /pack.txt      kernel text with the sizes of every layer,
                 /kernel.py     PyTorch code, which runs without canvas

MACs, parameters and latency are the whole network's and ratios are to the unchanged network.  A
find is on the front if no other find is at least as good in accuracy and every other objective,
and better in one.  Where finalists were scored on the test split, that figure decides what is
said; otherwise it is the validation split's.  Everything comes from the study, so the report can
be made again at any time.
"""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import _core
from ..files import at_once, folder_at_once
from ..study import ENDED, TRIED, Candidate, Study
from ..text import printable

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
    "engine",
    "test_accuracy",
    "test_spread",
    "budget",
    "picked",
)
OBJECTIVES = "latency,macs"
PICK = "fastest within 1.0"

SHOWN = 16  # primitives of a kernel that a line of a table names


@dataclass(frozen=True)
class Report:
    """The result of a search: `rows` of the table (baseline, controls, finds on the front),
    conclusion, text.

    `str(report)` is what the command prints.
    """

    folder: Path
    rows: Sequence[Candidate]
    conclusion: str
    text: str
    counts: dict[str, int] = field(default_factory=dict)
    picked: Candidate | None = None

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
    write_atomically(study.folder / "pareto.csv", pareto_csv(report.rows, report.picked))
    return report


def make_report(study: Study, ended: str = "") -> Report:
    options = study.options()
    rows = table_rows(study.candidates(), options.get("objectives", OBJECTIVES))
    rule = options.get("pick", PICK)
    picked = pick(rows, rule)
    words = printable(conclusion(study.candidates(), study.validation_images()))
    counts = trial_counts(study)
    below = [pick_line(rule, rows, picked), counts_line(study, counts)]
    below += [ended[:1].upper() + ended[1:] + "."] if ended else []
    lines = [*map(printable, head_lines(study, options, rows)), "", table(rows, picked), ""]
    lines += [*map(printable, below), words]
    return Report(study.folder, rows, words, "\n".join(lines), counts, picked)


def head_lines(study: Study, options: dict[str, Any], rows: Sequence[Candidate]) -> list[str]:
    """What the figures of the table are, and where they were taken."""
    machine = study.machine()
    made_up = str(study.fact("data")).startswith("synthetic")
    data = "synthetic images" if made_up else options.get("data", "")
    lines = [
        f"{options.get('model', '')} on {data}, of the whole network: accuracy "
        f"on {study.validation_images()} validation images; latency of a forward at batch "
        f"{options.get('latency_batch', 1)} (float32, one thread, CPU time, median +- "
        f"interquartile range, {machine.get('processor', 'unknown processor')}); ratios to the "
        "unchanged network."
    ]
    seeds = max((len(row.tests) for row in rows), default=0)
    if seeds:
        lines.append(
            f"Test: the finalists' and the controls' mean over {seeds} seeds +- standard "
            f"deviation, on {study.fact('test_images')} images that the search has not seen."
        )
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    timings = {timing.engine: timing for timing in study.timings(baseline.id)} if baseline else {}
    if "compiled" in timings:
        lines.append(compiled_line(timings["compiled"].reason, timings))
    return lines


def compiled_line(reason: str, timings: dict[str, Any]) -> str:
    """What torch.compile makes of the unchanged network."""
    if reason:
        return (
            f"The unchanged network could not be compiled ({reason}): speed-ups are against it "
            "as it is."
        )
    eager, fast = timings["eager"], timings["compiled"]
    return (
        f"The unchanged network takes {eager.latency_ms:.2f} ms eagerly and "
        f"{fast.latency_ms:.2f} ms under torch.compile; speed-ups are against the faster "
        f"({fast.against}). (c): compiled."
    )


# ---- rows -------------------------------------------------------------------------------------


def table_rows(candidates: Sequence[Candidate], objectives: str = OBJECTIVES) -> list[Candidate]:
    """Baseline, controls in their order, finds on the front and finalists by falling accuracy."""
    finds = [row for row in candidates if row.kind == "find" and row.status == "done"]
    best = {row.id for row in front(finds, objectives)}
    shown = [row for row in finds if row.id in best or row.tests]
    return (
        [row for row in candidates if row.kind == "baseline"]
        + [row for row in candidates if row.kind == "control"]
        + sorted(shown, key=find_order)
    )


def find_order(row: Candidate) -> tuple[float, int, int]:
    """The most accurate find first; of equals the one with fewer MACs, then the older."""
    return (-(row.val_accuracy or 0.0), row.macs or 0, row.id)


def front(finds: Sequence[Candidate], objectives: str = OBJECTIVES) -> list[Candidate]:
    """The finds that no other find dominates in accuracy and `objectives` (latency, macs,
    params).
    """
    return [row for row in finds if not any(dominates(other, row, objectives) for other in finds)]


def dominates(a: Candidate, b: Candidate, objectives: str = OBJECTIVES) -> bool:
    """Whether `a` is nowhere worse than `b` and somewhere better; a latency not taken counts as
    endless.
    """
    ours, theirs = costs(a, objectives), costs(b, objectives)
    return ours != theirs and all(x <= y for x, y in zip(ours, theirs))


def costs(row: Candidate, objectives: str) -> list[float]:
    """What is minimised.  Latency is compared as ratio to the unchanged network timed beside
    it.
    """
    by_name = {
        "latency": math.inf if not row.speedup else 1 / row.speedup,
        "macs": float(row.macs or 0),
        "params": float(row.params or 0),
    }
    return [-(row.val_accuracy or 0.0), *(by_name[name] for name in objectives.split(","))]


# ---- the row to take --------------------------------------------------------------------------


def accuracy(row: Candidate) -> float:
    """What a row is judged by: its mean on the test split if it was a finalist, else validation;
    0..1.
    """
    return row.test_mean if row.test_mean is not None else row.val_accuracy or 0.0


def judged(rows: Iterable[Candidate]) -> list[Candidate]:
    """The finished rows that can be compared with each other: the finalists and controls where
    there are finals, else all.
    """
    done = [row for row in rows if row.status == "done" and row.val_accuracy is not None]
    return [row for row in done if row.tests] or done


def pick(rows: Sequence[Candidate], rule: str) -> Candidate | None:
    """The row to take by `rule`, such as `fastest within 1.0`: of all rows, controls and the
    unchanged network included, whose accuracy is at most so many points below the unchanged
    network's.  None while the unchanged network is not trained.
    """
    word, _, points = rule.partition(" within ")
    fair = judged(rows)
    baseline = next((row for row in fair if row.kind == "baseline"), None)
    if baseline is None:
        return None
    worst = accuracy(baseline) - float(points) / 100 if points else 0.0
    enough = [row for row in fair if accuracy(row) >= worst - 1e-9]
    cheap: dict[str, Callable[[Candidate], float]] = {
        "fastest": lambda row: -(row.speedup or 0.0),
        "fewest-macs": lambda row: row.macs or 0,
        "fewest-params": lambda row: row.params or 0,
        "most-accurate": lambda row: -accuracy(row),
    }
    return min(enough, key=lambda row: (cheap[word](row), -accuracy(row), row.id))


def pick_line(rule: str, rows: Sequence[Candidate], picked: Candidate | None) -> str:
    """The rule, and the row that it chose."""
    word, _, points = rule.partition(" within ")
    split = "test" if any(row.tests for row in rows) else "validation"
    limit = (
        f" within {points} points of the unchanged network on the {split} split" if points else ""
    )
    if picked is None:
        return f"* {word}{limit}: no row, the unchanged network was not trained."
    name = f"find {picked.name}" if picked.kind == "find" else picked.name
    kept = " (nothing beats it)" if picked.kind == "baseline" else ""
    return f"* {word}{limit}: {name}{kept}."


# ---- the conclusion ---------------------------------------------------------------------------


def conclusion(candidates: Sequence[Candidate], images: int) -> str:
    """Whether a find beat the best control of no more MACs than the find has, and by how much.

    The most accurate find decides.  If it lost but another find beat its own best control, both
    are told.  Without finals `images`, the size of the validation split, gives the standard
    error.
    """
    rows = judged(candidates)
    finds = sorted(
        (row for row in rows if row.kind == "find"),
        key=lambda row: (-accuracy(row), row.macs or 0),
    )
    controls = [row for row in rows if row.kind == "control"]
    baseline = next((row for row in rows if row.kind == "baseline"), None)
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
        f"{_standard_error(find, control, images)}"
    )


def best_control(find: Candidate, controls: Iterable[Candidate]) -> Candidate | None:
    """The most accurate control that has no more MACs than the find."""
    fair = [row for row in controls if (row.macs or 0) <= (find.macs or 0)]
    return max(fair, key=accuracy, default=None)


def _points(a: Candidate, b: Candidate) -> float:
    return 100 * (accuracy(a) - accuracy(b))


def _named(row: Candidate, baseline: Candidate) -> str:
    name = f"find {row.name}" if row.kind == "find" else row.name
    ratio = (row.macs or 0) / (baseline.macs or 1)
    return f"{name} ({100 * accuracy(row):.1f} % at {ratio:.2f}x of the MACs)"


def _amount(points: float) -> str:
    return f"{points:.1f}" if points >= 0.1 else f"{points:.1g}"


def _standard_error(a: Candidate, b: Candidate, images: int) -> str:
    """Of the difference, in points: over the seeds of the finals, else of two accuracies measured
    on as many images.
    """
    if a.test_spread is not None and b.test_spread is not None:
        error = 100 * math.hypot(
            a.test_spread / math.sqrt(len(a.tests)), b.test_spread / math.sqrt(len(b.tests))
        )
        return f"standard error over the seeds {error:.1f}"
    shares = [accuracy(row) for row in (a, b)]
    error = 100 * math.sqrt(sum(p * (1 - p) for p in shares) / max(images, 1))
    return f"standard error {error:.1f}"


# ---- the table --------------------------------------------------------------------------------


def table(rows: Sequence[Candidate], picked: Candidate | None = None) -> str:
    """The rows as text, the one to take with a star; a row that failed has its reason instead of
    figures.
    """
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    tested = any(row.tests for row in rows)
    head = ["  candidate", "accuracy", "test", "latency", "speed-up", "MACs", "", "params", ""]
    body = [_cells(row, baseline, picked) for row in rows]
    lines = [[*head, "primitives"], *body]
    if not tested:
        lines = [line[:2] + line[3:] for line in lines]
    return align(lines, right=set(range(1, len(lines[0]) - 1)))


def _cells(row: Candidate, baseline: Candidate | None, picked: Candidate | None) -> list[str]:
    star = "* " if row is picked else "  "
    name = star + (row.name if row.kind != "find" else f"find {row.name}")
    if row.status != "done":
        return [name, row.status, *[""] * 7, row.reason]
    return [
        name,
        f"{100 * (row.val_accuracy or 0):.1f} %",
        _test(row),
        _latency(row),
        "-" if row.speedup is None else f"{row.speedup:.2f}x",
        short(row.macs),
        _ratio(row.macs, baseline.macs if baseline else None),
        short(row.params),
        _ratio(row.params, baseline.params if baseline else None),
        kernel_summary(row),
    ]


def _test(row: Candidate) -> str:
    if row.test_mean is None:
        return "-"
    spread = "" if row.test_spread is None else f" +- {100 * row.test_spread:.1f}"
    return f"{100 * row.test_mean:.1f} %{spread}"


def _latency(row: Candidate) -> str:
    if row.latency_ms is None:
        return "-"
    engine = " (c)" if row.engine == "compiled" else ""
    return f"{row.latency_ms:.2f} ms +- {row.latency_spread_ms or 0:.2f}{engine}"


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
    """Rows of cells as lines with two blanks between columns; columns in `right` end flush.
    What would not stand on one line of a terminal is escaped.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
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
    counts = dict.fromkeys((*ENDED, "waiting", "new", "running"), 0)
    for row in study.select("find"):
        counts[row.status] += 1
    draws = study.draw_counts()
    for outcome in ("skipped", "duplicate", "unsolved"):
        counts[outcome] = draws.get(outcome, 0)
    return counts


def counts_line(study: Study, counts: dict[str, int]) -> str:
    trials = sum(counts[status] for status in TRIED)
    line = (
        f"{trials} trials: {counts['done']} trained to the end, {counts['pruned']} pruned, "
        f"{counts['failed']} failed. Of the draws {counts['skipped']} were skipped, "
        f"{counts['duplicate']} were there already, {counts['unsolved']} did not fit the budget."
    )
    kinds: dict[str, int] = {}
    for row in study.select("find", "failed"):
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


def pareto_rows(
    rows: Sequence[Candidate], picked: Candidate | None = None
) -> list[dict[str, Any]]:
    """The finished rows of the table by COLUMNS: accuracies in 0..1, None for what was not
    taken.
    """
    baseline = next((row for row in rows if row.kind == "baseline"), None)

    def ratio(value: int | None, base: int | None) -> float | None:
        return value / base if value is not None and base else None

    return [
        {
            "candidate": row.name,
            "kind": row.kind,
            "val_accuracy": row.val_accuracy,
            "latency_ms": row.latency_ms,
            "macs": row.macs,
            "params": row.params,
            "macs_ratio": ratio(row.macs, baseline.macs if baseline else None),
            "params_ratio": ratio(row.params, baseline.params if baseline else None),
            "speedup": row.speedup,
            "engine": row.engine,
            "test_accuracy": row.test_mean,
            "test_spread": row.test_spread,
            "budget": row.budget,
            "picked": row is picked,
        }
        for row in rows
        if row.status == "done"
    ]


def pareto_csv(rows: Sequence[Candidate], picked: Candidate | None = None) -> str:
    """The finished rows of the table as CSV; accuracies in 0..1, what was not taken is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in pareto_rows(rows, picked):
        row["picked"] = "*" if row["picked"] else ""
        writer.writerow({name: _csv_cell(value) for name, value in row.items()})
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    """A figure with six digits, a text on one line."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return printable(value) if isinstance(value, str) else value


FIND_FILES = ("kernel.txt", "kernel.py", "pack.txt")


def find_folder(row: Candidate) -> str:
    return f"find-{int(row.name):04d}"


def write_finds(study: Study) -> None:
    """One folder per find that was trained to the end."""
    for row in study.select("find", "done"):
        folder = study.folder / find_folder(row)
        if (folder / "pack.txt").exists():
            continue
        if folder.is_dir() and {file.name for file in folder.iterdir()} < set(FIND_FILES):
            shutil.rmtree(folder)  # an older canvas was killed while it wrote
        code = _core.torch_code(row.pack)
        with folder_at_once(folder) as new:
            for name, text in zip(FIND_FILES, (row.kernel, code, row.pack)):
                (new / name).write_text(text, encoding="utf-8")


def write_atomically(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    with at_once(path) as file:
        file.write(text.encode())

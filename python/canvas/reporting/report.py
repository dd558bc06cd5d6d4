"""What a search or a fit found: one honest conclusion, the table, and files.

    DIR/pareto.csv              the table: baseline, controls, finds on the front
    DIR/find-0017/kernel.txt    per finished find: kernel text,
                 /pack.txt      kernel text with the sizes of every layer,
                 /kernel.py     PyTorch code, which runs without canvas
    DIR/budget-1/...            of a fit, per budget: pack.txt, kernel.py, weights.safetensors

MACs, parameters and latency are the whole network's and ratios are to the unchanged network.
front.py says what is on the front and which row to take, verdict.py what is concluded, table.py
draws.  Everything comes from the study, so the report can be made again at any time.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import _core
from ..files import at_once, folder_at_once
from ..metric import Metric
from ..stored_options import FIT, command_of
from ..study import ENDED, FIND_FILES, TRIED, WEIGHTS_NAME, Candidate, Study, Timing, weights_file
from ..study.gain import gain_line
from ..text import csv_cell, printable, several
from .fit_text import (
    MIX,
    best_of,
    fit_conclusion,
    fit_counts_line,
    fit_head_lines,
    fit_rows,
    fit_table,
)
from .front import OBJECTIVES, chosen_finds, find_order, front, pick, pick_line
from .next_steps import find_folder, fit_steps, result_folder, search_steps
from .table import milliseconds, table, terminal_width
from .verdict import Evidence, conclusion

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
    "speedup_spread",
    "engine",
    "against",
    "test_accuracy",
    "test_spread",
    "budget",
    "picked",
    "front",
    "chosen",
    "metric",
    "unit",
)
PICK = "fastest within 1.0"
PICK_UNTIMED = "fewest-macs within 1.0"


@dataclass(frozen=True)
class Report:
    """The result of a search: `rows` of the table (baseline, controls, finds on the front and
    finalists), conclusion, text.  `on_front` are the ids of all rows on the front, `chosen` the
    finds that the conclusion is about, one for each budget, `best_finds` the finds that
    validation puts first, one for each budget: a fit may have chosen known operators.

    `str(report)` and the two lines of `next_steps` are what the command prints.
    """

    folder: Path
    rows: Sequence[Candidate]
    conclusion: str
    text: str
    counts: dict[str, int] = field(default_factory=dict)
    picked: Candidate | None = None
    on_front: frozenset[int] = frozenset()
    chosen: Sequence[Candidate] = ()
    best_finds: Sequence[Candidate] = ()
    next_steps: tuple[str, str] = ("", "")

    @property
    def front(self) -> list[Candidate]:
        """The finds on the front, most accurate first; `.pack` of each is the text for
        `canvas.KernelPack`.  Empty where controls dominate them all: `chosen` is there anyway.
        """
        return [row for row in self.rows if row.kind == "find" and row.id in self.on_front]

    def __str__(self) -> str:
        return self.text


def write_report(study: Study, ended: str = "") -> Report:
    """Make the report of a study and write its files; `ended` says why a search stopped
    early.
    """
    report = make_report(study, ended)
    if command_of(study.options()) == FIT:
        write_results(study, report)
    else:
        write_finds(study)
    write_atomically(study.folder / "pareto.csv", pareto_csv(report))
    return report


def make_report(study: Study, ended: str = "") -> Report:
    options, candidates = study.options(), study.candidates()
    if command_of(options) == FIT:
        return _fit_report(study, options, candidates, ended)
    objectives = options.get("objectives", OBJECTIVES)
    rows = table_rows(candidates, objectives)
    rule = rule_of(options, study.metric)
    picked = pick(rows, rule)
    words = printable(conclusion(candidates, Evidence.of(study)))
    counts = trial_counts(study)
    below = [pick_line(rule, rows, picked), counts_line(study, counts)]
    below += [line] if (line := gain_line(study.items(), study.metric)) else []
    below += [ended_line(ended)] if ended else []
    drawn = table(rows, picked, terminal_width())
    lines = [words, "", *map(printable, head_lines(study, options, rows)), "", drawn, ""]
    lines += map(printable, below)
    on_front = frozenset(row.id for row in front(candidates, objectives))
    chosen = chosen_finds(candidates)
    steps = search_steps(study.folder, options, picked, chosen)
    text = "\n".join(lines)
    return Report(study.folder, rows, words, text, counts, picked, on_front, chosen, chosen, steps)


def rule_of(options: Mapping[str, Any], metric: Metric) -> str:
    """The rule for the picked row; a default has no limit in a unit that it does not know, and no
    time where none was taken.
    """
    default = PICK_UNTIMED if options.get("latency") == "none" else PICK
    return options.get("pick") or (default if metric.is_share else "most-accurate")


def ended_line(ended: str) -> str:
    return ended[:1].upper() + ended[1:] + "."


def _fit_report(
    study: Study, options: dict[str, Any], candidates: Sequence[Candidate], ended: str
) -> Report:
    """The same of a fit."""
    rows = fit_rows(candidates)
    rule = rule_of(options, study.metric)
    judgeable = any(row.val_accuracy is not None for row in rows)
    picked = pick(rows, rule) if judgeable else None
    words = printable(fit_conclusion(rows, Evidence.of(study)))
    choices = {row.id: study.choice_of(row.id) for row in rows}
    drawn = fit_table(rows, choices, picked, terminal_width())
    below = [pick_line(rule, rows, picked), fit_counts_line(study)]
    below += [ended_line(ended)] if ended else []
    lines = [words, "", *map(printable, fit_head_lines(study, options, rows)), "", drawn, ""]
    lines += map(printable, below)
    on_front = frozenset(row.id for row in front(candidates))
    found = (best_of(rows, budget) for budget in options["budget"])
    chosen = [row for row in found if row is not None]
    finds = [row for budget in options["budget"] if (row := best_of(rows, budget, MIX))]
    counts, text = trial_counts(study), "\n".join(lines)
    steps = fit_steps(study.folder, options, picked, chosen)
    return Report(study.folder, rows, words, text, counts, picked, on_front, chosen, finds, steps)


def scored_on(study: Study) -> str:
    """The metric, and on how many examples it was taken; none where the user's code did that."""
    count, things = study.validation_images(), "images" if study.metric == Metric() else "examples"
    if not count:
        return f"{study.metric.name} by your own code"
    return f"{study.metric.name} on {count} validation {things}"


def head_lines(study: Study, options: dict[str, Any], rows: Sequence[Candidate]) -> list[str]:
    """What the figures of the table are, and where they were taken."""
    machine = study.machine()
    made_up = str(study.fact("data")).startswith("synthetic")
    data = "synthetic images" if made_up else options.get("data", "")
    lines = [
        f"{options.get('model', '')} on {data}, of the whole network: {scored_on(study)}; latency "
        f"of a forward at batch {options.get('latency_batch', 1)} and speed-up "
        f"({_timed_how(options)}, median +- interquartile range, "
        f"{machine.get('processor', 'unknown processor')}); ratios to the unchanged network."
    ]
    if seeds := sorted({len(row.tests) for row in rows if row.tests}):
        words = (
            several(seeds[0], "seed") if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} seeds"
        )
        lines.append(
            f"Test: the finalists' and the controls' mean over {words} +- standard "
            f"deviation, on {study.fact('test_images')} images that the search has not seen."
        )
    else:
        twice = any(row.val_seeds > 1 for row in rows)
        known = "one seed, of some the mean of two" if twice else "one seed"
        values = "Accuracies" if study.metric == Metric() else "Values"
        where = "on images" if study.validation_images() else "those"
        lines.append(
            f"{values} are of {known}, {where} that the search chose its finds by: no claim "
            "can rest on them."
        )
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    timings = {timing.engine: timing for timing in study.timings(baseline.id)} if baseline else {}
    if len(timings) > 1:
        lines.append(engines_line(timings))
    if (share := study.share_of_timing()) is not None and timings:
        used = study.processor_of_timing()
        words = "" if used is None else f", {used:.0f} s of processors"
        lines.append(f"Compiling and timing took {100 * share:.0f} % of the search's time{words}.")
    return lines


def _timed_how(options: Mapping[str, Any]) -> str:
    if options.get("latency") != "cuda":
        return "float32, one thread, CPU time"
    number = "float32" if options.get("amp", "no") == "no" else options["amp"]
    return f"{number}, {str(options['device']).partition(',')[0]}, its own time"


WAYS = {
    "eager": "eagerly",
    "compiled": "under torch.compile (c)",
    "native": "as native code of the whole network (n)",
    "gpu": "on the GPU",
    "gpu-compiled": "under torch.compile on the GPU (c)",
    "gpu-graph": "as a CUDA graph (g)",
}


def engines_line(timings: dict[str, Timing]) -> str:
    """What each engine makes of the unchanged network."""
    told = [
        f"{milliseconds(timing.latency_ms)} ms {WAYS[engine]}"
        for engine, timing in timings.items()
        if timing.latency_ms is not None
    ]
    words = f"The unchanged network takes {' and '.join(told)}; " if told else ""
    against = next((timing.against for timing in timings.values() if timing.against), "eager")
    words += f"speed-ups are against the fastest ({against})."
    for engine, timing in timings.items():
        if timing.reason:
            words += f" It could not be timed {WAYS[engine]}: {timing.reason}."
    return words


# ---- rows -------------------------------------------------------------------------------------


def table_rows(candidates: Sequence[Candidate], objectives: str = OBJECTIVES) -> list[Candidate]:
    """Baseline, controls in their order; by falling accuracy the finds on the front, the chosen
    ones and the finalists.
    """
    finds = [row for row in candidates if row.kind == "find" and row.status == "done"]
    best = {row.id for row in [*front(candidates, objectives), *chosen_finds(finds)]}
    shown = [row for row in finds if row.id in best or row.tests]
    return (
        [row for row in candidates if row.kind == "baseline"]
        + [row for row in candidates if row.kind == "control"]
        + sorted(shown, key=find_order)
    )


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
        f"{counts['failed']} failed"
    )
    if counts["waiting"]:
        line += f", {counts['waiting']} at the first rung"
    if counts["rejected"]:
        line += f"; {counts['rejected']} more rejected before their training"
    line += (
        f". Of the draws {counts['skipped']} were skipped, "
        f"{counts['duplicate']} were there already, {counts['unsolved']} did not fit the budget."
    )
    kinds: dict[str, int] = {}
    for row in study.select("find", "failed"):
        kind = row.reason.partition(":")[0]
        kinds[kind] = kinds.get(kind, 0) + 1
    if kinds:
        told = (f"{count} {kind}" for kind, count in sorted(kinds.items()))
        line += f" Failures: {', '.join(told)}."
    return line


# ---- files ------------------------------------------------------------------------------------


def pareto_rows(report: Report) -> list[dict[str, Any]]:
    """The finished rows of the table by COLUMNS: accuracies in 0..1, other metrics in their unit,
    None for what was not taken.
    """
    rows, chosen = report.rows, {row.id for row in report.chosen}
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
            "speedup_spread": row.speedup_spread,
            "engine": row.engine,
            "against": baseline.engine if baseline and row.speedup is not None else "",
            "test_accuracy": row.test_mean,
            "test_spread": row.test_spread,
            "budget": row.budget,
            "picked": row is report.picked,
            "front": row.id in report.on_front,
            "chosen": row.id in chosen,
            "metric": row.metric.name,
            "unit": row.metric.unit,
        }
        for row in rows
        if row.status == "done"
    ]


def pareto_csv(report: Report) -> str:
    """The finished rows of the table as CSV; accuracies in 0..1, what was not taken is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in pareto_rows(report):
        for name in ("picked", "front", "chosen"):
            row[name] = "*" if row[name] else ""
        writer.writerow({name: _csv_cell(value) for name, value in row.items()})
    return text.getvalue()


def _csv_cell(value: Any) -> Any:
    """A figure with six digits, a text as `csv_cell` has it."""
    return f"{value:.6g}" if isinstance(value, float) else csv_cell(value)


def write_finds(study: Study) -> None:
    """One folder per find that was trained to the end."""
    for row in study.select("find", "done"):
        folder = study.folder / find_folder(row)
        if (folder / "pack.txt").exists():
            continue
        texts = dict(zip(FIND_FILES, (row.kernel, _core.torch_code(row.pack), row.pack)))
        if folder.is_dir() and any(folder.iterdir()):  # an older canvas was killed, or a user's
            for name, text in texts.items():
                write_atomically(folder / name, text, through_link=False)
            continue
        with folder_at_once(folder) as new:
            for name, text in texts.items():
                (new / name).write_text(text, encoding="utf-8")


def write_results(study: Study, report: Report) -> None:
    """One folder per budget of a fit: the pack and the weights of its network."""
    budgets = study.options()["budget"]
    for row in report.chosen:
        weights = weights_file(study.folder, row.weights)
        if not weights.is_file():  # removed by somebody
            continue
        folder = study.folder / result_folder(budgets.index(row.budget))
        folder.mkdir(exist_ok=True)
        write_atomically(folder / "pack.txt", row.pack, through_link=False)
        write_atomically(folder / "kernel.py", _core.torch_code(row.pack), through_link=False)
        with at_once(folder / WEIGHTS_NAME, through_link=False) as file:
            file.write(weights.read_bytes())


def write_atomically(path: Path, text: str, through_link: bool = True) -> None:
    """Write a file at once or not at all; its folder may be a link with `through_link`."""
    with at_once(path, through_link) as file:
        file.write(text.encode())

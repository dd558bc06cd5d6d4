"""canvas trials: list all candidates of a study, with status and reason."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import CanvasError
from ..options import BY_NAME, read_option
from ..text import csv_cell, printable
from .command import Parser, add_options, end_by_sigterm_too, find_models_here, need_torch

TRIAL_COLUMNS = (
    "candidate",
    "kernel",
    "status",
    "val_accuracy",
    "kind",
    "primitives",
    "macs",
    "params",
    "latency_ms",
    "speedup",
    "seconds",
    "reason",
    "origin",
    "parents",
    "metric",
    "unit",
)
AUDIT = replace(
    BY_NAME["trials"],
    name="audit",
    default=None,
    help="train N rejected finds, chosen at random, to the end, and print the share that would "
    "have entered the best tenth; results are stored, the same command continues",
)
AUDIT_COLUMNS = ("candidate", "status", "audit_accuracy", "enters", "reason", "failure")


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    if given.audit is not None:
        return audit(given)
    if given.model is not None:
        raise CanvasError("--model applies to --audit: leave it out, or give both")
    rows = trial_rows(Path(given.folder))
    if given.format == "table":
        print(trial_table(rows))
    else:
        print_rows(rows, given.format, TRIAL_COLUMNS)
    return 0


def print_rows(rows: Sequence[dict[str, Any]], format: str, columns: Sequence[str]) -> None:
    """Rows as json or csv."""
    if format == "json":
        print(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows({key: csv_cell(x) for key, x in row.items()} for row in rows)


def audit(given: argparse.Namespace) -> int:
    """Train a sample of the rejected finds, and report how many were good."""
    count = read_option(AUDIT, given.audit)
    with need_torch("trials --audit"):
        from ..runner import audit as audits
    find_models_here(given.model)
    end_by_sigterm_too()
    try:
        result = audits.audit(Path(given.folder), count, model=given.model)
    except KeyboardInterrupt:
        again = f"canvas trials {given.folder} --audit {count}"
        print(
            f"canvas: stopped: finished trainings are kept, '{again}' continues", file=sys.stderr
        )
        raise
    rows = [
        {
            "candidate": row.name,
            "status": row.status,
            "reason": row.reason,
            "audit_accuracy": audited.accuracy,
            "enters": int(result.enters(audited)),
            "failure": audited.reason,
        }
        for row, audited in result.rows
    ]
    if given.format == "table":
        print(audit_table(rows), result, sep="\n")
    else:
        print_rows(rows, given.format, AUDIT_COLUMNS)
        print(result, file=sys.stderr)
    return 0


def audit_table(rows: Sequence[dict[str, Any]]) -> str:
    from ..reporting.table import align, terminal_width

    head = ["candidate", "audit", "best tenth", "rejected because"]
    body = [
        [
            row["candidate"],
            "-" if row["audit_accuracy"] is None else f"{row['audit_accuracy']:.4f}",
            "yes" if row["enters"] else "no",
            printable(row["reason"] or row["status"])
            + (f"  (failed: {printable(row['failure'])})" if row["failure"] else ""),
        ]
        for row in rows
    ]
    return align([head, *body], right={1}, width=terminal_width())


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas trials",
        example="canvas trials canvas-runs/resnet8-digits-scattered --format csv >trials.csv",
        description="List all candidates of a study: the baseline (the unchanged network), the\n"
        "controls (well-known operators) and all finds (kernels that fit the budget),\n"
        "including pruned, rejected and failed ones. The draws that gave no find follow,\n"
        "each with the reason.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "-f", "--format", default="table", choices=("table", "json", "csv"), help="default: table"
    )
    add_options(parser, [AUDIT])
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="with --audit: the network of the study, if it is your own code: "
        "package.module:callable",
    )
    return parser


def trial_rows(folder: Path) -> list[dict[str, Any]]:
    """One dict per candidate with TRIAL_COLUMNS and the whole `pack` and `log`; numbers that were
    not measured are None.  Then one per draw that gave no candidate: its index and its outcome.
    """
    from ..reporting.table import kernel_summary
    from ..study import Study

    nothing = dict.fromkeys(TRIAL_COLUMNS[3:11]) | {"origin": "", "parents": ""}
    with Study.read(folder) as study:
        nothing |= {"metric": study.metric.name, "unit": study.metric.unit}
        rows: list[dict[str, Any]] = [
            {
                "candidate": row.name,
                "kernel": f"Kernel_{row.hash[:16]}" if row.hash else "",
                "status": row.status,
                "val_accuracy": row.val_accuracy,
                "kind": row.kind,
                "primitives": kernel_summary(row),
                "macs": row.macs,
                "params": row.params,
                "latency_ms": row.latency_ms,
                "speedup": row.speedup,
                "seconds": row.seconds,
                "reason": row.reason,
                "origin": row.origin,
                "parents": row.parents,
                "metric": study.metric.name,
                "unit": study.metric.unit,
                "curve": study.curve(row.id),
                "pack": row.pack,
                "log": row.log,
            }
            for row in study.candidates()
        ]
        return rows + [
            {
                "candidate": str(draw["idx"]),
                "kernel": "",
                "status": draw["outcome"],
                **nothing,
                "kind": "draw",
                "primitives": "",
                "reason": draw["reason"],
                "curve": [],
                "pack": "",
                "log": "",
            }
            for draw in study.fruitless_draws()
        ]


def name_of(rows: Sequence[dict[str, Any]]) -> str:
    """What the column of the metric is called: `val_accuracy` is its name where rows are data."""
    name = next((row["metric"] for row in rows), "accuracy")
    return "val_accuracy" if name == "accuracy" else f"val {name}"


def trial_table(rows: Sequence[dict[str, Any]]) -> str:
    from ..reporting.table import align, short, terminal_width

    def figure(value: float | None, form: str) -> str:
        return "-" if value is None else form.format(value)

    head = [
        "candidate",
        "kernel",
        "status",
        name_of(rows),
        "macs",
        "params",
        "latency",
        "origin",
        "primitives",
    ]
    body = [
        [
            row["candidate"],
            row["kernel"],
            row["status"],
            figure(row["val_accuracy"], "{:.4f}"),
            short(row["macs"]),
            short(row["params"]),
            figure(row["latency_ms"], "{:.2f} ms"),
            row["origin"] + (f" {row['parents']}" if row["parents"] else ""),
            row["primitives"] + (f"  ({row['reason']})" if row["reason"] else ""),
        ]
        for row in rows
    ]
    return align([head, *body], right={3, 4, 5, 6}, width=terminal_width())

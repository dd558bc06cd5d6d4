"""The parts of a page that need no picture: rejections with reasons, time and cost, commands."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timezone

from ..stored_options import FIT, command_of
from ..study import Study, spent
from ..text import several
from .commands import ASKED, commands, objects
from .front import title
from .html_parts import code_block, element, table
from .report import Report

MOST = 40  # lines of reasons
NUMBER = re.compile(r"\d[\d.,]*")


def rejections(study: Study) -> list[str]:
    """What was given up, grouped by reason, the most frequent first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for what, name, reason in given_up(study):
        groups.setdefault((what, NUMBER.sub("#", reason)), []).append(f"{name}: {reason}")
    if not groups:
        return [element("p", "Nothing was rejected, and nothing failed.")]
    order = sorted(groups.items(), key=lambda group: -len(group[1]))
    rows = [["what", "how many", "reason, of the first"]]
    rows += [[what, str(len(found)), found[0]] for (what, _), found in order[:MOST]]
    parts = [table(rows, numbers={1})]
    if len(order) > MOST:
        more = sum(len(found) for _, found in order[MOST:])
        parts.append(element("p", f"{more} more with {len(order) - MOST} other reasons.", "faint"))
    return parts


def given_up(study: Study) -> Iterable[tuple[str, str, str]]:
    """What, its name and the reason, of candidates, timings, draws and fits without a result."""
    for row in study.candidates():
        if row.status in ("pruned", "rejected", "failed"):
            what = "finds" if row.kind == "find" else "controls"
            yield f"{what} {row.status}", title(row), row.reason or "no reason recorded"
        for timing in study.timings(row.id):
            if timing.reason:
                yield f"not timed: {timing.engine}", title(row), timing.reason
    for draw in study.fruitless_draws():
        yield f"draws {draw['outcome']}", f"draw {draw['idx']}", draw["reason"] or "no reason"
    for item in study.fitted_items():
        if item.reason:
            yield "fits of a layer failed", f"{item.operator} at {item.layer}", item.reason


def costs(study: Study) -> list[str]:
    """Wall-clock time of each run of the command, and seconds by stage."""
    sessions, stages = study.sessions(), spent(study)
    whole = sum(session["seconds"] or 0.0 for session in sessions)
    words = f"{several(len(sessions), 'run')} of the command, {duration(whole)} by the clock"
    known = [s.processor if s.processor is not None else s.seconds for s in stages]
    total = sum(seconds or 0.0 for seconds in known)
    words += (
        f"; the stages took {duration(total)} of processors, or by the clock where processor time "
        "is not recorded."
    )
    rows = [["stage", "how many", "clock", "processors"]]
    rows += [[s.stage, str(s.count), duration(s.seconds), duration(s.processor)] for s in stages]
    runs = [["run", "begun (UTC)", "took", "canvas", "torch", "processor", "cores"]]
    for session in sessions:
        made, machine = session["versions"], session["machine"]
        runs.append(
            [
                str(session["id"]),
                moment(session["begun"]),
                duration(session["seconds"]),
                *(str(made.get(name, "-")) for name in ("canvas", "torch")),
                *(str(machine.get(name, "-")) for name in ("processor", "cores")),
            ]
        )
    return [element("p", words), table(rows, numbers={1, 2, 3}), table(runs, numbers={2, 6})]


def duration(seconds: float | None) -> str:
    """1.5 s, 12 s, 3 min 20 s or 1 h 5 min; - for None."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(seconds: float) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "-"


def reproduce(study: Study, report: Report) -> list[str]:
    """Commands that repeat the study, and what they need to give the same."""
    options = study.options()
    text = "\n".join(f"# {purpose}\n{command}" for purpose, command in commands(study, report))
    words = (
        "On the same machine with the same versions a training gives the same numbers; latencies "
        "are measured again. Data: " + str(study.fact("data")) + "."
    )
    if own := [name for name in objects(options) if options[name] != ASKED]:
        classes = " and ".join(f"{name} ({options[name]})" for name in own)
        words += f" The study has only the class of your own {classes}."
    checksum = f"sha256 of the images and labels: {study.fact('data_checksum')}"
    parts = [code_block(text, "wrapped"), element("p", words), element("p", checksum, "faint")]
    if command_of(options) != FIT:
        parts.append(element("p", f"Seed {study.fact('seed')}.", "faint"))
    return parts

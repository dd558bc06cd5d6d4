"""How well the predicted time ranks schedules, beside what was measured.

    ./dev bench cost [NAME ...] [--candidates 48] [--again]

Candidates of each operator are the default schedule, a hand schedule where there is one, and
random edits of both (numbers, order of loops, unrolling); of "points of" operators they are
random points of the tuner's sketches. bench/cost_speed.c compiles, checks and times each, once
as screening does and once with all samples. Columns: rank correlation (Spearman) of prediction
and measurement, with all samples, as screened, and within four times of the fastest; the median
of predicted / measured and the range of the middle half; whether a fastest one is among the 16
predicted fastest; the speed of the best of the first, of 4 and of 16, relative to the fastest.
Measurements are kept in build/cost; --again predicts for them anew. Operators that the formula
was never fitted to are a table of their own.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import harness
from cost_cases import CASES, HELD_OUT, Case
from harness import ROOT, built
from native_programs import filled as with_numbers

KEPT = ROOT / "build" / "cost"
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128)
FIRST = 16
Row = dict[str, Any]


# ---- candidates ---------------------------------------------------------------------------------


def edit_number(text: str, rng: random.Random) -> str:
    names = sorted(set(re.findall(r"\b(\w+):\d+", text)))
    if not names:
        return text
    name, number = rng.choice(names), rng.choice(NUMBERS)
    return re.sub(rf"\b{name}:\d+", f"{name}:{number}", text)


def edit_order(text: str, rng: random.Random) -> str:
    """Two neighbours of a line change places."""
    lines = text.splitlines()
    rows = [i for i, line in enumerate(lines) if line.count(",") and line.rstrip().endswith("=>")]
    if not rows:
        return text
    row = rng.choice(rows)
    indent = lines[row][: len(lines[row]) - len(lines[row].lstrip())]
    loops = [loop.strip() for loop in lines[row].replace("=>", "").split(",")]
    at = rng.randrange(len(loops) - 1)
    loops[at], loops[at + 1] = loops[at + 1], loops[at]
    lines[row] = f"{indent}{', '.join(loops)} =>"
    return "\n".join(lines) + "\n"


def edit_mark(text: str, rng: random.Random) -> str:
    """A loop is unrolled, or no more; a vector is one no more."""
    marked = re.findall(r"\b(\w+(?::\d+)?(?::peel|:mask)?):(unroll|vec)", text)
    if marked and rng.random() < 0.5:
        loop, mark = rng.choice(marked)
        return text.replace(f"{loop}:{mark}", loop, 1)
    plain = re.findall(r"\b(\w+(?::\d+)?)(?=, | =>)", text)
    loop = rng.choice(plain) if plain else ""
    return text.replace(loop, f"{loop}:unroll", 1) if loop else text


EDITS = (edit_number, edit_number, edit_number, edit_order, edit_mark)


def edited(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        text = rng.choice(EDITS)(text, rng)
    return text


def filled(case: Case) -> str:
    text = (ROOT / "bench" / "native" / f"{case.hand}.schedule").read_text()
    return with_numbers(text, case.values)


def texts(folder: Path, case: Case, count: int) -> None:
    """Schedules, twenty times as many as are wanted, as not all are legal; with programs of their
    own where the default schedule is of an edited one."""
    (folder / "program").write_text(case.program())
    if case.points:
        speed("points", folder, count)
        return
    speed("default", folder, 0)
    default = (folder / "default.schedule").read_text()
    edited_program = (folder / "default.program").read_text()
    starts = [(default, edited_program)]
    if case.hand:
        starts.append((filled(case), ""))
    rng, written = random.Random(1), 0
    seen: set[tuple[str, str]] = set()
    for trial in range(20 * count):
        text, program = starts[trial % len(starts)]
        if trial >= len(starts):
            text = edited(text, rng)
        if (text, program) in seen:
            continue
        seen.add((text, program))
        (folder / f"{written}.schedule").write_text(text)
        if program:
            (folder / f"{written}.program").write_text(program)
        written += 1


# ---- measuring ----------------------------------------------------------------------------------


def speed(action: str, folder: Path, count: int) -> list[Row]:
    words = [str(built("cost_speed")), action, str(folder), str(count)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measured(name: str, case: Case, count: int, again: bool) -> list[Row]:
    folder = KEPT / re.sub(r"\W+", "_", name)
    rows = folder / "measured.jsonl"
    if again and rows.exists():
        found = {row["at"]: row for row in map(json.loads, rows.read_text().splitlines())}
        return [
            found[row["at"]] | row for row in speed("predict", folder, count) if row["at"] in found
        ]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    texts(folder, case, count)
    found_rows = speed("measure", folder, count)
    rows.write_text("".join(json.dumps(row) + "\n" for row in found_rows))
    return found_rows


# ---- how well -----------------------------------------------------------------------------------


def ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda i: values[i])
    found = [0.0] * len(values)
    for rank, i in enumerate(order):
        found[i] = float(rank)
    return found


def correlation(a: list[float], b: list[float]) -> float:
    return statistics.correlation(ranks(a), ranks(b)) if len(a) > 2 else 1.0


def summary(name: str, rows: list[Row]) -> Row:
    rows = [row for row in rows if row.get("measured")]
    predicted = [row["seconds"] for row in rows]
    taken = [row["measured"] for row in rows]
    ratio = sorted(p / m for p, m in zip(predicted, taken, strict=True))
    order = sorted(range(len(rows)), key=lambda i: predicted[i])
    best = min(taken)
    screened = [float(row.get("screened") or row["measured"]) for row in rows]
    good = [i for i in range(len(rows)) if taken[i] < 4 * best]
    return {
        "name": name,
        "candidates": len(rows),
        "best_us": 1e6 * best,
        "worst_us": 1e6 * max(taken),
        "spearman": correlation(predicted, taken),
        "spearman_screened": correlation(predicted, screened),
        "spearman_good": correlation([predicted[i] for i in good], [taken[i] for i in good]),
        "ratio": statistics.median(ratio),
        "low": ratio[len(ratio) // 4],
        "high": ratio[3 * len(ratio) // 4],
        "recall": min(order.index(i) for i in range(len(rows)) if taken[i] <= 1.02 * best) < FIRST,
        "first": best / taken[order[0]],
        "first4": best / min(taken[i] for i in order[:4]),
        "first16": best / min(taken[i] for i in order[:FIRST]),
        "us": statistics.median(row["us"] for row in rows),
    }


def line(row: Row) -> str:
    return (
        f"| {row['name']} | {row['candidates']} | {row['best_us']:.0f} | {row['worst_us']:.0f} "
        f"| {row['spearman']:.2f} | {row['spearman_screened']:.2f} "
        f"| {row['spearman_good']:.2f} | {row['ratio']:.2f} "
        f"({row['low']:.2f}-{row['high']:.2f}) | {'yes' if row['recall'] else 'no'} "
        f"| {row['first']:.2f} | {row['first4']:.2f} | {row['first16']:.2f} | {row['us']:.0f} |"
    )


def mean(rows: list[Row]) -> str:
    names = {
        "rank correlation": "spearman",
        "screened": "spearman_screened",
        "first": "first",
        "best of 4": "first4",
        "best of 16": "first16",
    }
    means = [f"{name} {statistics.fmean(r[key] for r in rows):.2f}" for name, key in names.items()]
    return f"mean of {len(rows)}: {', '.join(means)}"


HEAD = (
    "| operator | candidates | fastest us | slowest us | rank correlation | ... screened "
    "| ... within 4x "
    "| predicted / measured | fastest in first 16 | first | best of 4 | of 16 | us to predict |\n"
    + "|---" * 13
    + "|"
)


RECORDED = {"candidates": ("candidates", ""), "fastest": ("best_us", "us"),
            "slowest": ("worst_us", "us"), "rank correlation": ("spearman", ""),
            "screened": ("spearman_screened", ""), "within 4x": ("spearman_good", ""),
            "first": ("first", ""), "best of 4": ("first4", ""), "best of 16": ("first16", ""),
            "to predict": ("us", "us")}  # fmt: skip


def record(recorder: harness.Recorder, table: str, row: Row) -> None:
    values = harness.pick(row, RECORDED)
    middle = f"{row['ratio']:.2f} ({row['low']:.2f}-{row['high']:.2f})"
    values["predicted / measured"] = (middle, "")
    values["fastest in first 16"] = ("yes" if row["recall"] else "no", "")
    recorder.add(table, row["name"], values)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("names", nargs="*", help="parts of names; all")
    parser.add_argument("--candidates", type=int, default=48)
    parser.add_argument("--again", action="store_true", help="predict what was measured before")
    options = parser.parse_args()
    recorder = harness.Recorder("cost", options.record)
    for table, cases in (("fitted", CASES), ("held out", HELD_OUT)):
        wanted = {
            name: case
            for name, case in cases.items()
            if not options.names or any(word in name for word in options.names)
        }
        if wanted and not options.json:
            print(f"\n{table}\n", HEAD, sep="\n")
        rows = []
        for name, case in wanted.items():
            rows.append(summary(name, measured(name, case, options.candidates, options.again)))
            print(json.dumps(rows[-1]) if options.json else line(rows[-1]), flush=True)
            record(recorder, table, rows[-1])
        if wanted and not options.json:
            print(f"\n{mean(rows)}")


if __name__ == "__main__":
    harness.run(main)

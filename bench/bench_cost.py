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
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import harness
import native_programs as programs
from edit_trials import Edit, edit_number, edit_order
from harness import ROOT, built
from native_programs import Conv, constant
from native_programs import filled as with_numbers
from tune_cases import convolution

from canvas import _core

KEPT = ROOT / "build" / "cost"
FIRST = 16
Row = dict[str, Any]


# ---- the operators: those that the formula was fitted to, and held-out ones ---------------------


@dataclass(frozen=True)
class Case:
    program: Callable[[], str]
    hand: str = ""  # of bench/native; "": none
    values: str = ""
    points: bool = False  # random ones of the tuner's sketches, instead of edits


def points(words: str) -> Case:
    """All inputs but the first are constant weights, packed beforehand."""

    def program() -> str:
        text: str = operator(words)()
        rest = re.findall(r"^in .*$", text, re.M)
        for line in rest[1:]:
            text = text.replace(line, f"{line} const")
        return text

    return Case(program, points=True)


def of_points(program: Callable[[], str]) -> Case:
    return Case(program, points=True)


def operator(words: str) -> Callable[[], str]:
    name, _, arguments = words.partition(" ")
    return lambda: _core.operator_program(name, arguments)


def conv(c: Conv, block: int = 32) -> Callable[[], str]:
    return lambda: programs.conv(c, block)


NHWC = "conv2d_nhwc kernel=3 padding=1 weights=hwio"
NCHW = "conv2d_nchw kernel=3 padding=1"
SPARSE = "bsr_conv2d_nhwc kernel=3 padding=1 block_rows=16 block_columns=1"


def sized(words: str, size: int, channels: int, out: int) -> str:
    return f"{words} height={size} width={size} in_channels={channels} out_channels={out}"


CASES = {
    "conv 3x3 64@56": Case(conv(Conv(64, 56, 64)), "conv_rows", "wi=14"),
    "conv 3x3 256@14": Case(conv(Conv(256, 14, 256)), "conv_rows", "wi=14"),
    "conv 3x3 64@28 nchw": Case(operator(sized(NCHW, 28, 64, 64))),
    "conv 1x1 256@14": Case(conv(Conv(256, 14, 256, kernel=1, padding=0)), "conv_rows", "wi=14"),
    "conv 3x3 512@7": Case(conv(Conv(512, 7, 512), 64), "conv_blocks", "wi=7"),
    "depthwise 144@56": Case(
        lambda: programs.depthwise(Conv(144, 56, 144, groups=144), 1),
        "depthwise_rows",
        "hi=7,cv=16",
    ),
    "gemm 512": Case(lambda: programs.gemm(512, 512, 512, 32), "gemm", "oi=4,mi=8"),
    "gemm 250x253x257": Case(operator("gemm m=250 n=253 k=257"), "gemm_odd", "mi=8,ni=32"),
    "gemv 1024": Case(lambda: programs.gemv(1024, 1024, 16), "gemv", "mi=4"),
    "softmax 512x1024": Case(lambda: programs.softmax(512, 1024, 64), "softmax"),
    "layer norm 512x768": Case(lambda: programs.layer_norm(512, 768, 64), "layer_norm", "cv=64"),
    "gelu 512x1024": Case(lambda: programs.gelu(512, 1024, 0), "gelu"),
    "max pool 64@112": Case(
        operator("max_pool2d_nchw channels=64 height=112 width=112 kernel=3 stride=2 padding=1")
    ),
    "figure 6 64@56": Case(
        lambda: programs.figure6(Conv(64, 56, 64), 64), "figure6_rows", "tv=64,hi=7"
    ),
    "points of conv 3x3 64@56": points(sized(NHWC, 56, 64, 64)),
    "points of conv 3x3 256@14": points(sized(NHWC, 14, 256, 256)),
    "points of conv 3x3 512@7": points(sized(NHWC, 7, 512, 512)),
    "points of conv 3x3 512@7 batch 10": points(sized(f"{NHWC} batch=10", 7, 512, 512)),
    "points of conv 3x3 128@28 nchw": points(sized(NCHW, 28, 128, 128)),
    "points of depthwise 144@56 nhwc": of_points(
        lambda: constant(programs.depthwise(Conv(144, 56, 144, groups=144), 0), 1)
    ),
    "points of depthwise 32@112 nhwc": of_points(
        lambda: constant(programs.depthwise(Conv(32, 112, 32, groups=32), 0), 1)
    ),
    "points of depthwise 144@56 nchw": points(
        "depthwise_conv2d_nchw height=56 width=56 in_channels=144 kernel=3 padding=1"
    ),
    "points of gemm 500x512x520": points("gemm m=500 n=512 k=520"),
    "points of bsr conv 128@28": points(sized(f"{SPARSE} blocks=3686", 28, 128, 128)),
    "points of softmax 512x1000": points("softmax shape=512x1000"),
}

HELD_OUT = {
    "points of conv 3x3 96@35": points(sized(NHWC, 35, 96, 96)),
    "points of conv 3x3 48@112 stride 2": points(sized(f"{NHWC} stride=2", 112, 48, 96)),
    "points of conv 1x1 192@28": points(sized("conv2d_nhwc kernel=1 weights=hwio", 28, 192, 64)),
    "points of conv 5x5 48@27 nchw": points(sized("conv2d_nchw kernel=5 padding=2", 27, 48, 128)),
    "points of conv 3x3 256@16 dilated": of_points(
        lambda: convolution((16, 16), 256, 128, 3, 1, 2, 2)
    ),
    "points of conv 3x3 192@20 groups 3": of_points(
        lambda: convolution((20, 20), 192, 192, 3, 1, 1, 1, 3)
    ),
    "points of conv1d 128@512": of_points(lambda: convolution((512,), 128, 64, 7, 1, 3)),
    "points of conv3d 32@8x28x28": of_points(lambda: convolution((8, 28, 28), 32, 32, 3, 1, 1)),
    "points of gemm 256x256x1024": points("gemm m=256 n=256 k=1024"),
    "points of gemm 384x768x640": points("gemm m=384 n=768 k=640"),
    "points of gemm 2000x24x300": points("gemm m=2000 n=24 k=300"),
    "points of batch gemm 12x128x64": points("batch_gemm batch=12 m=128 n=128 k=64"),
    "points of depthwise 240@28 nchw": points(
        "depthwise_conv2d_nchw height=28 width=28 in_channels=240 kernel=5 padding=2"
    ),
    "points of conv_transpose 96@14": points(
        sized("conv_transpose2d_nchw kernel=4 stride=2 padding=1", 14, 96, 48)
    ),
    "points of bsr conv 64@28": points(sized(f"{SPARSE} blocks=691", 28, 64, 64)),
    "points of softmax 200x333": points("softmax shape=200x333"),
    "gemv 700x2048": Case(operator("gemv m=700 k=2048")),
    "max pool 96@55 nhwc": Case(
        operator("max_pool2d_nhwc channels=96 height=55 width=55 kernel=3 stride=2")
    ),
}


# ---- candidates ---------------------------------------------------------------------------------


def edit_mark(text: str, rng: random.Random) -> Edit:
    """A loop is unrolled, or no more; a vector is one no more."""
    marked = re.findall(r"\b(\w+(?::\d+)?(?::peel|:mask)?):(unroll|vec)", text)
    if marked and rng.random() < 0.5:
        loop, mark = rng.choice(marked)
        return text.replace(f"{loop}:{mark}", loop, 1), ""
    plain = re.findall(r"\b(\w+(?::\d+)?)(?=, | =>)", text)
    loop = rng.choice(plain) if plain else ""
    return (text.replace(loop, f"{loop}:unroll", 1), "") if loop else None


EDITS = (edit_number, edit_number, edit_number, edit_order, edit_mark)


def edited(text: str, rng: random.Random) -> str:
    for _ in range(rng.choice((1, 1, 2, 2, 3, 4))):
        made = rng.choice(EDITS)(text, rng)
        text = made[0] if made else text
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

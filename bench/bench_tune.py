"""Tuned schedules against oneDNN, torch, TVM and default schedules, on one core.

    ./dev bench tune [--group layers|ansor|rows|sparse|sampled|ablation|
                     winograd|metaschedule|methods]
                     [--rounds N] [--seconds S] [--method NAME] [--resume] [WORD...]

`ratio` is how many times faster the winner of `quick` is. layers: than oneDNN's direct algorithm
(C API, any layout, weights packed beforehand on both sides). ansor: than the best of torch
eager, torch.compile (frozen weights) and oneDNN. sparse: than the same layer dense. rows and
sampled: than the default schedule. winograd: a search that may use Winograd's form than the
direct form that `quick` found. metaschedule: than TVM's tuner after 256 trials
(tune_metaschedule.py). ablation: `quick` at batch 1 without one of its parts. methods: the gemm
of AutoScheduler's README and the notebook's four shapes, tuned by the methods of both documents
and by ours for the same seconds. sparse are block-sparse 3x3 convolutions, blocks of 16 output
channels; sampled are kernels drawn for ResNet-18. `oneshot` is the speed of the
schedule that the model picks unmeasured. Contenders take turns in one process, timed by the
thread's processor time; every result is compared with torch's before. CPU seconds are those of
the search, compilers included. WORDs choose cases whose names hold them. Rows go to
build/tune/rows.jsonl; --resume keeps those there.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterator
from typing import Any

import harness
import numpy as np
import tune_metaschedule
from bench_native import number
from contenders import Timer, ratio, turns
from harness import geometric, pick
from native_cases import conv_arrays, hwio, plain_conv
from native_programs import Conv
from tune_cases import GROUPS, RESNET, Case, layers, operator
from tune_worker import FOLDER, Bench, finished

from canvas import _core

NOISE = 0.02
Row = dict[str, Any]
RECORDED = {"ratio": ("ratio", "times"), "oneshot": ("oneshot_ratio", "times"),
            "gain": ("gain", "times"), "quick": ("quick_us", "us"), "direct": ("direct_us", "us"),
            "oneDNN": ("onednn_us", "us"), "torch": ("torch_us", "us"),
            "compile": ("compile_us", "us"), "MetaSchedule": ("trials_us", "us"),
            "their search": ("trials_s", "s"), "search": ("cpu_s", "CPU s"),
            "rule": ("rule", "")}  # fmt: skip


# ---- groups that compare searches ---------------------------------------------------------------


def skipped(bench: Any, known: list[Row], group: str, name: str) -> bool:
    """Whether a row is stored already, or no WORD chooses it."""
    stored = any(row["group"] == group and row["name"] == name for row in known)
    return stored or any(word not in name for word in bench.options.words)


# ---- ablation -----------------------------------------------------------------------------------

SHORTLIST = 24  # trials that quick begins with
PARTS: dict[str, dict[str, Any]] = {
    "quick": {"method": "quick"},
    "no descent": {"method": "quick", "trials": SHORTLIST},
    "no model": {"method": "random"},  # as many trials as quick took
    "no trials": {"method": "oneshot"},
}


def ablated(bench: Any, case: Case) -> Row:
    row: Row = {"group": "ablation", "name": case.name, "batch": case.batch}
    row["seconds"], row["trials"] = {}, {}
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = bench.wanted(case, tensors)
    tuned: dict[str, Any] = {}
    for name, how in PARTS.items():
        more = {"trials": tuned["quick"].trials} if name == "no model" else {}
        tuned[name], row["seconds"][name] = bench.search(
            program, seed=bench.options.seed, **how, **more
        )
        row["trials"][name] = tuned[name].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, tuned, case.pack(arrays), wanted, timers)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["parts"] = {name: ratio(times, name, ["quick"]) for name in times}
    quick = tuned["quick"]
    row["parts"]["no finals"] = quick.after / quick.first if quick.first else None
    return row


def ablation_table(found: list[Row]) -> str:
    """Speeds as parts of quick's; trials and CPU seconds of the searches, as PARTS has them."""
    names = [*PARTS, "no finals", "default"]
    lines = [
        f"| case | {' | '.join(names)} | trials | CPU s |",
        "|" + "---|" * (len(names) + 3),
    ]
    for row in found:
        if "parts" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * (len(names) + 1))
            continue
        cells = [f"{row['parts'].get(n) or math.nan:.2f}" for n in names]
        seconds = ", ".join(f"{s:.1f}" for s in row["seconds"].values())
        trials = ", ".join(str(count) for count in row["trials"].values())
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {trials} | {seconds} |")
    parts = [row["parts"] for row in found if "parts" in row]
    means = [geometric([p[n] for p in parts if p.get(n)]) for n in names]
    return "\n".join([*lines, f"| mean | {' | '.join(f'{m:.3f}' for m in means)} | | |"])


def ablation(bench: Any, known: list[Row]) -> Iterator[Row]:
    for case in layers():
        if case.batch > 1 or skipped(bench, known, "ablation", case.name):
            continue
        try:
            yield ablated(bench, case)
        except Exception as error:
            yield {"group": "ablation", "name": case.name, "batch": 1, "error": str(error)}


# ---- methods ------------------------------------------------------------------------------------

METHODS = ("searching", "q", "random", "ga", "quick")
PRINTED = {  # milliseconds on one thread of a Xeon Gold 6248, and of what
    "notebook 3x3 64@256": "240 (its best)",
}


def flops(case: Case) -> float:
    image, weights = (row[2] for row in _core.signature(case.program())[0][:2])
    if case.name.startswith("gemm"):
        return 2.0 * image[0] * image[1] * weights[1]
    return 2.0 * math.prod(image[:3]) * math.prod(weights)


def compared(bench: Any, case: Case) -> Row:
    row: Row = {"group": "methods", "name": case.name, "batch": case.batch}
    row["gflop"] = 1e-9 * flops(case)
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = bench.wanted(case, tensors)
    found: dict[str, Any] = {}
    row["seconds"], row["trials"] = {}, {}
    for method in METHODS:
        found[method], row["seconds"][method] = bench.search(
            program, method, seed=bench.options.seed, seconds=bench.options.seconds
        )
        row["trials"][method] = found[method].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, found, case.pack(arrays), wanted, timers)
    bench.add_onednn(case, arrays, wanted, timers, row)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["us"] = {name: 1e6 * statistics.median(t) for name, t in times.items()}
    return row


def methods_table(found: list[Row]) -> str:
    """Milliseconds (GFLOP/s; trials) of each."""
    names = [*METHODS, "default", "onednn"]
    lines = [f"| case | {' | '.join(names)} | the document, ms |", "|" + "---|" * (len(names) + 2)]
    for row in found:
        if "us" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * len(names))
            continue
        cells = []
        for name in names:
            taken = row["us"].get(name)
            trials = f"; {row['trials'][name]}" if name in row["trials"] else ""
            speed = 1e6 * row["gflop"] / taken if taken else math.nan
            cells.append(f"{taken / 1e3:.1f} ({speed:.0f}{trials})" if taken else "")
        printed = PRINTED.get(row["name"], "")
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {printed} |")
    return "\n".join(lines)


def methods(bench: Any, known: list[Row]) -> Iterator[Row]:
    for case in layers():
        if not case.name.startswith(("gemm 1024", "notebook")):
            continue
        if skipped(bench, known, "methods", case.name):
            continue
        try:
            yield compared(bench, case)
        except Exception as error:
            yield {"group": "methods", "name": case.name, "batch": case.batch,
                   "error": f"{type(error).__name__}: {error}"}  # fmt: skip


# ---- sparse -------------------------------------------------------------------------------------

SPARSITIES = (0.4, 0.6, 0.9)
BLOCK_ROWS = 16  # output channels of a block
GOALS = {0.4: 1.0, 0.6: 0.72, 0.9: 0.30}  # of the dense time, at most


def sparse_weights(c: Conv, sparsity: float) -> tuple[list[np.ndarray], np.ndarray]:
    """(blocks, column of each, where those of a row begin), and the same as o i h w."""
    random = np.random.default_rng(int(100 * sparsity))
    columns, rows = 9 * c.channels, c.out // BLOCK_ROWS
    kept = round((1 - sparsity) * columns)
    scale = np.float32((9 * c.channels) ** -0.5)
    blocks = random.standard_normal((rows * kept, BLOCK_ROWS, 1), dtype=np.float32) * scale
    chosen = [np.sort(random.choice(columns, kept, replace=False)) for _ in range(rows)]
    dense = np.zeros((c.out, columns), np.float32)
    for row, places in enumerate(chosen):
        dense[row * BLOCK_ROWS : (row + 1) * BLOCK_ROWS, places] = blocks[
            row * kept : (row + 1) * kept, :, 0
        ].T
    starts = np.arange(rows + 1, dtype=np.int32) * kept
    flat = np.concatenate(chosen).astype(np.int32)
    return [blocks, flat, starts], dense.reshape(c.out, 3, 3, c.channels).transpose(0, 3, 1, 2)


def sparse_program(c: Conv, blocks: int) -> str:
    return operator(
        f"bsr_conv2d_nhwc batch={c.batch} height={c.size} width={c.size} in_channels={c.channels} "
        f"out_channels={c.out} kernel=3 padding=1 block_rows={BLOCK_ROWS} block_columns=1 "
        f"blocks={blocks}"
    )


def measured_sparse(bench: Any, c: Conv, sparsity: float, dense: Any) -> Row:
    from torch.nn import functional

    name = f"{c.channels}@{c.size} {sparsity:.0%}"
    row: Row = {"group": "sparse", "name": name, "batch": c.batch}
    row["goal_ratio"] = GOALS[sparsity]
    image = conv_arrays(c)[0]
    weights, whole = sparse_weights(c, sparsity)
    x, w = (bench.torch.from_numpy(np.ascontiguousarray(a)) for a in (image, whole))
    wanted = functional.conv2d(x.permute(0, 3, 1, 2), w, padding=1).permute(0, 2, 3, 1)
    wanted = np.ascontiguousarray(wanted.numpy())
    timers: dict[str, Timer] = {}
    program = sparse_program(c, len(weights[1]))
    found = bench.tuned(program, row)
    kept = bench.add_native(program, found, [image, *weights], wanted, timers)
    timers["dense"] = dense.timer
    times = turns(timers, bench.options.rounds)
    return finished(row, times, ["dense"], len(kept))


def sparse(bench: Any, known: list[Row]) -> Iterator[Row]:
    for channels, size in RESNET:
        c = Conv(channels, size, channels)
        names = {sparsity: f"{channels}@{size} {sparsity:.0%}" for sparsity in SPARSITIES}
        if all(skipped(bench, known, "sparse", name) for name in names.values()):
            continue
        tuned, _ = bench.search(operator(plain_conv(c)), "quick", seconds=bench.options.seconds)
        dense = bench.native(tuned.program, tuned.schedule, hwio(conv_arrays(c)))
        for sparsity, name in names.items():
            try:
                yield measured_sparse(bench, c, sparsity, dense)
            except Exception as error:
                yield {"group": "sparse", "name": name, "batch": 1, "error": str(error)}


# ---- drawn kernels ------------------------------------------------------------------------------

SAMPLED = 60


def sampled(bench: Any, known: list[Row]) -> Iterator[Row]:
    """Number by number, the quick search beside the default schedule."""
    from cases import draws, operands

    done = sum(row["group"] == "sampled" for row in known)
    for count, (index, pack, target) in enumerate(draws(1, 0)):
        if count == SAMPLED:
            return
        if count < done:
            continue
        row: Row = {"group": "sampled", "name": f"draw {index}", "batch": 1}
        try:
            program = _core.lower(pack.text, target, 1)
            _, c, h, w = _core.signature(program)[0][0][2]
            module: Any = pack.module(c, h, w, target=pack.targets[target]).eval()
            arrays = operands(program, module)
            wanted = module.double()(bench.torch.from_numpy(arrays[0]).double()).float().numpy()
            timers: dict[str, Timer] = {}
            found = bench.tuned(program, row)
            kept = bench.add_native(program, found, arrays, wanted, timers)
            yield finished(row, turns(timers, bench.options.rounds), ["default"], len(kept))
        except Exception as error:
            yield {**row, "error": f"{type(error).__name__}: {error}"}


# ---- all groups ---------------------------------------------------------------------------------

ROWS = {
    "sparse": sparse,
    "sampled": sampled,
    "ablation": ablation,
    "methods": methods,
    "metaschedule": tune_metaschedule.rows,
}
TABLES = {"ablation": ablation_table, "methods": methods_table}


def measured(bench: Bench, group: str, known: list[Row]) -> Iterator[Row]:
    done = {(row["group"], row["name"], row["batch"]) for row in known}
    if group in ROWS:
        yield from ROWS[group](bench, known)
        return
    for case in GROUPS["layers" if group == "winograd" else group]():
        text = f"{case.name} b{case.batch}"
        if group == "winograd" and not case.winograd:
            continue
        if any(word not in text for word in bench.options.words):
            continue
        if (group, case.name, case.batch) in done:
            continue
        try:
            yield bench.winograd(case) if group == "winograd" else bench.measure(case)
        except Exception as error:
            row = {"group": group, "name": case.name, "batch": case.batch}
            yield {**row, "error": f"{type(error).__name__}: {error}"}


# ---- what is printed ----------------------------------------------------------------------------


def verdict(row: Row) -> str:
    if row.get("error"):
        return str(row["error"]).replace("|", "\\|")
    if row.get("goal_ratio") and row.get("ratio"):
        least = 1 / row["goal_ratio"]
        return "met" if row["ratio"] >= least * (1 - NOISE) else f"missed ({least:.2f})"
    if not row.get("floor") or row.get("ratio") is None:
        return ""
    return "met" if row["ratio"] >= row["floor"] * (1 - NOISE) else f"missed ({row['floor']})"


AGAINST = {
    "layers": "oneDNN direct",
    "ansor": "the best of oneDNN, torch eager and torch.compile",
    "rows": "the default schedule",
    "sparse": "the same layer dense",
    "sampled": "the default schedule",
    "ablation": "quick",
    "winograd": "the direct one",
    "metaschedule": "MetaSchedule after 256 trials",
    "methods": "each other",
}


def summary(group: str, rows: list[Row]) -> str:
    good = [row for row in rows if row.get("ratio")]
    ratios = [row["ratio"] for row in good]
    if not ratios:
        return f"{group}: nothing was measured"
    spent = [row["cpu_s"] for row in good]
    text = (
        f"{group}: {len(good)} of {len(rows)} right; against {AGAINST[group]} median "
        f"{statistics.median(ratios):.2f}, geometric mean {geometric(ratios):.2f}, least "
        f"{min(ratios):.2f}, {sum(r < 1 for r in ratios)} slower; CPU seconds of a search: median "
        f"{statistics.median(spent):.1f}, most {max(spent):.1f}"
    )
    shots = [row["oneshot_ratio"] for row in good if row.get("oneshot_ratio")]
    if shots:
        text += f"; oneshot's speed beside quick's: median {statistics.median(shots):.2f}, "
        text += f"least {min(shots):.2f}"
    return text


def record(recorder: harness.Recorder, row: Row) -> None:
    values = pick(row, RECORDED)
    if "parts" in row:  # ablation
        values = {name: (speed, "times") for name, speed in row["parts"].items()}
    elif "us" in row:  # methods
        values = {name: (1e-3 * us, "ms") for name, us in row["us"].items()}
    elif not row.get("error"):
        values["goal"] = (verdict(row), "")
        values["trials"] = (row.get("trials"), "")
    recorder.add(row["group"], f"{row['name']} b{row['batch']}", values)


def line(row: Row) -> str:
    if row["group"] in TABLES:
        return TABLES[row["group"]]([row]).splitlines()[2]
    shown = "".join(f"{number(row, k):>7}" for k in ("ratio", "oneshot_ratio", "gain"))
    name, cpu = f"{row['name']} b{row['batch']}", number(row, "cpu_s", ".1f")
    return f"{name:32}{shown}{cpu:>7}  {verdict(row)} {row.get('rule', '')}"


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("--group", choices=list(AGAINST), help="only these cases")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10, help="for each search")
    parser.add_argument("--method", default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that hold it")
    return parser.parse_intermixed_args()


def main() -> None:
    given = options()
    recorder = harness.Recorder("tune", given.record)
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "rows.jsonl"
    if not given.resume:
        kept.unlink(missing_ok=True)
    rows: list[Row] = (
        [json.loads(t) for t in kept.read_text().splitlines()] if kept.exists() else []
    )
    bench = Bench(given)
    for group in [given.group] if given.group else list(AGAINST):
        for row in measured(bench, group, rows):
            rows.append(row)
            with kept.open("a") as file:
                file.write(json.dumps(row) + "\n")
            record(recorder, row)
            print(json.dumps(row) if given.json else line(row), flush=True)
        here = [row for row in rows if row["group"] == group]
        if not given.json and here:
            print(TABLES[group](here) if group in TABLES else summary(group, here))


if __name__ == "__main__":
    harness.run(main)

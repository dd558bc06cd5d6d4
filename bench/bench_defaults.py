"""Default schedules beside torch eager: operators, kernels, and drawn kernels.

    ./dev bench defaults [WORD ...] [--only KIND] [--machine avx2] [--nests]
    ./dev bench defaults --sampled 300 [--seed 1] [--resume]
    ./dev bench defaults --edits 200 [--isa avx2] [--only operators|kernels] [--again] [WORD ...]
    ./dev bench defaults --choosing [--only KIND] [--sampled 300]

Cases by kind: operators at shapes of networks, kernels of examples/kernels at two layers of
ResNet-18, odd (other programs of networks with channels first), long (long reductions), images (16
images), windows (depth-wise, beyond L1). Both run in turns in one process on one thread; a time is
the median of thread processor time, a ratio above 1 is faster than torch. Packing and padding are
inside the time, but for constant inputs, which are prepared beforehand. --nests shows the time of
each loop nest.

--sampled times kernels drawn for the layers of ResNet-18 against the module that Canvas writes for
them. Draw i has sizes for half of the multiply-adds and weights of all layers; one layer is drawn.
Outputs are compared with the module in float64. --edits: defaults_edits.py. --choosing runs no
code: it times the choice of each default schedule, edits and checks included.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import cases
import compiled_program as code
import harness
import torch
from cases import Case, example_kernels, operators
from harness import geometric, pick

import canvas
from canvas import _core

CALLS = 9  # of a choice
GOAL = 1e-3  # seconds of a choice
WRONG = 1e-4  # of the largest value, or 4 times what torch is off
BOUNDS = (0, 0.5, 0.8, 1, 1.5, 2, 3, 5, 10, math.inf)
Row = dict[str, Any]
TIMES = {"time": ("us", "us"), "torch": ("torch_us", "us"), "times torch": ("ratio", "times")}
EDITS = {"default": ("default_us", "us"), "hand": ("hand_us", "us"), "best": ("best_us", "us"),
         "of hand": ("of_hand", "times"), "of the best": ("of_best", "times"),
         "edits": ("edits", "")}  # fmt: skip


# ---- operators and kernels ----------------------------------------------------------------------


def is_right(made: code.Code, wanted: torch.Tensor, channels_last: bool) -> bool:
    made.call()
    found = torch.from_numpy(made.outputs[0])
    if channels_last and wanted.dim() == 4 and wanted.shape != found.shape:
        wanted = wanted.permute(0, 2, 3, 1)
    return torch.allclose(found.reshape(-1), wanted.reshape(-1), 1e-3, 1e-4)


def measure(case: Case, samples: int, machine: str | None) -> Row:
    arrays = code.random_inputs(case.program)
    tensors = [torch.from_numpy(array) for array in arrays]
    made = code.compiled(case.program, arrays, None, machine)
    text = code.c_text(case.program, machine)
    with torch.inference_mode():
        if case.same and not is_right(made, case.torch(tensors), "nhwc" in case.name):
            return {"name": case.name, "error": "differs from torch"}
        ours, eager = code.in_turns([made.call, lambda: case.torch(tensors)], samples)
    return {
        "name": case.name,
        "us": 1e6 * statistics.median(ours),
        "torch_us": 1e6 * statistics.median(eager),
        "ratio": code.ratio(eager, ours),
        "kb": len(text) / 1000,
        "compile_s": made.seconds,
    }


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:34} {row['error']}"
    return (
        f"{row['name']:34} {row['us']:10.1f} us  torch {row['torch_us']:10.1f} us "
        f"{row['ratio']:6.2f} {row['kb']:6.1f} kB {row['compile_s']:5.2f} s"
    )


def show_nests(case: Case, machine: str | None) -> None:
    for nest in code.nests(case.program, code.random_inputs(case.program), machine):
        print(f"    {1e6 * nest.seconds:10.1f} us {','.join(nest.stores):20} {code.kind_of(nest)}")


def kinds(args: argparse.Namespace) -> Iterator[Row]:
    machine = code.machine_text(args.machine)
    chosen = {k: make() for k, make in cases.KINDS.items() if args.only in (None, k)}
    named = {case.name: kind for kind, found in chosen.items() for case in found}
    for case in (case for found in chosen.values() for case in found):
        if args.words and not any(word in case.name for word in args.words):
            continue
        yield measure(case, args.samples, machine) | {"kind": named[case.name]}
        if args.nests:
            show_nests(case, machine)


# ---- drawn kernels ------------------------------------------------------------------------------


def off(result: Any, wanted: Any) -> float:
    """The largest difference, of the largest value."""
    worst = (torch.as_tensor(result, dtype=torch.float64).reshape(-1) - wanted.reshape(-1)).abs()
    return float(worst.max() / wanted.abs().max().clamp_min(1e-30))


def measure_draw(number: int, pack: canvas.KernelPack, target: int, samples: int) -> Row:
    program = _core.lower(pack.text, target, 1)
    _, c, h, w = _core.signature(program)[0][0][2]
    module: Any = pack.module(c, h, w, target=pack.targets[target]).eval()
    arrays = cases.operands(program, module)
    text = code.c_text(program)
    row: Row = {"draw": number, "target": pack.targets[target], "kernel": pack.kernel}
    made = code.compiled(program, arrays)
    row |= {"kb": len(text) / 1000, "compile_s": made.seconds}
    image = torch.from_numpy(arrays[0])
    with torch.inference_mode():
        made.call()
        result = made.outputs[0].copy()
        theirs = module(image)
        wanted = module.double()(image.double())
        module.float()
        row |= {"error": off(result, wanted), "torch_error": off(theirs, wanted)}
        if not row["error"] <= max(WRONG, 4 * row["torch_error"]):
            return row | {"wrong": True}
        ours, eager = code.in_turns([made.call, lambda: module(image)], samples)
    row |= {"us": 1e6 * statistics.median(ours), "torch_us": 1e6 * statistics.median(eager)}
    row["ratio"] = code.ratio(eager, ours)
    if row["ratio"] < 1:
        row["reason"] = reason(program, arrays)
    return row


def reason(program: str, arrays: code.Arrays) -> str:
    """The nest that takes longest: its share, what it goes into, the stage that it computes."""
    found = code.nests(program, arrays)
    total = sum(nest.seconds for nest in found) or 1
    slow = found[0]
    name = slow.stores[0] if slow.stores else "?"
    line = re.search(rf"^{re.escape(name)}\[.*$", program, re.M)
    stage = line[0] if line else name
    return f"{100 * slow.seconds / total:.0f} % {code.kind_of(slow)}: {stage}"


def stored(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def sampled(count: int, seed: int, samples: int, path: Path) -> Iterator[Row]:
    """Rows of the file, and then new ones, which go there as they come."""
    known = stored(path)
    yield from known[:count]
    first = known[-1]["draw"] + 1 if known else 0
    left = count - len(known)
    for number, pack, target in cases.draws(seed, first):
        if left <= 0:
            return
        left -= 1
        try:
            row = measure_draw(number, pack, target, samples)
        except Exception as error:
            row = {"draw": number, "target": pack.targets[target], "kernel": pack.kernel}
            row["failed"] = f"{type(error).__name__}: {error}"
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        yield row


def draw_line(row: Row) -> str:
    name = f"draw {row['draw']} {row['target']}"
    if "ratio" not in row:
        why = row.get("failed") or f"wrong by {row['error']:.2g}"
        return f"{name:34} {why}"
    text = f"{name:34} {row['us']:9.1f} us  torch {row['torch_us']:9.1f} us {row['ratio']:6.2f}"
    text += f" {row['kb']:6.1f} kB {row['compile_s']:5.2f} s"
    return text + (f"  {row['reason']}" if "reason" in row else "")


def distribution(rows: list[Row]) -> str:
    good = [row for row in rows if "ratio" in row]
    ratios = sorted(row["ratio"] for row in good)
    if not ratios:
        return "no kernel was measured"
    lines = [
        f"{len(good)} of {len(rows)} kernels were right and timed: geometric mean "
        f"{geometric(ratios):.2f}, median {statistics.median(ratios):.2f}, least {ratios[0]:.2f}, "
        f"most {ratios[-1]:.1f}; {sum(r < 1 for r in ratios)} are slower than torch",
        "", "| times torch | kernels |", "|---|---|",
    ]  # fmt: skip
    for low, high in pairwise(BOUNDS):
        shown = f"{low} to {high}" if high < math.inf else f"over {low}"
        lines.append(f"| {shown} | {sum(low <= r < high for r in ratios)} |")
    kb, seconds = (sorted(row[key] for row in good) for key in ("kb", "compile_s"))
    lines += [
        "",
        f"C: median {statistics.median(kb):.1f} kB, most {kb[-1]:.0f}; the compiler took "
        f"{statistics.median(seconds):.2f} s in the median, {seconds[-1]:.1f} at most.",
    ]
    return "\n".join(lines)


def losses(rows: list[Row]) -> str:
    lost = sorted((row for row in rows if row.get("ratio", 1) < 1), key=lambda row: row["ratio"])
    if not lost:
        return "No kernel is slower than torch."
    kinds = Counter(re.sub(r"^\d+ % |: .*$", "", row.get("reason", "?")) for row in lost)
    lines = [", ".join(f"{count} {kind}" for kind, count in kinds.most_common()), "",
             "| draw | layer | times torch | us | torch us | most of its time |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in lost:
        why = row.get("reason", "").replace("|", "\\|")
        lines.append(
            f"| {row['draw']} | {row['target']} | {row['ratio']:.2f} | {row['us']:.0f} | "
            f"{row['torch_us']:.0f} | {why} |"
        )
    return "\n".join(lines)


# ---- how long the choice takes ------------------------------------------------------------------


def choices(only: str | None, sampled: int, words: list[str]) -> Iterator[tuple[str, str]]:
    """(name, text): the cases of `./dev bench defaults`, then kernels drawn for ResNet-18."""
    for name, program in cases.programs(only):
        if not words or any(word in name for word in words):
            yield name, program
    yield from cases.drawn_programs(sampled)


def machines(machine: str) -> list[str]:
    """One for each call, with an L2 that is 1 KiB larger each time: a tile chosen before is
    remembered for its machine.
    """
    size = re.search(r"^l2 (\d+) (KiB|MiB)$", machine, re.M)
    assert size
    kib = int(size[1]) * (1024 if size[2] == "MiB" else 1)
    return [machine.replace(size[0], f"l2 {kib + i} KiB") for i in range(CALLS)]


def seconds(program: str, known: list[str]) -> float:
    taken = []
    for machine in known:
        start = time.thread_time()
        _core.bind_schedule(program, None, machine)
        taken.append(time.thread_time() - start)
    return statistics.median(taken)


def choosing(programs: Iterable[tuple[str, str]], machine: str) -> Iterator[Row]:
    known = machines(machine)
    for name, program in programs:
        yield {"name": name, "choosing_us": 1e6 * seconds(program, known)}


def choice_line(row: Row) -> str:
    return f"{row['name']:34} {row['choosing_us']:10.0f} us"


def choice_summary(rows: list[Row]) -> str:
    times = sorted(row["choosing_us"] for row in rows)
    later = sum(us >= 1e6 * GOAL for us in times)
    nine = times[int(0.9 * (len(times) - 1))]
    return (
        f"{len(times)} default schedules: {statistics.median(times):.0f} us in the median, nine "
        f"of ten within {nine:.0f} us, the slowest {times[-1]:.0f} us; {later} take 1 ms or more"
    )


# ---- the command --------------------------------------------------------------------------------


def show(rows: Iterator[Row], text: Any, as_json: bool, keep: Any = None) -> list[Row]:
    """Each row as it comes; `keep` records it."""
    shown = []
    for row in rows:
        print(json.dumps(row) if as_json else text(row), flush=True)
        shown.append(row)
        if keep:
            keep(row)
    return shown


def show_cases(args: argparse.Namespace, recorder: harness.Recorder) -> None:
    def keep(row: Row) -> None:
        recorder.add(row["kind"], row["name"], pick(row, TIMES))

    rows = show(kinds(args), line, args.json, keep)
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios and not args.json:
        print(f"geometric mean of {len(ratios)}: {geometric(ratios):.2f}")


def show_sampled(args: argparse.Namespace, recorder: harness.Recorder) -> None:
    code.BUILD.mkdir(parents=True, exist_ok=True)
    path = code.BUILD / f"sampled-{args.seed}.jsonl"
    if not args.resume:
        path.unlink(missing_ok=True)
    rows = show(sampled(args.sampled, args.seed, args.samples, path), draw_line, args.json)
    if not args.json:
        print(f"\n{distribution(rows)}\n\n{losses(rows)}")
    ratios = [row["ratio"] for row in rows if "ratio" in row]
    if ratios:
        few = {"geometric mean": geometric(ratios), "median": statistics.median(ratios),
               "least": min(ratios), "most": max(ratios)}  # fmt: skip
        values = {name: (value, "times") for name, value in few.items()}
        values["slower than torch"] = (sum(ratio < 1 for ratio in ratios), "")
        recorder.add("sampled", f"{len(rows)} kernels", values, seed=args.seed)


def show_choosing(args: argparse.Namespace, recorder: harness.Recorder) -> None:
    machine = code.machine_text(args.machine) or code.this_machine()
    found = choosing(choices(args.only, args.sampled, args.words), machine)
    rows = show(found, choice_line, args.json)
    if not args.json:
        print(choice_summary(rows))
    groups = {"drawn kernels": True, "all others": False}
    for name, drawn in groups.items():
        ms = sorted(
            1e-3 * r["choosing_us"] for r in rows if r["name"].startswith("draw ") == drawn
        )
        if ms:
            values = {"programs": (len(ms), ""), "median": (statistics.median(ms), "ms"),
                      "nine of ten within": (ms[int(0.9 * (len(ms) - 1))], "ms"),
                      "slowest": (ms[-1], "ms")}  # fmt: skip
            recorder.add("choosing", name, values)


def show_edits(args: argparse.Namespace, recorder: harness.Recorder) -> None:
    import defaults_edits as edits

    if args.only:
        chosen = example_kernels() if args.only == "kernels" else operators()
        found = edits.run_defaults(chosen, args.words, args.isa, args.edits, args.samples)
        table = f"edits of defaults {args.isa}"
    else:
        found = edits.run(args.words, args.isa, args.edits, args.samples, args.again)
        table = f"edits {args.isa}"

    def keep(row: Row) -> None:
        recorder.add(table, row["name"], pick(row, EDITS))

    rows = [row for row in show(found, edits.line, args.json, keep) if "of_best" in row]
    if rows and not args.json:
        print(f"of the best: {geometric([row['of_best'] for row in rows]):.2f}")


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("words", nargs="*", help="only cases whose names hold one of these")
    parser.add_argument("--only", choices=list(cases.KINDS))
    parser.add_argument("--machine", choices=["here", "avx512", "avx2", "sse"], default="here")
    parser.add_argument("--nests", action="store_true", help="show the time of each nest")
    parser.add_argument("--sampled", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="continue a run")
    parser.add_argument("--edits", type=int, default=-1, help="random edits of hand schedules")
    parser.add_argument("--choosing", action="store_true", help="time the choice alone")
    parser.add_argument("--isa", choices=["avx512", "avx2"], default="avx512")
    parser.add_argument("--again", action="store_true", help="time the best of a run before")
    parser.add_argument("--samples", type=int, default=15)
    return parser.parse_args()


def main() -> None:
    args = options()
    recorder = harness.Recorder("defaults", args.record)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:  # what is compiled is timed, too
        os.environ["CANVAS_CACHE"] = str(Path(cache).resolve())
        if args.choosing:
            show_choosing(args, recorder)
        elif args.sampled:
            show_sampled(args, recorder)
        elif args.edits >= 0:
            show_edits(args, recorder)
        else:
            show_cases(args, recorder)


if __name__ == "__main__":
    harness.run(main)

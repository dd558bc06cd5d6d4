"""How fast programs are that nobody scheduled: the default schedule beside torch eager.

    ./dev bench defaults [WORD ...] [--only KIND] [--machine avx2] [--nests]
    ./dev bench defaults --sampled 300 [--seed 1] [--resume] [--report docs/reports/defaults.md]
    ./dev bench defaults --edits 200 [--again] [WORD ...]
    ./dev bench defaults --edits 200 --only operators|kernels [WORD ...]
    ./dev bench defaults --choosing [--only KIND] [--sampled 300]

Cases are operators at shapes that networks have, the kernels of examples/kernels at two layers of
ResNet-18, what else stands in networks with channels first (defaults_odd.py), products with long
sums (defaults_long.py), convolutions of 16 images (defaults_images.py) and depth-wise ones whose
windows the first cache does not hold (defaults_windows.py); a KIND is operators, kernels, odd,
long, images or windows. Both run in one process on one thread, by turns; a time is the median of
thread processor time, a ratio above 1 is faster than torch. What is packed or padded is inside the
time, but for constant inputs (the weights of kernels), which are prepared beforehand. --nests
shows where the time goes. --sampled is of kernels drawn for the layers of ResNet-18, --edits of
the default against hand schedules and random edits of them, with --only of the defaults
themselves, of cases without a hand schedule: defaults_sampled.py, defaults_edits.py,
defaults_kernels.py. --choosing runs no code: it times how long the choice of each default schedule
takes, the edits before it and all checks included (defaults_choosing.py).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import defaults_choosing as choosing
import defaults_code as code
import defaults_sampled as sampled
import machines
import torch
from defaults_cases import Case, example_kernels, operators
from defaults_kinds import KINDS

Row = dict[str, Any]


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
            return {"name": case.name, "error": "it is not what torch says"}
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


def cases(args: argparse.Namespace) -> Iterator[Row]:
    machine = code.machine_text(args.machine)
    chosen = [case for name, kind in KINDS.items() if args.only in (None, name) for case in kind()]
    for case in chosen:
        if args.words and not any(word in case.name for word in args.words):
            continue
        yield measure(case, args.samples, machine)
        if args.nests:
            show_nests(case, machine)


def show(rows: Iterator[Row], text: Any, as_json: bool) -> list[Row]:
    shown = []
    for row in rows:
        print(json.dumps(row) if as_json else text(row), flush=True)
        shown.append(row)
    return shown


def show_sampled(args: argparse.Namespace) -> None:
    code.BUILD.mkdir(parents=True, exist_ok=True)
    path = code.BUILD / f"sampled-{args.seed}.jsonl"
    if not args.resume:
        path.unlink(missing_ok=True)
    found = sampled.run(args.sampled, args.seed, args.samples, path)
    rows = show(found, sampled.line, args.json)
    if not args.json:
        print(f"\n{sampled.summary(rows)}\n\n{sampled.losses(rows)}")


def show_choosing(args: argparse.Namespace) -> None:
    named = choosing.programs(args.only, args.sampled, args.words)
    machine = code.machine_text(args.machine) or machines.this()
    rows = show(choosing.run(named, machine), choosing.line, args.json)
    if not args.json:
        print(choosing.summary(rows))


def show_edits(args: argparse.Namespace) -> None:
    if args.only:
        import defaults_kernels as kernels

        chosen = example_kernels() if args.only == "kernels" else operators()
        found = kernels.run(chosen, args.words, args.isa, args.edits, args.samples)
        text = kernels.line
    else:
        import defaults_edits as edits

        found = edits.run(args.words, args.isa, args.edits, args.samples, args.again)
        text = edits.line
    rows = [row for row in show(found, text, args.json) if "of_best" in row]
    if rows and not args.json:
        print(f"of the best: {sampled.geometric([row['of_best'] for row in rows]):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("words", nargs="*", help="only cases whose names hold one of these")
    parser.add_argument("--only", choices=list(KINDS))
    parser.add_argument("--machine", choices=["here", "avx512", "avx2", "sse"], default="here")
    parser.add_argument("--nests", action="store_true", help="show the time of each nest")
    parser.add_argument("--sampled", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="go on where a run stopped")
    parser.add_argument("--edits", type=int, default=-1, help="random edits of hand schedules")
    parser.add_argument("--choosing", action="store_true", help="time the choice alone")
    parser.add_argument("--isa", choices=["avx512", "avx2"], default="avx512")
    parser.add_argument("--again", action="store_true", help="time the best of a run before")
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as cache:  # what is compiled is timed, too
        os.environ["CANVAS_CACHE"] = str(Path(cache).resolve())
        if args.choosing:
            show_choosing(args)
        elif args.sampled:
            show_sampled(args)
        elif args.edits >= 0:
            show_edits(args)
        else:
            rows = show(cases(args), line, args.json)
            ratios = [row["ratio"] for row in rows if "ratio" in row]
            if ratios and not args.json:
                print(f"geometric mean of {len(ratios)}: {sampled.geometric(ratios):.2f}")


if __name__ == "__main__":
    main()

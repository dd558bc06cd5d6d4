"""The schedule notebook's configs beside what GATuner and `canvas tune` find.

    ./dev bench notebook [--shape 10,64,256,256] [--trials 32] [--seconds 30] [--rounds 5]
                         [--config 'NAME={"tile_y": [-1, 64, 5], ...}']

The shape is images, channels, height, width (docs/notebook.md has the templates); --trials 0
searches by `canvas tune` only, --config adds a config of the dense template. Contenders take turns
in one process, timed by the thread's processor time: medians of --rounds runs.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"  # as in the notebook, before any code is loaded

import harness
import numpy as np

import canvas
import canvas.te as tvm
from canvas import autotvm

ROOT = Path(__file__).resolve().parents[1]
# Of the notebook: the config that it imports, and the fastest of its logs.
CONFIGS = {
    "index 77156": {"tile_y": [-1, 320, 128], "tile_x": [-1, 8, 2], "tile_k": [-1, 1]},
    "index 100143": {"tile_y": [-1, 64, 5], "tile_x": [-1, 1, 64], "tile_k": [-1, 9]},
}
SPARSITY = 0.6


def page_modules(folder: Path) -> None:
    """The files of docs/notebook.md, importable."""
    page = (ROOT / "docs/notebook.md").read_text()
    for path, body in re.findall(r"^```python (\S+)\n(.*?)^```$", page, re.S | re.M):
        (folder / path).write_text(body)
    sys.path.insert(0, str(folder))


class Contender:
    """A function with its arrays, how long it took to find, and how often it was timed."""

    def __init__(self, name: str, run: Callable[[], Any], flop: float, found: float = 0) -> None:
        self.name, self.run, self.flop, self.found = name, run, flop, found
        self.times: list[float] = []

    def time(self) -> None:
        start = time.thread_time()
        self.run()
        self.times.append(time.thread_time() - start)

    def row(self, best: float) -> dict[str, Any]:
        median = statistics.median(self.times)
        return {"name": self.name, "ms": 1e3 * median, "gflops": self.flop / median / 1e9,
                "to_best": median / best, "found_s": self.found}  # fmt: skip


def config(sizes: dict[str, list[int]]) -> autotvm.ConfigEntity:
    rows = [[name, "sp", size] for name, size in sizes.items()]
    return autotvm.ConfigEntity.from_json_dict({"index": 0, "code_hash": None, "entity": rows})


def built(made: Any, arrays: list[Any]) -> Callable[[], Any]:
    function = tvm.build(*made)
    return lambda: function(*arrays)


def tuned_by_genes(task: Any, trials: int) -> tuple[Any, float]:
    """(schedule and arguments, seconds)"""
    option = autotvm.measure_option("local", autotvm.LocalRunner(number=1, repeat=3, timeout=20))
    tuner, start = autotvm.tuner.GATuner(task), time.time()
    tuner.tune(trials, option, callbacks=[autotvm.callback.progress_bar(trials, task.name)])
    print(tuner.best_config, file=sys.stderr)
    return task.instantiate(tuner.best_config), time.time() - start


def tuned(name: str, program: str, arrays: list[Any], flop: float, most: float) -> list[Contender]:
    """What `canvas tune` finds in so many seconds; nothing where that is too short."""
    start = time.time()
    try:
        found = canvas.tune(program, seconds=most)
    except canvas.NoSolution as error:
        print(f"{name}: {error}", file=sys.stderr)
        return []
    print(found.rule, file=sys.stderr)
    code = found.compile()
    return [Contender(name, lambda: code(*arrays), flop, time.time() - start)]


def dense(n: int, c: int, h: int, w: int, options: Any) -> list[Contender]:
    template = importlib.import_module("myconv").conv2d_3x3_gemm
    rng = np.random.default_rng(0)
    data, weight = (rng.random(size, "float32") for size in ((n, h, w, c), (c, 9 * c)))
    out: Any = np.empty((n * h * w, c), "float32")
    arrays = [data, weight, out]
    flop = 2.0 * n * h * w * c * 9 * c
    found = []
    args = (n, h, w, c, c, "float32")
    for name, sizes in [*CONFIGS.items(), *options.config]:
        if sizes["tile_y"][1] * sizes["tile_y"][2] <= n * h * w:
            with autotvm.ApplyConfig(config(sizes)):
                found.append(Contender(f"dense, {name}", built(template(*args), arrays), flop))
    if options.trials:
        task = autotvm.task.create("conv2d_3x3_gemm", args, "llvm")
        made, took = tuned_by_genes(task, options.trials)
        name = f"dense, GATuner, {options.trials} trials"
        found.append(Contender(name, built(made, arrays), flop, took))
        program = task.instantiate(task.config_space.get(0))[0].written.text
        name = "dense, `canvas tune` of its program"
        found += tuned(name, program, arrays[:2], flop, options.seconds)
    program = canvas.operator_program(
        "conv2d_nhwc",
        batch=n,
        height=h,
        width=w,
        in_channels=c,
        out_channels=c,
        kernel=3,
        padding=1,
    )
    ordered = np.ascontiguousarray(weight.reshape(c, 3, 3, c).transpose(0, 3, 1, 2))
    name = "dense, `canvas tune conv2d_nhwc`"
    return found + tuned(name, program, [data, ordered], flop, options.seconds)


def sparse_operator(n: int, c: int, h: int, w: int, blocks: int) -> str:
    """The same convolution as a call of an operator, scheduled by default."""
    return canvas.operator_program(
        "bsr_conv2d_nhwc",
        batch=n,
        height=h,
        width=w,
        in_channels=c,
        out_channels=c,
        kernel=3,
        padding=1,
        blocks=blocks,
    )


def sparse(n: int, c: int, h: int, w: int, options: Any) -> list[Contender]:
    template = importlib.import_module("myspconv").spconv2d_3x3_gemm
    utils = importlib.import_module("mysputils")
    rng = np.random.default_rng(0)
    data = rng.random((n, h, w, c), "float32")
    blocks = utils.make_bsr_sparse(rng.random((c, 9 * c), "float32"), SPARSITY, (16, 1))
    args = (n, h, w, c, c, *blocks.data.shape, "float32")
    task = autotvm.task.create("spconv2d_3x3_gemm", args, "llvm")
    parts = dict(zip(("Wdat", "Wind", "Wptr"), utils.unpack_bsr(blocks)), Data=data)
    found = []
    arrays = [parts[name] for name in ("Data", "Wdat", "Wind", "Wptr")]
    run = built(template(*args), arrays)
    found.append(Contender("sparse, its fallback", run, task.flop))
    code = canvas.compile_program(sparse_operator(n, c, h, w, len(blocks.data)))
    given = [parts[name] for name in ("Data", "Wdat", "Wind", "Wptr")]
    found.append(Contender("sparse, default schedule", lambda: code(*given), task.flop))
    made, took = tuned_by_genes(task, options.trials)
    name = f"sparse, GATuner, {options.trials} trials"
    found.append(Contender(name, built(made, arrays), task.flop, took))
    program = task.instantiate(task.config_space.get(0))[0].program
    inputs = re.findall(r"^in (\w+)", program, re.M)
    arrays = [parts[name] for name in inputs]
    name = "sparse, `canvas tune` of its program"
    return found + tuned(name, program, arrays, task.flop, options.seconds)


def named(text: str) -> tuple[str, dict[str, list[int]]]:
    """NAME={"tile_y": [-1, 64, 5], ...}"""
    name, _, sizes = text.partition("=")
    return name, json.loads(sizes)


RECORDED = {"time": ("ms", "ms"), "GFLOP/s": ("gflops", ""), "to the best": ("to_best", "times"),
            "found in": ("found_s", "s")}  # fmt: skip


def line(row: dict[str, Any]) -> str:
    return (
        f"| {row['name']} | {row['ms']:.1f} ms | {row['gflops']:.1f} | {row['to_best']:.2f} "
        f"| {row['found_s']:.0f} s |"
    )


def timed(group: list[Contender], rounds: int) -> list[dict[str, Any]]:
    """Timed in turns after one run each."""
    for one in group:
        one.run()
    for _ in range(rounds):
        for one in group:
            one.time()
    best = min(statistics.median(one.times) for one in group)
    return [one.row(best) for one in group]


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--shape", default="10,64,256,256")
    parser.add_argument("--trials", type=int, default=32)
    parser.add_argument("--config", action="append", default=[], type=named, metavar="NAME=JSON")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    recorder = harness.Recorder("notebook", options.record)
    n, c, h, w = map(int, options.shape.split(","))
    if not options.json:
        print("| contender | time | GFLOP/s | to the best | found in |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        page_modules(Path(folder))
        for group in (dense, sparse) if options.trials else (dense,):
            for row in timed(group(n, c, h, w, options), options.rounds):
                print(json.dumps(row) if options.json else line(row), flush=True)
                name = row["name"].replace("`", "")
                recorder.add(f"{h}x{w}", name, harness.pick(row, RECORDED))


if __name__ == "__main__":
    harness.run(main)

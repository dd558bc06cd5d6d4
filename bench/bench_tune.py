"""Tuned schedules against oneDNN and torch, case by case, on one core; kernels that were sampled
against their default schedules.

    ./dev bench tune [--json] [--group layers|ansor|rows|sparse|sampled|ablation|
                     winograd|metaschedule|methods]
                     [--rounds N] [--seconds S] [--method NAME] [--resume] [--report FILE]
                     [WORD...]

Of `layers` the ratio is how many times faster the winner of `quick` is than oneDNN's direct
algorithm (its C API, every layout as it likes, weights packed beforehand on both sides); of
`ansor` than the best of torch eager and torch.compile (frozen weights) and, where it is there,
oneDNN; of `sparse` than the same layer dense; of `rows` and `sampled` than the default schedule of
the same program. `oneshot` is the time of the winner of `quick` beside that of the schedule which
the model picks unmeasured. Contenders take turns in one process, timed by the thread's processor
time; every result is compared with torch's before. `ablation` has `quick` of the layers at batch 1
without its parts: without the descent (its shortlist alone), without the model (random points, as
many), without measuring (oneshot), without finals (the trial that seemed best). `winograd` is, of
the 3x3 layers, a search that may use Winograd's form against the direct one that `quick` found,
oneDNN's Winograd beside it. `metaschedule` is TVM's tuner (tune_metaschedule.py) with the same
seconds and with 256 trials. `methods` are the methods of AutoScheduler and AutoTVM beside `quick`,
on the gemm and the shapes of their documents. CPU seconds are those of the search, compilers
included. WORDs choose cases whose names hold them. Rows go to build/tune/rows.jsonl as they come;
--resume keeps those that stand there.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import resource
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import bench_native
import native_onednn
import numpy as np
import tune_ablation
import tune_metaschedule
import tune_methods
import tune_sparse
from bench_native import duration, number
from native_onednn import Chain, Speed
from native_worker import Timer, aligned, check, of_torch, ratio, turns
from tune_cases import GROUPS, Case

import canvas
from canvas import _core

FOLDER = Path(__file__).resolve().parent.parent / "build" / "tune"
NOISE = 0.02
RIVALS = {
    "layers": ["onednn"],
    "ansor": ["onednn", "torch", "compile"],
    "rows": ["default"],
}
SAMPLED = 60
Row = dict[str, Any]


def cpu() -> float:
    """Processor seconds of this process and of all that it started."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


# ---- ours --------------------------------------------------------------------------------------


class Native:
    """A program under a schedule, what is constant prepared, as a timer and its output."""

    def __init__(self, speed: Speed, program: str, schedule: str | None,
                 arrays: list[np.ndarray]) -> None:  # fmt: skip
        path, name, packed, prepare, takes = _core.compile(program, schedule)
        library = ctypes.CDLL(path)
        self.path = path
        self.speed, self.given = speed, [aligned(array) for array in arrays]
        outputs = _core.signature(program)[1]
        self.out = [aligned(np.empty(row[2], np.float32)) for row in outputs]
        self.packed = aligned(np.empty(max(packed, 1), np.uint8))
        ours = [a for a, takes_it in zip(self.given, takes) if takes_it]
        middle = [self.packed] if packed else []
        self.pointers = addresses([*ours, *middle, *self.out])
        self.function = getattr(library, f"canvas_call_{name}")
        if packed:
            fixed = [a for a, takes_it in zip(self.given, prepare) if takes_it]
            first = getattr(library, f"canvas_call_{name}_prepare", None)
            if first is not None:
                first(addresses([*fixed, self.packed]))
            else:
                plain = getattr(library, f"{name}_prepare")
                plain(*(ctypes.c_void_p(a.ctypes.data) for a in [*fixed, self.packed]))

    def timer(self, calls: int) -> float:
        return self.speed.time(self.function, self.pointers, calls)


def addresses(arrays: list[np.ndarray]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


class Bench:
    def __init__(self, options: argparse.Namespace) -> None:
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        library, self.why = native_onednn.build(FOLDER)
        self.torch, self.options, self.speed = torch, options, Speed(library)

    def native(self, program: str, schedule: str, arrays: list[np.ndarray]) -> Native:
        return Native(self.speed, program, schedule, arrays)

    def search(self, program: str, method: str, **more: Any) -> tuple[canvas.Tuned, float]:
        before = cpu()
        tuned = canvas.tune(program, method=method, **more)
        return tuned, cpu() - before

    def tuned(self, program: str, row: Row) -> dict[str, canvas.Tuned]:
        quick, row["cpu_s"] = self.search(
            program, self.options.method, seconds=self.options.seconds, seed=self.options.seed
        )
        oneshot, row["oneshot_s"] = self.search(program, "oneshot")
        row.update(rule=quick.rule, trials=quick.trials, points=quick.points, wall_s=quick.seconds)
        row["predicted_us"] = 1e6 * quick.predicted
        return {"quick": quick, "oneshot": oneshot}

    def add_native(self, program: str, found: dict[str, canvas.Tuned], arrays: list[np.ndarray],
                   wanted: np.ndarray, timers: dict[str, Timer]) -> list[Native]:  # fmt: skip
        texts: dict[str, tuple[str, str | None]] = {
            name: (tuned.program, tuned.schedule) for name, tuned in found.items()
        }
        texts["default"] = (program, None)
        made: dict[str, Native] = {}
        for name, (text, schedule) in texts.items():
            native = Native(self.speed, text, schedule, arrays)
            native.timer(1)
            check(name, native.out[0], wanted)
            # the same code is timed in the same place: what differs then is no other contender
            timers[name] = made.setdefault(native.path, native).timer
        return list(made.values())

    def tensors(self, case: Case, arrays: list[np.ndarray]) -> list[Any]:
        """As torch likes them best: channels last."""
        tensors = [self.torch.from_numpy(aligned(a)) for a in arrays]
        if not case.image:
            return tensors
        tensors[0] = tensors[0].movedim(-1, 1)
        formats = {4: self.torch.channels_last, 5: self.torch.channels_last_3d}
        return [
            t.contiguous(memory_format=formats[t.dim()]) if t.dim() in formats else t.contiguous()
            for t in tensors
        ]

    def add_torch(self, case: Case, tensors: list[Any], timers: dict[str, Timer]) -> None:
        timers["torch"] = of_torch(case.torch, tensors)
        if case.group != "ansor":
            return
        module = Frozen(self.torch, case.torch, tensors[1:]).eval()
        self.torch._dynamo.reset()  # each case is compiled for its own sizes
        function = self.torch.compile(module, dynamic=False, options={"freezing": True})
        timers["compile"] = of_torch(function, tensors[:1])

    def add_onednn(self, case: Case, arrays: list[np.ndarray], wanted: np.ndarray,
                   timers: dict[str, Timer], row: Row) -> None:  # fmt: skip
        for name, of in (("onednn", case.onednn), ("onednn_winograd", case.winograd)):
            if not self.speed.onednn or not of or (case.group == "layers" and "_" in name):
                continue
            chain = Chain(self.speed)
            try:
                made, shape, image = of(chain, arrays)
                self.speed.time(chain.run, chain.pointers, 1)
            except RuntimeError:
                if of is case.onednn:
                    raise
                continue  # it has none for this instruction set
            check(name, chain.read(made, shape, image), wanted)
            row["implementation"] = chain.implementation()
            timers[name] = of_chain(self.speed, chain)

    def winograd(self, case: Case) -> Row:
        """`quick` where it may use Winograd's form, against what it finds without."""
        row: Row = {"group": "winograd", "name": case.name, "batch": case.batch, "floor": 1.5}
        arrays, program = case.arrays(), case.program()
        tensors = self.tensors(case, arrays)
        wanted = np.ascontiguousarray(case.torch(*tensors).movedim(1, -1).numpy())
        direct, _ = self.search(program, "quick", seconds=self.options.seconds)
        found, row["cpu_s"] = self.search(
            program, "quick", seconds=self.options.seconds, seed=self.options.seed, winograd=True
        )
        row.update(rule=found.rule, trials=found.trials, wall_s=found.seconds)
        timers: dict[str, Timer] = {}
        both = {"quick": found, "direct": direct}
        kept = self.add_native(program, both, case.pack(arrays), wanted, timers)
        self.add_onednn(case, arrays, wanted, timers, row)
        times = turns(timers, self.options.rounds)
        assert kept
        row.update({f"{name}_us": statistics.median(t) * 1e6 for name, t in times.items()})
        row["ratio"] = ratio(times, "quick", ["direct"])
        return row

    def measure(self, case: Case) -> Row:
        row: Row = {"group": case.group, "name": case.name, "batch": case.batch}
        row["floor"] = case.floor if case.group == "layers" else None
        arrays, program = case.arrays(), case.program()
        tensors = self.tensors(case, arrays)
        wanted = case.torch(*tensors)
        wanted = np.ascontiguousarray((wanted.movedim(1, -1) if case.image else wanted).numpy())
        timers: dict[str, Timer] = {}
        found = self.tuned(program, row)
        kept = self.add_native(program, found, case.pack(arrays), wanted, timers)
        self.add_onednn(case, arrays, wanted, timers, row)
        self.add_torch(case, tensors, timers)
        for timer in timers.values():
            timer(1)
        return finished(row, turns(timers, self.options.rounds), RIVALS[case.group], len(kept))


def of_chain(speed: Speed, chain: Chain) -> Timer:
    return lambda calls: speed.time(chain.run, chain.pointers, calls)


def Frozen(torch: Any, function: Callable[..., Any], weights: list[Any]) -> Any:
    """The function as a module whose weights are its own: freezing packs them."""

    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            for i, weight in enumerate(weights):
                setattr(self, f"w{i}", torch.nn.Parameter(weight, requires_grad=False))

        def forward(self, x: Any) -> Any:
            return function(x, *(getattr(self, f"w{i}") for i in range(len(weights))))

    return Module()


def finished(row: Row, times: dict[str, list[float]], rivals: list[str], kept: int) -> Row:
    assert kept  # what was timed lives until here
    row.update({f"{name}_us": statistics.median(t) * 1e6 for name, t in times.items()})
    row["ratio"] = ratio(times, "quick", rivals)
    row["oneshot_ratio"] = ratio(times, "oneshot", ["quick"])
    row["gain"] = ratio(times, "quick", ["default"])
    return row


# ---- kernels that were sampled -----------------------------------------------------------------


def sampled(bench: Bench, done: int) -> Iterator[Row]:
    """Number by number, the quick search beside the default schedule."""
    from defaults_sampled import draws, operands

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


ROWS = {
    "sparse": tune_sparse.rows,
    "ablation": tune_ablation.rows,
    "methods": tune_methods.rows,
    "metaschedule": tune_metaschedule.rows,
}
TABLES = {"ablation": tune_ablation.table, "methods": tune_methods.table}  # of their own


def measured(bench: Bench, group: str, known: list[Row]) -> Iterator[Row]:
    done = {(row["group"], row["name"], row["batch"]) for row in known}
    if group in ROWS:
        yield from ROWS[group](bench, known)
        return
    if group == "sampled":
        yield from sampled(bench, sum(row["group"] == "sampled" for row in known))
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


# ---- what is printed ---------------------------------------------------------------------------


COLUMNS = {
    "case": lambda row: row["name"],
    "batch": lambda row: str(row["batch"]),
    "ratio": lambda row: number(row, "ratio"),
    "goal": lambda row: verdict(row),
    "oneshot": lambda row: number(row, "oneshot_ratio"),
    "gain": lambda row: number(row, "gain"),
    "quick time": lambda row: duration(row, "quick"),
    "direct": lambda row: duration(row, "direct"),
    "oneDNN": lambda row: duration(row, "onednn"),
    "its Winograd": lambda row: duration(row, "onednn_winograd"),
    "torch": lambda row: duration(row, "torch"),
    "compile": lambda row: duration(row, "compile"),
    "256 trials": lambda row: duration(row, "trials"),
    "their s": lambda row: number(row, "trials_s", ".0f"),
    "same seconds": lambda row: duration(row, "same"),
    "faster then": lambda row: number(row, "same_ratio"),
    "its trials": lambda row: str(row.get("same_found", "")),
    "CPU s": lambda row: number(row, "cpu_s", ".1f"),
    "trials": lambda row: str(row.get("trials", "")),
    "rule": lambda row: row.get("rule", ""),
}


def verdict(row: Row) -> str:
    if row.get("error"):
        return str(row["error"]).replace("|", "\\|")
    if row.get("goal_ratio") and row.get("ratio"):
        least = 1 / row["goal_ratio"]
        return "met" if row["ratio"] >= least * (1 - NOISE) else f"missed ({least:.2f})"
    if not row.get("floor") or row.get("ratio") is None:
        return ""
    return "met" if row["ratio"] >= row["floor"] * (1 - NOISE) else f"missed ({row['floor']})"


def table(rows: list[Row]) -> str:
    used = {k: v for k, v in COLUMNS.items() if any(v(row) for row in rows)}
    lines = [f"| {' | '.join(used)} |", "|" + "---|" * len(used)]
    return "\n".join(lines + [f"| {' | '.join(f(r) for f in used.values())} |" for r in rows])


def geometric(values: list[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values))) if values else math.nan


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


def page(rows: list[Row], about: dict[str, str]) -> str:
    command = " ".join(word for word in ["./dev bench tune", *sys.argv[1:]] if word)
    parts = ["\n".join(f"- {k}: {v}" for k, v in [*about.items(), ("command", command)])]
    for group in AGAINST:
        here = [row for row in rows if row["group"] == group]
        if here:
            parts.append(f"### {group}")
            if group in TABLES:
                parts.append(TABLES[group](here))
            else:
                parts += [summary(group, here) + ".", table(here)]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per case")
    parser.add_argument("--group", choices=list(AGAINST), help="only these cases")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=10, help="for each search")
    parser.add_argument("--method", default="quick")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--report", type=Path, help="write the tables into this page")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that hold it")
    options = parser.parse_intermixed_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    kept = FOLDER / "rows.jsonl"
    if not options.resume:
        kept.unlink(missing_ok=True)
    rows: list[Row] = (
        [json.loads(t) for t in kept.read_text().splitlines()] if kept.exists() else []
    )
    bench_native.FOLDER.mkdir(parents=True, exist_ok=True)
    about = bench_native.setting()
    bench = Bench(options)
    if not options.json:
        print("\n".join(f"{name}: {value}" for name, value in about.items()), flush=True)
    for group in [options.group] if options.group else list(AGAINST):
        for row in measured(bench, group, rows):
            rows.append(row)
            with kept.open("a") as file:
                file.write(json.dumps(row) + "\n")
            if options.json:
                print(json.dumps({**row, **about}), flush=True)
            else:
                if group in TABLES:
                    print(TABLES[group]([row]).splitlines()[2], flush=True)
                    continue
                shown = "".join(f"{number(row, k):>7}" for k in ("ratio", "oneshot_ratio", "gain"))
                name = f"{row['name']} b{row['batch']}"
                print(f"{name:32}{shown}{number(row, 'cpu_s', '.1f'):>7}  {verdict(row)} "
                      f"{row.get('rule', '')}", flush=True)  # fmt: skip
        here = [row for row in rows if row["group"] == group]
        if not options.json and here:
            print(TABLES[group](here) if group in TABLES else summary(group, here))
    if options.report:
        bench_native.write_report(options.report, "tune", page(rows, about))


if __name__ == "__main__":
    main()

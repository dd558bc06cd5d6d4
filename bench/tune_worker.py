"""Contenders of `./dev bench tune` and `layers`: searches, winners as code, oneDNN, torch."""

from __future__ import annotations

import argparse
import ctypes
import resource
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Chain, Speed, Timer, aligned, build, check, of_torch, ratio, turns
from tune_cases import Case

import canvas
from canvas import _core

FOLDER = Path(__file__).resolve().parent.parent / "build" / "tune"
RIVALS = {
    "layers": ["onednn"],
    "ansor": ["onednn", "torch", "compile"],
    "rows": ["default"],
}
Row = dict[str, Any]


def cpu() -> float:
    """Processor seconds of this process and of all that it started."""
    both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in both)


class Native:
    """A program under a schedule with its constants prepared: a timer and its output."""

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
        FOLDER.mkdir(parents=True, exist_ok=True)
        library, self.why = build(FOLDER)
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
            # the same code is timed once, so that its memory does not make two contenders
            timers[name] = made.setdefault(native.path, native).timer
        return list(made.values())

    def tensors(self, case: Case, arrays: list[np.ndarray]) -> list[Any]:
        """In torch's fastest layout: channels last."""
        tensors = [self.torch.from_numpy(aligned(a)) for a in arrays]
        if not case.image:
            return tensors
        tensors[0] = tensors[0].movedim(-1, 1)
        formats = {4: self.torch.channels_last, 5: self.torch.channels_last_3d}
        return [
            t.contiguous(memory_format=formats[t.dim()]) if t.dim() in formats else t.contiguous()
            for t in tensors
        ]

    def wanted(self, case: Case, tensors: list[Any]) -> np.ndarray:
        """Torch's result, channels last."""
        result = case.torch(*tensors)
        return np.ascontiguousarray((result.movedim(1, -1) if case.image else result).numpy())

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
        """`quick` with Winograd's form allowed, against what it finds without."""
        row: Row = {"group": "winograd", "name": case.name, "batch": case.batch, "floor": 1.5}
        arrays, program = case.arrays(), case.program()
        tensors = self.tensors(case, arrays)
        wanted = self.wanted(case, tensors)
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
        wanted = self.wanted(case, tensors)
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

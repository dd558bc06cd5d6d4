"""TVM's MetaSchedule beside `quick`: one shape of each of Ansor's operators.

It searches for as many seconds as `quick` took, and with 256 trials.

    python bench/tune_metaschedule.py OPERATOR INDEX FOLDER TRIALS SEED

is one search of MetaSchedule in a process of its own, which may be ended at any time: its results
are in FOLDER. `./dev bench tune --group metaschedule` starts it and needs the packages of
bench/requirements-metaschedule.txt. The operators are those of TVM's own workloads
(te_workload.py), channels last. Constant weights may take a layout of MetaSchedule's choice, which
is packed beforehand as ours are; a search that was made before is not made again.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from contenders import Timer, aligned, check, of_torch, ratio, turns
from tune_cases import Case, ansor

Row = dict[str, Any]
FOLDER = Path(__file__).resolve().parent.parent / "build" / "tune" / "metaschedule"
TRIALS = 256
# The number of each operator's shape: C3D 4 takes TVM more than half an hour.
SHAPES = {"C1D": 3, "C2D": 3, "C3D": 2, "GMM": 3, "GRP": 3, "DIL": 3, "DEP": 2, "T2D": 2,
          "CAP": 1, "NRM": 3}  # fmt: skip
PACKED = {"C1D", "C2D", "C3D", "GRP", "DIL", "DEP", "T2D", "CAP"}


def missing() -> str:
    """Why there is no MetaSchedule here; "" if there is."""
    if importlib.util.find_spec("tvm") is None:
        return "no TVM: pip install -r bench/requirements-metaschedule.txt"
    return ""


# ---- TVM's side --------------------------------------------------------------------------------


def processor() -> str:
    """As TVM's own LLVM names this one: an old gcc names an older one without its vectors."""
    import tvm

    return str(tvm.get_global_func("target.llvm_get_system_cpu")())


def target() -> Any:
    import tvm

    return tvm.target.Target({"kind": "llvm", "mcpu": processor(), "num-cores": 1})


def workload(operator: str, index: int) -> Any:
    from tvm.s_tir.meta_schedule.testing.te_workload import create_te_workload

    function = create_te_workload(operator, index).with_attr("global_symbol", "main")
    return function.with_attr("layout_free_buffers", [1]) if operator in PACKED else function


def build(module: Any, on: Any, _parameters: Any) -> Any:
    """As TVM's own builder, which would load intrinsics for twenty seconds in every process."""
    from tvm.driver import build as tvm_build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return tvm_build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=on)


def search(operator: str, index: int, folder: str, trials: int, seed: int) -> None:
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule import tir_integration

    function = workload(operator, index)
    gc.disable()  # TVM's objects crash its collector now and then
    # By name: the search would otherwise load intrinsics, too.
    space = ms.space_generator.PostOrderApply(
        sch_rules="llvm", postprocs="llvm", mutator_probs="llvm"
    )
    print("begin", flush=True)
    tir_integration.tune_tir(
        function, target(), folder, trials, num_trials_per_iter=16 if trials > TRIALS else 64,
        seed=seed, space=space, builder=ms.builder.LocalBuilder(f_build=build),
    )  # fmt: skip


def searched(operator: str, index: int, folder: Path, trials: int, seconds: float, seed: int
             ) -> float:  # fmt: skip
    """Runs a search and returns its wall seconds; seconds = 0: without a limit."""
    spent = folder / "seconds.json"
    if spent.exists():
        return float(json.loads(spent.read_text()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [operator, str(index), str(folder), str(trials), str(seed)]
    with (folder / "log.txt").open("w") as log:
        child = subprocess.Popen(
            [sys.executable, __file__, *words], stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True,
        )  # fmt: skip
        assert child.stdout
        while (line := child.stdout.readline()) and line != "begin\n":
            pass
        start = time.monotonic()
        try:
            child.communicate(timeout=seconds or None)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, 9)
            child.communicate()
        taken = time.monotonic() - start
    spent.write_text(json.dumps(taken))
    return taken


def found(folder: Path) -> int:
    """Schedules that were measured."""
    records = folder / "database_tuning_record.json"
    return len(records.read_text().splitlines()) if records.exists() else 0


def compiled(operator: str, index: int, folder: Path) -> tuple[Any, Any, Any]:
    """The best of a search, the same without the packing of weights, and its module."""
    import tvm
    import tvm.s_tir.tensor_intrin
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule import tir_integration
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    database = ms.database.JSONDatabase(work_dir=str(folder))
    schedule = tir_integration.compile_tir(database, workload(operator, index), target())
    if schedule is None:
        raise RuntimeError("MetaSchedule found no schedule in that time")
    module = schedule.mod
    timed = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
    return tvm.compile(module, target=target()), tvm.compile(timed, target=target()), timed


def shapes_of(function: Any) -> list[tuple[int, ...]]:
    return [tuple(int(n) for n in p.shape) for p in function.params]


def arrays_of(operator: str, arrays: list[np.ndarray], case: Case) -> list[np.ndarray]:
    """As TVM's workload takes them."""
    if operator == "T2D":
        return [arrays[0].transpose(0, 2, 3, 1), arrays[1].transpose(2, 3, 0, 1)]
    return case.pack(arrays)


class Rival:
    """What a search of MetaSchedule found, checked, as a timer."""

    def __init__(self, bench: Any, case: Case, folder: Path, arrays: list[np.ndarray],
                 wanted: np.ndarray) -> None:  # fmt: skip
        operator, index = case.name.split()[0], int(case.name.split()[1]) - 1
        whole, timed, module = compiled(operator, index, folder)
        given = arrays_of(operator, arrays, case)
        result = aligned(np.zeros(shapes_of(module["main"])[-1], np.float32))
        full = [aligned(a).reshape(s) for a, s in zip(given, shapes_of(workload(operator, index)))]
        whole["main"](*self.tensors(bench, [*full, result]))
        if operator == "T2D":
            result = np.ascontiguousarray(result.transpose(0, 3, 1, 2))
        check("metaschedule", result, wanted)
        random = np.random.default_rng(1)
        packed = [
            aligned(random.standard_normal(s, np.float32)) for s in shapes_of(module["main"])
        ]
        self.timer: Timer = of_torch(timed["main"], self.tensors(bench, packed))

    @staticmethod
    def tensors(bench: Any, arrays: list[np.ndarray]) -> list[Any]:
        """TVM's, of the same memory: given those of torch, its parallel loops crash."""
        import tvm

        return [tvm.runtime.from_dlpack(bench.torch.from_numpy(a)) for a in arrays]


# ---- rows --------------------------------------------------------------------------------------


def measured(bench: Any, case: Case) -> Row:
    gc.disable()  # see search()
    row: Row = {"group": "metaschedule", "name": case.name, "batch": 1}
    operator, index = case.name.split()[0], int(case.name.split()[1]) - 1
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = bench.wanted(case, tensors)
    timers: dict[str, Timer] = {}
    tuned = bench.tuned(program, row)
    kept: list[Any] = bench.add_native(program, tuned, case.pack(arrays), wanted, timers)
    for name, trials, seconds in (("same", 100_000, row["wall_s"]), ("trials", TRIALS, 0.0)):
        folder = FOLDER / f"{operator}-{index}-{name}"
        row[f"{name}_s"] = searched(operator, index, folder, trials, seconds, bench.options.seed)
        row[f"{name}_found"] = found(folder)
        if not row[f"{name}_found"]:
            continue
        rival = Rival(bench, case, folder, arrays, wanted)
        timers[name] = rival.timer
        kept.append(rival)
    times = turns(timers, bench.options.rounds)
    assert kept
    row.update({f"{name}_us": statistics.median(t) * 1e6 for name, t in times.items()})
    row["ratio"] = ratio(times, "quick", ["trials"])
    row["same_ratio"] = ratio(times, "quick", ["same"]) if "same" in times else None
    return row


def rows(bench: Any, known: list[Row]) -> Iterator[Row]:
    done = {row["name"] for row in known if row["group"] == "metaschedule"}
    cases = [case for case in ansor() if SHAPES[case.name[:3]] == int(case.name.split()[1])]
    for case in cases:
        if case.name in done or any(word not in case.name for word in bench.options.words):
            continue
        if missing():
            yield {"group": "metaschedule", "name": case.name, "batch": 1, "error": missing()}
            continue
        try:
            yield measured(bench, case)
        except Exception as error:
            yield {"group": "metaschedule", "name": case.name, "batch": 1,
                   "error": f"{type(error).__name__}: {error}"}  # fmt: skip


if __name__ == "__main__":
    search(sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))

"""Records of what was measured: AutoTVM's lines of JSON, one for each candidate."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from .. import _core
from ..arguments import shown
from ..errors import CanvasError
from ..files import at_once
from ..te.place import mistake, unplaced
from ..te.target import Target
from ..te.target import create as create_target
from .measure import FAILED_COST, MeasureInput, MeasureResult
from .task import ConfigEntity, Task
from .task.dispatcher import DispatchContext
from .task.space import ConfigSpace

AUTOTVM_LOG_VERSION = 0.2


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    config = repr(inp.config) if include_config else ""
    return f"{inp.target}{inp.task.name}{inp.task.args}{inp.task.kwargs}{config}"


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A record as a line."""
    _json_only(protocol)
    costs = result.costs if result.error_no == 0 else (FAILED_COST,)
    row = {
        "input": [str(inp.target), inp.task.name, inp.task.args, inp.task.kwargs],
        "config": inp.config.to_json_dict(),  # type: ignore[attr-defined]
        "result": [costs, int(result.error_no), result.all_cost, result.timestamp],
        "version": AUTOTVM_LOG_VERSION,
        "tvm_version": f"canvas-{_core.version()}",
    }
    return json.dumps(row)


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult]:
    """What a line holds; also one that AutoTVM wrote."""
    _json_only(protocol)
    if not isinstance(row, str):
        raise mistake(f"a record is a line of text, not {shown(row)}")
    try:
        found = json.loads(row)
        target, name, args, _kwargs = found["input"]
        costs, error_no, all_cost, timestamp = found["result"]
        numbers = tuple(float(cost) for cost in costs)
        result = MeasureResult(numbers, int(error_no), float(all_cost), float(timestamp))
        config = found["config"]
        if not numbers or not isinstance(args, list):
            raise ValueError
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        cut = row.strip() if len(row.strip()) <= 40 else row.strip()[:40] + "..."
        raise mistake(f"this is no record of AutoTVM's: {shown(cut)}") from None
    task = Task(str(name), _tuples(args))
    task.target = create_target(str(target))
    return MeasureInput(task.target, task, ConfigEntity.from_json_dict(config)), result


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _json_only(protocol: str) -> None:
    if protocol != "json":
        raise mistake(f"records are of protocol 'json', not {shown(protocol)}")


def load_from_file(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file; blank lines and those that begin with # are none."""
    if not isinstance(filename, (str, bytes, os.PathLike)):
        raise mistake(f"records are in a file, named by a path, not {shown(filename)}")
    try:
        lines = Path(os.fsdecode(filename)).read_text().split("\n")
    except OSError as error:
        name = os.fsdecode(filename)
        raise mistake(f"cannot read records from '{name}': {error.strerror}") from None
    except UnicodeDecodeError:
        raise mistake(f"'{os.fsdecode(filename)}' is no text, so it has no records") from None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield decode(line)
        except CanvasError as error:
            raise mistake(f"'{os.fsdecode(filename)}', line {number}: {unplaced(error)}") from None


class ApplyHistoryBest(DispatchContext):
    """The fastest config that records have for a workload: files of records, or pairs of
    (MeasureInput, MeasureResult), or several of these.
    """

    def __init__(self, records: Any) -> None:
        super().__init__()
        self.best_by_targetkey: dict[Any, Any] = {}
        self.best_by_model: dict[Any, Any] = {}
        self._given: dict[Any, ConfigSpace] = {}
        if records:
            self.load(records)

    def load(self, records: Any) -> None:
        for inp, result in _pairs(records):
            if result.error_no != 0:
                continue
            mean = sum(result.costs) / len(result.costs)
            for word in inp.target.keys:
                key = (word, inp.task.workload)
                known = self.best_by_targetkey.get(key)
                if known is None or mean < sum(known[1].costs) / len(known[1].costs):
                    self.best_by_targetkey[key] = (inp, result)

    def _query_inside(self, target: Target | None, workload: Any) -> ConfigSpace | None:
        for word in (target or Target("llvm")).keys:
            if (word, workload) in self._given:
                return self._given[word, workload]
            if (word, workload) in self.best_by_targetkey:
                config: ConfigSpace = self.best_by_targetkey[word, workload][0].config
                return config
        return None

    def update(self, target: Target | None, workload: Any, cfg: ConfigSpace) -> None:
        for word in (target or Target("llvm")).keys:
            self._given[word, workload] = cfg


def _pairs(records: Any) -> Iterable[Any]:
    if isinstance(records, (str, bytes, os.PathLike)):
        yield from load_from_file(records)
        return
    if not hasattr(records, "__iter__"):
        raise mistake(
            f"records are files, or pairs (MeasureInput, MeasureResult), not {shown(records)}"
        )
    for one in records:
        if isinstance(one, tuple) and len(one) == 2 and hasattr(one[0], "config"):
            yield one
        else:
            yield from _pairs(one)


def pick_best(in_file: Any, out_file: Any) -> None:
    """The fastest record of every workload, of those of `in_file` and those that `out_file` holds
    already, into `out_file`.
    """
    named = isinstance(out_file, (str, os.PathLike))
    if not named and not hasattr(out_file, "writelines"):
        raise mistake(f"out_file is a path or an open file, not {shown(out_file)}")
    pairs = list(load_from_file(in_file))
    if named and Path(out_file).exists():
        pairs += load_from_file(out_file)
    lines = [encode(*pair) + "\n" for pair in best_of(pairs)]
    if not named:
        out_file.writelines(lines)
        return
    try:
        with at_once(Path(out_file)) as file:
            file.write("".join(lines).encode())
    except OSError as error:
        name = os.fspath(out_file)
        raise mistake(f"cannot write records to '{name}': {error.strerror}") from None


def best_of(
    pairs: Iterable[tuple[MeasureInput, MeasureResult]],
) -> list[tuple[MeasureInput, MeasureResult]]:
    return list(ApplyHistoryBest(list(pairs)).best_by_targetkey.values())

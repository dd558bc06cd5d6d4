"""Records of what was measured: AutoTVM's lines of JSON, one for each candidate."""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import _core
from ..arguments import PATH, shown
from ..errors import CanvasError
from ..files import named_file
from ..te.place import mistake, unplaced
from ..te.target import Target
from ..te.target import create as create_target
from .measure import FAILED_COST, MeasureInput, MeasureResult, mean_cost
from .task import ConfigEntity, Task
from .task.dispatcher import DispatchContext
from .task.space import ConfigSpace

AUTOTVM_LOG_VERSION = 0.2

logger = logging.getLogger("autotvm")


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
    target, task, config, result = _parts(row)
    task.target = create_target(target)
    return MeasureInput(task.target, task, config), result


def _parts(row: Any) -> tuple[str, Task, ConfigEntity, MeasureResult]:
    """Of a record for any target."""
    if not isinstance(row, str):
        raise mistake(f"a record is a line of text, not {shown(row)}")
    try:
        found = json.loads(row)
        target, name, args, _kwargs = found["input"]
        result = _result(*found["result"])
        config = found["config"]
        if not isinstance(args, list):
            raise ValueError
        task = Task(str(name), _tuples(args))
        hash(task.workload)
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
        cut = row.strip() if len(row.strip()) <= 40 else row.strip()[:40] + "..."
        raise mistake(f"this is no record of AutoTVM's: {shown(cut)}") from None
    return str(target), task, ConfigEntity.from_json_dict(config), result


def _result(costs: Any, error_no: Any, all_cost: Any, timestamp: Any) -> MeasureResult:
    """The costs of a failure mean nothing.  Others may be no times: `mean_cost` judges them."""
    if isinstance(error_no, bool) or not isinstance(error_no, int) or not isinstance(costs, list):
        raise ValueError
    if error_no:
        costs = [FAILED_COST]
    if not costs or not all(type(cost) in (int, float) for cost in costs):
        raise ValueError
    return MeasureResult(tuple(map(float, costs)), error_no, float(all_cost), float(timestamp))


def _tuples(value: Any) -> Any:
    return tuple(_tuples(one) for one in value) if isinstance(value, list) else value


def _json_only(protocol: str) -> None:
    if protocol != "json":
        raise mistake(f"records are of protocol 'json', not {shown(protocol)}")


def load_from_file(filename: Any) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The records of a file; blank lines and those that begin with # are none.  Other lines that
    are no records, or for another target, are left out with a warning.  Raises CanvasError where
    no line is a record.
    """
    pairs, left = _read(filename)
    _warn(filename, left, len(pairs))
    yield from pairs


class _Left(NamedTuple):
    """A line that is left out, and why."""

    number: int
    line: bytes
    why: str
    record: bool  # it is one, for another target


def _read(filename: Any) -> tuple[list[tuple[MeasureInput, MeasureResult]], list[_Left]]:
    if not isinstance(filename, (str, bytes, os.PathLike)) or not os.fspath(filename):
        raise mistake(f"records are in a file, named by a path, not {shown(filename)}")
    name = os.fsdecode(filename)
    try:
        lines = Path(name).read_bytes().split(b"\n")
    except OSError as error:
        raise mistake(f"cannot read records from '{name}': {error.strerror}") from None
    pairs, left = [], []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith(b"#"):
            continue
        record = False
        try:
            target, task, config, result = _parts(line.decode())
            record = True
            task.target = create_target(target)
            pairs.append((MeasureInput(task.target, task, config), result))
        except UnicodeDecodeError:
            left.append(_Left(number, line, "this is no text", record))
        except CanvasError as error:
            left.append(_Left(number, line, unplaced(error), record))
    if left and not pairs and not any(one.record for one in left):
        raise mistake(f"'{name}' has no record, line {left[0].number}: {left[0].why}")
    return pairs, left


def _warn(filename: Any, left: Sequence[_Left], records: int) -> None:
    if left:
        lines = f"{len(left)} of {len(left) + records} lines left out"
        first = f"line {left[0].number}: {left[0].why}"
        logger.warning("'%s': %s, %s", os.fsdecode(filename), lines, first)


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
            mean = mean_cost(result)
            if not math.isfinite(mean):
                continue
            for word in inp.target.keys:
                key = (word, inp.task.workload)
                known = self.best_by_targetkey.get(key)
                if known is None or mean < mean_cost(known[1]):
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
    already, into `out_file`.  Lines of `out_file` that are left out stay behind them.
    """
    named = isinstance(out_file, (str, os.PathLike))
    if (named and not PATH.holds(out_file)) or not (named or hasattr(out_file, "writelines")):
        raise mistake(f"out_file is a path or an open file, not {shown(out_file)}")
    pairs, kept = list(load_from_file(in_file)), b""
    if named and Path(out_file).exists():
        there, left = _read(out_file)
        _warn(out_file, left, len(there))
        pairs, kept = pairs + there, b"".join(one.line + b"\n" for one in left)
    lines = [encode(*pair) + "\n" for pair in best_of(pairs)]
    if not named:
        out_file.writelines(lines)
        return
    try:
        with named_file(Path(out_file)) as file:
            file.write("".join(lines).encode() + kept)
    except OSError as error:
        name = os.fspath(out_file)
        raise mistake(f"cannot write records to '{name}': {error.strerror}") from None


def best_of(
    pairs: Iterable[tuple[MeasureInput, MeasureResult]],
) -> list[tuple[MeasureInput, MeasureResult]]:
    return list(ApplyHistoryBest(list(pairs)).best_by_targetkey.values())

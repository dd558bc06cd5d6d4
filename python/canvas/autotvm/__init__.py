"""AutoTVM's templates, spaces, tuners and records, on Canvas (docs/notebook.md).

from canvas import autotvm

task = autotvm.task.create("conv2d_3x3_gemm", args=(1, 8, 8, 16, 16), target="llvm")
tuner = autotvm.tuner.GATuner(task)
tuner.tune(n_trial=32, measure_option=autotvm.measure_option("local", "local"),
           callbacks=[autotvm.callback.log_to_file("conv.log")])
with autotvm.apply_history_best("conv.log"):
    s, args = conv2d_3x3_gemm(1, 8, 8, 16, 16)
"""

from . import measure, record, task, topi, tuner
from .measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    measure_option,
)
from .record import ApplyHistoryBest
from .task import (
    ApplyConfig,
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackContext,
    get_config,
    template,
)
from .tuner import callback

apply_history_best = ApplyHistoryBest

__all__ = [
    "ApplyConfig",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackContext",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "apply_history_best",
    "callback",
    "get_config",
    "measure",
    "measure_option",
    "record",
    "task",
    "template",
    "topi",
    "tuner",
]

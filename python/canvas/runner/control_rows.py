"""Controls as rows of the study: those that every search begins with, and the one that its choice
asks for.
"""

from __future__ import annotations

from .. import _core
from ..nn.controls import Control, grouped_within
from ..reporting.front import chosen_finds
from ..reporting.verdict import MORE
from .next_item import layer_macs
from .search_run import Run


def add_control(run: Run, control: Control, budget: str) -> None:
    """A row to be trained, or one that says why there is nothing to train."""
    if control.missing:
        run.study.add_failed(control.name, "control", f"unsolved: {control.missing}", budget)
        run.display.line(f"control {control.name} is missing: {control.missing}")
        return
    run.study.add(
        control.name,
        "control",
        _core.print_kernels(control.pack),
        control.pack,
        _core.hash(control.pack),
        layer_macs(control.pack),
        budget,
    )


def add_grouped(run: Run) -> None:
    """The grouped convolution with the most MACs that a chosen find is compared with, for each
    chosen find, unless it is there already.

    The grouped control of the budget may have more MACs than that, or far fewer.
    """
    for find in chosen_finds(run.study.candidates()):
        most = int(MORE * (find.layer_macs or 0))
        control = grouped_within(run.plan.targets, most)
        if control.missing:
            run.display.line(f"no grouped convolution has at most {most} MACs, {MORE}x find "
                             f"{find.name}'s: {control.missing}")  # fmt: skip
            continue
        controls = run.study.select("control")
        if all(control.pack != row.pack and control.name != row.name for row in controls):
            add_control(run, control, f"macs={most}")

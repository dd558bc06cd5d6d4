"""The options of a fit: one row per option, used by `canvas fit` and by the study.

Those that a search has, too, are its rows (options.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from . import _testing
from .errors import CanvasError
from .options import (
    BY_NAME,
    LOCAL,
    Option,
    check_learn,
    learned_text,
    one_of,
    read_rows,
    text_line,
    whole_number,
)

QUANTITIES = ("latency", "macs", "params")
EXPECTED = (
    "budgets such as latency=0.6x, macs=0.3x or params=0.5x, above 0 and at most 1, several "
    "quantities with commas between"
)


def _budgets(value: Any) -> list[str]:
    """Texts such as `latency=0.6x` or `latency=0.6x,macs=0.5x`, each once."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not 0 < len(texts) <= 64:
        raise ValueError(EXPECTED)
    for text in texts:
        read_budget(text)
    found = ["".join(text.split()) for text in texts]
    if len(set(found)) < len(found):
        raise ValueError("each budget once")
    return found


def read_budget(text: Any) -> dict[str, float]:
    """Limits as shares by quantity; raises ValueError with the expected form."""
    limits: dict[str, float] = {}
    for part in text.split(",") if isinstance(text, str) else [""]:
        match = re.fullmatch(r"\s*(\w+)\s*=\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)x\s*", part)
        if match is None or match[1] not in QUANTITIES or not 0 < float(match[2]) <= 1:
            raise ValueError(EXPECTED)
        if match[1] in limits:
            raise ValueError(f"{match[1]} once in a budget")
        limits[match[1]] = float(match[2])
    return limits


SAME = ("model", "data", "image_size", "images", "normalize", "flip", "crop", "width")

FIT_OPTIONS = (
    *(BY_NAME[name] for name in SAME),
    BY_NAME["task"],
    Option(
        "weights",
        text_line,
        None,
        False,
        "FILE",
        "trained weights of the model: .safetensors, or a state_dict that torch saved (default: "
        "the model is trained first, for --teacher-epochs)",
    ),
    Option(
        "teacher_epochs",
        whole_number(1, 10_000),
        16,
        True,
        "N",
        "epochs of the model's own training where there are no --weights",
    ),
    Option(
        "budget",
        _budgets,
        ["latency=0.6x"],
        True,
        "BUDGET",
        "limit of the result, may be given several times: latency=0.6x of the whole network's "
        "native time, macs=0.3x or params=0.5x of the layers replaced, or several with commas "
        "(default: latency=0.6x)",
        repeated=True,
    ),
    replace(BY_NAME["policy"], default="all"),
    *(BY_NAME[name] for name in ("linear", "depthwise", "unequal")),
    Option(
        "draws",
        whole_number(0, 1_000_000),
        200,
        True,
        "N",
        "drawn kernels that are screened at one layer; 0: known operators alone",
    ),
    BY_NAME["space"],
    replace(BY_NAME["draws"], name="distribution"),
    replace(BY_NAME["learn"], help=BY_NAME["learn"].help.replace("--draws", "--distribution")),
    Option(
        "epochs",
        whole_number(0, 10_000),
        2,
        True,
        "N",
        "epochs of distillation for every network that is tuned",
    ),
    Option(
        "longer",
        whole_number(0, 10_000),
        6,
        True,
        "N",
        "epochs of distillation for the best network of each kind",
    ),
    Option(
        "final_seeds",
        whole_number(1, 100),
        3,
        False,
        "N",
        "seeds from which the best networks are fitted and tuned; a claim needs three",
    ),
    replace(BY_NAME["time_limit"], help="limit of the whole fit: 90s, 10m, 1.5h (default: none)"),
    replace(BY_NAME["seed"], help="seed of draws, fits and order of images"),
    Option(
        "memory",
        whole_number(1 << 20, 1 << 50),
        1 << 30,
        True,
        "BYTES",
        "limit of the recorded inputs and outputs of layers",
    ),
    Option(
        "latency",
        one_of("native", "none"),
        "native",
        False,
        "native|none",
        "none: time no network; a budget of latency needs native",
    ),
    replace(
        BY_NAME["workers"],
        help="parallel fits and trainings, one thread each (default: 2, or 1 on a single core; on "
        "a cluster its cores, or 4 on each GPU)",
    ),
    replace(
        BY_NAME["pick"],
        help="rule for the picked row: fastest, fewest-macs, fewest-params or most-accurate, of "
        "those within the given points of the teacher's accuracy (default: fastest within 1.0; "
        "most-accurate for a metric that is no share)",
    ),
    replace(
        BY_NAME["device"],
        metavar="auto|cpu|cuda[:N]",
        help="where the teacher and the chosen networks are trained; operators are fitted on the "
        "CPU. auto: on a GPU, if there is one",
    ),
    BY_NAME["amp"],
    replace(
        BY_NAME["executor"],
        help="where operators are fitted and networks tuned: on this machine, or on all machines "
        "of the Ray cluster that it belongs to (or that is at HOST:PORT); --workers limits them",
    ),
    BY_NAME["timing_on"],
)
FIT_BY_NAME = {option.name: option for option in FIT_OPTIONS}


def draws_of(options: Mapping[str, Any]) -> str:
    """The options of a fit's draws in the core's spelling."""
    space = "" if options["space"] == "paper" else f"space={options['space']} "
    return f"{space}draws={options['distribution']}{learned_text(options)}"


def read_fit_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a fit with their values, as `read_options` has those of a search."""
    values = read_rows(given, FIT_OPTIONS, "a fit")
    check_learn(values, "distribution")
    try:
        _testing.draw_is_free(1, 0, draws_of(values))
    except CanvasError as error:
        why = str(error).partition(": ")[2] or str(error)
        raise CanvasError(f"--distribution {values['distribution']}: {why}") from None
    limits = [name for text in values["budget"] for name in read_budget(text)]
    if values["latency"] == "none" and "latency" in limits:
        raise CanvasError("--latency none times nothing, and a budget of latency needs times")
    if values["executor"] != LOCAL and given.get("workers") is None:
        values["workers"] = 0  # as many as the cluster has
    if values["longer"] < values["epochs"]:
        raise CanvasError(
            f"--longer {values['longer']} is less than --epochs {values['epochs']}: the best "
            "networks are tuned at least as long as all"
        )
    return values

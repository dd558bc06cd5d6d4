"""The options of a search: one row per option, used by the command line, by `canvas.search` and
by the study.

A row has the reader of the value, the default and whether the option is part of the *question*.
Options of the question (network, data, budget, ...) cannot change when a study is continued; the
others (trials, time limit, workers) can.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .arguments import did_you_mean, shown
from .errors import CanvasError
from .layer_choice import POLICIES, UNEQUAL
from .text import printable


@dataclass(frozen=True)
class Option:
    """One option.  `read` converts text or a Python value, or raises ValueError with the expected
    form.
    """

    name: str
    read: Callable[[Any], Any]
    default: Any
    question: bool  # a study that is continued must have the same value
    metavar: str  # "" for a switch, which takes no value
    help: str
    repeated: bool = False  # a flag may stand several times: the value is a list
    file: str = ""  # in a study's folder, with the value, where that is a text too long to show

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")


def whole_number(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        expected = f"a whole number from {low} to {high}"
        if isinstance(value, (bool, float)) or not isinstance(value, (int, str)):
            raise ValueError(expected)
        if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]{1,20}", value):
            raise ValueError(expected)
        if not low <= int(value) <= high:
            raise ValueError(expected)
        return int(value)

    return read


def one_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in words:
            near = did_you_mean(value, words) if isinstance(value, str) else ""
            raise ValueError(" or ".join(words), near)
        return str(value)

    return read


KINDS_OF_DEVICES = ("cuda", "fake")  # beside the CPU


def read_device(value: Any) -> str:
    """A text such as cuda:0,2; raises ValueError with the expected form."""
    text = "".join(value.split()) if isinstance(value, str) else ""
    number = "[0-9]{1,4}"
    kinds = "|".join(KINDS_OF_DEVICES)
    match = re.fullmatch(rf"auto|cpu|(?:{kinds})(?::({number}(?:,{number})*))?", text)
    if match is None:
        raise ValueError("auto, cpu, cuda, or the numbers of devices as cuda:0,2")
    numbers = [int(number) for number in (match[1] or "").split(",") if number]
    if len(set(numbers)) < len(numbers):
        raise ValueError("each device once")
    return text


LOCAL = "local"  # the executor of one machine


def read_executor(value: Any) -> str:
    """local, or ray with an address; raises ValueError with the expected form."""
    place = r"(?:[\w.-]{1,253}|\[[0-9a-fA-F:]{2,39}\]):([0-9]{1,5})"
    match = re.fullmatch(rf"local|ray(?:={place})?", value) if isinstance(value, str) else None
    if match is None or not 0 < int(match[1] or 1) < 1 << 16:
        raise ValueError("local, ray or ray=HOST:PORT")
    return str(value)


RESERVED = ("CPU", "GPU", "memory", "object_store_memory")  # resources of every node


def read_label(value: Any) -> str:
    text = value if isinstance(value, str) else ""
    if not re.fullmatch(r"[A-Za-z_][\w.-]{0,63}", text) or text in RESERVED:
        raise ValueError("the name of a resource of your own, such as canvas_timing")
    return text


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("True or False")
    return value


def _list_of(*words: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        chosen = str(value).split(",")
        if not set(chosen) <= set(words) or len(set(chosen)) < len(chosen):
            raise ValueError("some of " + ", ".join(words) + ", with commas between")
        return ",".join(chosen)

    return read


def text_line(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > 4096:
        raise ValueError("a line of text")
    return value


def _model(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("the name of a model, such as resnet8 or package.module:callable")
    return text_line(value)


_UNITS = {"": 1.0, "s": 1.0, "ms": 1e-3, "m": 60.0, "min": 60.0, "h": 3600.0}
_YEAR = 366 * 24 * 3600.0


def read_duration(value: Any) -> float:
    """Seconds of `90`, `90s`, `10m`, `10min` or `1.5h`; a number means seconds."""
    expected = "a time such as 90s, 10m or 1.5h"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = float(value)
    elif not isinstance(value, str):
        raise ValueError(expected)
    else:
        match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(s|ms|m|min|h|)", value)
        if match is None:
            raise ValueError(expected)
        seconds = float(match[1]) * _UNITS[match[2]]
    if not (math.isfinite(seconds) and 0 < seconds <= _YEAR):
        raise ValueError(expected)
    return seconds


def _kernels(value: Any) -> list[str] | None:
    """Texts, as learn.py makes them of files; None for none.  The core checks them."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError("texts of kernels")
    if not all("\n" in text for text in value):
        raise ValueError("texts of kernels, of several lines each")
    return value or None


def _range(value: Any) -> str:
    """`5..12` or `7`; the core checks the limits."""
    match = re.fullmatch(r"([0-9]{1,4})(?:\.\.([0-9]{1,4}))?", str(value))
    if match is None or int(match[1]) < 1 or int(match[2] or match[1]) < int(match[1]):
        raise ValueError("a range such as 5..12")
    return f"{int(match[1])}..{int(match[2] or match[1])}"


def _draws(value: Any) -> str:
    """`rules`, `learned` or `paper`, then changes of it; the core checks names and numbers."""
    text = str(value)
    known = re.fullmatch(r"(rules|learned|paper)(,[a-z_]+=[A-Za-z0-9.:_]+)*", text)
    if not known or len(text) > 1000:
        raise ValueError("rules, learned or paper, with changes such as rules,free=0.2")
    return text


def _sweep(value: Any) -> str:
    """`0.8x,0.4x` or `900M,300M`: MACs budgets; the core checks each."""
    words = str(value).split(",")
    if len(words) > 64 or not all(
        re.fullmatch(r"[0-9.]+(?:[eE]-?[0-9]+)?[xkMGT]?", w) for w in words
    ):
        raise ValueError("MACs budgets such as 0.8x,0.4x,0.2x")
    if len(set(words)) < len(words):
        raise ValueError("each budget once")
    return ",".join(words)


SPACES = ("paper", "published", "wide")
PICKS = ("fastest", "fewest-macs", "fewest-params", "most-accurate")


def _pick(value: Any) -> str:
    match = re.fullmatch(r"([a-z-]+)(?: within ([0-9]{1,3}(?:\.[0-9]{1,6})?))?", str(value))
    if match is None or match[1] not in PICKS:
        raise ValueError('a rule such as "fastest within 1.0" (points of accuracy)')
    return str(value)


def _share(value: Any) -> float:
    expected = "a share from 0 to 1"
    try:
        share = float(value)
    except (TypeError, ValueError):
        raise ValueError(expected) from None
    if isinstance(value, bool) or not 0 <= share <= 1:
        raise ValueError(expected)
    return share


OPTIONS = (
    Option(
        "model",
        _model,
        None,
        True,
        "NAME",
        "resnet8, resnet18, or your own code as package.module:callable (required)",
    ),
    Option(
        "data",
        text_line,
        None,
        True,
        "NAME",
        "digits, digits-scattered, cifar10:PATH, cifar100:PATH, folder:PATH or synthetic "
        "(required)",
    ),
    Option(
        "task",
        text_line,
        "classification",
        True,
        "TASK",
        "classification, segmentation, regression, multi-label, unlabelled, or your own "
        "canvas.Task as package.module:name",
    ),
    Option(
        "image_size",
        whole_number(4, 4096),
        None,
        True,
        "N",
        "height and width to which images are resized (default: unchanged; of folder: at most 64)",
    ),
    Option(
        "images",
        whole_number(2, 100_000_000),
        None,
        True,
        "N",
        "limit of training and validation images, the same share of each class (default: all)",
    ),
    Option(
        "normalize",
        one_of("yes", "no"),
        None,
        True,
        "yes|no",
        "yes: scale to mean 0 and standard deviation 1 per channel over the training images "
        "(default: yes for photographs)",
    ),
    Option(
        "flip",
        one_of("yes", "no"),
        None,
        True,
        "yes|no",
        "yes: mirror half of the training images (default: yes for photographs)",
    ),
    Option(
        "crop",
        whole_number(0, 1024),
        None,
        True,
        "N",
        "largest random shift of training images, in pixels (default: 1/8 of the side for "
        "photographs, else 0)",
    ),
    Option(
        "budget",
        text_line,
        None,
        True,
        "BUDGET",
        "limits of MACs and params, relative to the replaced layers (macs=0.5x,params=0.5x) or "
        "absolute (macs=900M); also macs=0.2x..0.5x, params=none. A quantity that is not named is "
        "limited to 1.0x (default: macs=0.5x). latency=0.5x: limit of their time as native code, "
        "measured before a find is trained",
    ),
    Option(
        "budget_sweep",
        _sweep,
        None,
        True,
        "LIST",
        "MACs budgets, used in turn, such as 0.8x,0.6x,0.4x,0.2x; --budget may limit params",
    ),
    Option(
        "width",
        whole_number(1, 4096),
        None,
        True,
        "N",
        "channels of the first stage (default: 16 for resnet8, 64 for resnet18)",
    ),
    Option(
        "trials",
        whole_number(1, 1_000_000),
        40,
        False,
        "N",
        "new kernels to train, at least to the first rung, for each budget of a sweep; pruned and "
        "failed ones count, rejected ones do not",
    ),
    Option("epochs", whole_number(1, 10_000), 6, True, "N", "epochs of each training"),
    Option(
        "strategy",
        one_of("evolve", "random"),
        "evolve",
        True,
        "evolve|random",
        "evolve: draw the first kernels, then make most from the best by mutation and crossover; "
        "random: draw each",
    ),
    Option(
        "start",
        one_of("random", "known"),
        "random",
        True,
        "random|known",
        "first parents of --strategy evolve; random: drawn kernels; known: the controls",
    ),
    Option(
        "random_share",
        _share,
        0.2,
        True,
        "SHARE",
        "share of new kernels that --strategy evolve draws at random, as a comparison",
    ),
    Option("batch_size", whole_number(2, 65_536), 64, True, "N", "images per training step"),
    Option(
        "time_limit",
        read_duration,
        None,
        False,
        "TIME",
        "limit of the whole search, with timing and table: 90s, 10m, 1.5h (default: none)",
    ),
    Option(
        "train_limit",
        read_duration,
        None,
        False,
        "TIME",
        "limit of processor time of one training (default: six times the unchanged network's, at "
        "least 30s); a training also ends after ten times that in wall-clock time",
    ),
    Option(
        "seed",
        whole_number(0, 2**63 - 1),
        1,
        True,
        "N",
        "seed of draws, initial weights and order of images",
    ),
    Option(
        "primitives",
        _range,
        None,
        True,
        "RANGE",
        "primitives per drawn kernel; the upper bound also holds for children (default: 3..8, "
        "with --draws paper 5..12)",
    ),
    Option(
        "groups",
        whole_number(1, 65_536),
        None,
        True,
        "N",
        "value of G in every kernel (default: drawn)",
    ),
    Option(
        "require",
        one_of("reach", "none"),
        "reach",
        True,
        "reach|none",
        "reach: a kernel must see several pixels along both spatial axes, except where all "
        "windows are 1 wide, and mix all channels with weights; none: no condition",
    ),
    Option(
        "norm",
        one_of("batch", "none"),
        "batch",
        True,
        "batch|none",
        "batch: add a BatchNorm after every weight inside a kernel, in finds and controls; "
        "none: add none",
    ),
    Option(
        "memory_format",
        one_of("auto", "contiguous", "channels_last"),
        "auto",
        True,
        "FORMAT",
        "contiguous, channels_last, or auto: the faster one for each network, measured once in "
        "three training steps and stored (with --deterministic: contiguous)",
    ),
    Option(
        "draws",
        _draws,
        "rules",
        True,
        "rules|learned|paper",
        "distribution of drawn kernels; rules: nine tenths keep rules against kernels that are "
        "usually poor; learned: these, by weights from known kernels; paper: as published; "
        "docs/kernel.md lists changes such as rules,free=0.2",
    ),
    Option(
        "space",
        one_of(*SPACES),
        "paper",
        True,
        "|".join(SPACES),
        "primitives of drawn kernels and children; paper: Table 1 of the paper; published: also "
        "those of the published code; wide: all",
    ),
    Option(
        "learn",
        _kernels,
        None,
        True,
        "FILE",
        "kernels that --draws learned learns from, beside known ones: a file of them, a pack or "
        "the folder of a study, of which the best quarter counts; may be given several times",
        repeated=True,
        file="learned.kernels",
    ),
    Option(
        "policy",
        one_of(*POLICIES),
        "paper",
        True,
        "|".join(POLICIES),
        "which convolutions are replaced. paper: all except the first, depth-wise ones and those "
        "on images of one pixel. spatial: of these, only windows larger than 1x1. all: paper, and "
        "also those on one pixel",
    ),
    Option(
        "linear",
        one_of("yes", "no"),
        "no",
        True,
        "yes|no",
        "yes: replace linear layers, too; their kernels mix channels",
    ),
    Option(
        "depthwise",
        one_of("yes", "no"),
        "no",
        True,
        "yes|no",
        "yes: replace depth-wise convolutions, too",
    ),
    Option(
        "unequal",
        one_of(*UNEQUAL),
        "gcd",
        True,
        "|".join(UNEQUAL),
        "layers where neither number of channels is a multiple of the other. gcd: kernels with "
        "their greatest common divisor of channels, one for each pair of blocks of inputs and "
        "outputs. project: kernels behind a learned 1x1 convolution to the output channels. skip: "
        "they stay",
    ),
    Option(
        "prune",
        one_of("rungs", "macs", "paper", "none"),
        "rungs",
        True,
        "rungs|macs|paper|none",
        "rungs: train all finds for a third of the epochs, the best third for all epochs, and the "
        "best third of these again from a second seed. macs: stop a training that lags behind the "
        "best curve of the finds with no more MACs. paper: of all finds. none: never stop",
    ),
    Option(
        "pretests",
        one_of("yes", "no"),
        "yes",
        True,
        "yes|no",
        "yes: before training, fit each kernel to one layer of the trained unchanged network and "
        "reject poor kernels, and duplicates (docs/search.md)",
    ),
    Option(
        "lag",
        whole_number(1, 1024),
        6,
        True,
        "L",
        "each decision uses the results of trials up to L before it only, so that the search is "
        "the same with any number of workers. At most L trainings run at a time (default: 6, or "
        "the number of workers if that is more; a study keeps it)",
    ),
    Option("grace", whole_number(0, 10_000), 2, True, "N", "first epochs without any pruning"),
    Option(
        "latency_batch",
        whole_number(1, 4096),
        1,
        False,
        "N",
        "batch size of latency measurements",
    ),
    Option(
        "finalists",
        whole_number(0, 1000),
        1,
        False,
        "K",
        "number of finds (for each budget) that are trained again, like the controls, and scored "
        "on the test split, most accurate first; 0: no finals",
    ),
    Option(
        "final_epochs",
        whole_number(1, 10_000),
        None,
        False,
        "N",
        "epochs of the trainings of --finalists (default: that of --epochs)",
    ),
    Option(
        "final_seeds",
        whole_number(1, 100),
        3,
        False,
        "N",
        "number of seeds for each training of --finalists, different from those of the search",
    ),
    Option(
        "objectives",
        _list_of("latency", "macs", "params"),
        "latency,macs",
        False,
        "LIST",
        "objectives of the Pareto front beside accuracy: latency, macs, params",
    ),
    Option(
        "pick",
        _pick,
        None,
        False,
        "RULE",
        "rule for the picked row: fastest, fewest-macs, fewest-params or most-accurate, of those "
        "within the given points of the unchanged network's accuracy (default: fastest within "
        "1.0; most-accurate for a metric that is no share)",
    ),
    Option(
        "latency",
        one_of("native", "torch", "cuda", "none"),
        "native",
        False,
        "native|torch|cuda|none",
        "native: also time every network as native code (docs/networks.md), if there is a C "
        "compiler. torch: time PyTorch only. cuda: time on the GPU of --device, also as a CUDA "
        "graph. none: time no network",
    ),
    Option(
        "compile",
        one_of("yes", "unchanged", "no"),
        "yes",
        False,
        "yes|unchanged|no",
        "yes: also time the unchanged network and the finalists under torch.compile, and report "
        "the fastest engine; unchanged: only the unchanged network, whose fastest engine is the "
        "reference of all speed-ups",
    ),
    Option(
        "deterministic",
        _switch,
        False,
        True,
        "",
        "reject operations whose results differ from run to run",
    ),
    Option(
        "workers",
        whole_number(1, 1024),
        min(2, os.cpu_count() or 1),
        False,
        "N",
        "parallel trainings, one thread each (default: 2, or 1 on a single core; with GPUs 4 on "
        "each, but no more than there are cores; on a cluster its cores, or 4 on each GPU)",
    ),
    Option(
        "device",
        read_device,
        "cpu",
        False,
        "auto|cpu|cuda[:N,N]",
        "where networks are trained; auto: on all GPUs, if there are any",
    ),
    Option(
        "amp",
        one_of("no", "bf16", "fp16"),
        "no",
        True,
        "no|bf16|fp16",
        "16 bits in which networks are trained and scored, where torch has operators in them",
    ),
    Option(
        "executor",
        read_executor,
        LOCAL,
        False,
        "local|ray[=HOST:PORT]",
        "where trainings run: on this machine, or on all machines of the Ray cluster that it "
        "belongs to (or that is at HOST:PORT); --workers limits them",
    ),
    Option(
        "timing_on",
        read_label,
        None,
        False,
        "LABEL",
        "with ray: time networks on the nodes with this resource instead of on this machine",
    ),
)

BY_NAME = {option.name: option for option in OPTIONS}


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a search with their values: given ones (not None) converted, the others
    default.

    Raises CanvasError with one message that names the option, the value and the expected form.
    """
    values = read_rows(given, OPTIONS, "a search")
    for name in ("model", "data"):
        if values[name] is None:
            raise CanvasError(f"a search needs {BY_NAME[name].flag} {BY_NAME[name].metavar}")
    if values["budget"] is None and values["budget_sweep"] is None:
        values["budget"] = "macs=0.5x"
    budgets(values)
    check_learn(values, "draws")
    if values["latency"] == "none":
        _check_untimed(values, given)
    latency_limit(values)
    return values


def check_learn(values: Mapping[str, Any], draws: str) -> None:
    """Raises CanvasError for kernels to learn from where the draws, of option `draws`, do not."""
    how = values[draws]
    if values["learn"] and not how.startswith("learned") and "known=" not in how:
        raise CanvasError(
            f"--learn has no effect on --{draws} {how}: give --{draws} learned, or leave it out"
        )


def learned_text(options: Mapping[str, Any]) -> str:
    """What follows the words of a draw's options: the kernels of --learn."""
    return "".join(f"\nlearn=\n{text}" for text in options["learn"] or ())


def _check_untimed(values: dict[str, Any], given: Mapping[str, Any]) -> None:
    """What is compared where no network is timed; raises CanvasError where the user wants
    times.
    """
    if latency_limit(values) is not None:
        raise CanvasError("--latency none times nothing, and a budget of latency needs times")
    if given.get("objectives") is None:
        values["objectives"] = "macs"
    for name, word in (("objectives", "latency"), ("pick", "fastest")):
        if word in (values[name] or ""):
            raise CanvasError(
                f"--latency none times nothing, and --{name} '{values[name]}' needs times"
            )


def read_rows(given: Mapping[str, Any], rows: Sequence[Option], what: str) -> dict[str, Any]:
    """The values of `rows`; `what` has these options.  Raises CanvasError as `read_options`
    does.
    """
    names = {option.name: option for option in rows}
    for name in given:
        if name not in names:
            raise CanvasError(f"{what} has no option '{name}'{did_you_mean(name, names)}")
    return {option.name: read_option(option, given.get(option.name)) for option in rows}


def json_object(text: Any) -> dict[str, Any]:
    """The object that a JSON text holds; raises CanvasError with one message for anything else."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise CanvasError(f"no JSON: {error}") from None
    if not isinstance(value, dict):
        raise CanvasError("no JSON object")
    return value


def budgets(options: Mapping[str, Any]) -> list[str]:
    """The budgets of a search in the syntax of the core: one, or those of the sweep."""
    budget, sweep = without_latency(options["budget"]), options.get("budget_sweep")
    if sweep is None:
        return [budget or "macs=1.0x"]
    rest = [budget] if budget else []
    if budget and re.search(r"\b(macs|flops)\s*=", budget):
        raise CanvasError("--budget and --budget-sweep both limit the MACs: leave one of them out")
    return [",".join([f"macs={macs}", *rest]) for macs in sweep.split(",")]


_LATENCY = re.compile(r"\s*latency\s*=")


def without_latency(budget: str | None) -> str:
    parts = (budget or "").split(",")
    return ",".join(part for part in parts if not _LATENCY.match(part))


def latency_limit(options: Mapping[str, Any]) -> float | None:
    """The latency limit of the replaced layers, relative to the time of their convolutions; None
    if the budget has none.
    """
    parts = [part for part in (options["budget"] or "").split(",") if _LATENCY.match(part)]
    if not parts:
        return None
    match = re.fullmatch(r"\s*latency\s*=\s*([0-9]{1,3}(?:\.[0-9]{1,6})?)x\s*", parts[0])
    if len(parts) > 1 or not match or float(match[1]) == 0:
        raise CanvasError(
            "--budget takes one latency, relative to the replaced layers, such as latency=0.5x, "
            f"not '{printable(_cut(','.join(parts)))}'"
        )
    return float(match[1])


def read_option(option: Option, value: Any) -> Any:
    """The value of one option, its default for None; raises CanvasError as `read_options` does."""
    if value is None:
        return option.default
    try:
        return option.read(value)
    except ValueError as error:
        text = shown(value) if not isinstance(value, str) else f"'{printable(_cut(value))}'"
        expected, near = (*error.args, "")[:2]
        raise CanvasError(f"{option.flag} takes {expected}, not {text}{near}") from None


def _cut(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def changed(
    old: Mapping[str, Any], new: Mapping[str, Any], rows: Sequence[Option] = OPTIONS
) -> str:
    """The differences of two questions, such as `--epochs 3 instead of 6`, or ""."""
    differences = []
    for option in rows:
        was, is_now = old.get(option.name, option.default), new.get(option.name)
        if option.question and was != is_now:
            differences.append(f"{option.flag} {_as_given(is_now)} instead of {_as_given(was)}")
    return ", ".join(differences)


def _as_given(value: Any) -> str:
    """A value as the command line has it."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(_as_given, value))
    if isinstance(value, str) and "\n" in value:
        digest = hashlib.sha256(value.encode()).hexdigest()[:8]
        return f"(a text of {value.count(chr(10)) + 1} lines, {digest})"
    return "default" if value is None else str(value)

"""How long a forward of a whole network takes, compared with the unchanged network.

All networks run in one process, one thread, in evaluation mode without gradients, interleaved:
one sample of each, then the same backwards, ...  The CPU time of the process counts, so others on
the machine disturb little.  A sample is as many forwards as make its own network take SAMPLE
seconds: native code of a small network is ten times as fast as eager mode, and as many forwards
as that takes would be too short to be timed.  Of ROUNDS rounds the first is thrown away (caches,
allocator).

The unchanged network runs eagerly and, if requested, under torch.compile and as native code;
whichever has the smallest median when it is timed itself is what all others are compared with.  A
speed-up is the median of the rounds' ratios, not the ratio of medians: a slow moment hits all
halves of a round.
The driver sees to it that nothing of ours trains meanwhile.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import one_line
from ..inputs import Inputs, tensors_of

ROUNDS = 30
SAMPLE = 0.003
EAGER, COMPILED, NATIVE = "eager", "compiled", "native"
GPU, GPU_COMPILED, GPU_GRAPH = "gpu", "gpu-compiled", "gpu-graph"  # the same on a GPU, and graphs

# Seconds of one call of a function, the mean of so many in a row.
Timer = Callable[[Callable[[], Any], int], float]


@dataclass(frozen=True)
class Latency:
    """Milliseconds of one forward (median, interquartile range) and how much faster than the
    unchanged network, whose engine is `against` (median and interquartile range of the rounds'
    ratios).
    """

    ms: float
    spread_ms: float
    speedup: float
    against: str
    speedup_spread: float


def _settings(compilers: int, believe: bool) -> dict[str, Any]:
    """Of torch.compile: so many C++ compilers at a time, and, to `believe`, vectors as the
    processor's flags have them.  Otherwise it compiles and loads a file for each instruction set
    first, which takes a quarter of the time of a small network.
    """
    from torch._inductor import config

    settings: dict[str, Any] = {}
    if hasattr(config, "compile_threads"):
        settings["compile_threads"] = compilers
    if believe and getattr(config.cpp, "vec_isa_ok", True) is None:  # not what the user chose
        settings["cpp.vec_isa_ok"] = True
    return settings


def _compile(network: nn.Module, given: Inputs, settings: dict[str, Any]) -> Any:
    """The network under torch.compile, and what it gives for `images`."""
    from torch._inductor import config

    with torch.no_grad(), config.patch(settings):
        faster = torch.compile(network)
        return faster, given.call(faster)


def _forget_vectors() -> None:
    """What torch.compile believed of the processor's vectors."""
    from torch._inductor import cpu_vec_isa

    torch._dynamo.reset()
    known = getattr(cpu_vec_isa, "supported_vec_isa_list", [])
    answers = [cpu_vec_isa.valid_vec_isa_list, *(type(isa).__bool__ for isa in known)]
    for answer in answers:
        getattr(answer, "cache_clear", lambda: None)()


def compiled(network: nn.Module, images: Tensor | Inputs, compilers: int = 0) -> nn.Module:
    """`network` under torch.compile, compiled for `images`, [N, C, H, W] or whatever it takes, by
    `compilers` at a time (0: one for each core).

    Raises RuntimeError with one line where that cannot be done, as without a C++ compiler.
    """
    network.eval()
    count, given = compilers or os.cpu_count() or 1, Inputs.of(images)
    try:
        with torch.no_grad():
            expected = given.call(network)
        try:
            faster, got = _compile(network, given, _settings(count, believe=True))
        except Exception:  # as of a C++ compiler that is older than the processor
            _forget_vectors()
            faster, got = _compile(network, given, _settings(count, believe=False))
    except Exception as error:  # a compiler has many ways to fail
        raise RuntimeError(f"torch.compile: {one_line(error)}") from error
    pairs = zip(tensors_of(expected), tensors_of(got), strict=True)
    if not all(_close(one, other) for one, other in pairs):
        raise RuntimeError("torch.compile: the compiled network gives other results")
    return faster


def _close(expected: Tensor, got: Tensor) -> bool:
    return torch.allclose(expected, got, rtol=1e-3, atol=1e-3 * float(expected.abs().max()))


def measure(
    unchanged: Mapping[str, nn.Module],
    candidate: Mapping[str, nn.Module] | None,
    images: Tensor | Inputs,
    against: str = "",
    rounds: int = ROUNDS,
    timer: Timer | None = None,
) -> dict[str, Latency]:
    """Time the engines of `candidate` beside those of the unchanged network on `images`,
    [N, C, H, W] or whatever the network takes; both map engine to network, and all are set to
    evaluation mode.

    `candidate` None is the unchanged network itself; `against` is its engine to compare with, ""
    the faster one; `timer` is that of a device, by default the CPU time of this process.
    """
    timer = timer or processor_seconds
    given = Inputs.of(images)
    networks = [*unchanged.values(), *(candidate or {}).values()]
    for network in networks:
        network.eval()
    with torch.no_grad():
        for network in networks:
            timer(partial(_forward, network, given), 1)
        forwards = [
            max(1, math.ceil(SAMPLE / max(timer(partial(_forward, network, given), 2), 1e-6)))
            for network in networks
        ]
        samples: list[list[float]] = [[] for _ in networks]
        for number in range(rounds):
            order = range(len(networks)) if number % 2 == 0 else reversed(range(len(networks)))
            for i in order:
                samples[i].append(timer(partial(_forward, networks[i], given), forwards[i]))
    theirs = dict(zip(unchanged, samples))
    ours = theirs if candidate is None else dict(zip(candidate, samples[len(unchanged) :]))
    return summarise(theirs, ours, against)


def summarise(
    unchanged: Mapping[str, Sequence[float]],
    candidate: Mapping[str, Sequence[float]],
    against: str = "",
) -> dict[str, Latency]:
    """Medians, spreads and speed-ups of seconds per round; the first round does not count.
    `against` is as in `measure`; an engine that is not there leaves the faster one.
    """
    if against not in unchanged:
        against = min(unchanged, key=lambda engine: statistics.median(unchanged[engine][1:]))
    answer = {}
    for engine, seconds in candidate.items():
        ms, spread = middle([second * 1e3 for second in seconds[1:]])
        ratios = [theirs / ours for theirs, ours in zip(unchanged[against][1:], seconds[1:])]
        speedup, ratio_spread = middle(ratios)
        answer[engine] = Latency(ms, spread, speedup, against, ratio_spread)
    return answer


def middle(values: Sequence[float]) -> tuple[float, float]:
    """Median and interquartile range."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return median, high - low


def _forward(network: nn.Module, given: Inputs) -> Any:
    return network(*given.args, **given.named)


def processor_seconds(run: Callable[[], Any], times: int) -> float:
    """CPU seconds of one call, the mean of so many in a row."""
    start = time.process_time_ns()
    for _ in range(times):
        run()
    return max(time.process_time_ns() - start, 1) / times / 1e9

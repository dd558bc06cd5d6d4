"""The engines that a row of a search is timed in: each runs a network of its own, a reason stands
for one that is missing, and a candidate is timed beside the unchanged network, not as it.
"""

import io
import json

import pytest
import torch
from torch import nn

from canvas import CanvasError, _core
from canvas.nn import latency
from canvas.nn.network import Recipe, plan_network
from canvas.workers import engines, worker
from canvas.workers.engines import build_engines

RECIPE = {
    "model": "resnet8",
    "width": 4,
    "shape": [1, 8, 8],
    "classes": 3,
    "policy": "paper",
    "seed": 1,
}
IMAGES = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))
POINTWISE = "canvas 1\nkernel pointwise\na = input\nb = fc a to=C\nout b\n"


def small():
    torch.manual_seed(3)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU()).eval()


def test_each_engine_runs_a_network_of_its_own_and_a_reason_stands_for_a_missing_one(monkeypatch):
    def missing(network, images, compilers):
        raise CanvasError("no compiler here\nat all")

    made = []
    monkeypatch.setitem(engines.MAKE, "native", missing)
    monkeypatch.setitem(engines.MAKE, "compiled", lambda network, images, compilers: network)
    built = build_engines(lambda: made.append(small()) or made[-1], [*engines.MAKE], IMAGES)
    assert list(built.networks) == ["eager", "compiled"] and len(made) == 3
    assert built.networks["eager"] is made[0] and built.networks["compiled"] is made[1]
    assert list(built.missing) == ["native"] and "no compiler here" in built.missing["native"]
    assert "\n" not in built.missing["native"] and list(built.seconds) == [*engines.MAKE]


def test_native_code_answers_as_its_network():
    built = build_engines(small, ["eager", "native"], IMAGES)
    with torch.no_grad():
        expected, got = (built.networks[name](IMAGES) for name in ("eager", "native"))
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("found", [False, True])
def test_a_candidate_is_timed_beside_the_unchanged_network(monkeypatch, found):
    """What is handed to the clock are the two networks of the job, each in its engines."""
    clocked = []

    def measure(unchanged, candidate, images, against):
        clocked.append((unchanged, candidate, images, against))
        some = latency.Latency(1.0, 0.0, 1.0, "eager", 0.0)
        return dict.fromkeys(candidate or unchanged, some)

    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *a, **k: None)
    monkeypatch.setattr(latency, "measure", measure)
    monkeypatch.setattr(worker, "_engines", {})
    targets = plan_network(Recipe.from_json(RECIPE)).targets
    pack = _core.solve(POINTWISE, targets, "macs=none,params=none", "") if found else None
    wanted = ["eager", "native"]
    job = {
        "kind": "latency",
        "recipe": RECIPE,
        "pack": pack,
        "batch": 1,
        "engines": wanted,
        "unchanged": wanted,
        "against": "native",
    }
    told = []
    worker.serve(job, lambda event, **facts: told.append({"event": event, **facts}), io.StringIO())
    assert told[-1]["event"] == "done", json.dumps(told)
    assert list(told[-1]["timed"]) == wanted and not told[-1]["missing"]
    [(unchanged, candidate, images, against)] = clocked
    [images] = images.tensors
    assert against == "native" and images.shape == (1, 1, 8, 8)
    threes, replaced = kernels(unchanged["eager"])
    assert threes > 0 and replaced == 0
    answers = {name: network.eval()(images) for name, network in unchanged.items()}
    torch.testing.assert_close(answers["native"], answers["eager"], rtol=1e-3, atol=1e-4)
    assert (candidate is not None) == found
    if found:
        left, replaced = kernels(candidate["eager"])
        assert left < threes and replaced > 0
        theirs = {name: network.eval()(images) for name, network in candidate.items()}
        torch.testing.assert_close(theirs["native"], theirs["eager"], rtol=1e-3, atol=1e-4)
        assert not torch.allclose(theirs["native"], answers["native"], rtol=1e-2, atol=1e-2)


def kernels(network: nn.Module) -> tuple[int, int]:
    """How many 3x3 convolutions a network has, and how many layers that a kernel replaces."""
    from canvas.nn.placeholder import Placeholder

    modules = list(network.modules())
    threes = sum(isinstance(m, nn.Conv2d) and m.kernel_size == (3, 3) for m in modules)
    return threes, sum(isinstance(m, Placeholder) for m in modules)

"""The memory format of trainings: chosen by the clock once, then it is what is stored."""

import copy
import time

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from canvas.nn import memory_format  # noqa: E402
from canvas.nn.memory_format import choice, faster, put_in  # noqa: E402
from canvas.nn.network import Plan  # noqa: E402
from canvas.options import read_options  # noqa: E402
from canvas.reporting.progress import Display  # noqa: E402
from canvas.runner.search_run import Run  # noqa: E402
from canvas.study import Study  # noqa: E402


def network():
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.Dropout(0.1),
        nn.Conv2d(8, 4, 3),
    ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


IMAGES, LABELS = torch.randn(6, 3, 8, 8), torch.arange(6) % 4


def loss(network):
    return nn.functional.cross_entropy(network(IMAGES), LABELS)


@pytest.mark.parametrize(
    ("contiguous", "last", "expected"),
    [
        ([2.0, 1.0, 3.0], [0.9, 9.0, 9.0], "channels_last"),  # the least time counts
        ([1.0, 1.0, 1.0], [1.0, 1.0, 1.0], "contiguous"),
        ([1.0, 1.0, 1.0], [0.96, 1.0, 1.0], "contiguous"),  # that may be noise
        ([0.5, 1.0, 1.0], [0.9, 0.9, 0.9], "contiguous"),
    ],
)
def test_the_least_time_decides(contiguous, last, expected):
    assert choice({"contiguous": contiguous, "channels_last": last}) == expected


def test_both_formats_compute_the_same():
    first = put_in(network().eval(), "contiguous")
    last = put_in(network().eval(), "channels_last")
    assert last[0].weight.is_contiguous(memory_format=torch.channels_last)
    seen = []
    last[0].register_forward_pre_hook(lambda m, inputs: seen.append(inputs[0].stride()))
    torch.testing.assert_close(last(IMAGES), first(IMAGES))
    assert seen == [IMAGES.contiguous(memory_format=torch.channels_last).stride()]
    assert last.state_dict().keys() == first.state_dict().keys()


def test_strided_1x1_of_few_channels_stays_contiguous():
    """oneDNN issue 6035: with AVX2 its gradient ended the process where channels are last."""
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 1, stride=2), nn.Conv2d(8, 4, 1)]
    first = nn.Sequential(*layers)
    last = put_in(copy.deepcopy(first), "channels_last")
    seen = []
    last[1].register_forward_pre_hook(lambda m, inputs: seen.append(inputs[0].stride()))
    assert last[1].weight.stride() == (4, 1, 1, 1)
    images = torch.randn(64, 3, 8, 8)
    for _ in range(8):
        for network in (first, last):
            network(images).square().sum().backward()
    assert seen == [(256, 64, 8, 1)] * 8
    for one, other in zip(first.parameters(), last.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("slow", ["contiguous", "channels_last"])
def test_the_faster_one_is_taken(slow, monkeypatch):
    """Time stands still but in steps of the slow format: four each, of which one is not timed."""
    clock = {"now": 0.0, "steps": []}
    monkeypatch.setattr(time, "process_time", lambda: clock["now"])

    def put(made, name):
        def spend(*_):
            clock["now"] += 2.0 if name == slow else 1.0
            clock["steps"].append(name)

        made.register_forward_pre_hook(spend)
        return put_in(made, name)

    monkeypatch.setattr(memory_format, "put_in", put)
    assert faster(network, loss) != slow
    assert sorted(clock["steps"]) == ["channels_last"] * 4 + ["contiguous"] * 4


def test_what_cannot_be_trained_is_left_as_it_is():
    class Fails(nn.Linear):
        def forward(self, x):
            raise ValueError("odd")

    class Flat(nn.Linear):
        def forward(self, x):
            return super().forward(x.view(len(x), -1))  # no view where channels are last

    assert faster(lambda: Fails(2, 2), loss) == "contiguous"
    assert faster(lambda: Flat(192, 4), loss) == "contiguous"


@pytest.fixture
def run(tmp_path):
    def make(**words):
        options = read_options({"model": "m", "data": "d", **words})
        study.begin(options, "images", "abc", (100, 100), "t")
        plan = Plan("t", "", macs=1000, params=10, seconds=0.001)
        return Run(study, options, None, plan, time.monotonic(), Display(lambda line: None))

    with Study.open(tmp_path) as study:
        study.add("0", "find", "kernel", "pack", "hash", 10)
        yield make


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        ({}, "", "channels_last"),
        ({"memory_format": "contiguous"}, "contiguous", "contiguous"),
        ({"memory_format": "channels_last"}, "channels_last", "channels_last"),
        ({"deterministic": True}, "contiguous", "channels_last"),
    ],
)
def test_the_stored_choice_wins(run, words, before, after):
    """... after a kill, too, which makes the training new again."""
    run = run(**words)
    (row,) = run.study.candidates()
    assert run.memory_format(row) == before
    run.study.started(row.id)
    run.study.built(row.id, 1, 1, "channels_last")
    run.study.recover()
    (row,) = run.study.candidates()
    assert row.status == "new" and row.memory_format == "channels_last"
    assert run.memory_format(row) == after

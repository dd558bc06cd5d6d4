"""Timing: interleaved, the first pair thrown away, the median of the pairs' ratios."""

import pytest
import torch
from torch import nn

from canvas import latency
from canvas.latency import measure, summarise


def test_the_first_pair_does_not_count():
    pairs = [(9.0, 1e-9), (2.0, 1.0), (2.0, 1.0), (2.0, 1.0)]
    timed = summarise(pairs)
    assert (timed.ms, timed.spread_ms, timed.baseline_ms, timed.speedup) == (1000, 0, 2000, 2)


def test_the_ratio_is_taken_within_pairs():
    """Both halves of a pair slow down together: ratios of medians would not be 2."""
    slowness = [1, 1, 1, 10, 10]
    pairs = [(0.0, 0.0)] + [(0.002 * s, 0.001 * s) for s in slowness]
    pairs[1:1] = [(0.5, 0.25)]
    timed = summarise(pairs)
    assert timed.speedup == pytest.approx(2)
    assert timed.spread_ms > 0


class Named(nn.Module):
    def __init__(self, name, order):
        super().__init__()
        self.name, self.order = name, order
        self.norm = nn.BatchNorm2d(1)

    def forward(self, x):
        assert not torch.is_grad_enabled() and not self.training
        self.order.append(self.name)
        return self.norm(x)


def test_networks_take_turns_and_stay_as_they_are(monkeypatch):
    order = []
    baseline, candidate = Named("b", order), Named("c", order)
    seconds = iter([0.1, 0.1] + [0.1] * 8)  # two calls for the number of forwards

    def timed(network, images, forwards):
        assert forwards == 1
        network(images)
        return next(seconds)

    monkeypatch.setattr(latency, "_seconds", timed)
    before = {key: value.clone() for key, value in baseline.state_dict().items()}
    assert measure(baseline, candidate, torch.rand(3, 1, 4, 4), pairs=4).speedup == 1
    assert "".join(order) == "bb" + "bc" + "cb" + "bc" + "cb"
    assert all(torch.equal(before[k], v) for k, v in baseline.state_dict().items())


def test_a_short_forward_is_repeated_until_a_sample_is_long_enough(monkeypatch):
    asked = []

    def timed(network, images, forwards):
        asked.append(forwards)
        return 0.001

    monkeypatch.setattr(latency, "_seconds", timed)
    measure(nn.Identity(), nn.Identity(), torch.zeros(1), pairs=3)
    assert asked == [1, 1] + [5] * 6

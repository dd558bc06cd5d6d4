"""Limits that a search learns from its own controls and first finds."""

import random

import pytest

from canvas.runner.pretests import MINIMUM, Limits, Trained, calibrate, judge

LIMITS = Limits(spread=0.8, naswot=555.0)
KNOWN = {"2.3e+00 1.1e+00": "17"}

# (spread, naswot, fingerprint, broken), reason
VERDICTS = [
    ((0.8, 555.0, "1.0e+00 1.0e+00", ""), ""),
    ((None, None, None, ""), ""),
    ((1.9, 500.0, None, ""), "gradient spread 1.90 over 0.80"),
    ((0.1, 498.04, None, ""), "NASWOT 498.0 below 555.0"),
    ((1.9, 498.0, "2.3e+00 1.1e+00", ""), "the same function as 17"),
    ((None, None, None, "the loss is nan before the first step"),
     "the loss is nan before the first step"),
]  # fmt: skip


@pytest.mark.parametrize(("signals", "reason"), VERDICTS)
def test_a_verdict_has_its_reason(signals, reason):
    assert judge(*signals, LIMITS, KNOWN) == (reason == "", reason)


def test_without_limits_only_what_is_broken_or_known_is_rejected():
    assert judge(9.0, 0.0, "new", "", Limits(), KNOWN) == (True, "")
    assert not judge(0.1, 600.0, "2.3e+00 1.1e+00", "", Limits(), KNOWN)[0]


def trained(*rows):
    return [Trained(*row) for row in rows]


GOOD = [(0.1, 560.0, 0.9), (0.2, 558.0, 0.9), (0.3, 556.0, 0.9), (0.4, 555.0, 0.9),
        (0.5, 550.0, 0.9)]  # fmt: skip
BAD = [(3.0, 100.0, 0.1)] * 5


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([], Limits()),
        (GOOD + BAD, Limits(0.5 + 0.2, 550.0 - 6.0)),
        (GOOD[:4] + BAD[:4], Limits()),
        ([(None, row[1], row[2]) for row in GOOD] + BAD, Limits(None, 544.0)),
        ([(row[0], None, row[2]) for row in GOOD] + BAD, Limits(0.7, None)),
        (GOOD, Limits(0.7, 544.0)),  # all as accurate: all are the better half
    ],
)
def test_limits_are_those_of_the_better_half(rows, expected):
    limits = calibrate(trained(*rows))
    assert limits == calibrate(trained(*reversed(rows)))
    assert limits.spread == pytest.approx(expected.spread)
    assert limits.naswot == pytest.approx(expected.naswot)


def test_none_of_the_better_half_is_rejected():
    for seed in range(200):
        source = random.Random(seed)
        rows = [
            Trained(source.gauss(0, 1), source.gauss(0, 1), source.random())
            for _ in range(source.randrange(2, 20))
        ]
        limits = calibrate(rows)
        better = sorted(rows, key=lambda row: -row.accuracy)[: len(rows) // 2]
        assert all(judge(r.spread, r.naswot, None, "", limits, {})[0] for r in better)


@pytest.mark.parametrize("shape", ["gauss", "expovariate", "random"])
@pytest.mark.parametrize("count", [MINIMUM, 7, 20])
def test_few_good_candidates_are_lost(shape, count):
    """At most half of the 1 in n + 1 that holds without the margin for any distribution."""
    source = random.Random(count)
    draw = {
        "gauss": lambda: source.gauss(0, 1),
        "expovariate": lambda: source.expovariate(1),
        "random": source.random,
    }[shape]
    lost, worlds = 0, 4000
    for _ in range(worlds):
        limits = calibrate([Trained(draw(), None, 0.9) for _ in range(count)])
        lost += not judge(draw(), None, None, "", limits, {})[0]
    assert lost / worlds <= 0.5 / (count + 1)

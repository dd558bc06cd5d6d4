"""The rule that ends a training: which epoch, which curve, which threshold."""

import pytest

from canvas.runner.prune import Finished, best_curve, keeps_up, threshold

GOOD = Finished(0, macs=100, curve=[0.1, 0.5, 0.8, 0.9])
FAST = Finished(1, macs=40, curve=[0.6, 0.7, 0.7, 0.7])  # ahead at first, lower in the end
DEAR = Finished(2, macs=900, curve=[0.3, 0.6, 0.9, 0.99])
ALL = [GOOD, FAST, DEAR]


def test_threshold_grows_from_half_and_never_reaches_one():
    assert [threshold(e, 4) for e in range(4)] == [0.5, 0.625, 0.75, 0.875]


@pytest.mark.parametrize(
    ("rule", "macs", "expected"),
    [
        ("macs", 100, GOOD),  # equal MACs count, dearer ones do not
        ("macs", 99, FAST),
        ("macs", 39, None),
        ("macs", 1000, DEAR),
        ("paper", 39, DEAR),
        ("none", 1000, None),
    ],
)
def test_the_curve_is_the_best_of_no_more_macs(rule, macs, expected):
    curve = best_curve(rule, number=50, macs=macs, finished=ALL, behind=4)
    assert curve == (expected.curve if expected else None)


def test_the_best_is_judged_by_its_last_epoch_not_by_the_epoch_compared():
    assert best_curve("macs", 50, 100, [FAST, GOOD], behind=4) == GOOD.curve


def test_what_finished_lately_does_not_count_so_that_workers_do_not_change_the_verdict():
    assert best_curve("paper", number=6, macs=1, finished=ALL, behind=4) == DEAR.curve
    assert best_curve("paper", number=5, macs=1, finished=ALL, behind=4) == GOOD.curve
    assert best_curve("paper", number=3, macs=1, finished=ALL, behind=4) is None


@pytest.mark.parametrize(
    ("accuracy", "epoch", "grace", "stays"),
    [
        (0.0, 0, 2, True),  # grace
        (0.0, 1, 2, True),
        (0.599, 2, 2, False),  # 0.75 * 0.8 = 0.6
        (0.601, 2, 2, True),
        (0.0, 3, 2, True),  # the last epoch is finished anyway
        (0.0, 0, 0, False),  # without grace the first counts
        (0.049, 0, 0, False),  # 0.5 * 0.1
        (0.05, 0, 0, True),
    ],
)
def test_who_keeps_up(accuracy, epoch, grace, stays):
    assert keeps_up(accuracy, epoch, 4, grace, GOOD.curve) is stays


def test_without_a_curve_everybody_keeps_up():
    assert keeps_up(0.0, 2, 4, 0, None)

"""Which finds are rejected before their training."""

import pytest

from canvas.runner.pretests import LIMIT, MINIMUM, judge, limit_after

KNOWN = {"2.3e+00 1.1e+00": "17"}

# (error, fingerprint, broken), reason
VERDICTS = [
    ((0.0, "1.0e+00 1.0e+00", ""), ""),
    ((LIMIT, None, ""), ""),
    ((None, None, ""), ""),  # nothing is recorded
    ((0.994, None, ""), f"error 0.99 at a layer of the unchanged network, over {LIMIT:.2f}"),
    ((0.994, "2.3e+00 1.1e+00", ""), "the same function as 17"),
    ((None, None, "the loss is nan before the first step"),
     "the loss is nan before the first step"),
]  # fmt: skip


@pytest.mark.parametrize(("signals", "reason"), VERDICTS)
def test_a_verdict_has_its_reason(signals, reason):
    assert judge(*signals, LIMIT, KNOWN) == (reason == "", reason)


def test_half_of_the_finds_pass_where_a_budget_makes_all_errors_large():
    assert limit_after([0.9] * (MINIMUM - 1)) == LIMIT
    assert limit_after([0.1, 0.2, 0.3] * MINIMUM) == LIMIT
    large = [0.7 + 0.01 * i for i in range(21)]
    passed = [judge(error, None, "", limit_after(large), {})[0] for error in large]
    assert passed == 11 * [True] + 10 * [False]

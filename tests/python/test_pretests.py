"""Which finds are rejected before their training."""

from types import SimpleNamespace

import pytest

from canvas.runner.measured import verdict
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


def test_the_limit_is_that_of_earlier_finds_of_the_budget():
    """Finds 0 to 19 take turns under two budgets; under the small one all errors are large."""
    budgets = ["large", "small"]
    rows = [
        {"candidate": i, "name": str(i), "budget": budgets[i % 2], "fingerprint": str(i),
         "error": 0.05 + 0.4 * (i % 2) * (1 + i / 40) + 0.3 * (i % 2)}
        for i in range(20)
    ]  # fmt: skip
    items = [SimpleNamespace(candidate=i, number=i) for i in range(20)]
    study = SimpleNamespace(items=lambda: items, measurements=lambda: rows)

    def passes(i, budget, lag, error):
        run = SimpleNamespace(study=study, options={"lag": lag})
        find = SimpleNamespace(id=i, kind="find", budget=budget)
        return verdict(run, find, {"error": error, "fingerprint": None, "broken": ""})[0]

    assert passes(19, "small", 1, 0.8) and not passes(19, "small", 1, 0.95)
    assert not passes(19, "large", 1, 0.8) and passes(19, "large", 1, 0.6)
    assert not passes(19, "small", 6, 0.8)  # seven finds of it are known

"""Which finds are rejected before their training."""

import pytest

from canvas.runner.pretests import LIMIT, judge

KNOWN = {"2.3e+00 1.1e+00": "17"}

# (error, fingerprint, broken), reason
VERDICTS = [
    ((0.0, "1.0e+00 1.0e+00", ""), ""),
    ((LIMIT, None, ""), ""),
    ((None, None, ""), ""),  # nothing is recorded
    ((0.994, None, ""), f"error 0.99 at a layer of the unchanged network, over {LIMIT:g}"),
    ((0.994, "2.3e+00 1.1e+00", ""), "the same function as 17"),
    ((None, None, "the loss is nan before the first step"),
     "the loss is nan before the first step"),
]  # fmt: skip


@pytest.mark.parametrize(("signals", "reason"), VERDICTS)
def test_a_verdict_has_its_reason(signals, reason):
    assert judge(*signals, KNOWN) == (reason == "", reason)

"""Well-known operators as kernels: they solve, and grouped takes the fewest groups that fit."""

import json
import re

import pytest

from canvas import _core
from canvas.nn.controls import (
    budget_controls,
    group_counts,
    grouped,
    grouped_within,
    solve_controls,
)

TARGETS = """# a stage of a network
a 16 16 16 16 3 1 1
b, 16, 32, 16, 16, 3, 2, 1
c 16 32 16 16 1 2 1
"""


def test_every_control_is_solved_for_every_target():
    controls = solve_controls(TARGETS, "none") + budget_controls(TARGETS, "macs=0.5x", "none")
    assert [c.name for c in controls] == [
        "identity", "1x1", "depthwise-separable", "spatially-separable", "bottleneck", "grouped",
    ]  # fmt: skip
    for control in controls:
        assert not control.missing
        assert len(re.findall("^bind ", control.pack, re.MULTILINE)) == 3


@pytest.mark.parametrize(("budget", "groups"), [("0.5x", 2), ("0.49x", 4), ("0.125x", 8)])
def test_grouped_has_the_fewest_groups_that_the_budget_allows(budget, groups):
    pack = grouped(TARGETS, f"macs={budget}").pack
    assert set(re.findall(r"G=(\d+)", pack)) == {str(groups)}


def test_a_control_that_fits_nowhere_is_missing_with_its_reason():
    assert "over the budget" in grouped(TARGETS, "macs=0.001x").missing
    assert "no common divisor" in grouped("a 3 3 8 8 3 1 1\nb 4 4 8 8 3 1 1", "macs=0.5x").missing


def test_all_controls_are_different_kernels():
    controls = solve_controls(TARGETS, "batch") + budget_controls(TARGETS, "macs=0.5x", "batch")
    assert len({_core.hash(control.pack) for control in controls}) == 6


def test_controls_have_norms_where_finds_have_them():
    """... and only those with a weight inside."""
    for norm in ("batch", "none"):
        controls = solve_controls(TARGETS, norm) + budget_controls(TARGETS, "macs=0.5x", norm)
        normed = [c.name for c in controls if "\nnorm batch\n" in c.pack]
        inside = ["depthwise-separable", "spatially-separable", "bottleneck"]
        assert normed == (inside if norm == "batch" else [])


@pytest.mark.parametrize("budget", ["macs=0.5x", "macs=0.2x"])
def test_controls_of_a_budget_fill_it(budget):
    """Grouped goes by whole groups; the others come within a twentieth."""
    whole = json.loads(_core.cost(grouped_within(TARGETS, 10**9).pack))["macs"] * 2
    most = whole * float(budget[5:8])
    for control in budget_controls(TARGETS, budget, "batch"):
        macs = json.loads(_core.cost(control.pack))["macs"]
        assert macs <= most and (control.name == "grouped" or macs > 0.95 * most)


def test_a_grouped_convolution_within_a_number_of_macs_is_called_by_its_groups():
    most = json.loads(_core.cost(grouped_within(TARGETS, 10**9).pack))["macs"]
    assert grouped_within(TARGETS, most).name == "grouped-by-2"
    assert grouped_within(TARGETS, most - 1).name == "grouped-by-4"
    assert "over the budget" in grouped_within(TARGETS, 10).missing


def test_group_counts_are_the_common_divisors():
    assert group_counts("a 12 24 8 8 3 1 1\nb 24 36 8 8 3 1 1") == [2, 3, 4, 6, 12]

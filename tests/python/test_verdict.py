"""The conclusion: what it claims, of which find, against whom, and what it admits."""

import random
import sys
from dataclasses import replace

import pytest
from made_study import row

from canvas.reporting.verdict import Evidence, conclusion, layer_macs, rivals
from canvas.study import Final

IMAGES = 400
BASE = row("baseline", "baseline", 0.97, 1000)
IDENTITY = row("identity", "control", 0.30, 0)
SMALL = row("1x1", "control", 0.30, 100)
MIDDLE = row("depthwise-separable", "control", 0.95, 150)
LARGE = row("grouped", "control", 0.96, 500)
CONTROLS = [BASE, IDENTITY, SMALL, MIDDLE, LARGE]


def final(seed, share, noise=0.02):
    """Hits of about so many images; which ones follows from the seed and the share."""
    chance = random.Random(f"{seed} {share}")
    share += noise * (chance.random() - 0.5)
    text = "".join("01"[chance.random() < share] for _ in range(IMAGES))
    return Final(seed, int(text, 2).to_bytes(IMAGES // 8, "big"))


def evidence(shares, seeds=(1001, 1002, 1003), groups=None, failed=()):
    finals = {r.id: [final(seed, share) for seed in seeds] for r, share in shares}
    return Evidence(finals, groups or range(IMAGES), dict(failed))


def said(find, share, controls=0.5, **more):
    shares = [(r, controls) for r in CONTROLS if r is not BASE] + [(find, share)]
    return conclusion([*CONTROLS, find], evidence(shares, **more))


FIND = row("7", "find", 0.955, 500)


def test_a_find_that_beats_every_control_is_said_to():
    words = said(FIND, 0.9)
    assert words.startswith(
        "Find 7 (95.5 % at 0.50x of the MACs) beats all 4 controls of at most 1.05x of its MACs "
        "on the test split: it is "
    )
    assert "points above" in words and "would have been enough (3 seeds, 400 images" in words


def test_what_is_not_shown_is_not_said_and_the_least_difference_is():
    words = said(FIND, 0.52)
    assert words.startswith("No difference shown on the test split: find 7 (95.5 % at 0.50x")
    assert "to be shown, a difference must be more than " in words and "beats" not in words


def test_a_find_that_is_worse_stays_below():
    words = said(FIND, 0.3)
    assert words.startswith("No win on the test split: find 7") and " points below " in words


def test_a_shown_loss_is_told_before_a_larger_one_that_is_not_shown():
    shares = {r.id: [0.5] * 3 for r in [*CONTROLS[1:], FIND]}
    shares[SMALL.id], shares[LARGE.id] = [0.7] * 3, [0.2, 0.9, 0.9]
    finals = {
        id: [final(1001 + i, share, noise=0) for i, share in enumerate(row)]
        for id, row in shares.items()
    }
    words = conclusion([*CONTROLS, FIND], Evidence(finals, range(IMAGES)))
    assert words.startswith("No win on the test split: find 7") and "below 1x1" in words


def test_one_control_that_is_not_beaten_is_enough():
    shares = [(r, 0.5) for r in CONTROLS[1:4]] + [(LARGE, 0.9), (FIND, 0.9)]
    words = conclusion([*CONTROLS, FIND], evidence(shares))
    assert words.startswith("No difference shown") and "grouped" in words


@pytest.mark.parametrize(
    ("macs", "names"),
    [
        (500, ["identity", "1x1", "depthwise-separable", "grouped"]),
        (477, ["identity", "1x1", "depthwise-separable", "grouped"]),  # 500 <= 1.05 * 477
        (476, ["identity", "1x1", "depthwise-separable"]),
        (96, ["identity", "1x1"]),
        (95, ["identity"]),
        (953, ["baseline", "identity", "1x1", "depthwise-separable", "grouped"]),
    ],
)
def test_rivals_are_what_has_at_most_a_twentieth_more_macs(macs, names):
    assert [r.name for r in rivals(row("1", "find", 0.9, macs), CONTROLS)] == names


def test_macs_are_those_of_the_layers_replaced():
    """A head of 300 MACs that nothing replaces: of the unchanged network's 1000 it leaves 700."""
    find = replace(row("1", "find", 0.9, 630), layer_macs=330)
    assert layer_macs(find, find) == 330 and layer_macs(BASE, find) == 700
    control = replace(row("grouped", "control", 0.9, 650), layer_macs=350)
    assert rivals(find, [control, BASE]) == []
    assert rivals(find, [replace(control, layer_macs=346)]) != []


def test_a_find_below_all_controls_with_weights_claims_nothing():
    words = said(row("7", "find", 0.99, 50), 0.9)
    assert words == (
        "No claim: no control with weights has at most 1.05x of the MACs of find 7 (99.0 % at "
        "0.05x of the MACs). No grouped convolution has so few MACs."
    )


def test_without_finals_there_is_one_seed_and_no_claim():
    words = conclusion([*CONTROLS, FIND], Evidence())
    assert words.startswith("No claim, no finals: find 7 (95.5 % at 0.50x of the MACs) was chosen")
    assert "is grouped (96.0 % at 0.50x" in words and "beats" not in words


@pytest.mark.parametrize("seeds", [(1001,), (1001, 1002)])
def test_fewer_than_three_seeds_claim_nothing(seeds):
    words = said(FIND, 0.9, seeds=seeds)
    assert words.startswith(f"No claim, finals with {len(seeds)} of at least 3 seeds: find 7")


def test_only_seeds_that_both_were_trained_from_are_paired():
    shares = [(r, 0.5) for r in CONTROLS[1:]] + [(FIND, 0.9)]
    whole = evidence(shares, seeds=(1, 2, 3, 4, 5))
    late = {**whole.finals, LARGE.id: whole.finals[LARGE.id][:2]}
    words = conclusion([*CONTROLS, FIND], Evidence(late, whole.groups))
    assert words.startswith("No claim, finals with 2 of")
    unpaired = {**whole.finals, LARGE.id: [final(seed, 0.5) for seed in (6, 7, 8)]}
    assert "finals with 0 of" in conclusion([*CONTROLS, FIND], Evidence(unpaired, whole.groups))


def test_a_control_that_waits_for_its_training_stops_a_claim_and_a_failed_one_is_named():
    shares = [(r, 0.5) for r in CONTROLS[1:4]] + [(FIND, 0.9)]
    new = replace(LARGE, status="new", val_accuracy=None)
    assert conclusion([*CONTROLS[:4], new, FIND], evidence(shares)).startswith("No claim")
    lost = replace(LARGE, status="failed", reason="timeout: too slow")
    words = conclusion([*CONTROLS[:4], lost, FIND], evidence(shares))
    assert "beats all 3 controls" in words and words.endswith("Not compared: grouped (timeout).")


def test_a_find_that_failed_from_one_of_the_seeds_claims_nothing():
    words = said(FIND, 0.9, failed={FIND.id: 1})
    assert words == "No claim: find 7 (95.5 % at 0.50x of the MACs) failed in 1 of its finals."


def test_the_claim_is_about_the_chosen_find_even_where_another_finalist_won():
    other = row("8", "find", 0.94, 500)
    shares = [(r, 0.5) for r in CONTROLS[1:]] + [(FIND, 0.5), (other, 0.95)]
    words = conclusion([*CONTROLS, FIND, other], evidence(shares))
    assert "find 7" in words and "find 8" not in words and "beats" not in words


def test_without_numpy_the_table_is_still_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "canvas.reporting.claims", None)
    assert "are compared with numpy and scipy, not here" in said(FIND, 0.9)


def test_each_budget_of_a_sweep_has_its_sentence():
    half = replace(FIND, budget="macs=0.5x")
    fifth = replace(row("9", "find", 0.7, 200), budget="macs=0.2x")
    shares = [(r, 0.5) for r in CONTROLS[1:]] + [(half, 0.9), (fifth, 0.9)]
    words = conclusion([*CONTROLS, fifth, half], evidence(shares))
    assert words.index("Find 7 ") < words.index("Find 9 ") and words.count(" beats ") == 2


def test_scans_are_counted_not_their_placements():
    words = said(FIND, 0.9, groups=[i % 40 for i in range(IMAGES)])
    assert "3 seeds, 400 images of 40 scans, one-sided 95 %" in words


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([SMALL, FIND], "No comparison: the unchanged network was not trained."),
        ([*CONTROLS], "No find: no kernel was trained to the end."),
        ([*CONTROLS, row("1", "find", 0.99, 200, status="pruned")], "No find: no kernel was"),
    ],
)
def test_what_cannot_be_compared_is_said(rows, words):
    assert conclusion(rows, Evidence()).startswith(words)

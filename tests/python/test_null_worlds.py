"""Worlds of made-up hits, to see how often the rule of a claim says more than is true.

In a null world all networks are equally good.  What differs is what differs in a real search: some
scans are harder than others, a network has its own taste in scans, another seed trains another
network, and each placement of a scan is a new chance.  A network is right about an image where

    SURENESS + scan + taste(network, scan) + seed(network, seed) + placement > 0

The search chooses one of its finds by noisy validation; finals compare that one with all controls.
Everything follows from fixed generators.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.stats
from made_study import row

from canvas.reporting.claims import by_group, compare, compare_values, read_hits
from canvas.reporting.front import chosen_finds
from canvas.reporting.verdict import Evidence, conclusion
from canvas.study import Final

WORLDS = 2000
MOST = 0.065  # 5 % and the Monte Carlo margin of so many worlds
FINDS, CONTROLS, SEEDS, SCANS, PLACEMENTS = 5, 4, 3, 60, 3
GROUPS = [scan for scan in range(SCANS) for _ in range(PLACEMENTS)]
SURENESS = 2.2  # about 92 % right

# What moves the latent sum by so much that accuracies differ by so many points from seed to seed.
SEED_SD = {0.0: 0.0, 0.5: 0.06, 1.0: 0.11, 3.0: 0.31}


def hits(random, worlds, networks, sd, taste=0.6, chance=1.0, better=0.0, scans=SCANS):
    """bool [world, network, seed, image] of networks that are all as good; the first is better by
    `better` in the latent sum.
    """
    shape = (worlds, networks, SEEDS, scans, PLACEMENTS)

    def normal(*kept):
        sizes = [size if axis in kept else 1 for axis, size in enumerate(shape)]
        return random.standard_normal(sizes, dtype=np.float32)

    total = np.float32(chance) * normal(0, 1, 2, 3, 4)
    total += np.float32(SURENESS) + normal(0, 3) + np.float32(taste) * normal(0, 1, 3)
    total += np.float32(sd) * normal(0, 1, 2)
    total[:, 0] += np.float32(better)
    return (total > 0).reshape(worlds, networks, SEEDS, scans * PLACEMENTS)


@cache
def null_world(points):
    """Which (chosen by k finalists, control) differences are shown, and the old rule's answer:
    finals of FINDS finds and CONTROLS controls, validation of the finds on other images.
    """
    random = np.random.default_rng(round(10 * points) + 1)
    sd = SEED_SD[points]
    finals = hits(random, WORLDS, FINDS + CONTROLS, sd)
    validation = hits(random, WORLDS, FINDS, sd)[:, :, 0].mean(-1)
    beats = np.stack(
        [
            compare(finals[:, :FINDS], finals[:, FINDS + c][:, None], GROUPS).is_shown
            for c in range(CONTROLS)
        ],
        axis=-1,
    )  # [world, find, control]
    return finals, validation, beats


def of_chosen(values, validation, finalists):
    """values [world, find, ...] of the find that validation puts first among so many."""
    chosen = validation[:, :finalists].argmax(1)
    return values[np.arange(len(values)), chosen]


@pytest.mark.parametrize("points", SEED_SD)
def test_a_null_world_is_what_it_says(points):
    """What seeds add to the variance that chance alone has is the standard deviation that the
    world is named by, and accuracies are those of a task that is nearly learnt.
    """
    variance = [null_world(p)[0].mean(-1).var(-1, ddof=1).mean() for p in (0.0, points)]
    assert 100 * (variance[1] - variance[0]) ** 0.5 == pytest.approx(points, abs=0.2)
    assert 0.9 < null_world(points)[0].mean() < 0.95


@pytest.mark.parametrize("finalists", range(1, FINDS + 1))
@pytest.mark.parametrize("points", SEED_SD)
def test_where_all_are_equal_a_claim_is_rare(points, finalists):
    _, validation, beats = null_world(points)
    mine = of_chosen(beats, validation, finalists)
    for controls in range(1, CONTROLS + 1):
        assert mine[:, :controls].all(-1).mean() <= MOST, (points, finalists, controls)


@pytest.mark.parametrize("points", SEED_SD)
def test_the_rule_before_this_one_claimed_in_most_null_worlds(points):
    """The best of the finalists on the test split, above the best control at all."""
    finals, _, _ = null_world(points)
    means = finals.mean((-2, -1))
    wins = means[:, :3].max(1) > means[:, FINDS]
    assert wins.mean() > 0.6


@pytest.mark.parametrize("points", SEED_SD)
def test_where_little_is_left_to_chance_the_error_is_not_too_small(points):
    """A and B then hardly count anything twice: the rate is near the 5 % that it may be."""
    random = np.random.default_rng(7)
    finals = hits(random, WORLDS, 2, SEED_SD[points], taste=1.5, chance=0.1)
    shown = [compare(finals[:, i], finals[:, 1 - i], GROUPS).is_shown.mean() for i in (0, 1)]
    assert 0.025 < max(shown) <= MOST


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_metrics_of_seeds_alone_claim_no_more_than_they_may(seeds):
    """Values that differ by the chance of seeds alone, of any size."""
    values = np.random.default_rng(3).normal(30, 4, (20_000, 2, seeds))
    shown = compare_values(values[:, 0], values[:, 1]).is_shown.mean()
    assert 0.04 < shown < 0.06
    better = compare_values(values[:, 0] + 40, values[:, 1]).is_shown.mean()
    assert better > 0.9 or seeds == 2
    alone = compare_values(values[0, 0, :1], values[0, 1, :1])
    assert not alone.is_shown and alone.least == np.inf


def test_images_of_one_thing_must_be_named_as_such():
    finals = hits(np.random.default_rng(7), WORLDS, 2, 0.0, taste=1.5, chance=0.1)
    alone = range(SCANS * PLACEMENTS)
    assert compare(finals[:, 0], finals[:, 1], alone).is_shown.mean() > 2 * MOST


@pytest.mark.parametrize(("points", "found"), [(0.0, 0.9), (0.5, 0.8), (1.0, 0.65), (3.0, 0.2)])
def test_a_difference_that_is_there_is_found(points, found):
    """Three points, on as many scans as digits-scattered has."""
    finals = hits(np.random.default_rng(5), 200, 2, SEED_SD[points], better=0.4, scans=360)
    groups = np.repeat(np.arange(360), PLACEMENTS)
    better, worse = finals.mean((0, 2, 3))
    assert better - worse == pytest.approx(0.03, abs=0.005)
    assert compare(finals[:, 0], finals[:, 1], groups).is_shown.mean() > found
    assert compare(finals[:, 1], finals[:, 0], groups).is_shown.mean() < 0.02


def test_placements_of_one_scan_are_no_independent_images():
    """With each image for itself, a network's taste in scans would be counted three times."""
    random = np.random.default_rng(6)
    finals = hits(random, WORLDS, 2, 0.0, taste=2.0)
    finals[:, :, 1:] = finals[:, :, :1]  # every seed gives the same answers
    apart = compare(finals[:, 0], finals[:, 1], range(SCANS * PLACEMENTS))
    together = compare(finals[:, 0], finals[:, 1], GROUPS)
    assert together.is_shown.mean() <= MOST < apart.is_shown.mean()


# ---- from the choice to the sentence ----------------------------------------------------------


def packed(array):
    return [Final(1001 + s, np.packbits(bits).tobytes()) for s, bits in enumerate(array)]


def said(finals, validation):
    """The sentence about a world of three finds and one control."""
    finds = [row(str(f + 1), "find", float(validation[f]), 500) for f in range(3)]
    control = row("grouped", "control", 0.9, 500)
    control.id, base = 50, row("baseline", "baseline", 0.9, 1000)
    rows = [base, control, *finds]
    evidence = Evidence(
        {50: packed(finals[FINDS]), **{f + 1: packed(finals[f]) for f in range(3)}}, GROUPS
    )
    assert chosen_finds(rows) == [finds[int(validation[:3].argmax())]]
    return conclusion(rows, evidence)


def test_the_whole_chain_says_what_the_arrays_say():
    """400 null worlds through rows, stored bits and words; the rate was counted above."""
    finals, validation, beats = null_world(1.0)
    mine = of_chosen(beats, validation, 3)[:, 0]
    worlds = [*np.flatnonzero(mine)[:50], *range(200)]
    for world in worlds:
        words = said(finals[world], validation[world])
        assert (" beats the only control " in words) == mine[world], words


# ---- corners ------------------------------------------------------------------------------------


def test_equal_answers_show_nothing_and_have_no_error():
    same = np.ones((3, 5), bool)
    found = compare(same, same, range(5))
    assert (found.mean, found.error, found.least) == (0, 0, np.inf) and not found.is_shown
    found = compare(same, ~same, range(5))  # no two differ: nothing is known of the error
    assert (found.mean, found.least) == (1, np.inf) and not found.is_shown


@pytest.mark.parametrize(("seeds", "images"), [(1, 9), (3, 1), (1, 1)])
def test_one_seed_or_one_image_shows_nothing(seeds, images):
    ours = np.ones((seeds, images), bool)
    found = compare(ours, ~ours, range(images))
    assert found.mean == 1 and np.isinf(found.least) and not found.is_shown


def test_the_formula_by_hand():
    """Two seeds, three images: d_s = 2/3 and 1, d_i = 1, 1 and 1/2."""
    ours = np.array([[1, 1, 1], [1, 1, 1]], bool)
    theirs = np.array([[0, 0, 1], [0, 0, 0]], bool)
    found = compare(ours, theirs, range(3))
    a, b = (1 / 18) / 2, (1 / 12) / 3
    v = (a + b) ** 2 / (a**2 / 1 + b**2 / 2)
    assert (found.mean, found.error, found.freedom) == pytest.approx((5 / 6, (a + b) ** 0.5, v))
    assert found.least == pytest.approx(scipy.stats.t.ppf(0.95, v) * (a + b) ** 0.5)


def test_groups_of_any_size_and_order():
    values = np.array([[1, 0, 1, 1, 0, 0]])
    assert by_group(values, [7, 2, 7, 2, 7, 9]).tolist() == [[0.5, 2 / 3, 0]]
    assert by_group(values, range(6)).tolist() == values.tolist()


def test_bits_are_read_as_they_are_stored():
    array = np.random.default_rng(1).integers(0, 2, (3, 19)).astype(bool)
    stored = [np.packbits(row).tobytes() for row in array]
    assert (read_hits(stored, 19) == array).all() and read_hits([], 19).shape == (0, 19)

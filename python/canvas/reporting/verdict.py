"""The conclusion of a search: one sentence about the chosen find of each budget, never more than
the finals show.

A find *beats* its controls if it is shown (claims.py) to be more accurate on the test images than
every control of at most 1.05x of its MACs; known kernels that a search started from are among the
controls, and so is the unchanged network where it has so few.  MACs are those of the layers
replaced, which is what a budget counts.  Otherwise no difference is shown, and the sentence says
how large it would have had to be.  Without finals of at least three seeds there is no claim, nor
for a find that failed in one of them: what is left would flatter it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..study import Candidate, Final, Study
from .front import accuracy, chosen_finds, merit, title

SEEDS = 3  # of the finals, for a claim
MORE = 1.05  # a control may have so many times the MACs of the find


@dataclass(frozen=True)
class Evidence:
    """What was seen on the test split: the finals by candidate, a number per test image that is
    equal for those that show the same thing, how many finals of a candidate failed.
    """

    finals: Mapping[int, Sequence[Final]] = field(default_factory=dict)
    groups: Sequence[int] = ()
    failed: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study) -> Evidence:
        return cls(study.finals(), study.test_groups(), study.failed_finals())


@dataclass(frozen=True)
class Comparison:
    """A find and one of its controls: by how much the find is better, and the least difference
    that would have been shown, in the unit of the metric, over so many seeds.  `of_examples`:
    whether the chance of the test examples counts, or that of the seeds alone.
    """

    control: Candidate
    mean: float
    least: float
    seeds: int
    of_examples: bool = True


def conclusion(rows: Sequence[Candidate], evidence: Evidence) -> str:
    """A sentence for each budget of the search."""
    return " ".join(conclusions(rows, evidence))


def conclusions(rows: Sequence[Candidate], evidence: Evidence) -> list[str]:
    """The sentence of each budget, some with a second one that explains it."""
    baseline = next((r for r in rows if r.kind == "baseline" and r.status == "done"), None)
    if baseline is None:
        return ["No comparison: the unchanged network was not trained."]
    finds = chosen_finds(rows)
    if not finds:
        return ["No find: no kernel was trained to the end."]
    return [sentence(find, rows, baseline, evidence) for find in finds]


def sentence(
    find: Candidate, rows: Sequence[Candidate], baseline: Candidate, evidence: Evidence
) -> str:
    """What is shown of one find."""
    named = _named(find, baseline)
    fair = rivals(find, rows)
    if not any(layer_macs(row, find) for row in fair):
        return (
            f"No claim: no control with weights has at most {MORE}x of the MACs of {named}."
            + _missing(find, rows)
        )
    if failed := evidence.failed.get(find.id):
        return f"No claim: {named} failed in {failed} of its finals."
    seeds = min(len(common_seeds(find, row, evidence)) for row in fair)
    if seeds < SEEDS:
        return _no_claim(find, fair, baseline, evidence, seeds)
    try:
        compared = [compare_finals(find, row, evidence) for row in fair]
    except ImportError:  # the table of a search can be read where none can run
        return f"No claim about {named}: its finals are compared with numpy and scipy, not here."
    return _verdict(named, decisive(compared), len(fair), baseline, evidence) + _missing(
        find, rows
    )


# ---- who is compared --------------------------------------------------------------------------


def rivals(find: Candidate, rows: Sequence[Candidate]) -> list[Candidate]:
    """What a find has to beat: the controls, and the unchanged network, of at most MORE times its
    MACs; those that could not be trained are no rivals, those that are not trained yet are.
    """
    most = MORE * layer_macs(find, find)
    return [
        row
        for row in rows
        if row.kind != "find" and row.status != "failed" and layer_macs(row, find) <= most
    ]


def layer_macs(row: Candidate, find: Candidate) -> int:
    """MACs of the layers replaced, in a row of the same table as `find`; those of the unchanged
    network follow from what all of its other layers have.
    """
    if row.layer_macs is not None:
        return row.layer_macs
    if row.kind == "baseline" and find.layer_macs is not None:
        return (row.macs or 0) - ((find.macs or 0) - find.layer_macs)
    return row.macs or 0


def common_seeds(find: Candidate, control: Candidate, evidence: Evidence) -> list[int]:
    """The seeds from which the finals trained both."""
    seeds = [{f.seed for f in evidence.finals.get(row.id, ())} for row in (find, control)]
    return sorted(seeds[0] & seeds[1])


def decisive(compared: Sequence[Comparison]) -> Comparison:
    """The comparison that decides: a shown loss, if there is one, else the closest control."""
    lost = [c for c in compared if c.mean < -c.least]
    return min(lost or compared, key=lambda c: (c.mean - c.least, c.control.id))


def compare_finals(find: Candidate, control: Candidate, evidence: Evidence) -> Comparison:
    """Compares the finals of their common seeds.  ImportError without numpy and scipy."""
    # numpy and scipy, which a table without finals does not need
    from .claims import compare, compare_values, read_hits

    seeds, metric = common_seeds(find, control, evidence), find.metric
    if not metric.per_example:
        values = [
            {f.seed: metric.merit(f.test) for f in evidence.finals[row.id]}
            for row in (find, control)
        ]
        shown = compare_values(*([one[seed] for seed in seeds] for one in values))
        mean, least = metric.amount(float(shown.mean)), metric.amount(float(shown.least))
        return Comparison(control, mean, least, len(seeds), of_examples=False)
    images = len(evidence.groups)
    ours, theirs = (
        read_hits([f.hits for f in evidence.finals[row.id] if f.seed in seeds], images)
        for row in (find, control)
    )
    difference = compare(ours, theirs, evidence.groups)
    mean, least = metric.amount(float(difference.mean)), metric.amount(float(difference.least))
    return Comparison(control, mean, least, len(seeds))


def grounds(compared: Comparison, evidence: Evidence) -> str:
    """What a comparison rests on: `3 seeds, 1800 images of 360 scans, one-sided 95 %`."""
    if not compared.of_examples:
        return f"{compared.seeds} seeds, on these test examples, one-sided 95 %"
    things = len(set(evidence.groups))
    images = f"{len(evidence.groups)} images" + (
        "" if things == len(evidence.groups) else f" of {things} scans"
    )
    return f"{compared.seeds} seeds, {images}, one-sided 95 %"


# ---- words ------------------------------------------------------------------------------------


def _verdict(
    named: str, hardest: Comparison, controls: int, baseline: Candidate, evidence: Evidence
) -> str:
    """By the control that comes closest to the find, or is ahead of it."""
    control = _named(hardest.control, baseline)
    points, least, of = hardest.mean, hardest.least, grounds(hardest, evidence)
    unit = baseline.metric.unit
    if points > least:
        return (
            f"{named[:1].upper()}{named[1:]} beats {_all(controls)} of at most {MORE}x of its "
            f"MACs on the test split: it is {_amount(points)} {unit} above {control}, the "
            f"closest, and {_amount(least)} would have been enough ({of})."
        )
    where = f"is {_amount(points)} {unit} above" if points > 0 else "only equals"
    if points < 0:
        where = f"stays {_amount(-points)} {unit} below"
    enough = "nothing could have been shown"
    if math.isfinite(least) and not (baseline.metric.is_share and least >= 100):
        enough = f"to be shown, a difference must be more than {_amount(least)} {unit}"
    what = "No win" if points < -least else "No difference shown"
    return f"{what} on the test split: {named} {where} {control}; {enough} ({of})."


def _no_claim(
    find: Candidate,
    fair: Sequence[Candidate],
    baseline: Candidate,
    evidence: Evidence,
    seeds: int,
) -> str:
    best = max(fair, key=merit)
    begun = bool(evidence.finals.get(find.id))
    known = "no finals" if not begun else f"finals with {seeds} of at least {SEEDS} seeds"
    return (
        f"No claim, {known}: {_named(find, baseline)} was chosen by the validation split; the "
        f"most accurate control of at most {MORE}x of its MACs is {_named(best, baseline)}. A "
        f"claim needs finals from at least {SEEDS} seeds for all of them."
    )


def _missing(find: Candidate, rows: Sequence[Candidate]) -> str:
    """The controls of so few MACs, as far as known, that could not be compared."""
    failed = [
        row
        for row in rows
        if row.kind == "control"
        and row.status == "failed"
        and layer_macs(row, find) <= MORE * layer_macs(find, find)
    ]
    words = ", ".join(f"{row.name} ({row.reason.partition(':')[0]})" for row in failed)
    told = f" Not compared: {words}." if words else ""
    if not any("grouped" in row.name for row in [*failed, *rivals(find, rows)]):
        told += " No grouped convolution has so few MACs."
    return told


def _all(controls: int) -> str:
    return "the only control" if controls == 1 else f"all {controls} controls"


def _named(row: Candidate, baseline: Candidate) -> str:
    ratio = (row.macs or 0) / (baseline.macs or 1)
    return f"{title(row)} ({row.metric.text(accuracy(row))} at {ratio:.2f}x of the MACs)"


def _amount(points: float) -> str:
    return f"{points:.1f}" if points >= 0.1 else f"{points:.1g}"

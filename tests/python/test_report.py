"""The table and its conclusion: true in both directions."""

import csv
import io
from dataclasses import replace

import pytest

from canvas.reporting.report import (
    COLUMNS,
    best_control,
    conclusion,
    front,
    pareto_csv,
    pick,
    pick_line,
    primitives,
    short,
    table,
    table_rows,
)
from canvas.study import Candidate


def row(name, kind, accuracy, macs, speedup=1.0, status="done", kernel="", reason=""):
    return Candidate(
        id=int(name) if name.isdigit() else 0,
        name=name,
        kind=kind,
        number=None,
        kernel=kernel,
        pack="",
        hash=None,
        layer_macs=None,
        status=status,
        reason=reason,
        log="",
        macs=macs,
        params=macs // 10,
        val_accuracy=accuracy,
        latency_ms=None if speedup is None else 2 / speedup,
        latency_spread_ms=0.1,
        speedup=speedup,
        seconds=1.0,
    )


BASE = row("baseline", "baseline", 0.97, 1000)
SMALL = row("1x1", "control", 0.30, 100)
MIDDLE = row("depthwise-separable", "control", 0.95, 150)
LARGE = row("grouped", "control", 0.96, 500)
CONTROLS = [BASE, SMALL, MIDDLE, LARGE]


def test_a_find_that_beats_its_control_is_named_with_the_points():
    words = conclusion([*CONTROLS, row("7", "find", 0.955, 200)], 1000)
    assert words == (
        "A find beat the best control of no more MACs: find 7 (95.5 % at 0.20x of the MACs) is "
        "0.5 points above depthwise-separable (95.0 % at 0.15x of the MACs), standard error 1.0."
    )


def test_a_find_that_does_not_is_named_too():
    words = conclusion([*CONTROLS, row("7", "find", 0.94, 200)], 1000)
    assert words.startswith("No find beat") and "stays 1.0 points below depthwise-sep" in words


@pytest.mark.parametrize(
    ("finds", "yes", "named"),
    [
        # the control with more MACs than the find does not count, though it is better
        ([row("1", "find", 0.955, 499)], True, "depthwise-separable"),
        # with as many MACs it does
        ([row("1", "find", 0.955, 500)], False, "grouped"),
        # a tie is no win
        ([row("1", "find", 0.95, 200)], False, "only equals"),
        # the most accurate find loses to its own control: another's win is told, but second
        (
            [row("1", "find", 0.955, 600), row("2", "find", 0.951, 300)],
            False,
            "The most accurate find did not beat the best control of no more MACs: find 1 (95.5 % "
            "at 0.60x of the MACs) stays 0.5 points below grouped (96.0 % at 0.50x of the MACs), "
            "standard error 0.9; but find 2 (95.1 % at 0.30x of the MACs) is 0.1 points above",
        ),
        # the most accurate is named, not the one with the widest margin
        ([row("1", "find", 0.9, 120), row("2", "find", 0.97, 600)], True, "find 2"),
        # what was pruned or failed is no find
        ([row("1", "find", 0.99, 200, status="pruned")], False, "No find: no drawn kernel"),
        ([row("1", "find", 0.99, 50)], False, "no control has as few MACs as find 1"),
        # one of them has a fair control, and loses
        ([row("1", "find", 0.99, 50), row("2", "find", 0.2, 100)], False, "find 2 (20.0 %"),
        ([], False, "No find: no drawn kernel was trained to the end"),
    ],
)
def test_the_conclusion_does_not_lie(finds, yes, named):
    words = conclusion([*CONTROLS, *finds], 1000)
    assert words.startswith("A find beat") is yes
    assert named in words


def test_a_control_that_failed_does_not_count():
    lost = [BASE, row("1x1", "control", 0.99, 10, status="failed"), MIDDLE]
    assert conclusion([*lost, row("1", "find", 0.955, 200)], 100).startswith("A find beat")


def test_without_the_baseline_nothing_is_compared():
    assert conclusion([SMALL, row("1", "find", 0.9, 200)], 100).startswith("No comparison")


def test_the_best_control_is_the_most_accurate_of_no_more_macs():
    assert best_control(row("1", "find", 0.5, 499), CONTROLS[1:]) is MIDDLE
    assert best_control(row("1", "find", 0.5, 99), CONTROLS[1:]) is None


def names(rows):
    return [r.name for r in rows]


def test_the_front_holds_what_no_find_dominates():
    finds = [
        row("1", "find", 0.9, 100, 1.0),
        row("2", "find", 0.9, 90, 1.0),  # dominates 1
        row("3", "find", 0.8, 95, 2.0),  # fastest
        row("4", "find", 0.8, 95, 1.5),  # dominated by 3
        row("5", "find", 0.7, 50, 0.5),  # smallest
        row("6", "find", 0.9, 90, 1.0),  # the same as 2: both stay
        row("7", "find", 0.95, 400, None),  # not timed, but the most accurate
        row("8", "find", 0.6, 400, None),
    ]
    assert names(front(finds)) == ["2", "3", "5", "6", "7"]
    rows = table_rows([row("9", "find", 0.99, 1, status="pruned"), *finds, *CONTROLS])
    assert names(rows)[:4] == names(CONTROLS)
    assert names(rows)[4:] == ["7", "2", "6", "3", "5"]


def finalist(name, kind, accuracy, macs, *tests, speedup=1.0):
    """A row with figures of the test split."""
    return replace(row(name, kind, accuracy, macs, speedup), tests=tests)


FINALS = [
    finalist("baseline", "baseline", 0.97, 1000, 0.95, 0.97),
    finalist("1x1", "control", 0.30, 100, 0.31, 0.33, speedup=4.0),
    finalist("grouped", "control", 0.96, 500, 0.94, 0.96, speedup=0.5),
    finalist("7", "find", 0.99, 500, 0.93, 0.95, speedup=2.0),
    finalist("8", "find", 0.90, 400, 0.955, 0.965, speedup=1.5),
    row("9", "find", 0.98, 300, 9.0),
]


def test_where_there_are_finals_the_test_split_decides():
    words = conclusion(FINALS, 1000)
    assert words == (
        "A find beat the best control of no more MACs: find 8 (96.0 % at 0.40x of the MACs) is "
        "64.0 points above 1x1 (32.0 % at 0.10x of the MACs), standard error over the seeds 1.1."
    )
    lines = table(FINALS).splitlines()
    assert "test" in lines[0] and "96.0 % +- 1.4" in lines[1] and "  -  " in lines[-1]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("fastest within 0.1", "8"),  # of those with finals: 9 is faster, but was not tested
        ("fastest within 2.0", "7"),
        ("fastest within 100", "1x1"),
        ("fastest", "1x1"),
        ("fewest-macs within 1.1", "8"),
        ("fewest-params within 2", "8"),
        ("most-accurate", "baseline"),  # as accurate as 8, and older
    ],
)
def test_the_row_to_take_follows_from_the_rule(rule, name):
    assert pick(FINALS, rule).name == name


def test_the_unchanged_network_is_taken_where_nothing_beats_it():
    rows = [BASE, row("7", "find", 0.97, 500, 0.9)]
    picked = pick(rows, "fastest within 1.0")
    assert picked is BASE
    assert pick_line("fastest within 1.0", rows, picked) == (
        "* fastest within 1.0 points of the unchanged network on the validation split: baseline "
        "(nothing beats it)."
    )
    assert table(rows, picked).splitlines()[1].startswith("* baseline")
    assert pick([row("7", "find", 0.9, 500)], "fastest") is None
    assert "no row" in pick_line("fastest", [], None)


def test_the_front_weighs_what_the_objectives_name():
    finds = [
        row("1", "find", 0.9, 100, 1.0),
        row("2", "find", 0.9, 200, 2.0),  # faster, but dearer
        row("3", "find", 0.9, 100, 1.0),  # the same as 1
        row("4", "find", 0.8, 100),
    ]
    assert names(front(finds, "macs")) == ["1", "3"]
    assert names(front(finds, "latency")) == ["2"]
    assert names(front(finds, "latency,macs")) == ["1", "2", "3"]
    rows = table_rows([*CONTROLS, *finds, row("6", "find", 0.99, 1, status="failed")], "latency")
    assert names(rows)[4:] == ["2"]


def test_the_csv_has_exactly_its_columns_and_order():
    rows = table_rows(
        [
            *CONTROLS,
            row("identity", "control", None, 5, status="failed"),
            row("4", "find", 0.9, 250, 2.0),
        ]
    )
    text = pareto_csv(rows)
    assert (
        text.splitlines()[0]
        == ",".join(COLUMNS)
        == (
            "candidate,kind,val_accuracy,latency_ms,macs,params,macs_ratio,params_ratio,speedup,"
            "engine,test_accuracy,test_spread,budget,picked"
        )
    )
    read = list(csv.DictReader(io.StringIO(text)))
    assert [r["kind"] for r in read] == ["baseline", "control", "control", "control", "find"]
    assert float(read[0]["macs_ratio"]) == float(read[0]["params_ratio"]) == 1
    assert read[-1] == {
        "candidate": "4",
        "kind": "find",
        "val_accuracy": "0.9",
        "latency_ms": "1",
        "macs": "250",
        "params": "25",
        "macs_ratio": "0.25",
        "params_ratio": "0.25",
        "speedup": "2",
        "engine": "",
        "test_accuracy": "",
        "test_spread": "",
        "budget": "",
        "picked": "",
    }


def test_the_table_shows_failures_with_their_reason():
    failed = row("identity", "control", None, 5, status="failed", reason="timeout: too slow")
    lines = table([BASE, failed]).splitlines()
    assert "97.0 %" in lines[1] and "1.00x" in lines[1]
    assert "failed" in lines[2] and "timeout: too slow" in lines[2]


def test_small_things():
    assert [short(n) for n in (None, 7, 1500, 3_051_000, 2 * 10**9)] == [
        "-",
        "7",
        "1.5 k",
        "3.05 M",
        "2 G",
    ]
    kernel = "canvas 1\nkernel k\na = input : C H W\nb = fc a to=x0 : x0 H W\nc = relu b\nout c\n"
    assert primitives(kernel) == ["fc", "relu"]

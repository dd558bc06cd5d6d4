"""The table, its front and the row to take; the conclusion has a file of its own."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from made_study import CONTROLS as MADE
from made_study import FINDS, add_finals, make_study, row

from canvas.reporting.front import chosen_finds, front, pick, pick_line
from canvas.reporting.next_steps import fit_steps, search_steps
from canvas.reporting.report import COLUMNS, Report, make_report, pareto_csv, table_rows
from canvas.reporting.table import align, primitives, short, table, terminal_width
from canvas.study import Study

BASE = row("baseline", "baseline", 0.97, 1000)
SMALL = row("1x1", "control", 0.30, 100)
MIDDLE = row("depthwise-separable", "control", 0.95, 150)
LARGE = row("grouped", "control", 0.96, 500)
CONTROLS = [BASE, SMALL, MIDDLE, LARGE]


def names(rows):
    return [r.name for r in rows]


def test_a_find_that_a_control_dominates_is_not_on_the_front():
    """Nor one that the unchanged network does; it is shown all the same if it was chosen."""
    beaten = row("1", "find", 0.94, 160, 0.9)  # less accurate, dearer and slower than MIDDLE
    better = row("2", "find", 0.93, 90)
    slow = row("3", "find", 0.97, 1000, 0.5)
    rows = [*CONTROLS, beaten, better, slow]
    assert names(front(rows)) == ["baseline", "depthwise-separable", "grouped", "2"]
    assert names(table_rows(rows)[4:]) == ["3", "2"]
    assert names(table_rows([*CONTROLS, beaten, better])[4:]) == ["1", "2"]


def test_the_conclusion_is_first_and_commands_have_real_paths(tmp_path):
    folder = make_study(tmp_path / "a study", [*MADE, *FINDS])
    with Study.read(folder) as study:
        report = make_report(study)
    assert report.text.splitlines()[:2] == [report.conclusion, ""]
    assert report.picked.kind != "find"  # so the find that the conclusion is about
    path = f"{tmp_path}/a study"
    assert report.next_steps == (
        f"To train find 0 to the end: canvas train '{path}/find-0000' --out "
        f"'{path}/train-find-0000'",
        f"To see everything as a page: canvas report '{path}'",
    )
    picked = next(row for row in report.rows if row.name == "3")
    own = {"model": "nets:mine"}
    first, _ = search_steps(Path("runs"), own, picked, report.chosen)
    assert first == (
        "To train find 3 to the end: canvas train runs/find-0003 --model nets:mine --out "
        "runs/train-find-0003"
    )
    other, _ = search_steps(Path("runs"), {**own, "task": "regression"}, picked, [])
    assert other == "The operator of find 3 is in runs/find-0003."
    nothing = search_steps(Path("runs"), own, report.picked, [])
    assert nothing[0] == "To search on, repeat the command with more --trials."


def test_commands_after_a_fit(tmp_path):
    best = replace(row("0", "find", 0.9, 300), budget="macs=0.3x")
    options = {"budget": ["macs=0.5x", "macs=0.3x"], "task": "classification", "width": None,
               "image_size": 64, "model": "nets:mine", "data": "folder:my photos",
               "policy": "all"}  # fmt: skip
    first, _ = fit_steps(Path("runs"), options, BASE, [best])
    assert first == (
        "To export the network of macs=0.3x: canvas export runs/budget-2 --weights "
        "runs/budget-2/weights.safetensors --model nets:mine --data 'folder:my photos' "
        "--image-size 64 --policy all --out runs/budget-2/exported"
    )
    wider = {**options, "linear": "yes", "depthwise": "no", "unequal": "skip"}
    first, _ = fit_steps(Path("runs"), wider, BASE, [best])
    assert "--policy all --linear yes --unequal skip --out" in first
    first, _ = fit_steps(Path("runs"), {**options, "task": "segmentation"}, None, [best])
    assert first == "The network of macs=0.3x is in runs/budget-2."
    first, _ = fit_steps(Path("runs"), options, None, [])
    assert first == "To fit on, repeat the command with more time."


@pytest.mark.parametrize(("last", "count"), [(0.95, "4"), (None, "3 to 4")])
def test_finals_that_were_cut_short_have_their_number_of_seeds(tmp_path, last, count):
    make_study(tmp_path, [*MADE, *FINDS])
    tests = {name: [0.95, 0.96, 0.94, 0.95] for name in ("baseline", "1x1", "grouped")}
    add_finals(tmp_path, {**tests, "0": [0.95, 0.94, 0.96] + [last] * (last is not None)})
    with Study.read(tmp_path) as study:
        assert f"mean over {count} seeds +-" in make_report(study).text


def test_accuracies_without_finals_have_their_number_of_seeds(tmp_path):
    make_study(tmp_path, [*MADE, *FINDS])
    for second, words in (
        (False, "of one seed, on"),
        (True, "of one seed, of some the mean of two,"),
    ):
        if second:
            with Study.open(tmp_path) as study:
                id = study.candidates("name = ?", "0")[0].id
                study.database.execute(
                    "INSERT INTO rung (candidate, number, seed, epochs, accuracy) "
                    "VALUES (?, 3, 501, 1, 0.9)",
                    (id,),
                )
        with Study.read(tmp_path) as study:
            assert f"Accuracies are {words}" in make_report(study).text


def test_one_find_is_chosen_for_each_budget_and_finals_have_no_say():
    rows = [
        replace(row("1", "find", 0.90, 300), budget="a", tests=(0.99,)),
        replace(row("2", "find", 0.91, 300), budget="a", tests=(0.10,)),
        replace(row("3", "find", 0.91, 290), budget="a"),  # as accurate, cheaper
        replace(row("4", "find", 0.80, 500), budget="b"),
        replace(row("5", "find", 0.99, 500, status="pruned"), budget="b"),
        BASE,
    ]
    assert names(chosen_finds(rows)) == ["4", "3"]
    assert names(chosen_finds(reversed(rows))) == ["4", "3"]


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
    assert names(rows)[4:] == ["7", "2", "6", "3", "5"]  # no control has so few MACs


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


def test_the_table_has_a_column_for_the_test_split():
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
    untimed = [BASE, replace(rows[1], speedup=None)]
    assert pick_line("fastest", untimed, BASE) == "* fastest: baseline (no other row was timed)."
    assert table(rows, picked).splitlines()[1].startswith("* baseline")
    assert pick([row("7", "find", 0.9, 500)], "fastest") is None
    assert "no row" in pick_line("fastest", [], None)


def test_table_and_rule_quote_the_same_pair_of_engines():
    base = replace(BASE, engine="eager", speedup=1.0, speedup_spread=0.0)
    find = replace(row("7", "find", 0.97, 500), speedup=1.5, speedup_spread=0.04)
    find.engine = "compiled"
    words = pick_line("fastest within 1.0", [base, find], find)
    assert words.endswith(
        ": find 7 (1.50x +- 0.04, compiled against the unchanged network eager)."
    )
    lines = table([base, find], find).splitlines()
    assert "1.50x +- 0.04" in lines[2] and "(c)" in lines[2] and "  1.00x " in lines[1]
    rows = list(csv.DictReader(io.StringIO(pareto_csv(report_of([base, find])))))
    assert [(r["engine"], r["against"]) for r in rows] == [
        ("eager", "eager"),
        ("compiled", "eager"),
    ]
    assert rows[1]["speedup_spread"] == "0.04"


def test_a_table_fits_its_width_and_no_figure_is_cut():
    long = row("7", "find", 0.9, 200, kernel="a = input\n" + "b = unfold a\n" * 14)
    whole = table([BASE, long])
    for width in (200, 110, 90, 79, 20):
        lines = table([BASE, long], None, width).splitlines()
        figures = whole.splitlines()[2].index("unfold") - 2
        assert max(map(len, lines)) <= max(width, figures + 2)
        assert [line[:figures].rstrip() for line in lines] == [
            line[:figures].rstrip() for line in whole.splitlines()
        ]
    assert "unfold u ..." in table([BASE, long], None, 90)
    assert align([["a", "long text"]], width=8) == "a  l ..."
    assert align([["a", "long text"]], width=5) == "a  .."


def test_a_file_has_no_width(monkeypatch):
    assert terminal_width() is None
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "77")
    assert terminal_width() == 77


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
    assert names(rows)[4:] == ["1", "2"]  # 1 is chosen


def report_of(rows):
    return Report(
        Path(), rows, "", "", {}, None, frozenset(r.id for r in front(rows)), chosen_finds(rows)
    )


def test_the_csv_has_exactly_its_columns_and_order():
    rows = table_rows(
        [
            *CONTROLS,
            row("identity", "control", None, 5, status="failed"),
            row("4", "find", 0.9, 250, 2.0),
        ]
    )
    text = pareto_csv(report_of(rows))
    assert (
        text.splitlines()[0]
        == ",".join(COLUMNS)
        == (
            "candidate,kind,val_accuracy,latency_ms,macs,params,macs_ratio,params_ratio,speedup,"
            "speedup_spread,engine,against,test_accuracy,test_spread,budget,picked,front,chosen,"
            "metric,unit"
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
        "speedup_spread": "",
        "engine": "",
        "against": "",
        "test_accuracy": "",
        "test_spread": "",
        "budget": "",
        "picked": "",
        "front": "*",
        "chosen": "*",
        "metric": "accuracy",
        "unit": "points",
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

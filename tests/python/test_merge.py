"""canvas study merge: means over studies, differences within each, what cannot be merged."""

import csv
import io
import json
import re
import shutil
import statistics
from pathlib import Path

import pytest
from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas.cli import main
from canvas.reporting.merged import merge, merged_rows
from canvas.study import Study

TESTS = {
    1: {"baseline": [0.90, 0.92], "identity": [0.5], "1x1": [0.5], "grouped": [0.8], "0": [0.93]},
    2: {"baseline": [0.88, 0.90], "identity": [0.4], "1x1": [0.5], "grouped": [0.82], "0": [0.88]},
    3: {"baseline": [0.91, 0.91], "identity": [0.6], "1x1": [0.5], "grouped": [0.78], "0": [0.95]},
}


@pytest.fixture
def folders(tmp_path):
    found = []
    for seed, tests in TESTS.items():
        folder = make_study(tmp_path / f"seed-{seed}", [*CONTROLS, *FINDS], seed=seed)
        add_finals(folder, tests)
        found.append(str(folder))
    return found


def said(capsys, *words):
    code = main(["study", "merge", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_means_over_studies_and_differences_within_each(folders, capsys):
    code, out, _ = said(capsys, *folders)
    assert code == 0 and "3 studies, seeds 1 (" in out
    lines = {line.split("  ")[1].strip(): line for line in out.splitlines() if line[:2] == "  "}
    tests = [statistics.fmean(TESTS[seed]["0"]) for seed in TESTS]
    unchanged = [statistics.fmean(TESTS[seed]["baseline"]) for seed in TESTS]
    gains = [100 * (a - b) for a, b in zip(tests, unchanged)]
    chosen = lines["chosen find"]
    assert (
        f"{100 * statistics.fmean(tests):.1f} % +- {100 * statistics.stdev(tests):.1f}" in chosen
    )
    assert f"{statistics.fmean(gains):+.1f} points +- {statistics.stdev(gains):.2f}" in chosen
    assert f"{sum(gain > 0 for gain in gains)} of 3" in chosen
    assert "points" not in lines["baseline"]  # no difference to itself


def test_a_study_without_a_find_counts_where_it_has_rows(folders, tmp_path, capsys):
    poor = str(make_study(tmp_path / "poor", CONTROLS, seed=4))
    code, out, _ = said(capsys, *folders, poor)
    assert code == 0
    chosen = next(line for line in out.splitlines() if "chosen find" in line)
    grouped = next(line for line in out.splitlines() if "grouped" in line)
    assert " 3 " in chosen and " 4 " in grouped


def test_csv_and_json_have_the_rows_of_all(folders, capsys):
    _, out, _ = said(capsys, *folders, "-f", "csv")
    table = list(csv.DictReader(io.StringIO(out)))
    _, out, _ = said(capsys, *folders, "-f", "json")
    rows = json.loads(out)
    assert len(table) == len(rows) > 9
    assert {row["study"] for row in table} == set(folders)
    assert [row["candidate"] for row in table] == [row["candidate"] for row in rows]
    assert {row["seed"] for row in rows} == {1, 2, 3}


def test_rows_are_those_of_each_study(folders):
    opened = [Study.read(Path(folder)) for folder in folders]
    rows = merged_rows(merge(opened))
    for study in opened:
        study.close()
    names = [row["candidate"] for row in rows if row["seed"] == 2]
    assert "baseline" in names and "0" in names


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 9}, "asks another question than '.*seed-1': --epochs 9 instead of 6"),
        ({"budget": "macs=0.2x"}, "--budget"),
        ({"amp": "bf16"}, "--amp bf16 instead of no"),
    ],
)
def test_other_questions_are_refused(folders, tmp_path, capsys, change, words):
    other = str(make_study(tmp_path / "other", [*CONTROLS, *FINDS], seed=5, **change))
    code, out, err = said(capsys, folders[0], other)
    assert code == 2 and out == "" and err.count("\n") == 1
    assert re.search(words, err)


def test_a_copy_of_a_study_is_refused(folders, tmp_path, capsys):
    shutil.copytree(folders[0], tmp_path / "copy")
    code, _, err = said(capsys, folders[0], str(tmp_path / "copy"))
    assert code == 2 and "are copies of one study: give it once" in err
    code, _, err = said(capsys, folders[0], folders[0])
    assert code == 2 and "are copies of one study" in err


def test_one_folder_no_folder_and_no_study(folders, tmp_path, capsys):
    assert said(capsys, folders[0])[2] == (
        "canvas: canvas study merge joins two studies or more: name another folder\n"
    )
    assert said(capsys)[0] == 2
    assert "there is no study in" in said(capsys, folders[0], str(tmp_path / "nowhere"))[2]
    code = main(["study", "split", *folders])
    assert code == 2 and "merge" in capsys.readouterr().err
    empty = make_study(tmp_path / "empty", [], seed=6)
    assert "the unchanged network of" in said(capsys, folders[0], str(empty))[2]

"""CSV that a spreadsheet opens: a text of a stranger's is no formula, a number stays a number."""

import csv
import io
from pathlib import Path

import pytest
from made_study import CONTROLS, FINDS, make_study

from canvas import cli
from canvas.study import Study
from canvas.text import csv_cell

FORMULAS = ["=1+1", "+1+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1+1",
            "\uff1d1+1", "-", "--1", "+-1", "=", "-e1", "1\u0661"]  # fmt: skip
PLAIN = ["-1", "+0.5", "-1.5e-7", "1", "", "a=1", "depthwise-separable", "'=1", "-.5", "3."]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_begins_with_an_apostrophe(text: str) -> None:
    cell = csv_cell(text)
    assert cell.startswith("'") or len(text) == 1 or text[0] == "1"
    assert cell.isprintable()


@pytest.mark.parametrize("value", [*PLAIN, None, 1, -1, -0.5, True])
def test_anything_else_stays_what_it_is(value: object) -> None:
    assert csv_cell(value) == value and type(csv_cell(value)) is type(value)


def test_no_command_prints_a_formula(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever text a study holds."""
    folder = make_study(tmp_path / "s", CONTROLS + FINDS)
    with Study.open(folder) as study:
        change = study.database.execute
        change("UPDATE network SET name = '=' || name WHERE kind = 'control'")
        for column in ("budget", "engine", "origin", "parents"):
            change(f"UPDATE network SET {column} = '@SUM(1)'")
        change("UPDATE network SET val_accuracy = 0.5, speedup = 1 WHERE kind = 'find'")
        change("UPDATE task SET reason = '+cmd|'' /C calc''!A0'")
        change("INSERT INTO draw VALUES (900, 'duplicate', '-1+1')")
    seen = []
    for words in (["trials"], ["pareto"]):
        assert cli.main([words[0], str(folder), "-f", "csv"]) == 0
        rows = list(csv.reader(io.StringIO(capsys.readouterr().out)))
        seen += [cell for row in rows for cell in row]
    assert not [cell for cell in seen if cell.startswith(("=", "+", "@"))]
    assert {"'=1x1", "'@SUM(1)", "'+cmd|' /C calc'!A0", "'-1+1"} <= set(seen)

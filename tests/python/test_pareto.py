"""canvas pareto as a command: table, formats, figure, and every rejection in one message."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from made_study import CONTROLS, FINDS, make_study

from canvas.cli import main
from canvas.reporting.report import make_report
from canvas.study import Study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_study(tmp_path_factory.mktemp("study"), CONTROLS + FINDS)


def test_the_table_is_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pareto", str(folder)]) == 0
    with Study.read(folder) as study:
        assert capsys.readouterr().out == make_report(study).text + "\n"


def test_csv_and_json_say_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pareto", str(folder), "--format", "csv"]) == 0
    table = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert main(["pareto", str(folder), "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["candidate"] for row in rows] == [
        "baseline",
        "identity",
        "1x1",
        "grouped",
        "0",
        "3",
    ]
    assert len(table) == len(rows)
    for line, row in zip(table, rows):
        assert line.keys() == row.keys()
        for name in ("picked", "front", "chosen"):
            assert line.pop(name) == ("*" if row.pop(name) else "")
        for name, value in row.items():
            if isinstance(value, float):
                assert float(line[name]) == pytest.approx(value, rel=1e-5)
            else:
                assert line[name] == ("" if value is None else str(value))


def test_the_figure_is_written_beside_the_table(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "front.svg"
    words = ["pareto", str(folder), "--x", "macs", "--title", "A title"]
    assert main([*words, "--plot", str(path)]) == 0
    assert "\n\nresnet8 on digits" in capsys.readouterr().out
    assert ElementTree.parse(path).getroot().findtext(f"{SVG}title") == "A title"
    assert list(tmp_path.iterdir()) == [path]
    assert main([*words, "--plot", "-"]) == 0
    assert capsys.readouterr().out == path.read_text()


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["{}", "--plot", "a.jpg"],
            "a plot is a file that ends in .svg, .png or .pdf, not 'a.jpg'",
        ),
        (["{}", "--plot", "no/a.svg"], "cannot write 'no/a.svg': No such file or directory"),
        (["{}", "--x", "macs"], "--x and --title apply to a plot: give --plot FILE"),
        (["{}", "--plot", "-", "-f", "csv"], "--plot - writes to standard output"),
        (["{}", "--x", "time"], "invalid choice: 'time'"),
        (["{}", "-f", "xml"], "invalid choice: 'xml'"),
        (["nowhere"], "there is no study in 'nowhere': name the --out folder of a search"),
        ([], "the following arguments are required: DIR"),
    ],
)
def test_rejections(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["pareto", *(word.format(folder) for word in words)]) == 2
    output = capsys.readouterr()
    assert message in output.err and output.err.count("\n") == 1 and output.out == ""
    assert not list(tmp_path.iterdir())


def test_nothing_finished_is_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_study(tmp_path, FINDS[3:])
    for flags in ([], ["-f", "csv"], ["--plot", str(tmp_path / "a.svg")], ["--plot", "-"]):
        assert main(["pareto", str(tmp_path), *flags]) == 1
        output = capsys.readouterr()
        assert output.out == "" and output.err.endswith("is complete yet\n")
    assert not (tmp_path / "a.svg").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_standard_output_is_a_message(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "canvas", "pareto", str(folder), "--plot", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "canvas:" in done.stderr

"""Results of benchmarks: rows are written whole, and tables of reports are made of them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import bench_report  # noqa: E402
import harness  # noqa: E402

REPORTS = sorted((ROOT / "docs" / "reports").glob("*.md"))
HAND_MADE = ("name", "column", "fault", "tried", "budget")  # first heads of tables without results


@pytest.fixture()
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CANVAS_BENCH_RESULTS", str(tmp_path))
    return tmp_path


def row(case: str, column: str, value: object, **more: object) -> dict[str, object]:
    made = {"table": "t", "case": case, "column": column, "value": value, "unit": "times"}
    return made | {"machine": "M", "commit": "abc", "date": "2026-01-01"} | more


# ---- rows --------------------------------------------------------------------------------------


def test_every_stored_result_is_read() -> None:
    names = [path.stem for path in sorted(harness.RESULTS.glob("*.jsonl"))]
    assert len(names) > 10
    assert sum(len(harness.read(name)) for name in names) > 5000


def test_a_second_run_appends(scratch: Path) -> None:
    for value in (1.5, 2.5):
        recorder = harness.Recorder("trial", True)
        recorder.add("t", "a", {"ratio": (value, "times"), "none": (None, "us")}, {"ratio": 0.25})
    rows = harness.read("trial")
    assert [found["value"] for found in rows] == [1.5, 2.5]
    assert all(found["spread"] == 0.25 and found["machine"] and found["date"] for found in rows)


def test_nothing_is_written_unless_asked(scratch: Path) -> None:
    harness.Recorder("trial", False).add("t", "a", {"ratio": (1.0, "times")})
    assert not list(scratch.iterdir())


KILLED = """
import os, signal, sys; sys.path.insert(0, {bench!r})
import harness
signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
recorder = harness.Recorder("trial", True)
recorder.add("t", "first", {{"x": (1, "us")}})  # later ones look nothing up
for trial in range(40):
    if not os.fork():
        signal.setitimer(signal.ITIMER_REAL, 0.001 + 0.0001 * trial)
        while True:
            recorder.add("t", "long " * 400, {{str(i): (i, "us") for i in range(20)}})
    os.wait()
"""


def test_an_interrupted_run_leaves_whole_rows(scratch: Path) -> None:
    """Killed between two lines of Python, 40 times: a group of rows is there or not."""
    code = KILLED.format(bench=str(ROOT / "bench"))
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    rows = harness.read("trial")
    assert len(rows) > 100 and len(rows) % 20 == 1


def test_a_full_disk_leaves_whole_rows(scratch: Path) -> None:
    harness.append("trial", [row("a", "x", 1.0)])
    code = (
        f"import resource, signal, sys; sys.path.insert(0, {str(ROOT / 'bench')!r})\n"
        "import harness\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "harness.run(lambda: harness.append('trial', harness.read('trial') * 99))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2 and "cannot be written" in done.stderr, done.stderr
    assert len(harness.read("trial")) == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2 of .* is no result: no JSON object"),
        ("[]", "no JSON object"),
        (json.dumps(row("a", "x", None)), "'value' is neither a number nor text"),
        (json.dumps(row("a", "x", True)), "'value' is neither a number nor text"),
        (json.dumps(row("a", "x", 1, unit=3)), "'unit' is not text"),
        (json.dumps(row("a", "x", 1, commit=7)), "'commit' is neither text nor null"),
        (json.dumps(row("a", "x", 1, speed=7)), "'speed' is unknown"),
        (json.dumps(row("a", "x", 1))[:-9], "no JSON object"),
    ],
)
def test_a_malformed_file_is_one_message(scratch: Path, line: str, message: str) -> None:
    (scratch / "trial.jsonl").write_text(f"{json.dumps(row('a', 'x', 1))}\n{line}\n")
    with pytest.raises(harness.BadResults, match=message):
        harness.read("trial")
    with pytest.raises(harness.BadResults):
        harness.Recorder("trial", True)


def test_a_cut_line_is_one_message_and_exit_code_2(scratch: Path) -> None:
    (scratch / "winograd.jsonl").write_text('{"table": "avx')
    command = [sys.executable, str(ROOT / "bench" / "bench_report.py"), "winograd"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"bench: docs/reports/winograd.md: the last line of .* is cut off; .*\n",
                        done.stderr), done.stderr  # fmt: skip


# ---- tables ------------------------------------------------------------------------------------


def made(directive: str) -> list[str]:
    text = bench_report.updated(f"# T\n<!-- {directive} -->\nold\n<!-- end -->\nrest\n")
    assert text.endswith("<!-- end -->\nrest\n") and "old" not in text
    return text.splitlines()[3:-3]


def test_the_newest_row_of_the_newest_machine_counts(scratch: Path) -> None:
    rows = [
        row("b", "x", 3.0, machine="Old", date="2026-01-03"),
        row("a", "x", 1.0, date="2026-01-02", commit="new"),
        row("a", "x", 9.0),
        row("a", "y", 1234.0, unit="us", spread=2.0),
        row("c", "x", 2.0, machine="New", date="2026-01-04"),
        row("c", "y", "text | bar", machine="New", date="2026-01-04", unit=""),
    ]
    harness.append("trial", rows)
    assert made("rows trial / t @ M | case | x | y = time") == [
        "| case | x | time, us |",
        "|---|---|---|",
        "| a | 1.00 | 1,234 +- 2 |",
        "",
        "M (abc 2026-01-01, new 2026-01-02)",
    ]
    assert made("rows trial / t | case | x | y")[2] == "| c | 2.00 | text \\| bar |"
    assert made("rows trial / t @ M | case | x | y!~")[2] == "| a | 1.00 | 1,234 |"
    both = [*rows, row("a", "x", 7.0, table="u"), row("b", "x", 6.0, table="u", machine="Old")]
    harness.append("two", both)
    assert made("rows two / t + u @ M | case | x") == [
        "| case | t: x | u: x |",
        "|---|---|---|",
        "| a | 1.00 | 7.00 |",
        "",
        "M (abc 2026-01-01, new 2026-01-02)",
    ]
    table = made("machines trial / t / a | machine | x")
    assert table[2:] == ["| M | new | 2026-01-02 | 1.00 |"]
    harness.append("trial", [row("d", "x", 8.0, machine="New", date="2026-01-04")])
    summary = made("summary trial / x | t = all | t > y @ M")
    assert summary[2:4] == [
        "| all | 2 | 4.00 | 5.00 | 2.00 | 8.00 |",
        "| t: y, M | 1 | 1,234 | 1,234 | 1,234 | 1,234 |",
    ]
    pairs = made("summary two / x | t + u > x @ M | t > x + y @ M")
    names = [text.split(" | ")[0] for text in pairs[2:-2]]
    assert names == ["| t: x, M", "| u: x, M", "| t: x, M", "| t: y, M"]


@pytest.mark.parametrize(
    ("directive", "message"),
    [
        ("rows trial / u | case | x", "no results of table 'u'"),
        ("rows trial / t @ Z | case | x", "on 'Z'"),
        ("rows trial / t | case | z", "no column 'z'"),
        ("rows trial | case | x", "has no FILE / NAME"),
        ("summary trial / z | t", "no numbers 'z'"),
    ],
)
def test_what_a_table_cannot_show_is_one_message(
    scratch: Path, directive: str, message: str
) -> None:
    harness.append("trial", [row("a", "x", 1.0)])
    with pytest.raises(harness.BadResults, match=message):
        made(directive)
    with pytest.raises(harness.BadResults, match="no line '<!-- end -->'"):
        bench_report.updated(f"<!-- {directive} -->\n")


def test_the_readme_shows_results() -> None:
    text = bench_report.README.read_text()
    assert bench_report.BLOCK.search(text), "its table is made of results"
    assert bench_report.updated(text) == text, "run ./dev bench report README"


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_a_report_shows_its_results(path: Path) -> None:
    text = path.read_text()
    assert bench_report.updated(text) == text, f"run ./dev bench report {path.stem}"
    assert len(text.splitlines()) <= 150
    plain = bench_report.BLOCK.sub("", text)
    heads = re.findall(r"^\| *([^|]*?) *\|.*\n\|[-| ]+\|$", plain, re.M)
    assert set(heads) <= set(HAND_MADE), "a table of figures is made of results"


def test_reports_are_short() -> None:
    assert sum(len(path.read_text().split()) for path in REPORTS) <= 15_000


def test_a_number_typed_by_hand_is_found(scratch: Path) -> None:
    harness.append("trial", [row("a", "x", 1.0)])
    text = bench_report.updated("<!-- rows trial / t | case | x -->\n<!-- end -->\n")
    assert bench_report.updated(text) == text
    assert bench_report.updated(text.replace("1.00", "1.01")) == text

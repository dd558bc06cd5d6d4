"""Every example of README.md, HACKING.md and docs/ is run.

```canvas     kernel or pack text: `canvas check -` accepts it
```console    lines `$ COMMAND` and what it prints, both streams, from the repository's root;
              a line `...` stands for any lines
```python     runs in an empty folder
```sql        runs on an empty study
```schedule P  a schedule: `canvas schedule check` accepts it for examples/programs/P.program on
              examples/machines/avx512.txt
a table's rows "For people from TVM and Halide": their last column is such a schedule, or a command
```c           right after a schedule: the inside of the function that `canvas compile` writes
<!-- canvas NAME ... --> up to <!-- end -->     what that command prints
<!-- flags of NAME --> up to <!-- end -->       what flags_page.py makes of its rows
<!-- operators of aten --> up to <!-- end -->   what aten_page.py makes of its rows

A page that says <!-- walk --> is gone through from top to bottom in one empty folder: there
```python PATH, ```c PATH and ```text PATH are written to that file, and consoles run in that
folder.

CANVAS_UPDATE=1 (./dev test --update) writes the outputs of consoles and tables anew.
"""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import aten_page
import flags_page
import pytest

from canvas.study import schema as study

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for p in [ROOT / "README.md", ROOT / "HACKING.md"] if p.exists()]
PAGES += sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(
    r"^```(canvas|console|python|sql|schedule|text|c)(?: (\S+))?\n(.*?)^```$", re.S | re.M
)
SCHEDULE_AND_C = re.compile(r"^```schedule (\S+)\n([^`]*)^```\n```c\n([^`]*)^```$", re.M)
TABLE = re.compile(
    r"(<!-- ((?:canvas|flags of|operators of) [^\n]*?) -->\n)(.*?)(<!-- end -->)", re.S
)
WALK = "<!-- walk -->"
MACHINE = ROOT / "examples/machines/avx512.txt"  # what schedules of the pages are bound for
UPDATE = os.environ.get("CANVAS_UPDATE") == "1"


def run(command: str, folder: Path = ROOT, **options: object) -> str:
    """What `command` prints on both streams; `canvas` is the one of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        env={**os.environ, "PATH": path, "COLUMNS": "100"},
        **options,  # type: ignore[call-overload]
    )
    return str(done.stdout)


def console(body: str, folder: Path = ROOT) -> str:
    """The console as it really goes: its commands, each followed by what it prints."""
    commands = [line for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{run(line[2:], folder)}" for line in commands)


def check_console(page: Path, body: str, folder: Path = ROOT) -> None:
    """Run it; what it prints must be what the page says, or becomes so."""
    actual = console(body, folder)
    if UPDATE and not matches(body, actual):
        page.write_text(page.read_text().replace(body, actual))
        return
    assert matches(body, actual), actual


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected.splitlines()
    )
    return re.fullmatch(pattern, actual) is not None


# Pages whose Python examples another test runs: with a cluster, with stand-ins of libraries.
ELSEWHERE = {
    ROOT / "docs" / "cluster.md": "test_cluster_runs.py",
    ROOT / "docs" / "logging.md": "test_callbacks.py",
}


def examples(kind: str) -> list[object]:
    found = []
    for page in PAGES:
        if page in ELSEWHERE and kind == "python":
            continue
        if WALK in page.read_text() and kind in ("console", "python"):
            continue
        for number, match in enumerate(FENCE.finditer(page.read_text())):
            if match[1] == kind:
                name = f"{page.relative_to(ROOT)}-{number}"
                given = (match[2], match[3]) if kind == "schedule" else (page, match[3])
                found.append(pytest.param(*given, id=name))
    return found


@pytest.mark.parametrize("page, body", examples("canvas"))
def test_kernel_text_is_legal(page: Path, body: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "canvas", "check", "-"],
        input=body,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program, body", examples("schedule"))
def test_schedule_is_legal(program: str, body: str) -> None:
    file = ROOT / f"examples/programs/{program}.program"
    done = subprocess.run(
        [
            Path(sys.executable).parent / "canvas",
            "schedule",
            "check",
            file,
            "-",
            "--machine",
            MACHINE,
        ],
        input=body,
        text=True,
        capture_output=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "page, program, schedule, code",
    [(page, *found) for page in PAGES for found in SCHEDULE_AND_C.findall(page.read_text())],
)
def test_schedule_means_this_c(page: Path, program: str, schedule: str, code: str) -> None:
    file = f"examples/programs/{program}.program"
    command = f"canvas compile {file} --schedule - --machine {MACHINE.relative_to(ROOT)}"
    text = run(f"{command} --emit c -o -", input=schedule)
    function = re.search(r"^int \w+\([^{]*\{\n(.*?)^  return 0;\n\}", text, re.S | re.M)
    assert function, text
    actual = textwrap.dedent(function[1])
    if UPDATE and not matches(code, actual):
        page.write_text(page.read_text().replace(code, actual))
        return
    assert matches(code, actual), actual


def primitives() -> list[object]:
    """The examples in the table of docs/schedule.md for people from TVM and Halide."""
    page = (ROOT / "docs/schedule.md").read_text()
    rows = re.findall(r"^\|.*\|$", page.split("## For people from TVM and Halide")[1], re.M)
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    rows = [row for row in rows if len(row) == 4 and row[3].startswith("`")]
    return [pytest.param("\n".join(re.findall(r"`(.*?)`", row[3])), id=row[0]) for row in rows]


@pytest.mark.parametrize("example", primitives())
def test_primitive_of_others_is_said_so(example: str) -> None:
    command = f"canvas schedule check examples/programs/product.program - --machine {MACHINE}"
    if example.startswith("canvas edit"):
        text = run(f"{example}; echo status $?")
        assert text.endswith("status 0\n"), text
    else:
        text = run(command, input=example)
        assert text.startswith("ok"), text


@pytest.mark.parametrize("page, body", examples("console"))
def test_console_prints_this(page: Path, body: str) -> None:
    check_console(page, body)


@pytest.mark.parametrize("page, body", examples("python"))
def test_python_runs(page: Path, body: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(body)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


LONG_WALKS = ("own-network.md",)  # two minutes of trainings


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=[pytest.mark.nightly] * (page.name in LONG_WALKS))
        for page in PAGES
        if WALK in page.read_text()
    ],
)
def test_walk(page: Path, tmp_path: Path) -> None:
    for kind, path, body in FENCE.findall(page.read_text()):
        if kind == "console":
            check_console(page, body, tmp_path)
        elif kind in ("python", "text", "c") and path:
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(body)


@pytest.mark.parametrize("page, body", examples("sql"))
def test_query_is_understood(page: Path, body: str) -> None:
    empty = sqlite3.connect(":memory:")
    empty.executescript(study.SCHEMA)
    for query in body.split(";"):
        empty.execute(query)


def test_the_study_page_tells_every_column() -> None:
    """Names, types and order, table by table."""
    database = sqlite3.connect(":memory:")
    database.executescript(study.SCHEMA)
    schema = {
        table: [
            (name, kind) for _, name, kind, *_ in database.execute(f"PRAGMA table_info({table})")
        ]
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    page = (ROOT / "docs/study.md").read_text()
    told = {}
    for part in re.split(r"^### ", page, flags=re.M)[1:]:
        table = re.match(r"`(\w+)`", part)
        if table:
            told[table[1]] = re.findall(r"^\| `(\w+)` \| (\w+) \|", part, re.M)
    assert told == schema
    assert f"format {study.VERSION}" in page


def test_the_flags_page_has_every_subcommand() -> None:
    page = (ROOT / "docs/flags.md").read_text()
    told = re.findall(r"^<!-- flags of (\w+) -->$", page, re.M)
    assert sorted(told) == sorted(flags_page.subcommands())


def test_functions_of_programs() -> None:
    """docs/program.md names the functions that the parser knows (src/program/scalar_ops.h)."""
    program = "program p\nY[i:1] = no_function(1)\nout Y\n"
    done = subprocess.run(
        [Path(sys.executable).parent / "canvas", "count", "-"],
        input=program,
        text=True,
        capture_output=True,
    )
    known = re.search(r"there are ([\w, ]+)", done.stderr)
    text = (ROOT / "docs/program.md").read_text()
    told = re.search(r"and functions:(.*?), an index", text, re.S)
    assert known and told, done.stderr
    spans = re.findall(r"`([a-z0-9 ]+)(?:\(INDEX\))?`", told[1])
    assert sorted(" ".join(spans).split()) == sorted(known[1].split(", "))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_tables_come_from_the_code(page: Path) -> None:
    def fresh(match: re.Match[str]) -> str:
        word, _, subcommand = match[2].rpartition(" of ")
        made = {"flags": flags_page.section, "operators": lambda _: aten_page.table()}.get(word)
        return match[1] + (made(subcommand) if made else run(match[2])) + match[4]

    text = page.read_text()
    actual = TABLE.sub(fresh, text)
    if UPDATE:
        page.write_text(actual)
    else:
        assert actual == text


@pytest.mark.parametrize(
    "kernel", sorted((ROOT / "examples/kernels").glob("*.kernel")), ids=lambda p: p.stem
)
def test_library_is_printed_canonically(kernel: Path) -> None:
    text = kernel.read_text()
    body = text[text.index("canvas 1\n") :]
    assert run(f"canvas show {kernel.relative_to(ROOT)} --as text") == body

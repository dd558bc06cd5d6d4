"""Every example of README.md, HACKING.md and docs/ is run.

```canvas     kernel or pack text: `canvas check -` accepts it
```console    lines `$ COMMAND` and what it prints, both streams, from the repository's root;
              a line `...` stands for any lines
```python     runs in an empty folder
<!-- canvas VERB ... --> up to <!-- end -->   what that command prints

CANVAS_UPDATE=1 (./dev test --update) writes the outputs of consoles and tables anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [p for p in [ROOT / "README.md", ROOT / "HACKING.md"] if p.exists()]
PAGES += sorted((ROOT / "docs").glob("*.md"))
FENCE = re.compile(r"^```(canvas|console|python)\n(.*?)^```$", re.S | re.M)
TABLE = re.compile(r"(<!-- (canvas [^\n]*?) -->\n)(.*?)(<!-- end -->)", re.S)
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


def console(body: str) -> str:
    """The console as it really goes: its commands, each followed by what it prints."""
    commands = [line for line in body.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{run(line[2:])}" for line in commands)


def matches(expected: str, actual: str) -> bool:
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else re.escape(line) + "\n" for line in expected.splitlines()
    )
    return re.fullmatch(pattern, actual) is not None


def examples(kind: str) -> list[object]:
    found = []
    for page in PAGES:
        for number, match in enumerate(FENCE.finditer(page.read_text())):
            if match[1] == kind:
                name = f"{page.relative_to(ROOT)}-{number}"
                found.append(pytest.param(page, match[2], id=name))
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


@pytest.mark.parametrize("page, body", examples("console"))
def test_console_prints_this(page: Path, body: str) -> None:
    actual = console(body)
    if UPDATE and not matches(body, actual):
        page.write_text(page.read_text().replace(body, actual))
        return
    assert matches(body, actual), actual


@pytest.mark.parametrize("page, body", examples("python"))
def test_python_runs(page: Path, body: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(body)
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_tables_come_from_the_code(page: Path) -> None:
    def fresh(match: re.Match[str]) -> str:
        return match[1] + run(match[2]) + match[4]

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

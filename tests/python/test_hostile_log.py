"""A tuning log that a stranger wrote may choose a slow schedule, and nothing else: whoever takes
it, what is computed is what the program says.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

CANVAS = Path(__file__).parents[2] / "build" / "canvas"
GEMM = """canvas 1
program gemm
in A f32 [m:24, k:24]
in B f32 [k:24, n:24] const
C[m:24, n:24] = A[m, k] * B[k, n] // sum k:24
out C
"""
NETWORK = f"""canvas 1
network one
{GEMM.replace("canvas 1", "").strip()}
end
in x f32 [24, 24]
weight w f32 [24, 24] from w
c f32 [24, 24] = gemm(x, w)
out c
"""
SUM = "A[m, k] * B[k, n]"
# Of format 1, where an edited program stood; they were compiled without a word.
EDITED = {
    "minus three": GEMM.replace(SUM, f"{SUM} * -3"),
    "a backdoor": GEMM.replace(SUM, f"{SUM} + max(A[m, k] - 100, 0) * 1000"),
    "a stage more": GEMM.replace("C[m:24, n", "D[m:24, n").replace(
        "out C", "C[m:24, n:24] = D[m, n] * -3\nout C"
    ),
}
EDITS = {
    "a type": "type B bf16\n",
    "an output's type": "cache C as D\ntype D bf16\n",
    "a border": "border C\n",
    "winograd": "winograd C 4\n",
    "hidden winograd": " winograd  C 4\n",
    "no stage": "cache Q as R\n",
    "of another program": "inline X_p, X_m\noutline Y X[h] as Z\n",
    "no edit": "C[m:24, n:24] = 0\n",
    "a value that is not there": f"outline C {SUM} * -3 as D\n",
    "a reciprocal": "reciprocal C B[k, n] as D\n",
    "many": "cache C as D\n" * 10000,
    "no text": 7,
}


def task_of(program: str) -> str:
    """The hash by which a log names a program (src/tune/record.c)."""
    hashed = 0xCBF29CE484222325
    for byte in program.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
        hashed ^= hashed >> 29
    return f"{hashed:016x}"


def canvas(*words: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([CANVAS, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr and "Assertion" not in done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("hostile")
    (made / "gemm.program").write_text(GEMM)
    (made / "one.net").write_text(NETWORK)
    canvas("tune", made / "gemm.program", "--trials", "1", "--log", made / "good.log")
    return made


def good(folder: Path) -> dict[str, Any]:
    """A record of here that was timed in full, with a schedule of its own."""
    lines = (folder / "good.log").read_text().splitlines()
    record: dict[str, Any] = next(r for r in map(json.loads, lines) if not r["screened"])
    record |= {"edits": "cache C as D\n", "rule": "good", "median": 1.0}
    record["schedule"] = "m, n, k =>\n    @D = m, n // k\nm2, n2 =>\n    @C = {m2}/m, {n2}/n\n"
    return record


def evil(folder: Path, name: str) -> dict[str, Any]:
    """The same, and the fastest of all."""
    record = good(folder) | {"rule": "evil", "median": 1e-9}
    record["schedule"] = "m, n, k =>\n    @C = m, n // k\n"
    if name in EDITED:
        del record["edits"]
        return record | {"canvas_log": 1, "edited": EDITED[name]}
    return record | {"edits": EDITS[name]}


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def emitted(folder: Path, *words: str | Path) -> str:
    """The C of the network, all of its files."""
    out = folder / "out"
    done = canvas("network", folder / "one.net", "--emit", out, "--force", *words)
    assert ("cannot be used" in done.stderr) == bool(words)
    return "".join(path.read_text() for path in sorted(out.iterdir()))


COMPILE = ("--emit", "c", "-o", "-")


@pytest.fixture(scope="module")
def default(folder: Path) -> str:
    return canvas("compile", folder / "gemm.program", *COMPILE).stdout


@pytest.mark.parametrize("name", [*EDITED, *EDITS])
def test_it_is_passed_over(folder: Path, default: str, name: str) -> None:
    alone = write(folder / "alone.log", evil(folder, name))
    taken = canvas("compile", folder / "gemm.program", "--log", alone, *COMPILE)
    assert taken.stdout == default and taken.stderr.count("\n") >= 1


def test_it_hides_no_record_that_can_be_used(folder: Path, default: str) -> None:
    all_evil = [evil(folder, name) for name in [*EDITED, *EDITS]]
    alone = write(folder / "alone.log", *all_evil)
    both = write(folder / "both.log", *all_evil, good(folder), *all_evil)
    words = ("compile", folder / "gemm.program", *COMPILE, "--log")
    usable = canvas(*words, write(folder / "one.log", good(folder)))
    assert usable.stdout != default and usable.stderr == ""
    taken = canvas(*words, both)
    assert taken.stdout == usable.stdout
    assert "6 records of format 1 left out" in taken.stderr
    assert "faster records cannot be used" in taken.stderr
    assert canvas("log", "replay", both).stdout == usable.stdout
    assert "cannot be used" in canvas("log", "replay", alone, code=1).stderr


def test_networks_and_runs_pass_it_over(folder: Path) -> None:
    all_evil = [evil(folder, name) for name in [*EDITED, *EDITS]]
    alone = write(folder / "alone.log", *all_evil)
    both = write(folder / "both.log", *all_evil, good(folder))
    default = emitted(folder)
    assert emitted(folder, "--log", alone) == default
    assert emitted(folder, "--log", both) != default
    for log in (alone, both):
        run = json.loads(canvas("run", folder / "gemm.program", "--log", log, "--json").stdout)
        assert run["verdict"] == "ok"
    shown = json.loads(canvas("log", "show", both, "--json").stdout)
    assert shown["refused"] >= 5 and shown["best"] == 1


def test_a_compiled_model_computes_what_it_says(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    import canvas as package

    monkeypatch.setenv("CANVAS_CACHE", str(folder / "cache"))
    model, x = torch.nn.Linear(24, 24).eval(), 200 + torch.randn(24, 24)
    texts = re.findall(r"^program .*?(?=^end$)", package.compile(model, x).text, re.M | re.S)
    (text,) = (text for text in texts if " // sum" in text)
    program = package._core.print_program(text)
    record = good(folder) | {"program": program, "task": task_of(program), "edits": None}
    log = folder / "model.log"
    (line,) = (x for x in record["program"].splitlines() if " // sum" in x)
    before, summed = line.split(" // ")
    record |= {"median": 1e-9, "schedule": package._core.bind_schedule(program)[1]}
    changed = record["program"].replace(line, f"{before} * -3 // {summed}")
    typed = record | {"edits": f"type {line.partition('[')[0]} bf16\n"}
    write(log, typed, record | {"canvas_log": 1, "edited": changed})
    with torch.no_grad():
        got = package.compile(model, x, log=log, check=False)(x)
        torch.testing.assert_close(got, model(x), rtol=1e-4, atol=1e-3)

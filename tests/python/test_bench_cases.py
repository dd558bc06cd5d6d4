"""The benchmarks: their programs, their summaries, and each of them in its smallest form."""

import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from flags_page import CANVAS
from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas import _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import bench_calls  # noqa: E402
import bench_cost  # noqa: E402
import bench_defaults  # noqa: E402
import bench_network  # noqa: E402
import bench_versions  # noqa: E402
import bench_zoo  # noqa: E402
import cases as programs_of  # noqa: E402
import compiled_program  # noqa: E402
import native_cases  # noqa: E402
import network_cases  # noqa: E402
import network_worker  # noqa: E402
import tune_cases  # noqa: E402


def programs() -> Iterator[tuple[str, str]]:
    for name, case in {**bench_cost.CASES, **bench_cost.HELD_OUT}.items():
        yield f"cost: {name}", case.program()
    for group, cases in tune_cases.GROUPS.items():
        for tuned in cases():
            yield f"tune: {group}, {tuned.name}", tuned.program()
    for kind, named in programs_of.KINDS.items():
        for default in named():
            yield f"{kind}: {default.name}", default.program
    for timed in native_cases.cases():
        for hand in timed.hands.values():
            yield f"native: {timed.name}, block {hand.block}", timed.program(hand.block)


def test_the_cases_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = []
    for name, text in programs():
        inputs, outputs = _core.signature(text)[:2]
        assert inputs and outputs, name
        names.append(name)
    assert len(names) > 280


@pytest.mark.parametrize("kind", ["long", "images", "windows"])
def test_what_torch_computes_has_the_shape_of_the_program(kind: str) -> None:
    for case in programs_of.KINDS[kind]():
        inputs, outputs = _core.signature(case.program)[:2]
        arrays = [torch.empty(*shape, device="meta") for _, _, shape, *_ in inputs]
        result = case.torch(arrays)
        last = result.permute(0, 2, 3, 1) if result.dim() == 4 else result
        assert last.shape == torch.Size(outputs[0][2]), case.name


def test_calls_are_told_by_turns() -> None:
    row = bench_calls.row("ReLU", [[5.0, 10.0], [4.0, 12.0], [6.0, 9.0]])
    assert row == {
        "name": "ReLU",
        "call_us": 5.0,
        "call_least_us": 4.0,
        "beside_us": 10.0,
        "beside_least_us": 9.0,
        "times": 2.0,
    }
    assert "2.00 times as fast" in bench_calls.line(row)
    alone = bench_calls.row("ReLU", [[5.0], [4.0]])
    assert alone == {"name": "ReLU", "call_us": 4.5, "call_least_us": 4.0}
    assert bench_calls.line(alone).endswith("4.5 (4.0) us")


def test_a_machine_is_narrowed_with_its_own_caches() -> None:
    wide = compiled_program.example_machine("avx512").replace("l2 2 MiB", "l2 3 MiB")
    narrow = compiled_program.narrowed("avx2", wide)
    for line in ("vector_bytes 32", "vector_registers 16", "l1 48 KiB", "l2 3 MiB"):
        assert narrow.count(f"{line}\n") == 1
    assert "target x86-64-v3\n" in narrow and len(re.findall("^l[12] ", narrow, re.M)) == 2
    _core.bind_schedule(PRODUCT, None, narrow)


PACK = """canvas 1
kernel thin
a = input                      : C H W
b = group a by=G               : G C/G H W
c = fc b to=x0                 : x0 H W
d = unfold c over=H,W k=K      : x0 KH KW H W
e = fc d to=C                  : C H W
out e
norm batch
bind other Cin=16 Cout=16 KH=3 KW=3 H=16 W=16 stride=1 G=4 x0=8
"""


def test_a_find_is_solved_for_another_network() -> None:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(*io, 3, padding=1) for io in ((3, 8), (8, 16), (16, 16), (16, 2))]
    model = network_cases.replaced(torch.nn.Sequential(*layers), torch.randn(1, 3, 8, 8), PACK)
    kept = [type(layer) is torch.nn.Conv2d for layer in model]
    assert kept == [True, False, False, True]  # 4 groups divide the channels of two of them
    before = sum(p.numel() for layer in layers[1:3] for p in [layer.weight])
    assert (
        0.2 * before < sum(p.numel() for layer in model[1:3] for p in layer.parameters()) < before
    )


def test_hand_schedules_are_there() -> None:
    for case in native_cases.cases():
        for hand in case.hands.values():
            assert (ROOT / "bench" / "native" / f"{hand.schedule}.schedule").exists(), case.name


def test_what_rounds_more_is_compared_with_what_rounds_more() -> None:
    every = ["unchanged canvas", "unchanged canvas winograd", "unchanged compile"]
    assert network_worker.rivals_of("canvas", every) == [every[0], every[2]]
    assert network_worker.rivals_of("canvas winograd", every) == every


def test_a_goal_that_winograd_alone_meets_is_missed() -> None:
    row = {"network": "ResNet-18@32", "kernel": "unchanged", "batch": 1, "threads": 1}
    row |= {"canvas over compile": 1.8, "canvas winograd over compile": 2.06}
    told = bench_network.verdict(row)
    assert told == "missed (over compile 2, met with winograd: 2.06)"
    assert bench_network.verdict(row | {"canvas over compile": 1.97}) == "met (over compile 2)"
    row |= {"canvas winograd over compile": 1.9}
    assert bench_network.verdict(row) == "missed (over compile 2)"


PRODUCT = """canvas 1
program product
in A f32 [i:12, k:20]
in B f32 [k:20, j:24] const
Y[i:12, j:24] = A[i, k] * B[k, j] // sum k:20
out Y
"""


def builds(folder: Path, script: str) -> list[bench_versions.Build]:
    """The one that there is, and one that this shell script is."""
    made = folder / "canvas"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    both = []
    for name, canvas in (("old", CANVAS), ("new", made)):
        (folder / name).mkdir()
        both.append(bench_versions.Build(canvas, folder / name))
    return both


def test_versions_counts_what_has_the_same_code(tmp_path: Path) -> None:
    assert bench_versions.measure("p", PRODUCT, builds(tmp_path, f'exec {CANVAS} "$@"'), 1) is None
    assert "1 programs have the same code; 0 another" in bench_versions.summary([], 1)


def test_versions_compares_assembly_for_an_instruction_set(tmp_path: Path) -> None:
    compare = bench_versions.other_assembly
    (tmp_path / "same").mkdir()
    two = builds(tmp_path / "same", f'exec {CANVAS} "$@"')
    assert compare(two, "avx512", ["gemv"]) == ([], 2)
    changed = 'case $f in *.c) sed -i "s/return 0/return 2/" "$f";; esac'
    script = f'{CANVAS} "$@" && for f; do {changed}; done'
    (tmp_path / "wrong").mkdir()
    wrong, count = compare(builds(tmp_path / "wrong", script), "avx512", ["gemv", "hand"])
    assert count == 1 and wrong == ["gemv 1024 b1 hand"]


def test_versions_times_other_code_by_turns(tmp_path: Path) -> None:
    machine = ROOT / "examples" / "machines" / "sse.txt"
    two = builds(tmp_path, f'exec {CANVAS} "$@" --machine {machine}')
    row = bench_versions.measure("p", PRODUCT, two, 2)
    assert row is not None and "error" not in row, row
    assert row["old_us"] > 0 and row["factor"] == row["old_us"] / row["new_us"]
    assert "p " in bench_versions.line(row)
    assert "0 programs have the same code; 1 another" in bench_versions.summary([row], 0)


def test_versions_does_not_time_what_is_wrong(tmp_path: Path) -> None:
    """The second one adds where the first one multiplies."""
    wrong = f'sed "s/ [*] / + /" "$2" >wrong.program; exec {CANVAS} "$1" wrong.program "$3" "$4"'
    two = builds(tmp_path, f"cd {tmp_path}; {wrong}")
    row = bench_versions.measure("p", PRODUCT, two, 1)
    assert row is not None and "the two differ by" in row["error"]
    assert "1 not compared" in bench_versions.summary([row], 0)


def test_the_zoo_says_what_was_slower_and_what_failed() -> None:
    assert len(set(bench_zoo.NAMES)) == len(bench_zoo.NAMES) >= 40
    row = {"name": "timm:a", "size": 96, "errors": {}, "compiled": 7.4}
    row |= {"canvas ms": 2.0, "canvas spread": 0.125, "ratio": 1.5, "ratio spread": 0.25}
    assert bench_zoo.line(row) == "| timm:a | 96 | 2 +- 0.12 | - | - | 1.50 +- 0.25 | 7 |"
    failed = {"name": "b", "size": 224, "errors": {"model": "Unknown model (b)"}}
    assert bench_zoo.line(failed).endswith("| - | - | - | - | - |\n  model: Unknown model (b)")
    told = bench_zoo.summary([row, failed, row | {"ratio": 0.6}])
    assert told.startswith("2 of 3 models: 0.95 of") and told.endswith("least 0.60, most 1.50")
    assert bench_zoo.summary([failed]) == "nothing was compared"


def test_the_choice_of_schedules_is_timed() -> None:
    machine = compiled_program.machine_text("avx2")
    assert machine
    known = bench_defaults.machines(machine)
    assert len({*known}) == bench_defaults.CALLS
    assert {re.sub(r"^l2 .*", "", text, flags=re.M) for text in known} == {
        re.sub(r"^l2 .*", "", machine, flags=re.M)
    }
    named = bench_defaults.choices("long", 1, [])
    rows = list(bench_defaults.choosing(named, machine))
    assert len(rows) > 10 and rows[-1]["name"].startswith("draw ")
    assert all(10 < row["choosing_us"] < 1e6 for row in rows)
    assert rows[-1]["choosing_us"] > 2 * min(row["choosing_us"] for row in rows)
    told = bench_defaults.choice_summary(
        [{"choosing_us": us} for us in (100.0, 999.0, 1000.0, 3000.0)]
    )
    assert told == (
        "4 default schedules: 1000 us in the median, nine of ten within 1000 us, "
        "the slowest 3000 us; 2 take 1 ms or more"
    )


# ---- every benchmark ---------------------------------------------------------------------------

BENCHES = sorted(path.stem.removeprefix("bench_") for path in (ROOT / "bench").glob("bench_*.py"))
SMALL = {  # arguments of its smallest run; FOLDER is an empty one
    "calls": ["--turns", "1"],
    "coverage": ["no_model"],
    "cluster": ["--jobs", "10", "--trials", "4", "--hosts", "1"],
    "compiler": ["product", "--candidates", "2"],
    "cost": ["gelu", "--candidates", "5"],
    "defaults": ["five points", "--samples", "2"],
    "demo": ["FOLDER/study"],
    "draws": ["--sizes", "--cpu", "-1", "--ranges", "3..8", "--out", "FOLDER"],
    "spaces": [
        *("--data", "synthetic", "--budget", "macs=0.5x", "--pairs", "wide:learned"),
        *("--seeds", "1", "--draws", "1", "--time", "1m", "--teacher-epochs", "1"),
        *("--teacher", "FOLDER/teacher.safetensors", "--out", "FOLDER"),
    ],
    "fit": [
        "--data",
        "synthetic",
        "--budget",
        "macs=0.5x",
        "--draws",
        "1",
        "--epochs",
        "1",
        "--longer",
        "1",
        "--time",
        "2m",
        "--teacher-epochs",
        "1",
        "--teacher",
        "FOLDER/teacher.safetensors",
    ],
    "fit_parts": [
        *("--data", "synthetic", "--width", "4", "--budget", "macs=0.9x", "--draws", "1"),
        *("--drawn", "1", "--shares", "0.5", "--steps", "1", "--epochs", "1", "--seeds", "1"),
        *("--teacher-epochs", "1", "--teacher", "FOLDER/teacher.safetensors"),
    ],
    "folder": [
        *("--names", "100", "--images", "60", "--side", "32", "--seconds", "20"),
        *("--folder", "FOLDER"),
    ],
    "layers": ["512@7", "--seconds", "1", "--rounds", "1", "--figure", "FOLDER/layers.svg"],
    "native": ["gemv", "--rounds", "1", "--compile", "none"],
    "network": ["--sampled", "1", "--rounds", "1"],
    "notebook": ["--shape", "1,16,16,16", "--trials", "0", "--seconds", "1", "--rounds", "1"],
    "report": ["--check"],
    "sampling": ["--scale", "--seeds", "2"],
    "search": ["--table", "--out", "FOLDER"],
    "take_over": [
        "--data",
        "synthetic",
        "--shares",
        "0.5",
        "--draws",
        "1",
        "--steps",
        "0",
        "--seeds",
        "1",
        "--teacher-epochs",
        "1",
        "--teacher",
        "FOLDER/teacher.safetensors",
    ],
    "trainings": ["measure", "FOLDER/x.jsonl", "--draws", "1", "--of", "1", "--epochs", "1"],
    "teacher": [
        "--data",
        "synthetic",
        "--model",
        "resnet8",
        "--width",
        "4",
        "--epochs",
        "1",
        "--out",
        "FOLDER/teacher.safetensors",
    ],
    "tune": ["mean 7x13", "--group", "rows", "--seconds", "1", "--rounds", "1"],
    "versions": [str(CANVAS), str(CANVAS), "--only", "long"],
    "winograd": ["512@7", "--rounds", "1", "--batch", "1"],
    "zoo": ["no_model", "--rounds", "1"],
}


def test_every_benchmark_has_a_smallest_run() -> None:
    assert sorted(SMALL) == BENCHES


@pytest.mark.parametrize("name", BENCHES)
def test_help_and_list(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first line of its file is the sentence that `./dev bench` prints."""
    for variable in ("OMP_NUM_THREADS", "CANVAS_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    bench = importlib.import_module(f"bench_{name}")
    assert bench.__doc__ and re.fullmatch(r".{20,96}\.", bench.__doc__.splitlines()[0])
    monkeypatch.setattr(sys, "argv", [f"bench_{name}.py", "--help"])
    with pytest.raises(SystemExit) as ended:
        bench.main()
    shown = capsys.readouterr().out
    assert ended.value.code == 0 and f"./dev bench {name}" in shown
    assert name == "report" or ("--record" in shown and "--json" in shown)


def demo_study(folder: Path) -> None:
    """A search whose find is far above its controls."""
    make_study(folder, [*CONTROLS, *FINDS])
    shares = {"baseline": 0.9, "identity": 0.5, "1x1": 0.5, "grouped": 0.6, "0": 0.9}
    add_finals(folder, {name: [share] * 3 for name, share in shares.items()})


def test_the_demo_s_figures_are_those_of_its_study(tmp_path: Path) -> None:
    demo_study(tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "bench/bench_demo.py", tmp_path, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(done.stdout)
    assert shown["verdict"] == "wins" and shown["best control"] == "60.0 grouped"
    assert shown["find"] == pytest.approx(90) and shown["difference"] == pytest.approx(30)
    none = subprocess.run(
        [sys.executable, ROOT / "bench/bench_demo.py", tmp_path / "none"],
        capture_output=True,
        text=True,
    )
    assert none.returncode == 2 and "there is no study" in none.stderr


@pytest.mark.skipif(not os.environ.get("CANVAS_TEST_ALL"), reason="./dev test --all runs it")
@pytest.mark.parametrize("name", BENCHES)
def test_the_smallest_run(name: str, tmp_path: Path) -> None:
    words = [word.replace("FOLDER", str(tmp_path)) for word in SMALL[name]]
    script = str(ROOT / "bench" / f"bench_{name}.py")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    if name == "demo":
        demo_study(tmp_path / "study")
    if name != "report":
        words.append("--record")
        environment["CANVAS_BENCH_RESULTS"] = str(tmp_path / "results")
    done = subprocess.run(
        [sys.executable, script, *words], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr

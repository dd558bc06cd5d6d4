"""Whole searches, small ones: the real core, real children, real images."""

import csv
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from faults import soon

from canvas.errors import CanvasError
from canvas.reporting.report import COLUMNS, make_report
from canvas.runner.driver import search
from canvas.study import ENDED, Study

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
TRIALS = 4
MODEL = "small_network:build"
QUESTION = {
    "budget": "macs=0.5x",
    "images": 400,
    "epochs": 3,
    "seed": 1,
    "grace": 1,
    "finalists": 1,
    "final_epochs": 1,
    "final_seeds": 1,
    "compile": "no",
    "memory_format": "contiguous",  # equal in every folder: what the clock chooses may differ
}
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in QUESTION.items()]

SMALL_NETWORK = """
from torch import nn

class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))

def build(in_channels, num_classes):
    return nn.Sequential(
        nn.Conv2d(in_channels, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, 2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Mean(), nn.Linear(16, num_classes))

class Explodes(nn.Module):
    # finite while it trains; in evaluation NaN where `broken` says so of its layers

    def __init__(self, in_channels, num_classes):
        super().__init__()
        self.inner = build(in_channels, num_classes)

    def forward(self, x):
        y = self.inner(x)
        return y if self.training or not self.broken() else y * float("nan")

class Unchanged(Explodes):
    def broken(self):
        return True

class Replaced(Explodes):
    def broken(self):
        return type(self.inner[3]) is not nn.Conv2d
"""


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """A current folder with a network of one's own, where a user would have it."""
    folder, before = tmp_path_factory.mktemp("home"), Path.cwd()
    (folder / "small_network.py").write_text(SMALL_NETWORK)
    os.chdir(folder)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))
    os.chdir(before)


def command(out, *flags):
    return [
        *(sys.executable, "-m", "canvas", "search", "--model", MODEL, "--data", "digits"),
        *(*FLAGS, f"--trials={TRIALS}", "--out", str(out), *flags),
    ]


def run(words):
    return subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True)


def start(out, *flags):
    return subprocess.Popen(
        command(out, *flags),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(folder):
    """What training gave, by candidate: status, curve, accuracies on the test split."""
    with Study.read(folder) as study:
        return {
            row.name: (row.status, study.curve(row.id), row.tests) for row in study.candidates()
        }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A search that nothing disturbs, from the command line: (folder, stdout, stderr)."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = run(command(folder))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout, done.stderr


def test_a_search_leaves_a_table_a_csv_and_a_folder_per_find(undisturbed):
    folder, out, err = undisturbed
    rows = list(csv.DictReader((folder / "pareto.csv").open()))
    assert tuple(rows[0]) == COLUMNS
    kinds = [row["kind"] for row in rows]
    controls = kinds.count("control")
    assert controls in (6, 7)  # with the grouped convolution of the find's MACs
    assert kinds[: 1 + controls] == ["baseline"] + controls * ["control"]
    assert set(kinds[1 + controls :]) == {"find"}
    for row in rows:
        assert 0 <= float(row["val_accuracy"]) <= 1
        assert float(row["latency_ms"]) > 0 and float(row["speedup"]) > 0
        assert float(row["macs_ratio"]) == pytest.approx(
            int(row["macs"]) / int(rows[0]["macs"]), rel=1e-4
        )
    assert "of at most 1.05x of its MACs" in out and "No comparison" not in out
    assert [row["chosen"] for row in rows].count("*") == 1
    assert [row["picked"] for row in rows].count("*") == 1 and "\n* fastest within 1.0" in out
    tested = [row["kind"] for row in rows if row["test_accuracy"]]
    assert tested == ["baseline"] + controls * ["control"] + ["find"]
    done = [
        name
        for name, (status, *_) in results(folder).items()
        if status == "done" and name.isdigit()
    ]
    assert done
    for name in done:
        find = folder / f"find-{int(name):04d}"
        assert {p.name for p in find.iterdir()} == {"kernel.txt", "pack.txt", "kernel.py"}
        assert "nn.Module" in (find / "kernel.py").read_text()
    lines = [line.partition("]")[2].split() for line in err.splitlines() if line[:1] == "["]
    assert {line[0] for line in lines} == set(results(folder))


def test_a_search_ends_with_the_conclusion_the_table_and_two_commands(undisturbed, tmp_path):
    folder, out, _ = undisturbed
    lines = out.splitlines()
    with Study.read(folder) as study:
        report = make_report(study)
    assert lines[0] == report.conclusion and lines[1] == ""
    assert "\n".join(lines[:-2]) == report.text and lines[-2:] == list(report.next_steps)
    assert lines[-1] == f"To see everything as a page: canvas report {folder}"
    named, _, command = lines[-2].partition(": ")
    assert re.fullmatch(r"To train find \d+ to the end", named)
    words = [*shlex.split(command)[1:], "--epochs", "1", "--images", "100"]
    words[words.index("--out") + 1] = str(tmp_path / "trained")
    done = run([sys.executable, "-m", "canvas", *words])
    assert done.returncode == 0 and "The weights are in" in done.stdout, done.stderr


def test_the_budget_binds_the_finds(undisturbed):
    folder, _, _ = undisturbed
    with Study.read(folder) as study:
        finds = study.candidates("kind = 'find'")
        assert len([find for find in finds if find.status != "rejected"]) == TRIALS
        grouped = study.candidates("name = 'grouped'")[0]
        assert all(find.layer_macs <= grouped.layer_macs for find in finds)  # 0.5x exactly
        assert len({find.hash for find in finds}) == len(finds)


def test_trials_lists_all_of_it(undisturbed):
    folder, _, _ = undisturbed
    done = run([sys.executable, "-m", "canvas", "trials", str(folder), "-f", "json"])
    rows = json.loads(done.stdout)
    draws = [row for row in rows if row["kind"] == "draw"]
    assert all(row["reason"] for row in draws)
    rows = [row for row in rows if row["kind"] != "draw"]
    assert len(rows) == len(results(folder)) >= 7 + TRIALS
    assert all(row["status"] in ENDED for row in rows)
    assert {row["origin"] for row in rows} == {"", "draw"}
    assert not [row for row in rows if row["status"] == "failed" and not row["reason"]]


def test_the_same_command_again_trains_nothing(undisturbed):
    folder, _, _ = undisturbed
    before = results(folder)
    with Study.read(folder) as study:
        attempts = [tuple(r) for r in study.database.execute("SELECT id, attempt FROM task")]
    lines = []
    report = search(MODEL, "digits", trials=TRIALS, out=folder, say=lines.append, **QUESTION)
    assert report.rows and results(folder) == before
    with Study.read(folder) as study:
        assert attempts == [
            tuple(r) for r in study.database.execute("SELECT id, attempt FROM task")
        ]
    assert any("4 of 4 trials are there" in line for line in lines)


def errors(folder):
    """At a layer of the unchanged network, by candidate."""
    with Study.read(folder) as study:
        return {row["name"]: row["error"] for row in study.measurements()}


def test_finds_are_tested_at_a_layer_and_a_search_goes_on_without_it(undisturbed, tmp_path):
    found = errors(undisturbed[0])
    finds = [error for name, error in found.items() if name.isdigit()]
    assert len(finds) >= TRIALS and all(0 <= error <= 1 for error in finds)
    assert {error for name, error in found.items() if not name.isdigit()} == {None}
    folder = tmp_path / "study"
    shutil.copytree(undisturbed[0], folder)
    (folder / "layer.safetensors").unlink()
    done = run(command(folder, f"--trials={TRIALS + 1}", "--latency=torch"))
    assert done.returncode == 0 and "finds are trained without a test at a layer" in done.stderr
    new = {name: error for name, error in errors(folder).items() if name not in found}
    assert new and set(new.values()) == {None}
    assert not (folder / "layer.safetensors").exists()


def ended(folder):
    return {n: r for n, r in results(folder).items() if r[0] in ENDED}


def children_of(pid):
    """Process ids of the workers that belong to a driver."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"canvas.workers.worker" in words and str(pid).encode() in words:
                found.append(int(entry.name))
    return found


def wait_for(process, folder, count, seconds=120):
    """Until `count` candidates are ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        with suppress(CanvasError):  # it is only starting
            if len(ended(folder)) >= count:
                return
        time.sleep(0.02)
    raise AssertionError(process.communicate())


def attempts(folder):
    """How often each candidate was trained."""
    query = (
        "SELECT name, attempt FROM task JOIN candidate ON candidate = candidate.id "
        "WHERE task.kind = 'accuracy'"
    )
    with Study.read(folder) as study:
        return dict(map(tuple, study.database.execute(query)))


def gone(pid):
    end = time.monotonic() + 10
    while children_of(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not children_of(pid)


def test_kill_9_and_ctrl_c_lose_nothing_and_the_end_is_the_same(undisturbed, tmp_path):
    """Three runs of one command, also with one worker instead of two: as if undisturbed."""
    process = start(tmp_path)
    wait_for(process, tmp_path, 3)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    kept = ended(tmp_path)
    assert len(kept) < 7 + TRIALS and gone(process.pid)
    before = attempts(tmp_path)

    process = start(tmp_path, "--workers=1")
    wait_for(process, tmp_path, len(kept) + 2)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - begin < soon()
    assert process.returncode == 130
    assert "the same command continues" in err and "Traceback" not in err
    assert gone(process.pid)
    assert not [r for r in results(tmp_path).values() if r[0] == "running"]
    assert {name: results(tmp_path)[name][:2] for name in kept} == {n: kept[n][:2] for n in kept}
    assert {name: attempts(tmp_path)[name] for name in kept} == {n: before[n] for n in kept}
    kept, before = ended(tmp_path), attempts(tmp_path)

    search(MODEL, "digits", trials=TRIALS, out=tmp_path, say=lambda line: None, **QUESTION)
    assert results(tmp_path) == results(undisturbed[0])
    assert errors(tmp_path) == errors(undisturbed[0])
    assert {name: attempts(tmp_path)[name] for name in kept} == {n: before[n] for n in kept}


@pytest.mark.nightly
def test_a_sweep_gives_every_budget_its_turn(tmp_path):
    question = {**QUESTION, "epochs": 1, "budget": "params=0.9x", "budget_sweep": "0.5x,0.2x"}
    question |= {"prune": "none", "pretests": "no", "workers": 1}
    quiet = {"out": tmp_path, "say": lambda line: None}
    stop = lambda study, candidate: study.stop() if candidate.name.isdigit() else None  # noqa: E731
    first = search(MODEL, "digits", trials=2, callbacks=[stop], **quiet, **question)
    assert "a callback stopped the search" in str(first).lower()
    search(MODEL, "digits", n_trials=2, **quiet, **question)
    with Study.read(tmp_path) as study:
        finds = study.candidates("kind = 'find'")
        assert [f.budget for f in finds] == 2 * ["macs=0.5x,params=0.9x", "macs=0.2x,params=0.9x"]
        half, fifth = (study.candidates(f"name = 'grouped-{b}'")[0] for b in ("0.5x", "0.2x"))
        assert fifth.layer_macs < half.layer_macs
        assert all(f.layer_macs <= fifth.layer_macs * 1.6 for f in finds if "0.2x" in f.budget)
        tested = [row.kind for row in study.candidates() if row.tests]
        assert 2 <= tested.count("find") <= 4 and len(tested) >= 1 + 3 + 2 * 3 + 2


def test_users_of_optuna_find_their_words(undisturbed, tmp_path):
    folder, _, _ = undisturbed
    question = {**QUESTION, "say": lambda line: None}
    with pytest.raises(CanvasError, match="load_if_exists=True continues"):
        search(MODEL, "digits", storage=folder, load_if_exists=False, **question)
    url = f"sqlite:///{folder}/study.db"
    report = search(MODEL, "digits", storage=url, n_trials=TRIALS, timeout=60, **question)
    assert report.folder == folder
    with pytest.raises(CanvasError, match="leave one of them out"):
        search(MODEL, "digits", storage=url, out=tmp_path, **question)
    with pytest.raises(CanvasError, match="not of the form sqlite:///"):
        search(MODEL, "digits", storage="postgresql://host/x", **question)


def test_a_time_limit_stops_in_time_with_a_table(tmp_path):
    begin = time.monotonic()
    limit = {"trials": 1000, "time_limit": 10, "workers": 1, "say": lambda line: None}
    report = search(MODEL, "digits", out=tmp_path, **limit, **QUESTION)
    assert time.monotonic() - begin < 15
    assert "time limit" in str(report)
    assert (tmp_path / "pareto.csv").exists()


def test_a_time_limit_in_which_nothing_is_trained_is_told(tmp_path):
    limit = {"trials": 2, "time_limit": 0.5, "workers": 1, "say": lambda line: None}
    report = search(MODEL, "digits", out=tmp_path, **limit, **QUESTION)
    assert "No network was trained before the time limit: give the same command more time" in str(
        report
    )


@pytest.mark.nightly
def test_candidates_whose_outputs_are_not_finite_fail(tmp_path):
    """Of whatever class most images are; the table has no find then."""
    question = {**QUESTION, "trials": 1, "say": lambda line: None, "out": tmp_path}
    report = search("small_network:Replaced", "digits", **question)
    with Study.read(tmp_path) as study:
        rows = study.candidates()
        assert {row.status for row in rows if row.kind == "baseline"} == {"done"}
        changed = [row for row in rows if row.kind != "baseline" and row.pack]
        assert changed and any(row.kind == "find" for row in changed)
        for row in changed:
            assert row.status == "failed" and row.val_accuracy is None
            assert row.reason.startswith("nan: outputs for ")
    assert "no find" in str(report).lower()


@pytest.mark.nightly
def test_an_unchanged_network_whose_outputs_are_not_finite_ends_the_search(tmp_path):
    question = {**QUESTION, "trials": 1, "say": lambda line: None, "out": tmp_path}
    with pytest.raises(CanvasError, match="the unchanged network cannot be trained: nan: outputs"):
        search("small_network:Unchanged", "digits", **question)


def test_another_question_is_rejected(undisturbed):
    with pytest.raises(CanvasError, match=r"--epochs 2 instead of 3.*fresh"):
        search(MODEL, "digits", out=undisturbed[0], **{**QUESTION, "epochs": 2})

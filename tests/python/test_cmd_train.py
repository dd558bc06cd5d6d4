"""canvas train and canvas export as commands: killed, interrupted, asked wrongly, on a study."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas import _core, cli
from canvas.data import load_data
from canvas.data.stored import store
from canvas.nn.controls import DEPTHWISE_SEPARABLE
from canvas.nn.network import Recipe, plan_network
from canvas.study import Study

NETWORK = ["--model", "resnet8", "--width", "2"]
SMALL = [*NETWORK, "--data", "digits", "--images", "300", "--threads", "1"]
TIMEOUT = 120  # seconds until a process that should have spoken is given up


@pytest.fixture(scope="module")
def pack(tmp_path_factory):
    plan = plan_network(Recipe("resnet8", 2, (1, 8, 8), 10, "paper", 1))
    path = tmp_path_factory.mktemp("pack") / "separable.pack"
    path.write_text(_core.solve(DEPTHWISE_SEPARABLE, plan.targets, "macs=none,params=none", ""))
    return str(path)


def start(*words):
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "canvas", "train", *map(str, words)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip


def wait_for(process, beginning):
    """Read progress up to a line that begins so."""
    for line in process.stderr:
        if line.startswith(beginning):
            return
    raise AssertionError(f"{beginning} never came")


def weights(folder):
    return [(Path(folder) / f"{name}.safetensors").read_bytes() for name in ("weights", "best")]


def test_killed_in_the_middle_and_resumed_the_weights_are_the_same(pack, tmp_path, capsys):
    words = [pack, *SMALL, "--epochs", "4", "--batch-size", "32", "--out"]
    assert cli.main(["train", *words, str(tmp_path / "whole")]) == 0
    with start(*words, tmp_path / "killed") as process:
        wait_for(process, "epoch 2/4")
        time.sleep(0.05)  # somewhere in the third epoch
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed/result.json").exists()
    capsys.readouterr()
    assert cli.main(["train", *words, str(tmp_path / "killed"), "--resume"]) == 0
    printed = capsys.readouterr()
    assert "going on after epoch " in printed.err
    assert printed.out.startswith("Test on digits: ")
    assert weights(tmp_path / "killed") == weights(tmp_path / "whole")


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.nightly)]
)
def test_an_interrupt_ends_it_at_once_and_says_how_to_go_on(pack, tmp_path, number):
    with start(pack, *SMALL, "--epochs", "5000", "--out", tmp_path) as process:
        wait_for(process, "epoch    1/5000")
        process.send_signal(number)
        _, errors = process.communicate(timeout=TIMEOUT)
    assert process.returncode == 130
    last = errors.splitlines()[-1]
    assert last.startswith("stopped after epoch ") and "--resume continues" in last
    assert "Traceback" not in errors
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".new")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: WHAT; canvas train --help lists the flags"),
        (
            ["nothing"],
            "'nothing' is neither a pack file nor a candidate of a study nor 'baseline'",
        ),
        (["PACK"], "canvas train needs --model: 'separable' comes from no study"),
        (["PACK", "--model", "resnet8"], "canvas train needs --data: "),
        (["PACK", "--model", "x", "--data", "digits"], "no model is called 'x'"),
        (["PACK", "--model", "resnet8", "--data", "x"], "no data is called 'x'"),
        (["PACK", *SMALL, "--width", "3"], "has no binding for 'layer1.0.conv1 3 3"),
        (["baseline", *SMALL, "--rate", "0"], "--rate takes a number above 0 and at most 100"),
        (["baseline", *SMALL, "--rate", "nan"], "--rate takes a number above 0 and at most 100"),
        (["baseline", *SMALL, "--epochs", "0"], "--epochs takes a whole number from 1"),
        (["baseline", *SMALL, "--threads", "none"], "--threads takes a whole number from 1"),
        (["baseline", *SMALL, "--device", "tpu"], "--device takes auto, cpu or cuda, not 'tpu'"),
        (["baseline", *SMALL, "--out", "/dev/null/x"], "'/dev/null/x' cannot hold a training: "),
        ([__file__, *SMALL], "test_cmd_train.py': "),
    ],
)
def test_bad_input_is_one_message(pack, tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["train", *[pack if word == "PACK" else word for word in words]]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""
    assert len(printed.err.splitlines()) == 1 and printed.err.startswith("canvas: ")


# ---- from a study -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def study(tmp_path_factory, pack):
    """As a search leaves it: a find and a control that have sizes, the images beside them."""
    folder = make_study(tmp_path_factory.mktemp("study") / "run", CONTROLS + FINDS, width=2)
    text = Path(pack).read_text()
    with Study.open(folder) as opened:
        opened.database.execute("UPDATE network SET pack = ? WHERE name IN ('3', '1x1')", [text])
    add_finals(folder, {"1x1": [0.84, 0.86]})
    store(load_data("digits"), folder / "images")
    return folder


def test_a_candidate_brings_its_network_and_images(study, pack, tmp_path, capsys):
    out = tmp_path / "t"
    words = [str(study / "3"), "--epochs", "1", "--threads", "1", "--out", str(out)]
    assert cli.main(["train", *words]) == 0
    assert "find-0003 in resnet8 on digits" in capsys.readouterr().err
    assert cli.main(["train", str(study / "find-0003"), *words[1:], "--resume"]) == 0
    # --width 2 and the rest are the study's: another one is another training
    assert cli.main(["train", *words, "--resume", "--seed", "9"]) == 2
    assert "--seed 9 instead of 1 now" in capsys.readouterr().err
    assert cli.main(["export", str(out), "--out", str(tmp_path / "e")]) == 0
    text = (tmp_path / "e/README.md").read_text()
    assert "- in the search, after 6 epochs: validation accuracy 90.0 %" in text
    assert "- test accuracy: " in text
    assert (tmp_path / "e/pack.txt").read_text() == Path(pack).read_text()


FIGURES = [
    "- in the search, after 6 epochs: validation accuracy 87.0 %",
    "- in its finals: test accuracy 85.0 %, mean of 2 seeds",
    "- there, at batch 1: latency 1.11 ms, speed-up 0.90x",
]


def test_an_export_of_a_candidate_has_the_figures_of_the_study(study, tmp_path, capsys):
    out = tmp_path / "e"
    assert cli.main(["export", str(study / "1x1"), "--out", str(out)]) == 0
    assert "'README.md'" not in capsys.readouterr().err
    text = (out / "README.md").read_text()
    for line in FIGURES:
        assert line in text.splitlines()


def test_the_study_s_own_images_are_taken(study, monkeypatch, capsys, tmp_path):
    """They are not read again: their files may be elsewhere by now, or they had none."""
    monkeypatch.setattr("canvas.data.readers.load_data", lambda *a, **k: pytest.fail("read again"))
    words = ["train", str(study / "baseline"), "--epochs", "1", "--out", str(tmp_path / "t")]
    assert cli.main(words) == 0
    assert f"of {len(load_data('digits').test[1])} images" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("", "is a whole study: name a candidate of it, such as"),
        ("999999", "has no candidate '999999'; canvas trials"),
        ("find-999999", "has no candidate 'find-999999'; canvas trials"),
        ("study.db", "study.db' is not text"),
        ("grouped", "control 'grouped' of '"),
    ],
)
def test_what_a_study_has_not_is_one_message(study, capsys, word, message):
    for subcommand in (["train"], ["export", "--out", "e"]):
        assert cli.main([*subcommand, str(study / word)]) == 2
        printed = capsys.readouterr().err
        assert message in printed and len(printed.splitlines()) == 1

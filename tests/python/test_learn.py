"""What draws=learned learns from: files, packs, texts and studies."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_trained import data, network  # noqa: F401

import canvas
from canvas import KernelPack, _core
from canvas.cli import cmd_fit, main
from canvas.cli.cmd_search import parser
from canvas.fit_options import read_fit_options
from canvas.fitting import fit_run, item_table, menu, screen
from canvas.nn.placeholder import draw_pack
from canvas.options import read_options
from canvas.reporting.commands import command_text
from canvas.stored_options import COMMAND, FIT
from canvas.study import ScreenedKernel, Study
from canvas.study.learn import MOST, kernels_of

TARGET = "64,56,56"

OWN = """canvas 1
kernel own
a = input
b = unfold a over=H,W k=K
c = fc b to=x0
d = sin c
e = fc d to=C
out e
"""


def with_a_sine(draws: str = "learned,known=1,free=0", **given: Any) -> int:
    """How many of 60 draws hold one."""
    found = 0
    for index in range(60):
        try:
            pack = draw_pack(
                "64,56,56", budget="macs=none,params=none", draws=draws, seed=1,
                index=index, **given,
            )  # fmt: skip
        except canvas.NoSolution:
            continue
        found += "= sin " in pack.kernel
    return found


def test_nothing_to_learn_from_is_nothing() -> None:
    assert with_a_sine(learn=[]) == with_a_sine()


def test_kernels_of_ones_own_are_learned_from(tmp_path: Path) -> None:
    file = tmp_path / "kernel.txt"
    file.write_text(OWN)
    before, after = with_a_sine(), with_a_sine(learn=[OWN] * 20)
    assert after > before + 10
    assert with_a_sine(learn=[file] * 20) == after
    steps = "learned,known=0,free=0"  # no beginnings: what follows what
    assert with_a_sine(steps, learn=[OWN] * 50) > with_a_sine(steps) + 10
    pack = KernelPack(_core.solve(OWN, "64,56,56", "macs=none,params=none", ""))
    assert with_a_sine(learn=[pack] * 20) == after


@pytest.mark.parametrize(
    ("learn", "draws", "message"),
    [
        (3, "learned", "learn takes files, studies, packs and texts of kernels, not 3"),
        ("/nowhere", "learned", "learn: '/nowhere' cannot be read: No such file"),
        ("", "learned", "learn takes files, studies, packs and texts of kernels, not ''"),
        (
            OWN.encode(),
            "learned",
            "learn takes files, studies, packs and texts of",
        ),
        ("a\0b", "learned", "learn: 'a\\x00b' is no name of a file"),
        ("kernel 5\n", "learned", "learn: a text: line 1, column 8: expected the kernel's name"),
        (OWN[:-6], "learned", "learn: a text: line 8, column 1: expected a node"),
        (OWN.replace("sin", "sine"), "learned", "line 6, column 5: unknown primitive 'sine'"),
        ("a" * 5000, "learned", "a...' cannot be read: File name too long"),
        ("/dev/zero", "learned", "learn: '/dev/zero' is over the limit of 16 MiB"),
        (OWN, "rules", "learn= has no effect on these draws: give draws=learned"),
        ([OWN] * 1025, "learned", "learn: all together: line 9217, column 1: there are more than"),
    ],
)
def test_what_cannot_be_learned_from(learn: Any, draws: str, message: str) -> None:
    with pytest.raises(canvas.CanvasError, match=re.escape(message)):
        draw_pack("64,56,56", draws=draws, seed=1, learn=learn)


@pytest.mark.parametrize("write", [lambda text: "\ufeff" + text, lambda text: text])
def test_files_of_kernels_and_of_packs(tmp_path: Path, write: Callable[[str], str]) -> None:
    file = tmp_path / "kernels.txt"
    file.write_text(write(OWN), encoding="utf-8")
    assert kernels_of(file) == kernels_of(str(file)) == kernels_of([file]) == [OWN]
    pack = KernelPack(_core.solve(OWN, TARGET, "macs=none,params=none", ""))
    file.write_text(write(pack.text), encoding="utf-8")
    assert kernels_of(file) == kernels_of(pack.text) == kernels_of(pack) == [pack.kernel]
    file.write_text(pack.text.replace("bind t0", "bind"))
    with pytest.raises(canvas.CanvasError, match=f"learn: {re.escape(str(file))}: line 9"):
        kernels_of(file)


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "latin-1.txt"
    file.write_bytes(b"# na\xefve\n" + OWN.encode())
    with pytest.raises(canvas.CanvasError, match=r"learn: '.*latin-1.txt' is not UTF-8 text"):
        kernels_of(file)


@pytest.mark.parametrize("nodes", ["out a", "b = neg a; c = neg b; out c", "b = relu a; out b"])
def test_kernels_of_few_primitives_are_learned_from(nodes: str) -> None:
    kernel = "\n".join(["canvas 1", "kernel few", "a = input", *nodes.split("; "), ""])
    for index in range(40):
        for how in ("learned,known=1", "learned"):
            _core.draw(TARGET, 1, index, f"draws={how}\nlearn=\n{kernel}")


# ---- studies ------------------------------------------------------------------------------------


def numbered(number: int) -> str:
    return OWN.replace("own", f"n{number}")


def names(texts: list[str]) -> list[str]:
    return re.findall("kernel (.*)\n", texts[0])


def study_of_fit(folder: Path, count: int) -> Path:
    options = {COMMAND: FIT, **read_fit_options({"model": "resnet8", "data": "digits"})}
    with Study.open(folder) as study:
        study.begin(options, "digits", "0" * 64, (10, 10), "t0 8 8 8 8 3 1 1\n")
        for number in range(1, count + 1):
            row = ScreenedKernel(number, numbered(number), 1, f"{number:064d}", 1 - number / 1000)
            study.record_screened(row)
    return folder


@pytest.mark.parametrize(("screened", "learned"), [(1, 1), (8, 2), (9, 3), (999, MOST)])
def test_of_a_fit_the_best_quarter(tmp_path: Path, screened: int, learned: int) -> None:
    study = study_of_fit(tmp_path / "fit", screened)
    best = [f"n{number}" for number in range(screened, screened - learned, -1)]
    assert names(kernels_of(study)) == names(kernels_of(str(study))) == best
    assert names(kernels_of([study, OWN])) == [*best, "own"]


def test_of_a_search_the_best_quarter(tmp_path: Path) -> None:
    asked_kernels(tmp_path, 6)
    with Study.read(tmp_path) as study:
        finds = study.select("find", "done")
    assert kernels_of(tmp_path)[0] == "\n".join(row.kernel for row in finds[:-3:-1])


def test_what_is_no_study_and_one_without_kernels(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(canvas.CanvasError, match="learn: there is no study in "):
        kernels_of(tmp_path / "empty")
    with pytest.raises(canvas.CanvasError, match=r"learn: the study in .* has no kernel yet"):
        kernels_of(study_of_fit(tmp_path / "fit", 0))


# ---- search and fit -----------------------------------------------------------------------------

SINES: dict[str, Any] = {"draws": "learned,known=1,free=0", "learn": [OWN] * 200}


def asked_kernels(folder: Path, count: int, **given: Any) -> list[str]:
    """Those of a study by ask and tell, until it has so many finds, each better than the one
    before.
    """
    image = torch.zeros(1, 1, 8, 8)
    quick = {"latency": "none", "width": 4, "strategy": "random", "trials": 8}
    with canvas.create_study("resnet8", image, out=folder, say=print, **quick, **given) as study:
        finds = 0
        while finds < count:
            network = study.ask()
            finds += study.name(network).isdigit()
            study.tell(network, float(finds))
    with Study.read(folder) as read:
        return [row.kernel for row in read.select("find", "done")]


def test_a_search_learns_and_goes_on_with_what_it_learned_from(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    tmp_path /= "link"
    first = asked_kernels(tmp_path, 4, **SINES)
    assert sum("= sin " in kernel for kernel in first) >= 3
    file = tmp_path / "learned.kernels"
    with Study.read(tmp_path) as study:
        words = shlex.split(command_text(study.options(), tmp_path))
    assert words[words.index("--learn") + 1] == str(file)
    with pytest.raises(
        canvas.CanvasError,
        match=r"now --learn default instead of \(.*: give --learn '.*/learned.kernels', choose",
    ):
        asked_kernels(tmp_path, 1, draws=SINES["draws"])
    more = asked_kernels(tmp_path, 4, **SINES)
    assert len(more) == 8 and more[:4] == first
    assert kernels_of(file) == kernels_of(SINES["learn"])


def test_a_fit_learns(network: Any, data: Any, tmp_path: Path, monkeypatch: Any) -> None:  # noqa: F811
    for place, name, value in [
        (item_table, "SHORT", 2), (item_table, "LONG", 2), (screen, "STEPS", 2),
        (fit_run, "REFIT", 2), (menu, "SHARES", (0.5,)), (fit_run, "KNOWN", menu.CONTROLS[:2]),
    ]:  # fmt: skip
        monkeypatch.setattr(place, name, value)
    asked = {
        "budget": "macs=0.9x", "epochs": 0, "longer": 0, "final_seeds": 1, "latency": "none",
        "draws": 6, "distribution": SINES["draws"], "out": tmp_path, "say": print, "workers": 1,
    }  # fmt: skip
    canvas.fit(network, data, learn=SINES["learn"], **asked)
    with Study.read(tmp_path) as study:
        kernels = [row.kernel for row in study.screened()]
    assert len(kernels) == 6 and sum("= sin " in kernel for kernel in kernels) >= 3
    canvas.fit(network, data, learn=tmp_path / "learned.kernels", **asked)  # the same
    with pytest.raises(canvas.CanvasError, match=r"now --learn \(a text of 9 lines, "):
        canvas.fit(network, data, learn=OWN, **asked)
    canvas.fit(network, data, learn=tmp_path, **{**asked, "out": tmp_path / "next", "draws": 1})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learn", "/nowhere", "--draws", "learned"], "learn: '/nowhere' cannot be read: No s"),
        (["--learn", "FILE"], "--learn has no effect on --draws rules: give --draws learned, or "),
        (["--learn", "BAD", "--draws", "learned"], "bad.txt: line 2, column 8: expected the ker"),
    ],
)
def test_mistakes_are_one_message(
    words: list[str], message: str, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "own.txt").write_text(OWN)
    (tmp_path / "bad.txt").write_text("canvas 1\nkernel 5\n")
    places = {"FILE": str(tmp_path / "own.txt"), "BAD": str(tmp_path / "bad.txt")}
    given = [places.get(word, word) for word in words]
    for command in ("search", "fit"):
        there = [word.replace("--draws", FLAG[command]) for word in given]
        asked = ["--model", "resnet8", "--data", "digits", "--out", str(tmp_path / "out")]
        assert main([command, *asked, *there]) == 2
        said = capsys.readouterr().err
        assert message.replace("--draws", FLAG[command]) in said and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


FLAG = {"search": "--draws", "fit": "--distribution"}


def test_a_stored_path_is_not_read(tmp_path: Path) -> None:
    """A study from a stranger names no file to be read."""
    with pytest.raises(canvas.CanvasError, match="--learn takes texts of kernels, of several"):
        read_options({"model": "resnet8", "data": "digits", "learn": ["/etc/hostname"]})


def test_flags_may_be_given_several_times(tmp_path: Path) -> None:
    words = ["--learn", "a", "--learn", "b"]
    assert parser().parse_args(words).learn == cmd_fit.parser().parse_args(words).learn

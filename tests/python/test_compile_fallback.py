"""canvas.compile where the C compiler does not compile a part, or somebody removes the cache."""

from __future__ import annotations

import os
import pathlib
import shutil
import stat

import pytest
import torch
from torch import nn

import canvas
from canvas import _core
from canvas.inference import notices


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(notices, "_shown", set())


@pytest.fixture
def compiler(monkeypatch, tmp_path):
    def use(deed: str) -> None:
        path = tmp_path / "compiler"
        path.write_text(
            f'#!/bin/sh\n[ $1 = --version ] && exec gcc --version\n{deed}\nexec gcc "$@"\n'
        )
        path.chmod(0o700)
        monkeypatch.setenv("CANVAS_CC", str(path))

    return use


class Parts(nn.Module):
    """Two native parts with an operator of PyTorch between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(40, 48), nn.Linear(48, 24)

    def forward(self, x):
        return torch.tanh(self.second(torch.lgamma(torch.relu(self.first(x)) + 3)))


def network():
    torch.manual_seed(0)
    return Parts().eval(), torch.randn(6, 40)


def checked(model, x):
    compiled = canvas.compile(model, x)
    assert torch.allclose(compiled(x), model(x), atol=1e-5)
    return compiled


def test_a_simpler_schedule_where_the_code_does_not_compile(compiler, caplog):
    compiler("grep -q vector_size unit.c && ! grep -q '_load(' unit.c && exit 1")
    checked(*network())
    assert any("gets a simpler schedule: the code of a better one" in m for m in caplog.messages)


@pytest.mark.parametrize(
    "deed, parts",
    [("grep -q 'n:6, o:24\\|tanh' unit.c && ! grep -q '_load(' unit.c && exit 1", 1)],
)
def test_pytorch_computes_what_does_not_compile(compiler, caplog, deed, parts):
    compiler(deed)
    model, x = network()
    compiled = checked(model, x)
    [size] = compiled._sizes.values()
    assert len(size.parts) == parts
    [line] = [m for m in caplog.messages if "stay in PyTorch" in m]
    assert "does not compile" in line and "aten.lgamma" in line
    if parts:
        assert line.endswith("; 1 native part, 1 tensor of 1152 bytes between at each call")
    model.first.weight.data.mul_(2)
    compiled.forget()
    assert torch.allclose(compiled(x), model(x), atol=1e-5)


@pytest.mark.parametrize(
    "deed, parts",
    [
        ("grep -q layer_ unit.c && exit 1", 0),
        ("grep -q layer_ unit.c && kill -9 $$", 0),
        ("case $* in *@objects*) exit 1;; esac", 0),
        ("case $* in *@objects*) echo '__attribute__((constructor)) static void c(void) "
         "{ __builtin_trap(); }' >>unit.c;; esac", 0),
    ],
)  # fmt: skip
def test_pytorch_computes_a_model_of_which_nothing_compiles(compiler, caplog, deed, parts):
    test_pytorch_computes_what_does_not_compile(compiler, caplog, deed, parts)


def test_a_whole_model_and_torch_compile(compiler, caplog):
    compiler("grep -q layer_ unit.c && exit 1")
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).eval()
    x = torch.randn(3, 8)
    checked(model, x)
    fast = torch.compile(model, backend="canvas")
    with torch.no_grad():
        assert torch.allclose(fast(x), model(x), atol=1e-5)
    assert "does not compile" in caplog.text


def test_no_compiler_at_all_is_no_reason_to_stay_in_pytorch(monkeypatch):
    monkeypatch.setenv("CANVAS_CC", "canvas-no-such-compiler")
    with pytest.raises(canvas.CanvasError, match="the C compiler does not work"):
        canvas.compile(*network())


PROGRAM = "canvas 1\nprogram p\nin X f32 [n:40]\nY[n:40] = X[n] * 2\nout Y\n"


def test_what_is_loaded_is_checked():
    code = canvas.compile_program(PROGRAM)
    path = pathlib.Path(code.path)
    assert stat.S_IMODE(path.stat().st_mode) & 0o022 == 0
    path.chmod(0o775)
    with pytest.raises(canvas.CanvasError, match="is not in the cache any more, or was damaged"):
        _core.load_object(str(path))
    again = canvas.compile_program(PROGRAM)
    assert again(torch.ones(40)).tolist() == [2.0] * 40


def test_flipped_bits_are_noticed():
    model, x = network()
    checked(model, x)
    objects = sorted(pathlib.Path(os.environ["CANVAS_CACHE"]).glob("objects/*/*.so"))
    assert len(objects) >= 3
    for path in objects:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.unlink()
        path.write_bytes(data)
    checked(model, x)


def test_the_cache_is_removed_before_what_was_compiled_is_loaded(monkeypatch):
    removals = iter([True, True])

    def load(path):
        if next(removals, False):
            shutil.rmtree(os.environ["CANVAS_CACHE"])
        return original(path)

    original = _core.load_object
    monkeypatch.setattr(_core, "load_object", load)
    checked(*network())
    assert next(removals, None) is None

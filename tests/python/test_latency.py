"""Timing: by turns, the first round thrown away, the median of the rounds' ratios, the faster
engine of the unchanged network to compare with.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import canvas
from canvas.nn.latency import compiled, measure, summarise


def test_the_first_round_does_not_count():
    timed = summarise({"eager": [9.0, 2.0, 2.0, 2.0]}, {"eager": [1e-9, 1.0, 1.0, 1.0]})["eager"]
    assert (timed.ms, timed.spread_ms, timed.speedup, timed.against) == (1000, 0, 2, "eager")


def test_the_ratio_is_taken_within_rounds():
    """All of a round slow down together: ratios of medians would not be 2."""
    slowness = [1, 1, 1, 10, 10]
    theirs = [0.0, 0.5] + [0.002 * s for s in slowness]
    ours = [0.0, 0.25] + [0.001 * s for s in slowness]
    timed = summarise({"eager": theirs}, {"eager": ours})["eager"]
    assert timed.speedup == pytest.approx(2)
    assert timed.spread_ms > 0


@pytest.mark.parametrize(("eager", "fast", "against"), [(4, 2, "compiled"), (2, 4, "eager")])
def test_the_faster_engine_of_the_unchanged_network_is_compared_with(eager, fast, against):
    unchanged = {"eager": [1.0, eager, eager], "compiled": [1.0, fast, fast]}
    timed = summarise(unchanged, {"eager": [1.0, 1.0, 1.0], "compiled": [1.0, 0.5, 0.5]})
    assert timed["eager"].speedup == 2 and timed["compiled"].speedup == 4
    assert {figures.against for figures in timed.values()} == {against}


def test_a_given_engine_is_compared_with_and_speed_ups_have_a_spread():
    unchanged = {"eager": [1.0, 4, 4, 4, 4], "compiled": [1.0, 2, 2, 2, 2]}
    mine = {"eager": [9.0, 1, 2, 4, 4]}
    timed = summarise(unchanged, mine, "eager")["eager"]
    assert timed.against == "eager" and timed.speedup == 1.5  # ratios 4, 2, 1, 1
    assert timed.speedup_spread == 1.5  # quartiles 1 and 2.5
    assert summarise({"eager": [1.0, 4, 4]}, mine, "compiled")["eager"].against == "eager"


def test_the_unchanged_network_is_one_time_itself():
    """Head line and row quote the same samples, so that they cannot disagree."""
    timed = measure({"eager": nn.Identity(), "compiled": nn.Identity()}, None, torch.zeros(1))
    best = min(timed, key=lambda engine: timed[engine].ms)
    assert {figures.against for figures in timed.values()} == {best}
    assert (timed[best].speedup, timed[best].speedup_spread) == (1, 0)


class Named(nn.Module):
    def __init__(self, name, order):
        super().__init__()
        self.name, self.order = name, order
        self.norm = nn.BatchNorm2d(1)

    def forward(self, x):
        assert not torch.is_grad_enabled() and not self.training
        self.order.append(self.name)
        return self.norm(x)


def test_networks_take_turns_and_stay_as_they_are():
    order = []
    a, b, c = (Named(name, order) for name in "abc")

    def timer(run, times):
        run()
        return 0.1

    before = {key: value.clone() for key, value in a.state_dict().items()}
    images = torch.rand(3, 1, 4, 4)
    timed = measure({"eager": a, "compiled": b}, {"eager": c}, images, rounds=4, timer=timer)
    assert timed["eager"].speedup == 1
    assert "".join(order) == "abc" + "abc" + "abc" + "cba" + "abc" + "cba"
    assert all(torch.equal(before[k], v) for k, v in a.state_dict().items())


def test_each_network_is_repeated_until_its_own_sample_is_long_enough():
    asked = {}
    slow, fast = nn.Identity(), nn.Identity()

    def timer(run, times):
        network = run.args[0]
        asked.setdefault(network, []).append(times)
        return 0.001 if network is slow else 0.00025

    measure({"eager": slow}, {"native": fast}, torch.zeros(1), rounds=3, timer=timer)
    assert asked == {slow: [1, 2] + [3] * 3, fast: [1, 2] + [12] * 3}


def test_a_compiler_that_fails_or_lies_is_one_line(monkeypatch):
    def broken(network):
        raise OSError("no compiler\nat all")

    monkeypatch.setattr(torch, "compile", broken)
    with pytest.raises(RuntimeError, match=r"torch\.compile: OSError: no compiler$"):
        compiled(nn.Identity(), torch.ones(1))
    monkeypatch.setattr(torch, "compile", lambda network: lambda x: x + 1)
    with pytest.raises(RuntimeError, match="other results"):
        compiled(nn.Identity(), torch.ones(1))


def test_the_processors_vectors_are_believed_until_they_do_not_compile(monkeypatch):
    from torch._inductor import config

    asked = []

    def first_fails(network):
        asked.append(config.cpp.vec_isa_ok)
        if len(asked) == 1:
            raise OSError("unrecognized option -mavx512f")
        return network

    monkeypatch.setattr(torch, "compile", first_fails)
    monkeypatch.setattr(config.cpp, "vec_isa_ok", None)
    compiled(nn.Identity(), torch.ones(1))
    assert asked == [True, None]
    asked[:] = ["what the user chose"]
    monkeypatch.setattr(config.cpp, "vec_isa_ok", False)
    compiled(nn.Identity(), torch.ones(1))
    assert asked[1:] == [False]


OLD_COMPILER = """#!/bin/sh
for word; do
  case $word in -mavx*) echo "unrecognized option $word" >&2; exit 1 ;; esac
done
exec c++ "$@"
"""
COMPILES = """
import torch
from canvas.nn.latency import compiled
compiled(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.ReLU()), torch.ones(1, 8))
print("compiled")
"""


@pytest.mark.nightly
def test_a_compiler_that_is_older_than_the_processor(tmp_path):
    (tmp_path / "old").write_text(OLD_COMPILER)
    (tmp_path / "old").chmod(0o755)
    changed = {"CXX": str(tmp_path / "old"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    environment = {**os.environ, **changed, "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-c", COMPILES]
    ended = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert ended.stdout == "compiled\n", ended.stderr


DRIVER = """
import json, sys
from canvas.nn.network import Recipe
from canvas.workers.pool import Pool

recipe = Recipe("tiny:build", None, (1, 8, 8), 10, "paper", 1)
job = {"kind": "latency", "recipe": recipe.to_json(), "pack": None, "path": sys.path, "batch": 1,
       "unchanged": ["eager", "compiled"], "engines": ["eager", "compiled"]}
with Pool(1) as pool:
    pool.start(0, job, 200.0)
    while pool.busy():
        for _, message in pool.wait(1.0):
            print(json.dumps(message))
"""


# One kernel: nothing of it has been compiled before.
TINY = """
from torch import nn

def build():
    return nn.Sequential(nn.Flatten(), nn.ReLU())
"""


def test_paths_with_a_blank_are_no_obstacle(tmp_path):
    """torch.compile does not quote: neither torch, nor canvas, nor the temporary folder may be
    met on such a path.
    """
    place = tmp_path / "a checkout"
    (place / "temporary files").mkdir(parents=True)
    (place / "packages").symlink_to(Path(torch.__file__).parent.parent)
    (place / "python").symlink_to(Path(canvas.__file__).parent.parent)
    (place / "tiny.py").write_text(TINY)
    environment = {
        **os.environ,
        "TMPDIR": str(place / "temporary files"),
        "PYTHONPATH": f"{place / 'python'}{os.pathsep}{place / 'packages'}",
        "TORCHINDUCTOR_VEC_ISA_OK": "0",  # no trial compilations of vectors
        "TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS": "0",  # which pays from the third kernel on
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
    }
    del environment["TORCHINDUCTOR_CACHE_DIR"]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER], env=environment, cwd=place, capture_output=True, text=True
    )
    assert '"missing": {}' in done.stdout and '"compiled": {"ms"' in done.stdout, done
    assert not any((place / "temporary files").iterdir())

"""Networks of text as machine code, without PyTorch's graphs: loaded, called, timed, saved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import fake_native
import pytest
import torch
from torch import nn

import canvas
from canvas.inference import lowering
from canvas.inference.native_network import NativeNetwork

TEXT = """canvas 1
network two
program look
in T f32 [r:5, c:4] const
in I i32 [n:3] 0..5
Y[n:3, c:4] = T[I[n], c]
out Y
end
program mix
in X f32 [n:3, c:4]
in W f32 [o:2, c:4] const
Y[n:3, o:2] = X[n, c] * W[o, c] // sum c:4
out Y
end
in words i32 [3] 0..5
weight table f32 [5, 4] from words.weight
weight w f32 [2, 4] from head.weight
x f32 [3, 4] = look(table, words)
y f32 [3, 2] = mix(x, w)
out y, x
"""


class Words(nn.Module):
    """What TEXT says."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 2, bias=False)

    def forward(self, words):
        x = self.words(words)
        return self.head(x), x


@pytest.fixture
def given(monkeypatch):
    """The text stands for the model's graph."""

    def lower(exported, threads, log, winograd):
        tensors = {"table": "words.weight", "w": "head.weight"}
        found = {name: exported.state_dict[source] for name, source in tensors.items()}
        return fake_native.as_they_are(NativeNetwork(TEXT, threads, log), found)

    monkeypatch.setattr(lowering, "lower", lower)
    monkeypatch.setattr(lowering, "unsupported", lambda node: None)


def test_calls_and_indices(given):
    model = Words().eval()
    words = torch.tensor([4, 0, 2])
    compiled = canvas.compile(model, words)
    for _ in range(2):
        for a, b in zip(compiled(words), model(words)):
            torch.testing.assert_close(a, b.detach())
    with torch.no_grad():
        model.words.weight[4] += 1
    torch.testing.assert_close(compiled(words)[1], model.words(words).detach())
    with pytest.raises(
        canvas.CanvasError, match="'words' holds indices from -1 to 5, outside of 0 to 4"
    ):
        compiled(torch.tensor([5, -1, 2]))
    compiled(torch.tensor([1, 1, 1]))
    report = compiled.report(5)
    assert [group.results for group in report.groups] == ["x", "y"]
    assert report.seconds > 0 and all(group.seconds > 0 for group in report.groups)


def test_the_exported_c_builds_and_runs(given, tmp_path):
    compiled = canvas.compile(Words().eval(), torch.tensor([4, 0, 2]))
    out = tmp_path / "deep" / "words"
    compiled.save(out)
    assert sorted(path.name for path in out.iterdir()) == [
        "README.md", "example.bin", "main.c", "network.txt", "two.c", "two.h", "weights.bin"
    ]  # fmt: skip
    readme = (out / "README.md").read_text()
    command = next(line.split() for line in readme.splitlines() if line.startswith("    cc "))
    subprocess.run([*command, "-Wall", "-Werror"], cwd=out, check=True, timeout=60)
    found = subprocess.run(
        ["./two"], cwd=out, check=True, timeout=60, capture_output=True, text=True
    )
    lines = found.stdout.splitlines()
    assert [line.partition(",")[0] for line in lines] == [
        "output 0: 24 bytes",
        "output 1: 48 bytes",
    ]
    for line in lines:
        words = line.replace(",", "").split()
        assert float(words[6]) <= 1e-5 * float(words[9]) > 0
    assert canvas._core.network_optimize((out / "network.txt").read_text(), "dead")
    with pytest.raises(
        canvas.CanvasError, match="already exists: give a folder that does not exist"
    ):
        compiled.save(out)
    for name in ("two words", "../two", "", "2"):
        with pytest.raises(
            canvas.CanvasError, match="name must be the name of a C function: at most"
        ):
            compiled.save(tmp_path / "more", name=name)
    compiled.save(tmp_path / "more", name="int")
    command = [word.replace("two", "int_") for word in command]
    subprocess.run(command, cwd=tmp_path / "more", check=True, timeout=60)
    (tmp_path / "file").write_text("")
    with pytest.raises(canvas.CanvasError, match=r"cannot write '.*': Not a directory"):
        compiled.save(tmp_path / "file" / "words")


def test_a_compiler_that_is_missing_or_dies(given, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for compiler in ("/nowhere/cc", "false"):
        monkeypatch.setenv("CANVAS_CC", compiler)
        with pytest.raises(canvas.CanvasError) as raised:
            canvas.compile(Words().eval(), torch.tensor([4, 0, 2]))
        assert "compiler" in str(raised.value) and "\n" not in str(raised.value)


CLOSED = """
import torch, canvas
model, x = torch.nn.Linear(4, 4).eval(), torch.randn(2, 4)
assert torch.allclose(canvas.compile(model, x)(x), model(x), atol=1e-5)
"""


@pytest.mark.parametrize("closed", ["0<&- 1>&- 2>&-", "2>/dev/full"])
def test_standard_streams_that_take_nothing(monkeypatch, tmp_path, closed):
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path))
    command = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, CLOSED]
    assert subprocess.run(command, timeout=120).returncode == 0


LIMITED = """
import resource, tempfile, torch, canvas
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
try:
    canvas.compile(torch.nn.Linear(4, 4).eval(), torch.randn(2, 4))
except canvas.CanvasError as error:
    print(error)
"""


def test_files_that_may_not_be_written(monkeypatch, tmp_path):
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path))
    run = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True)
    words = "PyTorch cannot write its temporary files: make room, raise the limit of file sizes ("
    assert run.stdout.startswith(words) and run.stdout.count("\n") == 1, run.stderr


def test_a_log_that_is_none(given, tmp_path):
    (tmp_path / "log").write_text("nonsense\n")
    with pytest.raises(canvas.CanvasError):
        canvas.compile(Words().eval(), torch.tensor([4, 0, 2]), log=tmp_path / "log")


LONG = """canvas 1
network long
program conv
in X f32 [n:1, c:32, h:24, w:24]
in W f32 [o:32, c:32, kh:3, kw:3] const
Y[n:1, o:32, h:22, w:22] = X[n, c, h+kh, w+kw] * W[o, c, kh, kw] // sum c:32, kh:3, kw:3
out Y
end
in x f32 [1, 32, 24, 24]
weight w f32 [32, 32, 3, 3] from weight
y f32 [1, 32, 22, 22] = conv(x, w)
out y
"""


@pytest.mark.parametrize(
    "damage",
    [
        lambda path, size: os.truncate(path, size // 2),
        *(
            pytest.param(damage, marks=pytest.mark.nightly)
            for damage in (
                lambda path, size: os.truncate(path, 100),
                lambda path, size: path.write_bytes(b"?" * size),
                lambda path, size: path.write_bytes(path.read_bytes()[:64] + bytes(size - 64)),
            )
        ),
    ],
)
def test_a_damaged_library_is_compiled_anew(monkeypatch, tmp_path, damage):
    """In a process of its own: one that is loaded is not to be changed."""
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path))
    script = "from canvas.inference.native_network import NativeNetwork; import sys\n"
    script += "print(NativeNetwork(sys.stdin.read()).path)"
    command = [sys.executable, "-c", script]
    run = lambda: subprocess.run(command, input=TEXT, capture_output=True, text=True)  # noqa: E731
    path = Path(run().stdout.strip())
    whole = path.read_bytes()
    damage(path, len(whole))
    again = run()
    assert (again.returncode, again.stderr) == (0, "")
    assert path.read_bytes()[:64] == whole[:64] and path.stat().st_size == len(whole)


def test_two_threads_give_the_same_in_a_child_too(monkeypatch):
    monkeypatch.setattr(lowering, "unsupported", lambda node: None)

    def lower(exported, *options):
        network = NativeNetwork(LONG, *options)
        return fake_native.as_they_are(network, {"w": exported.state_dict["weight"]})

    monkeypatch.setattr(lowering, "lower", lower)
    model, x = nn.Conv2d(32, 32, 3, bias=False).eval(), torch.randn(1, 32, 24, 24)
    compiled = [canvas.compile(model, x, threads=n) for n in (1, 2)]
    results = [network(x) for network in compiled]
    assert torch.equal(*results)
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if torch.equal(compiled[1](x), results[0]) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("backend", [False, True])
def test_a_new_size_in_a_child(backend, caplog):
    """PyTorch's threads have run in the parent: a parallel loop in the child waits for ever."""
    torch.compiler.reset()
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.Flatten(), nn.LayerNorm(16 * 62 * 62), Sorts())
    x, more = torch.randn(1, 3, 64, 64), torch.randn(2, 3, 64, 64)
    turned = more.transpose(2, 3)  # is copied
    model = model.eval()
    compiled = torch.compile(model, backend="canvas", dynamic=False) if backend else None
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    with torch.no_grad():
        compiled = compiled or canvas.compile(model, x)
        compiled(x)
        wanted = [model(more), model(turned)]
        child = os.fork()
        if not child:
            signal.alarm(120)
            caplog.clear()
            got = [compiled(more), compiled(turned), compiled(more)]
            kept = torch.get_num_threads() == 2
            torch.set_num_threads(1)  # what compares waits, too
            fit = all(
                torch.allclose(y, z, atol=1e-4) and y.stride() == z.stride()
                for y, z in zip(got, [*wanted, wanted[0]])
            )
            told = "in a child of a fork the first call of a size is not compared" in caplog.text
            os._exit(0 if fit and told and kept else 1)
    status = os.waitpid(child, 0)[1]
    torch.set_num_threads(threads)
    assert status == 0


class Sorts(nn.Module):
    """Stays in PyTorch."""

    def forward(self, x):
        return x.sort(1)[0]


def test_tiles_of_four_where_they_are_permitted():
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval()
    x = torch.randn(1, 64, 28, 28)
    fewest = canvas.compile(model, x, winograd=4)
    assert "winograd 4" in fewest.text
    torch.testing.assert_close(fewest(x), model(x).detach(), atol=1e-4, rtol=0)
    backend = torch.compile(model, backend="canvas", options={"winograd": 4})
    with torch.no_grad():
        assert torch.equal(backend(x), fewest(x))


@pytest.mark.parametrize("threads", [1, 2])
def test_fewer_products_where_they_are_permitted(threads):
    model = nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU()).eval()
    x = torch.randn(1, 64, 28, 28)
    direct = canvas.compile(model, x, threads=threads)
    fewer = canvas.compile(model, x, threads=threads, winograd=True)
    assert "winograd 2" in fewer.text and "winograd" not in direct.text
    for _ in range(2):
        wanted = model(x).detach()
        assert not torch.equal(fewer(x), direct(x)), "other products round otherwise"
        torch.testing.assert_close(fewer(x), wanted, atol=1e-5, rtol=0)
        with torch.no_grad():  # transformed again
            model[0].weight *= 1.5
    child = os.fork()
    if not child:
        signal.alarm(60)
        os._exit(0 if torch.equal(fewer(x), fewer(x)) and "winograd 2" in fewer.text else 1)
    assert os.waitpid(child, 0)[1] == 0

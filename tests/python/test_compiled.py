"""Programs as machine code: right on NumPy arrays and torch tensors, and careful with what it is
given.
"""

import copy
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import canvas
from canvas import _core

MACHINES = Path(__file__).resolve().parents[2] / "examples/machines"

ROOT = Path(__file__).resolve().parents[2]

SMOOTH = """canvas 1
program smooth
in X f32 [h:12, w:10]
in W f32 [k:3]
P[h:12, w:12] = if 1 <= w && w < 11 then X[h, w-1] else 0
Y[h:12, w:10] = P[h, w+k] * W[k] // sum k:3
out Y
"""
SCHEDULE = """canvas 1
schedule by_rows
h =>
    w =>
        @P = h, w
    wo, k, wi:2:vec =>
        @Y = h, {wo, wi}/w // k
"""
ROWS = """canvas 1
program rows
in val f64 [e:9]
in ind i32 [e:9] 0..5
in ptr i32 [r:4] 0..10 rising
in X f64 [c:5]
Y f64 [r:3] = val[e] * X[ind[e]] // sum e:ptr[r]..ptr[r+1]
S f64 [r:3] = Y[r] * 2
out Y, S
"""
HALF = """canvas 1
program half
in X bf16 [i:6]
Y bf16 [i:6] = X[i] * 3
out Y
"""
KERNEL = (ROOT / "examples/kernels/grouped.kernel").read_text()
AT = "C=8,H=5,W=6,G=2"


def arguments(seed=0):
    random = np.random.default_rng(seed)
    return random.normal(size=(12, 10)).astype("f4"), random.normal(size=3).astype("f4")


def evaluated(program, arrays):
    """The first output by the interpreter."""
    answer = _core.evaluate(program, [np.asarray(a, "f8").tobytes() for a in arrays])
    return np.frombuffer(answer)


@pytest.mark.parametrize("schedule", [None, SCHEDULE])
def test_on_numpy(schedule):
    smooth = canvas.compile_program(SMOOTH, schedule)
    assert repr(smooth) == "Compiled(smooth: X f32 [12, 10], W f32 [3] -> Y f32 [12, 10])"
    x, w = arguments()
    y = smooth(x, w)
    assert y.shape == (12, 10) and y.dtype == np.float32
    np.testing.assert_allclose(y.ravel(), evaluated(SMOOTH, (x, w)), atol=1e-5)
    for twin in (copy.deepcopy(smooth), pickle.loads(pickle.dumps(smooth))):
        assert (twin(x, w) == y).all() and twin.schedule == schedule


@pytest.mark.parametrize("name", ["avx2", "avx512"])
def test_bound_for_another_machine(name):
    machine = (MACHINES / f"{name}.txt").read_text()
    smooth = canvas.compile_program(SMOOTH, SCHEDULE, machine=machine)
    x, w = arguments()
    np.testing.assert_allclose(smooth(x, w).ravel(), evaluated(SMOOTH, (x, w)), atol=1e-5)
    assert pickle.loads(pickle.dumps(smooth)).machine == machine
    pack = canvas.KernelPack(KERNEL)
    assert pack.compile(AT, machine=machine).machine == machine


def test_a_machine_that_is_none_is_one_message():
    with pytest.raises(canvas.CanvasError, match="vector_bytes"):
        canvas.compile_program(SMOOTH, machine="canvas 1\nmachine m\n")


def test_on_torch():
    torch = pytest.importorskip("torch")
    smooth = canvas.compile_program(SMOOTH)
    x, w = map(torch.from_numpy, arguments())
    y = smooth(x, w)
    assert y.dtype == torch.float32 and y.shape == (12, 10) and not y.requires_grad
    np.testing.assert_array_equal(y.numpy(), smooth(*arguments()))
    learned = w.clone().requires_grad_()
    with torch.no_grad():
        assert torch.equal(smooth(x, learned), y)
    with pytest.raises(canvas.CanvasError, match="'W' requires a gradient"):
        smooth(x, learned)
    with pytest.raises(canvas.CanvasError, match="'W' is a numpy\\.ndarray, not a torch tensor"):
        smooth(x, arguments()[1])
    with pytest.raises(canvas.CanvasError, match="'X' is not contiguous, give it"):
        smooth(torch.zeros(10, 12).T, w)
    with pytest.raises(canvas.CanvasError, match="'X' is not a dense tensor on the CPU"):
        smooth(x.to("meta"), w)
    with pytest.raises(canvas.CanvasError, match="'X' is not a dense tensor on the CPU"):
        smooth(x.to_sparse(), w)


def test_a_kernel_is_its_module():
    torch = pytest.importorskip("torch")
    pack = canvas.KernelPack(_core.bind(KERNEL, AT))
    module = pack.module(8, 5, 6).eval()
    code = pack.compile(batch=3)
    bare = canvas.KernelPack(KERNEL).compile(AT, batch=3)
    x = torch.randn(3, 8, 5, 6, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        weights = [w.reshape(t.shape) for w, t in zip(module.parameters(), code.inputs[1:])]
        y = code(x, *weights)
        assert torch.allclose(y, module(x), atol=1e-5)
        assert torch.equal(bare(x, *weights), y)


def test_several_outputs_and_indices():
    rows = canvas.compile_program(ROWS)
    val, x = np.arange(9.0), np.arange(5.0) + 1
    ind = np.array([0, 4, 2, 1, 3, 0, 4, 4, 2], "i4")
    ptr = np.array([0, 2, 2, 9], "i4")
    y, twice = rows(val, ind, ptr, x)
    np.testing.assert_allclose(y, [5, 0, sum(val[e] * x[ind[e]] for e in range(2, 9))])
    np.testing.assert_allclose(twice, 2 * y)
    bad = np.where(ind == 3, 5, ind).astype("i4")
    for wrong, message in [
        ((val, bad, ptr, x), "'ind' holds indices from 0 to 5, outside of 0 to 4"),
        ((val, bad - 6, ptr, x), "'ind' holds indices from -6 to -1, outside of 0 to 4"),
        ((val, ind, ptr[::-1].copy(), x), "'ptr' has to rise along its last axis, from 0 to 9"),
        ((val, ind, np.array([0, 3, 2, 9], "i4"), x), "'ptr' has to rise"),
        ((val, ind, np.array([1, 2, 2, 9], "i4"), x), "'ptr' has to rise"),
        ((val, ind, np.array([0, 2, 2, 8], "i4"), x), "'ptr' has to rise"),
        ((val, ind.astype("i8"), ptr, x), "'ind' is of int64, not int32"),
    ]:
        with pytest.raises(canvas.CanvasError, match=message):
            rows(*wrong)


def test_bf16():
    torch = pytest.importorskip("torch")
    half = canvas.compile_program(HALF)
    x = torch.tensor([1.0, -0.1, 3e38, 0, 1e-30, 7], dtype=torch.bfloat16)
    y = half(x)
    assert y.dtype == torch.bfloat16
    assert torch.equal(y, (x.float() * 3).bfloat16())
    bits = half(x.view(torch.uint16).numpy())
    assert bits.dtype == np.uint16 and (bits == y.view(torch.uint16).numpy()).all()


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda x, w: (), r"expected 2 inputs \(X, W\), not 0"),
        (lambda x, w: (x, w, w), r"expected 2 inputs \(X, W\), not 3"),
        (lambda x, w: (x.tolist(), w), "'X' is a list, not a NumPy array or torch tensor"),
        (lambda x, w: (x, None), "'W' is a NoneType, not a NumPy array or torch tensor"),
        (lambda x, w: (x.astype("f8"), w), "'X' is of float64, not float32"),
        (lambda x, w: (x.astype(">f4"), w), "'X' has its bytes in the other order"),
        (lambda x, w: (x, w[:2]), r"'W' has shape \[2\], not \[3\]"),
        (lambda x, w: (x[None], w), r"'X' has shape \[1, 12, 10\], not \[12, 10\]"),
        (lambda x, w: (np.asfortranarray(x), w), "'X' is not contiguous in C order"),
        (lambda x, w: (x, np.zeros(6, "f4")[::2]), "'W' is not contiguous in C order"),
        (
            lambda x, w: (x, np.frombuffer(bytes(13), "u1")[1:].view("f4")),
            "'W' is not contiguous in C order",
        ),
    ],
)
def test_what_does_not_fit_is_told(wrong, message):
    smooth = canvas.compile_program(SMOOTH)
    with pytest.raises(canvas.CanvasError, match=message) as error:
        smooth(*wrong(*arguments()))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "options, message",
    [
        ({}, "has no bind lines, give sizes in 'at'"),
        ({"at": "C=8"}, "H is missing"),
        ({"at": AT, "target": "t9"}, "is bound to no target 't9'"),
        ({"at": AT, "batch": 0}, "batch is a whole number from 1 to 65536"),
        ({"at": AT, "schedule": "q =>\n    @Y = q\n"}, "line 2, column 10: stage 'Y' has no axis"),
        ({"at": AT, "schedule": "=>"}, "line 1, column 1"),
    ],
)
def test_what_cannot_be_compiled_is_told(options, message):
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.KernelPack(KERNEL).compile(**options)


def test_targets_of_a_pack():
    text = KERNEL + "bind a C=8 H=5 W=6 G=2\nbind b C=4 H=3 W=3 G=2\n"
    pack = canvas.KernelPack(text)
    assert pack.compile(target="b").inputs[0].shape == (1, 4, 3, 3)
    with pytest.raises(canvas.CanvasError, match="has 2 targets, name one of them"):
        pack.compile()
    with pytest.raises(canvas.CanvasError, match="has bind lines, leave 'at' away"):
        pack.compile(AT)


def test_without_a_compiler(monkeypatch):
    monkeypatch.setenv("CANVAS_CC", "canvas-no-such-compiler")
    with pytest.raises(canvas.CanvasError, match="the C compiler does not work: 'canvas-no-such-"):
        canvas.compile_program(SMOOTH)


def test_threads_share_the_code():
    """The lock of the interpreter is free, and calls do not disturb each other."""
    smooth = canvas.compile_program(SMOOTH)
    cases = [arguments(seed) for seed in range(4)]
    right = [smooth(*case) for case in cases]
    wrong = []

    def call(case, expected):
        for _ in range(200):
            if not (smooth(*case) == expected).all():
                wrong.append(case)

    threads = [threading.Thread(target=call, args=pair) for pair in zip(cases, right)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_torch_is_not_imported():
    code = (
        "import sys, numpy, canvas\n"
        f"half = canvas.compile_program({HALF!r})\n"
        "half(numpy.zeros(6, 'u2'))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)


def test_a_machine_is_a_text():
    sse = (ROOT / "examples/machines/sse.txt").read_text()
    paths = {_core.compile(SMOOTH, SCHEDULE, machine)[0] for machine in (None, sse)}
    assert all(Path(path).exists() for path in paths)
    with pytest.raises(canvas.CanvasError, match="line 3, column 1: machine 'm' has no vector_by"):
        _core.compile(SMOOTH, machine="canvas 1\nmachine m\n")


# ---- constant inputs ----------------------------------------------------------------------------

PACKS = """canvas 1
program packs
in X f32 [i:6, k:4]
in W f32 [k:4, j:64] const
in b f32 [j:64] const
WP[jo:2, k:4, ji:32] = W[k, jo*32+ji]
Y[i:6, j:64] = X[i, k] * WP[j/32, k, j%32] // sum k:4
Z[i:6, j:64] = Y[i, j] + b[j]
out Z
"""


def test_constant_inputs_are_packed_once_for_each_state_of_them():
    torch = pytest.importorskip("torch")
    code = canvas.compile_program(PACKS)
    x, w, b = torch.randn(6, 4), torch.randn(4, 64), torch.randn(64)

    def right(weight):
        return torch.allclose(code(x, weight, b), x @ weight + b, atol=1e-5)

    assert right(w)
    kept = code._packed._made
    assert right(w) and right(w.view(4, 64)) and code._packed._made is kept
    b.zero_()  # not packed
    assert right(w) and code._packed._made is kept
    w.mul_(2)  # in place
    assert right(w) and code._packed._made is not kept
    assert right(w * 3)  # another tensor
    for _ in range(20):  # others that come to lie where one was
        assert right(torch.randn(4, 64))
    assert right(w)
    w.data.add_(1)  # torch does not count this
    code.forget()
    assert right(w)
    parameter = torch.nn.Parameter(w)
    with torch.no_grad():
        assert right(parameter)
        torch.optim.SGD([parameter], lr=1)
        parameter.grad = torch.ones_like(w)
        torch.optim.SGD([parameter], lr=1).step()
        assert right(parameter)
        torch.optim.Adam([parameter], lr=1, fused=True).step()  # nor this
        assert right(parameter)
    with torch.inference_mode():  # tensors without a version
        inner = torch.randn(4, 64)
        assert right(inner)
        inner[2, 3] = -7
        assert right(inner)


def test_a_parameter_that_comes_back_where_it_was_is_packed_again():
    torch = pytest.importorskip("torch")
    code = canvas.compile_program(PACKS)
    layer, x, b = torch.nn.Linear(64, 4, bias=False), torch.randn(6, 4), torch.zeros(64)
    with torch.no_grad():
        for _ in range(20):  # `to` gives the parameter other memory, and its version stays
            expected = x @ layer.weight
            assert torch.allclose(code(x, layer.weight, b), expected, atol=1e-5)
            layer.double()
            layer.weight.data[2, 5] += 1
            layer.float()


def test_constant_arrays_are_compared_byte_by_byte():
    code = canvas.compile_program(PACKS)
    x, w, b = (
        np.random.default_rng(1).standard_normal(s).astype("f4") for s in ((6, 4), (4, 64), 64)
    )
    for change in (lambda: None, lambda: w.__setitem__((3, 63), 5), lambda: w.fill(0)):
        change()
        assert np.allclose(code(x, w, b), x @ w + b, atol=1e-5)
    w[:] = -0.0
    packed = code._packed._made
    code(x, w, b)
    assert code._packed._made is not packed  # 0 and -0 are two
    w.setflags(write=False)
    assert np.allclose(code(x, w, b), b, atol=1e-5)
    assert np.allclose(pickle.loads(pickle.dumps(code))(x, w, b), b, atol=1e-5)


def test_threads_pack_for_themselves():
    code = canvas.compile_program(PACKS)
    random = np.random.default_rng(2)
    wrong = []

    def work(seed):
        x, w, b = (random.standard_normal(s).astype("f4") for s in ((6, 4), (4, 64), 64))
        for _ in range(50):
            if not np.allclose(code(x, w, b), x @ w + b, atol=1e-4):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong

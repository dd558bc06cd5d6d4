"""canvas._core: every function once, bad input as one message, threads, and no leaks."""

import array
import ast
import gc
import inspect
import json
import math
import os
import pathlib
import pickle
import random
import re
import resource
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import canvas
from canvas import _core, _testing

CONV = """canvas 1
kernel conv
a = input                      : C H W
b = unfold a over=H,W k=K      : C KH KW H W
c = fc b to=x0                 : x0 H W
d = fc c to=C                  : C H W
out d
"""
GROUPED = """canvas 1
kernel grouped
a = input
b = group a by=G
c = unfold b over=H,W k=K
d = fc c to=C
out d
"""
IDENTITY = "canvas 1\nkernel identity\na = input\nout a\n"
TARGETS = "64,16,16;128,8,8"
AT = "C=4,H=5,W=3,x0=2"


def test_version_is_the_package_s() -> None:
    assert _core.version().count(".") == 2


def described(file: str) -> dict[str, tuple[str, str]]:
    """{name: (parameters, first sentence)} of the functions of a file."""
    nodes = ast.parse((pathlib.Path(canvas.__file__).parent / file).read_text()).body
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    return {
        node.name: (_parameters(node), (ast.get_docstring(node) or "").partition("\n")[0])
        for node in functions
    }


def _parameters(node: ast.FunctionDef) -> str:
    for argument in [*node.args.posonlyargs, *node.args.args]:
        argument.annotation = None
    return f"({ast.unparse(node.args)})"


@pytest.mark.parametrize(
    ("module", "file"), [(_core, "_core.pyi"), (_core._testing, "_testing.py")]
)
def test_the_table_of_functions_is_described(module: types.ModuleType, file: str) -> None:
    """Rows of methods.h have the names, parameters and first sentences of what users read."""
    rows = {
        name: (str(inspect.signature(function)), function.__doc__)
        for name, function in vars(module).items()
        if isinstance(function, types.BuiltinFunctionType)
    }
    found = described(file)
    if file == "_testing.py":  # Python functions: whether an argument has a name is not theirs
        rows = {name: (words.replace(", /", ""), doc) for name, (words, doc) in rows.items()}
    assert found == rows and len(rows) > 5


def test_primitives_are_rows() -> None:
    rows = json.loads(_core.primitives())
    assert {"input", "fc", "fold mean", "group each"} <= {row["name"] for row in rows}
    keys = {"name", "family", "inputs", "attributes", "facts", "meaning"}
    assert all(set(row) == keys for row in rows)


def test_the_docs_show_the_table_as_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    assert _core.main(["canvas", "primitives", "--markdown"]) == 0
    docs = pathlib.Path(__file__).parents[2] / "docs/kernel.md"
    assert capfd.readouterr().out in docs.read_text()


def test_kernels_print_canonically() -> None:
    printed = _core.print_kernels(GROUPED + CONV)
    assert printed == _core.print_kernels(printed)
    assert printed.count("canvas 1\n") == 2
    assert _core.print_kernels(CONV) == CONV


def test_hash_ignores_names() -> None:
    renamed = CONV.replace("conv", "other").replace("c =", "z =").replace("fc c", "fc z")
    assert _core.hash(CONV) == _core.hash(renamed.replace("x0", "x7"))
    assert _core.hash(CONV) != _core.hash(GROUPED)
    assert len(_core.hash(CONV)) == 32
    assert _core.hash(_core.bind(CONV, AT)) == _core.hash(CONV)


def test_reach_is_a_message_or_nothing() -> None:
    assert _testing.reach(CONV) == ""
    assert _testing.reach(IDENTITY) == "it sees no neighbours along H"


def test_draw_is_a_pure_function() -> None:
    drawn = [_core.draw(TARGETS, 5, i, "") for i in range(20)]
    assert drawn == [_core.draw(targets=TARGETS, seed=5, index=i, options="") for i in range(20)]
    kernels = [
        kernel for kernel, g in filter(None, drawn) if _testing.reach(kernel) == "" and g > 1
    ]
    assert len(kernels) > 10
    one = _core.draw(TARGETS, 5, 0, "primitives=3..4 require=none groups=8")
    assert one is None or one[1] == 8


def test_mutate_is_a_pure_function_of_parents() -> None:
    parents = [(CONV, 4), (GROUPED, 8)]
    made = [_core.mutate(TARGETS, 5, i, "", parents) for i in range(20)]
    again = [
        _core.mutate(targets=TARGETS, seed=5, index=i, options="", parents=parents)
        for i in range(20)
    ]
    assert made == again
    kernels = [kernel for kernel, _ in filter(None, made)]
    assert len({_core.hash(kernel) for kernel in kernels}) > 4
    assert all(_testing.reach(kernel) == "" for kernel in kernels)
    assert _core.mutate(TARGETS, 5, 0, "primitives=1..1", [(IDENTITY, 4)]) is None


def test_simplify_takes_away_what_says_nothing() -> None:
    simple = _testing.simplify("canvas 1\nkernel k\na = input\nb = relu a\nc = relu b\nout c\n")
    assert simple == _testing.simplify(simple)
    assert "relu b" not in simple


def test_a_tenth_of_draws_is_free_of_rules() -> None:
    free = [_testing.draw_is_free(5, i, "") for i in range(500)]
    assert 25 < sum(free) < 75
    assert free == [_testing.draw_is_free(seed=5, index=i, options="free=0.1") for i in range(500)]
    assert not any(_testing.draw_is_free(5, i, "draws=paper") for i in range(50))


def test_broken_rules_are_named() -> None:
    assert _testing.broken_rules(PACK, "") == "nonlinear"
    product = "canvas 1\nkernel k\na = input\nb = sqr a\nout b\n"
    assert _testing.broken_rules(product, "") == "unbounded_product on_input fixed_size"
    assert (
        _testing.broken_rules(pack=product, options="on_input=allow,free_size=0")
        == "unbounded_product"
    )
    assert _testing.broken_rules(product, "draws=paper") == ""


def test_draw_takes_the_largest_seed() -> None:
    _core.draw(TARGETS, 2**63 - 1, 2**63 - 1, "")


def test_solve_keeps_the_budget() -> None:
    pack = _core.solve(CONV, TARGETS, "macs=0.5x", "")
    cost, base = json.loads(_core.cost(pack)), json.loads(_testing.baseline(TARGETS))
    assert 0 < cost["macs"] <= base["macs"] / 2
    assert cost["flops"] == 2 * cost["macs"]
    assert cost["macs"] == sum(row["macs"] for row in cost["targets"])
    assert [row["name"] for row in cost["targets"]] == [row["name"] for row in base["targets"]]
    assert _core.print_pack(pack) == pack


def test_no_solution_is_its_own_error() -> None:
    with pytest.raises(_core.NoSolution, match=r"macs .* over the budget"):
        _core.solve(CONV, TARGETS, "macs=0.0001x", "")
    assert issubclass(_core.NoSolution, _core.Error)
    assert issubclass(_core.Error, ValueError)


def test_solve_options() -> None:
    assert " G=8 " in _core.solve(GROUPED, TARGETS, "macs=none", "G=8")
    wide = "wide 8 16 4 4 3 1 1"
    with pytest.raises(_core.NoSolution, match="has no weights"):
        _core.solve(IDENTITY, wide, "macs=1x", "")
    assert "bind wide" in _core.solve(IDENTITY, wide, "macs=1x", "exempt=1")


def test_torch_code_is_python_with_one_class() -> None:
    pack = _core.bind(CONV, AT)
    for patterns in (True, False):
        code = _core.torch_code(pack, patterns)
        compile(code, "kernel.py", "exec")
        assert f"class Kernel_{_core.hash(CONV)[:16]}(nn.Module)" in code
    assert _core.torch_code(pack) == _core.torch_code(pack, patterns=True)
    assert _core.torch_code(pack) != _core.torch_code(pack, False)


def test_dot_is_a_graph() -> None:
    assert _core.dot(CONV).startswith("digraph")


def tensors(program: str, seed: int) -> list[bytes]:
    """Normal numbers for each `in` line of a program."""
    numbers = random.Random(seed)
    answer = []
    for line in program.splitlines():
        if line.startswith("in "):
            axes = line[line.index("[") + 1 : line.index("]")].split(",")
            count = math.prod(int(axis.split(":")[1]) for axis in axes)
            answer.append(array.array("d", (numbers.gauss(0, 1) for _ in range(count))).tobytes())
    return answer


def test_evaluate_is_a_convolution() -> None:
    pointwise = "canvas 1\nkernel p\na = input\nb = fc a to=C\nout b\n"
    program = _core.lower(_core.bind(pointwise, "C=2,H=1,W=2"), 0)
    x = array.array("d", [1, 2, 3, 4]).tobytes()
    w = array.array("d", [10, 100, 0.5, 0]).tobytes()
    y = array.array("d", _core.evaluate(program, [x, w]))
    assert y.tolist() == [310, 420, 0.5, 1]
    some = array.array("q", [3, 0]).tobytes()
    assert array.array("d", _core.evaluate(program, (x, w), some)).tolist() == [1, 310]
    assert _core.evaluate(program, [x, w], b"") == b""


def test_single_elements_equal_the_whole() -> None:
    program = _core.lower(_core.bind(CONV, AT), 0)
    inputs = tensors(program, 1)
    whole = array.array("d", _core.evaluate(program, inputs))
    some = [59, 0, 17, 17]
    part = _core.evaluate(program, inputs, elements=array.array("q", some).tobytes())
    assert array.array("d", part).tolist() == [whole[i] for i in some]


PACK = _core.bind(CONV, AT)
PROGRAM = _core.lower(PACK, 0)
BAD: list[tuple[Callable[[], object], str]] = [
    (lambda: _core.hash(""), "the text holds no kernel"),
    (lambda: _core.hash("canvas 1\0"), "NUL"),
    (lambda: _core.hash("\ud800"), "lone surrogate"),
    (lambda: _core.hash("canvas 1\nkernel \N{SNOWMAN}"), "line 2, column 8: unexpected byte 0xe2"),
    (lambda: _core.hash(CONV + CONV), "more than one kernel"),
    (lambda: _core.hash("x" * (17 << 20)), "16 MiB"),
    (lambda: _core.print_kernels("# nothing"), "the text holds no kernel"),
    (lambda: _core.print_kernels(CONV + "canvas 2\n"), "line 8, column 8: version 2"),
    (lambda: _core.draw("", 1, 1, ""), "no targets"),
    (lambda: _core.draw(TARGETS, -1, 0, ""), "seed is a whole number"),
    (lambda: _core.draw(TARGETS, 2**70, 0, ""), "seed is a whole number"),
    (lambda: _core.draw(TARGETS, 0, 2**63, ""), "index is a whole number"),
    (lambda: _core.draw(TARGETS, 0, 0, "primitives=12..5"), "ends before it begins"),
    (lambda: _core.draw(TARGETS, 0, 0, "colour=red"), "expected an option"),
    (lambda: _core.mutate(TARGETS, 0, 0, "", [("", 4)]), "the text holds no kernel"),
    (lambda: _core.mutate("", 0, 0, "", [(CONV, 4)]), "no targets"),
    (lambda: _testing.simplify("nothing"), "line 1"),
    (lambda: _testing.draw_is_free(0, -1, ""), "index is a whole number"),
    (lambda: _testing.draw_is_free(0, 0, "draws=no"), "expected 'rules', 'learned' or 'paper'"),
    (lambda: _testing.broken_rules(CONV, "bytes=1"), "expected 'x'"),
    (lambda: _testing.broken_rules("", ""), "the text holds no kernel"),
    (lambda: _core.solve(CONV, TARGETS, "macs=nan", ""), "expected a positive number"),
    (lambda: _core.solve(CONV, TARGETS, "", ""), "expected a budget"),
    (lambda: _core.solve(CONV, TARGETS, "macs=1x", "G=x"), "expected a whole number"),
    (lambda: _core.solve(GROUPED, TARGETS, "macs=1x", ""), "uses G"),
    (lambda: _core.bind(CONV, "C=4"), "H is missing"),
    (lambda: _core.bind(CONV, "C=4,H=5,W=3"), "uses x0"),
    (lambda: _core.cost(CONV), "has no sizes"),
    (lambda: _core.torch_code(CONV), "has no sizes"),
    (lambda: _core.lower(CONV, 0), "has no sizes"),
    (lambda: _core.lower(PACK, 1), "has targets 0 to 0, not 1"),
    (lambda: _core.lower(PACK, -1), "target is a whole number"),
    (lambda: _core.lower(PACK, 2**40), "has targets 0 to 0"),
    (lambda: _testing.baseline("64"), "line 1"),
    (lambda: _core.evaluate("", []), "line 1"),
    (lambda: _core.evaluate(PROGRAM, []), "3 inputs, not 0"),
    (lambda: _core.evaluate(PROGRAM, [b"", b"", b""]), "input 'X' has 60 elements"),
    (lambda: _core.evaluate(PROGRAM, tensors(PROGRAM, 1), b"1234"), "elements are int64"),
    (lambda: _core.evaluate(PROGRAM, tensors(PROGRAM, 1), b"\xff" * 8), "-1"),
    (lambda: _core.evaluate(PROGRAM, tensors(PROGRAM, 1), b"\x00\x01" + bytes(6)), "256"),
    (lambda: _core.main(["canvas", "che\0ck"]), "NUL"),
]


@pytest.mark.parametrize("number", range(len(BAD)))
def test_bad_input_is_one_message(number: int) -> None:
    call, message = BAD[number]
    with pytest.raises(_core.Error) as caught:
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not isinstance(caught.value, _core.NoSolution)


WRONG: list[Callable[[], object]] = [
    lambda: _core.hash(1),  # type: ignore[arg-type]
    lambda: _core.hash(b"canvas 1"),  # type: ignore[arg-type]
    lambda: _core.draw(TARGETS, 1.5, 0, ""),  # type: ignore[arg-type]
    lambda: _core.draw(TARGETS, None, 0, ""),  # type: ignore[arg-type]
    lambda: _core.mutate(TARGETS, 0, 0, "", (CONV, 4)),  # type: ignore[arg-type]
    lambda: _core.mutate(TARGETS, 0, 0, "", []),
    lambda: _core.mutate(TARGETS, 0, 0, "", [(CONV, 4)] * 3),
    lambda: _core.mutate(TARGETS, 0, 0, "", [(CONV, "4")]),  # type: ignore[list-item]
    lambda: _core.mutate(TARGETS, 0, 0, "", [CONV]),  # type: ignore[list-item]
    lambda: _core.solve(CONV, TARGETS, "macs=1x"),  # type: ignore[call-arg]
    lambda: _core.evaluate(PROGRAM, 3),  # type: ignore[arg-type]
    lambda: _core.evaluate(PROGRAM, ["a", "b", "c"]),  # type: ignore[list-item]
    lambda: _core.main("canvas", "help"),  # type: ignore[call-arg]
    lambda: _core.main("canvas help"),
    lambda: _core.main([1, 2]),  # type: ignore[list-item]
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_types_are_type_errors(number: int) -> None:
    with pytest.raises(TypeError):
        WRONG[number]()


@given(st.text(max_size=200))
def test_any_text_is_answered(text: str) -> None:
    calls = (
        _core.print_kernels,
        _core.print_pack,
        _core.hash,
        _testing.simplify,
        _core.dot,
        _core.svg,
        _core.formula,
        _core.cost,
        _testing.baseline,
        lambda text: _core.bind(CONV, text),
        lambda text: _core.solve(CONV, TARGETS, text, ""),
        lambda text: _core.draw(TARGETS, 1, 1, text),
        lambda text: _core.evaluate(text, []),
    )
    for call in calls:
        try:
            call(text)
        except _core.Error as error:
            assert str(error)


@given(st.data())
def test_any_damage_to_a_pack_is_answered(data: st.DataObject) -> None:
    """A pack with a slice cut out and put elsewhere parses, or is rejected with its place."""
    pack = _core.solve(GROUPED, TARGETS, "macs=none", "G=8")
    i, j, k = sorted(data.draw(st.lists(st.integers(0, len(pack)), min_size=3, max_size=3)))
    damaged = pack[:i] + pack[j:k] + pack[i:j] + pack[k:]
    try:
        _core.cost(damaged)
    except _core.Error as error:
        assert str(error)
    else:
        printed = _core.print_pack(damaged)
        assert _core.print_pack(printed) == printed


def test_main_prints_to_the_process_s_streams(capfd: pytest.CaptureFixture[str]) -> None:
    assert _core.main(["canvas", "--version"]) == 0
    assert _core.main(["canvas", "nonsense"]) == 2
    assert _core.main([]) == 2
    out, err = capfd.readouterr()
    assert out == f"canvas {_core.version()}\n"
    assert err.splitlines() == [
        "canvas: unknown subcommand 'nonsense', 'canvas help' lists them",
        "canvas: no subcommand given, 'canvas help' lists them",
    ]


def test_threads_run_at_the_same_time() -> None:
    """The interpreter lock is free during the work: a short call ends while a long one runs."""
    big = _core.lower(_core.bind(CONV, "C=32,H=24,W=24,x0=32"), 0)
    inputs, order = tensors(big, 1), []

    def evaluate() -> None:
        _core.evaluate(big, inputs)
        order.append("long")

    long = threading.Thread(target=evaluate)
    long.start()
    for _ in range(20):
        _core.hash(CONV)
    order.append("short")
    long.join()
    assert order == ["short", "long"]


def test_many_threads_get_the_same_answers() -> None:
    expected = [_core.draw(TARGETS, 3, i, "") for i in range(30)]
    answers: list[list[tuple[str, int] | None]] = []

    def work() -> None:
        answers.append([_core.draw(TARGETS, 3, i, "") for i in range(30)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 8


def test_nothing_leaks() -> None:
    """Memory does not grow over thousands of calls, rejected ones included."""
    inputs = tensors(PROGRAM, 1)

    def round_trip() -> None:
        kernel = _core.draw(TARGETS, 1, 3, "")
        assert kernel
        _core.print_kernels(kernel[0])
        _core.hash(CONV)
        _testing.reach(CONV)
        _core.solve(GROUPED, TARGETS, "macs=none", "G=8")
        _core.bind(CONV, AT)
        _core.print_pack(PACK)
        _core.cost(PACK)
        _testing.baseline(TARGETS)
        _core.dot(CONV)
        _core.svg(CONV)
        _core.torch_code(PACK)
        _core.lower(PACK, 0)
        _core.evaluate(PROGRAM, inputs)
        _core.primitives()
        for call, _ in BAD[1:5] + BAD[8:]:
            with pytest.raises(_core.Error):
                call()
        with pytest.raises(_core.NoSolution):
            _core.solve(CONV, TARGETS, "macs=0.0001x", "")

    def peak() -> int:
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB

    for _ in range(100):
        round_trip()
    before = peak()
    for _ in range(300):
        round_trip()
    assert peak() - before < 2048


def test_a_second_interpreter_may_import_it() -> None:
    """The module has no global state, so a reload in a fresh module object works too."""
    code = (
        "import importlib, sys\n"
        "from canvas import _core as first\n"
        "del sys.modules['canvas._core']\n"
        "second = importlib.import_module('canvas._core')\n"
        "for core in (first, second):\n"
        "    try:\n"
        "        core.hash('')\n"
        "    except core.Error as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
    )
    assert done.stdout == "the text holds no kernel\n" * 2


NETWORK = """canvas 1
network two
program scale
in X f32 [n:3]
in W f32 [n:3]
Y[n:3] = X[n] * W[n]
out Y
end
in x f32 [3]
weight w f32 [3]
y f32 [3] = scale(x, w)
z f32 [3] = scale(y, w)
out z, y
"""


def test_a_network_by_the_interpreter():
    x, w = array.array("d", [1, 2, 3]).tobytes(), array.array("d", [4, 5, -6]).tobytes()
    z, y = _testing.network_evaluate(NETWORK, [x, w])
    assert array.array("d", y).tolist() == [4, 10, -18]
    assert array.array("d", z).tolist() == [16, 50, 108]


@pytest.mark.parametrize(
    "arrays, message",
    [
        ([b""], "the network has 1 inputs and 1 weights, not 1"),
        ([bytes(24), bytes(16)], "input 'w' has 3 elements of 8 bytes each, not 16 bytes"),
    ],
)
def test_what_a_network_is_given_fits(arrays, message):
    with pytest.raises(_core.Error, match=message):
        _testing.network_evaluate(NETWORK, arrays)
    with pytest.raises(_core.Error, match="line 1, column 1"):
        _testing.network_evaluate("nonsense", arrays)


# ---- names --------------------------------------------------------------------------------------


def test_errors_have_the_names_that_users_write() -> None:
    assert str(canvas.CanvasError) == "<class 'canvas.CanvasError'>"
    assert str(canvas.NoSolution) == "<class 'canvas.NoSolution'>"
    again = pickle.loads(pickle.dumps(canvas.NoSolution("none")))
    assert isinstance(again, canvas.NoSolution) and str(again) == "none"


def test_a_package_that_is_not_built_says_so(tmp_path: pathlib.Path) -> None:
    folder = pathlib.Path(canvas.__file__).parent
    copied = tmp_path / "canvas"
    shutil.copytree(folder, copied, ignore=lambda _, names: [n for n in names if ".so" in n])
    words = [sys.executable, "-c", "import canvas"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env={})
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: canvas._core, its part in C, is not built in '")
    assert last.endswith("/canvas': run ./dev build there, or pip install .")


def test_the_predicted_time_of_a_program() -> None:
    """Of the part that runs in each call: constant weights are packed before."""

    def convolution(channels: int, size: int) -> str:
        sizes = f"in_channels={channels} out_channels={channels} height={size} width={size}"
        return _core.operator_program("conv2d_nchw", f"{sizes} kernel=3,3 padding=1,1")

    program = convolution(64, 8)
    cost = json.loads(_core.predict_program(program))
    assert list(cost) == ["seconds", "compute", "loads", "waits", "l2", "l3", "memory"]
    assert all(value >= 0 for value in cost.values()) and 1e-6 < cost["seconds"] < 1e-3
    assert json.loads(_core.predict_program(convolution(64, 16)))["seconds"] > 2 * cost["seconds"]
    constant = re.sub(r"^(in W .*)$", r"\1 const", program, flags=re.M)
    assert json.loads(_core.predict_program(constant))["seconds"] < 0.8 * cost["seconds"]
    edited, schedule = _core.bind_schedule(program)
    assert json.loads(_core.predict_program(edited, schedule)) == cost
    with pytest.raises(_core.Error, match="holes"):
        _core.predict_program(edited, re.sub(r"\b(\w+):\d+", r"\1:?", schedule, count=1))
    with pytest.raises(_core.Error):
        _core.predict_program("no program")

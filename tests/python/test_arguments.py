"""Arguments of wrong types and misspelt words: one message for every public function."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import canvas
from canvas import cli
from canvas.arguments import did_you_mean, shown
from canvas.data import load_data
from canvas.errors import CanvasError
from canvas.models import resnet8
from canvas.options import BY_NAME, read_options

IMAGE = torch.zeros(1, 1, 8, 8)
PROGRAM = canvas.operator_program(
    "conv2d_nchw", in_channels=2, height=4, width=4, out_channels=2, kernel=3
)


@pytest.fixture(scope="module")
def network():
    return canvas.convert(resnet8(channels=1, classes=10, width=4), IMAGE).model


@pytest.fixture(scope="module")
def pack(network):
    return canvas.sample(network, IMAGE, budget="macs=0.5x", seed=1)


class Odd:
    def __repr__(self):
        raise RuntimeError("no text")


NO_TEXT = [0.5, 1, [], ["macs=0.5x"], b"macs=0.5x", np.float64(0.5), np.int64(3), Odd(), True]
NO_PATH = ["", 0.5, 1, [], ["a"], np.float64(0.5), Odd(), "a\0b"]
NO_WHOLE = [0.5, "x", [], [1], b"1", np.float64(1), np.int64(1), True, Odd()]
NO_SWITCH = [0.5, 1, "yes", [], b"", np.int64(1), Odd()]
NO_FUNCTION = [0.5, 1, "print", [], [print], b""]
NO_CALLBACKS = [None, 0.5, print, "print", [1], [Odd]]
NO_MODULE = [None, 0.5, "resnet8", [], b"", np.int64(1), IMAGE, Odd()]
NO_OPTION = [[], ["x"], b"x", np.array([1, 2]), Odd(), {}]
NO_PACK = [None, 0.5, "pack.txt", [], b"", IMAGE]
NO_DATA = [None, 0.5, [], (1,), (1, 2), (1, 2, 3, 4), b"digits", np.int64(1), IMAGE, Odd()]
NEVER = [None]  # where None is no answer either

IMAGES = torch.utils.data.TensorDataset(torch.zeros(40, 1, 4, 4), torch.arange(40) % 2)

# function: its good arguments, and what each may not be.
TABLE = {
    "KernelPack": ({}, {"text": NO_TEXT + NEVER}),
    "compile": (
        {"model": "NETWORK", "example_input": IMAGE},
        {
            "model": NO_MODULE,
            "example_input": [None, 0.5, "x", b"", [], Odd()],
            "threads": NO_WHOLE + NEVER,
            "log": NO_PATH,
            "check": NO_SWITCH + NEVER,
            "winograd": [*NO_SWITCH, *NEVER, 3],
        },
    ),
    "compile_program": (
        {"program": PROGRAM},
        {"program": NO_TEXT + NEVER, "schedule": NO_TEXT, "machine": NO_TEXT},
    ),
    "convert": (
        {"model": "NETWORK", "example_input": IMAGE},
        {
            "model": NO_MODULE,
            "example_input": [None, 0.5, "x", b"", [], Odd()],
            "policy": NO_TEXT + NEVER,
            "filter_fn": NO_FUNCTION,
            "inplace": NO_SWITCH,
            "linear": NO_SWITCH,
            "depthwise": NO_SWITCH,
            "unequal": NO_TEXT + NEVER,
        },
    ),
    "data_from": (
        {"train": IMAGES},
        {
            "train": NO_DATA,
            "validation": [0.5, "x"],
            "test": [0.5, "x"],
            "name": NO_TEXT,
            "classes": NO_WHOLE,
            "images": NO_WHOLE,
            "normalize": ["yes", 0.5],
            "flip": ["yes", 0.5],
            "crop": NO_WHOLE,
        },
    ),
    "tune": (
        {"program": PROGRAM, "method": "oneshot"},
        {
            "program": NO_TEXT + NEVER,
            "method": NO_TEXT + NEVER,
            "trials": NO_WHOLE,
            "seconds": ["x", b"", [], Odd(), True, 0, -1.0, float("nan")],
            "seed": NO_WHOLE + NEVER,
            "threads": NO_WHOLE + NEVER,
            "log": NO_PATH,
            "winograd": [*NO_SWITCH, *NEVER, 3],
            "sketch": NO_TEXT,
            "machine": NO_TEXT + NEVER,
        },
    ),
    "export": (
        {"what": "baseline", "out": "out"},
        {
            "what": NO_PATH + NEVER,
            "out": NO_PATH + NEVER,
            "weights": NO_PATH,
            "model": NO_OPTION,
            "data": NO_OPTION,
            "width": NO_WHOLE,
            "colour": ["red"],
        },
    ),
    "finalize": ({"model": "NETWORK"}, {"model": NO_MODULE}),
    "fit": (
        {"network": "NETWORK", "data": IMAGES},
        {
            "network": NO_MODULE,
            "data": NO_DATA,
            "task": [None, 0.5, 3, "segmentations", "", b"regression", Odd()],
            "budget": [None, 0.5, 1, b"macs=0.5x", [], [0.5], Odd()],
            "policy": NO_TEXT + NEVER,
            "linear": NO_TEXT + NEVER,
            "depthwise": NO_TEXT + NEVER,
            "unequal": NO_TEXT + NEVER,
            "space": NO_TEXT,
            "distribution": NO_TEXT,
            "learn": [0.5, 1, b"kernel", [1], Odd()],
            "draws": NO_WHOLE + NEVER,
            "epochs": NO_WHOLE + NEVER,
            "longer": NO_WHOLE + NEVER,
            "time_limit": ["x", b"", [], Odd(), True, 0, -1.0, float("nan")],
            "seed": NO_WHOLE + NEVER,
            "memory": NO_WHOLE + NEVER,
            "latency": NO_TEXT + NEVER,
            "device": NO_TEXT + NEVER,
            "amp": NO_TEXT + NEVER,
            "pick": [b"fastest", 1, [], "slowest"],
            "final_seeds": NO_WHOLE + NEVER,
            "workers": NO_OPTION,
            "out": NO_PATH,
            "fresh": NO_SWITCH,
            "progress": NO_TEXT + NEVER,
            "say": NO_FUNCTION,
            "callbacks": NO_CALLBACKS,
            "log_dir": NO_PATH,
        },
    ),
    "fold": ({"network": "NETWORK"}, {"network": NO_MODULE, "inplace": NO_SWITCH}),
    "get_placeholders": ({"module": "NETWORK"}, {"module": NO_MODULE}),
    "load_weights": (
        {"network": "NETWORK", "path": "weights.pt"},
        {"network": NO_MODULE, "path": NO_PATH + NEVER},
    ),
    "load": ({}, {"path": NO_PATH + NEVER}),
    "load_data": (
        {"name": "digits"},
        {
            "name": NO_TEXT + NEVER,
            "image_size": NO_WHOLE,
            "images": NO_WHOLE,
            "normalize": ["yes", 0.5, [], b""],
            "flip": ["yes", 0.5, [], b""],
            "crop": NO_WHOLE,
        },
    ),
    "operator_program": (
        {"name": "conv2d_nchw"},
        {"name": NO_TEXT + NEVER, "kernel": [None, 0.5, b"3", [0.5], np.float64(1), {}, Odd()]},
    ),
    "plot_pareto": (
        {"folder": "nowhere", "path": "a.svg"},
        {
            "folder": NO_PATH + NEVER,
            "path": NO_PATH + NEVER,
            "x": NO_TEXT + NEVER,
            "title": NO_TEXT + NEVER,
        },
    ),
    "replace": (
        {"module": "NETWORK", "kernel": "PACK"},
        {"module": NO_MODULE, "kernel": NO_PACK, "re_solve": NO_SWITCH},
    ),
    "report": (
        {"folder": "nowhere"},
        {"folder": NO_PATH + NEVER, "html": NO_PATH},
    ),
    "replay": (
        {"folder": "nowhere", "name": "1"},
        {
            "folder": NO_PATH + NEVER,
            "name": NO_TEXT + NEVER,
            "say": NO_FUNCTION,
            "model": NO_TEXT,
        },
    ),
    "sample": (
        {"module": "NETWORK", "seed": 1},
        {
            "module": NO_MODULE,
            "budget": NO_TEXT,
            "seed": NO_WHOLE,
            "index": NO_WHOLE,
            "primitives": [0.5, 1, [], [5, 12], b"5..12", (), (1.5, 2), ("a", "b"), Odd()],
            "groups": NO_WHOLE,
            "require": NO_TEXT,
            "draws": NO_TEXT,
            "norm": NO_TEXT,
            "space": NO_TEXT,
            "learn": [0.5, 1, b"kernel", [1], Odd()],
            **{
                name: [0.5, 1, Odd()]
                for name in ("allowed_filter", "forbidden_filter", "necessary_filter")
            },
            **{
                name: [0.5, 3, (), "3", Odd()]
                for name in ("kernel_sizes", "dilated_sizes", "shift_sizes")
            },
            **{
                name: [0.5, 3, (0, 0), (1,), "3", Odd()]
                for name in ("num_primitive_range", "num_max_width_range", "num_weighted_range")
            },
            "max_weighted_ratio": [0, -1, 2, "x", True, Odd()],
            "force_bmm_possibility": [-1, 2, "x", True, Odd()],
            "min_receptive_size": NO_WHOLE,
            "ensure_spatial_invariance": NO_SWITCH,
            "workers": [0, *NO_WHOLE],
            "timeout": [-1, "x", Odd()],
        },
    ),
    "empty_sample": ({}, {}),
    "debug_sample": ({}, {}),
    "remove_cache": ({}, {}),
    "init_weights": ({}, {"module": NO_MODULE}),
    "get_state_dict": (
        {"module": "NETWORK"},
        {"module": NO_MODULE, "remove_placeholders": NO_SWITCH},
    ),
    "restore_from_state_dict": (
        {"module": "NETWORK", "state_dict": {}},
        {"module": NO_MODULE, "state_dict": [0.5, 1, "x", Odd()], "strict": NO_SWITCH},
    ),
    "save": ({"pack": "PACK", "path": "p"}, {"pack": NO_PACK, "path": NO_PATH + NEVER}),
    "restore_kept": ({"model": "NETWORK"}, {"model": NO_MODULE}),
    "search": (
        {"model": "resnet8", "data": "digits", "images": 1},  # never gets to its images
        {
            "model": [*NO_OPTION, 0.5, 1, None],
            "data": NO_DATA,
            "task": [0.5, 3, "segmentations", b"regression", Odd()],
            "train": [0.5, "x", print],
            "score": [0.5, "x", print],
            "out": NO_PATH,
            "storage": NO_PATH,
            "fresh": NO_SWITCH,
            "load_if_exists": NO_SWITCH,
            "say": NO_FUNCTION,
            "progress": NO_TEXT + NEVER,
            "callbacks": NO_CALLBACKS,
            "log_dir": NO_PATH,
            "n_trials": NO_WHOLE,
            "timeout": NO_OPTION,
            **{
                name: NO_OPTION + ([] if option.metavar else [1, 0.5])
                for name, option in BY_NAME.items()
                if name not in ("model", "data")
            },
        },
    ),
    "create_study": (
        {"model": "resnet8", "example_input": IMAGE, "out": "asked"},
        {
            "model": [None, 0.5, 3, b"resnet8"],
            "example_input": [None, 0.5, "x", [1], (1, 2)],
            "budget": NO_TEXT,
            "trials": NO_WHOLE + NEVER,
            "direction": NO_TEXT + NEVER,
            "unit": NO_TEXT,
            "metric": NO_TEXT,
            "seed": NO_WHOLE,
            "out": NO_PATH + NEVER,
            "fresh": NO_SWITCH,
            "say": NO_FUNCTION,
        },
    ),
    "stream": (
        {"train": IMAGES},
        {
            "train": [None, 0.5, "x", 3, IMAGE, Odd(), iter([])],
            "validation": [0.5, "x", 3, Odd()],
            "test": [0.5, "x", 3, Odd()],
            "name": NO_TEXT + NEVER,
        },
    ),
    "seed": ({}, {"number": NO_WHOLE + NEVER}),
    "train_network": (
        {"what": "baseline"},
        {
            "what": NO_PATH + NEVER,
            "out": NO_PATH,
            "resume": NO_SWITCH,
            "re_solve": NO_SWITCH,
            "device": NO_TEXT + NEVER,
            "threads": [0.5, [], b"1"],
            "say": NO_FUNCTION,
            "callbacks": NO_CALLBACKS,
            "log_dir": NO_PATH,
            "epochs": NO_OPTION,
            "colour": ["red"],
        },
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_a_wrong_type_is_one_message(name, network, pack, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TERM", "dumb")
    good, table = TABLE[name]
    good = {k: {"NETWORK": network, "PACK": pack}.get(v, v) if isinstance(v, str) else v
            for k, v in good.items()}  # fmt: skip
    for argument, values in table.items():
        for value in values:
            try:
                getattr(canvas, name)(**{**good, argument: value})
            except CanvasError as error:
                assert str(error) and str(error).isprintable(), (argument, value)
            except Exception as error:
                raise AssertionError(f"{name}({argument}={shown(value)}): {error!r}") from error
            else:
                raise AssertionError(f"{name}({argument}={shown(value)}) is taken")
    assert not list(tmp_path.iterdir())


def test_every_argument_of_every_public_function_is_in_the_table():
    for name in canvas.__all__:
        value = getattr(canvas, name)
        if not inspect.isfunction(value):
            continue
        parameters = inspect.signature(value).parameters.values()
        named = {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        free = {"example_input"} if name != "convert" else set()
        if name == "search":
            named -= set(BY_NAME)
        assert named - free <= TABLE[name][1].keys(), name


def test_the_message_says_what_is_wanted(network):
    for call, words in (
        (lambda: canvas.sample(network, budget=0.5), "budget is a text, not 0.5"),
        (lambda: canvas.load(b"x"), "path is a path, not b'x'"),
        (lambda: canvas.load(Odd()), "path is a path, not a Odd"),
        (
            lambda: canvas.sample(network, seed=1, groups=True),
            "groups is a whole number, not True",
        ),
        (lambda: canvas.replay("a", "1", say=3), "say is a function, not 3"),
        (lambda: canvas.plot_pareto("a", 100 * "b", x=300 * [1]), "x is a text, not a list"),
    ):
        with pytest.raises(CanvasError) as caught:
            call()
        assert str(caught.value) == words


# ---- the nearest word ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("budgt", "; did you mean '--budget'?"),
        ("budget_swep", "; did you mean '--budget_sweep'?"),
        ("zzz", ""),
        ("", ""),
    ],
)
def test_the_nearest_word(word, expected):
    assert did_you_mean(word, BY_NAME, "--") == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["search", "--budgt", "macs=0.5x"], "unrecognized arguments: --budgt macs=0.5x; did you "
         "mean '--budget'?"),
        (["search", "--zzz"], "unrecognized arguments: --zzz; canvas search --help lists the "
         "flags"),
        (["search", "--progress", "live1"], "invalid choice: 'live1' (choose from live, lines, "
         "off); did you mean 'live'?"),
        (["search", "--model", "resnet8", "--data", "digits", "--policy", "papr"],
         "--policy takes paper or spatial or all, not 'papr'; did you mean 'paper'?"),
        (["pareto", ".", "--formt", "csv"], "did you mean '--format'?"),
        (["train", "x", "--epoch", "3"], "did you mean '--epochs'?"),
    ],
)  # fmt: skip
def test_a_misspelt_flag_gets_the_nearest(words, message, capsys):
    assert cli.main(words) == 2
    printed = capsys.readouterr().err
    assert message in printed.replace("'live', 'lines', 'off'", "live, lines, off")
    assert len(printed.splitlines()) == 1


def test_a_misspelt_keyword_gets_the_nearest():
    with pytest.raises(CanvasError, match="a search has no option 'budgt'; did you mean 'budget'"):
        canvas.search("resnet8", "digits", budgt="macs=0.5x")
    with pytest.raises(CanvasError, match="not 'randm'; did you mean 'random'"):
        canvas.search("resnet8", "digits", strategy="randm")
    with pytest.raises(TypeError, match=r"sample\(\) got .* 'budjet'; did you mean 'budget'\?"):
        canvas.sample(nn.Conv2d(8, 8, 3), budjet="macs=0.5x")
    with pytest.raises(CanvasError, match=r"--epochs takes .*, not \[3\]$"):
        read_options({"model": "m", "data": "d", "epochs": [3]})


# ---- libraries that are missing -----------------------------------------------------------------

BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LIBRARIES:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Blocked())
from canvas.cli import main
from canvas.workers import signals
for words in WORDS:
    try:
        code = main(words)
    except SystemExit as end:  # --help
        code = end.code
    print("exit", code, file=sys.stderr)
"""
LIBRARIES = ["torch", "numpy", "sklearn", "rich", "safetensors", "PIL", "matplotlib", "scipy"]
SMALL = ["--model", "resnet8", "--data", "digits"]


def test_a_plain_install_says_what_is_missing(tmp_path):
    """Each subcommand without torch and NumPy, as after `pip install .`."""
    from made_study import CONTROLS, FINDS, make_study

    folder = str(make_study(tmp_path / "run", CONTROLS + FINDS))
    missing = 'needs NumPy, not installed here: pip install "canvas-kas[torch]"'
    expected = {
        ("search", *SMALL): f"canvas: canvas search {missing}",
        ("replay", folder, "0"): f"canvas: canvas replay {missing}",
        ("train", "baseline", *SMALL): f"canvas: canvas train {missing}",
        (
            "export",
            "baseline",
            "--out",
            "x",
            *SMALL,
        ): f"canvas: canvas export {missing}",
        ("trials", folder, "--audit", "1"): f"canvas: canvas trials --audit {missing}",
        ("pareto", folder, "--plot", str(tmp_path / "a.svg")): "canvas: a plot needs matplotlib, "
        'not installed here: pip install "canvas-kas[plot]"',
        ("trials", folder): None,
        ("pareto", folder): None,
        ("report", folder): None,
        ("env",): None,
        ("search", "--help"): None,
    }
    text = f"LIBRARIES = {LIBRARIES}\nWORDS = {[list(words) for words in expected]}\n{BLOCK}"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(canvas.__file__).parents[1]), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    said = done.stderr.splitlines()
    for words, message in expected.items():
        if message is None:
            assert said.pop(0) == "exit 0", (words, done.stderr)
            continue
        line = said.pop(0).replace("needs PyTorch", "needs NumPy")  # whichever is asked for first
        assert (line, said.pop(0)) == (message, "exit 2"), words
    assert not said


def test_a_wrong_type_is_said_before_images_are_read(monkeypatch):
    def read(*arguments, **named):
        raise AssertionError("read")

    monkeypatch.setattr("canvas.runner.subject.as_data", read)
    with pytest.raises(CanvasError, match="--epochs takes a whole number"):
        canvas.search("resnet8", load_data("digits", images=100), epochs=0.5)

"""The command line: one message for every mistake, and the core answers what is not ours."""

import json
import os
import subprocess
import sys

import pytest

from canvas.cli import main
from canvas.cli.cmd_search import parser as search_parser
from canvas.errors import CanvasError
from canvas.options import OPTIONS, read_duration, read_options
from canvas.reporting.report import counts_line, trial_counts
from canvas.study import Study

GOOD = ["--model", "resnet8", "--data", "digits"]


def rejected(capsys, words):
    """Exit code and message of a command that must be rejected."""
    code = main(words)
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.strip(), (out, err)
    assert "Traceback" not in err and "usage" not in err
    return code, err.strip()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs --model"),
        (["--model", "resnet8"], "needs --data"),
        (["--model", "resnet9", "--data", "digits"], "no model is called 'resnet9'"),
        (["--model", "resnet8", "--data", "mnist"], "no data is called 'mnist'"),
        ([*GOOD, "--trials", "0"], "--trials takes a whole number from 1 to 1000000, not '0'"),
        ([*GOOD, "--trials", "-3"], "--trials takes a whole number from 1 to 1000000, not '-3'"),
        ([*GOOD, "--trials", "nan"], '--trials takes a whole number'),
        ([*GOOD, "--trials", "1e3"], '--trials takes a whole number'),
        ([*GOOD, "--epochs", "9" * 400], '--epochs takes a whole number'),
        ([*GOOD, "--seed", str(2**63)], '--seed takes a whole number'),
        ([*GOOD, "--width", "1.5"], '--width takes a whole number'),
        ([*GOOD, "--budget-sweep", "0.5x,0.5x"], "--budget-sweep takes each budget once"),
        ([*GOOD, "--budget-sweep", "half"], "--budget-sweep takes MACs budgets such as 0.8x"),
        ([*GOOD, "--budget-sweep", "0.5x,1.2.3x"], "cannot be"),
        ([*GOOD, "--budget-sweep", "0.5x", "--budget", "macs=1x"], "both limit the MACs"),
        ([*GOOD, "--budget-sweep", "0.5x", "--budget", "flops=1x"], "both limit the MACs"),
        ([*GOOD, "--pick", "nicest"], "--pick takes a rule such as"),
        ([*GOOD, "--pick", "fastest within -1"], "--pick takes a rule such as"),
        ([*GOOD, "--objectives", "latency,speed"], "--objectives takes some of latency, macs"),
        ([*GOOD, "--objectives", "macs,macs"], "--objectives takes some of latency, macs"),
        ([*GOOD, "--finalists", "-1"], "--finalists takes a whole number from 0"),
        ([*GOOD, "--deterministic", "yes"], "unrecognized arguments: yes"),
        ([*GOOD, "--batch-size", "1"], '--batch-size takes a whole number from 2'),
        ([*GOOD, "--workers", ""], '--workers takes a whole number'),
        ([*GOOD, "--time-limit", "0"], "--time-limit takes a time such as 90s, 10m or 1.5h"),
        ([*GOOD, "--time-limit", "nan"], "--time-limit takes a time"),
        ([*GOOD, "--time-limit", "10d"], "--time-limit takes a time"),
        ([*GOOD, "--time-limit", "9999999h"], "--time-limit takes a time"),
        ([*GOOD, "--primitives", "12..5"], "--primitives takes a range such as 5..12"),
        ([*GOOD, "--primitives", "0"], "--primitives takes a range"),
        ([*GOOD, "--policy", "every"], "--policy takes paper or spatial or all, not 'every'"),
        ([*GOOD, "--require", "luck"], "--require takes reach or none, not 'luck'"),
        (
            [*GOOD, "--draws", "rules,free"],
            "--draws takes rules, learned or paper, with changes such as rules,free=0.2, not "
            "'rules,free'",
        ),
        ([*GOOD, "--prune", "hard"], "--prune takes rungs or macs or paper or none, not 'hard'"),
        ([*GOOD, "--budget", ""], "--budget takes a line of text"),
        ([*GOOD, "--budget", "macs=nan"], "macs"),
        ([*GOOD, "--budget", "macs=-1x"], "macs"),
        ([*GOOD, "--budget", "time=1s"], "time"),
        ([*GOOD, "--budget", "latency=1ms"], "one latency, relative to the replaced layers"),
        ([*GOOD, "--budget", "latency=0x"], "such as latency=0.5x, not 'latency=0x'"),
        ([*GOOD, "--budget", "latency=0.5x,latency=1x"], "one latency"),
        ([*GOOD, "--budget", "macs=0.5x\nparams=1x"], "--budget takes a line of text"),
        ([*GOOD, "--primitives", "9999"], "primitives"),
        ([*GOOD, "--groups", "7"], "7"),
        ([*GOOD, "--tirals", "3"], "--tirals"),
        ([*GOOD, "--trial", "3"], "--trial"),
        ([*GOOD, "--trials"], "--trials"),
        ([*GOOD, "stray"], "stray"),
    ],
)  # fmt: skip
def test_a_mistake_in_search_is_one_message_and_code_2(capsys, tmp_path, words, message):
    code, said = rejected(capsys, ["search", "--out", str(tmp_path / "out"), *words])
    assert (code, message in said) == (2, True), said
    assert not (tmp_path / "out" / "study.db").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "DIR"),
        (["no such folder"], "there is no study in 'no such folder'"),
        ([".", "-f", "xml"], "xml"),
        (["\0"], "study"),
    ],
)
def test_a_mistake_in_trials_is_one_message_and_code_2(capsys, words, message):
    code, said = rejected(capsys, ["trials", *words])
    assert (code, message in said) == (2, True), said


@pytest.mark.parametrize(
    "words",
    [
        ["search", *GOOD, "--out", ""],
        ["search", *GOOD, "--out="],
        ["search", "--model", "__main__:Net", "--data", "digits"],
        ["train", "baseline", *GOOD, "--out", ""],
        ["train", "", *GOOD],
        ["export", "baseline", *GOOD, "--out", ""],
        ["export", "", "--out", "new"],
        ["export", "baseline", *GOOD, "--out", "new", "--weights", ""],
        ["pareto", ""],
        ["pareto", "study", "--plot", ""],
        ["report", ""],
        ["report", "study", "--html", ""],
        ["trials", ""],
        ["replay", "", "baseline"],
        ["log", "show", ""],
        ["tune", "gemm", "m=8", "n=8", "k=8", "--log", ""],
        ["network", "", "--emit", "new"],
    ],
)
def test_an_empty_path_is_refused_before_anything_is_made(capfd, monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("canvas.data.readers.load_data", None)  # nothing is read
    code, message = rejected(capfd, words)
    assert code == 2 and not list(tmp_path.iterdir())
    assert "''" in message or "'__main__:Net' is defined in the script" in message


def test_a_cache_that_pytorch_cannot_make_is_named(capsys, monkeypatch, tmp_path):
    """PyTorch makes it while it is imported, so that any command may end there."""

    def fails(words):
        raise NotADirectoryError(20, "Not a directory", str(tmp_path / "file/x/dynamo"))

    monkeypatch.setattr("canvas.cli.entry.run", fails)
    for cache, more in ((tmp_path / "file/x", ", which TORCHINDUCTOR_CACHE_DIR names"), ("", "")):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))
        message = f"canvas: Not a directory: '{tmp_path}/file/x/dynamo'{more}"
        assert rejected(capsys, ["search"]) == (2, message)


def test_the_core_answers_what_is_not_ours(capfd):
    assert main(["hash", "/nonexistent"]) == 2
    assert main(["no-such-subcommand"]) == 2
    assert "no-such-subcommand" in capfd.readouterr().err


def test_help_names_every_flag_with_default_and_unit(capsys):
    with pytest.raises(SystemExit) as end:
        main(["search", "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    for option in OPTIONS:
        assert f"{option.flag} {option.metavar}".strip() in text
        if option.default not in (None, False):
            assert "default" in option.help or f"(default: {option.default})" in text
    assert "%" not in search_parser().format_help().replace("10 %", "")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("10m", 600), ("10min", 600), ("500ms", 0.5), ("1.5h", 5400)],
)
def test_durations(text, seconds):
    assert read_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "-1s", "1e3", "inf", float("inf"), float("nan"), True])
def test_what_is_no_duration(text):
    with pytest.raises(ValueError, match="a time such as"):
        read_duration(text)


def test_options_from_python_are_judged_like_flags():
    with pytest.raises(CanvasError, match="no option 'trails'"):
        read_options({"model": "m", "data": "d", "trails": 3})
    with pytest.raises(CanvasError, match="--trials takes a whole number"):
        read_options({"model": "m", "data": "d", "trials": 3.5})
    with pytest.raises(CanvasError, match="--trials takes a whole number"):
        read_options({"model": "m", "data": "d", "trials": True})
    with pytest.raises(CanvasError, match="--model takes the name"):
        read_options({"model": print, "data": "d"})
    assert read_options({"model": "m", "data": "d"})["prune"] == "rungs"


@pytest.fixture
def folder(tmp_path):
    with Study.open(tmp_path) as study:
        study.begin(read_options({"model": "m", "data": "d"}), "images", "abc", (100, 50), "t")
        study.add("baseline", "baseline")
        kernel = "a = input\nb = relu a\nout b\n"
        study.add("12", "find", kernel, "pack", "0" * 32, 10, "", "crossover", "3 7")
        study.started(2)
        study.built(2, 1000, 10)
        study.epoch(2, 0, 0.5, 1.0, 0.1)
        study.finished(2, "failed", "timeout: too slow, really", "log\nlines")
        study.record_draw(13, "duplicate", "the same kernel as 12")
    return tmp_path


def test_trials_lists_every_candidate(folder, capsys):
    assert main(["trials", str(folder), "-f", "csv"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("candidate,kernel,status,val_accuracy,")
    assert lines[2].startswith("12,Kernel_0000000000000000,failed,,find,relu,1000,10,")
    assert lines[2].endswith('"timeout: too slow, really",crossover,3 7,accuracy,points')
    assert lines[3] == "13,,duplicate,,draw,,,,,,,the same kernel as 12,,,accuracy,points"
    assert main(["trials", str(folder), "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["status"] for row in rows] == ["new", "failed", "duplicate"]
    assert rows[1]["log"] == "log\nlines" and rows[1]["curve"] == [0.5]
    assert main(["trials", str(folder)]) == 0
    out = capsys.readouterr().out
    assert "timeout: too slow" in out and "crossover 3 7" in out and "the same kernel as 12" in out


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("done", "1 trials: 1 trained to the end, 0 pruned, 0 failed. Of"),
        ("rejected", "0 trials: 0 trained to the end, 0 pruned, 0 failed; 1 more rejected before"),
        ("waiting", "1 trials: 0 trained to the end, 0 pruned, 0 failed, 1 at the first rung. Of"),
        ("failed", "1 were there already, 0 did not fit the budget. Failures: 1 nan."),
    ],
)
def test_every_end_of_a_find_is_counted_as_what_it_is(folder, status, words):
    with Study.open(folder) as study:
        study.database.execute(
            "UPDATE task SET state = ?, reason = 'nan: it is' WHERE candidate = 2", (status,)
        )
        line = counts_line(study, trial_counts(study))
    assert words in line


def test_a_reader_that_goes_away_gets_no_traceback(folder):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        ["sh", "-c", f'"{sys.executable}" -m canvas trials "$0" -f json | true', str(folder)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.stderr == ""


def test_without_torch_search_says_how_to_get_it_and_trials_works(folder):
    hide = "import sys; sys.modules['torch'] = None; from canvas.cli import main; sys.exit(main("
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}

    def run(words):
        code = f"{hide}{words!r}))"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment
        )

    done = run(["search", *GOOD])
    assert (done.returncode, done.stdout) == (2, "")
    assert "pip install" in done.stderr and done.stderr.count("\n") == 1
    assert run(["trials", str(folder)]).returncode == 0


# Python flushes both at its exit, and answers 120 where that fails.
def test_a_full_standard_error_keeps_the_exit_code(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    words = [sys.executable, "-m", "canvas", "trials", str(tmp_path / "no")]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=full, env=environment)
    assert (done.returncode, done.stdout) == (2, b"")


def test_a_fit_takes_each_budget_and_says_what_is_wrong_with_one(capsys, tmp_path):
    from canvas.cli.cmd_fit import parser
    from canvas.fit_options import read_fit_options

    given = vars(
        parser().parse_args(["--budget", "latency=0.6x", "--budget", "macs=0.3x, params=0.5x"])
    )
    for name in ("out", "fresh", "progress", "log_dir"):
        given.pop(name)
    assert read_fit_options(given)["budget"] == ["latency=0.6x", "macs=0.3x,params=0.5x"]
    good = ["fit", "--out", str(tmp_path), "--model", "resnet8", "--data", "digits"]
    for words, message in (
        (["fit", "--model", "resnet8"], "a fit needs --data NAME"),
        ([*good, "--budget", "macs=2x"], "--budget takes budgets such as latency=0.6x"),
        (
            [*good, "--budget", "macs=0.5x", "--budget", "macs=0.5x"],
            "--budget takes each budget once",
        ),
        ([*good, "--latency", "none"], "a budget of latency needs times"),
        ([*good, "--epochs", "7"], "--longer 6 is less than --epochs 7"),
        ([*good, "--weights", "no.pt"], "cannot read 'no.pt'"),
    ):
        code, said = rejected(capsys, words)
        assert code == 2 and message in said, words

"""The log of --log-dir: CSV and event files, continued runs, folders that cannot hold it."""

import csv
import resource
import shlex
import shutil
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

import canvas  # noqa: E402
from canvas.cli import main  # noqa: E402
from canvas.errors import CanvasError  # noqa: E402
from canvas.fitting import fit_run, item_table, menu  # noqa: E402
from canvas.reporting import epoch_log  # noqa: E402
from canvas.reporting.callbacks import Callbacks, EpochEvent  # noqa: E402
from canvas.reporting.epoch_log import EpochLog, open_log  # noqa: E402
from canvas.study import Study  # noqa: E402

torch.set_num_threads(1)
SEARCH = ["search", "--model", "resnet8", "--width", "2", "--data", "digits", "--images", "200",
          "--trials", "2", "--epochs", "2", "--prune", "none", "--pretests", "no", "--grace", "1",
          "--final-epochs", "1", "--final-seeds", "1", "--latency", "none", "--workers", "2",
          "--memory-format", "contiguous", "--progress", "off"]  # fmt: skip
EVENT = EpochEvent(Path("runs"), "trial", "17", 1, 1, 2, 0.5, 0.25, "accuracy", 1.5)


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def scalars(folder):
    """What TensorBoard reads in a folder: (tag, step) -> values."""
    event_accumulator = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator"
    )
    read = event_accumulator.EventAccumulator(str(folder))
    read.Reload()
    found = {}
    for tag in read.Tags()["scalars"]:
        for point in read.Scalars(tag):
            found.setdefault((tag, point.step), []).append(point.value)
    return found


def check_events(folder):
    """Each row of epochs.csv is a point of each scalar of its run, once."""
    by_run = {}
    for row in rows(folder / "epochs.csv"):
        by_run.setdefault(row["run"], []).append(row)
    for run, epochs in by_run.items():
        expected = {}
        for row in epochs:
            expected["train_loss", int(row["epoch"])] = [pytest.approx(float(row["loss"]), 1e-4)]
            if row["value"]:
                key = f"val_{row['metric']}", int(row["epoch"])
                expected[key] = [pytest.approx(float(row["value"]), abs=1e-4)]
        assert scalars(folder / run) == expected, run


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """The folder in which a search and its log are."""
    folder = tmp_path_factory.mktemp("searched")
    words = ["--out", str(folder / "out"), "--log-dir", str(folder / "log")]
    assert main([*SEARCH, *words]) == 0
    return folder


def test_the_log_of_a_search(searched):
    epochs = rows(searched / "log" / "epochs.csv")
    trials = [row for row in epochs if row["kind"] == "trial"]
    with Study.read(searched / "out") as study:
        curves = {row.name: study.curve(row.id) for row in study.candidates()}
        created = f"{study.fact('created'):.3f}"
        candidates = study.candidates()
    for name, curve in curves.items():
        own = [row for row in trials if row["name"] == name]
        assert [row["epoch"] for row in own] == ["1", "2"]
        assert [float(row["value"]) for row in own] == pytest.approx(curve, abs=1e-5)
    assert {row["study"] for row in epochs} == {created}
    assert [row["value"] for row in epochs if row["kind"] == "final"].count("") == 0
    figures = rows(searched / "log" / "candidates.csv")
    assert [row["name"] for row in figures] == [row.name for row in candidates]
    for row, known in zip(figures, candidates):
        assert row["macs"] == str(known.macs) and row["status"] == known.status
        assert float(row["value"]) == pytest.approx(known.val_accuracy, abs=1e-5)
        assert (row["test"] != "") == bool(known.tests) and row["latency_ms"] == ""


def test_the_event_files_of_a_search(searched):
    check_events(searched / "log")
    find = scalars(searched / "log" / "baseline")
    row = rows(searched / "log" / "candidates.csv")[0]
    assert find["macs", 0] == [int(row["macs"])] and find["params", 0] == [int(row["params"])]
    assert find["val_accuracy", 0] == [pytest.approx(float(row["value"]), abs=1e-4)]


def test_a_search_that_continues_appends(searched, tmp_path, capsys):
    """A killed run may have logged more, or less, than its study kept."""
    before = (searched / "log" / "epochs.csv").read_text().splitlines()
    out, log = tmp_path / "out", tmp_path / "log"
    words = [*SEARCH, "--out", str(out), "--log-dir", str(log), "--workers", "1"]
    shutil.copytree(searched, tmp_path, dirs_exist_ok=True)
    (log / "epochs.csv").write_text("\n".join(before[:-3]) + "\n" + before[-3][:9])  # cut off
    shutil.rmtree(log / before[-1].split(",")[1])
    words[words.index("--trials") + 1] = "3"
    assert main(words) == 0
    after = (log / "epochs.csv").read_text().splitlines()
    assert after[: len(before) - 3] == before[:-3]
    new = rows(log / "epochs.csv")[len(before) - 4 :]
    assert new and {row["kind"] for row in new} <= {"trial", "final"}
    keys = [(row["run"], row["epoch"]) for row in rows(log / "epochs.csv")]
    assert len(set(keys)) == len(keys)
    finds = {row["name"] for row in new if row["kind"] == "trial" and row["name"].isdigit()}
    assert len(finds - {line.split(",")[3] for line in before}) == 1
    assert capsys.readouterr().out.splitlines()[0].startswith("No claim")


@pytest.mark.parametrize("fresh", [False, True])
def test_the_log_of_another_study_is_refused(searched, tmp_path, capsys, fresh):
    out = tmp_path / "out"
    if fresh:
        shutil.copytree(searched / "out", out)
    before = sorted(path.name for path in out.iterdir()) if fresh else []
    log = (searched / "log" / "epochs.csv").read_bytes()
    words = ["--out", str(out), "--log-dir", str(searched / "log")]
    assert main([*SEARCH, *words, *["--fresh"] * fresh]) == 2
    assert capsys.readouterr().err == (
        f"canvas: '{searched / 'log'}' holds the log of another study or training: name another "
        "--log-dir, or remove it\n"
    )
    assert (searched / "log" / "epochs.csv").read_bytes() == log
    if fresh:
        assert sorted(path.name for path in out.iterdir()) == before
    else:
        with Study.read(out) as study:
            assert study.fact("created") is None


# ---- fits and long trainings --------------------------------------------------------------------


@pytest.mark.nightly
def test_the_log_of_a_fit(tmp_path, monkeypatch, capsys):
    """Epochs of the teacher, too; the lines at the end are commands that work."""
    monkeypatch.chdir(tmp_path)
    for module, name, value in (
        *((item_table, "SHORT", 4), (item_table, "LONG", 8), (fit_run, "REFIT", 12)),
        (menu, "SHARES", (0.5, 0.3)),
    ):
        monkeypatch.setattr(module, name, value)
    words = ["fit", "--model", "resnet8", "--width", "2", "--data", "digits", "--images", "400",
             "--budget", "macs=0.5x", "--draws", "0", "--epochs", "1", "--longer", "1",
             "--final-seeds", "1", "--teacher-epochs", "6", "--latency", "none",
             "--workers", "1", "--progress", "off", "--out", "a fit",
             "--log-dir", "log"]  # fmt: skip
    assert main(words) == 0
    printed = capsys.readouterr().out.splitlines()
    epochs = rows("log/epochs.csv")
    teacher = [row for row in epochs if row["kind"] == "teacher"]
    assert [row["epoch"] for row in teacher] == list("123456")
    assert {row["kind"] for row in epochs} == {"teacher", "tuning"}
    check_events(Path("log"))
    figures = {row["name"]: row for row in rows("log/candidates.csv")}
    assert float(figures["teacher"]["value"]) == pytest.approx(float(teacher[-1]["value"]))
    assert printed[0].startswith("macs=0.5x: ") and "* teacher" in "\n".join(printed)
    export = printed[-2].partition(": ")[2]
    assert printed[-2].startswith("To export the network of macs=0.5x: canvas export 'a fit/")
    assert printed[-1] == "To see everything as a page: canvas report 'a fit'"
    assert main(shlex.split(export)[1:]) == 0
    assert Path("a fit/budget-1/exported").is_dir()
    assert main(words) == 0  # nothing is done again
    assert rows("log/epochs.csv") == epochs


def test_the_log_of_a_training(tmp_path):
    words = {"model": "resnet8", "data": "synthetic", "images": 100, "width": 2, "threads": 1,
             "say": lambda line: None, "log_dir": tmp_path / "log"}  # fmt: skip

    class Stop:
        def on_epoch(self, event):
            if event.epoch == 2:
                raise RuntimeError("stopped")

    with pytest.raises(CanvasError, match="stopped"):
        canvas.train_network("baseline", epochs=3, out=tmp_path / "a", callbacks=[Stop()], **words)
    canvas.train_network("baseline", epochs=3, out=tmp_path / "a", resume=True, **words)
    log = rows(tmp_path / "log" / "epochs.csv")
    assert [row["epoch"] for row in log] == ["1", "2", "3"]
    assert {row["study"] for row in log} == {"training of baseline"}
    check_events(tmp_path / "log")
    with pytest.raises(CanvasError, match="the log of another study or training"):
        canvas.train_network("baseline", epochs=3, out=tmp_path / "b", **words)
    assert not (tmp_path / "b" / "checkpoint.safetensors").exists()


EVENT = EpochEvent(Path("runs"), "teacher", "teacher", 1, 1, 2, 0.5, 0.25, "accuracy", 1.5)


def test_a_log_that_begins_late_is_noted(tmp_path):
    """The epochs that the study has are not in it."""
    with EpochLog(tmp_path) as log:
        callbacks = Callbacks([], log)
        assert callbacks.notes(known=False) == [log.note] * bool(log.note)
        assert callbacks.notes(known=True)[-1].startswith("the log begins here: epochs of before")
        log.on_epoch(EVENT)
        assert callbacks.notes(known=True) == [log.note] * bool(log.note)


def test_rows_without_a_study_belong_to_the_fit_that_goes_on(tmp_path):
    """Epochs of a teacher stand there before the study has begun."""
    with EpochLog(tmp_path) as log:
        log.claim(None)
        log.on_epoch(EVENT)
    with EpochLog(tmp_path) as log:
        with pytest.raises(CanvasError, match="the log of another study or training"):
            log.claim(None)
        log.claim(None, goes_on=True)
        log.claim("12.000")
        log.on_epoch(replace(EVENT, epoch=2))
    assert [row["study"] for row in rows(tmp_path / "epochs.csv")] == ["", "12.000"]


def test_a_log_gets_all_epochs_before_a_callback_ends_the_run(tmp_path):
    class Fails:
        def on_epoch(self, event):
            raise SystemExit(3)

    with EpochLog(tmp_path) as log:
        callbacks = Callbacks([Fails()], log)
        with pytest.raises(CanvasError, match=r"callback .*Fails failed in on_epoch"):
            callbacks.epochs(EVENT, replace(EVENT, epoch=2))
    assert [row["epoch"] for row in rows(tmp_path / "epochs.csv")] == ["1", "2"]


def test_a_training_that_continues_logs_what_the_log_lacks(tmp_path):
    words = {"model": "resnet8", "data": "synthetic", "images": 100, "width": 2, "threads": 1,
             "say": lambda line: None, "log_dir": tmp_path / "log", "out": tmp_path / "a",
             "epochs": 3}  # fmt: skip

    class Stop:
        def on_epoch(self, event):
            if event.epoch == 2:
                raise RuntimeError("stopped")

    with pytest.raises(CanvasError, match="stopped"):
        canvas.train_network("baseline", callbacks=[Stop()], **words)
    path = tmp_path / "log" / "epochs.csv"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    canvas.train_network("baseline", resume=True, **words)
    assert [row["epoch"] for row in rows(path)] == ["1", "2", "3"]


@pytest.mark.parametrize("what", ["a folder", "another file"])
def test_figures_that_cannot_be_written_end_the_command_before_any_training(what, tmp_path):
    place = tmp_path / "candidates.csv"
    if what == "a folder":
        place.mkdir()
    else:
        place.write_text("keep me")
    with pytest.raises(CanvasError, match=r"candidates.csv' is not a log of Canvas"):
        EpochLog(tmp_path)
    assert place.is_dir() or place.read_text() == "keep me"


def test_figures_that_cannot_be_written_take_no_result_away(tmp_path):
    with EpochLog(tmp_path) as log, Study.open(tmp_path / "study") as study:
        (tmp_path / "candidates.csv").mkdir()
        assert "cannot be written: Is a directory" in Callbacks([], log).summary(study)


# ---- folders ------------------------------------------------------------------------------------


@contextmanager
def full_disk():
    """No file grows meanwhile: writing fails as on a full disk, for another reason."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("file", "'{}' cannot hold a log: it is a file, give a folder"),
        ("file/log", "the log in '{}' cannot be written: Not a directory"),
        ("foreign", "'{}/epochs.csv' is not a log of Canvas: name another --log-dir"),
        ("cut", "'{}/epochs.csv' is not a log of Canvas: name another --log-dir"),
        ("folder", "'{}/epochs.csv' is not a log of Canvas: name another --log-dir"),
        ("bytes", "the log in '{}' cannot be written: 'utf-8' codec"),
    ],
)
def test_a_folder_that_cannot_hold_a_log(place, message, tmp_path, capsys):
    """One message and exit code 2 before anything is begun; nothing of others is changed."""
    (tmp_path / "file").write_text("mine")
    for name, content in (("foreign", b"a,b\n1,2\n3"), ("cut", b"mine"), ("bytes", b"\xff\xfe")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "epochs.csv").write_bytes(content)
    (tmp_path / "folder" / "epochs.csv").mkdir(parents=True)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    for words in (
        [*SEARCH, "--out", str(tmp_path / "out")],
        ["fit", "--model", "resnet8", "--data", "digits", "--out", str(tmp_path / "out")],
        ["train", "baseline", "--model", "resnet8", "--data", "digits", "--images", "100",
         "--out", str(tmp_path / "out")],
    ):  # fmt: skip
        assert main([*words, "--log-dir", str(tmp_path / place)]) == 2
        printed = capsys.readouterr()
        (line,) = printed.err.splitlines()
        assert line.startswith("canvas: " + message.format(tmp_path / place)) and not printed.out
        assert not (tmp_path / "out").exists()
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_a_full_disk_is_one_message(tmp_path):
    failing = pytest.raises(CanvasError, match=r"the log in '.*' cannot be written: File too")
    with full_disk(), failing:
        EpochLog(tmp_path / "new")
    with EpochLog(tmp_path / "log") as log, full_disk(), failing:
        log.on_epoch(EVENT)
    with EpochLog(tmp_path / "log") as log:  # what was cut off is written again
        log.on_epoch(EVENT)
    assert [row["epoch"] for row in rows(tmp_path / "log" / "epochs.csv")] == ["1"]


def test_two_runs_do_not_share_a_log(tmp_path):
    with EpochLog(tmp_path), pytest.raises(CanvasError, match="another run writes the log in"):
        EpochLog(tmp_path)
    with open_log(tmp_path, fresh=True) as log:
        assert log.folder == tmp_path
    with open_log(None, fresh=True) as log:
        assert log is None


def test_without_tensorboard_there_is_csv(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    lines = []
    canvas.train_network(
        "baseline", model="resnet8", data="synthetic", images=100, width=2, epochs=1, threads=1,
        out=tmp_path / "out", log_dir=tmp_path / "log", say=lines.append,
    )  # fmt: skip
    assert lines[0] == epoch_log.NO_EVENTS and 'pip install "canvas-kas[tensorboard]"' in lines[0]
    assert [path.name for path in (tmp_path / "log").rglob("*")] == ["epochs.csv"]
    assert len(rows(tmp_path / "log" / "epochs.csv")) == 1


def test_few_event_files_are_open_at_a_time(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(epoch_log, "OPEN", 2)
    with EpochLog(tmp_path) as log:
        for epoch in (1, 2, 3):
            for name in "abcd":
                log.on_epoch(replace(EVENT, name=name, epoch=epoch, epochs=4))
                assert len(log.writers) <= 2
    check_events(tmp_path)


def test_a_cell_is_no_formula(tmp_path):
    with EpochLog(tmp_path) as log:
        log.on_epoch(replace(EVENT, name="=1+1", metric="@a\nb", value=float("-0.5")))
        log.on_epoch(replace(EVENT, name="=1+1", metric="@a\nb", epoch=1))  # the same once more
    (row,) = rows(tmp_path / "epochs.csv")
    assert (row["name"], row["metric"], row["value"]) == ("'=1+1", "'@a\\nb", "-0.5")

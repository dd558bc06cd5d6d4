"""Rejected finds trained to the end: which, how sure the share is, what is stored."""

import json
import math
from typing import ClassVar

import pytest

from canvas.cli import main
from canvas.errors import CanvasError
from canvas.options import read_options
from canvas.runner import audit as audits
from canvas.runner.audit import audit, interval, lot
from canvas.study import Audited, Study

EPOCHS = 2
DONE = [0.9, 0.8, 0.7]  # accuracies of the finds that were trained to the end
PRUNED = {"10": 0.85, "11": 0.95, "12": 0.1, "13": 0.2}  # what the others would have reached


class FakePool:
    """Children that reach what PRUNED says; a job without it fails."""

    started: ClassVar[list[int]] = []

    def __init__(self, size, memory):
        self.jobs = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def busy(self):
        return self.jobs

    def has_room(self):
        return len(self.jobs) < 2

    def start(self, id, name, limit):
        FakePool.started.append(id)
        self.jobs.append((id, name))

    def answer(self, id, go):
        assert go

    def wait(self, seconds):
        id, name = self.jobs.pop(0)
        if PRUNED[name] is None:
            return [(id, {"event": "failed", "kind": "nan", "reason": "the loss is nan"})]
        epoch = {"event": "epoch", "accuracy": PRUNED[name], "seconds": 1.5}
        return [(id, {"event": "built"}), (id, epoch), (id, {"event": "done"})]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A study of three finds that ended and four that were pruned; nobody trains."""
    monkeypatch.setattr(audits, "Pool", FakePool)
    for reads in ("images_of", "check_code"):
        monkeypatch.setattr(audits, reads, lambda *words: None)
    monkeypatch.setattr(audits, "training_job", lambda study, options, images, row: row.name)
    FakePool.started.clear()
    options = read_options({"model": "resnet8", "data": "digits", "epochs": EPOCHS})
    with Study.open(tmp_path) as study:
        study.begin(options, "images", "abc", (100, 100), "t")
        for number, name in enumerate(["0", "1", "2", *PRUNED]):
            study.add(name, "find", "kernel", "pack", f"hash {name}", 100)
            id = study.select(name=name)[0].id
            study.started(id)
            for epoch in range(EPOCHS if number < len(DONE) else 1):
                accuracy = DONE[number] if number < len(DONE) else 0.05
                study.epoch(id, epoch, accuracy, 1.0, 1.0)
            if name in PRUNED:
                study.finished(id, "pruned", "5.0 % after epoch 1, 10.0 % wanted")
            else:
                study.finished(id, "done")
    return tmp_path


def quiet(folder, count):
    return audit(folder, count, lambda line: None)


def test_the_share_that_would_have_entered_the_best_tenth(folder):
    result = quiet(folder, 4)
    entered = {row.name: result.enters(audited) for row, audited in result.rows}
    assert entered == {"10": False, "11": True, "12": False, "13": False}
    assert (result.finds, result.place, result.bar) == (7, 1, 0.9)
    assert str(result) == (
        "1 of 4 rejected finds, of 4, would have entered the best tenth: 25 % (1 to 81 % with "
        "95 % confidence); the best tenth of 7 finds begins at 90.0 %, place 1"
    )


def test_an_audit_goes_on_with_what_is_there(folder):
    first = {row.id for row, _ in quiet(folder, 2).rows}
    assert set(FakePool.started) == first and len(first) == 2
    assert {row.id for row, _ in quiet(folder, 3).rows} > first
    assert len(FakePool.started) == 3 == len(set(FakePool.started))
    assert len(quiet(folder, 100).rows) == 4


def test_one_that_fails_is_told_and_enters_nothing(folder, monkeypatch):
    monkeypatch.setitem(PRUNED, "11", None)
    result = quiet(folder, 4)
    (failed,) = [audited for row, audited in result.rows if row.name == "11"]
    assert failed == Audited(None, None, "nan: the loss is nan") and not result.enters(failed)


def test_the_lot_follows_from_the_seed_and_is_fair(folder):
    with Study.read(folder) as study:
        rows = study.select("find", audits.REJECTED)
    assert lot(rows, 2, 1) == lot(rows[::-1], 2, 1)
    drawn = [row.name for seed in range(400) for row in lot(rows, 1, seed)]
    assert all(60 < drawn.count(name) < 140 for name in PRUNED)


def test_the_command_prints_a_table_or_rows(folder, capsys):
    assert main(["trials", str(folder), "--audit", "4"]) == 0
    out = capsys.readouterr().out
    assert "best tenth" in out and "10.0 % wanted" in out and "1 of 4 rejected finds" in out
    assert main(["trials", str(folder), "--audit", "4", "-f", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["enters"] for row in rows] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--audit", "0"], "--audit takes a whole number from 1 to 1000000, not '0'"),
        (["--model", "resnet8"], "--model applies to --audit: leave it out, or give both"),
        (["--audit", "1", "--model", "resnet18"], "is of the model 'resnet8', not 'resnet18'"),
    ],
)
def test_what_cannot_be_is_one_message(folder, capsys, words, message):
    assert main(["trials", str(folder), *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("pruned", "has rejected no find: nothing to audit"),
        ("done", "has no find that was trained to the end: nothing to compare with"),
    ],
)
def test_without_either_kind_there_is_nothing_to_audit(folder, gone, message):
    with Study.open(folder) as study, study._transaction():
        study.database.execute("UPDATE task SET state = 'failed' WHERE state = ?", (gone,))
    with pytest.raises(CanvasError, match=message):
        quiet(folder, 1)


def test_where_there_is_no_study_none_is_made(tmp_path):
    with pytest.raises(CanvasError, match="there is no study"):
        quiet(tmp_path / "none", 1)
    assert not (tmp_path / "none").exists()


# ---- how sure a share is ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [(0, 10, 0.0, 0.3085), (1, 10, 0.0025, 0.4450), (5, 10, 0.1871, 0.8129), (10, 10, 0.6915, 1.0),
     (0, 1, 0.0, 0.975)],
)  # fmt: skip
def test_the_interval_is_clopper_and_pearsons(count, total, low, high):
    assert interval(count, total) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("chance", [0.02, 0.1, 0.5])
def test_the_interval_holds_the_chance_as_often_as_it_says(chance):
    total, held = 12, 0.0
    for count in range(total + 1):
        low, high = interval(count, total)
        held += (low <= chance <= high) * (
            math.comb(total, count) * chance**count * (1 - chance) ** (total - count)
        )
    assert held >= 0.95

"""A row once more: equal to the last digit, or the difference is shown."""

import shutil
import sqlite3

import pytest

from canvas.cli import main
from canvas.errors import CanvasError
from canvas.runner.audit import audit
from canvas.runner.driver import search
from canvas.runner.replay import replay
from canvas.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A finished search of two finds."""
    folder = tmp_path_factory.mktemp("study")
    search(
        "resnet8",
        "digits",
        width=4,
        images=400,
        trials=2,
        epochs=2,
        finalists=0,
        seed=2,
        compile="no",
        memory_format="channels_last",
        workers=1,
        out=folder,
        say=lambda line: None,
    )
    return folder


def quiet(folder, name):
    return replay(folder, name, lambda line: None)


def change(folder, statement):
    """The study with something else in it."""
    with sqlite3.connect(folder / "study.db") as database:
        database.execute(statement)
    database.close()


def test_a_row_comes_out_as_recorded_and_is_timed(study):
    again = quiet(study, "0")
    assert again.same and len(again.curve) == 2 and again.curve == again.recorded
    (was, now), *_ = again.timings
    assert was.engine == "eager" and now["ms"] > 0
    assert "the same training" in str(again) and "latency, eager" in str(again)


def test_an_audit_trains_as_the_search_did(study, tmp_path):
    """A find that was trained to the end, called pruned, comes out as recorded."""
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    last = "(SELECT max(candidate) FROM epoch JOIN network ON id = candidate WHERE kind = 'find')"
    change(copy, "UPDATE task SET state = 'pruned' WHERE kind = 'accuracy' AND state = 'done' AND "
                 f"candidate = {last}")  # fmt: skip
    rows = audit(copy, 9, lambda line: None).rows  # others were rejected before their training
    ((row, audited),) = [pair for pair in rows if pair[0].status == "pruned"]
    with Study.read(copy) as studied:
        whole = studied.curve(row.id)[-1]  # from the search's own seed; the row's may be a mean
    assert row.status == "pruned" and audited.accuracy == whole


def test_the_unchanged_network_can_be_repeated_without_its_images(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    shutil.rmtree(copy / "images")
    assert quiet(copy, "baseline").same


def test_another_curve_is_told_with_what_is_different(study, tmp_path, capsys):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    change(copy, "UPDATE epoch SET accuracy = accuracy / 2")
    change(copy, "UPDATE session SET versions = json_set(versions, '$.torch', '0.1')")
    assert main(["replay", str(copy), "1x1"]) == 1
    out = capsys.readouterr().out
    assert "another training than recorded (torch " in out and "instead of 0.1" in out


def test_a_pruned_row_ends_where_it_ended(study, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    change(copy, "DELETE FROM epoch WHERE number = 1")
    change(copy, "UPDATE task SET state = 'pruned' WHERE kind = 'accuracy'")
    again = quiet(copy, "1x1")
    assert again.same and len(again.curve) == 1


@pytest.mark.parametrize(
    ("statement", "name", "words"),
    [
        ("", "99", "has no candidate '99'"),
        ("UPDATE task SET state = 'queued'", "0", "was not trained yet"),
        ("UPDATE network SET pack = ''", "1x1", "never had sizes: "),
        ("UPDATE study SET data_checksum = 'x'", "0", "are not those of the study"),
    ],
)
def test_what_cannot_be_repeated_is_one_message(study, tmp_path, statement, name, words):
    copy = tmp_path / "copy"
    shutil.copytree(study, copy)
    if statement:
        change(copy, statement)
    with pytest.raises(CanvasError, match=words):
        quiet(copy, name)

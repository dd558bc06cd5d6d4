"""A study or a training that somebody else made: nothing that its text names is run, and whatever
is wrong with it is one message.
"""

import json
import shutil
import sqlite3
import sys

import pytest
from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas import cli
from canvas.data import load_data
from canvas.data.stored import store
from canvas.deploy.trainer import train_network
from canvas.options import OPTIONS, read_option

MODEL = "planted_by_a_study:build"
PLANTED = """
open("imported", "w").close()
from canvas.models import resnet8
def build(channels, classes):
    return resnet8(channels, classes, width=2)
"""


def change(folder, statement, *values):
    with sqlite3.connect(folder / "study.db") as database:
        database.execute(statement, values)
    database.close()


def set_option(folder, name, value):
    """Store `value`, a JSON text, as option `name`."""
    for table in ("study", "session"):
        change(folder, f"UPDATE {table} SET options = json_set(options, ?, json(?))",
               f"$.{name}", value)  # fmt: skip


def one_message(capsys, words, code=2):
    assert cli.main(list(map(str, words))) == code
    printed = capsys.readouterr()
    assert printed.out == "" and len(printed.err.splitlines()) == 1
    assert printed.err.startswith("canvas: ") and printed.err[:-1].isprintable()
    return printed.err


@pytest.fixture
def study(tmp_path):
    folder = make_study(tmp_path / "run", CONTROLS + FINDS)
    store(load_data("digits", images=100), folder / "images")
    return folder


# ---- code that a text names ---------------------------------------------------------------------


@pytest.fixture
def planted(tmp_path, monkeypatch):
    """The current folder holds a module that leaves a file where it is imported."""
    here = tmp_path / "here"
    here.mkdir()
    (here / "planted_by_a_study.py").write_text(PLANTED)
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield here / "imported"
    sys.modules.pop("planted_by_a_study", None)


def other_folder(study, tmp_path):
    """The folder of a training that names the planted module."""
    train_network(study / "baseline", epochs=1, width=2, out=tmp_path / "t", threads=1)
    path = tmp_path / "t/checkpoint.safetensors"
    from canvas.training import checkpoint

    tensors, facts = checkpoint.read(path)
    facts["options"]["model"] = MODEL
    checkpoint.write(path, tensors, facts)
    return tmp_path / "t"


def test_no_module_that_a_file_names_is_imported(study, planted, tmp_path, capsys):
    training = other_folder(study, tmp_path)
    set_option(study, "model", json.dumps(MODEL))
    capsys.readouterr()
    for words in (
        ["train", study / "baseline"],
        ["export", study / "baseline", "--out", "e"],
        ["export", training, "--out", "e"],
        ["train", training, "--epochs", "2"],
        ["replay", study, "baseline"],
    ):
        message = one_message(capsys, words)
        assert (
            f"names the model '{MODEL}', which is code: give the same name as the option"
            in message
        )
    assert cli.main(["pareto", str(study)]) == 0
    assert not planted.exists() and "planted_by_a_study" not in sys.modules
    assert not (tmp_path / "here/e").exists()


def test_it_is_imported_when_the_user_names_it(study, planted, capsys):
    set_option(study, "model", json.dumps(MODEL))
    words = ["export", str(study / "baseline"), "--out", "e", "--model", MODEL]
    assert cli.main(words) == 0
    assert planted.exists()
    capsys.readouterr()
    message = one_message(capsys, ["replay", study, "baseline", "--model", "resnet8"])
    assert f"is of the model '{MODEL}', not 'resnet8'" in message


def test_the_current_folder_is_no_place_to_import_from_otherwise(study, planted, capsys):
    assert cli.main(["export", str(study / "baseline"), "--out", "e"]) == 0
    assert str(planted.parent) not in sys.path


# ---- damaged options ----------------------------------------------------------------------------

WRONG = ["{}", "[]", '"\\u001b[31m"', "1" * 30, "-1", "true", "1e999", '""', '"x"', "0.5", "[[1]]",
         '"' + "9" * 5000 + '"']  # fmt: skip


def commands(folder):
    return [
        ["trials", folder],
        ["pareto", folder],
        ["pareto", folder, "--plot", "-"],
        ["report", folder],
        ["train", folder / "baseline"],
        ["export", folder / "baseline", "--out", folder / "e"],
        ["replay", folder, "baseline"],
        ["search", "--model", "resnet8", "--data", "digits", "--out", folder],
    ]


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_damaged_option_is_one_message(study, capsys, option):
    for number, value in enumerate(WRONG):
        try:
            read_option(option, json.loads(value))
        except ValueError:
            set_option(study, option.name, value)
            command = commands(study)[number % 7]  # every one meets every kind over the options
            assert "is damaged (its options: " in one_message(capsys, command)
            assert option.flag in one_message(capsys, ["trials", study])


@pytest.mark.parametrize(
    "text", ["", "{", "null", "[1]", '"x"', "7", "{}", "[" * 100000, "\x00", '{"model": "resnet8"']
)
def test_damaged_json_is_one_message(study, capsys, text):
    change(study, "UPDATE study SET options = ?", text)
    for command in commands(study):
        assert "is damaged (" in one_message(capsys, command)


def test_an_option_that_is_missing_has_its_default(study, capsys):
    for option in OPTIONS:
        if option.name not in ("model", "data"):
            change(study, "UPDATE study SET options = json_remove(options, ?)", f"$.{option.name}")
            assert cli.main(["pareto", str(study)]) == 0


@pytest.mark.parametrize("column", ["options", "versions", "machine"])
def test_damaged_sessions_are_one_message(study, capsys, column):
    change(study, f"UPDATE session SET {column} = '['")
    assert "is damaged (no JSON" in one_message(capsys, ["pareto", study])


@pytest.mark.parametrize("value", ["x", "1", "[]", "null", "{}"])
def test_a_damaged_training_is_one_message(study, tmp_path, capsys, value):
    from canvas.training import checkpoint

    train_network(study / "baseline", epochs=1, width=2, out=tmp_path / "t", threads=1)
    path = tmp_path / "t/checkpoint.safetensors"
    tensors, facts = checkpoint.read(path)
    (tmp_path / "t/result.json").write_text(value)
    capsys.readouterr()
    assert "is not the result" in one_message(capsys, ["export", tmp_path / "t", "--out", "e"])
    for name in facts:
        checkpoint.write(path, tensors, {**facts, name: json.loads(value) if value != "x" else 9})
        assert cli.main(["export", str(tmp_path / "t"), "--out", str(tmp_path / "e")]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("name", ["train_images", "test_labels"])
@pytest.mark.parametrize(
    "change_bytes",
    [
        lambda b: b"",
        lambda b: b"PK",
        lambda b: b"no array at all",
        lambda b: b[: len(b) // 2],
        lambda b: b.replace(b"descr", b"order"),
        lambda b: b[:-2] + b"\1" + b[-1:],
    ],
)
def test_damaged_images_are_one_message(study, tmp_path, capsys, change_bytes, name):
    path = study / f"images/{name}.npy"
    before = path.read_bytes()
    path.write_bytes(change_bytes(before))
    assert path.read_bytes() != before
    for words in (["export", study / "baseline", "--out", tmp_path / "e"],
                  ["train", study / "baseline", "--out", tmp_path / "t"]):  # fmt: skip
        assert f"the images in '{study / 'images'}' are damaged: " in one_message(capsys, words)


@pytest.mark.parametrize(
    "facts", ["", "[]", "{}", '{"classes": "x"}', "7", '{"augmentation": {"x": 1}}', "\x1b["]
)
def test_damaged_facts_of_images_are_one_message(study, tmp_path, capsys, facts):
    (study / "images/facts.json").write_text(facts)
    words = ["export", study / "baseline", "--out", tmp_path / "e"]
    assert "are damaged: " in one_message(capsys, words)


# ---- what a terminal would obey -----------------------------------------------------------------

EVIL = "a\x1b[2Jb\rc\nd\x07e\u202ef\u2028g\x9bh"


def test_stored_text_is_escaped_wherever_it_is_printed(study, capsys):
    add_finals(study, {"3": [0.5, 0.6], "baseline": [0.9, 0.9]})
    change(study, "UPDATE network SET name = name || ?1 WHERE kind <> 'find'", EVIL)
    for table, columns in (
        ("task", ("reason", "log")),
        ("network", ("budget", "engine", "origin", "parents")),
    ):
        for column in columns:
            change(study, f"UPDATE {table} SET {column} = ?", EVIL)
    change(study, "INSERT INTO draw VALUES (999, 'duplicate', ?)", EVIL)
    change(study, "UPDATE study SET data = ?, targets = ?", EVIL, EVIL)
    change(study, "UPDATE session SET machine = json_object('processor', ?)", EVIL)
    change(study, "INSERT INTO timing SELECT id, 'eager', 1, 1, 1, 1, ?1, 1, ?1, 1, 1, 1 "
           "FROM candidate", EVIL)  # fmt: skip
    change(study, "INSERT INTO timing SELECT id, 'compiled', 1, 1, 1, 1, ?1, 1, ?1, 1, 1, 1 "
           "FROM candidate", EVIL)  # fmt: skip
    for words in (
        ["trials"],
        ["trials", "-f", "csv"],
        ["trials", "-f", "json"],
        ["pareto"],
        ["pareto", "-f", "csv"],
        ["pareto", "-f", "json"],
        ["pareto", "--plot", "-"],
        ["report", "--html", "-"],
    ):
        assert cli.main([words[0], str(study), *words[1:]]) == 0
        out = capsys.readouterr().out
        assert "a\\x1b[2Jb\\rc\\nd" in out or "a\\u001b[2Jb\\rc\\nd" in out
        assert all(line.isprintable() for line in out.split("\n"))


def test_a_merged_table_is_escaped(study, tmp_path, capsys):
    other = tmp_path / "other"
    shutil.copytree(study, other)
    change(other, "UPDATE study SET created = created + 1")
    for place in (study, other):
        change(place, "UPDATE network SET name = ? WHERE name = '1x1'", EVIL)
        change(place, "UPDATE session SET machine = json_object('processor', ?)", EVIL)
    for form in ("table", "csv", "json"):
        assert cli.main(["study", "merge", str(study), str(other), "-f", form]) == 0
        out = capsys.readouterr().out
        assert "a\\x1b[2Jb\\rc\\nd" in out or "a\\u001b[2Jb\\rc\\nd" in out
        assert all(line.isprintable() for line in out.split("\n"))


def test_an_error_message_is_escaped(study, capsys):
    change(study, "UPDATE task SET reason = ?", EVIL)
    assert "\\x1b" in one_message(capsys, ["train", study / "1x1"])
    assert "\\x1b" in one_message(capsys, ["train", study / "\x1b[2J"])


def test_a_find_is_called_by_a_number(study, capsys):
    change(study, "UPDATE network SET name = ? WHERE name = '3'", EVIL)
    for command in commands(study)[:4]:
        assert "is damaged (a find is called 'a\\x1b" in one_message(capsys, command)

"""What a search removes and writes beside its study: its own files, and none behind a link."""

import os
from pathlib import Path

import pytest
from made_study import CONTROLS, FINDS, make_study

from canvas import _core
from canvas.data import load_data, stored
from canvas.errors import CanvasError
from canvas.files import temporary_name
from canvas.nn.controls import IDENTITY
from canvas.reporting.report import write_finds
from canvas.study import Study, forget_kept, keeps, kept_file, remove_kept, writing


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A folder of the user's with files of all names that a search writes."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    for name in ("3.safetensors", "mine.safetensors", "pack.txt", "kernel.txt", "kernel.py",
                 "facts.json", "train_images.npy", "notes"):  # fmt: skip
        (folder / name).write_text("mine")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_study(tmp_path / "s", CONTROLS + FINDS)


def untouched(theirs: Path) -> bool:
    return len(os.listdir(theirs)) == 8 and all(p.read_text() == "mine" for p in theirs.iterdir())


def test_kept_trainings_behind_a_link_are_neither_removed_nor_made(
    folder: Path, theirs: Path
) -> None:
    (folder / "rungs").symlink_to(theirs)
    assert not keeps(folder)
    forget_kept(folder, ["3"])
    remove_kept(folder, ["3", "mine"])
    assert untouched(theirs) and (folder / "rungs").is_symlink()
    from canvas.training.kept import Kept

    class Training:
        done = 1

        def state(self) -> dict[str, object]:
            return {}

    Kept(kept_file(folder, "3"), {}).store(Training())  # type: ignore[arg-type]
    assert untouched(theirs)


def test_of_kept_trainings_only_those_of_the_study_are_removed(folder: Path) -> None:
    assert keeps(folder) and keeps(folder)
    rungs = folder / "rungs"
    left = temporary_name("3.safetensors")
    mine = ["mine.safetensors", "9.safetensors", ".3.safetensors.new", temporary_name("mine")]
    for name in ("3.safetensors", "4.safetensors", left, *mine):
        (rungs / name).write_text("x")
    remove_kept(folder, ["0", "3", "4"])
    assert sorted(os.listdir(rungs)) == sorted(mine)
    for name in mine:
        (rungs / name).unlink()
    remove_kept(folder, ["0", "3", "4"])
    assert not rungs.exists()


def test_a_link_among_kept_trainings_is_removed_and_not_its_file(
    folder: Path, theirs: Path
) -> None:
    assert keeps(folder)
    kept_file(folder, "3").symlink_to(theirs / "3.safetensors")
    remove_kept(folder, ["3"])
    assert untouched(theirs) and not (folder / "rungs").exists()


@pytest.mark.parametrize("name", ["rungs", "images", "find-0003", "find-0003/deep"])
def test_fresh_follows_no_link(name: str, folder: Path, theirs: Path) -> None:
    if "/" in name:
        (folder / "find-0003").mkdir()
        (folder / "find-0003/pack.txt").touch()
    (folder / name).symlink_to(theirs)
    with Study.open(folder, fresh=True) as study:
        assert study.candidates() == []
    assert untouched(theirs) and (folder / name).is_symlink()


def test_fresh_keeps_what_a_user_put_beside(folder: Path) -> None:
    names = ("find-0003/notes", ".find-0003.new/a", ".find-0.x/b", "find-x/pack.txt", "rungs/n",
             "images/mine.npy", "data.npz", ".pareto.csv.new", ".study.db.new")  # fmt: skip
    for name in (*names, "find-0003/pack.txt", "find-0003/kernel.py", "rungs/3.safetensors",
                 "images/facts.json", "pareto.csv", "report.html", "layer.safetensors",
                 "find-0004/pack.txt"):  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x")
    (folder / temporary_name("find-0004")).mkdir()
    with Study.open(folder, fresh=True):
        pass
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert left - {"study.db", "study.db-wal", "study.db-shm", "study.lock"} == set(names)
    assert not list(folder.glob("*find-0004*"))


def test_images_are_not_written_through_a_link(tmp_path: Path, theirs: Path) -> None:
    data, folder = load_data("digits", images=100), tmp_path / "images"
    folder.symlink_to(theirs)
    refused = pytest.raises(CanvasError, match=r"cannot be written: '.*images' is a symbolic link")
    with refused, writing(tmp_path):
        stored.store(data, folder)
    assert untouched(theirs)
    stored.store(data, tmp_path / "elsewhere")
    folder.unlink()
    folder.symlink_to("elsewhere")
    stored.store(data, folder)  # the same are there: nothing is written
    assert folder.is_symlink()


def with_texts(folder: Path) -> None:
    targets = Path(__file__).resolve().parents[2] / "examples/targets/resnet18.txt"
    pack = _core.solve(IDENTITY, targets.read_text(), "macs=2x", "exempt=1")
    with Study.open(folder) as study:
        study.database.execute("UPDATE network SET kernel = ?, pack = ?", (pack, pack))


def test_a_find_is_written_into_no_link_and_takes_nothing_away(folder: Path, theirs: Path) -> None:
    with_texts(folder)
    (theirs / "pack.txt").unlink()
    (folder / "find-0003").symlink_to(theirs)
    with Study.open(folder) as study:
        refused = pytest.raises(CanvasError, match=r"'.*find-0003' is a symbolic link")
        with refused, writing(folder):
            write_finds(study)
        assert (theirs / "kernel.txt").read_text() == "mine" and len(os.listdir(theirs)) == 7
        (folder / "find-0003").unlink()
        (folder / "find-0003").mkdir()
        (folder / "find-0003/notes").write_text("mine")
        (folder / "find-0003/kernel.txt").write_text("half")  # an older canvas was killed
        write_finds(study)
    assert (folder / "find-0003/notes").read_text() == "mine"
    assert sorted(os.listdir(folder / "find-0003")) == [
        "kernel.py", "kernel.txt", "notes", "pack.txt",
    ]  # fmt: skip
    assert "half" not in (folder / "find-0003/kernel.txt").read_text()

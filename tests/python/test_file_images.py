"""Images that stay in their files: the same numbers, little memory, an index, broken files."""

import errno
import json
import os
import time

import numpy as np
import pytest
import torch
from PIL import Image

import canvas
from canvas.data import SPLITS, file_images, folder_scan, images_folder, stored
from canvas.data import augment as augment_of
from canvas.data.batches import DataFailed
from canvas.data.images import Requested
from canvas.data.images_folder import read_folder, unreadable
from canvas.data.remarks import Remarks
from canvas.study import Study

SIDE = 8


def plant(root, classes=3, count=20, splits=("train",)):
    """Noise around a colour for each class, as files; returns the name of the data."""
    random = np.random.default_rng(0)
    for split in splits:
        for label in range(classes):
            folder = root / split / f"c{label}"
            folder.mkdir(parents=True)
            for i in range(count):
                pixels = random.integers(0, 120, (SIDE, SIDE, 3)) + 60 * label
                Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i:03}.png")
    make_old(root)
    return f"folder:{root}"


def make_old(root):
    """Folders that were changed a moment ago are listed again."""
    for folder, _, _ in os.walk(root):
        os.utime(folder, (1e9, 1e9))


@pytest.fixture
def in_files(monkeypatch):
    monkeypatch.setattr(images_folder, "IN_MEMORY", 0)


def read(name, **words):
    return read_folder(name, name.partition(":")[2], Requested(**words))


def batches(data, seed=3):
    order, chance = torch.Generator().manual_seed(seed), augment_of.generator(seed)
    return list(data.epoch(7, order, chance))


def test_files_give_the_numbers_that_memory_gives(tmp_path, monkeypatch):
    name = plant(tmp_path, splits=("train", "val", "test"))
    memory = read(name)
    monkeypatch.setattr(images_folder, "IN_MEMORY", 0)
    files = read(name)
    assert not torch.is_tensor(files.train[0]) and torch.is_tensor(memory.train[0])
    assert files.description.replace("; decoded batch by batch", "") == memory.description
    assert (files.mean, files.deviation) == (memory.mean, memory.deviation)
    assert (files.shape, files.classes) == (memory.shape, memory.classes)
    for one, other in zip(batches(files), batches(memory), strict=True):
        assert torch.equal(one[0], other[0]) and torch.equal(one[1], other[1])
    for split in SPLITS:
        images, labels = getattr(files, split)
        whole = getattr(memory, split)[0]
        assert torch.equal(labels, getattr(memory, split)[1])
        assert torch.equal(images[:], whole) and torch.equal(images[3], whole[3])
        assert torch.equal(images[-2:], whole[-2:])
        assert torch.equal(images[labels == 1], whole[labels == 1])
        assert torch.equal(torch.cat(list(images.split(7))), whole)
        scored = zip(files.scoring(split), memory.scoring(split), strict=True)
        assert all(torch.equal(one[0], other[0]) for one, other in scored)
    plain = [list(data.epoch(7, *generators()).plain(2)) for data in (files, memory)]
    assert all(torch.equal(a[0], b[0]) for a, b in zip(*plain, strict=True))


def generators():
    return torch.Generator().manual_seed(1), augment_of.generator(1)


def test_what_is_stored_is_which_files(tmp_path, in_files):
    data = read(plant(tmp_path / "images"))
    kept = tmp_path / "kept"
    seal = stored.store(data, kept)
    assert sum(place.stat().st_size for place in kept.iterdir()) < 20_000
    assert stored.has(kept)
    mapped, again = stored.Mapped(kept, seal), stored.read(kept)
    for split in SPLITS:
        whole = getattr(data, split)[0][:]
        assert torch.equal(getattr(mapped, split)[0][:], whole)
        assert torch.equal(getattr(again, split)[0][:], whole)
    assert again.checksum == data.checksum and again.description == data.description


@pytest.mark.parametrize("part", ["names", "ends", "states", "labels"])
@pytest.mark.parametrize("how", ["cut", "empty", "other", "gone"])
def test_damaged_lists_are_one_message(tmp_path, in_files, part, how):
    kept = tmp_path / "kept"
    seal = stored.store(read(plant(tmp_path / "images")), kept)
    place = kept / f"train_{part}.npy"
    data = place.read_bytes()
    if how == "gone":
        place.unlink()
    else:
        place.write_bytes({"cut": data[:-9], "empty": b"", "other": data[:-1] + b"\7"}[how])
    with pytest.raises(canvas.CanvasError) as caught:
        _ = stored.Mapped(kept, seal).train[0][:]
    assert "\n" not in str(caught.value)


# ---- the index ----------------------------------------------------------------------------------


def scans(monkeypatch):
    """How often a folder is listed."""
    calls = []
    real = folder_scan.scan
    monkeypatch.setattr(images_folder, "scan", lambda root: calls.append(root) or real(root))
    return calls


def indexed(name, beside):
    data = read(name, beside=beside)
    images_folder.keep_beside(data, beside)
    return data


def test_folders_are_listed_once(tmp_path, in_files, monkeypatch):
    name = plant(tmp_path / "images", splits=("train", "test"))
    (tmp_path / "images" / "train" / "c0" / "notes.txt").write_text("no image")
    make_old(tmp_path)
    calls, beside = scans(monkeypatch), tmp_path / "kept"
    first = indexed(name, beside)
    monkeypatch.setattr(images_folder, "moments", lambda images: pytest.fail("decoded again"))
    second = indexed(name, beside)
    assert len(calls) == 1
    assert (first.checksum, first.description) == (second.checksum, second.description)
    assert "1 file that is no image" in second.description


def add(root):
    Image.new("RGB", (SIDE, SIDE)).save(root / "train" / "c1" / "new.png")


def remove(root):
    (root / "train" / "c1" / "003.png").unlink()


def rename(root):
    for split in ("train", "test"):
        (root / split / "c1").rename(root / split / "c9")


def add_deep(root):
    (root / "train" / "c1" / "deep").mkdir()
    Image.new("RGB", (SIDE, SIDE)).save(root / "train" / "c1" / "deep" / "new.png")


def add_split(root):
    plant(root, splits=("val",))
    os.utime(root, (1.1e9, 1.1e9))


@pytest.mark.parametrize("change", [add, remove, rename, add_deep, add_split])
def test_changed_folders_are_listed_again(tmp_path, in_files, monkeypatch, change):
    name = plant(tmp_path / "images", splits=("train", "test"))
    calls, beside = scans(monkeypatch), tmp_path / "kept"
    first = indexed(name, beside)
    change(tmp_path / "images")
    assert read(name, beside=beside).checksum == read(name).checksum != first.checksum
    assert len(calls) == 3


def test_a_folder_that_changed_a_moment_ago_is_listed_again(tmp_path, in_files, monkeypatch):
    name = plant(tmp_path / "images")
    os.utime(tmp_path / "images" / "train" / "c1")
    calls, beside = scans(monkeypatch), tmp_path / "kept"
    indexed(name, beside)
    indexed(name, beside)
    assert len(calls) == 2


def spoil(how):
    def damage(place):
        data = place.read_bytes()
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        place.write_bytes({"cut": data[: len(data) // 2], "empty": b"", "bit": changed}[how])

    return damage


def other_arrays(**changes):
    def damage(place):
        with np.load(place) as arrays:
            kept = dict(arrays)
        for name, change in changes.items():
            kept[name] = change(kept[name])
        with open(place, "wb") as file:
            np.savez(file, **kept)

    return damage


def other_facts(**changes):
    def change(data):
        facts = json.loads(data.tobytes()) | changes
        return np.frombuffer(json.dumps(facts).encode(), np.uint8)

    return other_arrays(facts=change)


@pytest.mark.parametrize(
    "damage",
    [
        *map(spoil, ("cut", "empty", "bit")),
        other_arrays(train_counts=lambda counts: counts[:-1]),
        other_arrays(train_counts=lambda counts: counts + 1),
        other_arrays(train_states=lambda states: states[:-1]),
        other_arrays(train_names=lambda names: np.frombuffer(b"/etc/passwd\0" * 60, np.uint8)),
        other_facts(folders={"/nowhere": 1}),
        other_facts(folders=3),
        other_facts(classes=["a"]),
        other_facts(sources=["test"]),
        other_facts(root=["/", "/"]),
        other_facts(left={"what": 1}),
        other_facts(begun="nan"),
    ],
)
def test_a_damaged_index_is_none(tmp_path, in_files, monkeypatch, damage):
    name = plant(tmp_path / "images")
    calls, beside = scans(monkeypatch), tmp_path / "kept"
    first = indexed(name, beside)
    damage(beside / folder_scan.INDEX)
    assert read(name, beside=beside).checksum == first.checksum
    assert len(calls) == 2


def test_few_images_are_decoded_whatever_an_index_says(tmp_path, monkeypatch):
    name = plant(tmp_path / "images")
    with monkeypatch.context() as patch:
        patch.setattr(images_folder, "IN_MEMORY", 0)
        indexed(name, tmp_path / "kept")
    repaint(tmp_path / "images" / "train" / "c0" / "000.png")
    assert read(name, beside=tmp_path / "kept").checksum == read(name).checksum


# ---- files that change, or cannot be read -------------------------------------------------------


def repaint(path):
    Image.new("RGB", (SIDE, SIDE), (1, 2, 3)).save(path)
    os.utime(path, (2e9, 2e9))


def longer(path):
    when = path.stat().st_mtime
    path.write_bytes(path.read_bytes() + b" ")
    os.utime(path, (when, when))


@pytest.mark.parametrize(
    ("change", "words"),
    [(repaint, "is another"), (longer, "is another"), (os.unlink, "is gone")],
)
def test_a_file_that_changes_ends_the_run(tmp_path, in_files, change, words):
    data = read(plant(tmp_path))
    before = data.checksum
    names = [data.train[0].name(at) for at in range(len(data.train[0]))]
    change(tmp_path / names[5])
    with pytest.raises(DataFailed, match=f"{names[5]}' {words} since the folder was listed"):
        batches(data)
    if change is not os.unlink:
        assert read(f"folder:{tmp_path}").checksum != before


def break_some(data, root, count):
    names = sorted(data.train[0].name(at) for at in range(len(data.train[0])))[:count]
    for name in names:
        (root / name).write_bytes(b"GIF89a")
    make_old(root)
    return names


def test_broken_files_are_grey_noted_and_told_once(tmp_path, in_files):
    root, beside = tmp_path / "images", tmp_path / "kept"
    names = break_some(read(plant(root, count=50)), root, 3)
    data = indexed(f"folder:{root}", beside)
    lines = []
    remarks = Remarks(data, lines.append)
    remarks.waited(0.0)
    images = data.train[0]
    grey = torch.tensor(file_images.GREY / 255)
    expected = (grey - torch.tensor(data.mean)) / torch.tensor(data.deviation)
    at = [images.name(i) in names for i in range(len(images))]
    assert (images[torch.tensor(at)] - expected[:, None, None]).abs().max() < 1e-5
    for _ in range(2):
        batches(data)
        remarks.waited(0.0)
    assert len(lines) <= 2 and "3 image files are grey: they cannot be read" in lines[-1]
    notes = [json.loads(line) for line in (beside / file_images.NOTES).read_text().splitlines()]
    assert sorted(note["file"] for note in notes) == names
    assert f"'{min(names)}': it is no image of a kind" in unreadable(data)


def test_notes_of_other_processes_are_told_and_damaged_ones_are_none(tmp_path, in_files):
    data = indexed(plant(tmp_path / "images"), tmp_path / "kept")
    assert unreadable(data) == ""
    place = tmp_path / "kept" / file_images.NOTES
    place.write_text(
        'nonsense\n{"file": 3}\n[1]\n{"file": "a.png", "why": "it is no image"}\n{"fi'
    )
    assert unreadable(data) == (
        "1 image file is grey: it cannot be read ('a.png': it is no image)"
    )
    batches(data)  # what is noted changes no result
    assert not (data.train[0][:] == 128 / 255).all(dim=(1, 2, 3)).any()


def test_many_broken_files_end_the_run(tmp_path, in_files):
    name = plant(tmp_path, count=50)
    break_some(read(name), tmp_path, 30)
    with pytest.raises(
        DataFailed, match=r"cannot be read: it is no image .*; \d+ other images of"
    ):
        read(name)


def test_notes_that_cannot_be_written_change_nothing(tmp_path, in_files):
    root = tmp_path / "images"
    break_some(read(plant(root, count=50)), root, 3)
    data = indexed(f"folder:{root}", tmp_path / "kept")
    data.train[0].notes.place = tmp_path / "nowhere" / "notes"
    data.train[0].notes.found.clear()
    batches(data)
    assert "3 image files" in unreadable(data)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EIO, errno.ENOMEM, errno.ESTALE])
def test_what_the_system_cannot_do_is_no_grey_image(tmp_path, in_files, monkeypatch, number):
    data = read(plant(tmp_path))

    def fail(path):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Image, "open", fail)
        with pytest.raises(DataFailed, match="the same command goes on"):
            batches(data)
    assert unreadable(data) == "" and batches(data)


def test_a_file_without_permission_ends_the_run(tmp_path, in_files, monkeypatch):
    data = read(plant(tmp_path))
    real, name = os.stat, data.train[0].name(3)

    def denied(path, *rest, **words):
        if str(path).endswith(name):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path, *rest, **words)

    data.train[0].states[3] = folder_scan.NOT_THERE  # as listing such a folder leaves it
    monkeypatch.setattr(os, "stat", denied)
    with pytest.raises(DataFailed, match=f"{name}' cannot be read: Permission denied"):
        batches(data)


def test_a_note_is_written_once_by_all_processes(tmp_path, in_files):
    root, beside = tmp_path / "images", tmp_path / "kept"
    break_some(read(plant(root, count=50)), root, 3)
    for _ in range(3):  # as each training of a search does
        batches(indexed(f"folder:{root}", beside))
    assert len((beside / file_images.NOTES).read_text().splitlines()) == 3


# ---- all of it ----------------------------------------------------------------------------------


SHORT = {
    "model": "resnet8", "width": 4, "budget": "macs=0.5x", "trials": 1, "epochs": 2,
    "finalists": 0, "memory_format": "contiguous", "pretests": "no", "compile": "no",
    "latency": "none", "progress": "off", "workers": 1,
}  # fmt: skip


def test_a_search_on_files_finds_what_one_in_memory_finds(tmp_path, monkeypatch):
    name = plant(tmp_path / "images", count=40, splits=("train", "val", "test"))
    words = SHORT | {"finalists": 1, "final_seeds": 2, "workers": 2}
    curves = []
    for at, limit in enumerate((1 << 30, 0)):
        monkeypatch.setattr(images_folder, "IN_MEMORY", limit)
        canvas.search(data=name, out=tmp_path / f"out-{at}", **words)
        with Study.read(tmp_path / f"out-{at}") as study:
            rows = study.candidates()
            curves.append([(row.name, row.status, row.val_accuracy, row.tests) for row in rows])
    assert curves[0] == curves[1]
    assert (tmp_path / "out-1" / "images" / "train_names.npy").exists()
    assert not (tmp_path / "out-1" / "images" / "train_images.npy").exists()


def test_changed_files_end_a_search_and_it_goes_on_when_they_are_back(tmp_path, in_files):
    name = plant(tmp_path / "images", count=40)
    words = SHORT | {"data": name}
    out = tmp_path / "out"
    canvas.search(out=out, **words)
    data = read(name)
    path = tmp_path / "images" / data.train[0].name(0)
    kept = path.read_bytes(), path.stat().st_mtime
    path.write_bytes(kept[0] + b" ")
    with pytest.raises(canvas.CanvasError, match="is another since the folder was listed"):
        canvas.search(out=out, **words | {"trials": 2})
    path.write_bytes(kept[0])
    os.utime(path, (kept[1], kept[1]))
    report = canvas.search(out=out, **words | {"trials": 2})
    assert report is not None


def test_a_fit_on_files(tmp_path, in_files):
    name = plant(tmp_path / "images", classes=3, count=60, splits=("train", "val", "test"))
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.BatchNorm2d(8), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, 3),
    )  # fmt: skip
    data = read(name)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(8):
        for images, labels in batches(data):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
    found = canvas.fit(
        network.eval(), data, budget="macs=0.5x", draws=0, epochs=1, longer=1, final_seeds=1,
        latency="none", progress="off", out=tmp_path / "out",
    )  # fmt: skip
    assert any(one.tests for one in found.candidates)
    assert (tmp_path / "out" / "images" / folder_scan.INDEX).exists()


def test_memory_does_not_grow_with_the_images(tmp_path, in_files):
    """Of 2,000 images of 224 pixels, 1.2 GB as numbers, only a few batches are there at a time."""
    source = tmp_path / "images" / "train"
    for label in range(2):
        (source / f"c{label}").mkdir(parents=True)
        first = source / f"c{label}" / "0.jpg"
        Image.new("RGB", (40, 40), (90 * label, 3, 3)).save(first)
        for i in range(1, 1000):
            os.link(first, source / f"c{label}" / f"{i}.jpg")
    begun = time.monotonic()
    before = peak()
    data = read(f"folder:{tmp_path / 'images'}", image_size=224, normalize=False)
    for _ in data.epoch(16, *generators()):
        if time.monotonic() - begun > 20:
            break
    assert peak() - before < 300 << 20


def peak():
    """Bytes of memory that this process has had at most."""
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) << 10

"""CIFAR's binary form, from the archive and from the folder; pickles are never loaded."""

import dataclasses
import io
import pickle
import tarfile

import numpy as np
import pytest
import torch

import canvas.data.images_cifar as module
from canvas.data import load_data
from canvas.data.augment import Augmentation
from canvas.errors import CanvasError

PER_FILE = 40
REAL = (module.CIFAR10, module.CIFAR100)


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """The real form with fewer records per file."""
    for name, real, count in zip(("CIFAR10", "CIFAR100"), REAL, (PER_FILE, 5 * PER_FILE)):
        train, test = dict.fromkeys(real.train, count), dict.fromkeys(real.test, count)
        monkeypatch.setattr(module, name, dataclasses.replace(real, train=train, test=test))


def content(form, file):
    """Records whose label is i % classes; a pixel is the label, + 100 in green, + 50 in row 1."""
    count = form.files[file]
    records = np.zeros((count, form.label_bytes + 3 * 32 * 32), np.uint8)
    labels = np.arange(count) % form.classes
    records[:, 0] = 19  # CIFAR-100: a coarse label that must not be taken
    records[:, form.label_bytes - 1] = labels
    pixels = records[:, form.label_bytes :].reshape(count, 3, 32, 32)
    pixels += labels[:, None, None, None].astype(np.uint8)
    pixels[:, 1] += 100
    pixels[:, :, 1] += 50
    return records.tobytes()


def contents(form):
    return {file: content(form, file) for file in form.files}


def folder(root, files, name="files"):
    (root / name).mkdir()
    for file, data in files.items():
        (root / name / file).write_bytes(data)
    return root / name


def archive(root, files, inside="some-folder"):
    with tarfile.open(root / "archive.tar.gz", "w:gz") as tar:
        for file, data in files.items():
            member = tarfile.TarInfo(f"{inside}/{file}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return root / "archive.tar.gz"


@pytest.mark.parametrize("kind", ["cifar10", "cifar100"])
def test_archive_and_folder_give_the_same_images(tmp_path, kind):
    form = getattr(module, kind.upper())
    files = contents(form)
    unpacked = folder(tmp_path, files, form.folder)
    datas = [
        load_data(f"{kind}:{place}", normalize=False)
        for place in (archive(tmp_path, files), unpacked, tmp_path)
    ]
    assert len({data.checksum for data in datas}) == 1
    data = datas[0]
    assert (data.classes, data.shape) == (form.classes, (3, 32, 32))
    count = 5 * PER_FILE
    for part in (data.train, data.validation, data.test):
        images, labels = part
        values = (images * 255).round().int()
        assert torch.equal(values[:, 0, 0, 0], labels.int())
        assert torch.equal(values[:, 1, 0, 31], labels.int() + 100)
        assert torch.equal(values[:, 2, 1, 5], labels.int() + 50)
    assert len(data.train[1]) + len(data.validation[1]) == count
    assert torch.bincount(data.validation[1]).tolist() == [max(1, count // form.classes // 10)] * (
        form.classes
    )
    assert f"{len(data.validation[1])} validation (cut from train)" in data.description
    assert data.augmentation == Augmentation(flip=True, crop=4)


def test_wishes_reach_cifar(tmp_path):
    place = folder(tmp_path, contents(module.CIFAR10))
    data = load_data(f"cifar10:{place}", image_size=16, images=100, flip=False)
    assert data.shape == (3, 16, 16) and len(data.train[1]) == 90
    assert data.augmentation == Augmentation(flip=False, crop=2)
    assert len(data.mean) == 3


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


PICKLES = dict.fromkeys(
    ["batches.meta", "data_batch_1", "test_batch", "meta", "train", "test"], pickle.dumps(Bomb())
)


def broken(make, change):
    """A damage: `change` applied to CIFAR-10's files, put into what `make` makes."""
    return lambda root: make(root, change(contents(module.CIFAR10)))


def truncated(root):
    path = archive(root, contents(module.CIFAR10))
    path.write_bytes(path.read_bytes()[:-100])
    return path


def no_archive(root):
    (root / "page.html").write_text("<html>try again later</html>")
    return root / "page.html"


def without(file):
    return lambda files: {name: data for name, data in files.items() if name != file}


def shorter(files):
    return files | {"test_batch.bin": files["test_batch.bin"][:-1]}


def odd_label(files):
    return files | {"data_batch_2.bin": b"\x0a" + files["data_batch_2.bin"][1:]}


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda root: root / "gone", "neither a file nor a folder .*gone': CIFAR-10 is read from"),
        (lambda root: root, "has no file 'data_batch_1.bin': CIFAR-10 is read from cifar-10-bin"),
        (no_archive, "page.html' is no whole archive [(]ReadError"),
        (truncated, "archive.tar.gz' is no whole archive [(]"),
        (broken(archive, without("data_batch_3.bin")), "has no file 'data_batch_3.bin'"),
        (broken(folder, without("test_batch.bin")), "has no file 'test_batch.bin'"),
        (
            broken(archive, shorter),
            "file 'test_batch.bin' in .* has 122919 bytes instead of 122920",
        ),
        (
            broken(folder, shorter),
            "file 'test_batch.bin' in .* has 122919 bytes instead of 122920",
        ),
        (broken(folder, odd_label), "CIFAR-10 has labels up to 9, this file one of 10"),
        (
            broken(archive, lambda files: PICKLES),
            "Python form of CIFAR-10, pickles, .*get the bin",
        ),
        (
            broken(folder, lambda files: PICKLES),
            "Python form .*: get the binary form, cifar-10-bi",
        ),
    ],
)
def test_a_broken_archive_is_one_message(tmp_path, damage, words):
    with pytest.raises(CanvasError, match=words) as caught:
        load_data(f"cifar10:{damage(tmp_path)}")
    assert "\n" not in str(caught.value)


def test_cifar100_knows_its_pickles_too(tmp_path):
    with pytest.raises(CanvasError, match=r"get the binary form, cifar-100-binary[.]tar"):
        load_data(f"cifar100:{archive(tmp_path, PICKLES)}")


def test_the_real_form_is_the_published_one():
    sizes = [
        {file: count * (module.PIXELS + form.label_bytes) for file, count in form.files.items()}
        for form in REAL
    ]
    batches = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    assert sizes == [
        dict.fromkeys(batches, 30_730_000),
        {"train.bin": 153_700_000, "test.bin": 30_740_000},
    ]

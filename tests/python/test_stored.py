"""Images in a study's folder: the same bits, small, written once, checked, shared."""

import dataclasses

import numpy as np
import pytest
import torch

from canvas.data import SPLITS, Data, load_data, stored
from canvas.data.images import Requested, finish
from canvas.data.stored import Exchanged, Mapped, has, read, store
from canvas.errors import CanvasError


def photographs(**requested):
    """Images of every byte there is, as the readers of photographs give them."""
    random = np.random.default_rng(0)

    def part(count):
        images = random.integers(0, 256, (count, 3, 8, 8), dtype=np.uint8)
        return torch.from_numpy(images), torch.arange(count) % 4

    sizes = [part(1500), part(100), part(100)]
    return finish("made", "made", sizes, 4, Requested(**requested), photographs=True)


KINDS = {
    "normalised bytes": (photographs, np.uint8),
    "bytes in 0..1": (lambda: photographs(normalize=False), np.uint8),
    "floats": (lambda: load_data("digits", images=100, normalize=True, crop=2), np.float32),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_is_what_is_read(tmp_path, kind):
    make, dtype = KINDS[kind]
    data = dataclasses.replace(make(), synthetic=True)
    seal = store(data, tmp_path / "images")
    again = read(tmp_path / "images")
    mapped = Mapped(tmp_path / "images", seal)
    for field in dataclasses.fields(Data):
        if field.name not in SPLITS:
            assert getattr(again, field.name) == getattr(data, field.name), field.name
    assert (mapped.shape, mapped.classes) == (data.shape, data.classes)
    assert mapped.augmentation == data.augmentation
    for part in SPLITS:
        images, labels = getattr(data, part)
        found, named = getattr(mapped, part)
        assert torch.equal(getattr(again, part)[0], images)
        assert torch.equal(named, labels)
        assert torch.equal(torch.cat(list(found.split(64))), images)
        order = torch.randperm(len(labels))
        assert torch.equal(found[order], images[order])
        assert (len(found), found.shape) == (len(images), tuple(images.shape))
        assert found.array.dtype == dtype and isinstance(found.array, np.memmap)


def test_a_batch_is_a_copy(tmp_path):
    """A network may change its input in place: the images stay what they are."""
    data = load_data("digits", images=100)
    images = Mapped(tmp_path / "images", store(data, tmp_path / "images")).validation[0]
    for batch in (images[:4], images[torch.arange(4)], next(images.split(4))):
        batch.fill_(7)
    assert torch.equal(images[:], data.validation[0])


def test_only_the_splits_that_are_used_are_kept(tmp_path):
    data, folder = photographs(), tmp_path / "images"
    store(data, folder, SPLITS[:2])
    assert has(folder, SPLITS[:2]) and not has(folder)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1600 * (3 * 64 + 8) + 4000
    with pytest.raises(CanvasError, match="cannot be read: No such file or directory"):
        read(folder)
    store(data, folder)
    assert torch.equal(read(folder).test[0], data.test[0])


def test_what_is_there_is_left_alone(tmp_path):
    data, folder = photographs(), tmp_path / "images"
    seal = store(data, folder)
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert store(data, folder) == seal
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    (folder / "test_labels.npy").write_bytes(b"")  # damaged: made whole again
    assert store(data, folder) == seal
    assert torch.equal(read(folder).test[1], data.test[1])
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_checksum_is_computed_once(tmp_path, monkeypatch):
    folder, computed = tmp_path / "images", []
    seal = store(photographs(), folder)
    count = stored._sha256
    monkeypatch.setattr(stored, "_sha256", lambda array: computed.append(1) or count(array))
    for _ in range(3):
        assert Mapped(folder, seal).train and Mapped(folder, seal).validation
    assert len(computed) == 4
    other = np.load(folder / "train_labels.npy")[::-1]
    np.save(folder / "train_labels.npy", other)
    with pytest.raises(Exchanged, match=r"'train_labels.npy' has changed"):
        _ = Mapped(folder, seal).train
    assert len(computed) == 5


def test_no_pickle_is_loaded(tmp_path):
    folder = tmp_path / "images"
    store(photographs(), folder)
    np.save(folder / "train_images.npy", np.array([print]), allow_pickle=True)
    with pytest.raises(CanvasError, match=r"are damaged: .*Python objects"):
        read(folder)

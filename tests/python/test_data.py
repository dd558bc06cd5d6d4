"""The images: splits that share nothing, the same every time."""

import numpy as np
import pytest
import torch

import canvas.images_digits as module
from canvas.data import SPLITS, Data, load_data
from canvas.errors import CanvasError
from canvas.images import Wishes
from canvas.images_digits import digits_scattered


@pytest.fixture(scope="module")
def scattered():
    return load_data("digits-scattered")


def test_digits_are_split_by_class():
    data = load_data("digits")
    assert data.shape == (1, 8, 8)
    sizes = [len(getattr(data, split)[1]) for split in SPLITS]
    assert sum(sizes) == 1797
    for split, share in zip(SPLITS, (0.6, 0.2, 0.2)):
        counts = torch.bincount(getattr(data, split)[1], minlength=10)
        assert all(abs(int(c) - share * 179.7) < 5 for c in counts)


def test_every_scan_is_in_one_split_only():
    labels = np.repeat(np.arange(10), 18)
    parts = module._split(labels, np.random.default_rng(3))
    together = np.concatenate(parts)
    assert sorted(together) == list(range(len(labels)))


def test_scattered_places_every_scan_three_times(scattered):
    plain = load_data("digits")
    assert scattered.shape == (1, 16, 16)
    for split in SPLITS:
        images, labels = getattr(scattered, split)
        assert torch.equal(labels, getattr(plain, split)[1].repeat(3))
        assert images.shape == (len(labels), 1, 16, 16)
        assert images.min() == 0 and images.max() == 1


def test_a_field_holds_its_digit_whole_and_fragments_of_its_own_split_only():
    scans = np.arange(1, 13, dtype=np.float32)[:, None, None] * np.ones((12, 8, 8), np.float32)
    fields, labels = module._scatter(scans, np.arange(12), np.random.default_rng(0))
    seen = set()
    for field, label in zip(fields, labels):
        own = label + 1
        ys, xs = np.nonzero(field == own)
        assert len(ys) == 64 and np.ptp(ys) == 7 and np.ptp(xs) == 7  # whole, and on top
        others = set(np.unique(field)) - {0, own}
        assert len(others) <= 4 and others <= set(range(1, 13))
        seen |= others
        assert (field > 0).sum() <= 64 + 4 * 16
    assert len(seen) > 6


def test_the_seed_fixes_everything(scattered):
    assert load_data("digits-scattered").checksum == scattered.checksum
    assert digits_scattered("", "", Wishes(), seed=1).checksum != scattered.checksum
    assert len(scattered.checksum) == 64


def test_what_is_saved_is_what_is_read(scattered, tmp_path):
    scattered.save(tmp_path / "data.npz")
    again = Data.read(tmp_path / "data.npz")
    assert again.checksum == scattered.checksum
    assert (again.name, again.classes, again.description) == (
        scattered.name,
        10,
        scattered.description,
    )
    assert [p.name for p in tmp_path.iterdir()] == ["data.npz"]


def test_unknown_data_is_one_sentence():
    with pytest.raises(CanvasError, match="no data is called 'mnist': there are digits, digits-"):
        load_data("mnist")


def test_own_data_is_checked():
    images, labels = torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 2, 3])
    good = (images, labels)
    for bad, words in [
        ((images.double(), labels), "float32"),
        ((images, labels[:3]), "one per image"),
        ((images, labels + 1), "0 to 3"),
        ((images[:0], labels[:0]), "one per image"),
    ]:
        with pytest.raises(CanvasError, match=words):
            Data("mine", good, bad, good, 4, "")

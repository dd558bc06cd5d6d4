"""Data by name and by value: digits that never change, splits that share nothing, one message."""

import dataclasses

import numpy as np
import pytest
import torch

import canvas.data.images_digits as module
from canvas.data import DATA_HELP, READERS, SPLITS, Data, as_data, load_data
from canvas.data.augment import Augmentation
from canvas.data.images import Requested, check_memory, machine_memory, split
from canvas.data.images_digits import digits_scattered
from canvas.data.stored import read, store
from canvas.errors import CanvasError

# Studies of old hold these; a change of one bit of an image or a label would orphan them.
CHECKSUMS = {
    "digits": "33d62c64d29cf0bee8f6629299b946cff0eeba356596ed013fa8ed41b83f4de7",
    "digits-scattered": "e3cd57970c5b6f12b7623f8d7596f23cb326a8ce148d4d007e2e96f4f9e18591",
}


@pytest.fixture(scope="module")
def scattered():
    return load_data("digits-scattered")


@pytest.mark.parametrize(("name", "checksum"), CHECKSUMS.items())
def test_digits_are_what_they_always_were(name, checksum, scattered):
    data = scattered if name == "digits-scattered" else load_data(name)
    assert data.checksum == checksum
    assert (data.augmentation, data.mean, data.deviation) == (Augmentation(), (), ())
    assert not data.synthetic


def test_digits_are_split_by_class():
    data = load_data("digits")
    assert data.shape == (1, 8, 8)
    sizes = [len(getattr(data, split)[1]) for split in SPLITS]
    assert sum(sizes) == 1797
    for part, share in zip(SPLITS, (0.6, 0.2, 0.2)):
        counts = torch.bincount(getattr(data, part)[1], minlength=10)
        assert all(abs(int(c) - share * 179.7) < 5 for c in counts)


def test_every_scan_is_in_one_split_only():
    labels = np.repeat(np.arange(10), 18)
    parts = module._split(labels, np.random.default_rng(3))
    together = np.concatenate(parts)
    assert sorted(together) == list(range(len(labels)))


def test_scattered_places_every_scan_three_times_those_of_test_ten_times(scattered):
    plain = load_data("digits")
    assert scattered.shape == (1, 16, 16)
    for part, times in zip(SPLITS, (3, 3, 10)):
        images, labels = getattr(scattered, part)
        assert torch.equal(labels, getattr(plain, part)[1].repeat(times))
        assert images.shape == (len(labels), 1, 16, 16)
        assert images.min() == 0 and images.max() == 1


def test_placements_of_one_scan_are_one_group(monkeypatch):
    """With nothing pasted, what images of a group have in common is the scan itself."""
    monkeypatch.setattr(module, "FRAGMENTS", 0)
    data = digits_scattered("", "", Requested())
    sums = data.test[0].sum((1, 2, 3))
    scan_of = dict(zip(data.test_groups, sums.tolist()))
    assert len(data.test_groups) == len(sums) == 10 * len(scan_of) == 3600
    assert all(scan_of[group] == sum for group, sum in zip(data.test_groups, sums.tolist()))
    assert load_data("digits").test_groups == ()


def test_groups_stay_with_the_images_and_fit_them(tmp_path, scattered):
    store(scattered, tmp_path / "images")
    assert read(tmp_path / "images").test_groups == scattered.test_groups
    with pytest.raises(CanvasError, match="test_groups must have one number per test image"):
        dataclasses.replace(scattered, test_groups=(1, 2))


def test_a_field_holds_its_digit_whole_and_fragments_of_its_own_split_only():
    scans = np.arange(1, 13, dtype=np.float32)[:, None, None] * np.ones((12, 8, 8), np.float32)
    fields, labels = module._scatter(scans, np.arange(12), 3, np.random.default_rng(0))
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


def test_another_seed_gives_other_images(scattered):
    assert digits_scattered("", "", Requested(), seed=1).checksum != scattered.checksum


def test_the_checksum_covers_images_and_labels():
    data = load_data("digits", images=100)
    for part in SPLITS:
        for tensor in getattr(data, part):
            tensor.view(-1)[-1] += 1
            assert dataclasses.replace(data, checksum="").checksum != data.checksum
            tensor.view(-1)[-1] -= 1
    assert dataclasses.replace(data, checksum="").checksum == data.checksum


@pytest.mark.parametrize(
    ("name", "requested", "words"),
    [
        ("mnist", {}, "no data is called 'mnist': there are digits, digits-"),
        ("", {}, "no data is called ''"),
        ("\x1b", {}, r"no data is called '\\x1b'"),
        ("folder", {}, "data 'folder' needs a path: folder:PATH"),
        ("folder:", {}, "data 'folder' needs a path: folder:PATH"),
        ("cifar10:", {}, "data 'cifar10' needs a path: cifar10:PATH"),
        ("folder:~nobody-of-that-name", {}, "'~nobody-of-that-name' is no folder"),
        ("cifar10:~nobody-of-that-name", {}, "neither a file nor a folder '~nobody-of-that-name'"),
        ("folder:" + 300 * "x", {}, "data 'folder:x*' cannot be read: File name too long: 'x*/tr"),
        ("folder:a\0b", {}, r"'a\\x00b' is no folder"),
        ("digits:8", {}, "data 'digits' takes no path, not '8'"),
        ("digits", {"image_size": 16}, "data 'digits' comes in one size: leave image_size out"),
        ("digits", {"flip": True}, "data 'digits' would mean something else when mirrored"),
        ("synthetic", {"flip": True}, "data 'synthetic' would show another class when mirrored"),
        ("digits", {"images": 5}, "5 images would leave 0 of the 1.. of class '.': ask for at le"),
        ("digits", {"images": 0}, "images must be a whole number from 2 to 100000000, not 0"),
        ("digits", {"images": True}, "images must be a whole number .*, not True"),
        ("digits", {"crop": -1}, "crop must be a whole number from 0 to 1024, not -1"),
        ("digits", {"crop": 5}, "crop must be at most half of the images' side of 8, not 5"),
        ("digits", {"crop": 1.5}, "crop must be a whole number from 0 to 1024, not 1.5"),
        ("synthetic", {"image_size": 3}, "image_size must be a whole number from 4 to 4096, not"),
        ("digits", {"normalize": "no"}, "normalize must be True or False, not 'no'"),
        ("digits", {"flip": 2}, "flip must be True or False, not 2"),
    ],
)
def test_what_cannot_be_is_one_message(name, requested, words):
    with pytest.raises(CanvasError, match=words) as caught:
        load_data(name, **requested)
    assert "\n" not in str(caught.value)


def test_the_help_lists_every_reader():
    lines = DATA_HELP.splitlines()
    assert [line.split()[0].partition(":")[0] for line in lines] == list(READERS)
    assert all(len(line) < 80 for line in lines)


def test_fewer_images_are_the_same_share_of_each_class():
    data, whole = load_data("digits", images=400), load_data("digits")
    sizes = [len(getattr(data, part)[1]) for part in SPLITS]
    assert sizes[0] + sizes[1] == 400 and sizes[2] == len(whole.test[1])
    for part in SPLITS[:2]:
        few, all_ = (torch.bincount(getattr(d, part)[1], minlength=10) for d in (data, whole))
        share = 400 / (len(whole.train[1]) + len(whole.validation[1]))
        assert ((few - share * all_).abs() < 1).all()


def test_no_image_is_in_two_splits_and_none_is_lost():
    labels = {"train": np.arange(100) % 3}
    (_, train), (_, validation), (source, test) = split(labels, "abc", Requested())
    assert source == "train"
    assert sorted([*train, *validation, *test]) == list(range(100))
    for part in (train, validation, test):
        assert list(part) == sorted(part)
    (_, train), (_, validation), (_, test) = split(labels, "abc", Requested(images=40))
    assert len(train) + len(validation) == 40
    assert len({*train, *validation, *test}) == 40 + len(test) == 61


def test_normalised_images_have_mean_0_and_deviation_1():
    plain, data = load_data("digits"), load_data("digits", normalize=True)
    assert data.train[0].mean().abs() < 1e-3 and (data.train[0].std() - 1).abs() < 1e-3
    for part in SPLITS:
        back = getattr(data, part)[0] * data.deviation[0] + data.mean[0]
        assert torch.allclose(back, getattr(plain, part)[0], atol=1e-6)
    assert "normalised per channel" in data.description
    assert "normalised" not in plain.description


def test_too_many_images_are_rejected_before_they_are_read():
    side = 1024
    most = machine_memory() // 2 // (4 * 3 * side * side)
    check_memory(most, (3, side, side))
    with pytest.raises(
        CanvasError, match=r"more than half of this machine's memory .*--image-siz"
    ):
        check_memory(most + 1, (3, side, side))


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


def test_a_data_stays_what_it_is(scattered):
    assert as_data(scattered) is scattered
    assert as_data(scattered, images=None) is scattered
    assert as_data("digits", images=100).checksum == load_data("digits", images=100).checksum
    with pytest.raises(CanvasError, match="'digits-scattered' is complete: leave images out"):
        as_data(scattered, images=100)

"""Data from Python: datasets and loaders of torch, however they were made."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

import canvas.data.images
from canvas.data import SPLITS, as_data, data_from
from canvas.data.augment import Augmentation
from canvas.errors import CanvasError


def tensors(count=60, channels=1, side=6, classes=3):
    labels = torch.arange(count) % classes
    images = torch.rand(count, channels, side, side, generator=torch.Generator().manual_seed(0))
    return images, labels


def dataset(count=60, **others):
    return TensorDataset(*tensors(count, **others))


class Items(Dataset):
    """A dataset of whatever it is given; without __iter__ and without an end of its own."""

    def __init__(self, *items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i % len(self.items)]


class Stream(IterableDataset):
    def __init__(self, source, endless=False):
        self.source, self.endless = source, endless

    def __iter__(self):
        yield from self.source
        while self.endless:
            yield from self.source


class Noisy(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, i):
        return torch.rand(1, 6, 6), i % 3


def sizes(data):
    return tuple(len(getattr(data, part)[1]) for part in SPLITS)


@pytest.mark.parametrize(
    "source",
    [
        dataset(),
        Subset(dataset(90), range(60)),
        DataLoader(dataset(), batch_size=7),
        DataLoader(dataset(), batch_size=None),
        Stream(dataset()),
        DataLoader(Stream(dataset()), batch_size=16),
        Items(*((image, int(label)) for image, label in dataset())),
        Items(*(((image.double()), label.numpy()) for image, label in dataset())),
    ],
)
def test_any_form_gives_the_same_images(source):
    data = as_data(source)
    assert data.checksum == data_from(dataset()).checksum
    assert (sizes(data), data.classes, data.shape) == ((42, 6, 12), 3, (1, 6, 6))
    assert (data.name, data.augmentation, data.mean) == ("own", Augmentation(), ())
    images, labels = tensors()
    for part in SPLITS:
        for image, label in zip(*getattr(data, part)):
            assert labels[(images == image).all((1, 2, 3))].tolist() == [label]


def test_pairs_and_triples():
    a, b, c = dataset(60), dataset(30), dataset(12)
    assert sizes(as_data((a, c))) == (54, 6, 12)
    assert sizes(as_data([a, b, c])) == (60, 30, 12)
    assert sizes(data_from(a, b)) == (48, 30, 12)  # what is called validation is validation
    assert sizes(as_data((a, b, c), images=30)) == (21, 9, 12)


def test_wishes():
    data = data_from(dataset(), name="mine", normalize=True, flip=True, crop=2)
    assert (data.name, data.augmentation) == ("mine", Augmentation(flip=True, crop=2))
    assert abs(float(data.train[0].mean())) < 1e-3 and len(data.mean) == 1


def test_bytes_mean_0_to_255():
    images, labels = tensors()
    data = data_from(TensorDataset((images * 255).byte(), labels))
    assert data.train[0].dtype == torch.float32 and 0.9 < data.train[0].max() <= 1


@pytest.mark.parametrize("source", [DataLoader(dataset(), batch_size=8, shuffle=True), Noisy()])
def test_what_is_random_is_drawn_the_same_and_leaves_the_users_generator_alone(source):
    checksums = set()
    for seed in (5, 6):
        torch.manual_seed(seed)
        expected = torch.rand(3)
        torch.manual_seed(seed)
        checksums.add(as_data(source).checksum)
        assert torch.equal(torch.rand(3), expected)
    assert len(checksums) == 1


def test_a_dataset_may_use_one_buffer_for_all_its_images():
    images, labels = tensors()
    buffer = torch.empty(1, 6, 6)
    reuse = Stream((buffer.copy_(image), label) for image, label in zip(images, labels))
    assert data_from(reuse).checksum == data_from(dataset()).checksum


def test_the_users_tensors_are_left_as_they_were():
    images, labels = tensors()
    before = images.clone()
    data_from(TensorDataset(images, labels), normalize=True)
    assert torch.equal(images, before)


GOOD = (torch.zeros(1, 6, 6), 0)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (7, "the train images are a int: give a torch Dataset or DataLoader"),
        (None, "the train images are a NoneType: give a torch"),
        ((dataset(),), r"several data sets are \(train, test\) or \(train, validation, test\)"),
        ((), "several data sets are"),
        (tensors(), "the train images are a Tensor: give a torch Dataset"),
        (Items(), "there is no train image"),
        (
            Items({"image": 1, "label": 2}),
            r"train image 0 cannot .* \(image, label\) is wanted, no",
        ),
        (
            Items(GOOD, (1, 2, 3)),
            r"train image 1 cannot .* \(image, label\) is wanted, not tuple of 3",
        ),
        (Items((None, 1)), r"a tensor \[C, H, W\] is wanted, not NoneType: add a transform"),
        (Items((torch.zeros(6, 6), 1)), r"a tensor \[C, H, W\] is wanted, not \[6x6\]"),
        (Items((torch.zeros(1, 6, 6).long(), 1)), "float or uint8 is wanted, not torch.int64"),
        (Items(GOOD, (torch.full((1, 6, 6), torch.nan), 1)), "train image 1 .*are no numbers"),
        (Items(GOOD, (torch.zeros(1, 6, 7), 1)), "it is 1x6x7, the first one 1x6x6"),
        (Items((GOOD[0], -1)), "its label is -1: labels are whole numbers from 0"),
        (Items((GOOD[0], 0.5)), "its label is 0.5: labels are whole numbers from 0"),
        (Items((GOOD[0], torch.zeros(2))), "train image 0 cannot be used: "),
        (Items((torch.zeros(3, 1, 6, 6), torch.zeros(2).long())), "train image 2 cannot be used"),
        (Items(GOOD, GOOD, GOOD), "all images have the same label: there must be two classes"),
        (
            Items(*((GOOD[0], i) for i in (0, 2, 3))),
            "no training image has the label 1: each of 4",
        ),
        (Items(GOOD, (GOOD[0], 10**12)), "no training image has the label 1: each of 10000"),
        ((dataset(), dataset(30, side=7)), "test images are 1x7x7 torch.float32, training images"),
        ((dataset(), dataset(30, classes=4)), "no training image has the label 3: each of 4"),
        (Stream(dataset(), endless=True), "would take .*more than half of this machine's memory"),
    ],
)
def test_what_cannot_be_used_is_one_message(value, words, monkeypatch):
    monkeypatch.setattr(canvas.data.images, "machine_memory", lambda: 10**6)
    with pytest.raises(CanvasError, match=words) as caught:
        as_data(value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("requested", "words"),
    [
        ({"image_size": 8}, "a torch Dataset gives its images in one size: leave image_size out"),
        ({"images": 5}, "5 images would leave 1 of the 16 of class '2': ask for at least 6"),
        ({"crop": 4}, "crop must be at most half of the images' side of 6, not 4"),
    ],
)
def test_wishes_that_cannot_be(requested, words):
    with pytest.raises(CanvasError, match=words):
        as_data(dataset(), **requested)


def test_classes_may_be_named():
    with pytest.raises(CanvasError, match="a label is 2: with 2 classes 1 is the largest"):
        data_from(dataset(), classes=2)
    with pytest.raises(CanvasError, match="no training image has the label 3: each of 5"):
        data_from(dataset(), classes=5)

"""Image folders: every layout, every way in which one can be wrong."""

import pytest
from PIL import Image

from canvas.data import SPLITS, load_data


def plant(root, counts, size=(8, 8)):
    """Image files; counts is {"train/cat": 5, ...}.  File i of a class has the red value i."""
    for folder, count in counts.items():
        (root / folder).mkdir(parents=True)
        for i in range(count):
            Image.new("RGB", size, (i, 200, 7)).save(root / folder / f"{i:03}.png")
    return f"folder:{root}"


def sizes(data):
    return tuple(len(getattr(data, split)[1]) for split in SPLITS)


CAT_DOG = {"train/cat": 20, "train/dog": 40}
TESTS = {"test/cat": 3, "test/dog": 4}
VALS = {"val/cat": 1, "val/dog": 2}


@pytest.mark.parametrize(
    ("counts", "wishes", "expected"),
    [
        (CAT_DOG | TESTS, {}, (54, 6, 7)),
        (CAT_DOG | VALS, {}, (54, 6, 3)),  # one set beside train is kept for the end
        (CAT_DOG | VALS | TESTS, {}, (60, 3, 7)),
        (CAT_DOG, {}, (43, 5, 12)),
        (CAT_DOG | TESTS, {"images": 30}, (27, 3, 7)),
        (CAT_DOG | TESTS, {"images": 6}, (4, 2, 7)),
        (CAT_DOG | TESTS, {"images": 1000}, (54, 6, 7)),
        (CAT_DOG | VALS | TESTS, {"images": 63}, (60, 3, 7)),
    ],
)
def test_what_is_missing_is_cut_from_train(tmp_path, counts, wishes, expected):
    data = load_data(plant(tmp_path, counts), **wishes)
    assert sizes(data) == expected
    assert data.classes == 2 and data.shape == (3, 8, 8)
    for part, words in zip(SPLITS[1:], ("validation", "test")):
        cut = f"{len(getattr(data, part)[1])} {words} (cut from train)" in data.description
        folders = [folder for folder in ("test", "val") if f"{folder}/cat" in counts]
        assert cut == (len(folders) < (2 if part == "validation" else 1))

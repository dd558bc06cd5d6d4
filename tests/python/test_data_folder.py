"""Image folders: every layout, every way in which one can be wrong."""

import os
import struct
import zlib
from contextlib import contextmanager

import pytest
from PIL import Image

from canvas.data import SPLITS, load_data
from canvas.data.augment import Augmentation
from canvas.errors import CanvasError


def plant(root, counts, size=(8, 8)):
    """Image files; counts is {"train/cat": 5, ...}.  File i of a class has the red value i."""
    for folder, count in counts.items():
        (root / folder).mkdir(parents=True)
        for i in range(count):
            Image.new("RGB", size, (i, 200, 7)).save(root / folder / f"{i:03}.png")
    return f"folder:{root}"


def sizes(data):
    return tuple(len(getattr(data, split)[1]) for split in SPLITS)


def splits_of(data):
    return [getattr(data, split) for split in SPLITS]


def reds(split):
    """The red values of a split's images that were not normalised: which file each was."""
    return (split[0][:, 0, 0, 0] * 255).round().int().tolist()


CAT_DOG = {"train/cat": 20, "train/dog": 40}
TESTS = {"test/cat": 3, "test/dog": 4}
VALIDS = {"valid/cat": 1, "valid/dog": 2}
VALS = {"val/cat": 1, "val/dog": 2}


@pytest.mark.parametrize(
    ("counts", "requested", "expected"),
    [
        (CAT_DOG | TESTS, {}, (54, 6, 7)),
        (CAT_DOG | VALS, {}, (54, 6, 3)),  # one set beside train is kept for the end
        (CAT_DOG | VALS | TESTS, {}, (60, 3, 7)),
        (CAT_DOG | VALIDS, {}, (54, 6, 3)),
        (CAT_DOG | VALIDS | TESTS, {}, (60, 3, 7)),
        (CAT_DOG, {}, (43, 5, 12)),
        (CAT_DOG | TESTS, {"images": 30}, (27, 3, 7)),
        (CAT_DOG | TESTS, {"images": 6}, (4, 2, 7)),
        (CAT_DOG | TESTS, {"images": 1000}, (54, 6, 7)),
        (CAT_DOG | VALS | TESTS, {"images": 62}, (59, 3, 7)),
    ],
)
def test_what_is_missing_is_cut_from_train(tmp_path, counts, requested, expected):
    data = load_data(plant(tmp_path, counts), **requested)
    assert sizes(data) == expected
    assert data.classes == 2 and data.shape == (3, 8, 8)
    beside = sum(f"{folder}/cat" in counts for folder in ("val", "valid", "test"))
    for part, (words, needed) in {1: ("validation", 2), 2: ("test", 1)}.items():
        assert (f"{expected[part]} {words} (cut from train)" in data.description) == (
            beside < needed
        )


def test_every_file_is_in_one_split_under_its_own_class(tmp_path):
    data = load_data(plant(tmp_path, CAT_DOG), normalize=False)
    for label, count in enumerate((20, 40)):  # cat, dog: sorted
        files = [
            red
            for split in (data.train, data.validation, data.test)
            for red, of in zip(reds(split), split[1].tolist())
            if of == label
        ]
        assert sorted(files) == list(range(count))


def test_the_same_folder_gives_the_same_images_in_whatever_order_it_is_listed(
    tmp_path, monkeypatch
):
    name = plant(tmp_path, CAT_DOG)
    before, scandir = load_data(name, images=30), os.scandir
    assert load_data(name, images=30).checksum == before.checksum

    @contextmanager
    def backwards(folder):
        with scandir(folder) as entries:
            yield iter(list(entries)[::-1])

    monkeypatch.setattr(os, "scandir", backwards)
    assert load_data(name, images=30).checksum == before.checksum


def test_photographs_are_normalised_flipped_and_shifted_unless_told(tmp_path):
    name = plant(tmp_path, CAT_DOG, (16, 16))
    data = load_data(name)
    assert data.augmentation == Augmentation(flip=True, crop=2)
    assert data.mean[1:] == (round(200 / 255, 4), round(7 / 255, 4))
    assert data.deviation[1:] == (1.0, 1.0)  # a channel that never changes is not divided by 0
    assert data.train[0][:, 1:].abs().max() < 1e-4
    assert abs(float(data.train[0][:, 0].std()) - 1) < 0.01
    assert data.description.endswith("flipped and shifted by up to 2 pixels by chance")
    plain = load_data(name, normalize=False, flip=False, crop=0)
    assert (plain.augmentation, plain.mean, plain.deviation) == (Augmentation(), (), ())
    assert plain.train[0].min() == 0 and abs(float(plain.train[0].max()) - 200 / 255) < 1e-6
    assert load_data(name, flip=False, crop=5).augmentation == Augmentation(flip=False, crop=5)


@pytest.mark.parametrize(
    ("size", "image_size", "expected"),
    [
        ((8, 8), None, 8),
        ((20, 12), None, 12),
        ((100, 90), None, 64),
        ((8, 8), 16, 16),
        ((2, 2), None, 4),
    ],
)
def test_images_are_square(tmp_path, size, image_size, expected):
    data = load_data(plant(tmp_path, CAT_DOG, size), image_size=image_size)
    assert data.shape == (3, expected, expected)


def halves(width, height, left, right):
    image = Image.new("RGB", (width, height), left)
    image.paste(right, (width // 2, 0, width, height))
    return image


def test_the_middle_is_cut_out_and_the_camera_is_obeyed(tmp_path):
    """Red left, blue right, twice as wide as high: both halves stay; a turned one stands up."""
    plant(tmp_path, {"train/a": 9, "train/b": 9})
    image = halves(32, 16, (255, 0, 0), (0, 0, 255))
    turned = Image.Exif()
    turned[274] = 6  # orientation: the camera was turned, red is up
    for i in range(9):
        image.save(tmp_path / "train" / "a" / f"{i:03}.png")
        image.save(tmp_path / "train" / "b" / f"{i:03}.png", exif=turned)
    data = load_data(f"folder:{tmp_path}", image_size=8, normalize=False)
    red = data.train[0][:, 0]
    for label, picture in zip(data.train[1].tolist(), red):
        first, last = (picture[:3], picture[5:]) if label else (picture[:, :3], picture[:, 5:])
        assert first.min() > 0.99 and last.max() < 0.01


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGBA", "CMYK"])
def test_all_kinds_of_pixels_become_rgb(tmp_path, mode):
    name = plant(tmp_path, {"train/a": 9, "train/b": 9})
    for path in tmp_path.rglob("*.png"):
        white = Image.new("RGB", (8, 8), "white").convert(mode)
        white.save(path, format="tiff" if mode == "CMYK" else "png")
    data = load_data(name, normalize=False)
    assert data.shape == (3, 8, 8) and bool((data.train[0] == 1).all())


def test_files_are_found_at_any_depth_and_others_left_alone(tmp_path):
    name = plant(tmp_path, CAT_DOG)
    deep = tmp_path / "train" / "cat" / "of" / "2024"
    deep.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(deep / "deep.JPEG")
    (deep / "notes.txt").write_text("no image")
    (deep / "._deep.jpg").write_bytes(b"what a Mac leaves behind")
    (tmp_path / "train" / ".cache").mkdir()
    (tmp_path / "train" / "README.md").write_text("no class")
    assert sum(sizes(load_data(name))) == 61


def link(root, links):
    """Symbolic links: {"train/cat/more": target}, a path below the folder of all."""
    for place, target in links.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).symlink_to(root / target)


POOL = {"pool/a": 5, "pool/b/deep": 7}


@pytest.mark.parametrize(
    ("links", "more", "left"),
    [
        ({"train/cat/more": "pool/a"}, 5, ""),
        ({"train/cat/deep/more": "pool"}, 12, ""),
        ({"train/cat/chain": "pool/link", "pool/link": "pool/b"}, 7, ""),
        ({"train/cat/one": "pool/a", "train/cat/two": "pool/a"}, 5, "1 folder that was read"),
        ({"train/cat/a": "pool/a", "train/cat/all": "pool"}, 12, "1 folder that was read"),
        ({"train/cat/one": "pool/a", "train/dog/two": "pool/a"}, 10, ""),
        ({"train/cat/here": "train/cat"}, 0, "1 link that leads in"),
        ({"train/cat/up": "train", "train/cat/root": "."}, 0, "2 links that lead in a circle"),
        ({"train/all": "."}, 0, "1 link that leads in"),
        ({"train/self": "train/self"}, 0, "1 link that leads in"),
        (
            {"train/cat/a": "train/cat/b", "train/cat/b": "train/cat/a"},
            0,
            "2 links that lead in a",
        ),
        ({"train/cat/a": "pool/a", "pool/a/back": "pool"}, 5, "1 link that leads in"),
        ({"train/cat/a": "pool/a", "pool/a/back": "train/cat"}, 5, "1 link that leads in"),
        ({"train/cat/a": "pool/a", "pool/a/back": "train"}, 5, "1 link that leads in"),
        ({"train/cat/gone": "nowhere", "train/eel": "nowhere"}, 0, "2 broken links"),
        ({"train/cat/x.PNG": "pool/a/000.png"}, 1, ""),
        ({"train/cat/x.txt": "pool/a/000.png"}, 0, "1 file that is no image"),
        ({"train/cat/.hidden": "pool/a"}, 0, "1 hidden file or folder"),
        ({"train/cat/b.png": "pool/a"}, 5, ""),
    ],
)
def test_links_to_folders_are_followed_once(tmp_path, links, more, left):
    name = plant(tmp_path, CAT_DOG | POOL)
    link(tmp_path, links)
    data = load_data(name)
    assert sum(sizes(data)) == 60 + more and data.classes == 2
    assert ("(not read: " in data.description) == bool(left)
    assert f"(not read: {left}" in data.description if left else True


def test_a_class_may_be_a_link(tmp_path):
    """From which links to the folder of the classes would lead to the others."""
    name = plant(tmp_path, {"train/cat": 20, "pool/dog": 40})
    link(tmp_path, {"train/dog": "pool/dog", "pool/dog/all": "train", "pool/dog/b": "pool/dog"})
    data = load_data(name)
    assert sum(sizes(data)) == 60
    assert "(not read: 2 links that lead in a circle)" in data.description


def test_what_is_not_read_is_counted(tmp_path):
    name = plant(tmp_path, CAT_DOG | TESTS)
    assert "not read" not in load_data(name).description
    for place in ("train/README", "train/cat/a.txt", "test/dog/b.csv", "train/dog/.DS_Store"):
        (tmp_path / place).write_text("no image")
    (tmp_path / "train/cat/.thumbnails").mkdir()
    Image.new("RGB", (8, 8)).save(tmp_path / "train/cat/.thumbnails/a.png")
    os.mkfifo(tmp_path / "train/cat/pipe")
    Image.new("RGB", (8, 8)).save(tmp_path / "train/cat/d\udcff.JpG", "jpeg")
    data = load_data(name)
    assert sum(sizes(data)) == 68
    words = "(not read: 4 files that are no images, 2 hidden files or folders)"
    assert words in data.description


def break_pipe(root):
    name = plant(root, CAT_DOG)
    os.mkfifo(root / "train" / "dog" / "pipe.png")
    return name


def break_device(root):
    name = plant(root, CAT_DOG)
    (root / "train" / "dog" / "zero.png").symlink_to("/dev/zero")
    return name


def break_missing(root):
    return f"folder:{root}/nowhere"


def break_no_train(root):
    (root / "cats").mkdir()
    return f"folder:{root}"


def break_no_class(root):
    (root / "train").mkdir()
    return f"folder:{root}"


def break_one_class(root):
    return plant(root, {"train/cat": 3})


def break_empty_class(root):
    return plant(root, {"train/cat": 3, "train/dog": 0})


def break_missing_in_test(root):
    return plant(root, {**CAT_DOG, "test/cat": 3})


def break_missing_in_train(root):
    return plant(root, {**CAT_DOG, **VALS, **TESTS, "val/eel": 1})


def break_few(root):
    return plant(root, {"train/cat": 1, "train/dog": 9, **TESTS})


def spoil(content):
    def damage(root):
        name = plant(root, CAT_DOG | TESTS)
        for path in (root / "train" / "dog").iterdir():
            path.write_bytes(content(path.read_bytes()))
        return name

    return damage


def break_folder_for_file(root):
    name = plant(root, CAT_DOG)
    (root / "train" / "dog" / "000.png").unlink()
    (root / "train" / "dog" / "000.png").symlink_to(root / "gone.png")
    return name


def break_one(root):
    name = plant(root, CAT_DOG)
    (root / "train" / "dog" / "007.png").write_bytes(b"GIF89a")
    return name


@pytest.mark.parametrize("damage", [break_pipe, break_device, break_folder_for_file, break_one])
def test_a_file_that_cannot_be_read_is_grey_and_named(tmp_path, damage):
    data = load_data(damage(tmp_path), normalize=False)
    again = load_data(f"folder:{tmp_path}", normalize=False)
    grey = [int((images == 128 / 255).all(dim=(1, 2, 3)).sum()) for images, _ in splits_of(data)]
    assert sum(grey) == 1 and sum(sizes(data)) in (60, 61)
    assert "; 1 image file is grey: it cannot be read ('train/dog/" in data.description
    assert again.checksum == data.checksum and again.description == data.description


@pytest.mark.parametrize("kind", ["grey", "colour", "transparent"])
def test_sixteen_bits_are_scaled_to_eight(tmp_path, kind):
    """A grey file of 16 bits; Pillow itself reads those in colour as 8."""
    name = plant(tmp_path, {"train/a": 9, "train/b": 9})
    for path in tmp_path.rglob("*.png"):
        write_png(path, kind, 40000)
    data = load_data(name, normalize=False)
    assert float((data.train[0][:, :3] - round(40000 / 257) / 255).abs().max()) < 1.01 / 255


def write_png(path, kind, value):
    """A PNG of 8x8 pixels of 16 bits, all of one value."""
    channels, colour = {"grey": (1, 0), "colour": (3, 2), "transparent": (4, 6)}[kind]

    def chunk(name, content):
        body = name + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    row = b"\0" + struct.pack(">H", value) * (8 * channels)
    head = struct.pack(">IIBBBBB", 8, 8, 16, colour, 0, 0, 0)
    parts = (chunk(b"IHDR", head), chunk(b"IDAT", zlib.compress(row * 8)), chunk(b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (break_missing, "nowhere' is no folder: images are looked for as train/CLASS/FILE"),
        (break_no_train, "has no folder 'train': images are looked for as train/CLASS/FILE"),
        (break_no_class, "train' has no class folder: there must be two classes at least"),
        (break_one_class, "train' has 1 class folder only: there must be two classes at least"),
        (break_empty_class, "train/dog' has no image: files ending in .jpg .jpeg .png"),
        (break_missing_in_test, "class 'dog' is in 'train' but not in .*/test': all splits must"),
        (break_missing_in_train, "class 'eel' is in .*/val' but not in 'train': all splits must"),
        (break_few, "class 'cat' has too few training images for validation images to be cut"),
        (spoil(lambda data: b""), "/train/dog/00.[.]png' cannot be read: it is no image of a"),
        (spoil(lambda data: b"GIF89a"), "/train/dog/0..[.]png' cannot be read: "),
        (spoil(lambda data: data[:-30]), "/train/dog/0..[.]png' cannot be read: "),
    ],
)
def test_a_broken_folder_is_one_message(tmp_path, damage, words):
    name = damage(tmp_path)
    with pytest.raises(CanvasError, match=words) as caught:
        load_data(name)
    assert "\n" not in str(caught.value)


def test_names_that_are_no_text_are_shown_escaped(tmp_path):
    name = plant(tmp_path, CAT_DOG)
    bad = (tmp_path / "train" / "dog").rename(tmp_path / "train" / "d\udcff\n")
    for path in bad.iterdir():
        path.write_bytes(b"")
    with pytest.raises(CanvasError) as caught:
        load_data(name)
    assert r"d\udcff\n/0" in str(caught.value) and str(caught.value).isprintable()


def test_one_folder_is_for_validation(tmp_path):
    name = plant(tmp_path, CAT_DOG | VALS | VALIDS)
    with pytest.raises(CanvasError, match="has both 'val' and 'valid': leave one of them"):
        load_data(name)

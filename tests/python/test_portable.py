"""Kernels in networks for other images than those they were found at, and networks without
placeholders for other tools.
"""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import canvas  # noqa: E402
from canvas import cli  # noqa: E402
from canvas.nn.built_in import resnet8  # noqa: E402
from canvas.nn.placeholder import known_targets  # noqa: E402


def network():
    """Strided, biased, unequal and 1x1 convolutions; no size in it."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.Conv2d(8, 16, 3, padding=1, stride=2),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Conv2d(16, 8, 3, padding=1, bias=False),
        nn.Conv2d(8, 8, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def converted(size):
    return canvas.convert(network(), torch.zeros(1, 3, size, size)).model


def targets(size):
    return known_targets(canvas.get_placeholders(converted(size)))


def sampled(seed, **options):
    """By default with no weights over H or W."""
    options = {"draws": "rules,fixed_hw=refuse", **options}
    return canvas.sample(converted(16), seed=seed, budget="macs=0.6x", **options)


# ---- other image sizes --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [7, 16, 24, 64])
def test_kernels_fit_images_of_any_size(size):
    for seed in range(1, 13):
        pack = sampled(seed, norm="batch" if seed % 2 else "none")
        there = canvas.replace(converted(16), pack)
        here = canvas.replace(converted(size), pack)
        here.load_state_dict(there.state_dict())
        images = torch.randn(2, 3, size, size)
        assert torch.equal(here.eval()(images), there.eval()(images))
        for child in canvas.get_placeholders(here).values():
            resized = type(child.kernel).pack
            assert resized.hash == pack.hash and f" H={child.target.h} " in resized.text
        again = pack.resized(targets(size))
        assert again.targets == pack.targets and again.resized(targets(16)) == pack
        again.check()


def test_a_pack_of_its_own_size_stays_the_same_object():
    pack = sampled(1)
    assert pack.resized(targets(16)) is pack
    assert pack.resized([]) is pack


def test_kept_layers_follow_the_image():
    pack = sampled(2)
    first = targets(16)[0]
    part = canvas.KernelPack(
        "\n".join(line for line in pack.text.splitlines() if f"bind {first.name} " not in line)
    )
    mixed = canvas.KernelPack.join([part], [first])
    model = canvas.replace(converted(32), mixed)
    assert next(iter(canvas.get_placeholders(model).values())).kernel is None
    assert f"keep {targets(32)[0].sizes_text()}" in mixed.resized(targets(32)).text


def test_other_layers_are_refused():
    pack = sampled(3)
    other = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1))
    model = canvas.convert(other, torch.zeros(1, 3, 9, 9)).model
    with pytest.raises(canvas.CanvasError, match="no binding for"):
        canvas.replace(model, pack)


def test_weights_that_span_the_image_fix_its_size(fixed_kernel):
    pack = fixed_kernel
    with pytest.raises(canvas.CanvasError, match=r"as large as the image.*re_solve"):
        pack.resized(targets(32))
    with pytest.raises(canvas.CanvasError, match="as large as the image"):
        canvas.replace(converted(32), pack)
    model = canvas.replace(converted(32), pack, re_solve=True)
    assert model(torch.zeros(1, 3, 32, 32)).shape == (1, 8)


@pytest.fixture
def fixed_kernel():
    """The first draw that holds the size of the image."""
    for seed in range(400):
        try:
            pack = sampled(seed, require="none", draws="rules")
        except canvas.NoSolution:
            continue
        if "weights of the kernel fix its images" in pack.torch_code:
            return pack
    pytest.fail("no draw of 400 has weights as large as the image")


def test_sizes_are_chosen_anew_for_the_same_share():
    for seed in range(1, 9):
        pack = sampled(seed)
        for size in (16, 32):
            solved, resized = pack.re_solved(targets(size)), pack.resized(targets(size))
            # the same share of the same; what folds H or W costs less of a larger image
            assert solved.macs == resized.macs or (size > 16 and solved.macs > resized.macs)
        smaller = pack.re_solved(targets(32), "macs=0.3x,params=none") if "x0=" in str(pack) else 0
        assert not smaller or smaller.macs <= 0.3 * sum(t.macs for t in targets(32))
    with pytest.raises(canvas.CanvasError, match="re_solve is for a KernelPack"):
        canvas.replace(converted(16), nn.Conv2d, re_solve=True)
    with pytest.raises(canvas.CanvasError, match="has a layer '1', the network has none"):
        sampled(1).re_solved(targets(16)[1:])


def test_several_kernels_are_solved_each_for_its_layers():
    a, b = sampled(1), sampled(2)
    first = targets(16)[0].name

    def layers(pack, keep):
        """The pack with the first layer alone, or without it."""
        lines = pack.text.splitlines()
        chosen = [n for n in lines if not n.startswith("bind ") or (f"bind {first} " in n) == keep]
        return canvas.KernelPack("\n".join(chosen))

    mixed = canvas.KernelPack.join([layers(a, True), layers(b, False)])
    solved = mixed.re_solved(targets(48))
    assert solved.targets == mixed.targets and solved.kernel == mixed.kernel
    assert canvas.replace(converted(48), solved)(torch.zeros(1, 3, 48, 48)).shape == (1, 8)


def photographs(folder):
    """Two classes of coloured squares, 20x20."""
    Image = pytest.importorskip("PIL.Image")
    for split, count in (("train", 30), ("test", 5)):
        for name in "ab":
            (folder / split / name).mkdir(parents=True)
            for i in range(count):
                image = Image.new("RGB", (20, 20), (200 * "ab".index(name), 5 * i, 90))
                image.save(folder / split / name / f"{i}.png")
    return f"folder:{folder}"


def test_train_at_another_size(tmp_path, capsys):
    """A find of 8x8 images, at 12x12 and, with sizes chosen anew, at 16x16."""
    model = canvas.convert(
        resnet8(channels=3, classes=2, image_size=8, width=2), torch.zeros(1, 3, 8, 8)
    ).model
    pack = tmp_path / "k.pack"
    canvas.save(canvas.sample(model, seed=1, budget="macs=0.5x"), pack)
    words = ["--model", "resnet8", "--width", "2", "--data", photographs(tmp_path / "images")]
    words += ["--threads", "1", "--epochs", "1"]

    def train(what, size, *flags):
        code = cli.main(["train", str(what), *words, "--image-size", str(size), *flags])
        return code, capsys.readouterr()

    for size, flags in ((12, []), (16, ["--re-solve"])):
        out = tmp_path / str(size)
        code, said = train(pack, size, "--out", str(out), *flags)
        assert code == 0 and "Test on folder:" in said.out, said.err
        assert (out / "result.json").exists()
    assert train(pack, 16, "--out", str(out), "--re-solve", "--resume")[0] == 0
    code, said = train("baseline", 16, "--out", str(tmp_path / "none"), "--re-solve")
    assert code == 2 and "'baseline' has no kernel whose sizes" in said.err


# ---- checkpoints and other tools ----------------------------------------------------------------


def test_a_checkpoint_of_the_original_loads_after_convert():
    weights = {
        name: torch.rand_like(w) if w.is_floating_point() else w
        for name, w in network().state_dict().items()
    }
    original = network()
    original.load_state_dict(weights)
    model = converted(16)
    model.load_state_dict(weights)
    images = torch.randn(2, 3, 16, 16)
    assert torch.equal(model.eval()(images), original.eval()(images))
    again = converted(16)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again.eval()(images), model(images))
    missing = {name: w for name, w in weights.items() if name != "4.weight"}
    with pytest.raises(RuntimeError, match=r"4\.original\.weight"):
        converted(16).load_state_dict(missing)
    assert set(weights) == set(network().state_dict())  # nobody's dict was changed


def test_a_finalized_network_is_traced_scripted_and_the_same():
    images = torch.randn(2, 3, 16, 16)
    for seed in range(1, 25):
        options = {"norm": "batch"} if seed % 2 else {"require": "none"}
        model = canvas.replace(converted(16), sampled(seed, **options)).eval()
        with torch.no_grad():
            wanted = model(images)
        final = canvas.finalize(copy.deepcopy(model))
        assert not any(isinstance(m, canvas.Placeholder) for m in final.modules())
        assert not final.training
        with torch.no_grad():
            assert torch.equal(final(images), wanted)
            assert torch.equal(torch.fx.symbolic_trace(final)(images), wanted)
            torch.testing.assert_close(torch.jit.script(final)(images), wanted)
        assert torch.equal(final.train()(images), model.train()(images))
        count = sum(weight.numel() for weight in model.parameters())
        assert sum(weight.numel() for weight in final.parameters()) == count
        final(images).sum().backward()
        assert sum(w.grad is not None for w in final.parameters())


def test_finalize_keeps_what_was_not_replaced():
    model = converted(16)
    final = canvas.finalize(model)
    assert final is model and isinstance(final[1], nn.Conv2d) and isinstance(final[5], nn.Conv2d)
    by_hand = canvas.finalize(nn.Sequential(canvas.Placeholder()))
    assert isinstance(by_hand[0], nn.Identity)
    for wrong in (None, "network", 3):
        with pytest.raises(canvas.CanvasError, match=r"finalize takes a torch\.nn\.Module"):
            canvas.finalize(wrong)
    with pytest.raises(canvas.CanvasError, match="the network around"):
        canvas.finalize(canvas.Placeholder())


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_finalized_network_is_quantized_by_fx():
    quantize_fx = pytest.importorskip("torch.ao.quantization.quantize_fx")
    from torch.ao.quantization import get_default_qconfig_mapping

    images = torch.randn(4, 3, 16, 16)
    model = canvas.replace(converted(16), sampled(1, norm="batch")).eval()
    final = canvas.finalize(copy.deepcopy(model))
    prepared = quantize_fx.prepare_fx(final, get_default_qconfig_mapping(), images)
    prepared(images)
    quantized = quantize_fx.convert_fx(prepared)
    assert quantized(images).shape == (4, 8)

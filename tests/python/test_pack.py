"""Packs: text, cost, module, and what survives pickling, copying and another process."""

import copy
import inspect
import pickle
import re
import subprocess
import sys
import traceback

import pytest

torch = pytest.importorskip("torch")

import canvas  # noqa: E402
from canvas.nn.built_in import resnet8  # noqa: E402

torch.set_num_threads(1)

TEXT = """canvas 1
kernel mixed
a = input
b = fc a to=x0
c = relu b
d = unfold c over=H,W k=K
e = fc d to=C
out e
bind first  Cin=8 Cout=8 KH=3 KW=3 H=6 W=7 stride=1 x0=4
bind second Cin=8 Cout=16 KH=3 KW=3 H=6 W=7 stride=2 x0=4
bind third  Cin=16 Cout=16 KH=3 KW=3 H=3 W=4 stride=1 x0=8
"""


@pytest.fixture
def pack():
    return canvas.KernelPack(TEXT)


def test_fields(pack):
    assert canvas.KernelPack(pack.text).text == pack.text
    assert pack.text.startswith(pack.kernel)
    assert "bind" not in pack.kernel
    assert pack.name == f"Kernel_{pack.hash[:16]}" and len(pack.hash) == 32
    assert pack.targets == ["first", "second", "third"]
    macs = [42 * (8 * 4 + 9 * 4 * 8), 2 * 12 * (8 * 4 + 9 * 4 * 8), 12 * (16 * 8 + 9 * 8 * 16)]
    assert [target["macs"] for target in pack.cost["targets"]] == macs
    assert pack.macs == sum(macs)
    assert pack.params == 320 + 2 * 320 + 1280
    assert pack.graphviz.startswith("digraph")
    assert f"class {pack.name}(nn.Module):" in pack.torch_code
    assert pack == canvas.KernelPack(TEXT) and len({pack, canvas.KernelPack(TEXT)}) == 1
    assert pack != canvas.KernelPack(TEXT.replace("x0=8", "x0=4"))
    assert repr(pack) == f"KernelPack({pack.name}, 3 targets)"


def test_bad_text_is_one_message():
    for text in ("", "canvas 2\n", "canvas 1\nkernel k\na = input\n", "\0", "canvas 1 # \u00e9"):
        with pytest.raises(canvas.CanvasError) as error:
            canvas.KernelPack(text)
        assert "\n" not in str(error.value)


def test_code_runs_without_canvas(pack, tmp_path):
    (tmp_path / "found.py").write_text(
        f"{pack.torch_code}\nimport sys\n"
        f"y = {pack.name}(8, target='second')(torch.ones(1, 8, 6, 7))\n"
        "assert 'canvas' not in sys.modules\nprint(list(y.shape))\n"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "found.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.stdout == "[1, 16, 3, 4]\n", answer.stderr


@pytest.mark.parametrize(
    ("args", "target", "shape"),
    [
        ((16,), None, (16, 3, 4)),
        ((16, 3, 4), None, (16, 3, 4)),
        ((8,), "second", (16, 3, 4)),
        ((8, 6, 7), "first", (8, 6, 7)),
    ],
)
def test_binding(pack, args, target, shape):
    kernel = pack.module(*args, target=target)
    assert kernel(torch.zeros(2, args[0], 6 if args[0] == 8 else 3, 7 if args[0] == 8 else 4))[
        0
    ].shape == torch.Size(shape)


@pytest.mark.parametrize(
    ("args", "target", "message"),
    [
        ((8,), None, "c=8, h=None, w=None fits several bindings"),
        ((8, 6, 7), None, "c=8, h=6, w=7 fits several bindings"),
        ((5,), None, "c=5, h=None, w=None fits no binding"),
        ((16, 9), None, "c=16, h=9, w=None fits no binding"),
        ((8,), "fourth", "target 'fourth' and c=8 fits no binding"),
        ((8,), "third", "target 'third' and c=8 fits no binding"),
    ],
)
def test_binding_rejected(pack, args, target, message):
    with pytest.raises(ValueError, match=message) as error:
        pack.module(*args, target=target)
    assert "first (8, 6, 7), second (8, 6, 7), third (16, 3, 4)" in str(error.value)


def test_module_is_one_class_with_source(pack):
    assert pack.module is canvas.KernelPack(TEXT).module
    assert pack.module.pack == pack
    assert inspect.getsource(pack.module) in pack.torch_code
    other = canvas.KernelPack(TEXT.replace("x0=8", "x0=4"))
    assert other.name == pack.name and other.module is not pack.module
    try:
        pack.module(16)(torch.zeros(1, 2))
    except ValueError:
        assert 'raise ValueError(f"the kernel wants' in traceback.format_exc()


def test_copies_and_pickles(pack):
    kernel = pack.module(8, target="second").double()
    x = torch.randn(1, 8, 6, 7).double()
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel))):
        assert torch.equal(other(x), kernel(x))
        assert other.w0 is not kernel.w0
        assert type(other) is type(kernel)
    assert pickle.loads(pickle.dumps(pack)) == pack


def test_saved_model_loads_elsewhere(pack, tmp_path):
    model = torch.nn.Sequential(canvas.Placeholder(), torch.nn.ReLU())
    canvas.get_placeholders(model, torch.zeros(1, 16, 3, 4))
    canvas.replace(model, pack)
    x = torch.randn(1, 16, 3, 4)
    torch.save((model, x, model(x)), tmp_path / "model.pt")
    code = (
        "import torch; m, x, y = torch.load('model.pt', weights_only=False);"
        "print(torch.equal(m(x), y), m[0].kernel.w0.shape)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert answer.stdout == "True torch.Size([1, 8, 16])\n", answer.stderr


def test_save_and_load(pack, tmp_path):
    canvas.save(pack, tmp_path / "find.kernel")
    assert (tmp_path / "find.kernel").read_text() == pack.text
    assert canvas.load(tmp_path / "find.kernel") == pack


def test_load_executes_nothing_and_says_what_is_wrong(pack, tmp_path):
    python = tmp_path / "kernel.py"
    python.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n{pack.torch_code}")
    with pytest.raises(canvas.CanvasError, match=r"kernel\.py': line 1"):
        canvas.load(python)
    assert not (tmp_path / "ran").exists()
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(canvas.CanvasError, match="is not text"):
        canvas.load(tmp_path / "binary")
    with pytest.raises(canvas.CanvasError, match="cannot read"):
        canvas.load(tmp_path / "missing")
    with pytest.raises(canvas.CanvasError, match="cannot write"):
        canvas.save(pack, tmp_path / "no" / "folder")
    with pytest.raises(canvas.CanvasError, match="save takes a KernelPack"):
        canvas.save(pack.text, tmp_path / "x")


def test_import_without_torch():
    code = (
        "import sys; sys.modules['torch'] = None; import canvas\n"
        f"print(canvas.KernelPack({TEXT!r}).macs, 'convert' in dir(canvas))\n"
        "try: canvas.sample\n"
        "except ImportError as error: print(error)\n"
        "try: canvas.nothing\n"
        "except AttributeError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    first, second, third = answer.stdout.splitlines()
    assert first == f"{canvas.KernelPack(TEXT).macs} True"
    assert (
        second
        == 'canvas.sample needs PyTorch, not installed here: pip install "canvas-kas[torch]"'
    )
    assert third == "module 'canvas' has no attribute 'nothing'"


def test_convert_stays_a_function():
    import canvas.nn.convert

    assert callable(canvas.convert) and callable(canvas.search)


SEVERAL = """canvas 1
kernel depthwise
a = input
b = group a each
c = unfold b over=H,W k=K
d = fc c to=C
e = fc d to=C
out e
norm batch
bind layer1.0.conv1 Cin=4 Cout=4 KH=3 KW=3 H=16 W=16 stride=1
bind layer2.0.conv1 Cin=4 Cout=8 KH=3 KW=3 H=16 W=16 stride=2
kernel narrow
a = input
b = fc a to=x0
c = relu b
d = unfold c over=H,W k=K
e = fc d to=C
out e
bind layer1.0.conv2 Cin=4 Cout=4 KH=3 KW=3 H=16 W=16 stride=1 x0=2
bind layer3.0.conv2 Cin=16 Cout=16 KH=3 KW=3 H=4 W=4 stride=1 x0=8
keep layer2.0.downsample.0 Cin=4 Cout=8 KH=1 KW=1 H=16 W=16 stride=2
keep layer2.0.conv2 Cin=8 Cout=8 KH=3 KW=3 H=8 W=8 stride=1
keep layer3.0.downsample.0 Cin=8 Cout=16 KH=1 KW=1 H=8 W=8 stride=2
keep layer3.0.conv1 Cin=8 Cout=16 KH=3 KW=3 H=8 W=8 stride=2
"""


@pytest.fixture
def several():
    return canvas.KernelPack(SEVERAL)


def converted():
    torch.manual_seed(0)
    network = resnet8(channels=1, classes=3, image_size=16, width=4)
    return canvas.convert(network, torch.zeros(1, 1, 16, 16), policy="all")


def test_a_pack_of_several_kernels(several):
    first, second = several.parts
    assert first.targets == ["layer1.0.conv1", "layer2.0.conv1"] and first.norm == "batch"
    assert second.targets == ["layer1.0.conv2", "layer3.0.conv2"] and second.norm == "none"
    assert several.targets == [*first.targets, *second.targets]
    assert several.kept[0] == "layer2.0.downsample.0" and len(several.kept) == 4
    assert several.part("layer3.0.conv2") == second and several.part("layer2.0.conv2") is None
    assert several.norm == "batch" and several.kernel.count("\nkernel ") == 2
    assert several.hash not in (first.hash, second.hash)
    kept = sum(target["macs"] for target in several.cost["kept"])
    assert several.macs == first.macs + second.macs + kept
    assert repr(several) == f"KernelPack({several.name}, 2 kernels, 4 targets, 4 kept)"
    assert first.parts == (first,) and canvas.KernelPack(several.text) == several
    several.check()
    with pytest.raises(canvas.CanvasError, match="names no target 'stem'"):
        several.part("stem")
    with pytest.raises(canvas.CanvasError, match="2 kernels and 4 kept targets: use one of its"):
        _ = several.module
    with pytest.raises(canvas.CanvasError, match=r"'layer2\.0\.conv2' of .* is kept"):
        several.compile(target="layer2.0.conv2")


def test_join_is_the_inverse_of_parts(several):
    targets = {line.split()[0]: line for line in converted().targets.splitlines()}
    assert set(targets) == {*several.targets, *several.kept}
    again = canvas.KernelPack.join(several.parts)
    assert again.kept == [] and again.parts == several.parts
    singles = [
        canvas.KernelPack(re.sub(rf"^bind (?!{re.escape(name)} ).*\n", "", part.text, flags=re.M))
        for part in several.parts
        for name in part.targets
    ]
    assert canvas.KernelPack.join(singles) == again
    with pytest.raises(canvas.CanvasError, match="bound twice"):
        canvas.KernelPack.join([several, several.parts[0]])


def test_nodes_may_be_called_bind_and_keep():
    text = "canvas 1\nkernel k\nbind = input\nkeep = fc bind to=C\nout keep\n"
    bare = canvas.KernelPack(text)
    pack = canvas.KernelPack(text + "bind t C=4 H=5 W=6\nkeep u C=4 H=5 W=6\n")
    assert canvas.KernelPack.join([pack]) == pack
    assert bare.compile(at="C=4,H=5,W=6") is not None
    with pytest.raises(canvas.CanvasError, match="has no bind lines: give it sizes"):
        canvas.KernelPack.join([bare])
    for wrong in (None, [], "abc", pack, [text], 3):
        with pytest.raises(canvas.CanvasError):
            canvas.KernelPack.join(wrong)


def test_a_kept_layer_has_its_convolution(several):
    conversion = converted()
    wider = SEVERAL.replace(
        "keep layer2.0.conv2 Cin=8 Cout=8", "keep layer2.0.conv2 Cin=16 Cout=16"
    )
    with pytest.raises(canvas.CanvasError, match=r"keeps another layer than 'layer2\.0\.conv2 8"):
        canvas.replace(conversion.model, canvas.KernelPack(wider))
    canvas.replace(conversion.model, several)
    kept = several.text.split("kernel narrow")[0] + (
        "keep layer1.0.conv2 Cin=4 Cout=4 KH=3 KW=3 H=16 W=16 stride=1\n"
    )
    with pytest.raises(canvas.CanvasError, match="whose convolution is not there"):
        canvas.replace(conversion.model, canvas.KernelPack(kept))


def test_replace_by_several_kernels(several):
    conversion = converted()
    network = canvas.replace(conversion.model, several)
    holders = canvas.get_placeholders(network)
    for path, holder in holders.items():
        part = several.part(path)
        assert (holder.kernel is None) == (part is None), path
        assert part is None or type(holder.kernel).pack == part
        assert (holder.original is None) == (part is not None), path
    x = torch.randn(2, 1, 16, 16)
    network(x).sum().backward()
    assert all(p.grad is not None for p in network.parameters())
    network.eval()
    with torch.no_grad():
        expected = network(x)
        assert torch.equal(pickle.loads(pickle.dumps(network))(x), expected)
        folded = canvas.fold(network)
        assert torch.allclose(folded(x), expected, atol=1e-5)
        fast = canvas.compile(network, x)
        assert torch.allclose(fast(x), expected, atol=1e-4)


def test_code_of_several_kernels_stands_alone(several):
    names: dict[str, object] = {"__name__": "alone"}
    exec(several.torch_code, names)
    assert list(names["KERNELS"]) == several.targets
    module = names["KERNELS"]["layer2.0.conv1"](4, target="layer2.0.conv1")
    assert module(torch.zeros(1, 4, 16, 16)).shape == (1, 8, 8, 8)
    first = SEVERAL.split("kernel narrow")[0]
    same = canvas.KernelPack(first + first.removeprefix("canvas 1\n").replace("bind ", "bind x"))
    exec(same.torch_code, names)
    assert len({cls.__name__ for cls in names["KERNELS"].values()}) == 2

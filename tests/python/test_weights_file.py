"""Weights of trained networks, from the files that people have."""

import os

import pytest

torch = pytest.importorskip("torch")

import canvas  # noqa: E402
from canvas.nn.built_in import resnet8  # noqa: E402
from canvas.training import checkpoint  # noqa: E402

torch.set_num_threads(1)


def network(seed=0):
    torch.manual_seed(seed)
    return resnet8(channels=1, classes=3, image_size=8, width=4)


def save(path, form, tensors):
    if form == "safetensors":
        path = path.with_suffix(".safetensors")
        checkpoint.write(path, tensors, {})
    else:
        path = path.with_suffix(".pt")
        torch.save(
            {
                "state_dict": {"state_dict": tensors, "epoch": 3, "optimizer": {"state": {}}},
                "plain": tensors,
                "model": {"model": tensors},
            }[form],
            path,
        )
    return path


@pytest.mark.parametrize("form", ["safetensors", "plain", "state_dict", "model"])
@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod.", "model."])
def test_the_weights_arrive(tmp_path, form, prefix):
    trained, fresh = network(1), network(2)
    tensors = {prefix + name: value for name, value in trained.state_dict().items()}
    path = save(tmp_path / "w", form, tensors)
    assert canvas.load_weights(fresh, path) is fresh
    for name, value in trained.state_dict().items():
        assert torch.equal(fresh.state_dict()[name], value), name


class Loud:
    def __reduce__(self):
        return os.system, ("touch ran",)


def bad_files(folder):
    state = network().state_dict()
    torch.save(Loud(), folder / "code.pt")
    yield "code.pt", "holds more than weights, which could run code"
    torch.save(network(), folder / "whole.pt")
    yield "whole.pt", "holds more than weights, which could run code"
    (folder / "empty.pt").write_bytes(b"")
    yield "empty.pt", "is no file of weights"
    (folder / "empty.safetensors").write_bytes(b"")
    yield "empty.safetensors", "is no file of weights"
    torch.save({}, folder / "nothing.pt")
    yield "nothing.pt", "holds no weights"
    torch.save([1, 2], folder / "list.pt")
    yield "list.pt", "holds no weights"
    torch.save({"epoch": 3, "loss": 0.1}, folder / "facts.pt")
    yield "facts.pt", "has no weights by name: its keys are 'epoch', 'loss'"
    torch.save({**state, "extra": torch.zeros(1)}, folder / "more.pt")
    yield "more.pt", "are of another network: 'extra' is unknown"
    torch.save(dict(list(state.items())[1:]), folder / "less.pt")
    yield "less.pt", "are of another network: 'conv1.weight' is missing"
    torch.save({**state, "fc.bias": torch.zeros(7)}, folder / "shape.pt")
    yield "shape.pt", r"'fc.bias' is \[7\], not \[3\]"
    yield "absent.pt", "cannot read .*absent.pt': No such file"
    yield "absent.safetensors", "cannot read .*: No such file"
    yield "", "cannot read"


def test_bad_files_are_one_message(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours = network()
    before = {name: value.clone() for name, value in ours.state_dict().items()}
    for name, message in bad_files(tmp_path):
        with pytest.raises(canvas.CanvasError, match=message) as error:
            canvas.load_weights(ours, tmp_path / name)
        assert "\n" not in str(error.value), name
    assert not (tmp_path / "ran").exists()
    assert all(torch.equal(before[name], value) for name, value in ours.state_dict().items())
    with pytest.raises(canvas.CanvasError, match=r"a torch\.nn\.Module is needed"):
        canvas.load_weights("resnet8", tmp_path / "more.pt")

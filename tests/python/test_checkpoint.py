"""Files of weights come back as they were, are whole at every moment, and hold no code."""

import json
import os
import pickle

import pytest
import torch
from torch import nn

from canvas.errors import CanvasError
from canvas.training import checkpoint

TENSORS = {
    "float": torch.randn(3, 4),
    "scalar": torch.tensor(7),
    "bytes": torch.arange(5, dtype=torch.uint8),
    "turned": torch.randn(3, 4).t(),
    "empty": torch.zeros(0, 2),
    "half": torch.randn(2).bfloat16(),
}


def test_tensors_and_facts_come_back(tmp_path):
    path = tmp_path / "a.safetensors"
    facts = {"name": 'a "b" ü', "rate": 0.1, "history": [1, None, True]}
    checkpoint.write(path, TENSORS, facts)
    tensors, read = checkpoint.read(path)
    assert read == checkpoint.read_facts(path) == facts
    assert tensors.keys() == TENSORS.keys()
    for name, value in TENSORS.items():
        assert tensors[name].dtype == value.dtype and torch.equal(tensors[name], value), name


def test_tensors_that_share_memory_are_written_each(tmp_path):
    weight = torch.randn(2, 2)
    checkpoint.write(tmp_path / "a", {"a": weight, "b": weight, "c": weight[0]}, {})
    tensors, _ = checkpoint.read(tmp_path / "a")
    assert torch.equal(tensors["a"], tensors["b"]) and torch.equal(tensors["c"], weight[0])


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, call):
    path = tmp_path / "a"
    checkpoint.write(path, {"a": torch.zeros(1)}, {"epoch": 1})
    before = path.read_bytes()

    def fails(*words):
        raise OSError(28, "No space left on device")

    if call == "write":
        monkeypatch.setattr(os, "fdopen", fails)
    else:
        monkeypatch.setattr(os, call, fails)
    with pytest.raises(OSError, match="No space left"):
        checkpoint.write(path, {"a": torch.ones(1)}, {"epoch": 2})
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def foreign(header):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read .*: No such file"),
        (b"", "is no file of weights"),
        (b"canvas 1\nkernel a\n", "is no file of weights"),
        (pickle.dumps({"a": 1}), "is no file of weights"),
        (foreign({"__metadata__": {"canvas": "{"}}), "is no file of weights"),
        (foreign({"__metadata__": {"canvas": "[1]"}}), "is no file of weights.*no object"),
        (foreign({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}), "is no file of"),
    ],
)
def test_what_is_no_file_of_weights_is_one_message(tmp_path, content, message):
    path = tmp_path / "x.safetensors"
    if content is not None:
        path.write_bytes(content)
    for read in (checkpoint.read, checkpoint.read_facts):
        with pytest.raises(CanvasError, match=message) as caught:
            read(path)
        assert "\n" not in str(caught.value)


def test_files_of_others_have_no_facts(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(foreign({"__metadata__": {"format": "pt"}}))
    assert checkpoint.read(path) == ({}, {})


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"weight": torch.zeros(2, 2)}, "'bias' is missing$"),
        ({}, "'weight' is missing and 1 more"),
        ({"weight": torch.zeros(2, 2), "bias": torch.zeros(2), "c": torch.zeros(1)}, "'c' is unk"),
        (
            {"weight": torch.zeros(2, 3), "bias": torch.zeros(2)},
            r"'weight' is \[2, 3\], not \[2, ",
        ),
    ],
)
def test_weights_of_another_network_are_rejected_by_name(tmp_path, weights, message):
    layer = nn.Linear(2, 2)
    before = layer.weight.clone()
    with pytest.raises(CanvasError, match=f"'x' are of another network: {message}"):
        checkpoint.load_weights(layer, weights, "x")
    assert torch.equal(layer.weight, before)


def test_state_that_is_no_tensor_is_rejected():
    class Odd(nn.Linear):
        def get_extra_state(self):
            return {"code": print}

    with pytest.raises(CanvasError, match="'_extra_state', which is no tensor"):
        checkpoint.weights_of(Odd(1, 1))

"""Networks of torchvision and timm, where these are installed: their layers are replaced, trained
for a step, compiled and exported; and the shares of MACs that docs/reports/coverage.md promises.
"""

import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import bench_coverage  # noqa: E402
from bench_zoo import load  # noqa: E402

import canvas  # noqa: E402

torch.set_num_threads(1)
# name, side of its images, options, least share of MACs
NETWORKS = [
    ("densenet121", 64, {}, 0.9),
    ("googlenet", 64, {}, 0.9),
    ("inception_v3", 299, {}, 0.9),
    ("deeplabv3_mobilenet_v3_large", 64, {}, 0.9),
    ("timm:nfnet_l0", 64, {}, 0.9),
    ("regnet_x_800mf", 64, {}, 0.9),
    ("regnet_y_400mf", 64, {}, 0.9),
    ("shufflenet_v2_x1_0", 64, {}, 0.9),
    ("convnext_tiny", 64, {"linear": True}, 0.9),
    ("timm:vit_base_patch16_224", 224, {"linear": True}, 0.9),
]
WHOLE = {"inception_v3": 299}  # images of the shares, 224 if not here


def network(name: str):
    library = "timm" if name.startswith("timm:") else "torchvision"
    try:
        more = bench_coverage.SEGMENTATION
        options = {"weights_backbone": None} if name in more else {}
        return load(name, **options).eval()
    except ImportError as error:
        pytest.skip(f"{library} is not installed ({error})")


def outputs(made) -> torch.Tensor:
    return made["out"] if isinstance(made, dict) else getattr(made, "logits", made)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "size", "options", "least"), NETWORKS)
def test_its_layers_are_replaced(name, size, options, least, tmp_path) -> None:
    net = network(name)
    side = WHOLE.get(name, 224)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = canvas.convert(
            net.to("meta"), torch.zeros(1, 3, side, side, device="meta"), **options
        )
        assert whole.covered > least
        net = network(name)
        x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(1))
        model = canvas.convert(net, x, inplace=True, **options).model
    shape = outputs(net(x)).shape
    pack = canvas.sample(model, x, budget="macs=0.5x,params=none", groups=1, seed=1)
    model = canvas.replace(model, pack).train()
    made = outputs(model(x))
    assert made.shape == shape
    made.float().square().mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 1e-4 * parameter.grad
    model = canvas.fold(model, inplace=True)
    with torch.no_grad():
        wanted = outputs(model(x[:1]))
        compiled = outputs(canvas.compile(model, x[:1])(x[:1]))
        torch.testing.assert_close(compiled, wanted, rtol=1e-2, atol=1e-2 * float(wanted.std()))
    path = tmp_path / "weights.pt"
    torch.save(model.state_dict(), path)
    model.load_state_dict(torch.load(path, weights_only=True))
    final = canvas.finalize(model)
    torch.testing.assert_close(outputs(final(x[:1])), wanted, rtol=1e-3, atol=1e-3)
    torch.export.export(final, (x[:1],))

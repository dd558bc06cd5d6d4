"""Fitting operators to the layers of a trained network: the parts, and `canvas.fit` as a whole."""

import itertools
import math
import os
import signal
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

import canvas  # noqa: E402
from canvas.data import Data  # noqa: E402
from canvas.fitting import choice, fit_run, item_table, layer_fit, menu, screen  # noqa: E402
from canvas.fitting.budget import parse_budget  # noqa: E402
from canvas.fitting.candidates import CONTROLS, MIX, SINGLE, propose  # noqa: E402
from canvas.fitting.divergence import divergence  # noqa: E402
from canvas.fitting.forks import run_forked  # noqa: E402
from canvas.fitting.layer_data import images_within, record  # noqa: E402
from canvas.fitting.menu import Operator, sizes_of  # noqa: E402
from canvas.fitting.teacher import Fitted, Teacher  # noqa: E402
from canvas.nn import controls  # noqa: E402
from canvas.nn.layer_target import Target  # noqa: E402
from canvas.study import Study  # noqa: E402

torch.set_num_threads(1)

DENSE = Operator(
    "dense",
    "canvas 1\nkernel dense\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n",
    fixed=True,
)  # fmt: skip


@pytest.fixture
def short(monkeypatch):
    """Fits of few steps: what they come to does not matter."""
    monkeypatch.setattr(item_table, "SHORT", 4)
    monkeypatch.setattr(item_table, "LONG", 8)
    monkeypatch.setattr(screen, "STEPS", 4)
    monkeypatch.setattr(fit_run, "REFIT", 12)
    monkeypatch.setattr(menu, "SHARES", (0.5, 0.3))


def images(count, seed, classes=3, size=8):
    """Images of noise around a pattern for each class, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(classes, 1, size, size, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(classes, (count,), generator=generator)
    return patterns[labels] + torch.randn(count, 1, size, size, generator=generator), labels


@pytest.fixture(scope="module")
def data():
    return Data("patterns", images(320, 1), images(160, 2), images(160, 3), 3, "noisy patterns")


class Small(torch.nn.Module):
    """Three convolutions: with a BatchNorm behind, strided, with a bias and nothing behind."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = torch.nn.Conv2d(1, width, 3, padding=1)
        self.one = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(width)
        self.two = torch.nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.three = torch.nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.head = torch.nn.Linear(2 * width, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.one(torch.relu(self.stem(x)))))
        x = torch.relu(self.three(torch.relu(self.two(x))))
        return self.head(x.mean(dim=(2, 3)))


@pytest.fixture(scope="module")
def network(data):
    torch.manual_seed(0)
    network = Small()
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(data.train[0]), data.train[1]).backward()
        optimizer.step()
    return network.eval()


@pytest.fixture(scope="module")
def teacher(network, data):
    return Teacher(network, "all", data.train[0], data.validation[0])


@pytest.fixture(scope="module")
def recorded(teacher):
    return teacher.layer_data(1 << 30, 320)[0]


def test_a_dense_operator_learns_an_unstrided_layer(teacher, recorded):
    for target in teacher.targets:
        ways = sizes_of(DENSE, target)
        assert [way.windowed for way in ways] == ([False] if target.stride == 1 else [False, True])
        for sized in ways:
            fitted, error = item_table.fit_operator(recorded[target.name], sized, 300, 1)
            loss = teacher.loss_of(target.name, fitted)
            if target.stride == 1 or sized.windowed:
                assert error < 0.05 and loss < 0.1, sized.name
            else:  # average-pooled input: even a dense operator cannot give what the layer gives
                assert 0.1 < error < 0.6 and loss < 2, sized.name


def test_the_layers_own_weights_are_no_loss(teacher, recorded):
    """Dense operators with the weights of the convolutions: the same network."""
    chosen = {}
    for target in teacher.targets:
        if target.stride == 1:
            sized = sizes_of(DENSE, target)[0]
            original = teacher.holders[target.name].original
            module = sized.pack.module(target.cin, target=target.name).eval()
            with torch.no_grad():
                module.w0.copy_(original.weight.reshape(module.w0.shape))
            match = layer_fit.compare(module, recorded[target.name])
            assert match.error < 1e-4
            scale = layer_fit.take_scale(module, match)
            bias = torch.zeros(target.cout) if original.bias is None else original.bias
            assert torch.allclose(scale, bias.detach(), atol=0.02), target.name
            chosen[target.name] = Fitted(module, scale)
            loss = teacher.loss_of(target.name, chosen[target.name])
            assert loss == pytest.approx(teacher.floor, abs=1e-3), target.name
    assert teacher.divergence(teacher.assemble(chosen)) == pytest.approx(teacher.floor, abs=1e-3)


def test_scale_and_shift_bring_an_operator_to_the_layer(teacher, recorded):
    """No BatchNorm behind layer `three`: weights ten times as large must come out the same."""
    target = next(t for t in teacher.targets if t.name == "three")
    (sized,) = sizes_of(DENSE, target)
    original = teacher.holders["three"].original
    module = sized.pack.module(target.cin, target=target.name).eval()
    with torch.no_grad():
        module.w0.copy_(10 * original.weight.reshape(module.w0.shape))
    bias = layer_fit.take_scale(module, layer_fit.compare(module, recorded["three"]))
    assert torch.allclose(module.w0.reshape(original.weight.shape), original.weight, atol=1e-2)
    assert teacher.loss_of("three", Fitted(module, bias)) == pytest.approx(teacher.floor, abs=1e-3)


def test_a_swap_leaves_no_trace(teacher, recorded):
    before = {name: value.clone() for name, value in teacher.converted.state_dict().items()}
    target = teacher.targets[0]
    (sized,) = sizes_of(DENSE, target)
    fitted, _ = item_table.fit_operator(recorded[target.name], sized, 5, 1)
    teacher.loss_of(target.name, fitted)
    after = teacher.converted.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_rows_are_functions_of_their_arguments(teacher, recorded):
    target = teacher.targets[1]
    sized = sizes_of(menu.CONTROLS[4], target, (0.5,))[0]
    rows = [
        item_table.fit_item(teacher, recorded[target.name], sized, 10, 3, timed=False)
        for _ in range(2)
    ]
    assert rows[0].error == rows[1].error and rows[0].loss == rows[1].loss
    assert rows[0].macs == sized.pack.macs <= 0.5 * target.macs


def test_the_error_is_that_of_images_not_fitted_to(teacher, recorded, monkeypatch):
    seen = []
    monkeypatch.setattr(item_table, "fit_layer", lambda _, data, *__: seen.append(data.inputs))
    compare = layer_fit.compare
    monkeypatch.setattr(
        item_table, "compare", lambda m, data: (seen.append(data.inputs), compare(m, data))[1]
    )
    target = teacher.targets[0]
    item_table.fit_operator(recorded[target.name], sizes_of(DENSE, target)[0], 1, 1)
    fitted, scored = seen[:2]
    assert len(fitted) + len(scored) == len(recorded[target.name].inputs) and len(fitted) > 200
    assert not any(torch.equal(a, b) for a in fitted for b in scored[:3])


def test_nan_layers_and_layers_that_run_twice_are_refused(network, data):
    broken = Small()
    with torch.no_grad():
        broken.two.weight[0] = math.nan
    with pytest.raises(canvas.CanvasError, match="the output of layer 'two' holds NaN"):
        record(broken, {"two": broken.two}, data.train[0][:4])
    twice = torch.nn.Sequential(network.one, network.one)
    with pytest.raises(canvas.CanvasError, match="ran 2 times in 1 passes"):
        record(twice, {"one": network.one}, torch.zeros(1, 8, 4, 4))
    with pytest.raises(canvas.CanvasError, match="hold 0 images and 64 are needed"):
        images_within(network, {"two": network.two}, data.train[0][0], memory=100)


def test_choice_is_the_best_of_all():
    generator = torch.Generator().manual_seed(0)
    for case in range(20):
        items = [
            choice.Item(f"l{layer}", f"i{i}", float(loss), {"macs": float(cost)})
            for layer in range(4)
            for i, (loss, cost) in enumerate(torch.rand(3, 2, generator=generator).tolist())
        ]
        every = list(itertools.product(*[range(3 * k, 3 * k + 3) for k in range(4)]))
        budget = 1.2 + 0.05 * case
        within = [c for c in every if sum(items[i].costs["macs"] for i in c) <= budget]
        if not within:
            with pytest.raises(canvas.NoSolution, match="the smallest has"):
                choice.choose(items, {"macs": budget})
            continue
        best = min(sum(items[i].loss for i in c) for c in within)
        found = choice.several(items, {"macs": budget}, 3)
        assert sum(items[i].loss for i in found[0]) == pytest.approx(best)
        for solution in found:
            assert sum(items[i].costs["macs"] for i in solution) <= budget + 1e-9
        for a, b in itertools.combinations(found, 2):
            assert len(set(a) & set(b)) <= choice.OVERLAP * 4


def test_failed_items_are_never_chosen():
    items = [
        choice.Item("a", "good", 1.0, {"macs": 1.0}),
        choice.Item("a", "failed", math.inf, {"macs": 0.0}),
    ]
    assert choice.choose(items, {"macs": 2.0}) == [0]
    with pytest.raises(canvas.NoSolution, match="the smallest has 1"):
        choice.choose(items, {"macs": 0.5})


def test_divergence():
    logits = torch.tensor([[0.0, 0.0], [1.0, -1.0]])
    assert divergence(logits, logits) == pytest.approx(0)
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    expected = float((p * (p / q).log()).sum())
    assert divergence(q.log()[None], p.log()[None]) == pytest.approx(expected, rel=1e-5)
    assert divergence(torch.tensor([[math.nan, 0.0]]), logits[:1]) == math.inf


def test_budgets():
    both = parse_budget("latency=0.6x, macs=0.3x")
    assert both.limits == {"latency": 0.6, "macs": 0.3}
    targets = [Target("t", 4, 8, 6, 6, stride=2)]
    rows = [item_table.Row(None, "t", 0, 0.0, 0.0, 3e-6, 0, 0)]
    found = both.of_layers(targets, rows, 5e-6)
    assert found["macs"] == pytest.approx(0.3 * 4 * 8 * 9 * 3 * 3)
    assert found["latency"] == pytest.approx(1e-6)
    with pytest.raises(canvas.NoSolution, match=r"not replaced take 0\.70x"):
        both.of_layers(targets, rows, 10e-6)
    for text in (
        "",
        "macs",
        "macs=2x",
        "macs=0x",
        "flops=0.5x",
        "macs=0.5",
        "macs=0.5x,macs=0.4x",
    ):
        with pytest.raises(canvas.CanvasError):
            parse_budget(text)


def test_menu_sizes_every_operator_for_its_layer():
    target = Target("t", 8, 16, 6, 6, stride=2)
    for operator in menu.CONTROLS:
        items = sizes_of(operator, target)
        assert {item.windowed for item in items} == {False, True}, operator.name
        assert items and len({item.pack.text for item in items}) == len(items)
        for item in items:
            assert operator.fixed or item.pack.macs <= item.share * target.macs
            assert item.pack.targets == ["t"]


def test_screening(teacher, recorded):
    layer = screen.screening_layer(teacher.targets)
    assert layer.stride == 1 and layer.cin == layer.cout
    told = []

    def tell(number, item, seconds):
        told.append((number, item.hash, item.error))

    found = [
        screen.screen(teacher.targets, recorded[layer.name], 5, count, workers, tell=tell)
        for count, workers in ((4, 1), (7, 2))
    ]
    assert [f.hash for f in found[0]] == [f.hash for f in found[1]][:4]
    assert [f.error for f in found[0]] == [f.error for f in found[1]][:4]
    assert len({f.hash for f in found[1]}) == 7 and all(0 <= f.error <= 1 for f in found[1])
    assert sorted(number for number, *_ in told) == sorted([*range(1, 5), *range(1, 8)])
    # What is known is not fitted again, and what follows is the same.
    known = {item.hash: item.error for item in found[1][:5]}
    told.clear()
    again = screen.screen(teacher.targets, recorded[layer.name], 5, 7, 2, known=known, tell=tell)
    assert again == found[1] and sorted(number for number, *_ in told) == [6, 7]
    good = screen.survivors(found[1], 2)
    assert len(good) <= 2 and all(not operator.control for operator in good)


def test_proposals_keep_to_the_budget(teacher):
    targets = teacher.targets
    rows = item_table.kept_rows(teacher, timed=False)
    for target in targets:
        for operator in (*menu.CONTROLS, Operator("k1", controls.SPATIALLY_SEPARABLE, False)):
            for at, sized in enumerate(sizes_of(operator, target)):
                loss = 1 / (1 + sized.pack.macs) + (0.01 * at if operator.control else 0)
                rows.append(
                    item_table.Row(sized, target.name, 40, 0.1, loss, math.nan, sized.pack.macs, 1)
                )
    limit = 0.4 * sum(target.macs for target in targets)
    found = propose(rows, {"macs": limit}, drawn=True)
    assert {proposal.kind for proposal in found} == {MIX, CONTROLS, SINGLE}
    for proposal in found:
        assert sum(row.macs for row in proposal.rows) <= limit
        assert [row.layer for row in proposal.rows].count("one") == 1
        drawn = any(r.sized is not None and not r.sized.operator.control for r in proposal.rows)
        assert drawn == (proposal.kind == MIX) or proposal.kind == MIX
        pack = proposal.pack(targets)
        assert {*pack.targets, *pack.kept} == {target.name for target in targets}


def test_fit(network, data, tmp_path, short):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    asked = {"budget": "macs=0.4x", "epochs": 1, "longer": 2, "latency": "none", "draws": 4}
    result = canvas.fit(network, data, say=print, workers=2, out=tmp_path, **asked)
    assert all(torch.equal(before[n], v) for n, v in network.state_dict().items())
    assert [c.kind for c in result.candidates[:2]] == ["teacher", "teacher, tuned"]
    assert {c.budget for c in result.candidates[2:]} == {"macs=0.4x"}
    best, targets = result.best(), Teacher(network, "all", *[data.train[0]] * 2).targets
    assert best.pack.macs <= 0.4 * sum(target.macs for target in targets)
    assert best.macs < result.teacher.macs and best.speedup is None
    assert best.validation > result.teacher.validation - 0.1
    assert {*best.choice} == {*best.pack.targets, *best.pack.kept}
    assert len(best.tests) == 3 and best.epochs == 2 and len(set(result.teacher.tests)) == 1
    right = best.network(data.test[0]).argmax(1) == data.test[1]
    assert torch.equal(right, best.hits[0]) and best.tests[0] == right.float().mean()
    assert "macs=0.4x" in str(result) and "a choice per layer" in result.report.conclusion
    with pytest.raises(canvas.CanvasError, match="the fit had no budget"):
        result.best("macs=0.9x")
    # One worker, in one go: the same.  A study that is done: nothing is done again.
    alone = canvas.fit(network, data, say=print, workers=1, **asked)
    lines = []
    again = canvas.fit(network, data, say=lines.append, workers=2, out=tmp_path, **asked)
    for other in (alone, again):
        assert torch.equal(*(r.best().network(data.test[0][:5]) for r in (result, other)))
        assert other.report.conclusion == result.report.conclusion
    assert not [line for line in lines if "fitting" in line or "tuning" in line or "final" in line]
    with pytest.raises(canvas.CanvasError, match="--epochs 2 instead of 1"):
        canvas.fit(network, data, say=print, out=tmp_path, **{**asked, "epochs": 2})
    with torch.no_grad():
        copy = Small()
        copy.load_state_dict(network.state_dict())
        copy.head.weight.mul_(1.5)
    with pytest.raises(canvas.CanvasError, match="the code of the model has changed"):
        canvas.fit(copy, data, say=print, out=tmp_path, **asked)


class Killed(BaseException):
    pass


def killed_at(network, data, folder, asked, stage, count):
    """A fit that ends like a killed one when a stage has recorded so many rows."""
    original, left = getattr(Study, stage), [count]

    def record(self, *words, **more):
        value = original(self, *words, **more)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, stage, record)
        with pytest.raises(Killed):
            canvas.fit(network, data, say=print, out=folder, **asked)


STAGES = [
    ("record_screened", 2),
    ("record_fitted", 5),
    ("record_fitted", 60),
    ("add_networks", 1),
    ("add_networks", 2),
    ("tuned", 1),
    ("tuned", 3),
    ("final", 4),
]


@pytest.fixture
def whole(network, data, short):
    asked = {
        "budget": "macs=0.4x", "epochs": 1, "longer": 1, "latency": "none", "draws": 3,
        "final_seeds": 2, "workers": 2, "policy": "spatial",
    }  # fmt: skip
    return asked, canvas.fit(network, data, say=print, **asked)


@pytest.mark.parametrize(("stage", "count"), STAGES)
def test_a_killed_fit_goes_on_with_every_row(network, data, tmp_path, whole, stage, count):
    asked, expected = whole
    killed_at(network, data, tmp_path, asked, stage, count)
    with Study.read(tmp_path) as study:
        before = [
            study.screened(),
            study.fitted_items(),
            [r for r in study.candidates() if r.weights],
        ]
    found = canvas.fit(network, data, say=print, out=tmp_path, **asked)
    assert found.report.conclusion == expected.report.conclusion
    images = data.test[0][:9]
    for one, other in zip(found.candidates, expected.candidates, strict=True):
        assert (one.name, one.choice, one.tests) == (other.name, other.choice, other.tests)
        assert torch.equal(one.network(images), other.network(images))
    with Study.read(tmp_path) as study:
        items = study.fitted_items()
        assert all(row in study.screened() for row in before[0])
        assert all(row in items for row in before[1])
        assert len({(i.layer, i.operator, i.steps, i.seed) for i in items}) == len(items)
        after = {row.id: row.weights for row in study.candidates()}
        assert stage != "final" or all(after[row.id] == row.weights for row in before[2])


def test_weights_that_are_gone_or_changed_are_computed_again(network, data, tmp_path, whole):
    asked, expected = whole
    canvas.fit(network, data, say=print, out=tmp_path, **{**asked, "final_seeds": 1})
    kept = sorted((tmp_path / "weights").iterdir())
    for at, path in enumerate(kept):
        if at % 3 == 0:
            path.unlink()
        elif at % 3 == 1:
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    found = canvas.fit(network, data, say=print, out=tmp_path, **asked)
    tests = {one.name: one.tests for one in found.candidates}
    for one in expected.candidates:
        assert tests.get(one.name, one.tests) == one.tests


def test_a_child_that_is_killed_costs_its_job_alone():
    def job(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    found = dict(run_forked(job, range(6), 2, lost=lambda why: why))
    assert "SIGKILL (out of memory?)" in found.pop(2)
    assert found == {0: 0, 1: 1, 3: 9, 4: 16, 5: 25}
    assert dict(run_forked(job, [0, 1], 2, until=time.monotonic() - 1)) == {}

    def refused(number):
        raise canvas.CanvasError(f"no {number}")

    with pytest.raises(canvas.CanvasError, match="no 7"):
        list(run_forked(refused, [7], 1))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(run_forked(lambda n: 1 // n, [0], 1))


def test_the_modes_of_the_network_stay(network, data, short):
    copy = Small()
    copy.load_state_dict(network.state_dict())
    copy.train()
    copy.norm.eval()
    copy.requires_grad_(False)
    canvas.fit(
        copy, data, budget="macs=0.5x", draws=0, epochs=1, longer=1, time_limit=1, latency="none",
        say=print,
    )  # fmt: skip
    assert copy.training and not copy.norm.training
    assert not any(p.requires_grad for p in copy.parameters())


def test_fit_refuses_bad_input(network, data):
    with pytest.raises(canvas.CanvasError, match=r"is torch\.float64 on cpu: a fit takes float32"):
        canvas.fit(Small().double(), data)
    nan = Small()
    with torch.no_grad():
        nan.head.weight[0] = math.nan
    with pytest.raises(canvas.CanvasError, match="cannot be a teacher: outputs for 160 of 160"):
        canvas.fit(nan, data)
    for wrong in ({"draws": -1}, {"seed": 2**70}, {"budget": ["macs=0.5x", "macs=0.5x"]}):
        with pytest.raises(canvas.CanvasError):
            canvas.fit(network, data, **wrong)
    untrained = Small()
    with torch.no_grad():
        untrained.head.weight.zero_()
    with pytest.raises(canvas.CanvasError, match="hardly more than guessing among 3 classes"):
        canvas.fit(untrained, data, say=print)
    with pytest.raises(canvas.CanvasError, match="takes a trained"):
        canvas.fit("resnet8", data)
    with pytest.raises(canvas.CanvasError, match="budget takes budgets such as"):
        canvas.fit(network, data, budget="latency=60%")
    with pytest.raises(canvas.CanvasError, match="a budget of latency needs times"):
        canvas.fit(network, data, latency="none")
    with pytest.raises(canvas.CanvasError, match="--time-limit takes a time such as"):
        canvas.fit(network, data, time_limit="soon")
    with pytest.raises(canvas.NoSolution, match="the layers that are not replaced take"):
        canvas.fit(network, data, budget="latency=0.01x", draws=0, time_limit=2, say=print)

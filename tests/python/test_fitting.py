"""Fitting operators to the layers of a trained network: the parts, and `canvas.fit` as a whole."""

# ruff: noqa: F811 - fixtures have the names of what they give

import itertools
import math
from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from small_trained import Small, data, network  # noqa: E402, F401
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import canvas  # noqa: E402
from canvas.data import Data, Streamed  # noqa: E402
from canvas.fitting import choice, fit, fit_run, item_table, menu, screen  # noqa: E402
from canvas.fitting.budget import parse_budget  # noqa: E402
from canvas.fitting.candidates import CONTROLS, MIX, SINGLE, propose  # noqa: E402
from canvas.fitting.divergence import divergence as divergence_of_batches  # noqa: E402
from canvas.fitting.menu import Operator, sizes_of  # noqa: E402
from canvas.fitting.teacher import Fitted, Teacher  # noqa: E402
from canvas.nn import controls  # noqa: E402
from canvas.nn.layer_target import Target, screening_layer  # noqa: E402
from canvas.tasks.check_task import some_inputs  # noqa: E402
from canvas.tasks.classification import CLASSIFICATION, divergence  # noqa: E402
from canvas.training import layer_fit  # noqa: E402
from canvas.training.layer_data import images_within, record  # noqa: E402

torch.set_num_threads(1)

DRAWN = Operator("k0000", controls.BOTTLENECK, control=False)
DENSE = Operator(
    "dense",
    "canvas 1\nkernel dense\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n",
    fixed=True,
)  # fmt: skip


@pytest.fixture(scope="module")
def teacher(network, data):
    return Teacher(network, "all", data.train[0], data.validation[0])


@pytest.fixture(scope="module")
def recorded(teacher):
    return teacher.layer_data(1 << 30, 320)[0]


def test_a_time_limit_leaves_out_known_and_drawn_operators_alike() -> None:
    target = Target("t", 16, 16, 8, 8)
    drawn = [Operator(f"k{n:04d}", controls.BOTTLENECK, control=False) for n in range(7)]
    items = [s for operator in (*menu.CONTROLS, *drawn) for s in sizes_of(operator, target)]
    turns = menu.in_turns(items)
    assert sorted(map(id, turns)) == sorted(map(id, items))
    sized = [one for one in turns if not one.operator.fixed]
    assert all(one.operator.fixed and one.operator.control for one in turns[: -len(sized)])
    shares, names = [], []
    for one in sized:
        if one.share not in shares[-1:]:
            shares.append(one.share)
            names.append(set())
        names[-1].add(one.operator.name)
    # By its groups, grouped has two shares at once, under the name of the larger.
    names = [some - {"grouped"} for some in names]
    assert shares == [0.5, 0.3, 0.15, 0.7] * 3
    known = {"spatially-separable", "bottleneck"}
    together = known | {"k0000", "k0001", "k0002"}
    later = [{"k0003", "k0004", "k0005"}] * 4 + [{"k0006"}] * 4
    assert names == [together] * 4 + later


def test_a_table_is_filled_in_turns_then_the_best_of_each_layer() -> None:
    """With operators that fit the better, the later they are in the menu."""
    targets = [Target(name, 16, 16, 8, 8) for name in "ab"]
    items = [s for o in (*menu.CONTROLS, DRAWN) for t in targets for s in sizes_of(o, t)]
    loss = {(s.layer, s.name): len(items) - at for at, s in enumerate(items)}
    asked: dict[int, list[menu.Sized]] = {}

    def outcomes(jobs, steps, until):
        asked[steps] = list(jobs)
        for at, sized in enumerate(jobs):
            yield at, item_table.Outcome(0.5, loss[sized.layer, sized.name], 0.1, "", b"", 0.0)

    way = item_table.Way(1, timed=False)
    item_table.fill(None, {}, items, way, outcomes_of=outcomes, tell=lambda row, outcome: row)
    assert asked[item_table.SHORT] == menu.in_turns(items) != items
    longer = asked[item_table.LONG]
    assert [sized.layer for sized in longer[:4]] in (["a", "b"] * 2, ["b", "a"] * 2)
    for layer in "ab":
        own = [loss[s.layer, s.name] for s in longer if s.layer == layer]
        assert own == sorted(own) and len(own) > 2


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
        item_table.fit_item(teacher, recorded[target.name], sized, 10, item_table.Way(3, False))
        for _ in range(2)
    ]
    assert rows[0].error == rows[1].error and rows[0].loss == rows[1].loss
    assert rows[0].macs == sized.pack.macs <= 0.5 * target.macs


def test_the_error_is_that_of_images_not_fitted_to(teacher, recorded, monkeypatch):
    seen = []
    monkeypatch.setattr(layer_fit, "fit_layer", lambda _, data, *__: seen.append(data.inputs))
    compare = layer_fit.compare
    monkeypatch.setattr(
        layer_fit, "compare", lambda m, data: (seen.append(data.inputs), compare(m, data))[1]
    )
    target = teacher.targets[0]
    item_table.fit_operator(recorded[target.name], sizes_of(DENSE, target)[0], 1, 1)
    fitted, scored = seen[:2]
    assert len(fitted) + len(scored) == len(recorded[target.name].inputs) and len(fitted) > 200
    assert not any(torch.equal(a, b) for a in fitted for b in scored[:3])


def sorted_by_class(split):
    order = torch.argsort(split[1], stable=True)
    return split[0][order], split[1][order]


def as_data(splits):
    return Data("sorted", *splits, 3, "noisy patterns")


def as_loaders(splits):
    train, *others = (TensorDataset(*split) for split in splits)
    return Streamed(DataLoader(train, 32, shuffle=True), *(DataLoader(s, 32) for s in others))


@pytest.mark.parametrize("kind", [as_data, as_loaders])
def test_examples_are_from_all_classes_of_sorted_splits(data, kind):
    """A folder of images is sorted by class: new statistics of BatchNorm would be of one class."""
    splits = [sorted_by_class(split) for split in (data.train, data.validation, data.test)]
    source = kind(splits)
    for part, (images, labels) in zip(("train", "validation"), splits, strict=False):
        some = some_inputs(source, CLASSIFICATION, part, 90, 1 << 30).tensors[0]
        same = (some[:, None] == images[None]).flatten(2).all(dim=2)
        assert bool((same.sum(dim=1) == 1).all())
        found = labels[same.float().argmax(dim=1)]
        assert len(found) == 90 and len(same.any(dim=0).nonzero()) == 90
        for half in found.split(45):  # in an order by chance
            assert min(torch.bincount(half, minlength=3)) >= 6
        again = some_inputs(source, CLASSIFICATION, part, 90, 1 << 30).tensors[0]
        assert torch.equal(some, again)
    whole = some_inputs(source, CLASSIFICATION, "validation", 10_000, 1 << 30)
    assert len(whole) == len(splits[1][1])
    few = some_inputs(source, CLASSIFICATION, "validation", 90, 10 * images[0].numel() * 4)
    assert len(few) == 10


@pytest.mark.parametrize("shuffle", [True, False])
def test_a_training_loader_in_order_of_classes_is_noticed(network, data, monkeypatch, shuffle):
    monkeypatch.setattr(fit_run, "IMAGES", 64)
    monkeypatch.setattr(fit, "IMAGES", 64)
    monkeypatch.setattr(fit_run, "KNOWN", fit_run.KNOWN[:1])
    train = DataLoader(TensorDataset(*sorted_by_class(data.train)), 32, shuffle=shuffle)
    others = [DataLoader(TensorDataset(*split), 64) for split in (data.validation, data.test)]
    lines = []
    torch.manual_seed(0)
    canvas.fit(
        network, canvas.stream(train, *others), budget="macs=0.9x", draws=0, epochs=0, longer=0,
        final_seeds=1, latency="none", workers=1, say=lines.append,
    )  # fmt: skip
    noticed = [line for line in lines if "a loader that shuffles gives batches of all" in line]
    assert len(noticed) == (not shuffle)
    assert any("new statistics of BatchNorm alone cost a divergence of" in line for line in lines)


def test_nan_layers_are_refused_and_layers_that_run_twice_recorded(network, data):
    broken = Small()
    with torch.no_grad():
        broken.two.weight[0] = math.nan
    with pytest.raises(canvas.CanvasError, match="the output of layer 'two' holds NaN"):
        record(broken, {"two": broken.two}, data.train[0][:4])
    twice = torch.nn.Sequential(network.one, network.one)
    assert record(twice, {"one": network.one}, torch.zeros(3, 8, 4, 4))["one"].inputs.shape[0] == 6
    with pytest.raises(canvas.CanvasError, match="layer 'two' does not run"):
        record(twice, {"two": network.two}, torch.zeros(1, 8, 4, 4))
    with pytest.raises(canvas.CanvasError, match="hold 0 images and 64 are needed"):
        images_within(network, {"two": network.two}, data.train[0][:1], memory=100)


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
    assert float(divergence(logits, logits)) == pytest.approx(0)
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.8, 0.2])
    expected = float((p * (p / q).log()).sum())
    assert float(divergence(q.log()[None], p.log()[None])) == pytest.approx(expected, rel=1e-5)
    halves = [torch.zeros(3, 2), q.log()[None]], [torch.zeros(3, 2), p.log()[None]]
    both = divergence_of_batches(CLASSIFICATION, *halves, counts=[3, 1])
    assert both == pytest.approx(expected / 4, rel=1e-5)
    broken = [torch.tensor([[math.nan, 0.0]])]
    assert divergence_of_batches(CLASSIFICATION, broken, [logits[:1]], [1]) == math.inf


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
        ways = {False} if operator.pooled else {False, True}
        assert {item.windowed for item in items} == ways, operator.name
        assert operator.pooled != bool(sizes_of(operator, replace(target, stride=1)))
        assert items and len({item.pack.text for item in items}) == len(items)
        for item in items:
            assert operator.fixed or item.pack.macs <= item.share * target.macs
            assert item.pack.targets == ["t"]
            early = "stride=S" in item.pack.kernel or "subsample a " in item.pack.kernel
            assert early == item.windowed


def test_screening(teacher, recorded):
    layer = screening_layer(teacher.targets)
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


def test_the_best_are_those_that_no_other_beats_in_error_and_costs(teacher):
    def item(name, error, *costs):
        return screen.Screened(Operator(name, controls.POINTWISE, False), name, error, costs)

    found = [
        item("bad and cheap", 0.9, 1.0),
        item("beaten", 0.3, 20.0),
        item("cheap", 0.4, 5.0),
        item("equal", 0.2, 10.0),
        item("good", 0.1, 30.0),
        item("beaten twice", 0.35, 40.0),
        item("fair", 0.2, 10.0),
        item("bad", 0.8, 50.0),
    ]
    order = [one.hash for one in screen.best_first(found)]
    assert order[:4] == ["good", "equal", "fair", "cheap"]
    assert order[4:] == ["beaten", "beaten twice", "bad", "bad and cheap"]
    assert [one.name for one in screen.survivors(found, 9)] == [
        "good",
        "equal",
    ]  # of one kind: two
    nothing_beaten = [replace(one, costs=(*one.costs, -one.costs[0])) for one in found]
    order = [one.error for one in screen.best_first(nothing_beaten)]
    assert order == sorted(order)


def test_screening_weighs_what_budgets_limit(teacher, recorded):
    layer = screening_layer(teacher.targets)
    names = ["latency", "macs", "params"]
    data = recorded[layer.name]
    found = screen.screen(teacher.targets, data, 5, 4, quantities=names)
    assert [one.hash for one in found] == [
        one.hash for one in screen.screen(teacher.targets, data, 5, 4)
    ]
    for one in found:
        seconds, macs, params = one.costs
        assert 1e-8 < seconds < 1e-2 and 0 < macs <= 0.5 * layer.macs and params == int(params)


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
    rows = [replace(row, loss=0.0) if row.sized is None else row for row in rows]
    roomy = propose(rows, {"macs": 2 * limit}, drawn=True)
    assert any(row.sized is None for proposal in roomy for row in proposal.rows)
    for proposal in roomy:
        kept = [row.layer for row in proposal.rows if row.sized is None]
        assert sorted(proposal.pack(targets).kept) == sorted(kept)


class Untrainable(Small):
    """Right in evaluation; in training it raises, or answers something else."""

    def __init__(self, how):
        super().__init__()
        self.how = how

    def forward(self, x):
        if self.training and self.how == "raises":
            raise RuntimeError("this head is for inference alone")
        answer = super().forward(x)
        return (answer, answer) if self.training and self.how == "pair" else answer


@pytest.mark.parametrize(
    ("how", "words"),
    [("raises", "cannot be trained: this head is for inference alone"),
     ("pair", "while it trains, not a tuple for 2")],
)  # fmt: skip
def test_fit_refuses_what_fails_in_training_only(network, data, how, words):
    copy = Untrainable(how)
    copy.load_state_dict(network.state_dict())
    said = []
    with pytest.raises(canvas.CanvasError, match=words) as caught:
        canvas.fit(copy.eval(), data, say=said.append)
    assert said == [] and "\n" not in str(caught.value)


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

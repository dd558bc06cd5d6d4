"""A graph that is one native part, and views of inputs: called without the graph around it."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from .cut_graph import Cut
from .input_views import InputViews
from .lifted_graph import LiftedGraph
from .native_part import NativePart


class DirectPart:
    """`places`: for each argument of the part its place among the graph's weights and inputs;
    `answers`: for each output of the graph its place among those of the part, and behind them
    `views`.
    """

    def __init__(
        self,
        part: NativePart,
        weights: int,
        places: list[int],
        answers: list[int],
        views: InputViews | None,
    ) -> None:
        self.part = part
        self._views = views
        self._places = places
        self._inputs = [at - weights for at in part.inputs_of(places)]
        self._answers = None if answers == list(range(len(part.network.outputs))) else answers
        alone = self._inputs == list(range(len(self._inputs)))
        self._as_given = len(self._inputs) if alone else -1

    def given(self, weights: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The part's arguments."""
        every = [*weights, *inputs]
        return [every[place] for place in self._places]

    def inputs_of(self, inputs: Sequence[Any]) -> Sequence[Any]:
        """Those that the part reads, in its order."""
        if len(inputs) == self._as_given:
            return inputs
        return [inputs[place] for place in self._inputs]

    def results_of(self, answers: Sequence[Any]) -> list[Any]:
        """What the part's outputs are where the graph's are these."""
        places = range(len(answers)) if self._answers is None else self._answers
        found = dict(zip(places, answers))
        return [found[place] for place in range(len(found))]

    def run(self, weights: list[Any], inputs: Sequence[Any], in_form: bool) -> list[Any]:
        """`in_form`: as NativePart.run."""
        results = self.part.run(weights, self.inputs_of(inputs), in_form)
        if self._views is not None:
            results = [*results, *self._views.of(inputs)]
        return results if self._answers is None else [results[place] for place in self._answers]


def direct_of(cut: Cut, lifted: LiftedGraph) -> DirectPart | None:
    """None: the graph has other operators, or returns what is no output of the part."""
    nodes = list(cut.outer.graph.nodes)
    holders = [node for node in nodes if node.op == "placeholder"]
    calls = [node for node in nodes if node.op == "call_module"]
    views = [node for node in nodes if node.name in cut.views]
    graphs = ("placeholder", "call_module", "output")
    others = [node for node in nodes if node.op not in graphs and node not in views]
    if (
        len(calls) != 1
        or not cut.parts
        or any(node.target is not operator.getitem for node in others)
    ):
        return None
    part = getattr(cut.outer, calls[0].target)
    results = {calls[0]: 0} if not others else {node: node.args[1] for node in others}
    results.update({node: len(part.network.outputs) + at for at, node in enumerate(views)})
    wanted = nodes[-1].args[0]
    if any(node not in results for node in wanted):
        return None
    places = [holders.index(node) for node in calls[0].args]
    of_inputs = InputViews(views, holders[len(lifted.weights) :]) if views else None
    answers = [results[node] for node in wanted]
    return DirectPart(part, len(lifted.weights), places, answers, of_inputs)

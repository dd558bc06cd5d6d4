"""AutoTVM's genetic algorithm: a gene is the place of a point in each knob, its fitness FLOPS."""

from __future__ import annotations

import random
from collections.abc import Sequence

from ...arguments import shown
from ...te.place import mistake
from ..measure import MeasureInput, MeasureResult, mean_cost
from ..task import ConfigEntity, Task
from .tuner import Tuner, check_seed

Gene = tuple[int, ...]


class GATuner(Tuner):
    """`pop_size` genes in a generation, of which the `elite_num` best so far stay parents; parents
    by fitness, one-point crossover, each knob mutated with `mutation_prob`; nothing is measured
    twice.  `seed` makes the draws repeatable.
    """

    def __init__(
        self,
        task: Task,
        pop_size: int = 100,
        elite_num: int = 3,
        mutation_prob: float = 0.1,
        seed: int = 1,
    ) -> None:
        super().__init__(task)
        for name, value in (("pop_size", pop_size), ("elite_num", elite_num)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise mistake(f"GATuner: {name} is a whole number from 1, not {shown(value)}")
        number = isinstance(mutation_prob, (int, float)) and not isinstance(mutation_prob, bool)
        if not number or not 0 <= mutation_prob <= 1:
            raise mistake(
                f"GATuner: mutation_prob is a number from 0 to 1, not {shown(mutation_prob)}"
            )
        check_seed(seed)
        if elite_num > pop_size:
            raise mistake(
                f"GATuner: elite_num is from 1 to pop_size, not {shown(elite_num)} of "
                f"{shown(pop_size)}"
            )
        self.pop_size, self.elite_num, self.mutation_prob = pop_size, elite_num, mutation_prob
        self.dims = [len(space) for space in self.space.space_map.values()]
        self._random = random.Random(seed)
        self.visited: set[Gene] = set()
        self.elites: list[tuple[float, Gene]] = []
        self.scores: list[float] = []
        self.genes = [gene for _ in range(pop_size) if (gene := self._new(self._any()))]
        self.trial_pt = 0

    def has_next(self) -> bool:
        return self.trial_pt < len(self.genes)

    def next_batch(self, batch_size: int) -> list[ConfigEntity]:
        """At most what is left of the generation."""
        chosen = self.genes[self.trial_pt : self.trial_pt + batch_size]
        self.trial_pt += len(chosen)
        return [self.space.get(self._index(gene)) for gene in chosen]

    def update(self, inputs: Sequence[MeasureInput], results: Sequence[MeasureResult]) -> None:
        for inp, res in zip(inputs, results):
            self.scores.append(inp.task.flop / mean_cost(res))
        if len(self.scores) >= len(self.genes):
            self._next_generation()

    def _next_generation(self) -> None:
        parents = [*zip(self.scores, self.genes), *self.elites]
        self.elites = sorted(parents, reverse=True)[: self.elite_num]
        genes = [gene for _, gene in parents]
        total = sum(score for score, _ in parents)
        weights = [score if total else 1.0 for score, _ in parents]
        children = (self._new(self._child(genes, weights)) for _ in range(self.pop_size))
        self.genes = [gene for gene in children if gene]
        self.scores, self.trial_pt = [], 0

    def _child(self, genes: Sequence[Gene], weights: Sequence[float]) -> Gene:
        one, two = self._random.choices(genes, weights, k=2)
        point = self._random.randrange(len(self.dims))
        return tuple(
            self._random.randrange(dim) if self._random.random() < self.mutation_prob else place
            for place, dim in zip(one[:point] + two[point:], self.dims)
        )

    def _any(self) -> Gene:
        return tuple(self._random.randrange(dim) for dim in self.dims)

    def _new(self, gene: Gene) -> Gene | None:
        """The gene, knobs of it drawn anew until it is one that was not tried; None: all were."""
        while gene in self.visited:
            if len(self.visited) >= len(self.space):
                return None
            knob = self._random.randrange(len(self.dims))
            place = self._random.randrange(self.dims[knob])
            gene = (*gene[:knob], place, *gene[knob + 1 :])
        self.visited.add(gene)
        return gene

    def _index(self, gene: Gene) -> int:
        index = 0
        for place, dim in zip(reversed(gene), reversed(self.dims)):
            index = index * dim + place
        return index

"""When a training is not worth finishing, without rungs (strategy.py has those).

The paper's rule: go on while accuracy(e) >= lambda(e) * best(e), lambda(x) = theta + (1 -
theta) * x, theta = 0.5, where x is the part of training that is behind.  Three things are
changed:

- epoch e of E counts from 0, x = e/E, and the last epoch is never pruned: it is finished anyway;
- the first epochs (`grace`) are not judged: their accuracies are noise;
- `best` is the curve of the best finished candidate *among those with no more MACs than this
  one*, so that cheap kernels are not judged by dear ones.  Controls never count.  `--prune paper`
  compares with the best of all.

Which candidates have finished would depend on how many workers there are and how fast they ran.
So candidate number n is judged by candidates up to n - L only (L is `--lag`), and the driver lets
it wait until those have ended: the same seed gives the same table with one worker or with four,
and after a restart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..study import Candidate
from .search_run import Run

THETA = 0.5


@dataclass(frozen=True)
class Finished:
    """A find whose training ran to its end: its place among the finds from 0, its MACs, its
    curve by epoch (accuracies, or the merits of another metric).
    """

    number: int
    macs: int
    curve: Sequence[float]


def threshold(epoch: int, epochs: int, theta: float = THETA) -> float:
    """lambda: the share of the best curve's accuracy that epoch `epoch` of `epochs` must
    reach.
    """
    return theta + (1 - theta) * epoch / epochs


def best_curve(
    rule: str, number: int, macs: int, finished: Iterable[Finished], behind: int
) -> Sequence[float] | None:
    """The curve that candidate `number` with `macs` MACs is compared with, or None when there is
    none yet.
    """
    judges = [
        other
        for other in finished
        if other.number <= number - behind and (rule == "paper" or other.macs <= macs)
    ]
    if rule == "none" or not judges:
        return None
    return max(judges, key=lambda other: (other.curve[-1], -other.number)).curve


def keeps_up(
    accuracy: float, epoch: int, epochs: int, grace: int, best: Sequence[float] | None
) -> bool:
    """Whether a training with `accuracy` after epoch `epoch` (from 0) goes on."""
    if epoch < grace or epoch >= epochs - 1 or best is None:
        return True
    return accuracy >= wanted(epoch, epochs, best[epoch])


def wanted(epoch: int, epochs: int, best: float) -> float:
    """What epoch `epoch` must reach beside the best curve's `best`; merits of metrics of which
    less is better are negative.
    """
    share = threshold(epoch, epochs)
    return share * best if best >= 0 else best / share


def judge(run: Run, candidate: Candidate, epoch: int, accuracy: float) -> tuple[bool, str] | None:
    """Whether a training with `accuracy` after epoch `epoch` goes on, and why not; None while a
    candidate that counts for it is not ended.
    """
    rule, grace, epochs = (run.options[name] for name in ("prune", "grace", "epochs"))
    if candidate.kind != "find" or rule == "rungs" or epoch < grace:
        return True, ""
    if not _ended_before(run, candidate):
        return None
    best, metric = _best_curve(run, candidate), run.study.metric
    if best is None or keeps_up(metric.merit(accuracy), epoch, epochs, grace, best):
        return True, ""
    least = metric.text(metric.value(wanted(epoch, epochs, best[epoch])))
    return False, f"{metric.text(accuracy)} after epoch {epoch + 1}, {least} wanted"


def _ended_before(run: Run, candidate: Candidate) -> bool:
    assert candidate.number is not None
    last = candidate.number - run.options["lag"]
    under_way = run.study.select("find", ("new", "running"))
    return all(other.number is None or other.number > last for other in under_way)


def _best_curve(run: Run, candidate: Candidate) -> Sequence[float] | None:
    assert candidate.number is not None and candidate.macs is not None
    merit = run.study.metric.merit
    finished = [
        Finished(other.number or 0, other.macs or 0, [merit(v) for v in run.study.curve(other.id)])
        for other in run.study.select("find", "done")
    ]
    return best_curve(
        run.options["prune"], candidate.number, candidate.macs, finished, run.options["lag"]
    )

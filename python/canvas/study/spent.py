"""What a search or a fit has cost so far: seconds by stage, as far as its study records them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .records import Study


@dataclass(frozen=True)
class Spent:
    """A stage: how many pieces of work, their seconds by the clock, and in processor time; None
    where a study does not record it.
    """

    stage: str
    count: int
    seconds: float | None
    processor: float | None


# Seconds of an epoch count from the begin of its training; processor time is null in old studies.
TRAINED = """
SELECT CASE WHEN kind <> 'find' THEN 'trainings: unchanged network and controls'
            WHEN status = 'done' THEN 'trainings: finds, to the end'
            ELSE 'trainings: finds, stopped early or failed' END AS stage,
       count(*) AS count, sum(seconds) AS seconds,
       sum((SELECT max(processor) FROM epoch WHERE epoch.candidate = candidate.id)) AS processor
FROM candidate WHERE seconds IS NOT NULL AND role = '' GROUP BY 1 ORDER BY 1
"""
STAGES = (
    "SELECT 'screening: kernels fitted to one layer' AS stage, count(*) AS count, "
    "NULL AS seconds, sum(seconds) AS processor FROM screened",
    "SELECT 'table: operators fitted to layers' AS stage, count(*) AS count, "
    "NULL AS seconds, sum(seconds) AS processor FROM fit",
    TRAINED,
    "SELECT 'trainings from a second seed' AS stage, count(*) AS count, sum(seconds) AS seconds, "
    "NULL AS processor FROM rung WHERE number = 3",
    "SELECT 'tuning of whole networks' AS stage, count(*) AS count, sum(seconds) AS seconds, "
    "NULL AS processor FROM candidate WHERE role <> '' AND seconds > 0",
    "SELECT 'finals' AS stage, count(*) AS count, sum(seconds) AS seconds, NULL AS processor "
    "FROM final",
    "SELECT 'audits' AS stage, count(*) AS count, sum(seconds) AS seconds, NULL AS processor "
    "FROM audit",
    "SELECT 'compiling and timing' AS stage, count(*) AS count, sum(seconds) AS seconds, "
    "sum(processor) AS processor FROM timing",
)


def spent(study: Study) -> list[Spent]:
    """The stages that have any work, in the order in which they begin."""
    rows = [row for stage in STAGES for row in study.database.execute(stage)]
    return [Spent(**row) for row in rows if row["count"]]

"""From the store to MLflow: which packs are published, by whom, and what the user reads about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from study.console import Console
from study.driver.progress import waiting
from study.plan.plan import Plan
from study.results.dashboard import planned_cells
from study.results.stored_packs import StoredPacks
from study.tracking import Publisher

_CLOSE_S = 60.0
"""How long the end of a run may wait for MLflow."""
_WRITE_S = 0.1
"""The seconds that it waits longer for each trial that is judged only then; it takes about half of that to write."""


@contextmanager
def publishing(plan: Plan, packs: StoredPacks, uri: str | None, console: Console) -> Iterator[Publisher | None]:
    """Open the background publisher to MLflow, if there is to be one, and report at the end what it missed."""
    if uri is None:
        yield None
        return
    spec = plan.spec

    def notify(sentence: str) -> None:
        console.print(sentence, style="yellow")

    with Publisher(
        uri,
        spec.study,
        packs,
        question=spec.question,
        spec=spec.text,
        cells=partial(planned_cells, plan),
        notify=notify,
    ) as publisher:
        yield publisher
        with waiting(console, "publishing what is left to MLflow"):
            missed = publisher.close(_CLOSE_S + (_WRITE_S * plan.trials_count if plan.judges_at_the_end else 0.0))
    if publisher.trouble is not None:
        notify(publisher.trouble)
    if publisher.trouble is not None or missed:
        notify(f"{missed} trials are not published yet: `study sync {spec.study}` does that")

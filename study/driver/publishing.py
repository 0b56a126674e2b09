"""From the store to MLflow: which packs are published, by whom, and what the user reads about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from study.console import Console
from study.driver.progress import waiting
from study.plan.plan import Plan
from study.results.stored_packs import StoredPacks
from study.store import StudyStore
from study.tracking import Publisher


@contextmanager
def publishing(plan: Plan, folder: StudyStore, uri: str | None, console: Console) -> Iterator[Publisher | None]:
    """Open the background publisher to MLflow, if there is to be one, and report at the end what it missed."""
    if uri is None:
        yield None
        return
    spec = plan.spec

    def notify(sentence: str) -> None:
        console.print(sentence, style="yellow")

    with Publisher(
        uri, spec.study, StoredPacks(folder), question=spec.question, spec=spec.text, notify=notify
    ) as publisher:
        yield publisher
        with waiting(console, "publishing what is left to MLflow"):
            missed = publisher.close()
    if publisher.trouble is not None:
        notify(publisher.trouble)
    if publisher.trouble is not None or missed:
        notify(f"{missed} trials are not published yet: `study sync {spec.study}` does that")

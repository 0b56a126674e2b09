"""States of runs in the vocabularies of tracking tools, and the columns that hold them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError
from study.records import Outcome
from study.words import count_of, join_and

Rows = npt.NDArray[np.bool_]


class State(StrEnum):
    """State of a run."""

    FINISHED = "finished"
    FAILED = "failed"
    STOPPED = "stopped"
    RUNNING = "running"


NO_RESULT = (State.FAILED, State.STOPPED)
"""The states of runs that ended without a result."""

_FINISHED, _FAILED, _STOPPED, _RUNNING = State
_WORST = (_FINISHED, _STOPPED, _FAILED, _RUNNING)  # ascending: a row has the worst state of its columns
_NOTHING = "nothing"  # stands for an empty cell

# The words of each tool: those for finished, failed, stopped and running, in this order.
_TOOLS: Mapping[str, tuple[str, str, str, str]] = {
    "MLflow": ("finished", "failed", "killed", "running scheduled"),
    "W&B": ("finished", "crashed failed", "killed preempted", "running pending preempting starting"),
    "Optuna": ("complete", "fail", "pruned", "running waiting"),
    "Sacred": ("completed", "failed died probably_dead", "interrupted timeout", "running queued"),
    "Ray Tune": ("terminated", "error", "", "pending running paused restoring"),
    "Slurm": (
        "completed",
        "failed node_fail out_of_memory boot_fail launch_failed reconfig_fail special_exit",
        "cancelled preempted revoked timeout deadline",
        "pending running completing configuring suspended requeued resizing signaling stage_out",
    ),
    "Kubernetes": (
        "succeeded complete completed",
        "failed error unknown evicted oom_killed crash_loop_back_off image_pull_back_off err_image_pull "
        "container_cannot_run backoff_limit_exceeded create_container_config_error",
        "terminating deadline_exceeded",
        "pending running container_creating pod_initializing suspended",
    ),
    "ClearML": ("completed closed published publishing", "failed", "stopped aborted", "created queued in_progress"),
    "Neptune": ("inactive succeeded", "failed", "aborted", "active running"),
    "Comet": ("finished completed", "crashed", "stopped", "running active paused"),
    "Guild AI": ("completed", "error", "terminated", "running pending staged"),
    "SageMaker": ("completed", "failed", "stopped", "in_progress stopping"),
    "Azure ML": (
        "completed finished",
        "failed not_responding",
        "canceled cancel_requested",
        "not_started queued preparing provisioning starting running finalizing",
    ),
    "Vertex AI": ("succeeded", "failed partially_succeeded", "cancelled cancelling expired", "queued pending running"),
    "Katib": ("succeeded", "failed metrics_unavailable", "killed early_stopped", "created running"),
    "Determined": ("completed", "error", "canceled", "active paused queued running stopping"),
    "any": (
        "done ok success successful passed",
        "failure crash exception errored oom diverged",
        "timed_out cancel interrupt skipped abort kill",
        "submitted initializing new ongoing started unfinished incomplete",
    ),
}
# Columns that distinguish two tools with different meanings of one word.
_MARKS = {"Ray Tune": ("training_iteration", "time_total_s", "config/"), "Guild AI": (".label", "operation")}
# Columns of true and false: the states for true and for false.
_BOOLEAN = {
    **dict.fromkeys(("done", "finished", "completed", "isdone", "isfinished"), (_FINISHED, _STOPPED)),
    **dict.fromkeys(("failed", "crashed", "hascrashed", "sysfailed", "isfailed", "haserror"), (_FAILED, _FINISHED)),
}
_TRUE, _FALSE = {"true", "1", "yes"}, {"false", "0", "no"}
_PREFIXES = r"(trial|job|run|task|pod)?[ _-]?(state|status|phase)[._ -]"
_CALLED = {"state", "status", "outcome", "phase"}
# A column without a state's name holds states only if it has words of two states, including one of these words.
_TELLING = {*("finished", "complete", "completed", "succeeded", "success", "terminated")}
_MOST_WORDS, _MOST_LISTED = 40, 8


@dataclass(frozen=True)
class States:
    """The states of the rows of a table.

    Args:
        columns: the columns that hold the states.
        values: a state for each row: the worst of its columns' states.
        words: a word for each row, for messages.
    """

    columns: tuple[str, ...]
    values: npt.NDArray[np.object_]
    words: Sequence[str]

    def are(self, *states: State) -> Rows:
        """Return a mask of the rows that are in one of these states; at least one state is needed."""
        mask: Rows = np.logical_or.reduce([self.values == state for state in states]).astype(bool)
        return mask

    @property
    def running(self) -> Rows:
        """A mask of the rows without a result so far."""
        return self.are(State.RUNNING)

    @property
    def failed(self) -> Rows:
        """A mask of the rows that failed or were stopped before their end."""
        return self.are(*NO_RESULT)

    def count(self, *states: State) -> str:
        """Return the number of runs in these states as text, with the eight most frequent words; empty without any.

        At least one state is needed.
        """
        words = Counter(word for word, here in zip(self.words, self.are(*states), strict=True) if here)
        listed = ", ".join(f"{word} {number:,}" for word, number in words.most_common(_MOST_LISTED))
        return f"{count_of(words.total(), 'run')}, by {join_and(self.columns)} ({listed})" if words else ""


def read_state_words(options: Iterable[str]) -> dict[str, State]:
    """Parse user-supplied meanings of words, such as ``aborted=failed,fertig=finished``.

    Returns:
        The states by word; words are in lower case, without separators or a type's name such as ``TrialState.``. The
        last of several meanings counts.

    Raises:
        InputError: if an option isn't of that form, or names an unknown meaning.

    Example:
        >>> read_state_words(["Abgebrochen=failed, fertig=finished"])
        {'abgebrochen': <State.FAILED: 'failed'>, 'fertig': <State.FINISHED: 'finished'>}
    """
    words = {}
    for part in (part for option in options for part in option.split(",") if part.strip()):
        word, _, meaning = (text.strip() for text in part.rpartition("="))
        if not word or meaning.lower() not in list(State):
            raise InputError(
                f"--state-words {part.strip()!r} must be WORD=MEANING, with a meaning of {', '.join(State)}"
            )
        words[_plain(word)] = State(meaning.lower())
    return words


def find_states(
    table: pa.Table, user_words: Mapping[str, State] | None = None, others: Collection[str] = ()
) -> States | None:
    """Find the columns that hold states of runs, by their names and words.

    Args:
        table: one row a run.
        user_words: user-supplied meanings of words, from `read_state_words`.
        others: columns that don't hold states.

    Returns:
        The states; None if no column holds states.

    Raises:
        InputError: if a column of states has words without a single known meaning.

    Example:
        >>> table = pa.table({"seed": [0, 1, 2], "state": ["COMPLETE", "TrialState.PRUNED", "COMPLETE"]})
        >>> [str(state) for state in find_states(table).values]
        ['finished', 'stopped', 'finished']
    """
    columns: dict[str, dict[str, State]] = {}
    for name in (name for name in table.column_names if name not in others):
        words = _words_of(table[name], None if _has_state_name(name) else _MOST_WORDS)
        if not words:
            continue
        if _plain(name) in _BOOLEAN and {word.lower() for word in words} <= _TRUE | _FALSE:
            yes, no = _BOOLEAN[_plain(name)]
            columns[name] = {word: yes if word.lower() in _TRUE else no for word in words}
            continue
        known = {word: _meanings(word, words, table.column_names, user_words or {}) for word in words}
        if _has_state_name(name):
            if _are_states(name, words, known):
                columns[name] = {word: _single_meaning(name, known, word) for word in words}
        elif all(len(meanings) == 1 for meanings in known.values()) and _are_unmistakable(known):
            columns[name] = {word: next(iter(meanings)) for word, meanings in known.items()}
    return _worst_states(table, columns) if columns else None


def _worst_states(table: pa.Table, columns: Mapping[str, Mapping[str, State]]) -> States:
    """Give each row the worst state of its columns, and the word for it."""
    values = np.full(len(table), State.FINISHED, dtype=object)
    words = [""] * len(table)
    ranks = {state: rank for rank, state in enumerate(_WORST)}
    for name, meaning in columns.items():
        for row, text in enumerate(_texts(table[name])):
            if not words[row] or ranks[meaning[text]] > ranks[values[row]]:
                values[row], words[row] = meaning[text], text
    return States(tuple(columns), values, words)


def _texts(column: pa.ChunkedArray) -> list[str]:
    """Return a column's texts, `_NOTHING` for empty cells."""
    return [(text or "").strip() or _NOTHING for text in column.cast(pa.string()).to_pylist()]


def _words_of(column: pa.ChunkedArray, most: int | None) -> list[str]:
    """Return a column's distinct words; empty if it is empty, has over `most`, or isn't of text or Booleans."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)):
        return []
    different = pc.unique(column)
    words = list(dict.fromkeys(_texts(different))) if most is None or len(different) <= most else []
    return [] if words == [_NOTHING] else words


def _plain(word: str) -> str:
    """Normalise a word: without case, separators, the name of its type, and Slurm's suffix.

    Example:
        >>> _plain("TrialState.FAIL"), _plain("CANCELLED by 1000"), _plain("Out-of-memory"), _plain("CANCELLED+")
        ('fail', 'cancelled', 'outofmemory', 'cancelled')
    """
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word.strip()).lower()
    spaced = re.sub(r"\s+by\s+\d+$", "", spaced)
    return re.sub(r"[^\w]|_", "", re.sub(rf"^{_PREFIXES}", "", spaced))


def _meanings(word: str, words: Sequence[str], columns: Sequence[str], user_words: Mapping[str, State]) -> set[State]:
    """Return a word's meanings: the user's, or those of the tools that know most of the column's words.

    A tool that is recognised by the names of columns takes precedence over other tools.
    """
    plain = _plain(word)
    if plain in user_words:
        return {user_words[plain]}
    others = {_plain(word) for word in words} - user_words.keys()
    marked = {tool for tool, marks in _MARKS.items() if any(c.startswith(mark) for mark in marks for c in columns)}
    by_tool = {tool: len(others & vocabulary.keys()) for tool, vocabulary in _VOCABULARIES.items()}
    meanings = {tool: vocabulary[plain] for tool, vocabulary in _VOCABULARIES.items() if plain in vocabulary}
    if marked & meanings.keys():
        return {meanings[tool] for tool in marked & meanings.keys()}
    most = max((by_tool[tool] for tool in meanings), default=0)
    return {state for tool, state in meanings.items() if by_tool[tool] == most}


_VOCABULARIES = {
    tool: {_plain(word): state for state, words in zip(State, lists, strict=True) for word in words.split()}
    for tool, lists in _TOOLS.items()
}


def _has_state_name(name: str) -> bool:
    """Return True if a column is called state, status, outcome or phase, or its name ends in state or status."""
    plain = re.sub(r"[^a-z]", "", name.lower())
    return plain in _CALLED or plain.endswith(("state", "status"))


def _are_states(name: str, words: Collection[str], known: Mapping[str, set[State]]) -> bool:
    """Return True if a column with a state's name holds states: any word is a state, or the name ends in status.

    In a column outcome, all words must be states, and not all of them outcomes.
    """
    if _plain(name) == "outcome":  # holds this package's outcomes, perhaps misspelt, unless all words are states
        return all(known.values()) and not {word.lower() for word in words} <= {*Outcome}
    return any(known.values()) or name.lower().endswith("status")


def _single_meaning(name: str, known: Mapping[str, set[State]], word: str) -> State:
    """Return a word's only meaning; raise InputError if it has none or several."""
    unclear = [other for other, meanings in known.items() if len(meanings) != 1]
    if word not in unclear:
        return next(iter(known[word]))
    raise InputError(
        f"column {name} holds states of runs, but {join_and([repr(other) for other in unclear[:_MOST_LISTED]])} "
        f"{'have' if len(unclear) > 1 else 'has'} no clear meaning: give it with --state-words, as one of "
        f"{', '.join(State)}, as in --state-words '{unclear[0]}=failed'; or name {name} in --by if it isn't a state"
    )


def _are_unmistakable(known: Mapping[str, set[State]]) -> bool:
    """Return True if words are states in any column: they have two meanings, and one word is unmistakable."""
    return bool({_plain(word) for word in known} & _TELLING) and len(set[State]().union(*known.values())) > 1

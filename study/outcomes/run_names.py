"""What the name of a run's column says: whether it holds seeds or a metric, and which values are better."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError

_HIGHER = {
    *("acc", "accuracy", "auc", "auroc", "auprc", "ap", "map", "f1", "r2", "precision", "recall", "score", "reward"),
    *("return", "returns", "iou", "miou", "dice", "bleu", "rouge", "psnr", "ssim", "likelihood", "success", "top1"),
    *("top5", "mcc", "ndcg", "mrr", "elo", "win", "wins"),
}
_LOWER = {
    *("loss", "error", "err", "mse", "rmse", "mae", "nll", "perplexity", "ppl", "fid", "wer", "cer", "bce", "regret"),
    *("crossentropy", "logloss", "brier", "mape", "cost", "distance"),
}
# What ends so is set by hand, whatever it is the weight, the scale or the threshold of.
_SET_BY_HAND = {
    *("weight", "weights", "coef", "coeff", "coefficient", "scale", "threshold", "margin", "penalty", "type", "fn"),
    *("function", "size", "name"),
}
_LABELS = {
    *("dir", "directory", "path", "folder", "file", "filename", "uuid", "host", "hostname", "user", "username", "url"),
    *("uri", "commit", "sha", "hash", "date", "timestamp", "datetime", "created", "started", "finished", "updated"),
}
_RATHER = ("test", "val", "valid", "validation", "eval")


def direction(name: str) -> bool | None:
    """Return whether higher values of a metric are better, by its name; None if the name doesn't say it.

    Example:
        >>> direction("val_acc"), direction("test/nll-loss"), direction("neg_log_likelihood"), direction("epoch")
        (True, False, False, None)
        >>> direction("loss_weight"), direction("score_threshold")
        (None, None)
    """
    parts = words_of(name)
    if parts and parts[-1] in _SET_BY_HAND:
        return None
    if {"neg", "negative"} & set(parts):
        return False if set(parts) & (_HIGHER | _LOWER) else None
    lower, higher = set(parts) & _LOWER, set(parts) & _HIGHER
    return None if not lower and not higher else not lower


def is_label(name: str) -> bool:
    """Return whether a column is called as ids, names, places and times of runs are.

    Example:
        >>> is_label("output_dir"), is_label("runName"), is_label("_timestamp"), is_label("model_name")
        (True, True, True, False)
    """
    words = words_of(name)
    return bool(set(words) & _LABELS) or words[:2] in (["run", "name"], ["run", "id"])


def is_progress(name: str) -> bool:
    """Return whether a column is called as that which says how far a run is.

    Example:
        >>> is_progress("epoch"), is_progress("trainer/global_step"), is_progress("epochs"), is_progress("step_size")
        (True, True, False, False)
    """
    return words_of(name)[-1:] in (["epoch"], ["step"], ["iteration"], ["iter"])


def words_of(name: str) -> list[str]:
    """Split a column's name into words, in small letters.

    Example:
        >>> words_of("trainer.randomSeed"), words_of("RNGSeed"), words_of("val/top-1_acc")
        (['trainer', 'random', 'seed'], ['rng', 'seed'], ['val', 'top', '1', 'acc'])
    """
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower())


def main_first(names: Sequence[str]) -> list[str]:
    """Order metrics: those of tests first, then those of validation, then the others.

    Example:
        >>> main_first(["loss", "val_acc", "test_acc", "epoch"])
        ['test_acc', 'val_acc', 'loss', 'epoch']
    """

    def place(name: str) -> tuple[bool, int]:
        of = [_RATHER.index(word) for word in words_of(name) if word in _RATHER]
        return direction(name) is None, min(of, default=len(_RATHER))

    return sorted(names, key=place)


def seed_column(table: pa.Table, seed: str | None) -> str:
    """Return the column of seeds: the one that is named, or else the one that is called so.

    Raises:
        InputError: if there is none.
    """
    names = table.column_names
    if seed is not None:
        if seed not in names:
            raise InputError(f"--seed {seed}: there is no such column; there is {', '.join(names)}")
        return seed
    called = [name for name in names if words_of(name)[-1:] in (["seed"], ["seeds"]) or _is_random_state(name)]
    if not called:
        raise InputError(
            "no column is called seed: name it with --seed COLUMN, or say --without-seeds if the runs drew theirs at "
            f"random; there is {', '.join(names)}"
        )
    varying = [name for name in called if len(pc.unique(table[name])) > 1] or called
    return str(min(varying, key=lambda name: (len(words_of(name)), varying.index(name))))


def _is_random_state(name: str) -> bool:
    return words_of(name)[-2:] == ["random", "state"]

"""Names of the columns of runs: seeds, metrics with their directions, labels, progress."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from study.errors import InputError

_HIGHER = {
    *("acc", "accuracy", "auc", "auroc", "auprc", "aucpr", "ap", "map", "f1", "r2", "precision", "recall", "score"),
    *("reward", "rewards", "rew", "return", "returns", "iou", "miou", "dice", "jaccard", "bleu", "rouge", "meteor"),
    *("psnr", "ssim", "likelihood", "elbo", "success", "top1", "top3", "top5", "top10", "mcc", "kappa", "ndcg", "mrr"),
    *("elo", "win", "wins", "winrate", "correlation", "pearson", "spearman", "sensitivity", "specificity", "chrf"),
    *("cider", "hits", "fscore", "f2", "macrof1", "microf1"),
}
_LOWER = {
    *("loss", "losses", "error", "errors", "err", "mse", "rmse", "mae", "nll", "perplexity", "ppl", "fid", "wer"),
    *("cer", "ter", "bce", "regret", "crossentropy", "logloss", "brier", "mape", "smape", "rmsle", "msle", "ece"),
    *("cost", "distance", "bpc", "bpb", "lpips", "kl", "divergence", "hausdorff", "chamfer", "eer", "nmse", "nrmse"),
}
# Names with such an end are settings, such as the weight, scale or threshold of a metric.
_SET_BY_HAND = {
    *("weight", "weights", "coef", "coeff", "coefficient", "scale", "threshold", "margin", "penalty", "type", "fn"),
    *("function", "size", "name"),
}
# Runs aren't compared by spreads, extremes or counts of metrics, or by times.
_SPREADS = {*("std", "stdev", "stddev", "sd", "stderr", "se", "sem", "var", "variance", "ci", "iqr")}
_EXTREMES = {*("min", "minimum", "max", "maximum", "count", "num", "n")}
_TIMES = {
    *("time", "times", "duration", "runtime", "walltime", "elapsed", "seconds", "secs", "sec", "minutes", "hours")
}
_TIME_ENDS = {*("s", "ms", "us", "h", "restore", "total", "iter", "epoch")}
_LABELS = {
    *("dir", "directory", "path", "folder", "file", "filename", "uuid", "host", "hostname", "user", "username", "url"),
    *("uri", "commit", "sha", "hash", "date", "timestamp", "datetime", "created", "started", "finished", "updated"),
    *("pid", "ip", "logdir"),
}
_RANDOM_STATE = ["random", "state"]
_PREFERRED = ("test", "val", "valid", "validation", "eval")
_BEFORE_ERR = {*_PREFERRED, "train", "top", "rel", "abs", "relative", "absolute", "generalization"}


def direction(name: str) -> bool | None:
    """Return True if higher values of a metric are better, False if lower ones are, None if its name doesn't tell.

    Lower values count as better for every metric with ``neg`` or ``negative`` in its name.

    Example:
        >>> direction("val_acc"), direction("test/nll-loss"), direction("neg_log_likelihood"), direction("epoch")
        (True, False, False, None)
        >>> direction("test_f1"), direction("R2"), direction("top-5"), direction("mIoU"), direction("std_reward")
        (True, True, True, True, None)
        >>> direction("neg_mean_squared_error"), direction("neg_log_likelihood_loss")
        (True, None)
        >>> direction("loss_weight"), direction("score_threshold"), direction("acc_err"), direction("test_err")
        (None, None, None, False)
    """
    parts = words_of(name)
    if (parts and parts[-1] in _SET_BY_HAND) or is_secondary(name):
        return None
    words = _with_pairs(name)
    lower, higher = words & _LOWER, words & _HIGHER
    if {"neg", "negative"} & words:
        return None if bool(lower) == bool(higher) else bool(lower)
    return None if not lower and not higher else not lower


def is_secondary(name: str) -> bool:
    """Return True if a column has the name of a time, or of a spread, an extreme or a count of a metric.

    Example:
        >>> is_secondary("std_reward"), is_secondary("time_total_s"), is_secondary("max_depth")
        (True, True, False)
    """
    parts = words_of(name)
    words = _with_pairs(name)
    is_metric = bool(words & (_HIGHER | _LOWER))
    is_bar = parts[-1:] == ["err"] and len(parts) > 1 and parts[-2] not in _BEFORE_ERR and not parts[-2].isdigit()
    is_time = parts[-1:] and (parts[-1] in _TIMES or (parts[0] in _TIMES and parts[-1] in _TIME_ENDS))
    return bool(is_time) or (is_metric and (is_bar or bool(words & (_SPREADS | _EXTREMES))))


def _with_pairs(name: str) -> set[str]:
    """Return a name's words, each word joined with a number that follows it, and the words without splits at capitals.

    Example:
        >>> sorted(_with_pairs("val/top-5")), sorted(_with_pairs("mIoU"))
        (['5', 'top', 'top5', 'val'], ['io', 'm', 'miou', 'u'])
    """
    parts = words_of(name)
    pairs = {first + second for first, second in itertools.pairwise(parts) if second.isdigit()}
    return {*parts, *pairs, *re.findall(r"[a-z]+", name.lower())}


def is_label(name: str) -> bool:
    """Return True if a word of a column's name marks labels of runs, such as ``uuid``, ``commit`` or ``date``.

    One word is enough, as in ``output_dir``. Names that begin with ``run_name`` or ``run_id`` are labels, too, but not
    others with ``id`` or ``name``.

    Example:
        >>> is_label("output_dir"), is_label("runName"), is_label("_timestamp"), is_label("model_name")
        (True, True, True, False)
    """
    words = words_of(name)
    return bool(set(words) & _LABELS) or words[:2] in (["run", "name"], ["run", "id"])


def is_progress(name: str) -> bool:
    """Return True if a column has the name of a run's progress, such as epoch or step.

    Example:
        >>> is_progress("epoch"), is_progress("trainer/global_step"), is_progress("epochs"), is_progress("step_size")
        (True, True, False, False)
    """
    return words_of(name)[-1:] in (["epoch"], ["step"], ["iteration"], ["iter"])


def words_of(name: str) -> list[str]:
    """Split a column's name into lower-case words.

    Example:
        >>> words_of("trainer.randomSeed"), words_of("RNGSeed"), words_of("val/top-1_acc")
        (['trainer', 'random', 'seed'], ['rng', 'seed'], ['val', 'top', '1', 'acc'])
    """
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower())


def main_first(names: Sequence[str]) -> list[str]:
    """Order metrics by name: test, val, valid, validation, eval, then others; names without a direction come last.

    Example:
        >>> main_first(["loss", "val_acc", "test_acc", "epoch"])
        ['test_acc', 'val_acc', 'loss', 'epoch']
    """

    def place(name: str) -> tuple[bool, int]:
        """Return the sort key of a name."""
        ranks = [_PREFERRED.index(word) for word in words_of(name) if word in _PREFERRED]
        return direction(name) is None, min(ranks, default=len(_PREFERRED))

    return sorted(names, key=place)


def seed_column(table: pa.Table, seed: str | None) -> str:
    """Return the column of seeds: `seed`; for None, of the columns with a seed's name, the one with the fewest words.

    Of these columns, those that vary take precedence.

    Raises:
        InputError: if no such column exists.
    """
    names = table.column_names
    if seed is not None:
        if seed not in names:
            raise InputError(f"--seed {seed}: no such column; choose from {', '.join(names)}")
        return seed
    candidates = seed_names(names)
    if not candidates:
        raise InputError(
            "no column is named seed: give its name with --seed COLUMN, or --without-seeds if the runs drew their "
            f"seeds at random; choose from {', '.join(names)}"
        )
    varying = [name for name in candidates if len(pc.unique(table[name])) > 1] or candidates
    return str(min(varying, key=lambda name: (len(words_of(name)), varying.index(name))))


def seed_names(names: Sequence[str]) -> list[str]:
    """Return the columns with a seed's name: its last word is seed or seeds, or its last two are random state.

    Example:
        >>> seed_names(["lr", "user_attrs_seed", "random_state"])
        ['user_attrs_seed', 'random_state']
    """
    words = {name: words_of(name) for name in names}
    return [name for name in names if words[name][-1:] in (["seed"], ["seeds"]) or words[name][-2:] == _RANDOM_STATE]

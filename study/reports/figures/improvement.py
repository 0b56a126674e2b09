"""Probabilities that a trial of one method is better than one of another, over tasks: dots with intervals."""

from __future__ import annotations

from itertools import combinations

import matplotlib as mpl

from study import words
from study.comparisons.overall import Overall
from study.reports.figures import axes as axes_of
from study.reports.figures import texts
from study.reports.figures.multiples import grid
from study.reports.figures.style import STYLE, Drawn, Tips

_MOST_PAIRS = 15
"""The most pairs to draw; with more, each method is compared with the best one."""
_NAME_IN, _ROW_IN, _AROUND_IN = 2.6, 0.2, 0.15


def plot(overall: Overall | None) -> Drawn | None:
    """Draw the probability that a trial of the first method is better, one line for each pair of methods.

    The first method of a pair is the likelier to be better. With more than 15 pairs, only those of the best method are
    drawn. Pairs without a probability are left out.

    Returns:
        The figure; None without methods, or if no pair has a probability.
    """
    if overall is None or not overall.methods:
        return None
    methods, best = overall.methods, overall.best
    pairs = list(combinations(range(len(methods)), 2))
    are_all = len(pairs) <= _MOST_PAIRS
    if not are_all:
        pairs = [(best, other) for other in range(len(methods)) if other != best]
    # The method that is more likely to be better comes first.
    known = [(i, j, estimate) for i, j in pairs if (estimate := methods[i].improvements[j]) is not None]
    known = [
        (i, j, estimate) if estimate.value >= 0.5 else (j, i, methods[j].improvements[i] or estimate)
        for i, j, estimate in known
    ]
    if not known:
        return None
    tips = Tips()
    with mpl.rc_context(STYLE | {"axes.grid.axis": "x"}):
        figure, [axes] = grid([""], _ROW_IN * len(known) + _AROUND_IN, x="probability of being better", sharex=False)
        axes.axvline(0.5, **axes_of.NULL)
        names = [f"{methods[i].name} over {methods[j].name}" for i, j, _ in known]
        tip_texts = [
            f"{name}: {words.rate(estimate.value, estimate.interval)}"
            for name, (*_, estimate) in zip(names, known, strict=True)
        ]
        labels = [texts.fit(name, _NAME_IN) for name in names]
        axes_of.forest(axes, labels, [(estimate.value, estimate.interval) for *_, estimate in known], tip_texts, tips)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    against = "" if are_all else " Each method is compared with the one that has the best interquartile mean."
    caption = (
        f"Probability that a trial of the first method has a better {overall.title} than a trial of the second with "
        f"another seed, ties counted half; the mean over {len(overall.questions)} tasks, with 95% intervals that allow "
        f"for shared seeds.{against}"
    )
    return Drawn("improvement", "Aggregate over tasks: probability of improvement", caption, figure, tips)

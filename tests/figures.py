"""The function that draws a report's figures, as it is before tests replace it."""

from __future__ import annotations

from study.reports.figures import all as all_figures

plot_all = all_figures.plot_all

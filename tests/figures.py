"""The function that draws a report's figures, before tests replace it."""

from __future__ import annotations

from study.reports.figures import all as all_figures

plot_all = all_figures.plot_all

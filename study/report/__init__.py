"""Reports: what a study came to, for a terminal, a paper, a spreadsheet and a browser.

summaries_table, comparisons_table   tables in a terminal
varying                              the hyperparameters that tell the cells apart
compare                              cells beside the published ones they repeat
chart_series                         points for a chart drawn elsewhere
write_report                         report.html, report.md, cells.csv, comparison.csv, figure.png, figure.svg
"""

from study.report.compare import Comparison, compare
from study.report.series import chart_series
from study.report.terminal import comparisons_table, summaries_table
from study.report.words import Labels, varying
from study.report.write import write_report

__all__ = [
    "Comparison",
    "Labels",
    "chart_series",
    "compare",
    "comparisons_table",
    "summaries_table",
    "varying",
    "write_report",
]

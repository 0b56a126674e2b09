"""Reports: what a study came to, for a terminal, a paper, a spreadsheet and a browser.

summaries_table, comparisons_table   tables in a terminal
groups, keyed_table                  groups of trials, and their table in a terminal
varying                              the hyperparameters that tell the cells apart
compare                              cells beside the published ones they repeat
chart_series                         points for a chart drawn elsewhere
write_report, FORMATS                report.html, report.md, cells.csv, .parquet, .tex, comparison.csv, figure.png, .svg
write_groups, GROUP_FORMATS          cells.md, cells.csv, cells.parquet, cells.tex
"""

from study.report.compare import Comparison, compare
from study.report.keyed import groups
from study.report.series import chart_series
from study.report.terminal import comparisons_table, keyed_table, summaries_table
from study.report.words import Labels, varying
from study.report.write import FORMATS, GROUP_FORMATS, write_groups, write_report

__all__ = [
    "FORMATS",
    "GROUP_FORMATS",
    "Comparison",
    "Labels",
    "chart_series",
    "compare",
    "comparisons_table",
    "groups",
    "keyed_table",
    "summaries_table",
    "varying",
    "write_groups",
    "write_report",
]

"""Reports: the results of trials for a terminal, a paper, a spreadsheet and a browser.

Findings                             the findings of a study; `brief_sections` selects those for a terminal
Report                               findings with the content of the files: DataRows for other programs, LearningCurve,
                                     Gates and TrialWeights of trials, and PageLinks to their pages
cells, groups                        summaries, and the keys that identify them: `ResultRows`
summaries_table, print_findings      the table of results and the sections in a terminal
claims_sentence, claims_rows         the verdicts of claims, as a sentence and for other programs
judged_before                        the numbers of seeds at which a claim was judged before its file asked for others
with_published, with_study, with_groups   comparisons of rows with others
times_notes, metric_notes            notes on rows with trials that ended early, or without a number
reference_notes                      notes on the bounds that references set
contrasts, headline                  trends and tests between rows, and the finding in a sentence
failure_lines, markdown_failures     the reasons of failed trials
chart_series                         points for a chart drawn by another program
check_columns                        a check of the statistics chosen for tables
write_report, FORMATS, USUAL         the files

Whatever writes names of rows, keys or values for readers raises InputError if a package's vocabulary can't be imported.
"""

from study.comparisons.comparison import PUBLISHED, Comparisons, with_groups, with_published, with_study
from study.comparisons.contrasts import Contrasts, contrasts
from study.comparisons.headline import headline, search_headline
from study.reports.claims import claims_rows, claims_sentence, judged_before
from study.reports.content import DataRows, Findings, PageLinks, Report
from study.reports.failures import failure_lines, markdown_failures
from study.reports.files import cells_rows, groups_rows
from study.reports.notes import metric_notes, times_notes
from study.reports.references import reference_notes
from study.reports.sections import brief_sections
from study.reports.sources import sources_sentence
from study.reports.table import check_columns
from study.reports.terminal import MOST_ROWS, print_findings, print_section, summaries_table
from study.reports.write import FORMATS, USUAL, draws, write_report
from study.summaries.learning import LearningCurve
from study.summaries.rows import ResultRows, cell_rows, groups
from study.summaries.series import chart_series
from study.summaries.trial_details import Gates, TrialWeights

__all__ = [
    "FORMATS",
    "MOST_ROWS",
    "PUBLISHED",
    "USUAL",
    "Comparisons",
    "Contrasts",
    "DataRows",
    "Findings",
    "Gates",
    "LearningCurve",
    "PageLinks",
    "Report",
    "ResultRows",
    "TrialWeights",
    "brief_sections",
    "cell_rows",
    "cells_rows",
    "chart_series",
    "check_columns",
    "claims_rows",
    "claims_sentence",
    "contrasts",
    "draws",
    "failure_lines",
    "groups",
    "groups_rows",
    "headline",
    "judged_before",
    "markdown_failures",
    "metric_notes",
    "print_findings",
    "print_section",
    "reference_notes",
    "search_headline",
    "sources_sentence",
    "summaries_table",
    "times_notes",
    "with_groups",
    "with_published",
    "with_study",
    "write_report",
]

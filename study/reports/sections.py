"""The sections of a report, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from study import statistics, words
from study.comparisons.comparison import Comparison, Comparisons, Reference
from study.comparisons.contrasts import Contrasts, TimesTest, TrendTest
from study.comparisons.finding import LEVEL, Finding
from study.reports import metric_columns, standardised, table
from study.reports.claims import claims_guarantee, claims_note, claims_table, verdict_line
from study.reports.content import Findings, Report
from study.reports.failures import MOST_REASONS, advice, example, more_reasons
from study.reports.files import statistics_columns
from study.reports.metric_series import series_table, series_with_values
from study.reports.overall import overall_note, overall_table
from study.reports.references import bounds_note, bounds_table
from study.reports.search.names import confirmed, objectives_note
from study.reports.search.tables import CAUTION, candidates_table, importance_line, progress_note, winners_table
from study.reports.section import Section
from study.reports.sources import advice as sources_advice
from study.reports.sources import next_table, sources_note, sources_table
from study.summaries.aggregate import CellSummary
from study.summaries.parts import Parts
from study.summaries.rows import ResultRows
from study.summaries.summary import Summary

MOST_SENTENCES = 12
"""The most rows with a sentence each in the comparison; with more rows, only those that differ have one."""


def sections(findings: Findings, parts: Parts | None = None, figures: Sequence[str] = ()) -> list[Section]:
    """Return the sections that have content, in order.

    Args:
        findings: the findings; a `Report` adds the sections that only a page shows.
        parts: collects the sections that fail, and holds earlier failures for the notes; None to raise. A StudyError is
            raised in any case.
        figures: the names of the drawn figures. The first that no section names comes before all sections but warnings,
            the others in a section of their own.

    Raises:
        InputError: if the table of results has no such statistic as `findings.columns` names, a package's vocabulary
            can't be imported, or two packages offer one of the same name.
    """
    main_sections = _make_sections(_MAKERS, findings, parts, figures)
    placed = {name for section in main_sections for name in section.every_figure()}
    unplaced = [name for name in figures if name not in placed]
    failed = [] if parts is None else map(str, parts.failures)
    more_sections = [
        Section(title="More figures", figures=unplaced[1:], is_page_only=True),
        Section(title="Notes", details=[*dict.fromkeys([*findings.notes, *failed]), *_stop_note(findings.rows)]),
        *(_page_sections(findings) if isinstance(findings, Report) else []),
    ]
    place = sum(section.is_warning for section in main_sections)
    main_sections.insert(place, Section(title="", figures=unplaced[:1]))
    return [
        section
        for candidate in (*main_sections, *more_sections)
        if (section := candidate.with_figures(figures)) is not None
    ]


def brief_sections(findings: Findings, parts: Parts | None = None) -> list[Section]:
    """Return the sections that a terminal and a notebook show after the results, if they have content.

    Args:
        findings: the findings.
        parts: as for `sections`.

    Raises:
        InputError: if a package's vocabulary can't be imported, or two packages offer one of the same name.
    """
    return _make_sections(_BRIEF, findings, parts, [])


def _make_sections(
    names: Iterable[str], findings: Findings, parts: Parts | None, figures: Sequence[str]
) -> list[Section]:
    """Make the named sections, without those that have no content."""
    makers = {name: partial(_MAKERS[name], findings) for name in names if getattr(findings, name, True)}
    results = [
        make() if parts is None else parts.attempt(f"section {name}", make, None) for name, make in makers.items()
    ]
    return [
        section for result in results if result is not None and (section := result.with_figures(figures)) is not None
    ]


def _missing(findings: Findings) -> Section | None:
    rows, failures = findings.rows, findings.failures
    pending, failed = (sum(getattr(s, name) for s in rows.summaries) for name in ("pending", "failed"))
    failed = sum(failure.trials for failure in failures) or failed
    if not pending and not failed:
        return None
    again = f"{words.count_of(pending, 'trial')} not yet done. Run the study again to train the missing trials."
    lost = f"{words.count_of(failed, 'trial')} failed and left no result. {advice(failures)}".rstrip()
    items = [*([again] if pending else []), *([lost] if failed else [])]
    items += [
        f"{words.count_of(failure.trials, 'trial')}: {failure.reason}; {example(failure, rows)}"
        for failure in failures[:MOST_REASONS]
    ]
    items += filter(None, [more_reasons(failures, findings.name)])
    if incomplete := sum(not s.complete for s in rows.summaries):
        numbers = "rates" if rows.has_rates else "means"
        items.append(
            f"Trials are missing in {words.count_of(incomplete, rows.noun)} of {len(rows.summaries)}. Their {numbers} "
            "are over the trials that finished. Tables show their finished/planned seeds, figures half-filled markers."
        )
    return Section(title="Missing trials", items=items, code=failures[0].traceback if failures else "", is_warning=True)


def _claims(findings: Findings) -> Section:
    return Section(
        title="Claims",
        name="claims",
        items=[verdict_line(verdict) for verdict in findings.claims],
        is_numbered=True,
        details=[claims_note(findings.claims)],
        table=claims_table(findings.rows, findings.claims),
        label="evidence for and against claims",
        sentences=[claims_guarantee(findings.claims)],
    )


def _sources(findings: Findings) -> Section:
    after = next_table(findings.rows, findings.sources)
    following = Section(
        title="The next trials", sentences=[sources_advice(findings.sources)], table=after, is_brief=True, is_open=True
    )
    return Section(
        title="Sources of randomness",
        name="sources",
        details=[sources_note(findings.sources)],
        table=sources_table(findings.rows, findings.sources),
        figures=["sources"],
        parts=[] if after is None else [following],
    )


def _results(findings: Findings) -> Section:
    rows = findings.rows
    solved_titles = metric_columns.titles_of_solved(rows)
    other_titles = [words.metric_title(name, rows.metrics[name]) for name in metric_columns.with_values(rows)]
    other_titles = [title for title in other_titles if title not in solved_titles]
    solved = f". Averaged over solved trials alone: {words.join_and(solved_titles)}" if solved_titles else ""
    ended = (
        f". Averaged over all trials that ended with a number: {words.join_and(other_titles)}" if other_titles else ""
    )
    return Section(
        title="Results",
        name="results",
        details=[f"Brackets are 95% intervals{solved}{ended}. {_bold_note(findings)}".rstrip()],
        table=table.chosen_table(rows, findings.columns),
        label="results, one row a cell",
        has_trials=True,
    )


def _bold_note(findings: Findings) -> str:
    """Explain the bold rows, or why there are none; empty if no rows were compared."""
    rows, plan = findings.rows, findings.contrasts.plan
    if not findings.contrasts.findings:
        return ""
    if plan is not None and any(question.settings for question in plan.by_method):
        return "No row is bold: values of hyperparameters are compared on average, not row by row."
    others = "every other row"
    if plan is not None and any(question.factor for question in plan.by_row):
        others += " that differs in one hyperparameter alone"
    elif rows.question_keys:
        others += f" with the same {words.join_and([rows.title(key) for key in rows.question_keys])}"
    if findings.contrasts.winners:
        return f"A bold row is better than {others}, by corrected tests."
    return f"No row is bold: corrected tests find none better than {others}."


def _overall(findings: Findings) -> Section | None:
    overall = findings.overall
    if overall is None:
        return None
    has_methods = bool(overall.methods)
    return Section(
        title="Aggregate over tasks",
        details=[*([overall_note(overall)] if has_methods else []), *overall.notes],
        table=overall_table(overall) if has_methods else None,
        figures=["profiles", "improvement"],
    )


def _series(findings: Findings) -> Section:
    parts = [
        Section(
            title=series.heading,
            details=[f"Mean {series.heading}, with intervals, at some places; series.csv has all."],
            table=series_table(findings.rows, series),
            is_open=True,
        )
        for series in series_with_values(findings.rows)
    ]
    return Section(title="Along an axis", figures=["series"], parts=parts)


def _bounds(findings: Findings) -> Section | None:
    references = findings.references
    if references is None:
        return None
    content = bounds_table(findings.rows, references)
    return Section(title="Bounds of references", details=[bounds_note(references)], table=content)


def _search(findings: Findings) -> Section | None:
    search, rows = findings.search, findings.rows
    if search is None:
        return None
    has_confirmed = bool(confirmed(search))
    content = candidates_table(search) if search.candidates else None
    listed, count = 0 if content is None else len(content.rows), len(search.candidates)
    most = f" {listed} of the candidates are listed, all of the front among them; candidates.csv has all."
    parts = [
        Section(title="The winner's study file, ready to run (winner.yaml)", code=search.file or ""),
        Section(
            title=f"All candidates ({count:,})",
            details=[
                "Marked: the Pareto front, the candidates to which no other one is at least equal in all objectives "
                f"and better in one.{most if listed < count else ''}"
            ],
            table=content,
            is_page_only=True,
        ),
    ]
    return Section(
        title="Search",
        name="search",
        details=[
            progress_note(search),
            *([f"{CAUTION} {objectives_note(search, rows.metrics)}"] if has_confirmed else []),
        ],
        table=winners_table(search, rows) if has_confirmed else None,
        label="confirmed candidates",
        sentences=[line] if (line := importance_line(search)) else [],
        parts=[part for part in parts if part.code or part.table],
    )


def _comparison(findings: Findings) -> Section | None:
    against, rows = findings.against, findings.rows
    if against is None:
        return None
    compared = against.comparisons
    described = [c for c in compared if len(compared) <= MOST_SENTENCES or c.verdict == "differs"]
    details = [_comparison_note(against, rows)] if compared else []
    details += [_sentence(c, against, rows) for c in described]
    details += filter(None, dict.fromkeys(c.beside.caution for c in compared))
    return Section(
        title=f"Against {'the published numbers' if against.is_published else against.source}",
        name="comparison",
        details=details,
        table=table.comparison_table(rows, against) if compared else None,
        label="comparison",
        sentences=against.notes,
    )


def _verdicts(findings: Findings) -> Section:
    return Section(
        title="Are the seeds enough?",
        name="verdicts",
        details=[table.verdicts_note(findings.verdicts)],
        table=table.verdicts_table(findings.rows, findings.verdicts),
    )


def _standardised(findings: Findings) -> Section | None:
    standardisation = findings.standardised
    if standardisation is None:
        return None
    differences = standardised.differences_table(standardisation)
    pairs = Section(title="Differences of rates", table=differences, label="raw and standardised differences")
    return Section(
        title=f"Standardised for {standardisation.covariate}",
        name="standardised",
        details=[standardised.note(standardisation)],
        table=standardised.rates_table(findings.rows, standardisation),
        label="raw and standardised success rates",
        sentences=standardised.cautions(standardisation),
        parts=[] if differences is None else [pairs],
    )


def _tests(findings: Findings) -> Section:
    contrasts = findings.contrasts
    speed_test = _describe_tests(
        contrasts.speeds, "log-rank scores compared seed by seed", "log-rank test of independent samples"
    )
    slopes = "Several hyperparameters at once, with profile-likelihood intervals."
    speeds = f"Do methods take equally long to succeed? Unsolved trials are censored. Test: {speed_test}."
    layouts = {
        "Trends": (contrasts.trends, table.trends_table, _trends_note(contrasts)),
        "Logistic regression of success": (contrasts.slopes, table.slopes_table, slopes),
        "Pairs of methods": (contrasts.pairs, table.pairs_table, _pairs_note(contrasts.pairs)),
        "Times to success": (contrasts.speeds, table.speeds_table, speeds),
    }
    parts = [
        Section(title=title, details=[note], table=lay_out(contrasts), is_page_only=True)
        for title, (tests, lay_out, note) in layouts.items()
        if tests
    ]
    corrected = "p-values are corrected by Holm's method over the rows of each table. tests.csv has all tests."
    if contrasts.slopes:
        corrected += " Regressions aren't corrected, and take all trials as independent."
    return Section(title="Trends and tests", details=[*contrasts.notes, *([corrected] if parts else [])], parts=parts)


def _page_sections(report: Report) -> list[Section]:
    """Return the sections on protocol, columns, provenance and command."""
    rows = report.rows
    columns = {name: note.text for name, note in statistics_columns(rows.summaries, rows.named_metrics).items()}
    file = [Section(title="The study's file", code=report.spec)] if report.spec else []
    return [
        Section(title="Protocol", entries=[report.protocol or {}], parts=file, is_page_only=True),
        Section(
            title="Columns of cells.csv", parts=[Section(title="After the hyperparameters", entries=[columns])],
            is_page_only=True,
        ),
        Section(title="Provenance", entries=report.provenance, is_page_only=True),
        Section(title="Remake this report", code=report.command, is_page_only=True),
    ]  # fmt: skip


_MAKERS: Mapping[str, Callable[[Findings], Section | None]] = {
    "missing": _missing,
    "claims": _claims,
    "sources": _sources,
    "search": _search,
    "results": _results,
    "overall": _overall,
    "series": _series,
    "bounds": _bounds,
    "comparison": _comparison,
    "verdicts": _verdicts,
    "standardised": _standardised,
    "tests": _tests,
}
_BRIEF = ("search", "claims", "sources", "verdicts", "standardised", "comparison")


def _stop_note(rows: ResultRows) -> list[str]:
    early = sum(s.stopped_early for s in rows.summaries)
    stops = {s.cell.value("stop") for s in rows.summaries if isinstance(s, CellSummary)}
    if not early and stops <= {"never", None}:
        return []
    titles = [words.metric_title(name, metric) for name, metric in rows.single_metrics.items() if metric.of == "solved"]
    metrics = f", and the {words.join_and(titles)} is that of the best step so far" if titles else ""
    return [
        f"stop: when_decided was on: {words.count_of(early, 'trial')} ended once the outcome could no longer change. "
        f"Outcomes and solved-at are those of full runs; seconds of training are not{metrics}."
    ]


# --- tests


_TESTS = {
    "McNemar": "seed by seed, by McNemar's exact test, with the test's interval of the difference",
    "Fisher": "as independent samples, by Fisher's exact test, with Newcombe's interval of the difference",
    "McNemar and Fisher": "by one exact test of the seeds that both methods have and of those that only one has",
    "sign-flip": "seed by seed, by a sign-flip test of the differences, with the test's interval",
    "Welch": "as independent samples, by Welch's test, with his interval of the difference of means",
    "paired and Welch": "by one t test of the seeds that both methods have and of those that only one has",
    "sign-flip of ranks": "by ranks, in which trials that diverged or failed are worse than all others, seed by seed",
    "permutation of ranks": "by ranks, in which trials that diverged or failed are worse than all others",
    "sign-flip and permutation of ranks": "by ranks, in which trials that diverged or failed are worse than all others",
    "t over crossed seeds": "by a t test whose error allows for the seeds that trials of combined seeds share",
    "tuned sign-flip": "seed by seed, by a sign-flip test, each method at tuned values that other seeds choose",
    "tuned sign-flip of ranks": (
        "seed by seed, by ranks, each method at tuned values that other seeds choose; trials that diverged or failed "
        "are worse than all others"
    ),
    "sign test at any time": "seed by seed, by a sign test that is valid however often one looks",
}


def _test_names(findings: Sequence[Finding]) -> str:
    """Describe the tests that findings used, each once; empty without tests."""
    used = dict.fromkeys(finding.test for finding in findings if finding.test)
    return "; ".join(dict.fromkeys(_TESTS.get(name, name) for name in used))


def _pairs_note(pairs: Sequence[Finding]) -> str:
    """Describe the tests of pairs, and the fewest seeds that can decide, if a pair has too few."""
    enough = ""
    if any(not finding.has_enough_seeds for finding in pairs):
        least = statistics.seeds_needed(LEVEL / max(1, *(finding.family for finding in pairs)))
        enough = f" With {words.count_of(len(pairs), 'test')}, methods must differ at {least} seeds for any verdict."
    return f"Methods two by two: {_test_names(pairs)}.{enough}"


def _trends_note(contrasts: Contrasts) -> str:
    if contrasts.metric is not None:
        return (
            "Does the metric increase or decrease with the swept hyperparameter? Test: sign-flip test of the slopes "
            "of ranks within each seed, over the ranks of the values; trials without a number are worst."
        )
    test = _describe_tests(contrasts.trends, "sign-flip test of the seeds' slopes", "Cochran-Armitage")
    return (
        f"Does the success rate increase or decrease with the swept hyperparameter? Test: {test}, over the ranks of "
        "the values."
    )


def _describe_tests(tests: Iterable[TrendTest | TimesTest], paired: str, independent: str) -> str:
    """Join the descriptions of the paired and the independent tests that occur."""
    kinds = {test.seeds is not None for test in tests}
    return ", or ".join([*([paired] if True in kinds else []), *([independent] if False in kinds else [])])


# --- comparisons with other studies


def _comparison_note(against: Comparisons, rows: ResultRows) -> str:
    count = len(against.comparisons)
    repeats = f"{'repeats' if count == 1 else 'repeat'} the protocol of"
    compared = f"{'is' if count == 1 else 'are'} compared with"
    differing = sum(c.verdict == "differs" for c in against.comparisons)
    difference = "Success rates differ"
    if against.metric is not None:
        difference = f"Means of {words.metric_title(against.metric, rows.metrics[against.metric])} differ"
    test = _test_names([c.finding for c in against.comparisons]) or "not tested"
    return (
        f"{words.count_of(count, rows.noun)} {repeats if against.is_published else compared} {against.source}. "
        f"{difference} in {words.count_of(differing, rows.noun) if differing else 'none'} "
        f"({test}, two-sided, at {LEVEL:g} with Holm's correction). To agree means that no difference "
        "was detected with these seeds."
    )


def _sentence(c: Comparison, against: Comparisons, rows: ResultRows) -> str:
    verb = {"differs": "differs from", "agrees": "agrees with"}.get(c.verdict, "can't be tested against")
    others = "the published" if against.is_published else f"{against.source}'s"
    source = f"; {c.beside.source}" if against.is_published else ""
    lacking = "" if c.summary.complete and c.beside.complete else f", over an incomplete {rows.noun}"
    own, other = (_compared(result, against.metric) for result in (c.summary, c.beside))
    equals = (words.NONE if p is None else f"= {words.p_value(p)}" for p in (c.finding.p_value, c.finding.p_adjusted))
    test = "p {}, after Holm {}".format(*equals).replace("= <", "<")
    return f"{rows.name(c.row)}: {own} {verb} {others} {other} ({test}{source}{lacking})."


def _compared(result: Summary | Reference, metric: str | None) -> str:
    if metric is None:
        return f"{result.solved}/{result.judged}"
    mean = result.metrics[metric]
    number = words.estimate_alone(words.metric_notation(mean.metric), mean.mean, mean.mean_interval)
    return f"{number} ({words.count_of(mean.count, 'trial')})"

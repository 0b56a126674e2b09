"""Properties of a search: repeatable, resumable at any moment, within its budget, confirmed with unused seeds."""

from __future__ import annotations

import json

import pytest

from study.arrow import results_table
from study.errors import InputError, StoreAwayError, StoreError
from study.plan.plan import make_plan
from study.records import Outcome, Result, Trial
from study.results.search import reported_plan
from study.search import Evidence, Searching, plan_of, planned_seeds, read_record, search_findings
from study.search.record import NAME
from study.search.searching import _MOST_SUGGESTIONS, search_id
from study.search.space import Space
from study.spec import parse_spec
from study.spec.tables import OBJECTIVES_OF_SUCCESS
from study.trials.table import TrialTable
from tests.study.builders import summarised
from tests.study.search.made import SPEC, MemoryFolder, search, spec_of, true_rate


@pytest.fixture
def folder() -> MemoryFolder:
    """Return an empty study folder in memory."""
    return MemoryFolder()


def confirmed(spec, folder):
    """Summarise the confirmed candidates by their fresh seeds only, as a report does."""
    plan = reported_plan(make_plan(spec), read_record(spec, folder))
    results = [result for result in folder.results.values() if result.trial in set(plan.trials)]
    return summarised(results_table(results), planned={cell: len(plan.seeds(cell)) for cell in plan.cells})


SAMPLERS = ["TPE", "NSGA-II", "CMA-ES", "random"]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_search_killed_at_any_moment_has_the_same_results(sampler):
    """A search whose process dies every few trials has the suggestions and results of an undisturbed search."""
    spec = spec_of(sampler=sampler)
    undisturbed, interrupted = MemoryFolder(), MemoryFolder()
    search(spec, undisturbed)
    search(spec, interrupted, killed=True, chunk=17)
    assert json.loads(interrupted.files[NAME]) == json.loads(undisturbed.files[NAME])
    assert set(interrupted.results) == set(undisturbed.results)
    assert len(interrupted.trained) == len(set(interrupted.trained))


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_search_spends_exactly_its_budget(sampler):
    """A search ends when another candidate would exceed its budget; fresh seeds are additional."""
    spec, folder = spec_of(sampler=sampler), MemoryFolder()
    search(spec, folder)
    record = read_record(spec, folder)
    assert record is not None
    assert record.winners
    spent = sum(candidate.seeds for candidate in record.valued)
    assert 300 - 20 < spent <= 300
    assert len(folder.results) == spent + 50 * len(record.winners)


def test_candidates_earn_seeds_by_their_success(folder):
    """A third of a round's candidates get more seeds, and dropped candidates weren't worth more."""
    spec = spec_of()
    search(spec, folder)
    record, evidence = read_record(spec, folder), Evidence(TrialTable(folder.read_results(), spec.family.metrics))
    seeds = planned_seeds(spec).search
    for number in range(record.rounds):
        candidates = [c for c in record.of_round(number) if c.values]
        plan = plan_of(spec, record, evidence)
        cells = {cell.id: cell for cell in plan.cells}
        first = {c.number: evidence.value(cells[c.cell_id], seeds[:3], ["success_rate"], 20_000) for c in candidates}
        promoted = [c for c in candidates if c.seeds > 3]
        assert len(promoted) == -(-len(candidates) // 3)
        assert min(first[c.number] for c in promoted) >= max(first[c.number] for c in candidates if c.seeds == 3)


def test_only_fresh_seeds_count(folder):
    """The winner's reported results are from seeds that no candidate has had."""
    spec = spec_of()
    plan = search(spec, folder)
    record, summaries = read_record(spec, folder), confirmed(spec, folder)
    assert [summary.seeds for summary in summaries] == [50] * len(record.winners)
    fresh = set(planned_seeds(spec).fresh)
    winners = {summary.cell_id for summary in summaries}
    for cell in plan.cells:
        assert bool(fresh & set(plan.seeds(cell))) == (cell.id in winners)
    assert not fresh & set(planned_seeds(spec).search)


def test_a_search_finds_a_near_optimal_candidate(folder):
    """With 300 trials the winner's success rate is near the optimum."""
    spec = spec_of()
    search(spec, folder)
    winner = confirmed(spec, folder)[0]
    assert true_rate(Trial(winner.cell, 0)) > 0.85


@pytest.mark.parametrize("objective", [*OBJECTIVES_OF_SUCCESS, "sparsity_error"])
def test_each_objective_is_met_with_few_seeds_at_first(folder, objective):
    """If reliable candidates are better in every respect, a search by any objective finds such a candidate."""
    spec = spec_of(objective=objective, sampler="random", confirm_candidates=1)
    search(spec, folder)
    (winner,) = confirmed(spec, folder)
    assert true_rate(Trial(winner.cell, 0)) > 0.8


def test_the_seed_of_the_sampler_changes_the_candidates():
    """Another seed suggests other candidates; the same seed suggests the same ones."""
    first, same, other = MemoryFolder(), MemoryFolder(), MemoryFolder()
    for folder, seed in ((first, 0), (same, 0), (other, 1)):
        search(spec_of(seed=seed), folder)
    assert first.files == same.files
    assert set(first.results).isdisjoint(set(other.results))


def test_results_of_another_study_are_reused(folder):
    """Stored results are reused: the same search with them trains nothing."""
    spec, second_folder = spec_of(), MemoryFolder()
    search(spec, folder)
    second_folder.results = dict(folder.results)
    search(spec, second_folder)
    assert second_folder.trained == []
    assert second_folder.files == folder.files


def test_a_small_space_is_exhausted_and_nothing_is_tried_twice(folder):
    """Each of the four possible candidates is tried once, and the search ends below its budget."""
    text = SPEC.replace("ranges:", "ranges:\n  batch_size: {choices: [16, 32]}\n  optimizer: {choices: [adam, sgd]}")
    text = "\n".join(line for line in text.splitlines() if "sparsity_" not in line)
    spec = spec_of(text, trials=5000)
    search(spec, folder)
    record = read_record(spec, folder)
    assert len({c.cell_id for c in record.candidates}) == len(record.valued) == 4
    assert record.winners
    assert len(record.candidates) <= 2 * 6 * _MOST_SUGGESTIONS


def test_impossible_suggestions_cost_nothing(folder):
    """A schedule that would end before its start is recorded with the reason, and replaced."""
    spec = spec_of()
    search(spec, folder)
    record = read_record(spec, folder)
    impossible = [c for c in record.candidates if c.impossible is not None]
    assert impossible
    assert all(c.params["sparsity_start"] >= c.params["sparsity_end"] for c in impossible)
    assert all(c.cell_id is None and not c.values for c in impossible)
    assert "sparsity_start < sparsity_end must hold" in impossible[0].impossible


def test_a_failed_trial_does_not_stop_a_search(folder):
    """A crashed trial doesn't count in its candidate's value, and the search continues."""
    spec, searching = spec_of(), Searching(None)
    plan = searching(search(spec, folder, most_steps=0), folder, lambda sentence: None)
    for trial in plan.trials:
        folder.results[trial.id] = Result(trial=trial, outcome=Outcome.FAILED, error="no room")
    extended = searching(plan, folder, lambda sentence: None)
    assert extended.trials_count > plan.trials_count
    search(spec, folder)
    assert read_record(spec, folder).winners


class Away(MemoryFolder):
    """A store that accepts a record at the second attempt only."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    def write_file(self, name: str, data: bytes) -> None:
        self.tries += 1
        if self.tries % 2:
            raise StoreAwayError("the disk is full")
        super().write_file(name, data)


@pytest.mark.parametrize("sampler", ["TPE", "random"])
def test_a_store_that_is_away_changes_nothing(folder, sampler):
    """If the record can't be written, the same suggestions are made again."""
    spec, away = spec_of(sampler=sampler), Away()
    search(spec, folder)
    searching, plan = Searching(None), make_plan(spec)
    trained = 1
    while trained:
        try:
            plan = searching(plan, away, lambda sentence: None)
        except StoreAwayError:
            continue
        trained = away.train(plan)
    assert away.files == folder.files
    assert set(away.results) == set(folder.results)


def test_a_search_continues_with_a_greater_budget(folder):
    """With more trials the search continues from its record, and confirms its new winner."""
    search(spec_of(), folder)
    before = read_record(spec_of(), folder)
    larger = spec_of(trials=450)
    search(larger, folder)
    after = read_record(larger, folder)
    assert after.candidates[: len(before.candidates)] == before.candidates
    assert sum(c.seeds for c in after.valued) > 400
    assert len(folder.trained) == len(set(folder.trained))


@pytest.mark.parametrize(
    "text",
    [
        SPEC.replace("high: 100", "high: 10"),
        SPEC.replace("hidden_size: 3", "hidden_size: 4"),
        SPEC.replace("first_seeds: 3", "first_seeds: 4"),
        SPEC.replace("seeds: 20", "seeds: 30"),
    ],
    ids=["range", "fixed", "first seeds", "seeds"],
)
def test_another_search_of_the_same_name_is_refused(folder, text):
    """A file whose search differs from the stored one is refused, and the store is unchanged."""
    search(spec_of(), folder, most_steps=2)
    files = dict(folder.files)
    with pytest.raises(InputError, match="began with other ranges"):
        search(parse_spec(text, source="test"), folder)
    assert folder.files == files


def test_a_damaged_record_is_named(folder):
    """A torn record is an error that names the file and the remedy."""
    search(spec_of(), folder, most_steps=2)
    folder.files[NAME] = folder.files[NAME][:-20]
    torn = folder.files[NAME]
    for content in (torn, b'{"version": 2, "winners": null, "candidates": ' + b"[" * 100_000):
        folder.files[NAME] = content
        with pytest.raises(StoreError, match=r"search\.json isn't a valid record.*move it away"):
            search(spec_of(), folder)


def test_a_record_of_an_older_version_gets_todays_values(folder):
    """Values in a record of version 1 are recomputed from its trials by the present definition."""
    settings = {"objective": ("success_rate", "solved_at"), "sampler": "NSGA-II", "confirm_candidates": 1}
    spec, larger = (spec_of(**settings, trials=trials) for trials in (100, 150))
    search(spec, folder)
    today = read_record(spec, folder)
    content = json.loads(folder.files[NAME]) | {"version": 1}
    for candidate in content["candidates"]:
        if candidate["values"] is not None:
            candidate["values"][1] = 20_000.0
    folder.files[NAME] = json.dumps(content).encode()
    assert read_record(spec, folder) == today
    search(larger, folder)
    after = read_record(larger, folder)
    assert after.candidates[: len(today.candidates)] == today.candidates
    assert len(after.candidates) > len(today.candidates)
    assert json.loads(folder.files[NAME])["version"] == 2
    assert len(folder.trained) == len(set(folder.trained))


def test_a_record_of_a_later_version_is_refused(folder):
    """A later version may define values differently: the error names the readable versions."""
    search(spec_of(), folder, most_steps=2)
    folder.files[NAME] = json.dumps(json.loads(folder.files[NAME]) | {"version": 3}).encode()
    with pytest.raises(InputError, match="has version 3, but this package reads up to 2"):
        search(spec_of(), folder)


def test_the_longest_training_of_a_search_is_known():
    """The longest training is the maximum of the models' iterations; a model without its own has the task's."""
    models = "models: [{name: NMU, fixed: {iterations: 5000}}, {name: NAU, fixed: {iterations: 30000}}]"
    longest = [
        Space(parse_spec(SPEC.replace("models: [NMU]", m), source="test")).most_iterations
        for m in ("models: [NMU]", models)
    ]
    assert longest == [20_000, 30_000]


def test_a_search_continues_from_another_versions_suggestions(folder):
    """If the sampler deviates from the record, the search says so, keeps its candidates, and continues."""
    spec = spec_of()
    search(spec_of(seed=1), folder, most_steps=5)  # simulates another version by other suggestions
    content = json.loads(folder.files[NAME]) | {"asked": search_id(spec), "sampler": "TPE, Optuna 4.0"}
    folder.files[NAME] = json.dumps(content).encode()
    before, notices = read_record(spec, folder), list[str]()
    assert before.rounds > 1
    Searching(None)(make_plan(spec), folder, notices.append)
    assert any("began with TPE, Optuna 4.0" in notice for notice in notices)
    search(spec, folder)
    after = read_record(spec, folder)
    assert [c.params for c in after.candidates[: len(before.candidates)]] == [c.params for c in before.candidates]
    assert after.winners
    assert len(folder.trained) == len(set(folder.trained))


def test_several_objectives_make_a_front(folder):
    """With two objectives, no candidate of the front is dominated, and several of it are confirmed."""
    spec = spec_of(objective=("success_rate", "time_to_success"), sampler="NSGA-II", confirm_candidates=3)
    search(spec, folder)
    record = read_record(spec, folder)
    findings = search_findings(spec, record)
    values = {c.number: c.values for c in findings.candidates}
    for number in findings.front:
        rate, time = values[number]
        assert not any(r >= rate and t <= time and (r, t) != (rate, time) for r, t in values.values())
    assert 1 <= len(record.winners) <= 3
    assert set(record.winners) <= set(findings.front)


def test_importance_names_the_decisive_parameter(folder):
    """The strength is the most important parameter, since it alone determines success."""
    spec = spec_of(trials=900, candidates=12)
    search(spec, folder)
    shares = search_findings(spec, read_record(spec, folder)).importance["success_rate"]
    assert max(shares, key=shares.get) == "sparsity_strength"
    assert sum(shares.values()) == pytest.approx(1.0)


def test_evidence_waits_for_every_seed():
    """A candidate has no values while one of its seeds is pending."""
    folder = MemoryFolder()
    plan = search(spec_of(), folder, most_steps=1)
    cell = plan.cells[0]
    rows = results_table([r for r in folder.results.values() if r.trial.cell == cell and r.trial.seed != 1])
    evidence = Evidence(TrialTable(rows, plan.metrics))
    assert evidence.value(cell, [0, 1, 2], ["success_rate"], 20_000) is None
    assert evidence.value(cell, [0, 2], ["success_rate"], 20_000) is not None

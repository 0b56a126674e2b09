"""`study report --standardise`: success rates under equal starts."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from study.statistics import standardised_rate
from tests.commands import invoke

# Warnings of MLflow and its imports can't be fixed here.
pytestmark = pytest.mark.filterwarnings("ignore")

EASY, HARD = 0, 1
COUNTS = {"a": ((8, 10), (6, 30)), "b": ((27, 30), (1, 10)), "c": ((8, 10), (3, 15))}
"""By model: solved and trials with an easy and with a hard start."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with the outcomes of three models; one of them had more easy starts."""
    monkeypatch.chdir(tmp_path)
    lines, seed = ["model,seed,hard,solved"], 0
    for model, levels in COUNTS.items():
        for level, (solved, trials) in enumerate(levels):
            for place in range(trials):
                lines.append(f"{model},{seed},{level},{str(place < solved).lower()}")
                seed += 1
    (tmp_path / "trials.csv").write_text("\n".join(lines) + "\n")
    starts = ["model,hard", *(f"{model},{number % 4 == 0:d}" for model in COUNTS for number in range(200))]
    (tmp_path / "starts.csv").write_text("\n".join(starts) + "\n")
    return tmp_path


def rows(path: Path) -> list[dict[str, str]]:
    """Read a CSV file."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def report(*words: str) -> str:
    """Write the report of the trials by model as CSV files, and return its output."""
    result = invoke("report", "trials.csv", "--by", "model", "--format", "csv", *words)
    assert result.exit_code == 0, result.output
    return result.output


def test_a_model_with_easier_starts_loses_its_lead(workspace: Path) -> None:
    """The raw rate of b is far above a's; with equal starts it isn't, and tests of pairs agree."""
    printed = report("--standardise", "hard")
    assert "Standardised for hard" in printed
    assert "a fair comparison only if hard is determined" in " ".join(printed.split())
    row_of = {row["model"]: row for row in rows(workspace / "trials-report" / "standardised.csv")}
    judged = [sum(levels[level][1] for levels in COUNTS.values()) for level in (EASY, HARD)]
    for model, levels in COUNTS.items():
        (solved, trials), row = zip(*levels, strict=True), row_of[model]
        estimate = standardised_rate(solved, trials, judged)
        assert float(row["success_rate"]) == pytest.approx(sum(solved) / sum(trials))
        assert float(row["standardised"]) == pytest.approx(estimate.rate)
        assert float(row["standardised_upper"]) == pytest.approx(estimate.interval[1])
    pairs = {
        (row["first"], row["second"]): row for row in rows(workspace / "trials-report" / "standardised-differences.csv")
    }
    pair = pairs["a", "b"]
    tested = next(
        row for row in rows(workspace / "trials-report" / "tests.csv") if row["first"] + row["second"] == "ab"
    )
    assert [pair["difference"], pair["difference_upper"]] == [tested["estimate"], tested["upper"]]
    assert float(pair["difference_upper"]) < 0
    assert float(pair["standardised"]) == pytest.approx(
        float(row_of["a"]["standardised"]) - float(row_of["b"]["standardised"])
    )
    assert float(pair["standardised_lower"]) < 0 < float(pair["standardised_upper"])


def test_rates_are_standardised_to_starts_of_a_file(workspace: Path) -> None:
    """Each row uses the file's starts of its own model, and its interval reflects their number."""
    assert "a fair comparison" not in report("--standardise", "hard", "--starts", "starts.csv")
    row_of = {row["model"]: row for row in rows(workspace / "trials-report" / "standardised.csv")}
    for model, levels in COUNTS.items():
        solved, trials = zip(*levels, strict=True)
        estimate = standardised_rate(solved, trials, [150, 50], 200)
        assert float(row_of[model]["standardised"]) == pytest.approx(estimate.rate)
        assert float(row_of[model]["standardised_lower"]) == pytest.approx(estimate.interval[0])
    (workspace / "starts.csv").write_text("hard\n" + "0\n1\n" * 100)
    report("--standardise", "hard", "--starts", "starts.csv")
    alike = rows(workspace / "trials-report" / "standardised.csv")
    assert float(alike[0]["standardised"]) == pytest.approx((0.8 + 0.2) / 2)


def test_many_values_are_cut_into_five_levels(workspace: Path) -> None:
    """Levels of a continuous number hold equal shares of the starts, and the report names them."""
    lines = [f"{'ab'[seed % 2]},{seed},{seed / 7:.3f},{seed % 3 == 0}" for seed in range(60)]
    (workspace / "trials.csv").write_text("\n".join(["model,seed,norm,solved", *lines]) + "\n")
    printed = invoke("report", "trials.csv", "--by", "model", "--format", "md", "--standardise", "norm").output
    assert "Standardised for norm" in printed
    text = (workspace / "trials-report" / "report.md").read_text(encoding="utf-8")
    assert "5 levels of norm (0 to 1.571, 1.714 to 3.286," in text


def test_levels_that_a_row_never_had_are_shown(workspace: Path) -> None:
    """A row without trials at a level shows the share of starts that others stand in for."""
    kept = [
        line
        for line in (workspace / "trials.csv").read_text().splitlines()
        if not line.startswith("a") or ",0," in line
    ]
    (workspace / "trials.csv").write_text("\n".join(kept) + "\n")
    assert "starts at unseen levels" in report("--standardise", "hard")
    unseen_share = {
        row["model"]: float(row["unseen"]) for row in rows(workspace / "trials-report" / "standardised.csv")
    }
    assert unseen_share == {"a": pytest.approx(25 / 75), "b": 0.0, "c": 0.0}


def test_trials_without_the_number_are_left_out_and_counted(workspace: Path) -> None:
    """A gap in the column drops a trial and doesn't fail the report."""
    lines = (workspace / "trials.csv").read_text().splitlines()
    (workspace / "trials.csv").write_text("\n".join([lines[0], "a,0,,true", *lines[2:]]) + "\n")
    assert "without hard" in report("--standardise", "hard")
    row = rows(workspace / "trials-report" / "standardised.csv")[0]
    assert (row["trials"], row["without_number"]) == ("39", "1")


def test_trials_that_share_seeds_have_no_standardised_rate(workspace: Path) -> None:
    """The interval assumes independent trials; rows that pool trials of a seed have none, and say so."""
    lines = [f"a,{width},{seed},{seed % 2},{seed % 3 == 0}" for width in (1, 2) for seed in range(20)]
    (workspace / "trials.csv").write_text("\n".join(["model,width,seed,hard,solved", *lines]) + "\n")
    assert "have no standardised rate" in report("--standardise", "hard")
    assert rows(workspace / "trials-report" / "standardised.csv")[0]["standardised"] == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--standardise", "hrad"], "no column hrad; did you mean hard?"),
        (["--standardise", "model"], "row 1: model: 'a' isn't a number"),
        (["--starts", "starts.csv"], "needs --standardise: the column"),
        (["--standardise", "hard", "--starts", "other.csv"], "no column hard; choose from easy"),
        (["--standardise", "hard", "--starts", "gap.csv"], "row 2: column hard must hold a finite number"),
        (["--standardise", "hard", "--starts", "text.csv"], "column hard must hold numbers, but holds texts"),
        (["--standardise", "hard", "--starts", "few.csv"], "no starts of model b"),
    ],
)
def test_impossible_standardisations_are_refused(workspace: Path, words: list[str], message: str) -> None:
    """The message shows the input, and nothing is written."""
    (workspace / "other.csv").write_text("easy\n1\n")
    (workspace / "gap.csv").write_text("hard,x\n1,1\n,1\n")
    (workspace / "text.csv").write_text("hard\nvery\n")
    (workspace / "few.csv").write_text("model,hard\na,1\na,0\n")
    result = invoke("report", "trials.csv", "--by", "model", *words)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())
    assert not (workspace / "trials-report").exists()


def test_standardising_without_success_is_refused(workspace: Path) -> None:
    """Without a success criterion, --standardise is an error."""
    (workspace / "trials.csv").write_text("model,seed,hard,score\n" + "".join(f"a,{seed},1,0.5\n" for seed in range(6)))
    result = invoke("report", "trials.csv", "--standardise", "hard", "--metric", "score:higher")
    assert result.exit_code != 0
    assert "--standardise needs a success criterion" in result.output


def test_seeds_that_depend_on_outcomes_are_refused(workspace: Path) -> None:
    """A study with an adaptive number of seeds is refused: the interval assumes a number fixed in advance."""
    (workspace / "lab.py").write_text(CODE)
    (workspace / "study.yaml").write_text(STUDY.replace("seeds: 10", "seeds: {until: {half_width: 0.3, max: 12}}"))
    assert invoke("run", "study.yaml", "--local", "--tracking-uri", "off").exit_code == 0
    result = invoke("report", "mine", "--standardise", "hard", "--out", "out")
    assert result.exit_code != 0
    assert "must be fixed in advance" in result.output
    assert not (workspace / "out").exists()


CODE = """
from study import seeded


@seeded
def train(seed: int, width: int):
    hard = seed % 2
    yield {"step": 0, "score": 1.0 if width > 2 * hard else 0.0, "hard": hard}
"""
STUDY = """
study: mine
train: lab:train
metrics: {score: higher, hard: lower}
success: {score: {at_least: 0.5}}
grid: {width: [1, 3]}
seeds: 10
"""


def test_a_study_has_a_number_of_starts_among_its_metrics(workspace: Path) -> None:
    """The report of a study with `standardise` in its file is standardised, as by `study report --standardise`."""
    (workspace / "lab.py").write_text(CODE)
    (workspace / "study.yaml").write_text(STUDY + "standardise: hard\n")
    done = invoke("run", "study.yaml", "--local", "--tracking-uri", "off")
    assert done.exit_code == 0, done.output
    assert "Standardised for hard" in done.output
    assert "Standardised for hard" in invoke("show", "mine").output
    own = rows(workspace / "studies" / "mine" / "report" / "standardised.csv")
    assert [(row["width"], float(row["standardised"])) for row in own] == [("1", 0.5), ("3", 1.0)]
    result = invoke("report", "mine", "--standardise", "hard", "--json", "--out", "out")
    assert result.exit_code == 0, result.output
    assert json.loads(result.output)["report"].startswith("mine")
    for row, group in zip(own, rows(workspace / "out" / "standardised.csv"), strict=True):
        assert row.pop("cell_id") != group.pop("model")
        assert row == group


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("hard\n", "hrad\n"), "standardise: must be one of the metrics, score, hard, but got 'hrad'; did you mean"),
        (("seeds: 10", "seeds: {until: {half_width: 0.2, max: 20}}"), "seeds fixed in advance"),
        (("success: {score: {at_least: 0.5}}\n", ""), "needs success rates"),
    ],
)
def test_a_study_that_cant_be_standardised_is_refused(workspace: Path, change: tuple[str, str], message: str) -> None:
    """Each mistake is reported before training."""
    (workspace / "lab.py").write_text(CODE)
    (workspace / "study.yaml").write_text((STUDY + "standardise: hard\n").replace(*change))
    done = invoke("run", "study.yaml", "--local", "--tracking-uri", "off")
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())

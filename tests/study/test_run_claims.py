"""Studies with claims, from the file to `study check` and the report: interruptions don't change verdicts."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import mlflow
import pytest
import yaml

from study.api import load, open_study
from study.console import Console
from study.driver.options import Options
from study.plan.plan import make_plan
from study.records import Event, PackDone
from study.results.load import load_results
from study.results.study import sync, write_study_report
from study.run import Ending, Run, run, until_sure
from study.spec import parse_spec
from study.store import Store
from tests.commands import invoke

# Warnings of MLflow and its dependencies are theirs to fix.
pytestmark = pytest.mark.filterwarnings("ignore")

# About half of the NMU's seeds are solved by then, and none of the linear model's.
SPEC = """
study: claimed
question: Does it learn?
task: {name: simple}
models: [NMU, linear]
seeds: {until: {claims: decided, max: 40, batch: 10}}
fixed: {batch_size: 16, learning_rate: 0.01}
protocol: {iterations: 4000, evaluate_every: 100, evaluation_rows: 50}
success: {threshold: 0.1}
claims:
  - {NMU: success_rate, exceeds: linear}
  - {NMU: success_rate, exceeds: 0.9}
  - {NMU: time_to_success, below: 3900}
"""
SHOWN = SPEC.replace("  - {NMU: success_rate, exceeds: 0.9}\n", "").replace("below: 3900", "below: 3990")


def states(root: Path) -> list[tuple[str, int, list[tuple[int, float]]]]:
    """Return each claim's verdict and cost, and its cells' seeds and evidence."""
    return [
        (v.state, v.trials, [(cell.seeds, cell.evidence) for cell in v.cells])
        for v in load_results("claimed", root).claims
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the study without interruption, and return its store."""
    root = tmp_path_factory.mktemp("undisturbed")
    ending = run(
        make_plan(parse_spec(SPEC, source="test")),
        Options(root=root, tracking_uri=None, local=True),
        Console(),
        until_sure,
    )
    assert ending == Ending.FINISHED
    return root


def test_seeds_are_added_until_claims_are_decided(undisturbed: Path) -> None:
    """Clear claims take few seeds, and the false claim is refuted; the headline has the verdicts."""
    results = load_results("claimed", undisturbed)
    assert [v.state for v in results.claims] == ["shown", "refuted", "shown"]
    seeds = {s.cell.model: s.seeds for s in results.summaries}
    assert seeds["NMU"] == max(cell.seeds for v in results.claims for cell in v.cells)
    assert seeds["linear"] == results.claims[0].cells[0].seeds <= 40
    assert results.headline.startswith("Of 3 claims 2 are shown and 1 is refuted. ")
    assert {s.success_rate_by for s in results.summaries} == {"anytime-valid"}


def test_an_interrupted_run_reaches_the_same_verdicts(
    undisturbed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after each pack and run again, the study requests the same seeds and has the same evidence."""
    plan, endings = make_plan(parse_spec(SPEC, source="test")), []
    before = Run._on_event

    def stop_after_a_pack(self: Run, event: Event) -> None:
        before(self, event)
        if isinstance(event, PackDone):
            self._stop.set()

    monkeypatch.setattr(Run, "_on_event", stop_after_a_pack)
    while not endings or endings[-1] == Ending.INTERRUPTED:
        options = Options(root=tmp_path, tracking_uri=None, local=True, pack_size=5, cpus=1)
        endings.append(run(plan, options, Console(), until_sure))
        assert len(endings) < 40
    assert len(endings) > 2
    assert states(tmp_path) == states(undisturbed)


def test_the_report_has_verdicts_evidence_and_cost(undisturbed: Path) -> None:
    """The page, its Markdown and claims.csv have the same verdicts, evidence and cost."""
    results = load_results("claimed", undisturbed)
    files = {path.name: path for path in write_study_report(results)}
    page = files["report.html"].read_text(encoding="utf-8")
    section = page[page.index("<h2>Claims</h2>") : page.index("<h2>Results</h2>")]
    lines = re.findall("<li>(.*?)</li>", section)
    assert [line.split(":")[0] for line in lines] == ["shown", "refuted", "shown"]
    assert all("trials" in line and "of training" in line for line in lines)
    assert section.count("<tr") == 1 + 3
    assert "in at most 1.67% of studies, and any of the 3 claims in at most 5%" in section
    text = files["report.md"].read_text(encoding="utf-8")
    assert "## Claims" in text
    assert "1. shown: NMU: success rate exceeds that of linear (" in text
    with files["claims.csv"].open(newline="") as lines_of_file:
        rows = list(csv.DictReader(lines_of_file))
    assert [row["verdict"] for row in rows] == ["shown", "refuted", "shown"]
    first = results.claims[0].cells[0]
    assert (float(rows[0]["evidence_for"]), int(rows[0]["seeds"])) == (first.evidence, first.seeds)
    assert float(rows[0]["estimate_lower"]) > float(rows[0]["bound"]) == 0
    assert rows[1]["other_cell_id"] == ""


def test_mlflow_shows_the_verdicts(undisturbed: Path, tmp_path: Path) -> None:
    """The description of the study's runs begins with the verdicts."""
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    sync(load_results("claimed", undisturbed), uri)
    experiment = mlflow.MlflowClient(uri).get_experiment_by_name("claimed")
    assert "Of 3 claims 2 are shown and 1 is refuted." in experiment.tags["mlflow.note.content"]


def test_check_is_a_gate(undisturbed: Path, tmp_path: Path) -> None:
    """The exit code is 4 with a refuted claim, 0 if all are shown, and 5 without enough trials; no trial runs."""
    file = tmp_path / "mine.yaml"
    file.write_text(SPEC)
    refuted = invoke("check", str(file), "--store", str(undisturbed))
    assert refuted.exit_code == 4
    assert "2. refuted: NMU: success rate exceeds 0.9" in refuted.output
    by_name = invoke("check", "claimed", "--store", str(undisturbed), "--json")
    assert by_name.exit_code == 4
    output = json.loads(by_name.output)
    assert (output["study"], output["verdict"], len(output["claims"])) == ("claimed", "refuted", 3)
    file.write_text(SHOWN)
    result = invoke("check", str(file), "--store", str(undisturbed))
    assert result.exit_code == 0, result.output
    assert "All 2 claims are shown." in result.output
    words = ("claims=[{NMU: success_rate, exceeds: 0.42}]", "seeds=500")
    repeated = invoke("check", str(file), *words, "--store", str(undisturbed))
    assert repeated.exit_code == 5
    assert "not decided yet: trials are missing" in repeated.output


def test_check_needs_claims_and_results(undisturbed: Path, tmp_path: Path) -> None:
    """A check without claims or results is bad input, and gives no verdict."""
    file = tmp_path / "mine.yaml"
    file.write_text(SPEC)
    nothing = invoke("check", str(file), "--store", str(tmp_path / "empty"))
    assert nothing.exit_code == 2
    assert "no study 'claimed'" in nothing.output
    file.write_text(SPEC[: SPEC.index("claims:\n")].replace("{until: {claims: decided, max: 40, batch: 10}}", "5"))
    refused = invoke("check", str(file), "--store", str(undisturbed))
    assert refused.exit_code == 2
    assert "has no claims to check" in refused.output


def test_the_plan_lists_claims(tmp_path: Path) -> None:
    """`study plan` lists the claims, and the expected number of seeds."""
    file = tmp_path / "mine.yaml"
    file.write_text(SPEC)
    result = invoke("plan", str(file), "--quick", "--store", str(tmp_path / "empty"))
    assert result.exit_code == 0
    assert "3 claims, judged after each batch of seeds, until they are decided:" in result.output
    assert "1. NMU: success rate exceeds that of linear" in result.output
    assert "Expected number of seeds of each cell" in result.output
    data = json.loads(invoke("plan", str(file), "--json", "--store", str(tmp_path / "empty")).output)
    assert data["claims"][1] == "NMU: success rate exceeds 0.9"


def test_python_checks_claims_too(undisturbed: Path) -> None:
    """An opened study is judged by the claims of its last run, a loaded study by those of its file."""
    opened = open_study("claimed", store=undisturbed).check()
    assert (opened.word, opened.are_refuted) == ("refuted", True)
    loaded = load(yaml.safe_load(SHOWN), store=undisturbed).check()
    assert (loaded.word, loaded.sentence) == ("shown", "All 2 claims are shown.")


# --- seeds are raised after a look

FEW = """
study: raised
question: Does it learn?
task: {name: simple}
models: [NMU]
seeds: SEEDS
fixed: {batch_size: 16, learning_rate: 0.01}
protocol: {iterations: 400, evaluate_every: 100, evaluation_rows: 50}
success: {threshold: 0.1}
claims: [{NMU: success_rate, exceeds: 0.01}]
"""


def ran(root: Path, seeds: int | str) -> str:
    """Run the study with the given seeds, and return the output of `study check`."""
    options = Options(root=root, tracking_uri=None, local=True)
    plan = make_plan(parse_spec(FEW.replace("SEEDS", str(seeds)), source="test"))
    assert run(plan, options, Console(), until_sure) == Ending.FINISHED
    return invoke("check", "raised", "--store", str(root)).output


def error_of(root: Path) -> float:
    (verdict,) = load_results("raised", root).claims
    return verdict.error


@pytest.fixture(scope="module")
def raised(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run a study with 3 seeds, check its claim, and run and check it with 6; return its store."""
    root = tmp_path_factory.mktemp("raised")
    first = ran(root, 3)
    assert "undecided, and out of seeds" in first
    assert "in at most 5% of studies, judged when all 3 seeds have ended" in " ".join(first.split())
    second = " ".join(ran(root, 6).split())
    assert "judged before at 3 seeds, so wrong in at most 7.5% of studies" in second
    assert "wrongly in at most 7.5% of studies, judged when all 6 seeds have ended" in second
    return root


def test_raised_seeds_have_the_remaining_error(raised: Path, tmp_path: Path) -> None:
    """Every output states the remaining error, also after a second run of the same file, and in another store."""
    assert error_of(raised) == pytest.approx(0.075)
    assert "judged before at 3 seeds" in " ".join(ran(raised, 6).split())
    output = json.loads(invoke("check", "raised", "--store", str(raised), "--json").output)
    assert output["claims"][0]["error"] == pytest.approx(0.075)
    archive = tmp_path / "raised.zip"
    assert invoke("export", "raised", str(archive), "--store", str(raised)).exit_code == 0
    assert invoke("import", str(archive), "--store", str(tmp_path / "other")).exit_code == 0
    assert error_of(tmp_path / "other") == pytest.approx(0.075)


def test_only_raised_seeds_spend_error(raised: Path, tmp_path: Path) -> None:
    """A return to fewer seeds repeats the earlier look; more seeds make a third look."""
    root = tmp_path / "store"
    shutil.copytree(raised, root)
    ran(root, 3)
    assert error_of(root) == pytest.approx(0.075)
    ran(root, 8)
    assert error_of(root) == pytest.approx(0.0875)
    ran(root, "{until: {claims: decided, max: 20, batch: 10}}")
    assert error_of(root) == pytest.approx(0.0875 + 0.025 + 0.025 / 8)


def test_seeds_without_a_look_spend_no_error(tmp_path: Path) -> None:
    """A number of seeds that is changed before its trials have ended isn't a look."""
    folder = Store(tmp_path).study("raised")
    folder.write_spec(FEW.replace("SEEDS", "1000"))
    ran(tmp_path, 3)
    assert error_of(tmp_path) == pytest.approx(0.05)


def test_the_plan_shows_the_cost_of_earlier_looks(raised: Path, tmp_path: Path) -> None:
    """The plan states the remaining error before more seeds are trained."""
    file = tmp_path / "mine.yaml"
    file.write_text(FEW.replace("SEEDS", "12"))
    output = " ".join(invoke("plan", str(file), "--quick", "--store", str(raised)).output.split())
    assert "judged before at 3 and 6 seeds, so wrong in at most 8.75% of studies" in output


@pytest.mark.parametrize(
    ("look", "message"),
    [
        ({"seeds": 3, "exact": 2, "bets": 0}, "exact and bets must be from 0 to 1, but are 2 and 0"),
        ({"seeds": "0-9223372036854775000", "exact": 0.05, "bets": 0}, "a look has at most 10,000,000 seeds"),
        ({"exact": 0.05, "bets": 0}, "missing 1 required positional argument: 'seeds'"),
    ],
)
def test_looks_that_cannot_be_read_are_an_error(
    raised: Path, tmp_path: Path, look: dict[str, object], message: str
) -> None:
    """Unreadable looks are an error without a verdict, and stored content can't make the check slow."""
    root = tmp_path / "store"
    shutil.copytree(raised, root)
    (root / "raised" / "claim_looks.json").write_text(json.dumps({"looks": [{"claim": "a"} | look]}))
    result = invoke("check", "raised", "--store", str(root))
    assert result.exit_code == 1
    assert message in " ".join(result.output.split())

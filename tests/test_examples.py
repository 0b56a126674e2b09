"""The examples, and the studies on pages, agree with their pages and run as shown."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import pytest
import torch
import yaml

from study import Metric
from study.driver.own_engine import own_engine
from study.engine.packed.engine import PackedEngine, as_layout
from study.interface.function.call import FunctionCall
from study.interface.packed_family import recipe_text
from study.interface.task import Task
from study.plan.plan import Plan, make_plan
from study.records import Pack, Trial
from study.source import parse_import_string
from study.spec import load_spec, parse_spec
from study.stream.stream import Purpose
from study.stream.trial_stream import Stream, evaluation_stream
from tests.engines import ENGINES
from tests.pages import estimates, files_shown, lay_out, run, sessions, trains, verdicts

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.parent for path in (ROOT / "examples").glob("*/study.yaml"))  # test_notebook.py runs notebooks
OWN = [ROOT / "docs" / name for name in ("tutorial.md", "guides/own-code.md", "guides/programs.md")]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


PAGES = [*(folder / "README.md" for folder in EXAMPLES), ROOT / "README.md", *OWN]
TAKE_A_MINUTE = ("cartpole", "classifier", "means", "parity", "script", "unit")  # even with five seeds
every_example = pytest.mark.parametrize("example", EXAMPLES, ids=lambda folder: folder.name)
every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)
every_short_page = pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=pytest.mark.long if page.parent.name in TAKE_A_MINUTE else ()) for page in PAGES],
    ids=name_of,
)
LARGEST_PICTURE = 150_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty user folder outside the project; copies of code are unpacked beside it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def matches_page(expected: str, printed: str) -> bool:
    """Return True if the output matches a page's; three dots on the page match any text.

    Lines that begin with "measuring" are ignored, since they appear only on slow machines.
    """
    printed = "".join(line for line in printed.splitlines(keepends=True) if not line.startswith("measuring: "))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(expected, printed, flags)


@every_example
def test_an_example_is_complete(example: Path) -> None:
    """An example's page shows its study file and a picture of moderate size, and the list of examples links to it."""
    page = (example / "README.md").read_text(encoding="utf-8")
    assert files_shown(page)["study.yaml"] == (example / "study.yaml").read_text(encoding="utf-8")
    assert "(figure.png)" in page
    assert (example / "figure.png").stat().st_size < LARGEST_PICTURE
    assert f"| [{example.name}]({example.name}/README.md) |" in (ROOT / "examples" / "README.md").read_text("utf-8")


@every_example
def test_an_example_has_the_size_on_its_page(example: Path, folder: Path) -> None:
    """A copy of an example's file loads, with the page's numbers of trials and cells."""
    planned = make_plan(load_spec(lay_out(example / "README.md", folder) / "study.yaml"))
    ((_, shown),) = sessions((example / "README.md").read_text(encoding="utf-8"))
    size = f"{planned.trials_count} trials in {len(planned.cells)} cells"
    assert shown.splitlines()[0] == f"{planned.spec.study}: {size}"
    assert len(estimates(shown)) == len(planned.cells)


@every_page
def test_commands_without_training_print_as_shown(page: Path, folder: Path) -> None:
    """Commands that don't train print the output that their page shows."""
    lay_out(page, folder)
    for command, shown in sessions(page.read_text(encoding="utf-8")):
        if not trains(command):
            printed = run(command, folder).stdout
            assert matches_page(shown, printed), f"{command}\n{printed}"


def trained(page: Path, folder: Path, *values: str) -> Iterator[tuple[str, str]]:
    """Run each study of a page with overrides; yield the shown and the printed output.

    The studies of README.md run on Ray, unchanged; the others run in one process, with the same numbers.
    """
    lay_out(page, folder)
    shown_by_command = {
        command: shown for command, shown in sessions(page.read_text(encoding="utf-8")) if trains(command)
    }
    assert shown_by_command
    for command, shown in shown_by_command.items():
        words = [command, *values] if page.parent == ROOT else [command, "--local", *values]
        completed = run(" ".join(words), folder)
        assert completed.returncode == 0, completed.stdout
        yield shown, completed.stdout


@pytest.mark.slow
@every_short_page
def test_few_seeds_of_each_study_train(page: Path, folder: Path) -> None:
    """With five seeds, every cell has a rate or mean whose interval overlaps the page's interval."""
    for shown, printed in trained(page, folder, "seeds=5"):
        expected, now = estimates(shown), estimates(printed)
        assert expected
        assert now.keys() == expected.keys(), printed
        apart = {key for key, new in now.items() if new.low > expected[key].high or new.high < expected[key].low}
        assert apart == set()


@pytest.mark.long
@every_page
def test_studies_run_as_pages_show(page: Path, folder: Path) -> None:
    """With all seeds, every rate or mean is within the page's interval, and verdicts are the same."""
    for shown, printed in trained(page, folder):
        assert printed.splitlines()[0] == shown.splitlines()[0]
        expected, now = estimates(shown), estimates(printed)
        assert now.keys() == expected.keys(), printed
        assert verdicts(printed) == verdicts(shown)
        assert {
            key: estimate
            for key, estimate in now.items()
            if not expected[key].low <= estimate.value <= expected[key].high
        } == {}


def packed(example: str, folder: Path) -> tuple[PackedEngine, Plan]:
    """Return the engine and the plan of a packed example with few updates."""
    file = lay_out(ROOT / "examples" / example / "README.md", folder) / "study.yaml"
    content = yaml.safe_load(file.read_text(encoding="utf-8"))
    content |= {"grid": {}, "protocol": {"iterations": 20, "evaluate_every": 10}, "seeds": 5}
    content.pop("claims", None)
    planned = make_plan(parse_spec(yaml.safe_dump(content), source="study.yaml", folder=folder))
    engine = own_engine(planned.spec)
    assert isinstance(engine, PackedEngine)
    return engine, planned


def test_built_in_engines_refuse_means(folder: Path) -> None:
    """The engines of built-in tasks refuse the example's task, whose target differs."""
    for cell in packed("means", folder)[1].cells:
        reasons = [engine.refuses(cell) for engine in ENGINES.values()]
        assert all(reason is not None and "not means:Means" in reason for reason in reasons)


def test_means_are_means(folder: Path) -> None:
    """Targets are means of the first numbers of each row; test numbers have another range than training numbers."""
    class_ = packed("means", folder)[0].code.folder().load(parse_import_string("means:Means"), (Task,))
    task = class_(subset=3)
    x, target = task.draw(Stream([7], 0, Purpose.TRAIN))
    torch.testing.assert_close(target[:, 0], (x[:, 0] + x[:, 1] + x[:, 2]) / 3)
    assert 1 <= x.min() < x.max() < 2
    x, _ = task.evaluation(evaluation_stream(Purpose.TEST), Purpose.TEST)
    assert 2 <= x.min() < x.max() < 6
    assert x.max() > 5.9


def test_parity_is_of_the_first_signs(folder: Path) -> None:
    """A target is the parity of the negative first signs; both targets are equally frequent."""
    class_ = packed("parity", folder)[0].code.folder().load(parse_import_string("parity:Parity"), (Task,))
    signs, target = class_(bits=3).evaluation(evaluation_stream(Purpose.TEST), Purpose.TEST)
    assert signs.shape == (1000, 20)
    assert set(signs.unique().tolist()) == {-1, 1}
    assert torch.equal(target == 1, (signs[:, :3] < 0).sum(1) % 2 == 0)
    assert 400 < target.sum() < 600


@pytest.mark.parametrize("example", ["means", "parity"])
def test_packed_examples_have_the_same_bits_in_packs_and_alone(example: str, folder: Path) -> None:
    """Trials in packs have the metrics, curves and weights of packs of one trial each."""
    engine, planned = packed(example, folder)
    for cell in planned.cells:
        proof = engine.prove(cell)
        assert proof.packs, proof.reason
        proven = replace(engine, layouts={recipe_text(cell): as_layout(proof)})
        trials = tuple(Trial(cell, seed) for seed in range(5))
        together = bits(proven, Pack(trials))
        assert [result for trial in trials for result in bits(proven, Pack((trial,)))] == together
        assert len(set(together)) == len(trials)


@pytest.fixture
def cartpole() -> SimpleNamespace:
    """Return the definitions of the agent's file."""
    return SimpleNamespace(**run_path(str(ROOT / "examples" / "cartpole" / "cartpole.py")))


def test_sources_of_cartpole_have_seeds_of_their_own(cartpole: SimpleNamespace) -> None:
    """The three seeds together determine a trial, and each of them changes the returns."""

    def returns(seed: int, **seeds: int) -> list[float]:
        metrics = {"mean_return": Metric(higher_is_better=True)}
        call = FunctionCall(cartpole.train, seed=seed, values=seeds, metrics=metrics, iterations=12)
        return [call.next_step().metrics["mean_return"] for _ in range(2)]

    names, plain = ("weights_seed", "environment_seed", "action_seed"), returns(3)
    assert returns(7, **dict.fromkeys(names, 3)) == plain
    assert all(returns(3, **{name: 7}) != plain for name in names)


def test_cartpole_discounts_and_counts_whole_episodes(cartpole: SimpleNamespace) -> None:
    """Returns are discounted sums of later rewards; steps after a restart don't count in an episode."""
    assert cartpole.discounted(torch.ones(3, 1))[:, 0].tolist() == pytest.approx([1 + 0.99 + 0.99**2, 1.99, 1])
    torch.manual_seed(0)
    _, _, rewards = cartpole.play(cartpole.cart_poles(8), cartpole.network(), 0, torch.Generator().manual_seed(0))
    lengths = rewards.sum(0).long().tolist()
    assert len(set(lengths)) > 1
    assert all(rewards[:length, k].all() and not rewards[length:, k].any() for k, length in enumerate(lengths))


def bits(engine: PackedEngine, pack: Pack) -> list[tuple[object, ...]]:
    """Train a pack, and return each trial's metrics, curves and weights as bytes."""
    training = engine.start(pack, device="cpu")
    while not training.done:
        training.advance(1e9)
    return [
        (
            str(result.metrics),
            *(values.tobytes() for values in curve.metrics.values()),
            *(array.tobytes() for array in weights.arrays.values()),
        )
        for result, curve, weights in zip(*training.finish(), strict=True)
    ]

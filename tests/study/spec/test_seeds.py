"""Seeds of a study file: counts, ranges and lists in any notation."""

from __future__ import annotations

import re

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.api import load
from study.errors import InputError, SpecError
from study.plan.plan import make_plan
from study.spec import Spec, parse_overrides, parse_spec, schema

STUDY = {"study": "mine", "task": {"name": "simple"}, "models": ["NMU"]}
FILE = "{study: mine, task: {name: simple}, models: [NMU], seeds: SEEDS}"


def parsed(seeds: str) -> Spec:
    return parse_spec(FILE.replace("SEEDS", seeds), source="mine.yaml")


def ids(spec: Spec) -> list[str]:
    return [trial.id for trial in make_plan(spec).trials]


@pytest.mark.parametrize(
    ("seeds", "written_out"),
    [
        ("0-9", "10"),
        ("100-102", "[100, 101, 102]"),
        ("[0-3, 20]", "[0, 1, 2, 3, 20]"),
        ("['7 - 9', 5, 1-1]", "[7, 8, 9, 5, 1]"),
        ("{init: 0-3, data: [0-1, 5]}", "{init: 4, data: [0, 1, 5]}"),
        ("{init: 2-4, data: 0-1, design: nested}", "{init: [2, 3, 4], data: 2, design: nested}"),
    ],
)
def test_a_range_is_its_seeds_in_files_overrides_and_python(seeds: str, written_out: str) -> None:
    """A range and its written-out seeds give the same trials, including both ends."""
    spec = parsed(seeds)
    assert ids(spec) == ids(parsed(written_out))
    assert spec.most_seeds == len(spec.first_seeds) == len(ids(spec))
    replaced = parse_spec(FILE.replace("SEEDS", "3"), source="a.yaml", overrides=parse_overrides([f"seeds={seeds}"]))
    assert ids(replaced) == ids(spec) == ids(parse_spec(replaced.text, source="store"))
    jsonschema.validate(STUDY | {"seeds": parse_overrides([f"seeds={seeds}"])["seeds",]}, schema())


@given(first=st.integers(0, 2**62), count=st.integers(1, 50))
def test_a_range_of_python_is_a_range_of_the_file(first: int, count: int) -> None:
    """`seeds=range(100, 150)` from Python is stored as `100-149`."""
    study = load(STUDY | {"seeds": range(first, first + count)})
    assert list(study.planned.spec.first_seeds) == list(range(first, first + count))
    assert study.planned.spec.last_seed == first + count - 1
    of_sources = load(STUDY | {"seeds": {"init": range(3), "data": range(1, 9, 4)}})
    assert of_sources.planned.spec.seeds.sources == {"init": range(3), "data": (1, 5)}


@pytest.mark.parametrize(
    ("seeds", "message"),
    [
        ("9-0", "seeds: a range must ascend, as 0-9 does, but got '9-0'"),
        ("1-2-3", "seeds: must be a count, a list of seeds, or a range such as 100-149, but got '1-2-3'"),
        ("2001-01-02", "or a range such as 100-149, but got '2001-01-02'"),
        ("ten", "or a range such as 100-149, but got 'ten'"),
        ("[0-3, 2]", "each seed may be given once, but got 2 again"),
        ("0-9223372036854775808", "the seeds of a range must be below 2**63"),
        ("[0-99999999]", "must list at most 10,000,000 seeds, the most trials of a study, but lists 100,000,000"),
        ("[0-9223372036854775807]", "but lists 9,223,372,036,854,775,808"),
        ("{init: 0-9999, data: 0-9999}", "must combine to at most 10,000,000 seeds"),
        ("{init: 3, data: 5-6, design: nested}", "seeds.design: nested needs init, and data as a count"),
    ],
)
def test_a_wrong_range_is_one_mistake(seeds: str, message: str) -> None:
    """An invalid or too large range is refused before it is expanded."""
    with pytest.raises(SpecError) as caught:
        parsed(seeds)
    assert len(caught.value.problems) == 1
    assert message in str(caught.value)


@pytest.mark.parametrize("seeds", ["0-99999999", "5-9223372036854775806"])
def test_a_huge_range_is_a_huge_study(seeds: str) -> None:
    """A range isn't expanded before the study's size is checked."""
    with pytest.raises(InputError, match=re.escape("but 10,000,000 is the most that can be planned")):
        load(STUDY | {"seeds": seeds})

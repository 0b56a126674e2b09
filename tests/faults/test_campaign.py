"""Faults on a real study on a real cluster: no result is lost or duplicated, and the user is told."""

from __future__ import annotations

import pytest

from tests.faults.bed import Bed
from tests.faults.laws import check
from tests.faults.strikes import FAULTS
from tests.faults.table import keep

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]


def _named(*, own_clock: bool) -> list[str]:
    return [name for name, fault in FAULTS.items() if fault.own_clock == own_clock]


@pytest.mark.parametrize("name", _named(own_clock=False))
def test_fault(bed, name):
    """Each trial has one result with the undisturbed bits and one finished run, and the user was told."""
    disturb(bed, name)


@pytest.mark.parametrize("name", _named(own_clock=True))
def test_fault_of_the_clock(bed_with_clock, name):
    """As in `test_fault`, after the clock of the cluster and the driver was set back."""
    disturb(bed_with_clock, name)


def disturb(bed: Bed, name: str) -> None:
    try:
        study = FAULTS[name].begun(bed)
        FAULTS[name].strike(study)
        keep(name, check(study, FAULTS[name]))
    finally:
        bed.mend()  # always: the next fault needs all services running, and no leftovers of this one

"""Installed plug-ins are found by name without an import, and their versions are checked."""

from __future__ import annotations

import sys

import pytest

from study.errors import InputError
from study.plugins.offers import find_plugin
from study.source import ImportString, check_distributions, read_source_code
from tests.study.source.builders import installed, marked, write

OFFERS = "[seeded_study.tasks]\nspirals = mylab.tasks:Spirals\n[seeded_study.models]\nspirals = mylab.models:mlp\n"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a folder of installed packages, with one that fails on import."""
    folder = write(tmp_path / "site-packages", mylab__="raise AssertionError", mylab__tasks="", mylab__models="")
    monkeypatch.syspath_prepend(installed(folder, entry_points=OFFERS))
    return folder


def test_a_plugin_is_found_by_name_and_kind(site):
    """A name refers to its group's entry, and finding it imports nothing."""
    assert find_plugin("tasks", "spirals") == ImportString("mylab.tasks", "Spirals")
    assert find_plugin("models", "spirals") == ImportString("mylab.models", "mlp")
    assert "mylab" not in sys.modules


def test_the_nearest_name_is_suggested(site):
    """A wrong name gets the nearest plug-in or built-in name, or else all names."""
    with pytest.raises(InputError, match=r"isn't among the tasks .*did you mean 'spirals'"):
        find_plugin("tasks", "spiral")
    with pytest.raises(InputError, match="did you mean 'arithmetic'"):
        find_plugin("tasks", "aritmetic", known=["arithmetic"])
    with pytest.raises(InputError, match="choose from arithmetic, spirals"):
        find_plugin("tasks", "xyz", known=["arithmetic"])


def test_two_packages_with_one_name_are_refused(site, tmp_path, monkeypatch):
    """A name offered by two packages is ambiguous: the message names both and their objects."""
    other = installed(tmp_path / "other", name="yourlab", entry_points="[seeded_study.tasks]\nspirals = yourlab:S\n")
    monkeypatch.syspath_prepend(other)
    with pytest.raises(InputError, match=r"more than one.*mylab \(mylab.tasks:Spirals\), yourlab \(yourlab:S\)"):
        find_plugin("tasks", "spirals")


def test_a_plugin_without_an_object_is_refused(tmp_path, monkeypatch):
    """An entry point that names only a module is refused with a message."""
    offers = "[seeded_study.units]\nu = mylab\n"
    monkeypatch.syspath_prepend(installed(tmp_path, entry_points=offers))
    with pytest.raises(InputError, match=r"'u' is offered by mylab as 'mylab', which must be package\.module:object"):
        find_plugin("units", "u")


def test_an_installed_module_is_identified_by_its_version(site, tmp_path):
    """Installed code isn't copied: its name and version identify it, without an import."""
    code = read_source_code([find_plugin("tasks", "spirals")], tmp_path / "study")
    assert (dict(code.files), code.identity()) == ({}, "mylab==1.2")
    assert "mylab" not in sys.modules


def test_the_package_that_has_the_module_counts(tmp_path, monkeypatch):
    """If two packages share a top-level name, the version is that of the package with the module."""
    site = tmp_path / "site-packages"
    installed(write(site, lab__tasks=""), name="lab-tasks", version="1")
    site = tmp_path / "more" / "site-packages"
    installed(write(site, lab__models=marked("1")), name="Lab_Models", version="2")
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(site)
    assert read_source_code([ImportString("lab.models", "train")], tmp_path).identity() == "lab-models==2"
    assert read_source_code([ImportString("lab.tasks", "train")], tmp_path).identity() == "lab-tasks==1"


def test_a_module_that_no_installer_wrote_has_no_version(tmp_path, monkeypatch):
    """A module in the packages folder that belongs to no package has no identity, and is refused."""
    monkeypatch.syspath_prepend(write(tmp_path / "site-packages", loose=""))
    with pytest.raises(InputError, match="belongs to no package with a version"):
        read_source_code([ImportString("loose", "train")], tmp_path)


def test_versions_elsewhere_must_be_the_same(site):
    """A machine with another version, or none, is refused by a message that names the version to install."""
    check_distributions(["mylab==1.2"])
    with pytest.raises(InputError, match=r"started with mylab 1\.3, but this machine has 1\.2: install mylab==1\.3"):
        check_distributions(["mylab==1.3"])
    with pytest.raises(InputError, match="but this machine has none"):
        check_distributions(["nobody-has-this-lab==1"])

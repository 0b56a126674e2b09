"""The extra `cluster`: check that Ray can be used here, and say how to install it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from study.errors import MissingPackageError

OLDEST_RAY = (2, 54)
"""Major and minor version of the oldest Ray with all that is used here: labels of the node that a job runs on."""

INSTALL_RAY = "pip install 'seeded-study[cluster]'"
"""The command that installs Ray, with those of its own extras that are used here."""

# By these packages Ray's extras `default`, which runs jobs, and `tune` are recognised.
_PACKAGES_OF_RAY = ("aiohttp-cors", "tensorboardX")


def ray_problem() -> str | None:
    """Return why Ray can't be used here; None if it can. Ray isn't imported, since that takes half a second."""
    release = _release("ray")
    if release is None:
        return "Ray isn't installed"
    major, minor = release.split(".")[:2]
    if not OLDEST_RAY <= (int(major), int(minor)) < (OLDEST_RAY[0] + 1, 0):
        oldest = ".".join(map(str, OLDEST_RAY))
        return f"Ray {release} is installed, and versions from {oldest} to below {OLDEST_RAY[0] + 1} can be used"
    if any(_release(name) is None for name in _PACKAGES_OF_RAY):
        return "Ray is installed without its extras 'default' and 'tune'"
    return None


def check_ray(purpose: str) -> None:
    """Check that Ray can be used here.

    Args:
        purpose: what needs it, such as ``--address``.

    Raises:
        MissingPackageError: if it can't.
    """
    if (problem := ray_problem()) is not None:
        raise MissingPackageError(f"{purpose} needs Ray, but {problem}: {INSTALL_RAY}")


def _release(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None

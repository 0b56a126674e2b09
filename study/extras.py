"""The extra `cluster`: a check that Ray can be used, and the command that installs it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from study.errors import MissingPackageError

OLDEST_RAY = (2, 54)
"""Major and minor version of the oldest usable Ray; older ones lack labels for the node of a job."""

INSTALL_RAY = "pip install 'seeded-study[cluster]'"
"""Command that installs Ray with the extras that are used here."""

# They are installed with Ray's extras `default`, for jobs, and `tune`.
_PACKAGES_OF_RAY = ("aiohttp-cors", "tensorboardX")


def ray_problem() -> str | None:
    """Return the reason why Ray can't be used here, or None; Ray isn't imported, since that takes half a second."""
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
        purpose: the option or command that needs it, such as ``--address``.

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

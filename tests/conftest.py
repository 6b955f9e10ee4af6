"""Options and markers of the tests."""

from __future__ import annotations

import math
import os

# Before NumPy is there: matrices of a few rows gain nothing by threads, which take the cores of the other processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from functools import cache

import pytest

from gpusim.backends import why_not
from gpusim.backends.native import specialization
from tests import message_snapshot
from tests.builds import long_run, optimize_less  # noqa: F401
from tests.message_snapshot import pytest_addoption  # noqa: F401

missing = cache(why_not)
NEEDED = {"native": "native", "gpu": "cuda"}


def pytest_configure(config: pytest.Config) -> None:
    message_snapshot.pytest_configure(config)
    if not config.option.markexpr and not any("::" in arg for arg in config.args):
        config.option.markexpr = "not nightly"
    # a build in the background would take a core from the tests, and what the cache holds must not change them
    for name in ("LOOKS_AFTER", "MAKES_AFTER"):
        pytest.MonkeyPatch().setattr(specialization, name, math.inf)
    if os.environ.get("GPUSIM_TEST_BUILDS") != "shipped":
        optimize_less(pytest.MonkeyPatch())


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker, backend in NEEDED.items():
        if item.get_closest_marker(marker) and (reason := missing(backend)):
            pytest.skip(f"no {backend} backend: {reason}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("slow_numpy") and _runs_numpy(item) and not missing("native"):
            item.add_marker("nightly")
    items.sort(key=lambda item: item.path.parent.name != "parity")
    files = list(dict.fromkeys(item.path for item in items))
    half = (len(files) + 1) // 2
    place = {path: (k % half, k // half) for k, path in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


def _runs_numpy(item: pytest.Item) -> bool:
    """Return whether a test has the NumPy backend as parameter."""
    values = item.callspec.params.values() if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ()
    return any(isinstance(value, str) and value == "numpy" for value in values)

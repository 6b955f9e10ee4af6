"""Compiler optimization level for the tests."""

from __future__ import annotations

import itertools
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from gpusim.backends.native import backend as native_backend
from gpusim.backends.native import compile as compile_native
from gpusim.backends.native.compile import build_native

SHIPPED = {name: getattr(compile_native, name) for name in ("FLAGS", "UNROLLED", "PEELED", "SKIPPED")}

#: 0.6 of the time of -O1, and steps that take a third longer; without the parts of vectors in registers, twice as long.
QUICK = ("-Og", "-ftree-sra")


_ONE_BY_ONE = threading.Lock()


def optimize_less(monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = SHIPPED["FLAGS"]
    assert "-O2" in shipped
    flags = [QUICK if flag == "-O2" else (flag,) for flag in shipped]
    monkeypatch.setattr(compile_native, "FLAGS", tuple(itertools.chain.from_iterable(flags)))
    monkeypatch.setattr(compile_native, "UNROLLED", ())
    monkeypatch.setattr(compile_native, "PEELED", ())
    monkeypatch.setattr(compile_native, "SKIPPED", ())


def build_plain(main: str, generated: dict[str, str], defines: dict[str, str], *_: Any, **_options: Any) -> Path:
    with _ONE_BY_ONE, pytest.MonkeyPatch.context() as own:  # builds of one model are asked for side by side
        optimize_less(own)
        return build_native(main, generated, defines | {"GPUSIM_PLAIN": "1"})


@pytest.fixture
def long_run(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.environ.get("GPUSIM_TEST_BUILDS") != "shipped":
        monkeypatch.setattr(compile_native, "UNROLLED", ("-O1",))
        monkeypatch.setattr(native_backend, "_LIBRARIES", {})


def optimize_as_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, flags in SHIPPED.items():
        monkeypatch.setattr(compile_native, name, flags)
    monkeypatch.setattr(native_backend, "_LIBRARIES", {})

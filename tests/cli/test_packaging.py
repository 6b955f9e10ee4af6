from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gpusim.backends.requirements import MIN_VERSIONS, version_key
from gpusim.cli import probes

OUTSIDE = {"cuda_kernels", "scenes", "viewer"}


def test_every_package_has_its_init_file(checkout: Path) -> None:
    folders = (checkout / name for name in ("gpusim", *OUTSIDE))
    missing = {file.parent for folder in folders for file in folder.rglob("*.py")}
    assert [str(folder) for folder in missing if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_packages_next_to_gpusim_are_linked(checkout: Path, name: str) -> None:
    link = checkout / "gpusim" / name
    assert link.is_symlink() and link.readlink() == Path("..", name)


def test_least_versions_are_those_of_the_doctor(checkout: Path) -> None:
    text = (checkout / "pyproject.toml").read_text(encoding="utf-8").split("dependencies = [", 1)[1].split("]", 1)[0]
    asked = dict(re.findall(r'"([\w.]+)>=([\d.]+)"', text))
    assert MIN_VERSIONS.items() <= asked.items()


def test_an_old_numpy_is_reported_in_one_sentence(cli, monkeypatch) -> None:
    monkeypatch.setattr(np, "__version__", "1.26.4")
    result = cli("run", "double_pendulum", "--duration", "0.01")
    assert result.exit_code == 2 and len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("gpusim: NumPy 1.26.4 is older than 2.2; update it: pip install 'numpy>=2.2'")
    monkeypatch.setattr(probes, "version", lambda name: "1.26.4")
    finding = probes.probe_package("numpy")
    assert finding.detail == "1.26.4 is older than 2.2" and not finding.good


def test_versions_are_compared_by_numbers() -> None:
    texts = ("2.2.0", "0.61.2rc1", "2.5.0.dev0+g1")
    assert [version_key(text) for text in texts] == [(2, 2, 0), (0, 61, 2), (2, 5, 0)]

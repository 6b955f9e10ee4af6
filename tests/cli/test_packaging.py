"""``pyproject.toml`` against the folders: a package that it forgets works in a checkout and is missing from wheels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib")  # Python 3.11

OUTSIDE = {"cuda_kernels", "scenes", "viewer"}


@pytest.fixture
def project(checkout: Path) -> dict[str, Any]:
    return tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_package_is_listed(checkout: Path, project: dict[str, Any]) -> None:
    listed = set(project["tool"]["setuptools"]["packages"])
    folders = [checkout / "gpusim", *(checkout / name for name in OUTSIDE)]
    found = {_package(checkout, file.parent) for folder in folders for file in folder.rglob("*.py")}
    assert listed == found, "correct the list of packages in pyproject.toml"


def test_every_package_has_its_init_file(checkout: Path, project: dict[str, Any]) -> None:
    for package in project["tool"]["setuptools"]["packages"]:
        init = checkout.joinpath(*package.split("."), "__init__.py")
        assert init.is_file(), f"{init} is missing"


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_packages_beside_gpusim_are_mapped_and_linked(checkout: Path, project: dict[str, Any], name: str) -> None:
    link = checkout / "gpusim" / name
    assert link.is_symlink() and link.readlink() == Path("..", name)
    assert project["tool"]["setuptools"]["package-dir"][f"gpusim.{name}"] == name


def _package(checkout: Path, folder: Path) -> str:
    parts = folder.relative_to(checkout).parts
    return ".".join(parts if parts[0] == "gpusim" else ("gpusim", *parts))

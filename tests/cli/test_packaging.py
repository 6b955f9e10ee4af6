"""Folders of packages: one without its file or link works in a checkout and is missing from wheels."""

from __future__ import annotations

from pathlib import Path

import pytest

OUTSIDE = {"cuda_kernels", "scenes", "viewer"}


def test_every_package_has_its_init_file(checkout: Path) -> None:
    folders = (checkout / name for name in ("gpusim", *OUTSIDE))
    missing = {file.parent for folder in folders for file in folder.rglob("*.py")}
    assert [str(folder) for folder in missing if not (folder / "__init__.py").is_file()] == []


@pytest.mark.parametrize("name", sorted(OUTSIDE))
def test_packages_beside_gpusim_are_linked(checkout: Path, name: str) -> None:
    link = checkout / "gpusim" / name
    assert link.is_symlink() and link.readlink() == Path("..", name)

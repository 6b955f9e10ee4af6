"""Search for meshes and other files that a robot file refers to, on disk or in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from gpusim.errors import ModelError

FOLDERS_ABOVE = 8
"""Number of folders to search: the folder of the robot file, then its parent folder, and so on."""
_SCHEMES = ("package", "model", "fuel")
_ROOTS = ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "IGN_GAZEBO_RESOURCE_PATH", "GAZEBO_MODEL_PATH")


class Search:
    """Search path for files.

    Args:
        folder: folder of the robot file. Relative file names are relative to this folder. The search for packages
            includes all folders above the robot file.
        packages: package folders, or folders that contain package folders.
    """

    def __init__(self, folder: Path, packages: Sequence[Path] = ()) -> None:
        self.folder, self.packages = folder, list(packages)
        self.guessed: dict[str, Path] = {}
        """Files that match only the end of a name: name in the robot file -> path of the found file."""
        self._missing: set[tuple[str, Path]] = set()
        self._subfolders: dict[Path, list[Path]] = {}

    def find(self, name: str, folder: Path | None = None) -> Path | None:
        """Return the file or folder for a path or a URI (``package://...``, ``file://...``), or None.

        Relative names are relative to ``folder``, by default ``self.folder``.
        """
        scheme, _, path_text = name.strip().partition("://") if "://" in name else ("", "", name.strip())
        here = self.folder if folder is None else folder
        path_text = path_text.replace("\\", "/")
        package, _, rest = path_text.partition("/")
        if scheme in _SCHEMES:
            candidates = self._in_packages(package, rest, here)
        else:
            candidates = (start / path_text for start in (here, *self.packages))
        # os.path, since Path raises an error for long names and for folders without permission
        found = next((path for path in candidates if path_text and os.path.exists(path)), None)
        if found is None and (name, here) not in self._missing:
            found = self._guess(name, path_text, here)
            if found is None:
                self._missing.add((name, here))
        return found

    def require(self, name: str, folder: Path | None = None) -> str:
        """Return the path of a file.

        Raises:
            ModelError: the file is missing. The message explains how to specify the file's folder.
        """
        path = self.find(name, folder)
        if path is None or not os.path.isfile(path):
            raise ModelError(f"no file {name!r}; give its folder or that of its package with asset_dirs=[...]")
        return str(path)

    def _in_packages(self, package: str, path: str, here: Path) -> Iterator[Path]:
        listed = [Path(p) for name in _ROOTS for p in os.environ.get(name, "").split(os.pathsep) if p]
        ament = [Path(p) / "share" for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p]
        for folder in (*self.packages, *listed, *ament, here, *here.parents):
            yield folder / package / path
            if folder.name == package:
                yield folder / path

    def _guess(self, name: str, path_text: str, here: Path) -> Path | None:
        """Return the file whose last path components match ``path_text`` best, or None."""
        parts = [part for part in PurePosixPath(path_text).parts if part not in ("/", "..", ".")]
        if not parts or "." not in parts[-1]:
            return None
        parents = [here, *here.parents][:FOLDERS_ABOVE]
        parents = [folder for folder in parents if folder != folder.parent]  # skip the root folder
        for start in range(len(parts) - 1):
            tail = Path(*parts[start:])
            for folder in (*self.packages, *parents):
                found = next((path for path in self._paths_below(folder, tail) if os.path.isfile(path)), None)
                if found:
                    self.guessed[name] = found
                    return found
        for folder in (here, *self.packages):  # search fewer folders, since a bare name is ambiguous
            found = next((path for path in self._paths_below(folder, Path(parts[-1])) if os.path.isfile(path)), None)
            if found:
                self.guessed[name] = found
                return found
        return None

    def _paths_below(self, folder: Path, tail: Path) -> Iterator[Path]:
        yield folder / tail
        if folder not in self._subfolders:
            try:
                self._subfolders[folder] = sorted(path for path in folder.iterdir() if os.path.isdir(path))
            except OSError:  # no permission, or the folder is missing
                self._subfolders[folder] = []
        for child in self._subfolders[folder]:
            yield child / tail


@contextmanager
def asset_folder(assets: Mapping[str, bytes] | None) -> Iterator[list[Path]]:
    """Write the files in ``assets`` to a temporary folder, and delete the folder after the import.

    Args:
        assets: file name -> content (bytes), or None.

    Yields:
        A list that contains the temporary folder. Without assets, the list is empty.

    Raises:
        ModelError: a file name is not a relative path, or the content of a file is not bytes.
    """
    if not assets:
        yield []
        return
    with TemporaryDirectory(prefix="gpusim_") as root:
        for name, content in assets.items():
            path = PurePosixPath(str(name).partition("://")[2] or str(name))
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ModelError(f"assets: name {name!r} must be a relative path without '..'; rename it")
            if not isinstance(content, bytes | bytearray):
                raise ModelError(f"assets: {name!r} is {type(content).__name__}; give its content as bytes")
            target = Path(root, *path.parts)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield [Path(root)]

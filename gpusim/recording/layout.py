"""Layout of a signal recording (names, shapes and units), and blocks of samples."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from gpusim.errors import ModelError
from gpusim.typing import Array

FORMAT = "gpusim signals 2"
DTYPES = ("float64", "float32")


@dataclass(frozen=True)
class Layout:
    """Signals and poses that every sample of a recording contains.

    Attributes:
        shapes: signal name -> shape of the signal in one world.
        units: signal name -> unit.
        worlds: indices of the recorded worlds.
        dtype: floating-point type in the file, "float64" or "float32".
        bodies: labels of the bodies with recorded poses. The poses are from the first recorded world.
    """

    shapes: Mapping[str, tuple[int, ...]]
    units: Mapping[str, str]
    worlds: tuple[int, ...]
    dtype: str = "float64"
    bodies: tuple[str, ...] = ()

    @cached_property
    def slices(self) -> dict[str, slice]:
        """Return a dict: signal name -> slice of the last axis of :attr:`Block.values`."""
        found, start = {}, 0
        for name, shape in self.shapes.items():
            found[name] = slice(start, start + math.prod(shape))
            start = found[name].stop
        return found

    @property
    def width(self) -> int:
        """Return the number of values per sample and world."""
        return sum(math.prod(shape) for shape in self.shapes.values())

    @property
    def columns(self) -> list[str]:
        """Return the column names: "sim.time" for a scalar signal, "body.load.position[2]" for a component."""
        names: list[str] = []
        for name, shape in self.shapes.items():
            size = math.prod(shape)
            names += [f"{name}[{k}]" for k in range(size)] if shape else [name]
        return names

    def split(self, values: Array) -> dict[str, Array]:
        """Split the values of a block (n, worlds, width) into one array per signal (n, worlds, *shape)."""
        return {
            name: values[:, :, at].reshape(*values.shape[:2], *self.shapes[name]) for name, at in self.slices.items()
        }

    def to_json(self) -> str:
        """Return the layout as JSON, for the header of a file."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @staticmethod
    def from_json(text: str | bytes) -> Layout:
        """Return the layout from the header of a file.

        Raises:
            ValueError, TypeError, LookupError: the file is not a recording.
        """
        values: dict[str, Any] = json.loads(text)
        if values.pop("format") != FORMAT:
            raise ValueError("it has another format")
        values["shapes"] = {str(name): tuple(map(int, shape)) for name, shape in values["shapes"].items()}
        layout = Layout(**values | {"worlds": tuple(map(int, values["worlds"])), "bodies": tuple(values["bodies"])})
        if layout.dtype not in DTYPES or not layout.worlds:
            raise ValueError("its header is damaged")
        return layout


@dataclass(frozen=True)
class Block:
    """Consecutive samples.

    Attributes:
        time: times (n,) (s) of the n samples.
        values: values of all signals (n, worlds, width), with the ``dtype`` of the layout.
        poses: position (m) and quaternion (xyzw) of each body frame in the world frame (n, bodies, 7). The array is
            empty if the recording has no poses.
    """

    time: Array
    values: Array
    poses: Array


def joined(pieces: list[tuple[Array, Array]], layout: Layout) -> tuple[Array, Array]:
    """Join blocks (time, values) into one array of times (n,) and one array of values (n, worlds, width)."""
    if not pieces:
        return np.empty(0), np.empty((0, len(layout.worlds), layout.width), layout.dtype)
    return np.concatenate([time for time, _ in pieces]), np.concatenate([values for _, values in pieces])


def require(module: str, suffix: str, package: str) -> ModuleType:
    """Import a library that files with ``suffix`` need.

    Raises:
        ModelError: the library is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        rule = f"recordings in {suffix} files need {package}, which is not installed"
        raise ModelError(f'{rule}; pip install "gpusim[record]"') from None

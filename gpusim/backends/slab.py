"""Where every array of one world sits in the slab, the block of memory that a world's kernels work in."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.backends.header import slab_fields
from gpusim.backends.kinds import Kinds
from gpusim.model.fields import number_type
from gpusim.model.model import Model
from gpusim.typing import Array

_ALIGN = 64
# Arrays that vectors of that many bytes are read from.
_WIDE = ("manifold", "record_anchor")


@dataclass(frozen=True)
class Place:
    """One array: offset in bytes, shape in one world, number type."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype  # type: ignore[type-arg]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Of the shape, in bytes."""
        return tuple(np.dtype(self.dtype).itemsize * math.prod(self.shape[k + 1 :]) for k in range(len(self.shape)))


@dataclass(frozen=True)
class SlabLayout:
    """Places by name and the size of a whole slab in bytes."""

    places: dict[str, Place]
    size: int

    def view(self, memory: Array, name: str, num_worlds: int) -> Array:
        """An array of all worlds, (num_worlds, ...), over the bytes of ``num_worlds`` slabs."""
        place = self.places[name]
        first = memory[place.offset :].view() if memory.size else memory
        return np.ndarray((num_worlds, *place.shape), place.dtype, first.data, 0, (self.size, *place.strides))


def actuator_sizes(model: Model, kinds: Kinds) -> dict[str, int]:
    """Sizes of every actuator kind: how many, and how many numbers they keep."""
    groups = {g.type.name: g for g in model.groups}
    sizes = {}
    for kind in kinds:
        count = len(groups[kind.name].specs) if kind.name in groups else 0
        sizes[f"{kind.name}_count"] = count
        sizes[f"{kind.name}_numbers"] = count * len(kind.variables)
        sizes[f"{kind.name}_scratches"] = count * len(kind.kernel_scratch)
    return sizes


def slab_layout(
    sizes: dict[str, int],
    real: np.dtype,  # type: ignore[type-arg]
    stored: np.dtype,  # type: ignore[type-arg]
    kinds: Kinds,
) -> SlabLayout:
    """Places of all slab fields for a model of the given sizes."""
    places, offset = {}, 0
    for f in slab_fields(kinds):
        dtype = number_type(f.kind, stored if f.kind == "stored" else real)
        shape = tuple(int(sizes[d]) if isinstance(d, str) else d for d in f.dims if d != "worlds")
        if f.name in _WIDE and sizes["lanes"] > 1:
            offset = -(-offset // _ALIGN) * _ALIGN
        places[f.name] = Place(offset, shape, dtype)
        offset += -(-math.prod(shape) * dtype.itemsize // 8) * 8
    return SlabLayout(places, -(-offset // _ALIGN) * _ALIGN)

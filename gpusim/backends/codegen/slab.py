"""Layout of the slab: the memory block of one world with all arrays that the kernels use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpusim.backends.codegen.header import slab_fields
from gpusim.backends.kinds import Kinds
from gpusim.model.fields import number_type
from gpusim.model.model import Model
from gpusim.typing import Array

_ALIGN = 64
# Alignment of arrays (bytes). With this alignment, a GPU can load two numbers at once.
_PAIR = 16
# Arrays that kernels read as vectors of _ALIGN bytes.
_WIDE = ("manifold", "record_anchor")


@dataclass(frozen=True)
class SlabField:
    """Array in a slab: offset in bytes, shape, and number type."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype  # type: ignore[type-arg]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Return the strides of the array in bytes."""
        return tuple(np.dtype(self.dtype).itemsize * math.prod(self.shape[k + 1 :]) for k in range(len(self.shape)))


@dataclass(frozen=True)
class SlabLayout:
    """Layout of a slab (memory block of one world): the location of each array, and the size in bytes."""

    fields: dict[str, SlabField]
    size: int

    def view(self, memory: Array, name: str, num_worlds: int) -> Array:
        """Return a view of the array ``name`` in the slabs of all worlds, (num_worlds, ...)."""
        field = self.fields[name]
        first = memory[field.offset :].view() if memory.size else memory
        return np.ndarray((num_worlds, *field.shape), field.dtype, first.data, 0, (self.size, *field.strides))


def actuator_sizes(model: Model, kinds: Kinds) -> dict[str, int]:
    """Return three counts for each actuator kind: actuators, state variables and scratch numbers."""
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
    """Return the layout of a slab for the sizes of a model."""
    fields, offset = {}, 0
    for f in slab_fields(kinds):
        dtype = number_type(f.kind, stored if f.kind == "stored" else real)
        shape = tuple(int(sizes[d]) if isinstance(d, str) else d for d in f.dims if d != "worlds")
        if f.name in _WIDE and sizes["lanes"] > 1:
            offset = -(-offset // _ALIGN) * _ALIGN
        fields[f.name] = SlabField(offset, shape, dtype)
        offset += -(-math.prod(shape) * dtype.itemsize // _PAIR) * _PAIR
    return SlabLayout(fields, -(-offset // _ALIGN) * _ALIGN)

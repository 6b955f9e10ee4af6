"""The builds of cuda_kernels/: number type, and sizes that are constants of the build or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from gpusim.backends.header import actuators_header, arguments_header, sizes_header
from gpusim.backends.observe_header import kept_header, quantities_header
from gpusim.backends.slab import slab_layout

# Rows of a constraint, and bodies, that every build has room for; a larger model gets a build of its own.
ROOM_BLOCK, ROOM_SLOTS = 8, 4
# Threads of a GPU that read neighbors in memory at once.
GPU_LANES = 32
C_REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@dataclass(frozen=True)
class Variant:
    """One build: source file, generated headers, defines."""

    name: str
    main: str
    generated: dict[str, str]
    defines: dict[str, str] = field(default_factory=dict)
    everywhere: bool = True
    """False: the compile check looks at the newest architecture only, to save time."""


def model_variant(
    main: str,
    real: np.dtype,  # type: ignore[type-arg]
    stored: np.dtype,  # type: ignore[type-arg]
    sizes: dict[str, int],
    direct: bool,
    specialize: bool = False,
) -> Variant:
    """The build for a model.

    It serves any model of up to ROOM_BLOCK rows a constraint (of more for one that has more), unless ``specialize``
    makes the model's sizes constants: faster by the loops that the compiler unrolls, with the same bits.
    """
    if not specialize:
        room = max(ROOM_BLOCK, sizes["block"]), max(ROOM_SLOTS, sizes["slots"])
        return make_variant(main, real, stored, direct, *room, shapes=sizes["shape_level"], lanes=sizes["lanes"])
    places = slab_layout(sizes, real, stored).places
    fixed = {f"n_{name}": size for name, size in sizes.items() if name != "worlds"}
    fixed |= {f"offset_{name}": place.offset for name, place in places.items()}
    room = sizes["block"], sizes["slots"]
    return make_variant(main, real, stored, direct, *room, fixed, sizes["shape_level"], sizes["lanes"])


@cache
def _headers(real: np.dtype) -> dict[str, str]:  # type: ignore[type-arg]
    observed = {"kept.cuh": kept_header(), "quantities.cuh": quantities_header()}
    return {"world.cuh": arguments_header(real), "kinds.cuh": actuators_header()} | observed


def make_variant(
    main: str,
    real: np.dtype,  # type: ignore[type-arg]
    stored: np.dtype,  # type: ignore[type-arg]
    direct: bool,
    block: int = ROOM_BLOCK,
    slots: int = ROOM_SLOTS,
    fixed: dict[str, int] | None = None,
    shapes: int = 0,
    lanes: int = 1,
) -> Variant:
    """A build; ``fixed`` sizes and offsets (``n_...``, ``offset_...``) become constants.

    ``shapes``: 0 without contacts, 1 with those of common shapes, 2 with those of all (model/contact_topology.py).
    ``lanes``: records of manifolds that stand side by side (lanes.cuh).
    """
    real = np.dtype(real)
    generated = {**_headers(real), "sizes.cuh": sizes_header(fixed)}
    defines = {
        "GPUSIM_REAL": C_REAL[real],
        "GPUSIM_STORED": C_REAL[np.dtype(stored)],
        "GPUSIM_DIRECT": str(int(direct)),
        "GPUSIM_MAX_BLOCK": str(block),
        "GPUSIM_MAX_SLOTS": str(slots),
        "GPUSIM_SHAPES": str(shapes),
        "GPUSIM_LANES": str(lanes),
    }
    solver = "direct" if direct else "colored"
    numbers = np.dtype(stored).name + ("" if real == stored else f" in {real.name}")
    touching = ("", " with contacts", " with all contacts")[shapes]
    side = f" {lanes} side by side" if lanes > 1 else ""
    name = f"{main.removesuffix('.cu')} {solver} {numbers}{touching}{side}{' fixed' if fixed else ''}"
    return Variant(name, main, generated, defines)


def kernel_variants() -> Iterator[Variant]:
    """Every build that a user can get, for the compile check; specialized ones differ in numbers only.

    Those with the contacts of common shapes are part of those with all.
    """
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    usual = ((double, single, True), (double, double, True), (single, single, False), (double, double, False))
    for shapes in (0, 2):
        for main in ("fused.cu", "staged.cu"):
            for real, stored, direct in usual:
                lanes = GPU_LANES if shapes and main == "staged.cu" else 1
                variant = make_variant(main, real, stored, direct, shapes=shapes, lanes=lanes)
                # Contacts take ten times as long to compile; two builds of them hold every kernel in both number types.
                first = (main, direct, np.dtype(stored)) in (("fused.cu", True, single), ("staged.cu", False, single))
                yield replace(variant, everywhere=not shapes or first)
    # Signals of models that run staged come from a fused build with their records side by side.
    yield replace(make_variant("fused.cu", single, single, False, shapes=2, lanes=GPU_LANES), everywhere=False)
    # What fast=True adds.
    for main in ("fused.cu", "staged.cu"):
        yield make_variant(main, single, single, True)

"""Builds of cuda_kernels/ with different number types, generated headers and constants."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any

import numpy as np

from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.codegen.group_source import group_header
from gpusim.backends.codegen.header import (
    actuators_header,
    arguments_header,
    codes,
    codes_header,
    sizes_header,
    without_notes,
)
from gpusim.backends.codegen.observe_header import kept_header, quantities_header
from gpusim.backends.codegen.ray_header import ray_shapes_header
from gpusim.backends.codegen.robot_header import robot_header
from gpusim.backends.codegen.schedule_source import entries_header, order_header, routines_of
from gpusim.backends.codegen.simd_source import wide_header
from gpusim.backends.codegen.slab import slab_layout
from gpusim.backends.kinds import COMMON_KINDS, Kinds, own_sources
from gpusim.compile_cache import digest
from gpusim.description.program import Program
from gpusim.description.program_clock import CONSTANTS
from gpusim.solver.nodes import Build

# Rows and bodies per constraint in the usual build. A model with larger constraints needs a separate build.
ROOM_BLOCK, ROOM_SLOTS = 8, 4
# Number of GPU threads that read adjacent memory at once.
GPU_LANES = 32
# Functions that are compiled separately and then linked.
OUTER = ("collide", "collide_field")
COLLIDE_NAMES = {"1": "", "2": " all", "3": " mesh and all"}
"""Name of each set of shape kinds, by the value of GPUSIM_SHAPES."""
# Options for parts to link. A part is relocatable, and uses at most as many registers as a fused kernel.
RELOCATABLE, REGISTERS = "--relocatable-device-code=true", "--maxrregcount=128"
C_REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@dataclass(frozen=True)
class Variant:
    """Definition of one build: source file, generated headers and preprocessor macros."""

    name: str
    main: str
    generated: dict[str, str]
    defines: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    """Additional NVRTC options of this build."""
    linked: tuple[Variant, ...] = ()
    full: Variant | None = None
    """Full build that is specialized for one model, or None."""

    @property
    def digest(self) -> str:
        """Return a hash of the build settings and generated headers. It does not depend on package sources."""
        texts = (*sorted(self.defines.items()), *sorted(self.generated.items()))
        return digest([self.main, *self.options, *(text for pair in texts for text in pair)])


def model_variant(
    main: str,
    real: np.dtype,  # type: ignore[type-arg]
    stored: np.dtype,  # type: ignore[type-arg]
    sizes: dict[str, int],
    direct: bool,
    kinds: Kinds,
    specialize: bool = False,
    world_lanes: int = 1,
    shared: bool = False,
    part: int = 0,
) -> Variant:
    """Return the build for a model.

    With ``specialize``, the sizes of the model become constants, and the compiler unrolls loops.
    """
    swept, coupled, wraps = sizes["swept_constraints"] > 0, sizes["coupled"] > 0, sizes["wraps"] > 0
    if not specialize:
        # Round up the sizes, so that more models share a build.
        slots = -(-sizes["slots"] // ROOM_SLOTS) * ROOM_SLOTS
        room = max(ROOM_BLOCK, sizes["block"]), max(ROOM_SLOTS, slots)
        contacts = sizes["shape_level"], sizes["lanes"]
        return make_variant(
            main, real, stored, direct, *room, None, *contacts, kinds, swept, coupled, world_lanes, shared, part, wraps
        )
    fields = slab_layout(sizes, real, stored, kinds).fields
    fixed = {f"n_{name}": size for name, size in sizes.items() if name != "worlds"}
    fixed |= {f"offset_{name}": field.offset for name, field in fields.items()}
    room = sizes["block"], sizes["slots"]
    contacts = sizes["shape_level"], sizes["lanes"]
    return make_variant(
        main, real, stored, direct, *room, fixed, *contacts, kinds, swept, coupled, world_lanes, shared, part, wraps
    )


def generated_headers(real: np.dtype, kinds: Kinds) -> dict[str, str]:  # type: ignore[type-arg]
    """Return a dict of the generated headers. The headers contain comments, but no model sizes."""
    observed = {"kept.cuh": kept_header(kinds), "quantities.cuh": quantities_header(kinds)}
    return {"world.cuh": arguments_header(real, kinds), "kinds.cuh": actuators_header(kinds)} | observed


@lru_cache(maxsize=16)
def _headers(real: np.dtype, kinds: Kinds, declared: str) -> dict[str, str]:  # type: ignore[type-arg]
    return {name: without_notes(text) for name, text in generated_headers(real, kinds).items()}


def _declared(kinds: Kinds) -> str:
    """Return a text that changes if the generated headers may change."""
    return repr(codes()) + repr(
        [
            (k.name, k.kernel_file, k.kernel, k.readings, k.kernel_scratch, k.kernel_fields, k.state_fields)
            + (k.parameters, k.variables, k.commands)
            for k in kinds
        ]
    )


@cache
def _schedule(build: Build) -> dict[str, str]:
    headers = {"order.cuh": order_header(build)}
    return headers | ({"entries.cuh": entries_header(build)} if build.staged else {})


@lru_cache(maxsize=16)
def _groups(build: Build, kinds: Kinds, declared: str) -> dict[str, str]:
    return {"wide_phases.cuh": wide_header(kinds), "group.cuh": group_header(build, kinds)}


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
    kinds: Kinds = COMMON_KINDS,
    swept: bool = False,
    coupled: bool = False,
    world_lanes: int = 1,
    shared: bool = False,
    part: int = 0,
    wraps: bool = False,
) -> Variant:
    """Return a build.

    Args:
        main: source file.
        real, stored: number types of the computations and of the stored state.
        direct: True for the direct solver of joints, False for colored sweeps.
        block, slots: maximum numbers of rows and bodies of a constraint.
        fixed: sizes and offsets that become constants.
        shapes: kinds of shapes with contacts: none (0), common kinds (1), all kinds except triangle meshes (2), or all
            kinds (3). See compiler/contact_topology.py.
        lanes: number of contact manifolds whose data is interleaved in memory (lanes.cuh).
        kinds: kinds of actuators in the build.
        swept: True for models in which colored sweeps solve some joints, and the direct solver all others.
        coupled: True to include actuator laws that couple several axes.
        world_lanes: number of worlds that a CPU steps at once (simd_group.cuh).
        shared: True to keep the work arrays in the GPU's shared memory. Such a build contains only kernels for steps.
        part: kernels of the staged launch on a GPU: the kernels that find contacts (1), all other kernels (2), or all
            kernels (0).
        wraps: True to include ropes that wrap around spheres and cylinders.
    """
    real = np.dtype(real)
    build = Build(direct, shapes > 0, main == "staged.cu", swept, coupled)
    headers = _headers(real, kinds, _declared(kinds)) | _schedule(build)
    generated = {**headers, "sizes.cuh": sizes_header(fixed), **own_sources(kinds)}
    # Headers that only builds for groups of worlds need.
    generated |= _groups(build, kinds, _declared(kinds)) if world_lanes > 1 else {}
    defines = {
        "GPUSIM_REAL": C_REAL[real],
        "GPUSIM_STORED": C_REAL[np.dtype(stored)],
        "GPUSIM_DIRECT": str(int(direct)),
        "GPUSIM_SWEPT": str(int(swept)),
        "GPUSIM_COUPLED": str(int(coupled)),
        "GPUSIM_MAX_BLOCK": str(block),
        "GPUSIM_MAX_SLOTS": str(slots),
        "GPUSIM_SHAPES": str(shapes),
        "GPUSIM_LANES": str(lanes),
        **({"GPUSIM_WORLD_LANES": str(world_lanes)} if world_lanes > 1 else {}),
        **({"GPUSIM_SHARED_SLAB": "1"} if shared else {}),
        **({"GPUSIM_PART": str(part)} if part else {}),
        **({"GPUSIM_WRAPS": "1"} if wraps else {}),
    }
    solver = ("mixed" if swept else "direct") if direct else "colored"
    numbers = np.dtype(stored).name + ("" if real == stored else f" in {real.name}")
    touching = ("", " with contacts", " with all contacts", " with triangle meshes")[shapes]
    side = f" {lanes} side by side" if lanes > 1 else ""
    laws = (" with coupled laws" if coupled else "") + (" with wrapped ropes" if wraps else "")
    groups = f" in groups of {world_lanes}" if world_lanes > 1 else ""
    near = " in shared memory" if shared else ""
    parts = f", part {part}" if part else ""
    last = f"{side}{groups}{near}{' fixed' if fixed else ''}{parts}"
    name = f"{main.removesuffix('.cu')} {solver} {numbers}{touching}{laws}{last}"
    return Variant(name, main, generated, defines)


def in_parts(variant: Variant) -> Variant | None:
    """Split a build into two parts to link: narrow phase and all other code. Return None without a narrow phase."""
    shapes = variant.defines.get("GPUSIM_SHAPES", "0")
    if shapes == "0" or variant.defines.get("GPUSIM_PART") == "2":
        return None
    defines, name = variant.defines | {"GPUSIM_LINKED": "1"}, f"{variant.name}, to be linked"
    return replace(variant, name=name, defines=defines, options=(RELOCATABLE,), linked=(collide_variant(shapes),))


def native_arguments(variant: Variant) -> tuple[Any, ...]:
    """Return the arguments of :func:`gpusim.backends.native.compile.build_native` for a build."""
    # In builds for large contact worlds, inlined narrow-phase code makes the steps of a pile 4 % faster.
    large = int(variant.defines.get("GPUSIM_LANES", "1")) > 1
    whole = None if large else in_parts(variant)
    if whole is None:
        return variant.main, variant.generated, variant.defines
    linked = [(part.main, part.generated, part.defines) for part in whole.linked]
    return whole.main, whole.generated, whole.defines, linked


def clocked_variant(variant: Variant) -> tuple[Variant, list[str]]:
    """Return a fused build that counts processor cycles per routine, and the names of these routines."""
    has = {name: variant.defines[f"GPUSIM_{name}"] != "0" for name in ("DIRECT", "SHAPES", "SWEPT", "COUPLED")}
    build = Build(has["DIRECT"], has["SHAPES"], False, has["SWEPT"], has["COUPLED"])
    generated = variant.generated | {"order.cuh": order_header(build, clocked=True)}
    clocked = replace(variant, name=f"{variant.name}, clocked", generated=generated, full=None)
    return clocked, [routine.name for routine in routines_of(build)]


def collide_variant(shapes: str) -> Variant:
    """Return the build of the narrow phase for the shape kinds ``shapes`` (value of GPUSIM_SHAPES)."""
    double = C_REAL[np.dtype(np.float64)]
    defines = {"GPUSIM_REAL": double, "GPUSIM_STORED": double, "GPUSIM_SHAPES": shapes, "GPUSIM_LINKED": "2"}
    name = f"collide{COLLIDE_NAMES[shapes]} shapes, to be linked"
    return Variant(name, "collide.cu", {"codes.cuh": codes_header()}, defines, options=(RELOCATABLE, REGISTERS))


def program_variant(program: Program) -> Variant:
    """Return the build of the kernel that runs a block diagram."""
    body = "\n".join(f"    {line}" for line in program.cpp.splitlines())
    named = CONSTANTS | {"READINGS": len(program.initial), "INPUTS": program.width, "RING_COUNT": len(program.rings)}
    constants = "".join(f"#define {name} {value!r}\n" for name, value in named.items())
    rings = [number for ring in program.rings for number in (ring.at, ring.first, ring.room)]
    period = "shortest" if program.rate_at is None else f"1.0 / par[{program.rate_at}]"
    text = (
        f"// Generated by gpusim/control/compile.py.\n#pragma once\n{constants}"
        f"GPUSIM_TABLE int RINGS[] = {{{', '.join(map(str, rings)) or 0}}};\n"
        f"{program.helpers}\n"
        f"GPUSIM_FN double sample_period(const double* par, double shortest) {{ return {period}; }}\n"
        "GPUSIM_FN void sample(const double* in, const double* par, double* s, double* control, bool last) {\n"
        f"{body}\n    (void)in; (void)par; (void)control; (void)last;\n}}\n"
    )
    defines = {"GPUSIM_REAL": "double", "GPUSIM_STORED": "double"}
    return Variant(f"diagram {program.label}", "diagram.cu", {"diagram.cuh": text}, defines)


def robotics_variant() -> Variant:
    """Return the build of the kernels for kinematic trees (gpusim/robotics). All models share this build."""
    double = C_REAL[np.dtype(np.float64)]
    # With LANES > 1, the compiler unrolls short loops, which saves a seventh of the time.
    defines = {"GPUSIM_REAL": double, "GPUSIM_STORED": double, "GPUSIM_LANES": "4"}
    return Variant("robotics", "robotics/robotics.cu", {"robot.cuh": robot_header()}, defines)


def signals_variant(
    real: np.dtype,  # type: ignore[type-arg]
    stored: np.dtype,  # type: ignore[type-arg]
    kinds: Kinds = COMMON_KINDS,
    wraps: bool = False,
) -> Variant:
    """Return the build of the GPU kernels that read signals, write poses and reset worlds.

    ``wraps`` is True for models with wrapped ropes.
    """
    # The headers need a solver and a contact setting, which the signals do not use. Choose the colored solver without
    # contacts.
    build = make_variant("signals.cu", real, stored, False, kinds=kinds, wraps=wraps)
    generated = {name: text for name, text in build.generated.items() if name != "order.cuh"}
    return replace(build, name=build.name.replace(" colored", ""), generated=generated)


def rays_variant(kinds: Kinds = COMMON_KINDS) -> Variant:
    """Return the build of the kernel that casts sensor rays."""
    double = np.dtype(np.float64)
    headers = _headers(double, kinds, _declared(kinds))
    generated = {name: headers[name] for name in ("world.cuh", "kept.cuh")}
    generated |= {"sizes.cuh": sizes_header(None), "ray_shapes.cuh": ray_shapes_header()}
    defines = {"GPUSIM_REAL": C_REAL[double], "GPUSIM_STORED": C_REAL[double], "GPUSIM_DIRECT": "0"}
    return Variant("rays", "rays.cu", generated, defines)


def kernel_variants() -> Iterator[Variant]:
    """Yield representative builds for the check that all kernels compile."""
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    usual = ((double, single, True), (double, double, True), (single, single, False))
    for shapes in (0, 2):
        for main in ("fused.cu", "staged.cu"):
            for real, stored, direct in usual:
                parts = shapes and main == "staged.cu"
                for part in (1, 2) if parts else (0,):
                    lanes = GPU_LANES if parts else 1
                    yield make_variant(main, real, stored, direct, shapes=shapes, lanes=lanes, part=part)
    # The colored solver in float64. The builds above contain its phases in float32, and contacts in float64.
    yield make_variant("fused.cu", double, double, False)
    # Models in staged launch evaluate signals with a fused build that has the same number of lanes.
    yield make_variant("fused.cu", single, single, False, shapes=2, lanes=GPU_LANES)
    # Models in which sweeps solve some joints. Their kernels run the same phases in another order.
    yield make_variant("fused.cu", double, double, True, shapes=1, swept=True)
    # Models with hydraulic circuits and all extra actuator kinds.
    yield make_variant("fused.cu", double, double, True, shapes=1, kinds=PACKAGE_KINDS, coupled=True)
    # Models with wrapped ropes, in both number types.
    yield make_variant("fused.cu", double, double, True, shapes=1, wraps=True)
    yield make_variant("fused.cu", single, single, False, wraps=True)
    yield signals_variant(double, double, wraps=True)
    # Steps of models whose work arrays fit into shared memory, without and with contacts, in both number types.
    yield make_variant("fused.cu", double, single, True, shared=True)
    yield make_variant("fused.cu", double, double, True, shared=True)
    yield make_variant("fused.cu", single, single, False, shapes=1, shared=True)
    # Separately compiled parts of the quick builds of models with contacts.
    yield from map(collide_variant, "123")
    # Models with triangle meshes.
    yield make_variant("fused.cu", single, single, False, shapes=3)
    wholes = (
        make_variant("fused.cu", double, double, True, shapes=2),
        make_variant("fused.cu", single, single, False, shapes=1, shared=True),
    )
    for whole in wholes:
        if (parted := in_parts(whole)) is not None:
            yield parted
    for real, stored in ((double, single), (double, double), (single, single)):
        yield signals_variant(real, stored)
    yield robotics_variant()
    yield rays_variant()
    # Builds for fast=True.
    for main in ("fused.cu", "staged.cu"):
        yield make_variant(main, single, single, True)

"""The builds of cuda_kernels/: number type, and sizes that are constants of the build or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache

import numpy as np

from gpusim.actuators import PACKAGE_KINDS
from gpusim.backends.group_source import group_header
from gpusim.backends.header import actuators_header, arguments_header, codes, codes_header, sizes_header, without_notes
from gpusim.backends.kinds import Kinds, own_sources
from gpusim.backends.observe_header import kept_header, quantities_header
from gpusim.backends.ray_header import ray_shapes_header
from gpusim.backends.robot_header import robot_header
from gpusim.backends.schedule_source import entries_header, order_header, routines_of
from gpusim.backends.slab import slab_layout
from gpusim.backends.wide_source import wide_header
from gpusim.compile_cache import digest
from gpusim.model.program import Program
from gpusim.model.program_clock import CONSTANTS
from gpusim.solver.nodes import Build

# Rows of a constraint, and bodies, that every build has room for; a larger model gets a build of its own.
ROOM_BLOCK, ROOM_SLOTS = 8, 4
# Threads of a GPU that read neighbors in memory at once.
GPU_LANES = 32
# Functions of parts that builds are linked to.
OUTER = ("collide", "collide_field")
# Parts find each other by name, and no part takes more registers than kernels of the fused launch have.
RELOCATABLE, REGISTERS = "--relocatable-device-code=true", "--maxrregcount=128"
C_REAL = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@dataclass(frozen=True)
class Variant:
    """One build: source file, generated headers, defines."""

    name: str
    main: str
    generated: dict[str, str]
    defines: dict[str, str] = field(default_factory=dict)
    everywhere: bool = True
    """False: the compile check looks at the newest architecture only, to save time (see ``kernel_variants``)."""
    options: tuple[str, ...] = ()
    """Of NVRTC, beside those of all builds."""
    linked: tuple[Variant, ...] = ()
    """What is linked to it."""
    full: Variant | None = None
    """Its full build, where that is another one: of one model's sizes."""

    @property
    def digest(self) -> str:
        """Name for all that it is made of beside the package's own sources."""
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
    """The build for a model.

    It serves any model of up to ROOM_BLOCK rows a constraint (of more for one that has more), unless ``specialize``
    makes the model's sizes constants: faster by the loops that the compiler unrolls, with the same bits.
    """
    swept, coupled = sizes["swept_constraints"] > 0, sizes["coupled"] > 0
    if not specialize:
        # Models with long sums of coordinates share builds too.
        slots = -(-sizes["slots"] // ROOM_SLOTS) * ROOM_SLOTS
        room = max(ROOM_BLOCK, sizes["block"]), max(ROOM_SLOTS, slots)
        shapes, lanes = sizes["shape_level"], sizes["lanes"]
        sizes_of = *room, None, shapes, lanes
        return make_variant(main, real, stored, direct, *sizes_of, kinds, swept, coupled, world_lanes, shared, part)
    places = slab_layout(sizes, real, stored, kinds).places
    fixed = {f"n_{name}": size for name, size in sizes.items() if name != "worlds"}
    fixed |= {f"offset_{name}": place.offset for name, place in places.items()}
    room = sizes["block"], sizes["slots"]
    contacts = sizes["shape_level"], sizes["lanes"]
    return make_variant(
        main, real, stored, direct, *room, fixed, *contacts, kinds, swept, coupled, world_lanes, shared, part
    )


def generated_headers(real: np.dtype, kinds: Kinds) -> dict[str, str]:  # type: ignore[type-arg]
    """The generated headers that no model's sizes are in, by name, with notes for people."""
    observed = {"kept.cuh": kept_header(kinds), "quantities.cuh": quantities_header(kinds)}
    return {"world.cuh": arguments_header(real, kinds), "kinds.cuh": actuators_header(kinds)} | observed


@lru_cache(maxsize=16)
def _headers(real: np.dtype, kinds: Kinds, declared: str) -> dict[str, str]:  # type: ignore[type-arg]
    """The headers as they are compiled; ``declared`` is what the kinds were when they were made."""
    return {name: without_notes(text) for name, text in generated_headers(real, kinds).items()}


def _declared(kinds: Kinds) -> str:
    """All that headers tell of kinds, and the numbers of shapes and laws."""
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
    """The headers of groups of worlds."""
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
    kinds: Kinds = PACKAGE_KINDS,
    swept: bool = False,
    coupled: bool = False,
    world_lanes: int = 1,
    shared: bool = False,
    part: int = 0,
) -> Variant:
    """A build; ``fixed`` sizes and offsets (``n_...``, ``offset_...``) become constants.

    ``shapes``: 0 without contacts, 1 with those of common shapes, 2 with those of all (model/contact_topology.py).
    ``lanes``: records of manifolds that stand side by side (lanes.cuh). ``kinds``: of actuators. ``swept``: the direct
    solver leaves some joints to sweeps. ``coupled``: there are laws over several axes. ``world_lanes``: worlds that a
    CPU steps at once (worlds.cuh). ``shared``: a GPU's steps with their work in shared memory, and nothing else.
    ``part``: of the staged launch on a GPU, 1 finds contacts, 2 has the rest; 0 has all.
    """
    real = np.dtype(real)
    build = Build(direct, shapes > 0, main == "staged.cu", swept, coupled)
    headers = _headers(real, kinds, _declared(kinds)) | _schedule(build)
    generated = {**headers, "sizes.cuh": sizes_header(fixed), **own_sources(kinds)}
    # Named in every build, for it is part of the sources; only those for groups compile it.
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
    }
    solver = ("mixed" if swept else "direct") if direct else "colored"
    numbers = np.dtype(stored).name + ("" if real == stored else f" in {real.name}")
    touching = ("", " with contacts", " with all contacts")[shapes]
    side = f" {lanes} side by side" if lanes > 1 else ""
    laws = " with coupled laws" if coupled else ""
    groups = f" in groups of {world_lanes}" if world_lanes > 1 else ""
    near = " in shared memory" if shared else ""
    parts = f", part {part}" if part else ""
    last = f"{side}{groups}{near}{' fixed' if fixed else ''}{parts}"
    name = f"{main.removesuffix('.cu')} {solver} {numbers}{touching}{laws}{last}"
    return Variant(name, main, generated, defines)


def in_parts(variant: Variant) -> Variant | None:
    """A GPU's build with the search for contact points as a part that is linked to it; None where it has none."""
    shapes = variant.defines.get("GPUSIM_SHAPES", "0")
    if shapes == "0" or variant.defines.get("GPUSIM_PART") == "2":
        return None
    defines, name = variant.defines | {"GPUSIM_LINKED": "1"}, f"{variant.name}, to be linked"
    return replace(variant, name=name, defines=defines, options=(RELOCATABLE,), linked=(collide_variant(shapes),))


def clocked_variant(variant: Variant) -> tuple[Variant, list[str]]:
    """The same fused build, which counts the cycles of each routine of the step, and the routines' names."""
    has = {name: variant.defines[f"GPUSIM_{name}"] != "0" for name in ("DIRECT", "SHAPES", "SWEPT", "COUPLED")}
    build = Build(has["DIRECT"], has["SHAPES"], False, has["SWEPT"], has["COUPLED"])
    generated = variant.generated | {"order.cuh": order_header(build, clocked=True)}
    clocked = replace(variant, name=f"{variant.name}, clocked", generated=generated, full=None)
    return clocked, [routine.name for routine in routines_of(build)]


def collide_variant(shapes: str) -> Variant:
    """The part that finds the contact points of a pair; ``shapes``: as GPUSIM_SHAPES."""
    double = C_REAL[np.dtype(np.float64)]
    defines = {"GPUSIM_REAL": double, "GPUSIM_STORED": double, "GPUSIM_SHAPES": shapes, "GPUSIM_LINKED": "2"}
    name = f"collide{' all' if shapes == '2' else ''} shapes, to be linked"
    return Variant(name, "collide.cu", {"codes.cuh": codes_header()}, defines, options=(RELOCATABLE, REGISTERS))


def program_variant(program: Program) -> Variant:
    """The build of a diagram: a kernel of its own, which knows nothing of the model's."""
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
    """The kernels for trees (gpusim/robotics); one build serves every model."""
    double = C_REAL[np.dtype(np.float64)]
    # Their short loops gain by what compilers do for those over lanes: a seventh of the time.
    defines = {"GPUSIM_REAL": double, "GPUSIM_STORED": double, "GPUSIM_LANES": "4"}
    return Variant("robotics", "robotics.cu", {"robot.cuh": robot_header()}, defines)


def signals_variant(real: np.dtype, stored: np.dtype, kinds: Kinds = PACKAGE_KINDS) -> Variant:  # type: ignore[type-arg]
    """The kernels of a GPU that read signals, write poses and reset worlds; one build serves every model of a kind."""
    # The headers that it includes know solvers and contacts: it is a build without them.
    build = make_variant("signals.cu", real, stored, False, kinds=kinds)
    generated = {name: text for name, text in build.generated.items() if name != "order.cuh"}
    return replace(build, name=build.name.replace(" colored", ""), generated=generated)


def rays_variant(kinds: Kinds = PACKAGE_KINDS) -> Variant:
    """The kernel that casts rays of sensors; one build serves every model with these kinds of actuators.

    It reads poses, which are float64 in every model, and no other numbers of the state.
    """
    double = np.dtype(np.float64)
    headers = _headers(double, kinds, _declared(kinds))
    generated = {name: headers[name] for name in ("world.cuh", "kept.cuh")}
    generated |= {"sizes.cuh": sizes_header(None), "ray_shapes.cuh": ray_shapes_header()}
    defines = {"GPUSIM_REAL": C_REAL[double], "GPUSIM_STORED": C_REAL[double], "GPUSIM_DIRECT": "0"}
    return Variant("rays", "rays.cu", generated, defines)


# Two builds with contacts hold every kernel in both number types; one has none.
EVERYWHERE = {("fused.cu", 2, "float32", True), ("staged.cu", 2, "float32", False), ("fused.cu", 0, "float64", False)}


def kernel_variants() -> Iterator[Variant]:
    """Every build that a user can get, for the compile check; specialized ones differ in numbers only.

    Those with the contacts of common shapes are part of those with all. Those that are ``everywhere`` hold every value
    of every define (tests/unit/test_check_kernels.py).
    """
    single, double = np.dtype(np.float32), np.dtype(np.float64)
    usual = ((double, single, True), (double, double, True), (single, single, False), (double, double, False))
    for shapes in (0, 2):
        for main in ("fused.cu", "staged.cu"):
            for real, stored, direct in usual:
                parts = shapes and main == "staged.cu"
                for part in (1, 2) if parts else (0,):
                    lanes = GPU_LANES if parts else 1
                    variant = make_variant(main, real, stored, direct, shapes=shapes, lanes=lanes, part=part)
                    yield replace(variant, everywhere=(main, shapes, stored.name, direct) in EVERYWHERE)
    # Signals of models that run staged come from a fused build with their records side by side.
    yield replace(make_variant("fused.cu", single, single, False, shapes=2, lanes=GPU_LANES), everywhere=False)
    # Models in which some joints are left to sweeps: the same phases as above in another order.
    yield make_variant("fused.cu", double, double, True, shapes=1, swept=True)
    # Models with hydraulic circuits.
    yield make_variant("fused.cu", double, double, True, shapes=1, coupled=True)
    # Steps of models whose work fits into shared memory; with contacts, which are few then, of both types of numbers.
    yield replace(make_variant("fused.cu", double, single, True, shared=True), everywhere=False)
    yield make_variant("fused.cu", double, double, True, shared=True)
    yield replace(make_variant("fused.cu", single, single, False, shapes=1, shared=True), everywhere=False)
    # First starts of models with contacts have these, with the parts that are linked to them.
    yield from map(collide_variant, "12")
    wholes = (
        make_variant("fused.cu", double, double, True, shapes=2),
        make_variant("fused.cu", single, single, False, shapes=1, shared=True),
    )
    for whole in wholes:
        if (parted := in_parts(whole)) is not None:
            yield replace(parted, everywhere=whole.defines["GPUSIM_SHAPES"] == "1")
    for real, stored in ((double, single), (double, double), (single, single)):
        yield replace(signals_variant(real, stored), everywhere=real == stored)
    yield robotics_variant()
    yield rays_variant()
    # What fast=True adds.
    for main in ("fused.cu", "staged.cu"):
        yield replace(make_variant(main, single, single, True), everywhere=False)

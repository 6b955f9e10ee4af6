"""Test cases of ci/gpu_check.py, and their kernels. A case is a model with number type, solver and launch mode."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any
from unittest import mock

WORLDS = 3
SIZED = "sized"
"""Fused launch with the model's sizes as constants."""
Case = tuple[str, str, str, str]
"""A model (a scene, or one of MODELS), number type, solver and launch."""
LAUNCHES: tuple[Case, ...] = (
    ("walker", "float32", "direct", "fused"),
    ("boom_crane", "float32", "direct", "fused"),
    ("robot", "float32", "direct", "fused"),
    ("flyball", "float32", "direct", "fused"),
    ("walker", "float32", "direct", "staged"),
    ("robot", "float32", "colored", "staged"),
    ("pile", "float32", "colored", "staged"),
    ("boom_crane", "float32", "colored", "staged"),
    ("robot", "float64", "colored", "fused"),
    ("walker", "float32", "direct", SIZED),
    ("boom_crane", "float32", "direct", SIZED),
)
"""Cases of the first launches."""
PAIRS: tuple[tuple[Case, Case], ...] = ((LAUNCHES[0], LAUNCHES[2]), (LAUNCHES[1], LAUNCHES[3]))
"""Two models of different sizes that share a build, in global and in shared memory.

The second model needs more shared memory than a kernel has by default.
"""


SLOW = ("robot_arm", "biped_walk", "krt100m", "omni_vehicle", "mecanum_vehicle", "biped_valve", "excavator", "rtk_m")
"""Scenes with builds of several seconds, or with steps of tens of milliseconds."""


def all_cases() -> list[Case]:
    """Return the cases of all steps: first LAUNCHES, then all scenes. Slow scenes come last."""
    from gpusim.scene import list_scenes

    numbers, solvers = ("float32", "float64"), ("direct", "colored")
    bits = itertools.product(("fused", "staged"), numbers, solvers, ("walker", *list_scenes()))
    remaining = [(model, dtype, solver, launch) for launch, dtype, solver, model in bits]
    remaining.sort(key=lambda case: SLOW.index(case[0]) if case[0] in SLOW else -1)
    return list(dict.fromkeys([*LAUNCHES, *remaining]))


def as_fused(case: Case) -> Case:
    """Return the case with a fused launch."""
    return (*case[:3], "fused")


def launch_index(case: Case) -> int:
    """Return the index of a case in LAUNCHES, or the length of LAUNCHES."""
    return LAUNCHES.index(case) if case in LAUNCHES else len(LAUNCHES)


def name_of(case: Case) -> str:
    return " ".join(case)


REHEARSED = "h100"
"""The card that determines the launches and builds on a computer without a GPU."""


def attributes_of(card: str) -> dict[str, int]:
    """Return the attributes of a GPU that determine launch shapes, by CuPy's names."""
    from ci.cards import CARDS

    gpu = CARDS[card].gpu
    return {
        "MultiProcessorCount": gpu.processors,
        "MaxSharedMemoryPerMultiprocessor": gpu.shared,
        "MaxSharedMemoryPerBlockOptin": gpu.shared_of_block,
    }


Build = tuple[Any, list[Case]]
"""A build, and the cases that launch it."""


class Builds:
    """Recorder of the kernel builds that simulations request."""

    def __init__(self) -> None:
        self.found: dict[Any, Build] = {}
        self.case: Case | None = None

    def note(self, variant: Any) -> Any:
        """Record a requested build. Return an object without kernels, because this rehearsal launches none."""
        key = variant.main, tuple(sorted(variant.generated.items())), tuple(sorted(variant.defines.items()))
        self.found.setdefault(key, (variant, []))[1].extend([] if self.case is None else [self.case])
        return SimpleNamespace(get_function=lambda name: SimpleNamespace())

    def stop(self, variant: Any) -> None:
        """Record a requested build and raise InterruptedError."""
        self.note(variant)
        raise InterruptedError

    @contextlib.contextmanager
    def instead(self, backend: str) -> Iterator[None]:
        """Record the builds that simulations on a backend request within this ``with`` block."""
        with contextlib.ExitStack() as stack:
            if backend == "native":
                stack.enter_context(mock.patch("gpusim.backends.native.backend.load_library", self.stop))
            else:
                modules = "gpusim.backends.cuda.builds.CudaBuilds.modules"
                stack.enter_context(mock.patch(modules, lambda builds, variants: [self.note(v) for v in variants]))
                if why_missing("cuda"):  # record the builds of a GPU that this machine lacks
                    from ci.ptx.device import imported
                    from tests.unit import fake_cupy

                    # the launch shape on the card determines the builds
                    stack.enter_context(mock.patch.dict(fake_cupy.Device.attributes, attributes_of(REHEARSED)))
                    # no kernel runs, and the slabs of 8192 worlds would take gigabytes
                    slabs = "gpusim.backends.cuda.backend.CudaBackend._ensure_slabs"
                    stack.enter_context(mock.patch(slabs, lambda backend, count: None))
                    # mock.patch.dict would remove modules that are imported meanwhile, and break NumPy
                    stack.enter_context(imported("cupy", fake_cupy))
                    stack.enter_context(mock.patch("gpusim.backends.load_nvrtc", lambda: None))
            yield


def builds_of(cases: Sequence[Case], backend: str) -> list[Build]:
    """Return the kernel builds that the cases launch on a backend, each with its cases.

    Builds of LAUNCHES come first.
    """
    from gpusim.backends.codegen.variants import signals_variant

    builds = Builds()
    with builds.instead(backend):
        for builds.case in cases:
            with contextlib.suppress(Exception):  # ignore the error, because the step that runs the case reports it
                backend_object = simulation_of(builds.case, backend, WORLDS)[0].backend
                wraps = backend_object.sizes["wraps"] > 0  # the first access to signals requests the build
                backend_object.build(
                    signals_variant(backend_object.real, backend_object.stored, backend_object.kinds, wraps)
                )
    return sorted(builds.found.values(), key=lambda build: (min(map(launch_index, build[1])), -len(build[1])))


def bench_builds(quick: bool) -> list[Any]:
    """Return the specialized builds for benchmarks with many worlds, and the builds that measure times for profiles."""
    from gpu_profile import PROFILED, profiled_cases

    from gpusim.backends.codegen.variants import clocked_variant
    from gpusim.bench.runner import Options, make_simulation
    from gpusim.bench.workloads import chosen_cases

    builds, models = Builds(), {}
    profiled = profiled_cases(quick)
    names = [name for name in PROFILED if not name.startswith("pile_")]
    with builds.instead("cuda"):
        for case in chosen_cases(names, quick):
            with contextlib.suppress(Exception):  # see Builds
                if case.build not in models:
                    models = {case.build: case.build().finalize()}
                backend_object = make_simulation(case, models[case.build], "cuda", Options("cuda")).backend
                variant = backend_object.step_variant()
                builds.note(variant.full or variant)
                if case in profiled:
                    builds.note(clocked_variant(variant.full or variant)[0])
    return [variant for variant, _ in builds.found.values() if variant.full is None]


def models_by_name() -> dict[str, Callable[[], Any]]:
    """Return the models that are not scenes, by name."""
    from state_hashes import robot

    return {"robot": robot, "walker": lambda: robot(ball=False)}


def simulation_of(case: Case, backend: str, worlds: int) -> tuple[Any, Any]:
    """Return a simulation of a case and the schedule of its commands."""
    import gpusim
    from gpusim.scene import load_scene

    name, dtype, solver, launch = case
    own = models_by_name()
    if name in own:
        model, config, drive = own[name]().finalize(), gpusim.SolverConfig(dt=2e-3), None
    else:
        loaded = load_scene(name)
        model, config, drive = loaded.builder.finalize(), loaded.config, loaded.schedule
    config = dataclasses.replace(config, joint_solver=solver)
    options: dict[str, Any] = {} if backend == "cuda" else {"threads": 1}
    if launch == SIZED:
        launch, options["specialize"] = "fused", True
    return gpusim.Simulation(model, worlds, backend, dtype, config, launch=launch, **options), drive


def first_difference(first: Any, second: Any) -> str:
    """Return the name of the first state array whose bits differ."""
    a, b = arrays_of(first), arrays_of(second)
    for name in a:
        if a[name].tobytes() != b[name].tobytes():
            return name
    return ""


def arrays_of(sim: Any) -> dict[str, Any]:
    import numpy as np

    state = sim.state
    arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
    for group in state.groups:
        for name, array in group.state.items():
            arrays[f"{group.type.name}.{name}"] = np.ascontiguousarray(array)
    return arrays


def why_missing(backend: str) -> str:
    from gpusim.backends import why_not

    return why_not(backend)

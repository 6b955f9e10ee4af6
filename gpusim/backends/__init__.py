"""Choose and create the backend of a simulation."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gpusim import validate
from gpusim.backends.base import Backend
from gpusim.backends.cuda.device import load_cupy
from gpusim.backends.cuda.nvrtc import load_nvrtc
from gpusim.backends.kernel_backend import use_staged
from gpusim.backends.native.backend import thread_count
from gpusim.backends.native.compile import check_native
from gpusim.backends.numpy.backend import NumpyBackend
from gpusim.backends.requirements import check_numpy
from gpusim.compile_cache import check_cache
from gpusim.compiler.topology import Topology
from gpusim.description.config import MAX_COLORS, SolverConfig
from gpusim.errors import GpusimError, ModelError, callers_level, unknown_name
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.typing import Array

BACKENDS = ("auto", "cuda", "native", "numpy")
WORLDS_A_THREAD = 32
"""With at least this many worlds per CPU thread, "auto" chooses a GPU for any model."""
WIDE_PAIRS = 4096
"""With at least this pair capacity per world, "auto" can choose a GPU even for few worlds."""


def choose_backend(
    name: str, model: Model | None = None, config: SolverConfig | None = None, num_worlds: int = 0
) -> tuple[str, str]:
    """Return the name of the backend to use, and a one-line reason for the choice.

    Args:
        name: one of BACKENDS.
        model: model of the simulation, or None to choose the fastest backend for many worlds. Only "auto" uses
            ``model``, ``config`` and ``num_worlds``.
        config: solver settings.
        num_worlds: number of worlds.

    Raises:
        UnknownNameError: ``name`` is not in BACKENDS.
        ModelError: the backend does not work on this computer, or NumPy is too old for every backend.
    """
    check_numpy()
    if not isinstance(name, str) or name not in BACKENDS:
        raise unknown_name("backend", str(name), BACKENDS)
    if name == "auto":
        few = "" if model is None else _few_for_gpu(model, config or SolverConfig(), num_worlds)
        return automatic_backend(few)
    missing = why_not(name)
    if missing:
        raise ModelError(f"backend {name!r} does not work here: {missing}")
    return name, f"backend {name}: as asked"


def automatic_backend(few: str = "") -> tuple[str, str]:
    """Return the first of cuda, native and numpy that works on this computer, and the reason for the choice.

    Args:
        few: reason why a GPU has too little work, or an empty string. With a reason, the order is native, cuda, numpy.
    """
    reasons: list[str] = []
    for name in ("native", "cuda") if few else ("cuda", "native"):
        missing = why_not(name)
        if not missing:
            why = few if few and name == "native" else "the fastest that works here"
            return name, f"backend {name}: {why}" + "".join(f" ({r})" for r in reasons)
        reasons.append(f"no {name}: {missing}")
    return "numpy", f"backend numpy: {'; '.join(reasons)}"


def worlds_for_gpu() -> int:
    """Return the minimum number of worlds for which "auto" chooses a GPU for every model."""
    return WORLDS_A_THREAD * thread_count()


def _few_for_gpu(model: Model, config: SolverConfig, num_worlds: int) -> str:
    """Return the reason why a GPU has too little work, or an empty string if it has enough work."""
    if num_worlds >= worlds_for_gpu():
        return ""
    alone = config.direct and model.topology.num_constraints > 0
    pairs = model.contact.sizes(config, model.topology.dynamic)["pairs"]
    if pairs >= WIDE_PAIRS and not alone:
        return ""
    worlds = f"{num_worlds} world{'s' if num_worlds > 1 else ''}"
    return f"faster than a GPU for {worlds}; a GPU is faster for {worlds_for_gpu()} or more"


def why_not(name: str) -> str:
    """Return why a backend does not work on this computer and how to fix it. Return an empty string if it works."""
    try:
        check_numpy()
        if name == "cuda":
            load_cupy(0)
            load_nvrtc()
            check_cache()
        if name == "native":
            check_native()
            check_cache()
    except GpusimError as error:
        return str(error)
    return ""


def check_options(options: dict[str, Any]) -> None:
    """Check the options of all backends, and convert NumPy numbers to Python numbers.

    Raises:
        ModelError: an option has an invalid value.
        UnknownNameError: the launch mode is unknown.
    """
    use_staged("auto" if options.get("launch") is None else options["launch"], 0)
    for name, minimum in (("threads", 1), ("device", 0)):
        value = options.get(name)
        whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
        if value is not None and not (whole and value >= minimum):
            rule = f"{name} = {validate.shown(value)} must be a whole number of at least {minimum}"
            raise validate.fail("Simulation", rule, f"give {minimum} or more, or None")
        if value is not None and value >= 2**31:
            raise validate.fail("Simulation", f"{name} = {validate.shown(value)} is too large", f"give fewer {name}")
        if value is not None:
            options[name] = int(value)  # ctypes does not accept NumPy numbers
    for name in ("fast", "specialize"):
        undecided = name == "specialize" and options.get(name) is None
        if not undecided and not isinstance(options.get(name, False), bool):
            rule = f"{name} = {options[name]!r} is neither True nor False"
            raise validate.fail("Simulation", rule, "give one of them")


def make_backend(
    name: str,
    model: Model,
    state: State,
    parameters: dict[str, Array],
    config: SolverConfig,
    real: Any,
    **options: Any,
) -> Backend:
    """Create a backend for the given state and parameters.

    Args:
        name: result of :func:`choose_backend`.
        model, state, parameters, config: the simulation to run.
        real: number type of the computations.
        options: "launch", "threads", "device", "fast" and "specialize", from ``check_options``. None selects the
            default of an option. A backend ignores options of other backends.
    """
    _warn_of_overflow(model.topology, config)
    given = {key: value for key, value in options.items() if value is not None}
    if name == "cuda":
        from gpusim.backends.cuda.backend import CudaBackend

        given.pop("threads", None)
        return CudaBackend(model, state, parameters, config, real, **given)
    if name == "native":
        for key in ("device", "fast"):
            given.pop(key, None)
        from gpusim.backends.native.backend import NativeBackend

        return NativeBackend(model, state, parameters, config, real, **given)
    return NumpyBackend(model, state, parameters, config, real)


def _warn_of_overflow(topology: Topology, config: SolverConfig) -> None:
    """Warn if ``max_colors`` is too small for the graph coloring of all constraints."""
    if config.direct and not topology.swept.any():
        return
    overflow = topology.coloring_for(config.max_colors).overflow
    if not overflow.size:
        return
    raised = f"raise max_colors (up to {MAX_COLORS}) or " if config.max_colors < MAX_COLORS else ""
    warnings.warn(
        f"{overflow.size} of {len(topology.constraint_labels)} constraints (the first is "
        f"'{topology.constraint_labels[overflow[0]]}') have no color (max_colors = {config.max_colors}) and "
        f'converge more slowly, by Jacobi with mass splitting; {raised}use joint_solver="direct"',
        stacklevel=callers_level(),
    )

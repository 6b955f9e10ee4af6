"""The mechanisms of :mod:`ci.peers.peer_models` in the simulator Newton, with its MuJoCo solver on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ci.peers.peer_case import PeerCase, PeerModel
from gpusim.bench.runner import Options
from gpusim.bench.workloads import WORLDS

PAIRS = 160
"""Buffer capacity for close pairs of shapes. Newton checks more pairs than MuJoCo."""
STEPS = 2
"""Number of steps in a CUDA graph. Newton alternates between two states, so the number is even."""


def newton(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """Yield cases that run CUDA graphs of two steps, with the most worlds first."""
    import warp

    if not warp.is_cuda_available():
        raise RuntimeError("needs a GPU")
    for worlds in reversed(WORLDS[:2] if options.quick else WORLDS):
        for own in filter(_reads, models):
            note = "float32, SolverMuJoCo, CUDA graph of two steps"
            yield PeerCase(own.name, worlds, _steps(own, worlds), f"{note}, {own.note}" if own.note else note, STEPS)


def _reads(own: PeerModel) -> bool:
    return not own.hold and "<tendon>" not in own.text and 'solver="PGS"' not in own.text


def _steps(own: PeerModel, worlds: int) -> Callable[[int], None]:
    """Settle many worlds, and return a function that steps the worlds."""
    import mujoco
    import warp

    dt = float(mujoco.MjModel.from_xml_string(own.text).opt.timestep)
    model = _model(own, worlds)
    states, control, solver = [model.state(), model.state()], model.control(), _solver(own, model)
    start = [warp.clone(array) for array in (states[0].joint_q, states[0].joint_qd)]

    def there_and_back() -> None:
        solver.step(states[0], states[1], control, None, dt)
        solver.step(states[1], states[0], control, None, dt)

    there_and_back()  # this step compiles, which is not allowed during a capture
    with warp.ScopedCapture() as capture:
        there_and_back()
    done = STEPS

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(-(-n // STEPS)):
            if own.restart and done >= own.restart:
                for array, first in zip((states[0].joint_q, states[0].joint_qd), start, strict=True):
                    warp.copy(array, first)
                done = 0
            warp.capture_launch(capture.graph)
            done += STEPS
        warp.synchronize()

    advance(own.settle)
    return advance


def _model(own: PeerModel, worlds: int) -> Any:
    import newton
    from newton.solvers import SolverMuJoCo

    one, many = newton.ModelBuilder(), newton.ModelBuilder()
    for builder in (one, many):
        SolverMuJoCo.register_custom_attributes(builder)
    one.add_mjcf(own.text)
    many.replicate(one, worlds)
    return many.finalize()


def _solver(own: PeerModel, model: Any) -> Any:
    from newton.solvers import SolverMuJoCo

    contacts, rows = (None, None) if own.places is None else (PAIRS, own.places[1])
    return SolverMuJoCo(model, nconmax=contacts, njmax=rows)

"""Benchmark mechanisms (:mod:`ci.peers.peer_models`) in the simulator Newton, with its MuJoCo solver on a GPU."""

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
    """Yield cases of Newton, as CUDA graphs of two steps. Cases with many worlds come first."""
    import warp

    if not warp.is_cuda_available():
        raise RuntimeError("needs a GPU")
    for worlds in reversed(WORLDS[:2] if options.quick else WORLDS):
        for peer in filter(_reads, models):
            note = "float32, SolverMuJoCo, CUDA graph of two steps"
            yield PeerCase(
                peer.name, worlds, _steps(peer, worlds), f"{note}, {peer.note}" if peer.note else note, STEPS
            )


def _reads(peer: PeerModel) -> bool:
    return not peer.hold and "<tendon>" not in peer.text and 'solver="PGS"' not in peer.text


def _steps(peer: PeerModel, worlds: int) -> Callable[[int], None]:
    """Return a function that steps many worlds, after the worlds have come to rest."""
    import mujoco
    import warp

    dt = float(mujoco.MjModel.from_xml_string(peer.text).opt.timestep)
    model = _model(peer, worlds)
    states, control, solver = [model.state(), model.state()], model.control(), _solver(peer, model)
    start = [warp.clone(array) for array in (states[0].joint_q, states[0].joint_qd)]

    def two_steps() -> None:
        solver.step(states[0], states[1], control, None, dt)
        solver.step(states[1], states[0], control, None, dt)

    two_steps()  # this step compiles, which is not allowed during a capture
    with warp.ScopedCapture() as capture:
        two_steps()
    done = STEPS

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(-(-n // STEPS)):
            if peer.restart and done >= peer.restart:
                for array, first in zip((states[0].joint_q, states[0].joint_qd), start, strict=True):
                    warp.copy(array, first)
                done = 0
            warp.capture_launch(capture.graph)
            done += STEPS
        warp.synchronize()

    advance(peer.settle)
    return advance


def _model(peer: PeerModel, worlds: int) -> Any:
    import newton
    from newton.solvers import SolverMuJoCo

    one, many = newton.ModelBuilder(), newton.ModelBuilder()
    for builder in (one, many):
        SolverMuJoCo.register_custom_attributes(builder)
    one.add_mjcf(peer.text)
    many.replicate(one, worlds)
    return many.finalize()


def _solver(peer: PeerModel, model: Any) -> Any:
    from newton.solvers import SolverMuJoCo

    contacts, rows = (None, None) if peer.capacities is None else (PAIRS, peer.capacities[1])
    return SolverMuJoCo(model, nconmax=contacts, njmax=rows)

"""Benchmark mechanisms (:mod:`ci.peers.peer_models`) in MuJoCo on the CPU, and in MuJoCo Warp on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ci.peers.peer_case import PeerCase, PeerModel
from gpusim.bench.machine import available_cores
from gpusim.bench.runner import Options
from gpusim.bench.workloads import WORLDS

ROLLOUT_STEPS = 20
READY = 16
"""Number of sets of random commands on the device. The steps cycle through the sets."""


def mujoco(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """Yield benchmark cases of MuJoCo with one world, and with many worlds on all threads."""
    import mujoco
    from mujoco import rollout

    threads = options.threads or available_cores()
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    for peer in models:
        model = mujoco.MjModel.from_xml_string(peer.text)
        data = settled(peer, model)
        state = np.empty(mujoco.mj_stateSize(model, full))
        mujoco.mj_getState(model, data, state, full)
        one = _stepped(peer, model, data, state)
        yield PeerCase(peer.name, 1, fallen(peer, one), noted("float64, a call a step", peer))
        # 8192 worlds need minutes to settle, and the time per world is the same with 1024 worlds.
        for worlds in WORLDS[:2] if options.quick or peer.settle else WORLDS:
            with rollout.Rollout(nthread=threads) as roll:
                many = _rollout(roll, model, np.tile(state, (worlds, 1)), threads, peer)
                note = noted(f"float64, rollout of {threads} threads", peer)
                yield PeerCase(peer.name, worlds, fallen(peer, many), note, ROLLOUT_STEPS)


def settled(peer: PeerModel, model: Any) -> Any:
    """Return MuJoCo's data of a model at rest. Cases with random commands start in the initial state."""
    import mujoco

    data = mujoco.MjData(model)
    for _ in range(0 if peer.hold else peer.settle):
        mujoco.mj_step(model, data)
    return data


def fallen(peer: PeerModel, advance: Callable[[int], None]) -> Callable[[int], None]:
    """Let the worlds come to rest if the case has random commands. Return ``advance``."""
    if peer.hold:
        advance(peer.settle)
    return advance


def noted(method: str, peer: PeerModel) -> str:
    """Return the note of a case for the table."""
    return f"{method}, {peer.note}" if peer.note else method


def _stepped(peer: PeerModel, model: Any, data: Any, state: Any) -> Callable[[int], None]:
    """Return a function that steps one world, starting at ``state``."""
    import mujoco

    rng, done = np.random.default_rng(0), 0

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(n):
            if peer.restart and done == peer.restart:
                mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
                done = 0
            if peer.hold and done % peer.hold == 0:
                data.ctrl[:] = rng.uniform(-peer.commands, peer.commands, model.nu)
            mujoco.mj_step(model, data)
            done += 1

    return advance


def _rollout(roll: Any, model: Any, states: Any, threads: int, peer: PeerModel) -> Callable[[int], None]:
    """Return a function that steps many worlds, starting at ``states``."""
    import mujoco

    data = [mujoco.MjData(model) for _ in range(threads)]
    out = np.empty((len(states), ROLLOUT_STEPS, states.shape[1]))
    sensors = np.empty((len(states), ROLLOUT_STEPS, model.nsensordata))
    # as in gpusim, the commands are different in every world
    drawn = _commands(peer, len(states), model.nu)
    controls, start, done = next(drawn)[:, None].repeat(ROLLOUT_STEPS, axis=1), states.copy(), 0

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(max(1, n // ROLLOUT_STEPS)):
            if peer.restart and done >= peer.restart:
                states[:], done = start, 0
            if peer.hold:
                controls[:] = next(drawn)[:, None]
            roll.rollout(model, data, states, controls, nstep=ROLLOUT_STEPS, state=out, sensordata=sensors)
            states[:] = out[:, -1]
            done += ROLLOUT_STEPS

    return advance


def _commands(peer: PeerModel, worlds: int, count: int) -> Iterator[Any]:
    """Yield random commands (worlds, count). The commands are the same in every run."""
    rng = np.random.default_rng(0)
    while True:
        yield rng.uniform(-peer.commands, peer.commands, (worlds, count))


def mujoco_warp(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """Yield cases of MuJoCo Warp, as CUDA graphs of one step.

    MuJoCo Warp has no PGS solver, so models with PGS use Newton.
    """
    import mujoco
    import warp

    if not warp.is_cuda_available():
        raise RuntimeError("needs a GPU")
    for worlds in reversed(WORLDS[:2] if options.quick else WORLDS):
        for peer in models:
            model = mujoco.MjModel.from_xml_string(peer.text)
            note = peer.note
            if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
                model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
                note = f"{note}, but Newton, because it has no PGS"
            method = f"float32, CUDA graph of a step{', ' if note else ''}{note}"
            yield PeerCase(peer.name, worlds, fallen(peer, _graph(peer, model, worlds)), method)


def _graph(peer: PeerModel, model: Any, worlds: int) -> Callable[[int], None]:
    """Return a function that steps many worlds on the GPU."""
    import mujoco_warp
    import warp

    m, d = mujoco_warp.put_model(model), _device_data(peer, model, worlds)
    moving = d.qpos, d.qvel, d.qacc_warmstart
    start = [warp.clone(array) for array in moving]
    mujoco_warp.step(m, d)  # this step compiles, which is not allowed during a capture
    with warp.ScopedCapture() as capture:
        mujoco_warp.step(m, d)
    drawn = _commands(peer, worlds, model.nu)
    # copy the commands to the device before the measurement starts
    ready = [warp.array(next(drawn), dtype=float) for _ in range(READY if peer.hold else 0)]
    done = 1

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(n):
            if peer.restart and done == peer.restart:
                for array, first in zip(moving, start, strict=True):
                    warp.copy(array, first)
                done = 0
            if peer.hold and done % peer.hold == 0:
                warp.copy(d.ctrl, ready[done // peer.hold % READY])
            warp.capture_launch(capture.graph)
            done += 1
        warp.synchronize()

    return advance


def _device_data(peer: PeerModel, model: Any, worlds: int) -> Any:
    import mujoco_warp

    if peer.capacities is None:
        return mujoco_warp.make_data(model, nworld=worlds)
    contacts, rows = peer.capacities
    return mujoco_warp.put_data(model, settled(peer, model), nworld=worlds, nconmax=contacts, njmax=rows)

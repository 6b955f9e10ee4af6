"""The mechanisms of :mod:`gpusim.bench.peer_models` in MuJoCo on the CPU, and in MuJoCo Warp on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from gpusim.bench.machine import available_cores
from gpusim.bench.peer_case import PeerCase, PeerModel
from gpusim.bench.runner import Options
from gpusim.bench.workloads import WORLDS

ROLLOUT_STEPS = 20


def mujoco(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """One world with a call for each step, and many worlds in rollouts of all threads."""
    import mujoco
    from mujoco import rollout

    threads = options.threads or available_cores()
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    for own in models:
        model = mujoco.MjModel.from_xml_string(own.text)
        data = settled(own, model)
        state = np.empty(mujoco.mj_stateSize(model, full))
        mujoco.mj_getState(model, data, state, full)
        yield PeerCase(own.name, 1, _stepped(model, data, state, own.restart), noted("float64, a call a step", own))
        for worlds in WORLDS[:2] if options.quick else WORLDS:
            with rollout.Rollout(nthread=threads) as roll:
                many = _rollout(roll, model, np.tile(state, (worlds, 1)), threads, own)
                note = noted(f"float64, rollout of {threads} threads", own)
                yield PeerCase(own.name, worlds, many, note, ROLLOUT_STEPS)


def settled(own: PeerModel, model: Any) -> Any:
    """MuJoCo's data of a model in the state from which it is timed."""
    import mujoco

    data = mujoco.MjData(model)
    for _ in range(own.settle):
        mujoco.mj_step(model, data)
    return data


def noted(how: str, own: PeerModel) -> str:
    """What the table tells of a case."""
    return f"{how}, {own.note}" if own.note else how


def _stepped(model: Any, data: Any, state: Any, restart: int) -> Callable[[int], None]:
    """Steps of one world, from ``state`` again after every ``restart`` of them."""
    import mujoco

    done = 0

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(n):
            if restart and done == restart:
                mujoco.mj_setState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
                done = 0
            mujoco.mj_step(model, data)
            done += 1

    return advance


def _rollout(roll: Any, model: Any, states: Any, threads: int, own: PeerModel) -> Callable[[int], None]:
    """Steps of many worlds, which go on from ``states``."""
    import mujoco

    data = [mujoco.MjData(model) for _ in range(threads)]
    out = np.empty((len(states), ROLLOUT_STEPS, states.shape[1]))
    sensors = np.empty((len(states), ROLLOUT_STEPS, model.nsensordata))
    # as gpusim's commands: other ones in every world
    drawn = np.random.default_rng(0).uniform(-own.commands, own.commands, (len(states), 1, model.nu))
    controls, start, done = drawn.repeat(ROLLOUT_STEPS, axis=1), states.copy(), 0

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(max(1, n // ROLLOUT_STEPS)):
            if own.restart and done >= own.restart:
                states[:], done = start, 0
            roll.rollout(model, data, states, controls, nstep=ROLLOUT_STEPS, state=out, sensordata=sensors)
            states[:] = out[:, -1]
            done += ROLLOUT_STEPS

    return advance


def mujoco_warp(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """A CUDA graph of a step, most worlds first: where time ends, they are what is wanted.

    It has no PGS solver; models that ask for it get Newton.
    """
    import mujoco
    import warp

    if not warp.is_cuda_available():
        raise RuntimeError("needs a GPU")
    for worlds in reversed(WORLDS[:2] if options.quick else WORLDS):
        for own in models:
            model = mujoco.MjModel.from_xml_string(own.text)
            note = own.note
            if model.opt.solver == mujoco.mjtSolver.mjSOL_PGS:
                model.opt.solver = mujoco.mjtSolver.mjSOL_NEWTON
                note = f"{note}, but Newton, for it has no PGS"
            how = f"float32, CUDA graph of a step{', ' if note else ''}{note}"
            yield PeerCase(own.name, worlds, _graph(own, model, worlds), how)


def _graph(own: PeerModel, model: Any, worlds: int) -> Callable[[int], None]:
    """Steps of many worlds on the GPU, all from the state in which MuJoCo settled one."""
    import mujoco_warp
    import warp

    m, d = mujoco_warp.put_model(model), _device_data(own, model, worlds)
    moving = d.qpos, d.qvel, d.qacc_warmstart
    start = [warp.clone(array) for array in moving]
    mujoco_warp.step(m, d)  # compiles, which a capture must not
    with warp.ScopedCapture() as capture:
        mujoco_warp.step(m, d)
    done = 1

    def advance(n: int) -> None:
        nonlocal done
        for _ in range(n):
            if own.restart and done == own.restart:
                for array, first in zip(moving, start, strict=True):
                    warp.copy(array, first)
                done = 0
            warp.capture_launch(capture.graph)
            done += 1
        warp.synchronize()

    return advance


def _device_data(own: PeerModel, model: Any, worlds: int) -> Any:
    import mujoco_warp

    if own.places is None:
        return mujoco_warp.make_data(model, nworld=worlds)
    contacts, rows = own.places
    return mujoco_warp.put_data(model, settled(own, model), nworld=worlds, nconmax=contacts, njmax=rows)

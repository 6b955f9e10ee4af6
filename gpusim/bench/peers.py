"""The same mechanisms in other simulators, where they are installed, timed in the same way.

What is compared is a step of the same mechanism with the same step size, not the same accuracy: none of the peers has
fluid-side hydraulics, so the boom's cylinder is there the nearest thing that they have (MuJoCo: a first-order
pneumatic cylinder).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from gpusim.bench import piles
from gpusim.bench.biped_mjcf import biped_mjcf
from gpusim.bench.machine import available_cores
from gpusim.bench.peer_case import NOT_INSTALLED, PeerCase, PeerRecord, package_version, time_case
from gpusim.bench.pile_peers import PILE_PEERS
from gpusim.bench.runner import Options
from gpusim.bench.workloads import BIPED, BOOM, CHAIN, PILES, QUICK_PILES, WORLDS

DT = 1e-3
LINKS, LENGTH, MASS = 10, 0.2, 0.1
ROLLOUT_STEPS = 20
# Inertia of a thin rod about its middle, and a hundredth of it about its axis, which peers need above 0.
ACROSS = MASS * LENGTH**2 / 12.0
ALONG = 0.01 * ACROSS
UNTRIED = ("newton",)


def run_peers(options: Options, tell: Callable[[str], None], names: Sequence[str] = ()) -> list[PeerRecord]:
    """Time every peer that is installed; the others get a line that says so.

    Args:
        options: how.
        tell: called with a line before each case.
        names: workloads that were asked for; all that run unasked where there are none.
    """
    records: list[PeerRecord] = []
    if not names or any(name not in PILES for name in names):
        for peer, make in PEERS.items():
            records += _run_peer(peer, partial(make, options), options, tell)
        records += [_untried(name) for name in UNTRIED]
    for name in names or ("pile_1000",):
        if name not in PILES:
            continue
        columns, layers, spheres = (QUICK_PILES if options.quick else PILES)[name]
        if not spheres:  # what rolls within walls is for gpusim alone
            things = piles.heap(columns, layers)
            for peer, build in PILE_PEERS.items():
                records += _run_peer(peer, partial(build, options, things), options, tell)
    found = {record.peer: record for record in records if record.note == NOT_INSTALLED}  # one line for each
    return [record for record in records if record.note != NOT_INSTALLED] + list(found.values())


def _untried(name: str) -> PeerRecord:
    found = find_spec(name) is not None
    return PeerRecord(name, note="installed, but gpusim has no workload for it" if found else NOT_INSTALLED)


def _run_peer(
    name: str, make: Callable[[], Iterator[PeerCase | PeerRecord]], options: Options, tell: Callable[[str], None]
) -> list[PeerRecord]:
    """All cases of a peer."""
    if find_spec(name) is None:
        return [PeerRecord(name, note=NOT_INSTALLED)]
    records: list[PeerRecord] = []
    try:
        tell(f"peer {name}")
        for case in make():
            if isinstance(case, PeerRecord):
                records.append(case)
                continue
            tell(f"peer {name}: {case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}")
            records.append(time_case(name, case, options.seconds))
    except Exception as error:  # a peer may fail in any way, and that must not stop a benchmark
        note = f"failed: {type(error).__name__}: {error}"[:200]
        records.append(PeerRecord(name, package_version(name), note=note))
    return records


def chain_mjcf() -> str:
    """The chain of 10 links on hinges, stretched out along x."""
    inertial = (
        f'<inertial mass="{MASS}" pos="{0.5 * LENGTH} 0 0" diaginertia="{ALONG} {ACROSS} {ACROSS}"/>'
        '<joint axis="0 1 0"/>'
    )
    links = "".join(f'<body pos="{LENGTH if i else 0.0} 0 0">{inertial}' for i in range(LINKS)) + "</body>" * LINKS
    return _mjcf(links, "")


def boom_mjcf() -> str:
    """The boom of scene boom_crane on a pneumatic cylinder."""
    length, boom, tip = 3.0, 300.0, 500.0
    center = (0.5 * boom + tip) * length / (boom + tip)
    across = (boom / 3.0 + tip) * length**2 - (boom + tip) * center**2
    body = (
        '<site name="base" pos="0.2 0 -1.3"/><body euler="0 0.1745 0">'
        f'<inertial mass="{boom + tip}" pos="{center} 0 0" diaginertia="{0.01 * across} {across} {across}"/>'
        '<joint axis="0 1 0"/><site name="rod" pos="0.7 0 0"/></body>'
    )
    rest = (
        '<tendon><spatial name="lift"><site site="base"/><site site="rod"/></spatial></tendon>'
        '<actuator><cylinder tendon="lift" timeconst="0.05" area="0.005" bias="0 0 -5000"/></actuator>'
    )
    return _mjcf(body, rest)


def _mjcf(bodies: str, rest: str) -> str:
    return (
        f'<mujoco><compiler angle="radian"/><option timestep="{DT}" gravity="0 0 -9.81"/>'
        f"<worldbody>{bodies}</worldbody>{rest}</mujoco>"
    )


def _mujoco(options: Options) -> Iterator[PeerCase]:
    import mujoco
    from mujoco import rollout

    threads = options.threads or available_cores()
    for name, text in _models():
        model = mujoco.MjModel.from_xml_string(text)
        data = mujoco.MjData(model)

        def one(n: int, m: Any = model, d: Any = data) -> None:
            for _ in range(n):
                mujoco.mj_step(m, d)

        yield PeerCase(name, 1, one, "float64, a call for each step")
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        size = mujoco.mj_stateSize(model, full)
        for worlds in WORLDS[:2] if options.quick else WORLDS:
            state = np.empty(size)
            mujoco.mj_getState(model, data, state, full)
            with rollout.Rollout(nthread=threads) as roll:
                given = np.tile(state, (worlds, 1))
                many = _rollout(roll, model, mujoco.MjData, given, threads, 0.0 if name == BIPED else 1.0)
                yield PeerCase(name, worlds, many, f"float64, rollout of {threads} threads", ROLLOUT_STEPS)


def _models() -> list[tuple[str, str]]:
    """Names and MJCF texts."""
    return [(CHAIN, chain_mjcf()), (BOOM, boom_mjcf()), (BIPED, biped_mjcf(DT))]


def _rollout(roll: Any, model: Any, make_data: Any, states: Any, threads: int, most: float) -> Callable[[int], None]:
    data = [make_data(model) for _ in range(threads)]
    size = states.shape[1]
    out = np.empty((len(states), ROLLOUT_STEPS, size))
    sensors = np.empty((len(states), ROLLOUT_STEPS, model.nsensordata))
    # as gpusim's commands: other ones in every world
    controls = np.random.default_rng(0).uniform(-most, most, (len(states), 1, model.nu)).repeat(ROLLOUT_STEPS, axis=1)

    def advance(n: int) -> None:
        for _ in range(max(1, n // ROLLOUT_STEPS)):
            roll.rollout(model, data, states, controls, nstep=ROLLOUT_STEPS, state=out, sensordata=sensors)
            states[:] = out[:, -1]

    return advance


def _mujoco_warp(options: Options) -> Iterator[PeerCase]:
    import mujoco
    import mujoco_warp
    import warp

    if not warp.is_cuda_available():
        raise RuntimeError("needs a GPU")
    for name, text in _models():
        model = mujoco.MjModel.from_xml_string(text)
        for worlds in WORLDS[:2] if options.quick else WORLDS:
            m, d = mujoco_warp.put_model(model), mujoco_warp.make_data(model, nworld=worlds)
            mujoco_warp.step(m, d)  # compiles, which a capture must not
            with warp.ScopedCapture() as capture:
                mujoco_warp.step(m, d)

            def advance(n: int, graph: Any = capture.graph) -> None:
                for _ in range(n):
                    warp.capture_launch(graph)
                warp.synchronize()

            yield PeerCase(name, worlds, advance, "float32, CUDA graph of a step")


def _pybullet(options: Options) -> Iterator[PeerCase]:
    import pybullet as p

    client = p.connect(p.DIRECT)
    try:
        p.setGravity(0.0, 0.0, -9.81, physicsClientId=client)
        p.setTimeStep(DT, physicsClientId=client)
        _bullet_chain(p, client)

        def advance(n: int) -> None:
            for _ in range(n):
                p.stepSimulation(physicsClientId=client)

        yield PeerCase(CHAIN, 1, advance, "float64, a call for each step")
    finally:
        p.disconnect(client)


def _bullet_chain(p: Any, client: int) -> None:
    n = LINKS
    turn = [0.0, 0.0, 0.0, 1.0]
    body = p.createMultiBody(
        baseMass=0.0,
        linkMasses=[MASS] * n,
        linkCollisionShapeIndices=[-1] * n,
        linkVisualShapeIndices=[-1] * n,
        linkPositions=[[LENGTH if i else 0.0, 0.0, 0.0] for i in range(n)],
        linkOrientations=[turn] * n,
        linkInertialFramePositions=[[0.5 * LENGTH, 0.0, 0.0]] * n,
        linkInertialFrameOrientations=[turn] * n,
        linkParentIndices=list(range(n)),
        linkJointTypes=[p.JOINT_REVOLUTE] * n,
        linkJointAxis=[[0.0, 1.0, 0.0]] * n,
        physicsClientId=client,
    )
    for link in range(n):
        # bullet's motors and damping are on unless they are turned off
        p.setJointMotorControl2(body, link, p.VELOCITY_CONTROL, force=0.0, physicsClientId=client)
        p.changeDynamics(
            body, link, linearDamping=0.0, angularDamping=0.0, jointDamping=0.0,
            localInertiaDiagonal=[ALONG, ACROSS, ACROSS], physicsClientId=client,
        )  # fmt: skip


PEERS: dict[str, Callable[[Options], Iterator[PeerCase]]] = {
    "mujoco": _mujoco,
    "mujoco_warp": _mujoco_warp,
    "pybullet": _pybullet,
}
"""What makes the cases of a peer, by the name of its package."""

"""Time the benchmark mechanisms in other simulators (peers) that are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from ci.peers import mujoco_peers, newton_peer
from ci.peers.peer_case import NOT_INSTALLED, PeerCase, PeerModel, PeerRecord, package_version, time_case
from ci.peers.peer_models import ACROSS, ALONG, DT, LENGTH, LINKS, MASS, peer_models
from ci.peers.pile_peers import PILE_PEERS
from gpusim.bench import piles
from gpusim.bench.runner import Options
from gpusim.bench.workloads import CHAIN, PILES, QUICK_PILES

Enough = Callable[[], bool] | None


def run_peers(
    options: Options, log: Callable[[str], None], names: Sequence[str] = (), enough: Enough = None
) -> list[PeerRecord]:
    """Time every peer that is installed.

    Args:
        options: settings of the benchmarks.
        names: workloads to run, or empty for the default workloads.
        enough: function to call before each case. If it returns True, the remaining cases are skipped.
    """
    records: list[PeerRecord] = []
    models = peer_models(names)
    if models:
        for peer, make in PEERS.items():
            records += _run_peer(peer, partial(make, options, models), options, log, enough)
    for name in names or ("pile_1000",):
        if name not in PILES:
            continue
        columns, layers, spheres = (QUICK_PILES if options.quick else PILES)[name]
        if not spheres:  # only gpusim has the pile of rolling spheres within walls
            heap = piles.heap(columns, layers)
            for peer, build in PILE_PEERS.items():
                records += _run_peer(peer, partial(build, options, heap), options, log, enough)
    return reported_once(records)


def reported_once(records: Iterable[PeerRecord]) -> list[PeerRecord]:
    """Return the records. Peers that are not installed have one final record each."""
    every = list(records)
    found = {record.peer: record for record in every if record.note == NOT_INSTALLED}
    return [record for record in every if record.note != NOT_INSTALLED] + list(found.values())


def _run_peer(
    name: str,
    make: Callable[[], Iterator[PeerCase | PeerRecord]],
    options: Options,
    log: Callable[[str], None],
    enough: Enough,
) -> list[PeerRecord]:
    """Run the cases of a peer."""
    if find_spec(name) is None:
        return [PeerRecord(name, note=NOT_INSTALLED)]
    records: list[PeerRecord] = []
    try:
        log(f"peer {name}")
        for case in make():
            if enough and enough():
                break
            if isinstance(case, PeerRecord):
                records.append(case)
                continue
            log(f"peer {name}: {case.name}, {case.worlds} world{'s' if case.worlds > 1 else ''}")
            records.append(time_case(name, case, options.seconds))
    except Exception as error:  # an error of another simulator must not stop the benchmark
        note = f"failed: {type(error).__name__}: {error}"[:200]
        records.append(PeerRecord(name, package_version(name), note=note))
    return records


def _pybullet(options: Options, models: Sequence[PeerModel]) -> Iterator[PeerCase]:
    """Yield the chain, the only case of PyBullet."""
    import pybullet as p

    if all(peer.name != CHAIN for peer in models):
        return
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
    identity = [0.0, 0.0, 0.0, 1.0]
    body = p.createMultiBody(
        baseMass=0.0,
        linkMasses=[MASS] * n,
        linkCollisionShapeIndices=[-1] * n,
        linkVisualShapeIndices=[-1] * n,
        linkPositions=[[LENGTH if i else 0.0, 0.0, 0.0] for i in range(n)],
        linkOrientations=[identity] * n,
        linkInertialFramePositions=[[0.5 * LENGTH, 0.0, 0.0]] * n,
        linkInertialFrameOrientations=[identity] * n,
        linkParentIndices=list(range(n)),
        linkJointTypes=[p.JOINT_REVOLUTE] * n,
        linkJointAxis=[[0.0, 1.0, 0.0]] * n,
        physicsClientId=client,
    )
    for link in range(n):
        # Bullet's motors and damping are on by default.
        p.setJointMotorControl2(body, link, p.VELOCITY_CONTROL, force=0.0, physicsClientId=client)
        p.changeDynamics(
            body, link, linearDamping=0.0, angularDamping=0.0, jointDamping=0.0,
            localInertiaDiagonal=[ALONG, ACROSS, ACROSS], physicsClientId=client,
        )  # fmt: skip


PEERS: dict[str, Callable[[Options, Sequence[PeerModel]], Iterator[PeerCase]]] = {
    "mujoco_warp": mujoco_peers.mujoco_warp,
    "newton": newton_peer.newton,
    "mujoco": mujoco_peers.mujoco,
    "pybullet": _pybullet,
}
"""Functions that make the cases of a peer, by package name."""

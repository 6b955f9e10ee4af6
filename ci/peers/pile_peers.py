"""The pile of boxes of :mod:`gpusim.bench.piles` in other simulators.

Poses, masses, friction and step size are the same. Less accurate simulations are faster, so the table also contains the
residual penetration and motion.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ci.peers.mjcf import mjcf_text
from ci.peers.peer_case import PeerCase, PeerRecord, package_version
from gpusim.bench import piles
from gpusim.bench.piles import Heap
from gpusim.bench.runner import Options

MUJOCO_BOXES = 1000
"""Maximum number of boxes for MuJoCo."""
LONGEST_SETTLE = 20.0
"""Maximum time in which a pile may settle, s."""
PROFILED = 10


def pile_case(objects: Heap, options: Options, advance: Callable[[int], None], note: str, **more: Any) -> PeerCase:
    """Return a case of one world with a settled pile. The case measures CPU times."""
    settle_steps, done = 60 if options.quick else piles.SETTLE, 0
    begin = time.process_time()
    while done < settle_steps and time.process_time() - begin < LONGEST_SETTLE:
        advance(1)
        done += 1
    if done < settle_steps:
        note += f"; settled for {done} steps only"
    return PeerCase(pile_name(objects), 1, advance, f"one thread, {note}", clock=time.process_time, **more)


def pile_name(objects: Heap) -> str:
    """Return the name of a pile in the table."""
    return f"{objects.angle.size} boxes"


def rapier3d(options: Options, objects: Heap) -> Iterator[PeerCase]:
    """Yield the pile in Rapier with its defaults."""
    import rapier3d as r

    world = r.PhysicsWorld(gravity=(0.0, 0.0, -piles.GRAVITY))
    world.set_num_threads(1)
    world.integration_parameters.dt = piles.DT
    world.add_collider(r.Collider.halfspace((0.0, 0.0, 1.0), friction=piles.FRICTION))
    bodies = []
    for position, angle in zip(objects.position, objects.angle, strict=True):
        body = r.RigidBody.dynamic(translation=tuple(position), rotation=(0.0, 0.0, float(angle)), can_sleep=False)
        box = r.Collider.cuboid(*(piles.HALF,) * 3, friction=piles.FRICTION, mass=piles.MASS)
        bodies.append(world.add_body(body, [box]))

    def advance(n: int) -> None:
        for _ in range(n):
            world.step()

    def figures(step_us: float) -> dict[str, float]:
        velocity = [(v.x, v.y, v.z) for v in (world.rigid_bodies[body].linvel for body in bodies)]
        manifolds = [m.points for pair in world.narrow_phase.contact_pairs() for m in pair.manifolds if m.points]
        found = piles.motion_figures(len(manifolds), sum(map(len, manifolds)), step_us, velocity)
        deepest = max((-point.dist for points in manifolds for point in points), default=0.0)
        return found | {"overlap": deepest} | _rapier_stages(world)

    rounds = world.integration_parameters.num_solver_iterations
    yield pile_case(objects, options, advance, f"float32, {rounds} solver iterations (its default)", figures=figures)


def _rapier_stages(world: Any) -> dict[str, float]:
    """Return the fractions of a step that Rapier spends on collisions and on solving."""
    spent = np.zeros(3)
    for _ in range(PROFILED):
        world.step()
        counters = world.physics_pipeline.counters
        stages = counters.stages
        spent += stages.collision_detection_time_ms, stages.solver_time_ms, counters.step_time_ms
    return {"collide_share": float(spent[0] / spent[2]), "solve_share": float(spent[1] / spent[2])}


def pybullet(options: Options, objects: Heap) -> Iterator[PeerCase]:
    """Yield the pile in Bullet with its defaults."""
    import pybullet as p

    client = p.connect(p.DIRECT)
    try:
        p.setGravity(0.0, 0.0, -piles.GRAVITY, physicsClientId=client)
        p.setTimeStep(piles.DT, physicsClientId=client)
        bodies = _bullet_bodies(p, client, objects)

        def advance(n: int) -> None:
            for _ in range(n):
                p.stepSimulation(physicsClientId=client)

        def figures(step_us: float) -> dict[str, float]:
            velocity = [p.getBaseVelocity(body, physicsClientId=client)[0] for body in bodies]
            points = p.getContactPoints(physicsClientId=client)
            pairs = {(point[1], point[2]) for point in points}
            found = piles.motion_figures(len(pairs), len(points), step_us, velocity)
            return found | {"overlap": max((-point[8] for point in points), default=0.0)}

        rounds = p.getPhysicsEngineParameters(physicsClientId=client)["numSolverIterations"]
        note = f"float64, {rounds} solver iterations (its default)"
        yield pile_case(objects, options, advance, note, figures=figures)
    finally:
        p.disconnect(client)


def _bullet_bodies(p: Any, client: int, objects: Heap) -> list[int]:
    # Bullet multiplies the coefficients of both bodies.
    friction = piles.FRICTION**0.5
    plane = p.createCollisionShape(p.GEOM_PLANE, physicsClientId=client)
    ground = p.createMultiBody(0.0, plane, physicsClientId=client)
    box = p.createCollisionShape(p.GEOM_BOX, halfExtents=[piles.HALF] * 3, physicsClientId=client)
    bodies = [
        p.createMultiBody(
            piles.MASS,
            box,
            basePosition=position.tolist(),
            baseOrientation=orientation.tolist(),
            physicsClientId=client,
        )
        for position, orientation in zip(objects.position, objects.orientation(), strict=True)
    ]
    for body in (ground, *bodies):
        p.changeDynamics(
            body, -1, lateralFriction=friction, linearDamping=0.0, angularDamping=0.0, physicsClientId=client
        )
    return bodies


def mujoco(options: Options, objects: Heap) -> Iterator[PeerCase | PeerRecord]:
    """Yield the pile in MuJoCo with elliptic cones, and with the defaults for all other settings."""
    import mujoco

    if objects.angle.size > MUJOCO_BOXES:
        note = f"omitted: a step of more than {MUJOCO_BOXES} boxes takes many seconds"
        yield PeerRecord("mujoco", package_version("mujoco"), pile_name(objects), 1, note=note)
        return
    model = mujoco.MjModel.from_xml_string(pile_mjcf(objects))
    data = mujoco.MjData(model)

    def advance(n: int) -> None:
        for _ in range(n):
            mujoco.mj_step(model, data)

    def figures(step_us: float) -> dict[str, float]:
        pairs = np.unique(data.contact.geom, axis=0)
        velocity = data.qvel.reshape(-1, 6)[:, :3]
        found = piles.motion_figures(len(pairs), data.ncon, step_us, velocity)
        return found | {"overlap": float(-data.contact.dist.min()) if data.ncon else 0.0}

    yield pile_case(objects, options, advance, "float64, elliptic cones, Newton (its default)", figures=figures)


def pile_mjcf(objects: Heap) -> str:
    """Return the pile as MJCF."""
    boxes = "".join(
        f'<body pos="{x} {y} {z}" euler="0 0 {angle}"><freejoint/><geom type="box" size="{piles.HALF} {piles.HALF} '
        f'{piles.HALF}" mass="{piles.MASS}" friction="{piles.FRICTION} 0 0"/></body>'
        for (x, y, z), angle in zip(objects.position, objects.angle, strict=True)
    )
    ground = f'<geom type="plane" size="0 0 1" friction="{piles.FRICTION} 0 0"/>'
    return mjcf_text(ground + boxes, "", piles.DT, 'cone="elliptic"')


PILE_PEERS: dict[str, Callable[[Options, Heap], Iterator[PeerCase | PeerRecord]]] = {
    "rapier3d": rapier3d,
    "pybullet": pybullet,
    "mujoco": mujoco,
}
"""Functions that make the piles of a peer, by package name."""

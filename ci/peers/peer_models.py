"""Benchmark mechanisms as MJCF.

The benchmarks compare the times for a step of the same size. The accuracy of the simulators may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci.peers.biped_mjcf import biped_mjcf
from ci.peers.humanoid_mjcf import humanoid_mjcf
from ci.peers.mjcf import mjcf_text
from ci.peers.peer_case import PeerModel
from gpusim.bench import humanoid
from gpusim.bench.workloads import BIPED, BOOM, CHAIN, HUMANOID_LYING, HUMANOID_MOVING, HUMANOID_STANDING

DT = 1e-3
LINKS, LENGTH, MASS = 10, 0.2, 0.1
# Inertia of a thin rod about its middle. Other simulators need a positive inertia about the axis, so the code uses a
# hundredth.
ACROSS = MASS * LENGTH**2 / 12.0
ALONG = 0.01 * ACROSS
HUMANOID_CAPACITIES = 24, 72
"""Value of mujoco_warp's benchmark."""
GYMNASIUM = 'integrator="RK4" iterations="50" solver="PGS"'


def peer_models(names: Sequence[str] = ()) -> list[PeerModel]:
    """Return the models of the workloads ``names``, or all models if ``names`` is empty."""
    return [model for model in _all_models() if not names or model.workload in names]


def _all_models() -> Iterator[PeerModel]:
    yield PeerModel("many_worlds", CHAIN, chain_mjcf())
    yield PeerModel("many_worlds", BOOM, boom_mjcf())
    yield PeerModel("many_worlds", BIPED, biped_mjcf(DT), 0.0)
    for options, note in (("", "Euler, Newton (unasked)"), (GYMNASIUM, "RK4, 50 x PGS (gymnasium's)")):
        yield PeerModel(
            "humanoid", HUMANOID_STANDING, humanoid_mjcf(False, options), 0.0,
            restart=humanoid.STANDING_STEPS, capacities=HUMANOID_CAPACITIES, note=note,
        )  # fmt: skip
        yield PeerModel(
            "humanoid", HUMANOID_LYING, humanoid_mjcf(True, options), 0.0,
            settle=humanoid.SETTLE, capacities=HUMANOID_CAPACITIES, note=note,
        )  # fmt: skip
        yield PeerModel(
            "humanoid", HUMANOID_MOVING, humanoid_mjcf(False, options), humanoid.COMMAND_RANGE,
            settle=humanoid.FALL, hold=humanoid.HOLD, capacities=HUMANOID_CAPACITIES, note=note,
        )  # fmt: skip


def chain_mjcf() -> str:
    """Return the chain of 10 links on hinges, stretched out along x."""
    inertial = (
        f'<inertial mass="{MASS}" pos="{0.5 * LENGTH} 0 0" diaginertia="{ALONG} {ACROSS} {ACROSS}"/>'
        '<joint axis="0 1 0"/>'
    )
    links = "".join(f'<body pos="{LENGTH if i else 0.0} 0 0">{inertial}' for i in range(LINKS)) + "</body>" * LINKS
    return mjcf_text(links, "", DT)


def boom_mjcf() -> str:
    """Return the MJCF of a boom that a pneumatic cylinder lifts, similar to the scene boom_crane."""
    length, boom, tip = 3.0, 300.0, 500.0
    center = (0.5 * boom + tip) * length / (boom + tip)
    across = (boom / 3.0 + tip) * length**2 - (boom + tip) * center**2
    body = (
        '<site name="base" pos="0.2 0 -1.3"/><body euler="0 0.1745 0">'
        f'<inertial mass="{boom + tip}" pos="{center} 0 0" diaginertia="{0.01 * across} {across} {across}"/>'
        '<joint axis="0 1 0"/><site name="rod" pos="0.7 0 0"/></body>'
    )
    elements = (
        '<tendon><spatial name="lift"><site site="base"/><site site="rod"/></spatial></tendon>'
        '<actuator><cylinder tendon="lift" timeconst="0.05" area="0.005" bias="0 0 -5000"/></actuator>'
    )
    return mjcf_text(body, elements, DT)

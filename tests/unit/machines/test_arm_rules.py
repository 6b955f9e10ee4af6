from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError
from gpusim import machines as m
from tests.message_snapshot import naming

from .digger import BUCKET, CYLINDERS, LINKS, SPOOL, digger, linkage, power

Act = Callable[[ModelBuilder], Any]


def links(*changed: Any) -> Act:
    return lambda b: m.add_boom_arm(b, -1, (0, 0, 1), changed)


def link(**changes: Any) -> Act:
    return links(replace(LINKS[0], **changes))


def bucket(given: Any = BUCKET, **changes: Any) -> Act:
    return lambda b: linkage(b, m.add_boom_arm(b, -1, (0, 0, 1), LINKS), given, **changes)


def boom(**changes: Any) -> Act:
    return lambda b: digger(b, changes={"boom": changes})


def arm(act: Callable[[ModelBuilder, m.BoomArm], Any]) -> Act:
    return lambda b: act(b, digger(b)[0])


def cylinders(given: Any) -> Act:
    def act(b: ModelBuilder) -> Any:
        made = m.add_boom_arm(b, -1, (0, 0, 1), LINKS)
        linkage(b, made)
        return m.add_arm_cylinders(b, made, power(b), given)

    return act


def drive(**changes: Any) -> Act:
    def act(b: ModelBuilder) -> Any:
        body = b.add_body(1.0, (1, 1, 1), label="wheel")
        joint = b.add_joint_revolute(-1, body, label="wheel")
        given: dict[str, Any] = {"displacement": 1e-4, "spool": SPOOL, "label": "drive"}
        return m.add_hydraulic_drive(b, power(b), joint, **(given | changes))

    return act


def swing(**changes: Any) -> Act:
    def act(b: ModelBuilder) -> Any:
        bodies = [b.add_body(1.0, (1, 1, 1), label=name) for name in ("chassis", "upper")]
        given: dict[str, Any] = {"chassis": bodies[0], "upper": bodies[1], "at": (0, 0, 1)}
        return m.add_swing(b, **(given | changes))

    return act


def outrigger(**changes: Any) -> Act:
    given: dict[str, Any] = {
        "chassis": -1, "at": (0, 0, 1), "stroke": 0.3, "foot_radius": 0.1, "jack": m.ServoJack(), "label": "leg",
    }  # fmt: skip
    return lambda b: m.add_outrigger(b, **(given | changes))


def jack(**changes: Any) -> Act:
    def act(b: ModelBuilder) -> Any:
        return outrigger(jack=replace(m.CylinderJack(power(b), 0.08, 0.05, SPOOL), **changes))(b)

    return act


def far(b: ModelBuilder) -> Any:
    made = m.add_boom_arm(b, -1, (0, 0, 1), LINKS)
    linkage(b, made, rocker=0.3, link=0.1)
    return made.static({"bucket": 2.5})


def idle_pump(b: ModelBuilder) -> Any:
    power(b)
    b.add_body(1.0, (1, 1, 1), label="body")
    return b.finalize()


RULES: list[tuple[Act, str]] = [
    (links(), "links gpusim.machines.Link"),
    (links("boom"), "links"),
    (lambda b: m.add_boom_arm(b, 7, (0, 0, 1), LINKS), "base 7 0"),
    (lambda b: m.add_boom_arm(b, -1, (0, 1), LINKS), "at"),
    (link(label="base"), "label 'base'"),
    (link(label=3), "label 3"),
    (link(length=0.0), "link 'boom' length 0"),
    (link(mass=-1.0), "link 'boom' mass -1"),
    (link(height=-0.1), "link 'boom' height -0.1"),
    (link(limits=(1.0, 2.0)), "link 'boom' limits 1 2 pose"),
    (link(limits=1.0), "link 'boom'"),
    (link(com=(1.0,)), "link 'boom' com"),
    (links(LINKS[0], LINKS[0]), "arm 'boom'"),
    (bucket("bucket"), "arm 'boom' bucket 'bucket' gpusim.machines.Link"),
    (bucket(rocker=-0.2), "'bucket' rocker -0.2"),
    (bucket(rocker_mass=0.0), "'bucket' rocker_mass 0"),
    (bucket(stick="arm"), "'bucket' stick 'arm'"),
    (bucket(at=(1, 2, 3)), "'bucket' at"),
    (bucket(rocker=0.1, link=0.1), "rocker 0.1 link"),
    (bucket(rocker=1.0, link=0.1), "rocker 1 link 0.1"),
    (bucket(rocker=0.45, link=0.2), "'bucket' rocker 0.45 link 0.2 0.06272"),
    (cylinders([]), "arm 'boom' cylinders"),
    (cylinders(CYLINDERS[:2]), "arm 'boom' 'bucket'"),
    (cylinders((*CYLINDERS, CYLINDERS[0])), "'boom'"),
    (boom(pins=((0.0, 0.0), (1.0, 0.0))), "'boom'"),
    (boom(end="bloom"), "arm 'boom' 'bloom' 'base' 'stick'"),
    (boom(end="base"), "'boom' 'base'"),
    (boom(stroke=-0.5), "'boom' stroke -0.5"),
    (boom(stroke=0.7), "'boom' 0.46"),
    (boom(extension=0.6), "'boom' 0.81 0.21 0.71"),
    (boom(retracted=0.9), "'boom' 0.81 0.9 1.4"),
    (boom(extension=0.2, retracted=0.6), "'boom'"),
    (boom(rod=0.07), "'boom' rod 0.07 bore 0.063"),
    (boom(bore=0.0), "'boom' bore 0"),
    (boom(back_pressure=-1.0), "'boom' back_pressure -1"),
    (boom(spool=None), "drive 'boom' spool None gpusim.machines.Spool"),
    (boom(spool=m.Spool(0.0)), "drive 'boom' spool.flow 0"),
    (boom(spool=m.Spool(1e-3, drain=-1.0)), "drive 'boom' spool.drain -1"),
    (boom(relief=0.0), "drive 'boom' relief 0"),
    (boom(relief=1e6), "drive 'boom' relief 1e+06"),
    (boom(pins=((0.3, -0.35),)), "'boom' pins"),
    (boom(stroke=2.0), "'boom' -0.19"),
    (boom(piston_mass=-1.0), "piston_mass -1"),
    (boom(holding=5), "drive 'boom' holding 5 HoldingValve"),
    (boom(holding=[m.HoldingValve(2e7)] * 2), "drive 'boom'"),
    (boom(holding=m.HoldingValve(2e6)), "drive 'boom' holding.pressure 2e+06"),
    (boom(holding=m.HoldingValve(1e7, "c")), "drive 'boom' holding.chamber 'c'"),
    (boom(holding=m.HoldingValve(1e7, pilot_time=-1.0)), "drive 'boom' holding.pilot_time -1"),
    (boom(holding=m.HoldingValve(1e7, opening_range=0.0)), "drive 'boom' holding.opening_range 0"),
    (arm(lambda b, a: a.static({"rocker": 0.1})), "arm 'boom' 'rocker'"),
    (arm(lambda b, a: a.static(forces=[("tip", (0, 0), (0, 1))])), "arm 'boom' 'tip'"),
    (arm(lambda b, a: a.static(forces=["dig"])), "arm 'boom' force 'dig'"),
    (far, "arm 'boom'"),
    (idle_pump, "oil_circuit 'oil'"),
    (lambda b: power(b, flow=-1.0), "flow -1"),
    (lambda b: power(b, volume=0.0), "volume 0"),
    (lambda b: power(b, pressure=1e5), "pressure 100000 400000"),
    (lambda b: power(b, relief=1e7), "relief 1e+07 pressure 2e+07"),
    (lambda b: power(b, control="flow"), "control 'flow'"),
    (drive(displacement=0.0), "displacement 0"),
    (drive(spool=3), "drive 'drive' spool 3"),
    (drive(back_pressure=-1.0), "'drive' back_pressure -1"),
    (swing(upper=-1), "'swing' upper -1 chassis 0"),
    (swing(upper=0), "'swing' upper 0 chassis"),
    (swing(limits=(0.1, 1.0)), "'swing' limits 0.1 1 0"),
    (swing(brake_torque=-1.0), "'swing' brake_torque -1"),
    (swing(at=(0, 0)), "'swing' at"),
    (outrigger(stroke=0.0), "'leg' stroke 0"),
    (outrigger(foot_radius=-0.1), "'leg' foot_radius -0.1"),
    (outrigger(leg_mass=0.0), "'leg' leg_mass 0"),
    (outrigger(length=0.2), "'leg' length 0.2 stroke 0.3"),
    (outrigger(tilt=2.0), "'leg' tilt 2 0"),
    (outrigger(jack=5), "'leg' jack 5 ServoJack CylinderJack"),
    (outrigger(at=(1, 2)), "'leg' at"),
    (jack(rod=0.1), "'leg' rod 0.1 bore 0.08"),
    (jack(spool=None), "drive 'leg' spool None"),
]


@pytest.mark.parametrize("act, words", RULES)
def test_bad_parameters_are_reported(act: Act, words: str) -> None:
    with pytest.raises(ModelError, match=naming(words)) as reported:
        act(ModelBuilder())
    message = str(reported.value)
    assert message.count(";") >= 1 and "\n" not in message


def test_a_cylinder_that_fails_leaves_the_arm_as_it_was() -> None:
    b = ModelBuilder()
    made = m.add_boom_arm(b, -1, (0, 0, 1), LINKS)
    linkage(b, made)
    pack = power(b)
    with pytest.raises(ModelError):
        m.add_arm_cylinders(b, made, pack, [*CYLINDERS[:2], replace(CYLINDERS[2], extension=5.0)])
    m.add_arm_cylinders(b, made, pack, CYLINDERS)
    assert len(made.mechanism.rams) == 3

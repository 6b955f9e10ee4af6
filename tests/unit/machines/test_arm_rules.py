"""Bad parameters of arms, their hydraulics, swings and outriggers: one sentence with the rule and the mend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gpusim import ModelBuilder, ModelError
from gpusim import machines as m

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
    (links(), "arm: links = .* are no Links; give a list of gpusim.machines.Link"),
    (links("boom"), "arm: links = .* are no Links; give a list"),
    (lambda b: m.add_boom_arm(b, 7, (0, 0, 1), LINKS), "arm.*base"),
    (lambda b: m.add_boom_arm(b, -1, (0, 1), LINKS), "arm: at has shape"),
    (link(label="base"), "arm: label = 'base' names no link; give a word"),
    (link(label=3), "arm: label = 3 names no link; give a word"),
    (link(length=0.0), "link 'boom': length = 0 must be above zero; give a positive length"),
    (link(mass=-1.0), "link 'boom': mass = -1 must be above zero; give a positive mass"),
    (link(height=-0.1), "link 'boom': height = -0.1 must be above zero"),
    (link(limits=(1.0, 2.0)), r"link 'boom': limits = \(1, 2\) do not hold pose = 0.61.*; give \(least, greatest\)"),
    (link(limits=1.0), "link 'boom': limits"),
    (link(com=(1.0,)), "link 'boom': com has shape"),
    (links(LINKS[0], LINKS[0]), "arm 'boom': has two parts 'boom'; give each link a label of its own"),
    (bucket("bucket"), "arm 'boom': bucket linkage: bucket = 'bucket' is no Link; give gpusim.machines.Link"),
    (bucket(rocker=-0.2), "bucket linkage 'bucket': rocker = -0.2 must be above zero"),
    (bucket(rocker_mass=0.0), "bucket linkage 'bucket': rocker_mass = 0 must be above zero"),
    (bucket(stick="arm"), "bucket linkage 'bucket': stick = 'arm' is no link of the arm; give one of"),
    (bucket(at=(1, 2, 3)), "bucket linkage 'bucket': at has shape"),
    (bucket(rocker=0.1, link=0.1), "rocker = 0.1 and link = 0.1 do not close the loop as built, with 0.34.* m between"),
    (bucket(rocker=1.0, link=0.1), "rocker = 1 and link = 0.1 do not close the loop as built, with .*; give lengths"),
    (bucket(rocker=0.45, link=0.2), "do not close the loop where the bucket's angle is .*; give other lengths, o"),
    (cylinders([]), r"arm 'boom': cylinders = \[\] are no ArmCylinders; give a list of"),
    (cylinders(CYLINDERS[:2]), "arm 'boom': no cylinder has a lever on the hinge of 'bucket'; give every hinge a"),
    (cylinders((*CYLINDERS, CYLINDERS[0])), "cylinder 'boom': is there twice; give each cylinder a label"),
    (boom(pins=((0.0, 0.0), (1.0, 0.0))), "no cylinder has a lever on the hinge of 'boom'"),
    (boom(end="bloom"), "arm 'boom': has no part 'bloom'; give one of 'base', 'boom', 'stick'"),
    (boom(end="base"), "cylinder 'boom': begins and ends on 'base'; give two parts"),
    (boom(stroke=-0.5), "cylinder 'boom': stroke = -0.5 must be above zero"),
    (boom(stroke=0.7), "cylinder 'boom': retracted it would be 0.46 m from pin to pin, shorter than its stroke"),
    (boom(extension=0.6), "cylinder 'boom': its pins are 0.81 m apart as built, and it reaches from 0.21 to 0.71"),
    (boom(retracted=0.9), "cylinder 'boom': its pins are 0.81 m apart as built, and it reaches from 0.9 to 1.4 m; mov"),
    (boom(extension=0.2, retracted=0.6), "extension and retracted both place the piston; give one of them"),
    (boom(rod=0.07), "cylinder 'boom': rod = 0.07 is not below bore = 0.063; give a thinner rod"),
    (boom(bore=0.0), "cylinder 'boom': bore = 0 must be above zero"),
    (boom(back_pressure=-1.0), "cylinder 'boom': back_pressure = -1 must not be negative"),
    (boom(spool=None), r"drive 'boom': spool = None is no Spool; give gpusim.machines.Spool\(flow\)"),
    (boom(spool=m.Spool(0.0)), "drive 'boom': spool.flow = 0 must be above zero"),
    (boom(spool=m.Spool(1e-3, drain=-1.0)), "drive 'boom': spool.drain = -1 must be above zero"),
    (boom(relief=0.0), "drive 'boom': relief = 0 must be above zero"),
    (boom(relief=1e6), "drive 'boom': relief = 1e.06 is below the .* Pa of the load as built"),
    (boom(pins=((0.3, -0.35),)), r"cylinder 'boom': pins = .* are no two pins; give \(\(x, z\), \(x, z\)\)"),
    (boom(stroke=2.0), "cylinder 'boom': retracted it would be -0.19 m from pin to pin, shorter than its stroke"),
    (boom(piston_mass=-1.0), "piston_mass = -1 must not be negative"),
    (boom(holding=5), "drive 'boom': holding = 5 is no HoldingValve"),
    (boom(holding=[m.HoldingValve(2e7)] * 2), "drive 'boom': has two holding valves on one chamber"),
    (boom(holding=m.HoldingValve(2e6)), "drive 'boom': holding.pressure = 2e.06 is below the .* Pa of the load a"),
    (boom(holding=m.HoldingValve(1e7, "c")), "drive 'boom': holding.chamber = 'c' is none; give \"a\" or \"b\""),
    (boom(holding=m.HoldingValve(1e7, pilot_time=-1.0)), "drive 'boom': holding.pilot_time = -1"),
    (boom(holding=m.HoldingValve(1e7, opening_range=0.0)), "drive 'boom': holding.opening_range = 0"),
    (arm(lambda b, a: a.static({"rocker": 0.1})), "arm 'boom': has no link 'rocker'; give turns of 'boom', 'stic"),
    (arm(lambda b, a: a.static(forces=[("tip", (0, 0), (0, 1))])), "arm 'boom': has no part 'tip'; give one of"),
    (arm(lambda b, a: a.static(forces=["dig"])), "arm 'boom': force 'dig' is not a part, a point and a force"),
    (far, "arm 'boom': its linkage does not close at turns of .*; give turns with"),
    (idle_pump, "feeds no cylinder and no motor; add one, or leave the circuit out"),
    (lambda b: power(b, flow=-1.0), "power pack: flow = -1 must be above zero"),
    (lambda b: power(b, volume=0.0), "power pack: volume = 0 must be above zero"),
    (lambda b: power(b, pressure=1e5), "power pack: pressure = 100000 is not above that of the return line, 400000 Pa"),
    (lambda b: power(b, relief=1e7), "power pack: relief = 1e.07 lies below the pump's pressure = 2e.07; give a "),
    (lambda b: power(b, control="flow"), "control = 'flow' is unknown"),
    (drive(displacement=0.0), "displacement = 0 must be above zero"),
    (drive(spool=3), "drive 'drive': spool = 3 is no Spool"),
    (drive(back_pressure=-1.0), "hydraulic drive 'drive': back_pressure = -1 must not be negative"),
    (swing(upper=-1), "swing 'swing': upper = -1 does not turn on chassis = 0; give two bodies"),
    (swing(upper=0), "swing 'swing': upper = 0 does not turn on chassis = 0; give two bodies"),
    (swing(limits=(0.1, 1.0)), r"swing 'swing': limits = \(0.1, 1\) do not hold 0, where it is built; give"),
    (swing(brake_torque=-1.0), "swing 'swing': brake_torque = -1 must not be negative"),
    (swing(at=(0, 0)), "swing 'swing': at has shape"),
    (outrigger(stroke=0.0), "outrigger 'leg': stroke = 0 must be above zero"),
    (outrigger(foot_radius=-0.1), "outrigger 'leg': foot_radius = -0.1 must be above zero"),
    (outrigger(leg_mass=0.0), "outrigger 'leg': leg_mass = 0 must be above zero"),
    (outrigger(length=0.2), "outrigger 'leg': a leg of length = 0.2 m slides out of the chassis at stroke = 0.3 "),
    (outrigger(tilt=2.0), "outrigger 'leg': tilt = 2 is not within 0 to pi/2; give an angle"),
    (outrigger(jack=5), "outrigger 'leg': jack = 5 is neither a ServoJack nor a CylinderJack; give one"),
    (outrigger(at=(1, 2)), "outrigger 'leg': at has shape"),
    (jack(rod=0.1), "outrigger 'leg': rod = 0.1 is not below bore = 0.08; give a thinner rod"),
    (jack(spool=None), "drive 'leg': spool = None is no Spool"),
]


@pytest.mark.parametrize("act, words", RULES)
def test_bad_parameters_are_told(act: Act, words: str) -> None:
    with pytest.raises(ModelError, match=words) as told:
        act(ModelBuilder())
    message = str(told.value)
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
